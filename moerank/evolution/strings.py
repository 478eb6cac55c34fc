"""Rows of bits: sizes, equals and distances, random ones of each row, uniform crossover; whole batches at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "beside_size",
    "first_of_equals",
    "group_numbers",
    "hamming_distances",
    "random_members",
    "random_strings",
    "random_subsets",
    "uniform_children",
]

Bits = NDArray[np.bool_]
Integers = NDArray[np.int64]


def first_of_equals(rows: NDArray[Any]) -> Integers:
    """Return the numbers of the rows that equal none before them, ascending.

    Parameters
    ----------
    rows : ndarray, shape (n, n_columns)
        Strings of bool, or objectives.

    Examples
    --------
    >>> first_of_equals(np.array([[True, False], [True, True], [True, False]])).tolist()
    [0, 1]
    """
    _, first = np.unique(_as_single_values(rows), return_index=True)
    numbers: Integers = np.sort(first)
    return numbers


def group_numbers(rows: NDArray[Any]) -> Integers:
    """Return a number from 0 on for each row, the same for equal rows and for these alone.

    Parameters
    ----------
    rows : ndarray, shape (n, n_columns)
        Strings of bool, or objectives.

    Examples
    --------
    >>> group_numbers(np.array([[1.0, 3], [0, 5], [1, 3]])).tolist()
    [1, 0, 1]
    """
    _, numbers = np.unique(_as_single_values(rows), return_inverse=True)
    return numbers


def _as_single_values(rows: NDArray[Any]) -> NDArray[np.void]:
    # The sum turns -0.0 into 0.0.
    values = np.packbits(rows, axis=1) if rows.dtype == np.bool_ else np.ascontiguousarray(rows + 0)
    return values.view(f"V{values.shape[1] * values.itemsize}").ravel()


def beside_size(X: Bits, F: NDArray[np.float64]) -> Integers:
    """Return the numbers of the objectives that are not the size of the strings, whatever their order.

    An objective is the size if it is proportional to the number of ones, within a billionth. If all are, all count.

    Parameters
    ----------
    X : ndarray of bool, shape (n, n_bits)
    F : ndarray, shape (n, n_objectives)

    Examples
    --------
    >>> beside_size(np.array([[True, False], [True, True]]), np.array([[0.3, 0.5], [0.2, 1.0]])).tolist()
    [0]
    """
    sizes = np.count_nonzero(X, axis=1)[:, None]
    proportional = np.isclose(F * sizes[0], F[0] * sizes, rtol=1e-9, atol=0.0).all(axis=0)
    others: Integers = np.flatnonzero(~proportional | proportional.all())
    return others


def hamming_distances(A: Bits, B: Bits) -> NDArray[np.float32]:
    """Return in how many bits the rows of `A` and of `B` differ, shape (n_a, n_b); exact below 2²⁴ bits.

    Examples
    --------
    >>> a, b = np.array([[True, False, True]]), np.array([[True, False, True], [False, True, True]])
    >>> hamming_distances(a, b).tolist()
    [[0.0, 2.0]]
    """
    a, b = A.astype(np.float32), B.astype(np.float32)
    distances: NDArray[np.float32] = a.sum(axis=1)[:, None] + b.sum(axis=1) - 2 * (a @ b.T)
    return distances


def random_members(masks: Bits, n: int, random_state: np.random.Generator) -> Integers:
    """Return `n` random columns of the ones in each row, drawn with replacement, shape (n, n_rows).

    Parameters
    ----------
    masks : ndarray of bool, shape (n_rows, n_columns)
        None of the rows empty.

    Examples
    --------
    >>> random_members(np.array([[True, False, True], [False, True, False]]), 4, np.random.default_rng(0)).tolist()
    [[2, 1], [0, 1], [2, 1], [2, 1]]
    """
    rows, columns = np.nonzero(masks)
    sizes = np.bincount(rows, minlength=len(masks))
    places = (random_state.random((n, len(masks))) * sizes).astype(np.int64)
    members: Integers = columns[np.cumsum(sizes) - sizes + places]
    return members


def random_strings(n: int, n_bits: int, largest: int, random_state: np.random.Generator) -> Bits:
    """Return `n` random strings of k ones, k uniform in 1 … `largest`, shape (n, n_bits).

    Examples
    --------
    >>> random_strings(3, 6, 2, np.random.default_rng(0)).sum(axis=1).tolist()
    [2, 2, 2]
    """
    sizes = random_state.integers(1, largest, n, endpoint=True)
    return random_subsets(np.ones((n, n_bits), np.bool_), sizes, random_state)


def random_subsets(masks: Bits, sizes: Integers, random_state: np.random.Generator) -> Bits:
    """Return for each row a random subset of its ones with so many members, all of them equally likely.

    Parameters
    ----------
    masks : ndarray of bool, shape (n_rows, n_columns)
    sizes : ndarray of int, shape (n_rows,)
        From 0 to the number of ones in the row.

    Examples
    --------
    >>> masks = np.array([[True, True, False, True], [True, True, True, True]])
    >>> random_subsets(masks, np.array([2, 1]), np.random.default_rng(0)).astype(int).tolist()
    [[0, 1, 0, 1], [0, 0, 1, 0]]
    """
    lots = np.where(masks, random_state.random(masks.shape), 2.0)
    last = np.sort(lots, axis=1)[np.arange(len(masks)), sizes - 1]
    subsets: Bits = lots <= np.where(sizes > 0, last, -1.0)[:, None]
    return subsets


def uniform_children(parents: Bits, random_state: np.random.Generator) -> Bits:
    """Return two children of each pair by uniform crossover and bit flips with probability 1 / n_bits.

    Row i of the first half is paired with row i of the second half. A child without ones becomes a random string.

    Parameters
    ----------
    parents : ndarray of bool, shape (2 n_pairs, n_bits)

    Examples
    --------
    >>> pair = np.array([[True] * 8, [False] * 8])
    >>> uniform_children(pair, np.random.default_rng(0)).astype(int).tolist()
    [[1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 1, 0]]
    """
    first, second = np.split(parents, 2)
    exchanged = (first ^ second) & (random_state.random(first.shape, np.float32) < 0.5)
    children = np.concatenate((first ^ exchanged, second ^ exchanged))
    children ^= random_state.random(children.shape, np.float32) < 1 / children.shape[1]
    empty = ~children.any(axis=1)
    children[empty] = random_state.random(children[empty].shape, np.float32) < 0.5
    return children

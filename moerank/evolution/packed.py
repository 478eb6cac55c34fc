"""Searches whose long bit strings are carried with eight bits to a byte.

A generation of 200 strings of 370,000 bits takes 74 MB as bool and is copied several times on its way through pymoo;
packed it stays in the cache. The same random numbers are drawn as for bool strings and used for the same bits, and the
digests are those of the bool rows: a search finds the same strings, and its journal is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.problem import Problem
from pymoo.core.sampling import Sampling

from moerank.evolution.binary import SparseBitFlip, UniformCrossover

__all__ = ["PackedBitFlip", "PackedCrossover", "PackedProblem", "PackedSampling", "pack_rows", "unpack_rows"]

Packed = NDArray[np.uint8]
Bits = NDArray[np.bool_]


def pack_rows(X: Bits) -> Packed:
    """Return bool rows (n, n_bits) as bytes, shape (n, ⌈n_bits / 8⌉); the first bit of a byte is its highest."""
    return np.packbits(X, axis=1)


def unpack_rows(rows: Sequence[Packed] | Packed, n_bits: int) -> Bits:
    """Return packed rows as bool, shape (n, n_bits).

    Examples
    --------
    >>> unpack_rows(pack_rows(np.array([[True, False, True]])), 3).tolist()
    [[True, False, True]]
    """
    X = np.empty((len(rows), n_bits), np.bool_)
    for bits, row in zip(X, rows, strict=True):
        bits[:] = np.unpackbits(row, count=n_bits).view(np.bool_)
    return X


class PackedProblem(Problem):  # type: ignore[misc]
    """A problem on bool strings, asked about packed ones.

    Parameters
    ----------
    problem : pymoo Problem
        With ``evaluate_rows(rows, digests)`` for packed rows, ``restore_cache`` and ``measure_again``; see `search`.
    """

    def __init__(self, problem: Any) -> None:
        super().__init__(n_var=-(-problem.n_var // 8), n_obj=problem.n_obj, vtype=np.uint8)
        self.problem = problem
        self.evaluate_rows = problem.evaluate_rows
        self.restore_cache = problem.restore_cache

    def measure_again(self, X: Packed) -> NDArray[np.float64]:
        """Return the objectives of packed rows, without looking them up."""
        values: NDArray[np.float64] = self.problem.measure_again(unpack_rows(X, self.problem.n_var))
        return values

    def _evaluate(self, X: Packed, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        out["F"] = self.problem.evaluate(unpack_rows(X, self.problem.n_var))

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedProblem:
        """Return itself, as the problem does."""
        return self


class PackedSampling(Sampling):
    """What a sampling of bool strings draws, packed.

    Parameters
    ----------
    sampling : Sampling
    """

    def __init__(self, sampling: Sampling) -> None:
        super().__init__()
        self.sampling = sampling

    def _do(self, problem: PackedProblem, n_samples: int, *args: Any, **kwargs: Any) -> Packed:
        return pack_rows(self.sampling._do(problem.problem, n_samples, *args, **kwargs))


class PackedCrossover(UniformCrossover):
    """`UniformCrossover` of packed strings."""

    def _row(self, individual: Any) -> Packed:
        row: Packed = individual.X
        return row

    def _exchange(self, a: Packed, b: Packed, random_state: np.random.Generator) -> tuple[Packed, Packed]:
        exchanged = (a ^ b) & np.frombuffer(random_state.bytes(len(a)), np.uint8)
        return a ^ exchanged, b ^ exchanged


class PackedBitFlip(SparseBitFlip):
    """`SparseBitFlip` of packed strings."""

    def do(self, problem: PackedProblem, *args: Any, **kwargs: Any) -> Any:
        """Mutate as `SparseBitFlip` does, with as many bits as the bool strings have."""
        return super().do(problem.problem, *args, **kwargs)

    def _row(self, individual: Any) -> Packed:
        row: Packed = individual.X
        return row

    def _flip(self, row: Packed, positions: NDArray[np.int64]) -> None:
        np.bitwise_xor.at(row, positions >> 3, (128 >> (positions & 7)).astype(np.uint8))

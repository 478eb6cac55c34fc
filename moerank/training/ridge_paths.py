"""Nested feature sets of a ridge regression: forward by the greatest fall of its loss, backward by the least rise.

Both are one table that is swept by one feature after the other. With S the features swept so far,

    sweep of [ A    b ]   has the blocks   −A_SS⁻¹ on S,   A_ff − A_fS A_SS⁻¹ A_Sf beside it,
             [ bᵀ   0 ]

and in the column of b the weights w = A_SS⁻¹ b_S on S and b_f − A_fS w beside it. Adding f lowers the loss by the
square of its entry there, divided by its entry on the diagonal; dropping j raises it by w_j² / (A_SS⁻¹)_jj.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["backward_path", "forward_path"]

Matrix = NDArray[np.float64]
Order = NDArray[np.int64]


def forward_path(A: Matrix, b: Matrix, n_steps: int | None = None) -> Order:
    """Return the features in the order in which they enter: each lowers min_w wᵀA w − 2 bᵀw the most.

    Parameters
    ----------
    A : ndarray, shape (n_features, n_features), positive definite
    b : ndarray, shape (n_features,)
    n_steps : int, optional
        Features that enter; all by default.

    Returns
    -------
    ndarray of int64, shape (n_steps,)
        Ties go to the first feature. O(n_steps · n_features²) time.

    Examples
    --------
    >>> forward_path(np.diag([1.0, 1.0, 4.0]), np.array([1.0, 3.0, 4.0])).tolist()
    [1, 2, 0]
    """
    return _forward(_table(A, b), len(b) if n_steps is None else n_steps)


def backward_path(A: Matrix, b: Matrix) -> Order:
    """Return the features in the order in which they would enter if the path were read from its end.

    From all features, the one goes each time without which min_w wᵀA w − 2 bᵀw rises the least; it comes before those
    that went earlier. So the first k of the result are the last k that are left.

    Parameters
    ----------
    A : ndarray, shape (n_features, n_features), positive definite
    b : ndarray, shape (n_features,)

    Returns
    -------
    ndarray of int64, shape (n_features,)
        Ties go to the first feature. O(n_features³) time.

    Examples
    --------
    >>> backward_path(np.diag([1.0, 1.0, 4.0]), np.array([1.0, 3.0, 4.0])).tolist()
    [1, 2, 0]
    """
    table = _table(A, b)
    _forward(table, len(b))
    left = np.ones(len(b), np.bool_)
    order = np.empty(len(b), np.int64)
    for place in range(len(b) - 1, -1, -1):
        rise = table[:-1, -1] ** 2 / np.where(left, -np.diag(table)[:-1], 1.0)
        order[place] = np.where(left, rise, np.inf).argmin()
        left[order[place]] = False
        _sweep(table, int(order[place]), -1.0)
    return order


def _table(A: Matrix, b: Matrix) -> Matrix:
    table = np.zeros((len(b) + 1, len(b) + 1))
    table[:-1, :-1], table[:-1, -1], table[-1, :-1] = A, b, b
    return table


def _forward(table: Matrix, n_steps: int) -> Order:
    left = np.ones(len(table) - 1, np.bool_)
    order = np.empty(n_steps, np.int64)
    for step in range(n_steps):
        fall = table[:-1, -1] ** 2 / np.where(left, np.diag(table)[:-1], 1.0)
        order[step] = np.where(left, fall, -1.0).argmax()
        left[order[step]] = False
        _sweep(table, int(order[step]), 1.0)
    return order


def _sweep(table: Matrix, j: int, sign: float) -> None:
    """Sweep by the feature j in place, with the sign −1 back again; elementwise: the bits are always the same."""
    pivot, column = table[j, j], table[:, j].copy()
    table -= np.outer(column / pivot, column)
    table[:, j] = table[j, :] = sign * column / pivot
    table[j, j] = -1.0 / pivot

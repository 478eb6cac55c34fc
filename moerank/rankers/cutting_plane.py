"""The 1-slack cutting plane method for ½ ‖w‖² + C ξ (Joachims, 2006; Joachims, Finley and Yu, 2009)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from moerank.kernels.blas import one_blas_thread

__all__ = ["CuttingPlaneSolution", "cutting_plane", "largest_on_simplex"]

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
MostViolated: TypeAlias = Callable[[Vector], tuple[Vector, float]]

# A constraint that the dual solution has not used for this many rounds leaves the working set.
PATIENCE = 50
# What the quadratic programme adds to its Hessian, as a share of the largest entry: far below its rounding.
RIDGE = 1e-14
# Largest relative violation of the optimality conditions of the quadratic programme.
EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class CuttingPlaneSolution:
    """Where the cutting plane method ended.

    Attributes
    ----------
    w : ndarray, shape (n_features,)
    objective : float
        ½ ‖w‖² + C ξ with the slack that w really needs.
    gap : float
        Bound on how far the objective is above its minimum.
    n_iter : int
        Constraints asked for.
    """

    w: Vector
    objective: float
    gap: float
    n_iter: int


def cutting_plane(
    most_violated: MostViolated, n_features: int, C: float, eps: float, max_iter: int = 10_000
) -> CuttingPlaneSolution:
    """Minimise ½ ‖w‖² + C ξ over w and ξ ≥ 0, subject to ξ ≥ b − aᵀw for very many constraints (a, b).

    Parameters
    ----------
    most_violated : callable
        Returns at w the constraint with the largest b − aᵀw: the vector a (n_features,) and the number b.
    n_features : int
    C : float
        Weight of the slack, > 0.
    eps : float
        Ends when no constraint is violated by more than this, > 0: the objective is then at most C · eps above its
        minimum.
    max_iter : int, default 10000
        Largest number of constraints to ask for.

    Returns
    -------
    CuttingPlaneSolution

    Notes
    -----
    Every round finds the constraint that the present w violates most, adds it to a working set, and solves the
    dual over the working set, w = Σ αₖ aₖ with α ≥ 0 and Σ αₖ ≤ C. The dual is a bound from below, whatever α, so
    the gap holds with the rounding of the quadratic programme in it. The number of rounds, O(1 / (C eps)), does not
    depend on the number of constraints.

    References
    ----------
    T. Joachims: Training linear SVMs in linear time. KDD 2006. T. Joachims, T. Finley, C.-N. J. Yu: Cutting-plane
    training of structural SVMs. Machine Learning 77, 2009.

    Examples
    --------
    >>> def hinge(w):  # max(0, 1 − w₁)
    ...     return (np.array([1.0]), 1.0) if w[0] < 1 else (np.array([0.0]), 0.0)
    >>> cutting_plane(hinge, 1, C=0.25, eps=1e-6).w.tolist()
    [0.25]
    """
    # Row 0 is the constraint ξ ≥ 0; with it the multipliers sum to C exactly.
    A, b = np.zeros((1, n_features)), np.zeros(1)
    H = np.zeros((1, 1))
    alpha = np.array([C])
    idle = np.zeros(1, np.int64)
    n_iter = 0
    with one_blas_thread():
        while True:
            w = alpha @ A
            bound = float(b @ alpha - 0.5 * w @ w)
            a_new, b_new = most_violated(w)
            slack = max(0.0, float(b_new - a_new @ w))
            objective = float(0.5 * w @ w) + C * slack
            gap = objective - bound
            n_iter += 1
            if gap <= C * eps or n_iter == max_iter:
                break
            keep = idle < PATIENCE
            A, b = np.vstack([A[keep], a_new]), np.append(b[keep], b_new)
            H = np.pad(H[np.ix_(keep, keep)], (0, 1))
            H[-1] = H[:, -1] = A @ a_new
            alpha = largest_on_simplex(H, b, np.append(alpha[keep], 0.0))
            idle = np.where(alpha > 0, 0, np.append(idle[keep], -1) + 1)
            idle[0] = 0
    if gap > C * eps:
        message = f"the gap is still {gap:.3g} after {n_iter} constraints; a larger eps or a smaller C is easier"
        warnings.warn(message, ConvergenceWarning, stacklevel=6)
    return CuttingPlaneSolution(w, objective, gap, n_iter)


def largest_on_simplex(H: Matrix, b: Vector, start: Vector) -> Vector:
    """Maximise bᵀα − ½ αᵀHα over α ≥ 0 with Σ α as at the start, by an active set method.

    Parameters
    ----------
    H : ndarray, shape (k, k), positive semidefinite
    b : ndarray, shape (k,)
    start : ndarray, shape (k,)
        Not negative, and not all 0.

    Returns
    -------
    ndarray, shape (k,)
        Zeros are exact.

    Notes
    -----
    The entry with the largest slope joins the support; then Newton steps on the support, each cut where an entry
    becomes 0, which leaves. O(s³) a step for s entries in the support.
    """
    alpha = start.copy()
    support = np.flatnonzero(alpha)
    ridge = RIDGE * float(H.diagonal().max()) or 1.0
    tolerance = EXACT * float(np.abs(b).max() + np.abs(H).max() * alpha.sum())
    while True:
        slope = b - H[:, support] @ alpha[support]
        joins = int(np.argmax(slope))
        if slope[joins] - slope[support].min() <= tolerance:
            return alpha
        if alpha[joins] == 0:
            support = np.append(support, joins)
        before, alpha = alpha, _climb(H, b, alpha, support, ridge)
        if np.array_equal(alpha, before):  # rounding allows no further step
            return alpha
        support = np.flatnonzero(alpha)


def _climb(H: Matrix, b: Vector, alpha: Vector, support: NDArray[np.int64], ridge: float) -> Vector:
    """Maximise over the entries of the support, as many of which as necessary become 0 and leave it."""
    alpha = alpha.copy()
    while len(support) > 1:
        rest, last = support[:-1], support[-1]
        slope = b[support] - H[np.ix_(support, support)] @ alpha[support]
        # The last entry takes what the others give: their sum stays.
        M = H[np.ix_(rest, rest)] - H[rest, last][:, None] - H[rest, last] + H[last, last]
        M[np.diag_indices_from(M)] += ridge
        step = np.linalg.solve(M, slope[:-1] - slope[-1])
        step = np.append(step, -step.sum())
        falls = step < 0
        ratio = np.where(falls, alpha[support] / np.where(falls, -step, 1.0), np.inf)
        first = int(np.argmin(ratio))
        if ratio[first] >= 1.0:
            alpha[support] += step
            break
        alpha[support] = np.maximum(alpha[support] + ratio[first] * step, 0.0)
        alpha[support[first]] = 0.0
        support = support[alpha[support] > 0]
    return alpha

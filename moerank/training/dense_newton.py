"""Newton's method with step halving, for smooth convex functions of few variables whose Hessian is a dense matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["DenseExpansion", "NewtonEnd", "QuadraticModel", "dense_newton", "solve_positive_definite"]

Matrix: TypeAlias = NDArray[np.float64]

MAX_HALVINGS = 29
MAX_STEPS = 500


class DenseExpansion(Protocol):
    """A function at one point w (n,): its value, gradient (n,) and Hessian (n, n), the last positive definite."""

    @property
    def value(self) -> float:
        """The value at the point."""

    @property
    def gradient(self) -> Matrix:
        """The gradient, shape (n,)."""

    @property
    def hessian(self) -> Matrix:
        """The (generalised) Hessian, shape (n, n)."""


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """½ wᵀBw − rhsᵀw, a function's second-order model around a point `w`.

    Shapes: B (n_features, n_features) positive definite, rhs and w (n_features,).
    """

    B: Matrix
    rhs: Matrix
    w: Matrix

    @classmethod
    def around(cls, w: Matrix, at: DenseExpansion) -> QuadraticModel:
        """Return the model of the function that is `at` at w."""
        return cls(at.hessian, at.hessian @ w - at.gradient, w)


@dataclass(frozen=True, eq=False)
class NewtonEnd:
    """Where Newton's method ended.

    Attributes
    ----------
    w : ndarray, shape (n,)
    at : DenseExpansion
        The function there.
    step : ndarray, shape (n,)
        The next Newton step, not taken.
    converged : bool
        Whether the decrement is small enough; else rounding allows no decrease along the next step, or there were
        500 steps.
    """

    w: Matrix
    at: DenseExpansion
    step: Matrix
    converged: bool


def dense_newton(expand: Callable[[Matrix], DenseExpansion], start: Matrix, tolerance: float) -> NewtonEnd:
    """Minimise a smooth convex function by Newton steps, each halved until the function falls.

    Parameters
    ----------
    expand : callable
        Returns the function's `DenseExpansion` at a point.
    start : ndarray, shape (n,)
    tolerance : float
        Ends when the squared Newton decrement gᵀH⁻¹g, twice the decrease that the quadratic model promises, is at most
        this share of the value, which has to be positive; or when no step lowers the value any more.

    Notes
    -----
    O(n³) per step, besides the expansions: one or a few values, and one gradient and Hessian.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> def expand(w):  # eʷ + e⁻ʷ
    ...     value, hessian = 2.0 * np.cosh(w[0]), np.diag(2.0 * np.cosh(w))
    ...     return SimpleNamespace(value=value, gradient=2.0 * np.sinh(w), hessian=hessian)
    >>> dense_newton(expand, np.array([3.0]), tolerance=1e-12).w.round(6).tolist()
    [0.0]
    """
    w, at = start, expand(start)
    for _ in range(MAX_STEPS):
        step: Matrix = -solve_positive_definite(at.hessian, at.gradient)
        if -at.gradient @ step <= tolerance * at.value:
            return NewtonEnd(w, at, step, True)
        for length in 0.5 ** np.arange(MAX_HALVINGS + 1):
            candidate = expand(w + length * step)
            if candidate.value < at.value:
                break
        else:
            return NewtonEnd(w, at, step, False)
        w, at = w + length * step, candidate
    return NewtonEnd(w, at, step, False)


def solve_positive_definite(A: Matrix, b: Matrix) -> Matrix:
    """Return x (n,) with A x = b for a positive definite matrix A (n, n), however different the scales of its rows.

    Where rounding makes A singular, as features of very different scales do, it is solved with its diagonal scaled to
    1, in the least squares sense: of several solutions the one of least norm in that scale.

    Examples
    --------
    >>> solve_positive_definite(np.array([[1e18, 1e18], [1e18, 1e18]]), np.array([1e9, 1e9])).round(20).tolist()
    [5e-10, 5e-10]
    """
    try:
        return np.asarray(np.linalg.solve(A, b), np.float64)
    except np.linalg.LinAlgError:
        scale = np.sqrt(np.diagonal(A))
        scale = np.where(scale > 0, scale, 1.0)
        solution = np.linalg.lstsq(A / np.outer(scale, scale), b / scale, rcond=None)[0]
        return np.asarray(solution / scale, np.float64)

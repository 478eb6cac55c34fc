"""Newton's methods for smooth convex functions, with a dense Hessian or in a trust region."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from moerank.arrays import Matrix, Vector
from moerank.kernels.algebra import LEAST_PIVOT, factorise, product, solve
from moerank.kernels.threads import one_blas_thread

MAX_HALVINGS, EXACT_STEPS = 29, 500


class Expanded(NamedTuple):
    """Value, gradient (n,) and positive definite (generalised) Hessian (n, n) of a function at a point."""

    value: float
    gradient: Matrix
    hessian: Matrix


@dataclass(frozen=True, eq=False)
class NewtonEnd:
    """The end of Newton's method: the point w (n,), the function there, and the next step (n,), not taken.

    It has `converged` if the decrement is small enough; else rounding allows no decrease along the next step, or there
    were 500 steps.
    """

    w: Matrix
    at: Expanded
    step: Matrix
    converged: bool


def dense_newton(expand: Callable[[Matrix], Expanded], start: Matrix, tolerance: float) -> NewtonEnd:
    """Minimise a smooth convex function by Newton steps, each halved until the function falls.

    `expand` returns the function at a point (n,). The method ends when the squared Newton decrement gᵀH⁻¹g, twice the
    decrease that the quadratic model promises, is at most the share `tolerance` of the value, which is positive; or
    when no step lowers the value any more. O(n³) per step, besides the expansions.

    >>> def expand(w):  # eʷ + e⁻ʷ
    ...     return Expanded(2.0 * np.cosh(w[0]), 2.0 * np.sinh(w), np.diag(2.0 * np.cosh(w)))
    >>> dense_newton(expand, np.array([3.0]), tolerance=1e-12).w.round(6).tolist()
    [0.0]
    """
    w, at = start, expand(start)
    for _ in range(EXACT_STEPS):
        step: Matrix = -solve_positive_definite(at.hessian, at.gradient)
        if -product(at.gradient, step) <= tolerance * at.value:
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

    >>> solve_positive_definite(np.array([[1e18, 1e18], [1e18, 1e18]]), np.array([1e9, 1e9])).round(20).tolist()
    [5e-10, 5e-10]
    """
    every = np.ones((1, len(b)), np.bool_)
    factor = factorise(np.ascontiguousarray(A), every)[0]
    square = np.diagonal(A)
    least = max(len(b) * np.finfo(float).eps, 2.0 * LEAST_PIVOT)  # of a pivot that is not lost in rounding
    if (np.diagonal(factor) ** 2 > least * square).all():
        x = np.empty(len(b))
        solve(factor, every[0], np.array(b), x)
        return x
    scale = np.sqrt(np.where(square > 0, square, 1.0))
    with one_blas_thread():
        solution = np.linalg.lstsq(A / np.outer(scale, scale), b / scale, rcond=None)[0]
    return np.asarray(solution / scale, np.float64)


Inner: TypeAlias = Callable[[Vector, Vector], float]

# Shares of the decrease that the quadratic model promises, from which a step is taken, and from which it is good.
SUFFICIENT, FAIR, GOOD = 1e-4, 0.25, 0.75
# Multiples of the radius, or of the length of the step, that become the next radius.
SHRINK, HALVE, GROW = 0.25, 0.5, 4.0
# Conjugate gradients end when the residual is this share of the gradient.
GRADIENT_SHARE = 0.1
# A change of the objective below this share of it is rounding.
VALUE_ROUNDING = 1e-14
MAX_TRIED, MAX_PRODUCTS = 1000, 1000


class Expansion(Protocol):
    """A function at a point; gradient and products by the Hessian are those of the minimisation's inner product."""

    @property
    def value(self) -> float:
        """The value at the point."""

    @property
    def gradient(self) -> Vector:
        """The gradient, of the shape of the point, computed where it is asked for."""

    def product(self, s: Vector) -> Vector:
        """Return the (generalised) Hessian times s."""


class Minimum(NamedTuple):
    """The end of a minimisation: the point x, and the steps tried.

    It has `converged` if the gradient is small enough, or as small as rounding allows.
    """

    x: Vector
    n_iter: int
    converged: bool


def trust_region_newton(expand: Callable[[Vector], Expansion], start: Vector, *, tol: float, inner: Inner) -> Minimum:
    """Minimise a convex function whose gradient is Lipschitz continuous.

    Every step minimises the quadratic model ∇f(x)ᵀs + ½ sᵀ∇²f(x)s over ‖s‖ ≤ Δ by conjugate gradients, which end
    at ‖∇f + ∇²f s‖ ≤ 0.1 ‖∇f‖ or at the edge; the radius Δ depends on how well the model predicts the function.

    `expand` returns the function at a point. The minimisation ends when ‖∇f‖ is at most `tol` times its value at the
    start, or when rounding allows no decrease. Gradient, Hessian and norms are those of the inner product `inner`; a
    function of coefficients in a kernel expansion has one of its own.

    C.-J. Lin, J. J. Moré: Newton's method for large bound-constrained optimization problems. SIAM Journal on
    Optimization 9, 1999. C.-J. Lin, R. C. Weng, S. S. Keerthi: Trust region Newton method for large-scale logistic
    regression. Journal of Machine Learning Research 9, 2008: the constants and the update of the radius.

    >>> from types import SimpleNamespace
    >>> A, b = np.diag([1.0, 10.0]), np.array([3.0, 20.0])
    >>> def expand(x):  # ½ xᵀAx − bᵀx
    ...     return SimpleNamespace(value=x @ A @ x / 2 - b @ x, gradient=A @ x - b, product=lambda s: A @ s)
    >>> trust_region_newton(expand, np.zeros(2), tol=1e-9, inner=np.dot).x.round(6).tolist()
    [3.0, 2.0]
    """
    x, at = start, expand(start)
    norm = radius = _norm(at.gradient, inner)
    target = tol * norm
    for n_iter in range(MAX_TRIED):
        if norm <= target:
            return Minimum(x, n_iter, True)
        step, residual = _conjugate_gradients(at, radius, inner)
        slope = inner(at.gradient, step)
        promised = -0.5 * (slope - inner(step, residual))
        candidate = expand(x + step)
        achieved = at.value - candidate.value
        noise = VALUE_ROUNDING * abs(at.value)
        if promised <= noise and achieved <= noise:
            return Minimum(x, n_iter + 1, True)
        length = _norm(step, inner)
        if n_iter == 0:
            radius = min(radius, length)
        # The multiple of the step at which a parabola through both values and the slope is least.
        bend = -achieved - slope
        least = GROW if bend <= 0 else max(SHRINK, -0.5 * slope / bend)
        if achieved < SUFFICIENT * promised:
            radius = min(least * length, HALVE * radius)
        elif achieved < FAIR * promised:
            radius = max(SHRINK * radius, min(least * length, HALVE * radius))
        elif achieved < GOOD * promised:
            radius = max(SHRINK * radius, min(least * length, GROW * radius))
        else:
            radius = max(radius, min(least * length, GROW * radius))
        if achieved > SUFFICIENT * promised:
            x, at = x + step, candidate
            norm = _norm(at.gradient, inner)
    return Minimum(x, MAX_TRIED, norm <= target)


def _conjugate_gradients(at: Expansion, radius: float, inner: Inner) -> tuple[Vector, Vector]:
    """Return a step with ‖s‖ ≤ radius, and the residual −∇f − ∇²f s."""
    step = np.zeros_like(at.gradient)
    residual = -at.gradient
    direction = residual
    rho = inner(residual, residual)
    enough = GRADIENT_SHARE**2 * rho
    for _ in range(MAX_PRODUCTS):
        if rho <= enough:
            return step, residual
        image = at.product(direction)
        curvature = inner(direction, image)
        if curvature == 0.0:  # the direction is too short to square
            return step, residual
        advance = rho / curvature
        longer = step + advance * direction
        if inner(longer, longer) > radius**2:
            advance = _to_the_edge(step, direction, radius, inner)
            return step + advance * direction, residual - advance * image
        step, residual = longer, residual - advance * image
        rho, before = inner(residual, residual), rho
        direction = residual + (rho / before) * direction
    return step, residual


def _to_the_edge(step: Vector, direction: Vector, radius: float, inner: Inner) -> float:
    """Return t ≥ 0 with ‖step + t · direction‖ = radius; the root that does not cancel."""
    a, b, c = inner(direction, direction), inner(step, direction), radius**2 - inner(step, step)
    root = np.sqrt(b * b + a * max(c, 0.0))
    return float(max(c, 0.0) / (b + root) if b >= 0 else (root - b) / a)


def _norm(a: Vector, inner: Inner) -> float:
    return float(np.sqrt(max(inner(a, a), 0.0)))

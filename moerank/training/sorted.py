"""Squared-hinge problems on sorted documents, solved by trust-region Newton steps with features or with a kernel."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg.blas import dsymv

from moerank.arrays import Mask, Matrix, Vector
from moerank.data import RankingData, remembered
from moerank.kernels.algebra import product
from moerank.kernels.counted_sums import LabelRuns, MarginPairs
from moerank.kernels.threads import one_blas_thread

Inner: TypeAlias = Callable[[Vector, Vector], float]

# Shares of the predicted decrease: a step above the first is taken, and the others decide on the next radius.
SUFFICIENT, FAIR, GOOD = 1e-4, 0.25, 0.75
# Multiples of the radius, or of the length of the step, for the next radius.
SHRINK, HALVE, GROW = 0.25, 0.5, 4.0
# Conjugate gradients end when the residual is this share of the gradient.
GRADIENT_SHARE = 0.1
# A change of the objective below this share of it is rounding.
VALUE_ROUNDING = 1e-14
MAX_TRIED, MAX_PRODUCTS = 1000, 1000


class Minimum(NamedTuple):
    """The result of a minimisation: the point x, and the number of steps.

    `converged` is true if the gradient is small enough, or as small as rounding allows.
    """

    x: Vector
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class PairedDocuments:
    """The documents that take part in preference pairs; only they affect a ranker that is trained on pairs.

    `rows` (n_documents,) marks documents whose query has different labels; `pairs` counts these documents alone.
    """

    rows: Mask
    pairs: LabelRuns

    @classmethod
    @remembered
    def of(cls, data: RankingData) -> "PairedDocuments":
        """Return the documents of a data set, remembered with it."""
        paired = data.label_runs.n_labels > 1
        sizes = np.diff(data.offsets)
        rows = np.repeat(paired, sizes)
        return cls(rows, LabelRuns.of(data.y[rows], np.append(0, np.cumsum(sizes[paired]))))


def solve_with_features(
    X: Matrix, pairs: LabelRuns, C: float, tol: float, metric: Vector | None = None
) -> Minimum:
    """Minimise ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))² over w (n_features,).

    The pairs are those of the documents in the rows of X. It ends when the gradient is at most `tol` times that at
    w = 0. `metric` (n_features,) has positive weights d of the inner product Σ dₖ aₖ bₖ for steps and gradient, by
    default 1. If the Hessian is nearly diagonal, its diagonal saves products with the Hessian. O(n_documents ·
    n_features + n_documents log n_documents) per product with the Hessian and per step.
    """
    metric, scale = np.ones(X.shape[1]) if metric is None else metric, C / pairs.n_pairs

    def inner(a: Vector, b: Vector) -> float:
        return float(product(metric * a, b))

    def add(s: Vector, coefficients: Vector) -> Vector:
        return (s + scale * product(X.T, coefficients)) / metric

    def expand(w: Vector) -> HingeExpansion:
        return HingeExpansion(
            pairs, scale, w, product(X, w), float(product(w, w)), partial(product, X), add
        )

    return trust_region_newton(expand, np.zeros(X.shape[1]), tol=tol, inner=inner)


def hessian_diagonal(X: Matrix, pairs: LabelRuns, C: float) -> Vector:
    """Estimate the diagonal of the Hessian at w = 0, 1 + 2 (C / p) Σ (xᵢ − xⱼ)², for features X (n_documents, n).

    The estimate treats the documents of a pair as independent. O(n_documents · n).
    """
    degree = (pairs.n_better + pairs.n_worse)[pairs.run].astype(float)
    square = np.einsum("i,ij,ij->j", degree, X, X) - product(X.T, degree) ** 2 / degree.sum()
    return 1.0 + 2.0 * C / pairs.n_pairs * square.clip(0.0)


def solve_with_kernel(K: Matrix, pairs: LabelRuns, C: float, tol: float) -> Minimum:
    """Minimise ½ bᵀKb + (C / p) Σ max(0, 1 − (Kb)ᵢ + (Kb)ⱼ)² over b (n_documents,).

    A point is the array [b; Kb] (2, n_documents) and the inner product that of the functions Σ bᵢ k(xᵢ, ·), aᵀKb.
    So the steps are those of `solve_with_features` on any exact feature map of the kernel. The problem is conditioned
    like K, not like K² as with plain coefficients. A product with the Hessian or a gradient takes one product with K, a
    value takes none.

    Only the lower triangle of K (n_documents, n_documents), C-contiguous, is read. It ends when the gradient is at most
    `tol` times that at b = 0. O(n_documents²) per product with the Hessian and per step.
    """
    scale = C / pairs.n_pairs

    def inner(a: Vector, b: Vector) -> float:
        return float(a[0] @ b[1])

    def add(s: Vector, coefficients: Vector) -> Vector:
        coefficients = scale * coefficients
        # Reading K takes most of the time, and a symmetric product reads half of it.
        return s + np.stack([coefficients, dsymv(1.0, K.T, coefficients)])

    def expand(point: Vector) -> HingeExpansion:
        return HingeExpansion(
            pairs, scale, point, point[1], inner(point, point), itemgetter(1), add
        )

    with one_blas_thread():
        return trust_region_newton(expand, np.zeros((2, len(K))), tol=tol, inner=inner)


@dataclass(eq=False)
class HingeExpansion:
    """An objective ½ ‖x‖² + scale · loss of the scores z, at a point x of squared norm `square`.

    `scores` returns the scores of a step, and `add` adds the pull of coefficients of the documents to a step. The
    gradient and products with the Hessian refer to the inner product of the minimisation.
    """

    pairs: LabelRuns
    scale: float
    point: Vector
    z: Vector
    square: float
    scores: Callable[[Vector], Vector]
    add: Callable[[Vector, Vector], Vector]

    def __post_init__(self) -> None:
        self._near = MarginPairs(self.pairs, self.z)
        self.value = float(0.5 * self.square + self.scale * self._near.loss)

    @cached_property
    def gradient(self) -> Vector:
        """The gradient, in the shape of the point, computed when it is first needed."""
        return self.add(self.point, self._near.gradient)

    def product(self, s: Vector) -> Vector:
        """Return the (generalised) Hessian times s."""
        return self.add(s, self._near.product(self.scores(s)))


def trust_region_newton(
    expand: Callable[[Vector], HingeExpansion], start: Vector, tol: float, inner: Inner
) -> Minimum:
    """Minimise a convex function whose gradient is Lipschitz continuous.

    Every step minimises the quadratic model ∇f(x)ᵀs + ½ sᵀ∇²f(x)s over ‖s‖ ≤ Δ by conjugate gradients, which end
    at ‖∇f + ∇²f s‖ ≤ 0.1 ‖∇f‖ or at the edge; the radius Δ depends on how well the model predicts the function.

    `expand` returns the function at a point. The minimisation ends when ‖∇f‖ is at most `tol` times its value at the
    start, or when rounding allows no decrease. Gradient, Hessian and norms refer to the inner product `inner`, which
    differs for coefficients of a kernel expansion.

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
    x, expansion = start, expand(start)
    norm = radius = _norm(expansion.gradient, inner)
    target = tol * norm
    for n_iter in range(MAX_TRIED):
        if norm <= target:
            return Minimum(x, n_iter, True)
        step, residual = _conjugate_gradients(expansion, radius, inner)
        slope = inner(expansion.gradient, step)
        predicted_decrease = -0.5 * (slope - inner(step, residual))
        candidate = expand(x + step)
        decrease = expansion.value - candidate.value
        noise = VALUE_ROUNDING * abs(expansion.value)
        if predicted_decrease <= noise and decrease <= noise:
            return Minimum(x, n_iter + 1, True)
        length = _norm(step, inner)
        if n_iter == 0:
            radius = min(radius, length)
        # The multiple of the step at which a parabola through both values and the slope is least.
        bend = -decrease - slope
        multiple = GROW if bend <= 0 else max(SHRINK, -0.5 * slope / bend)
        if decrease < SUFFICIENT * predicted_decrease:
            radius = min(multiple * length, HALVE * radius)
        elif decrease < FAIR * predicted_decrease:
            radius = max(SHRINK * radius, min(multiple * length, HALVE * radius))
        elif decrease < GOOD * predicted_decrease:
            radius = max(SHRINK * radius, min(multiple * length, GROW * radius))
        else:
            radius = max(radius, min(multiple * length, GROW * radius))
        if decrease > SUFFICIENT * predicted_decrease:
            x, expansion = x + step, candidate
            norm = _norm(expansion.gradient, inner)
    return Minimum(x, MAX_TRIED, norm <= target)


def _conjugate_gradients(
    expansion: HingeExpansion, radius: float, inner: Inner
) -> tuple[Vector, Vector]:
    """Return a step with ‖s‖ ≤ radius, and the residual −∇f − ∇²f s."""
    step = np.zeros_like(expansion.gradient)
    residual = -expansion.gradient
    direction = residual
    rho = inner(residual, residual)
    enough = GRADIENT_SHARE**2 * rho
    for _ in range(MAX_PRODUCTS):
        if rho <= enough:
            return step, residual
        image = expansion.product(direction)
        curvature = inner(direction, image)
        if curvature == 0.0:  # the direction is too short to square
            return step, residual
        advance = rho / curvature
        candidate = step + advance * direction
        if inner(candidate, candidate) > radius**2:
            advance = _to_the_edge(step, direction, radius, inner)
            return step + advance * direction, residual - advance * image
        step, residual = candidate, residual - advance * image
        rho, previous_rho = inner(residual, residual), rho
        direction = residual + (rho / previous_rho) * direction
    return step, residual


def _to_the_edge(step: Vector, direction: Vector, radius: float, inner: Inner) -> float:
    """Return t ≥ 0 with ‖step + t · direction‖ = radius, by the formula without cancellation."""
    a, b, c = inner(direction, direction), inner(step, direction), radius**2 - inner(step, step)
    root = np.sqrt(b * b + a * max(c, 0.0))
    return float(max(c, 0.0) / (b + root) if b >= 0 else (root - b) / a)


def _norm(a: Vector, inner: Inner) -> float:
    return float(np.sqrt(max(inner(a, a), 0.0)))

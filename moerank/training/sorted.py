"""Ranking problems on sorted documents in preference pairs, solved with features or with a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.linalg.blas import dsymv

from moerank.arrays import Mask, Matrix, Vector
from moerank.data import RankingData
from moerank.kernels.algebra import product
from moerank.kernels.counted_sums import LabelledPairs, MarginPairs
from moerank.kernels.threads import one_blas_thread
from moerank.training.smooth import Minimum, trust_region_newton


@dataclass(frozen=True, eq=False)
class PairedDocuments:
    """The documents that take part in preference pairs, as only they affect a ranker that is trained on pairs.

    `rows` (n_documents,) says whether a document's query has different labels; `pairs` numbers these documents anew.
    """

    rows: Mask
    pairs: LabelledPairs

    @classmethod
    def of(cls, data: RankingData) -> PairedDocuments:
        """Return the documents of a data set, remembered with it."""

        def make() -> PairedDocuments:
            paired = LabelledPairs(data.y, data.offsets).n_levels > 1
            sizes = np.diff(data.offsets)
            rows = np.repeat(paired, sizes)
            return cls(rows, LabelledPairs(data.y[rows], np.append(0, np.cumsum(sizes[paired]))))

        return data.remember("paired documents", make)


def solve_with_features(X: Matrix, pairs: LabelledPairs, C: float, tol: float, metric: Vector | None = None) -> Minimum:
    """Minimise ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))² over w (n_features,).

    The pairs are those of the documents in the rows of X. It ends when the gradient is at most `tol` times that at
    w = 0. `metric` (n_features,) has positive weights d of the inner product Σ dₖ aₖ bₖ for steps and gradient, the
    plain product by default; the diagonal of a nearly diagonal Hessian saves products with it. O(n_documents ·
    n_features + n_documents log n_documents) per product with the Hessian and per step.
    """
    metric = np.ones(X.shape[1]) if metric is None else metric
    expand = partial(_FeatureExpansion, X, pairs, C / pairs.n_pairs, metric)

    def inner(a: Vector, b: Vector) -> float:
        return float(product(metric * a, b))

    return trust_region_newton(expand, np.zeros(X.shape[1]), tol=tol, inner=inner)


def hessian_diagonal(X: Matrix, pairs: LabelledPairs, C: float) -> Vector:
    """Estimate the diagonal of the Hessian at w = 0, 1 + 2 (C / p) Σ (xᵢ − xⱼ)², for features X (n_documents, n).

    The sum is that of independent documents in each pair. O(n_documents · n).
    """
    degree = (pairs.n_better + pairs.n_worse).astype(np.float64)
    square = np.einsum("i,ij,ij->j", degree, X, X) - product(X.T, degree) ** 2 / degree.sum()
    return 1.0 + 2.0 * C / pairs.n_pairs * square.clip(0.0)


def no_convergence(tol: float, n_iter: int) -> str:
    """Return the message, after the name of a ranker, that its solver stopped at the bound of its steps."""
    return f"reached no convergence to tol={tol} in {n_iter} steps; a larger tol or a smaller C is easier"


def solve_with_kernel(K: Matrix, pairs: LabelledPairs, C: float, tol: float) -> Minimum:
    """Minimise ½ bᵀKb + (C / p) Σ max(0, 1 − (Kb)ᵢ + (Kb)ⱼ)² over b (n_documents,).

    A point is the array [b; Kb] (2, n_documents) and the inner product that of the functions Σ bᵢ k(xᵢ, ·), aᵀKb.
    So the steps are those of `solve_with_features` on any exact feature map of the kernel: the condition of the
    problem is that of K, where plain coefficients would square it, and a product with the Hessian or a gradient needs
    one product with K, a value none.

    Only the lower triangle of K (n_documents, n_documents), C-contiguous, is read. It ends when the gradient is at most
    `tol` times that at b = 0. O(n_documents²) per product with the Hessian and per step.
    """
    expand = partial(_KernelExpansion, K, pairs, C / pairs.n_pairs)
    with one_blas_thread():
        return trust_region_newton(expand, np.zeros((2, len(K))), tol=tol, inner=_kernel_inner)


class _HingeExpansion:
    """An objective ½ ‖w‖² + scale · loss of the scores z."""

    def __init__(self, pairs: LabelledPairs, scale: float, point: Vector, z: Vector, square: float) -> None:
        self._scale, self._point = scale, point
        self._near = MarginPairs(pairs, z)
        self.value = float(0.5 * square + scale * self._near.loss)


class _FeatureExpansion(_HingeExpansion):
    def __init__(self, X: Matrix, pairs: LabelledPairs, scale: float, metric: Vector, w: Vector) -> None:
        super().__init__(pairs, scale, w, product(X, w), float(product(w, w)))
        self._X, self._metric = X, metric

    @cached_property
    def gradient(self) -> Vector:
        return (self._point + self._scale * product(self._X.T, self._near.gradient)) / self._metric

    def product(self, s: Vector) -> Vector:
        return (s + self._scale * product(self._X.T, self._near.product(product(self._X, s)))) / self._metric


class _KernelExpansion(_HingeExpansion):
    def __init__(self, K: Matrix, pairs: LabelledPairs, scale: float, point: Vector) -> None:
        super().__init__(pairs, scale, point, point[1], _kernel_inner(point, point))
        self._K = K

    @cached_property
    def gradient(self) -> Vector:
        return self._point + self._with_image(self._near.gradient)

    def product(self, s: Vector) -> Vector:
        return s + self._with_image(self._near.product(s[1]))

    def _with_image(self, coefficients: Vector) -> Vector:
        """Return scale · [a; Ka]; the time is that of reading K, and a symmetric product reads half of it."""
        coefficients = self._scale * coefficients
        return np.stack([coefficients, dsymv(1.0, self._K.T, coefficients)])


def _kernel_inner(a: Vector, b: Vector) -> float:
    return float(a[0] @ b[1])

"""The documents that take part in preference pairs: no other moves a ranker that is trained on pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from scipy.linalg.blas import dsymv

from moerank.arrays import Mask, Matrix, Vector
from moerank.data import RankingData
from moerank.kernels.blas import one_blas_thread
from moerank.kernels.counted_sums import CountedPairs, MarginPairs
from moerank.training.newton import Expansion, Minimum, trust_region_newton

__all__ = ["PairedDocuments", "hessian_diagonal", "no_convergence", "solve_with_features", "solve_with_kernel"]


@dataclass(frozen=True, eq=False)
class PairedDocuments:
    """The documents that take part in preference pairs.

    Attributes
    ----------
    rows : ndarray of bool, shape (n_documents,)
        Whether a document's query has different labels.
    pairs : CountedPairs
        The pairs of those documents, which are numbered anew.
    """

    rows: Mask
    pairs: CountedPairs

    @classmethod
    def of(cls, data: RankingData) -> PairedDocuments:
        """Return the documents of a data set, remembered with it."""

        def make() -> PairedDocuments:
            everything = CountedPairs(data.y, data.offsets)
            paired = everything.n_levels > 1
            sizes = np.diff(data.offsets)
            rows = np.repeat(paired, sizes)
            return cls(rows, CountedPairs(data.y[rows], np.append(0, np.cumsum(sizes[paired]))))

        return data.remember("paired documents", make)


Minimiser: TypeAlias = Callable[..., Minimum]


def solve_with_features(X: Matrix, pairs: CountedPairs, C: float, tol: float, metric: Vector | None = None) -> Minimum:
    """Minimise ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))² over w (n_features,).

    Parameters
    ----------
    X : ndarray, shape (n_documents, n_features)
    pairs : CountedPairs
        Of the same documents.
    C, tol : float
        Ends when the gradient is at most `tol` times that at w = 0.
    metric : ndarray, shape (n_features,), optional
        Positive weights d of the inner product Σ dₖ aₖ bₖ that the steps and the gradient are measured in; the plain
        product by default. The diagonal of the Hessian makes the products with it few, if it is nearly diagonal.

    Notes
    -----
    O(n_documents · n_features + n_documents log n_documents) per product with the Hessian and per step; the p pairs are
    never listed.
    """
    metric = np.ones(X.shape[1]) if metric is None else metric
    expand = partial(_FeatureExpansion, X, pairs, C / pairs.n_pairs, metric)
    inner = partial(_weighted_inner, metric)
    return _solve(partial(trust_region_newton, inner=inner), expand, np.zeros(X.shape[1]), tol)


def hessian_diagonal(X: Matrix, pairs: CountedPairs, C: float) -> Vector:
    """Estimate the diagonal of the Hessian at w = 0, 1 + 2 (C / p) Σ (xᵢ − xⱼ)², for features X (n_documents, n).

    The sum is taken as if the two documents of a pair were as unlike as any two, which costs O(n_documents · n).
    """
    degree = (pairs.n_better + pairs.n_worse).astype(np.float64)
    square = np.einsum("i,ij,ij->j", degree, X, X) - (degree @ X) ** 2 / degree.sum()
    return 1.0 + 2.0 * C / pairs.n_pairs * square.clip(0.0)


def no_convergence(tol: float, n_iter: int) -> str:
    """Say of a ranker, after its name, that its solver stopped at the bound of its steps, and what helps."""
    return f"reached no convergence to tol={tol} in {n_iter} steps; a larger tol or a smaller C is easier"


def solve_with_kernel(K: Matrix, pairs: CountedPairs, C: float, tol: float) -> Minimum:
    """Minimise ½ bᵀKb + (C / p) Σ max(0, 1 − (Kb)ᵢ + (Kb)ⱼ)² over b (n_documents,).

    A point is the array [b; Kb] (2, n_documents) and the inner product that of the functions Σ bᵢ k(xᵢ, ·), aᵀKb.
    So the steps are those of `solve_with_features` on any exact feature map of the kernel: the condition of the
    problem is that of K, where plain coefficients would square it, and a product with the Hessian or a gradient needs
    one product with K, a value none.

    Parameters
    ----------
    K : ndarray, shape (n_documents, n_documents), C-contiguous
        The kernel matrix; only the lower triangle is read.
    pairs : CountedPairs
        Of the same documents.
    C, tol : float
        Ends when the gradient is at most `tol` times that at b = 0.

    Notes
    -----
    O(n_documents²) per product with the Hessian and per step.
    """
    expand = partial(_KernelExpansion, K, pairs, C / pairs.n_pairs)
    return _solve(partial(trust_region_newton, inner=_kernel_inner), expand, np.zeros((2, len(K))), tol)


class _HingeExpansion:
    """What both forms of the problem share: an objective ½ ‖w‖² + scale · loss of the scores z."""

    def __init__(self, pairs: CountedPairs, scale: float, point: Vector, z: Vector, square: float) -> None:
        self._scale, self._point = scale, point
        self._near: MarginPairs = pairs.within_margin(z)
        self.value = float(0.5 * square + scale * self._near.loss)


class _FeatureExpansion(_HingeExpansion):
    def __init__(self, X: Matrix, pairs: CountedPairs, scale: float, metric: Vector, w: Vector) -> None:
        super().__init__(pairs, scale, w, X @ w, float(w @ w))
        self._X, self._metric = X, metric

    @cached_property
    def gradient(self) -> Vector:
        return (self._point + self._scale * (self._near.gradient @ self._X)) / self._metric

    def product(self, s: Vector) -> Vector:
        return (s + self._scale * (self._near.product(self._X @ s) @ self._X)) / self._metric


class _KernelExpansion(_HingeExpansion):
    def __init__(self, K: Matrix, pairs: CountedPairs, scale: float, point: Vector) -> None:
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


def _weighted_inner(weights: Vector, a: Vector, b: Vector) -> float:
    return float((weights * a) @ b)


def _kernel_inner(a: Vector, b: Vector) -> float:
    return float(a[0] @ b[1])


def _solve(minimise: Minimiser, expand: Callable[[Vector], Expansion], start: Vector, tol: float) -> Minimum:
    with one_blas_thread():
        return minimise(expand, start, tol=tol)

"""RankSVM on an approximate feature map of the Gaussian kernel: Nyström and random Fourier (Chen et al., 2017)."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.utils import check_random_state

from moerank.checks import check_at_least, check_positive
from moerank.data import RankingData
from moerank.kernels.counted_sums import CountedPairs
from moerank.rankers.base import Matrix
from moerank.rankers.kernel_ranker import KernelRanker, gaussian
from moerank.training.hinge_problem import hessian_diagonal, solve_with_features
from moerank.training.paired_documents import PairedDocuments
from moerank.training.trust_region import Minimum, Vector

__all__ = ["RankFourier", "RankNystrom"]

# Landmarks that are nearly combinations of others add directions of smaller eigenvalues than this: they are left out.
SMALLEST_EIGENVALUE = 1e-6


class KernelMapRanker(KernelRanker):
    """Base of `RankNystrom` and `RankFourier`: the linear problem on mapped documents, whatever the map."""

    def __init__(
        self,
        n_components: int = 500,
        C: float = 1000.0,
        gamma: float = 2.0**-6,
        tol: float = 1e-3,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.C = C
        self.gamma = gamma
        self.tol = tol
        self.random_state = random_state

    def default_grid(self, train: RankingData) -> list[dict[str, Any]]:
        """Return the paper's ranges, C = ½ p · 2ᶜ with c = −12 … 6 and gamma = 2⁻¹² … 2², in steps of 2²: 80 entries.

        The paper's steps are 2¹, those of the authors' code 2² in C.
        """
        half = 0.5 * train.label_runs.n_pairs
        return [{"gamma": 2.0**g, "C": half * 2.0**c} for g, c in product(range(-12, 3, 2), range(-12, 7, 2))]

    def _draw_map(self, X: Matrix) -> None:
        """Draw the feature map for training documents X (n_documents, n_varying)."""
        raise TypeError(f"{type(self).__name__} does not implement _draw_map")

    def _check_parameters(self) -> None:
        check_positive(C=self.C, gamma=self.gamma, tol=self.tol)
        check_at_least(1, n_components=self.n_components)

    def _prepare(self, train: RankingData, documents: PairedDocuments) -> Matrix:
        self._draw_map(train.X64)
        return self._image(train.X64[documents.rows])

    def _solve(self, table: Matrix, pairs: CountedPairs) -> tuple[Matrix, Minimum]:
        minimum = solve_with_features(table, pairs, self.C, self.tol, self._metric(table, pairs))
        return minimum.x, minimum

    def _metric(self, table: Matrix, pairs: CountedPairs) -> Vector | None:
        """Return a good inner product for the solution, as `solve_with_features` takes it."""
        return None


class RankNystrom(KernelMapRanker):
    """RankSVM on the Nyström map of the kernel k(x, x') = exp(−gamma ‖x − x'‖²).

    Landmarks x̂₁ … x̂ₖ are drawn from the training documents. With their kernel matrix UΣUᵀ the map is

        φ(x) = Σ^(−½) Uᵀ [k(x, x̂₁) … k(x, x̂ₖ)]ᵀ

    over the eigenvalues above 10⁻⁶, and the ranker minimises, over the p preference pairs (i, j),

        ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(φ(xᵢ) − φ(xⱼ)))²

    The paper's C weighs each pair, and in the authors' code, from which the published values come, with a factor ½:
    it is 2C / p here.

    Parameters
    ----------
    n_components : int, default 500
        Number of landmarks, ≥ 1; all documents if there are no more. The paper has 500, and 2000 for MQ2007.
    C : float, default 1000.0
        Weight of the loss, > 0.
    gamma : float, default 2⁻⁶
        Width of the kernel, > 0, for features scaled to [0, 1].
    tol : float, default 1e-3
        Training ends when the gradient is at most this share of the gradient at w = 0, > 0; both in the norm that the
        diagonal of the Hessian gives, in which features of any scale count alike.
    random_state : int or None, default None
        Seed of the draw.

    Attributes
    ----------
    landmarks_ : ndarray, shape (n_landmarks, n_varying)
        In the features of `varying_`.
    whitening_ : ndarray, shape (n_landmarks, n_kept)
        UΣ^(−½).
    weights_ : ndarray, shape (n_kept,)
    n_iter_ : int
        Newton steps tried.

    Notes
    -----
    O(n_documents · k · (n_features + k) + k³) for the map and O(n_documents · k) per product with the Hessian, for k
    landmarks: linear in the documents, where `KernelRankSVM` is quadratic, and its solution if all are landmarks.
    The map turns the landmarks to their principal axes; so the Hessian's diagonal is a preconditioner that saves most
    of the products.

    References
    ----------
    K. Chen, R. Li, Y. Dou, Z. Liang, Q. Lv: Ranking support vector machine with kernel approximation. Computational
    Intelligence and Neuroscience, 2017, Algorithms 1 and 3.

    Examples
    --------
    >>> from moerank.rankers.kernel_map import RankNystrom
    >>> X = [[0.0], [0.5], [1.0]]  # the best document is the middle one: no wᵀx puts it on top
    >>> RankNystrom(gamma=4.0, random_state=0).fit(X, y=[0, 2, 1]).predict(X).argsort().tolist()
    [0, 2, 1]
    """

    def _draw_map(self, X: Matrix) -> None:
        n_landmarks = min(self.n_components, len(X))
        drawn = check_random_state(self.random_state).choice(len(X), n_landmarks, replace=False)
        self.landmarks_ = X[drawn]
        values, U = np.linalg.eigh(gaussian(self.landmarks_, self.landmarks_, self.gamma))
        kept = values > SMALLEST_EIGENVALUE
        self.whitening_ = U[:, kept] / np.sqrt(values[kept])

    def _image(self, X: Matrix) -> Matrix:
        return gaussian(X, self.landmarks_, self.gamma) @ self.whitening_

    def _metric(self, table: Matrix, pairs: CountedPairs) -> Vector:
        # The mapped features are the kernel's principal axes on the landmarks, so nearly uncorrelated.
        return hessian_diagonal(table, pairs, self.C)


class RankFourier(KernelMapRanker):
    """RankSVM on random Fourier features of the kernel k(x, x') = exp(−gamma ‖x − x'‖²).

    The map is

        φ(x) = √(2 / k) [cos(ω₁ᵀx + b₁) … cos(ωₖᵀx + bₖ)]ᵀ,   ω ~ N(0, 2 gamma I),   b ~ U[0, 2π],

    so that the mean of φ(x)ᵀφ(x') is k(x, x'), and the ranker minimises, over the p preference pairs (i, j),

        ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(φ(xᵢ) − φ(xⱼ)))²

    The paper's C weighs each pair, and in the authors' code, from which the published values come, with a factor ½:
    it is 2C / p here.

    Parameters
    ----------
    n_components : int, default 500
        Number of features k, ≥ 1. The paper has 500, and 2000 for MQ2007.
    C : float, default 1000.0
        Weight of the loss, > 0.
    gamma : float, default 2⁻⁶
        Width of the kernel, > 0, for features scaled to [0, 1].
    tol : float, default 1e-3
        Training ends when the gradient is at most this share of the gradient at w = 0, > 0.
    random_state : int or None, default None
        Seed of the draw.

    Attributes
    ----------
    sampler_ : sklearn.kernel_approximation.RBFSampler
        The map, of the features of `varying_`.
    weights_ : ndarray, shape (n_components,)
    n_iter_ : int
        Newton steps tried.

    Notes
    -----
    O(n_documents · k · n_features) for the map and O(n_documents · k) per product with the Hessian. The error of a
    kernel value falls as 1/√k. `RankNystrom`, whose map follows the data, needs fewer features for the same error.

    References
    ----------
    K. Chen, R. Li, Y. Dou, Z. Liang, Q. Lv: Ranking support vector machine with kernel approximation. Computational
    Intelligence and Neuroscience, 2017, Algorithms 2 and 3.

    Examples
    --------
    >>> from moerank.rankers.kernel_map import RankFourier
    >>> X = [[0.0], [0.5], [1.0]]  # the best document is the middle one: no wᵀx puts it on top
    >>> RankFourier(gamma=4.0, random_state=0).fit(X, y=[0, 2, 1]).predict(X).argsort().tolist()
    [0, 2, 1]
    """

    def _draw_map(self, X: Matrix) -> None:
        sampler = RBFSampler(gamma=self.gamma, n_components=self.n_components, random_state=self.random_state)
        self.sampler_ = sampler.fit(X)

    def _image(self, X: Matrix) -> Matrix:
        image: Matrix = self.sampler_.transform(X)
        return image

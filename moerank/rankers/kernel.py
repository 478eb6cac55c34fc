"""Rankers with a kernel: RankNystrom, RankFourier and KernelRankSVM."""

from itertools import product
from typing import ClassVar, Self

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state

from moerank.arrays import Matrix
from moerank.checks import Count, Positive, check_room
from moerank.data import RankingData
from moerank.kernels.counted_sums import LabelRuns
from moerank.kernels.threads import one_blas_thread
from moerank.rankers.base import Grid, Ranker
from moerank.scikit_learn import clone
from moerank.training.sorted import (
    Minimum,
    PairedDocuments,
    hessian_diagonal,
    solve_with_features,
    solve_with_kernel,
)

MAPPED_ROWS = 1024


class KernelRanker(Ranker):
    """Base of the rankers that solve the squared-hinge problem in a kernel's feature space, or near it.

    One kernel matrix or feature map serves every C. A document x scores weights_ᵀ image(x). A subclass has the
    parameters `C` and `tol` and implements `_prepare`, `_solve` and `_image`.
    """

    _additive = False
    _remedy = (
        "check that the labels depend on the features, and scale these to [0, 1], for which gamma "
        "is meant"
    )
    _trained_together: ClassVar[tuple[str, ...]] = ("C", "tol")

    def _prepare(self, train: RankingData, documents: PairedDocuments) -> Matrix:
        """Fix the feature map on the data, and return the table for all C: kernel values or mapped documents."""
        raise NotImplementedError

    def _solve(self, table: Matrix, pairs: LabelRuns) -> Minimum:
        """Return the weights for one C, and the steps that led to them."""
        raise NotImplementedError

    def _image(self, X: Matrix) -> Matrix:
        """Return the feature map of X, shape (n_documents, n_weights)."""
        raise NotImplementedError

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self.weights_, self.n_iter_, self._converged = self._solutions(train, [self])[0]
        self.support_ = self.varying_.copy()

    def _solutions(self, train: RankingData, candidates: list[Self]) -> list[Minimum]:
        """Return the solution for each candidate's C and tol, all with the table of this ranker."""
        train = train.with_features(self.varying_)
        documents = PairedDocuments.of(train)
        with one_blas_thread():
            table = self._prepare(train, documents)
            return [candidate._solve(table, documents.pairs) for candidate in candidates]

    def _scores(self, X: Matrix) -> Matrix:
        return self._scores_of(X, self.weights_[:, None])[:, 0]

    def _scores_of(self, X: Matrix, W: Matrix) -> Matrix:
        """Return the scores (n_documents, n_columns) by the columns of W, equal for equal documents.

        Linear algebra libraries give equal rows different last bits, so every distinct document is computed once.
        """
        distinct, row = np.unique(X[:, self.varying_], axis=0, return_inverse=True)
        with one_blas_thread():
            begins = range(0, len(distinct), MAPPED_ROWS)
            blocks = [self._image(distinct[begin : begin + MAPPED_ROWS]) @ W for begin in begins]
        return np.concatenate([np.empty((0, W.shape[1])), *blocks])[row.ravel()]

    def _candidate_scores(
        self, train: RankingData, validation: RankingData, candidates: list[Self]
    ) -> Matrix:
        leader = clone(candidates[0])._learn(train)
        W = np.stack([solution.x for solution in leader._solutions(train, candidates)], axis=1)
        return leader._scores_of(validation.X64, W)


# Directions of smaller eigenvalues, from landmarks that are nearly combinations of others, are left out.
MIN_EIGENVALUE = 1e-6


class KernelMapRanker(KernelRanker):
    """Base of `RankNystrom` and `RankFourier`: the linear problem on mapped documents, whatever the map."""

    n_components: Count = 500
    C: Positive = 1000.0
    gamma: Positive = 2.0**-6
    tol: Positive = 1e-3
    random_state: int | None = None

    def default_grid(self, train: RankingData) -> Grid:
        """Return the paper's ranges, C = ½ p · 2ᶜ with c = −12 … 6 and gamma = 2⁻¹² … 2², in steps of 2²: 80 entries.

        The paper's steps are 2¹, those of the authors' code 2² in C.
        """
        half = 0.5 * train.n_pairs
        exponents = product(range(-12, 3, 2), range(-12, 7, 2))
        return [{"gamma": 2.0**g, "C": half * 2.0**c} for g, c in exponents]

    def _draw_map(self, X: Matrix) -> None:
        """Draw the feature map for training documents X (n_documents, n_varying)."""
        raise NotImplementedError

    def _prepare(self, train: RankingData, documents: PairedDocuments) -> Matrix:
        self._draw_map(train.X64)
        return self._image(train.X64[documents.rows])

    def _solve(self, table: Matrix, pairs: LabelRuns) -> Minimum:
        return solve_with_features(table, pairs, self.C, self.tol)


class RankNystrom(KernelMapRanker):
    """RankSVM on the Nyström map of the kernel k(x, x') = exp(−gamma ‖x − x'‖²).

    Landmarks x̂₁ … x̂ₖ are drawn from the training documents. With their kernel matrix UΣUᵀ the map is

        φ(x) = Σ^(−½) Uᵀ [k(x, x̂₁) … k(x, x̂ₖ)]ᵀ

    over the eigenvalues above 10⁻⁶, and the ranker minimises, over the p preference pairs (i, j),

        ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(φ(xᵢ) − φ(xⱼ)))²

    The paper's C weighs each pair. The authors' code, which gave the published values, adds a factor ½, so that the
    paper's C is 2C / p here.

    Parameters
    ----------
    n_components : int, default 500
        Number of landmarks, ≥ 1, but at most all documents. The paper has 500, and 2000 for MQ2007.
    C : float, default 1000.0
        Weight of the loss, > 0.
    gamma : float, default 2⁻⁶
        Width of the kernel, > 0, for features scaled to [0, 1].
    tol : float, default 1e-3
        Training ends when the gradient is at most this share of the gradient at w = 0, > 0. Both norms
        use the diagonal of the Hessian, so that features of any scale count alike.
    random_state : int or None, default None
        Seed of the draw.

    Attributes
    ----------
    landmarks_ : ndarray, shape (n_landmarks, n_varying)
        The landmarks, in the features of `varying_`.
    whitening_ : ndarray, shape (n_landmarks, n_kept)
        UΣ^(−½).
    weights_ : ndarray, shape (n_kept,)
    n_iter_ : int
        Newton steps tried.

    Notes
    -----
    O(n_documents · k · (n_features + k) + k³) for the map and O(n_documents · k) per product with the Hessian, for k
    landmarks: linear in the documents, while `KernelRankSVM` is quadratic. If all documents are landmarks, both have
    the same solution. The map turns the landmarks to their principal axes, so the Hessian's diagonal is a
    preconditioner that saves most of the products.

    For other kernels and losses use a pipeline with scikit-learn's Nystroem, such as
    ``make_pipeline(Nystroem(kernel="polynomial"), RankSVMStruct())``.

    References
    ----------
    K. Chen, R. Li, Y. Dou, Z. Liang, Q. Lv: Ranking support vector machine with kernel approximation. Computational
    Intelligence and Neuroscience, 2017, Algorithms 1 and 3.

    Examples
    --------
    >>> from moerank.rankers.kernel import RankNystrom
    >>> X = [[0.0], [0.5], [1.0]]  # the best document is the middle one: no wᵀx puts it on top
    >>> RankNystrom(gamma=4.0, random_state=0).fit(X, y=[0, 2, 1], qid=0).predict(X).argsort().tolist()
    [0, 2, 1]
    """

    def _draw_map(self, X: Matrix) -> None:
        n_landmarks = min(self.n_components, len(X))
        rng = check_random_state(self.random_state)
        self.landmarks_ = X[rng.choice(len(X), n_landmarks, replace=False)]
        values, U = np.linalg.eigh(rbf_kernel(self.landmarks_, self.landmarks_, self.gamma))
        positive = values > MIN_EIGENVALUE
        self.whitening_ = U[:, positive] / np.sqrt(values[positive])

    def _image(self, X: Matrix) -> Matrix:
        return rbf_kernel(X, self.landmarks_, self.gamma) @ self.whitening_

    def _solve(self, table: Matrix, pairs: LabelRuns) -> Minimum:
        # The mapped features are the kernel's principal axes on the landmarks, so nearly uncorrelated.
        diagonal = hessian_diagonal(table, pairs, self.C)
        return solve_with_features(table, pairs, self.C, self.tol, diagonal)


class RankFourier(KernelMapRanker):
    """RankSVM on random Fourier features of the kernel k(x, x') = exp(−gamma ‖x − x'‖²).

    The map is

        φ(x) = √(2 / k) [cos(ω₁ᵀx + b₁) … cos(ωₖᵀx + bₖ)]ᵀ,   ω ~ N(0, 2 gamma I),   b ~ U[0, 2π],

    so that the mean of φ(x)ᵀφ(x') is k(x, x'), and the ranker minimises, over the p preference pairs (i, j),

        ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(φ(xᵢ) − φ(xⱼ)))²

    The paper's C weighs each pair. The authors' code, which gave the published values, adds a factor ½, so that the
    paper's C is 2C / p here.

    Parameters
    ----------
    n_components : int, default 500
        Number of features k, ≥ 1. The paper has 500, and 2000 for MQ2007.
    C, gamma, random_state
        As in `RankNystrom`.
    tol : float, default 1e-3
        Training ends when the gradient is at most this share of the gradient at w = 0, > 0.

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
    >>> from moerank.rankers.kernel import RankFourier
    >>> X = [[0.0], [0.5], [1.0]]  # the best document is the middle one: no wᵀx puts it on top
    >>> RankFourier(gamma=4.0, random_state=0).fit(X, y=[0, 2, 1], qid=0).predict(X).argsort().tolist()
    [0, 2, 1]
    """

    def _draw_map(self, X: Matrix) -> None:
        sampler = RBFSampler(
            gamma=self.gamma, n_components=self.n_components, random_state=self.random_state
        )
        self.sampler_ = sampler.fit(X)

    def _image(self, X: Matrix) -> Matrix:
        return self.sampler_.transform(X)


KERNEL_ROWS = 512


class KernelRankSVM(KernelRanker):
    """RankSVM with squared hinge loss in the space of the kernel k(x, x') = exp(−gamma ‖x − x'‖²).

    A document scores f(x) = Σ bₗ k(xₗ, x) over the training documents. Minimises, over the p preference pairs (i, j),

        ½ bᵀKb + (C / p) Σ max(0, 1 − (Kb)ᵢ + (Kb)ⱼ)²

    The paper's C weighs each pair, so it is C / p here.

    Parameters
    ----------
    C : float, default 1000.0
        Weight of the loss, > 0.
    gamma : float, default 2⁻⁶
        Width of the kernel, > 0, for features scaled to [0, 1].
    tol : float, default 1e-3
        Training ends when the gradient is at most this share of the gradient at b = 0, > 0; the authors' value.

    Attributes
    ----------
    documents_ : ndarray, shape (n_paired, n_varying)
        The training documents that take part in pairs, in the features of `varying_`. Others have no coefficient.
    weights_ : ndarray, shape (n_paired,)
        Their coefficients b.
    n_iter_ : int
        Newton steps tried.

    Raises
    ------
    ValueError
        If the n_paired² kernel values, in double precision, take more memory than the limit; the message says how to
        raise it.

    Notes
    -----
    O(n_paired² · n_features) for the kernel matrix and O(n_paired²) per product with the Hessian; a hundred products
    are usual, and more than a thousand possible for a large C. `RankNystrom` costs a fraction of this.

    References
    ----------
    T.-M. Kuo, C.-P. Lee, C.-J. Lin: Large-scale kernel RankSVM. SIAM International Conference on Data Mining, 2014.

    Examples
    --------
    >>> from moerank.rankers.kernel import KernelRankSVM
    >>> X = [[0.0], [0.5], [1.0]]  # the best document is the middle one: no wᵀx puts it on top
    >>> KernelRankSVM(gamma=4.0).fit(X, y=[0, 2, 1], qid=0).predict(X).argsort().tolist()
    [0, 2, 1]
    """

    C: Positive = 1000.0
    gamma: Positive = 2.0**-6
    tol: Positive = 1e-3

    def default_grid(self, train: RankingData) -> Grid:
        """Return C = p · 2ᶜ, c = −12, −9 … 0, and gamma = 2⁻⁸, 2⁻⁶, 2⁻⁴, 2⁻².

        To save time, it is a coarser part of the paper's grid, c = −12 … 6 and gamma = 2⁻¹² … 2².
        """
        exponents = product(range(-8, -1, 2), range(-12, 1, 3))
        return [{"gamma": 2.0**g, "C": train.n_pairs * 2.0**c} for g, c in exponents]

    def _prepare(self, train: RankingData, documents: PairedDocuments) -> Matrix:
        X = train.X64[documents.rows]
        n = len(X)
        what = f"{n:,}² kernel values, which rank-nystrom and rank-fourier do without,"
        check_room(what, 8 * n * n)
        self.documents_ = X
        # Products read the lower triangle only, so the rest is neither computed nor touched.
        K = np.empty((n, n))
        for begin in range(0, n, KERNEL_ROWS):
            end = min(begin + KERNEL_ROWS, n)
            K[begin:end, :end] = rbf_kernel(X[begin:end], X[:end], self.gamma)
        return K

    def _solve(self, table: Matrix, pairs: LabelRuns) -> Minimum:
        minimum = solve_with_kernel(table, pairs, self.C, self.tol)
        return minimum._replace(x=minimum.x[0])

    def _image(self, X: Matrix) -> Matrix:
        return rbf_kernel(X, self.documents_, self.gamma)

"""RankSVM with a Gaussian kernel, exactly: by a trust-region Newton method (Kuo, Lee and Lin, 2014)."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from moerank.checks import check_positive
from moerank.data import RankingData
from moerank.kernels.counted_sums import CountedPairs
from moerank.rankers.base import Matrix
from moerank.rankers.kernel_ranker import KernelRanker, gaussian
from moerank.training.hinge_problem import solve_with_kernel
from moerank.training.paired_documents import PairedDocuments
from moerank.training.trust_region import Minimum

__all__ = ["KernelRankSVM"]

GIB = 2.0**30
BLOCK = 512


class KernelRankSVM(KernelRanker):
    """RankSVM with squared hinge loss in the space of the kernel exp(−gamma ‖x − x'‖²).

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
    memory_limit : float, default 2.0
        The kernel matrix may take this many GiB, > 0; the default serves 16,384 documents. A larger problem is
        refused before anything is allocated.

    Attributes
    ----------
    documents_ : ndarray, shape (n_paired, n_varying)
        The training documents that take part in pairs, in the features of `varying_`. No other gets a coefficient.
    weights_ : ndarray, shape (n_paired,)
        Their coefficients b.
    n_iter_ : int
        Newton steps tried.

    Raises
    ------
    ValueError
        If the n_paired² kernel values, in double precision, take more than `memory_limit`; the message has the figure.

    Notes
    -----
    O(n_paired² · n_features) for the kernel matrix and O(n_paired²) per product with the Hessian, of which a hundred is
    usual and more than a thousand possible for a large C. `RankNystrom` costs a fraction.

    References
    ----------
    T.-M. Kuo, C.-P. Lee, C.-J. Lin: Large-scale kernel RankSVM. SIAM International Conference on Data Mining, 2014.

    Examples
    --------
    >>> from moerank.rankers.rank_svm_kernel import KernelRankSVM
    >>> X = [[0.0], [0.5], [1.0]]  # the best document is the middle one: no wᵀx puts it on top
    >>> KernelRankSVM(gamma=4.0).fit(X, y=[0, 2, 1]).predict(X).argsort().tolist()
    [0, 2, 1]
    """

    def __init__(self, C: float = 1000.0, gamma: float = 2.0**-6, tol: float = 1e-3, memory_limit: float = 2.0) -> None:
        self.C = C
        self.gamma = gamma
        self.tol = tol
        self.memory_limit = memory_limit

    def default_grid(self, train: RankingData) -> list[dict[str, Any]]:
        """Return C = p · 2ᶜ, c = −12, −9 … 0, and gamma = 2⁻⁸, 2⁻⁶, 2⁻⁴, 2⁻².

        This is a coarser part of the paper's grid, c = −12 … 6 and gamma = 2⁻¹² … 2², that a fold can afford.
        """
        p = train.label_runs.n_pairs
        return [{"gamma": 2.0**g, "C": p * 2.0**c} for g, c in product(range(-8, -1, 2), range(-12, 1, 3))]

    def _check_parameters(self) -> None:
        check_positive(C=self.C, gamma=self.gamma, tol=self.tol, memory_limit=self.memory_limit)

    def _prepare(self, train: RankingData, documents: PairedDocuments) -> Matrix:
        X = train.X64[documents.rows]
        n = len(X)
        needed = 8.0 * n * n / GIB
        if needed > self.memory_limit:
            raise ValueError(
                f"KernelRankSVM needs {needed:,.2f} GiB for {n:,}² kernel values, more than memory_limit="
                f"{self.memory_limit:g} GiB; raise memory_limit, or use rank-nystrom or rank-fourier instead"
            )
        self.documents_ = X
        K = np.empty((n, n))  # products read the lower triangle only, so the rest is neither computed nor touched
        for begin in range(0, n, BLOCK):
            end = min(begin + BLOCK, n)
            K[begin:end, :end] = gaussian(X[begin:end], X[:end], self.gamma)
        return K

    def _solve(self, table: Matrix, pairs: CountedPairs) -> tuple[Matrix, Minimum]:
        minimum = solve_with_kernel(table, pairs, self.C, self.tol)
        return minimum.x[0], minimum

    def _image(self, X: Matrix) -> Matrix:
        return gaussian(X, self.documents_, self.gamma)

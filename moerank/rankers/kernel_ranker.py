"""What the rankers in a kernel's feature space share: one kernel matrix or feature map serves every C."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from moerank.data import RankingData
from moerank.kernels.blas import one_blas_thread
from moerank.kernels.counted_sums import CountedPairs
from moerank.rankers.base import Matrix, Ranker
from moerank.training.hinge_problem import no_convergence
from moerank.training.paired_documents import PairedDocuments
from moerank.training.trust_region import Minimum

__all__ = ["KernelRanker", "gaussian"]

BLOCK = 1024


class KernelRanker(Ranker):
    """Base of the rankers that solve the squared-hinge problem in a kernel's feature space, or near it.

    A subclass has the parameters `C` and `tol` and implements `_check_parameters`, `_prepare`, `_solve`, `_image`.

    Attributes
    ----------
    weights_ : ndarray
        A document x scores weights_ᵀ image(x).
    n_iter_ : int
        Newton steps tried.
    """

    tol: float

    _additive = False
    _trained_together = ("C", "tol")

    def _prepare(self, train: RankingData, documents: PairedDocuments) -> Matrix:
        """Fix the image on the data, and return the table for all C: kernel values or images of the documents."""
        raise TypeError(f"{type(self).__name__} does not implement _prepare")

    def _solve(self, table: Matrix, pairs: CountedPairs) -> tuple[Matrix, Minimum]:
        """Return the weights for one C, and how they were found."""
        raise TypeError(f"{type(self).__name__} does not implement _solve")

    def _image(self, X: Matrix) -> Matrix:
        """Return what the weights are multiplied by, shape (n_documents, n_weights)."""
        raise TypeError(f"{type(self).__name__} does not implement _image")

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self.weights_, minimum = self._solutions(train, [self])[0]
        self.n_iter_, self._converged = minimum.n_iter, minimum.converged
        self.support_ = self.varying_.copy()

    def _reservations(self) -> Iterator[str]:
        yield from super()._reservations()
        if not self._converged:
            yield no_convergence(self.tol, self.n_iter_)

    def _solutions(self, train: RankingData, candidates: list[Self]) -> list[tuple[Matrix, Minimum]]:
        """Return the solution for each candidate's C and tol, all with the table of this ranker."""
        train = train.with_features(self.varying_)
        documents = PairedDocuments.of(train)
        with one_blas_thread():
            table = self._prepare(train, documents)
            return [candidate._solve(table, documents.pairs) for candidate in candidates]

    def _scores(self, X: Matrix) -> Matrix:
        return self._scores_of(X, self.weights_[:, None])[:, 0]

    def _scores_of(self, X: Matrix, W: Matrix) -> Matrix:
        """Scores (n_documents, n_columns) by the columns of W.

        A product by a linear algebra library gives equal rows different last bits, depending on where they stand. So
        every distinct document is computed once, and identical documents tie.
        """
        distinct, place = np.unique(X[:, self.varying_], axis=0, return_inverse=True)
        with one_blas_thread():
            blocks = [self._image(distinct[begin : begin + BLOCK]) @ W for begin in range(0, len(distinct), BLOCK)]
        scores: Matrix = np.concatenate([np.empty((0, W.shape[1])), *blocks])[place.ravel()]
        return scores

    def _candidate_scores(self, train: RankingData, validation: RankingData, candidates: list[Self]) -> Matrix:
        leader = clone(candidates[0])._learn(train)
        weights = [w for w, _ in leader._solutions(train, candidates)]
        return leader._scores_of(validation.X64, np.stack(weights, axis=1))


def gaussian(X: Matrix, Y: Matrix, gamma: float) -> Matrix:
    """Return the kernel exp(−gamma ‖x − y‖²) of all rows of X with all rows of Y, shape (len(X), len(Y))."""
    values: Matrix = rbf_kernel(X, Y, gamma=gamma)
    return values

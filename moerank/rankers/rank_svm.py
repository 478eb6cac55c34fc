"""RankSVM in the primal: the linear support vector machine on preference pairs, by two solvers."""

import warnings
from typing import Self

from moerank.arrays import Matrix
from moerank.checks import NotNegative, Positive
from moerank.data import RankingData, centre_in_queries
from moerank.rankers.base import Backend, Grid, LinearRanker
from moerank.scikit_learn import ConvergenceWarning
from moerank.training.masks import Masks
from moerank.training.pairs import EXACT_STEPS, LONGEST_LIST, SQUARED_HINGE, CountedPairs, pairs_for
from moerank.training.sorted import PairedDocuments, solve_with_features

# Pairs per document up to which a population lists them: the documents of short queries do not fill a vector.
SHORT_LIST = 16


class RankSVM(Backend):
    """Linear RankSVM with squared hinge loss, by truncated Newton.

    Minimises, over the p preference pairs (i, j),

        ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))²

    The loss is a mean, so a subset of the pairs does not change the regularisation.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss, > 0. LETOR's grid is ½ · 10ᵏ, k = −2 … 2.
    tol : float, default 1e-7
        Relative error of the objective allowed for individuals of a population, as Newton's method estimates it, ≥ 0.
        `fit`, and individuals with few pairs of their own beside their features, are exact to rounding.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)

    Notes
    -----
    Conjugate gradients solve the Newton steps without forming a Hessian. `fit` starts at the solution for the squared
    loss. A population starts at the minimum of a quadratic model of the problem with all pairs (or, with a shared pair
    subset, all features), and takes about four passes over the data and the pairs. Pairs are listed if individuals
    choose among them, or if there are few per document. Individuals with fewer than 10 k own pairs, for k features,
    take the Newton steps that their own pairs give, each a linear system.

    References
    ----------
    O. Chapelle, S. S. Keerthi: Efficient algorithms for ranking with SVMs. Information Retrieval 13, 2010.

    Examples
    --------
    >>> from moerank.rankers.rank_svm import RankSVM
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> ranker = RankSVM(C=5.0).fit(X, y=[0, 1, 2], qid=0)
    >>> ranker.predict(X).argsort().tolist()
    [0, 1, 2]
    """

    C: Positive = 1.0
    tol: NotNegative = 1e-7

    def _train(self, train: RankingData, masks: Masks, start: Matrix | None) -> Matrix:
        if not masks.choose_units and masks.features.all() and start is None:
            return self._minima(train, [self.C]).repeat(len(masks.features), axis=0)
        longest_list = min(SHORT_LIST * train.n_documents, LONGEST_LIST)
        pairs = pairs_for(train, masks, longest_list=longest_list)
        return self._solved(SQUARED_HINGE, self.C, pairs, masks, start)

    def default_grid(self, train: RankingData) -> Grid:
        """Return LETOR's grid, C = ½ · 10ᵏ with k = −2 … 2."""
        return letor_grid()

    def _fit_candidates(self, train: RankingData, candidates: list[Self]) -> Matrix:
        train.require_pairs()
        return self._minima(train, [candidate.C for candidate in candidates])

    def _minima(self, train: RankingData, Cs: list[float]) -> Matrix:
        """Return the minima on all features and pairs, exact to rounding."""
        W, reached = CountedPairs.of(train).minima(SQUARED_HINGE, Cs)
        if not reached.all():
            C = Cs[int(reached.argmin())]
            warnings.warn(
                f"RankSVM stopped at {EXACT_STEPS} Newton steps before the minimum for C={C:g}; "
                "lower C, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )
        return W


class RankSVMTRON(LinearRanker):
    """Linear RankSVM with squared hinge loss, by TRON on sums that need no list of pairs.

    Minimises, over the p preference pairs (i, j),

        ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))²

    which is the problem of `RankSVM`. The paper's C weighs each pair, so it is C / p here.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss, > 0. LETOR's grid is ½ · 10ᵏ, k = −2 … 2.
    tol : float, default 1e-4
        Training ends when the gradient is at most this share of the gradient at w = 0, > 0. The authors' tool has
        1e-3. At the default the objective is within 1e-7 of its minimum on MQ2008 and OHSUMED, for every C of the grid.
        With few queries, many features and C = 50 it was up to 6e-3 above; there 1e-6 brings it to 1e-8.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    n_iter_ : int
        Newton steps tried.

    Notes
    -----
    O(n_documents · (n_features + log n_labels)) per product with the Hessian and O(n_documents log n_documents) per
    step besides, with n_labels different labels in a query. Neither time nor memory depends on the number of pairs:
    take this solver if few queries hold very many documents.

    References
    ----------
    C.-P. Lee, C.-J. Lin: Large-scale linear RankSVM. Neural Computation 26, 2014.

    Examples
    --------
    >>> from moerank.rankers.rank_svm import RankSVMTRON
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> RankSVMTRON(C=5.0).fit(X, y=[0, 1, 2], qid=0).predict(X).argsort().tolist()
    [0, 1, 2]
    """

    C: Positive = 1.0
    tol: Positive = 1e-4

    def _weights(self, train: RankingData) -> Matrix:
        documents = PairedDocuments.of(train)
        # Centred, because only differences within a query matter.
        X = centre_in_queries(train.X, train.offsets)[documents.rows]
        w, self.n_iter_, self._converged = solve_with_features(X, documents.pairs, self.C, self.tol)
        return w

    def default_grid(self, train: RankingData) -> Grid:
        """Return LETOR's grid, C = ½ · 10ᵏ with k = −2 … 2."""
        return letor_grid()


def letor_grid() -> Grid:
    """Return C = ½ · 10ᵏ with k = −2 … 2."""
    return [{"C": 0.5 * 10.0**power} for power in range(-2, 3)]

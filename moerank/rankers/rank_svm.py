"""RankSVM in the primal: the linear support vector machine on preference pairs, by two solvers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from moerank.arrays import Mask, Matrix
from moerank.checks import NotNegative, Positive
from moerank.data import RankingData
from moerank.rankers.arguments import read_masks
from moerank.rankers.base import Grid, LinearRanker, PairBackend
from moerank.training.counted import LONGEST_LIST, CountedProblem
from moerank.training.listed import PairProblem
from moerank.training.losses import SQUARED_HINGE, UNIT
from moerank.training.newton import MAX_STEPS
from moerank.training.sorted import PairedDocuments, no_convergence, solve_with_features
from moerank.training.weighted import pairs_of, solve_weighted

SHORT_LIST = 16
"""Pairs per document up to which they are listed for a population: in short queries documents fill no vector."""


@dataclass(eq=False, repr=False)
class RankSVM(PairBackend):
    """Linear RankSVM with squared hinge loss, by truncated Newton.

    Minimises, over the p preference pairs (i, j),

        ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))²

    The loss is a mean, so a subset of the pairs does not change the regularisation. With weights v of queries and u of
    documents a pair of query q has the weight ω = v_q uᵢ uⱼ, and the loss is C Σ ω (…)² / Σ ω.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss, > 0. LETOR's grid is ½ · 10ᵏ, k = −2 … 2.
    tol : float, default 1e-7
        Relative error of the objective allowed to the members of a population, ≥ 0. `fit` is exact to rounding.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)

    Notes
    -----
    Newton steps without a Hessian, by conjugate gradients. `fit` starts at the solution for the squared loss, a
    population at the minimum of a quadratic model of the problem with all pairs (or, with a shared pair subset, all
    features): about four passes over the data and the pairs. Pairs are listed for a `pair_mask`,
    and for a population where they are few for each document. With weights pairs are always listed, and individuals are
    trained one by one.

    References
    ----------
    O. Chapelle, S. S. Keerthi: Efficient algorithms for ranking with SVMs. Information Retrieval 13, 2010.

    Examples
    --------
    >>> from moerank.rankers.rank_svm import RankSVM
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> ranker = RankSVM(C=5.0).fit(X, y=[0, 1, 2])
    >>> ranker.predict(X).argsort().tolist()
    [0, 1, 2]
    """

    C: Positive = 1.0
    tol: NotNegative = 1e-7

    _takes_weights = True

    def fit_population(
        self,
        train: RankingData,
        *,
        pair_mask: Mask | None = None,
        feature_mask: Mask | None = None,
        start: Matrix | None = None,
    ) -> Matrix:
        """Train one ranker for each row of the masks; see `FitnessBackend`."""
        self._check_parameters()
        subset, pairs, features = read_masks(train, pair_mask, feature_mask)
        if train.is_weighted:
            own = subset if pairs is None else pairs
            kept = np.ones(train.n_pairs, np.bool_) if own is None else own
            return self._weighted(train, np.broadcast_to(kept, (len(features), train.n_pairs)), features)
        if subset is not None:
            listed = PairProblem.of(train, subset)
            model = listed.model(self.C, SQUARED_HINGE)
        else:
            counted = CountedProblem.of(train)
            if pairs is None and features.all() and start is None:
                return self._minima(counted, [self.C]).repeat(len(features), axis=0)
            listable = counted.n_pairs <= min(SHORT_LIST * train.n_documents, LONGEST_LIST)
            if pairs is None and not listable:
                return self._told(*counted.solve_population(self.C, features, tolerance=self.tol, start=start))
            listed, model = PairProblem.of(train), counted.model(self.C)
        return self._told(
            *listed.solve_population(self.C, SQUARED_HINGE, model, pairs, features, tolerance=self.tol, start=start)
        )

    def _weighted(self, train: RankingData, pair_masks: Iterable[Mask], features: Mask) -> Matrix:
        return solve_weighted(train, SQUARED_HINGE, UNIT, self.C, pair_masks, features)

    def _fit_counted(self, train: RankingData, features: Mask, shared: bool, **mask: Any) -> Matrix:
        if train.is_weighted:
            kept = list(pairs_of(train, **mask))
            return self._weighted(train, kept * len(features) if shared else kept, features)
        return self._told(*CountedProblem.of(train).solve_population(self.C, features, tolerance=self.tol, **mask))

    def default_grid(self, train: RankingData) -> Grid:
        """Return LETOR's grid, C = ½ · 10ᵏ with k = −2 … 2."""
        return [{"C": 0.5 * 10.0**k} for k in range(-2, 3)]

    def _fit_candidates(self, train: RankingData, candidates: list[Self]) -> Matrix:
        read_masks(train, None, None)
        if train.is_weighted:
            return super()._fit_candidates(train, candidates)
        return self._minima(CountedProblem.of(train), [candidate.C for candidate in candidates])

    def _minima(self, problem: CountedProblem, Cs: list[float]) -> Matrix:
        """Return the minima on all features, and warn where one is not reached."""
        W, reached = problem.minima(Cs)
        if not reached.all():
            warnings.warn(
                f"RankSVM stopped at {MAX_STEPS} Newton steps before the minimum for C={Cs[int(reached.argmin())]:g}; "
                "lower C, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )
        return W


@dataclass(eq=False, repr=False)
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
        1e-3. At the default the objective is within 1e-6 of its minimum for every C of the grid.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    n_iter_ : int
        Newton steps tried.

    Notes
    -----
    O(n_documents · (n_features + log n_labels)) per product with the Hessian and O(n_documents log n_documents) per
    step besides, with n_labels the different labels of a query: the number of pairs does not enter, nor does memory for
    them. Where few queries hold very many documents this is the solver to take.

    References
    ----------
    C.-P. Lee, C.-J. Lin: Large-scale linear RankSVM. Neural Computation 26, 2014.

    Examples
    --------
    >>> from moerank.rankers.rank_svm import RankSVMTRON
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> RankSVMTRON(C=5.0).fit(X, y=[0, 1, 2]).predict(X).argsort().tolist()
    [0, 1, 2]
    """

    C: Positive = 1.0
    tol: Positive = 1e-4

    def _reservations(self) -> Iterator[str]:
        yield from super()._reservations()
        if not self._converged:
            yield no_convergence(self.tol, self.n_iter_)

    def _weights(self, train: RankingData) -> Matrix:
        documents = PairedDocuments.of(train)
        X = train.X64[documents.rows]
        w, self.n_iter_, self._converged = solve_with_features(X, documents.pairs, self.C, self.tol)
        return w

    def default_grid(self, train: RankingData) -> Grid:
        """Return LETOR's grid, C = ½ · 10ᵏ with k = −2 … 2."""
        return [{"C": 0.5 * 10.0**k} for k in range(-2, 3)]

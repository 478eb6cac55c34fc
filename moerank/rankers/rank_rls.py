"""Regularised least squares in closed form: RankRLS on preference pairs, and combined regression and ranking."""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from moerank.arrays import Mask, Matrix
from moerank.checks import NotNegative, Positive, check_share, check_square
from moerank.data import RankingData, remembered
from moerank.kernels.algebra import plus_ridge, product, ridge_subsets, square
from moerank.kernels.threads import in_pieces
from moerank.rankers.arguments import as_ranking_data
from moerank.rankers.base import Backend, Grid, LinearRanker
from moerank.training.masks import Masks, Unit, read_masks
from moerank.training.pair_moments import (
    TARGETS,
    PairMoments,
    QueryMoments,
    Target,
    centred,
    solve_positive_definite,
)
from moerank.training.pairs import SQUARED, CountedPairs, ListedPairs, pairs_for

TargetName = Literal["unit", "difference"]

# Normal equations: (n_systems, n_features, n_features) and (n_systems, n_features).
Systems: TypeAlias = tuple[Matrix, Matrix]


class RankRLS(Backend):
    """Regularised least squares ranking.

    Minimises with ``loss="pair"``, over the p preference pairs (i, j),

        (1 / p) Σ (t − wᵀ(xᵢ − xⱼ))² + alpha ‖w‖²,   t = 1, or yᵢ − yⱼ with target="difference",

    and with ``loss="query"``, over all document pairs of every query Q, equal labels included,

        Σ_Q 1/(2|Q|) Σ_{i,j ∈ Q} ((yᵢ − yⱼ) − wᵀ(xᵢ − xⱼ))² + alpha ‖w‖².

    The second is the paper's; it equals ridge regression after centring X and y in every query. With weights v of
    queries and u of documents, a pair has the weight ω = v_q uᵢ uⱼ. The first sum becomes Σ ω (…)² / Σ ω; in the
    second, query Q has the factor v_Q, each square has the factor uᵢ uⱼ, and Σ u replaces |Q|.

    Parameters
    ----------
    alpha : float, default 1.0
        Regularisation, > 0. For the pair loss, compare it with tr(G) / n_features, G the mean of (xᵢ−xⱼ)(xᵢ−xⱼ)ᵀ.
    loss : {"pair", "query"}, default "pair"
    target : {"unit", "difference"}, default "unit"
        The target t of the pair loss; the query loss always uses the difference.
    tol : float, default 1e-7
        Relative error of the objective allowed, as Newton's method estimates it, where individuals have pairs or
        documents of their own, ≥ 0. Everything else is exact, and so are individuals with few pairs beside features.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)

    Notes
    -----
    If individuals share their pairs, a population costs one Gram matrix, O(n_documents · n_features²) for all pairs,
    which are counted, or O(n_pairs · n_features) for a subset of them, and a Cholesky factor for each feature subset,
    O(k³ / 3) for k features. If they have their own pairs, it is solved by conjugate gradients, with the Gram matrix of
    all pairs as preconditioner; an individual with fewer than 4 k pairs is solved by Cholesky. The query loss accepts
    subsets of queries, but not of pairs or documents. Weights are refused with subsets of pairs, and if individuals
    have their own documents.

    Subsets of documents cost one Gram matrix if all individuals share them, otherwise conjugate gradients with a few
    passes over the documents, each O(k · n_documents). Subsets of queries add up one matrix per query,
    O(n_queries · n_features²) per individual. If these n_queries · n_features² / 2 numbers exceed the memory limit,
    they cost as much as subsets of documents, and the query loss is refused.

    References
    ----------
    T. Pahikkala et al.: An efficient algorithm for learning to rank from preference graphs. Machine Learning 75, 2009.

    Examples
    --------
    >>> from moerank.rankers.rank_rls import RankRLS
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> RankRLS(alpha=0.01).fit(X, y=[0, 1, 2], qid=0).predict(X).argsort().tolist()
    [0, 1, 2]
    """

    alpha: Positive = 1.0
    loss: Literal["pair", "query"] = "pair"
    target: TargetName = "unit"
    tol: NotNegative = 1e-7

    _takes_weights = True
    _guarded = "target"

    def _train(self, train: RankingData, masks: Masks, start: Matrix | None) -> Matrix:
        systems = self._systems(train, masks)
        if systems is None:
            # The same objective divided by 2 alpha is RankSVM's, with the squared loss.
            pairs = pairs_for(train, masks, self._target)
            return self._solved(SQUARED, 0.5 / self.alpha, pairs, masks, start)
        if masks.unit_rows is None:
            return ridge_subsets(*systems, np.ascontiguousarray(masks.features))
        members = zip(*systems, masks.features, strict=True)
        rows = [ridge_subsets(A[None], b[None], features[None]) for A, b, features in members]
        return np.concatenate(rows)

    def systems(
        self, train: RankingData, subsets: Sequence[Mask | None], unit: Unit, workers: int
    ) -> Systems | None:
        """Return the normal equations on each subset of units, for `ridge_subsets`; the threads share the subsets.

        None for a subclass, which may train in another way.
        """
        if type(self) is not RankRLS:
            return None
        self._check_parameters()

        def systems_of(piece: Sequence[Mask | None]) -> list[Any]:
            return [self._systems(train, read_masks(train, subset, None, unit)) for subset in piece]

        A, b = zip(*chain.from_iterable(in_pieces(systems_of, subsets, workers, 1)), strict=True)
        return np.concatenate(A), np.concatenate(b)

    @property
    def ridge(self) -> tuple[float, Target] | None:
        """Alpha and the target of the pair loss; None for the query loss."""
        return (self.alpha, self._target) if self.loss == "pair" else None

    @property
    def _target(self) -> Target:
        return TARGETS["difference" if self.loss == "query" else self.target]

    def _systems(self, train: RankingData, masks: Masks) -> Systems | None:
        """Return the normal equations of the units that all individuals share, or of each individual's own queries.

        Individuals with other units of their own have none.
        """
        queries, query_loss = masks.of_unit("query"), self.loss == "query"
        if query_loss and masks.choose_units and queries is None:
            raise ValueError(
                'RankRLS(loss="query") sums over all document pairs of a query and takes no '
                'pair_mask of pairs or documents; use loss="pair", or select queries, '
                'instance_selection={"unit": "query"}'
            )
        if not query_loss and masks.unit != "pair":
            # Refuses documents or queries without a pair.
            CountedPairs.of(train, self._target).counts(masks)
        if queries is not None and (query_loss or QueryMoments.fit(train)):
            squares, moments = QueryMoments.means(
                train, queries, self._target, every_pair=query_loss
            )
            # The query loss is a sum over queries, the pair loss a mean over pairs.
            alphas = self.alpha / (queries.sum(axis=1) if query_loss else np.ones(len(queries)))
            return squares + alphas[:, None, None] * np.eye(train.n_features), moments
        if train.is_weighted and (masks.unit_rows is not None or masks.of_unit("pair") is not None):
            raise ValueError(
                f"{train.name}: RankRLS takes no weights of queries or documents where pairs or "
                'documents are chosen. Select queries, instance_selection={"unit": "query"}, or '
                "none, instance_selection=False"
            )
        if masks.unit_rows is not None:
            return None
        if query_loss:
            A, b = _query_loss_system(train)
        else:
            A, b = _shared_moments(train, masks, self._target)
        return plus_ridge(A, self.alpha)[None], b[None]

    def leave_query_out(
        self,
        X: RankingData | ArrayLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
    ) -> Matrix:
        """Return the score (n_documents,) that each document gets from the ranker trained without its query.

        The sums of the normal equations are computed once and each query's share is subtracted, so nothing is
        trained again: O(n_documents · n_features² + n_queries · n_features³). Arguments as in `fit`.

        Raises
        ------
        ValueError
            If the data are malformed, or if all preference pairs are in one query.
        """
        self._check_parameters()
        data = as_ranking_data(X, y, qid)
        query_loss = self.loss == "query"
        moments = QueryMoments.of(data, every_pair=query_loss)
        b = self._target.moment(moments)
        square_sum, b_sum = moments.packed.sum(axis=0, dtype=float), b.sum(axis=0)
        n_pairs = moments.n_pairs.sum()
        scores, ridge = np.empty(data.n_documents), self.alpha * np.eye(data.n_features)
        A = np.empty_like(ridge)
        lower = np.tril_indices(data.n_features)
        for q in range(data.n_queries):
            rows = slice(data.offsets[q], data.offsets[q + 1])
            if n_pairs == moments.n_pairs[q]:
                raise ValueError(
                    f"query {data.qid[rows.start]} holds all preference pairs: "
                    "nothing is left to train on"
                )
            count = 1 if query_loss else n_pairs - moments.n_pairs[q]
            A[lower] = A.T[lower] = (square_sum - moments.packed[q]) / count
            w = solve_positive_definite(A + ridge, (b_sum - b[q]) / count)
            scores[rows] = data.X[rows] @ w
        return scores

    def default_grid(self, train: RankingData) -> Grid:
        """Return alpha = tr(G) / n_features · 10ᵏ, k = 1 … −5, for pairs; 2¹⁴ … 2⁻¹⁵ for the query loss.

        For pairs it has both targets, see `targets_to_try`.
        """
        if self.loss == "query":
            return [{"alpha": 2.0**k} for k in range(14, -16, -1)]
        train.require_moderate_values()
        scale = float(np.trace(PairMoments.of(train).gram)) / train.n_features
        if scale * 1e-5 < np.finfo(float).tiny:
            raise ValueError(
                f"{train.name}: the differences of the feature values within queries are too small "
                f"to square: the largest value, of any feature, is {np.abs(train.X).max():g}; "
                "scale the features, for instance by query_level_norm"
            )
        return [
            {"target": target, "alpha": scale * 10.0**k}
            for target in targets_to_try(self.target, train)
            for k in range(1, -6, -1)
        ]


def targets_to_try(usual: TargetName, train: RankingData) -> list[TargetName]:
    """Return the targets that a grid compares: the usual one, and the other one if the labels have three grades.

    `tune` takes the other one only if it ranks the validation queries better by more than one paired standard error:
    it gains where high grades are rare, and loses elsewhere. With two grades, both give the same rankings.
    """
    if len(np.unique(train.y)) < 3:
        return [usual]
    return [usual, "difference" if usual == "unit" else "unit"]


def _shared_moments(train: RankingData, masks: Masks, target: Target) -> tuple[Matrix, Matrix]:
    """Return the mean square and moment of the pairs that all individuals share."""
    if masks.of_unit("pair") is not None:
        pairs = ListedPairs.of(train, masks.shared, target)
        return pairs.gram, pairs.moment
    documents, queries = masks.of_unit("document"), masks.of_unit("query")
    if queries is not None:
        documents = np.repeat(queries, np.diff(train.offsets), axis=1)
    moments = PairMoments.of(train, None if documents is None else documents[0])
    return moments.gram, target.moment(moments)


@remembered
def _query_loss_system(data: RankingData) -> tuple[Matrix, Matrix]:
    """Return X̃ᵀX̃ and X̃ᵀỹ, where ~ centres in every query; remembered with the data."""
    check_square(data.n_features)
    stack, sums, _, label = centred(data, 0, data.n_queries)
    return square(stack), product(sums, label)


class CombinedRegressionRanking(LinearRanker):
    """Regression on the labels and on their differences at once.

    Minimises over w and the intercept b, with m documents and p preference pairs (i, j),

        (alpha / m) Σᵢ (wᵀxᵢ + b − yᵢ)² + ((1 − alpha) / p) Σ (wᵀ(xᵢ − xⱼ) − (yᵢ − yⱼ))² + ½ ridge ‖w‖².

    Parameters
    ----------
    alpha : float, default 0.5
        Share of the regression on labels, from 0 (only pairs) to 1 (only documents).
    ridge : float, default 1e-3
        The paper's λ, > 0.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    intercept_ : float
        b; ranking does not depend on it, and `predict` leaves it out. 0 where alpha = 0.

    Notes
    -----
    The paper descends this objective by stochastic gradients, on a random document with probability alpha and a
    random pair otherwise; here it is solved to rounding: one linear system, from Gram matrices that all entries of a
    grid share, O(m · n_features²) once. The paper's logistic loss is not implemented.

    The paper mentions no intercept. Without one the regression would have to spend weights on the mean label; the
    intercept is not regularised, and cancels in the pairs. A feature that is constant in every query could only tell
    queries apart, and has no weight. No grid is published; the grid of alpha and ridge is ours.

    References
    ----------
    D. Sculley: Combined regression and ranking. KDD 2010.

    Examples
    --------
    >>> from moerank.rankers.rank_rls import CombinedRegressionRanking
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> CombinedRegressionRanking().fit(X, y=[0, 1, 2], qid=0).predict(X).argsort().tolist()
    [0, 1, 2]
    """

    alpha: Annotated[float, partial(check_share, zero=True)] = 0.5
    ridge: Positive = 1e-3

    def default_grid(self, train: RankingData) -> Grid:
        """Return ridge = 10⁰ … 10⁻⁷, each with alpha = 0, 0.1, … 1."""
        return [{"ridge": 10.0**-k, "alpha": a / 10} for k in range(8) for a in range(11)]

    def _weights(self, train: RankingData) -> Matrix:
        pairs = PairMoments.of(train)
        gram, moment = _document_moments(train)
        A = self.alpha * gram + (1.0 - self.alpha) * pairs.gram
        rhs = self.alpha * moment + (1.0 - self.alpha) * TARGETS["difference"].moment(pairs)
        w = solve_positive_definite(plus_ridge(A, 0.5 * self.ridge), rhs)
        b = float(train.y.mean() - product(train.X64.mean(axis=0), w))
        self.intercept_ = b if self.alpha > 0 else 0.0
        return w


@remembered
def _document_moments(train: RankingData) -> tuple[Matrix, Matrix]:
    """Return the covariances of the features, and with the label, over all documents; remembered."""
    X = train.X64 - train.X64.mean(axis=0)
    return square(X.T) / len(X), product(X.T, train.y - train.y.mean()) / len(X)

"""AdaRank: boosting of single features that raises a ranking measure itself (Xu and Li, 2007)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from moerank.arrays import Matrix
from moerank.checks import Count, NotNegative
from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, NDCG, Metric, as_metric
from moerank.rankers.base import Grid, LinearRanker

MEASURES = {"map": MAP(), "ndcg": NDCG(10, convention="letor", short_queries="own_length")}
Reweighting = Literal["combined", "cumulative", "weak"]
# Σ P (1 − E) counts as at least this: α of a feature that ranks every query perfectly would be infinite.
LEAST_ERROR = 1e-10


class Round(NamedTuple):
    """A round of boosting."""

    query_weights: Matrix
    feature: int
    alpha: float
    values: Matrix


@dataclass(eq=False, repr=False)
class AdaRank(LinearRanker):
    """Boosting of features by a ranking measure E(q, f), the value of query q ranked by f.

    The weights P of the queries start equal. Round t takes the feature h_t with the largest Σ_q P_t(q) E(q, h_t), as it
    is, adds it to the ranker, f_t = f_{t−1} + α_t h_t, and weighs the queries anew by how well f_t ranks them:

        α_t = ½ ln(Σ P_t(q) (1 + E(q, h_t)) / Σ P_t(q) (1 − E(q, h_t))),
        P_{t+1}(q) = exp(−E(q, f_t)) / Σ exp(−E(·, f_t)).

    Parameters
    ----------
    measure : {"map", "ndcg"}, Metric or its name, default "map"
        E: average precision, or NDCG@10 with LETOR's discount, for shorter queries at their own length; "NDCG@10" is
        LETOR's throughout.
    n_rounds : int, default 500
        Largest number of rounds, at least 1.
    reweighting : {"combined", "cumulative", "weak"}, default "combined"
        P as above, which is the paper's; or one of two that remember earlier rounds, and so come to more different
        features: P_{t+1}(q) ∝ P_t(q) exp(−α_t E(q, f_t)), RankLib's, and P_{t+1}(q) ∝ P_t(q) exp(−α_t E(q, h_t)),
        AdaBoost's, which looks at the feature of the round alone.
    max_consecutive : int, optional
        A feature taken so many times in a row is passed over in the next round. None: never, as in the paper.
    tol : float, optional
        Ends before a round that lowers the mean of the training measure by more than this. None: never.
    both_directions : bool, default False
        Whether a feature may be turned round, so that small values rank high.

    Attributes
    ----------
    features_ : ndarray of int, shape (n_rounds_,)
        The column of X that each round takes.
    alphas_ : ndarray, shape (n_rounds_,)
        α of each round, negative for a feature turned round.
    train_scores_ : ndarray, shape (n_rounds_,)
        Mean of the training measure after each round.
    path_coefs_ : ndarray, shape (n_rounds_, n_features)
        The ranker after each round.
    coef_ : ndarray, shape (n_features,)
        The ranker after the last round: the sum of α of each feature.
    n_rounds_ : int
        Rounds there were. Fewer than asked for where `tol` ends the training, where no feature ranks anything right,
        or where the only feature so far is taken again by the weights that it led to: no further round could change
        the ranking then.
    support_ : ndarray of bool, shape (n_features,)

    Notes
    -----
    The measure of every feature is computed once; a round takes O(n_queries · n_features) and one evaluation of the
    combined ranker. 1 − mean E ≤ Π_t e^{−δ_t} √(1 − (Σ P_t E(·, h_t))²) bounds the training error for "combined", with
    δ_t the least over queries of E(q, f_t) − E(q, f_{t−1}) − α_t E(q, h_t) and E(q, f_0) = 0; δ_t may be negative, so
    the error need not fall. Queries without a relevant document have E = 0, whatever the ranking.

    References
    ----------
    J. Xu, H. Li: AdaRank: a boosting algorithm for information retrieval. SIGIR, 2007.

    Examples
    --------
    >>> from moerank.rankers.ada_rank import AdaRank
    >>> X = [[0.3, 0.1], [0.2, 0.5], [0.1, 0.4], [0.1, 0.9], [0.6, 0.2], [0.3, 0.1], [0.4, 0.3]]
    >>> ranker = AdaRank(n_rounds=5).fit(X, y=[1, 1, 0, 1, 0, 0, 1], qid=[1, 1, 1, 2, 2, 3, 3])
    >>> ranker.features_.tolist(), ranker.train_scores_.round(2).tolist()
    ([1], [0.94])
    """

    measure: str | Metric = "map"
    n_rounds: Count = 500
    reweighting: Reweighting = "combined"
    max_consecutive: Count | None = None
    tol: NotNegative | None = None
    both_directions: bool = False

    _size = "n_rounds"

    def default_grid(self, train: RankingData) -> Grid:
        """Return every form of `reweighting` with every number of rounds up to `n_rounds`."""
        sizes = range(1, self.n_rounds + 1)
        return [{"n_rounds": size, "reweighting": form} for size in sizes for form in get_args(Reweighting)]

    def _weights(self, train: RankingData) -> Matrix:
        rounds = list(self._rounds(train))
        self.n_rounds_ = len(rounds)
        turned, features = np.divmod(np.array([r.feature for r in rounds], dtype=np.int64), train.n_features)
        self.features_ = np.flatnonzero(self.varying_)[features]
        self.alphas_ = np.array([r.alpha for r in rounds]) * (1 - 2 * turned)
        self.train_scores_ = np.array([r.values.mean() for r in rounds])
        steps = np.zeros((max(self.n_rounds_, 1), train.n_features))
        steps[np.arange(self.n_rounds_), features] = self.alphas_
        coefs = np.cumsum(steps, axis=0)
        self.path_coefs_ = self._everywhere(coefs)
        last: Matrix = coefs[-1]
        return last

    def _rounds(self, train: RankingData) -> Iterator[Round]:
        """Yield the rounds of boosting on data all of whose features vary."""
        measure = self._measure()
        columns = np.hstack([train.X64, -train.X64]) if self.both_directions else train.X64
        values = measure.per_query(train, columns)
        P = np.full(train.n_queries, 1.0 / train.n_queries)
        w = np.zeros(train.n_features)
        taken: list[int] = []
        last = -np.inf
        for _ in range(self.n_rounds):
            quality = (P[:, None] * values).sum(axis=0)
            passed = self._passed_over(taken)
            quality[passed] = 0.0
            feature = int(np.argmax(quality))
            stuck = self.reweighting == "combined" and set(taken) == {feature} and self.max_consecutive is None
            if quality[feature] <= 0.0 or stuck:
                break
            e = quality[feature]
            alpha = 0.5 * math.log((1.0 + e) / max(1.0 - e, LEAST_ERROR))
            turned, column = divmod(feature, train.n_features)
            w[column] += alpha * (1 - 2 * turned)
            reached = measure.per_query(train, linear_scores(train.X, w[None])[:, 0])
            if self.tol is not None and reached.mean() < last - self.tol:
                break
            yield Round(P, feature, alpha, reached)
            taken.append(feature)
            last = reached.mean()
            P = self._reweighted(P, alpha, reached, values[:, feature])

    def _reweighted(self, P: Matrix, alpha: float, combined: Matrix, weak: Matrix) -> Matrix:
        """Return the next weights of the queries; `combined` and `weak` are E of the ranker and of its last feature."""
        if self.reweighting == "combined":
            P = np.exp(-combined)
        else:
            P = P * np.exp(-alpha * (combined if self.reweighting == "cumulative" else weak))
        return np.asarray(P / P.sum())

    def _passed_over(self, taken: list[int]) -> list[int]:
        """Return the feature, if any, that was taken as often in a row as is allowed."""
        if self.max_consecutive is None:
            return []
        recent = taken[-self.max_consecutive :]
        return recent[:1] if len(recent) == self.max_consecutive and len(set(recent)) == 1 else []

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        return linear_scores(X, self.path_coefs_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._measure()

    def _measure(self) -> Metric:
        convention = MEASURES.get(self.measure) if isinstance(self.measure, str) else None
        return convention or as_metric(self.measure, name="measure")

"""Boosting: RankBoost and FRank of decision stumps on preference pairs, AdaRank of features by a ranking measure."""

import math
from collections import deque
from collections.abc import Iterator
from itertools import repeat
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Floats, Integers, Matrix, Vector
from moerank.checks import Count
from moerank.data import RankingData, remembered
from moerank.kernels.losses import best_stump, pair_weights, split_weight
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, NDCG, Metric, as_metric
from moerank.rankers.base import Grid, LinearRanker, Ranker
from moerank.rankers.model import Forest
from moerank.training.bins import in_single, thresholds

# Neighbours on each side that count, but at most a tenth of all values.
REACH = 10


def steadied(values: Vector) -> Vector:
    """Return the mean of each value and its neighbours, up to ten on each side and a tenth of all, shape (n_sizes,).

    On few queries the metric of a boosted ranker jumps from round to round. It is often highest in the first rounds,
    because one of them moves many documents at once. Near the ends only existing neighbours count, so that an end value
    has no more weight than any other.

    >>> values = np.array([0.9, 0.1, 0.1, 0.5, 0.6, 0.5, 0.1, 0.1, 0.1, 0.1])
    >>> int(values.argmax()), int(steadied(values).argmax())
    (0, 4)
    """
    reach = min(REACH, len(values) // 10)
    means = np.empty(len(values))
    for i, value in enumerate(values):
        window = values[max(0, i - reach) : i + reach + 1]
        # As differences, so that equal values have the same mean to the bit, however many they are.
        means[i] = value + (window - value).mean()
    return means


class TrailingMean:
    """The mean of a metric over the last 21 rounds, as many as `steadied` looks at.

    A training that stops by it ignores the spikes of single rounds. The first 20 values are negative and rise, so that
    no training stops there.
    """

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._values: deque[float] = deque(maxlen=2 * REACH + 1)

    def __call__(self, data: RankingData, scores: Vector) -> float:
        """Add the metric of these scores for the documents of `data`, and return the mean."""
        self._values.append(float(self._metric.score(data, scores)))
        n_missing = 2 * REACH + 1 - len(self._values)
        return -float(n_missing) if n_missing else float(np.mean(self._values))


# Below this total the weights of the pairs lose digits: every pair is in the right order by far.
MIN_TOTAL_WEIGHT = 1e-250


class StumpBoosting(Ranker):
    """Base of the rankers that add up stumps, each fitted to preference pairs that its predecessors weigh.

    The score of a document is Σ_t α_t h_t(x), h_t(x) = 1 if feature f_t of x is above the threshold θ_t, else 0. The
    stump with the largest r = Σ D(i, j) (h(xᵢ) − h(xⱼ)) under the weights D of the pairs comes next. A subclass says
    in `_fidelity` which loss gives the weights, implements `_step`, the α of a stump, and may implement `_importance`.
    """

    n_rounds: Count = 300
    n_thresholds: Count | None = 10

    _size = "n_rounds"
    _scale_free = True
    _steadied = staticmethod(steadied)
    _fidelity: ClassVar[bool]

    def default_grid(self, train: RankingData) -> Grid:
        """Return every number of rounds up to `n_rounds`: validation data choose among them, as in LETOR.

        `tune` compares means over ten rounds on each side, not single rounds; see `steadied`.
        """
        return [{"n_rounds": size} for size in range(1, self.n_rounds + 1)]

    def _step(self, right_share: float, wrong_share: float, min_share: float) -> float:
        """Return α of a stump that orders these shares of the weight rightly and wrongly.

        `min_share`, the average share of one pair, is the smallest share that counts, so that α is finite.
        """
        raise NotImplementedError

    def _importance(self, train: RankingData) -> Matrix:
        """Return the factors (n_documents,) for the weights of the pairs of each better document."""
        return np.ones(train.n_documents)

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        train = train.with_features(self.varying_)
        bins, n_thresholds, cuts = _bins(train, self.n_thresholds)
        importance = self._importance(train)
        groups, n_pairs = train.pairs.groups, len(train.pairs)
        weights = np.empty(n_pairs)
        scores, potentials = np.zeros((2, train.n_documents))
        stumps = []
        for _ in range(self.n_rounds):
            total = pair_weights(groups, scores, importance, self._fidelity, weights, potentials)
            if total < MIN_TOTAL_WEIGHT:
                break
            feature, b, r = best_stump(bins, n_thresholds, potentials, total)
            if r == 0.0:
                break
            above = bins[feature] > b
            right_weight, wrong_weight = split_weight(groups, weights, above)
            shares = right_weight / total, wrong_weight / total
            alpha = self._step(*shares, min_share=1.0 / n_pairs)
            scores[above] += alpha
            stumps.append((feature, cuts[feature, b], alpha, *shares))
        self.n_rounds_ = len(stumps)
        columns = np.array(stumps).reshape(-1, 5).T
        self.features_ = np.flatnonzero(self.varying_)[columns[0].astype(np.int64)]
        self.thresholds_, self.alphas_, self.right_, self.wrong_ = columns[1:].copy()
        self.support_ = np.isin(np.arange(self.n_features_in_), self.features_)

    def _scores(self, X: Matrix) -> Matrix:
        return self.forest_.scores(X)

    @property
    def forest_(self) -> Forest:
        """The stumps as trees of two leaves, 0 and α."""
        features, thresholds = self.features_.tolist(), self.thresholds_.tolist()
        return Forest.of(zip(features, thresholds, repeat(0.0), self.alphas_.tolist()))

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        steps = self.alphas_ * (X[:, self.features_] > self.thresholds_)
        return np.cumsum(steps, axis=1) if self.n_rounds_ else np.zeros((len(X), 1))


@remembered
def _bins(
    train: RankingData, n_thresholds: int | None
) -> tuple[NDArray[np.int32], Integers, Vector]:
    """Return bins (n_features, n_documents), numbers of thresholds, and thresholds of the features; remembered.

    A bin is the number of thresholds below a value. `n_thresholds` levels divide the range of a feature into as many
    equal parts, from its minimum on. A threshold lies in the middle between the two values around a level, or around
    the next level above it that single precision tells apart; None takes all of them, see `training.bins.thresholds`.
    Rows of fewer thresholds are filled up with infinity.
    """
    single_values = in_single(train.X, train.scaling)
    lists = list(map(_stump_thresholds, train.X64.T, single_values.T, repeat(n_thresholds)))
    table = np.full((len(lists), max(map(len, lists))), np.inf)
    bins = np.empty((len(lists), train.n_documents), np.int32)
    for f, values in enumerate(lists):
        table[f, : len(values)] = values
        bins[f] = np.searchsorted(values, train.X64[:, f], side="left")
    return bins, np.array([len(values) for values in lists]), table


def _stump_thresholds(column: Vector, single_values: Floats, n_thresholds: int | None) -> Vector:
    middles = thresholds(column, len(column), single_values)
    if n_thresholds is None:
        return middles
    levels = column.min() + np.ptp(column) * (np.arange(n_thresholds) / n_thresholds)
    ordered = np.sort(column)
    n_below_middles = np.searchsorted(ordered, middles, side="right")
    n_below_levels = np.searchsorted(ordered, levels, side="right")
    index = np.unique(np.searchsorted(n_below_middles, n_below_levels))
    return middles[index[index < len(middles)]]


class RankBoost(StumpBoosting):
    """Boosting of stumps on the exponential loss Σ exp(s(xⱼ) − s(xᵢ)) over the preference pairs (i, j).

    The weights D of the pairs start equal, with sum 1. Round t takes the stump h(x) = [x_f > θ] with the largest
    r = Σ D(i, j) (h(xᵢ) − h(xⱼ)), adds α h to the score, and weighs the pairs anew:

        α = ½ ln((1 + r) / (1 − r)),   D ← D exp(α (h(xⱼ) − h(xᵢ))) / Z.

    Parameters
    ----------
    n_rounds : int, default 300
        Number of stumps, at least 1.
    n_thresholds : int or None, default 255
        Levels per feature, at equal distances from its minimum up; the threshold is the middle between the values
        around a level. None takes the middles between all values. LETOR's results are with 255 (Liu 2011); RankLib
        takes 10.

    Attributes
    ----------
    features_ : ndarray of int, shape (n_rounds_,)
        The column of X that the stump of each round looks at.
    thresholds_, alphas_ : ndarray, shape (n_rounds_,)
        Threshold θ and weight α of each stump.
    right_, wrong_ : ndarray, shape (n_rounds_,)
        Weight of the pairs that the stump orders rightly and wrongly; r is the difference.
    n_rounds_ : int
        Number of rounds: fewer than `n_rounds` if no stump has a positive r.
    support_ : ndarray of bool, shape (n_features,)
        Features that some stump looks at.

    Notes
    -----
    O(n_pairs + n_documents · n_features) per round. There is no threshold below the minimum of a feature: its
    stump is constant, and only helps with missing values, which are refused here. 1 − r counts as at least 1 / n_pairs,
    so that α is finite. Ties go to the first feature, then to the lowest threshold. `tune` averages the validation
    values over up to ten numbers of rounds on each side, and takes the best: a single round that happens to be good on
    few validation queries, often the first, decides nothing.

    References
    ----------
    Y. Freund, R. Iyer, R. E. Schapire, Y. Singer: An efficient boosting algorithm for combining preferences. Journal
    of Machine Learning Research 4, 2003.

    T.-Y. Liu: Learning to rank for information retrieval. Springer, 2011, chapter 11.

    Examples
    --------
    >>> from moerank.rankers.boosting import RankBoost
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> ranker = RankBoost(n_rounds=2).fit(X, y=[0, 1, 2], qid=0)
    >>> ranker.predict(X).argsort().tolist(), ranker.features_.tolist()
    ([0, 1, 2], [0, 0])
    """

    n_thresholds: Count | None = 255

    _fidelity = False

    def _step(self, right_share: float, wrong_share: float, min_share: float) -> float:
        r = right_share - wrong_share
        return 0.5 * math.log(max(1.0 + r, min_share) / max(1.0 - r, min_share))


class FRank(StumpBoosting):
    """Boosting of stumps on the fidelity loss of the probabilities that pairs are in the right order.

    The loss, over the preference pairs (i, j) ∈ P_q of each query q, with the margin o = s(xᵢ) − s(xⱼ), is

        J = Σ_q 1/|P_q| Σ 1 − √(1 / (1 + e^−o)).

    A pair costs at most 1, however wrong its order is, and all queries have the same weight. Round t weighs the
    pairs by W = e^−o / (1 + e^−o)^(3/2) / |P_q|, twice the slope of J, takes the stump h(x) = [x_f > θ] with the
    largest Σ W (h(xᵢ) − h(xⱼ)) = W₊ − W₋, and adds α h to the score:

        α = ½ ln(W₊ / W₋),   W₊ the weight of pairs with h(xᵢ) > h(xⱼ), W₋ of those with h(xᵢ) < h(xⱼ).

    Parameters
    ----------
    n_rounds, n_thresholds
        As in `RankBoost`; 10 thresholds are the default.

    Attributes
    ----------
    features_, thresholds_, alphas_, support_
        As in `RankBoost`.
    right_, wrong_ : ndarray, shape (n_rounds_,)
        W₊ and W₋ of each stump, as shares of the weight of all pairs.
    n_rounds_ : int
        Number of rounds: fewer than `n_rounds` if no stump has W₊ > W₋.

    Notes
    -----
    O(n_pairs + n_documents · n_features) per round. J never grows: ln W has a slope between −1 and ½ in o, so the
    weights behind W₊ fall no faster than e^−a as α grows from 0 to a, those behind W₋ rise no faster than e^a, and a
    round takes at least ½ (√W₊ − √W₋)² off J. An empty W₋ counts as one pair of average weight, so that α is finite.
    The paper compares stumps by J after their step, which needs W₊ and W₋ of every stump, O(n_pairs ·
    n_features) a round; the largest W₊ − W₋ is the steepest descent. Ties go to the first feature, then to the lowest
    threshold.

    References
    ----------
    M.-F. Tsai, T.-Y. Liu, T. Qin, H.-H. Chen, W.-Y. Ma: FRank: a ranking method with fidelity loss. SIGIR, 2007.

    Examples
    --------
    >>> from moerank.rankers.boosting import FRank
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> ranker = FRank(n_rounds=2).fit(X, y=[0, 1, 2], qid=0)
    >>> ranker.predict(X).argsort().tolist(), ranker.features_.tolist()
    ([0, 1, 2], [0, 0])
    """

    _fidelity = True

    def _step(self, right_share: float, wrong_share: float, min_share: float) -> float:
        return 0.5 * math.log(max(right_share, min_share) / max(wrong_share, min_share))

    def _importance(self, train: RankingData) -> Matrix:
        return np.repeat(1.0 / np.maximum(train.label_runs.n_pairs_of, 1), np.diff(train.offsets))


MEASURES: dict[object, Metric] = {
    "map": MAP(),
    "ndcg": NDCG(10, convention="letor", short_queries="own_length"),
}
Reweighting = Literal["combined", "cumulative", "weak"]
# Σ P (1 − E) counts as at least this, or α of a feature that ranks every query perfectly would be infinite.
MIN_ERROR = 1e-10


class AdaRank(LinearRanker):
    """Boosting of features by a ranking measure E(q, f), the value of query q ranked by f.

    The weights P of the queries start equal. Round t takes the feature h_t with the largest Σ_q P_t(q) E(q, h_t), as it
    is, adds it to the ranker, f_t = f_{t−1} + α_t h_t, and weighs the queries anew by how well f_t ranks them:

        α_t = ½ ln(Σ P_t(q) (1 + E(q, h_t)) / Σ P_t(q) (1 − E(q, h_t))),
        P_{t+1}(q) = exp(−E(q, f_t)) / Σ exp(−E(·, f_t)).

    Parameters
    ----------
    measure : {"map", "ndcg"}, Metric or its name, default "map"
        E: "map" is average precision; "ndcg" is NDCG@10 with LETOR's discount, and in shorter queries NDCG at their
        own length. "NDCG@10" follows LETOR throughout.
    n_rounds : int, default 500
        Largest number of rounds, at least 1.
    reweighting : {"combined", "cumulative", "weak"}, default "combined"
        "combined" is P as above, by the paper. The others remember earlier rounds, and so use more features:
        "cumulative" is RankLib's P_{t+1}(q) ∝ P_t(q) exp(−α_t E(q, f_t)), and "weak" is AdaBoost's
        P_{t+1}(q) ∝ P_t(q) exp(−α_t E(q, h_t)), which depends on the feature of the round only.

    Attributes
    ----------
    features_ : ndarray of int, shape (n_rounds_,)
        The column of X that each round takes.
    alphas_ : ndarray, shape (n_rounds_,)
        α of each round.
    train_scores_ : ndarray, shape (n_rounds_,)
        Mean of the training measure after each round.
    path_coefs_ : ndarray, shape (n_rounds_, n_features)
        The ranker after each round.
    coef_ : ndarray, shape (n_features,)
        The ranker after the last round: the sum of α of each feature.
    n_rounds_ : int
        Number of rounds: fewer than `n_rounds` if no feature has a positive value of E, or if "combined" would take the
        only feature so far again, because no further round could then change the ranking.
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
    >>> from moerank.rankers.boosting import AdaRank
    >>> X = [[0.3, 0.1], [0.2, 0.5], [0.1, 0.4], [0.1, 0.9], [0.6, 0.2], [0.3, 0.1], [0.4, 0.3]]
    >>> ranker = AdaRank(n_rounds=5).fit(X, y=[1, 1, 0, 1, 0, 0, 1], qid=[1, 1, 1, 2, 2, 3, 3])
    >>> ranker.features_.tolist(), ranker.train_scores_.round(2).tolist()
    ([1], [0.94])
    """

    measure: str | Metric = "map"
    n_rounds: Count = 500
    reweighting: Reweighting = "combined"

    _size = "n_rounds"

    def default_grid(self, train: RankingData) -> Grid:
        """Return every form of `reweighting` with every number of rounds up to `n_rounds`."""
        return [
            {"n_rounds": size, "reweighting": form}
            for size in range(1, self.n_rounds + 1)
            for form in get_args(Reweighting)
        ]

    def _weights(self, train: RankingData) -> Matrix:
        rounds = np.array(list(self._rounds(train))).reshape(-1, 3)
        self.n_rounds_ = len(rounds)
        features = rounds[:, 0].astype(np.int64)
        self.features_ = np.flatnonzero(self.varying_)[features]
        self.alphas_, self.train_scores_ = rounds[:, 1:].T.copy()
        steps = np.zeros((max(self.n_rounds_, 1), train.n_features))
        steps[np.arange(self.n_rounds_), features] = self.alphas_
        coefs = np.cumsum(steps, axis=0)
        self.path_coefs_ = self._everywhere(coefs)
        return coefs[-1]

    def _rounds(self, train: RankingData) -> Iterator[tuple[int, float, float]]:
        """Yield the feature, α and the mean training measure of each round, on data all of whose features vary."""
        usual = MEASURES.get(self.measure) if isinstance(self.measure, str) else None
        measure = usual or as_metric(self.measure, name="measure")
        values = measure.per_query(train, train.X64)
        P = np.full(train.n_queries, 1.0 / train.n_queries)
        w = np.zeros(train.n_features)
        for _ in range(self.n_rounds):
            quality = (P[:, None] * values).sum(axis=0)
            feature = int(np.argmax(quality))
            stuck = self.reweighting == "combined" and np.flatnonzero(w).tolist() == [feature]
            if quality[feature] <= 0.0 or stuck:
                break
            alpha = 0.5 * math.log(
                (1.0 + quality[feature]) / max(1.0 - quality[feature], MIN_ERROR)
            )
            w[feature] += alpha
            combined = measure.per_query(train, linear_scores(train.X, w[None])[:, 0])
            yield feature, alpha, combined.mean()
            if self.reweighting == "combined":
                P = np.exp(-combined)
            else:
                weak = values[:, feature]
                P = P * np.exp(-alpha * (combined if self.reweighting == "cumulative" else weak))
            P = P / P.sum()

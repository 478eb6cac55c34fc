"""FSMRankSubgradient and FSM-SVM, the baselines of the paper on FSMRank (Lai et al., 2013)."""

from collections.abc import Sequence
from itertools import product
from typing import Self

import numpy as np

from moerank.arrays import Integers, Matrix
from moerank.checks import Count, NotNegative, Parameters, Positive
from moerank.data import RankingData
from moerank.kernels.run_pass import RESIDUALS
from moerank.kernels.scores import linear_scores
from moerank.metrics import Metric
from moerank.rankers.base import Grid
from moerank.rankers.fsm_rank import FSMRank, measures_of, weights_of
from moerank.rankers.importance import FeatureImportance, FeatureSimilarity, feature_importance
from moerank.rankers.selection import LargestWeightsPath
from moerank.selectors.filter import Filter
from moerank.training.masks import Masks
from moerank.training.pair_loss import SQUARED_HINGE
from moerank.training.pairs import CountedPairs


class FSMRankSubgradient(LargestWeightsPath):
    """The objective of `FSMRank`, minimised by projected sub-gradient steps instead of accelerated ones.

    With F the objective of problem (2) over the non-negative variables w = [u; v] of the weights u − v, from w = 0,

        w ← max(0, w − η₀ / √t · ∇F(w))   for t = 1 … max_iter

    A step may raise F; the best of all points counts.

    Parameters
    ----------
    lambda1, lambda2, importance, similarity, convex
        As in `FSMRank`.
    eta0 : float, default 0.3
        Length of the first step, η₀ > 0.
    max_iter : int, default 400
        Number of steps.

    Attributes
    ----------
    coef_, support_
        As in `FSMRank`.
    variables_ : ndarray, shape (2 * n_features,)
        The best point [u; v].
    n_iter_ : int
        Number of steps, `max_iter`.
    objectives_ : ndarray, shape (max_iter + 1,)
        The objective at the start and after each step.

    Notes
    -----
    O(p + n_documents · n_features + n_features²) per step for p pairs. The error is O(1 / √max_iter), while
    FSMRank's is O(1 / max_iter²). The paper gives neither the length nor the number of its steps. The entries of a grid
    are solved together.

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, R. Yu: FSMRank: feature selection algorithm for learning to rank. IEEE Transactions on
    Neural Networks and Learning Systems 24, 2013, section IV-E.

    Examples
    --------
    >>> from moerank.selectors.fsm import FSMRankSubgradient
    >>> X = [[0.0, 0.6], [0.5, 0.4], [1.0, 0.6], [0.2, 0.4]]
    >>> FSMRankSubgradient(lambda2=0.1).fit(X, y=[0, 1, 2, 0], qid=0).support_.tolist()
    [True, False]
    """

    lambda1: NotNegative = 1e-3
    lambda2: NotNegative = 1e-3
    eta0: Positive = 0.3
    max_iter: Count = 400
    importance: FeatureImportance = "pearson"
    similarity: FeatureSimilarity = "pearson"
    convex: bool = True

    _trained_together = ("lambda1", "lambda2", "eta0")
    _remedy = "no step has a lower objective than no features: lower eta0 or lambda2, or scale the features"

    def default_grid(self, train: RankingData) -> Grid:
        """Return lambda1 and lambda2 in 10⁻⁶ … 10⁰, each with eta0 = 1, 10⁻¹, 10⁻² and 10⁻³: 196 entries.

        FSMRank's grid also has half powers of ten; here there is one more parameter to choose.
        """
        powers = [10.0**k for k in range(0, -7, -1)]
        entries = product(powers, powers, powers[:4])
        return [{"lambda1": lambda1, "lambda2": lambda2, "eta0": eta0} for lambda2, lambda1, eta0 in entries]

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        variables, history = _minimise(train, [self])
        self.variables_, self.objectives_ = variables[0], history[:, 0].copy()
        self.n_iter_ = self.max_iter
        self._set_weights(weights_of(variables)[0])

    def _candidate_scores(self, train: RankingData, validation: RankingData, candidates: list[Self]) -> Matrix:
        return linear_scores(validation.X, weights_of(_minimise(train, candidates)[0]))


def _minimise(train: RankingData, rankers: Sequence[FSMRankSubgradient]) -> tuple[Matrix, Matrix]:
    """Train rankers that differ only in lambda1, lambda2 and eta0.

    Returns their variables (n_rankers, 2 n_features) and histories (max_iter + 1, n_rankers).
    """
    pairs, one, n = CountedPairs.of(train), rankers[0], len(rankers)
    s, A, cost = measures_of(train, one)
    values = np.array([(ranker.lambda1, ranker.lambda2, ranker.eta0) for ranker in rankers], np.float64)
    lambda1, lambda2, eta0 = values.T[:, :, None]
    masks, tasks = Masks(np.tile(s > 0, (n, 1))), np.full(n, RESIDUALS)
    w = best = np.zeros((n, 2 * len(s)))
    history = np.empty((one.max_iter + 1, n))
    for step in range(one.max_iter + 1):
        u, v = np.hsplit(w, 2)
        size, W = u + v, u - v
        sums, slack = pairs.sums(SQUARED_HINGE, np.float64, tasks, masks, W, np.zeros_like(W))
        similar = lambda1 * np.einsum("fg,ng->nf", A, size)
        with np.errstate(over="ignore", invalid="ignore"):  # where steps diverge, the best ones before them stay
            loss = (slack - (W * sums).sum(axis=1)) / train.n_pairs
            history[step] = loss + (size * (0.5 * similar + lambda2 * cost)).sum(axis=1)
        best = np.where((history[step] == np.fmin.reduce(history[: step + 1]))[:, None], w, best)
        rise, pull = similar + lambda2 * cost, 2.0 / train.n_pairs * sums
        stepped = w - eta0 / np.sqrt(step + 1.0) * np.hstack([rise - pull, rise + pull])
        w = np.where(np.tile(s > 0, 2), stepped.clip(0.0), 0.0)
    return best, history


class FSMSVM(Filter):
    """Order the features by FSMRank, then train RankSVM on the first ones.

    The order is that of |w|, with w the minimum of FSMRank's objective

        (1 / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))² + ½ lambda1 |w|ᵀA|w| + lambda2 Σ |wᵢ| / sᵢ

    Parameters
    ----------
    n_features_to_select, ranker
        As in `moerank.selectors.filter.Filter`.
    lambda1, lambda2 : float, optional
        As in `FSMRank`, ≥ 0. `tune` first chooses those that are None, as FSMRank itself would on the validation data,
        then the number of features and the ranker. Without `tune`, None means FSMRank's default.

    Attributes
    ----------
    order_, support_, population_, coef_
        As in `moerank.selectors.filter.Filter`.

    Notes
    -----
    It trains one FSMRank and one ranker. Features without a weight follow those with one, by importance.

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, R. Yu: FSMRank: feature selection algorithm for learning to rank. IEEE Transactions on
    Neural Networks and Learning Systems 24, 2013, section V.

    Examples
    --------
    >>> X = [[0.0, 0.6], [0.5, 0.4], [1.0, 0.6], [0.2, 0.4]]
    >>> FSMSVM(1).fit(X, y=[0, 1, 2, 0], qid=0).order_.tolist()
    [0, 1]
    """

    lambda1: NotNegative | None = None
    lambda2: NotNegative | None = None

    def _settled(self, train: RankingData, validation: RankingData, metric: Metric) -> Parameters:
        first = self._first_stage()
        open_ = [name for name in ("lambda1", "lambda2") if getattr(self, name) is None]
        entries = [{name: entry[name] for name in open_} for entry in first.default_grid(train)]
        chosen = first.tune(train, validation, list({repr(entry): entry for entry in entries}.values()), metric)
        return {name: getattr(chosen, name) for name in open_}

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        return np.lexsort((-feature_importance(train), -np.abs(self._first_stage().fit_population(train)[0])))

    def _first_stage(self) -> FSMRank:
        given = {name: getattr(self, name) for name in ("lambda1", "lambda2")}
        return FSMRank(**{name: value for name, value in given.items() if value is not None})

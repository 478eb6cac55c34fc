"""FRank: stumps that minimise the fidelity loss of preference pairs (Tsai et al., 2007)."""

from __future__ import annotations

import math

import numpy as np

from moerank.data import RankingData
from moerank.kernels.stumps import fidelity_weights
from moerank.rankers.base import Matrix
from moerank.rankers.stump_boosting import StumpBoosting

__all__ = ["FRank"]


class FRank(StumpBoosting):
    """Boosting of stumps on the fidelity loss of the probabilities that pairs are in the right order.

    The loss, over the preference pairs (i, j) ∈ P_q of each query q, with the margin o = s(xᵢ) − s(xⱼ), is

        J = Σ_q 1/|P_q| Σ 1 − √(1 / (1 + e^−o)).

    A pair counts for at most 1, however far it is in the wrong order, and every query for the same. Round t weighs the
    pairs by W = e^−o / (1 + e^−o)^(3/2) / |P_q|, twice the slope of J, takes the stump h(x) = [x_f > θ] with the
    largest Σ W (h(xᵢ) − h(xⱼ)) = W₊ − W₋, and adds α h to the score:

        α = ½ ln(W₊ / W₋),   W₊ the weight of pairs with h(xᵢ) > h(xⱼ), W₋ of those with h(xᵢ) < h(xⱼ).

    Parameters
    ----------
    n_rounds : int, default 300
        Number of stumps, at least 1.
    n_thresholds : int or None, default 10
        Thresholds per feature, at equal distances from its minimum up; None takes every value of it.
    reversed_stumps : bool, default False
        Whether a stump with W₋ > W₊, which prefers small values, is as good as one with W₊ > W₋.

    Attributes
    ----------
    features_ : ndarray of int, shape (n_rounds_,)
        The column of X that the stump of each round looks at.
    thresholds_, alphas_ : ndarray, shape (n_rounds_,)
        Threshold θ and weight α of each stump.
    right_, wrong_ : ndarray, shape (n_rounds_,)
        W₊ and W₋ of each stump, as shares of the weight of all pairs.
    n_rounds_ : int
        Rounds there were: fewer than asked for if no stump has W₊ > W₋.
    support_ : ndarray of bool, shape (n_features,)
        Features that some stump looks at.

    Notes
    -----
    O(n_pairs + n_documents · n_features) per round. J never grows: ln W has a slope between −1 and ½ in o, so the
    weights behind W₊ fall no faster than e^−a as α grows from 0 to a, those behind W₋ rise no faster than e^a, and a
    round takes at least ½ (√W₊ − √W₋)² off J. An empty W₋ counts as one pair of average weight, so that α is finite.
    The paper compares stumps by J after their step, which would take W₊ and W₋ of every stump, O(n_pairs · n_features)
    a round; the largest W₊ − W₋ is the steepest descent. Equal stumps: the first feature, then the lowest threshold.

    References
    ----------
    M.-F. Tsai, T.-Y. Liu, T. Qin, H.-H. Chen, W.-Y. Ma: FRank: a ranking method with fidelity loss. SIGIR, 2007.

    Examples
    --------
    >>> from moerank.rankers.f_rank import FRank
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> ranker = FRank(n_rounds=2).fit(X, y=[0, 1, 2])
    >>> ranker.predict(X).argsort().tolist(), ranker.features_.tolist()
    ([0, 1, 2], [0, 0])
    """

    _weigh = staticmethod(fidelity_weights)

    def _step(self, right: float, wrong: float, least: float) -> float:
        return 0.5 * math.log(max(right, least) / max(wrong, least))

    def _importance(self, train: RankingData) -> Matrix:
        pairs = train.pairs
        query = np.searchsorted(train.offsets, np.arange(train.n_documents), side="right") - 1
        n_pairs = np.bincount(query[pairs.better], minlength=train.n_queries)
        return 1.0 / np.maximum(n_pairs, 1)[query]

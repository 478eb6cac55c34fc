"""RankBoost: stumps that minimise the exponential loss of preference pairs (Freund et al., 2003)."""

from __future__ import annotations

import math

import numpy as np

from moerank.kernels.stumps import exponential_weights
from moerank.rankers.base import Matrix
from moerank.rankers.stump_boosting import StumpBoosting

__all__ = ["RankBoost"]


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
        Thresholds per feature, at equal distances from its minimum up; None takes every value of it. LETOR's results
        are with 255 (Liu 2011); RankLib takes 10.
    reversed_stumps : bool, default False
        Whether a stump with a negative r, which prefers small values, is as good as one with a positive r.

    Attributes
    ----------
    features_ : ndarray of int, shape (n_rounds_,)
        The column of X that the stump of each round looks at.
    thresholds_, alphas_ : ndarray, shape (n_rounds_,)
        Threshold θ and weight α of each stump.
    right_, wrong_ : ndarray, shape (n_rounds_,)
        Weight of the pairs that the stump orders rightly and wrongly; r is the difference.
    normalisers_ : ndarray, shape (n_rounds_,)
        Z of each round. Their product is the mean exponential loss, and so at least the share of pairs in wrong order.
    n_rounds_ : int
        Rounds there were: fewer than asked for if no stump has a positive r.
    support_ : ndarray of bool, shape (n_features,)
        Features that some stump looks at.

    Notes
    -----
    O(n_pairs + n_documents · n_features) per round. A threshold below the minimum of a feature makes a constant stump,
    with r = 0: it only serves missing values, which are refused here. 1 − r counts as at least 1 / n_pairs, so
    that α is finite. Equal stumps: the first feature, then the lowest threshold. `tune` takes the number of rounds
    with the best mean validation value over it and up to ten numbers on each side: a single round that happens to be
    good on the few validation queries, often the first, decides nothing.

    References
    ----------
    Y. Freund, R. Iyer, R. E. Schapire, Y. Singer: An efficient boosting algorithm for combining preferences. Journal
    of Machine Learning Research 4, 2003.

    T.-Y. Liu: Learning to rank for information retrieval. Springer, 2011, chapter 11.

    Examples
    --------
    >>> from moerank.rankers.rank_boost import RankBoost
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> ranker = RankBoost(n_rounds=2).fit(X, y=[0, 1, 2])
    >>> ranker.predict(X).argsort().tolist(), ranker.features_.tolist()
    ([0, 1, 2], [0, 0])
    """

    _weigh = staticmethod(exponential_weights)

    def __init__(self, n_rounds: int = 300, n_thresholds: int | None = 255, reversed_stumps: bool = False) -> None:
        super().__init__(n_rounds, n_thresholds, reversed_stumps)

    @property
    def normalisers_(self) -> Matrix:
        """Z of each round, one for each in `n_rounds_`."""
        grown = self.wrong_ * np.exp(self.alphas_) + self.right_ * np.exp(-self.alphas_)
        return np.asarray(1.0 - self.right_ - self.wrong_ + grown)

    def _step(self, right: float, wrong: float, least: float) -> float:
        r = right - wrong
        return 0.5 * math.log(max(1.0 + r, least) / max(1.0 - r, least))

"""Selections of features, their paths over all sizes, and how they compare with rankers on all features."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import check_room, check_share
from moerank.data import RankingData
from moerank.metrics import NDCG, Metric, as_metric
from moerank.rankers.adapter import train_on_subsets, varying_for
from moerank.rankers.base import LinearRanker, Ranker
from moerank.rankers.population import LinearPopulation, Population
from moerank.rankers.rank_svm import RankSVM
from moerank.scikit_learn import check_is_fitted
from moerank.statistics import Tail
from moerank.verdict import MARGIN, Verdict, judge_scores


class Selection(Ranker):
    """Base of the rankers that select features, and can be compared with a ranker on all of them.

    A subclass implements `without_selection`.
    """

    def without_selection(self) -> Any:
        """Return the ranker on all features that you would use instead, not fitted yet."""
        raise NotImplementedError

    def verdict(
        self,
        test: RankingData,
        train: RankingData,
        validation: RankingData | None = None,
        *,
        metric: Metric | str | None = None,
        margin: float = MARGIN,
        tuning: Metric | str | None = None,
    ) -> Verdict:
        """Compare the selection with the ranker of `without_selection` on held-out queries.

        That ranker is trained here, on all features and pairs.

        Parameters
        ----------
        test : RankingData
            Queries that were not used for training or for any choice.
        train : RankingData
            The data that the selection was fitted to.
        validation : RankingData, optional
            Data to tune the other ranker with; without them its parameters stay as they are. Give them if they chose
            the parameters of the selection, so that the comparison is fair.
        metric : Metric or its name, default NDCG(10)
        margin : float, default 0.005
            Smaller differences of the metric do not matter.
        tuning : Metric or its name, default MAP()
            The metric that tunes the other ranker, as in `tune`.

        Returns
        -------
        Verdict
            Its `against` names the other ranker.

        Raises
        ------
        ValueError
            If the data are malformed or have other features, or if `train` and `validation` are not scaled as in `fit`.

        Examples
        --------
        >>> from moerank.data import load_planted_fold
        >>> from moerank.rankers import FSMRank
        >>> train, vali, test = load_planted_fold(1, n_queries=150, n_documents=10)
        >>> FSMRank(lambda2=0.1).fit(train).verdict(test, train, vali).sentence[:80]
        '4 of 30 features rank worse; estimated loss .197 NDCG@10 (95 %: .058 to .290) ag'
        """
        check_is_fitted(self, "support_")
        check_share(margin=margin)
        measure = as_metric(metric, NDCG(10))
        fitted = (self.n_features_in_, self.scaling_)
        for data in (train, validation):
            if data is not None and (data.n_features, data.scaling) != fitted:
                raise ValueError(
                    f"{data.name} has other features, or another scaling, than the data that "
                    f"{type(self).__name__} was fitted to; give those data"
                )
        ranker = self.without_selection()
        if validation is not None and hasattr(ranker, "tune"):
            ranker = ranker.tune(train, validation, metric=tuning)
        reference = train_on_subsets(ranker, train, np.ones((1, train.n_features), bool))
        n_all = np.count_nonzero(varying_for(ranker, train) | self.support_)

        def scores_on(data: RankingData) -> Matrix:
            return np.column_stack([self.predict(data), reference.scores(self._table(data))])

        tail = Tail()
        for factor, data in ((2.0, train), (1.0, validation)):
            if data is not None:
                values = data.weighted(measure.per_query(data, scores_on(data)))
                differences = (values @ [factor, -factor])[measure.can_differ(data)]
                tail = tail.joined(differences, data.query_weights)
        return judge_scores(
            test,
            measure,
            scores_on(test),
            int(self.support_.sum()),
            int(n_all),
            margin=margin,
            tail=tail,
            against=" ".join(repr(ranker).split()),
        )


@dataclass(frozen=True, eq=False)
class SelectionPath:
    """The choice of a solver with at most k features, for each k = 1 … n_features.

    Attributes
    ----------
    feature_mask : ndarray of bool, shape (n_features, n_features)
        Row k − 1 has at most k features. Rows repeat where a solver offers no larger set. A row is empty where it
        offers no set that small, and its ranker scores every document alike.
    rankers : Population, of n_features individuals
        The ranker of each row; its weights are ``rankers.coefs``, if there are any.
    """

    feature_mask: Mask
    rankers: Population

    def scores(self, X: Vector) -> Vector:
        """Return the scores (n_documents, n_features) of the rows of X, a column for each k."""
        return self.rankers.scores(X)


def best_of_each_size(feature_mask: Mask, rankers: Population, means: Vector) -> SelectionPath:
    """Return for each k the member of at most k features with the largest mean metric, the first of equals.

    >>> W = np.array([[0.0, 0.5, 0.0], [0.3, 0.5, 0.1]])
    >>> best_of_each_size(W != 0, LinearPopulation(W), np.array([0.6, 0.7])).feature_mask.sum(axis=1).tolist()
    [1, 1, 3]
    """
    sizes, k = np.count_nonzero(feature_mask, axis=1), np.arange(1, feature_mask.shape[1] + 1)
    best = np.where(sizes <= k[:, None], means, -np.inf).argmax(axis=1)
    small = sizes[best] <= k  # some member has at most k features
    return SelectionPath(
        feature_mask[best] & small[:, None], rankers.take(np.where(small, best, -1))
    )


class LargestWeightsPath(Selection, LinearRanker):
    """Base of the rankers whose sparse weights minimise the squared hinge loss of preference pairs and a penalty.

    Row k of their path keeps the k largest weights, unchanged.
    """

    def path(self, train: RankingData) -> SelectionPath:
        """Return the rankers of the 1, 2, … largest weights in absolute value, without training them again.

        Parameters
        ----------
        train : RankingData
            The data that the ranker was fitted to; they are not used.
        """
        check_is_fitted(self, "coef_")
        order = np.argsort(-np.abs(self.coef_), kind="stable")[: np.count_nonzero(self.coef_)]
        masks = nested_masks(order, len(self.coef_))
        return SelectionPath(masks, LinearPopulation(np.where(masks, self.coef_, 0.0)))

    def without_selection(self) -> RankSVM:
        """Return RankSVM: the same loss of preference pairs, with a penalty that leaves no feature out."""
        return RankSVM()


def nested_masks(order: Integers, n_features: int, sizes: Integers | None = None) -> Mask:
    """Return the first 1, 2, … n_features of `order`, or other `sizes`, as rows; after its end the last row repeats."""
    sizes = np.arange(1, n_features + 1) if sizes is None else sizes
    check_room(f"{len(sizes):,} rankers of {n_features:,} features", 8 * len(sizes) * n_features)
    rank = np.full(n_features, n_features)
    rank[order] = np.arange(len(order))
    return rank[None, :] < sizes[:, None]

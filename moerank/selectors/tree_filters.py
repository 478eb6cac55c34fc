"""Selections by a LambdaMART: by its gain, recursive elimination, Shapley values, pairs of features, or costs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import (
    AtLeastTwo,
    Count,
    NotNegative,
    Parameters,
    Positive,
    check_at_least,
    check_share,
)
from moerank.data import FeatureCosts, RankingData
from moerank.metrics import MAP, Metric, as_metric
from moerank.rankers import (
    FittedPopulation,
    LambdaMART,
    Selection,
    SelectionPath,
    best_of_each_size,
    lambda_mart,
)
from moerank.rankers.base import Grid, MetricOrNone, quality_of
from moerank.rankers.model import Forest, Tree
from moerank.scikit_learn import check_is_fitted, clone
from moerank.selectors.filter import ByPermutation, Filter, parts_with_features

if TYPE_CHECKING:
    from lightgbm import Booster


class LambdaMARTFilter(Filter):
    """Base of the filters whose `_order` comes from LambdaMART rankers, and that train one on the first features."""

    n_trees: Count = 300
    learning_rate: Positive = 0.1
    n_leaves: AtLeastTwo = 10
    min_leaf: Count = 1
    tuning: MetricOrNone = None

    _additive = False
    _scale_free = True
    _size = None
    drop = 0.2  # share by which the sizes of the grid differ: every size would take too long

    def without_selection(self) -> Any:
        """Return the ranker that the filter trains, unfitted; choose its number of trees anew for all features."""
        return self._trees() if self.ranker is None else clone(self.ranker)

    def _grid_sizes(self, train: RankingData) -> list[int]:
        """Return sizes about a fifth apart: every size would train too many rankers."""
        return sizes_by_dropping(
            max(1, int(np.count_nonzero(np.ptp(train.X, axis=0) > 0))), self.drop
        )

    def _own_grid(self, train: RankingData) -> Grid:
        """Return trees of 3 leaves with at least 0.25 % of the documents each, and the trees of the parameters."""
        return [
            {
                "n_leaves": lambda_mart.FEW_LEAVES,
                "min_leaf": lambda_mart.leaf_sizes(train.n_documents)[0],
            },
            {"n_leaves": self.n_leaves, "min_leaf": self.min_leaf},
        ]

    def _ranker_grid(self, train: RankingData) -> Grid:
        return [{}] if self.ranker is None else super()._ranker_grid(train)

    def _arrange(self, train: RankingData, validation: RankingData | None) -> None:
        super()._arrange(train, validation)
        if self.ranker is None:
            mask = self._first_features(np.array([self.n_features_to_select]))[0]
            self._served = self._stopped(*parts_with_features(mask, train, validation))
            self.n_trees_ = self._served.n_trees

    def _trees(self) -> LambdaMART:
        return LambdaMART(self.n_trees, self.learning_rate, self.n_leaves, self.min_leaf)

    def _stopped(self, train: RankingData, validation: RankingData | None) -> LambdaMART:
        """Return a trained LambdaMART; the validation data, if any, choose the number of trees."""
        if validation is None:
            return self._trees()._learn(train)
        return self._trees().stopped(train, validation, self.tuning)

    def _chosen_ranker(self) -> Any:
        return self._served if self.ranker is None else self.ranker

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        return self._scores(X)[:, None]


def sizes_by_dropping(n_features: int, drop: float) -> list[int]:
    """Return the subset sizes, ascending, of an elimination that drops this share each time, at least one feature."""
    sizes = [n_features]
    while sizes[-1] > 1:
        sizes.append(sizes[-1] - max(1, int(drop * sizes[-1])))
    return sizes[::-1]


class LambdaMARTGain(LambdaMARTFilter):
    """Order the features by the total gain of the splits of a LambdaMART on all features, and train it on the first.

    The gain of a split is the reduction of the loss that its tree was fitted to.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Number of features to select; fewer if fewer vary.
    ranker : estimator, optional
        Trained on the selected features. Default: a LambdaMART with the arguments below.
    n_trees : int, default 300
        Largest number of trees of each LambdaMART, at least 1. With validation data in `fit`, they choose
        the number, see `LambdaMART.stopped`; without them each LambdaMART has all trees.
    learning_rate : float, default 0.1
        Share of a tree that is added to the score, > 0.
    n_leaves : int, default 10
        Largest number of leaves of a tree, at least 2.
    min_leaf : int, default 1
        Least number of documents in a leaf.
    tuning : Metric or its name, default MAP()
        The metric by which validation data choose the number of trees.

    Attributes
    ----------
    order_, support_, population_, coef_, forest_
        As in `moerank.selectors.filter.Filter`.
    n_trees_ : int
        Number of trees of the final LambdaMART, and of those of the path; only if `ranker` is None.

    Notes
    -----
    Two trainings of LambdaMART, or four with validation data. Equal gains, such as those of features that no tree
    splits by, go to the earlier column. Features of many values are overrated, since they offer more splits; of two
    features with the same values one takes all the gain.

    The grid is ours: sizes a fifth apart, and with each of them the trees of the parameters and trees of 3 leaves with
    at least 0.25 % of the documents each. The rankers of the path have as many trees as the final one.

    References
    ----------
    J. H. Friedman: Greedy function approximation: a gradient boosting machine. Annals of Statistics 29, 2001,
    section 8.1.

    Examples
    --------
    >>> from moerank.selectors.tree_filters import LambdaMARTGain
    >>> X = [[0.3, 0.0], [0.1, 0.3], [0.2, 0.6], [0.2, 0.9]]
    >>> LambdaMARTGain(1, n_trees=5).fit(X, y=[0, 0, 1, 1], qid=0).order_.tolist()
    [1, 0]
    """

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        gain = self._stopped(train, validation).booster_.feature_importance("gain")
        return np.argsort(-gain, kind="stable")


class LambdaMARTRFE(LambdaMARTFilter):
    """Train a LambdaMART, drop a share of the features with the least gain, and so on until one is left.

    The gain of a feature is the total over the splits by it, of the trees trained on the features that are left.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Largest number of features to select: the elimination visits only some sizes, and the largest of them up to this
        number counts.
    drop : float, default 0.2
        Share of the remaining features that each round drops, in (0, 1), rounded down to at least one feature.
    ranker, n_trees, learning_rate, n_leaves, min_leaf, tuning
        As in `LambdaMARTGain`.

    Attributes
    ----------
    order_ : ndarray of int, shape (n_varying,)
        The features, last dropped first; features that were dropped together are ordered by their last gain.
    support_, population_, coef_, forest_, n_trees_
        As in `LambdaMARTGain`.

    Notes
    -----
    About ln(n_features) / drop trainings of LambdaMART, twice as many with validation data. Of equal gains the later
    column is dropped first. The path has a ranker for each size that the elimination visits, and repeats it up to the
    next one. The grid is ours: these sizes, with each of them the trees of the parameters and trees of 3 leaves with
    at least 0.25 % of the documents each. The rankers of the path have as many trees as the final one.

    References
    ----------
    I. Guyon, J. Weston, S. Barnhill, V. Vapnik: Gene selection for cancer classification using support vector
    machines. Machine Learning 46, 2002, for weights of a linear machine in place of gains.

    Examples
    --------
    >>> from moerank.selectors.tree_filters import LambdaMARTRFE
    >>> X = [[0.3, 0.0, 0.5], [0.1, 0.3, 0.5], [0.2, 0.6, 0.4], [0.2, 0.9, 0.6]]
    >>> LambdaMARTRFE(1, n_trees=5).fit(X, y=[0, 0, 1, 1], qid=0).order_.tolist()
    [1, 0, 2]
    """

    drop: Annotated[float, partial(check_share, one=False)] = 0.2

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        remaining = np.arange(train.n_features)
        dropped: list[int] = []
        for size in sizes_by_dropping(train.n_features, self.drop)[-2::-1]:
            mask = np.isin(np.arange(train.n_features), remaining)
            trees = self._stopped(*parts_with_features(mask, train, validation))
            gain = trees.booster_.feature_importance("gain")
            ranked = remaining[np.argsort(-gain, kind="stable")]
            dropped = [*ranked[size:].tolist(), *dropped]
            remaining = np.sort(ranked[:size])
        return np.array([*remaining.tolist(), *dropped])

    def _first_features(self, sizes: Integers) -> Mask:
        visited = np.array(sizes_by_dropping(len(self.order_), self.drop))
        return super()._first_features(visited[np.searchsorted(visited, sizes, side="right") - 1])


class LambdaMARTPermutation(ByPermutation, LambdaMARTFilter):
    """Order the features by what a LambdaMART loses where their values are permuted, and train it on the first.

    The importance is that of `moerank.selectors.filter.PermutationImportance`, judged by a LambdaMART on all features.

    Parameters
    ----------
    n_features_to_select, ranker, n_trees, learning_rate, n_leaves, min_leaf, tuning
        As in `LambdaMARTGain`.
    metric : Metric or its name, default NDCG(10)
    n_permutations : int, default 5
    random_state : int, optional

    Attributes
    ----------
    order_, support_, population_, coef_, forest_, n_trees_
        As in `LambdaMARTGain`.

    Notes
    -----
    Two trainings of LambdaMART, or four with validation data, and as many predictions and metric values as
    permutations of features that some tree splits by. Ties, such as those of the other features, go to the larger gain.
    The grid and the path are those of `LambdaMARTGain`.

    References
    ----------
    L. Breiman: Random forests. Machine Learning 45, 2001, section 10.

    Examples
    --------
    >>> from moerank.selectors.tree_filters import LambdaMARTPermutation
    >>> X = [[0.3, 0.0], [0.1, 0.3], [0.2, 0.6], [0.2, 0.9]]
    >>> LambdaMARTPermutation(1, n_trees=5, random_state=0).fit(X, y=[0, 0, 1, 1], qid=0).order_.tolist()
    [1, 0]
    """

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        trees = self._stopped(train, validation)
        losses = self._losses(trees._scores, train, validation, trees.support_)
        return np.lexsort((-trees.booster_.feature_importance("gain"), -losses))


# Largest number of Shapley values, documents times features, that are held at once.
ENTRIES = 1 << 22


class LambdaMARTSHAP(LambdaMARTFilter):
    """Order the features by their mean |Shapley value| in a LambdaMART on all features, and train it on the first.

    Shapley values divide the score of a document among the features, where a set of features is worth the expected
    score given their values. In a tree this expectation follows the splits by features of the set, and averages both
    branches of other splits, weighted by the training documents that went there.

    Parameters
    ----------
    n_features_to_select, ranker, n_trees, learning_rate, n_leaves, min_leaf, tuning
        As in `LambdaMARTGain`.

    Attributes
    ----------
    order_, support_, population_, coef_, forest_, n_trees_
        As in `LambdaMARTGain`.

    Notes
    -----
    The means are over all training documents, O(n_documents · n_trees · n_leaves · depth²) in blocks of bounded
    memory. LambdaMART is trained twice, or four times with validation data. Equal means go to the earlier column.
    The grid and the path are those of `LambdaMARTGain`.

    References
    ----------
    S. M. Lundberg et al.: From local explanations to global understanding with explainable AI for trees. Nature
    Machine Intelligence 2, 2020.

    Examples
    --------
    >>> from moerank.selectors.tree_filters import LambdaMARTSHAP
    >>> X = [[0.3, 0.0], [0.1, 0.3], [0.2, 0.6], [0.2, 0.9]]
    >>> LambdaMARTSHAP(1, n_trees=5).fit(X, y=[0, 0, 1, 1], qid=0).order_.tolist()
    [1, 0]
    """

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        booster = self._stopped(train, validation).booster_
        return np.argsort(-mean_absolute_shap(booster, train.X), kind="stable")


def mean_absolute_shap(booster: Booster, X: Matrix, entries: int = ENTRIES) -> Matrix:
    """Return the mean over the rows of X of |Shapley value|, shape (n_features,), at most `entries` values at once."""
    total = np.zeros(X.shape[1])
    step = max(1, entries // (X.shape[1] + 1))
    for begin in range(0, len(X), step):
        values = booster.predict(
            np.asarray(X[begin : begin + step], float), pred_contrib=True, num_threads=1
        )
        total += np.abs(values[:, :-1]).sum(axis=0)  # the last column is the expected score
    return total / len(X)


PAIR_TREES = 100  # trees of three leaves whose splits say which pairs of features are the best

NotNegativeCount = Annotated[int, partial(check_at_least, 0)]


class PairwiseLambdaMART(LambdaMART):
    """LambdaMART of `n_trees` trees of one feature each, then of `n_pair_trees` trees of the best pairs of them.

    Scores are sums of functions of one or two features. `moerank.selectors.tree_filters.ILMART` has the details.
    `booster_` has the trees of one feature alone.
    """

    n_pairs: NotNegativeCount = 10
    n_pair_trees: NotNegativeCount = 1000

    def stopped(
        self, train: RankingData, validation: RankingData, metric: Metric | str | None = None
    ) -> Self:
        """Return a clone trained with the numbers of both kinds of trees that are best on the validation data."""
        singles = clone(self).set_params(n_pair_trees=0)
        n_trees = LambdaMART.stopped(singles, train, validation, metric).n_trees
        ranker = clone(self).set_params(n_trees=n_trees)
        ranker._early_stopping_metric = as_metric(metric, MAP())
        trees, scores = ranker._staged(train, validation)
        scores = scores[:, n_trees - 1 :]
        quality = quality_of(scores, validation, ranker._early_stopping_metric)
        ranker.n_pair_trees = int(np.argmax(self._steadied(quality)))
        return ranker._with_trees(train, trees[: n_trees + ranker.n_pair_trees])

    def _tree_parameters(self, train: RankingData) -> Parameters:
        parameters = super()._tree_parameters(train)
        parameters["interaction_constraints"] = [[f] for f in range(train.n_features)]
        return parameters

    def _grow(self, train: RankingData, validation: RankingData | None = None) -> list[Tree]:
        if not self.n_pair_trees:
            return super()._grow(train, validation)
        trees = super()._grow(train)
        part = train.with_features(self.varying_)
        singles = Forest.of(trees).with_middle_thresholds(part)
        pairs = self._best_pairs(part, np.unique(np.array(singles.columns, np.int64)))
        if not pairs:
            return trees
        booster = self._boosted(
            train, validation, self.n_pair_trees, singles, interaction_constraints=pairs
        )
        return trees + lambda_mart.trees_of(booster)

    def _best_pairs(self, train: RankingData, features: Integers) -> list[list[int]]:
        """Return the first pairs of some features by which trees of three leaves, of these features alone, split."""
        if len(features) < 2:
            return []
        parameters = {**super()._tree_parameters(train), "num_leaves": 3}
        part = train.with_features(np.isin(np.arange(train.n_features), features))
        splits = split_features(lambda_mart.boosted_trees(part, PAIR_TREES, parameters))
        pairs = dict.fromkeys(pair for pair in splits if len(pair) == 2)
        return [features[list(pair)].tolist() for pair in pairs][: self.n_pairs]


class ILMART(LambdaMARTFilter):
    """Order the features as they enter a LambdaMART of one feature a tree, and train one with pairs on the first.

    A score is a sum of functions of one feature and of pairs of features. First come `n_trees` trees, each of which
    splits by one feature. Trees of three leaves, trained on the features of these alone, then say which pairs are the
    best: those by which the first of them split. Further trees go on from the first ones; with a branch that splits by
    one feature, none splits by a feature but its partners among the best pairs.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Features to select; fewer if there are not as many that vary.
    ranker : estimator, optional
        Trained on the selected features. Default: such a LambdaMART.
    n_trees : int, default 300
        Largest number of trees of one feature, and of pairs, at least 1. With validation data in `fit` these choose
        both numbers, see `LambdaMART.stopped`, and may leave out the pairs; without them there are all trees.
    learning_rate, n_leaves, min_leaf, tuning
        As in `LambdaMARTGain`.
    n_pairs : int, default 10
        Largest number of pairs of features; 0 leaves a sum of functions of single features.

    Attributes
    ----------
    order_ : ndarray of int, shape (n_varying,)
        The features in the order in which trees of one feature first split by them, on all features; then the others.
    support_, population_, coef_, forest_, n_trees_
        As in `LambdaMARTGain`.

    Notes
    -----
    Four trainings of LambdaMART, or eight with validation data. The authors' program allows a pair for each tree, in a
    version of LightGBM of its own. LightGBM allows pairs for each branch: a tree with several branches may have several
    pairs, and scores are sums of functions of pairs all the same. The paper has up to 50 pairs on data of more than a
    hundred features. The grid and the path are those of `LambdaMARTGain`: each ranker of the path has the best pairs of
    its own features.

    References
    ----------
    C. Lucchese, F. M. Nardini, S. Orlando, R. Perego, A. Veneri: ILMART: interpretable ranking with constrained
    LambdaMART. SIGIR 2022.

    Examples
    --------
    >>> from moerank.selectors.tree_filters import ILMART
    >>> X = [[0.3, 0.0], [0.1, 0.3], [0.2, 0.6], [0.2, 0.9]]
    >>> ILMART(1, n_trees=5).fit(X, y=[0, 0, 1, 1], qid=0).order_.tolist()
    [1, 0]
    """

    n_pairs: NotNegativeCount = 10

    def without_selection(self) -> LambdaMART:
        """Return LambdaMART, with all features in every tree."""
        return super()._trees()

    def _trees(self) -> PairwiseLambdaMART:
        arguments = super()._trees().get_params()
        return PairwiseLambdaMART(**arguments, n_pairs=self.n_pairs, n_pair_trees=self.n_trees)

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        booster = self._trees().set_params(n_pair_trees=0)._learn(train).booster_
        entered = dict.fromkeys(feature for tree in split_features(booster) for feature in tree)
        return np.array(list(entered | dict.fromkeys(range(train.n_features))))


def split_features(booster: Booster) -> list[tuple[int, ...]]:
    """Return the features by which the first splits of each tree, the root and those below it, are made; increasing."""
    splits = []
    for tree in booster.dump_model()["tree_info"]:
        root = tree["tree_structure"]
        nodes = (root, root.get("left_child", {}), root.get("right_child", {}))
        features = {node["split_feature"] for node in nodes if "split_feature" in node}
        splits.append(tuple(sorted(features)))
    return splits


# Values of `tradeoff` that the grid and the path try, the fewest features first.
TRADEOFFS = (*(10.0 ** (power / 2) for power in range(6, -3, -1)), 0.0)


class CEGB(Selection, LambdaMART):
    """Train a LambdaMART that uses a new feature only where the gain of the split exceeds its cost.

    A split of a node with n documents by feature f has its gain reduced by

        tradeoff · (split_penalty · n + c(f)),

    where c(f) is the cost of the feature over the mean cost, and 0 once a split has used the feature. The split with
    the largest reduced gain is made if this gain is positive.

    Parameters
    ----------
    tradeoff : float, default 1.0
        Weight of the costs, ≥ 0, in the unit of LightGBM's gain, which grows with the data. With 0 the trees are those
        of `LambdaMART`.
    split_penalty : float, default 0.0
        Cost of a split for each document of its node, ≥ 0. It makes trees smaller, so that they score faster.
    n_trees : int, default 300
        Largest number of trees, at least 1.
    learning_rate, n_leaves, min_leaf, n_bins, k, patience
        As in `LambdaMART`.

    Attributes
    ----------
    booster_, forest_, support_
        As in `LambdaMART`.

    Notes
    -----
    It takes as long as `LambdaMART`. The costs come from the training data; without them every feature costs 1.
    LightGBM knows no groups, so each feature of a group pays an equal part of the shared cost. The mean is over the
    features that vary.

    The grid is ours: `tradeoff` from 1000 down to 0.1, a factor of √10 apart, and 0, with each number of trees. The
    path trains these ten, and its own `tradeoff`. Its member of at most k features is the one with the most features.
    Of members with equally many features it is the one with the smallest `tradeoff`. This says nothing about how near
    the members are to the best subsets.

    References
    ----------
    S. Peter, F. Diego, F. A. Hamprecht, B. Nadler: Cost efficient gradient boosting. Advances in Neural Information
    Processing Systems 30, 2017. LightGBM's parameters cegb_tradeoff, cegb_penalty_split and
    cegb_penalty_feature_coupled.

    Examples
    --------
    >>> from moerank.selectors.tree_filters import CEGB
    >>> X = [[0.3, 0.0], [0.1, 0.3], [0.2, 0.6], [0.2, 0.9]]
    >>> CEGB(tradeoff=0.1, n_trees=5).fit(X, y=[0, 0, 1, 1], qid=0).support_.tolist()
    [False, True]
    """

    tradeoff: NotNegative = 1.0
    split_penalty: NotNegative = 0.0
    n_trees: Count = 300

    _remedy = "a smaller tradeoff keeps more features"

    def without_selection(self) -> LambdaMART:
        """Return LambdaMART with the same arguments, without costs."""
        return LambdaMART(**{name: getattr(self, name) for name in LambdaMART._get_param_names()})

    def default_grid(self, train: RankingData) -> Grid:
        """Return the ten values of `tradeoff` with every number of trees up to `n_trees`."""
        return [
            {"tradeoff": value, "n_trees": n}
            for value in TRADEOFFS
            for n in range(1, self.n_trees + 1)
        ]

    def path(self, train: RankingData) -> SelectionPath:
        """Return the rankers with at most 1, 2, … features among those of a sweep of `tradeoff`.

        `train` is the data that the solver was fitted to.
        """
        check_is_fitted(self, "support_")
        # With equally many features the smaller tradeoff counts.
        values = sorted({*TRADEOFFS, self.tradeoff})
        members = [clone(self).set_params(tradeoff=value)._learn(train) for value in values]
        masks = np.array([member.support_ for member in members])
        rankers = FittedPopulation(tuple(members), np.ones(masks.shape, bool))
        return best_of_each_size(masks, rankers, masks.sum(axis=1))

    def _tree_parameters(self, train: RankingData) -> Parameters:
        parameters = super()._tree_parameters(train)
        parameters["cegb_tradeoff"] = self.tradeoff
        parameters["cegb_penalty_split"] = self.split_penalty
        parameters["cegb_penalty_feature_coupled"] = relative_costs(train).tolist()
        return parameters


def relative_costs(train: RankingData) -> Vector:
    """Return the cost (n_features,) of each feature, with its part of a shared cost, over the mean of all.

    Without costs, or where nothing costs anything, all are 1.
    """
    table = train.costs or FeatureCosts.of(np.ones(train.n_features))
    sizes = np.bincount(table.group + 1, minlength=len(table.shared) + 1)[1:]
    costs = table.own + np.append(table.shared / np.maximum(1, sizes), 0.0)[table.group]
    return costs / costs.mean() if costs.any() else np.ones(train.n_features)

"""ILMART: a LambdaMART of trees of one feature each, and of the best pairs of features (Lucchese et al., 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
from sklearn.base import clone

from moerank.checks import Parameters, check_at_least
from moerank.data import RankingData
from moerank.metrics import MAP
from moerank.rankers.base import quality_of
from moerank.rankers.boosting import TrailingMean
from moerank.rankers.lambda_mart import LambdaMART, boosted_trees, features_of_trees
from moerank.selectors.filter import Order
from moerank.selectors.tree_filters import LambdaMARTFilter

if TYPE_CHECKING:
    from lightgbm import Booster

PAIR_TREES = 100
"""Trees of three leaves whose splits say which pairs of features are the best."""

NotNegativeCount = Annotated[int, partial(check_at_least, 0)]


@dataclass(eq=False, repr=False)
class PairwiseLambdaMART(LambdaMART):
    """LambdaMART of `n_trees` trees of one feature each, then of `n_pair_trees` trees of the best pairs of them.

    Scores are sums of functions of one or two features. `moerank.selectors.ilmart.ILMART` has the details.
    """

    n_pairs: NotNegativeCount = 10
    n_pair_trees: NotNegativeCount = 1000

    def stopped(self, train: RankingData, validation: RankingData) -> PairwiseLambdaMART:
        """Return a clone with the numbers of both kinds of trees with the best MAP on the validation data."""
        n_trees = LambdaMART.stopped(clone(self).set_params(n_pair_trees=0), train, validation).n_trees
        chosen = clone(self).set_params(n_trees=n_trees)
        quality = quality_of(chosen._validation_scores(train, validation)[:, n_trees - 1 :], validation, MAP())
        return chosen.set_params(n_pair_trees=int(np.argmax(self._steadied(quality))))

    def _tree_parameters(self, train: RankingData) -> Parameters:
        return {**super()._tree_parameters(train), "interaction_constraints": [[f] for f in range(train.n_features)]}

    def _boosted(self, train: RankingData, watched: RankingData | None = None) -> Booster:
        if not self.n_pair_trees:
            return super()._boosted(train, watched)
        single, part = super()._boosted(train), train.with_features(self.varying_)
        pairs = self._best_pairs(part, np.flatnonzero(features_of_trees(single)))
        if not pairs:
            return single
        parameters = {**self._tree_parameters(part), "interaction_constraints": pairs}
        return boosted_trees(part, self.n_pair_trees, parameters, watched, self.patience, TrailingMean(MAP()), single)

    def _best_pairs(self, train: RankingData, features: Order) -> list[list[int]]:
        """Return the first pairs of some features by which trees of three leaves, of these features alone, split."""
        if len(features) < 2:
            return []
        parameters = {**super()._tree_parameters(train), "num_leaves": 3}
        part = train.with_features(np.isin(np.arange(train.n_features), features))
        splits = split_features(boosted_trees(part, PAIR_TREES, parameters))
        pairs = dict.fromkeys(pair for pair in splits if len(pair) == 2)
        return [features[list(pair)].tolist() for pair in pairs][: self.n_pairs]


@dataclass(eq=False, repr=False)
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
    learning_rate, n_leaves, min_leaf
        As in `LambdaMART`.
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
    >>> from moerank.selectors.ilmart import ILMART
    >>> X = [[0.3, 0.0], [0.1, 0.3], [0.2, 0.6], [0.2, 0.9]]
    >>> ILMART(1, n_trees=5).fit(X, y=[0, 0, 1, 1]).order_.tolist()
    [1, 0]
    """

    n_pairs: NotNegativeCount = 10

    def without_selection(self) -> LambdaMART:
        """Return LambdaMART, with all features in every tree."""
        return super()._trees()

    def _trees(self) -> PairwiseLambdaMART:
        arguments = super()._trees().get_params()
        return PairwiseLambdaMART(**arguments, n_pairs=self.n_pairs, n_pair_trees=self.n_trees)

    def _order(self, train: RankingData, validation: RankingData | None) -> Order:
        booster = self._trees().set_params(n_pair_trees=0)._learn(train).booster_
        entered = dict.fromkeys(feature for tree in split_features(booster) for feature in tree)
        return np.array(list(entered | dict.fromkeys(range(train.n_features))))


def split_features(booster: Booster) -> list[tuple[int, ...]]:
    """Return the features by which the first splits of each tree, the root and those below it, are made; increasing."""
    splits = []
    for tree in booster.dump_model()["tree_info"]:
        root = tree["tree_structure"]
        nodes = (root, root.get("left_child", {}), root.get("right_child", {}))
        splits.append(tuple(sorted({node["split_feature"] for node in nodes if "split_feature" in node})))
    return splits

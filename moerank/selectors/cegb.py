"""Cost-efficient gradient boosting: a LambdaMART that pays for features and for splits (Peter et al., 2017)."""

from dataclasses import dataclass

import numpy as np

from moerank.arrays import Vector
from moerank.checks import Count, NotNegative, Parameters
from moerank.data import FeatureCosts, RankingData
from moerank.rankers import FittedPopulation, LambdaMART, Selection, SelectionPath, best_of_each_size
from moerank.rankers.base import Grid
from moerank.scikit_learn import check_is_fitted, clone

# Values of `tradeoff` that the grid and the path try, the fewest features first.
TRADEOFFS = (*(10.0 ** (power / 2) for power in range(6, -3, -1)), 0.0)


@dataclass(eq=False, repr=False)
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
    >>> from moerank.selectors.cegb import CEGB
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
        return [{"tradeoff": value, "n_trees": n} for value in TRADEOFFS for n in range(1, self.n_trees + 1)]

    def path(self, train: RankingData) -> SelectionPath:
        """Return the rankers with at most 1, 2, … features among those of a sweep of `tradeoff`.

        `train` is the data that the solver was fitted to.
        """
        check_is_fitted(self, "support_")
        values = sorted({*TRADEOFFS, self.tradeoff})  # with equally many features the smaller tradeoff counts
        members = [clone(self).set_params(tradeoff=value)._learn(train) for value in values]
        masks = np.array([member.support_ for member in members])
        rankers = FittedPopulation(tuple(members), np.ones(masks.shape, bool))
        return best_of_each_size(masks, rankers, masks.sum(axis=1))

    def _tree_parameters(self, train: RankingData) -> Parameters:
        return {
            **super()._tree_parameters(train),
            "cegb_tradeoff": self.tradeoff,
            "cegb_penalty_split": self.split_penalty,
            "cegb_penalty_feature_coupled": relative_costs(train).tolist(),
        }


def relative_costs(train: RankingData) -> Vector:
    """Return the cost (n_features,) of each feature, with its part of a shared cost, over the mean of all.

    Without costs, or where nothing costs anything, all are 1.
    """
    given = train.costs or FeatureCosts.of(np.ones(train.n_features))
    sizes = np.bincount(given.group + 1, minlength=len(given.shared) + 1)[1:]
    costs = given.own + np.append(given.shared / np.maximum(1, sizes), 0.0)[given.group]
    return np.asarray(costs / costs.mean()) if costs.any() else np.ones(train.n_features)

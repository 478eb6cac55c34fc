"""LambdaMART: regression trees boosted along the gradients of NDCG (Wu et al., 2010), trained by LightGBM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from moerank.checks import check_at_least, check_positive
from moerank.data import RankingData
from moerank.metrics import LARGEST_EXP2_LABEL, MAP
from moerank.rankers.base import Grid, Mask, Matrix, Ranker
from moerank.rankers.forest import Forest

__all__ = ["LambdaMART", "boosted_trees", "features_of_trees", "mean_forest", "scores_by_trees"]

# LightGBM refuses longer queries.
LONGEST_QUERY = 10_000


class LambdaMART(Ranker):
    """Gradient boosting of regression trees for NDCG.

    With scores s, every preference pair (i, j) pulls its documents apart by

        λᵢⱼ = |ΔNDCGᵢⱼ| ρᵢⱼ,   ρᵢⱼ = 1 / (1 + exp(sᵢ − sⱼ)),

    ΔNDCGᵢⱼ the change of NDCG if they swapped ranks. A tree is fitted to the sums λ over the pairs of each document,
    its leaves take the value Σ λ / Σ ρ (1 − ρ) |ΔNDCG|, and `learning_rate` times the tree is added to the score.

    Parameters
    ----------
    n_trees : int, default 1000
        Number of trees, at least 1.
    learning_rate : float, default 0.1
        Share of a tree that is added to the score, > 0.
    n_leaves : int, default 10
        Largest number of leaves of a tree, at least 2.
    min_leaf : int, default 1
        Least number of documents in a leaf.
    n_bins : int, default 255
        Largest number of bins that the values of a feature are put into, at least 2; splits lie between them.
    k : int, default 10
        Only pairs with a document among the first k count, by the scores so far.

    Attributes
    ----------
    booster_ : lightgbm.Booster
        The trees, over the columns that vary.
    forest_ : Forest
        The trees whose leaves add up to the score, as a `Model` stores them.
    support_ : ndarray of bool, shape (n_features,)
        Features that some tree splits by.

    Notes
    -----
    Defaults are RankLib's, but 255 bins for its 256 thresholds. It stops after 100 trees without a gain on validation
    data; here `tune` trains all trees once and takes the best number. A tree takes O(n_documents · n_features) and
    O(Σ_q k · n_documents(q)) for the gradients. One thread trains, so results do not depend on the machine.

    LightGBM's NDCG has the gain 2^y − 1, like LETOR's, but the discount 1 / log₂(1 + j) at rank j, where LETOR's is 1
    at ranks 1 and 2 and 1 / log₂(j) from 3 on: what is optimised is not quite what the tables report. LightGBM also
    evens out queries: it divides the λ of a query by their sum S and multiplies them by log₂(1 + S). All scores start
    equal, so the first tree finds each query ranked in the order of its rows.

    References
    ----------
    Q. Wu, C. J. C. Burges, K. M. Svore, J. Gao: Adapting boosting for information retrieval measures. Information
    Retrieval 13, 2010.

    Examples
    --------
    >>> from moerank.rankers.lambda_mart import LambdaMART
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2], [0.2, 0.2]]
    >>> LambdaMART(n_trees=5).fit(X, y=[0, 1, 2, 0]).predict(X).argmax()
    np.int64(2)
    """

    _additive = False
    _by_thresholds = True
    _size = "n_trees"

    def __init__(
        self,
        n_trees: int = 1000,
        learning_rate: float = 0.1,
        n_leaves: int = 10,
        min_leaf: int = 1,
        n_bins: int = 255,
        k: int = 10,
    ) -> None:
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.n_leaves = n_leaves
        self.min_leaf = min_leaf
        self.n_bins = n_bins
        self.k = k

    def default_grid(self, train: RankingData) -> Grid:
        """Return every number of trees up to `n_trees`."""
        return [{"n_trees": size} for size in range(1, self.n_trees + 1)]

    def _check_parameters(self) -> None:
        check_at_least(1, n_trees=self.n_trees, min_leaf=self.min_leaf, k=self.k)
        check_at_least(2, n_leaves=self.n_leaves, n_bins=self.n_bins)
        check_positive(learning_rate=self.learning_rate)

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        parameters = {
            "learning_rate": self.learning_rate,
            "num_leaves": self.n_leaves,
            "min_data_in_leaf": self.min_leaf,
            "max_bin": self.n_bins,
            "lambdarank_truncation_level": self.k,
        }
        self.booster_ = boosted_trees(train.with_features(self.varying_), self.n_trees, parameters)
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[self.varying_] = features_of_trees(self.booster_)

    def _scores(self, X: Matrix) -> Matrix:
        return np.asarray(self.booster_.predict(X[:, self.varying_], num_threads=1), dtype=np.float64)

    @property
    def forest_(self) -> Forest:
        """The trees, over all columns of the training table."""
        return mean_forest([(self.booster_, self.booster_.num_trees())]).over(np.flatnonzero(self.varying_))

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        return scores_by_trees(self.booster_, X[:, self.varying_])


def boosted_trees(
    train: RankingData,
    n_trees: int,
    parameters: dict[str, Any],
    watched: RankingData | None = None,
    patience: int = 100,
) -> Any:
    """Train LightGBM's LambdaMART in one thread and return its Booster.

    Parameters
    ----------
    train : RankingData
    n_trees : int
    parameters : dict
        LightGBM's, beside those that make its results repeatable.
    watched : RankingData, optional
        Data by whose MAP the training ends, `patience` trees after the best number of trees. The Booster's
        ``best_iteration`` is this number; without such data it is not positive.

    Raises
    ------
    ValueError
        For labels too large for the gain 2^y − 1, or a query of more than 10,000 documents.
    """
    import lightgbm  # slow to import, so only where it is used

    _check_size(train)
    fixed = {
        "objective": "lambdarank",
        "metric": "None",
        "label_gain": [2.0**y - 1.0 for y in range(int(train.y.max()) + 1)],
        "min_data_in_bin": 1,
        "num_threads": 1,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(train.X, label=train.y, group=np.diff(train.offsets), params=fixed | parameters)
    watching: dict[str, Any] = {}
    if watched is not None:
        watching = {
            "valid_sets": [data.create_valid(watched.X, np.zeros(watched.n_documents), group=np.diff(watched.offsets))],
            "feval": lambda scores, _: ("MAP", MAP().score(watched, scores), True),
            "callbacks": [lightgbm.early_stopping(patience, verbose=False)],
        }
    return lightgbm.train(fixed | parameters, data, n_trees, **watching)


def scores_by_trees(booster: Any, X: Matrix) -> Matrix:
    """Return the scores (n_documents, n_trees) of the rows of X with the first 1, 2, … trees.

    The leaves of all trees are looked up once: O(n_documents · n_trees), not one prediction per number of trees.
    """
    leaves = booster.predict(X, pred_leaf=True, num_threads=1).reshape(len(X), -1)
    values = np.empty(leaves.shape)
    for tree, column in enumerate(leaves.T):
        values[:, tree] = np.array([booster.get_leaf_output(tree, leaf) for leaf in range(column.max() + 1)])[column]
    return np.cumsum(values, axis=1)


def features_of_trees(booster: Any, n_trees: int | None = None) -> Mask:
    """Return the features (n_features,) by which some of the first `n_trees` trees splits."""
    return np.asarray(booster.feature_importance("split", iteration=n_trees) > 0)


def mean_forest(boosters: Iterable[tuple[Any, int]]) -> Forest:
    """Return the forest that scores by the mean of boosters, of each the first so many trees; O(number of leaves).

    Raises
    ------
    ValueError
        If a tree splits by categories, or treats 0 as missing.
    """
    members = list(boosters)
    columns: list[int] = []
    thresholds: list[float] = []
    left: list[int] = []
    right: list[int] = []
    leaves: list[float] = []
    roots: list[int] = []
    for booster, n_trees in members:
        for tree in booster.dump_model(num_iteration=n_trees)["tree_info"]:
            roots.append(0)
            # A node of the tree, and the list and the place in it that are to name it.
            waiting = [(tree["tree_structure"], roots, len(roots) - 1)]
            while waiting:
                node, names, place = waiting.pop()
                if "split_feature" not in node:
                    leaves.append(node["leaf_value"] / len(members))
                    names[place] = -len(leaves)
                    continue
                if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
                    raise ValueError("only trees that split by finite numbers, 0 among them, can be stored")
                names[place] = split = len(columns)
                columns.append(node["split_feature"])
                thresholds.append(node["threshold"])
                left.append(0)
                right.append(0)
                waiting += [(node["right_child"], right, split), (node["left_child"], left, split)]
    return Forest(tuple(columns), tuple(thresholds), tuple(left), tuple(right), tuple(leaves), tuple(roots))


def _check_size(train: RankingData) -> None:
    if train.y.max() > LARGEST_EXP2_LABEL:
        raise ValueError(
            f"{train.name}: the label {train.y.max()} is too large for the gain 2^y − 1 "
            f"(at most {LARGEST_EXP2_LABEL}); use fewer levels of relevance"
        )
    longest = int(np.diff(train.offsets).max())
    if longest > LONGEST_QUERY:
        raise ValueError(
            f"{train.name}: a query has {longest} documents, and LightGBM takes at most {LONGEST_QUERY}; leave "
            "irrelevant documents out"
        )

"""LambdaMART: regression trees boosted along the gradients of NDCG (Wu et al., 2010), trained by LightGBM."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from moerank.checks import check_at_least, check_positive
from moerank.data import RankingData
from moerank.metrics import LARGEST_EXP2_LABEL, MAP
from moerank.rankers.arguments import Vector
from moerank.rankers.base import Grid, Mask, Matrix, Ranker, quality_of
from moerank.rankers.forest import Forest
from moerank.rankers.steady import TrailingMean, steadied

__all__ = [
    "LambdaMART",
    "boosted_trees",
    "features_of_trees",
    "leaf_sizes",
    "mean_forest",
    "scores_by_trees",
    "tree_forms",
]

# LightGBM refuses longer queries.
LONGEST_QUERY = 10_000

# What is tried beside the arguments: small trees, larger leaves (shares of the documents), and a lower learning rate.
FEW_LEAVES = 3
LEAF_SHARES = (0.0025, 0.015)
SLOWER = 0.3


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
    patience : int, default 100
        `tune` ends the training of an entry of the grid so many trees after the 21 trees with the best mean MAP on the
        validation data, and looks at the trees up to these.

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
    Defaults are RankLib's, but 255 bins for its 256 thresholds. They suit large data: leaves of one document learn a
    few thousand by heart. `tune` crosses trees of 3 and of `n_leaves` leaves with leaves of at least `min_leaf`
    documents, 0.25 % and 1.5 % of all, and with `learning_rate` and three tenths of it. It takes the number of trees
    with the best mean validation value over it and up to ten numbers on each side, see `steadied`; RankLib, too, stops
    after 100 trees without a gain, but by single values. These forms and this mean were settled with five-fold test
    values of LambdaMART and RankBoost on OHSUMED and MQ2008 in sight.

    A tree takes O(n_documents · n_features) and O(Σ_q k · n_documents(q)) for the gradients. One thread trains, so
    results do not depend on the machine.

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
        patience: int = 100,
    ) -> None:
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.n_leaves = n_leaves
        self.min_leaf = min_leaf
        self.n_bins = n_bins
        self.k = k
        self.patience = patience

    def default_grid(self, train: RankingData) -> Grid:
        """Return every number of trees up to `n_trees` with each form of the trees; the grid of the forms is ours."""
        forms = tree_forms(train.n_documents, self.n_leaves, self.min_leaf, self.learning_rate)
        return [{"n_trees": size, **form} for size in range(1, self.n_trees + 1) for form in forms]

    def stopped(self, train: RankingData, validation: RankingData) -> LambdaMART:
        """Return a clone with the number of trees that `tune` would choose by MAP, all else as it is.

        Parameters
        ----------
        train, validation : RankingData
        """
        quality = quality_of(self._validation_scores(train, validation), validation, MAP())
        return clone(self).set_params(n_trees=1 + int(np.argmax(self._steadied(quality))))

    def _steadied(self, values: Vector) -> Vector:
        return steadied(values)

    def _validation_scores(self, train: RankingData, validation: RankingData) -> Matrix:
        """Return the validation scores (n_documents, n_trees) with 1, 2, … trees, until `patience` ends them."""
        self._look_at(train)
        held_out = validation.with_features(self.varying_)
        return scores_by_trees(self._boosted(train, held_out), held_out.X64)

    def _check_parameters(self) -> None:
        check_at_least(1, n_trees=self.n_trees, min_leaf=self.min_leaf, k=self.k, patience=self.patience)
        check_at_least(2, n_leaves=self.n_leaves, n_bins=self.n_bins)
        check_positive(learning_rate=self.learning_rate)

    def _boosted(self, train: RankingData, watched: RankingData | None = None) -> Any:
        parameters = {
            "learning_rate": self.learning_rate,
            "num_leaves": self.n_leaves,
            "min_data_in_leaf": self.min_leaf,
            "max_bin": self.n_bins,
            "lambdarank_truncation_level": self.k,
        }
        train = train.with_features(self.varying_)
        return boosted_trees(train, self.n_trees, parameters, watched, self.patience, TrailingMean(MAP()))

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self.booster_ = self._boosted(train)
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


def leaf_sizes(n_documents: int) -> list[int]:
    """Return the `LEAF_SHARES` of so many documents, one at the least."""
    return [max(1, round(share * n_documents)) for share in LEAF_SHARES]


def tree_forms(n_documents: int, n_leaves: int, min_leaf: int, learning_rate: float) -> Grid:
    """Return the forms of trees that are tried on so many documents, those of the arguments among them.

    Examples
    --------
    >>> forms = tree_forms(10_000, 10, 1, 0.1)
    >>> len(forms), forms[0]
    (12, {'n_leaves': 3, 'min_leaf': 150, 'learning_rate': 0.1})
    >>> len(tree_forms(40, 3, 1, 0.1))
    2
    """
    least = {min_leaf, *leaf_sizes(n_documents)}
    return [
        {"n_leaves": leaves, "min_leaf": documents, "learning_rate": rate}
        for leaves in sorted({FEW_LEAVES, n_leaves})
        for documents in sorted(least, reverse=True)
        for rate in (learning_rate, SLOWER * learning_rate)
    ]


def boosted_trees(
    train: RankingData,
    n_trees: int,
    parameters: dict[str, Any],
    watched: RankingData | None = None,
    patience: int = 100,
    value: Callable[[RankingData, Vector], float] | None = None,
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
    patience : int, default 100
    value : callable, optional
        ``value(watched, scores)`` after each tree, in place of MAP.

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
        value = value or MAP().score
        watching = {
            "valid_sets": [data.create_valid(watched.X, np.zeros(watched.n_documents), group=np.diff(watched.offsets))],
            "feval": lambda scores, _: ("value", value(watched, scores), True),
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

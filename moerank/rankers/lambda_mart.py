"""LambdaMART: regression trees boosted along the gradients of NDCG (Wu et al., 2010), trained by LightGBM."""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np

from moerank.arrays import Matrix, Vector
from moerank.checks import AtLeastTwo, Count, Parameters, Positive, Share, check_share
from moerank.data import RankingData
from moerank.data.folds import of_queries
from moerank.data.overlap import digests_of_rows
from moerank.metrics import LARGEST_EXP2_LABEL, MAP, Metric, as_metric
from moerank.rankers.base import Grid, Ranker, quality_of
from moerank.rankers.boosting import TrailingMean, steadied
from moerank.rankers.model import Forest, Tree
from moerank.scikit_learn import clone
from moerank.training.bins import in_single

if TYPE_CHECKING:
    from lightgbm import Booster

# Tuning also tries small trees, larger leaves (as shares of the documents), and a lower learning rate.
FEW_LEAVES = 3
LEAF_SHARES = (0.0025, 0.015)
RATE_FACTOR = 0.3
MAX_SHORT_TREES = 300

# Fewer trees, which lucky validation queries can choose, say little about other data.
MIN_TREES = 20


class TreeRanker(Ranker):
    """Base of the rankers whose trees LightGBM trains over the columns that vary."""

    _additive = False
    _scale_free = True
    _takes_weights = True

    def _forest(self, train: RankingData, trees: list[Tree]) -> Forest:
        """Return the forest of trees of the columns that vary, over all columns."""
        return Forest.of(trees).over(np.flatnonzero(self.varying_)).with_middle_thresholds(train)


class LambdaMART(TreeRanker):
    """Gradient boosting of regression trees for NDCG.

    With scores s, every preference pair (i, j) pulls its documents apart by

        λᵢⱼ = |ΔNDCGᵢⱼ| ρᵢⱼ,   ρᵢⱼ = 1 / (1 + exp(sᵢ − sⱼ)),

    where ΔNDCGᵢⱼ is the change of NDCG if they swapped ranks. A tree is fitted to the sums of λ over the pairs of each
    document, its leaves take the value Σ λ / Σ ρ (1 − ρ) |ΔNDCG|, and `learning_rate` times the tree joins the score.

    Parameters
    ----------
    n_trees : int, default 1000
        Number of trees, at least 1.
    learning_rate : float, default 0.1
        Share of a tree that is added to the score, > 0.
    n_leaves : int, default 10
        Largest number of leaves of a tree, at least 2.
    min_leaf : int, default 1
        Smallest number of documents in a leaf, at least 1.
    n_bins : int, default 255
        Largest number of bins of the values of a feature, at least 2; splits lie between bins.
    k : int, default 10
        Only pairs with a document among the first k by the current scores count.
    patience : int, default 100
        `tune` stops the training of an entry of the grid this many trees after the 21 trees with the best mean metric
        on the validation data, and compares the numbers of trees up to these.

    Attributes
    ----------
    booster_ : lightgbm.Booster
        The trees as LightGBM grew them, over the columns that vary. Its thresholds lie anywhere between two values.
    forest_ : Forest
        The same trees over all columns, with thresholds in the middle between the values around them. Their leaves add
        up to the score.
    support_ : ndarray of bool, shape (n_features,)
        Features that some tree splits by.

    Notes
    -----
    Defaults are RankLib's, with 255 bins for its 256 thresholds. They suit large data: leaves of one document memorise
    a few thousand documents. `tune` crosses trees of 3 and of `n_leaves` leaves with leaves of at least
    `min_leaf` documents, 0.25 % and 1.5 % of all, and with `learning_rate` and three tenths of it. It averages the
    validation values over up to ten numbers of trees on each side, see `steadied`, and takes the best; RankLib also
    stops after 100 trees without a gain, but by single values. We chose these forms and this mean in view of five-fold
    test values of LambdaMART and RankBoost on OHSUMED and MQ2008.

    A tree takes O(n_documents · n_features) and O(Σ_q k · n_documents(q)) for the gradients. One thread trains, so
    results do not depend on the machine.

    LightGBM's NDCG has the gain 2^y − 1, like LETOR's (here y, if labels exceed 62), but the discount 1 / log₂(1 + j)
    at rank j, where LETOR's is 1 at ranks 1 and 2 and 1 / log₂(j) from 3 on: what is optimised is not quite what the
    tables report. LightGBM also evens out queries: it divides the λ of a query by their sum S and multiplies them by
    log₂(1 + S). All scores start equal, and LightGBM ranks equal scores in the order of the rows, so it gets the rows
    of each query in an order that depends on their contents alone.

    Weights of a document and its query multiply its λ and its second derivative. So a query counts by its weight, and a
    document by its own weight in each of its pairs, whatever the weight of the other one.

    References
    ----------
    Q. Wu, C. J. C. Burges, K. M. Svore, J. Gao: Adapting boosting for information retrieval measures. Information
    Retrieval 13, 2010.

    Examples
    --------
    >>> from moerank.rankers.lambda_mart import LambdaMART
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2], [0.2, 0.2]]
    >>> LambdaMART(n_trees=5).fit(X, y=[0, 1, 2, 0], qid=0).predict(X).argmax()
    np.int64(2)
    """

    n_trees: Count = 1000
    learning_rate: Positive = 0.1
    n_leaves: AtLeastTwo = 10
    min_leaf: Count = 1
    n_bins: AtLeastTwo = 255
    k: Count = 10
    patience: Count = 100

    _size = "n_trees"
    _steadied = staticmethod(steadied)

    def default_grid(self, train: RankingData) -> Grid:
        """Return every number of trees up to `n_trees` with each form of the trees; the grid of the forms is ours."""
        min_leaves = sorted({self.min_leaf, *leaf_sizes(train.n_documents)}, reverse=True)
        return [
            {"n_trees": n_trees, "n_leaves": n_leaves, "min_leaf": min_leaf, "learning_rate": rate}
            for n_trees in range(1, self.n_trees + 1)
            for n_leaves in sorted({FEW_LEAVES, self.n_leaves})
            for min_leaf in min_leaves
            for rate in (self.learning_rate, RATE_FACTOR * self.learning_rate)
        ]

    def short_grid(self, train: RankingData) -> Grid:
        """Return the entries with the ranker's learning rate and at most 300 trees, enough to choose a form."""
        return [
            entry
            for entry in self.default_grid(train)
            if entry["learning_rate"] == self.learning_rate and entry["n_trees"] <= MAX_SHORT_TREES
        ]

    def tune_to_serve(
        self,
        train: RankingData,
        validation: RankingData,
        fixed: Container[str] = (),
        **arguments: Any,
    ) -> Self:
        """Return a clone tuned on `short_grid`, with the own number of trees, which `stopped` chooses for each set.

        The `fixed` parameters stay. If they are the form of the trees, there is nothing to tune.
        """
        form = {"n_leaves": self.n_leaves, "min_leaf": self.min_leaf}
        settled = {name: value for name, value in form.items() if name in fixed}
        if settled == form:
            return clone(self)
        grid = [entry for entry in self.short_grid(train) if settled.items() <= entry.items()]
        return self.tune(train, validation, grid, **arguments).set_params(n_trees=self.n_trees)

    def stopped(
        self, train: RankingData, validation: RankingData, metric: Metric | str | None = None
    ) -> Self:
        """Return a clone trained with the number of trees that `tune` would choose, and otherwise the same parameters.

        Parameters
        ----------
        train, validation : RankingData
        metric : Metric or its name, default MAP()
        """
        import lightgbm

        ranker = clone(self)
        ranker._early_stopping_metric = as_metric(metric, MAP())
        trees, scores = ranker._staged(train, validation)
        quality = quality_of(scores, validation, ranker._early_stopping_metric)
        ranker.n_trees = 1 + int(np.argmax(self._steadied(quality)))
        text = ranker.booster_.model_to_string(num_iteration=ranker.n_trees)
        ranker.booster_ = lightgbm.Booster(model_str=text)
        return ranker._with_trees(train, trees[: ranker.n_trees])

    def with_size_of(self, fitted: Self) -> Self:
        """Return a clone with as many trees as validation data chose for a fitted ranker, at least `MIN_TREES`."""
        return clone(self).set_params(n_trees=max(MIN_TREES, fitted.n_trees))

    def _validation_scores(self, train: RankingData, validation: RankingData) -> Matrix:
        """Return the validation scores (n_documents, n_trees) with 1, 2, … trees, until `patience` ends them."""
        return self._staged(train, validation)[1]

    def _staged(self, train: RankingData, validation: RankingData) -> tuple[list[Tree], Matrix]:
        """Return the trees until `patience` ends them, and the validation scores with 1, 2, … of them."""
        self._look_at(train)
        trees = self._grow(train, validation)
        return trees, self._forest(train, trees).staged_scores(validation.X64)

    def _grow(self, train: RankingData, validation: RankingData | None = None) -> list[Tree]:
        """Train the trees, set `booster_`, and return the trees over the columns that vary."""
        self.booster_ = self._boosted(train, validation, self.n_trees)
        return trees_of(self.booster_)

    def _boosted(
        self,
        train: RankingData,
        validation: RankingData | None,
        n_trees: int,
        start: Forest | None = None,
        **parameters: object,
    ) -> Booster:
        """Train trees over the columns that vary, which continue those of `start`, with further parameters."""
        train = train.with_features(self.varying_)
        if validation is not None:
            validation = validation.with_features(self.varying_)
        parameters = self._tree_parameters(train) | parameters
        value = TrailingMean(self._early_stopping_metric)
        return boosted_trees(train, n_trees, parameters, validation, self.patience, value, start)

    def _with_trees(self, train: RankingData, trees: list[Tree]) -> Self:
        self.forest_ = self._forest(train, trees)
        self.support_ = np.isin(np.arange(train.n_features), self.forest_.columns)
        return self

    def _tree_parameters(self, train: RankingData) -> Parameters:
        """Return the parameters of LightGBM for data all of whose features vary."""
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.n_leaves,
            "min_data_in_leaf": self.min_leaf,
            "max_bin": self.n_bins,
            "lambdarank_truncation_level": self.k,
        }

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self._with_trees(train, self._grow(train))

    def _scores(self, X: Matrix) -> Matrix:
        return self.forest_.scores(X)


def leaf_sizes(n_documents: int) -> list[int]:
    """Return the `LEAF_SHARES` of `n_documents` documents, each at least 1."""
    return [max(1, round(share * n_documents)) for share in LEAF_SHARES]


TREES = "LambdaMART"  # the name of the baseline


def tree_baseline(
    train: RankingData,
    validation: RankingData,
    metric: Metric | str | None = None,
    n_trees: int = 100,
) -> LambdaMART:
    """Return the baseline that verdicts name if it is better: LambdaMART on all features, stopped by validation."""
    ranker = LambdaMART(n_trees=n_trees, min_leaf=leaf_sizes(train.n_documents)[0])
    return ranker.stopped(train, validation, metric)


def boosted_trees(
    train: RankingData,
    n_trees: int,
    parameters: Parameters,
    validation: RankingData | None = None,
    patience: int = 100,
    value: Callable[[RankingData, Vector], float] | None = None,
    start: Forest | None = None,
) -> Booster:
    """Train LightGBM's LambdaMART in one thread, and return its Booster.

    With `validation`, training ends `patience` trees after the best ``value(validation, scores)``, by default MAP, and
    the Booster's ``best_iteration`` is the number of trees with this value; otherwise it is not positive. The trees
    continue those of `start`, which the Booster does not contain.
    """
    import lightgbm  # the import takes a second

    labels = np.arange(train.y.max() + 1.0)
    parameters = {
        "objective": "lambdarank",
        "metric": "None",
        "label_gain": (2.0**labels - 1.0 if labels[-1] <= LARGEST_EXP2_LABEL else labels).tolist(),
        "min_data_in_bin": 1,
        "num_threads": 1,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
        **parameters,
    }
    data = _lightgbm_data(train, parameters, start)
    if validation is None:
        return lightgbm.train(parameters, data, n_trees)
    measure = value or MAP().score
    held_out = data.create_valid(
        validation.X,
        np.zeros(validation.n_documents),
        group=np.diff(validation.offsets),
        init_score=None if start is None else start.scores(validation.X64),
    )
    return lightgbm.train(
        parameters,
        data,
        n_trees,
        valid_sets=[held_out],
        feval=lambda scores, _: ("value", measure(validation, scores), True),
        callbacks=[lightgbm.early_stopping(patience, verbose=False)],
    )


def _lightgbm_data(train: RankingData, parameters: Parameters, start: Forest | None) -> Any:
    """Return LightGBM's training data, the rows of each query in an order that depends on their contents alone.

    LightGBM ranks equal scores, which all are at first, in the order of the rows.
    """
    import lightgbm

    sizes, weights = np.diff(train.offsets), train.document_weights
    if train.query_weights is not None:
        weights = np.repeat(train.query_weights, sizes) * (1.0 if weights is None else weights)
    # In single precision, or LightGBM could split between values that are equal there.
    X = in_single(train.X, train.scaling)
    # Scaling may give the same documents other digits in double precision, in another order.
    digests = digests_of_rows([*X.T.astype(np.float32), train.y])
    order = np.lexsort((digests, np.arange(len(sizes)).repeat(sizes)))
    return lightgbm.Dataset(
        X[order],
        label=train.y[order],
        group=sizes,
        weight=None if weights is None else weights[order],
        init_score=None if start is None else start.scores(train.X64)[order],
        params=parameters,
    )


def trees_of(booster: Booster, n_trees: int = -1) -> list[Tree]:
    """Return the first `n_trees` trees of a booster, or all, with LightGBM's thresholds."""

    def tree(node: Parameters) -> Tree:
        if "split_feature" not in node:
            return float(node["leaf_value"])
        children = tree(node["left_child"]), tree(node["right_child"])
        return node["split_feature"], node["threshold"], *children

    try:
        dump = booster.dump_model(num_iteration=n_trees)
    except json.JSONDecodeError:  # JSON has no infinite numbers
        raise ValueError(
            "LambdaMART: a leaf is infinite; scale the features, or lower the learning rate"
        ) from None
    return [tree(entry["tree_structure"]) for entry in dump["tree_info"]]


# LightGBM draws documents one by one, and cannot grow a tree if it happens to draw none. Smaller shares are not drawn.
MIN_DRAWN_DOCUMENTS = 40


class BaggedLambdaMART(TreeRanker):
    """Bagging of LambdaMART: s(x) = (1 / n_bags) Σ_b s_b(x), each s_b boosted on a random part of the queries.

    Parameters
    ----------
    n_bags : int, default 10
        Number of LambdaMART rankers, at least 1.
    query_share : float, default 0.67
        Share of the queries, drawn without replacement, that each ranker is trained on; in (0, 1].
    n_trees : int, default 2000
        Largest number of trees of each ranker, at least 1.
    learning_rate, n_leaves
        As in `LambdaMART`.
    min_leaf_share : float, default 0.0025
        Smallest number of documents in a leaf, as a share of the documents of the bag; in [0, 1).
    document_share, feature_share : float, default 0.3
        Shares of the bag's documents and of the features that each tree uses; in (0, 1]. A tree uses all documents if
        its share is fewer than 40.
    k : int, default 10
        As in `LambdaMART`.
    patience : int, default 100
        A ranker stops after this many trees without a better MAP on the validation data given to `fit`, or on the
        queries left out of its bag; it keeps the trees up to the best.
    random_state : int, optional

    Attributes
    ----------
    boosters_ : tuple of lightgbm.Booster
        The rankers as LightGBM grew them, over the columns that vary.
    n_trees_ : ndarray of int, shape (n_bags,)
        Number of trees that each ranker keeps.
    forest_ : Forest
        The trees that each ranker keeps, over all columns. Their leaves are divided by the number of rankers, and add
        up to the score.
    bags_ : tuple of ndarray of int
        The queries that each ranker is trained on.
    support_ : ndarray of bool, shape (n_features,)
        Features that some tree splits by.

    Notes
    -----
    The paper trains thousands of rankers; ten bags, two thirds of the queries and the parameters of the trees come from
    the defaults and the example of its authors' program. Only queries with a preference pair are drawn, because the
    others teach nothing. If a bag leaves none of them out, and there are no validation data, all trees are kept. It
    takes the time of n_bags LambdaMART rankers.

    References
    ----------
    Y. Ganjisaffar, R. Caruana, C. V. Lopes: Bagging gradient-boosted trees for high precision, low variance ranking
    models. SIGIR, 2011.

    Examples
    --------
    >>> from moerank.data import load_planted_fold
    >>> from moerank.rankers.lambda_mart import BaggedLambdaMART
    >>> train, vali, test = load_planted_fold(1, n_queries=12, n_documents=10)
    >>> ranker = BaggedLambdaMART(n_bags=2, n_trees=20, random_state=0).fit(train.X, train.y, qid=train.qid)
    >>> [len(bag) for bag in ranker.bags_], ranker.predict(test.X).shape == (test.n_documents,)
    ([5, 5], True)
    """

    n_bags: Count = 10
    query_share: Share = 0.67
    n_trees: Count = 2000
    learning_rate: Positive = 0.05
    n_leaves: AtLeastTwo = 7
    min_leaf_share: Annotated[float, partial(check_share, zero=True, one=False)] = 0.0025
    document_share: Share = 0.3
    feature_share: Share = 0.3
    k: Count = 10
    patience: Count = 100
    random_state: int | None = None

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        part = train.with_features(self.varying_)
        if validation is not None:
            validation = validation.with_features(self.varying_)
        rng = np.random.default_rng(self.random_state)
        teaching = np.flatnonzero(part.label_runs.n_pairs_of)
        size = max(1, round(self.query_share * len(teaching)))
        members = []
        trees = []
        for _ in range(self.n_bags):
            bag = np.sort(rng.permutation(teaching)[:size])
            held_out = validation
            if held_out is None and len(bag) < len(teaching):
                held_out = of_queries(part, np.setdiff1d(teaching, bag))
            bagged = of_queries(part, bag)
            settings = self._settings(bagged.n_documents, int(rng.integers(2**31 - 1)))
            booster = boosted_trees(bagged, self.n_trees, settings, held_out, self.patience)
            n_trees = booster.best_iteration if booster.best_iteration > 0 else booster.num_trees()
            members.append((bag, booster, n_trees))
            trees += trees_of(booster, n_trees)
        self.bags_, self.boosters_, sizes = zip(*members, strict=True)
        self.n_trees_ = np.array(sizes)
        self._sum = self._forest(train, trees)
        leaves = tuple(leaf / self.n_bags for leaf in self._sum.leaves)
        self.forest_ = replace(self._sum, leaves=leaves)
        self.support_ = np.isin(np.arange(train.n_features), self._sum.columns)

    def _settings(self, n_documents: int, seed: int) -> Parameters:
        """Return LightGBM's parameters for a bag of `n_documents` documents."""
        all_documents = self.document_share * n_documents < MIN_DRAWN_DOCUMENTS
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.n_leaves,
            "min_data_in_leaf": max(1, round(self.min_leaf_share * n_documents)),
            "bagging_fraction": 1.0 if all_documents else self.document_share,
            "bagging_freq": 1,
            "feature_fraction": self.feature_share,
            "lambdarank_truncation_level": self.k,
            "seed": seed,
        }

    def _scores(self, X: Matrix) -> Matrix:
        scores = np.zeros(len(X))
        for roots in np.split(np.array(self._sum.roots), np.cumsum(self.n_trees_)[:-1]):
            scores += self._sum.scores(X, roots)
        return scores / self.n_bags

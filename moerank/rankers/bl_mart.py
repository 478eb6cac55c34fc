"""BL-MART: the mean of LambdaMART rankers that are each trained on some of the queries (Ganjisaffar et al., 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.checks import check_at_least, check_positive, check_share
from moerank.data import RankingData
from moerank.rankers.base import Matrix, Ranker
from moerank.rankers.forest import Forest
from moerank.rankers.lambda_mart import boosted_trees, features_of_trees, mean_forest

__all__ = ["BaggedLambdaMART"]

# LightGBM draws documents one by one, and cannot grow a tree if it happens to draw none.
FEW_DOCUMENTS = 40


class BaggedLambdaMART(Ranker):
    """Bagging of LambdaMART: s(x) = (1 / n_bags) Σ_b s_b(x), each s_b boosted on a random part of the queries.

    Parameters
    ----------
    n_bags : int, default 10
        Number of LambdaMART rankers, at least 1.
    query_share : float, default 0.67
        Share of the queries, drawn without replacement, that each of them is trained on; in (0, 1].
    n_trees : int, default 2000
        Largest number of trees of each, at least 1.
    learning_rate : float, default 0.05
        Share of a tree that is added to the score, > 0.
    n_leaves : int, default 7
        Largest number of leaves of a tree, at least 2.
    min_leaf_share : float, default 0.0025
        Least number of documents in a leaf, as a share of those of the bag; in [0, 1).
    document_share, feature_share : float, default 0.3
        Shares of the bag's documents and of the features that each tree is shown; in (0, 1]. It is shown all
        documents where this would be fewer than 40.
    k : int, default 10
        Only pairs with a document among the first k count, by the scores so far.
    patience : int, default 100
        A ranker is done after so many trees without a better MAP on the validation data given to `fit`, or on the
        queries left out of its bag; it keeps the trees up to the best.
    random_state : int, optional

    Attributes
    ----------
    boosters_ : tuple of lightgbm.Booster
        The rankers, over the columns that vary.
    n_trees_ : ndarray of int, shape (n_bags,)
        Number of trees that each keeps.
    forest_ : Forest
        The trees whose leaves add up to the score, as a `Model` stores them.
    bags_ : tuple of ndarray of int
        The queries that each is trained on.
    support_ : ndarray of bool, shape (n_features,)
        Features that some tree splits by.

    Notes
    -----
    The paper trains thousands of rankers; ten bags, two thirds of the queries and the parameters of the trees are the
    defaults and the example of its authors' program. Only queries with a preference pair are drawn: the others teach
    nothing. Where a bag leaves none of them out, and no validation data are given, all trees are kept. Time is that
    of n_bags LambdaMART rankers.

    References
    ----------
    Y. Ganjisaffar, R. Caruana, C. V. Lopes: Bagging gradient-boosted trees for high precision, low variance ranking
    models. SIGIR, 2011.

    Examples
    --------
    >>> from moerank.data import load_planted_fold
    >>> from moerank.rankers.bl_mart import BaggedLambdaMART
    >>> train, vali, test = load_planted_fold(1, n_queries=12, n_documents=10)
    >>> ranker = BaggedLambdaMART(n_bags=2, n_trees=20, random_state=0).fit(train.X, train.y, qid=train.qid)
    >>> [len(bag) for bag in ranker.bags_], ranker.predict(test.X).shape == (test.n_documents,)
    ([5, 5], True)
    """

    _additive = False
    _by_thresholds = True

    def __init__(
        self,
        n_bags: int = 10,
        query_share: float = 0.67,
        n_trees: int = 2000,
        learning_rate: float = 0.05,
        n_leaves: int = 7,
        min_leaf_share: float = 0.0025,
        document_share: float = 0.3,
        feature_share: float = 0.3,
        k: int = 10,
        patience: int = 100,
        random_state: int | None = None,
    ) -> None:
        self.n_bags = n_bags
        self.query_share = query_share
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.n_leaves = n_leaves
        self.min_leaf_share = min_leaf_share
        self.document_share = document_share
        self.feature_share = feature_share
        self.k = k
        self.patience = patience
        self.random_state = random_state

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        train = train.with_features(self.varying_)
        if validation is not None:
            validation = validation.with_features(self.varying_)
        rng = np.random.default_rng(self.random_state)
        starts = train.offsets[:-1]
        teaching = np.flatnonzero(np.maximum.reduceat(train.y, starts) > np.minimum.reduceat(train.y, starts))
        size = max(1, round(self.query_share * len(teaching)))
        members = []
        for _ in range(self.n_bags):
            bag = np.sort(rng.permutation(teaching)[:size])
            watched = validation
            if watched is None and len(bag) < len(teaching):
                watched = _queries(train, np.setdiff1d(teaching, bag))
            part = _queries(train, bag)
            settings = self._settings(part.n_documents, int(rng.integers(2**31 - 1)))
            booster = boosted_trees(part, self.n_trees, settings, watched, self.patience)
            best = booster.best_iteration
            members.append((bag, booster, best if best > 0 else booster.num_trees()))
        self.bags_, self.boosters_, kept = zip(*members, strict=True)
        self.n_trees_ = np.array(kept)
        used = [features_of_trees(booster, n) for booster, n in zip(self.boosters_, kept, strict=True)]
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[self.varying_] = np.any(used, axis=0)

    def _settings(self, n_documents: int, seed: int) -> dict[str, Any]:
        """Return LightGBM's parameters for a bag of so many documents."""
        few = self.document_share * n_documents < FEW_DOCUMENTS
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.n_leaves,
            "min_data_in_leaf": max(1, round(self.min_leaf_share * n_documents)),
            "bagging_fraction": 1.0 if few else self.document_share,
            "bagging_freq": 1,
            "feature_fraction": self.feature_share,
            "lambdarank_truncation_level": self.k,
            "seed": seed,
        }

    def _scores(self, X: Matrix) -> Matrix:
        varying = X[:, self.varying_]
        scores = np.zeros(len(X))
        for booster, n_trees in zip(self.boosters_, self.n_trees_, strict=True):
            scores += booster.predict(varying, num_iteration=int(n_trees), num_threads=1)
        return scores / len(self.boosters_)

    @property
    def forest_(self) -> Forest:
        """The trees that each ranker keeps, their leaves divided by the number of rankers, over all columns."""
        kept = zip(self.boosters_, self.n_trees_.tolist(), strict=True)
        return mean_forest(kept).over(np.flatnonzero(self.varying_))

    def _check_parameters(self) -> None:
        check_at_least(1, n_bags=self.n_bags, n_trees=self.n_trees, k=self.k, patience=self.patience)
        check_at_least(2, n_leaves=self.n_leaves)
        check_positive(learning_rate=self.learning_rate)
        check_share(query_share=self.query_share, document_share=self.document_share, feature_share=self.feature_share)
        check_share(zero=True, one=False, min_leaf_share=self.min_leaf_share)


def _queries(data: RankingData, queries: NDArray[np.int64]) -> RankingData:
    """Return these queries of `data`, in their order there."""
    rows = np.concatenate([np.arange(data.offsets[q], data.offsets[q + 1]) for q in queries])
    return data.with_rows(rows)

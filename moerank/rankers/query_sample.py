"""A ranker that trains on some of the queries, for searches that spend more queries on better candidates."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from moerank.arrays import Vector
from moerank.rankers.arguments import as_ranking_data


class QuerySample(BaseEstimator):  # type: ignore[misc]
    """Train a ranker on a random sample of whole queries.

    The resource `n_samples` of scikit-learn's HalvingGridSearchCV draws single documents, which divides queries. With
    ``resource="n_queries"`` and this ranker, the search draws queries.

    Parameters
    ----------
    ranker : estimator of moerank
        Its own parameters are set as ``ranker__…``.
    n_queries : int, optional
        Queries to train on, at least 1; None, or more than the data have, for all.
    random_state : int, default 0
        Seed of the order of the queries. A larger sample contains each smaller one.

    Attributes
    ----------
    ranker_ : estimator
        The clone that was trained.

    Examples
    --------
    >>> from moerank.rankers import RankRLS
    >>> X, y, qid = [[0.1], [0.9], [0.9], [0.2]], [0, 1, 0, 1], [1, 1, 2, 2]
    >>> [round(float(QuerySample(RankRLS(), n).fit(X, y, qid=qid).ranker_.coef_[0]), 2) for n in (1, 2)]
    [0.49, 0.03]
    """

    # As in RankingEstimator: handed on without being asked for.
    __metadata_request__fit: ClassVar = {"qid": True}
    __metadata_request__score: ClassVar = {"qid": True}

    def __init__(self, ranker: Any, n_queries: int | None = None, random_state: int = 0) -> None:
        self.ranker = ranker
        self.n_queries = n_queries
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike | None = None, *, qid: ArrayLike | None = None) -> Self:
        """Train a clone of the ranker on the sample; data as in `RankSVM.fit`."""
        data = as_ranking_data(X, y, qid)
        chosen = np.sort(np.random.default_rng(self.random_state).permutation(data.n_queries)[: self.n_queries])
        rows = np.concatenate([np.arange(data.offsets[q], data.offsets[q + 1]) for q in chosen])
        self.ranker_ = clone(self.ranker).fit(data.with_rows(rows))
        return self

    def predict(self, X: Any) -> Vector:
        """Return the scores (n_documents,) of the rows of X; higher ranks higher."""
        return np.asarray(self.ranker_.predict(X))

    def score(self, X: Any, y: ArrayLike | None = None, *, qid: ArrayLike | None = None) -> float:
        """Return the score of the ranker, for all but MOFSRank the mean average precision."""
        return float(self.ranker_.score(X, y, qid=qid))

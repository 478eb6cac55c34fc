"""Ranking metrics as scikit-learn's scorers, for its searches and cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.metrics import make_scorer

from moerank.data import RankingData
from moerank.data.labels_alone import labels_alone

__all__ = ["ranking_scorer"]


def ranking_scorer(score: Callable[[RankingData, NDArray[np.float64]], float], name: str) -> Any:
    """Return a scorer that ranks by what an estimator predicts, for the queries that metadata routing hands on.

    Parameters
    ----------
    score : callable
        Returns the value of ``score(data, scores)``, the larger the better.
    name : str
        How it is called where a scorer shows itself.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, qid=qid)``, as `sklearn.metrics.make_scorer` makes them; it has asked for `qid`
        already. Without it there is a ValueError: whole folds would be one query.

    Examples
    --------
    >>> from moerank.metrics import MAP
    >>> from moerank.rankers import RankRLS
    >>> X, y, qid = [[0.1], [0.9], [0.3], [0.5]], [0, 1, 0, 1], [1, 1, 2, 2]
    >>> with config_context(enable_metadata_routing=True):
    ...     MAP().scorer()(RankRLS().fit(X, y, qid=qid), X, y, qid=qid)
    1.0
    """
    with config_context(enable_metadata_routing=True):
        return make_scorer(_OfRanking(score, name), response_method="predict").set_score_request(qid=True)


@dataclass(frozen=True)
class _OfRanking:
    """What scikit-learn calls with labels and predictions; a class, so that it can be sent to another process."""

    score: Callable[[RankingData, NDArray[np.float64]], float]
    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike, *, qid: ArrayLike | None = None) -> float:
        if qid is None:
            raise ValueError(
                "a ranking metric needs the query of each document: after "
                "sklearn.set_config(enable_metadata_routing=True), give qid beside X and y, as in "
                "GridSearchCV(…).fit(X, y, qid=qid, groups=qid), or cross_validate(…, params={'qid': qid, 'groups': "
                "qid})"
            )
        return self.score(labels_alone(y_true, qid), np.asarray(y_pred, np.float64))

"""How many preference pairs are among some documents, or in some queries, wherever the documents are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.data.ranking_data import RankingData
from moerank.data.shares import ByDocument

__all__ = ["n_pairs_of_documents", "n_pairs_of_queries"]

Mask = NDArray[np.bool_]


def n_pairs_of_queries(data: RankingData, masks: Mask) -> NDArray[np.int64]:
    """Count the preference pairs of the queries that each row of `masks` (n, n_queries) keeps, shape (n,).

    Examples
    --------
    >>> data = RankingData([[0.1], [0.9], [0.5], [0.2]], y=[0, 2, 1, 0], qid=[1, 1, 2, 2])
    >>> n_pairs_of_queries(data, np.array([[True, True], [False, True]])).tolist()
    [2, 1]
    """
    of_query = data.remember("pairs of queries", lambda: np.concatenate(data.map(_pairs_of_queries)))
    return np.array([of_query[mask].sum() for mask in masks], np.int64)


def n_pairs_of_documents(data: RankingData, masks: Mask) -> NDArray[np.int64]:
    """Count the preference pairs of which both documents are kept, by each row of `masks` (n, n_documents).

    Shape (n,); O(n · n_documents).
    """
    return data.total(_pairs_of_documents, ByDocument(masks))


def _pairs_of_queries(data: RankingData) -> NDArray[np.int64]:
    return data.label_runs.n_pairs_of


def _pairs_of_documents(data: RankingData, masks: Mask) -> NDArray[np.int64]:
    return np.array([data.label_runs.n_pairs_among(mask) for mask in masks], np.int64)

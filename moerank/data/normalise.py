"""Scaling and centring query by query."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.data.ranking_data import RankingData

__all__ = ["centre_in_queries", "query_level_norm"]


def query_level_norm(data: RankingData) -> RankingData:
    """Scale every feature of every query to [0, 1].

    Within a query, x′ = (x − min) / (max − min), and 0 where the feature is constant. Scales that differ from query to
    query carry no preference, and the rankers assume that features are comparable.

    Parameters
    ----------
    data : RankingData
        Raw features.

    Returns
    -------
    RankingData
        The same documents with scaled features. Time O(n_documents · n_features).

    References
    ----------
    T. Qin, T.-Y. Liu, J. Xu, H. Li: LETOR: a benchmark collection for research on learning to rank for information
    retrieval. Information Retrieval 13 (2010), QueryLevelNorm.

    Examples
    --------
    >>> query_level_norm(RankingData([[10.0, 3.0], [30.0, 3.0], [15.0, 3.0]], y=[0, 2, 1])).X
    array([[0. , 0. ], [1. , 0. ], [0.25, 0. ]])
    """
    X = data.X
    if np.abs(X).max() >= 2.0**1022:
        X = X * 0.5  # the difference of two such values could overflow
    starts = data.offsets[:-1]
    lengths = np.diff(data.offsets)
    least = np.minimum.reduceat(X, starts)
    extent = np.maximum.reduceat(X, starts) - least
    extent[extent == 0.0] = 1.0
    scaled = (X - np.repeat(least, lengths, axis=0)) / np.repeat(extent, lengths, axis=0)
    return RankingData(scaled, data.y, data.qid, data.given_names, name=data.name)


def centre_in_queries(values: ArrayLike, offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Subtract from each column its mean over the documents of the query.

    Parameters
    ----------
    values : array-like, shape (n_documents,) or (n_documents, n_columns)
    offsets : ndarray of int64, shape (n_queries + 1,)

    Returns
    -------
    ndarray of float64, the shape of `values`
        Exactly 0 where a column is constant in the query, whose mean may differ from the constant by rounding.

    Examples
    --------
    >>> centre_in_queries([0.1, 0.1, 0.1, 1.0, 3.0], np.array([0, 3, 5])).tolist()
    [0.0, 0.0, 0.0, -1.0, 1.0]
    """
    values = np.asarray(values, dtype=np.float64)
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(len(sizes)), sizes)
    means = np.add.reduceat(values, offsets[:-1]) / sizes.reshape(-1, *[1] * (values.ndim - 1))
    constant = np.maximum.reduceat(values, offsets[:-1]) == np.minimum.reduceat(values, offsets[:-1])
    return np.where(constant[query], 0.0, values - means[query])

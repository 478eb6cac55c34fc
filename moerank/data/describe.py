"""What a data set holds, in numbers: what to look at before anything is learnt from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from moerank.data.ranking_data import RankingData

__all__ = ["DataDescription", "describe"]

SHORT_QUERY = 10
"""Queries with fewer documents add 0 to LETOR's NDCG@10."""


@dataclass(frozen=True)
class DataDescription:
    """Counts of a data set.

    Attributes
    ----------
    name : str
        How messages call the data set.
    documents, queries, features : int
        Its size.
    labels : dict of int to int
        How many documents have each relevance label that occurs.
    queries_without_relevant : int
        Queries in which every label is 0; every metric counts them as 0.
    short_queries : int
        Queries with fewer than 10 documents; LETOR's NDCG@10 counts them as 0.
    shortest_query, longest_query : int
        Documents of the shortest and the longest query.
    median_query : float
        The median number of documents of a query.
    constant_features : tuple of str
        Names of the features with one value throughout.
    pairs : int
        Preference pairs.
    queries_without_pairs : int
        Queries whose documents all have the same label: nothing is learnt from them.
    identical_groups : int
        Groups of two or more documents of one query that no feature tells apart: every ranker ties them.
    identical_documents : int
        Documents in such groups.
    """

    name: str
    documents: int
    queries: int
    features: int
    labels: dict[int, int]
    queries_without_relevant: int
    short_queries: int
    shortest_query: int
    median_query: float
    longest_query: int
    constant_features: tuple[str, ...]
    pairs: int
    queries_without_pairs: int
    identical_groups: int
    identical_documents: int

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes in the form JSON keeps: lists for tuples, strings for the labels."""
        labels = {str(label): count for label, count in self.labels.items()}
        return asdict(self) | dict(labels=labels, constant_features=list(self.constant_features))


def describe(data: RankingData) -> DataDescription:
    """Count what a data set holds.

    Parameters
    ----------
    data : RankingData
        The data set.

    Returns
    -------
    DataDescription
        Time O(n_documents · n_features) beside the enumeration of the pairs.

    Examples
    --------
    >>> description = describe(RankingData([[0.5, 1], [0.25, 1], [0.5, 1]], y=[0, 2, 0]))
    >>> description.labels, description.pairs, description.constant_features, description.identical_documents
    ({0: 2, 2: 1}, 2, ('2',), 2)
    """
    starts = data.offsets[:-1]
    lengths = np.diff(data.offsets)
    highest = np.maximum.reduceat(data.y, starts)
    lowest = np.minimum.reduceat(data.y, starts)
    labels, counts = np.unique(data.y, return_counts=True)
    constant = data.X.min(axis=0) == data.X.max(axis=0)
    groups = [size for size in _document_copies(data).values() if size > 1]
    return DataDescription(
        name=data.name,
        documents=data.n_documents,
        queries=data.n_queries,
        features=data.n_features,
        labels=dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        queries_without_relevant=int((highest == 0).sum()),
        short_queries=int((lengths < SHORT_QUERY).sum()),
        shortest_query=int(lengths.min()),
        median_query=float(np.median(lengths)),
        longest_query=int(lengths.max()),
        constant_features=tuple(data.feature_names[f] for f in np.flatnonzero(constant)),
        pairs=len(data.pairs),
        queries_without_pairs=int((highest == lowest).sum()),
        identical_groups=len(groups),
        identical_documents=sum(groups),
    )


def _document_copies(data: RankingData) -> Counter[tuple[int, bytes]]:
    """Count the documents with the same features in the same query."""
    query = np.repeat(np.arange(data.n_queries), np.diff(data.offsets)).tolist()
    rows = data.X + 0.0  # makes −0 the same bytes as 0
    return Counter((q, row.tobytes()) for q, row in zip(query, rows, strict=True))

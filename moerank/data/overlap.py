"""Queries that stand in two parts of a fold: the parts must hold different ones, or their metrics are too good."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from moerank.arrays import Array
from moerank.data.inputs import row_blocks
from moerank.data.preparation import ROWS
from moerank.data.ranking_data import RankingData, remembered

PARTS = ("training", "validation", "test")


@remembered
def row_digests(data: RankingData) -> Array:
    """Return 64 bits for the features of each document; those of −0 and 0 are equal. Takes 1 s for about 1 GB."""
    import pandas as pd

    digests = []
    for rows in row_blocks(data.n_documents, ROWS):
        table = pd.DataFrame(data.X[rows] + 0.0)
        digests.append(pd.util.hash_pandas_object(table, index=False).to_numpy())
    return np.concatenate(digests)


def query_digests(data: RankingData) -> Array:
    """Return 64 bits for the rows of each query, features and labels, whatever their order."""
    import pandas as pd

    rows = pd.util.hash_array(row_digests(data) + data.y.view(np.uint64))
    return np.add.reduceat(rows, data.offsets[:-1])


def shared_queries(parts: Sequence[RankingData]) -> tuple[list[str], list[str]]:
    """Return sentences about queries that stand in two parts: by all their rows, and else by their ids.

    Rows are features and labels, in any order. Queries without a preference pair make no such sentence, because they
    may be alike by chance. Ids make none if each part only counts its own queries.

    Examples
    --------
    >>> train = RankingData([[0.5], [0.25], [0.75], [0.5]], y=[1, 0, 1, 0], qid=[7, 7, 8, 8])
    >>> same = RankingData([[0.25], [0.5]], y=[0, 1], qid=[9, 9])
    >>> shared_queries([train, same])[0][0][:71]
    '1 of 1 validation queries are also in the training part by all their rows'
    >>> other = RankingData([[0.25], [0.625]], y=[0, 1], qid=[8, 8])
    >>> shared_queries([train, other])[1][0][:67]
    '1 of 1 validation queries are also in the training part by their id'
    """
    ids = [part.qid[part.offsets[:-1]] for part in parts]
    copies, others = [], []
    for i, j in combinations(range(len(parts)), 2):
        is_copy = np.isin(query_digests(parts[j]), query_digests(parts[i]))
        if is_copy[parts[j].label_runs.n_pairs_of > 0].any():
            copies.append(_sentence(i, j, "all their rows", ids[j][is_copy], len(ids[j])))
        elif len(known := np.intersect1d(ids[j], ids[i])) and not _are_counts(ids):
            others.append(_sentence(i, j, "their ids", known, len(ids[j])))
    return copies, others


def _are_counts(ids: Sequence[Array]) -> bool:
    """Return whether each part only counts its queries: from one start, by one, up to different numbers."""
    are_counts = (
        part.dtype.kind in "iu" and part[0] == ids[0][0] and (np.diff(part) == 1).all()
        for part in ids
    )
    return all(are_counts) and len(set(map(len, ids))) > 1


def _sentence(i: int, j: int, what: str, queries: Array, n_queries: int) -> str:
    return (
        f"{len(queries):,} of {n_queries:,} {PARTS[j]} queries are also in the {PARTS[i]} part by "
        f"{what}, such as {queries[0]}; keep all rows of a query in one part"
    )

"""Queries that stand in two parts of a fold, which must not be: a metric on queries known from training is too good."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from moerank.arrays import Array
from moerank.data.ranking_data import RankingData, remembered

PART_NAMES = ("training", "validation", "test")


def digests_of_rows(columns: Iterable[Array]) -> Array:
    """Return 64 bits for each row of a table, given by columns; those of −0 and 0 are equal."""
    from pandas.util import hash_array

    digests = np.zeros(1, np.uint64)
    for column in columns:
        digests = (digests ^ hash_array(column + 0)) * np.uint64(0x9E3779B97F4A7C15)
    return digests


@remembered
def query_digests(data: RankingData) -> Array:
    """Return 64 bits for the rows of each query, features and label, whatever their order; in about 2 s a GB."""
    return np.add.reduceat(digests_of_rows([*data.X.T, data.y]), data.offsets[:-1])


def shared_queries(parts: Sequence[RankingData]) -> dict[str, bool]:
    """Return sentences about queries that stand in two parts, and whether these have the same rows there.

    Rows are features and label, in any order. Where no query with a preference pair has the same rows (others may have
    them by chance), the ids are compared, unless the later part only counts its queries: 1, 2, and so on.

    Examples
    --------
    >>> train = RankingData([[0.5], [0.25], [0.75], [0.5]], y=[1, 0, 1, 0], qid=[7, 7, 8, 8])
    >>> [sentence] = shared_queries([train, RankingData([[0.25], [0.5]], y=[0, 1], qid=[9, 9])])
    >>> sentence[:73]
    '1 of 1 validation queries are also in the training part by all their rows'
    """
    sentences = {}
    for (i, former), (j, latter) in combinations(enumerate(parts), 2):
        is_shared = np.isin(query_digests(latter), query_digests(former))
        is_copy = bool(is_shared[latter.label_runs.n_pairs_of > 0].any())
        if not is_copy:
            is_shared = np.isin(latter.query_ids, former.query_ids)
        if is_shared.any() and (is_copy or not _only_counts(latter, parts[0])):
            what = "all their rows" if is_copy else "their ids"
            sentence = (
                f"{is_shared.sum():,} of {latter.n_queries:,} {PART_NAMES[j]} queries are also in "
                f"the {PART_NAMES[i]} part by {what}, such as {latter.query_ids[is_shared][0]}. "
                "Keep all rows of a query in one part."
            )
            sentences[sentence] = is_copy
    return sentences


def _only_counts(part: RankingData, train: RankingData) -> bool:
    """Return whether the ids of a part are consecutive numbers, and others than those of the training part."""
    is_run = part.qid.dtype.kind in "iu" and np.ptp(part.qid) < part.n_queries
    return is_run and not np.array_equal(part.query_ids, train.query_ids)

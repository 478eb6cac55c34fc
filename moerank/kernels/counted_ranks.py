"""Ranking metrics of many individuals at once, by counting instead of sorting, and most violated rankings.

The rank of a relevant document is one more than the number of documents above it. One vector comparison per document
counts them for `LANES` individuals; equal scores rank in order of the rows. The gain of the document is written to its
rank, and the metric sums the gains in order of rank. So rankings that differ only in documents of equal label have the
same value to the last bit, whatever else is in the batch.

Most documents need not be counted. Deal the documents of a query into `depth` groups: `depth` documents, the best of
each group, reach the smallest of the groups' best scores. Documents below this floor for all individuals of the block
are left out.
"""

from operator import ge, gt
from typing import Any, TypeAlias

import numpy as np
from numba import njit

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.kernels.compiled import kernel
from moerank.kernels.tiles import longest_query

# Individuals per block. The compiler vectorises the loops over them, because their length is constant.
LANES = 16

# Buffers for a query: scores and gains of the candidates, and gains by rank.
Room: TypeAlias = tuple[Matrix, Vector, Matrix]


@kernel
def normalised_gain(
    scores: Vector,
    offsets: Integers,
    query: Integers,
    gain: Vector,
    discount: Vector,
    depth: Integers,
    ideal: Vector,
    ideal_first: Integers,
) -> Matrix:
    """Return the discounted cumulated gain over its ideal value, averaged over the last ranks of each query.

    Shape (n_queries, n_individuals), 0 where a query does not count. O(n_individuals · Σ_q n_relevant · n_documents) at
    worst, O(n_individuals · Σ_q n_documents) where the individuals of a block rank alike and `depth` is small.

    scores : (n_documents, n_individuals), C-contiguous, finite, or −∞ for a document that has no rank
    offsets : (n_queries + 1,); query q has the rows ``offsets[q]`` to ``offsets[q + 1]``
    query : (n_counted,), the queries that can have a value other than 0
    gain : (n_documents,), the gain of each document at discount 1: 0 if it is irrelevant, else positive
    discount : (max(depth),) or longer, the weight of each rank
    depth : (n_counted,), the last rank that counts, between 1 and the number of documents of the query
    ideal : (ideal_first[-1],), divisors of the cumulated gain at each averaged rank, of which `depth` is the last
    ideal_first : (n_counted + 1,), where the entries of each counted query begin in `ideal`
    """
    n_individuals = scores.shape[1]
    values = np.zeros((len(offsets) - 1, n_individuals))
    if len(query) == 0 or n_individuals == 0:
        return values
    table = _at_least_one_block(scores)
    room = _room(offsets, query)
    placed = room[2]
    cumulated, total = np.empty(LANES), np.empty(LANES)
    for block in range(0, n_individuals, LANES):
        column = min(block, table.shape[1] - LANES)
        for c in range(len(query)):
            begin, end = offsets[query[c]], offsets[query[c] + 1]
            _place_gains(table, column, begin, end, gain, depth[c], room)
            n_averaged = ideal_first[c + 1] - ideal_first[c]
            cumulated[:] = 0.0
            total[:] = 0.0
            for rank in range(depth[c]):
                for lane in range(LANES):
                    cumulated[lane] += placed[rank, lane] * discount[rank]
                averaged = rank - (depth[c] - n_averaged)
                if averaged >= 0:
                    for lane in range(LANES):
                        total[lane] += cumulated[lane] / ideal[ideal_first[c] + averaged]
            for lane in range(min(LANES, n_individuals)):
                values[query[c], column + lane] = total[lane] / n_averaged
    return values


@kernel
def average_precision(
    scores: Vector, offsets: Integers, query: Integers, relevance: Vector
) -> Matrix:
    """Return the mean of the precision at the ranks of the relevant documents; see `normalised_gain`.

    `relevance` is 1 for a relevant document and 0 for any other; each query in `query` has a relevant document.
    """
    n_individuals = scores.shape[1]
    values = np.zeros((len(offsets) - 1, n_individuals))
    if len(query) == 0 or n_individuals == 0:
        return values
    table = _at_least_one_block(scores)
    room = _room(offsets, query)
    placed = room[2]
    hits, total = np.empty(LANES), np.empty(LANES)
    for block in range(0, n_individuals, LANES):
        column = min(block, table.shape[1] - LANES)
        for q in query:
            begin, end = offsets[q], offsets[q + 1]
            n_relevant = relevance[begin:end].sum()
            _place_gains(table, column, begin, end, relevance, end - begin, room)
            hits[:] = 0.0
            total[:] = 0.0
            for rank in range(end - begin):
                for lane in range(LANES):
                    hits[lane] += placed[rank, lane]
                    total[lane] += placed[rank, lane] * (hits[lane] / (rank + 1))
            for lane in range(min(LANES, n_individuals)):
                values[q, column + lane] = total[lane] / n_relevant
    return values


def sum_over_queries(values: Matrix) -> Vector:
    """Return the sum over the rows, in order."""
    values = np.ascontiguousarray(values, np.float64)
    # NumPy sums the rows of a table in C order one after the other, but a single column pairwise.
    return values.sum(axis=0) if values.shape[1] > 1 else values.cumsum()[-1:]


def mean_over_queries(values: Matrix) -> Vector:
    """Return the mean over the rows, summed in order."""
    return sum_over_queries(values) / len(values)


@kernel
def _room(offsets: Integers, query: Integers) -> Room:
    """Return buffers for the longest query."""
    longest = longest_query(offsets, query)
    return np.empty((longest, LANES)), np.empty(longest), np.empty((longest, LANES))


@kernel
def _at_least_one_block(scores: Vector) -> Matrix:
    """Pad a narrow table with copies of its last individual, which add no candidates.

    A wide table needs no padding: its last block overlaps the block before it.
    """
    n_documents, n_individuals = scores.shape
    if n_individuals >= LANES:
        return scores
    padded = np.empty((n_documents, LANES))
    for i in range(n_documents):
        for lane in range(LANES):
            padded[i, lane] = scores[i, min(lane, n_individuals - 1)]
    return padded


@kernel
def _place_gains(
    table: Matrix, column: int, begin: int, end: int, gain: Vector, depth: int, room: Room
) -> None:
    """Write the gain of the document at each of the first `depth` ranks of a query to ``placed[rank]``."""
    candidates, candidate_gain, placed = room
    n_candidates = _copy_candidates(table, column, begin, end, gain, depth, room)
    placed[:depth] = 0.0
    above = np.empty(LANES, np.int64)
    for i in range(n_candidates):
        if candidate_gain[i] > 0.0:
            above[:] = 0
            _count(candidates[:i], ge, candidates[i], above)
            _count(candidates[i + 1 : n_candidates], gt, candidates[i], above)
            for lane in range(LANES):
                if above[lane] < depth and candidates[i, lane] > -np.inf:
                    placed[above[lane], lane] = candidate_gain[i]


@kernel
def _copy_candidates(
    table: Matrix, column: int, begin: int, end: int, gain: Vector, depth: int, room: Room
) -> int:
    """Copy the documents that may be in the first `depth` ranks of some individual, and return their number."""
    candidates, candidate_gain, _ = room
    floor = np.full(LANES, np.inf)
    best = np.empty(LANES)
    for group in range(depth):
        best[:] = -np.inf
        for i in range(begin + group, end, depth):
            for lane in range(LANES):
                best[lane] = max(best[lane], table[i, column + lane])
        for lane in range(LANES):
            floor[lane] = min(floor[lane], best[lane])
    n_candidates = 0
    for i in range(begin, end):
        reached = 0
        for lane in range(LANES):
            reached += table[i, column + lane] >= floor[lane]
        if reached:
            for lane in range(LANES):
                candidates[n_candidates, lane] = table[i, column + lane]
            candidate_gain[n_candidates] = gain[i]
            n_candidates += 1
    return n_candidates


# Not cached: its signature contains the address of the function `stands`, which differs between processes. Its callers
# are cached.
@njit(nogil=True)
def _count(rows: Vector, stands: Any, score: Vector, count: Integers) -> None:
    """Add the number of rows with ``stands(row, score)`` to each lane of `count`, four rows at a time."""
    n_full = len(rows) // 4 * 4
    for j in range(0, n_full, 4):
        for lane in range(LANES):
            s = score[lane]
            a, b = stands(rows[j, lane], s), stands(rows[j + 1, lane], s)
            c, d = stands(rows[j + 2, lane], s), stands(rows[j + 3, lane], s)
            count[lane] += a + b + c + d
    for j in range(n_full, len(rows)):
        for lane in range(LANES):
            count[lane] += stands(rows[j, lane], score[lane])


@kernel
def most_violated_rankings(
    z: Vector, relevant: Mask, offsets: Integers, coefficients: Vector, losses: Vector
) -> None:
    """Find in each query the ranking π that maximises 1 − AP(π) + wᵀΨ(π), from the scores z = Xw alone.

    With R the relevant and N the other documents of a query,

        Ψ(π) = 1 / (|R| |N|) Σ_{i ∈ R} Σ_{j ∈ N} ± (xᵢ − xⱼ),   + where π has i above j.

    Documents of one kind are ordered by score. Each irrelevant document, from the best on, takes its best position
    among the relevant ones. A worse one never belongs above a better one, so these positions form a ranking.

    `coefficients` (n_documents,) receives the factors of x in Ψ(perfect ranking) − Ψ(π), query by query, and `losses`
    (n_queries,) 1 − AP(π); both are 0 in queries without documents of both kinds. O(|R| |N|) per query, and sorting.
    """
    coefficients[:] = 0.0
    losses[:] = 0.0
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        n_relevant = relevant[begin:end].sum()
        n_others = end - begin - n_relevant
        if n_relevant == 0 or n_others == 0:
            continue
        above, below = np.empty(n_relevant, np.int64), np.empty(n_others, np.int64)
        i, j = 0, 0
        for position in np.argsort(-z[begin:end], kind="mergesort"):
            if relevant[begin + position]:
                above[i] = begin + position
                i += 1
            else:
                below[j] = begin + position
                j += 1
        passed = np.zeros(n_relevant + 1, np.int64)  # irrelevant documents by relevant ones above
        share = 2.0 / (n_relevant * n_others)
        for j in range(n_others):
            # From the end of the ranking up: the gain of standing above one more relevant document.
            best, best_gain, gain = n_relevant, 0.0, 0.0
            for i in range(n_relevant - 1, -1, -1):
                precision_lost = (i + 1.0) / (i + 1.0 + j) - (i + 1.0) / (i + 2.0 + j)
                gain += precision_lost / n_relevant - share * (z[above[i]] - z[below[j]])
                if gain > best_gain:
                    best, best_gain = i, gain
            passed[best] += 1
            coefficients[below[j]] -= share * (n_relevant - best)
        n_above = 0
        precision = 0.0
        for i in range(n_relevant):
            n_above += passed[i]
            coefficients[above[i]] = share * n_above
            precision += (i + 1.0) / (i + 1.0 + n_above)
        losses[q] = 1.0 - precision / n_relevant

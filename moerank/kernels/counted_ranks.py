"""Ranking metrics of many individuals at once, by counting instead of sorting, and most violated rankings.

The rank of a relevant document is one more than the number of documents above it. One vector comparison per document
counts them for `LANES` individuals, and another one counts its equals. Documents with equal scores share their ranks: a
value is the mean over all orders of equal scores. Each rank of a group of equals has the mean gain of the group. The
metric sums the gains in order of rank. So rankings that differ only in documents of equal label have the same value to
the last bit, whatever else is in the batch.

Most documents need not be counted. Deal the documents of a query into `depth` groups: `depth` documents, the best of
each group, reach the smallest of the groups' best scores. Documents below this floor for all individuals of the block
are left out.
"""

from typing import TypeAlias

import numpy as np

from moerank.arrays import Floats, Integers, Mask, Matrix, Vector
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import bits_of, blend, first_bit, lanes, load, load_at, spread, store
from moerank.kernels.tiles import longest_query

# Individuals per block.
LANES = lanes(np.float64)

# Buffers for a query: scores and gains of the candidates; gains of the relevant ones, and how many documents are above
# and equal to them; the gain of each rank; and the individuals with equals of each relevant one.
Room: TypeAlias = tuple[Matrix, Vector, Vector, Matrix, Matrix, Matrix, Integers]


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
    placed = room[5]
    for block in range(0, n_individuals, LANES):
        column = min(block, table.shape[1] - LANES)
        for c in range(len(query)):
            begin, end = offsets[query[c]], offsets[query[c] + 1]
            _place_gains(table, column, begin, end, gain, depth[c], room)
            n_averaged = ideal_first[c + 1] - ideal_first[c]
            cumulated = total = spread(0.0)
            for rank in range(depth[c]):
                cumulated = cumulated + load(placed, rank) * spread(discount[rank])
                averaged = rank - (depth[c] - n_averaged)
                if averaged >= 0:
                    total = total + cumulated / spread(ideal[ideal_first[c] + averaged])
            store(placed, 0, total)
            for lane in range(min(LANES, n_individuals)):
                values[query[c], column + lane] = placed[0, lane] / n_averaged
    return values


@kernel
def average_precision(
    scores: Vector, offsets: Integers, query: Integers, relevance: Vector
) -> Matrix:
    """Return the mean of the precision at the ranks of the relevant documents; see `normalised_gain`.

    `relevance` is 1 for a relevant document and 0 for any other; each query in `query` has a relevant document. For a
    group of equals see F. McSherry, M. Najork: Computing information retrieval performance measures efficiently in the
    presence of tied scores. ECIR 2008.
    """
    n_individuals = scores.shape[1]
    values = np.zeros((len(offsets) - 1, n_individuals))
    if len(query) == 0 or n_individuals == 0:
        return values
    table = _at_least_one_block(scores)
    room = _room(offsets, query)
    above, equal, placed, ties = room[3:]
    rise = np.empty_like(placed)
    for block in range(0, n_individuals, LANES):
        column = min(block, table.shape[1] - LANES)
        for q in query:
            begin, end = offsets[q], offsets[q + 1]
            n_relevant = _place_gains(table, column, begin, end, relevance, end - begin, room)
            rise[: end - begin] = 1.0
            for i in range(n_relevant):
                while ties[i]:
                    lane = first_bit(ties[i])
                    top, m = int(above[i, lane]), equal[i, lane]
                    share = placed[top, lane]
                    slope = (share * m - 1.0) / (m - 1.0) - share
                    for k in range(1, int(m)):
                        rise[top + k, lane] += k * slope
                    ties[i] &= ties[i] - 1
            hits = total = spread(0.0)
            for rank in range(end - begin):
                share = load(placed, rank)
                total = total + share * ((hits + load(rise, rank)) / spread(rank + 1.0))
                hits = hits + share
            store(placed, 0, total)
            for lane in range(min(LANES, n_individuals)):
                values[q, column + lane] = placed[0, lane] / n_relevant
    return values


@kernel
def reached_value(
    scores: Vector, offsets: Integers, query: Integers, stops: Vector, divisor: Vector
) -> Matrix:
    """Return the mean of 1 / divisor(j) over the ranks j at which a reader stops; see `normalised_gain`.

    The reader comes from the top and stops at a document with the probability `stops` (n_documents,), or after the last
    rank of `divisor`, at which the value is 0. O(n_individuals · Σ_q (n log n + n_relevant m)) for groups of at most m
    equals among the n documents of a query.
    """
    values = np.zeros((len(offsets) - 1, scores.shape[1]))
    # The share of readers who pass i documents of a group of equals, the mean over all choices of these documents.
    passers = np.empty(longest_query(offsets, query) + 1)
    for q in query:
        begin, end = offsets[q], offsets[q + 1]
        depth = min(end - begin, len(divisor))
        for individual in range(scores.shape[1]):
            negative = -scores[begin:end, individual]
            order = np.argsort(negative, kind="mergesort")
            readers, rank = 1.0, 0
            while rank < depth and negative[order[rank]] < np.inf:
                bottom = rank + 1
                while bottom < len(order) and negative[order[bottom]] == negative[order[rank]]:
                    bottom += 1
                n_counted = min(bottom, depth) - rank
                _mean_passers(stops[begin:end], order[rank:bottom], n_counted, passers)
                for i in range(n_counted):
                    stoppers = readers * (passers[i] - passers[i + 1])
                    values[q, individual] += stoppers / divisor[rank + i]
                readers *= passers[n_counted]
                rank = bottom
    return values


@kernel
def _mean_passers(stops: Vector, group: Integers, n_counted: int, passers: Vector) -> None:
    """Set ``passers[i]`` to the mean of Π (1 − stop) over all sets of i documents of a group, for i up to n_counted."""
    n_passed = 0
    for document in group:
        n_passed += int(stops[document] == 0.0)
    passers[: n_counted + 1] = 1.0
    for document in group:
        if stops[document] > 0.0:
            n_passed += 1
            for i in range(min(n_passed, n_counted), 0, -1):
                product = passers[i - 1] * (1.0 - stops[document])
                passers[i] = ((n_passed - i) * passers[i] + i * product) / n_passed


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
    """Return buffers for the longest query, and one row more."""
    longest = longest_query(offsets, query) + 1
    tables = np.empty((4, longest, LANES))
    gains, ties = np.empty((2, longest)), np.empty(longest, np.int64)
    return tables[0], gains[0], gains[1], tables[1], tables[2], tables[3], ties


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
) -> int:
    """Write the gain at each of the first `depth` ranks of a query to its buffer.

    Return the number of relevant candidates.
    """
    candidates, candidate_gain, relevant_gain, above, equal, placed, ties = room
    n_candidates = _copy_candidates(table, column, begin, end, gain, depth, room)
    n_relevant = count_ranks(
        candidates, candidate_gain, n_candidates, depth, relevant_gain, above, equal, ties
    )
    placed[:depth] = 0.0
    for i in range(n_relevant):
        for lane in range(LANES):
            if above[i, lane] < depth:
                placed[int(above[i, lane]), lane] = relevant_gain[i]
    share_ranks(relevant_gain, above, equal, ties, n_relevant, depth, placed)
    return n_relevant


@kernel
def _copy_candidates(
    table: Matrix, column: int, begin: int, end: int, gain: Vector, depth: int, room: Room
) -> int:
    """Copy the documents that may be in the first `depth` ranks of some individual, and return their number."""
    candidates, candidate_gain = room[0], room[1]
    flat, n_individuals = table.reshape(-1), table.shape[1]
    low, floor = spread(-np.inf), spread(np.inf)
    for group in range(depth):
        best = low
        for i in range(begin + group, end, depth):
            score = load_at(low, flat, i * n_individuals + column)
            best = blend(score > best, score, best)
        floor = blend(floor > best, best, floor)
    n_candidates = 0
    # Each document is copied, and the next one overwrites those below the floor: a branch would be mispredicted.
    for i in range(begin, end):
        score = load_at(low, flat, i * n_individuals + column)
        store(candidates, n_candidates, score)
        candidate_gain[n_candidates] = gain[i]
        n_candidates += int(bits_of(score >= floor) != 0)
    return n_candidates


@kernel
def count_ranks(
    rows: Floats,
    gain: Vector,
    n_rows: int,
    depth: int,
    relevant_gain: Floats,
    above: Floats,
    equal: Floats,
    ties: Integers,
) -> int:
    """Count the scores above each relevant document, ∞ for one without a rank, and those equal to it, itself included.

    Each row has the scores of a document. Return the number of relevant documents, which have positive gains. `ties`
    receives which individuals have equals of each among the first `depth` ranks, bit l for lane l.
    """
    zero, one = spread(rows.dtype.type(0)), spread(rows.dtype.type(1))
    low, high = spread(rows.dtype.type(-np.inf)), spread(rows.dtype.type(np.inf))
    limit = spread(rows.dtype.type(depth))
    n_relevant = 0
    for i in range(n_rows):
        if gain[i] > 0.0:
            score = load(rows, i)
            n_above = n_above_too = n_equal = n_equal_too = (
                zero  # two sums of each hide the latency
            )
            for j in range(0, n_rows - 1, 2):
                other, another = load(rows, j), load(rows, j + 1)
                n_above = blend(other > score, n_above + one, n_above)
                n_equal = blend(other == score, n_equal + one, n_equal)
                n_above_too = blend(another > score, n_above_too + one, n_above_too)
                n_equal_too = blend(another == score, n_equal_too + one, n_equal_too)
            n_above, n_equal = n_above + n_above_too, n_equal + n_equal_too
            if n_rows % 2:
                other = load(rows, n_rows - 1)
                n_above = blend(other > score, n_above + one, n_above)
                n_equal = blend(other == score, n_equal + one, n_equal)
            n_above = blend(score > low, n_above, high)
            store(above, n_relevant, n_above)
            store(equal, n_relevant, n_equal)
            ties[n_relevant] = bits_of((n_equal > one) & (limit > n_above))
            relevant_gain[n_relevant] = gain[i]
            n_relevant += 1
    return n_relevant


@kernel
def share_ranks(
    gain: Floats,
    above: Floats,
    equal: Floats,
    ties: Integers,
    n_relevant: int,
    depth: int,
    placed: Matrix,
) -> None:
    """Write the mean gain of each group of equals among the first `depth` ranks to all its ranks.

    Gains, counts and `ties` are those of `count_ranks`; of each group only its first document stays in `ties`.
    ``placed[rank]`` has the gain at each rank, and is right where no scores are equal.
    """
    for i in range(n_relevant):
        bits = ties[i]
        while bits:
            lane = first_bit(bits)
            top, total = above[i, lane], np.float64(gain[i])
            for k in range(i + 1, n_relevant):
                if above[k, lane] == top:
                    total += gain[k]
                    ties[k] ^= 1 << lane
            mean = total / equal[i, lane]
            for rank in range(int(top), min(int(top + equal[i, lane]), depth)):
                placed[rank, lane] = mean
            bits &= bits - 1


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

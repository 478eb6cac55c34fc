"""Discounted cumulated gain of a population of linear rankers, scored and ranked query by query in the cache.

No array has the size documents × individuals. A score is summed in the precision of the features, in feature order, and
product and sum are rounded one after the other. These are the bits of `moerank.kernels.scores.linear_scores` for every
document, whatever its neighbours. There are two kernels, which return the same bits:

- `linear_gain` has documents as lanes. An individual takes time for its own features only. The features of a block of
  queries are copied into tiles that fit the level-1 cache, and its scores fit the level-2 cache.
- `lane_gain` has individuals as lanes. It is faster where neighbouring individuals share their features, or where
  queries are short.

Few documents of a query can reach the first `depth` ranks: deal the documents into 16 classes; the best documents of
`depth` classes reach the smallest of their scores. The documents at or above this floor are ranked by counting.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from moerank.arrays import Floats, Integers, Mask, Matrix, Vector
from moerank.kernels.compiled import kernel, read_only
from moerank.kernels.counted_ranks import count_ranks, share_ranks
from moerank.kernels.lanes import (
    bits_of,
    blend,
    first_bit,
    lanes,
    least,
    load,
    spread,
    store,
)
from moerank.kernels.pair_pass import project
from moerank.kernels.threads import in_pieces, in_threads
from moerank.kernels.tiles import (
    TILE,
    TILED_BLOCK,
    FeatureLists,
    copy_to_tiles,
    cut_block,
    feature_lists,
    longest_query,
    true_columns,
)

# The counted queries, the gain of each document, the discount of each rank, and depth and ideal of each counted query.
GainPlan: TypeAlias = tuple[Integers, Vector, Vector, Integers, Vector]

# Classes into which the documents of a query are dealt, and so the last rank that these kernels can count.
CLASSES = 16

# Maximum size of a query whose documents are all ranked, because finding a floor takes longer.
SHORT_QUERY = 40

# Maximum mean size of queries for which `lane_gain` is faster, whatever the features.
SHORT_ON_AVERAGE = 64

# Approximate size of a block of features that are copied from columns to rows.
COPIED_NUMBERS = 2**18


def gain_plan(
    query: Integers,
    gain: Vector,
    discount: Vector,
    depth: Integers,
    ideal: Vector,
    ideal_first: Integers,
) -> GainPlan | None:
    """Return the arguments of `normalised_gain` that these kernels read; None unless each query has one depth ≤ 16."""
    serve = len(ideal) == len(query) and int(depth.max(initial=0)) <= CLASSES
    return (query, gain, discount, depth, ideal) if serve else None


def gain_of_linear(
    X: Floats,
    columns: Callable[[], Floats],
    W: Matrix,
    offsets: Integers,
    plan: GainPlan,
    workers: int,
) -> Matrix:
    """Return the discounted cumulated gain over its ideal value, shape (n_queries, n_individuals).

    `columns` returns X by columns, and is called only if they are needed. The threads share the queries, and no value
    depends on the number of threads.
    """
    if individuals_share_features(X, W, offsets, plan):
        return lane_gain(X, W, offsets, plan, workers)
    return linear_gain(columns(), W, offsets, plan, workers)


def _parts(plan: GainPlan, offsets: Integers, n_parts: int) -> list[GainPlan]:
    """Split the queries into parts of about equal numbers of documents."""
    query, gain, discount, depth, ideal = plan
    cuts = np.searchsorted(offsets[query], np.linspace(0, offsets[-1], n_parts + 1)[1:-1])
    parts = [
        slice(begin, end) for begin, end in pairwise([0, *cuts.tolist(), len(query)]) if begin < end
    ]
    return [(query[part], gain, discount, depth[part], ideal[part]) for part in parts]


def individuals_share_features(X: Floats, W: Matrix, offsets: Integers, plan: GainPlan) -> bool:
    """Return whether `lane_gain` can take these arguments and is likely to be faster than `linear_gain`."""
    query, gain = plan[:2]
    width = lanes(X.dtype.type)
    if len(W) < width or len(query) == 0 or (gain.astype(X.dtype) != gain).any():
        return False
    if (offsets[query + 1] - offsets[query]).mean() <= SHORT_ON_AVERAGE:
        return True
    return X.flags.c_contiguous and bool(
        _used_by_groups(W, width).sum() * width <= 2 * np.count_nonzero(W)
    )


def _used_by_groups(W: Matrix, width: int) -> Mask:
    """Return the features that each group of `width` neighbouring individuals uses, shape (n_groups, n_features)."""
    return np.logical_or.reduceat(W != 0, np.arange(0, len(W), width))


def linear_gain(
    columns: Floats, W: Matrix, offsets: Integers, plan: GainPlan, workers: int = 1
) -> Matrix:
    """Return the discounted cumulated gain over its ideal value, shape (n_queries, n_individuals).

    It is 0 for queries that do not count. O(Σ_individuals k · n_documents) for k features each, and about
    O(n_documents) for ranking one individual.

    columns : (n_features, n_documents) of float32 or float64, C-contiguous
    W : (n_individuals, n_features), weights; rounded to the precision of `columns`
    """
    values = np.zeros((len(offsets) - 1, len(W)))
    if len(plan[0]) and len(W):
        lists = feature_lists(W != 0.0)
        width = lanes(columns.dtype.type)
        weight = W[W != 0.0].astype(columns.dtype)
        flat = columns.reshape(-1)

        def fill(part: GainPlan) -> None:
            _gain_by_documents(flat, columns.shape[1], lists, weight, offsets, part, width, values)

        in_threads(fill, _parts(plan, offsets, workers))
    return values


@kernel
def _gain_by_documents(
    columns: Floats,
    n_documents: int,
    lists: FeatureLists,
    weight: Floats,
    offsets: Integers,
    plan: GainPlan,
    width: int,
    values: Matrix,
) -> None:
    """Fill `values` block by block; `weight` has a number for each entry of the `lists` of features."""
    query, gain, discount, depth, ideal = plan
    features, begin, _ = lists
    n_individuals = len(begin) - 1
    longest = longest_query(offsets, query)
    room = (max(TILED_BLOCK, longest) // CLASSES + 1) * (CLASSES // width) + TILE  # vectors
    tiles = np.zeros((room * len(features), width), columns.dtype)
    scores = np.empty((n_individuals * room, width), columns.dtype)
    flat = scores.reshape(-1)
    first_vector = np.empty(TILED_BLOCK + 1, np.int64)  # of each query of the block
    best = np.empty((2, width), columns.dtype)
    candidates = np.empty((longest // width + 2, width), columns.dtype)
    above = np.empty_like(candidates)
    candidates_flat, above_flat = candidates.reshape(-1), above.reshape(-1)
    row = np.empty(candidates.size, np.int64)
    group_gain, n_equal = np.empty(longest), np.empty(longest, np.int64)
    c: int = np.int64(0)  # type: ignore[assignment]  # a literal would be a type of its own
    while c < len(query):
        end, n = cut_block(offsets, query, c, width, first_vector)
        copy_to_tiles(columns, n_documents, features, offsets, query[c:end], first_vector, tiles)
        _score_tiles(tiles, (n + TILE - 1) // TILE, lists, weight, scores, room)
        for q in range(c, end):
            document = offsets[query[q]]
            size = offsets[query[q] + 1] - document
            for individual in range(n_individuals):
                start = individual * room + first_vector[q - c]
                n_candidates = _copy_candidates_of_one(
                    scores, flat, start, size, depth[q], best, candidates_flat, row
                )
                _count_above(candidates, n_candidates, above)
                group_gain[: depth[q]] = 0.0
                n_equal[: depth[q]] = 0
                for k in range(n_candidates):
                    rank = int(above_flat[k])
                    group_gain[rank] += gain[document + row[k]]
                    n_equal[rank] += 1
                total, rank = 0.0, 0
                while rank < depth[q]:
                    mean, bottom = group_gain[rank], rank + 1
                    if n_equal[rank] > 1:
                        mean, bottom = mean / n_equal[rank], min(rank + n_equal[rank], depth[q])
                    while rank < bottom:
                        total += mean * discount[rank]
                        rank += 1
                values[query[q], individual] = total / ideal[q]
        c = end


@kernel
def _score_tiles(
    tiles: Floats, n_tiles: int, lists: FeatureLists, weight: Floats, scores: Floats, room: int
) -> None:
    """Sum the scores of every tile under every individual, in feature order."""
    features, begin, position = lists
    zero = spread(weight.dtype.type(0))
    for t in range(n_tiles):
        tile = t * len(features) * TILE
        for individual in range(len(begin) - 1):
            a = b = c = d = zero
            for k in range(begin[individual], begin[individual + 1]):
                w = spread(weight[k])
                row = tile + position[k] * TILE
                a = a + load(tiles, row) * w
                b = b + load(tiles, row + 1) * w
                c = c + load(tiles, row + 2) * w
                d = d + load(tiles, row + 3) * w
            target = individual * room + t * TILE
            store(scores, target, a)
            store(scores, target + 1, b)
            store(scores, target + 2, c)
            store(scores, target + 3, d)


@kernel
def _copy_candidates_of_one(
    scores: Floats,
    flat: Floats,
    start: int,
    size: int,
    depth: int,
    best: Floats,
    candidates: Floats,
    row: Integers,
) -> int:
    """Copy the scores that may be in the first `depth` ranks of a query, and return their number.

    The scores are the rows of `scores` (the same numbers are in `flat`) from `start` on, `size` numbers; `row` receives
    the positions of those that are copied.
    """
    width = scores.shape[1]
    low = scores.dtype.type(-np.inf)
    stop = start + (size + width - 1) // width
    for lane in range(size - (stop - 1 - start) * width, width):
        scores[stop - 1, lane] = low
    floor = low
    if size > depth:
        a = load(scores, start)
        b = spread(low)
        for v in range(start + 1, stop - 1, 2):
            s = load(scores, v)
            b = blend(s > b, s, b)
            s = load(scores, v + 1)
            a = blend(s > a, s, a)
        if (stop - start) % 2 == 0:
            s = load(scores, stop - 1)
            b = blend(s > b, s, b)
        if width == CLASSES:
            a = blend(b > a, b, a)
            b = spread(low)
        floor = _nth_largest(a, b, depth, best)
    level = spread(floor)
    n_candidates = 0
    for v in range(start, stop, 64 // width):
        bits = np.int64(
            0
        )  # of 64 scores, because the end of a loop over long words is predicted better
        for u in range(min(64 // width, stop - v)):
            bits |= bits_of(load(scores, v + u) >= level) << (u * width)
        while bits:
            position = first_bit(bits)
            candidates[n_candidates] = flat[v * width + position]
            row[n_candidates] = (v - start) * width + position
            n_candidates += 1
            bits &= bits - 1
    return min(n_candidates, size)  # the last vector may be padded


@kernel
def _nth_largest(a: object, b: object, n: int, best: Floats) -> Any:
    """Return the n-th largest number of two vectors, n at most `CLASSES`; the second may be padded with −∞."""
    width = best.shape[1]
    zero = spread(best.dtype.type(0))
    one = spread(best.dtype.type(1))
    high = spread(best.dtype.type(np.inf))
    store(best, 0, a)
    store(best, 1, b)
    above_a = above_b = zero
    for half in range(CLASSES // width):
        for lane in range(width):
            x = spread(best[half, lane])
            above_a = above_a + blend(x > a, one, zero)
            if width < CLASSES:
                above_b = above_b + blend(x > b, one, zero)
    count = spread(best.dtype.type(n))
    floor = least(blend(count > above_a, a, high))
    if width < CLASSES:
        floor = min(floor, least(blend(count > above_b, b, high)))
    return floor


@kernel
def _count_above(candidates: Floats, n_candidates: int, above: Floats) -> None:
    """Count the scores above each of the first `n_candidates`."""
    width = candidates.shape[1]
    zero, one = spread(candidates.dtype.type(0)), spread(candidates.dtype.type(1))
    for v in range((n_candidates + width - 1) // width):
        scores = load(candidates, v)
        count = zero
        for k in range(n_candidates):
            count = count + blend(spread(candidates[k // width, k % width]) > scores, one, zero)
        store(above, v, count)


def _sorting_network(n: int) -> Integers:
    """Return the comparisons of Batcher's odd-even merge sort for n numbers, a power of two, shape (…, 2)."""
    steps = []
    powers = [2**k for k in range(n.bit_length() - 1)]
    for size, gap in ((size, gap) for size in powers for gap in reversed(powers) if gap <= size):
        low = [i for i in range(gap % size, n - gap) if (i - gap % size) % (2 * gap) < gap]
        steps += [(i, i + gap) for i in low if i // (2 * size) == (i + gap) // (2 * size)]
    return np.array(steps, np.int64)


NETWORK = _sorting_network(CLASSES)


def lane_gain(X: Floats, W: Matrix, offsets: Integers, plan: GainPlan, workers: int = 1) -> Matrix:
    """Return what `linear_gain` returns, from X (n_documents, n_features).

    The gains must be exact in the precision of X. The used features are copied block by block unless X is C-contiguous.
    O(n_documents · Σ_groups k) vector operations for groups of individuals that use k features together, and about
    O(n_documents) per group for ranking individuals that rank alike.
    """
    values = np.zeros((len(offsets) - 1, len(W)))
    if len(plan[0]) and len(W):
        width, is_row_major = lanes(X.dtype.type), X.flags.c_contiguous
        columns = slice(None) if is_row_major else np.flatnonzero(W.any(axis=0))
        group_mask = _used_by_groups(W[:, columns], width)
        begin, feature = true_columns(group_mask)
        # The last group is filled up with copies, which tie no more often than the last individual.
        individuals = np.arange(len(group_mask) * width).clip(max=len(W) - 1)
        weights = W[individuals][:, columns].astype(X.dtype)
        group_weights = np.ascontiguousarray(
            weights.reshape(len(group_mask), width, -1).transpose(0, 2, 1)
        )
        n_blocks = 1 if is_row_major else 1 + len(X) * group_mask.shape[1] // COPIED_NUMBERS

        def fill(parts: list[GainPlan]) -> None:
            for query, gain, *rest in parts:
                query_begin, query_end = query[0], query[-1] + 1
                rows = slice(offsets[query_begin], offsets[query_end])
                block = read_only(np.ascontiguousarray(X[rows][:, columns]))
                block_offsets = read_only(offsets[query_begin : query_end + 1] - rows.start)
                part = (query - query_begin, gain[rows], *rest)
                _gain_by_individuals(
                    block,
                    begin,
                    feature,
                    group_weights,
                    block_offsets,
                    part,
                    NETWORK,
                    values[query_begin:query_end],
                )

        in_pieces(fill, _parts(plan, offsets, workers * n_blocks), workers, 1)
    return values


@kernel
def _gain_by_individuals(
    X: Floats,
    begin: Integers,
    feature: Integers,
    weights: Floats,
    offsets: Integers,
    plan: GainPlan,
    network: Integers,
    values: Matrix,
) -> None:
    """Fill `values` block by block.

    Group g has `weights` (n_groups, n_features, lanes) for the features ``feature[begin[g]]`` to
    ``feature[begin[g + 1] - 1]``.
    """
    query, gain, discount, depth, ideal = plan
    n_individuals, width = values.shape[1], weights.shape[2]
    longest = longest_query(offsets, query)
    scores = np.empty((longest, width), X.dtype)
    best = np.empty((CLASSES, width), X.dtype)
    candidates = np.empty((longest + 1, width), X.dtype)
    candidate_gain = np.empty(longest + 1)
    above, equal = np.empty((longest, width), X.dtype), np.empty((longest, width), X.dtype)
    relevant_gain, ties = np.empty(longest, X.dtype), np.empty(longest, np.int64)
    rank_gain, total = np.empty((1, width), X.dtype), np.empty(width)
    placed = np.empty((CLASSES, width))
    first_document = np.empty(TILED_BLOCK + 1, np.int64)  # only for `cut_block`
    c: int = np.int64(0)  # type: ignore[assignment]  # a literal would be a type of its own
    while c < len(query):
        end, _ = cut_block(offsets, query, c, np.int64(1), first_document)  # type: ignore[arg-type]
        for group in range(len(begin) - 1):
            features, weights_of_group = feature[begin[group] : begin[group + 1]], weights[group]
            for q in range(c, end):
                start, stop = offsets[query[q]], offsets[query[q] + 1]
                project(X[start:stop], weights_of_group, features, scores)
                n, rows, gains = stop - start, scores, gain[start:stop]
                if n > SHORT_QUERY:
                    n = _copy_candidate_rows(
                        scores, gains, n, depth[q], network, best, candidates, candidate_gain
                    )
                    rows, gains = candidates, candidate_gain
                n_relevant = count_ranks(
                    rows, gains, n, depth[q], relevant_gain, above, equal, ties
                )
                _place_gains(relevant_gain, above, n_relevant, depth[q], rank_gain, placed)
                share_ranks(relevant_gain, above, equal, ties, n_relevant, depth[q], placed)
                total[:] = 0.0
                for rank in range(depth[q]):
                    for lane in range(width):
                        total[lane] += placed[rank, lane] * discount[rank]
                for lane in range(min(width, n_individuals - group * width)):
                    values[query[q], group * width + lane] = total[lane] / ideal[q]
        c = end


@kernel
def _copy_candidate_rows(
    scores: Floats,
    gain: Vector,
    size: int,
    depth: int,
    network: Integers,
    best: Floats,
    candidates: Floats,
    candidate_gain: Vector,
) -> int:
    """Copy the documents that may be in the first `depth` ranks of some individual, and return their number."""
    for group in range(CLASSES):
        a = load(scores, group)
        for i in range(group + CLASSES, size, CLASSES):
            s = load(scores, i)
            a = blend(s > a, s, a)
        store(best, group, a)
    for step in range(len(network)):
        i, j = network[step, 0], network[step, 1]
        a, b = load(best, i), load(best, j)
        larger = b > a
        store(best, i, blend(larger, b, a))
        store(best, j, blend(larger, a, b))
    floor = load(best, depth - 1)
    n_candidates = 0
    # Each document is copied, and the next one overwrites those below the floor: a branch would be mispredicted.
    for i in range(size):
        s = load(scores, i)
        store(candidates, n_candidates, s)
        candidate_gain[n_candidates] = gain[i]
        n_candidates += int(bits_of(s >= floor) != 0)
    return n_candidates


@kernel
def _place_gains(
    gain: Floats, above: Floats, n_relevant: int, depth: int, rank_gain: Floats, placed: Matrix
) -> None:
    """Write the gain at each of the first `depth` ranks, of one document of each group of equals."""
    zero = spread(above.dtype.type(0))
    for rank in range(depth):
        gain_of_rank, wanted = zero, spread(above.dtype.type(rank))
        for i in range(n_relevant):
            gain_of_rank = blend(load(above, i) == wanted, spread(gain[i]), gain_of_rank)
        store(rank_gain, 0, gain_of_rank)
        for lane in range(above.shape[1]):
            placed[rank, lane] = rank_gain[0, lane]

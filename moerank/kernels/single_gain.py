"""Cumulated gain of the rankings by single features, larger or smaller values first.

The values of a feature are its scores, so nothing is multiplied, and both directions share what is read. As in
`moerank.kernels.linear_gain` only few documents can reach the first `depth` ranks: deal a query's documents into 16
classes; the best of `depth` classes reach the smallest of these bests, the floor. Those above it are ranked by
counting, and of those on it only the first few: features that take few values have long ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import bits_of, blend, first_bit, least, load, load_at, spread, store
from moerank.kernels.tiles import longest_query

__all__ = ["single_gain"]

Floats = NDArray[np.floating[Any]]

DEEPEST = 16
"""Classes, and so the last rank that can be counted to."""

BLOCK = 512
"""Documents, about, whose gains and features are looked at together."""


@kernel
def single_gain(
    flat: Floats,
    stride: int,
    first: int,
    shift: int,
    offsets: NDArray[np.int64],
    query: NDArray[np.int64],
    gain: NDArray[np.float64],
    discount: NDArray[np.float64],
    depth: NDArray[np.int64],
    ideal: NDArray[np.float64],
    values: NDArray[np.float64],
) -> None:
    """Fill in the discounted cumulated gain over its ideal value of each query under each single feature.

    Parameters
    ----------
    flat : ndarray of float32 or float64
        Holds the value of feature f in row i at ``f · stride + first + i``; no number is NaN.
    shift : int
        Lanes of its precision are two to this power: divisions would take longer than all else.
    offsets : ndarray of int64, shape (n_queries + 1,)
    query, gain, discount
        As in `moerank.kernels.ranks.normalised_gain`.
    depth : ndarray of int64, shape (n_counted,)
        The last rank that counts, from 1 to `DEEPEST`.
    ideal : ndarray of float64, shape (n_counted,)
    values : ndarray of float64, shape (n_queries, 2 · n_features)
        Receives the values where the feature is the score, and then those where its negative is; rows of queries that
        do not count are left as they are.

    Notes
    -----
    About O(n_documents · n_features).
    """
    if len(query) == 0:
        return
    width = 1 << shift
    n_features = values.shape[1] // 2
    longest = longest_query(offsets, query)
    room = (max(BLOCK, longest) >> shift) + BLOCK  # vectors: those that are filled, and one more for each query
    tiles = np.empty((n_features * room, width), flat.dtype)
    scores = np.empty(((longest >> shift) + 1, width), flat.dtype)
    best = np.empty((DEEPEST >> shift, width), flat.dtype)
    kept = np.empty(((longest >> shift) + 2, width), flat.dtype)
    above = np.empty_like(kept)
    flat_tiles, flat_scores, flat_kept, flat_above = (
        tiles.reshape(-1), scores.reshape(-1), kept.reshape(-1), above.reshape(-1),
    )  # fmt: skip
    lane = np.arange(width).astype(flat.dtype)
    row = np.empty(kept.size, np.int64)
    placed = np.empty(longest)
    zero = spread(flat.dtype.type(0))
    c = 0
    while c < len(query):
        end = c + 1
        while end < len(query) and end - c < BLOCK and offsets[query[end] + 1] - offsets[query[c]] <= BLOCK:
            end += 1
        for f in range(n_features):
            vector = f * room
            for k in range(c, end):
                begin = f * stride + first + offsets[query[k]]
                size = offsets[query[k] + 1] - offsets[query[k]]
                vector = _copy_query(flat, begin, size, vector, shift, tiles, flat_tiles)
        vector = 0
        for k in range(c, end):  # the features of a query one after the other: its loops are of one length
            document = offsets[query[k]]
            size = offsets[query[k] + 1] - document
            n_used = (size + width - 1) >> shift
            for column in range(2 * n_features):
                start = vector + column % n_features * room
                if column < n_features:
                    for v in range(n_used):
                        store(scores, v, load(tiles, start + v))
                else:
                    for v in range(n_used):
                        store(scores, v, zero - load(tiles, start + v))
                n_kept = _keep_first(scores, flat_scores, shift, n_used, size, depth[k], best, flat_kept, row)
                _count_above(kept, flat_kept, shift, n_kept, lane, above)
                for i in range(n_kept):
                    placed[np.int64(flat_above[i])] = gain[document + row[i]]
                total = 0.0
                for rank in range(depth[k]):
                    total += placed[rank] * discount[rank]
                values[query[k], column] = total / ideal[k]
            vector += n_used
        c = end


@kernel
def _copy_query(flat: Floats, begin: int, size: int, vector: int, shift: int, tiles: Floats, flat_tiles: Floats) -> int:
    """Copy the numbers from `begin` on to `tiles`, from vector number `vector` on; return the number of the next."""
    n_whole = size >> shift
    for v in range(n_whole):
        store(tiles, vector + v, load_at(flat, begin + (v << shift)))
    vector += n_whole
    done = n_whole << shift
    rest = size - done
    for i in range(rest):
        flat_tiles[(vector << shift) + i] = flat[begin + done + i]
    return vector + (rest > 0)


@kernel
def _keep_first(
    scores: Floats,
    flat_scores: Floats,
    shift: int,
    n_used: int,
    size: int,
    depth: int,
    best: Floats,
    flat_kept: Floats,
    row: NDArray[np.int64],
) -> int:
    """Copy the scores that may stand in the first `depth` ranks of a query, in order of row; return their number.

    The query's `size` scores are in the first `n_used` rows of `scores`; `row` receives the places of those kept.
    """
    width, n_groups = 1 << shift, DEEPEST >> shift
    low, high = scores.dtype.type(-np.inf), spread(scores.dtype.type(np.inf))
    for i in range(size, n_used << shift):
        flat_scores[i] = low
    floor = low
    if size > depth:
        one, zero, last = (
            spread(scores.dtype.type(1)), spread(scores.dtype.type(0)), spread(scores.dtype.type(depth)),
        )  # fmt: skip
        for group in range(n_groups):
            a = b = spread(low)
            v = group
            while v + n_groups < n_used:
                x, y = load(scores, v), load(scores, v + n_groups)
                a, b = blend(x > a, x, a), blend(y > b, y, b)
                v += 2 * n_groups
            if v < n_used:
                x = load(scores, v)
                a = blend(x > a, x, a)
            store(best, group, blend(b > a, b, a))
        floor = scores.dtype.type(np.inf)
        for group in range(n_groups):
            a = load(best, group)
            n_better, n_better2 = zero, zero
            for other in range(n_groups):
                for lane in range(width >> 1):
                    n_better = n_better + blend(spread(best[other, 2 * lane]) > a, one, zero)
                    n_better2 = n_better2 + blend(spread(best[other, 2 * lane + 1]) > a, one, zero)
            floor = min(floor, least(blend(last > n_better + n_better2, a, high)))
    level = spread(floor)
    n_kept = 0
    v = 0
    while v < n_used:
        bits = np.int64(0)
        for u in range(min(64 >> shift, n_used - v)):
            bits |= bits_of(load(scores, v + u) >= level) << (u << shift)
        while bits:
            place = (v << shift) + first_bit(bits)
            bits &= bits - 1
            x = flat_scores[place]
            if n_kept < DEEPEST or x > floor:  # else those that are kept all rank above it
                flat_kept[n_kept] = x
                row[n_kept] = place
                n_kept += 1
        v += 64 >> shift
    return min(n_kept, size)  # behind the last document there is none


@kernel
def _count_above(kept: Floats, flat_kept: Floats, shift: int, n_kept: int, lane: Floats, above: Floats) -> None:
    """Count for each of the first `n_kept` scores those that rank above it: larger ones, and equal ones before it."""
    zero, one = spread(kept.dtype.type(0)), spread(kept.dtype.type(1))
    for v in range((n_kept + (1 << shift) - 1) >> shift):
        scores = load(kept, v)
        place = load_at(lane, 0) + spread(kept.dtype.type(v << shift))
        count = zero
        for k in range(n_kept):
            x = spread(flat_kept[k])
            before = blend(place > spread(kept.dtype.type(k)), one, zero)
            count = count + blend(x > scores, one, blend(x >= scores, before, zero))
        store(above, v, count)

"""Cumulated gain of linear rankers that use much the same features, or of short queries: the individuals are the lanes.

`moerank.kernels.linear_gain` ranks one individual at a time and spends some hundred cycles on each query, however short
it is. Here a vector of individuals is scored and ranked together, which pays where they have most of their features in
common (each pays for all that any of them uses) or where queries are short.

Scores and values have the bits of `moerank.kernels.linear_gain`. Of a query's documents only few can reach the first
`depth` ranks: deal them into 16 classes; the best of `depth` classes reach the depth-th largest of these bests. The
documents at or above this floor under any individual of the vector are kept, and the relevant ones among them are
ranked by counting.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import bits_of, blend, lanes, load, spread, store
from moerank.kernels.places import places_of
from moerank.kernels.tiles import longest_query

__all__ = ["individuals_share_features", "lane_gain"]

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]

CLASSES = 16
"""Classes that a query's documents are dealt into, and so the last rank that this kernel can count to."""

SHORT = 40
"""Documents of a query all of which are ranked: to find a floor would take longer."""

SHORT_ON_AVERAGE = 64
"""Documents per query up to which this kernel is faster whatever the features."""

BLOCK = 512
"""Documents of a block, about, whose features stay in the cache while all individuals are scored."""


def _sorting_network(n: int) -> Integers:
    """Return the comparisons of Batcher's odd-even merge sort for n numbers, a power of two, shape (…, 2)."""
    steps = []
    size = 1
    while size < n:
        gap = size
        while gap >= 1:
            for begin in range(gap % size, n - gap, 2 * gap):
                merged = range(begin, min(begin + gap, n - gap))
                steps += [(i, i + gap) for i in merged if i // (2 * size) == (i + gap) // (2 * size)]
            gap //= 2
        size *= 2
    return np.array(steps, np.int64)


NETWORK = _sorting_network(CLASSES)


def individuals_share_features(X: Floats, W: NDArray[np.float64], offsets: Integers, query: Integers) -> bool:
    """Whether `lane_gain` is likely to be faster than `linear_gain`, for arguments as there."""
    width = lanes(X.dtype.type)
    if len(W) < width or len(query) == 0 or not X.flags.c_contiguous:
        return False
    n_paid = _used_by_groups(W, width).sum() * width
    short = (offsets[query + 1] - offsets[query]).mean() <= SHORT_ON_AVERAGE
    return bool(short or n_paid <= 2 * np.count_nonzero(W))


def _used_by_groups(W: NDArray[np.float64], width: int) -> NDArray[np.bool_]:
    """Return the features that any of `width` neighbouring individuals uses, shape (n_groups, n_features)."""
    return np.logical_or.reduceat(W != 0, np.arange(0, len(W), width))


def lane_gain(
    X: Floats,
    W: NDArray[np.float64],
    offsets: Integers,
    query: Integers,
    gain: NDArray[np.float64],
    discount: NDArray[np.float64],
    depth: Integers,
    ideal: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the discounted cumulated gain over its ideal value of each query and individual.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_documents, n_features), C-contiguous
    W, offsets, query, gain, discount, depth, ideal
        As in `moerank.kernels.linear_gain.linear_gain`.

    Returns
    -------
    ndarray of float64, shape (n_queries, n_individuals)
        0 for queries that do not count. O(n_documents · Σ_groups k) vector operations for groups of individuals that
        use k features together, and about O(n_documents) per group for ranking individuals that rank alike.
    """
    values = np.zeros((len(offsets) - 1, len(W)))
    if len(query) and len(W):
        width = lanes(X.dtype.type)
        used = _used_by_groups(W, width)
        begin, feature = places_of(used)
        weights = np.zeros((len(used) * width, W.shape[1]), X.dtype)
        weights[: len(W)] = W
        by_feature = weights.reshape(len(used), width, -1).transpose(0, 2, 1)[used]
        _blocks(X, begin, feature, by_feature, offsets, query, gain, discount, depth, ideal, NETWORK, values)
    return values


@kernel
def _blocks(
    X: Floats,
    begin: Integers,
    feature: Integers,
    weights: Floats,
    offsets: Integers,
    query: Integers,
    gain: NDArray[np.float64],
    discount: NDArray[np.float64],
    depth: Integers,
    ideal: NDArray[np.float64],
    network: Integers,
    values: NDArray[np.float64],
) -> None:
    """Fill `values` block by block; group g has the features and weights ``begin[g]`` to ``begin[g + 1]``."""
    n_individuals, width = values.shape[1], weights.shape[1]
    longest = longest_query(offsets, query)
    scores = np.empty((longest, width), X.dtype)
    best = np.empty((CLASSES, width), X.dtype)
    kept = np.empty((longest + 1, width), X.dtype)
    kept_gain = np.empty(longest + 1)
    above = np.empty((1, width), X.dtype)
    placed = np.empty((CLASSES + 1, width))
    total = np.empty(width)
    c = 0
    while c < len(query):
        end, n = c, 0  # the queries c to `end` make the block
        while end < len(query):
            n += offsets[query[end] + 1] - offsets[query[end]]
            if end > c and n > BLOCK:
                break
            end += 1
        for group in range(len(begin) - 1):
            for q in range(c, end):
                first, last = offsets[query[q]], offsets[query[q] + 1]
                _score(X, first, last, begin[group], begin[group + 1], feature, weights, scores)
                n_kept = _keep_candidates(scores, first, last, gain, depth[q], network, best, kept, kept_gain)
                _sum_gains(kept, kept_gain, n_kept, discount, depth[q], above, placed, total)
                for lane in range(min(width, n_individuals - group * width)):
                    values[query[q], group * width + lane] = total[lane] / ideal[q]
        c = end


@kernel
def _score(
    X: Floats, first: int, last: int, begin: int, end: int, feature: Integers, weights: Floats, scores: Floats
) -> None:
    """Sum the scores of the rows `first` to `last` in feature order, as `moerank.kernels.pair_pass.project` does."""
    zero = spread(weights.dtype.type(0))
    whole = last - (last - first) % 4
    for i in range(first, whole, 4):  # four documents together share the loads of the weights and hide latency
        a = b = c = d = zero
        for k in range(begin, end):
            f, w = feature[k], load(weights, k)
            a = a + spread(X[i, f]) * w
            b = b + spread(X[i + 1, f]) * w
            c = c + spread(X[i + 2, f]) * w
            d = d + spread(X[i + 3, f]) * w
        store(scores, i - first, a)
        store(scores, i - first + 1, b)
        store(scores, i - first + 2, c)
        store(scores, i - first + 3, d)
    for i in range(whole, last):
        a = zero
        for k in range(begin, end):
            a = a + spread(X[i, feature[k]]) * load(weights, k)
        store(scores, i - first, a)


@kernel
def _keep_candidates(
    scores: Floats,
    first: int,
    last: int,
    gain: NDArray[np.float64],
    depth: int,
    network: Integers,
    best: Floats,
    kept: Floats,
    kept_gain: NDArray[np.float64],
) -> int:
    """Copy the documents that may stand in the first `depth` ranks of some individual, and return their number."""
    size = last - first
    floor = spread(scores.dtype.type(-np.inf))
    if size > SHORT:
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
    n_kept = 0
    for i in range(size):  # each is copied, and written over if it need not stay: which one is hard to foresee
        s = load(scores, i)
        store(kept, n_kept, s)
        kept_gain[n_kept] = gain[first + i]
        n_kept += int(bits_of(s >= floor) != 0)
    return n_kept


@kernel
def _sum_gains(
    kept: Floats,
    kept_gain: NDArray[np.float64],
    n_kept: int,
    discount: NDArray[np.float64],
    depth: int,
    above: Floats,
    placed: NDArray[np.float64],
    total: NDArray[np.float64],
) -> None:
    """Set `total` to Σ discount · gain over the first `depth` ranks, in order of rank."""
    width = kept.shape[1]
    zero, one = spread(kept.dtype.type(0)), spread(kept.dtype.type(1))
    placed[:depth] = 0.0
    for i in range(n_kept):
        if kept_gain[i] > 0.0:
            score = load(kept, i)
            before = behind = zero
            for j in range(i):
                before = before + blend(load(kept, j) >= score, one, zero)
            for j in range(i + 1, n_kept):
                behind = behind + blend(load(kept, j) > score, one, zero)
            store(above, 0, before + behind)
            for lane in range(width):  # what ranks behind the last rank goes to a row that nobody reads
                placed[min(int(above[0, lane]), depth), lane] = kept_gain[i]
    total[:] = 0.0
    for rank in range(depth):
        for lane in range(width):
            total[lane] += placed[rank, lane] * discount[rank]

"""What one pass over the features finds: their bounds, their extents within queries, their means; and centred copies.

Features are given column by column, but for `rows_to_columns`: ``flat`` holds all numbers of a table in its order of
memory, feature f those from ``f · stride`` on, and the first document that counts stands at the place `first` of each.
"""

from __future__ import annotations

import numpy as np

from moerank.arrays import Floats, Integers, Matrix, Vector
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import bits_of, blend, least, load_at, spread

__all__ = ["add_extents", "centre_columns", "columns_seen", "extremes", "rows_to_columns"]


TILE = 64
"""Rows that are taken to columns together: as many lines of the cache as are open at a time."""

ABREAST = 8
"""Features whose sums run side by side, which hides the latency of an addition."""


@kernel
def extremes(flat: Floats, width: int) -> tuple[float, float, bool]:
    """Return the least and the largest of numbers (n,) that are not NaN, and whether none is NaN.

    `width` is the number of lanes of their precision. Without any number the least is ∞ and the largest −∞. O(n).
    """
    low, high = np.float64(np.inf), np.float64(-np.inf)
    lowest, highest = spread(flat.dtype.type(np.inf)), spread(flat.dtype.type(-np.inf))
    lowest2, highest2 = lowest, highest
    known = lowest >= lowest
    n_whole = len(flat) - len(flat) % (2 * width)
    for i in range(0, n_whole, 2 * width):
        a, b = load_at(lowest, flat, i), load_at(lowest, flat, i + width)
        highest, highest2 = blend(a > highest, a, highest), blend(b > highest2, b, highest2)
        lowest, lowest2 = blend(lowest > a, a, lowest), blend(lowest2 > b, b, lowest2)
        known = known & (a >= a) & (b >= b)
    zero = spread(flat.dtype.type(0))
    low = min(np.float64(least(lowest)), np.float64(least(lowest2)))
    high = -min(np.float64(least(zero - highest)), np.float64(least(zero - highest2)))
    complete = bits_of(known) == (1 << width) - 1
    for i in range(n_whole, len(flat)):
        x = np.float64(flat[i])
        if x != x:
            complete = False
        if x > high:
            high = x
        if x < low:
            low = x
    return low, high, complete


@kernel
def add_extents(
    flat: Floats,
    stride: int,
    first: int,
    offsets: Integers,
    width: int,
    largest: Vector,
    squares: Vector,
    weighted: Vector,
) -> None:
    """Add to what is known of each feature's extents, its largest less its least value in a query.

    Parameters
    ----------
    flat, stride, first
        See above; no number is NaN.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Where the queries begin, from 0.
    width : int
        Lanes of the precision of `flat`.
    largest : ndarray of float64, shape (n_features,)
        The largest extent so far, at first 0; exact.
    squares, weighted : ndarray of float64, shape (n_features,)
        Σ (extent / largest)² so far, and the same with each square times the documents of its query.

    Notes
    -----
    O(n_documents · n_features). Where a larger extent appears, the sums so far are scaled down: no square of a number
    overflows.
    """
    for f in range(len(largest)):
        for q in range(len(offsets) - 1):
            begin, end = f * stride + first + offsets[q], f * stride + first + offsets[q + 1]
            low, high = _bounds(flat, begin, end, width)
            extent = high - low
            if extent > largest[f]:
                share = largest[f] / extent
                squares[f] *= share * share
                weighted[f] *= share * share
                largest[f] = extent
            if extent > 0.0:
                share = extent / largest[f]
                squares[f] += share * share
                weighted[f] += share * share * (end - begin)


@kernel
def columns_seen(
    flat: Floats, stride: int, first: int, n: int, width: int, total: Vector, low: Vector, high: Vector
) -> None:
    """Add `n` documents to the sum of each feature, one after the other, and widen its bounds.

    `total`, `low` and `high` are of shape (n_features,), at first 0, ∞ and −∞. O(n · n_features).
    """
    for f in range(0, len(total), ABREAST):
        if f + ABREAST <= len(total):
            p = f * stride + first
            a, b, c, d = total[f], total[f + 1], total[f + 2], total[f + 3]
            e, g, h, o = total[f + 4], total[f + 5], total[f + 6], total[f + 7]
            for i in range(p, p + n):
                a += flat[i]
                b += flat[i + stride]
                c += flat[i + 2 * stride]
                d += flat[i + 3 * stride]
                e += flat[i + 4 * stride]
                g += flat[i + 5 * stride]
                h += flat[i + 6 * stride]
                o += flat[i + 7 * stride]
            total[f], total[f + 1], total[f + 2], total[f + 3] = a, b, c, d
            total[f + 4], total[f + 5], total[f + 6], total[f + 7] = e, g, h, o
        else:
            for k in range(f, len(total)):
                for i in range(k * stride + first, k * stride + first + n):
                    total[k] += flat[i]
    for f in range(len(total)):
        lowest, highest = _bounds(flat, f * stride + first, f * stride + first + n, width)
        low[f], high[f] = min(low[f], lowest), max(high[f], highest)


@kernel
def _bounds(flat: Floats, begin: int, end: int, width: int) -> tuple[float, float]:
    """Return the least and the largest of the numbers from `begin` to `end`, one at least and none of them NaN."""
    if end - begin < width:
        low = high = np.float64(flat[begin])
        for i in range(begin + 1, end):
            x = np.float64(flat[i])
            low, high = min(low, x), max(high, x)
        return low, high
    zero = spread(flat.dtype.type(0))
    lowest = highest = load_at(zero, flat, end - width)  # the last ones, of which some come twice
    for i in range(begin, end - width, width):
        x = load_at(zero, flat, i)
        highest = blend(x > highest, x, highest)
        lowest = blend(lowest > x, x, lowest)
    return np.float64(least(lowest)), -np.float64(least(zero - highest))


@kernel
def centre_columns(
    flat: Floats, stride: int, first: int, n: int, mean: Vector, divisor: Vector, target: Matrix
) -> None:
    """Write (x − mean) / divisor of `n` documents to `target` (n_features or more, n or more); 0 for a divisor of 0."""
    for f in range(len(mean)):
        if divisor[f] == 0.0:
            target[f, :n] = 0.0
            continue
        begin = np.uint64(f * stride + first)
        centre, unit = mean[f], divisor[f]
        if unit == 1.0:
            for k in range(n):
                target[f, k] = flat[begin + np.uint64(k)] - centre
        else:
            for k in range(n):
                target[f, k] = (flat[begin + np.uint64(k)] - centre) / unit


@kernel
def rows_to_columns(
    rows: Floats, n_rows: int, width: int, order: Integers, flat: Floats, stride: int, first: int
) -> None:
    """Write rows of `width` values to columns, from the place `first` of each on.

    Parameters
    ----------
    rows : ndarray, shape (n_rows · width,) or longer
        Row by row.
    order : ndarray of int64, shape (n_features,)
        Which value of a row each feature is; it is 0 where rows have no such value.
    flat : ndarray, shape (n_features · stride,)
    """
    for begin in range(0, n_rows, TILE):
        end = min(begin + TILE, n_rows)
        for f in range(len(order)):
            target, place = f * stride + first, order[f]
            if place < width:
                for i in range(begin, end):
                    flat[target + i] = rows[i * width + place]
            else:
                for i in range(begin, end):
                    flat[target + i] = 0.0

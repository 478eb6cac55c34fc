"""Passes over columns of features: bounds and sums.

``flat`` holds all numbers of a table in its order of memory. Feature f begins at ``f · stride``, and the first document
that counts has the place `first` in each feature. `width` is the number of lanes of the precision.
"""

from __future__ import annotations

import numpy as np

from moerank.arrays import Floats, Vector
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import bits_of, blend, least, load_at, spread

ABREAST = 8
"""Features whose sums run side by side, which hides the latency of an addition."""


@kernel
def extremes(flat: Floats, width: int) -> tuple[float, float, bool]:
    """Return the least and the largest of numbers (n,) that are not NaN, and whether none is NaN.

    Without any number the least is ∞ and the largest −∞. O(n).
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
    lowest = highest = load_at(zero, flat, end - width)  # the last ones, some of which come twice
    for i in range(begin, end - width, width):
        x = load_at(zero, flat, i)
        highest = blend(x > highest, x, highest)
        lowest = blend(lowest > x, x, lowest)
    return np.float64(least(lowest)), -np.float64(least(zero - highest))

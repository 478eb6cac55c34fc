"""Sums over the preference pairs of one query whose documents are sorted by label: the inner loops of a pass.

Documents are the lanes. The worse documents of a document are all before its run, so four documents of a run go through
them side by side and share what is loaded and stored; behind the last of a run stand winners that no pair counts of.
With the squared loss every pair counts, and sums per run do without the pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import blend, load, load_mask, spread, store, sum_four

__all__ = ["add_all_curvature", "add_all_residuals", "add_curvature", "add_residuals"]

Floats = NDArray[np.floating[Any]]
Words = NDArray[np.unsignedinteger[Any]]


@kernel
def add_residuals(
    loser: Floats,
    level: Floats,
    total: Floats,
    sums: Floats,
    start: NDArray[np.int64],
    first: int,
    end: int,
    prefix: Words,
    four: Floats,
    four_sums: Floats,
) -> float:
    """Add d to the winner and −d to the loser of every pair of a query, four winners at a time, and return Σ d."""
    width = len(prefix)
    zero, low = spread(loser.dtype.type(0)), spread(loser.dtype.type(-np.inf))
    nobody = loser.dtype.type(-np.inf)
    slack = zero
    for r in range(first + 1, end):
        begin, stop = start[r] - start[first], start[r + 1] - start[first]
        whole, rest = begin // width, begin % width
        for i in range(begin, stop, 4):
            a0 = spread(level[i])
            a1 = spread(level[i + 1] if i + 1 < stop else nobody)
            a2 = spread(level[i + 2] if i + 2 < stop else nobody)
            a3 = spread(level[i + 3] if i + 3 < stop else nobody)
            t0 = t1 = t2 = t3 = zero
            for vector in range(whole):
                s = load(loser, vector)
                d0, d1, d2, d3 = a0 + s, a1 + s, a2 + s, a3 + s
                d0, d1 = blend(d0 > zero, d0, zero), blend(d1 > zero, d1, zero)
                d2, d3 = blend(d2 > zero, d2, zero), blend(d3 > zero, d3, zero)
                t0, t1, t2, t3 = t0 + d0, t1 + d1, t2 + d2, t3 + d3
                store(total, vector, load(total, vector) - ((d0 + d1) + (d2 + d3)))
            if rest:
                s = blend(load_mask(prefix, rest), load(loser, whole), low)
                d0, d1, d2, d3 = a0 + s, a1 + s, a2 + s, a3 + s
                d0, d1 = blend(d0 > zero, d0, zero), blend(d1 > zero, d1, zero)
                d2, d3 = blend(d2 > zero, d2, zero), blend(d3 > zero, d3, zero)
                t0, t1, t2, t3 = t0 + d0, t1 + d1, t2 + d2, t3 + d3
                store(total, whole, load(total, whole) - ((d0 + d1) + (d2 + d3)))
            won = sum_four(t0, t1, t2, t3)
            slack = slack + won
            store(four, 0, won)
            for j in range(4):
                sums[i + j] += four_sums[j]
    store(four, 0, slack)
    return np.float64(four[0, 0]) + np.float64(four[0, 1]) + np.float64(four[0, 2]) + np.float64(four[0, 3])


@kernel
def add_curvature(
    loser: Floats,
    level: Floats,
    move: Floats,
    moved: Floats,
    total: Floats,
    sums: Floats,
    start: NDArray[np.int64],
    first: int,
    end: int,
    prefix: Words,
    four: Floats,
    four_sums: Floats,
) -> None:
    """Add the difference of the moves to the winner and subtract it from the loser of every pair with d > 0."""
    width = len(prefix)
    zero, low = spread(loser.dtype.type(0)), spread(loser.dtype.type(-np.inf))
    nobody = loser.dtype.type(-np.inf)
    for r in range(first + 1, end):
        begin, stop = start[r] - start[first], start[r + 1] - start[first]
        whole, rest = begin // width, begin % width
        for i in range(begin, stop, 4):
            a0 = spread(level[i])
            a1 = spread(level[i + 1] if i + 1 < stop else nobody)
            a2 = spread(level[i + 2] if i + 2 < stop else nobody)
            a3 = spread(level[i + 3] if i + 3 < stop else nobody)
            z0, z1, z2, z3 = spread(moved[i]), spread(moved[i + 1]), spread(moved[i + 2]), spread(moved[i + 3])
            t0 = t1 = t2 = t3 = zero
            for vector in range(whole):
                s, z = load(loser, vector), load(move, vector)
                d0, d1 = blend(a0 + s > zero, z0 - z, zero), blend(a1 + s > zero, z1 - z, zero)
                d2, d3 = blend(a2 + s > zero, z2 - z, zero), blend(a3 + s > zero, z3 - z, zero)
                t0, t1, t2, t3 = t0 + d0, t1 + d1, t2 + d2, t3 + d3
                store(total, vector, load(total, vector) - ((d0 + d1) + (d2 + d3)))
            if rest:
                s, z = blend(load_mask(prefix, rest), load(loser, whole), low), load(move, whole)
                d0, d1 = blend(a0 + s > zero, z0 - z, zero), blend(a1 + s > zero, z1 - z, zero)
                d2, d3 = blend(a2 + s > zero, z2 - z, zero), blend(a3 + s > zero, z3 - z, zero)
                t0, t1, t2, t3 = t0 + d0, t1 + d1, t2 + d2, t3 + d3
                store(total, whole, load(total, whole) - ((d0 + d1) + (d2 + d3)))
            store(four, 0, sum_four(t0, t1, t2, t3))
            for j in range(4):
                sums[i + j] += four_sums[j]


@kernel
def add_all_residuals(
    score: Floats, kept: NDArray[np.bool_], margin: float, sums: Floats, start: NDArray[np.int64], first: int, end: int
) -> float:
    """Add d = margin − (sᵢ − sⱼ) to the winner and −d to the loser of every pair of a query; return Σ d.

    Sums per run do: a document with w worse and b better ones gets (w − b) margin − (w + b) s and the scores of all
    these. Pairs count where both documents are `kept` (n,).
    """
    slack = _add_from_one_side(score, kept, margin, 1.0, sums, start, first, end)
    _add_from_one_side(score, kept, margin, -1.0, sums, start, first, end)
    return slack


@kernel
def add_all_curvature(
    move: Floats, kept: NDArray[np.bool_], sums: Floats, start: NDArray[np.int64], first: int, end: int
) -> None:
    """Add the difference of the moves to the winner and subtract it from the loser of every pair of a query."""
    n = start[end] - start[first]
    add_all_residuals(move, kept, 0.0, sums, start, first, end)
    for k in range(n):
        sums[k] = -sums[k]


@kernel
def _add_from_one_side(
    score: Floats,
    kept: NDArray[np.bool_],
    margin: float,
    side: float,
    sums: Floats,
    start: NDArray[np.int64],
    first: int,
    end: int,
) -> float:
    """Add what each kept document has of the worse ones (`side` 1) or the better ones (−1): side · margin − s + s′."""
    total = other = 0.0
    n_others = 0
    for number in range(end - first):
        r = first + number if side > 0 else end - 1 - number
        begin, stop = start[r] - start[first], start[r + 1] - start[first]
        for k in range(begin, stop):
            if kept[k]:
                d = n_others * (side * margin - score[k]) + other
                sums[k] += d
                total += d
        for k in range(begin, stop):
            if kept[k]:
                other += score[k]
                n_others += 1
    return total

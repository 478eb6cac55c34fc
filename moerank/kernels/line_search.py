"""Exact line search for the squared hinge loss of preference pairs, by Newton's method on a piecewise quadratic.

The documents stand in the order of their labels in every query, best first. Then the worse documents of a document
are a range of rows, and so are the better ones. A pass over all pairs needs no index arrays, and the compiler takes
several pairs at once, in the same order of summation on every processor.
"""

from __future__ import annotations

import numpy as np

from moerank.arrays import Integers, Vector
from moerank.kernels.compiled import kernel

# Share of the objective; the search ends when the next Newton step promises less.
STEP_ROUNDING = 1e-18
MAX_PASSES = 100


def sort_by_label(y: Integers, offsets: Integers) -> tuple[Integers, Integers]:
    """Return the order of documents for a line search, and the runs of equal labels in it.

    The order (n_sorted,) has the documents of all queries with at least two labels, by query, then label, best first.
    Each row of the runs (n_runs, 4) says of the documents with one label in one query where the query begins, where the
    run begins and ends, and where the query ends.

    >>> rows, runs = sort_by_label(np.array([0, 0, 1, 0, 2]), np.array([0, 2, 5]))
    >>> rows.tolist(), runs.tolist()
    ([4, 2, 3], [[0, 0, 1, 3], [0, 1, 2, 3], [0, 2, 3, 3]])
    """
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    rows = np.lexsort((-y, query))
    differ = np.minimum.reduceat(y, offsets[:-1]) < np.maximum.reduceat(y, offsets[:-1])
    rows = rows[differ[query[rows]]]
    y, query = y[rows], query[rows]
    begin = np.flatnonzero((np.diff(y, prepend=-1) != 0) | (np.diff(query, prepend=-1) != 0))
    bounds = np.append(begin, len(rows))
    left = np.searchsorted(query, query[begin], side="left")
    right = np.searchsorted(query, query[begin], side="right")
    return rows, np.column_stack([left, bounds[:-1], bounds[1:], right])


@kernel
def hinge_line_search(
    runs: Integers,
    scores: Vector,
    change: Vector,
    slope: float,
    curvature: float,
    start: float,
    longest: float,
    residual: Vector,
) -> tuple[float, float]:
    """Return the step t in [0, longest] that minimises φ, and φ(t).

    With s the scores and c their change along the direction, and the sum over all preference pairs (i, j),

        φ(t) = Σ max(0, 1 − (sᵢ − sⱼ) − t (cᵢ − cⱼ))² + slope · t + ½ curvature · t²,   curvature ≥ 0.

    φ′ is piecewise linear and increasing, so Newton's method ends at its zero; a bracket keeps it from cycling. The
    breakpoints are neither computed nor sorted. O(n_pairs) a pass; two to four passes where `start` is a good guess.

    runs, scores, change : see `sort_by_label`; scores and change have shape (n_sorted,)
    start : the first step, in [0, longest]
    longest : the largest step, may be infinite if φ has a minimum
    residual : (n_sorted,), receives the sums of d = max(0, 1 − (sᵢ − sⱼ) − t (cᵢ − cⱼ)) at the minimum, + d for the
        better document, − d for the worse; the loss has the gradient −2 residual in the scores
    """
    # Separate arrays, as the compiler cannot tell that the rows of one array do not overlap.
    moved, above = np.empty_like(scores), np.empty_like(scores)
    below, bends = np.empty_like(scores), np.empty_like(scores)
    step, low, high = start, 0.0, longest
    low_seen = high_seen = False  # whether a slope was measured at the ends of the bracket
    for _ in range(MAX_PASSES):
        for i in range(len(scores)):
            moved[i] = scores[i] + step * change[i]
        _pass(runs, moved, change, above, below, bends)
        value = slope * step + 0.5 * curvature * step * step  # φ, φ′ and φ″
        rise, bend = slope + curvature * step, curvature
        for i in range(len(scores)):
            residual[i] = above[i] - below[i]
            value += above[i] - moved[i] * residual[i]  # Σ d² = Σ d − Σ d (sᵢ − sⱼ)
            rise -= 2.0 * residual[i] * change[i]
            bend += 2.0 * bends[i]
        if rise == 0.0 or (step == 0.0 and rise > 0.0) or (step == longest and rise < 0.0):
            break
        if bend > 0.0 and rise * rise <= 2.0 * STEP_ROUNDING * bend * abs(value):
            break
        if rise > 0.0:
            high, high_seen = step, True
        else:
            low, low_seen = step, True
        if bend > 0.0:
            following = step - rise / bend
        elif rise > 0.0:
            following = low
        else:
            following = min(high, 2.0 * step + 1.0)
        if (following <= low and low_seen) or (following >= high and high_seen):
            following = 0.5 * (low + high)
            if not low < following < high:
                break
        step = min(max(following, low), high)
    return step, value


@kernel
def _pass(runs: Integers, scores: Vector, change: Vector, above: Vector, below: Vector, bends: Vector) -> None:
    """Sum d = max(0, 1 − (sᵢ − sⱼ)) over the pairs of each better document, and of each worse one.

    `bends` receives Σ (cᵢ − cⱼ)² over the pairs with d > 0 of each worse document.
    """
    above[:] = 0.0
    below[:] = 0.0
    bends[:] = 0.0
    for run in range(len(runs)):
        query, begin, end, last = runs[run]
        # Loops over slices, which the compiler vectorises.
        worse, worse_change = scores[end:last], change[end:last]
        worse_sum, worse_bend = below[end:last], bends[end:last]
        for i in range(begin, end):
            slack, ahead = 1.0 - scores[i], change[i]
            for j in range(len(worse)):
                d = slack + worse[j]
                gain = ahead - worse_change[j]
                worse_sum[j] += max(0.0, d)
                worse_bend[j] += gain * gain if d > 0.0 else 0.0
        better, better_sum = scores[query:begin], above[query:begin]
        for j in range(begin, end):
            slack = 1.0 + scores[j]
            for i in range(len(better)):
                better_sum[i] += max(0.0, slack - better[i])

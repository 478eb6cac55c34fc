"""Losses of single rankers: passes over the pairs, line search, decision stumps, and the cross entropy of lists.

A stump is h(x) = 1 if feature f of x is above a threshold, else 0. With weights D of the pairs (i, j), i the better
document, its value is

    r = Σ D(i, j) (h(xᵢ) − h(xⱼ)) = Σ_d π(d) h(x_d),   π(d) = Σ_{d better} D − Σ_{d worse} D,

so the pairs are needed once per round, for the potentials π, and not once per feature.
"""

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.kernels.algebra import largest
from moerank.kernels.compiled import kernel
from moerank.kernels.counted_sums import LabelRuns
from moerank.kernels.pair_pass import PairGroups

# Gains that differ by at most this share of the total weight are ties; the first stump wins.
TIE = 1e-10

# A line search ends when the next Newton step promises less than this share of the objective.
STEP_ROUNDING = 1e-18

# Maximum number of steps of a line search; two to four are usual.
MAX_PASSES = 100


def sort_by_label(y: Integers, offsets: Integers) -> tuple[NDArray[np.int32], Integers]:
    """Return the order of documents for a line search, and the runs of equal labels in it.

    The order (n_documents,) has the documents by query, then label, best first. Each row of the runs (n_runs, 4) stands
    for the documents with one label in one query: it has the start of the query, the start and the end of the run, and
    the end of the query.

    >>> rows, runs = sort_by_label(np.array([1, 0, 1, 0, 2]), np.array([0, 2, 5]))
    >>> rows.tolist(), runs.tolist()
    ([0, 1, 4, 2, 3], [[0, 0, 1, 2], [0, 1, 2, 2], [2, 2, 3, 5], [2, 3, 4, 5], [2, 4, 5, 5]])
    """
    runs = LabelRuns.of(-y, offsets)
    starts, ends = np.repeat([offsets[:-1], offsets[1:]], runs.n_labels, axis=1)
    return runs.row, np.column_stack([starts, runs.begin[:-1], runs.begin[1:], ends])


@kernel
def hinge_line_search(
    runs: Integers,
    scores: Vector,
    change: Vector,
    start: float,
    longest: float,
    residual: Vector,
) -> tuple[float, float]:
    """Return the step t in [0, longest] that minimises φ, and φ(t).

    With s the scores and c their change along the direction, and the sum over all preference pairs (i, j),

        φ(t) = Σ max(0, 1 − (sᵢ − sⱼ) − t (cᵢ − cⱼ))².

    φ′ is piecewise linear and increasing, so Newton's method ends at its zero; a bracket keeps it from cycling. The
    breakpoints are neither computed nor sorted. O(n_pairs) per pass; two to four passes if `start` is a good guess.

    runs, scores, change : see `sort_by_label`; scores and change have shape (n_documents,)
    start : the first step, in [0, longest]
    longest : the largest step
    residual : (n_documents,), receives the sums of d = max(0, 1 − (sᵢ − sⱼ) − t (cᵢ − cⱼ)) at the minimum, + d for the
        better document, − d for the worse; the loss has the gradient −2 residual in the scores
    """
    # Separate arrays, because the compiler cannot know that the rows of one array do not overlap.
    moved, above = np.empty_like(scores), np.empty_like(scores)
    below, bends = np.empty_like(scores), np.empty_like(scores)
    step, low, high = start, 0.0, longest
    low_seen = high_seen = False  # whether a slope was measured at the ends of the bracket
    for _ in range(MAX_PASSES):
        for i in range(len(scores)):
            moved[i] = scores[i] + step * change[i]
        _pass(runs, moved, change, above, below, bends)
        value = rise = bend = 0.0  # φ, φ′ and φ″
        for i in range(len(scores)):
            residual[i] = above[i] - below[i]
            value += above[i] - moved[i] * residual[i]  # Σ d² = Σ d − Σ d (sᵢ − sⱼ)
            rise -= 2.0 * residual[i] * change[i]
            bend += 2.0 * bends[i]
        if rise == 0.0 or (step == 0.0 and rise > 0.0) or (step == longest and rise < 0.0):
            break
        if rise * rise <= 2.0 * STEP_ROUNDING * bend * value or bend == 0.0:
            break
        if rise > 0.0:
            high, high_seen = step, True
        else:
            low, low_seen = step, True
        following = step - rise / bend
        if (following <= low and low_seen) or (following >= high and high_seen):
            following = 0.5 * (low + high)
            if not low < following < high:
                break
        step = min(max(following, low), high)
    return step, value


@kernel
def _pass(
    runs: Integers, scores: Vector, change: Vector, above: Vector, below: Vector, bends: Vector
) -> None:
    """Sum d = max(0, 1 − (sᵢ − sⱼ)) over the pairs of each better document, and of each worse one.

    `bends` receives Σ (cᵢ − cⱼ)² over the pairs with d > 0 of each worse document.
    """
    above[:] = 0.0
    below[:] = 0.0
    bends[:] = 0.0
    for run in range(len(runs)):
        query_begin, begin, end, query_end = runs[run]
        # Loops over slices, which the compiler vectorises.
        worse, worse_change = scores[end:query_end], change[end:query_end]
        worse_sum, worse_bend = below[end:query_end], bends[end:query_end]
        for i in range(begin, end):
            slack, ahead = 1.0 - scores[i], change[i]
            for j in range(len(worse)):
                d = slack + worse[j]
                gain = ahead - worse_change[j]
                worse_sum[j] += max(0.0, d)
                worse_bend[j] += gain * gain if d > 0.0 else 0.0
        better, better_sum = scores[query_begin:begin], above[query_begin:begin]
        for j in range(begin, end):
            slack = 1.0 + scores[j]
            for i in range(len(better)):
                better_sum[i] += max(0.0, slack - better[i])


@kernel
def _fidelity(o: float) -> float:
    """Return e^−o (1 + e^−o)^−3/2 for o = sᵢ − sⱼ, twice minus the slope of the fidelity loss 1 − (1 + e^−o)^−½."""
    small = np.exp(-abs(o))  # e^−o would overflow for a pair far in the wrong order
    root = np.sqrt(1.0 + small)
    return (small if o > 0.0 else np.sqrt(small)) / (root * root * root)


@kernel
def pair_weights(
    pairs: PairGroups,
    scores: Vector,
    importance: Vector,
    fidelity: bool,
    weights: Vector,
    potentials: Vector,
) -> float:
    """Weight pair (i, j) by cᵢ times the slope of a loss at sᵢ − sⱼ, c the importance; return the sum of the weights.

    The loss is the `fidelity` loss or else the exponential one. `weights` (n_pairs,) and `potentials` (n_documents,)
    receive D and π. O(n_pairs + n_documents).
    """
    begin, winner, worse = pairs
    total = 0.0
    potentials[:] = 0.0
    for w in range(len(winner)):
        i = winner[w]
        won = 0.0
        for k in range(begin[w], begin[w + 1]):
            j = worse[k]
            o = scores[i] - scores[j]
            weight = importance[i] * (_fidelity(o) if fidelity else np.exp(-o))
            weights[k] = weight
            potentials[j] -= weight
            won += weight
        potentials[i] += won
        total += won
    return total


@kernel
def split_weight(pairs: PairGroups, weights: Vector, above: Mask) -> tuple[float, float]:
    """Return the weight of the pairs that a stump orders correctly, and of those that it orders wrongly.

    `above` (n_documents,) marks the documents with h = 1; a pair with both or none of them above counts for neither.
    """
    begin, winner, worse = pairs
    right_weight = wrong_weight = 0.0
    for w in range(len(winner)):
        i_above = above[winner[w]]
        for k in range(begin[w], begin[w + 1]):
            if above[worse[k]] != i_above:
                if i_above:
                    right_weight += weights[k]
                else:
                    wrong_weight += weights[k]
    return right_weight, wrong_weight


@kernel
def best_stump(
    bins: NDArray[np.int32], n_thresholds: Integers, potentials: Vector, total: float
) -> tuple[int, int, float]:
    """Return feature, threshold and r of the stump with the largest r.

    `bins` (n_features, n_documents) counts the thresholds below each value, and `total` is the weight of all pairs.
    Of equal stumps the first feature is taken, then the lowest threshold. O(n_documents · n_features + Σ n_thresholds).
    """
    feature, threshold = 0, 0
    best = 0.0
    sums = np.empty(largest(n_thresholds) + 1)
    for f in range(len(bins)):
        sums[: n_thresholds[f] + 1] = 0.0
        for i in range(len(potentials)):
            sums[bins[f, i]] += potentials[i]
        for b in range(n_thresholds[f], 0, -1):
            sums[b - 1] += sums[b]
        for b in range(n_thresholds[f]):
            r = sums[b + 1]
            if r > best + TIE * total:
                feature, threshold, best = f, b, r
    return feature, threshold, best


@kernel
def descend(X: Matrix, y: Vector, offsets: Integers, rate: float, n_epochs: int) -> Matrix:
    """Minimise the cross entropy −Σ target log p from w = 0.

    p and the target are the softmax of Xw and of the labels y inside every query: how likely each document is to be
    first. An epoch takes one step for each query, in order: w ← w − rate Σ (p − target) x over its documents. Return
    the weights after each epoch, shape (n_epochs, n_features). O(n_documents · n_features) per epoch.
    """
    n_features, target = X.shape[1], np.empty(len(X))
    for q in range(len(offsets) - 1):
        _softmax(y[offsets[q] : offsets[q + 1]], target[offsets[q] : offsets[q + 1]])
    # With documents innermost in one product and features in the other, both are vectorised.
    columns = X.T.copy()
    W = np.empty((n_epochs, n_features))
    w = np.zeros(n_features)
    gradient = np.empty(n_features)
    z, p = np.empty(len(X)), np.empty(len(X))
    for epoch in range(n_epochs):
        for q in range(len(offsets) - 1):
            begin, end = offsets[q], offsets[q + 1]
            z[begin:end] = 0.0
            for f in range(n_features):
                for i in range(begin, end):
                    z[i] += columns[f, i] * w[f]
            _softmax(z[begin:end], p[begin:end])
            gradient[:] = 0.0
            for i in range(begin, end):
                error = p[i] - target[i]
                for f in range(n_features):
                    gradient[f] += error * X[i, f]
            for f in range(n_features):
                w[f] -= rate * gradient[f]
        for f in range(n_features):
            W[epoch, f] = w[f]
    return W


@kernel
def _softmax(z: Vector, p: Vector) -> None:
    peak = largest(z)
    total = 0.0
    for i in range(len(z)):
        p[i] = np.exp(z[i] - peak)
        total += p[i]
    for i in range(len(z)):
        p[i] /= total

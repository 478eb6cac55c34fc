"""Decision stumps on weighted preference pairs: weights from scores, and the best stump from sums over documents.

A stump is h(x) = 1 if feature f of x is above a threshold, else 0. What a weighting D of the pairs (i, j), i better,
makes of it is

    r = Σ D(i, j) (h(xᵢ) − h(xⱼ)) = Σ_d π(d) h(x_d),   π(d) = Σ_{d better} D − Σ_{d worse} D,

so the pairs are needed once per round, for the potentials π, and not once per feature. Pairs are grouped by their
better document, as `PreferencePairs` holds them: the pairs ``first[w]`` to ``first[w + 1]`` have the better document
``winner[w]`` and the worse documents ``worse[k]``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Integers, Mask, Vector
from moerank.kernels.compiled import kernel

Documents = NDArray[np.int32]

# Gains within this share of the total weight are equal but for rounding: the first stump is taken.
TIE = 1e-10


@kernel
def _fidelity(o: float) -> float:
    """Return e^−o (1 + e^−o)^−3/2 for o = sᵢ − sⱼ, twice minus the slope of the fidelity loss 1 − (1 + e^−o)^−½."""
    small = np.exp(-abs(o))  # e^−o would overflow for a pair far in the wrong order
    root = np.sqrt(1.0 + small)
    return (small if o > 0.0 else np.sqrt(small)) / (root * root * root)


@kernel
def pair_weights(
    first: Integers,
    winner: Documents,
    worse: Documents,
    scores: Vector,
    importance: Vector,
    fidelity: bool,
    weights: Vector,
    potentials: Vector,
) -> float:
    """Weigh pair (i, j) by cᵢ times the slope of a loss at sᵢ − sⱼ, c the importance; return the sum of the weights.

    The loss is the `fidelity` loss or else the exponential one. `weights` (n_pairs,) and `potentials` (n_documents,)
    receive D and π. O(n_pairs + n_documents).
    """
    total = 0.0
    potentials[:] = 0.0
    for w in range(len(winner)):
        i = winner[w]
        won = 0.0
        for k in range(first[w], first[w + 1]):
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
def split_weight(
    first: Integers, winner: Documents, worse: Documents, weights: Vector, above: Mask
) -> tuple[float, float]:
    """Return the weight of the pairs that a stump orders rightly and of those it orders wrongly.

    `above` (n_documents,) says which documents have h = 1; a pair with both or none of its documents above counts for
    neither.
    """
    right = wrong = 0.0
    for w in range(len(winner)):
        i_above = above[winner[w]]
        for k in range(first[w], first[w + 1]):
            if above[worse[k]] != i_above:
                if i_above:
                    right += weights[k]
                else:
                    wrong += weights[k]
    return right, wrong


@kernel
def best_stump(
    bins: NDArray[np.int32], n_thresholds: Integers, potentials: Vector, total: float, reversed_too: bool
) -> tuple[int, int, float]:
    """Return feature, threshold and r of the stump with the largest r, or the largest |r| with `reversed_too`.

    `bins` (n_features, n_documents) counts the thresholds below each value, and `total` is the weight of all pairs.
    Of equal stumps the first feature is taken, then the lowest threshold. O(n_documents · n_features + Σ n_thresholds).
    """
    feature, threshold = 0, 0
    best = largest = 0.0
    sums = np.empty(n_thresholds.max() + 1)
    for f in range(len(bins)):
        sums[: n_thresholds[f] + 1] = 0.0
        for i in range(len(potentials)):
            sums[bins[f, i]] += potentials[i]
        for b in range(n_thresholds[f], 0, -1):
            sums[b - 1] += sums[b]
        for b in range(n_thresholds[f]):
            r = sums[b + 1]
            gain = abs(r) if reversed_too else r
            if gain > largest + TIE * total:
                feature, threshold, best, largest = f, b, r, gain
    return feature, threshold, best

"""Passes over preference pairs for a vector of individuals at once, and the list of these pairs."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Floats, Integers, Mask, Matrix, Packed, Vector, Words
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import (
    blend,
    load,
    load_mask,
    put,
    spread,
    store,
    store_eight,
    store_mask,
)

# The fields `first`, `winner` and `worse` of `PreferencePairs`: the pairs by their better document.
PairGroups: TypeAlias = tuple[Integers, NDArray[np.int32], NDArray[np.int32]]


@kernel
def worse_rows(y: Integers, offsets: Integers, n_pairs: int) -> NDArray[np.int32]:
    """Return the worse row of each of the `n_pairs` pairs, by query, then better row, then worse row."""
    worse = np.empty(n_pairs, np.int32)
    k = 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], offsets[q + 1]):
                if y[i] > y[j]:
                    worse[k] = j
                    k += 1
    return worse


@kernel
def hinge_pass(
    pairs: PairGroups,
    pair_words: Words,
    scores: Floats,
    margin: float,
    hinge: bool,
    active: Words,
    residual: Floats,
    slack_sum: Vector,
) -> None:
    """Sum d = margin − (sᵢ − sⱼ) over the kept pairs into the documents: residual[i] += d, residual[j] −= d.

    With `hinge` only pairs with d > 0 count. `active` receives the pairs that count, and `slack_sum` (lanes,) their
    Σ d, from which the squared loss follows: Σ d² = margin · Σ d − Σ s · residual, the second sum over documents.
    O(n_pairs) vector operations.
    """
    begin, winner, worse = pairs
    zero = spread(scores.dtype.type(0))
    target = spread(scores.dtype.type(margin))
    winner_total = np.empty((1, scores.shape[1]), scores.dtype)
    slack_sum[:] = 0
    residual[:] = 0
    for w in range(len(winner)):
        i = winner[w]
        slack = target - load(scores, i)
        total = zero
        for k in range(np.uint64(begin[w]), np.uint64(begin[w + 1])):
            j = worse[k]
            d = slack + load(scores, j)
            counts = load_mask(pair_words, k)
            if hinge:
                counts = counts & (d > zero)
            store_mask(active, k, counts)
            d = blend(counts, d, zero)
            total = total + d
            store(residual, j, load(residual, j) - d)
        store(residual, i, load(residual, i) + total)
        store(winner_total, 0, total)
        for lane in range(len(slack_sum)):
            slack_sum[lane] += winner_total[0, lane]


@kernel
def curvature_pass(pairs: PairGroups, active: Words, scores: Floats, result: Floats) -> None:
    """Multiply by the graph Laplacian of the active pairs: result[i] += sᵢ − sⱼ, result[j] −= sᵢ − sⱼ.

    O(n_pairs) vector operations.
    """
    begin, winner, worse = pairs
    zero = spread(scores.dtype.type(0))
    result[:] = 0
    for w in range(len(winner)):
        i = winner[w]
        above = load(scores, i)
        total = zero
        for k in range(np.uint64(begin[w]), np.uint64(begin[w + 1])):
            j = worse[k]
            t = blend(load_mask(active, k), above - load(scores, j), zero)
            total = total + t
            store(result, j, load(result, j) - t)
        store(result, i, load(result, i) + total)


@kernel
def project(X: Floats, weights: Floats, features: Integers, scores: Floats) -> None:
    """Write the scores X · weights of all documents under all lanes, summed in order of `features`.

    Every document is summed in the same order by the same operations, so identical documents get identical bits, and
    a feature with weight 0 in every lane may be left out of `features` without changing a bit.
    Shapes: X (n_documents, n_features), weights (n_features, lanes), scores (n_documents, lanes).
    """
    zero = spread(weights.dtype.type(0))
    n_full = len(X) - len(X) % 4
    for i in range(0, n_full, 4):  # four documents share the loads of the weights and hide latency
        sums = zero, zero, zero, zero
        for f in features:
            w = load(weights, f)
            for j in range(4):
                sums = put(sums, j, sums[j] + spread(X[i + j, f]) * w)
        for j in range(4):
            store(scores, i + j, sums[j])
    for i in range(n_full, len(X)):
        total = zero
        for f in features:
            total = total + spread(X[i, f]) * load(weights, f)
        store(scores, i, total)


@kernel
def used_features(weights: Floats | Mask) -> Integers:
    """Return the features with a weight, or a bit, other than 0 in any lane, as `project` needs them."""
    features = np.empty(len(weights), np.int64)
    count = 0
    for f in range(len(weights)):
        for lane in range(weights.shape[1]):
            if weights[f, lane] != 0:
                features[count] = f
                count += 1
                break
    return features[:count]


@kernel
def pull_back(
    X: Floats, documents: Floats, features: Integers, partial: Floats, sums: Matrix
) -> None:
    """Sum over the documents for each feature: sums = Xᵀ · documents for `features`, 0 for the others.

    `partial` (n_features, lanes) is scratch: 128 documents are summed in the precision of the arrays before they are
    added to `sums` in double, which keeps single-precision rounding far below the tolerance of any solver here.
    """
    sums[:] = 0
    zero = spread(documents.dtype.type(0))
    n_full = len(features) - len(features) % 4
    for start in range(0, len(X), 128):
        stop = min(start + 128, len(X))
        for u in range(0, n_full, 4):
            four = features[u], features[u + 1], features[u + 2], features[u + 3]
            totals = zero, zero, zero, zero
            for i in range(start, stop):
                v = load(documents, i)
                for j in range(4):
                    totals = put(totals, j, totals[j] + spread(X[i, four[j]]) * v)
            for j in range(4):
                store(partial, four[j], totals[j])
        for f in features[n_full:]:
            total = zero
            for i in range(start, stop):
                total = total + spread(X[i, f]) * load(documents, i)
            store(partial, f, total)
        for f in features:
            for lane in range(sums.shape[1]):
                sums[f, lane] += partial[f, lane]


@kernel
def pack_lanes(rows: Packed, words: Words) -> None:
    """Turn rows of packed bits (lanes, n_bytes), C-contiguous, into words (8 n_bytes,), bit l for row l."""
    for byte in range(rows.shape[1]):
        store_eight(words, 8 * byte, rows, rows.shape[1], byte)


@kernel
def transpose(source: Matrix, target: Floats) -> None:
    """Copy the transpose of `source` to `target`, in any precision: rows of individuals to columns, or back."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[j, i] = source[i, j]

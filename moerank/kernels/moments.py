"""Moments: of all preference pairs, and of cells of samples for their density."""

from __future__ import annotations

import numpy as np

from moerank.arrays import Floats, Integers, Mask, Matrix, Vector
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import bits_of, lanes, load, spread, store

ENTRIES_ABREAST, QUERY_BLOCK = 256, 512
"""A block of as many entries of as many queries stays in the second level of the cache."""

FEATURES_ABREAST = lanes(np.float64)
"""Features that are centred side by side."""

TERMS = 22
"""Of the expansion about the middle of a cell one bandwidth wide: the rest is below 1e-15 of a sample's peak."""

BANDWIDTHS_REACHED = 10.0
"""Bandwidths beyond which a cell is not looked at: exp(−9.5² / 2) is below 1e-19."""


@kernel
def sums_over_queries(packed: Floats, query_mask: Mask) -> Matrix:
    """Return Σ of the rows of `packed` (n_queries, n_entries) that each row of `query_mask` keeps.

    Shape (n_individuals, n_entries), summed in double precision in order of query. O(n_individuals · n_queries ·
    n_entries); queries that an individual leaves out cost nothing.
    """
    n_queries, n_entries = packed.shape
    sums = np.zeros((len(query_mask), n_entries))
    for first in range(0, n_queries, QUERY_BLOCK):
        last = min(first + QUERY_BLOCK, n_queries)
        for begin in range(0, n_entries, ENTRIES_ABREAST):
            end = min(begin + ENTRIES_ABREAST, n_entries)
            for individual in range(len(query_mask)):
                for q in range(first, last):
                    if query_mask[individual, q]:
                        for entry in range(begin, end):
                            sums[individual, entry] += packed[q, entry]
    return sums


@kernel
def centred_stack(
    flat: Floats,
    stride: int,
    first: int,
    offsets: Integers,
    run: Integers,
    n_runs: int,
    root_degree: Vector,
    stack: Matrix,
    n_features: int,
) -> None:
    """Centre documents in their queries, and fill the stack whose square is the sum over their preference pairs.

    Sums are taken document after document. Eight features go side by side to hide the latency of an addition.

    flat : has the value of feature f of document i at ``f · stride + first + i``
    offsets : (n_queries + 1,), where the block's queries begin, from 0
    run : (n_documents,), the run of each document, from 0 to ``n_runs - 1``
    root_degree : (n_documents,), √ of the number of pairs of each document
    stack : (n_features, n_documents + n_runs), or larger
        Receives √degree · x, and then the sum of x over each run, x centred in its query and in double precision.
        Where a feature is constant in a query it is exactly 0.
    """
    n_documents = len(run)
    tile = np.zeros((np.diff(offsets).max(), FEATURES_ABREAST))
    sums = np.empty((n_runs, FEATURES_ABREAST))
    mean = np.empty((1, FEATURES_ABREAST))
    zero = spread(0.0)
    for f in range(0, n_features, FEATURES_ABREAST):
        width = min(FEATURES_ABREAST, n_features - f)
        for r in range(n_runs):
            store(sums, r, zero)
        for q in range(len(offsets) - 1):
            begin = offsets[q]
            size = offsets[q + 1] - begin
            for c in range(width):
                base = (f + c) * stride + first + begin
                for k in range(size):
                    tile[k, c] = flat[np.uint64(base + k)]  # unsigned numbers need no test for a place from the end
            head = load(tile, 0)
            total = zero
            constant = zero >= zero
            for k in range(size):
                x = load(tile, k)
                total = total + x
                constant = constant & (x >= head) & (head >= x)
            store(mean, 0, total)
            bits = bits_of(constant)
            for c in range(FEATURES_ABREAST):
                mean[0, c] = tile[0, c] if (bits >> c) & 1 else mean[0, c] / size
            centre = load(mean, 0)
            for k in range(size):
                r = run[np.uint64(begin + k)]
                store(sums, r, load(sums, r) + (load(tile, k) - centre))
            for c in range(width):
                base = (f + c) * stride + first + begin
                for k in range(size):
                    i = np.uint64(begin + k)
                    stack[f + c, i] = (flat[np.uint64(base + k)] - mean[0, c]) * root_degree[i]
        for c in range(width):
            for r in range(n_runs):
                stack[f + c, n_documents + r] = sums[r, c]


@kernel
def gaussian_density(samples: Vector, points: Vector, bandwidth: float) -> Vector:
    """Return the density (1 / M h) Σⱼ φ((x − xⱼ) / h) of M samples at each point x, φ the standard normal density.

    The bandwidth h is positive. Densities are not negative; the error is below 1e-14 of the peak of one sample,
    1 / (h √(2π)). O((n_samples + n_points) · TERMS) and a sort of the samples. With s = (xⱼ − g) / h, at most ½, the
    distance of a sample from the middle g of its cell and z = (x − g) / h,

        exp(−(z − s)² / 2) = exp(−z² / 2) Σₖ (sᵏ / k!) Heₖ(z)

    with the Hermite polynomials Heₖ: the samples of a cell are summed up once, whatever the number of points.
    """
    ordered = np.sort(samples) / bandwidth
    density = np.zeros(len(points))
    moments = np.empty((len(ordered), TERMS))
    middles = np.empty(len(ordered))
    n_cells = begin = 0
    while begin < len(ordered):
        middle = ordered[begin] + 0.5
        moments[n_cells] = 0.0
        middles[n_cells] = middle
        end = begin
        while end < len(ordered) and ordered[end] <= middle + 0.5:
            term = 1.0
            for k in range(TERMS):
                moments[n_cells, k] += term
                term *= (ordered[end] - middle) / (k + 1)
            end += 1
        begin = end
        n_cells += 1
    middles = middles[:n_cells]
    scale = 1.0 / (len(ordered) * bandwidth * np.sqrt(2.0 * np.pi))
    for i in range(len(points)):
        x = points[i] / bandwidth
        first, last = np.searchsorted(middles, x - BANDWIDTHS_REACHED), np.searchsorted(middles, x + BANDWIDTHS_REACHED)
        for cell in range(first, last):
            z = x - middles[cell]
            previous, hermite, total = 0.0, 1.0, 0.0
            for k in range(TERMS):
                total += moments[cell, k] * hermite
                previous, hermite = hermite, z * hermite - k * previous
            density[i] += np.exp(-0.5 * z * z) * total
        density[i] = max(density[i], 0.0) * scale
    return density

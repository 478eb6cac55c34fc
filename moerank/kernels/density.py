"""Gaussian kernel density of one variable, in linear time (a fast Gauss transform)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["gaussian_density"]

Vector = NDArray[np.float64]

TERMS = 22
"""Of the expansion about the middle of a cell one bandwidth wide: the rest is below 1e-15 of a sample's peak."""
REACH = 10.0
"""Bandwidths beyond which a cell is not looked at: exp(−9.5² / 2) is below 1e-19."""


@kernel
def gaussian_density(samples: Vector, points: Vector, bandwidth: float) -> Vector:
    """Density (1 / M h) Σⱼ φ((x − xⱼ) / h) of M samples with bandwidth h at each point x, φ the standard normal one.

    Parameters
    ----------
    samples : (n_samples,)
    points : (n_points,)
    bandwidth : h, positive

    Returns
    -------
    ndarray, shape (n_points,)
        Not negative; the error is below 1e-14 of the peak of one sample, 1 / (h √(2π)).

    Notes
    -----
    O((n_samples + n_points) · TERMS) and a sort of the samples. With s = (xⱼ − g) / h, at most ½, the distance of a
    sample from the middle g of its cell and z = (x − g) / h,

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
        first, last = np.searchsorted(middles, x - REACH), np.searchsorted(middles, x + REACH)
        for cell in range(first, last):
            z = x - middles[cell]
            previous, hermite, total = 0.0, 1.0, 0.0
            for k in range(TERMS):
                total += moments[cell, k] * hermite
                previous, hermite = hermite, z * hermite - k * previous
            density[i] += np.exp(-0.5 * z * z) * total
        density[i] = max(density[i], 0.0) * scale
    return density

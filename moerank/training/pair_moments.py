"""Second and first moments of the differences of all preference pairs, from sums per label: no pair is listed.

With x centred in its query, c the number of documents of a query with a label and s their sum, the n − c pairs of each
document and the sums of each label give

    Σ (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ = Σ_q [ Σ_i (n_q − c_{yᵢ}) xᵢ xᵢᵀ + Σ_l s_{q,l} s_{q,l}ᵀ ],

the square of a matrix with the rows √(n_q − c) x and s. Without the centring there would be a term − s_q s_qᵀ, and
single-precision features with a mean far above their spread would lose their digits in the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.kernels.blas import one_blas_thread
from moerank.kernels.label_runs import centred_stack
from moerank.training.losses import Target

__all__ = ["PairMoments"]

Matrix = NDArray[np.float64]

BLOCK = 4096
"""Documents, about, of a block: large enough for the product to be all that costs."""


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Moments of the differences xᵢ − xⱼ over all preference pairs (i, j).

    Attributes
    ----------
    gram : ndarray, shape (n_features, n_features)
        Mean of (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ.
    unit, difference : ndarray, shape (n_features,)
        Mean of xᵢ − xⱼ, and of (yᵢ − yⱼ)(xᵢ − xⱼ).
    """

    gram: Matrix
    unit: Matrix
    difference: Matrix

    @classmethod
    def of(cls, data: RankingData) -> PairMoments:
        """Return the moments of a data set, remembered with it.

        O(n_documents · n_features²) once, in double precision whatever that of the features; beyond the features only
        a block of them is held.
        """
        return data.remember("pair moments", lambda: _moments(data))

    def moment(self, target: Target) -> Matrix:
        """Return the mean of tₖ (xᵢ − xⱼ), shape (n_features,)."""
        return target.margin * self.unit + target.per_label * self.difference


def _moments(data: RankingData) -> PairMoments:
    runs, n_features = data.label_runs, data.n_features
    gram, unit, difference = np.zeros((n_features, n_features)), np.zeros(n_features), np.zeros(n_features)
    degree, excess = (runs.n_worse + runs.n_better).astype(np.float64), (runs.n_worse - runs.n_better).astype(np.float64)
    root = np.sqrt(degree)
    label = np.empty(len(degree))
    label[runs.run] = data.y  # one label per run
    with one_blas_thread():
        for begin, end in data.query_blocks(BLOCK):
            rows = slice(data.offsets[begin], data.offsets[end])
            of_block = slice(runs.first[begin], runs.first[end])
            run = runs.run[rows] - runs.first[begin]
            stack = np.empty((n_features, len(run) + int(runs.first[end] - runs.first[begin])))
            features = np.ascontiguousarray(data.X[rows].T)
            centred_stack(features, data.offsets[begin : end + 1] - rows.start, run, root[of_block][run], stack)
            gram += stack @ stack.T
            sums = stack[:, len(run) :]
            unit += sums @ excess[of_block]
            # Σ over the pairs of (yᵢ − yⱼ)(xᵢ − xⱼ) is Σ n_q yᵢ xᵢ − (Σ y)(Σ x), and Σ x is 0 when x is centred.
            size = np.repeat(np.diff(data.offsets[begin : end + 1]), np.diff(runs.first[begin : end + 1]))
            difference += sums @ (label[of_block] * size)
    return PairMoments(gram / runs.n_pairs, unit / runs.n_pairs, difference / runs.n_pairs)

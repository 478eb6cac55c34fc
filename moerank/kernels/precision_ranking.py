"""The ranking that a structural SVM with the loss 1 − AP finds most violated (Yue et al., 2007)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["most_violated_rankings"]

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]


@kernel
def most_violated_rankings(
    z: Vector, relevant: NDArray[np.bool_], offsets: Integers, coefficients: Vector, losses: Vector
) -> None:
    """Find in each query the ranking π that maximises 1 − AP(π) + wᵀΨ(π), from the scores z = Xw alone.

    With R the relevant and N the other documents of a query,

        Ψ(π) = 1 / (|R| |N|) Σ_{i ∈ R} Σ_{j ∈ N} ± (xᵢ − xⱼ),   + where π has i above j.

    Documents of one kind stand in the order of their scores. Each irrelevant document, from the best on, goes to its
    own best place among the relevant ones; a worse one never belongs above a better one, so these places form a
    ranking.

    Parameters
    ----------
    z : (n_documents,)
    relevant : (n_documents,)
    offsets : (n_queries + 1,)
    coefficients : (n_documents,), written
        The sum over the documents of coefficient times x is Ψ(perfect ranking) − Ψ(π), query by query.
    losses : (n_queries,), written
        1 − AP(π). It and the coefficients are 0 in queries without documents of both kinds.

    Notes
    -----
    O(|R| |N|) per query, and sorting.
    """
    coefficients[:] = 0.0
    losses[:] = 0.0
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        n_relevant = relevant[begin:end].sum()
        n_others = end - begin - n_relevant
        if n_relevant == 0 or n_others == 0:
            continue
        above, below = np.empty(n_relevant, np.int64), np.empty(n_others, np.int64)
        i, j = 0, 0
        for place in np.argsort(-z[begin:end], kind="mergesort"):
            if relevant[begin + place]:
                above[i] = begin + place
                i += 1
            else:
                below[j] = begin + place
                j += 1
        passed = np.zeros(n_relevant + 1, np.int64)  # by how many relevant documents there are above them
        share = 2.0 / (n_relevant * n_others)
        for j in range(n_others):
            # From the end of the ranking up: what it gains to stand above one more relevant document.
            best, best_gain, gain = n_relevant, 0.0, 0.0
            for i in range(n_relevant - 1, -1, -1):
                precision_lost = (i + 1.0) / (i + 1.0 + j) - (i + 1.0) / (i + 2.0 + j)
                gain += precision_lost / n_relevant - share * (z[above[i]] - z[below[j]])
                if gain > best_gain:
                    best, best_gain = i, gain
            passed[best] += 1
            coefficients[below[j]] -= share * (n_relevant - best)
        n_above = 0
        precision = 0.0
        for i in range(n_relevant):
            n_above += passed[i]
            coefficients[above[i]] = share * n_above
            precision += (i + 1.0) / (i + 1.0 + n_above)
        losses[q] = 1.0 - precision / n_relevant

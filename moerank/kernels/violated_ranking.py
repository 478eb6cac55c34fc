"""The ranking that a structural SVM for average precision violates most, by greedy insertion (Yue et al., 2007)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["most_violated_rankings"]


@kernel
def most_violated_rankings(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.float64], float]:
    """Find the ranking of every query with the largest 1 − AP − (joint score of the right ranking less that of it).

    The joint score of a ranking is Σ ± (sᵢ − sⱼ) / (|R| |N|) over its relevant documents i and irrelevant ones j, plus
    where i is above j. So a right ranking scores Σ 2 (sᵢ − sⱼ) / (|R| |N|) more, summed over the pairs that the other
    has in the wrong order.

    Parameters
    ----------
    scores : ndarray, shape (n_documents,)
    relevant : ndarray of bool, shape (n_documents,)
        Every query has documents of both kinds.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query q holds the rows ``offsets[q]`` to ``offsets[q + 1]``.

    Returns
    -------
    weight : ndarray, shape (n_documents,)
        2 / (|R| |N|) times the number of wrong pairs a document is in, negative for irrelevant documents: the
        difference of the joint scores is the sum of scores · weight.
    loss : float
        1 − AP, summed over the queries.

    Notes
    -----
    Some such ranking has the relevant documents in the order of their scores, and the irrelevant ones, too. So it is
    enough to find for each irrelevant document, best first, the relevant ones that stand below it; the first of them
    never gets higher. O(|R| |N|) a query, after sorting.
    """
    weight = np.zeros(len(scores))
    loss = 0.0
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        order = begin + np.argsort(-scores[begin:end])
        above = order[relevant[order]]
        below = order[~relevant[order]]
        n_relevant = len(above)
        unit = 2.0 / (n_relevant * len(below))
        n_inserted = np.zeros(n_relevant)  # how many irrelevant documents stand directly above each relevant one
        highest = 0
        for j in range(len(below)):
            total, best, place = 0.0, 0.0, n_relevant
            for i in range(n_relevant - 1, highest - 1, -1):
                lost = (i + 1.0) / ((i + 1.0 + j) * (i + 2.0 + j))  # of the precision at i, from j to j + 1 above it
                total += lost / n_relevant - unit * (scores[above[i]] - scores[below[j]])
                if total > best:
                    best, place = total, i
            highest = place
            if place == n_relevant:
                break
            n_inserted[place] += 1.0
            weight[below[j]] = -unit * (n_relevant - place)
        n_above, precision = 0.0, 0.0
        for i in range(n_relevant):
            n_above += n_inserted[i]
            precision += (i + 1.0) / (i + 1.0 + n_above)
            weight[above[i]] = unit * n_above
        loss += 1.0 - precision / n_relevant
    return weight, loss

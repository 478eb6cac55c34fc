"""Stability: how much the features agree that several runs of a solver choose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

__all__ = ["feature_stability"]


def feature_stability(chosen: Sequence[Sequence[int]], n_features: int) -> tuple[float, float]:
    """Return how much the choices of several runs agree: mean pairwise Jaccard index, and corrected for chance.

    Parameters
    ----------
    chosen : sequence of sequences of int
        The columns that each run chose, at least two runs.
    n_features : int
        Number of columns there are.

    Returns
    -------
    jaccard : float, in [0, 1]
        |A ∩ B| / |A ∪ B|, averaged over the pairs of runs; 1 for two empty choices.
    corrected : float, at most 1
        (jaccard − expected) / (1 − expected), where expected is the mean Jaccard index of random choices of the same
        sizes; 0 for chance, NaN where chance always agrees.

    Examples
    --------
    >>> feature_stability([[0, 1], [0, 1], [0, 2]], n_features=10)[0].__round__(4)
    0.5556
    """
    pairs = [(set(a), set(b)) for a, b in combinations(chosen, 2)]
    if not pairs:
        raise ValueError("stability needs at least two runs")
    jaccard = np.mean([len(a & b) / len(a | b) if a | b else 1.0 for a, b in pairs])
    expected = np.mean([_expected_jaccard(len(a), len(b), n_features) for a, b in pairs])
    corrected = (jaccard - expected) / (1.0 - expected) if expected < 1.0 else np.nan
    return float(jaccard), float(corrected)


def _expected_jaccard(size_a: int, size_b: int, n_features: int) -> float:
    """Mean Jaccard index of two random subsets: their intersection is hypergeometric."""
    from scipy.stats import hypergeom

    if size_a + size_b == 0:
        return 1.0
    common = np.arange(min(size_a, size_b) + 1)
    chance = hypergeom.pmf(common, n_features, size_a, size_b)
    return float(chance @ (common / (size_a + size_b - common)))

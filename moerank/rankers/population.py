"""Scores of a whole population of rankers, whatever they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.scores import linear_scores

__all__ = ["population_scores"]


def population_scores(population: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores (n_documents, n_individuals) of what a backend's ``fit_population`` returned.

    That is an array of weights, one row an individual, or else an object with a method ``scores(X)``.
    """
    if isinstance(population, np.ndarray):
        return linear_scores(X, population)
    scores: NDArray[np.float64] = population.scores(X)
    return scores

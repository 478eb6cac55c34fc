"""What the three stages share: objective values by digest, and batches cut into pieces for the threads."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.problem import Problem

from moerank.data import RankingData
from moerank.evolution import row_digests
from moerank.kernels.scores import linear_scores
from moerank.metrics import Metric
from moerank.rankers import Population

__all__ = ["Stage", "training_errors"]

# Individuals a piece. One vector of the pair passes holds 16, and no result depends on the cut or on the company.
PIECE = 16


class Stage(Problem):  # type: ignore[misc]
    """A pymoo problem with two objectives to minimise, a size and 1 − metric on the training data.

    A subclass says how individuals are measured (`_measure`) and which operators suit them (`operators`).

    Parameters
    ----------
    n_var : int
        Length of an individual.
    workers : int, default 1
        Threads that share a batch. The objective values are the same to the bit for any number.
    **settings
        Passed on to pymoo, as ``vtype`` or bounds.
    """

    def __init__(self, n_var: int, *, workers: int = 1, **settings: Any) -> None:
        super().__init__(n_var=n_var, n_obj=2, **settings)
        if workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers}")
        self.workers = workers
        self._known: dict[bytes, tuple[float, float]] = {}

    @abstractmethod
    def operators(self) -> dict[str, Any]:
        """Return the sampling and the other operators that suit this stage's individuals."""

    @abstractmethod
    def _measure(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the objectives (n, 2) of individuals that are not empty."""

    @property
    def worst(self) -> tuple[float, float]:
        """Objectives of an empty individual: worse than any other's in both."""
        return (self.n_var + 1.0, 2.0)

    def _is_empty(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        return np.array([not row.any() for row in X])  # row by row, any() stops at the first bit that is set

    def _evaluate(self, X: NDArray[Any], out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        digests = row_digests(X)
        for digest in np.asarray(digests, dtype=object)[self._is_empty(X)]:
            self._known[digest] = self.worst
        first_row = {digest: row for row, digest in reversed(list(enumerate(digests))) if digest not in self._known}
        rows = sorted(first_row.values())
        for row, objectives in zip(rows, self.measure(X[rows]), strict=True):
            self._known[digests[row]] = (float(objectives[0]), float(objectives[1]))
        out["F"] = np.array([self._known[digest] for digest in digests])

    def measure(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the objectives (n, 2) of individuals that are not empty, without looking them up.

        The rows are cut into pieces for the threads.
        """
        pieces = [X[begin : begin + PIECE] for begin in range(0, len(X), PIECE)]
        if self.workers == 1 or len(pieces) == 1:
            return np.concatenate([np.empty((0, 2)), *map(self._measure, pieces)])
        with ThreadPoolExecutor(self.workers) as pool:
            return np.concatenate([np.empty((0, 2)), *pool.map(self._measure, pieces)])

    def cache_state(self) -> dict[bytes, tuple[float, float]]:
        """Return the objective values known so far, for a checkpoint."""
        return dict(self._known)

    def restore_cache(self, state: dict[bytes, tuple[float, float]]) -> None:
        """Take up the objective values of a checkpoint."""
        self._known.update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Stage:
        """Return itself: pymoo copies problems with their histories, and the data need not be copied along."""
        return self


def training_errors(train: RankingData, metric: Metric, population: Population) -> NDArray[np.float64]:
    """Return 1 − metric on `train` of each ranker of a population, shape (n_individuals,)."""
    W = population.coefs
    if W is None:
        return 1.0 - metric.batch(train, population.scores(train.X))
    spans = metric.counted_spans(train)
    blocks = (W[begin : begin + PIECE] for begin in range(0, len(W), PIECE))
    return 1.0 - np.concatenate([metric.batch(train, linear_scores(train.X, block, spans)) for block in blocks])

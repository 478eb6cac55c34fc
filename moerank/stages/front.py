"""The front that a stage of MOFSRank ends with: its members, their rankers, and what these are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.metrics import Metric
from moerank.rankers import Population
from moerank.stages.objectives import FRONT, Objective, errors_of

__all__ = ["Front"]


@dataclass(frozen=True, eq=False)
class Front:
    """Non-dominated members.

    Attributes
    ----------
    F : ndarray, shape (n_members, n_objectives)
    feature_mask : ndarray of bool, shape (n_members, n_features)
    population : Population
        Their rankers.
    """

    F: NDArray[np.float64]
    feature_mask: NDArray[np.bool_]
    population: Population

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of features of each member, shape (n_members,)."""
        return np.count_nonzero(self.feature_mask, axis=1)

    def errors(self, objectives: Sequence[Objective], train: RankingData, metric: Metric) -> NDArray[np.float64]:
        """Return 1 − metric on the training data of each member, measured unless it is one of the objectives."""
        for objective, values in zip(objectives, self.F.T, strict=True):
            if objective.name == "error":
                return np.asarray(values, np.float64)
        return errors_of(train, metric, self.population)

    def order(self, errors: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the members' numbers by size, then by error, then by their objectives."""
        return np.lexsort((*self.F.T[::-1], errors, self.sizes))

    def take(self, members: NDArray[np.int64]) -> Front:
        """Return some of the members, in this order."""
        return Front(self.F[members], self.feature_mask[members], self.population.take(members))

    def table(
        self, objectives: Sequence[Objective], errors: NDArray[np.float64], validation: NDArray[np.float64]
    ) -> pd.DataFrame:
        """Return a row for each member, as `MOFSRank.front_` has it."""
        further = {entry.name: values for entry, values in zip(objectives, self.F.T, strict=True)}
        return pd.DataFrame(
            {
                "n_features": self.sizes,
                "error": errors,
                **{name: values for name, values in further.items() if name not in FRONT},
                "validation": validation,
                "features": [tuple(np.flatnonzero(mask).tolist()) for mask in self.feature_mask],
            }
        )

"""The front that a stage of MOFSRank ends with: its members, their rankers, and what these are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.metrics import Metric
from moerank.rankers import Population, on_all_columns
from moerank.stages.front_table import FrontTable
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

    def on_all_columns(self, kept: NDArray[np.bool_]) -> Front:
        """Return the members of a search on the columns in `kept`, shape (n_features,), as members on all columns."""
        feature_mask = np.zeros((len(self.F), len(kept)), np.bool_)
        feature_mask[:, kept] = self.feature_mask
        return Front(self.F, feature_mask, on_all_columns(self.population, kept))

    def by_size(
        self, objectives: Sequence[Objective], train: RankingData, metric: Metric
    ) -> tuple[Front, NDArray[np.float64]]:
        """Return the members by size, then by error, then by their objectives; and their errors on the training data.

        The errors, 1 − metric, are measured unless they are one of the objectives.
        """
        errors = self._errors(objectives, train, metric)
        order = np.lexsort((*self.F.T[::-1], errors, self.sizes))
        return Front(self.F[order], self.feature_mask[order], self.population.take(order)), errors[order]

    def _errors(self, objectives: Sequence[Objective], train: RankingData, metric: Metric) -> NDArray[np.float64]:
        for objective, values in zip(objectives, self.F.T, strict=True):
            if objective.name == "error":
                return np.asarray(values, np.float64)
        return errors_of(train, metric, self.population)

    def table(
        self, objectives: Sequence[Objective], errors: NDArray[np.float64], validation: NDArray[np.float64]
    ) -> FrontTable:
        """Return a row for each member, as `MOFSRank.front_` has it."""
        further = {entry.name: values for entry, values in zip(objectives, self.F.T, strict=True)}
        return FrontTable(
            {
                "n_features": self.sizes,
                "error": errors,
                **{name: values for name, values in further.items() if name not in FRONT},
                "validation": validation,
                "features": [tuple(np.flatnonzero(mask).tolist()) for mask in self.feature_mask],
            }
        )

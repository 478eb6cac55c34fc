"""Interactions: bins of two features together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from moerank.arrays import Floats, Integers, Matrix, Vector
from moerank.data import RankingData
from moerank.rankers.table_population import Axis
from moerank.training.bins import Bins

N_CUTS = 5
"""Thresholds of each feature of an interaction."""


@dataclass(frozen=True, eq=False)
class Interactions:
    """Pairs of features as further columns of a table, which hold the number of the bin of both features together."""

    coarse: Bins  # of each feature
    single: Bins  # of the functions of one feature
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, train: RankingData, n_bins: int, features: Integers) -> Interactions:
        """Return all pairs of some features."""
        pairs = tuple(combinations(sorted(features.tolist()), 2))
        return cls(Bins.of(train, N_CUTS), Bins.of(train, n_bins), pairs)

    def table(self, X: Floats) -> Matrix:
        """Return the table (n_documents, n_features + n_pairs)."""
        codes = self.coarse.codes_of(X)
        return np.column_stack([X, *(codes[f] * np.uint8(self._width(g)) + codes[g] for f, g in self.pairs)])

    def data(self, train: RankingData) -> RankingData:
        """Return the training data with the table in place of the features."""
        weights = {name: getattr(train, name) for name in ("query_weights", "document_weights")}
        return RankingData(self.table(train.X), train.y, train.qid, **weights)

    @cached_property
    def bins(self) -> Bins:
        """The bins of all columns of the table, for pairs one for each of their bins."""
        n_bins = [self._width(f) * self._width(g) for f, g in self.pairs]
        between: list[Vector] = [np.arange(0.5, n - 1) for n in n_bins]
        return Bins((*self.single.thresholds, *between))

    def roots(self, smooth: float) -> list[Matrix]:
        """Return symmetric roots of the covariances of the steps of each pair.

        Steps are those from each of its bins to the next one. Their function is a sum of products of steps,
        Σ_ab θ_ab [x_f > t_a] [x_g > u_b], and the covariance of θ is smooth² I.
        """
        roots = []
        for f, g in self.pairs:
            above_f, above_g = (np.tri(self._width(each), k=-1)[:, :-1] for each in (f, g))
            steps = np.diff(np.kron(above_f, above_g), axis=0)
            values, vectors = np.linalg.eigh(steps @ steps.T)
            roots.append(smooth * (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
        return roots

    @property
    def axes(self) -> dict[int, tuple[Axis, ...]]:
        """The columns of pairs with their features and thresholds, see `TablePopulation.forest`."""
        n_features = len(self.single.thresholds)
        cuts = self.coarse.thresholds
        return {n_features + i: ((f, cuts[f]), (g, cuts[g])) for i, (f, g) in enumerate(self.pairs)}

    def _width(self, feature: int) -> int:
        return len(self.coarse.thresholds[feature]) + 1

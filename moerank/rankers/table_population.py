"""A population of additive rankers: for each feature a table with a value for each of its bins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, TypeAlias

import numpy as np

from moerank.arrays import Array, Floats, Integers, Mask, Matrix, Vector
from moerank.data import RankingData
from moerank.kernels.step_tables import table_scores
from moerank.rankers.model import Forest, Tree
from moerank.training.bins import Bins

# A feature with its thresholds.
Axis: TypeAlias = tuple[int, Vector]


@dataclass(frozen=True, eq=False)
class TablePopulation:
    """Additive rankers, by the value of each bin: ``tables[individual, bins.first[f] + b]`` for bin b of feature f.

    The lowest bin of each feature has the value 0, so features that are not used have only zeros.
    """

    coefs: ClassVar[None] = None  # there are no weights
    bins: Bins
    tables: Matrix  # (n_individuals, n_cells)

    def __len__(self) -> int:
        return len(self.tables)

    def scores(self, X: Floats) -> Matrix:
        """Return the scores (n_documents, n_individuals) of the rows of X, of shape (n_documents, n_features)."""
        used = np.flatnonzero(self.feature_mask.any(axis=0))
        part = self._with_bins(used)
        return table_scores(part.bins.codes_of(X[:, used]), part.bins.first, part.tables)

    def scores_of(self, data: RankingData) -> Matrix:
        """Return the scores of the documents of a data set, which remembers their bins."""
        return table_scores(self.bins.codes(data), self.bins.first, self.tables)

    def take(self, rows: Integers) -> Self:
        """Return the individuals of these numbers; −1 stands for one without features, whose scores are 0."""
        return type(self)(self.bins, rows_or_zeros(self.tables, rows))

    @property
    def feature_mask(self) -> Mask:
        """The features that each individual uses, shape (n_individuals, n_features)."""
        return np.logical_or.reduceat(self.tables != 0, self.bins.first[:-1], axis=1)

    def combined(self, weights: Matrix, feature_mask: Mask) -> Self:
        """Return the weighted sums of the rankers on some features; see `LinearPopulation.combined`."""
        mask = np.repeat(feature_mask, np.diff(self.bins.first), axis=1)
        return type(self)(self.bins, sums_of_members(weights, self.tables, mask))

    def on_columns(self, column_mask: Mask) -> Self:
        """Return the rankers for a wider table, of which these columns are the features (n_columns,)."""
        return self._with_bins(np.where(column_mask, np.cumsum(column_mask) - 1, -1))

    def _with_bins(self, features: Integers) -> Self:
        """Return the rankers on some of the features, in a new order; −1 stands for a feature that is not used."""
        cells, unused = np.split(self.tables, self.bins.first[1:-1], axis=1), np.zeros((len(self), 1))
        tables = [unused[:, :0], *(cells[f] if f >= 0 else unused for f in features.tolist())]
        bins = Bins(tuple(self.bins.thresholds[f] if f >= 0 else np.empty(0) for f in features.tolist()))
        return type(self)(bins, np.hstack(tables))

    def forest(self, individual: int, pairs: Mapping[int, tuple[Axis, ...]] | None = None) -> Forest:
        """Return a balanced tree for each used feature of an individual; equal neighbouring bins are joined.

        `pairs` has the columns that hold the bin of two features together, with the thresholds of these.
        """
        trees = []
        for feature in np.flatnonzero(self.feature_mask[individual]).tolist():
            begin, end = self.bins.first[feature : feature + 2]
            axes = (pairs or {}).get(feature, ((feature, self.bins.thresholds[feature]),))
            values = self.tables[individual, begin:end].reshape([len(cuts) + 1 for _, cuts in axes])
            trees.append(_balanced(axes, values))
        return Forest.of(trees)


def rows_or_zeros(values: Array, rows: Integers) -> Array:
    """Return these rows of a table, and zeros for −1."""
    return np.vstack([values, np.zeros((1, values.shape[1]), values.dtype)])[rows]


def sums_of_members(weights: Matrix, values: Matrix, mask: Mask) -> Matrix:
    """Return Σ_k weights[:, k] · values[k] where the mask is set, else 0; shapes (n, n_members), (n_members, m)."""
    # Member by member, because the last bits of a matrix product depend on the size of the batch.
    total = np.zeros((len(weights), values.shape[1]))
    for weight, member in zip(weights.T, values, strict=True):
        total += weight[:, None] * member
    return np.where(mask, total, 0.0)


def _balanced(axes: Sequence[Axis], values: Matrix) -> Tree:
    """Return a balanced tree of a step function of some features, which has an axis for each."""
    if not axes:
        return float(values)
    (column, cuts), *others = axes
    changes = np.flatnonzero((values[1:] != values[:-1]).any(axis=tuple(range(1, values.ndim))))
    if not len(changes):
        return _balanced(others, values[0])
    cut = changes[len(changes) // 2]
    left = _balanced([(column, cuts[:cut]), *others], values[: cut + 1])
    return column, float(cuts[cut]), left, _balanced([(column, cuts[cut + 1 :]), *others], values[cut + 1 :])

"""Shapes: what one feature, or two of them together, add to the score of a ranker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ConfigDict

from moerank.arrays import Matrix, Vector
from moerank.data import RankingData
from moerank.rankers.model import Forest, Number

if TYPE_CHECKING:  # pandas takes long to load
    import pandas as pd

DECILES = np.linspace(0.0, 1.0, 11)

# Number of times that means are moved out of a function of two features; dependent features need several.
PASSES = 50


@dataclass(frozen=True)
class Shape:
    """A function of one feature, or of two, that is constant in each bin.

    Attributes
    ----------
    features : tuple of str
        Their names.
    thresholds : tuple of tuple of float, one per feature
        Increasing; a value above a threshold is in the next bin.
    deciles : tuple of tuple of float, one per feature
        Quantiles 0, 0.1, …, 1 of the training documents.
    values : tuple of float
        The values of all bins, with the last feature's the fastest; their mean over the training documents is 0.
    shares : tuple of float
        The shares of the training documents in these bins.
    """

    # For reading from JSON.
    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    features: tuple[str, ...]
    thresholds: tuple[tuple[Number, ...], ...]
    deciles: tuple[tuple[Number, ...], ...]
    values: tuple[Number, ...]
    shares: tuple[Number, ...]

    @property
    def n_bins(self) -> tuple[int, ...]:
        """The number of bins of each feature."""
        return tuple(len(cuts) + 1 for cuts in self.thresholds)

    @property
    def spread(self) -> float:
        """The standard deviation of the values over the training documents."""
        return float(np.sqrt(np.dot(self.shares, np.square(self.values))))

    def rows(self) -> pd.DataFrame:
        """Return one row for each bin; see `ShapesMixin.shapes_`."""
        import pandas as pd

        columns: dict[str, object] = {}
        bins = np.unravel_index(np.arange(len(self.values)), self.n_bins)
        axes = zip(("", "_2"), self.features, self.thresholds, bins, strict=False)
        for suffix, feature, cuts, indices in axes:
            edges = np.array([-np.inf, *cuts, np.inf])
            columns[f"feature{suffix}"] = feature
            columns[f"from{suffix}"] = edges[indices]
            columns[f"to{suffix}"] = edges[indices + 1]
        return pd.DataFrame({**columns, "value": self.values, "share": self.shares})


class ShapesMixin:
    """The shapes of an estimator, which are set by its fit; without any they are an AttributeError."""

    _shapes: tuple[Shape, ...] = ()

    @property
    def shapes_(self) -> pd.DataFrame:
        """What the features add to the score: one row for each bin of each, those with the largest spread first.

        The columns are ``feature``, ``from`` (exclusive), ``to`` (inclusive), ``value`` and ``share``, that of the
        training documents in the bin; ``feature_2``, ``from_2`` and ``to_2`` are of interactions alone. The mean of the
        values of each function over the training documents is 0.
        """
        import pandas as pd

        return pd.concat([shape.rows() for shape in self._shown_shapes()], ignore_index=True)

    def _shown_shapes(self) -> tuple[Shape, ...]:
        if not self._shapes:
            raise AttributeError(
                f"{type(self).__name__} has no shapes: fit it with a backend that adds up "
                'functions of one or two features, such as backend="additive"'
            )
        return self._shapes

    def _shapes_figure(self) -> Any:
        # By name, because figures lie above rankers, and matplotlib takes long to load.
        return resolve_name("moerank.figures.shapes_of_run:figure_of_shapes")(self._shown_shapes())


def shapes_of(forest: Forest | None, train: RankingData) -> tuple[Shape, ...]:
    """Return the shapes of a forest, those with the largest spread first, each the sum of all trees of its features.

    Functions of two features have the mean 0 in each bin of either feature: what depends on one alone is in its own
    function. Without trees, or if a tree splits by three features, there are none. O(n_documents · log(n_documents))
    for each feature.

    References
    ----------
    B. Lengerich, S. Tan, C.-H. Chang, G. Hooker, R. Caruana: Purifying interaction effects with the functional ANOVA.
    AISTATS 2020.
    """
    if forest is None:
        return ()
    roots_of: dict[tuple[int, ...], list[int]] = {
        (feature,): [] for feature in sorted(set(forest.columns))
    }
    for root in forest.roots:
        features = tuple(sorted({forest.columns[split] for split in _splits(forest, root)}))
        if len(features) > 2:
            return ()
        if features:
            roots_of.setdefault(features, []).append(root)
    tables = {
        features: _Table.of(forest, features, roots, train) for features, roots in roots_of.items()
    }
    for features, table in tables.items():
        if len(features) == 2:
            table.move_means([tables[(feature,)] for feature in features])
    shapes = [table.shape(features, train) for features, table in tables.items()]
    return tuple(sorted(shapes, key=lambda shape: -shape.spread))


@dataclass(frozen=True, eq=False)
class _Table:
    """A function of some features by their bins, with the shares of the training documents in these."""

    cuts: list[Vector]
    values: Matrix
    shares: Matrix

    @classmethod
    def of(
        cls, forest: Forest, features: tuple[int, ...], roots: list[int], train: RankingData
    ) -> _Table:
        """Return the sum of some trees; a single feature has the bins of all trees."""
        if len(features) == 1:
            splits = list(range(len(forest.columns)))
        else:
            splits = [split for root in roots for split in _splits(forest, root)]
        columns = np.array(forest.columns)[splits]
        thresholds = np.array(forest.thresholds)[splits]
        cuts = [np.unique(thresholds[columns == feature]) for feature in features]
        shape = [len(axis) + 1 for axis in cuts]
        rows = np.zeros((prod(shape), train.n_features))
        bins = []
        grid = np.meshgrid(*(np.append(axis, np.inf) for axis in cuts), indexing="ij")
        for feature, axis, upper_ends in zip(features, cuts, grid, strict=True):
            rows[:, feature] = upper_ends.ravel()
            bins.append(np.searchsorted(axis, train.X[:, feature]))
        values = forest.scores(rows, roots).reshape(shape)
        counts = np.bincount(np.ravel_multi_index(bins, values.shape), minlength=values.size)
        return cls(cuts, values, counts.reshape(values.shape) / train.n_documents)

    def move_means(self, functions: list[_Table]) -> None:
        """Move the means in each bin of either feature to the functions of these features."""
        for _ in range(PASSES):
            for axis, function in enumerate(functions):
                share = self.shares.sum(axis=1 - axis)
                total = (self.values * self.shares).sum(axis=1 - axis)
                mean = np.divide(total, share, out=np.zeros(len(share)), where=share > 0)
                self.values[:] -= np.expand_dims(mean, 1 - axis)
                upper_ends = np.append(function.cuts[0], np.inf)
                function.values[:] += mean[np.searchsorted(self.cuts[axis], upper_ends)]

    def shape(self, features: tuple[int, ...], train: RankingData) -> Shape:
        """Return the table with the mean 0, and deciles of its features, in raw values if these are known."""
        X = train.X[:, features]
        deciles = np.quantile(X, DECILES, axis=0, method="inverted_cdf").T.astype(float)
        raw = train.scaling.raw
        return Shape(
            features=tuple(train.feature_names[feature] for feature in features),
            thresholds=tuple(tuple(axis.tolist()) for axis in map(raw, self.cuts, features)),
            deciles=tuple(tuple(axis.tolist()) for axis in map(raw, deciles, features)),
            values=tuple((self.values - (self.values * self.shares).sum()).ravel().tolist()),
            shares=tuple(self.shares.ravel().tolist()),
        )


def _splits(forest: Forest, node: int) -> Iterator[int]:
    """Yield the splits from a node on."""
    if node >= 0:
        yield node
        yield from _splits(forest, forest.left[node])
        yield from _splits(forest, forest.right[node])

"""Shapes: what one feature, or two of them together, add to the score of a ranker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pkgutil import resolve_name
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from pydantic import ConfigDict

from moerank.arrays import Vector
from moerank.data import RankingData
from moerank.rankers.model import Forest, Number, check_entries

if TYPE_CHECKING:  # matplotlib takes long to load
    from matplotlib.figure import Figure

DECILES = np.linspace(0.0, 1.0, 11)


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
    __pydantic_config__ = ConfigDict(extra="forbid")

    features: tuple[str, ...]
    thresholds: tuple[tuple[Number, ...], ...]
    deciles: tuple[tuple[Number, ...], ...]
    values: tuple[Number, ...]
    shares: tuple[Number, ...]

    def __post_init__(self) -> None:
        check_entries(len(self.features), "feature", thresholds=self.thresholds, deciles=self.deciles)
        for deciles in self.deciles:
            check_entries(len(DECILES), "decile", deciles=deciles)
        check_entries(prod(self.n_bins), "bin", values=self.values, shares=self.shares)

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
        columns: dict[str, object] = {}
        bins = np.unravel_index(np.arange(len(self.values)), self.n_bins)
        for number, (feature, cuts) in enumerate(zip(self.features, self.thresholds, strict=True), start=1):
            suffix, edges = "_2" * (number == 2), np.array([-np.inf, *cuts, np.inf])
            bin_ = bins[number - 1]
            columns |= {f"feature{suffix}": feature, f"from{suffix}": edges[bin_], f"to{suffix}": edges[bin_ + 1]}
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
        return pd.concat([shape.rows() for shape in self._shown_shapes()], ignore_index=True)

    def _shown_shapes(self) -> tuple[Shape, ...]:
        if not self._shapes:
            raise AttributeError(
                f"{type(self).__name__} has no shapes: fit it with a backend that adds up functions of one or two "
                'features, such as backend="additive"'
            )
        return self._shapes

    def _shapes_figure(self) -> Figure:
        # By name, because figures lie above rankers.
        figure: Figure = resolve_name("moerank.figures.shapes_of_run:figure_of_shapes")(self._shown_shapes())
        return figure


def shapes_of(forest: Forest | None, train: RankingData) -> tuple[Shape, ...]:
    """Return the shapes of a forest, those with the largest spread first, each the sum of all trees of its features.

    Without trees, or if a tree splits by three features, there are none. O(n_documents · log(n_documents)) for each
    feature.
    """
    columns = () if forest is None else [sorted({forest.columns[s] for s in _splits(forest, r)}) for r in forest.roots]
    if forest is None or max(map(len, columns), default=0) > 2:
        return ()
    grouped: dict[tuple[int, ...], list[int]] = {}
    for features, root in zip(columns, forest.roots, strict=True):
        if features:
            grouped.setdefault(tuple(features), []).append(root)
    shapes = [_shape(forest, features, roots, train) for features, roots in grouped.items()]
    return tuple(sorted(shapes, key=lambda shape: -shape.spread))


def _shape(forest: Forest, features: tuple[int, ...], roots: list[int], train: RankingData) -> Shape:
    """Return the sum of some trees, all of which split by these features alone."""
    splits = [split for root in roots for split in _splits(forest, root)]
    cuts = [np.unique([forest.thresholds[s] for s in splits if forest.columns[s] == f]) for f in features]
    values = np.zeros([len(each) + 1 for each in cuts])

    def add(node: int, low: tuple[int, ...], high: tuple[int, ...]) -> None:
        """Add the leaves below a node to the bins from `low` to below `high` that they cover."""
        if node < 0:
            values[tuple(map(slice, low, high))] += forest.leaves[-1 - node]
            return
        axis = features.index(forest.columns[node])
        after = int(np.searchsorted(cuts[axis], forest.thresholds[node])) + 1
        add(forest.left[node], low, (*high[:axis], min(high[axis], after), *high[axis + 1 :]))
        add(forest.right[node], (*low[:axis], max(low[axis], after), *low[axis + 1 :]), high)

    for root in roots:
        add(root, (0,) * len(features), values.shape)
    table = [train.X[:, feature].astype(np.float64) for feature in features]
    bins = np.ravel_multi_index([np.searchsorted(c, x) for c, x in zip(cuts, table, strict=True)], values.shape)
    shares: Vector = np.bincount(bins, minlength=values.size) / len(bins)
    return Shape(
        tuple(train.feature_names[feature] for feature in features),
        tuple(tuple(each.tolist()) for each in cuts),
        tuple(tuple(np.quantile(x, DECILES, method="inverted_cdf").tolist()) for x in table),
        tuple((values.ravel() - shares @ values.ravel()).tolist()),
        tuple(shares.tolist()),
    )


def _splits(forest: Forest, node: int) -> Iterator[int]:
    """Yield the splits from a node on."""
    if node >= 0:
        yield node
        yield from _splits(forest, forest.left[node])
        yield from _splits(forest, forest.right[node])

"""The features of a problem: what they cost, which are left out, and what every selection of them has to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictInt, StrictStr

from moerank.data import RankingData
from moerank.data.columns import column_mask
from moerank.data.feature_costs import read_cost_table
from moerank.files import read_text
from moerank.runs.data_section import Fold
from moerank.runs.places import Places, shipped_folder
from moerank.runs.section import Section
from moerank.stages.feature_strings import FeatureLimits
from moerank.stages.settings import at_least

__all__ = ["FeaturesSection"]

MOST_BYTES = 2**24
"""Of a table of features."""


LIMITS = ("include", "max_features", "max_cost")


class FeaturesSection(Section):
    """What is known of the features beside their values.

    Attributes
    ----------
    table : str, optional
        A CSV file with the columns name and cost and, where features are computed together, group and group_cost; it is
        looked for where data are. The objective "cost" adds these up.
    exclude : sequence of int or str
        Columns, counted from 0, or names of features that leave the data before anything looks at them.
    include : sequence of int or str
        Columns or names of features that belong to every selection.
    max_features : int, optional
        Most features of a selection.
    max_cost : float, optional
        Most that the features of a selection cost together.
    """

    table: Annotated[str, Field(min_length=1)] | None = None
    exclude: tuple[StrictInt | StrictStr, ...] = ()
    include: tuple[StrictInt | StrictStr, ...] = ()
    max_features: Annotated[int, at_least(1)] | None = None
    max_cost: Annotated[float, Field(ge=0)] | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """What every selection has to keep, by the names of the arguments of solvers that can."""
        return FeatureLimits(self.max_features, self.max_cost, self.include).given

    def configuration(self) -> dict[str, Any]:
        """Return the settings that can decide results, as plain JSON values; limits only where there are some."""
        settings = self.model_dump(mode="json", exclude=set(LIMITS) - set(self.limits))
        return settings if settings != {"table": None, "exclude": []} else {}

    def applied(self, fold: Fold, places: Places) -> tuple[Fold, dict[str, Any]]:
        """Return the parts of a fold with these costs, without the features that are left out, and the limits.

        The limits call features by name, as columns have other numbers where some are left out.

        Raises
        ------
        FileNotFoundError
            If the table is not there.
        ValueError
            For a table that is malformed or has other features, and for features that are not there, that are both
            in and out, or that are all.
        """
        train, validation, test = fold
        if self.table is not None:
            path = self._table_path(places)
            costs = read_cost_table(read_text(path, MOST_BYTES), str(path), train.feature_names)
            train, validation, test = (part.with_costs(costs) for part in (train, validation, test))
        kept, limits = self._kept(train), self.limits
        if self.include:
            limits["include"] = self._included(train, kept)
        return (train.with_features(kept), validation.with_features(kept), test.with_features(kept)), limits

    def _table_path(self, places: Places) -> Path:
        assert self.table is not None
        for path in [*places.files(self.table), shipped_folder() / self.table]:
            if path.is_file():
                return path
        raise FileNotFoundError(f"[features] table {self.table} is in none of {places}; put it beside the problem file")

    def _kept(self, data: RankingData) -> NDArray[np.bool_]:
        kept = ~column_mask(self.exclude, data.feature_names, "[features] exclude")
        if not kept.any():
            raise ValueError(f"[features] exclude leaves none of the {data.n_features} features")
        return kept

    def _included(self, data: RankingData, kept: NDArray[np.bool_]) -> tuple[str, ...]:
        names, included = data.feature_names, column_mask(self.include, data.feature_names, "[features] include")
        if (both := np.flatnonzero(included & ~kept)).size:
            raise ValueError(f"[features] feature {names[both[0]]!r} is both in include and in exclude")
        return tuple(names[column] for column in np.flatnonzero(included))

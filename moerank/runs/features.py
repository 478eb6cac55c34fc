"""The features of a problem: what they cost, and which are left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictInt, StrictStr

from moerank.checks import unknown
from moerank.data import RankingData
from moerank.data.feature_costs import read_cost_table
from moerank.files import read_text
from moerank.runs.section import Section
from moerank.runs.sources import Fold, Places, shipped_folder

__all__ = ["FeaturesSection"]

MOST_BYTES = 2**24
"""Of a table of features."""


class FeaturesSection(Section):
    """What is known of the features beside their values.

    Attributes
    ----------
    table : str, optional
        A CSV file with the columns name and cost and, where features are computed together, group and group_cost; it is
        looked for where data are. The objective "cost" adds these up.
    exclude : sequence of int or str
        Columns, counted from 0, or names of features that leave the data before anything looks at them.
    """

    table: Annotated[str, Field(min_length=1)] | None = None
    exclude: tuple[StrictInt | StrictStr, ...] = ()

    def applied(self, fold: Fold, places: Places) -> Fold:
        """Return the parts of a fold with these costs, and without the features that are left out.

        Raises
        ------
        FileNotFoundError
            If the table is not there.
        ValueError
            For a table that is malformed or has other features, and for features to leave out that are not there, or
            that are all.
        """
        train, validation, test = fold
        if self.table is not None:
            path = self._table_path(places)
            costs = read_cost_table(read_text(path, MOST_BYTES), str(path), train.feature_names)
            train, validation, test = (part.with_costs(costs) for part in (train, validation, test))
        kept = self._kept(train)
        return train.with_features(kept), validation.with_features(kept), test.with_features(kept)

    def _table_path(self, places: Places) -> Path:
        assert self.table is not None
        for path in [*places.files(self.table), shipped_folder() / self.table]:
            if path.is_file():
                return path
        raise FileNotFoundError(f"[features] table {self.table} is in none of {places}; put it beside the problem file")

    def _kept(self, data: RankingData) -> NDArray[np.bool_]:
        kept = np.ones(data.n_features, np.bool_)
        for feature in self.exclude:
            kept[_column(feature, data.feature_names)] = False
        if not kept.any():
            raise ValueError(f"[features] exclude leaves none of the {data.n_features} features")
        return kept


def _column(feature: int | str, names: Sequence[str]) -> int:
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"[features] exclude: {unknown('feature', feature, names)}")
        return names.index(feature)
    if not 0 <= feature < len(names):
        raise ValueError(
            f"[features] exclude: there is no column {feature}; columns go from 0 to {len(names) - 1}, and a name of "
            f'digits is written "{feature}"'
        )
    return feature

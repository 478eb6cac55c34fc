"""What all sources of data of a problem share: the keys of the table [data], and how its parts are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from moerank.data import RankingData
from moerank.data.folds import N_FOLDS
from moerank.data.sharded_data import parts_of
from moerank.runs.places import Places
from moerank.runs.section import Section
from moerank.stages.settings import at_least

__all__ = ["DataSection", "Fold", "Precision"]

Fold: TypeAlias = tuple[RankingData, RankingData, RankingData]

Precision: TypeAlias = Literal["float32", "float64"]

INDIFFERENT = {"origin", "scaled"}
"""Settings that decide no result: what a model remembers of the scaling stands beside it."""

LATER = ("file", "split", "dtype", "shards")
"""Settings that results of earlier versions do not have."""

MOST_SHARDS = 10_000


class DataSection(Section):
    """What all sources of data share.

    Attributes
    ----------
    normalize : {"none", "query", "minmax", "standard"}
        How features are scaled; see `fit_scaling`.
    scaled : "query", optional
        The files hold features that were scaled so, as LETOR's QueryLevelNorm files do: nothing is computed, but every
        model remembers it.
    grid : (rows, columns), optional
        The features are the pixels of an image, row by row; figures then show the image.
    shards : int, optional
        Cut the training part by query into so many shards, which may lie on the workers of a Dask cluster. Sums are
        taken shard by shard, so that results differ in the last bits from those without shards.
    """

    normalize: Literal["none", "query", "minmax", "standard"] = "none"
    scaled: Literal["query"] | None = None
    grid: tuple[Annotated[int, Field(strict=True, ge=1)], Annotated[int, Field(strict=True, ge=1)]] | None = None

    shards: Annotated[int, at_least(1, MOST_SHARDS)] | None = None

    @model_validator(mode="after")
    def _is_scaled_once(self) -> Self:
        if self.scaled is not None and self.normalize != "none":
            raise ValueError(
                f'scaled = "{self.scaled}" says that the features are scaled already, and normalize = '
                f'"{self.normalize}" would scale them again; leave one of them out'
            )
        return self

    @property
    def is_held(self) -> bool:
        """Whether the data can be read: all but those in memory that a folder knows by their digest alone."""
        return True

    def n_folds(self, places: Places) -> int:
        """Return how many folds there are."""
        return N_FOLDS

    @abstractmethod
    def read(self, fold: int, places: Places) -> Fold:
        """Return the parts of a fold."""

    def shard(self, fold: int, places: Places, number: int) -> RankingData:
        """Return a shard of the training part, counted from 0; what is not read in shards is cut after it is read."""
        return parts_of(self.read(fold, places)[0], self.shards or 1)[number]

    def held_out(self, fold: int, places: Places, names: Sequence[str]) -> tuple[RankingData, RankingData]:
        """Return the validation and the test part beside shards of the training part with features of these names."""
        return self.read(fold, places)[1:]

    def n_bytes(self, fold: int, places: Places) -> int:
        """Return about how much memory a shard takes; 0 where nobody knows before it is read."""
        return 0

    def settings(self) -> dict[str, Any]:
        """Return all settings that can decide results, as plain JSON values.

        Those that came later are there where they are not as they always were: what was computed before still counts.
        """
        changed = self.model_dump(mode="json", exclude_defaults=True)
        later = {name for name in LATER if name not in changed}
        return self.model_dump(mode="json", exclude=INDIFFERENT | later)

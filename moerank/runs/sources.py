"""Where the data of a problem come from: the table [data] of its file, for each source."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from moerank.checks import check_at_least
from moerank.data import RankingData, load_digits_fold, load_planted_fold, load_web_fold
from moerank.data.planted import MOST_LABELS
from moerank.data.web import MOST_SEED, web_bytes, web_shard
from moerank.runs.data_section import DataSection, Fold, Precision
from moerank.runs.file_sources import LetorData, TableData
from moerank.runs.memory import MemoryData
from moerank.runs.places import Places
from moerank.stages.settings import at_least

__all__ = ["SOURCES", "Data", "read_data"]


class DigitsData(DataSection):
    """Query by example on handwritten digits; see `load_digits_fold`."""

    source: Literal["digits"]
    n_queries: Annotated[int, at_least(5)] = 150
    n_documents: Annotated[int, at_least(2)] = 100
    seed: Annotated[int, at_least(0, MOST_SEED)] = 0

    def read(self, fold: int, places: Places) -> Fold:
        """Return the parts of a fold; nothing has to be found on disk."""
        return load_digits_fold(fold, n_queries=self.n_queries, n_documents=self.n_documents, seed=self.seed)


class PlantedData(DataSection):
    """Synthetic data with known relevant features; see `make_planted`."""

    source: Literal["planted"]
    n_queries: Annotated[int, at_least(1)] = 100
    n_documents: Annotated[int, at_least(2)] = 20
    n_relevant: Annotated[int, at_least(1)] = 5
    n_redundant: Annotated[int, at_least(0)] = 10
    n_noise: Annotated[int, at_least(0)] = 15
    n_labels: Annotated[int, at_least(2, MOST_LABELS)] = 3
    noise: Annotated[float, Field(strict=True, ge=0)] = 0.1
    seed: Annotated[int, at_least(0, MOST_SEED)] = 0

    def read(self, fold: int, places: Places) -> Fold:
        """Return the parts of a fold; nothing has to be found on disk."""
        return load_planted_fold(fold, **self.model_dump(exclude={"source", *DataSection.model_fields}))


class WebData(DataSection):
    """Synthetic data of the shape of MSLR-WEB30K; see `make_web`."""

    source: Literal["web"]
    queries: Annotated[int, at_least(5)] = 300
    seed: Annotated[int, at_least(0, MOST_SEED)] = 0
    dtype: Precision = "float32"

    def read(self, fold: int, places: Places) -> Fold:
        """Return the parts of a fold; nothing has to be found on disk."""
        return load_web_fold(fold, n_queries=self.queries, seed=self.seed, dtype=self.dtype)

    def shard(self, fold: int, places: Places, number: int) -> RankingData:
        """Return a shard of the training part, made without the others."""
        return web_shard(fold, number, self.shards or 1, n_queries=self.queries, seed=self.seed, dtype=self.dtype)

    def n_bytes(self, fold: int, places: Places) -> int:
        """Return about how much memory a shard takes."""
        return int(0.6 * web_bytes(self.queries, self.dtype)) // (self.shards or 1)


SOURCES = (DigitsData, PlantedData, WebData, LetorData, TableData, MemoryData)

Data = Annotated[
    DigitsData | PlantedData | WebData | LetorData | TableData | MemoryData,
    Field(discriminator="source"),
]


def read_data(data: Data, fold: int, places: Places) -> Fold:
    """Return the parts of a fold, after a check that there is such a fold."""
    n_folds = data.n_folds(places)
    check_at_least(1, n_folds, fold=fold)
    return data.read(fold, places)

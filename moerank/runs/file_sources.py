"""Data of a problem that come from files of the user: LETOR files and tables, in folders or as one file and a split."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from moerank.data import RankingData, load_fold, load_letor, load_table, load_table_fold
from moerank.data.file_shards import letor_shard, table_shard
from moerank.data.folds import MOST_FOLDS, N_FOLDS, count_folds, deal_queries, split_queries
from moerank.data.missing import MissingRule, check_missing_rule
from moerank.data.part_names import part_paths
from moerank.data.tables import table_paths
from moerank.data.web import MOST_SEED
from moerank.runs.data_section import DataSection, Fold, Precision
from moerank.runs.places import Places
from moerank.runs.section import Section
from moerank.stages.settings import at_least

__all__ = ["FileData", "LetorData", "Split", "TableData"]


def _checked_rule(rule: object) -> object:
    check_missing_rule(rule)
    return rule


Missing = Annotated[MissingRule, BeforeValidator(_checked_rule)]


Share = Annotated[float, Field(strict=True, gt=0, lt=1)]
DEFAULT_SHARE = 0.2


class Split(Section):
    """How the queries of one file become training, validation and test part; in each they stay in file order.

    Attributes
    ----------
    validation, test : float, default 0.2
        Shares of the queries, drawn at random: one fold. See `split_queries`.
    folds : int, optional
        Instead of shares: deal the queries at random into so many parts, and hold each out once. See `deal_queries`.
    seed : int, default 0
        Of the draw.
    """

    validation: Share | None = None
    test: Share | None = None
    folds: Annotated[int, at_least(3, MOST_FOLDS)] | None = None
    seed: Annotated[int, at_least(0, MOST_SEED)] = 0

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.folds is not None and (self.validation is not None or self.test is not None):
            raise ValueError("folds deals the queries into equal parts, validation and test are shares; give either")
        if sum(self.shares) >= 1:
            raise ValueError("validation and test leave no query for training; give smaller shares")
        return self

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of validation and test queries."""
        validation, test = (DEFAULT_SHARE if share is None else share for share in (self.validation, self.test))
        return validation, test

    def parts(self, data: RankingData, fold: int) -> Fold:
        """Return the parts of a fold."""
        if self.folds is not None:
            return deal_queries(data, fold, self.folds, seed=self.seed)
        return split_queries(data, *self.shares, seed=self.seed)


class FileData(DataSection):
    """Files of the user: folders Fold1, Fold2, … of three files each, one such folder, or one file and a split.

    Attributes
    ----------
    folder, file : str
        One of them; looked for beside the problem's file, then below a place of data.
    split : Split, optional
        How one file is split; it is needed with `file`, and there only.
    origin : str
        What to download where the data are missing.
    missing : float, "query-min", "query-mean" or "query-worst", optional
        What missing values become; without it they are an error.
    dtype : {"float64", "float32"}
        Of the features.
    """

    folder: str | None = None
    file: str | None = None
    split: Split | None = None
    origin: str = "the data set"
    missing: Missing | None = None
    dtype: Precision = "float64"

    @field_validator("folder", "file")
    @classmethod
    def _is_below(cls, path: str | None, info: Any) -> str | None:
        """Refuse what leads elsewhere: a file that somebody else wrote must not say where to read."""
        if path is None:
            return None
        parts = PureWindowsPath(path)  # which takes both kinds of slashes, and knows drives
        if parts.anchor or ".." in parts.parts or "\0" in path:
            raise ValueError(
                f"{info.field_name} must lie below the place of the data, not {path!r}; name that place by --data or "
                "by the environment variable MOERANK_DATA"
            )
        return path

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        if (self.folder is None) == (self.file is None):
            raise ValueError(
                "give folder, which holds Fold1, Fold2 and so on or the three files of one fold, or file, one file "
                "with all queries"
            )
        if (self.file is None) != (self.split is None):
            raise ValueError(
                "file needs split = {validation = 0.2, test = 0.2} or split = {folds = 5}"
                if self.split is None
                else "split is for one file; the files of a folder are split already"
            )
        return self

    def n_folds(self, places: Places) -> int:
        """Return how many folds there are."""
        if self.split is not None:
            return self.split.folds or 1
        return max(count_folds(self._found_folder(places)), 1)

    def read(self, fold: int, places: Places) -> Fold:
        """Return the parts of a fold from the first place that has the data."""
        if self.split is None:
            return self._read_fold(self._folder_of(fold, places))
        file = str(self.file)
        path = next((path for path in places.files(file) if path.exists()), None)
        if path is None:
            raise FileNotFoundError(
                f"no file {file} in {places}; download {self.origin}, and name the folder that holds {file} by --data "
                "or by the environment variable MOERANK_DATA"
            )
        return self.split.parts(self._read_file(path), fold)

    def shard(self, fold: int, places: Places, number: int) -> RankingData:
        """Return a shard of the training part, of which no more is read where the file has the form for it."""
        if self.split is not None:
            return super().shard(fold, places, number)
        return self._read_shard(self._folder_of(fold, places), number, self.shards or 1)

    def held_out(self, fold: int, places: Places, names: Sequence[str]) -> tuple[RankingData, RankingData]:
        """Return the validation and the test part; of tables the features of these names."""
        if self.split is not None:
            return super().held_out(fold, places, names)
        return self._read_held_out(self._folder_of(fold, places), names)

    def n_bytes(self, fold: int, places: Places) -> int:
        """Return the bytes of the file for each shard: as a table it takes less, unless it is compressed."""
        return (
            0 if self.split else self._training_file(self._folder_of(fold, places)).stat().st_size // (self.shards or 1)
        )

    def _folder_of(self, fold: int, places: Places) -> Path:
        folder = self._found_folder(places)
        return folder / f"Fold{fold}" if count_folds(folder) else folder

    def _found_folder(self, places: Places) -> Path:
        folder = str(self.folder)
        candidates = places.folders(folder)
        found = next((path for path in candidates if (path / "Fold1").is_dir()), None)
        # A folder that is named, and no place of data, may be a fold itself.
        found = found or next((path for path in places.files(folder) if self._is_fold(path)), None)
        if found is None:
            raise FileNotFoundError(
                f"no folder {folder} with Fold1 … Fold{N_FOLDS} in {places}; download {self.origin}, and name the "
                f"folder that holds {folder} by --data or by the environment variable MOERANK_DATA"
            )
        return found

    def _is_fold(self, folder: Path) -> bool:
        return folder.is_dir() and any(
            path.name.lower().startswith("train") and path.is_file() for path in folder.iterdir()
        )

    def _reading(self) -> dict[str, Any]:
        """Return the arguments of the readers that are not their defaults."""
        return self.model_dump(include={"missing", "dtype"}, exclude_defaults=True)

    @abstractmethod
    def _read_fold(self, folder: Path) -> Fold:
        """Return the parts of the fold that a folder holds."""

    @abstractmethod
    def _read_file(self, path: Path) -> RankingData:
        """Return what one file holds."""

    @abstractmethod
    def _training_file(self, folder: Path) -> Path:
        """Return the training file of the fold that a folder holds."""

    @abstractmethod
    def _read_shard(self, folder: Path, number: int, n_shards: int) -> RankingData:
        """Return a shard of the training file."""

    @abstractmethod
    def _read_held_out(self, folder: Path, names: Sequence[str]) -> tuple[RankingData, RankingData]:
        """Return the validation and the test part of the fold that a folder holds."""


class LetorData(FileData):
    """LETOR files; see `load_letor`."""

    source: Literal["letor"]

    def _read_fold(self, folder: Path) -> Fold:
        return load_fold(folder, **self._reading())

    def _read_file(self, path: Path) -> RankingData:
        return load_letor(path, **self._reading())

    def _training_file(self, folder: Path) -> Path:
        return part_paths(folder)[0]

    def _read_shard(self, folder: Path, number: int, n_shards: int) -> RankingData:
        return letor_shard(self._training_file(folder), number, n_shards, **self._reading())

    def _read_held_out(self, folder: Path, names: Sequence[str]) -> tuple[RankingData, RankingData]:
        vali, test = (load_letor(path, **self._reading()) for path in part_paths(folder)[1:])
        return vali, test


class TableData(FileData):
    """CSV and Parquet files; see `load_table`.

    Attributes
    ----------
    label, query : str
        The names of the columns of relevance labels and query ids.
    features : list of str, optional
        The names of the feature columns; by default all others.
    """

    source: Literal["table"]
    label: str
    query: str
    features: tuple[str, ...] | None = None

    def _reading(self) -> dict[str, Any]:
        return super()._reading() | self.model_dump(include={"label", "query", "features"})

    def _read_fold(self, folder: Path) -> Fold:
        return load_table_fold(folder, **self._reading())

    def _read_file(self, path: Path) -> RankingData:
        return load_table(path, **self._reading())

    def _training_file(self, folder: Path) -> Path:
        return table_paths(folder)[0]

    def _read_shard(self, folder: Path, number: int, n_shards: int) -> RankingData:
        return table_shard(self._training_file(folder), number, n_shards, **self._reading())

    def _read_held_out(self, folder: Path, names: Sequence[str]) -> tuple[RankingData, RankingData]:
        reading = self._reading() | {"features": names}
        vali, test = (load_table(path, **reading) for path in table_paths(folder)[1:])
        return vali, test

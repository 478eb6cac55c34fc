"""Where the data of a problem come from: the table [data] of its file, for each source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from moerank.checks import check_at_least
from moerank.data import (
    RankingData,
    load_digits_fold,
    load_fold,
    load_letor,
    load_planted_fold,
    load_table,
    load_table_fold,
    load_web_fold,
)
from moerank.data.folds import MOST_FOLDS, N_FOLDS, count_folds, deal_queries, split_queries
from moerank.data.missing import MissingRule, check_missing_rule
from moerank.data.planted import MOST_LABELS
from moerank.data.web import MOST_SEED
from moerank.runs.section import Section
from moerank.stages.settings import at_least

__all__ = ["SOURCES", "Data", "Fold", "Places"]

Fold = tuple[RankingData, RankingData, RankingData]

Precision = Literal["float32", "float64"]

INDIFFERENT = {"origin", "scaled"}
"""Settings that decide no result: what a model remembers of the scaling stands beside it."""

LATER = ("file", "split", "dtype")
"""Settings that results of earlier versions do not have."""


def shipped_folder() -> Path:
    """Return the folder of the problem files that come with the package."""
    package = Path(__file__).parents[1]
    # The wheel carries the folder inside the package; in a checkout it stands beside it.
    return next(path for path in (package / "problems", package.parent / "problems") if path.is_dir())


class Places:
    """Where data are looked for.

    Parameters
    ----------
    beside : Path, optional
        The folder of the problem's file, which comes first.
    others : sequence of Path
        Places of data: they hold the folder or file that a problem names, or are that folder themselves.
    """

    def __init__(self, beside: Path | None, others: Sequence[Path]) -> None:
        self._named = [*([] if beside is None else [beside]), *others]
        self._others = others

    def folders(self, folder: str) -> list[Path]:
        """Return the paths that a folder may have."""
        found = [place / folder for place in self._named]
        return found + [place for place in self._others if place not in found]

    def files(self, file: str) -> list[Path]:
        """Return the paths that a file may have."""
        return [place / file for place in self._named]

    def __str__(self) -> str:
        return ", ".join(dict.fromkeys(map(str, self._named)))


def _checked_rule(rule: object) -> object:
    check_missing_rule(rule)
    return rule


Missing = Annotated[MissingRule, BeforeValidator(_checked_rule)]


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
    """

    normalize: Literal["none", "query", "minmax", "standard"] = "none"
    scaled: Literal["query"] | None = None
    grid: tuple[Annotated[int, Field(strict=True, ge=1)], Annotated[int, Field(strict=True, ge=1)]] | None = None

    @model_validator(mode="after")
    def _is_scaled_once(self) -> Self:
        if self.scaled is not None and self.normalize != "none":
            raise ValueError(
                f'scaled = "{self.scaled}" says that the features are scaled already, and normalize = '
                f'"{self.normalize}" would scale them again; leave one of them out'
            )
        return self

    def n_folds(self, places: Places) -> int:
        """Return how many folds there are."""
        return N_FOLDS

    def settings(self) -> dict[str, Any]:
        """Return all settings that can decide results, as plain JSON values.

        Those that came later are there where they are not as they always were: what was computed before still counts.
        """
        changed = self.model_dump(mode="json", exclude_defaults=True)
        later = {name for name in LATER if name not in changed}
        return self.model_dump(mode="json", exclude=INDIFFERENT | later)


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
            folder = self._found_folder(places)
            return self._read_fold(folder / f"Fold{fold}" if count_folds(folder) else folder)
        file = str(self.file)
        path = next((path for path in places.files(file) if path.exists()), None)
        if path is None:
            raise FileNotFoundError(
                f"no file {file} in {places}; download {self.origin}, and name the folder that holds {file} by --data "
                "or by the environment variable MOERANK_DATA"
            )
        return self.split.parts(self._read_file(path), fold)

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


class LetorData(FileData):
    """LETOR files; see `load_letor`."""

    source: Literal["letor"]

    def _read_fold(self, folder: Path) -> Fold:
        return load_fold(folder, **self._reading())

    def _read_file(self, path: Path) -> RankingData:
        return load_letor(path, **self._reading())


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


SOURCES = (DigitsData, PlantedData, WebData, LetorData, TableData)

Data = Annotated[
    DigitsData | PlantedData | WebData | LetorData | TableData,
    Field(discriminator="source"),
]


def read_data(data: Data, fold: int, places: Places) -> Fold:
    """Return the parts of a fold, after a check that there is such a fold."""
    n_folds = data.n_folds(places)
    check_at_least(1, n_folds, fold=fold)
    return data.read(fold, places)

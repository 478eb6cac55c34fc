"""Sources of data: the table [data] of a problem file, and how the parts of a fold are read."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from moerank.data import (
    RankingData,
    load_digits_fold,
    load_fold,
    load_planted_fold,
    load_shop_fold,
    load_web_fold,
)
from moerank.data.folds import (
    MAX_FOLDS,
    MAX_LABELS,
    MAX_SEED,
    N_FOLDS,
    count_folds,
    deal_queries,
    split_queries,
)
from moerank.data.overlap import query_digests, shared_queries
from moerank.data.preparation import MissingRule, check_missing_rule
from moerank.data.ranking_data import Fold
from moerank.data.read.letor import files_beside, load_letor
from moerank.data.read.table import checked_labels_rule, load_table, load_table_fold
from moerank.identity import digest
from moerank.mofsrank.settings import OneOrMore, Section, TwoOrMore, ZeroOrMore, at_least


def shipped_folder() -> Path:
    """Return the folder of the problem files that come with the package."""
    package = Path(__file__).parents[1]
    # A wheel has the folder inside the package, a checkout next to it.
    return next(
        path for path in (package / "problems", package.parent / "problems") if path.is_dir()
    )


# The folders to search for data: that of the problem file, if there is one, then folders of data.
Folders: TypeAlias = Sequence[Path]


def find_data(name: str, folders: Folders, advice: str) -> Path:
    """Return the first file or folder with this name in the folders; if there is none, the error gives the advice."""
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"no {name} in {', '.join(dict.fromkeys(map(str, folders)))}; {advice}")


# A folder with data that the user names; None stands for the default ones.
DataFolder: TypeAlias = str | Path | None


def change_parts(fold: Fold, change: Callable[[RankingData], RankingData]) -> Fold:
    """Return the parts of a fold, each of them changed."""
    train, validation, test = fold
    return change(train), change(validation), change(test)


Precision: TypeAlias = Literal["float32", "float64"]
FiveOrMore: TypeAlias = Annotated[int, at_least(5)]
Seed: TypeAlias = Annotated[int, at_least(0, MAX_SEED)]

# Largest size, in bytes of its features, of a fold that stays in memory for the next cell of a study.
LARGEST_FOLD = 2**30

# The fold that was read last, under a key of its settings and the states of its files.
_last_fold: dict[tuple[object, ...], Fold] = {}

# Settings that do not change results.
INDIFFERENT = {"origin", "scaled", "document", "overlap"}


class DataSection(Section):
    """The settings that all sources of data share.

    Attributes
    ----------
    normalize : {"none", "query", "minmax", "standard"}
        The scaling of the features; see `fit_scaling`.
    scaled : "query", optional
        The scaling that the features in the files already have, such as those of LETOR's QueryLevelNorm files. It is
        not applied again, but every model records it.
    grid : (rows, columns), optional
        The size of the image, if the features are its pixels row by row; figures then show the image.
    overlap : {"refuse", "allow"}
        Whether two parts may hold the same query: the same rows of features and labels, in any order.
    """

    normalize: Literal["none", "query", "minmax", "standard"] = "none"
    scaled: Literal["query"] | None = None
    grid: tuple[OneOrMore, OneOrMore] | None = None
    overlap: Literal["refuse", "allow"] = "refuse"

    @model_validator(mode="after")
    def _check_scaling(self) -> Self:
        if self.scaled is not None and self.normalize != "none":
            raise ValueError(
                'scaled = "query" says that the features are scaled, so normalize must not scale '
                "them"
            )
        return self

    @property
    def is_held(self) -> bool:
        """Whether the data can be read; False for data in memory that come from a study's folder."""
        return True

    def n_folds(self, folders: Folders) -> int:
        """Return how many folds there are."""
        return N_FOLDS

    def read(self, fold: int, folders: Folders) -> Fold:
        """Return the parts of a fold; the same data are read once, whether for a run or for the cells of a study."""
        states = [
            (file, file.stat().st_size, file.stat().st_mtime_ns)
            for file in self.files(fold, folders)
        ]
        key = self.model_dump_json(), fold, tuple(states)
        parts = _last_fold.get(key) or self._checked(self._read(fold, folders), fold)
        _last_fold.clear()
        if sum(part.X.nbytes for part in parts) <= LARGEST_FOLD:
            _last_fold[key] = parts
        return change_parts(parts, RankingData.without_cache)

    def _checked(self, parts: Fold, fold: int) -> Fold:
        """Return the parts of a fold; refuse queries that stand in two of them unless that is allowed."""
        for sentence, is_copy in shared_queries(parts).items():
            if is_copy and self.overlap == "refuse":
                raise ValueError(f'fold {fold}: {sentence} Or allow it: --set data.overlap="allow"')
        return parts

    def _read(self, fold: int, folders: Folders) -> Fold:
        """Return the parts of a fold, from the first folder with the data."""
        raise NotImplementedError

    def files(self, fold: int, folders: Folders) -> list[Path]:
        """Return the files that a fold is read from."""
        return []

    def query_ids(self, part: RankingData, fold: int) -> list[Any]:
        """Return the ids of the queries of a part; queries of several folds with the same id are the same query."""
        return part.query_ids.tolist()

    def settings(self) -> dict[str, Any]:
        """Return all settings that can change results, as plain JSON values."""
        return self.model_dump(mode="json", exclude=INDIFFERENT)


Missing = Annotated[MissingRule, BeforeValidator(lambda rule: check_missing_rule(rule) or rule)]

Share = Annotated[float, Field(strict=True, gt=0, lt=1)]


class Split(Section):
    """How to split the queries of one file into training, validation and test part; each part keeps the file order.

    Attributes
    ----------
    validation, test : float, default 0.2
        Shares of the queries, drawn at random, for a single fold. See `split_queries`.
    folds : int, optional
        Instead of shares: the number of random parts, each of which is the test part once. See `deal_queries`.
    seed : int, default 0
        Seed of the random draw.
    """

    validation: Share | None = None
    test: Share | None = None
    folds: Annotated[int, at_least(3, MAX_FOLDS)] | None = None
    seed: Seed = 0

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.folds is not None and (self.validation is not None or self.test is not None):
            raise ValueError(
                "folds deals the queries into equal parts, validation and test are shares; "
                "give one kind"
            )
        return self

    def parts(self, data: RankingData, fold: int) -> Fold:
        """Return the parts of a fold."""
        if self.folds is not None:
            return deal_queries(data, fold, self.folds, seed=self.seed)
        return split_queries(data, self.validation or 0.2, self.test or 0.2, seed=self.seed)


class FileData(DataSection):
    """The user's files: folders Fold1, Fold2, … with three files each, one such folder, or one file and a split.

    Attributes
    ----------
    folder, file : str
        Exactly one of them, a path below the folder of the problem file or below a folder of data.
    split : Split, optional
        How to split one file; `file` needs it. In a LETOR folder without a validation file, ``validation`` is the share
        of the training queries that become validation queries.
    origin : str
        What to download if the data are missing.
    missing : float, "query-min", "query-mean" or "query-worst", optional
        What replaces missing values; without it they are an error.
    missing_values : list of float
        Numbers that stand for a missing value, such as -999.
    dtype : {"float64", "float32"}, optional
        The precision of the features; by default as `load_letor` and `load_table` have it.
    """

    readers: ClassVar[
        tuple[Callable[..., Fold], Callable[..., RankingData]]
    ]  # for a fold and for one file

    folder: str | None = None
    file: str | None = None
    split: Split | None = None
    origin: str = ""
    missing: Missing | None = None
    missing_values: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = ()
    dtype: Precision | None = None

    @field_validator("folder", "file")
    @classmethod
    def _check_relative(cls, path: str | None, info: Any) -> str | None:
        """Refuse paths that lead outside: a problem file by somebody else must not read any file of yours."""
        if path is None:
            return None
        parts = PureWindowsPath(path)  # it understands both kinds of slashes, and drives
        if parts.anchor or ".." in parts.parts or "\0" in path:
            raise ValueError(
                f"{info.field_name} must lie below the folder of the data, not {path!r}; set that "
                "folder with --data or the environment variable MOERANK_DATA"
            )
        return path

    @model_validator(mode="after")
    def _check_location(self) -> Self:
        if (self.folder is None) == (self.file is None):
            raise ValueError(
                "give folder, which holds Fold1, Fold2 and so on or the three files of one fold, "
                "or give file, which holds all queries"
            )
        split, is_letor = self.split, self.readers[0] is load_fold
        if self.file is not None:
            if split is None:
                raise ValueError(
                    "file needs split = {validation = 0.2, test = 0.2} or split = {folds = 5}"
                )
        elif split and (not is_letor or not split.validation or split.test or split.folds):
            raise ValueError(
                "split is for one file; the files of a folder are already split, but if "
                "LETOR files lack a validation part, split = {validation = 0.2} draws one"
            )
        return self

    def n_folds(self, folders: Folders) -> int:
        """Return how many folds there are."""
        if self.file is not None and self.split is not None:
            return self.split.folds or 1
        return max(count_folds(self._path(folders)), 1)

    def _read(self, fold: int, folders: Folders) -> Fold:
        path, (read_fold, read_file) = self._path(folders, fold), self.readers
        settings = self.model_dump(
            exclude={"source", "folder", "file", "split", "origin", *DataSection.model_fields},
            exclude_defaults=True,
        )
        if self.split is None:
            return read_fold(path, **settings)
        if self.file is None:
            split = self.split
            return read_fold(path, **settings, validation=split.validation, seed=split.seed)
        return self.split.parts(read_file(path, **settings), fold)

    def files(self, fold: int, folders: Folders) -> list[Path]:
        """Return the files that a fold is read from."""
        path = self._path(folders, fold)
        if path.is_dir():
            return [file for file in path.iterdir() if file.is_file()]
        return [path, *files_beside(path)]

    def _path(self, folders: Folders, fold: int | None = None) -> Path:
        """Return the path of the file, or of the folder of one fold or of all folds."""
        name = str(self.file or self.folder)
        advice = f"download {self.origin}, and" if self.origin else "correct its name, or"
        advice += f" set the folder that holds {name} with --data or the environment variable"
        path = find_data(name, folders, f"{advice} MOERANK_DATA")
        return path / f"Fold{fold}" if fold is not None and count_folds(path) else path


class LetorData(FileData):
    """LETOR files; see `load_letor`.

    Attributes
    ----------
    zero_based : bool
        Whether feature numbers start at 0.
    """

    readers = load_fold, load_letor

    source: Literal["letor"]
    zero_based: bool = False


class TableData(FileData):
    """CSV and Parquet files; see `load_table`.

    Attributes
    ----------
    label, query : str, optional
        The columns of relevance labels and query ids; a table from ``moerank data ingest`` names its own.
    features : list of str, optional
        The feature columns; by default those that the table names, or all others.
    exclude : list of str
        Columns that are not features, such as texts and dates.
    document, query_weight, document_weight : str, optional
        The columns of document ids and weights, see `load_table`.
    labels : table of integers, or list of floats, optional
        The label of each text, such as ``{E = 3, S = 2}``, or limits of numbers; see `load_table`.
    """

    readers = load_table_fold, load_table

    source: Literal["table"]
    label: str | None = None
    query: str | None = None
    features: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    document: str | None = None
    query_weight: str | None = None
    document_weight: str | None = None
    labels: (
        Annotated[dict[str, int] | tuple[float, ...], BeforeValidator(checked_labels_rule)] | None
    ) = None


# Training, validation and test part, several such folds, or one table to split.
InMemory: TypeAlias = RankingData | Fold | Sequence[Fold]


class MemoryData(DataSection):
    """Data that were given as Python objects. A study recognises them by a digest of their bytes.

    Attributes
    ----------
    digest : str
        The digest of all folds.
    folds : int
        The number of folds.
    split : Split, optional
        How one table was split by query.
    """

    source: Literal["memory"]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{24}$")]
    folds: Annotated[int, at_least(1, MAX_FOLDS)] = 1
    split: Split | None = None

    _folds: tuple[Fold, ...] = PrivateAttr(default=())
    _ids_agree: bool = PrivateAttr(default=True)

    @property
    def is_held(self) -> bool:
        """Whether the data are in memory; files store only their digest."""
        return bool(self._folds)

    def n_folds(self, folders: Folders) -> int:
        """Return how many folds there are."""
        return self.folds

    def read(self, fold: int, folders: Folders) -> Fold:
        """Return the parts of a fold as they are; raise a ValueError if there is only a digest of the data."""
        if not self.is_held:
            raise ValueError("the data of this problem were in memory; pass them to Study again")
        return self._checked(self._folds[fold - 1], fold)

    def query_ids(self, part: RankingData, fold: int) -> list[Any]:
        """Return the ids, with the number of the fold if ids mean other queries in other folds."""
        ids = super().query_ids(part, fold)
        return ids if self._ids_agree else [f"{query} of fold {fold}" for query in ids]


def read_memory(data: object, settings: Mapping[str, object]) -> MemoryData:
    """Return data in memory as the table [data] of a problem, with `settings` as further keys of the table.

    The data are the training, validation and test part of each fold, or one table, which `Split` splits by query. Parts
    with different features raise a ValueError.
    """
    if isinstance(data, RankingData):
        split = Split.model_validate(settings.get("split") or {})
        folds = tuple(split.parts(data, fold) for fold in range(1, (split.folds or 1) + 1))
    elif settings.get("split") is not None:
        raise ValueError("split is for one RankingData, but these data are already split")
    elif isinstance(data, list | tuple) and data and not isinstance(data[0], RankingData):
        folds = tuple(map(_fold, data))
    else:
        folds = (_fold(data),)
    section = MemoryData.model_validate(
        {**settings, "source": "memory", "digest": digest(folds), "folds": len(folds)}
    )
    section._folds, section._ids_agree = folds, _ids_agree([test for _, _, test in folds])
    return section


def _ids_agree(parts: Sequence[RankingData]) -> bool:
    """Return whether queries of several parts with the same id have the same rows; else each part numbers its own."""
    rows = {
        pair for part in parts for pair in zip(part.query_ids, query_digests(part), strict=True)
    }
    return len(rows) == len({query for query, _ in rows})


def _fold(parts: object) -> Fold:
    if (
        not isinstance(parts, tuple | list)
        or len(parts) != 3
        or not all(isinstance(part, RankingData) for part in parts)
    ):
        raise ValueError(
            "a fold in memory is a tuple of three RankingData; give several folds as a list of "
            "tuples"
        )
    train, validation, test = parts
    for part in (validation, test):
        if part.feature_names != train.feature_names:
            raise ValueError(f"{part.name} and {train.name} have different features")
    return train, validation, test


class MadeData(DataSection):
    """Data that a function makes without files, from its settings."""

    make: ClassVar[Callable[..., Fold]]

    def _read(self, fold: int, folders: Folders) -> Fold:
        return type(self).make(
            fold, **self.model_dump(exclude={"source", *DataSection.model_fields})
        )


class DigitsData(MadeData):
    """Query by example on handwritten digits; see `load_digits_fold`."""

    make = load_digits_fold
    source: Literal["digits"]
    n_queries: FiveOrMore = 150
    n_documents: TwoOrMore = 100
    seed: Seed = 0


class PlantedData(MadeData):
    """Synthetic data with known relevant features; see `make_planted`."""

    make = load_planted_fold
    source: Literal["planted"]
    n_queries: OneOrMore = 100
    n_documents: TwoOrMore = 20
    n_relevant: OneOrMore = 5
    n_redundant: ZeroOrMore = 10
    n_noise: ZeroOrMore = 15
    n_labels: Annotated[int, at_least(2, MAX_LABELS)] = 3
    noise: Annotated[float, Field(strict=True, ge=0)] = 0.1
    seed: Seed = 0


class ShopData(MadeData):
    """A synthetic shop with known relevant features; see `make_shop`."""

    make = load_shop_fold
    source: Literal["shop"]
    n_queries: FiveOrMore = 2000
    n_documents: TwoOrMore = 10
    seed: Seed = 0


class WebData(DataSection):
    """Synthetic data with the shape of MSLR-WEB30K; see `make_web`."""

    source: Literal["web"]
    queries: FiveOrMore = 300
    seed: Seed = 0
    dtype: Precision = "float32"

    def _read(self, fold: int, folders: Folders) -> Fold:
        return load_web_fold(fold, n_queries=self.queries, seed=self.seed, dtype=self.dtype)


Data = Annotated[
    DigitsData | PlantedData | ShopData | WebData | LetorData | TableData | MemoryData,
    Field(discriminator="source"),
]

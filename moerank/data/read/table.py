"""Tables with one row per document: files with named columns, and the readers of each kind of file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache as once
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike

from moerank.data.missing import MissingRule, check_missing_rule
from moerank.data.ranking_data import RankingData
from moerank.data.read import csv, parquet
from moerank.data.read.cache import LARGE, remembered
from moerank.data.read.columns import Table
from moerank.data.read.files import check_folder, names_in
from moerank.files import open_regular
from moerank.solvers import plugins

__all__ = [
    "LABELS",
    "QUERIES",
    "READERS",
    "Reader",
    "find_part",
    "guess_columns",
    "is_table",
    "load_table",
    "load_table_fold",
    "reader_of",
    "table_paths",
]


class Reader(Protocol):
    """A reader of one kind of files: a module, or an object, with two functions."""

    def column_names(self, path: Path, needed: Iterable[str] = ()) -> list[str]:
        """Return the names of the columns of a file; `needed` are known to be among them."""

    def read_table(
        self, path: Path, label: str, query: str, features: list[str] | None, *, dtype: DTypeLike, missing: bool
    ) -> Table:
        """Return the columns of a file.

        Parameters
        ----------
        path : Path
        label, query : str
            The names of the columns of relevance labels and query ids.
        features : list of str or None
            The names of the feature columns in their order; None for all others.
        dtype : {float64, float32}
            Of the features.
        missing : bool
            Whether a value may be missing; it is NaN then.

        Raises
        ------
        ValueError
            If the file cannot be read; the message names the file and the place.
        """


READERS: dict[str, Reader] = {
    ".parquet": parquet,
    ".pq": parquet,
    ".csv": csv,
    ".csv.gz": csv,
    ".tsv": csv,
}
"""The reader of each ending, in the order in which the parts of a fold are looked for."""


@once
def _readers() -> dict[str, Reader]:
    """Return all readers by ending: the package's own, then those of other installed packages."""
    others = {f".{name.lstrip('.').lower()}": reader for name, reader in plugins("moerank.readers").items()}
    return {**others, **READERS}


def reader_of(path: Path) -> Reader | None:
    """Return the reader of a file by its name, or by the first bytes of a Parquet file; None if it is no table."""
    for ending, reader in _readers().items():
        if path.name.lower().endswith(ending):
            return reader
    if path.is_file():
        with open_regular(path, through_links=True) as file:
            if file.read(4) == b"PAR1":
                return parquet
    return None


PARTS = (("train",), ("vali", "valid", "validation"), ("test",))

LABELS = ("label", "relevance", "rel", "grade", "target", "y")
QUERIES = ("qid", "query_id", "query", "queryid", "srch_id", "session_id", "group")
"""Usual names of the columns of label and query, the most usual first; upper and lower case do not count."""


def load_table(
    path: str | os.PathLike[str],
    *,
    label: str,
    query: str,
    features: Iterable[str] | None = None,
    missing: MissingRule | None = None,
    dtype: DTypeLike = np.float64,
    name: str | None = None,
    cache: bool = True,
) -> RankingData:
    r"""Read a CSV or Parquet file with one row per document.

    Parameters
    ----------
    path : path-like
        A file with one of the endings of `READERS`: a Parquet file, or a CSV file in UTF-8, plain or ``.gz``. The first
        line of a CSV file names the columns, which commas, semicolons or tabs separate; blank lines are skipped.
    label, query : str
        The names of the columns of relevance labels and query ids. Labels are integers from 0; ids are 64-bit integers
        if all are written so, else texts, and the rows of a query must be contiguous.
    features : sequence of str, optional
        The names of the feature columns, in the order of the result; by default all others, which must hold numbers.
    missing : float, "query-min", "query-mean" or "query-worst", optional
        What missing values become, see `RankingData`; by default a table with any is refused. In CSV an empty field is
        missing, and so are NA, N/A, NULL, NaN and None.
    dtype : {float64, float32}, default float64
        Of the features.
    name : str, optional
        How messages call the data set; by default its path.
    cache : bool, default True
        Keep what is read of a large file, from 64 MiB on, in the user's cache folder, see `moerank.data.read.cache`.

    Returns
    -------
    RankingData
        The documents in file order, with the names of the columns. Beside the result, which is there
        twice for a moment if values are missing, the blocks that are read take some 0.3 GiB of memory.

    Raises
    ------
    ValueError
        For a column that is not there or holds no plain numbers, a value that is not finite, a wrong label, a query
        whose rows are not contiguous, a row with too many or too few fields, and a table that is larger than the limit
        of `check_room`. The message names the file, the line (Parquet: the row, counted from 1) and the column.
    OSError
        If the file is missing, a folder, or cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.csv")
    ...     _ = path.write_text("query,label,price,rating\nshoes,2,59.9,4.5\nshoes,0,120,3\n")
    ...     data = load_table(path, label="label", query="query", name="shop")
    >>> data, data.feature_names, data.X.tolist()
    (RankingData('shop': 2 documents, 1 queries, 2 features), ('price', 'rating'), [[59.9, 4.5], [120.0, 3.0]])
    """
    path = Path(path)
    if missing is not None:
        check_missing_rule(missing)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {np.dtype(dtype)}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; load_table reads one file")
    if isinstance(features, str):
        raise ValueError(f"features must be a list of names of columns, not the text {features!r}")
    chosen = None if features is None else list(features)
    reader = reader_of(path) or csv

    def read() -> Table:
        return reader.read_table(path, label, query, chosen, dtype=dtype, missing=missing is not None)

    reading = f"table {[label, query, chosen]} {np.dtype(dtype)} {missing is not None}"
    table = remembered(path, reading, Table, read) if cache and path.stat().st_size >= LARGE else read()
    table.X.setflags(write=False)  # so that it is not copied
    return RankingData(table.X, table.y, table.qid, table.names, name=name or str(path), missing=missing)


def load_table_fold(
    directory: str | os.PathLike[str],
    *,
    label: str,
    query: str,
    features: Iterable[str] | None = None,
    missing: MissingRule | None = None,
    dtype: DTypeLike = np.float64,
) -> tuple[RankingData, RankingData, RankingData]:
    """Read the training, validation and test table of a fold.

    Parameters
    ----------
    directory : path-like
        The folder with ``train``, ``vali`` and ``test`` (or ``valid``, or ``validation``), each ``.parquet``, ``.pq``,
        ``.csv``, ``.csv.gz`` or ``.tsv``. The first found in this order is read.
    label, query, features, missing, dtype
        As in `load_table`.

    Returns
    -------
    train, vali, test : RankingData
        All with the features of the training table, in its order.

    Raises
    ------
    FileNotFoundError
        If the folder or a part is missing; the message says what was looked for and what is there.
    ValueError
        As `load_table`, and by default for a part that has other columns than the training table.
    """
    paths = table_paths(Path(directory))
    chosen = None if features is None else list(features)
    parts: list[RankingData] = []
    for path in paths:
        if parts and features is None:
            _require_same_columns(path, paths[0], {label, query, *parts[0].feature_names})
            chosen = list(parts[0].feature_names)
        parts.append(load_table(path, label=label, query=query, features=chosen, missing=missing, dtype=dtype))
    return parts[0], parts[1], parts[2]


def table_paths(directory: Path) -> list[Path]:
    """Return the training, validation and test table of the folder of a fold; errors as in `load_table_fold`."""
    check_folder(directory, "load_table_fold reads the folder of one fold")
    return [_part(directory, names) for names in PARTS]


def find_part(directory: Path, names: tuple[str, ...] = PARTS[0]) -> Path | None:
    """Return the table in a folder that has one of these names, by default the training table; None without one."""
    candidates = (directory / (name + ending) for name in names for ending in _readers())
    return next((path for path in candidates if path.is_file()), None)


def is_table(path: Path) -> bool:
    """Whether a file is a table with named columns."""
    return reader_of(path) is not None


def _part(directory: Path, names: tuple[str, ...]) -> Path:
    path = find_part(directory, names)
    if path is None:
        first, *others = _readers()
        raise FileNotFoundError(
            f"{directory}: looked for {', '.join(name + first for name in names)} (also {', '.join(others)}) and found "
            f"{names_in(directory)}"
        )
    return path


def _require_same_columns(path: Path, first: Path, expected: set[str]) -> None:
    """Refuse a part with other columns than the training table."""
    present = column_names(path, expected)
    for reason, names in (("lacks", expected - set(present)), ("has", set(present) - expected)):
        if names:
            other = f"which {first.name} has" if reason == "lacks" else f"which {first.name} lacks"
            raise ValueError(f"{path} {reason} the column {min(names)!r}, {other}; list the columns that are features")


def column_names(path: Path, needed: Iterable[str] = ()) -> list[str]:
    """Return the names of the columns of a table; `needed` are known to be among them."""
    return (reader_of(path) or csv).column_names(path, needed)


def guess_columns(path: Path, label: str | None = None, query: str | None = None) -> tuple[str, str]:
    """Return the names of the label and the query column: those given, else the first usual ones that are there.

    Raises
    ------
    ValueError
        If there is no column of a usual name.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.csv")
    ...     _ = path.write_text("QID,price,relevance")
    ...     guess_columns(path)
    ('relevance', 'QID')
    """
    present = column_names(path, [name for name in (label, query) if name is not None])
    return _guessed(path, "label", label, LABELS, present), _guessed(path, "query", query, QUERIES, present)


def _guessed(path: Path, what: str, given: str | None, usual: tuple[str, ...], present: list[str]) -> str:
    if given is not None:
        return given
    for name in usual:
        for column in present:
            if column.lower() == name:
                return column
    shown = ", ".join(present[:10]) + (", …" if len(present) > 10 else "")
    raise ValueError(f"{path}: no column has a usual name of the {what}; name it by --{what}, one of {shown}")

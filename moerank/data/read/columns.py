"""What the columns of a table are: label, query and features, and the rows of its queries."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moerank.checks import check_room, unknown
from moerank.data.read.cache import Arrays

__all__ = [
    "MISSING_REMEDY",
    "MOST_LABEL",
    "Columns",
    "QueryRuns",
    "Table",
    "check_size",
    "choose_columns",
    "narrowed",
    "wrong_labels",
    "empty_table",
    "lies_by_columns",
    "rows_of_piece",
]

FilePath = str | os.PathLike[str]

MOST_LABEL = 2**31 - 1

MISSING_REMEDY = (
    "say what missing values become: a number, 'query-min', 'query-mean' or 'query-worst', as missing= in Python, "
    "--missing, or missing = in [data] of a problem file"
)


@dataclass(frozen=True)
class Columns:
    """The names of the columns that are read."""

    label: str
    query: str
    features: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Label, query and features."""
        return (self.label, self.query, *self.features)


@dataclass(frozen=True, eq=False)
class Table:
    """What was read: features (n_rows, n_features), NaN where missing, labels, queries (n_rows,) and feature names."""

    X: NDArray[Any]
    y: NDArray[np.int64]
    qid: NDArray[Any]
    names: tuple[str, ...]

    def as_arrays(self) -> Arrays:
        """Return everything as arrays by name, features in the order in which they lie in memory."""
        by_columns = not self.X.flags.c_contiguous
        names = np.frombuffer(json.dumps(self.names).encode(), np.uint8)
        return {"values": self.X.T if by_columns else self.X, "y": self.y, "qid": self.qid, "names": names,
                "by_columns": np.array([by_columns])}  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Table:
        """Return what `as_arrays` returned arrays of.

        Raises
        ------
        ValueError
            For arrays that do not fit together: compiled code goes by their sizes.
        """
        values, y, qid = (arrays[name] for name in ("values", "y", "qid"))
        X, names = values.T if arrays["by_columns"].all() else values, json.loads(arrays["names"].tobytes())
        kinds = X.dtype in (np.float64, np.float32) and y.dtype == np.int64 and qid.dtype.kind in "iU"
        if not kinds or X.shape != (len(y), len(names)) or y.shape != qid.shape or y.ndim != 1:
            raise ValueError("the arrays do not fit together")
        return cls(X, y, qid, tuple(map(str, names)))


def choose_columns(
    path: FilePath, present: Sequence[str], label: str, query: str, features: Iterable[str] | None
) -> Columns:
    """Return which of the columns that are present are read; refuse what is not there, by name."""
    for what, name in (("label", label), ("query", query)):
        if name not in present:
            raise ValueError(f"{path}: {unknown('column', name, present)}; {what}= names the column of the {what}")
    if label == query:
        raise ValueError(f"{path}: the column {label!r} cannot be both label and query")
    if features is None:
        chosen = tuple(name for name in present if name not in (label, query))
        for name in chosen:
            if name in ("", "__index_level_0__"):
                raise ValueError(
                    f"{path}: the column {name!r} is an index that pandas wrote, no feature; write the table with "
                    "index=False, or list the columns that are features"
                )
        if not chosen:
            raise ValueError(
                f"{path}: there is no column beside {label!r} and {query!r}; at least one feature is needed"
            )
        return Columns(label, query, chosen)
    chosen = tuple(features)
    if not chosen:
        raise ValueError(f"{path}: features is empty; at least one column is needed")
    for number, name in enumerate(chosen):
        if name not in present:
            raise ValueError(
                f"{path}: {unknown('column', str(name), present)}; features= names the columns of features"
            )
        if name in (label, query):
            raise ValueError(f"{path}: the column {name!r} is the {'label' if name == label else 'query'}, no feature")
        if name in chosen[:number]:
            raise ValueError(f"{path}: features names the column {name!r} twice")
    return Columns(label, query, chosen)


def check_size(path: FilePath, n_rows: int, n_features: int, itemsize: int) -> None:
    """Raise a ValueError for a table beyond the limit on memory; 16 bytes of each row are its label and its query."""
    check_room(f"{path}: {n_rows:,} rows of {n_features:,} features", n_rows * (n_features * itemsize + 16))


class QueryRuns:
    """The queries of the rows, gathered block by block; the rows of a query must be contiguous.

    Parameters
    ----------
    path : path-like
        The table, for messages.
    column : str
        The name of the column.
    """

    def __init__(self, path: FilePath, column: str) -> None:
        self._where, self._column = path, column
        self._ids: list[Any] = []
        self._lengths: list[int] = []
        self._known: set[Any] = set()

    def add(self, ids: NDArray[Any]) -> None:
        """Add the ids of further rows, shape (n_rows,), integers or texts; refuse a query that begins again."""
        if len(ids) == 0:
            return
        starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
        for query, length in zip(ids[starts].tolist(), np.diff(np.append(starts, len(ids))).tolist(), strict=True):
            if self._ids and query == self._ids[-1]:
                self._lengths[-1] += length
                continue
            if query in self._known:
                raise ValueError(
                    f"{self._where}: query {query} begins again in row {sum(self._lengths) + 1:,}; sort the rows by "
                    f"the column {self._column!r}, so that those of a query are contiguous"
                )
            self._known.add(query)
            self._ids.append(query)
            self._lengths.append(length)

    def offsets(self) -> NDArray[np.int64]:
        """Return where the queries begin, shape (n_queries + 1,)."""
        return np.append(0, np.cumsum(self._lengths)).astype(np.int64)

    def rows(self) -> NDArray[Any]:
        """Return the query of each row: 64-bit integers if all are written so, else texts."""
        texts = [str(query) for query in self._ids]
        try:
            numbers = np.array([int(text) for text in texts], np.int64)
        except (ValueError, OverflowError):
            return np.repeat(np.array(texts), self._lengths)
        if numbers.astype(str).tolist() != texts:  # 07 is not 7
            return np.repeat(np.array(texts), self._lengths)
        return np.repeat(numbers, self._lengths)


def wrong_labels(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows of `values` (n_rows,) that are no relevance label."""
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(~((values >= 0) & (values <= MOST_LABEL) & (values == np.floor(values))))


def narrowed(values: NDArray[np.float64], target: NDArray[Any]) -> tuple[int, int] | None:
    """Write feature values into `target`; return row and column of the first that is or becomes infinite, if any."""
    with np.errstate(over="ignore"):
        target[...] = values
    infinite = np.isinf(target)
    if not infinite.any():
        return None
    row, column = np.argwhere(infinite)[0].tolist()
    return row, column


BY_COLUMNS = 2**26
"""Bytes of a table that is read from a file from which on it lies by columns."""

PIECE = 2**21
"""Bytes of rows that are taken to columns at a time: they are still in the processor's cache."""


def lies_by_columns(n_bytes: int) -> bool:
    """Whether a table of so many bytes lies by columns."""
    return n_bytes >= BY_COLUMNS


def empty_table(n_documents: int, n_features: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return a table (n_documents, n_features) whose values are yet to be written, in the order for its size."""
    n_bytes = n_documents * n_features * np.dtype(dtype).itemsize
    return np.empty((n_documents, n_features), dtype, order="F" if lies_by_columns(n_bytes) else "C")


def rows_of_piece(row_bytes: int, *, first: bool) -> int:
    """Return how many rows are read before they are taken to columns; the first ones tell a large table."""
    return max(1, (BY_COLUMNS if first else PIECE) // max(1, row_bytes))

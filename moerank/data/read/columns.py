"""Documents of a file as arrays, and the columns of tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from moerank.arrays import Array, Integers, Vector
from moerank.checks import unknown
from moerank.data.inputs import LaterIds
from moerank.data.missing import MissingRule
from moerank.data.ranking_data import RankingData

Precision = type[np.float64] | type[np.float32]


def as_precision(dtype: DTypeLike) -> Precision:
    """Return a precision of features as one of the two types there are, or raise a ValueError."""
    for precision in (np.float64, np.float32):
        if np.dtype(dtype) == precision:
            return precision
    raise ValueError(f"dtype must be float32 or float64, not {np.dtype(dtype)}")


MOST_LABEL = 2**31 - 1

MISSING_REMEDY = (
    "say what missing values become: a number, 'query-min', 'query-mean' or 'query-worst', as missing= in Python, "
    "--missing, or missing = in [data] of a problem file"
)


class WrongValueError(ValueError):
    """A value of a table that cannot be used; the reader of its format may know the line."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns that are read."""

    label: str
    query: str
    features: tuple[str, ...]
    remedy: str = "make numbers of it"
    """For a feature that holds no numbers."""
    further: Mapping[str, str] = field(default_factory=dict)
    """The columns of `FURTHER` arrays, by their names."""

    @property
    def all(self) -> tuple[str, ...]:
        """Label, query and features."""
        return (self.label, self.query, *self.features)


FURTHER = ("documents", "query_weights", "document_weights")
"""Arrays that a table may have beside features, labels and queries, by the names of arguments of `RankingData`."""


@dataclass(frozen=True, eq=False)
class Table:
    """The documents of a file."""

    X: Array  # shape (n_documents, n_features); NaN is a missing value
    y: Integers  # shape (n_documents,)
    ids: Array  # the queries in order: int64 or str
    offsets: Integers  # query q has the rows offsets[q] to offsets[q + 1]
    names: tuple[str, ...] | None = None
    documents: Array | LaterIds | None = None
    query_weights: Vector | None = None
    document_weights: Vector | None = None

    @property
    def qid(self) -> Array:
        """The query of each document, shape (n_documents,)."""
        return np.repeat(self.ids, np.diff(self.offsets))

    def as_data(self, name: str, missing: MissingRule | None) -> RankingData:
        """Return the documents as ranking data without a copy of the features."""
        self.X.setflags(write=False)
        further = {name: getattr(self, name) for name in FURTHER}
        return RankingData(self.X, self.y, self.qid, self.names, name=name, missing=missing, **further)

    def as_arrays(self) -> dict[str, Array]:
        """Return everything as arrays by name."""
        names = np.frombuffer(json.dumps(self.names).encode(), np.uint8)
        further: dict[str, Array] = {name: array for name in FURTHER if (array := getattr(self, name)) is not None}
        return {"X": self.X, "y": self.y, "ids": self.ids, "offsets": self.offsets, "names": names, **further}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Table:
        """Return the documents that `as_arrays` took apart; refuse arrays of other sizes, by which kernels go."""
        X, y, ids, offsets = (arrays[name] for name in ("X", "y", "ids", "offsets"))
        names = json.loads(arrays["names"].tobytes())
        fits = X.ndim == 2 and y.shape == X.shape[:1] and ids.ndim == 1 and offsets.shape == (len(ids) + 1,)
        kinds = X.dtype in (np.float64, np.float32) and y.dtype == offsets.dtype == np.int64 and ids.dtype.kind in "iU"
        if not fits or not kinds or (names is not None and len(names) != X.shape[1]):
            raise ValueError("the arrays do not fit together")
        whole = offsets[0] == 0 and offsets[-1] == len(y) and np.all(np.diff(offsets) > 0)
        sizes = (("documents", len(y)), ("query_weights", len(ids)), ("document_weights", len(y)))
        if not whole or any(arrays[name].shape != (size,) for name, size in sizes if name in arrays):
            raise ValueError("the arrays do not fit together")
        further = {name: arrays.get(name) for name in FURTHER}
        return cls(X, y, ids, offsets, None if names is None else tuple(map(str, names)), **further)


def choose_columns(
    path: Path,
    present: Sequence[str],
    label: str,
    query: str,
    features: Iterable[str] | None,
    further: Mapping[str, str],
) -> Columns:
    """Return the columns that are read; refuse a name that is not there, or there twice."""
    if twice := [name for number, name in enumerate(present) if name in present[:number]]:
        raise ValueError(f"{path}: two columns are called {twice[0]!r}; give the columns distinct names")
    own = {"label": label, "query": query, **{role.removesuffix("s"): name for role, name in further.items()}}
    roles: dict[str, str] = {}
    for what, name in own.items():
        if name not in present:
            raise ValueError(f"{path}: {unknown('column', name, present)}; {what}= names the column of the {what}")
        if name in roles:
            raise ValueError(f"{path}: the column {name!r} cannot be both {roles[name]} and {what}")
        roles[name] = what
    if features is None:
        chosen = tuple(name for name in present if name not in roles)
        if strange := [name for name in chosen if name in ("", "__index_level_0__")]:
            raise ValueError(
                f"{path}: the column {strange[0]!r} is an index that pandas wrote, no feature; write the table with "
                "index=False, or list the columns that are features"
            )
        if not chosen:
            raise ValueError(
                f"{path}: there is no column beside {label!r} and {query!r}; at least one feature is needed"
            )
        return Columns(label, query, chosen, "leave it out (exclude), or make numbers of it", further)
    chosen = tuple(features)
    if not chosen:
        raise ValueError(f"{path}: features is empty; at least one column is needed")
    for number, name in enumerate(chosen):
        if name not in present:
            raise ValueError(
                f"{path}: {unknown('column', str(name), present)}; features= names the columns of features"
            )
        if name in roles:
            raise ValueError(f"{path}: the column {name!r} is the {roles[name]}, no feature")
        if name in chosen[:number]:
            raise ValueError(f"{path}: features names the column {name!r} twice")
    return Columns(label, query, chosen, further=further)


class QueryRuns:
    """The queries of the rows of a table, gathered block by block; the rows of a query must be contiguous."""

    def __init__(self, path: Path, column: str) -> None:
        self._path, self._column = path, column
        self._first: dict[object, int] = {}  # row of each query
        self._last: object = None
        self.n_rows = 0

    def add(self, ids: Array) -> None:
        """Add the ids of further rows, shape (n_rows,), integers or texts; refuse a query that begins again."""
        starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])) if len(ids) else np.zeros(0, np.int64)
        for query, row in zip(ids[starts].tolist(), (self.n_rows + starts).tolist(), strict=True):
            if query == self._last:
                continue
            if query in self._first:
                raise WrongValueError(f"{self._path}, row {row + 1:,}: query {query} {begins_again(self._column)}")
            self._first[query], self._last = row, query
        self.n_rows += len(ids)

    def offsets(self) -> Integers:
        """Return the rows at which the queries begin and end, shape (n_queries + 1,)."""
        return np.array([*self._first.values(), self.n_rows], np.int64)

    def ids(self) -> Array:
        """Return the queries: 64-bit integers if all are written so, else texts."""
        texts = [str(query) for query in self._first]
        try:
            numbers = np.array([int(text) for text in texts], np.int64)
        except (ValueError, OverflowError):
            return np.array(texts)
        return numbers if numbers.astype(str).tolist() == texts else np.array(texts)  # 07 is not 7


def begins_again(column: str) -> str:
    """Return the refusal of a query whose rows are not contiguous."""
    return f"begins again; sort the rows by the column {column!r}, so that those of a query are contiguous"

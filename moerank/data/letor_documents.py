"""What a LETOR file holds, as arrays: one row of values, one label and one query per document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.checks import check_room
from moerank.data.cache_entry import Arrays
from moerank.kernels.letor_text import widen_rows

__all__ = ["Documents", "Precision", "identity"]

Precision = type[np.float64] | type[np.float32]

_INTEGER = re.compile(rb"-?[0-9]{1,19}")


class Documents:
    """The documents of a file.

    Attributes
    ----------
    values : ndarray of the given precision, shape (n_documents · n_features,)
        NaN is a missing value. It owns its memory, so that it can grow without a copy, or is mapped.
    by_columns : bool
        Whether the values stand column by column, as those of large tables do, and not row by row.
    y : ndarray of int32, shape (n_documents,)
    ids : ndarray of int64 or str, shape (n_queries,)
        The queries in order: integers if all are integers of 64 bits, else texts as first written; empty if the lines
        have none.
    starts : ndarray of int64, shape (n_queries,)
        The first row of each.
    n_features : int
        The largest feature number in the file; 0 if no line lists any.
    n_missing : int
        How many values are missing.
    """

    def __init__(self, precision: Precision) -> None:
        self.values: NDArray[Any] = np.zeros(0, precision)
        self.y = np.zeros(0, np.int32)
        self.ids: NDArray[np.int64] | NDArray[np.str_] = np.zeros(0, np.int64)
        self.starts = np.zeros(0, np.int64)
        self.n_features = self.n_missing = 0
        self.by_columns = False

    def take_queries(self, ids: Sequence[str], starts: Sequence[int], where: object = "data") -> None:
        """Take the ids of the queries as they are first written, and their first rows; `where` is for messages."""
        integers = [_as_integer(text.encode()) for text in ids]
        if None in integers:
            longest = max(map(len, ids))
            check_room(f"{where}: {len(self.y):,} ids of up to {longest} characters", 4 * longest * len(self.y))
            self.ids = np.array(ids, np.str_)
        else:
            self.ids = np.array(integers, np.int64)
        self.starts = np.array(starts, np.int64)

    @property
    def X(self) -> NDArray[Any]:
        """The values as a table that shares their memory, shape (n_documents, n_features)."""
        n, width = len(self.y), self.n_features
        return self.values.reshape(width, n).T if self.by_columns else self.values.reshape(n, width)

    @property
    def qid(self) -> NDArray[np.int64] | NDArray[np.str_]:
        """The query of each document, shape (n_documents,)."""
        ids: NDArray[Any] = self.ids
        return np.repeat(ids, np.diff(self.starts, append=len(self.y)))

    def widen(self, n_features: int, where: object = "data") -> None:
        """Give every document zeros for further features, in the same memory as far as the system allows.

        `where` is how messages call the documents.
        """
        n, width = len(self.y), self.n_features
        n_bytes = n * n_features * self.values.itemsize
        check_room(f"{where}: a table of {n:,} documents × {n_features:,} features", n_bytes)
        if not self.values.flags.owndata:  # but mapped from a file
            self.values = np.array(self.values)
        self.values.resize(n * n_features, refcheck=False)  # by zeros, which are columns already
        if not self.by_columns:
            widen_rows(self.values, n, width, n_features)
        self.n_features = n_features

    def as_arrays(self) -> Arrays:
        """Return everything as arrays by name."""
        counts = np.array([self.n_features, self.n_missing, self.by_columns], np.int64)
        return dict(values=self.values, y=self.y, ids=self.ids, starts=self.starts, counts=counts)

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Documents:
        """Return what `as_arrays` returned arrays of.

        Raises
        ------
        ValueError
            For arrays that do not fit together: compiled code goes by their sizes.
        """
        values, y, ids, starts = (arrays[name] for name in ("values", "y", "ids", "starts"))
        n_features, n_missing, by_columns = arrays["counts"].tolist()
        rows = np.append(starts, len(y)) if len(starts) else np.array([0, len(y)])
        fits = values.shape == (len(y) * n_features,) and y.shape == (len(y),) and ids.shape == starts.shape
        kinds = (values.dtype, y.dtype, starts.dtype, ids.dtype.kind) in (
            (np.dtype(precision), np.dtype(np.int32), np.dtype(np.int64), kind)
            for precision in (np.float64, np.float32)
            for kind in "iU"
        )
        if not fits or not kinds or n_features < 0 or rows[0] != 0 or not np.all(np.diff(rows) > 0):
            raise ValueError("the arrays do not fit together")
        documents = cls(values.dtype.type)
        documents.values, documents.y, documents.ids, documents.starts = values, y, ids, starts
        documents.n_features, documents.n_missing, documents.by_columns = n_features, n_missing, bool(by_columns)
        return documents


def identity(raw: bytes) -> bytes:
    """Return the same bytes for the ids of one query: 7 and 07 are one, as they are one integer.

    Examples
    --------
    >>> identity(b"07"), identity(b"WT04-132")
    (b'7', b'WT04-132')
    """
    number = _as_integer(raw)
    return raw if number is None else b"%d" % number


def _as_integer(raw: bytes) -> int | None:
    """Return an id that is an integer of 64 bits as one."""
    if not _INTEGER.fullmatch(raw):
        return None
    number = int(raw)
    return number if -(2**63) <= number < 2**63 else None

"""What a LETOR file holds, as arrays: one row of values, one label and one query per document."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from moerank.checks import check_room, memory_limit
from moerank.data.read.cache import Arrays
from moerank.data.read.columns import lies_by_columns, rows_of_piece
from moerank.data.read.files import CHUNK, LONGEST_LINE, TextChunks
from moerank.kernels.columns import rows_to_columns
from moerank.kernels.letor_text import N_STATES, Pause, State, narrow_rows, read_lines, widen_rows

__all__ = [
    "Documents",
    "Precision",
    "identity",
    "LARGEST_FEATURE",
    "LONGEST_ID",
    "missing_remedy",
    "refusal",
    "wrong_document",
    "wrong_id",
    "parse_letor",
]

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


LARGEST_FEATURE = 10_000
"""The largest feature number a file may hold unless `n_features` allows more: a misprint must not fill the memory."""

LONGEST_ID = 100
"""Characters of a query id, at most: every document holds one."""

_LABEL = rb"[0-9]{1,9}(?:\.0*)?"
_FEATURE = rb"[0-9]{1,9}"
_NUMBER = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NULL = rb"(?i:null|nan)"
_FEATURE_NUMBERS = re.compile(rb"[ \t]([0-9]+):")


def refusal(path: object, number: int, line: bytes, reason: str) -> ValueError:
    """Return the error that names a line by path, number and text."""
    return ValueError(f"{path}, line {number}: {reason}: {_shortened(line, 100)!r}")


def wrong_document(
    document: bytes, *, n_features: int | None, nulls: bool, with_queries: bool, side_file: str | None
) -> str | None:
    """Name the first part of a line that does not have the form of a document; None if there is none.

    Parameters
    ----------
    document : bytes
        The line without its comment.
    n_features : int, optional
        The largest feature number that is allowed, if it is not LARGEST_FEATURE.
    nulls : bool
        Whether values may be missing.
    with_queries : bool
        Whether the line has a query id.
    side_file : str, optional
        The file that holds the queries, where they are not in the lines.
    """
    label, *rest = re.split(rb"[ \t]+", document.strip(b" \t"))
    if not re.fullmatch(_LABEL, label):
        return f"the label {_quoted(label)} is not an integer from 0 (irrelevant) to 999,999,999"
    has_id = bool(rest) and rest[0].startswith(b"qid:")
    if with_queries:
        if not has_id:
            return (
                "no query id after the label; expected 'label qid:Q 1:v 2:v …', or a file .query beside this one with "
                "the number of documents of each query"
            )
        reason = wrong_id(rest[0][4:])
        if reason:
            return reason
        rest = rest[1:]
    elif has_id:
        return f"the line has a query id, but {side_file} gives the queries, too; remove one of the two"
    form = b"%b:(?:%b)" % (_FEATURE, _NUMBER + b"|" + _NULL if nulls else _NUMBER)
    for token in rest:
        if not re.fullmatch(form, token):
            return _wrong_token(token, n_features)
    return _wrong_features([int(feature) for feature in _FEATURE_NUMBERS.findall(document)], n_features)


def wrong_id(raw: bytes) -> str | None:
    """Say what is wrong with the bytes of a query id, if anything."""
    if not raw:
        return "the query id '' is empty"
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return f"the query id {_quoted(raw)} is not a text in UTF-8"
    if any(sign.isspace() or category(sign) == "Cc" for sign in text):
        return f"the query id {_quoted(raw)} holds a space or a control character"
    if len(text) > LONGEST_ID:
        return f"the query id {_quoted(raw)} is longer than {LONGEST_ID} characters"
    return None


def missing_remedy(feature: object) -> str:
    """Return the refusal of a value that is missing, with the rules that would fill it."""
    return (
        f"the value of feature {feature} is missing (NULL); pass missing=, the number it becomes, or 'query-min', "
        "'query-mean' or 'query-worst' (in a problem file: missing in [data])"
    )


def _wrong_token(token: bytes, n_features: int | None) -> str:
    feature, colon, value = token.partition(b":")
    if not colon or not re.fullmatch(rb"[0-9]+", feature):
        return f"{_quoted(token)} is not of the form feature:value, as in 12:0.5"
    if not re.fullmatch(_FEATURE, feature):
        return _beyond_limit(_shortened(feature), n_features)
    if value.upper() == b"NULL":
        return missing_remedy(feature.decode())
    return f"the value {_quoted(value)} of feature {feature.decode()} is not a finite number"


def _wrong_features(features: list[int], n_features: int | None) -> str | None:
    """Say what is wrong with the feature numbers of one line, if anything."""
    if features and features[0] == 0:
        return "feature number 0; feature numbers start at 1, so add 1 to all of them"
    for feature, following in pairwise(features):
        if feature == following:
            return f"feature {feature} is listed twice"
        if feature > following:
            return f"feature {following} follows feature {feature}; list the features in increasing order"
    if features and features[-1] > (n_features or LARGEST_FEATURE):
        return _beyond_limit(str(features[-1]), n_features)
    return None


def _beyond_limit(feature: str, n_features: int | None) -> str:
    if n_features is not None:
        return f"feature {feature} is beyond n_features={n_features}"
    return (
        f"feature {feature} is beyond the limit of {LARGEST_FEATURE:,} features; number the features without gaps, "
        "or pass n_features if so many are meant"
    )


def _shortened(part: bytes, length: int = 30) -> str:
    text = part.decode("utf-8", "backslashreplace")
    return text if len(text) <= length else text[: length - 1] + "…"


def _quoted(part: bytes) -> str:
    return repr(_shortened(part))


_ID_BYTES = 250
"""What a query takes beside its documents: its id, its place, and the entry among those that are finished."""
_N_RUNS = 4096


def parse_letor(
    path: Path,
    file: BinaryIO,
    dtype: Precision,
    *,
    n_features: int | None = None,
    nulls: bool = False,
    side_file: str | None = None,
    chunk: int = CHUNK,
    report: Callable[[float], None] | None = None,
) -> Documents:
    """Read the documents of a LETOR file.

    Parameters
    ----------
    path : Path
        For messages, and for the kind of compression.
    file : binary file
        It, opened without a buffer.
    dtype : {numpy.float64, numpy.float32}
        A single is the double rounded.
    n_features : int, optional
        The largest feature number that is allowed.
    nulls : bool, default False
        Let values be missing.
    side_file : str, optional
        The file that gives the queries; the lines then have no query id.
    chunk : int
        Bytes to read at once.
    report : callable, optional
        Called with the share of the file that has been read, after every piece.

    Raises
    ------
    ValueError
        For the first line that is not a document, with its number and text, and for a table beyond the limit of
        memory, before that memory is taken.

    Notes
    -----
    O(bytes of the file) time; memory is that of the result, a piece of the file, a piece of the table, and what an
    estimate of the number of documents is too large by (an eighth at most). A table that does not fit into one piece
    is taken from rows to columns piece by piece.
    """
    return _Parser(path, dtype, n_features, nulls, side_file).parse(TextChunks(path, file, chunk), report)


class _Parser:
    """One pass over a file."""

    def __init__(
        self,
        path: Path,
        dtype: Precision,
        n_features: int | None,
        nulls: bool,
        side_file: str | None,
    ) -> None:
        self._path, self._n_features, self._nulls, self._side_file = path, n_features, nulls, side_file
        self._limit = n_features or LARGEST_FEATURE
        self._largest = float(np.finfo(dtype).max)
        if dtype == np.float32:  # the last double that is not rounded to infinity
            self._largest = float(np.nextafter(2.0**128 - 2.0**103, 0.0))
        self._documents = Documents(dtype)  # of which values and labels are those of the piece under way
        self._columns = _Columns(dtype)  # the pieces that are done
        self._labels: list[NDArray[np.int32]] = []
        self._ids: list[str] = []
        self._starts: list[int] = []
        self._width = self._n_bytes = 0
        self._state = np.zeros(N_STATES, np.int64)
        self._runs = np.empty((_N_RUNS, 4), np.int64)
        self._hard = np.empty((max(self._limit, 4096), 5), np.int64)
        self._finished: set[bytes] = set()
        self._current: bytes | None = None

    def parse(self, chunks: TextChunks, report: Callable[[float], None] | None) -> Documents:
        documents, state = self._documents, self._state
        try:
            for text, end in chunks:
                self._read(text, end, chunks.share)
                if report is not None:
                    report(chunks.share)
        except OverflowError:
            raise ValueError(
                f"{self._path}, line {state[State.LINE] + 1}: longer than {LONGEST_LINE // 2**20} MiB, which no "
                "document is"
            ) from None
        except _Refused as refused:
            chunks.check_rest()
            raise refused.error from None
        documents.n_features, documents.n_missing = int(state[State.COLUMNS]), int(state[State.NULLS])
        self._put_together(int(state[State.ROW]))
        documents.take_queries(self._ids, self._starts, self._path)
        return documents

    def _put_together(self, n: int) -> None:
        """Make one table of the columns and the `n` rows of the piece under way."""
        documents, width = self._documents, self._documents.n_features
        if not self._labels and not lies_by_columns(n * width * documents.values.itemsize):
            if width < self._width:
                narrow_rows(documents.values, n, self._width, width)
            documents.values.resize(n * width, refcheck=False)
            documents.y.resize(n, refcheck=False)
            return
        self._finish_piece(n, 0)
        documents.by_columns = True
        documents.values = self._columns.closed()
        documents.y = np.concatenate(self._labels)

    def _finish_piece(self, n: int, expected: int) -> None:
        """Take the `n` rows of the piece under way to columns; as many documents as `expected` are in the file."""
        documents, n_features = self._documents, int(self._state[State.COLUMNS])
        self._columns.add(documents.values, n, self._width, n_features, min(expected, self._most_rows()))
        self._labels.append(documents.y[:n].copy())
        documents.values, documents.y = np.zeros(0, documents.values.dtype), np.zeros(0, documents.y.dtype)
        self._state[State.ROW] = 0

    def _read(self, text: NDArray[np.uint8], end: int, share: float) -> None:
        """Read a piece of whole lines."""
        documents, state = self._documents, self._state
        state[State.AT] = 0
        pause: int = Pause.WORKSPACE
        while pause != Pause.END:
            pause = read_lines(
                text,
                end,
                state,
                documents.values,
                documents.y,
                self._width,
                self._limit,
                self._largest,
                self._side_file is None,
                self._nulls,
                self._runs,
                self._hard,
            )
            refused = [self._queries_begin(text), self._convert(text)]
            first = min((entry for entry in refused if entry), default=None)
            self._check_room(self._columns.n + int(state[State.ROW]), self._width)  # queries take room, too
            if first is not None:
                line, at, reason = first
                raise _Refused(refusal(self._path, line, _line_around(text, at), reason))
            if pause == Pause.ROWS:
                self._make_room(share, end)
            elif pause == Pause.COLUMNS:
                self._widen(int(state[State.WANTED]))
            elif pause == Pause.REFUSED:
                self._refuse(text)
        self._n_bytes += end

    def _queries_begin(self, text: NDArray[np.uint8]) -> tuple[int, int, str] | None:
        """Take up the queries that begin; return line, place and reason of the first that must not."""
        for begin, end, row, line in self._runs[: self._state[State.RUNS]].tolist():
            raw = text[begin:end].tobytes()
            query = identity(raw)
            if query == self._current:
                continue
            reason = wrong_id(raw) or self._wrong_query(query, raw)
            if reason:
                return line, begin, reason
            if self._current is not None:
                self._finished.add(self._current)
            self._current = query
            self._ids.append(raw.decode())
            self._starts.append(self._columns.n + row)
        return None

    def _wrong_query(self, query: bytes, raw: bytes) -> str | None:
        if query not in self._finished:
            return None
        return f"query {raw.decode()} begins again; sort the lines so that those of a query are contiguous"

    def _convert(self, text: NDArray[np.uint8]) -> tuple[int, int, str] | None:
        """Convert the values that the reader has left; return line, place and reason of the first that is too large."""
        values = self._documents.values
        for begin, end, row, column, line in self._hard[: self._state[State.HARD]].tolist():
            value = float(text[begin:end].tobytes())
            if not abs(value) <= self._largest:
                bits = 8 * values.itemsize
                return (
                    line,
                    begin,
                    f"the value of feature {column + 1} is too large for a {bits}-bit floating-point number",
                )
            values[row * self._width + column] = values.dtype.type(value) + values.dtype.type(0)  # -0 becomes 0
        return None

    def _make_room(self, share: float, end: int) -> None:
        """Take memory for more rows: as many as the file will hold if it goes on like this, but at most twice.

        A piece that has as many as it may have is finished, and the memory is that of the next.
        """
        documents, n = self._documents, int(self._state[State.ROW])
        self._check_room(self._columns.n + n + 1, self._width)
        share *= (self._n_bytes + self._state[State.AT]) / (self._n_bytes + end)
        expected = int(1.02 * (self._columns.n + n) / share) if share else 2 * n
        if n >= self._most_of_piece(self._width):
            self._finish_piece(n, expected)
            n = 0
        rows = most = self._most_of_piece(self._width)
        if not self._columns.n:
            rows = min(max(1024, n + n // 16, min(2 * n, expected)), most)
        rows = min(rows, self._most_rows() - self._columns.n)
        documents.values.resize(rows * self._width, refcheck=False)
        documents.y.resize(rows, refcheck=False)

    def _widen(self, wanted: int) -> None:
        """Give the table more columns: what the next line asks for, or half as many again if it is not the first."""
        documents, n = self._documents, int(self._state[State.ROW])
        n_total = max(self._columns.n + n, 1)
        self._check_room(n_total, wanted)
        width = min(max(wanted, self._width + self._width // 2), self._limit) if self._columns.n + n else wanted
        if n_total * width * documents.values.itemsize > memory_limit():
            width = wanted
        if n > self._most_of_piece(width):
            self._finish_piece(n, 0)
            n = 0
        rows = max(n, 1)
        documents.values[n * self._width :] = 0.0  # the line that asks for more has begun to be stored
        documents.values.resize(rows * width, refcheck=False)
        documents.values[n * self._width :] = 0.0
        widen_rows(documents.values, n, self._width, width)
        documents.y.resize(rows, refcheck=False)
        self._width = width

    def _check_room(self, n_rows: int, width: int) -> None:
        """Refuse a table of so many rows and columns if it takes more than the limit of memory."""
        n_bytes = n_rows * self._row_bytes(width) + len(self._ids) * _ID_BYTES
        try:
            check_room(f"a table of {n_rows:,} or more documents × {width:,} features", n_bytes)
        except ValueError as error:
            raise ValueError(f"{self._path}, line {self._state[State.LINE] + 1}: {error}") from None

    def _most_of_piece(self, width: int) -> int:
        return rows_of_piece(width * self._documents.values.itemsize, first=not self._columns.n)

    def _most_rows(self) -> int:
        return (memory_limit() - len(self._ids) * _ID_BYTES) // self._row_bytes(self._width)

    def _row_bytes(self, width: int) -> int:
        return width * self._documents.values.itemsize + self._documents.y.itemsize + 8  # 8 for the query of each

    def _refuse(self, text: NDArray[np.uint8]) -> None:
        """Raise what is wrong with the line at which the reader has stopped."""
        at = int(self._state[State.AT])
        line = _line_around(text, at)
        document = line.partition(b"#")[0]
        reason = wrong_document(
            document,
            n_features=self._n_features,
            nulls=self._nulls,
            with_queries=self._side_file is None,
            side_file=self._side_file,
        )
        assert reason is not None, f"{self._path}: the reader stopped at {line!r}"
        raise _Refused(refusal(self._path, int(self._state[State.LINE]) + 1, line, reason))


class _Columns:
    """Features column by column, to which rows are added; there may be room for more of them than there are.

    Attributes
    ----------
    n : int
        Rows so far.
    """

    def __init__(self, dtype: Precision) -> None:
        self._flat: NDArray[Any] = np.empty(0, dtype)
        self._room = self._width = self.n = 0

    def add(self, rows: NDArray[Any], n: int, width: int, n_features: int, expected: int) -> None:
        """Add `n` rows of `width` values, the first `n_features` of which count; `expected` rows may come in all."""
        if self.n == 0:
            self._room, self._width = max(n, expected, 1), n_features
            self._flat = np.empty(self._room * n_features, self._flat.dtype)
        if n_features > self._width:
            self._width = n_features
            self._flat.resize(self._room * n_features, refcheck=False)  # new columns are zeros
        if self.n + n > self._room:
            self._move(max(self.n + n, expected, self._room + self._room // 16))
        rows_to_columns(rows, n, width, np.arange(self._width), self._flat, self._room, self.n)
        self.n += n

    def closed(self) -> NDArray[Any]:
        """Return the columns one after the other, without room for more."""
        self._move(self.n)
        return self._flat

    def _move(self, room: int) -> None:
        """Move the columns apart, or together, so that each has so much room; of the same memory where it can be."""
        if room > self._room:
            self._flat.resize(room * self._width, refcheck=False)
        order = range(self._width) if room < self._room else range(self._width - 1, -1, -1)
        for f in order:
            self._flat[f * room : f * room + self.n] = self._flat[f * self._room : f * self._room + self.n].copy()
        self._room = room
        self._flat.resize(room * self._width, refcheck=False)


class _Refused(Exception):  # noqa: N818 - it carries the error
    """A line that is refused; the rest of an archive may still show that damage is to blame."""

    def __init__(self, error: ValueError) -> None:
        super().__init__(str(error))
        self.error = error


def _line_around(text: NDArray[np.uint8], at: int) -> bytes:
    """Return the line of which the byte at a place is part, without its end."""
    ends = np.flatnonzero((text[:at] == 10) | (text[:at] == 13))
    begin = int(ends[-1]) + 1 if len(ends) else 0
    end = begin
    while text[end] not in (10, 13):
        end += 1
    return text[begin:end].tobytes()

"""The parser of LETOR text: pieces of lines go through a compiled reader into arrays that grow up to a limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from moerank.checks import check_room, memory_limit
from moerank.data.letor_documents import Documents, Precision, identity
from moerank.data.letor_grammar import LARGEST_FEATURE, refusal, wrong_document, wrong_id
from moerank.data.table_order import lies_by_columns, rows_of_piece
from moerank.data.text_chunks import CHUNK, LONGEST_LINE, TextChunks
from moerank.kernels.columns import rows_to_columns
from moerank.kernels.letor_text import N_STATES, Pause, State, narrow_rows, read_lines, widen_rows

__all__ = ["parse_letor"]

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

"""Parser of LETOR files: each line becomes a row of values, a label and a query, or is refused in a sentence."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Array, Floats, Integers, Vector
from moerank.checks import check_room, memory_limit
from moerank.data.blocks import empty_table
from moerank.data.read.columns import MISSING_REMEDY, Precision, Table
from moerank.data.read.files import CHUNK, LONGEST_LINE, TextChunks
from moerank.kernels.letor_text import count_ends, read_lines

_INTEGER = re.compile(rb"-?[0-9]{1,19}")


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


class _RefusedError(ValueError):
    """A line that is refused; the rest of an archive may still show that damage is to blame."""


def _wrong_document(line: bytes, n_features: int | None, nulls: bool, side_file: str | None) -> str | None:
    """Say what is wrong with the first part of a line that does not have the form of a document; None if all have it.

    `side_file` names the file that has the queries, if one has.
    """
    document = line.partition(b"#")[0]
    label, *rest = re.split(rb"[ \t]+", document.strip(b" \t"))
    if not re.fullmatch(_LABEL, label):
        return f"the label {_quoted(label)} is not an integer from 0 (irrelevant) to 999,999,999"
    has_id = bool(rest) and rest[0].startswith(b"qid:")
    if side_file is None:
        if not has_id:
            return (
                "no query id after the label; expected 'label qid:Q 1:v 2:v …', or a file .query beside this one with "
                "the number of documents of each query"
            )
        if reason := _wrong_id(rest.pop(0)[4:]):
            return reason
    elif has_id:
        return f"the line has a query id, but {side_file} gives the queries, too; remove one of the two"
    form = b"%b:(?:%b)" % (_FEATURE, _NUMBER + b"|" + _NULL if nulls else _NUMBER)
    for token in rest:
        if not re.fullmatch(form, token):
            return _wrong_token(token, n_features)
    return _wrong_features([int(feature) for feature in _FEATURE_NUMBERS.findall(document)], n_features)


def _wrong_id(raw: bytes) -> str | None:
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


def _wrong_token(token: bytes, n_features: int | None) -> str:
    feature, colon, value = token.partition(b":")
    if not colon or not re.fullmatch(rb"[0-9]+", feature):
        return f"{_quoted(token)} is not of the form feature:value, as in 12:0.5"
    if not re.fullmatch(_FEATURE, feature):
        return _beyond_limit(_shortened(feature), n_features)
    if value.upper() == b"NULL":
        return f"the value of feature {feature.decode()} is missing (NULL); {MISSING_REMEDY}"
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


QUERY_BYTES = 250
"""Memory of a query beside its documents: its id, its place, and the entry by which it is known again."""


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
) -> Table:
    """Read the documents of a LETOR file that is opened without a buffer.

    With a `side_file`, which gives the queries, the lines have no query id, and all documents are one query. The first
    line that is not a document is a ValueError with its number and text, and so is a table beyond the limit of memory,
    before that memory is taken. O(bytes of the file) time. Each piece of the text becomes a table of its own; the
    pieces are freed one by one as they are put together, so the memory is that of the result and of a few pieces.
    """
    parser = _Parser(path, dtype, n_features, nulls, side_file)
    chunks = TextChunks(path, file, chunk)
    try:
        for text, end in chunks:
            parser.read(text, end)
            if report is not None:
                report(chunks.share)
    except OverflowError:
        raise ValueError(
            f"{path}, line {parser.n_lines + 1}: longer than {LONGEST_LINE // 2**20} MiB, which no document is"
        ) from None
    except _RefusedError as refused:
        chunks.check_rest()
        raise ValueError(str(refused)) from None
    return parser.table()


class _Parser:
    """One pass over a file."""

    def __init__(
        self, path: Path, dtype: Precision, n_features: int | None, nulls: bool, side_file: str | None
    ) -> None:
        self._path, self._dtype, self._n_features = path, np.dtype(dtype), n_features
        self._nulls, self._side_file = nulls, side_file
        self._limit = n_features or LARGEST_FEATURE
        self._largest = float(np.finfo(dtype).max)
        if dtype == np.float32:  # the last double that is not rounded to infinity
            self._largest = float(np.nextafter(2.0**128 - 2.0**103, 0.0))
        self._runs = self._hard = np.empty((0, 5), np.int64)
        self._pieces: list[Floats] = []
        self._labels: list[Integers] = []
        self._ids: list[str] = []  # as they are spelt first
        self._first: dict[bytes | int, int] = {}  # row of each query
        self._current: bytes | int | None = None
        self._n_rows = self._width = self.n_lines = 0

    def read(self, text: NDArray[np.uint8], end: int) -> None:
        """Read a piece of whole lines: once, and once more if it lists features beyond the ones known so far."""
        n_lines = count_ends(text, end)
        width = self._width or _width_of_first_line(text[: min(end, 2**16)].tobytes(), self._limit)
        if self._bytes(self._n_rows + n_lines, width) > memory_limit():
            width = 0  # count the documents first: not each line needs to be one
        labels = np.empty(n_lines, np.int64)
        if n_lines > len(self._runs) or end // 6 >= len(self._hard):  # all pieces are about as large
            self._runs = np.empty((2 * n_lines, 4), np.int64)
            self._hard = np.empty((end // 6 + 1, 5), np.int64)
        while True:
            values = _zeros(n_lines, width, self._dtype, mapped=bool(self._pieces))
            lines = (text, end, values, labels, self._limit, self._largest)
            at, n_rows, line, widest, n_runs, n_hard = read_lines(
                *lines, self._side_file is None, self._nulls, self._runs, self._hard
            )
            self._check_room(self._n_rows + n_rows, max(widest, self._width), self.n_lines + line)
            if widest <= width:
                break
            width, n_lines = max(widest, self._width), n_rows + 1  # with the line that is refused
        runs, hard = self._runs[:n_runs], self._hard[:n_hard]
        found = list(filter(None, (self._queries_begin(text, runs), self._convert(text, values, hard))))
        self._check_room(self._n_rows + n_rows, max(widest, self._width), self.n_lines + line)  # with the queries
        if found or at < end:
            line, at, reason = min(found, default=(line, at, None))
            wrong = _line_around(text[:end].tobytes(), at)
            reason = reason or _wrong_document(wrong, self._n_features, self._nulls, self._side_file)
            assert reason is not None, f"{self._path}: the reader stopped at {wrong!r}"
            where = f"{self._path}, line {self.n_lines + line + 1}"
            raise _RefusedError(f"{where}: {reason}: {_shortened(wrong, 100)!r}")
        self._pieces.append(values[:n_rows])
        self._labels.append(labels[:n_rows])
        self._n_rows += n_rows
        self.n_lines += line
        self._width = max(widest, self._width)

    def table(self) -> Table:
        """Put the pieces together."""
        X = empty_table(self._n_rows, self._n_features or self._width, self._dtype)
        if len(self._pieces) == 1 and self._pieces[0].shape == X.shape and X.flags.c_contiguous:
            X = self._pieces.pop()
        end = self._n_rows
        while self._pieces:
            piece = self._pieces.pop()
            begin = end - len(piece)
            X[begin:end, : piece.shape[1]] = piece[:, : X.shape[1]]
            X[begin:end, piece.shape[1] :] = 0.0
            end = begin
        y = np.concatenate([np.zeros(0, np.int64), *self._labels])
        if self._side_file is not None:
            return Table(X, y, np.zeros(1, np.int64), np.array([0, len(y)]))
        return Table(X, y, _as_ids(self._ids, self._path), np.array([*self._first.values(), len(y)]))

    def _queries_begin(self, text: NDArray[np.uint8], runs: Integers) -> tuple[int, int, str] | None:
        """Take up the queries that begin; return line, place and reason of the first that must not."""
        for begin, end, row, line in runs.tolist():
            spelt = text[begin:end].tobytes()
            number = _as_integer(spelt)
            query = spelt if number is None else number  # 7 and 07 are one integer
            if query == self._current:
                continue
            reason = _wrong_id(spelt)
            if reason is None and query in self._first:
                reason = f"query {spelt.decode()} begins again; sort the lines so that those of a query are contiguous"
            if reason:
                return line, begin, reason
            self._current, self._first[query] = query, self._n_rows + row
            self._ids.append(spelt.decode())
        return None

    def _convert(self, text: NDArray[np.uint8], values: Floats, hard: Integers) -> tuple[int, int, str] | None:
        """Convert the values that the kernel has left; return line, place and reason of the first that is too large."""
        if not len(hard):
            return None
        numbers = _correctly_rounded(text, hard[:, :2])
        large = np.flatnonzero(~(np.abs(numbers) <= self._largest))
        if len(large):
            begin, _, _, column, line = hard[large[0]].tolist()
            bits = 8 * self._dtype.itemsize
            return line, begin, f"the value of feature {column + 1} is too large for a {bits}-bit floating-point number"
        values[hard[:, 2], hard[:, 3]] = numbers.astype(self._dtype) + self._dtype.type(0)  # -0 becomes 0
        return None

    def _bytes(self, n_rows: int, width: int) -> int:
        return n_rows * ((self._n_features or width) * self._dtype.itemsize + 16) + len(self._ids) * QUERY_BYTES

    def _check_room(self, n_rows: int, width: int, line: int) -> None:
        """Refuse a table of so many rows and columns if it takes more than the limit of memory."""
        table = f"a table of {n_rows:,} or more documents × {self._n_features or width:,} features"
        check_room(f"{self._path}, line {line + 1}: {table}", self._bytes(n_rows, width))


def _zeros(n_rows: int, width: int, dtype: np.dtype[Any], *, mapped: bool) -> Floats:
    """Return a table of zeros; the memory of a mapped one goes back to the system as soon as it is freed."""
    if not mapped:
        return np.zeros((n_rows, width), dtype)
    memory = mmap.mmap(-1, max(1, n_rows * width * dtype.itemsize))
    return np.frombuffer(memory, dtype, n_rows * width).reshape(n_rows, width)


def _correctly_rounded(text: NDArray[np.uint8], places: Integers) -> Vector:
    """Return the numbers that stand between the given bytes (n, 2), in their order."""
    import pyarrow as pa

    bounds = places.astype(np.int32).ravel()  # every other text between two of them is a number
    texts = pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(text))
    numbers: Vector = texts.take(np.arange(0, len(texts), 2)).cast(pa.float64()).to_numpy()
    return numbers


def _width_of_first_line(raw: bytes, limit: int) -> int:
    """Return a guess of the largest feature number: that of the first line with features."""
    for line in raw.splitlines():
        numbers = _FEATURE_NUMBERS.findall(line.partition(b"#")[0])
        if numbers:
            return min(int(numbers[-1][:9]), limit)
    return 0


def _as_ids(texts: list[str], path: Path) -> Array:
    """Return query ids as integers of 64 bits if all are, else as texts."""
    integers = [_as_integer(text.encode()) for text in texts]
    if None not in integers:
        return np.array(integers, np.int64)
    longest = max(map(len, texts))
    check_room(f"{path}: {len(texts):,} query ids of up to {longest} characters", 4 * longest * len(texts))
    return np.array(texts, np.str_)


def _line_around(raw: bytes, at: int) -> bytes:
    """Return the line of which the byte at a place is part, without its end."""
    begin = max(raw.rfind(b"\n", 0, at), raw.rfind(b"\r", 0, at)) + 1
    return re.match(rb"[^\r\n]*", raw[begin:])[0]  # type: ignore[index]

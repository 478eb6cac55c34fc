"""Reader of LETOR files: one document a line, ``label qid:Q 1:v … n:v #docid = …``.

Each line becomes a row of values, a label and a query, or is refused in a sentence.
"""

from __future__ import annotations

import mmap
import os
import re
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO
from unicodedata import category

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from moerank.arrays import Array, Floats, Integers
from moerank.checks import check_room, memory_limit
from moerank.data.blocks import empty_table
from moerank.data.inputs import LaterIds
from moerank.data.ranking_data import RankingData
from moerank.data.read.cache import Table, remembered
from moerank.data.read.files import CHUNK, LONGEST_LINE, TextChunks, find_query_file, read_query_file, report_reading
from moerank.data.read.table import MISSING_REMEDY, Precision, as_precision
from moerank.data.scaling import MissingRule, check_missing_rule
from moerank.kernels.letor_text import count_ends, read_lines


def load_letor(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    missing: MissingRule | None = None,
    dtype: DTypeLike = np.float64,
    name: str | None = None,
    cache: bool = True,
) -> RankingData:
    r"""Read a LETOR or svmlight file with query ids: plain, ``.gz`` or ``.xz``.

    Features a line does not list are 0. Lines end in LF, CRLF or CR; what follows a ``#`` is a comment; blank lines
    and lines of comment alone are skipped.

    Parameters
    ----------
    path : path-like
        The file. If its lines have no query ids, a file beside it gives the number of documents of each query, one
        per line, as LightGBM has it: for ``x.txt`` it is the first of ``x.txt.query``, ``x.txt.group``, ``x.query``
        and ``x.group``.
    n_features : int, optional
        The number of columns of X; a file with a larger feature number is refused. By default the largest number in
        the file, which must not exceed `LARGEST_FEATURE`.
    missing : float or {"query-min", "query-mean", "query-worst"}, optional
        What ``NULL`` and ``NaN`` values (in letters of any size) become, see `RankingData`. By default a file that
        holds one is refused.
    dtype : {numpy.float64, numpy.float32}, default float64
        The precision of X. A value is the correctly rounded double, or that double rounded to single.
    name : str, optional
        How messages call the data set; by default its path.
    cache : bool, default True
        Keep the parsed arrays in the user's cache folder, see `moerank.data.read.cache`.

    Returns
    -------
    RankingData
        The documents in file order. Query ids are integers if all are integers of 64 bits, else texts; with a file of
        counts they are 1, 2, …. The id of a document is the first word of its comment, behind ``docid =``, if all have
        one; ids are read from the file when they are asked for.

    Raises
    ------
    ValueError
        For a line that is not a document (with the path, the line number and the text), a query whose lines are not
        contiguous, a file without documents, query ids in the lines and beside them or nowhere, a compressed file
        that is damaged, and a table that would take more memory than the limit (16 GiB, or what the environment
        variable ``MOERANK_MEMORY`` says), before that memory is taken.
    OSError
        If the file is missing, a folder, or cannot be read.

    Notes
    -----
    Time is O(bytes of the file) plus O(n_documents · n_features); memory is that of X, which lies by columns from
    64 MiB on, and some 0.1 GB. A label is an integer from 0 to 999,999,999, a query id a text of up to 100 characters
    without spaces and ``#``, a feature number starts at 1 and increases along the line. Values of over 19 digits take
    as long as in Python.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.txt")
    ...     _ = path.write_text("2 qid:7 1:0.5 3:1 #docid = a\n0 qid:7 2:0.25\n")
    ...     load_letor(path, cache=False).X
    array([[0.5 , 0.  , 1.  ], [0.  , 0.25, 0.  ]])
    """
    path = Path(path)
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features is {n_features}; a data set has at least one feature")
    if missing is not None:
        check_missing_rule(missing)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; load_letor reads one file, load_fold the three of a fold")
    beside, precision, state = find_query_file(path), as_precision(dtype), _state(path)
    parse = partial(_parse, path, n_features, missing is not None, precision, beside)
    reading = f"letor {n_features} {missing is not None} {np.dtype(precision)} {beside is not None}"
    table = remembered(path, reading, parse) if cache else parse()
    if beside is not None:
        counts = read_query_file(beside, path, len(table.y))
        table = replace(table, qid=np.repeat(np.arange(1, len(counts) + 1), counts))
    table = replace(table, documents=LaterIds(partial(_ids_in_comments, path.absolute(), state)))
    return table.as_data(name or str(path), missing)


def widened(data: RankingData, n_features: int) -> RankingData:
    """Return data of a LETOR file with zeros for the features up to `n_features` that it does not list."""
    n, width = data.X.shape
    if width >= n_features:
        return data
    n_bytes = n * n_features * data.X.itemsize
    check_room(f"{data.name}: a table of {n:,} documents × {n_features:,} features", n_bytes)
    X = np.zeros((n, n_features), data.X.dtype, order="F" if data.X.flags.f_contiguous else "C")
    X[:, :width] = data.X
    beside = (0, n_features - width)
    return data._changed(
        X=X,
        feature_names=tuple(str(number) for number in range(1, n_features + 1)),
        n_missing=np.pad(data.n_missing, beside),
        _missing_bits=np.packbits(np.pad(data.is_missing, ((0, 0), beside)), axis=1) if data.n_missing.any() else None,
    )


BYTES_BEFORE_CUT = 2**16
"""Bytes that are read before a cut to find the query of the line before it."""


_DOCUMENT = re.compile(rb"#[ \t]*(?:docid[ \t]*=[ \t]*)?([^\s]*)[^\r\n]*")


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _ids_in_comments(path: Path, state: tuple[int, int]) -> Array | None:
    """Return the first word of each comment, behind ``docid =``, None if one has none; refuse a changed file."""
    if _state(path) != state:
        raise ValueError(f"{path}: it changed after it was read; read it again for the ids of its documents")
    ids: list[bytes] = []
    with path.open("rb", buffering=0) as file:
        for text, end in TextChunks(path, file):
            lines = (line.partition(b"#") for line in text[:end].tobytes().splitlines())
            found = [_DOCUMENT.sub(rb"\1", sign + comment) for document, sign, comment in lines if document.strip()]
            if not all(found):
                return None
            ids += found
    return np.array([word.decode("utf-8", "backslashreplace") for word in ids])


def _parse(path: Path, n_features: int | None, nulls: bool, precision: Precision, beside: Path | None) -> Table:
    report_reading(path, 0.0)
    side_file = None if beside is None else beside.name
    with path.open("rb", buffering=0) as file:
        table = parse_letor(path, file, precision, n_features=n_features, nulls=nulls, side_file=side_file)
    report_reading(path, 1.0)
    for what, n in zip(("the file holds no document", "no line lists a feature"), table.X.shape, strict=True):
        if n == 0:
            raise ValueError(f"{path}: {what}; expected lines like '2 qid:1 1:0.5 2:0'")
    return table


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
    """Say what is wrong with the form of a document, if anything; `side_file` names the file of the queries, if any."""
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


def parse_letor(path: Path, file: BinaryIO, dtype: Precision, *, end: int | None = None, **options: Any) -> Table:
    """Read the documents of a file opened without a buffer, or those up to `end`; `options` are of `_Parser`."""
    chunk = options.pop("chunk", CHUNK)
    parser, chunks = _Parser(path, np.dtype(dtype), **options), TextChunks(path, file, chunk, end)
    try:
        for text, size in chunks:
            parser.read(text, size)
            if end is None:
                report_reading(path, min(chunks.share, 0.999))
    except OverflowError:
        raise ValueError(
            f"{path}, line {parser.n_lines + 1}: longer than {LONGEST_LINE // 2**20} MiB, which no document is"
        ) from None
    except _RefusedError as refused:
        chunks.check_rest()
        raise ValueError(str(refused)) from None
    return parser.table()


@dataclass
class _Parser:
    """One pass over a file, of which each piece becomes a table; lines have no query id if a `side_file` has it."""

    path: Path
    dtype: np.dtype[Any]
    n_features: int | None = None
    nulls: bool = False
    side_file: str | None = None

    def __post_init__(self) -> None:
        self._limit = self.n_features or LARGEST_FEATURE
        self._largest = float(np.finfo(self.dtype).max)
        if self.dtype == np.float32:  # the last double that is not rounded to infinity
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
            values = np.zeros((n_lines, width), self.dtype) if not self._pieces else _mapped(n_lines, width, self.dtype)
            lines = (text, end, values, labels, self._limit, self._largest)
            at, n_rows, line, widest, n_runs, n_hard = read_lines(
                *lines, self.side_file is None, self.nulls, self._runs, self._hard
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
            raw = text[:end].tobytes()
            begin = max(raw.rfind(b"\n", 0, at), raw.rfind(b"\r", 0, at)) + 1
            wrong = re.split(rb"[\r\n]", raw[begin:], maxsplit=1)[0]
            reason = reason or _wrong_document(wrong, self.n_features, self.nulls, self.side_file)
            assert reason is not None, f"{self.path}: the reader stopped at {wrong!r}"
            where = f"{self.path}, line {self.n_lines + line + 1}"
            raise _RefusedError(f"{where}: {reason}: {_shortened(wrong, 100)!r}")
        self._pieces.append(values[:n_rows])
        self._labels.append(labels[:n_rows])
        self._n_rows += n_rows
        self.n_lines += line
        self._width = max(widest, self._width)

    def table(self) -> Table:
        """Put the pieces together, and free them one by one, so that the memory is that of the result and of a few."""
        X = empty_table(self._n_rows, self.n_features or self._width, self.dtype)
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
        if self.side_file is not None:
            return Table(X, y, np.zeros(len(y), np.int64))
        sizes = np.diff([*self._first.values(), len(y)])
        return Table(X, y, np.repeat(_as_ids(self._ids, self.path), sizes))

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
        bounds = hard[:, :2].astype(np.int32).ravel()  # every other text between two of them is a number
        texts = pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(text))
        numbers = texts.take(np.arange(0, len(texts), 2)).cast(pa.float64()).to_numpy()  # correctly rounded
        large = np.flatnonzero(~(np.abs(numbers) <= self._largest))
        if len(large):
            begin, _, _, column, line = hard[large[0]].tolist()
            bits = 8 * self.dtype.itemsize
            return line, begin, f"the value of feature {column + 1} is too large for a {bits}-bit floating-point number"
        values[hard[:, 2], hard[:, 3]] = numbers.astype(self.dtype) + self.dtype.type(0)  # -0 becomes 0
        return None

    def _bytes(self, n_rows: int, width: int) -> int:
        return n_rows * ((self.n_features or width) * self.dtype.itemsize + 16) + len(self._ids) * QUERY_BYTES

    def _check_room(self, n_rows: int, width: int, line: int) -> None:
        table = f"a table of {n_rows:,} or more documents × {self.n_features or width:,} features"
        check_room(f"{self.path}, line {line + 1}: {table}", self._bytes(n_rows, width))


def _mapped(n_rows: int, width: int, dtype: np.dtype[Any]) -> Floats:
    """Return a table of zeros whose memory goes back to the system as soon as it is freed."""
    memory = mmap.mmap(-1, max(1, n_rows * width * dtype.itemsize))
    return np.frombuffer(memory, dtype, n_rows * width).reshape(n_rows, width)


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

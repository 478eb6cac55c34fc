"""Reader of LETOR files: one document per line, ``label qid:Q 1:v … n:v #docid = …``.

Each line becomes a row of values, a label and a query, or is refused with the reason.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from moerank.arrays import Floats, Integers, Vector
from moerank.checks import check_at_least, check_room
from moerank.data import read
from moerank.data.inputs import query_offsets
from moerank.data.preparation import MissingRule
from moerank.data.ranking_data import RankingData
from moerank.files import AnyPath
from moerank.kernels.letor_text import read_lines

# Bytes that are read at once: few enough for the caches, enough for the interpreter not to matter.
CHUNK = 2**22

LONGEST_LINE = 2**26  # bytes in a line; a longer one is not text, and must not fill the memory

# The largest feature number a file may hold unless `n_features` allows more: a misprint must not fill the memory.
LARGEST_FEATURE = 10_000


def load_letor(
    path: AnyPath,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    missing: MissingRule | None = None,
    missing_values: Sequence[float] = (),
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> RankingData:
    r"""Read a LETOR or svmlight file with query ids, plain or ``.gz``.

    Features that a line does not list are 0. Lines end in LF, CRLF or CR; what follows a ``#`` is a comment; blank
    lines and comment lines are skipped.

    Parameters
    ----------
    path : path-like
        The file. If its lines have no query ids, a file beside it gives the number of documents of each query, one
        per line, as in LightGBM: for ``x.txt`` it is ``x.txt.query``, or else ``x.txt.group``. A file ``x.txt.weight``
        gives the weight of each document, or of each query, one per line, as in LightGBM and XGBoost.
    n_features : int, optional
        The number of columns of X; a file with a larger feature number is refused. By default the largest number in
        the file, which must not exceed `LARGEST_FEATURE`.
    zero_based : bool, default False
        Whether feature numbers start at 0, as scikit-learn's ``dump_svmlight_file`` writes them; the features are then
        called "0", "1", …
    missing : float or {"query-min", "query-mean", "query-worst"}, optional
        What ``NULL`` and ``NaN`` values (in upper or lower case) become, see `RankingData`. By default a file that
        has one is refused.
    missing_values : sequence of float
        Numbers that stand for a missing value, such as -999; see `RankingData`.
    dtype : {numpy.float64, numpy.float32}, optional
        The precision of X. A value is the correctly rounded double, or that double rounded to single. By default single
        precision if it tells all values of each feature apart, as it does for decimals with six places up to 8.3, else
        double.
    name : str, optional
        The name of the data set in messages; by default its path.

    Returns
    -------
    RankingData
        The documents in file order. Query ids are integers if all are integers of 64 bits, else texts; with a file of
        counts they are 1, 2, …. The id of a document is the first word of its comment, or the first after ``docid =``;
        there are ids only if all documents have one.

    Raises
    ------
    ValueError
        For a line that is not a document (with the path, the line number and the text), a query whose lines are not
        contiguous, a file without documents, query ids both in the lines and in a file beside them or in neither, a
        damaged compressed file, and a table that needs more memory than the limit (16 GiB, or what the environment
        variable ``MOERANK_MEMORY`` says), before that memory is taken.
    OSError
        If the file is missing, a folder, or cannot be read.

    Notes
    -----
    Time is O(bytes of the file) plus O(n_documents · n_features); memory is that of X, which is in Fortran order
    from 64 MiB on, and about 0.1 GB. A label is an integer from 0 to 999,999,999, a query id is a text of up to 100
    characters without spaces and ``#``, and feature numbers start at 1 and increase along the line. ``moerank data
    convert`` writes the same documents as Parquet, which loads several times as fast.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.txt")
    ...     _ = path.write_text("2 qid:7 1:0.5 3:1 #docid = a\n0 qid:7 2:0.25\n")
    ...     load_letor(path).X
    array([[0.5 , 0.  , 1.  ], [0.  , 0.25, 0.  ]], dtype=float32)
    """
    [data] = load_parts(
        [Path(path)],
        missing,
        missing_values,
        dtype,
        name,
        n_features=n_features,
        zero_based=zero_based,
    )
    return data


def load_parts(
    paths: Sequence[Path],
    missing: MissingRule | None,
    missing_values: Sequence[float],
    dtype: DTypeLike | None,
    name: str | None = None,
    **form: Any,
) -> list[RankingData]:
    """Return the documents of several files as data sets with the same features in the same precision.

    Features that a file does not list are 0; `form` are arguments of `read_letor`, the others those of `load_letor`.
    """
    parts = [read_letor(path, nulls=missing is not None, dtype=dtype, **form) for path in paths]
    if dtype is None:
        parts = read.in_single_if_exact(parts)
    width, feature_names = max((part.X.shape[1], part.feature_names) for part in parts)
    data = []
    for path, part in zip(paths, parts, strict=True):
        n_absent = width - part.X.shape[1]
        if n_absent:
            X = np.pad(part.X, ((0, 0), (0, n_absent)))
            part = replace(part, X=X, feature_names=feature_names)
        data.append(part.as_data(name or str(path), missing, missing_values))
    return data


def read_letor(
    path: Path,
    *,
    nulls: bool,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: DTypeLike | None = None,
) -> read.Documents:
    """Return the documents of a file in `dtype`, by default in doubles.

    The other arguments and errors are those of `load_letor`; `nulls` allows missing values.
    """
    precision = np.dtype(read.as_precision(dtype or float))
    check_at_least(1, or_none=True, n_features=n_features)
    if path.is_dir():
        raise IsADirectoryError(
            f"{path} is a folder; load_letor reads one file, load_fold the three of a fold"
        )
    counts_file = next(iter(files_beside(path, ".query", ".group")), None)
    weights_file = next(iter(files_beside(path, ".weight")), None)
    limits = n_features or 0, n_features or LARGEST_FEATURE
    parser = _Parser(path, precision, *limits, nulls, counts_file, 0 if zero_based else 1)
    with read.opened(path) as file:
        for text, end in parser.pieces(file):
            parser.add(text, end)
    documents = parser.documents()
    n_documents, n_columns = documents.X.shape
    if not n_documents or not n_columns:
        reason = "no line lists a feature" if n_documents else "the file holds no document"
        raise ValueError(f"{path}: {reason}; expected lines like '2 qid:1 1:0.5 2:0'")
    if counts_file is not None:
        documents = replace(documents, qid=_queries_beside(counts_file, path, n_documents))
    if zero_based:
        documents = replace(documents, feature_names=tuple(map(str, range(n_columns))))
    if weights_file is not None:
        what = "a weight; write one positive number a line"
        weights = _numbers_beside(weights_file, what)
        n_queries = len(query_offsets(documents.qid, str(path))) - 1
        if len(weights) == n_documents:
            documents = replace(documents, document_weights=weights)
        elif len(weights) == n_queries:
            documents = replace(documents, query_weights=weights)
        else:
            raise ValueError(
                f"{weights_file}: {len(weights):,} weights, but {path} has {n_documents:,} "
                f"documents and {n_queries:,} queries; give one for each document, or for each "
                "query"
            )
    return documents


def _queries_beside(counts_file: Path, path: Path, n_documents: int) -> Integers:
    """Return the query of each document, from a file with the number of documents of each query."""
    what = "the number of documents of a query, from 1 on"
    counts = _numbers_beside(counts_file, what).astype(np.int64)
    if counts.sum() != n_documents:
        raise ValueError(
            f"{counts_file}: the {len(counts):,} queries have {counts.sum():,} documents, but "
            f"{path} has {n_documents:,}; give the sizes in order"
        )
    return np.repeat(np.arange(1, len(counts) + 1), counts)


_LABEL = re.compile(rb"[0-9]{1,9}(?:\.0*)?")
_QUERY_ID = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\udc80-\udcff]{1,100}")
_NUMBER = f"^{read.NUMERAL}$"
_NULL = "(?i)^(null|nan)$"
_DOCUMENT = re.compile(rb"#[ \t]*(?:docid[ \t]*=[ \t]*)?([^\s]*)")


@dataclass
class _Parser:
    """One pass over a file, in which each piece becomes a table."""

    path: Path
    dtype: np.dtype[Any]
    width: int  # the number of features so far, or that asked for
    limit: int  # the largest number of features that is allowed
    nulls: bool
    counts_file: Path | None  # the file with the queries
    minimum: int  # the number of the first feature

    def __post_init__(self) -> None:
        # The last double that is not rounded to infinity.
        self._largest = (
            np.finfo(float).max if self.dtype == float else np.nextafter(2.0**128 - 2.0**103, 0.0)
        )
        self._pieces: list[Floats] = []
        self._labels: list[Integers] = [np.zeros(0, np.int64)]
        # Their first spelling, and their first row.
        self._queries: dict[bytes | int, tuple[str, int]] = {}
        self._query: bytes | int | None = None
        self._documents: list[bytes] = []
        self._n_rows = self._n_lines = 0

    def pieces(self, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
        """Yield pieces of a file, and how many bytes of each are whole lines; the last line gets an end."""
        rest = b""
        while block := file.read(CHUNK):
            text = rest + block if self._n_lines else read.without_mark(self.path, rest + block)
            # A carriage return at the end may be half of a line end.
            if end := max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1:
                yield text, end
            rest = text[end:]
            if len(rest) > LONGEST_LINE:
                size = f"longer than {LONGEST_LINE // 2**20} MiB"
                raise ValueError(
                    f"{self.path}, line {self._n_lines + 1}: {size}, too long for a document"
                )
        if rest:
            yield rest + b"\n", len(rest) + 1

    def add(self, text: bytes, end: int) -> None:
        """Read a piece of whole lines: once, and once more if it lists features beyond those of the first lines."""
        n_lines, width = _line_ends(text[:end]), self.width
        if not self._pieces:
            features = map(int, re.findall(rb"[ \t](\d{1,9}):", text[:4096]))
            width = max(width, min(max(features, default=0) + 1 - self.minimum, self.limit))
        values, rows, hard, stop, widest = self._parse(text, end, n_lines, width)
        if widest > width:
            values, rows, hard, stop, _ = self._parse(text, end, n_lines, widest)
        faults = self._convert(text, values, hard)
        if stop < end:
            faults.append((stop, ""))
        if self.counts_file is None:
            faults += self._begin_queries(text, rows)
        if faults:
            at, reason = min(faults)
            begin = max(text.rfind(b"\n", 0, at), text.rfind(b"\r", 0, at)) + 1
            line = re.split(rb"[\r\n]", text[begin:end], maxsplit=1)[0]
            where = f"{self.path}, line {self._n_lines + _line_ends(text[:begin]) + 1}"
            raise ValueError(
                f"{where}: {reason or self._fault(line)}: {read.shortened(line, 100)!r}"
            )
        ids = [_DOCUMENT.match(text, begin) for begin in rows[:, 3].tolist() if begin >= 0]
        self._documents += [match[1] for match in ids if match and match[1]]
        values += 0  # −0 becomes 0
        self._pieces.append(values[: len(rows)])
        self._labels.append(rows[:, 0].copy())
        self._n_rows += len(rows)
        self._n_lines += n_lines
        self.width = max(widest, self.width)

    def _parse(
        self, text: bytes, end: int, n_lines: int, width: int
    ) -> tuple[Floats, Integers, Integers, int, int]:
        """Return values, rows, values left over, the index of the end or of a wrong line, and the largest feature."""
        n_rows = self._n_rows + n_lines
        what = f"a table of {n_rows:,} or more documents × {width:,} features"
        n_bytes = n_rows * (width * self.dtype.itemsize + 16)
        check_room(f"{self.path}, line {self._n_lines + 1}: {what}", n_bytes)
        rows, hard = np.empty((n_lines, 4), np.int64), np.empty((end // 4 + 1, 4), np.int64)
        values = read.zeros(n_lines, width, self.dtype)
        stop, n_rows, widest, n_hard = read_lines(
            np.frombuffer(text, np.uint8),
            end,
            values,
            rows,
            hard,
            self.limit + self.minimum - 1,
            self._largest,
            self.counts_file is None,
            self.minimum,
        )
        return values, rows[:n_rows], hard[:n_hard], stop, widest

    def documents(self) -> read.Documents:
        """Put the pieces together."""
        X, y = read.joined(self._pieces, self.width, self.dtype), np.concatenate(self._labels)
        qid = np.zeros(len(y), np.int64)
        if self.counts_file is None:
            ids: list[Any] = list(self._queries)
            if not all(isinstance(query, int) for query in ids):
                ids = [spelling for spelling, _ in self._queries.values()]
            begins = [row for _, row in self._queries.values()]
            qid = np.repeat(np.array(ids), np.diff([*begins, len(y)]))
        documents = None
        if len(self._documents) == len(y):
            words = [word.decode("utf-8", "backslashreplace") for word in self._documents]
            documents = np.array(words)
        return read.Documents(X, y, qid, documents=documents)

    def _begin_queries(self, text: bytes, rows: Integers) -> list[tuple[int, str]]:
        """Record the queries that begin; return the index and reason of the first that must not."""
        begins = np.flatnonzero(rows[:, 1] >= 0)
        for row, (begin, end) in zip(begins.tolist(), rows[begins, 1:3].tolist(), strict=True):
            raw = text[begin:end]
            number = int(raw) if re.fullmatch(rb"-?[0-9]{1,19}", raw) else 2**63
            query = number if -(2**63) <= number < 2**63 else raw  # 7 and 07 are one integer
            if query == self._query:
                continue
            if not _QUERY_ID.fullmatch(raw.decode(errors="surrogateescape")):
                return [(begin, "")]
            if query in self._queries:
                again = f"query {raw.decode()} begins again"
                return [(begin, f"{again}; sort the lines so that those of a query are contiguous")]
            self._query, self._queries[query] = query, (raw.decode(), self._n_rows + row)
        return []

    def _convert(self, text: bytes, values: Floats, hard: Integers) -> list[tuple[int, str]]:
        """Convert the values that the kernel left over; return the index of the first that is not a value."""
        if not len(hard):
            return []
        bounds = hard[:, :2].astype(np.int32)
        import pyarrow as pa
        import pyarrow.compute as pc

        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(text)]
        texts = pa.Array.from_buffers(pa.binary(), bounds.size - 1, buffers)
        texts = texts[::2]  # without what is between values
        are_numbers = pc.match_substring_regex(texts, _NUMBER)
        numbers = np.asarray(pc.if_else(are_numbers, texts, None).cast(pa.float64()))
        is_value = np.abs(numbers) <= self._largest
        if self.nulls:
            is_value |= np.asarray(pc.match_substring_regex(texts, _NULL))
        if is_value.all():
            columns = hard[:, 3] < values.shape[1]
            values[hard[columns, 2], hard[columns, 3]] = numbers[columns]
        return [(begin, "") for begin in hard[~is_value, 0][:1].tolist()]

    def _fault(self, line: bytes) -> str:
        """Return what is wrong with the form of a document."""
        label, *tokens = re.split(rb"[ \t]+", line.partition(b"#")[0].strip(b" \t"))
        if not _LABEL.fullmatch(label):
            return (
                f"the label {read.quoted(label)} is not an integer from 0 (irrelevant) to "
                "999,999,999"
            )
        has_id = bool(tokens) and tokens[0].startswith(b"qid:")
        if self.counts_file is None and not has_id:
            return (
                "no query id after the label; expected 'label qid:Q 1:v 2:v …', or a file "
                f"{self.path.name}.query beside this one with the number of documents of each query"
            )
        if self.counts_file is not None and has_id:
            return (
                f"the line has a query id, but {self.counts_file.name} also gives the queries; "
                "remove one of the two"
            )
        if has_id:
            query = tokens.pop(0)[4:]
            if not _QUERY_ID.fullmatch(query.decode(errors="surrogateescape")):
                return (
                    f"the query id {read.quoted(query)} is not a text of 1 to 100 characters "
                    "without spaces in UTF-8"
                )
        minimum, maximum = self.minimum, self.limit + self.minimum - 1
        for token in tokens:
            number, colon, value = token.partition(b":")
            feature = int(number) if re.fullmatch(rb"[0-9]{1,18}", number) else -1
            text = value.decode("latin-1")
            if not colon or not minimum <= feature <= maximum:
                remedy = "list features once and in order, or pass n_features for larger numbers"
                if feature == 0:
                    remedy = "if numbers start at 0, set zero_based = true"
                return (
                    f"{read.quoted(token)} is not feature:value of a feature from {minimum} to "
                    f"{maximum}; {remedy}"
                )
            if re.search(_NULL, text):
                if not self.nulls:
                    return (
                        f"the value of feature {feature} is missing ({text}); {read.MISSING_REMEDY}"
                    )
            elif not re.search(_NUMBER, text) or abs(float(text)) > self._largest:
                return (
                    f"the value {read.quoted(value)} of feature {feature} is not a finite number "
                    f"of {8 * self.dtype.itemsize} bits, or an integer beyond 2^53"
                )
            minimum = feature + 1
        return "the line is not a document"


def _line_ends(text: bytes) -> int:
    n_returns = text.count(b"\r")
    return text.count(b"\n") + (n_returns and n_returns - text.count(b"\r\n"))


def files_beside(path: Path, *endings: str) -> list[Path]:
    """Return the files with the counts and weights of `path` that are there, see `load_letor`."""
    unpacked = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    names = [unpacked.name + ending for ending in endings or (".query", ".group", ".weight")]
    return list(filter(Path.is_file, map(unpacked.with_name, names)))


def _numbers_beside(path: Path, what: str) -> Vector:
    """Return the numbers in a file beside a LETOR file, all positive."""
    lines = "".join(line for _, line in read.text_lines(path)).rstrip().splitlines()
    for number, line in enumerate(lines, start=1):
        if not re.search(_NUMBER, line.strip(" \t")) or not 0 < float(line) < float("inf"):
            raise ValueError(f"{path}, line {number}: {read.quoted(line)} is not {what}")
    return np.array(lines, float)

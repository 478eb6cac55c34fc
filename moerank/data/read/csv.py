"""CSV files, read by pyarrow.

pyarrow reads a file block by block. A file that it refuses, or in which it would let pass a stray quote or a value that
is no number, is read value by value: that names the line and the column of the first mistake.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np
from numpy.typing import DTypeLike

from moerank.arrays import Array
from moerank.data.read.columns import (
    MISSING_REMEDY,
    MOST_LABEL,
    Columns,
    QueryRuns,
    Table,
    check_size,
    choose_columns,
    empty_table,
    narrowed,
    wrong_labels,
)
from moerank.data.read.files import report_reading
from moerank.files import open_regular

if TYPE_CHECKING:
    from pyarrow.csv import CSVStreamingReader, InvalidRow

__all__ = ["MISSING", "column_names", "read_table"]

MISSING = ("", "NA", "na", "N/A", "n/a", "NULL", "Null", "null", "NaN", "NAN", "nan", "None", "none")
"""Words for a missing value."""

SEPARATORS = ",;\t"
BLOCK = 2**24
"""Bytes that are read together."""

SURVEYED = 0.1
"""Share of the time, about, after which the lines of a file have been counted."""

_NUMBER = re.compile(r"[ \t\n\r\f\v]*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\n\r\f\v]*")


class _NotPlainError(ValueError):
    """The file holds more than plain numbers, or a mistake."""


def read_table(
    path: Path, label: str, query: str, features: list[str] | None, *, dtype: DTypeLike, missing: bool
) -> Table:
    """Read a CSV file; `missing` says whether a value may be missing. The arguments are those of `load_table`."""
    import pyarrow

    names, separator = _header(path, [label, query])
    columns = choose_columns(path, names, label, query, features)
    report_reading(path, 0.0)
    n_lines, plain = _survey(path, separator, columns, np.dtype(dtype).itemsize)
    try:
        if not plain:
            raise _NotPlainError
        table = _read_blocks(path, separator, names, columns, n_lines, dtype, missing=missing)
    except (_NotPlainError, pyarrow.ArrowException):
        table = _read_values(path, separator, names, columns, dtype, missing=missing)
    report_reading(path, 1.0)
    return table


def column_names(path: Path, needed: Iterable[str] = ()) -> list[str]:
    """Return the names of the columns; `needed` are known to be among them."""
    return _header(path, needed)[0]


def _header(path: Path, needed: Iterable[str]) -> tuple[list[str], str]:
    """Return the names of the columns and their separator.

    That is the comma, semicolon or tab at which the first line holds all needed names, else the most names.
    """
    needed = set(needed)
    with _opened(path) as file:
        first = next(_lines(file), "")
        headers = {sign: _split(first, sign) for sign in SEPARATORS}
    separator = max(SEPARATORS, key=lambda sign: (needed <= set(headers[sign]), len(headers[sign])))
    header = headers[separator]
    if not any(header):
        raise ValueError(f"{path}: the first line must be a header with the names of all columns")
    for number, name in enumerate(header):
        if name in header[:number]:
            raise ValueError(f"{path}: the header names the column {name!r} twice; give the columns distinct names")
    return header, separator


def _split(line: str, separator: str) -> list[str]:
    """Return the fields of a line; none if quotes stand where they cannot with this separator."""
    try:
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        return []


def _survey(path: Path, separator: str, columns: Columns, itemsize: int) -> tuple[int, bool]:
    """Return the number of lines, and whether all quotes enclose whole fields; refuse what is no text.

    The number is an upper bound of the number of rows, by which a table beyond the limit on memory is refused.
    """
    sign = re.escape(separator.encode())
    quoted = re.compile(rb'(?:(?<=[\r\n%b])|\A)"(?:[^"]|"")*"(?=[\r\n%b]|\Z)' % (sign, sign))
    n_lines, plain = 1, True
    with _opened(path) as file:
        while lines := file.readlines(BLOCK):
            block = b"".join(lines)
            if b"\0" in block:
                raise ValueError(f"{path}: a zero byte; the file is no text, or is damaged")
            block.decode()
            n_lines += block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
            plain = plain and (b'"' not in block or b'"' not in quoted.sub(b"", block.removeprefix(b"\xef\xbb\xbf")))
            if b'"' not in block:  # line ends within quotes would be counted, too
                check_size(path, n_lines - 2, len(columns.features), itemsize)
    report_reading(path, SURVEYED)
    return n_lines, plain


def _read_blocks(
    path: Path, separator: str, names: list[str], columns: Columns, n_lines: int, dtype: DTypeLike, *, missing: bool
) -> Table:
    """Read all rows by pyarrow; raise `_NotPlainError` for a value that is not as it should be."""
    X, y = empty_table(n_lines, len(columns.features), dtype), np.empty(n_lines, np.int64)
    queries, n_rows = QueryRuns(path, columns.query), 0
    with _opened(path) as file, _arrow_reader(file, separator, columns) as reader:
        if reader.schema.names != list(columns.all):
            raise _NotPlainError
        for batch in reader:
            begin, n_rows = n_rows, n_rows + batch.num_rows
            labels, ids, *values = batch.columns
            if labels.null_count or len(wrong_labels(labels.to_numpy())):
                raise _NotPlainError
            y[begin:n_rows] = labels.to_numpy()
            texts = ids.to_numpy(zero_copy_only=False)
            if (texts == "").any():
                raise _NotPlainError
            try:
                queries.add(texts)
            except ValueError:
                raise _NotPlainError from None  # the line is wanted, not the row
            for feature, column in enumerate(values):
                numbers = column.to_numpy(zero_copy_only=False)
                target = X[begin:n_rows, feature : feature + 1]
                if np.isnan(numbers).sum() != column.null_count or (column.null_count and not missing):
                    raise _NotPlainError
                if narrowed(numbers[:, None], target) is not None:
                    raise _NotPlainError
            report_reading(path, min(SURVEYED + (1 - SURVEYED) * n_rows / n_lines, 0.999))
    if n_rows == 0:
        raise _NotPlainError
    return Table(_first_rows(X, n_rows), y[:n_rows], queries.rows(), columns.features)


def _arrow_reader(file: BinaryIO, separator: str, columns: Columns) -> CSVStreamingReader:
    """Return pyarrow's reader of label, query and features, in this order."""
    import pyarrow as pa
    import pyarrow.csv

    def on_invalid(row: InvalidRow) -> str:
        return "skip" if row.actual_columns == 1 and not row.text.strip(" \t") else "error"

    kinds = dict.fromkeys(columns.all, pa.float64()) | {columns.query: pa.string()}
    return pa.csv.open_csv(
        file,
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=BLOCK),
        parse_options=pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=on_invalid),
        convert_options=pa.csv.ConvertOptions(
            column_types=kinds, include_columns=list(columns.all), null_values=MISSING, strings_can_be_null=False
        ),
    )


def _first_rows(X: Array, n_rows: int) -> Array:
    """Return the first rows of a table, contiguous in its own order."""
    return X if len(X) == n_rows else np.array(X[:n_rows], order="F" if X.flags.f_contiguous else "C")


def _read_values(
    path: Path, separator: str, names: list[str], columns: Columns, dtype: DTypeLike, *, missing: bool
) -> Table:
    """Read all rows value by value; raise a ValueError that names the line and the column of the first mistake."""
    label, query, *features = (names.index(name) for name in columns.all)
    largest, itemsize = float(np.finfo(np.dtype(dtype)).max), np.dtype(dtype).itemsize
    labels, values, ids = array("q"), array("d"), list[str]()
    finished: set[str] = set()
    with _opened(path) as file:
        reader = csv.reader(_lines(file), delimiter=separator, strict=True)
        next(reader)
        for fields in reader:
            if len(fields) == 0 or (len(fields) == 1 and fields[0] != "" and not fields[0].strip(" \t")):
                continue
            where = f"{path}, line {reader.line_num}: "
            if len(fields) != len(names):
                raise ValueError(
                    f"{where}{len(fields)} fields, but the header names {len(names)} columns; "
                    "correct the line, or quote fields that hold the separator"
                )
            labels.append(_label(fields[label], columns.label, where))
            _check_query(fields[query], ids[-1] if ids else None, finished, columns.query, where)
            ids.append(fields[query])
            for place in features:
                values.append(_value(fields[place], names[place], largest, where, missing=missing))
            if len(ids) % 2**16 == 0:
                check_size(path, len(ids), len(features), itemsize)
    if not ids:
        raise ValueError(f"{path}: the file holds no row below its header")
    X = empty_table(len(ids), len(features), dtype)
    X[...] = np.frombuffer(values).reshape(X.shape)
    queries = QueryRuns(path, columns.query)
    queries.add(np.array(ids, object))
    return Table(X, np.frombuffer(labels, np.int64), queries.rows(), columns.features)


def _label(text: str, column: str, where: str) -> int:
    value = float(text) if _NUMBER.fullmatch(text) else -1.0
    if not (0 <= value <= MOST_LABEL and value == int(value)):
        raise ValueError(
            f"{where}the label {_quoted(text)} in the column {column!r} is not an integer from 0 (irrelevant) to "
            f"{MOST_LABEL:,}"
        )
    return int(value)


def _check_query(text: str, before: str | None, finished: set[str], column: str, where: str) -> None:
    """Refuse an empty query id, and a query that begins again."""
    if not text:
        raise ValueError(f"{where}no query id in the column {column!r}; every row needs one")
    if text != before:
        if text in finished:
            raise ValueError(
                f"{where}query {_quoted(text)} begins again; sort the rows by the column {column!r}, so that those of "
                "a query are contiguous"
            )
        finished.add(text)


def _value(text: str, column: str, largest: float, where: str, *, missing: bool) -> float:
    if text in MISSING:
        if missing:
            return np.nan
        raise ValueError(f"{where}the value of {column!r} is missing ({_quoted(text)}); {MISSING_REMEDY}")
    if not _NUMBER.fullmatch(text):
        raise ValueError(
            f"{where}the value {_quoted(text)} of {column!r} is not a number; list the columns that are features, or "
            "make numbers of them"
        )
    value = float(text)
    if not isfinite(value) or abs(value) > largest:
        raise ValueError(
            f"{where}the value {_quoted(text)} of {column!r} is too large for the precision of the features"
        )
    return value


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 30 else text[:29] + "…")


def _lines(file: BinaryIO) -> TextIOWrapper:
    """Return the lines of a file as `csv` wants them."""
    return TextIOWrapper(file, "utf-8-sig", newline="")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a CSV file, which may be compressed as .gz, and put what is wrong with it into a sentence."""
    try:
        with open_regular(path, through_links=True) as stored:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=stored) as file:
                    yield cast("BinaryIO", file)
            else:
                yield stored
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text in UTF-8; write it anew in this encoding") from None
    except csv.Error as error:
        raise ValueError(f"{path}: not a CSV file: {error}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: the .gz file is truncated or damaged ({error}); compress it again") from None

"""CSV files as ranking data: pandas reads the numbers, and what it lets pass in silence is refused here first.

Before pandas reads a file, the fields of each row are counted, so that no row is filled up or cut; that needs no memory
and says how much the table will take. What pandas stumbles over is looked for value by value, which tells the line.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

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
from moerank.systems import open_regular

__all__ = ["MISSING", "csv_header", "read_csv_table"]

MISSING = ("", "NA", "na", "N/A", "n/a", "NULL", "Null", "null", "NaN", "NAN", "nan", "None", "none")
"""How files write that a value is missing."""

SEPARATORS = ",;\t"
BLOCK = 2**24
"""Bytes that are looked at together."""

WORDS = (b"True", b"TRUE", b"true", b"False", b"FALSE", b"false")

LOOKED_AT, COUNTED = 0.03, 0.1
"""Share of the time, about, that is over when a file has been looked at, and when its rows have been counted."""

VALUES = 2**21
"""Values that pandas reads together."""

_NUMBER = re.compile(r"[ \t\n\r\f\v]*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\n\r\f\v]*")


def read_csv_table(
    path: Path,
    label: str,
    query: str,
    features: list[str] | None,
    *,
    dtype: DTypeLike,
    missing: bool,
) -> Table:
    """Read a CSV file; `missing` says whether a value may be missing. The arguments are those of `load_table`."""
    names, separator = csv_header(path, [label, query])
    columns = choose_columns(path, names, label, query, features)
    report_reading(path, 0.0)
    quoted, words = _traits(path)
    report_reading(path, LOOKED_AT)
    counts = _counts_by_rows if quoted else _counts_by_signs
    with _opened(path) as file:
        n_rows = _checked_count(path, counts(file, separator), columns, len(names), np.dtype(dtype).itemsize)
    report_reading(path, COUNTED)
    places = [names.index(name) for name in columns.all]
    X = empty_table(n_rows, len(columns.features), dtype)
    y = np.empty(n_rows, np.int64)
    queries = QueryRuns(path, query)
    end = 0
    if words:
        _refuse_first_mistake(path, separator, names, columns, dtype, missing=missing)
    try:
        for labels, ids, values in _chunks(path, separator, places, len(names)):
            begin, end = end, end + len(values)
            if len(wrong_labels(labels)) or (ids == "").any():
                raise ValueError("a label or a query is none")
            if narrowed(values, X[begin:end]) is not None or (not missing and np.isnan(values).any()):
                raise ValueError("a value is infinite or missing")
            y[begin:end] = labels
            queries.add(ids)
            report_reading(path, min(COUNTED + (1 - COUNTED) * end / n_rows, 0.999))
    except (ValueError, OverflowError) as error:
        _refuse_first_mistake(path, separator, names, columns, dtype, missing=missing)
        raise ValueError(f"{path}: cannot be read as a table of numbers ({error})") from None
    if end != n_rows:
        raise ValueError(f"{path}: it has {n_rows:,} rows, but only {end:,} can be read; write the file anew")
    report_reading(path, 1.0)
    return Table(X, y, queries.rows(), columns.features)


def csv_header(path: Path, needed: Iterable[str] = ()) -> tuple[list[str], str]:
    """Return the names of the columns and what separates them.

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


def _checked_count(
    path: Path, counts: Iterable[tuple[int, int]], columns: Columns, n_fields: int, itemsize: int
) -> int:
    """Return the number of rows; refuse one with another number of fields than the header, and too large a table.

    `counts` are the line and the number of fields of each row.
    """
    n_features, n_rows = len(columns.features), 0
    for number, n_found in counts:
        if n_found != n_fields:
            raise ValueError(
                f"{path}, line {number}: {n_found} fields, but the header names {n_fields} columns; "
                "correct the line, or quote fields that hold the separator"
            )
        n_rows += 1
        if n_rows % 2**16 == 0:
            check_size(path, n_rows, n_features, itemsize)
    check_size(path, n_rows, n_features, itemsize)
    if n_rows == 0:
        raise ValueError(f"{path}: the file holds no row below its header")
    return n_rows


def _traits(path: Path) -> tuple[bool, bool]:
    """Return whether a file has quotes, and whether it has a word that pandas takes for the number 0 or 1."""
    quoted = words = False
    with _opened(path) as file:
        while lines := file.readlines(BLOCK):
            block = b"".join(lines)
            if b"\0" in block:
                raise ValueError(f"{path}: a zero byte; the file is no text, or is damaged")
            block.decode()
            quoted = quoted or b'"' in block
            words = words or any(word in block for word in WORDS)
    return quoted, words


def _counts_by_signs(file: BinaryIO, separator: str) -> Iterator[tuple[int, int]]:
    """Yield the number of the line of each row below the header, and how many fields it has: there are no quotes."""
    sign, number = separator.encode(), 0
    blank = b" \t".replace(sign, b"")
    while lines := file.readlines(BLOCK):
        for line in b"".join(lines).splitlines():
            number += 1
            if number > 1 and line.strip(blank):
                yield number, line.count(sign) + 1


def _counts_by_rows(file: BinaryIO, separator: str) -> Iterator[tuple[int, int]]:
    """Yield the number of the last line of each row below the header, and how many fields it has."""
    reader = csv.reader(_lines(file), delimiter=separator, strict=True)
    next(reader)
    for fields in reader:
        if not _is_blank(fields):
            yield reader.line_num, len(fields)


def _is_blank(fields: list[str]) -> bool:
    return len(fields) == 0 or (len(fields) == 1 and fields[0] != "" and not fields[0].strip(" \t"))


def _chunks(
    path: Path, separator: str, places: list[int], n_fields: int
) -> Iterator[tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64]]]:
    """Yield labels, query ids and feature values of some rows after the other."""
    import pandas as pd  # slow to import

    label, query, *features = places
    # Before 3.1 pandas rounds correctly on request only, and later on it deprecates the request.
    exact = {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
    with (
        _opened(path) as file,
        pd.read_csv(
            file,
            sep=separator,
            header=0,
            names=range(n_fields),
            index_col=False,
            usecols=places,
            dtype={query: str, label: np.float64, **dict.fromkeys(features, np.float64)},
            keep_default_na=False,
            na_values=dict.fromkeys(features, MISSING),
            encoding="utf-8",
            chunksize=max(1, VALUES // n_fields),
            **exact,
        ) as reader,
    ):
        for chunk in reader:
            yield chunk[label].to_numpy(), chunk[query].to_numpy(object), chunk[features].to_numpy()


def _refuse_first_mistake(
    path: Path, separator: str, names: list[str], columns: Columns, dtype: DTypeLike, *, missing: bool
) -> None:
    """Raise a ValueError that names the line and the column of the first value that cannot be read."""
    label, query, *features = (names.index(name) for name in columns.all)
    finished: set[str] = set()
    current: str | None = None
    largest = float(np.finfo(np.dtype(dtype)).max)
    with _opened(path) as file:
        reader = csv.reader(_lines(file), delimiter=separator, strict=True)
        next(reader)
        for fields in reader:
            if _is_blank(fields):
                continue
            where = f"{path}, line {reader.line_num}: "
            if not _is_label(fields[label]):
                raise ValueError(
                    f"{where}the label {_quoted(fields[label])} in the column {columns.label!r} is not an integer from "
                    f"0 (irrelevant) to {MOST_LABEL:,}"
                )
            if not fields[query]:
                raise ValueError(f"{where}no query id in the column {columns.query!r}; every row needs one")
            if fields[query] != current:
                if fields[query] in finished:
                    raise ValueError(
                        f"{where}query {_quoted(fields[query])} begins again; sort the rows by the column "
                        f"{columns.query!r}, so that those of a query are contiguous"
                    )
                current = fields[query]
                finished.add(current)
            for place in features:
                if mistake := _mistake(fields[place], largest, missing=missing):
                    raise ValueError(f"{where}{mistake.format(_quoted(fields[place]), repr(names[place]))}")


def _is_label(text: str) -> bool:
    if not _NUMBER.fullmatch(text):
        return False
    value = float(text)
    return 0 <= value <= MOST_LABEL and value == int(value)


def _mistake(text: str, largest: float, *, missing: bool) -> str | None:
    """Say what is wrong with a value of a feature, if anything; {0} stands for the value, {1} for the column."""
    if text in MISSING:
        if missing:
            return None
        return "the value of {1} is missing ({0}); " + MISSING_REMEDY
    if not _NUMBER.fullmatch(text):
        return "the value {0} of {1} is not a number; list the columns that are features, or make numbers of them"
    if abs(float(text)) > largest:
        return "the value {0} of {1} is too large for the precision of the features"
    return None


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 30 else text[:29] + "…")


def _lines(file: BinaryIO) -> TextIOWrapper:
    """Return the lines of a file as `csv` wants them."""
    return TextIOWrapper(file, "utf-8-sig", newline="")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a CSV file, which may be compressed as .gz, and say in a sentence what it is if no table."""
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

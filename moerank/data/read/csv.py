"""Reader of CSV files, plain or compressed as ``.gz``.

pyarrow takes the text apart. When it cannot read a value, a second pass over the file names the line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import RawIOBase, TextIOWrapper
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import DTypeLike

from moerank.data.read.files import report_reading
from moerank.data.read.table import MISSING_REMEDY, MOST_LABEL, Columns, begins_again
from moerank.files import open_regular

MISSING = ("", "NA", "na", "N/A", "n/a", "NULL", "Null", "null", "NaN", "NAN", "nan", "None", "none")
"""How files write that a value is missing."""

SEPARATORS = ",;\t"
BLOCK = 2**22
"""Bytes that are read together; a row may not be longer."""

_NUMBER = re.compile(r"[ \t]*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*")


def csv_names(path: Path, needed: Sequence[str] = ()) -> list[str]:
    """Return the names of the columns; `needed` are known to be among them."""
    return _header(path, needed)[0]


def read_csv(path: Path, columns: Sequence[str], texts: Iterable[str] = ()) -> Iterator[pa.RecordBatch]:
    """Yield some columns block by block, as numbers or as texts; null is a missing number or an empty text."""
    names, separator = _header(path, columns)
    texts = set(texts)
    kinds = {name: pa.string() if name in texts else pa.float64() for name in columns}
    with opened(path) as (file, stored):
        watched = _Watched(file)
        with pa.csv.open_csv(
            pa.PythonFile(watched, mode="r"),
            read_options=pa.csv.ReadOptions(column_names=names, skip_rows=1, block_size=BLOCK),
            parse_options=pa.csv.ParseOptions(
                delimiter=separator, newlines_in_values=True, invalid_row_handler=_skip_blank
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=kinds, include_columns=list(columns), null_values=MISSING, strings_can_be_null=False
            ),
        ) as reader:
            n_bytes = max(path.stat().st_size, 1)
            for batch in reader:
                for name in texts:  # null in the place of empty ones
                    place, column = batch.schema.get_field_index(name), batch.column(name)
                    batch = batch.set_column(place, name, pc.if_else(pc.equal(column, ""), None, column))
                yield batch
                at = os.lseek(stored.fileno(), 0, os.SEEK_CUR)  # pyarrow's thread reads on; `tell` would go back
                report_reading(path, min(at / n_bytes, 1.0))
    if watched.zero:
        raise ValueError(f"{path}: a zero byte; the file is no text, or is damaged")
    if watched.quoted and texts:  # pyarrow takes a text after a quote, and a quote that does not end
        with opened(path) as (file, _), text_lines(file) as lines:
            for _ in csv.reader(lines, delimiter=separator, strict=True):
                pass


def _skip_blank(row: pa.csv.InvalidRow) -> str:
    """Skip a row of blanks; refuse any other with too many or too few fields."""
    return "skip" if row.actual_columns == 1 and not row.text.strip(" \t") else "error"


class _Watched(RawIOBase):
    """A file that notes quotes and zero bytes as it is read, and refuses bytes that are not UTF-8."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.quoted = self.zero = False
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes."""
        block = self._file.read(-1 if size is None else size)
        self.quoted = self.quoted or b'"' in block
        self.zero = self.zero or b"\0" in block
        self._decoder.decode(block, final=not block)
        return block

    def readable(self) -> bool:
        """Return True."""
        return True


def _header(path: Path, needed: Sequence[str]) -> tuple[list[str], str]:
    """Return the names of the columns and the separator: that with all needed names, else with the most names."""
    with opened(path) as (file, _), text_lines(file) as lines:
        first = next(lines, "")
        headers = {sign: _split(first, sign) for sign in SEPARATORS}
    separator = max(SEPARATORS, key=lambda sign: (set(needed) <= set(headers[sign]), len(headers[sign])))
    header = headers[separator]
    if not any(header):
        raise ValueError(f"{path}: the first line must be a header with the names of all columns")
    return header, separator


def _split(line: str, separator: str) -> list[str]:
    """Return the fields of a line; none if quotes stand where they cannot with this separator."""
    try:
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        return []


def refuse_csv(path: Path, columns: Columns, dtype: DTypeLike, *, missing: bool) -> None:
    """Raise a ValueError with line and column of the first value that cannot be read, or must not be missing."""
    names, separator = _header(path, columns.all)
    label, query, *features = (names.index(name) for name in columns.all)
    finished: set[str] = set()
    current: str | None = None
    largest = float(np.finfo(np.dtype(dtype)).max)
    with opened(path) as (file, _), text_lines(file) as lines:
        reader = csv.reader(lines, delimiter=separator, strict=True)
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
            if any("\0" in field for field in fields):
                raise ValueError(f"{path}: a zero byte; the file is no text, or is damaged")
            grade = float(fields[label]) if _NUMBER.fullmatch(fields[label]) else -1.0
            if not 0 <= grade <= MOST_LABEL or not grade.is_integer():
                raise ValueError(
                    f"{where}the label {_quoted(fields[label])} in the column {columns.label!r} is not an integer from "
                    f"0 (irrelevant) to {MOST_LABEL:,}"
                )
            if not fields[query]:
                raise ValueError(f"{where}no query id in the column {columns.query!r}; every row needs one")
            if fields[query] != current:
                if fields[query] in finished:
                    raise ValueError(f"{where}query {_quoted(fields[query])} {begins_again(columns.query)}")
                current = fields[query]
                finished.add(current)
            for place in features:
                if mistake := _mistake(names[place], fields[place], largest, missing=missing):
                    raise ValueError(where + mistake)
    if not finished:
        raise ValueError(f"{path}: the file holds no row below its header")


def _mistake(name: str, text: str, largest: float, *, missing: bool) -> str | None:
    """Say what is wrong with a value of the feature of this name, if anything."""
    if text in MISSING:
        return None if missing else f"the value of {name!r} is missing ({_quoted(text)}); {MISSING_REMEDY}"
    if not _NUMBER.fullmatch(text):
        return f"the value {_quoted(text)} of {name!r} is not a number; {REMEDIES[kind_of(text)]}, {LEFT_OUT}"
    if abs(float(text)) > largest:
        return f"the value {_quoted(text)} of {name!r} is too large for the precision of the features"
    return None


KINDS = {
    "numbers": _NUMBER,
    "decimal commas": re.compile(r"[ \t]*[+-]?[0-9]*,[0-9]+[ \t]*"),
    "switches": re.compile(r"(?i)[ \t]*(?:true|false|yes|no)[ \t]*"),
    "dates": re.compile(r"[ \t]*[0-9]{4}-[0-9]{2}-[0-9]{2}.*|[ \t]*[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}.*"),
    "texts": re.compile(r"(?s).*"),
}
"""Patterns of the values of columns, the most particular first."""

REMEDIES = {
    "decimal commas": 'write a point, as pandas.read_csv(path, sep=";", decimal=",").to_csv(path, index=False) does',
    "switches": "write 1 for true and 0 for false",
    "dates": "write a number of days",
    "texts": "make numbers of it",
}

LEFT_OUT = "or leave the column out: --exclude, exclude= in Python, or exclude = in [data] of a problem file"


def kind_of(*texts: str) -> str:
    """Return which of `KINDS` all these texts are."""
    return next(kind for kind, pattern in KINDS.items() if all(map(pattern.fullmatch, texts)))


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 30 else text[:29] + "…")


@contextmanager
def text_lines(file: BinaryIO) -> Iterator[TextIOWrapper]:
    """Yield the lines of a file as `csv` wants them; the file stays open."""
    lines = TextIOWrapper(file, "utf-8-sig", newline="")
    try:
        yield lines
    finally:
        lines.detach()


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a CSV file, and refuse what is none in a sentence; return its text, and its bytes as they are stored."""
    try:
        with open_regular(path) as stored:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=stored) as file:
                    yield cast("BinaryIO", file), stored
            else:
                yield stored, stored
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text in UTF-8; write it anew in this encoding") from None
    except csv.Error as error:
        raise ValueError(f"{path}: not a CSV file: {error}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: the .gz file is truncated or damaged ({error}); compress it again") from None

"""CSV files: their header, their rows with line numbers, and columns of numbers and texts, block by block.

pyarrow reads a file if it certainly reads it as Python's strict reader would. Else the strict reader does, and names
the line of what it refuses.
"""

import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from moerank.arrays import Mask
from moerank.data import read

# Spellings of a missing value in CSV files, and of 1 and 0 in columns without other values.
MISSING = [
    "",
    *["NA", "na", "N/A", "n/a", "NULL", "Null", "null", "NaN", "NAN", "nan", "None", "none"],
]
TRUE, FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]

HEAD = 256  # lines that say which columns hold true and false

SEPARATORS = ",;\t"

# Lines of a file and rows of a table, with the number of the line on which they end.
Lines: TypeAlias = Iterator[tuple[int, str]]
Rows: TypeAlias = Iterator[tuple[int, list[str]]]

NUMBER = re.compile(r"[ \t]*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*")

NOT_NUMBERS = (
    "turn it into numbers, or leave the column out: exclude= in Python, or in [data] of a "
    "problem file"
)


def csv_table(
    path: Path, lines: Lines, needed: Sequence[str] = (), *, skip_spaces: bool = False
) -> tuple[Rows, str]:
    """Return the rows of a CSV file and the separator, which yields all needed names, else the most names.

    `skip_spaces` ignores spaces behind a separator.
    """
    start = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    names = {sign: _fields(start[1], sign) for sign in SEPARATORS}
    separator = max(
        SEPARATORS, key=lambda sign: (set(needed) <= set(names[sign]), len(names[sign]))
    )
    return _rows(path, chain([start], lines), separator, start[0] - 1, skip_spaces), separator


def _rows(path: Path, lines: Lines, separator: str, n_before: int, skip_spaces: bool) -> Rows:
    """Yield the line and the fields of each row that is not blank; refuse another number of fields than the header's.

    `n_before` lines precede those given.
    """
    texts = (line for _, line in lines)
    rows = csv.reader(texts, delimiter=separator, strict=True, skipinitialspace=skip_spaces)
    width = 0
    try:
        for fields in rows:
            is_blank = len(fields) == 1 and fields[0] and not fields[0].strip(" \t")
            if not fields or is_blank:
                continue
            width = width or len(fields)
            line = n_before + rows.line_num
            if len(fields) != width:
                raise ValueError(
                    f"{path}, line {line}: {len(fields)} fields, but the header names {width} "
                    "columns; quote fields with separators"
                )
            yield line, fields
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {n_before + rows.line_num}: not a CSV file: {error}"
        ) from None


def _fields(line: str, separator: str) -> list[str]:
    with suppress(csv.Error):  # such as more than 128 KiB without this separator
        return next(csv.reader([line], delimiter=separator), [])
    return []


def parsed_numbers(cells: pa.Array) -> tuple[pa.Array, Mask, Mask]:
    """Return texts as numbers, null for what is missing; which are true or false; and which are no numbers."""
    missing = pc.or_(
        pc.is_in(cells, pa.array(MISSING)),
        pc.match_substring_regex(cells, r"(?i)^[ \t]*[+-]?nan[ \t]*$"),
    )
    true, false = (pc.is_in(cells, pa.array(spellings)) for spellings in (TRUE, FALSE))
    boolean = pc.or_(true, false)
    is_number = pc.match_substring_regex(cells, f"^(?:{NUMBER.pattern})$")
    digits = pc.if_else(is_number, pc.utf8_trim(cells, " \t"), None)
    digits = pc.if_else(true, "1", pc.if_else(false, "0", digits))
    is_wrong = pc.invert(pc.or_(pc.or_(missing, boolean), is_number))
    return digits.cast(pa.float64()), np.array(boolean), np.array(is_wrong)


def csv_header(path: Path, needed: Sequence[str]) -> list[str]:
    """Return the names of the columns of a CSV file."""
    rows, _ = csv_table(path, read.text_lines(path), needed)
    _, header = next(rows, (0, []))
    has_no_name = all(name in MISSING or NUMBER.fullmatch(name) for name in header)
    if has_no_name or re.search(r"[\r\n]", "".join(header)):
        raise ValueError(
            f"{path}: the first line must be a header with the names of all columns; add one"
        )
    return header


def csv_lines(path: Path, columns: Sequence[str], rows: Sequence[int]) -> list[int]:
    """Return the lines on which rows end."""
    table, _ = csv_table(path, read.text_lines(path), columns)
    numbered = enumerate(islice(table, 1, rows[-1] + 2))
    return [line for row, (line, _) in numbered if row in rows]


def read_csv(
    path: Path, columns: Sequence[str], texts: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield some columns block by block, as numbers or as texts; null is a missing number."""
    n_rows, texts = 0, frozenset(texts)
    try:
        for batch in _read_by_arrow(path, columns, texts):
            yield batch
            n_rows += batch.num_rows
    except pa.ArrowInvalid:
        for batch in _read_strictly(path, columns, texts):
            n_skipped = min(n_rows, batch.num_rows)
            yield batch.slice(n_skipped)
            n_rows -= n_skipped


def _read_by_arrow(path: Path, columns: Sequence[str], texts: Set[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns by pyarrow, with an ArrowInvalid for what `_read_strictly` might read in another way."""
    lines = read.text_lines(path)
    rows, separator = csv_table(path, lines, columns)
    _, names = next(rows)
    if len(set(names)) < len(names):
        raise pa.ArrowInvalid("two columns with the same name")
    kinds = {name: pa.string() if name in texts else pa.float64() for name in columns}
    schema = pa.schema(kinds.items())
    block = list(islice(lines, HEAD))
    for column in _parsed(block, separator, names, columns, {}).schema:
        if column.type == pa.bool_() and column.name not in texts:
            kinds[column.name] = column.type
    size = max(1, read.CELLS_AT_A_TIME // len(names))
    block += islice(lines, size)
    while block:
        table = _parsed(block, separator, names, columns, kinds).cast(schema)
        for column in table.drop_columns([*texts]):
            if pc.all(pc.is_finite(column)).as_py() is False:
                raise pa.ArrowInvalid("a number is not finite")
        yield from table.to_batches()
        block = list(islice(lines, size))


def _parsed(
    block: Sequence[tuple[int, str]],
    separator: str,
    names: Sequence[str],
    columns: Sequence[str],
    kinds: Mapping[str, pa.DataType],
) -> pa.Table:
    """Return columns of some lines, with these types, else with those that pyarrow infers."""
    content = "".join(line for _, line in block)
    parts = content.split('"')
    outside = parts[::2]  # of quotes; empty between two of them that stand for one
    ends = ("", *separator, "\r", "\n")
    is_opened = all(part[-1:] in ends for part in outside[:-1])
    is_closed = all(part[:1] in ends for part in outside[1:])
    if len(parts) % 2 == 0 or not is_opened or not is_closed:
        raise pa.ArrowInvalid("a quote is neither the first nor the last character of a field")

    def skip_blank(row: pa_csv.InvalidRow) -> str:
        return "error" if row.actual_columns > 1 or row.text.strip(" \t") else "skip"

    return pa_csv.read_csv(
        pa.BufferReader(content.encode()),
        pa_csv.ReadOptions(use_threads=False, block_size=2**30, column_names=names),
        pa_csv.ParseOptions(
            delimiter=separator, newlines_in_values=True, invalid_row_handler=skip_blank
        ),
        pa_csv.ConvertOptions(
            include_columns=columns,
            column_types=kinds,
            null_values=MISSING,
            true_values=TRUE,
            false_values=FALSE,
        ),
    )


def _read_strictly(path: Path, columns: Sequence[str], texts: Set[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns from the rows of `csv_table`, and name the line of the first cell that is not a number."""
    rows, _ = csv_table(path, read.text_lines(path), columns)
    _, names = next(rows)
    is_switch: dict[str, bool] = {}  # whether a column holds true and false
    size = max(1, read.CELLS_AT_A_TIME // (4 * len(names)))  # texts are larger than numbers
    while part := list(islice(rows, size)):
        cells = dict(zip(names, zip(*(fields for _, fields in part), strict=True), strict=True))
        batch = {name: pa.array(cells[name], pa.string()) for name in columns}
        faults = []
        for index, name in enumerate(columns):
            if name in texts:
                continue
            batch[name], boolean, is_wrong = parsed_numbers(batch[name])
            present = np.asarray(batch[name].is_valid()) | is_wrong
            if present.any():
                is_switch.setdefault(name, boolean[present.argmax()])
                is_wrong |= present & (boolean != is_switch[name])
            faults += [(row, index) for row in np.flatnonzero(is_wrong)[:1]]
        for row, index in sorted(faults)[:1]:
            name = columns[index]
            kind = "true or false, as the others are" if is_switch[name] else "a number"
            cell = f"line {part[row][0]}: the value {read.quoted(cells[name][row])} of {name!r}"
            raise ValueError(f"{path}, {cell} is not {kind}; {NOT_NUMBERS}")
        yield pa.RecordBatch.from_pydict(batch)

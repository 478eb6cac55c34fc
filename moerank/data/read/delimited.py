"""CSV files: their header, their rows with line numbers, and columns of numbers and texts, block by block.

pyarrow reads the fields of a file as long as it certainly does so as Python's strict reader would. From there on the
strict reader does, and names the line of what it refuses.
"""

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from moerank.arrays import Mask
from moerank.data import read
from moerank.data.read import Lines, Rows

# Spellings of a missing value, of 1 and of 0 in CSV files.
MISSING = [
    "",
    *["NA", "na", "N/A", "n/a", "NULL", "Null", "null", "None", "none"],
    *["NaN", "NAN", "nan", "-nan"],
]
TRUE, FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]

SEPARATORS = ",;\t"

NUMBER = re.compile(rf"[ \t]*{read.NUMERAL}[ \t]*")

NOT_NUMBERS = (
    "turn it into numbers, or leave the column out: exclude= in Python, or in [data] of a "
    "problem file"
)


def csv_table(path: Path, lines: Lines) -> tuple[Rows, str]:
    """Return the rows of a CSV file and the separator, which yields the most names in the header."""
    start = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    separator = max(SEPARATORS, key=lambda sign: len(_fields(start[1], sign)))
    return _rows(path, chain([start], lines), separator, start[0] - 1), separator


def _rows(path: Path, lines: Lines, separator: str, n_before: int) -> Rows:
    """Yield the line and the fields of each row that is not blank; refuse another number of fields than the header's.

    `n_before` lines precede those given.
    """
    texts = (line for _, line in lines)
    rows = csv.reader(texts, delimiter=separator, strict=True)
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


def fault_of(cell: str) -> str:
    """Return why a cell is refused as a number."""
    return "an integer beyond 2^53" if re.fullmatch(r"\s*[+-]?[0-9]+\s*", cell) else "not a number"


def parsed_numbers(cells: pa.Array) -> tuple[pa.Array, Mask]:
    """Return texts as numbers, true as 1, false as 0 and null for what is missing; and which have a fault."""
    cells = pc.utf8_trim(cells, " \t")
    with suppress(pa.ArrowInvalid):
        numbers = cells.cast(pa.float64())
        if pc.all(pc.less(pc.abs(numbers), 2**53)).as_py():
            return numbers, np.zeros(len(cells), bool)
    for spellings, digit in ((TRUE, "1"), (FALSE, "0"), (MISSING, None)):
        cells = pc.if_else(pc.is_in(cells, pa.array(spellings)), digit, cells)
    is_number = pc.match_substring_regex(cells, f"^(?:{NUMBER.pattern})$")
    numbers = pc.if_else(is_number, cells, None).cast(pa.float64())
    return numbers, np.array(pc.invert(is_number).fill_null(False))


def csv_header(path: Path) -> list[str]:
    """Return the names of the columns of a CSV file."""
    rows, _ = csv_table(path, read.text_lines(path))
    _, header = next(rows, (0, []))
    has_no_name = all(name in MISSING or NUMBER.fullmatch(name) for name in header)
    if has_no_name or re.search(r"[\r\n]", "".join(header)):
        raise ValueError(
            f"{path}: the first line must be a header with the names of all columns; add one"
        )
    return header


def csv_lines(path: Path, rows: Sequence[int]) -> list[int]:
    """Return the lines on which rows end."""
    table, _ = csv_table(path, read.text_lines(path))
    numbered = enumerate(islice(table, 1, rows[-1] + 2))
    return [line for row, (line, _) in numbered if row in rows]


def read_csv(
    path: Path, columns: Sequence[str], texts: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield some columns block by block, as numbers or as texts; null is a missing number."""
    n_rows = 0
    for cells in _read_cells(path, columns):
        batch = dict(zip(columns, cells.columns, strict=True))
        for name in columns:
            if name in texts:
                continue
            batch[name], is_wrong = parsed_numbers(cells[name])
            if is_wrong.any():
                row = int(is_wrong.argmax())
                text = cells[name][row].as_py()
                fault = f"the value {read.quoted(text)} of {name!r} is {fault_of(text)}; "
                raise read.WrongRowError(n_rows + row, fault + NOT_NUMBERS)
        yield pa.RecordBatch.from_pydict(batch)
        n_rows += cells.num_rows


def _read_cells(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns of texts, by pyarrow up to the first block that it may read in another way than Python."""
    lines = read.text_lines(path)
    rows, separator = csv_table(path, lines)
    _, names = next(rows)
    size = max(1, read.CELLS_AT_A_TIME // (4 * len(names)))  # texts are larger than numbers
    n_rows = 0
    with suppress(pa.ArrowInvalid):
        while block := "".join(line for _, line in islice(lines, size)):
            table = _parsed(block, separator, names, columns)
            yield from table.to_batches()
            n_rows += len(table)
        return
    rows, _ = csv_table(path, read.text_lines(path))
    rows = islice(rows, 1 + n_rows, None)
    while part := [fields for _, fields in islice(rows, size)]:
        cells = dict(zip(names, zip(*part, strict=True), strict=True))
        yield pa.RecordBatch.from_pydict({name: pa.array(cells[name]) for name in columns})


def _parsed(block: str, separator: str, names: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Return columns of some lines as texts; a quote that is not closed in a strict way is an ArrowInvalid."""
    parts = block.split('"')
    ends = ("", *separator, "\r", "\n")
    if len(parts) % 2 == 0 or not all(part[:1] in ends for part in parts[2::2]):
        raise pa.ArrowInvalid("a quote is not the last character of a field")

    def skip_blank(row: pa_csv.InvalidRow) -> str:
        return "error" if row.actual_columns > 1 or row.text.strip(" \t") else "skip"

    return pa_csv.read_csv(
        pa.BufferReader(block.encode("utf-8-sig")),  # pyarrow skips one mark
        pa_csv.ReadOptions(use_threads=False, block_size=2**30, column_names=names),
        pa_csv.ParseOptions(
            delimiter=separator, newlines_in_values=True, invalid_row_handler=skip_blank
        ),
        pa_csv.ConvertOptions(
            include_columns=columns, column_types=dict.fromkeys(names, pa.string())
        ),
    )

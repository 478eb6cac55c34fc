r"""Shards of a file: runs of whole queries, each read without the rest of the file.

Shard i of n of a plain LETOR file begins with the first query that begins at byte i · size / n or later. A Parquet file
is cut by the rows of its queries. Other files are read as a whole before they are cut.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import DTypeLike

from moerank.data.missing import MissingRule
from moerank.data.ranking_data import RankingData
from moerank.data.read.columns import as_precision
from moerank.data.read.files import LONGEST_LINE, find_query_file, reader_of
from moerank.data.read.letor import load_letor
from moerank.data.read.letor_parser import parse_letor
from moerank.data.read.table import load_table, read_table, table_columns, table_offsets
from moerank.data.shards import parts_of, shard_ends

BYTES_BEFORE_CUT = 2**16
"""Bytes that are read before a cut to find the query of the line before it."""


def letor_shard(
    path: Path, number: int, n_shards: int, *, missing: MissingRule | None = None, dtype: DTypeLike = np.float64
) -> RankingData:
    r"""Read one of `n_shards` shards of a LETOR file, counted from 0; other arguments and errors as in `load_letor`.

    It has the features up to the largest number in the shard; see `widened`.
    """
    if path.suffix.lower() in (".gz", ".xz") or find_query_file(path) is not None:
        return parts_of(load_letor(path, missing=missing, dtype=dtype), n_shards)[number]
    with path.open("rb", buffering=0) as file:
        begin, end = (_cut(file, path, i, n_shards) for i in (number, number + 1))
        if begin == end:
            raise ValueError(f"{path}: shard {number + 1} of {n_shards} would have no query; take fewer shards")
        name = Path(f"{path}, from byte {begin:,} to {end:,}")
        window = cast(BinaryIO, _Window(file, begin, end))
        table = parse_letor(name, window, as_precision(dtype), nulls=missing is not None)
    return table.as_data(str(name), missing)


def table_shard(path: Path, number: int, n_shards: int, **reading: Any) -> RankingData:
    """Read a shard of a table; `reading` are arguments of `load_table`."""
    options = {name: reading[name] for name in ("missing", "dtype") if name in reading}
    columns = table_columns(path, **{role: name for role, name in reading.items() if role not in options})
    reader = reader_of(path)
    if reader is None or not reader.columnar or columns.further.keys() - {"documents"}:  # weights regard all rows
        return parts_of(load_table(path, **reading), n_shards)[number]
    offsets = table_offsets(path, columns.query)
    begin, end = offsets[shard_ends(offsets, n_shards)][number : number + 2].tolist()
    missing, dtype = options.get("missing"), options.get("dtype", np.float64)
    table = read_table(path, columns, dtype=dtype, missing=missing is not None, rows=(begin, end))
    return table.as_data(f"{path}, rows {begin + 1:,} to {end:,}", missing)


def _cut(file: BinaryIO, path: Path, number: int, n_shards: int) -> int:
    """Return the byte at which a shard begins; the size of the file after the last shard."""
    size = os.fstat(file.fileno()).st_size
    if number in (0, n_shards):
        return size * (number // n_shards)
    with path.open("rb") as lines:
        goal = size * number // n_shards
        if goal > BYTES_BEFORE_CUT:
            lines.seek(goal - BYTES_BEFORE_CUT)
            lines.readline(LONGEST_LINE)
        query, place = b"", lines.tell()
        while line := lines.readline(LONGEST_LINE):
            found = _query_of(line)
            if query and found and found != query and place >= goal:
                return place
            query, place = found or query, lines.tell()
    return size


def _query_of(line: bytes) -> bytes:
    """Return the query id of a line without leading zeros, b"" for a comment."""
    for word in line.partition(b"#")[0].split():
        if word.startswith(b"qid:"):
            return word.removeprefix(b"qid:").lstrip(b"0") or b"0"
    return b""


class _Window:
    """The bytes of a file from one place to another, as `TextChunks` reads them."""

    def __init__(self, file: BinaryIO, begin: int, end: int) -> None:
        self._file, self._end = file, end
        file.seek(begin)

    def readinto(self, buffer: memoryview) -> int:
        left = self._end - self._file.tell()
        return cast(Any, self._file).readinto(buffer[: min(len(buffer), left)]) if left else 0

    def tell(self) -> int:
        return self._file.tell()

    def fileno(self) -> int:
        return self._file.fileno()

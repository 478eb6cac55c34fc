"""Reader of Parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from moerank.data.read.files import report_reading
from moerank.files import Json, open_regular

ROLES = b"moerank"
"""Key of the metadata that say which columns are label, query and features."""

ROWS = 2**13
"""Rows that are decoded together."""

BUFFER = 2**16
"""Bytes of each column that are read ahead: a group of rows may be as large as the file."""


def parquet_names(path: Path, needed: Sequence[str] = ()) -> list[str]:
    """Return the names of the columns."""
    with _opened(path) as file:
        return list(file.schema_arrow.names)


def parquet_roles(path: Path) -> Json:
    """Return the names of the columns by their roles ``label``, ``query`` and ``features``, if the file tells them."""
    with _opened(path) as file:
        roles: Json = json.loads((file.schema_arrow.metadata or {}).get(ROLES, b"{}")).get("roles", {})
        return roles


def read_parquet(path: Path, columns: Sequence[str], rows: tuple[int, int] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield columns block by block, of all rows or from ``rows[0]`` to before ``rows[1]``, without other row groups."""
    with _opened(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
        starts = np.cumsum([0, *sizes])
        first, last = rows or (0, int(file.metadata.num_rows))
        groups = [group for group, size in enumerate(sizes) if starts[group] < last and starts[group] + size > first]
        begin = int(starts[groups[0]]) if groups else 0
        n_wanted = 0
        for batch in file.iter_batches(batch_size=ROWS, row_groups=groups, columns=list(columns)):
            if sorted(batch.schema.names) != sorted(columns):
                raise ValueError(f"{path}: a damaged Parquet file: it holds other columns than it says")
            skipped = max(first - begin, 0)
            wanted = batch.slice(skipped, max(last - begin - skipped, 0)) if rows else batch
            begin += batch.num_rows
            n_wanted += wanted.num_rows
            if wanted.num_rows:
                yield wanted
                report_reading(path, min(n_wanted / max(last - first, 1), 1.0))
        if n_wanted != last - first:
            raise ValueError(f"{path}: a damaged Parquet file: it says {last - first:,} rows and holds {n_wanted:,}")


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, and refuse what is none in a sentence."""
    with open_regular(path) as stored:
        try:
            with pq.ParquetFile(stored, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True) as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).partition("\n")[0][:200]
            raise ValueError(f"{path}: not a Parquet file that can be read, or a damaged one ({reason})") from None

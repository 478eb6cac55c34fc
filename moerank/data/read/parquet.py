"""Parquet files, read by pyarrow block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from moerank.arrays import Array, Integers, Vector
from moerank.data.read.columns import (
    MISSING_REMEDY,
    MOST_LABEL,
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
    from pyarrow import Array as ArrowArray
    from pyarrow import DataType, RecordBatch
    from pyarrow.parquet import ParquetFile

__all__ = ["column_names", "query_offsets", "read_table"]

ROWS = 2**13
"""Rows that are decoded together."""

FEATURES = 16
"""Features that are read together: pyarrow decodes some megabytes of each open column ahead."""

BUFFER = 2**16
"""Bytes of each column that are read ahead: a group of rows may be as large as the file."""


def read_table(
    path: Path,
    label: str,
    query: str,
    features: list[str] | None,
    *,
    dtype: DTypeLike,
    missing: bool,
    rows: tuple[int, int] | None = None,
) -> Table:
    """Read a Parquet file, or the `rows` from the first number up to the second.

    `missing` says whether a value may be missing. The other arguments are those of `load_table`.
    """
    with _opened(path) as file:
        schema, names = file.schema_arrow, list(file.schema_arrow.names)
        for number, name in enumerate(names):
            if name in names[:number]:
                raise ValueError(f"{path}: two columns are called {name!r}; give the columns distinct names")
        columns = choose_columns(path, names, label, query, features)
        for name in (columns.label, *columns.features):
            _check_type(path, name, schema.field(name).type, listed=features is not None or name == label)
        _check_query_type(path, query, schema.field(query).type)
        first, last = rows or (0, int(file.metadata.num_rows))
        if last <= first:
            raise ValueError(f"{path}: the table has no row")
        check_size(path, last - first, len(columns.features), np.dtype(dtype).itemsize)
        X, y = empty_table(last - first, len(columns.features), dtype), np.empty(last - first, np.int64)
        queries = QueryRuns(path, query)
        groups = [columns.features[i : i + FEATURES] for i in range(0, len(columns.features), FEATURES)]
        report_reading(path, 0.0)
        for begin, end, batch in _batches(file, path, [label, query], first, last):
            labels = _numbers(batch.column(label))
            if len(wrong := wrong_labels(labels)):
                raise ValueError(
                    f"{path}, row {first + begin + wrong[0] + 1:,}: the label {labels[wrong[0]]:g} in the column "
                    f"{label!r} is not an integer from 0 (irrelevant) to {MOST_LABEL:,}"
                )
            y[begin:end] = labels
            queries.add(_ids(batch.column(query), path, query, first + begin))
        for number, group in enumerate(groups):
            for begin, end, batch in _batches(file, path, group, first, last):
                for feature, name in enumerate(group, number * FEATURES):
                    values, target = _numbers(batch.column(name)), X[begin:end, feature]
                    _fill(target, values, name, path, first + begin, missing=missing)
                report_reading(path, min((number + end / (last - first)) / len(groups), 0.999))
    report_reading(path, 1.0)
    return Table(X, y, queries.rows(), columns.features)


def column_names(path: Path, needed: Iterable[str] = ()) -> list[str]:
    """Return the names of the columns."""
    with _opened(path) as file:
        return list(file.schema_arrow.names)


def query_offsets(path: Path, query: str) -> Integers:
    """Return where the queries begin, shape (n_queries + 1,); only their column is read."""
    with _opened(path) as file:
        if query not in file.schema_arrow.names:
            raise ValueError(f"{path}: there is no column {query!r}; there are {', '.join(file.schema_arrow.names)}")
        queries = QueryRuns(path, query)
        for begin, _, batch in _batches(file, path, [query], 0, int(file.metadata.num_rows)):
            queries.add(_ids(batch.column(query), path, query, begin))
        return queries.offsets()


@contextmanager
def _opened(path: Path) -> Iterator[ParquetFile]:
    """Open a Parquet file; refuse any other in a sentence."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_regular(path, through_links=True) as stored:
        try:
            with pq.ParquetFile(stored, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True) as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).partition("\n")[0][:200]
            raise ValueError(f"{path}: not a Parquet file that can be read, or a damaged one ({reason})") from None


def _batches(
    file: ParquetFile, path: Path, names: Sequence[str], first: int, last: int
) -> Iterator[tuple[int, int, RecordBatch]]:
    """Yield the rows `first` to `last` of some columns block by block: where they begin and end there, and the block.

    Groups of rows that have none of them are not read.
    """
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    starts = np.cumsum([0, *sizes])
    groups = [group for group, size in enumerate(sizes) if starts[group] < last and starts[group] + size > first]
    row = int(starts[groups[0]]) if groups else 0
    end = 0
    for batch in file.iter_batches(batch_size=ROWS, row_groups=groups, columns=list(names)):
        if sorted(batch.schema.names) != sorted(names):
            raise ValueError(f"{path}: a damaged Parquet file: it holds other columns than it says")
        skipped = min(max(first - row, 0), batch.num_rows)
        row += batch.num_rows
        wanted = batch.slice(skipped)
        if last < sum(sizes):  # otherwise more rows than the file says are refused
            wanted = wanted.slice(0, max(wanted.num_rows - max(row - last, 0), 0))
        begin, end = end, end + wanted.num_rows
        if end > last - first:
            raise ValueError(f"{path}: a damaged Parquet file: it holds other rows than it says")
        if wanted.num_rows:
            yield begin, end, wanted
    if end != last - first:
        raise ValueError(f"{path}: a damaged Parquet file: it says {last - first:,} rows and holds {end:,}")


def _check_type(path: Path, name: str, kind: DataType, *, listed: bool) -> None:
    """Refuse a column that does not hold plain numbers."""
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return
    remedy = "make numbers of it" if listed else "list the columns that are features, or make numbers of it"
    raise ValueError(f"{path}: the column {name!r} holds {kind}, not plain numbers; {remedy}")


def _check_query_type(path: Path, name: str, kind: DataType) -> None:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_nested(kind) or types.is_null(kind):
        raise ValueError(f"{path}: the column {name!r} holds {kind}, which are no ids of queries; make texts of them")


def _numbers(column: ArrowArray) -> Vector:
    """Return a column in double precision, NaN where it has no value."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def _ids(column: ArrowArray, path: Path, name: str, begin: int) -> Array:
    """Return the ids of queries: integers or texts."""
    import pyarrow as pa

    if column.null_count:
        row = begin + column.is_null().to_numpy(zero_copy_only=False).argmax() + 1
        raise ValueError(f"{path}, row {row:,}: no query id in the column {name!r}; every row needs one")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_integer(column.type) and not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    ids: Array = column.to_numpy(zero_copy_only=False)
    return ids


def _fill(target: Array, values: Vector, name: str, path: Path, begin: int, *, missing: bool) -> None:
    """Write the values of a feature (n_rows,) into the table."""
    if not missing and len(unknown := np.flatnonzero(np.isnan(values))):
        raise ValueError(f"{path}, row {begin + unknown[0] + 1:,}: the value of {name!r} is missing; {MISSING_REMEDY}")
    place = narrowed(values[:, None], target[:, None])
    if place is not None:
        value = values[place[0]]
        reason = "not finite" if np.isinf(value) else "too large for the precision of the features"
        raise ValueError(f"{path}, row {begin + place[0] + 1:,}: the value {value:g} of {name!r} is {reason}")

"""Parquet files as ranking data, read by pyarrow block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moerank.data.progress import report_reading
from moerank.data.table_columns import (
    MISSING_REMEDY,
    MOST_LABEL,
    QueryRuns,
    Table,
    check_size,
    choose_columns,
    narrowed,
    wrong_labels,
)
from moerank.data.table_order import empty_table
from moerank.systems import open_regular

__all__ = ["parquet_names", "parquet_offsets", "read_parquet_table"]

ROWS = 2**13
"""Rows that are decoded together."""

TOGETHER = 16
"""Features that are read together: of each column that is open some megabytes are decoded ahead."""

BUFFER = 2**16
"""Bytes of each column that are read ahead: whole groups of rows may be as large as the file."""


def read_parquet_table(
    path: Path,
    label: str,
    query: str,
    features: list[str] | None,
    *,
    dtype: DTypeLike,
    missing: bool,
    rows: tuple[int, int] | None = None,
) -> Table:
    """Read a Parquet file, or some of its rows: the first, and the one after the last.

    `missing` says whether a value may be missing. The other arguments are those of `load_table`.
    """
    with _opened(path) as (pa, file):
        return _read(pa, file, path, label, query, features, np.dtype(dtype), missing, rows)


def parquet_offsets(path: Path, query: str) -> NDArray[np.int64]:
    """Return where the queries of a Parquet file begin, shape (n_queries + 1,); only their column is read."""
    with _opened(path) as (pa, file):
        if query not in file.schema_arrow.names:
            raise ValueError(f"{path}: there is no column {query!r}; there are {', '.join(file.schema_arrow.names)}")
        queries = QueryRuns(path, query)
        for begin, _, batch in _batches(file, path, [query], 0, int(file.metadata.num_rows)):
            queries.add(_ids(pa, batch.column(query), path, query, begin))
        return queries.offsets()


def parquet_names(path: Path) -> list[str]:
    """Return the names of the columns."""
    with _opened(path) as (_, file):
        return list(file.schema_arrow.names)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """Open a Parquet file; return pyarrow and the file, and say what it is if no table."""
    pa, pq = _pyarrow()
    with open_regular(path, through_links=True) as stored:
        try:
            with pq.ParquetFile(stored, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True) as file:
                yield pa, file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).partition("\n")[0][:200]
            raise ValueError(f"{path}: not a Parquet file that can be read, or a damaged one ({reason})") from None


def _pyarrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow, which is not installed: pip install 'moerank[tables]'") from None
    return pyarrow, pyarrow.parquet


def _read(
    pa: Any,
    file: Any,
    path: Path,
    label: str,
    query: str,
    features: list[str] | None,
    dtype: np.dtype[Any],
    missing: bool,
    rows: tuple[int, int] | None,
) -> Table:
    schema = file.schema_arrow
    first_row, last_row = rows or (0, int(file.metadata.num_rows))
    n_rows = last_row - first_row
    names = list(schema.names)
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ValueError(f"{path}: two columns are called {name!r}; give the columns distinct names")
    columns = choose_columns(path, names, label, query, features)
    for name in (columns.label, *columns.features):
        _check_type(pa, path, name, schema.field(name).type, listed=features is not None or name == label)
    _check_query_type(pa, path, query, schema.field(query).type)
    if n_rows <= 0:
        raise ValueError(f"{path}: the table has no row")
    n_features = len(columns.features)
    check_size(path, n_rows, n_features, dtype.itemsize)
    X = empty_table(n_rows, n_features, dtype)
    y = np.empty(n_rows, np.int64)
    queries = QueryRuns(path, query)
    where = f"{path}, row {{:,}}: "
    place = first_row + 1  # of the first row, as messages count them
    n_groups = -(-n_features // TOGETHER) + 1
    report_reading(path, 0.0)
    for begin, end, batch in _batches(file, path, [label, query], first_row, last_row):
        labels = _numbers(pa, batch.column(label))
        if len(wrong := wrong_labels(labels)):
            raise ValueError(
                f"{where.format(begin + wrong[0] + place)}the label {labels[wrong[0]]:g} in the column {label!r} is "
                f"not an integer from 0 (irrelevant) to {MOST_LABEL:,}"
            )
        y[begin:end] = labels
        queries.add(_ids(pa, batch.column(query), path, query, first_row + begin))
        report_reading(path, min(end / n_rows / n_groups, 0.999))
    for group in range(1, n_groups):
        first = (group - 1) * TOGETHER
        chosen = columns.features[first : first + TOGETHER]
        for begin, end, batch in _batches(file, path, chosen, first_row, last_row):
            for feature, name in enumerate(chosen, first):
                values = _numbers(pa, batch.column(name))
                _fill(X[begin:end, feature], values, name, where, first_row + begin, missing=missing)
            report_reading(path, min((group + end / n_rows) / n_groups, 0.999))
    report_reading(path, 1.0)
    return Table(X, y, queries.rows(), columns.features)


def _batches(file: Any, path: Path, names: Sequence[str], first: int, last: int) -> Iterator[tuple[int, int, Any]]:
    """Yield the rows `first` to `last` of some columns block by block: where they begin and end there, and the block.

    Groups of rows that have none of them are not read.
    """
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    starts = np.cumsum([0, *sizes])
    groups = [group for group, size in enumerate(sizes) if starts[group] < last and starts[group] + size > first]
    stored = int(starts[groups[0]]) if groups else 0
    end = 0
    for batch in file.iter_batches(batch_size=ROWS, row_groups=groups, columns=list(names)):
        if sorted(batch.schema.names) != sorted(names):
            raise ValueError(f"{path}: a damaged Parquet file: it holds other columns than it says")
        wanted = batch.slice(max(first - stored, 0))
        stored += batch.num_rows
        wanted = wanted.slice(0, max(wanted.num_rows - max(stored - last, 0), 0)) if last < sum(sizes) else wanted
        begin, end = end, end + wanted.num_rows
        if end > last - first:
            raise ValueError(f"{path}: a damaged Parquet file: it holds other rows than it says")
        if wanted.num_rows:
            yield begin, end, wanted
    if end != last - first:
        raise ValueError(f"{path}: a damaged Parquet file: it says {last - first:,} rows and holds {end:,}")


def _check_type(pa: Any, path: Path, name: str, kind: Any, *, listed: bool) -> None:
    """Refuse a column that does not hold plain numbers."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return
    remedy = "make numbers of it" if listed else "list the columns that are features, or make numbers of it"
    raise ValueError(f"{path}: the column {name!r} holds {kind}, not plain numbers; {remedy}")


def _check_query_type(pa: Any, path: Path, name: str, kind: Any) -> None:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        raise ValueError(f"{path}: the column {name!r} holds {kind}, which are no ids of queries; make texts of them")


def _numbers(pa: Any, column: Any) -> NDArray[np.float64]:
    """Return a column in double precision, NaN where it has no value."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    values = column.to_numpy(zero_copy_only=False)
    return np.asarray(values, np.float64)


def _ids(pa: Any, column: Any, path: Path, name: str, begin: int) -> NDArray[Any]:
    """Return the ids of queries: integers or texts."""
    if column.null_count:
        row = begin + column.is_null().to_numpy(zero_copy_only=False).argmax() + 1
        raise ValueError(f"{path}, row {row:,}: no query id in the column {name!r}; every row needs one")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type):
        ids: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return ids
    if not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    return column.to_numpy(zero_copy_only=False)


def _fill(
    target: NDArray[Any], values: NDArray[np.float64], name: str, where: str, begin: int, *, missing: bool
) -> None:
    """Write the values of a feature (n_rows,) into the table."""
    if not missing and len(unknown := np.flatnonzero(np.isnan(values))):
        raise ValueError(f"{where.format(begin + unknown[0] + 1)}the value of {name!r} is missing; {MISSING_REMEDY}")
    place = narrowed(values[:, None], target[:, None])
    if place is not None:
        value = values[place[0]]
        reason = "not finite" if np.isinf(value) else "too large for the precision of the features"
        raise ValueError(f"{where.format(begin + place[0] + 1)}the value {value:g} of {name!r} is {reason}")

"""Tables with one row per document: CSV and Parquet files with named columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moerank.data.missing import MissingRule, check_missing_rule
from moerank.data.ranking_data import RankingData
from moerank.data.read.cache import LARGE, remembered
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
from moerank.data.read.csv import csv_header, read_csv_table
from moerank.data.read.files import check_folder, names_in, report_reading
from moerank.systems import open_regular

__all__ = [
    "parquet_names",
    "parquet_offsets",
    "read_parquet_table",
    "ENDINGS",
    "LABELS",
    "QUERIES",
    "guess_columns",
    "load_table",
    "load_table_fold",
    "table_paths",
]

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


PARTS = (("train",), ("vali", "valid", "validation"), ("test",))
ENDINGS = (".parquet", ".pq", ".csv", ".csv.gz", ".tsv")

LABELS = ("label", "relevance", "rel", "grade", "target", "y")
QUERIES = ("qid", "query_id", "query", "queryid", "srch_id", "session_id", "group")
"""Usual names of the columns of label and query, the most usual first; upper and lower case do not count."""


def load_table(
    path: str | os.PathLike[str],
    *,
    label: str,
    query: str,
    features: Iterable[str] | None = None,
    missing: MissingRule | None = None,
    dtype: DTypeLike = np.float64,
    name: str | None = None,
    cache: bool = True,
) -> RankingData:
    r"""Read a CSV or Parquet file with one row per document.

    Parameters
    ----------
    path : path-like
        A Parquet file, which needs the extra ``tables``, or a CSV file in UTF-8, plain or ``.gz``: its first line names
        the columns, which commas, semicolons or tabs separate; blank lines are skipped.
    label, query : str
        The names of the columns of relevance labels and query ids. Labels are integers from 0; ids are 64-bit integers
        if all are written so, else texts, and the rows of a query must be contiguous.
    features : sequence of str, optional
        The names of the feature columns, in the order of the result; by default all others, which must hold numbers.
    missing : float, "query-min", "query-mean" or "query-worst", optional
        What missing values become, see `RankingData`; by default a table with any is refused. In CSV an empty field is
        missing, and so are NA, N/A, NULL, NaN and None.
    dtype : {float64, float32}, default float64
        Of the features.
    name : str, optional
        How messages call the data set; by default its path.
    cache : bool, default True
        Keep what is read of a large file, from 64 MiB on, in the user's cache folder, see `moerank.data.read.cache`.

    Returns
    -------
    RankingData
        The documents in file order, with the names of the columns. Beside the result, which is there
        twice for a moment if values are missing, the blocks that are read take some 0.3 GiB of memory.

    Raises
    ------
    ValueError
        For a column that is not there or holds no plain numbers, a value that is not finite, a wrong label, a query
        whose rows are not contiguous, a row with too many or too few fields, and a table that is larger than the limit
        of `check_room`. The message names the file, the line (Parquet: the row, counted from 1) and the column.
    OSError
        If the file is missing, a folder, or cannot be read.
    ImportError
        For a Parquet file where pyarrow is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.csv")
    ...     _ = path.write_text("query,label,price,rating\nshoes,2,59.9,4.5\nshoes,0,120,3\n")
    ...     data = load_table(path, label="label", query="query", name="shop")
    >>> data, data.feature_names, data.X.tolist()
    (RankingData('shop': 2 documents, 1 queries, 2 features), ('price', 'rating'), [[59.9, 4.5], [120.0, 3.0]])
    """
    path = Path(path)
    if missing is not None:
        check_missing_rule(missing)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {np.dtype(dtype)}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; load_table reads one file")
    if isinstance(features, str):
        raise ValueError(f"features must be a list of names of columns, not the text {features!r}")
    chosen = None if features is None else list(features)
    reader = read_parquet_table if is_parquet(path) else read_csv_table

    def read() -> Table:
        return reader(path, label, query, chosen, dtype=dtype, missing=missing is not None)

    reading = f"table {reader.__name__} {[label, query, chosen]} {np.dtype(dtype)} {missing is not None}"
    table = remembered(path, reading, Table, read) if cache and path.stat().st_size >= LARGE else read()
    table.X.setflags(write=False)  # so that it is not copied
    return RankingData(table.X, table.y, table.qid, table.names, name=name or str(path), missing=missing)


def load_table_fold(
    directory: str | os.PathLike[str],
    *,
    label: str,
    query: str,
    features: Iterable[str] | None = None,
    missing: MissingRule | None = None,
    dtype: DTypeLike = np.float64,
) -> tuple[RankingData, RankingData, RankingData]:
    """Read the training, validation and test table of a fold.

    Parameters
    ----------
    directory : path-like
        The folder with ``train``, ``vali`` and ``test`` (or ``valid``, or ``validation``), each ``.parquet``, ``.pq``,
        ``.csv``, ``.csv.gz`` or ``.tsv``. The first found in this order is read.
    label, query, features, missing, dtype
        As in `load_table`.

    Returns
    -------
    train, vali, test : RankingData
        All with the features of the training table, in its order.

    Raises
    ------
    FileNotFoundError
        If the folder or a part is missing; the message says what was looked for and what is there.
    ValueError
        As `load_table`, and by default for a part that has other columns than the training table.
    """
    paths = table_paths(Path(directory))
    chosen = None if features is None else list(features)
    parts: list[RankingData] = []
    for path in paths:
        if parts and features is None:
            _require_same_columns(path, paths[0], {label, query, *parts[0].feature_names})
            chosen = list(parts[0].feature_names)
        parts.append(load_table(path, label=label, query=query, features=chosen, missing=missing, dtype=dtype))
    return parts[0], parts[1], parts[2]


def table_paths(directory: Path) -> list[Path]:
    """Return the training, validation and test table of the folder of a fold; errors as in `load_table_fold`."""
    check_folder(directory, "load_table_fold reads the folder of one fold")
    return [_part(directory, names) for names in PARTS]


def find_part(directory: Path, names: tuple[str, ...] = PARTS[0]) -> Path | None:
    """Return the table in a folder that has one of these names, by default the training table; None without one."""
    candidates = (directory / (name + ending) for name in names for ending in ENDINGS)
    return next((path for path in candidates if path.is_file()), None)


def is_table(path: Path) -> bool:
    """Whether a file is a table by its name, or a Parquet file by its first bytes."""
    return path.name.lower().endswith(ENDINGS) or is_parquet(path)


def _part(directory: Path, names: tuple[str, ...]) -> Path:
    path = find_part(directory, names)
    if path is None:
        raise FileNotFoundError(
            f"{directory}: looked for {', '.join(name + ENDINGS[0] for name in names)} (also {', '.join(ENDINGS[1:])}) "
            f"and found {names_in(directory)}"
        )
    return path


def _require_same_columns(path: Path, first: Path, expected: set[str]) -> None:
    """Refuse a part with other columns than the training table."""
    present = column_names(path, expected)
    for reason, names in (("lacks", expected - set(present)), ("has", set(present) - expected)):
        if names:
            other = f"which {first.name} has" if reason == "lacks" else f"which {first.name} lacks"
            raise ValueError(f"{path} {reason} the column {min(names)!r}, {other}; list the columns that are features")


def column_names(path: Path, needed: Iterable[str] = ()) -> list[str]:
    """Return the names of the columns of a table; `needed` are known to be among them."""
    return parquet_names(path) if is_parquet(path) else csv_header(path, needed)[0]


def is_parquet(path: Path) -> bool:
    """Whether a file is a Parquet file, by its name or its first bytes."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return True
    with open_regular(path, through_links=True) as file:
        return file.read(4) == b"PAR1"


def guess_columns(path: Path, label: str | None = None, query: str | None = None) -> tuple[str, str]:
    """Return the names of the label and the query column: those given, else the first usual ones that are there.

    Raises
    ------
    ValueError
        If there is no column of a usual name.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.csv")
    ...     _ = path.write_text("QID,price,relevance")
    ...     guess_columns(path)
    ('relevance', 'QID')
    """
    present = column_names(path, [name for name in (label, query) if name is not None])
    return _guessed(path, "label", label, LABELS, present), _guessed(path, "query", query, QUERIES, present)


def _guessed(path: Path, what: str, given: str | None, usual: tuple[str, ...], present: list[str]) -> str:
    if given is not None:
        return given
    for name in usual:
        for column in present:
            if column.lower() == name:
                return column
    shown = ", ".join(present[:10]) + (", …" if len(present) > 10 else "")
    raise ValueError(f"{path}: no column has a usual name of the {what}; name it by --{what}, one of {shown}")

"""Tables with one row per document, in files with named columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike

from moerank.arrays import Array, Floats, Integers, Mask, Vector
from moerank.checks import check_room, unknown
from moerank.data.blocks import empty_table
from moerank.data.inputs import LARGEST_EXACT, arrow_numbers
from moerank.data.ranking_data import RankingData
from moerank.data.read.cache import Table, remembered
from moerank.data.read.files import (
    READERS,
    Reader,
    check_folder,
    names_in,
    part_of_reading,
    reader_of,
    report_reading,
    table_endings,
)
from moerank.data.scaling import MissingRule, check_missing_rule

Precision = type[np.float64] | type[np.float32]


def as_precision(dtype: DTypeLike) -> Precision:
    """Return a precision of features as one of the two types there are, or raise a ValueError."""
    for precision in (np.float64, np.float32):
        if np.dtype(dtype) == precision:
            return precision
    raise ValueError(f"dtype must be float32 or float64, not {np.dtype(dtype)}")


MOST_LABEL = 2**31 - 1

MISSING_REMEDY = (
    "say what missing values become: a number, 'query-min', 'query-mean' or 'query-worst', as missing= in Python, "
    "--missing, or missing = in [data] of a problem file"
)


class WrongValueError(ValueError):
    """A value of a table that cannot be used; the reader of its format may know the line."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns that are read."""

    label: str
    query: str
    features: tuple[str, ...]
    remedy: str = "make numbers of it"
    """For a feature that holds no numbers."""
    further: Mapping[str, str] = field(default_factory=dict)
    """The columns of `FURTHER` arrays, by their names."""

    @property
    def all(self) -> tuple[str, ...]:
        """Label, query and features."""
        return (self.label, self.query, *self.features)


FURTHER = ("documents", "query_weights", "document_weights")
"""Arrays that a table may have beside features, labels and queries, by the names of arguments of `RankingData`."""


PARTS = (("train",), ("vali", "valid", "validation"), ("test",))

LABELS = ("label", "relevance", "rel", "grade", "target", "y")
QUERIES = ("qid", "query_id", "query", "queryid", "srch_id", "session_id", "group")
"""Usual names of the columns of label and query, the most usual first; upper and lower case do not count."""

TOGETHER = 16
"""Features of a columnar file that are read together: of each open column some megabytes are decoded ahead."""

LARGE = 2**26
"""Bytes of a table from which on it is kept in the cache."""


def load_table(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    query: str | None = None,
    features: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    document: str | None = None,
    query_weight: str | None = None,
    document_weight: str | None = None,
    missing: MissingRule | None = None,
    dtype: DTypeLike = np.float64,
    name: str | None = None,
    cache: bool = True,
) -> RankingData:
    r"""Read a CSV or Parquet file with one row per document.

    Parameters
    ----------
    path : path-like
        A Parquet file, or a CSV file in UTF-8, plain or ``.gz``: its first line names the columns, which commas,
        semicolons or tabs separate; blank lines are skipped. Installed packages may read further endings.
    label, query : str, optional
        The names of the columns of relevance labels and query ids; only a Parquet file that `moerank.ingest` wrote
        tells them itself. Labels are integers from 0; ids are 64-bit integers
        if all are written so, else texts, and the rows of a query must be contiguous.
    features : sequence of str, optional
        The names of the feature columns, in the order of the result; by default those that the file tells, or all
        others, which must hold numbers.
    exclude : sequence of str, optional
        The names of columns that are no features, such as texts and dates.
    document : str, optional
        The name of the column of document ids; a table of `moerank.ingest` tells it.
    query_weight, document_weight : str, optional
        The names of columns of weights > 0, see `RankingData`; all rows of a query have the same query weight.
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

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.csv")
    ...     _ = path.write_text("query,label,price,rating\nshoes,2,59.9,4.5\nshoes,0,120,3\n")
    ...     data = load_table(path, label="label", query="query", name="shop")
    >>> data.feature_names, data.X.tolist()
    (('price', 'rating'), [[59.9, 4.5], [120.0, 3.0]])
    """
    path = Path(path)
    if missing is not None:
        check_missing_rule(missing)
    as_precision(dtype)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; load_table reads one file")
    for argument, names in (("features", features), ("exclude", exclude)):
        if isinstance(names, str):
            raise ValueError(f"{argument} must be a list of names of columns, not the text {names!r}")
    further = {"document": document, "query_weight": query_weight, "document_weight": document_weight}
    chosen = None if features is None else tuple(features)
    roles: dict[str, Any] = {"label": label, "query": query, "features": chosen, "exclude": tuple(exclude), **further}

    def read() -> Table:
        return read_table(path, table_columns(path, **roles), dtype=dtype, missing=missing is not None)

    reading = f"table {roles} {np.dtype(dtype)} {missing is not None}"
    table = remembered(path, reading, read) if cache and path.stat().st_size >= LARGE else read()
    return table.as_data(name or str(path), missing)


def load_table_fold(
    directory: str | os.PathLike[str],
    *,
    label: str | None = None,
    query: str | None = None,
    features: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    document: str | None = None,
    query_weight: str | None = None,
    document_weight: str | None = None,
    missing: MissingRule | None = None,
    dtype: DTypeLike = np.float64,
) -> tuple[RankingData, RankingData, RankingData]:
    """Read the training, validation and test table of a fold, all with the features of the training table.

    The folder holds ``train``, ``vali`` (or ``valid``, or ``validation``) and ``test``, each with an ending of
    `table_endings`, of which the first found is read. By default a part with other columns than the training table is
    refused. Other arguments and errors as in `load_table`.
    """
    paths = table_paths(Path(directory))
    roles: dict[str, Any] = {"document": document, "query_weight": query_weight, "document_weight": document_weight}
    chosen, exclude = None if features is None else tuple(features), tuple(exclude)
    first = table_columns(paths[0], label=label, query=query, features=chosen, exclude=exclude, **roles)
    roles |= {"label": first.label, "query": first.query, "missing": missing, "dtype": dtype}
    if chosen is None and not exclude and not _table_reader(paths[0]).roles_in(paths[0]).get("features"):
        expected = {*first.all, *first.further.values()}
        for path in paths[1:]:
            present = set(_table_reader(path).names(path, sorted(expected)))
            for here, there, names in (("lacks", "has", expected - present), ("has", "lacks", present - expected)):
                if names:
                    what = f"the column {min(names)!r}, which {paths[0].name} {there}"
                    raise ValueError(f"{path} {here} {what}; list the columns that are features")
    else:
        chosen = first.features
    train = load_table(paths[0], features=chosen, **roles)
    vali, test = (load_table(path, features=first.features, **roles) for path in paths[1:])
    return train, vali, test


def table_columns(
    path: Path,
    *,
    label: str | None = None,
    query: str | None = None,
    features: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    **further: str | None,
) -> Columns:
    """Return the columns that are read: those given, else those that the file tells, and all others as features."""
    reader = _table_reader(path)
    told = reader.roles_in(path)
    own: dict[str, Any] = {"label": label or told.get("label"), "query": query or told.get("query")}
    for what, column in own.items():
        if column is None:
            raise ValueError(f"{path}: the file does not tell its column of the {what}; give {what}=")
    roles = [array.removesuffix("s") for array in FURTHER]
    own |= {role: name for role in roles if (name := further.get(role) or told.get(role))}
    used, left_out = set(own.values()), set(exclude)
    present = reader.names(path, [*own.values(), *left_out])
    if features is None:
        features = [name for name in told.get("features", ()) if name not in used] or None
    if left_out:
        if absent := sorted(left_out - set(present)):
            raise ValueError(f"{path}: {unknown('column', absent[0], present)}; exclude= names columns to leave out")
        features = [name for name in features or present if name not in left_out | used]
    if twice := [name for number, name in enumerate(present) if name in present[:number]]:
        raise ValueError(f"{path}: two columns are called {twice[0]!r}; give the columns distinct names")
    role_of: dict[str, str] = {}
    for what, name in own.items():
        if name not in present:
            raise ValueError(f"{path}: {unknown('column', name, present)}; {what}= names the column of the {what}")
        if name in role_of:
            raise ValueError(f"{path}: the column {name!r} cannot be both {role_of[name]} and {what}")
        role_of[name] = what
    chosen = tuple(name for name in present if name not in used) if features is None else tuple(features)
    _check_chosen(path, chosen, present, role_of, given=features is not None)
    remedy = "make numbers of it" if features is not None else "leave it out (exclude), or make numbers of it"
    arrays = {f"{role}s": name for name, role in role_of.items() if role in roles}
    return Columns(own["label"], own["query"], chosen, remedy, arrays)


def _check_chosen(
    path: Path, chosen: tuple[str, ...], present: Sequence[str], roles: Mapping[str, str], *, given: bool
) -> None:
    """Refuse columns that cannot be features; `given` says whether they were named."""
    if not given and (strange := [name for name in chosen if name in ("", "__index_level_0__")]):
        raise ValueError(
            f"{path}: the column {strange[0]!r} is an index that pandas wrote, no feature; write the table with "
            "index=False, or list the columns that are features"
        )
    if not chosen:
        label, query, *_ = roles
        lacking = f"there is no column beside {label!r} and {query!r}; at least one feature is needed"
        raise ValueError(f"{path}: {'features is empty; at least one column is needed' if given else lacking}")
    for number, name in enumerate(chosen if given else ()):
        if name not in present:
            wrong = f"{unknown('column', str(name), present)}; features= names the columns of features"
        elif name in roles:
            wrong = f"the column {name!r} is the {roles[name]}, no feature"
        elif name in chosen[:number]:
            wrong = f"features names the column {name!r} twice"
        else:
            continue
        raise ValueError(f"{path}: {wrong}")


def table_paths(folder: Path) -> list[Path]:
    """Return the training, validation and test table of the folder of a fold; errors as in `load_table_fold`."""
    check_folder(folder, "load_table_fold reads the folder of one fold")
    return [_part(folder, names) for names in PARTS]


def find_part(folder: Path, names: tuple[str, ...] = PARTS[0]) -> Path | None:
    """Return the table in a folder that has one of these names, by default the training table; None without one."""
    candidates = (folder / (name + ending) for name in names for ending in table_endings())
    return next((path for path in candidates if path.is_file()), None)


def _part(folder: Path, names: tuple[str, ...]) -> Path:
    path = find_part(folder, names)
    if path is None:
        first, *others = table_endings()
        raise FileNotFoundError(
            f"{folder}: looked for {', '.join(name + first for name in names)} (also {', '.join(others)}) "
            f"and found {names_in(folder)}"
        )
    return path


def guess_columns(path: Path, label: str | None = None, query: str | None = None) -> tuple[str, str]:
    """Return the names of the label and the query column: given, told by the file, or else the first usual ones."""
    reader = _table_reader(path)
    told = reader.roles_in(path)
    found: dict[str, Any] = {"label": label or told.get("label"), "query": query or told.get("query")}
    present = reader.names(path, [name for name in found.values() if name is not None])
    for what, usual in (("label", LABELS), ("query", QUERIES)):
        if found[what] is None:
            found[what] = next((column for name in usual for column in present if column.lower() == name), None)
        if found[what] is None:
            shown = ", ".join(present[:10]) + (", …" if len(present) > 10 else "")
            raise ValueError(f"{path}: no column has a usual name of the {what}; name it by --{what}, one of {shown}")
    return found["label"], found["query"]


def told_roles(path: Path) -> Mapping[str, Any]:
    """Return the roles of columns that the file itself tells."""
    return _table_reader(path).roles_in(path)


def sample_table(path: Path, n_rows: int = 20_000) -> dict[str, pa.ChunkedArray]:
    """Return the first rows of all columns of a table, those of a CSV file as texts."""
    reader, batches, size = _table_reader(path), [], 0
    names = reader.names(path)
    for batch in reader.batches(path, names, names):
        batches.append(batch)
        size += batch.num_rows
        if size >= n_rows:
            break
    if not size:
        raise ValueError(f"{path}: the table has no row")
    table = pa.Table.from_batches(batches).select(names).slice(0, n_rows)
    return dict(zip(names, table.itercolumns(), strict=True))


def _table_reader(path: Path) -> Reader:
    """Return the reader of a table; a file with another ending is taken for CSV."""
    reader = reader_of(path)
    return READERS[".csv"] if reader is None or not reader.tabular else reader


def read_table(
    path: Path, columns: Columns, *, dtype: DTypeLike, missing: bool, rows: tuple[int, int] | None = None
) -> Table:
    """Read a table, or the rows from ``rows[0]`` to before ``rows[1]`` of a columnar file."""
    reader = _table_reader(path)
    try:
        return _read(reader, path, columns, np.dtype(dtype), missing, rows)
    except (WrongValueError, pa.ArrowException) as error:
        reader.refuse(path, columns, dtype, missing=missing)
        reason = str(error) if isinstance(error, WrongValueError) else f"{path}: cannot be read ({error})"
        raise ValueError(reason) from None


def _read(
    reader: Reader, path: Path, columns: Columns, dtype: np.dtype, missing: bool, rows: tuple[int, int] | None
) -> Table:
    """Read labels and queries first, which tells the size of the table, and the features then."""
    n_features, first = len(columns.features), rows[0] if rows else 0
    together = TOGETHER if reader.columnar else n_features
    groups = [columns.features[begin : begin + together] for begin in range(0, n_features, together)]
    shares = np.linspace(0.0, 0.999, len(groups) + 2).tolist()
    report_reading(path, 0.0)
    queries, labels = QueryRuns(path, columns.query), []
    further: dict[str, list[Array]] = {name: [] for name in columns.further}
    texts = [columns.query, *(name for array, name in columns.further.items() if array == "documents")]
    with part_of_reading(*shares[:2]):
        for batch in reader.batches(path, [*columns.all[:2], *columns.further.values()], texts, rows):
            row = first + queries.n_rows
            labels.append(_labels(batch.column(columns.label), path, columns.label, row))
            queries.add(_ids(batch.column(columns.query), path, columns.query, row))
            for array, name in columns.further.items():
                told = batch.column(name), path, name, row
                further[array].append(_ids(*told, "document") if array == "documents" else _weights(*told))
            n_rows, n_bytes = queries.n_rows, n_features * dtype.itemsize + 16  # with label and query
            check_room(f"{path}: {n_rows:,} rows of {n_features:,} features", n_rows * n_bytes)
    if not queries.n_rows:
        raise WrongValueError(f"{path}: the table has no row")
    X = empty_table(queries.n_rows, n_features, dtype)
    place = 0
    for group, begin, end in zip(groups, shares[1:-1], shares[2:], strict=True):
        row = 0
        with part_of_reading(begin, end):
            for batch in reader.batches(path, group, [], rows):
                block = X[row : row + batch.num_rows, place : place + len(group)]
                if len(block) < batch.num_rows:
                    break  # the file has grown
                for name in group:
                    _check_type(path, name, batch.schema.field(name).type, columns.remedy)
                _fill(block, batch, group, path, first + row, missing=missing)
                row += batch.num_rows
        if row != len(X):
            raise ValueError(f"{path}: it changed while it was read; read it again")
        place += len(group)
    report_reading(path, 1.0)
    y, offsets = np.concatenate(labels), queries.offsets()
    found = {array: np.concatenate(parts) for array, parts in further.items()}
    if "documents" in found:
        found["documents"] = found["documents"].astype(np.str_)
    if (weights := found.get("query_weights")) is not None:
        found["query_weights"] = weights[offsets[:-1]]
        same = weights == np.repeat(found["query_weights"], np.diff(offsets))
        other = f"another weight in the column {columns.further['query_weights']!r} than in the first row of the query"
        _require(same, path, first, lambda i: f"{other}; give all rows of a query its weight")
    return Table(X, y, np.repeat(queries.ids(), np.diff(offsets)), columns.features, **found)


def _require(right: Mask, path: Path, row: int, reason: Callable[[int], str]) -> None:
    """Raise the error of the first of the rows from `row` on that is not right."""
    if not right.all():
        wrong = int(right.argmin())
        raise WrongValueError(f"{path}, row {row + wrong + 1:,}: {reason(wrong)}")


def _labels(column: pa.Array, path: Path, name: str, row: int) -> Integers:
    """Return the relevance labels of the rows from `row` on."""
    values = _plain_numbers(column, path, name)
    with np.errstate(invalid="ignore"):
        right = (values >= 0) & (values <= MOST_LABEL) & (values == np.floor(values))
    whole = f"an integer from 0 (irrelevant) to {MOST_LABEL:,}"
    _require(right, path, row, lambda i: f"the label {values[i]:g} in the column {name!r} is not {whole}")
    return values.astype(np.int64)


def _weights(column: pa.Array, path: Path, name: str, row: int) -> Vector:
    """Return the weights of the rows from `row` on."""
    values = _plain_numbers(column, path, name)
    right = "a positive number; leave the row out, or give it a weight"
    positive = (values > 0) & np.isfinite(values)
    _require(positive, path, row, lambda i: f"the weight {values[i]:g} in the column {name!r} is not {right}")
    return values


def _plain_numbers(column: pa.Array, path: Path, name: str) -> Vector:
    _check_type(path, name, column.type, remedy="make numbers of it")
    return np.asarray(arrow_numbers(column), np.float64)


def _ids(column: pa.Array, path: Path, name: str, row: int, what: str = "query") -> Array:
    """Return the ids of queries or documents in the rows from `row` on: integers or texts."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
        plural = {"query": "queries"}.get(what, "documents")
        raise ValueError(f"{path}: the column {name!r} holds {column.type}, which are no ids of {plural}; make texts")
    if column.null_count:
        there = column.is_valid().to_numpy(zero_copy_only=False)
        _require(there, path, row, lambda i: f"no {what} id in the column {name!r}; every row needs one")
    if pa.types.is_floating(column.type):
        numbers = column.to_numpy(zero_copy_only=False)
        inexact = f"in the column {name!r} is NaN, or a float that stands for several integers; make integers or texts"
        exact = np.abs(numbers) < LARGEST_EXACT
        _require(exact, path, row, lambda i: f"the {what} id {numbers[i]:g} {inexact}")
    if not pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    ids: Array = column.to_numpy(zero_copy_only=False)
    return ids


def _check_type(path: Path, name: str, kind: pa.DataType, remedy: str) -> None:
    """Refuse a column that does not hold plain numbers."""
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise ValueError(f"{path}: the column {name!r} holds {kind}, not plain numbers; {remedy}")


def _fill(block: Floats, batch: pa.RecordBatch, names: Sequence[str], path: Path, row: int, *, missing: bool) -> None:
    """Write the features of the rows from `row` on into a block (n_rows, n_features) of the table."""
    for feature, name in enumerate(names):
        values, target = arrow_numbers(batch.column(name)), block[:, feature]
        with np.errstate(over="ignore"):
            target[...] = values
        if np.isfinite(target).all():
            continue
        absent, infinite = np.flatnonzero(np.isnan(target)), np.flatnonzero(np.isinf(target))
        if len(absent) and not missing:
            where = f"{path}, row {row + absent[0] + 1:,}"
            raise WrongValueError(f"{where}: the value of {name!r} is missing; {MISSING_REMEDY}")
        if len(infinite):
            value = values[infinite[0]]
            reason = "not finite" if np.isinf(value) else "too large for the precision of the features"
            raise WrongValueError(f"{path}, row {row + infinite[0] + 1:,}: the value {value:g} of {name!r} is {reason}")


class QueryRuns:
    """The queries of the rows of a table, gathered block by block; the rows of a query must be contiguous."""

    def __init__(self, path: Path, column: str) -> None:
        self._path, self._column = path, column
        self._first: dict[object, int] = {}  # row of each query
        self._last: object = None
        self.n_rows = 0

    def add(self, ids: Array) -> None:
        """Add the ids of further rows, shape (n_rows,), integers or texts; refuse a query that begins again."""
        starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])) if len(ids) else np.zeros(0, np.int64)
        for query, row in zip(ids[starts].tolist(), (self.n_rows + starts).tolist(), strict=True):
            if query == self._last:
                continue
            if query in self._first:
                raise WrongValueError(f"{self._path}, row {row + 1:,}: query {query} {begins_again(self._column)}")
            self._first[query], self._last = row, query
        self.n_rows += len(ids)

    def offsets(self) -> Integers:
        """Return the rows at which the queries begin and end, shape (n_queries + 1,)."""
        return np.array([*self._first.values(), self.n_rows], np.int64)

    def ids(self) -> Array:
        """Return the queries: 64-bit integers if all are written so, else texts."""
        texts = [str(query) for query in self._first]
        try:
            numbers = np.array([int(text) for text in texts], np.int64)
        except (ValueError, OverflowError):
            return np.array(texts)
        return numbers if numbers.astype(str).tolist() == texts else np.array(texts)  # 07 is not 7


def begins_again(column: str) -> str:
    """Return the refusal of a query whose rows are not contiguous."""
    return f"begins again; sort the rows by the column {column!r}, so that those of a query are contiguous"

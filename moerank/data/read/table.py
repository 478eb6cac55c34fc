"""Reader of tables with one row per document: CSV, Parquet, and formats that other packages add.

`READERS` has a row for each format. A reader turns a path into columns, and the rest is the same for all formats.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import DTypeLike

from moerank.arrays import Array, Floats, Integers, Mask
from moerank.checks import check_at_least, check_room, unknown
from moerank.data import read
from moerank.data.inputs import (
    LARGEST_EXACT,
    MAX_LABEL,
    are_labels,
    arrow_numbers,
    doubles,
    listed,
    query_offsets,
)
from moerank.data.preparation import MissingRule
from moerank.data.ranking_data import Fold, RankingData
from moerank.data.read.delimited import (
    NOT_NUMBERS,
    csv_header,
    csv_lines,
    parsed_numbers,
    read_csv,
)
from moerank.files import AnyPath, Json, open_regular, replacing, writing
from moerank.solvers import plugins

# Key of the metadata of a file that say which columns are label, query, document and features.
ROLES_KEY = b"moerank"

# Bytes of each column that are read ahead: a group of rows may be as large as the file.
BUFFER = 2**16


# Usual names of the columns of label and query, the most usual first; case does not matter.
LABELS = ["label", "relevance", "rel", "grade", "target", "y"]
QUERIES = ["qid", "query_id", "query", "queryid", "srch_id", "session_id", "group"]

# Names of columns that number the rows, in a table that pandas or a database wrote.
ROW_NUMBERS = re.compile(
    r"(?i)|__index_level_\d+__|unnamed: \d.*|index|level_\d+|row_?(id|num|number)"
)

NAMES_OF_PARTS = (("train",), ("vali", "valid", "validation"), ("test",))

# The label of each text; or increasing limits, of which a label counts those that a value reaches.
Labels: TypeAlias = Mapping[str, int] | Sequence[float]

# The columns that are not features, by their roles: the arguments of `load_table`.
ROLES = ("label", "query", "document", "query_weight", "document_weight")


@dataclass(frozen=True)
class Columns:
    """The names of the columns that are read."""

    roles: Mapping[str, str]
    features: tuple[str, ...]


@dataclass(frozen=True)
class Reader:
    """A format of tables.

    Attributes
    ----------
    names : callable
        ``names(path)`` returns the names of all columns.
    batches : callable
        ``batches(path, columns, texts)`` yields columns block by block; those of `texts` need not hold numbers.
    roles : callable, optional
        ``roles(path)`` returns the columns that are ``label``, ``query``, ``document`` and ``features``, if the file
        says so.
    lines_of : callable, optional
        ``lines_of(path, rows)`` returns the lines of increasing rows, counted from 0, for messages.
    """

    names: Callable[[Path], list[str]]
    batches: Callable[[Path, Sequence[str], Sequence[str]], Iterable[pa.RecordBatch]]
    roles: Callable[[Path], Mapping[str, Any]] = lambda path: {}
    lines_of: Callable[[Path, Sequence[int]], list[int]] | None = None

    @classmethod
    def of(cls, function: Callable[[Path, Sequence[str] | None], Any]) -> Self:
        """Return the reader for a function of an installed package, which returns the columns given, or all for None.

        The result of the function is any object with Arrow's ``__arrow_c_stream__``, such as a pyarrow Table.
        """
        stream = pa.RecordBatchReader.from_stream
        return cls(
            lambda path: stream(function(path, None)).schema.names,
            lambda path, columns, _: stream(function(path, columns)),
        )


def load_table(
    path: AnyPath,
    *,
    label: str | None = None,
    query: str | None = None,
    features: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    document: str | None = None,
    query_weight: str | None = None,
    document_weight: str | None = None,
    labels: Labels | None = None,
    missing: MissingRule | None = None,
    missing_values: Sequence[float] = (),
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> RankingData:
    r"""Read a CSV or Parquet file with one row per document.

    Parameters
    ----------
    path : path-like
        A Parquet file, or a CSV file in UTF-8, plain or ``.gz``: its first line names the columns, and commas,
        semicolons or tabs separate them; blank lines are skipped. Installed packages may read further endings.
    label, query : str, optional
        The names of the columns of relevance labels and query ids; by default those that a Parquet file of moerank
        names, or else the first usual ones, such as label and qid. Labels are integers from 0, or true and false. Ids
        are 64-bit integers if all are written as such, else texts. The rows of a query must be contiguous.
    features : sequence of str, optional
        The names of the feature columns, in the order of the result; by default those that the file names, or all
        others, which must hold numbers, or true and false, which are 1 and 0.
    exclude : sequence of str, optional
        The names of columns that are not features, such as texts and dates.
    document : str, optional
        The name of the column of document ids; a table that moerank wrote names it.
    query_weight, document_weight : str, optional
        The names of columns of weights > 0, see `RankingData`; all rows of a query have the same query weight.
    labels : mapping of str to int, or sequence of float, optional
        The label of each text in the label column, as in ``{"E": 3, "S": 2, "C": 1, "I": 0}``; or increasing limits,
        of which a label counts those that the number in the column reaches, as in ``[0.25, 0.5, 0.75]``.
    missing : float, "query-min", "query-mean" or "query-worst", optional
        What missing values become, see `RankingData`; by default a table with missing values is refused. In CSV an
        empty field is missing, and so are NA, N/A, NULL, None, and NaN in upper or lower case.
    missing_values : sequence of float
        Numbers that stand for a missing feature value, such as -999; see `RankingData`.
    dtype : {float64, float32}, optional
        The precision of the features; by default single if all their columns in a Parquet file are so, else double.
    name : str, optional
        The name of the data set in messages; by default its path.

    Returns
    -------
    RankingData
        The documents in file order, with the names of the columns. Time is linear in the number of values. Memory is
        that of the result (for a moment twice, if values are missing), and about 0.3 GiB.

    Raises
    ------
    ValueError
        For a column that is missing or does not hold plain numbers, a value that is not finite, a wrong label, a query
        whose rows are not contiguous, a row with too many or too few fields, and a table that is larger than the limit
        of `check_room`. The message names the file and the place.
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
    names = (label, query, document, query_weight, document_weight)
    roles = dict(zip(ROLES, names, strict=True))
    columns = table_columns(path, roles, features, exclude)
    rule = checked_labels_rule(labels)
    precision = None if dtype is None else read.as_precision(dtype)
    try:
        documents = _read(path, columns, rule, precision, nulls=missing is not None)
    except read.WrongRowError as error:
        [line] = row_names(path, [error.row])
        raise ValueError(f"{path}, {line}: {error.reason}") from None
    return documents.as_data(name or str(path), missing, missing_values)


def load_table_fold(directory: AnyPath, **options: Any) -> Fold:
    """Read the training, validation and test table of a fold, all with the features of the training table.

    The folder holds ``train``, ``vali`` (or ``valid``, or ``validation``) and ``test``, each with an ending of
    `READERS`; the first one found is read. A part that lacks one of the features is refused. The options are the other
    arguments of `load_table`, and the errors are the same.
    """
    folder = Path(directory)
    read.check_folder(folder, "load_table_fold reads the folder of one fold")
    paths = []
    for names in NAMES_OF_PARTS:
        path = find_part(folder, names)
        if path is None:
            ending, *endings = _readers()
            files = f"{', '.join(name + ending for name in names)} (also {', '.join(endings)})"
            raise FileNotFoundError(
                f"{folder}: looked for {files} and found {read.names_in(folder)}"
            )
        paths.append(path)
    roles = {role: options.get(role) for role in ROLES}
    columns = table_columns(paths[0], roles, options.get("features"), options.get("exclude"))
    settings = options | {
        "label": columns.roles["label"],
        "query": columns.roles["query"],
        "features": columns.features,
        "exclude": (),
    }
    return cast("Fold", tuple(load_table(path, **settings) for path in paths))


def table_columns(
    path: Path,
    roles: Mapping[str, str | None],
    features: Iterable[str] | None,
    exclude: Iterable[str] | None,
) -> Columns:
    """Return the columns that are read: those given, else those that the file names, and all others as features."""
    reader = table_reader(path)
    stored_roles = reader.roles(path)
    columns = {role: name or stored_roles.get(role) for role, name in roles.items()}
    excluded = dict.fromkeys(listed(exclude))
    present = reader.names(path)
    for role, names in (("label", LABELS), ("query", QUERIES)):
        columns[role] = columns[role] or usual_column(present, names)
        if not columns[role]:
            raise ValueError(
                f"{path}: no column has a usual name for the {role}; give {role}=, such as one of "
                f"{', '.join(present[:10])}"
            )
    names_of_roles = {role: name for role, name in columns.items() if name}
    if features is None:
        no_features = {*names_of_roles.values(), *excluded}
        names_of_features = stored_roles.get("features") or present
        selected = tuple(name for name in names_of_features if name not in no_features)
        for name in filter(ROW_NUMBERS.fullmatch, selected):
            raise ValueError(
                f"{path}: the column {name!r} is an index that pandas wrote, or numbers the rows, "
                "and no feature; exclude it, or list the columns that are features"
            )
    else:
        selected = tuple(dict.fromkeys(listed(features)))
    result = Columns(names_of_roles, selected)
    _check_columns(path, result, excluded, present)
    return result


def _check_columns(
    path: Path, columns: Columns, excluded: Iterable[str], present: Sequence[str]
) -> None:
    """Refuse columns that are missing, duplicate or used twice."""
    counts = Counter(present)
    for name in present:
        if counts[name] > 1:
            raise ValueError(f"{path}: two columns are called {name!r}; give distinct names")
    uses = [*columns.roles.items(), *(("features", name) for name in columns.features)]
    for argument, name in [*uses, *(("exclude", name) for name in excluded)]:
        if name not in counts:
            raise ValueError(f"{path}: {argument}=: {unknown('column', name, present)}")
    role_of: dict[str, str] = {}
    for role, name in uses:
        if role_of.setdefault(name, role) != role:
            raise ValueError(
                f"{path}: the column {name!r} cannot be both {role_of[name]} and {role}"
            )
    if not columns.features:
        label, query = columns.roles["label"], columns.roles["query"]
        raise ValueError(
            f"{path}: no feature besides {label!r} and {query!r}; at least one column is needed"
        )


def row_names(path: Path, rows: Sequence[int]) -> list[str]:
    """Return the places of rows, counted from 0, for messages: lines, or numbers in a file without lines."""
    lines_of = table_reader(path).lines_of
    if lines_of is None:
        return [f"row {row + 1:,}" for row in rows]
    return [f"line {line}" for line in lines_of(path, rows)]


def _read(
    path: Path,
    columns: Columns,
    rule: Labels | None,
    precision: read.Precision | None,
    *,
    nulls: bool,
) -> read.Documents:
    """Return the documents of a table, with NaN for missing values if `nulls` allows them."""
    X, table = _features(path, columns, precision, nulls=nulls)
    names = columns.roles
    query = names["query"]
    ids, offsets = _queries(_ids(table[query], query, "query"), query)
    y = labels_of(table[names["label"]], path, names["label"], rule)
    documents = query_weights = document_weights = None
    if name := names.get("document"):
        texts = _ids(table[name], name, "document").to_pylist()
        documents = np.array(texts).astype(np.str_)
    if name := names.get("query_weight"):
        weights = _numbers(table[name], path, name)
        query_weights = weights[offsets[:-1]]
        same = weights == np.repeat(query_weights, np.diff(offsets))
        differs = f"another weight in the column {name!r} than in the first row of the query"
        _require(same, f"{differs}; give all rows of a query one weight")
    if name := names.get("document_weight"):
        document_weights = _numbers(table[name], path, name)
    qid = np.repeat(ids, np.diff(offsets))
    return read.Documents(X, y, qid, columns.features, documents, query_weights, document_weights)


def _features(
    path: Path, columns: Columns, precision: read.Precision | None, *, nulls: bool
) -> tuple[Floats, pa.Table]:
    """Return the features of all batches, and the other columns."""
    pieces = []
    tables = []
    n_rows, n_features = 0, len(columns.features)
    texts = [name for role, name in columns.roles.items() if not role.endswith("weight")]
    for batch in _batches(path, [*columns.roles.values(), *columns.features], texts):
        features = batch.select(list(columns.features))
        if precision is None:
            is_single = set(features.schema.types) == {pa.float32()}
            precision = np.float32 if is_single else np.float64
        end = n_rows + batch.num_rows
        n_bytes_of_row = n_features * np.dtype(precision).itemsize + 16  # with label and query
        check_room(f"{path}: {end:,} rows of {n_features:,} features", end * n_bytes_of_row)
        piece = read.zeros(n_features, batch.num_rows, precision).T
        for name, column, target in zip(columns.features, features.columns, piece.T, strict=True):
            with np.errstate(over="ignore"):
                target[...] = _numbers(column, path, name)
            if not nulls:
                reason = f"the value of {name!r} is missing; {read.MISSING_REMEDY}"
                _require(~np.isnan(target), reason, n_rows)
        pieces.append(piece)
        tables.append(batch.select(list(columns.roles.values())))
        n_rows = end
    if not n_rows:
        raise ValueError(f"{path}: the table has no row")
    return read.joined(pieces, n_features, pieces[0].dtype), pa.Table.from_batches(tables)


def _batches(path: Path, columns: Sequence[str], texts: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns block by block; in those of `texts`, categories and texts of any type are strings."""
    for batch in table_reader(path).batches(path, columns, texts):
        schema = batch.schema
        for name in texts:
            if re.match("large_string|string_view|dictionary", str(schema.field(name).type)):
                schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
        yield batch.cast(schema)


def _require(holds: Mask, reason: str | Callable[[int], str], row: int = 0) -> None:
    """Raise an error for the first row for which a condition does not hold; rows count from `row`."""
    if not holds.all():
        index = int(holds.argmin())
        raise read.WrongRowError(row + index, reason if isinstance(reason, str) else reason(index))


def _numbers(column: pa.Array | pa.ChunkedArray, path: Path, name: str) -> Array:
    """Return a column of plain numbers, NaN for missing ones; refuse another column."""
    try:
        return arrow_numbers(column)
    except ValueError as error:
        raise ValueError(f"{path}: the column {name!r} {error}; {NOT_NUMBERS}") from None


def checked_labels_rule(labels: object) -> Labels | None:
    """Return what texts or numbers in the label column mean; refuse other labels, and limits that do not increase."""
    if labels is None:
        return None
    if isinstance(labels, Mapping):
        check_at_least(
            0, MAX_LABEL, **{f"labels of {text!r}": label for text, label in labels.items()}
        )
        return {str(text): int(label) for text, label in labels.items()}
    limits = doubles(labels, "labels")
    if not limits.size or not np.isfinite(limits).all() or (np.diff(limits) <= 0).any():
        raise ValueError(
            f"labels is {labels!r}; give the label of each text, such as {{E = 3}}, or increasing "
            "limits"
        )
    return limits.tolist()


def labels_of(column: pa.ChunkedArray, path: Path, name: str, rule: Labels | None) -> Integers:
    """Return the relevance labels in a column, by a rule if there is one; a wrong one is a `WrongRowError`."""
    where = f"in the column {name!r} is"
    if isinstance(rule, Mapping):
        texts = column.cast(pa.large_string())
        index = pc.index_in(texts, pa.array(rule, pa.large_string())).to_numpy()
        reason = f"{where} none of {', '.join(map(repr, rule))}; add it to labels"
        _require(~np.isnan(index), lambda i: f"the label {texts[i].as_py()!r} {reason}")
        return np.array([*rule.values()])[index.astype(np.int64)]
    if pa.types.is_string(column.type):
        numbers, is_wrong = parsed_numbers(column.combine_chunks())
        remedy = "give the label of each text, such as labels = {good = 1}, or "
        remedy += "moerank init --labels good=1,bad=0"
        _require(
            ~is_wrong,
            lambda i: f"the label {read.quoted(column[i].as_py())} {where} not a number; {remedy}",
        )
    else:
        numbers = _numbers(column, path, name)
    values = np.asarray(numbers, float)
    _require(~np.isnan(values), f"the label {where} missing; every row needs one")
    if rule is not None:
        return np.searchsorted(rule, values, side="right").astype(np.int64)
    integer = f"not an integer from 0 (irrelevant) to {MAX_LABEL:,}"
    remedy = "give limits, such as labels = [0.25, 0.5]"
    _require(are_labels(values), lambda i: f"the label {values[i]:g} {where} {integer}; {remedy}")
    return values.astype(np.int64)


def _ids(column: pa.ChunkedArray, name: str, what: str) -> pa.Array:
    """Return the ids of queries or documents: integers or texts."""
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = arrow_numbers(column)
        reason = f"in the column {name!r} is NaN, or a float that stands for several integers"
        remedy = "convert the column to integers or text"
        _require(
            np.abs(numbers) < LARGEST_EXACT,
            lambda i: f"the {what} id {numbers[i]:g} {reason}; {remedy}",
        )
    if not pa.types.is_integer(kind) or column.null_count:
        column = column.cast(pa.large_string()).fill_null("")
        absent = f"no {what} id in the column {name!r}; every row needs one"
        _require(np.asarray(pc.not_equal(column, "")), absent)
    return column.combine_chunks()


def _queries(column: pa.Array, name: str) -> tuple[Array, Integers]:
    """Return the id of each query, 64-bit integers if all are written as such, and the rows where queries begin."""
    runs = pc.run_end_encode(column, pa.int64())
    offsets = np.append(0, runs.run_ends.to_numpy())
    texts = np.array([str(query) for query in runs.values.to_pylist()])
    _, first_runs = np.unique(texts, return_index=True)
    for run in np.setdiff1d(np.arange(len(texts)), first_runs)[:1]:
        remedy = f"sort the rows by the column {name!r}, so that those of a query are contiguous"
        raise read.WrongRowError(offsets[run], f"query {texts[run]} begins again; {remedy}")
    with suppress(ValueError, OverflowError):
        numbers = texts.astype(np.int64)
        if (numbers.astype(str) == texts).all():  # 07 is not 7
            return numbers, offsets
    return texts, offsets


def find_part(folder: Path, names: tuple[str, ...] = NAMES_OF_PARTS[0]) -> Path | None:
    """Return the table in a folder that has one of these names, by default the training table; None without one."""
    candidates = (folder / (name + ending) for name in names for ending in _readers())
    return next((path for path in candidates if path.is_file()), None)


def usual_column(present: Iterable[str], names: Sequence[str]) -> str | None:
    """Return the column with the first of these names; case does not matter."""
    spelt = {column.lower(): column for column in present}
    return next((spelt[name] for name in names if name in spelt), None)


def sample_table(path: Path, n_rows: int = 20_000) -> dict[str, pa.ChunkedArray]:
    """Return the first rows of all columns of a table, those of a CSV file as texts."""
    batches = []
    names = table_reader(path).names(path)
    for batch in _batches(path, names, names):
        batches.append(batch)
        if sum(map(len, batches)) >= n_rows:
            break
    if not any(map(len, batches)):
        raise ValueError(f"{path}: the table has no row")
    table = pa.Table.from_batches(batches).slice(0, n_rows)
    return dict(zip(table.column_names, table.columns, strict=True))


def write_documents(path: Path, documents: read.Documents) -> None:
    """Write documents as a Parquet file that names the roles of its columns; NaN becomes a missing value."""
    n_features = documents.X.shape[1]
    names = documents.feature_names or tuple(map(str, range(1, n_features + 1)))
    query_weights = documents.query_weights
    if query_weights is not None:
        offsets = query_offsets(documents.qid, str(path))
        query_weights = np.repeat(query_weights, np.diff(offsets))
    arrays = {
        "label": documents.y,
        "query": documents.qid,
        "document": documents.documents,
        "document_weight": documents.document_weights,
        "query_weight": query_weights,
    }
    columns = {name: values for name, values in arrays.items() if values is not None}
    roles = {name: name for name in columns} | {"features": names}
    columns |= dict(zip(names, map(np.ascontiguousarray, documents.X.T), strict=True))
    arrays_of = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    write_table(path, arrays_of, {"roles": roles})


def write_table(path: Path, columns: Mapping[str, pa.Array], metadata: Json) -> None:
    """Write columns as a Parquet file whose metadata hold their roles; an OSError names the file."""
    with writing(path), replacing(path) as file:
        pq.write_table(
            pa.table(columns).replace_schema_metadata({ROLES_KEY: json.dumps(metadata)}), file
        )


@contextmanager
def _opened_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, and refuse any other file."""
    with open_regular(path) as raw:
        try:
            with pq.ParquetFile(
                raw, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True
            ) as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).partition("\n")[0][:200]
            raise ValueError(
                f"{path}: not a Parquet file that can be read, or a damaged one ({reason})"
            ) from None


def _parquet_schema(path: Path) -> pa.Schema:
    """Return the names and types of the columns of a Parquet file."""
    with _opened_parquet(path) as file:
        return file.schema_arrow


def _parquet_roles(path: Path) -> Json:
    """Return the names of the columns by their roles, if the file names them."""
    metadata = _parquet_schema(path).metadata or {}
    return json.loads(metadata.get(ROLES_KEY, b"{}")).get("roles", {})


def _read_parquet(path: Path, columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns block by block."""
    with _opened_parquet(path) as file:
        size = max(2**8, min(read.CELLS_AT_A_TIME // len(columns), 2**16))
        yield from file.iter_batches(batch_size=size, columns=list(columns))


_PARQUET = Reader(lambda path: list(_parquet_schema(path).names), _read_parquet, _parquet_roles)
_CSV = Reader(csv_header, read_csv, lines_of=csv_lines)

# The readers by the endings of their files, in the order in which the files of a folder are looked for.
READERS = {".parquet": _PARQUET, ".pq": _PARQUET, ".csv": _CSV, ".csv.gz": _CSV, ".tsv": _CSV}


def _readers() -> dict[str, Reader]:
    """Return all readers by the endings of their files, those of installed packages last."""
    readers = dict(READERS)
    for name, offered in plugins("moerank.readers", Reader | Callable).items():
        reader = offered if isinstance(offered, Reader) else Reader.of(offered)
        readers[f".{name.removeprefix('.')}"] = reader
    return readers


def reader_of(path: Path) -> Reader | None:
    """Return the reader of a table by its ending; None for other files."""
    name = path.name.lower()
    return next((reader for ending, reader in _readers().items() if name.endswith(ending)), None)


def table_reader(path: Path) -> Reader:
    """Return the reader of a table; a file with another ending is taken for CSV."""
    return reader_of(path) or _CSV

"""Reader of tables with one row per document: CSV, Parquet, and formats that other packages add.

`READERS` has a row for each format. A reader turns a path into columns, and the rest is the same for all formats.
"""

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from math import isfinite
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
from moerank.data.inputs import LARGEST_EXACT, arrow_numbers, doubles, listed
from moerank.data.ranking_data import Fold, RankingData
from moerank.data.scaling import MissingRule
from moerank.files import Json, open_regular, replacing, writing
from moerank.solvers import plugins

MOST_LABEL = 2**31 - 1

# Key of the metadata of a Parquet file that say which columns are label, query, document and features.
ROLES = b"moerank"

# Usual names of the columns of label and query, the most usual first; case does not matter.
LABELS = ("label", "relevance", "rel", "grade", "target", "y")
QUERIES = ("qid", "query_id", "query", "queryid", "srch_id", "session_id", "group")

NAMES_OF_PARTS = (("train",), ("vali", "valid", "validation"), ("test",))

# Spellings of a missing value in CSV files, and of 1 and 0 in columns without other values.
MISSING = (
    "",
    "NA",
    "na",
    "N/A",
    "n/a",
    "NULL",
    "Null",
    "null",
    "NaN",
    "NAN",
    "nan",
    "None",
    "none",
)
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")

SEPARATORS = ",;\t"

# Lines of a file and rows of a table, with the number of the line on which they end.
Lines: TypeAlias = Iterator[tuple[int, str]]
Rows: TypeAlias = Iterator[tuple[int, list[str]]]

NUMBER = re.compile(r"[ \t]*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*")

# The label of each text; or increasing limits, of which a label counts those that a value reaches.
Labels: TypeAlias = Mapping[str, int] | Sequence[float]

NOT_NUMBERS = "turn it into numbers, or leave the column out: exclude= in Python, or in [data] of a problem file"

CELLS_AT_A_TIME = 2**22  # values that are read together

# Bytes of each column of a Parquet file that are read ahead: a group of rows may be as large as the file.
BUFFER = 2**16


@dataclass(frozen=True)
class Columns:
    """The names of the columns that are read."""

    label: str
    query: str
    features: tuple[str, ...]
    further: Mapping[
        str, str
    ]  # columns of documents and weights, by the names of the arguments of `RankingData`

    @property
    def texts(self) -> list[str]:
        """The columns of labels and ids."""
        return [
            self.label,
            self.query,
            *(name for array, name in self.further.items() if array == "documents"),
        ]

    @property
    def all(self) -> list[str]:
        """The names of all columns."""
        return [self.label, self.query, *self.further.values(), *self.features]


class WrongRowError(ValueError):
    """A row of a table that cannot be used, counted from 0, and the reason."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row, self.reason = row, reason


@dataclass(frozen=True)
class Reader:
    """A format of tables.

    Attributes
    ----------
    names : callable
        ``names(path, needed)`` returns the names of all columns; `needed` are some of them.
    batches : callable
        ``batches(path, columns, texts)`` yields columns block by block; those of `texts` need not hold numbers.
    roles : callable, optional
        ``roles(path)`` returns the columns that are ``label``, ``query``, ``document`` and ``features``, if the file
        says so.
    lines_of : callable, optional
        ``lines_of(path, columns, rows)`` returns the lines of increasing rows, counted from 0, for messages.
    """

    names: Callable[[Path, Sequence[str]], list[str]]
    batches: Callable[[Path, Sequence[str], Sequence[str]], Iterable[pa.RecordBatch]]
    roles: Callable[[Path], Mapping[str, Any]] = lambda path: {}
    lines_of: Callable[[Path, Sequence[str], Sequence[int]], list[int]] | None = None

    @classmethod
    def of(cls, read: Callable[[Path, Sequence[str] | None], Any]) -> Self:
        """Return the reader for a function of an installed package, which returns the columns given, or all for None.

        The result of the function is any object with Arrow's ``__arrow_c_stream__``, such as a pyarrow Table.
        """
        stream = pa.RecordBatchReader.from_stream
        return cls(
            lambda path, _: stream(read(path, None)).schema.names,
            lambda path, *of: stream(read(path, of[0])),
        )


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
    further = {
        "document": document,
        "query_weight": query_weight,
        "document_weight": document_weight,
    }
    columns = table_columns(
        path, label=label, query=query, features=features, exclude=exclude, **further
    )
    rule, precision = (
        checked_labels_rule(labels),
        None if dtype is None else read.as_precision(dtype),
    )
    try:
        documents = _read(path, columns, rule, precision, missing is not None)
    except WrongRowError as error:
        [line] = row_names(path, [error.row], columns.all)
        raise ValueError(f"{path}, {line}: {error.reason}") from None
    return documents.as_data(name or str(path), missing, missing_values)


def load_table_fold(directory: str | os.PathLike[str], **options: Any) -> Fold:
    """Read the training, validation and test table of a fold, all with the features of the training table.

    The folder holds ``train``, ``vali`` (or ``valid``, or ``validation``) and ``test``, each with an ending of
    `READERS`; the first one found is read. A part that lacks one of the features is refused. The options are the other
    arguments of `load_table`, and the errors are the same.
    """
    folder = Path(directory)
    read.check_folder(folder, "load_table_fold reads the folder of one fold")
    paths = [_part(folder, names) for names in NAMES_OF_PARTS]
    others = {
        name: options[name]
        for name in options.keys() & {"labels", "missing", "missing_values", "dtype"}
    }
    roles = {name: value for name, value in options.items() if name not in others}
    first = table_columns(paths[0], **roles)
    roles = roles | {
        "label": first.label,
        "query": first.query,
        "features": first.features,
        "exclude": (),
    }
    return cast("Fold", tuple(load_table(path, **roles, **others) for path in paths))


def table_columns(
    path: Path,
    *,
    label: str | None = None,
    query: str | None = None,
    features: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    **further: str | None,
) -> Columns:
    """Return the columns that are read: those given, else those that the file names, and all others as features."""
    reader = table_reader(path)
    stored = reader.roles(path)
    options = {"label": label, "query": query, "document": None, **further}
    roles = {role: name for role, given in options.items() if (name := given or stored.get(role))}
    left_out = dict.fromkeys(listed(exclude))
    present = reader.names(path, [*roles.values(), *left_out])
    for role, usual in (("label", LABELS), ("query", QUERIES)):
        roles[role] = roles.get(role) or usual_column(present, usual) or ""
        if not roles[role]:
            shown = ", ".join(present[:10])
            raise ValueError(
                f"{path}: no column has a usual name for the {role}; give {role}=, such as one of {shown}"
            )
    used = {*roles.values(), *left_out}
    others = (name for name in stored.get("features") or present if name not in used)
    chosen = tuple(dict.fromkeys(listed(features))) if features is not None else tuple(others)
    for fault in _faults_of_columns(roles, left_out, chosen, present, named=features is not None):
        raise ValueError(f"{path}: {fault}")
    arrays = {f"{role}s": name for role, name in roles.items() if role not in ("label", "query")}
    return Columns(roles["label"], roles["query"], chosen, arrays)


def _faults_of_columns(
    roles: Mapping[str, str],
    left_out: Iterable[str],
    chosen: tuple[str, ...],
    present: Sequence[str],
    *,
    named: bool,
) -> Iterator[str]:
    """Yield the faults: columns that are missing, duplicate, used twice, or not features unless these are `named`."""
    counts, role_of = Counter(present), dict[str, str]()
    yield from (
        f"two columns are called {name!r}; give distinct names"
        for name, n in counts.items()
        if n > 1
    )
    arguments = {role: (name,) for role, name in roles.items()} | {
        "exclude": left_out,
        "features": chosen,
    }
    for argument, names in arguments.items():
        yield from (
            f"{argument}=: {unknown('column', name, present)}"
            for name in names
            if name not in counts
        )
    for role, name in [*roles.items(), *(("feature", name) for name in chosen)]:
        if role_of.setdefault(name, role) != role:
            yield f"the column {name!r} cannot be both {role_of[name]} and {role}"
        if role == "feature" and not named and name in ("", "__index_level_0__"):
            remedy = "write the table with index=False, or list the columns that are features"
            yield f"the column {name!r} is an index that pandas wrote, not a feature; {remedy}"
    if not chosen:
        yield f"no feature besides {roles['label']!r} and {roles['query']!r}; at least one column is needed"


def row_names(path: Path, rows: Sequence[int], needed: Sequence[str] = ()) -> list[str]:
    """Return the places of rows, counted from 0, for messages: lines, or numbers in a file without lines."""
    lines_of = table_reader(path).lines_of
    return (
        [f"line {n}" for n in lines_of(path, needed, rows)]
        if lines_of
        else [f"row {row + 1:,}" for row in rows]
    )


def _read(
    path: Path, columns: Columns, rule: Labels | None, dtype: read.Precision | None, nulls: bool
) -> read.Documents:
    """Gather the documents of all batches: features piece by piece, everything else as a table of Arrow."""
    pieces: list[Floats] = []
    others, n_rows, n_features = [], 0, len(columns.features)
    for batch in _batches(path, columns.all, columns.texts):
        features = batch.select(list(columns.features))
        dtype = dtype or (
            np.float32 if set(features.schema.types) == {pa.float32()} else np.float64
        )
        n_bytes = (n_rows + batch.num_rows) * (
            n_features * np.dtype(dtype).itemsize + 16
        )  # with label and query
        check_room(f"{path}: {n_rows + batch.num_rows:,} rows of {n_features:,} features", n_bytes)
        pieces.append(read.zeros(n_features, batch.num_rows, dtype).T)
        for name, column, target in zip(
            columns.features, features.columns, pieces[-1].T, strict=True
        ):
            _fill(target, _numbers(column, path, name), name, n_rows, nulls=nulls)
        others.append(batch.select(columns.all[:-n_features]))
        n_rows += batch.num_rows
    if not n_rows:
        raise ValueError(f"{path}: the table has no row")
    table = pa.Table.from_batches(others)
    ids, offsets = _queries(_ids(table[columns.query], path, columns.query, "query"), columns.query)
    y = labels_of(table[columns.label], path, columns.label, rule)
    arrays: dict[str, Array] = {}
    for array, name in columns.further.items():
        if array == "documents":
            arrays[array] = np.array(_ids(table[name], path, name, "document").to_pylist()).astype(
                np.str_
            )
        else:
            arrays[array] = _weights(table[name], path, name)
    if (weights := arrays.get("query_weights")) is not None:
        arrays["query_weights"] = weights[offsets[:-1]]
        same = weights == np.repeat(arrays["query_weights"], np.diff(offsets))
        other = f"another weight in the column {columns.further['query_weights']!r} than in the first row of the query"
        _require(same, lambda i: f"{other}; give all rows of a query one weight")
    qid = np.repeat(ids, np.diff(offsets))
    return read.Documents(
        read.joined(pieces, n_features, pieces[0].dtype), y, qid, columns.features, **arrays
    )


def _batches(path: Path, columns: Sequence[str], texts: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns block by block; in those of `texts`, categories and texts of any type are strings."""
    for batch in table_reader(path).batches(path, columns, texts):
        schema = batch.schema
        for name in texts:
            if re.match("large_string|string_view|dictionary", str(schema.field(name).type)):
                schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
        yield batch.cast(schema)


def _require(right: Mask, reason: Callable[[int], str], row: int = 0) -> None:
    """Raise an error for the first row that is not right; rows count from `row`."""
    if not right.all():
        wrong = int(right.argmin())
        raise WrongRowError(row + wrong, reason(wrong))


def _numbers(column: pa.Array | pa.ChunkedArray, path: Path, name: str) -> Array:
    """Return a column of plain numbers, NaN for missing ones; refuse another column."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise ValueError(
            f"{path}: the column {name!r} holds {kind}, not plain numbers; {NOT_NUMBERS}"
        )
    return arrow_numbers(column)


def _weights(column: pa.ChunkedArray, path: Path, name: str) -> Array:
    """Return a column of positive numbers."""
    weights, where = (
        np.asarray(_numbers(column, path, name), np.float64),
        f"in the column {name!r} is",
    )
    _require(~np.isnan(weights), lambda i: f"the weight {where} missing; every row needs one")
    right = (weights > 0) & np.isfinite(weights)
    _require(
        right,
        lambda i: f"the weight {weights[i]:g} {where} not a positive, finite number; change it",
    )
    return weights


def _fill(target: Floats, values: Array, name: str, row: int, *, nulls: bool) -> None:
    """Write a feature of the rows from `row` on into a column of the table."""
    with np.errstate(over="ignore"):
        target[...] = values
    if not nulls:
        _require(
            ~np.isnan(target),
            lambda i: f"the value of {name!r} is missing; {read.MISSING_REMEDY}",
            row,
        )
    large = "is infinite, or too large for the precision of the features"
    _require(~np.isinf(target), lambda i: f"the value {values[i]:g} of {name!r} {large}", row)


def checked_labels_rule(labels: object) -> Labels | None:
    """Return what texts or numbers in the label column mean; refuse other labels, and limits that do not increase."""
    if labels is None:
        return None
    if isinstance(labels, Mapping):
        check_at_least(
            0, MOST_LABEL, **{f"labels of {text!r}": label for text, label in labels.items()}
        )
        return {text: int(label) for key, label in labels.items() for text in _spellings(key)}
    limits = (
        doubles(labels, "labels").tolist()
        if isinstance(labels, Sequence) and not isinstance(labels, str)
        else []
    )
    if not limits or not all(map(isfinite, limits)) or any(b <= a for a, b in pairwise(limits)):
        raise ValueError(
            f"labels is {labels!r}; give the label of each text, such as {{E = 3}}, or increasing limits"
        )
    return tuple(limits)


def _spellings(key: object) -> tuple[str, ...]:
    """Return how tables write a key of `labels`."""
    if isinstance(key, bool | np.bool_):
        return TRUE if key else FALSE
    return (str(key), f"{key:.0f}") if isinstance(key, float) and key.is_integer() else (str(key),)


def labels_of(column: pa.ChunkedArray, path: Path, name: str, rule: Labels | None) -> Integers:
    """Return the relevance labels in a column, by a rule if there is one; a wrong one is a `WrongRowError`."""
    where = f"in the column {name!r} is"
    if isinstance(rule, Mapping):
        texts = column.cast(pa.large_string())
        index = pc.index_in(texts, pa.array(rule, pa.large_string())).to_numpy()
        others = f"{where} none of {', '.join(map(repr, rule))}; add it to labels"
        _require(~np.isnan(index), lambda i: f"the label {texts[i].as_py()!r} {others}")
        return np.array([*rule.values()])[index.astype(np.int64)]
    if pa.types.is_string(column.type):
        numbers, boolean, wrong = parsed_numbers(column.combine_chunks())
        wrong = wrong | (boolean & (not boolean.all()))
        remedy = "give the label of each text, such as labels = {good = 1}, or moerank init --labels good=1,bad=0"
        _require(
            ~wrong,
            lambda i: f"the label {read.quoted(column[i].as_py())} {where} not a number; {remedy}",
        )
        values = np.asarray(numbers, np.float64)
    else:
        values = np.asarray(_numbers(column, path, name), np.float64)
    _require(~np.isnan(values), lambda i: f"the label {where} missing; every row needs one")
    if rule is not None:
        return np.searchsorted(rule, values, side="right").astype(np.int64)
    with np.errstate(invalid="ignore"):
        right = (values >= 0) & (values <= MOST_LABEL) & (values == np.floor(values))
    integer = f"not an integer from 0 (irrelevant) to {MOST_LABEL:,}; give limits, such as labels = [0.25, 0.5]"
    _require(right, lambda i: f"the label {values[i]:g} {where} {integer}")
    return values.astype(np.int64)


def _ids(column: pa.ChunkedArray, path: Path, name: str, what: str) -> pa.Array:
    """Return the ids of queries or documents: integers or texts."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        raise ValueError(f"{path}: the column {name!r} holds {kind}, which are not ids; make texts")
    if pa.types.is_floating(kind):
        numbers = arrow_numbers(column)
        inexact = f"in the column {name!r} is NaN, or a float that stands for several integers; make integers or texts"
        _require(
            np.abs(numbers) < LARGEST_EXACT, lambda i: f"the {what} id {numbers[i]:g} {inexact}"
        )
    if not pa.types.is_integer(kind) or column.null_count:
        column = column.cast(pa.large_string()).fill_null("")
        absent = f"no {what} id in the column {name!r}; every row needs one"
        _require(np.asarray(pc.not_equal(column, "")), lambda i: absent)
        zero = f"the {what} id in the column {name!r} ends in a zero byte; leave it out"
        _require(~np.asarray(pc.ends_with(column, "\0")), lambda i: zero)
    return column.combine_chunks()


def _queries(column: pa.Array, name: str) -> tuple[Array, Integers]:
    """Return the id of each query, 64-bit integers if all are written as such, and the rows where queries begin."""
    runs = pc.run_end_encode(column, pa.int64())
    offsets = np.append(0, runs.run_ends.to_numpy())
    first: dict[object, int] = {}
    for query, row in zip(runs.values.to_pylist(), offsets.tolist(), strict=False):
        if query in first:
            remedy = (
                f"sort the rows by the column {name!r}, so that those of a query are contiguous"
            )
            raise WrongRowError(row, f"query {query} begins again; {remedy}")
        first[query] = row
    texts = np.array([str(query) for query in first])
    with suppress(ValueError, OverflowError):
        numbers = texts.astype(np.int64)
        if (numbers.astype(str) == texts).all():  # 07 is not 7
            return numbers, offsets
    return texts, offsets


def write_documents(path: Path, documents: read.Documents) -> None:
    """Write documents as a Parquet file that names the roles of its columns; NaN becomes a missing value."""
    names = documents.feature_names or tuple(
        str(number) for number in range(1, documents.X.shape[1] + 1)
    )
    columns = {"label": documents.y, "query": documents.qid, "document": documents.documents}
    columns |= {
        "document_weight": documents.document_weights,
        "query_weight": documents.query_weights,
    }
    if documents.query_weights is not None:
        begins = np.append(True, documents.qid[1:] != documents.qid[:-1])
        columns["query_weight"] = documents.query_weights[np.cumsum(begins) - 1]
    columns = {name: values for name, values in columns.items() if values is not None}
    roles = {name: name for name in columns} | {"features": names}
    columns |= dict(zip(names, map(np.ascontiguousarray, documents.X.T), strict=True))
    write_table(
        path,
        {name: pa.array(values, from_pandas=True) for name, values in columns.items()},
        {"roles": roles},
    )


def write_table(path: Path, columns: Mapping[str, pa.Array], about: Json) -> None:
    """Write columns as a Parquet file whose metadata hold their roles; an OSError names the file."""
    with writing(path), replacing(path) as file:
        pq.write_table(pa.table(columns).replace_schema_metadata({ROLES: json.dumps(about)}), file)


def find_part(folder: Path, names: tuple[str, ...] = NAMES_OF_PARTS[0]) -> Path | None:
    """Return the table in a folder that has one of these names, by default the training table; None without one."""
    candidates = (folder / (name + ending) for name in names for ending in _readers())
    return next((path for path in candidates if path.is_file()), None)


def _part(folder: Path, names: tuple[str, ...]) -> Path:
    path = find_part(folder, names)
    if path is None:
        first, *others = _readers()
        wanted = f"{', '.join(name + first for name in names)} (also {', '.join(others)})"
        raise FileNotFoundError(f"{folder}: looked for {wanted} and found {read.names_in(folder)}")
    return path


def usual_column(present: Iterable[str], names: Sequence[str]) -> str | None:
    """Return the column with the first of these names; case does not matter."""
    spelt = {column.lower(): column for column in reversed(list(present))}
    return next((spelt[name] for name in names if name in spelt), None)


def sample_table(path: Path, n_rows: int = 20_000) -> dict[str, pa.ChunkedArray]:
    """Return the first rows of all columns of a table, those of a CSV file as texts."""
    batches, size, names = list[pa.RecordBatch](), 0, table_reader(path).names(path, ())
    for batch in _batches(path, names, names):
        batches.append(batch)
        size += batch.num_rows
        if size >= n_rows:
            break
    if not size:
        raise ValueError(f"{path}: the table has no row")
    table = pa.Table.from_batches(batches).select(names).slice(0, n_rows)
    return dict(zip(names, table.itercolumns(), strict=True))


@contextmanager
def _opened_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, and refuse any other file."""
    with open_regular(path) as stored:
        try:
            with pq.ParquetFile(
                stored, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True
            ) as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).partition("\n")[0][:200]
            raise ValueError(
                f"{path}: not a Parquet file that can be read, or a damaged one ({reason})"
            ) from None


def _parquet_schema(path: Path) -> pa.Schema:
    with _opened_parquet(path) as file:
        return file.schema_arrow


def _parquet_roles(path: Path) -> Json:
    """Return the names of the columns by their roles, if the file names them."""
    return json.loads((_parquet_schema(path).metadata or {}).get(ROLES, b"{}")).get("roles", {})


def _read_parquet(path: Path, columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns block by block."""
    with _opened_parquet(path) as file:
        n_rows, n_read = int(file.metadata.num_rows), 0
        size = max(2**8, min(CELLS_AT_A_TIME // len(columns), 2**16))
        for batch in file.iter_batches(batch_size=size, columns=list(columns)):
            if sorted(batch.schema.names) != sorted(columns):
                raise ValueError(
                    f"{path}: a damaged Parquet file: it holds other columns than it says"
                )
            yield batch
            n_read += batch.num_rows
        if n_read != n_rows:
            raise ValueError(
                f"{path}: a damaged Parquet file: it says {n_rows:,} rows and holds {n_read:,}"
            )


def csv_rows(path: Path, lines: Lines, separator: str, before: int, width: int = 0) -> Rows:
    """Yield the line and the fields of each row that is not blank; all have `width` fields, or those of the first row.

    A row with another number of fields is a ValueError. `before` is the number of lines before those given.
    """
    rows = csv.reader((line for _, line in lines), delimiter=separator, strict=True)
    try:
        for fields in rows:
            if not fields or (len(fields) == 1 and fields[0] and not fields[0].strip(" \t")):
                continue
            width = width or len(fields)
            if len(fields) != width:
                named = f"{len(fields)} fields, but the header names {width} columns"
                raise ValueError(
                    f"{path}, line {before + rows.line_num}: {named}; quote fields with separators"
                )
            yield before + rows.line_num, fields
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {before + rows.line_num}: not a CSV file: {error}"
        ) from None


def csv_table(path: Path, lines: Lines, needed: Sequence[str] = ()) -> tuple[Rows, str]:
    """Return the rows of a CSV file and the separator, which yields all needed names, else the most names."""
    number, first = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    headers = {sign: _fields(first, sign) for sign in SEPARATORS}
    separator = max(
        SEPARATORS, key=lambda sign: (set(needed) <= set(headers[sign]), len(headers[sign]))
    )
    return csv_rows(path, chain([(number, first)], lines), separator, number - 1), separator


def _fields(line: str, separator: str) -> list[str]:
    with suppress(csv.Error):  # such as more than 128 KiB without this separator
        return next(csv.reader([line], delimiter=separator), [])
    return []


def parsed_numbers(cells: pa.Array) -> tuple[pa.Array, Mask, Mask]:
    """Return texts as numbers, null for what is missing; which are true or false; and which are no numbers."""
    missing = pc.is_in(cells, pa.array(MISSING))
    with suppress(pa.ArrowInvalid):
        numbers = pc.if_else(missing, None, cells).cast(pa.float64())
        if (
            pc.all(pc.is_finite(numbers)).as_py() is not False
        ):  # so that NaN and infinity are looked at closely
            return numbers, *np.zeros((2, len(cells)), np.bool_)
    missing = pc.or_(missing, pc.match_substring_regex(cells, r"(?i)^[ \t]*[+-]?nan[ \t]*$"))
    true, false = (pc.is_in(cells, pa.array(spellings)) for spellings in (TRUE, FALSE))
    boolean = pc.or_(true, false)
    right = pc.match_substring_regex(cells, f"^(?:{NUMBER.pattern})$")
    plain = pc.if_else(
        true, "1", pc.if_else(false, "0", pc.if_else(right, pc.utf8_trim(cells, " \t"), None))
    )
    wrong = pc.invert(pc.or_(pc.or_(missing, boolean), right))
    return (
        pc.if_else(missing, None, plain).cast(pa.float64()),
        np.asarray(boolean),
        np.asarray(wrong),
    )


def _csv_header(path: Path, needed: Sequence[str]) -> list[str]:
    """Return the names of the columns of a CSV file."""
    _, header = next(csv_table(path, read.text_lines(path), needed)[0], (0, []))
    if all(name in MISSING or NUMBER.fullmatch(name) for name in header) or re.search(
        r"[\r\n]", "".join(header)
    ):
        raise ValueError(
            f"{path}: the first line must be a header with the names of all columns; add one"
        )
    return header


def _blocks(
    path: Path, lines: Lines, separator: str, width: int
) -> Iterator[tuple[list[int], pa.Array]]:
    """Yield the lines of some rows of a CSV file, and their cells row by row; without quotes in one piece."""
    size = max(1, CELLS_AT_A_TIME // (4 * width))  # cells are larger than numbers
    while block := list(islice(lines, size)):
        texts = pa.array([line.rstrip("\r\n") for _, line in block], pa.string())
        fields = pc.split_pattern(texts, separator)
        odd = pc.or_(
            pc.match_substring(texts, '"'), pc.not_equal(pc.list_value_length(fields), width)
        )
        if pc.any(odd).as_py():
            rows = csv_rows(path, chain(block, lines), separator, block[0][0] - 1, width)
            while part := list(islice(rows, size)):
                cells = pa.array([cell for _, fields in part for cell in fields], pa.string())
                yield [line for line, _ in part], cells
            return
        yield [line for line, _ in block], fields.flatten()


def _read_csv(
    path: Path, columns: Sequence[str], texts: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield some columns block by block, as numbers or as texts; null is a missing number."""
    lines = read.text_lines(path)
    rows, separator = csv_table(path, lines, columns)
    names = next(rows)[1]
    index = {name: number for number, name in enumerate(names)}
    texts = frozenset(texts)  # a table may have 100,000 columns
    numeric = [name for name in columns if name not in texts]
    indices = np.array([index[name] for name in numeric], np.int64)
    is_switch = np.full(
        len(numeric), -1
    )  # whether a column holds true and false, −1 before its first value
    for block, every in _blocks(path, lines, separator, len(names)):
        cells = every.take(
            pa.array((np.arange(len(block))[:, None] * len(names) + indices).ravel())
        )
        numbers, boolean, wrong = parsed_numbers(cells)
        table = (len(block), len(numeric))
        present, switches = (
            (np.asarray(numbers.is_valid()) | wrong).reshape(table),
            boolean.reshape(table),
        )
        first = switches[present.argmax(axis=0), np.arange(len(numeric))]
        is_switch = np.where((is_switch < 0) & present.any(axis=0), first, is_switch)
        odd = wrong.reshape(table) | (present & (switches != is_switch))
        for row, column in np.argwhere(odd)[:1].tolist():
            text = read.quoted(cells[row * len(numeric) + column].as_py())
            kind = "true or false, as the others are" if is_switch[column] == 1 else "a number"
            cell = f"{path}, line {block[row]}: the value {text} of {numeric[column]!r}"
            raise ValueError(f"{cell} is not {kind}; {NOT_NUMBERS}")
        batch = {name: every[index[name] :: len(names)] for name in texts}
        batch |= {name: numbers[column :: len(numeric)] for column, name in enumerate(numeric)}
        yield pa.RecordBatch.from_pydict(batch)


def _csv_lines(path: Path, columns: Sequence[str], rows: Sequence[int]) -> list[int]:
    """Return the lines on which rows end."""
    table = islice(csv_table(path, read.text_lines(path), columns)[0], 1, rows[-1] + 2)
    return [line for row, (line, _) in enumerate(table) if row in rows]


_PARQUET = Reader(lambda path, _: list(_parquet_schema(path).names), _read_parquet, _parquet_roles)
_CSV = Reader(_csv_header, _read_csv, lines_of=_csv_lines)

# The readers by the endings of their files, in the order in which the files of a folder are looked for.
READERS = {".parquet": _PARQUET, ".pq": _PARQUET, ".csv": _CSV, ".csv.gz": _CSV, ".tsv": _CSV}


def _readers() -> dict[str, Reader]:
    """Return all readers by the endings of their files, those of installed packages last."""
    added = plugins("moerank.readers", Callable).items()
    return READERS | {f".{name.removeprefix('.')}": Reader.of(read) for name, read in added}


def reader_of(path: Path) -> Reader | None:
    """Return the reader of a table by its ending; None for other files."""
    name = path.name.lower()
    return next((reader for ending, reader in _readers().items() if name.endswith(ending)), None)


def table_reader(path: Path) -> Reader:
    """Return the reader of a table; a file with another ending is taken for CSV."""
    return reader_of(path) or _CSV

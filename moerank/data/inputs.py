"""Features, labels, queries and names as users give them: read as arrays and checked."""

import mmap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from moerank.arrays import Array, Floats, Integers, Mask, Vector
from moerank.checks import unknown

# Tables of more bytes are in Fortran order, which kernels need; they copy smaller ones.
BY_COLUMNS = 2**26


def row_blocks(n_rows: int, size: int = 4096) -> Iterator[slice]:
    """Yield the rows of a table block by block; by default so few that they stay in the processor's cache."""
    for begin in range(0, n_rows, size):
        yield slice(begin, begin + size)


def empty_table(n_documents: int, n_features: int, dtype: DTypeLike) -> Array:
    """Return an uninitialised table (n_documents, n_features), in C or Fortran order depending on its size."""
    n_bytes = n_documents * n_features * np.dtype(dtype).itemsize
    return np.empty((n_documents, n_features), dtype, order="F" if n_bytes >= BY_COLUMNS else "C")


def column_names(X: object) -> tuple[str, ...] | None:
    """Return the names of the columns of a DataFrame or an Arrow table; None for other objects."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None and hasattr(X, "__arrow_c_stream__"):
        names = _arrow_table(X).column_names
    return None if names is None else tuple(map(str, names))


def _arrow_table(X: object) -> Any:
    import pyarrow as pa

    try:
        return X if isinstance(X, pa.Table) else pa.RecordBatchReader.from_stream(X).read_all()
    except (pa.ArrowInvalid, TypeError):
        raise ValueError(
            f"X is a {type(X).__name__}, not a table; give one column per feature"
        ) from None


def as_table(X: Any, names: Sequence[str] | None = None) -> Array:
    """Return a contiguous table (n_documents, n_features), in single precision if X is, else in double.

    A missing value (None, NA, a masked entry) becomes NaN. A read-only array is used as it is, in C or Fortran order;
    any other is copied, in the order of `empty_table`. Messages name the columns by `names`.
    """
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        gibibytes = np.prod(X.shape, dtype=float) * (4 if X.dtype == np.float32 else 8) / 2**30
        raise ValueError(
            f"X is sparse; rankers need a dense table: X.toarray(), which takes {gibibytes:.2g} GiB"
        )
    if hasattr(X, "iloc") or hasattr(X, "__arrow_c_stream__"):
        return _frame_table(X, names)
    try:
        table = exact_numbers(without_mask(X))
        if table.dtype.kind == "O":
            table = np.where(_missing(table), np.nan, table).astype(float)
        if table.dtype.kind in "cMm":
            reason = "Complex data not supported" if table.dtype.kind == "c" else "no real numbers"
            raise ValueError(f"values of type {table.dtype}: {reason}")
        is_contiguous = table.flags.c_contiguous or table.flags.f_contiguous
        has_precision = table.dtype in (np.float64, np.float32) and table.dtype.isnative
        if is_contiguous and has_precision and is_frozen(table):
            return table.view(np.ndarray)
        if table.ndim != 2:
            return np.array(table, float)
        is_single = table.dtype.kind == "f" and table.dtype.itemsize == 4
        copy = empty_table(len(table), table.shape[1], np.float32 if is_single else np.float64)
        for rows in row_blocks(len(table)):
            copy[rows] = table[rows]
        return copy
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"X must be a table of numbers, one row per document ({error})") from None


def is_frozen(array: Array) -> bool:
    """Return whether an array, and every array of which it is a view, is read-only."""
    base: Any = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        array, base = base, base.base
    is_mapped_file = isinstance(base, mmap.mmap) and isinstance(array, np.memmap)
    return base is None or isinstance(base, bytes) or is_mapped_file


def without_mask(values: Any) -> Array:
    """Return an array with NaN (None unless it holds floats) for the masked entries of a masked one.

    A list that mixes integers with floats is one of objects if a float may have lost digits.
    """
    if not isinstance(values, np.ma.MaskedArray) or not np.ma.is_masked(values):
        array = np.asarray(values)
        is_list = array.dtype.kind == "f" and not hasattr(values, "dtype")
        if is_list and (np.abs(array) >= LARGEST_EXACT).any():
            return np.asarray(values, object)
        return array
    absent: Any = np.nan if values.dtype.kind == "f" else None
    return np.where(values.mask, absent, values.data)


def _missing(values: Any) -> Mask:
    """Return which values are missing: NaN, NaT, and of objects None and NA, too."""
    if values.dtype.kind in "biufSU":
        return values != values
    import pandas as pd

    return pd.isna(values)


def require_same_index(X: Any, name: str, **arguments: Any) -> None:
    """Raise a ValueError if a pandas Series and a DataFrame of the same length have different indices."""
    for argument, values in arguments.items():
        are_pandas = hasattr(X, "iloc") and hasattr(values, "iloc")
        if are_pandas and len(X) == len(values) and not X.index.equals(values.index):
            raise ValueError(
                f"{name}: {argument} has another index than X; give {argument}.loc[X.index], or "
                f"{argument}.to_numpy() by row"
            )


def _frame_table(X: Any, names: Sequence[str] | None) -> Floats:
    """Return a DataFrame of pandas, or any other with Arrow's stream, as one table."""
    is_pandas = hasattr(X, "iloc")
    series = [column for _, column in X.items()] if is_pandas else _arrow_table(X).columns
    if names is None or len(names) != len(series):
        names = column_names(X) or _arrow_table(X).column_names
    columns = [_numbers(column, name) for column, name in zip(series, names, strict=True)]
    n_rows = len(columns[0]) if columns else 0
    is_single = bool(columns) and all(column.dtype == np.float32 for column in columns)
    table = empty_table(n_rows, len(columns), np.float32 if is_single else np.float64)
    for index, column in enumerate(columns):
        table[:, index] = column
    return table


def _numbers(column: Any, name: str) -> Array:
    """Return a column of a frame as numbers, in its own precision; refuse other values with the remedy."""
    import pandas as pd
    import pyarrow as pa

    try:
        if isinstance(column, pd.Series):
            if isinstance(column.dtype, np.dtype | pd.SparseDtype) and column.dtype.kind in "biuf":
                return exact_numbers(np.asarray(column))
            column = pa.array(column, from_pandas=True)
        return arrow_numbers(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        remedy = "leave it out, turn it into numbers, or into dummies (pandas.get_dummies)"
        raise ValueError(f"column {name!r} of X is no feature ({error}); {remedy}") from None


def arrow_numbers(column: Any) -> Array:
    """Return an Arrow column of numbers in its own precision, with NaN where a value is missing."""
    from pyarrow import types

    kind = column.type
    if types.is_decimal(kind) or types.is_null(kind):
        column = column.cast("double")
    elif types.is_boolean(kind):
        column = column.cast("int8")
    elif types.is_integer(kind):
        exact_numbers(
            np.asarray(column.fill_null(0))
        )  # as NumPy's integers, which have no missing values
    elif not types.is_floating(kind):
        raise ValueError(f"holds {kind}, not plain numbers")
    return np.asarray(column.to_numpy(zero_copy_only=False))


# Of a feature with which rankers are trained and score; see the notes of `RankingData`.
LARGEST_VALUE = 1e30
MAX_LABEL = 2**31 - 1
LARGEST_UNNAMED_QUERY = 1000  # more rows than this are one query only if the user passes a `qid`

RULES = (
    "a number, 'query-min', 'query-mean' or 'query-worst' (below the smallest value in the query)"
)
NEEDS_RULE = (
    f"say what missing values become, as in RankingData(X, y, qid, missing='query-worst'): {RULES}"
)


def without_values(X: Array, values: Sequence[float]) -> Array:
    """Return a table with NaN for the values that stand for a missing one; a copy if X is read-only."""
    with np.errstate(over="ignore"):
        numbers = np.array(values, X.dtype)
    for rows in row_blocks(len(X) if values else 0):
        if (mask := np.isin(X[rows], numbers)).any():
            X = X.copy(order="K") if is_frozen(X) else X
            X[rows][mask] = np.nan
    return X


def extreme_columns(X: Array) -> Mask:
    """Return which columns reach beyond 10⁶ times the 99 % quantile of their size, or beyond 1e30.

    The quantile of a column with fewer than 1 % other values than 0 is that of these.
    """
    largest = np.maximum(X.max(axis=0), -X.min(axis=0))
    n_large, n_values = np.zeros((2, X.shape[1]), np.int64)
    for rows in row_blocks(len(X)):
        size = np.abs(X[rows])
        n_large += (size > largest * 1e-6).sum(axis=0)
        n_values += (size > 0).sum(axis=0)
    n_values[n_values > 0.01 * len(X)] = len(X)
    return (largest > LARGEST_VALUE) | ((n_large > 0) & (n_large <= 0.01 * n_values))


def checked_values(values: Any) -> tuple[float, ...]:
    """Return numbers that stand for a missing value, all finite."""
    numbers = listed(values)
    rule = "give a list of finite numbers, such as [-999]"
    checked = checked_numbers(numbers, len(numbers), "missing_values", np.isfinite, rule)
    return tuple(checked.tolist())


# Which values are refused, and the remedy.
Fault: TypeAlias = tuple[Callable[[Array], Mask], str]

LARGE: Fault = (
    lambda values: np.abs(values) > LARGEST_VALUE,
    f"rankers cannot compute with values beyond {LARGEST_VALUE:g}: scale the feature, for "
    "instance by query_level_norm",
)
INFINITE: Fault = (
    np.isinf,
    "a value must be finite: replace it by a large number, or by NaN if it is unknown",
)


def refuse_values(X: Array, fault: Fault, names: Sequence[str] | None, where: str = "") -> None:
    """Raise a ValueError with row, feature and value of the first faulty entry of a table, if there is one."""
    is_faulty, remedy = fault
    for rows in row_blocks(len(X)):
        mask = is_faulty(X[rows])
        if mask.any():
            row, column = np.argwhere(mask)[0] + (rows.start, 0)
            value = f"{X[row, column]:g}".replace("nan", "NaN")
            feature = column + 1 if names is None else repr(str(names[column]))
            raise ValueError(
                f"{where}X[{row}, {column}] is {value} (row {row}, feature {feature}); {remedy}"
            )


def checked_features(X: ArrayLike, names: Sequence[str] | None, name: str) -> Array:
    """Return X as a table of finite numbers and NaN in one of two precisions, see `as_table`."""
    try:
        table = as_table(X, names)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    if table.ndim != 2:
        raise ValueError(f"{name}: X must have shape (n_documents, n_features), not {table.shape}")
    if table.shape[0] == 0:
        raise ValueError(f"{name}: X has no rows; at least one document is needed")
    if table.shape[1] == 0:
        raise ValueError(
            f"{name}: X has 0 feature(s) (shape={table.shape}) while a minimum of 1 is required."
        )
    fitting = names if names is not None and len(names) == table.shape[1] else None
    refuse_values(table, INFINITE, fitting, f"{name}: ")
    return table


def are_labels(values: Vector) -> Mask:
    """Return which numbers are relevance labels: integers from 0 to `MAX_LABEL`."""
    with np.errstate(invalid="ignore"):
        return (values >= 0) & (values <= MAX_LABEL) & (values == np.floor(values))


def checked_labels(y: ArrayLike, n_documents: int, name: str) -> Integers:
    """Return one relevance label per document."""
    rule = "labels are integers from 0 (irrelevant) upwards"
    return checked_numbers(y, n_documents, f"{name}: y", are_labels, rule).astype(np.int64)


def checked_queries(qid: ArrayLike | None, n_documents: int, name: str) -> Array:
    """Return the query of each document."""
    if qid is None:
        missing = f"{name}: qid is missing, so all {n_documents:,} rows are one query"
        missing += "; give the query of each row, or qid=0 if they are one"
        if n_documents > LARGEST_UNNAMED_QUERY:
            raise ValueError(missing)
        if n_documents > 1:
            warnings.warn(missing, stacklevel=3)
        return np.zeros(n_documents, np.int64)
    if isinstance(qid, Integral):
        return np.full(n_documents, int(qid), np.int64)
    ids = _listed_ids(qid, n_documents, f"{name}: qid")
    queries = np.array(ids.tolist()) if ids.dtype == object else ids
    if queries.dtype.kind == "c":
        raise ValueError(f"{name}: qid holds complex numbers; give integers or texts")
    if queries.dtype.kind == "f" and len(large := np.flatnonzero(np.abs(queries) >= LARGEST_EXACT)):
        value = f"qid[{large[0]}] is {queries[large[0]]:.0f} as a float"
        raise ValueError(
            f"{name}: {value}, which stands for several integers; give integers or texts"
        )
    return queries


def _listed_ids(ids: ArrayLike, n_documents: int, what: str) -> Array:
    """Return the ids that belong to documents, as an array of objects unless they have a type; messages say `what`.

    An array of texts would turn NaN into a text.
    """
    values = without_mask(ids if hasattr(ids, "dtype") else np.array(ids, dtype=object))
    if values.shape != (n_documents,):
        raise ValueError(
            f"{what} has shape {values.shape}; give the ids of {n_documents:,} documents"
        )
    for row in np.flatnonzero(_missing(values))[:1]:
        raise ValueError(f"{what}[{row}] is {values[row]}; every row needs an id")
    return values


LARGEST_EXACT = 2.0**53  # from here on a float stands for several integers


def exact_numbers(numbers: Array) -> Array:
    """Return numbers; refuse integers that double precision cannot tell apart, with the place of the first."""
    if numbers.dtype.kind in "iuO":
        sizes = numbers
        if numbers.dtype.kind == "O":
            integers = [value if isinstance(value, Integral) else 0 for value in numbers.flat]
            sizes = np.array(integers, object).reshape(numbers.shape)
        for index in np.argwhere((sizes > 2**53) | (sizes < -(2**53)))[:1].tolist():
            raise ValueError(
                f"holds integers beyond 2^53, such as {numbers[tuple(index)]} at {index}, which "
                "are equal in double precision; give ranks or smaller numbers"
            )
    return numbers


def doubles(values: Any, what: str) -> Array:
    """Return numbers in double precision; other values raise a ValueError, which calls them `what`."""
    try:
        numbers = exact_numbers(without_mask(values))
        if numbers.dtype.kind in "cMm":
            raise ValueError(f"the values are of type {numbers.dtype}")
        return np.asarray(numbers, float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{what} must be numbers ({error})") from None


def checked_numbers(
    values: Any, size: int, what: str, are_valid: Callable[[Vector], Mask], rule: str
) -> Vector:
    """Return valid numbers in double precision, shape (size,); a ValueError names the first wrong one of `what`."""
    numbers = doubles(values, what)
    if numbers.shape != (size,):
        raise ValueError(f"{what} has shape {numbers.shape}; give {size:,} numbers")
    for index in np.flatnonzero(~are_valid(numbers))[:1]:
        raise ValueError(f"{what}[{index}] is {numbers[index]:g}; {rule}")
    return numbers


def checked_weights(weights: ArrayLike | None, size: int, what: str, name: str) -> Vector | None:
    """Return positive finite weights (size,) divided by their mean, or None if they are all equal."""
    if weights is None:
        return None
    numbers = checked_numbers(
        weights,
        size,
        f"{name}: {what}",
        lambda values: (values > 0) & np.isfinite(values),
        "weights are positive and finite",
    )
    return None if np.ptp(numbers) == 0 else numbers / numbers.mean()


def checked_documents(documents: ArrayLike | None, size: int, name: str) -> Array | None:
    """Return the ids of documents as texts, shape (size,); another number of them is a ValueError."""
    if documents is None:
        return None
    return _listed_ids(documents, size, f"{name}: documents").astype(np.str_)


def query_offsets(qid: Array, name: str) -> Integers:
    """Return the rows at which queries begin and end, shape (n_queries + 1,); those of a query must be contiguous."""
    starts = np.flatnonzero(np.append(True, qid[1:] != qid[:-1]))
    queries, counts = np.unique(qid[starts], return_counts=True)
    if counts.max() > 1:
        query = queries[counts.argmax()]
        row = starts[np.flatnonzero(qid[starts] == query)[1]]
        again = f"the rows of query {query} are not contiguous: it begins again at row {row}"
        raise ValueError(
            f"{name}: {again}; sort them, for instance with numpy.argsort(qid, kind='stable')"
        )
    return np.append(starts, len(qid)).astype(np.int64)


def checked_names(
    names: Sequence[str] | None, n_features: int, name: str
) -> tuple[str, ...] | None:
    """Return one distinct name per feature, or None if none were given."""
    if names is None:
        return None
    if len(names) != n_features:
        raise ValueError(
            f"{name}: X has {n_features} columns but feature_names has {len(names)} entries"
        )
    texts = tuple(map(str, names))
    if len(set(texts)) != n_features:
        raise ValueError(f"{name}: feature_names must be distinct")
    return texts


def require_data(data: object) -> None:
    """Raise a ValueError for an object that is no `RankingData`, of which only that class knows."""
    if not hasattr(data, "document_weights"):
        raise ValueError(
            f"data must be a RankingData, not a {type(data).__name__}; pass RankingData(X, y, qid)"
        )


def checked_scores(scores: ArrayLike, n_documents: int, name: str) -> Vector:
    """Return scores, of shape (n_documents,) or (n_documents, n_individuals), in double precision, all finite."""
    checked = np.ascontiguousarray(doubles(scores, f"{name}: scores"))
    if np.ndim(scores) not in (1, 2) or len(checked) != n_documents:
        raise ValueError(
            f"{name}: scores has shape {np.shape(scores)}; give one score per document: shape "
            f"({n_documents},) or ({n_documents}, n_individuals)"
        )
    if not np.isfinite(checked).all():
        row, *individual = np.argwhere(~np.isfinite(checked))[0]
        where = f"row {row}" + "".join(f", individual {number}" for number in individual)
        raise ValueError(
            f"{name}: the score in {where} is {checked[row, *individual]}; scores must be finite: "
            "check the ranker's weights"
        )
    return checked


def listed(features: Any) -> tuple[Any, ...]:
    """Return features as a tuple, given as one column or name, several of them, or None."""
    if features is None:
        return ()
    if isinstance(features, str) or not isinstance(features, Iterable):
        return (features,)
    return tuple(features)


def column_mask(
    features: Sequence[int | str] | int | str | None, names: Sequence[str], where: str
) -> Mask:
    """Return the mask of features given by column (from 0) or name; an error begins with `where`."""
    mask = np.zeros(len(names), bool)
    mask[[column_of(feature, names, where) for feature in listed(features)]] = True
    return mask


def in_column_order(
    values: object, names: Sequence[str], where: str, *, complete: bool = False
) -> Any:
    """Return the values of a mapping or Series in the order of the features; if `complete`, it must have all."""
    import pandas as pd

    if not isinstance(values, Mapping | pd.Series):
        return values
    value_of = {column_of(feature, names, where): value for feature, value in values.items()}
    for column, name in enumerate(names):
        if complete and column not in value_of:
            raise ValueError(f"{where}: no value for feature {name!r}")
    return [value_of.get(column) for column in range(len(names))]


def column_of(feature: object, names: Sequence[str], where: str) -> int:
    """Return the column of a feature given by column (from 0) or name; an error begins with `where`."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"{where}: {unknown('feature', feature, names)}")
        return names.index(feature)
    if isinstance(feature, bool):
        feature = None  # Python counts True as 1
    if isinstance(feature, Integral) and 0 <= int(feature) < len(names):
        return int(feature)
    raise ValueError(
        f"{where}: there is no column {feature!r}; give a column from 0 to {len(names) - 1}, or a "
        "name"
    )

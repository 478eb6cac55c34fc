"""Tables of other libraries as arrays of numbers: DataFrames, masked arrays, memory-mapped and nested ones."""

from __future__ import annotations

import mmap
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_labels", "as_table", "column_names", "is_frozen", "require_same_index", "without_mask"]

ROWS = 4096
"""Rows of a DataFrame that are put together at once, so that they stay in the processor's cache."""


def column_names(X: object) -> tuple[str, ...] | None:
    """Return the names of the columns that a DataFrame brings along; None for what has none.

    pandas and polars have them as ``columns``, Arrow tables as ``column_names``, and what knows nothing but the
    interchange protocol says them when asked.
    """
    if hasattr(X, "collect"):  # a query of polars that has not been run
        return None
    names = getattr(X, "column_names", None)
    if not isinstance(names, list | tuple):
        names = getattr(X, "columns", None)
    if names is None and hasattr(X, "__dataframe__"):
        names = X.__dataframe__().column_names()
    return None if names is None else tuple(str(name) for name in names)


def as_table(X: Any, names: Sequence[str] | None = None) -> NDArray[Any]:
    """Return a table (n_documents, n_features) in single precision if it is given so, else in double; contiguous.

    A missing value (None, NA, a masked entry) becomes NaN. An array that nobody can write to is taken as it is, by
    rows or by columns; any other is copied, by rows.

    Parameters
    ----------
    X : array-like, masked array or DataFrame
    names : sequence of str, optional
        What messages call the columns.

    Raises
    ------
    ValueError
        For sparse matrices, and columns of texts, categories or dates, by name and with the remedy.
    TypeError
        For what holds no numbers at all.
    """
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        gibibytes = np.prod(X.shape, dtype=float) * (4 if X.dtype == np.float32 else 8) / 2**30
        raise ValueError(
            f"X is sparse, and rankers need a dense table; give X.toarray(), which takes {gibibytes:.2g} GiB"
        )
    if not isinstance(X, np.ndarray) and column_names(X) is not None:
        return _frame_table(X, names)
    table: NDArray[Any] = without_mask(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    if table.dtype.kind in "cMm":
        remark = " (Complex data not supported)" * (table.dtype.kind == "c")
        raise ValueError(f"X holds values of type {table.dtype}, not real numbers{remark}")
    dtype = np.float32 if table.dtype.kind == "f" and table.dtype.itemsize == 4 else np.float64
    contiguous = table.flags.c_contiguous or table.flags.f_contiguous
    if is_frozen(table) and table.dtype == dtype and table.dtype.isnative and contiguous:
        return table.view(np.ndarray)
    if table.dtype.kind == "O" and any(_is_unknown(value) for value in table.flat):
        table = np.where(np.vectorize(_is_unknown, otypes=[np.bool_])(table), np.nan, table)
    return np.array(table, dtype=dtype, order="C")


def is_frozen(array: NDArray[Any]) -> bool:
    """Whether nobody can write to an array: neither to it nor to what it is a view of."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        if isinstance(base, np.memmap) and getattr(base, "mode", None) != "r":
            return False
        array, base = base, base.base
    return base is None or isinstance(base, bytes) or (isinstance(base, mmap.mmap) and isinstance(array, np.memmap))


def without_mask(values: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """Return a masked array as numbers with NaN in the masked places, or as objects with None there."""
    if not np.ma.getmaskarray(values).any():
        return np.asarray(values.data)
    if values.dtype.kind in "biuf":
        numbers = values if values.dtype.kind == "f" else values.astype(np.float64)
        return np.asarray(np.ma.filled(numbers, np.nan))
    objects = np.asarray(values.data).astype(object)
    objects[np.ma.getmaskarray(values)] = None
    return objects


def as_labels(y: Any) -> NDArray[np.float64]:
    """Return relevance labels as numbers, NaN where one is missing.

    Raises
    ------
    ValueError
        For categories that are no numbers, with the remedy, and for what cannot be read as numbers.
    TypeError
        For what cannot be read as numbers.
    """
    if isinstance(y, np.ma.MaskedArray):
        y = without_mask(y)
    categories = getattr(getattr(y, "dtype", None), "categories", None)
    if categories is not None and getattr(categories, "dtype", None) is not None and categories.dtype.kind not in "iuf":
        raise ValueError(
            "its categories are no numbers; give the grade of each document as an integer, for instance by "
            "y.map({'irrelevant': 0, 'relevant': 1})"
        )
    if getattr(getattr(y, "dtype", None), "kind", "") in ("c", "M", "m"):
        raise ValueError(f"its values are of type {y.dtype}")
    if hasattr(y, "iloc"):
        y = y.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(y, dtype=np.float64)


def require_same_index(X: Any, values: Any, name: str) -> None:
    """Raise a ValueError if a pandas Series belongs to other rows than those of a DataFrame, by their indices."""
    if not (hasattr(X, "iloc") and hasattr(values, "iloc")) or len(X) != len(values):
        return
    if not X.index.equals(values.index):
        raise ValueError(
            f"{name} has another index than X, so its rows may be others; give {name}.loc[X.index], or "
            f"{name}.to_numpy() if the rows are in the same order"
        )


def _frame_table(X: Any, names: Sequence[str] | None) -> NDArray[Any]:
    """Put the columns of a DataFrame together."""
    own = column_names(X) or ()
    names = own if names is None or len(names) != len(own) else names
    if not hasattr(X, "iloc") and not hasattr(X, "__getitem__"):
        if not hasattr(X, "__dataframe__"):
            raise TypeError(f"a {type(X).__name__} holds no rows yet")
        from pandas.api.interchange import from_dataframe

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas will drop the protocol one day
            X = from_dataframe(X)
    columns = [
        _numbers(X.iloc[:, place] if hasattr(X, "iloc") else X[own[place]], name) for place, name in enumerate(names)
    ]
    single = bool(columns) and all(column.dtype == np.float32 for column in columns)
    table = np.empty((len(X), len(columns)), np.float32 if single else np.float64)
    for begin in range(0, len(table), ROWS):
        for place, column in enumerate(columns):
            table[begin : begin + ROWS, place] = column[begin : begin + ROWS]
    return table


def _numbers(column: Any, name: str) -> NDArray[Any]:
    """Return one column of a DataFrame as numbers, in the precision it has."""
    kind = getattr(column, "dtype", None)
    categorical = getattr(kind, "categories", None) is not None or str(kind).startswith(("Categorical", "Enum"))
    if not categorical and hasattr(column, "iloc") and not isinstance(kind, np.dtype):
        if getattr(kind, "kind", "O") in "biu":  # pandas' own integers and switches may be missing
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if getattr(kind, "kind", "O") == "f":
            precision = np.float32 if getattr(kind, "itemsize", 8) == 4 else np.float64
            return np.asarray(column.to_numpy(dtype=precision, na_value=np.nan))
    values = np.asarray(column)
    if categorical or values.dtype.kind not in "biufO":
        what = "categories" if categorical else "texts" if values.dtype.kind in "USTO" else f"values of {values.dtype}"
        raise ValueError(_no_numbers(name, what))
    if values.dtype.kind != "O":
        return values
    return np.array([_number(value, name) for value in values.tolist()], np.float64)


def _number(value: object, name: str) -> float:
    """Return an entry of a column of objects as a number, NaN if it is missing."""
    if _is_unknown(value):
        return np.nan
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, str | bytes):
        raise ValueError(_no_numbers(name, f"texts such as {value[:30]!r}"))
    try:
        return float(value)  # type: ignore[arg-type]  # decimals and whatever else says how
    except (TypeError, ValueError):
        raise ValueError(_no_numbers(name, f"values such as {repr(value)[:30]}")) from None


def _is_unknown(value: object) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _no_numbers(name: str, what: str) -> str:
    return (
        f"column {name!r} of X holds {what}, and a feature is a number; leave it out, turn it into numbers if it "
        f"holds some (X[{name!r}].astype(float)), or into one column of 0 and 1 per value (pandas.get_dummies)"
    )

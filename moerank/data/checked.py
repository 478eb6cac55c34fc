"""What ranking data are made of, checked: features, labels, queries and names are refused by place and remedy."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.data.frames import as_labels, as_table, without_mask
from moerank.kernels.columns import extremes
from moerank.kernels.lanes import lanes

__all__ = [
    "Extremes",
    "checked_features",
    "checked_labels",
    "checked_names",
    "checked_queries",
    "checked_scores",
    "extremes_of",
    "query_offsets",
    "refuse_infinite_values",
    "refuse_large_values",
    "refuse_missing_values",
]

LARGEST_VALUE = 1e30
"""No ranker is trained on, or asked about, a feature value beyond this; see the notes of `RankingData`."""
LARGEST_UNNAMED_QUERY = 1000
"""More rows than this are one query only if the user says so."""

RULES = "a number, 'query-min', 'query-mean' or 'query-worst' (below the smallest value that the query knows)"


class Extremes(NamedTuple):
    """The least and the largest of some numbers that are not NaN (∞ and −∞ if there is none), and if none is NaN."""

    least: float
    largest: float
    complete: bool

    @property
    def finite(self) -> bool:
        """Whether no number is infinite."""
        return self.least > -np.inf and self.largest < np.inf

    @property
    def moderate(self) -> bool:
        """Whether rankers can compute with all numbers that are not NaN."""
        return self.least >= -LARGEST_VALUE and self.largest <= LARGEST_VALUE


def extremes_of(X: NDArray[Any]) -> Extremes:
    """Return the extremes of a table in single or double precision, in one pass over its memory."""
    flat = X.T.reshape(-1) if X.flags.f_contiguous else X.reshape(-1)
    flat = flat.view()
    flat.setflags(write=False)  # so that the kernel is compiled once, whether or not X can be written to
    return Extremes(*extremes(flat, lanes(flat.dtype.type)))


def refuse_large_values(X: NDArray[Any], names: Sequence[str] | None, where: str = "") -> None:
    """Raise a ValueError that names row and feature of a value in X (n_documents, n_features) beyond 1e30 in size."""
    if not extremes_of(X).moderate:
        row, column = np.argwhere(np.abs(X) > LARGEST_VALUE)[0]
        raise ValueError(
            f"{where}X[{row}, {column}] is {X[row, column]:g} ({_place(row, column, names)}); values beyond "
            f"{LARGEST_VALUE:g} cannot be computed with, so scale the feature, for instance by query_level_norm"
        )


def refuse_infinite_values(X: NDArray[Any], names: Sequence[str] | None, where: str = "") -> Extremes:
    """Raise a ValueError that names row and feature of an infinite value in X (n_documents, n_features).

    Returns the extremes of X, if all values are finite or NaN.
    """
    found = extremes_of(X)
    if not found.finite:
        row, column = np.argwhere(np.isinf(X))[0]
        raise ValueError(
            f"{where}X[{row}, {column}] is {X[row, column]} ({_place(row, column, names)}); a value must be finite: "
            "replace it by a large number, or by NaN where nothing is known"
        )
    return found


def refuse_missing_values(
    X: NDArray[Any],
    names: Sequence[str] | None,
    where: str = "",
    remedy: str = f"say what missing values become, as in RankingData(X, y, qid, missing='query-worst'): {RULES}",
) -> None:
    """Raise a ValueError that names row and feature of a value in X (n_documents, n_features) that is NaN."""
    if not extremes_of(X).complete:
        row, column = np.argwhere(np.isnan(X))[0]
        raise ValueError(f"{where}X[{row}, {column}] is NaN ({_place(row, column, names)}); {remedy}")


def checked_features(X: ArrayLike, names: Sequence[str] | None, name: str) -> tuple[NDArray[Any], Extremes]:
    """Return X as a table of finite numbers and NaN in one of two precisions, see `as_table`, and its extremes."""
    try:
        table = as_table(X, names)
    except ValueError as error:
        known = str(error).startswith(("X ", "column "))
        raise ValueError(
            f"{name}: {error}" if known else f"{name}: X must be a table of numbers, one row per document ({error})"
        ) from None
    except TypeError as error:
        raise TypeError(f"{name}: X must be a table of numbers, one row per document ({error})") from None
    if table.ndim != 2:
        raise ValueError(f"{name}: X must have shape (n_documents, n_features), not {table.shape}")
    if table.shape[0] == 0:
        raise ValueError(f"{name}: X has no rows; at least one document is needed")
    if table.shape[1] == 0:
        raise ValueError(f"{name}: X has 0 feature(s) (shape={table.shape}) while a minimum of 1 is required.")
    fitting = names if names is not None and len(names) == table.shape[1] else None
    return table, refuse_infinite_values(table, fitting, f"{name}: ")


def checked_labels(y: ArrayLike, n_documents: int, name: str) -> NDArray[np.int64]:
    """Return one relevance label per document."""
    try:
        values = as_labels(y)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: y must hold one relevance label per document ({error})") from None
    if values.shape != (n_documents,):
        raise ValueError(f"{name}: X has {n_documents} rows but y has shape {values.shape}; give one label each")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0) & (values < 2**31) & (values == np.floor(values))))
    if len(wrong):
        raise ValueError(
            f"{name}: y[{wrong[0]}] is {values[wrong[0]]:g}; relevance labels are integers from 0 (irrelevant) upwards"
        )
    return values.astype(np.int64)


def checked_queries(qid: ArrayLike | None, n_documents: int, name: str) -> NDArray[Any]:
    """Return the query of each document."""
    if qid is None:
        if n_documents > LARGEST_UNNAMED_QUERY:
            raise ValueError(
                f"{name}: qid is missing: without it all {n_documents:,} rows are one query, which nobody has by "
                "intent; give the query of each row, or qid=0 if they are one"
            )
        return np.zeros(n_documents, np.int64)
    if isinstance(qid, Integral) and not isinstance(qid, bool):
        return np.full(n_documents, int(qid), np.int64)
    if isinstance(qid, np.ma.MaskedArray):
        qid = without_mask(qid)
    given = qid if hasattr(qid, "dtype") else np.array(qid, dtype=object)  # a list of texts would make a text of NaN
    if np.shape(given) != (n_documents,):
        raise ValueError(f"{name}: X has {n_documents} rows but qid has shape {np.shape(given)}; give one each")
    missing = np.flatnonzero(_is_missing(np.asarray(given)))
    if len(missing):
        row = missing[0]
        raise ValueError(f"{name}: qid[{row}] is {np.asarray(given)[row]}; every row needs the id of its query")
    try:
        queries = np.asarray(qid)
        if queries.dtype == object:
            np.sort(queries)  # texts and numbers have no common order
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: qid must hold numbers or texts, not a mixture ({error})") from None
    return queries


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries (n,) are NaN, NaT, None or pandas' NA."""
    if values.dtype.kind in "biuUSV":
        return np.zeros(len(values), np.bool_)
    import pandas as pd  # slow to import, and whoever has such values has it

    return np.asarray(pd.isna(values), np.bool_)


def query_offsets(qid: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Return the rows at which queries begin and end, shape (n_queries + 1,); those of a query must be contiguous."""
    starts = np.flatnonzero(np.append(True, qid[1:] != qid[:-1]))
    queries, counts = np.unique(qid[starts], return_counts=True)
    if counts.max() > 1:
        query = queries[counts.argmax()]
        row = starts[np.flatnonzero(qid[starts] == query)[1]]
        raise ValueError(
            f"{name}: the rows of query {query} are not contiguous: it begins again at row {row}; "
            "sort the rows by query first, for instance with numpy.argsort(qid, kind='stable')"
        )
    return np.append(starts, len(qid)).astype(np.int64)


def checked_names(names: Sequence[str] | None, n_features: int, name: str) -> tuple[str, ...] | None:
    """Return one distinct name per feature, or None if none were given."""
    if names is None:
        return None
    if len(names) != n_features:
        raise ValueError(f"{name}: X has {n_features} columns but feature_names has {len(names)} entries")
    if len(set(names)) != n_features:
        raise ValueError(f"{name}: feature_names must be distinct")
    return tuple(str(entry) for entry in names)


def _place(row: int, column: int, names: Sequence[str] | None) -> str:
    return f"row {row}, feature {column + 1 if names is None else repr(str(names[column]))}"


def checked_scores(scores: ArrayLike, n_documents: int, name: str) -> NDArray[np.float64]:
    """Return scores, of shape (n_documents,) or (n_documents, n_individuals), in double precision, all finite."""
    try:
        checked = np.ascontiguousarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: scores must be numbers, one per document ({error})") from None
    if np.ndim(scores) not in (1, 2) or len(checked) != n_documents:
        raise ValueError(
            f"{name}: scores has shape {np.shape(scores)}; give one score per document: "
            f"shape ({n_documents},) or ({n_documents}, n_individuals)"
        )
    if not np.isfinite(checked).all():
        row, *individual = np.argwhere(~np.isfinite(checked))[0]
        place = f"row {row}" + "".join(f", individual {number}" for number in individual)
        raise ValueError(
            f"{name}: the score in {place} is {checked[row, *individual]}; scores must be finite, "
            "so check the weights of the ranker"
        )
    return checked

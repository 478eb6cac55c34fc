"""The one data structure: documents with features and relevance labels, grouped by query."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.data.pairs import PreferencePairs

__all__ = ["RankingData"]

T = TypeVar("T")

LARGEST_VALUE = 1e30
"""No ranker is trained on, or asked about, a feature value beyond this; see the notes of `RankingData`."""
LARGEST_UNNAMED_QUERY = 1000
"""More rows than this are one query only if the user says so."""


class RankingData:
    """Documents of several queries, with one row of features and one relevance label each.

    Parameters
    ----------
    X : array-like, shape (n_documents, n_features)
        Feature values, finite.
    y : array-like, shape (n_documents,)
        Relevance labels: integers, 0 is irrelevant, larger is better.
    qid : array-like, shape (n_documents,), or int, optional
        The query of each document, numbers or texts; the rows of a query must be contiguous. One number, as in
        ``qid=0``, means one query. So does None for up to 1,000 documents; of more, nobody means it.
    feature_names : sequence of str, optional
        One name per column; by default the feature numbers "1" … as in LETOR files.
    name : str, default "data"
        How messages call this data set.

    Attributes
    ----------
    feature_names : tuple of str
        One name per column.
    given_names : tuple of str or None
        The same if they were given, None if they are numbers.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query q holds the rows ``offsets[q]`` to ``offsets[q + 1]``.
    pairs : PreferencePairs
        All preference pairs, enumerated on first use.

    Raises
    ------
    ValueError
        For wrong shapes, NaN or infinity, negative or fractional labels, a query whose rows are not contiguous, a
        missing query id, or more than 1,000 documents without queries. The message names the place and the remedy.

    Notes
    -----
    The arrays are read-only, so what is derived from them once (pairs, rank tables, Gram matrices) stays valid.

    Any finite feature value can be held, scaled and described. To train and to predict, all rankers take values up to
    1e30 in size and refuse larger ones by row and feature: fourth powers of features, which conjugate gradients come
    to, and sums of features in single precision, in which populations are trained, then stay below infinity. Squares of
    features below 1e-154 vanish, so that such a feature gets no weight worth the name; neither is an error.

    Examples
    --------
    >>> data = RankingData([[0.1], [0.9], [0.5]], y=[0, 2, 1], qid=[7, 7, 7])
    >>> data.pairs.better.tolist(), data.pairs.worse.tolist()
    ([1, 1, 2], [0, 2, 0])
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        *,
        name: str = "data",
        missing: float | None = None,
    ) -> None:
        self.name = name
        X = X if missing is None else np.where(np.isnan(np.asarray(X)), missing, X)
        self.X = _checked_features(X, feature_names, name)
        n_documents, n_features = self.X.shape
        self.y = _checked_labels(y, n_documents, name)
        self.qid = _checked_queries(qid, n_documents, name)
        self.offsets = _query_offsets(self.qid, name)
        self.given_names = _checked_names(feature_names, n_features, name)
        self.feature_names = self.given_names or tuple(str(number) for number in range(1, n_features + 1))
        self._memory: dict[Hashable, Any] = {}
        self._lock = threading.RLock()
        for array in (self.X, self.y, self.offsets):
            array.setflags(write=False)

    @property
    def n_documents(self) -> int:
        """Number of documents, the rows of X."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """Number of features, the columns of X."""
        return int(self.X.shape[1])

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @cached_property
    def pairs(self) -> PreferencePairs:
        """All preference pairs, by query, then better row, then worse row."""
        return PreferencePairs.of(self.y, self.offsets)

    def with_features(self, mask: NDArray[np.bool_]) -> RankingData:
        """Return the same documents with the features of `mask` only, remembered; these data if it keeps all.

        Parameters
        ----------
        mask : ndarray of bool, shape (n_features,)
            At least one.
        """
        if mask.all():
            return self

        def make() -> RankingData:
            names = [name for name, kept in zip(self.feature_names, mask, strict=True) if kept]
            data = RankingData(self.X[:, mask], self.y, self.qid, names, name=self.name)
            data.given_names = data.feature_names if self.given_names else None
            data.__dict__["pairs"] = self.pairs
            return data

        return self.remember(("with features", mask.tobytes()), make)

    def require_pairs(self) -> None:
        """Raise a ValueError if no query has two documents with different labels."""
        if len(self.pairs) == 0:
            raise ValueError(
                f"{self.name}: no preference pair: no query has two documents with different labels, so there is "
                "nothing to learn an order from; check the labels and the query ids"
            )

    def require_moderate_values(self) -> None:
        """Raise a ValueError for a feature value that rankers cannot compute with, beyond 1e30 in size.

        The notes of the class say why; O(n_documents · n_features) once.
        """

        def check() -> None:
            refuse_large_values(self.X, self.given_names, f"{self.name}: ")

        self.remember("values are moderate", check)

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returned when `key` was first asked for; safe to call from several threads.

        Whatever depends on this data set alone and is expensive to compute is kept here, beside what it was made from.
        """
        with self._lock:
            if key not in self._memory:
                self._memory[key] = make()
            value: T = self._memory[key]
            return value

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_memory"] = {}
        del state["_lock"]
        state.pop("pairs", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return (
            f"RankingData({self.name!r}: {self.n_documents} documents, {self.n_queries} queries, "
            f"{self.n_features} features)"
        )


def refuse_large_values(X: NDArray[np.float64], names: Sequence[str] | None, where: str = "") -> None:
    """Raise a ValueError that names row and feature of a value in X (n_documents, n_features) beyond 1e30 in size."""
    large = np.abs(X) > LARGEST_VALUE
    if large.any():
        row, column = np.argwhere(large)[0]
        raise ValueError(
            f"{where}X[{row}, {column}] is {X[row, column]:g} ({_place(row, column, names)}); values beyond "
            f"{LARGEST_VALUE:g} cannot be computed with, so scale the feature, for instance by query_level_norm"
        )


def refuse_missing_values(X: NDArray[np.float64], names: Sequence[str] | None, where: str = "") -> None:
    """Raise a ValueError that names row and feature of a value in X (n_documents, n_features) that is not finite."""
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise ValueError(
            f"{where}X[{row}, {column}] is {X[row, column]} ({_place(row, column, names)}); "
            "replace missing values before ranking, for instance by the smallest value in the query"
        )


def _place(row: int, column: int, names: Sequence[str] | None) -> str:
    return f"row {row}, feature {column + 1 if names is None else repr(str(names[column]))}"


def _checked_features(X: ArrayLike, names: Sequence[str] | None, name: str) -> NDArray[np.float64]:
    try:
        X = np.array(X, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: X must be a table of numbers, one row per document ({error})") from None
    if X.ndim != 2:
        raise ValueError(f"{name}: X must have shape (n_documents, n_features), not {X.shape}")
    if X.shape[0] == 0:
        raise ValueError(f"{name}: X has no rows; at least one document is needed")
    if X.shape[1] == 0:
        raise ValueError(f"{name}: X has no columns; at least one feature is needed")
    refuse_missing_values(X, names if names is not None and len(names) == X.shape[1] else None, f"{name}: ")
    return X


def _checked_labels(y: ArrayLike, n_documents: int, name: str) -> NDArray[np.int64]:
    try:
        values = np.asarray(y, dtype=np.float64)
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


def _checked_queries(qid: ArrayLike | None, n_documents: int, name: str) -> NDArray[Any]:
    if qid is None:
        if n_documents > LARGEST_UNNAMED_QUERY:
            raise ValueError(
                f"{name}: qid is missing: without it all {n_documents:,} rows are one query, which nobody has by "
                "intent; give the query of each row, or qid=0 if they are one"
            )
        return np.zeros(n_documents, np.int64)
    if isinstance(qid, Integral) and not isinstance(qid, bool):
        return np.full(n_documents, int(qid), np.int64)
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


def _query_offsets(qid: NDArray[Any], name: str) -> NDArray[np.int64]:
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


def _checked_names(names: Sequence[str] | None, n_features: int, name: str) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) != n_features:
        raise ValueError(f"{name}: X has {n_features} columns but feature_names has {len(names)} entries")
    if len(set(names)) != n_features:
        raise ValueError(f"{name}: feature_names must be distinct")
    return tuple(str(entry) for entry in names)

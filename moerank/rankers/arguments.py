"""What `fit` and `predict` are given, read and checked in one place, whatever form it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.data import RankingData
from moerank.data.checked import refuse_infinite_values, refuse_large_values, refuse_missing_values

__all__ = ["Mask", "Matrix", "Validation", "Vector", "as_feature_table", "as_ranking_data", "as_validation_data"]

Matrix: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
Mask: TypeAlias = NDArray[np.bool_]
Validation: TypeAlias = RankingData | tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike | None]
"""Data to look at without training on them; X and y without qid are one query, as they must be in training, too."""


def as_ranking_data(
    X: RankingData | ArrayLike, y: ArrayLike | None, qid: ArrayLike | None, *, name: str = "training data"
) -> RankingData:
    """Check the first arguments of a `fit`, and return them as data that hold at least one preference pair.

    A RankingData is returned as it is, with its names and all that is remembered there. The columns of a DataFrame
    keep their names.

    Raises
    ------
    ValueError
        If y is missing, or given beside a RankingData, for malformed data, and for values too large to train on.
    """
    if isinstance(X, RankingData):
        for argument, value in (("y", y), ("qid", qid)):
            if value is not None:
                raise ValueError(f"{argument} must not be given beside a RankingData, which has its own")
        data = X
    elif y is None:
        raise ValueError("y is missing: give the relevance labels, one per row of X, or give a RankingData for X and y")
    else:
        data = RankingData(X, y, qid, _column_names(X), name=name)
    data.require_pairs()
    data.require_moderate_values()
    return data


def as_validation_data(validation: Validation | None, train: RankingData) -> RankingData | None:
    """Check the argument `validation` of a `fit`, and return it as data with the features of `train`.

    Raises
    ------
    ValueError
        For anything but RankingData, (X, y), (X, y, qid) or None, malformed data, values too large to score, other
        features, and one query for want of a qid where the training data have several.
    """
    if validation is None:
        return None
    if not isinstance(validation, RankingData):
        if not isinstance(validation, tuple | list) or len(validation) not in (2, 3):
            raise ValueError(f"validation must be a RankingData or (X, y, qid), not {type(validation).__name__}")
        X, y, *rest = validation
        qid = rest[0] if rest else None
        if qid is None and train.n_queries > 1:
            raise ValueError(
                f"validation has no qid, and {train.name} have {train.n_queries} queries: give (X, y, qid), with qid=0 "
                "if the validation data are one query"
            )
        validation = RankingData(X, y, qid, _column_names(X), name="validation data")
    if validation.n_features != train.n_features:
        raise ValueError(f"the training data have {train.n_features} features but {validation!r} has another number")
    _check_names(validation.given_names, train.given_names, f"the features of {validation.name}", "the training data")
    validation.require_moderate_values()
    return validation


def as_feature_table(
    X: RankingData | ArrayLike, n_features: int, names: Sequence[str] | NDArray[np.object_] | None = None
) -> Matrix:
    """Check the argument of a `predict`, whose columns are those of the fit, and return it as kernels want it.

    Raises
    ------
    ValueError
        For other columns than those of the fit, by number or by name, and for values that are not finite or too large.
    """
    _check_names(_column_names(X), names, "the columns of X", "the fit")
    try:
        table = np.ascontiguousarray(X.X if isinstance(X, RankingData) else X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must be a table of numbers, one row per document ({error})") from None
    if table.ndim != 2 or table.shape[1] != n_features:
        raise ValueError(f"X must have shape (n_documents, {n_features}), the features of the fit, not {table.shape}")
    known = None if names is None else list(names)
    refuse_infinite_values(table, known)
    refuse_missing_values(table, known)
    refuse_large_values(table, known)
    return table


def _column_names(X: object) -> tuple[str, ...] | None:
    """Return the names that X brings along, as a RankingData or a DataFrame does."""
    if isinstance(X, RankingData):
        return X.given_names
    columns = getattr(X, "columns", None)
    return None if columns is None else tuple(str(column) for column in columns)


def _check_names(
    names: Sequence[str] | None, known: Sequence[str] | NDArray[np.object_] | None, what: str, whose: str
) -> None:
    if names is not None and known is not None and tuple(names) != tuple(known):
        raise ValueError(f"{what} must be those of {whose}, in their order: {', '.join(known)}")

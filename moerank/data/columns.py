"""Features that somebody names, by their columns or by what they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moerank.checks import unknown

__all__ = ["column_mask", "in_column_order", "listed"]


def listed(features: Any) -> tuple[Any, ...]:
    """Return what somebody names features by as a tuple: one column, one name, any number of them, or None for none.

    Examples
    --------
    >>> listed("bm25"), listed(range(2))
    (('bm25',), (0, 1))
    """
    if features is None:
        return ()
    return (features,) if isinstance(features, str | Integral) else tuple(features)


def column_mask(features: Sequence[int | str] | int | str, names: Sequence[str], where: str) -> NDArray[np.bool_]:
    """Return which columns are meant, shape (n_features,).

    Parameters
    ----------
    features : sequence of int or str, or one of them
        Columns, counted from 0, or names.
    names : sequence of str, length n_features
        The features of the data.
    where : str
        How messages call the place.

    Raises
    ------
    ValueError
        For a name or a column that is not there.

    Examples
    --------
    >>> column_mask(["idf", 2], ["tf", "idf", "bm25"], "include").tolist()
    [False, True, True]
    """
    mask = np.zeros(len(names), np.bool_)
    for feature in listed(features):
        mask[_column(feature, names, where)] = True
    return mask


def in_column_order(values: Any, names: Sequence[str], where: str, *, complete: bool = False) -> Any:
    """Return what is given for the features, by name or column if it is a mapping or a Series, in their order.

    Features that a mapping leaves out get None, or are asked for by a ValueError if it has to be complete. Anything
    else is in order already.

    Examples
    --------
    >>> in_column_order({"idf": "text", 0: "text"}, ["tf", "idf", "age"], "groups")
    ['text', 'text', None]
    """
    if not isinstance(values, Mapping | pd.Series):
        return values
    given = {_column(feature, names, where): value for feature, value in values.items()}
    if complete and len(given) < len(names):
        lacking = next(column for column in range(len(names)) if column not in given)
        raise ValueError(f"{where}: nothing is given for feature {names[lacking]!r}")
    return [given.get(column) for column in range(len(names))]


def _column(feature: object, names: Sequence[str], where: str) -> int:
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"{where}: {unknown('feature', feature, names)}")
        return names.index(feature)
    if not isinstance(feature, Integral) or isinstance(feature, bool):
        raise ValueError(f"{where}: features are named by column or by name, not by {feature!r}")
    column = int(feature)
    if not 0 <= column < len(names):
        raise ValueError(
            f"{where}: there is no column {column}; columns go from 0 to {len(names) - 1}, and a name of "
            f'digits is written "{column}"'
        )
    return column

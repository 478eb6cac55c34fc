"""Which tables were made by a fitted scaling: they must not be taken for raw values, and be scaled again."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["name_of_scaled_table", "register_scaled_table"]

_SCALED_TABLES: dict[int, tuple[weakref.ref[NDArray[Any]], str]] = {}
"""The tables that fitted scalings have made, by identity, with the names of their data."""


def register_scaled_table(X: NDArray[Any], name: str) -> None:
    """Note that X, the table of the data of this name, is scaled by fitted values."""
    key = id(X)
    _SCALED_TABLES[key] = weakref.ref(X, lambda _: _SCALED_TABLES.pop(key, None)), name


def name_of_scaled_table(X: object) -> str | None:
    """Return the name of the data whose table, scaled by fitted values, X is or shows a part of; None for others."""
    while isinstance(X, np.ndarray):
        table, name = _SCALED_TABLES.get(id(X), (None, None))
        if table is not None and table() is X:
            return name
        X = X.base
    return None

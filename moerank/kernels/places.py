"""Which columns each row of a mask has, one row after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["places_of"]


def places_of(mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the true columns of each row begin, shape (n_rows + 1,), and these columns, shape (n_true,).

    ``values[mask]`` has the same order. Both are contiguous: kernels would be compiled once more for others.

    Examples
    --------
    >>> begin, place = places_of(np.array([[True, False, True], [False, True, False]]))
    >>> begin.tolist(), place.tolist()
    ([0, 2, 3], [0, 2, 1])
    """
    row, place = np.nonzero(mask)
    return np.searchsorted(row, np.arange(len(mask) + 1)), np.ascontiguousarray(place)

"""The types of arrays that the package uses."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""An array of any kind of values."""

Vector: TypeAlias = NDArray[np.float64]
"""A one-dimensional array in double precision."""

Matrix: TypeAlias = NDArray[np.float64]
"""A two-dimensional array in double precision."""

Floats: TypeAlias = NDArray[np.floating[Any]]
"""An array in single or double precision."""

Integers: TypeAlias = NDArray[np.int64]

Mask: TypeAlias = NDArray[np.bool_]

FloatType: TypeAlias = type[np.floating[Any]]
"""A numpy float type."""

Words: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Packed bits, one word for each of several individuals."""

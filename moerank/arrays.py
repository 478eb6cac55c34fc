"""Types of arrays, each defined here and nowhere else."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""Of any kind of values."""

Vector: TypeAlias = NDArray[np.float64]
"""One-dimensional, in double precision."""

Matrix: TypeAlias = NDArray[np.float64]
"""Two-dimensional, in double precision."""

Floats: TypeAlias = NDArray[np.floating[Any]]
"""In single or double precision."""

Integers: TypeAlias = NDArray[np.int64]

Mask: TypeAlias = NDArray[np.bool_]

FloatType: TypeAlias = type[np.floating[Any]]
"""A numpy float type."""

Words: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Packed bits, one word for each of several individuals."""

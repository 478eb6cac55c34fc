"""The types of arrays that the package uses."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Vector: TypeAlias = NDArray[np.float64]  # of one dimension
Matrix: TypeAlias = NDArray[np.float64]  # of two dimensions
Floats: TypeAlias = NDArray[np.floating[Any]]  # in single or double precision
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.number]  # of any precision, integers included
Bounds: TypeAlias = tuple[float, float]  # the lower and the upper one
Packed: TypeAlias = NDArray[np.uint8]  # rows of bits, eight in a byte, as np.packbits has them
FloatType: TypeAlias = type[np.floating[Any]]
Words: TypeAlias = NDArray[
    np.unsignedinteger[Any]
]  # packed bits, one word for each of several individuals

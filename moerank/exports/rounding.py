"""Numbers as systems hold them that compute in single precision, and thresholds that part the same values there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["largest_value", "single", "single_above", "single_at_most", "single_positive"]

Floats: TypeAlias = NDArray[np.floating[Any]]

LARGEST = float(np.finfo(np.float32).max)


def single(value: float, what: str) -> float:
    """Return the nearest number of single precision.

    Raises
    ------
    ValueError
        If there is none, as for 1e39; `what` is what the message calls the number.

    Examples
    --------
    >>> single(0.1, "the weight of 'price'")
    0.10000000149011612
    """
    if abs(value) > LARGEST:
        raise ValueError(f"{what} is {value:g}, too large for single precision; scale the features, and train again")
    return float(np.float32(value))


def single_positive(value: float, what: str) -> float:
    """Return the nearest number of single precision to one that is divided by, and so must not become 0.

    Raises
    ------
    ValueError
        If it becomes 0, or is too large.
    """
    rounded = single(value, what)
    if rounded <= 0.0:
        raise ValueError(f"{what} is {value:g}, which is 0 in single precision; scale the features, and train again")
    return rounded


def single_at_most(value: float) -> float:
    """Return the largest number of single precision that is at most `value`.

    A number x of single precision is at most the one exactly if it is at most the other. Beyond the numbers of single
    precision it is the outermost of them.

    Examples
    --------
    >>> single_at_most(0.1), single_at_most(-1e300)
    (0.09999999403953552, -3.4028234663852886e+38)
    """
    if abs(value) >= LARGEST:
        return LARGEST if value > 0 else -LARGEST
    nearest = np.float32(value)
    return float(nearest if float(nearest) <= value else np.nextafter(nearest, np.float32(-np.inf)))


def single_above(value: float) -> float:
    """Return the smallest number of single precision above `value`: x ≤ value exactly if x is less than it.

    Beyond the numbers of single precision it is the outermost of them.

    Examples
    --------
    >>> single_above(0.5)
    0.5000000596046448
    """
    below = np.float32(single_at_most(value))
    return float(below if below == np.float32(LARGEST) else np.nextafter(below, np.float32(np.inf)))


def largest_value(size: int, holds: Callable[[Floats], NDArray[np.bool_]], dtype: type[np.floating[Any]]) -> Floats:
    """Return the largest finite numbers (size,) of a precision for which a condition holds, or the smallest of all.

    Parameters
    ----------
    size : int
    holds : callable
        Says of numbers (size,) whether each fulfils its own condition; what fulfils it does so with anything smaller.
    dtype : {np.float32, np.float64}

    Notes
    -----
    Bisection over the numbers in their order, at most 64 calls: a search from one to the next never ends where
    numbers lie as close together as around 0.

    Examples
    --------
    >>> largest_value(1, lambda x: x + np.float32(1) <= 1, np.float32).tolist()  # which rounds their sum to 1
    [5.960464477539063e-08]
    """
    bits: Any = np.int32 if dtype is np.float32 else np.int64

    def number(place: NDArray[Any]) -> Floats:
        return np.where(place < 0, -np.abs(place).view(dtype), np.abs(place).view(dtype))

    last = np.array([np.finfo(dtype).max], dtype).view(bits)
    most = np.repeat(last, size)
    least = -most
    while (least < most).any():
        middle = (least | most) - ((least ^ most) >> 1)  # their mean, rounded up, of which no sum could overflow
        found = holds(number(middle))
        least, most = np.where(found, middle, least), np.where(found, most, np.maximum(middle - 1, least))
    return number(least)

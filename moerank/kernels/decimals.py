"""The double nearest to a decimal of up to 19 digits, by the algorithm of Eisel and Lemire.

The decimal w · 10^q is w · 5^q · 2^q. The product of w with the first 128 bits of 5^q nearly always decides how the
double is rounded (Lemire, Number parsing at a gigabyte per second, Software: Practice and Experience 51, 2021,
sections 5 to 8). Where it does not, and for what is no normal double, there is no answer: the caller has slower means.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["UNDECIDED", "nearest_double"]

UNDECIDED = -1.0

LEAST, MOST = -342, 308
"""Powers of ten beyond which every decimal of 19 digits is 0 or infinite."""

LEAST_POWER_OF_TWO = -1074


def _first_bits(q: int) -> int:
    """Return the first 128 bits of 5^q, rounded up for -27 ≤ q < 0, else cut off, as the algorithm's proof asks."""
    power = 5 ** abs(q)
    length = power.bit_length()
    if q >= 0:
        return power << (128 - length) if length <= 128 else power >> (length - 128)
    return 2 ** (length + 127) // power + (q >= -27)


def _halves() -> NDArray[np.uint64]:
    """Return upper and lower 64 bits for every power, shape (MOST - LEAST + 1, 2)."""
    powers = [_first_bits(q) for q in range(LEAST, MOST + 1)]
    return np.array([[power >> 64, power & (2**64 - 1)] for power in powers], np.uint64)


FIVES = _halves()
TWOS = np.ldexp(1.0, np.arange(LEAST_POWER_OF_TWO, 972))

ONE, NINE = np.uint64(1), np.uint64(9)
HALF, WORD, LOWER = np.uint64(32), np.uint64(63), np.uint64(2**32 - 1)
UNSURE = np.uint64(2**9 - 1)
FULL = np.uint64(2**64 - 1)


@kernel
def nearest_double(w: np.uint64, q: int) -> float:
    """Return the double nearest to w · 10^q for w > 0, ties to even; `UNDECIDED` where this would take more bits.

    Notes
    -----
    O(1): one or two products of 64 by 64 bits.
    """
    if q < LEAST or q > MOST:
        return UNDECIDED
    shift = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == np.uint64(0):
            w <<= np.uint64(step)
            shift += step
    high, low = _product(w, FIVES[q - LEAST, 0])
    if high & UNSURE == UNSURE:
        second, _ = _product(w, FIVES[q - LEAST, 1])
        low += second
        if low < second:
            high += ONE
        if low == FULL and not -27 <= q <= 55:
            return UNDECIDED
    upper = high >> WORD
    mantissa = high >> (upper + NINE)
    power = ((217706 * q) >> 16) + 63 + np.int64(upper) - shift  # 217706 / 2^16 is just above log2(10)
    if power < -1022 or power > 1022:
        return UNDECIDED
    exact_half = low <= ONE and -4 <= q <= 23 and mantissa & np.uint64(3) == ONE
    if exact_half and mantissa << (upper + NINE) == high:
        mantissa -= ONE  # half way between two doubles: to the even one, which is below
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    return np.float64(mantissa) * TWOS[power - 52 - LEAST_POWER_OF_TWO]


@kernel
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return upper and lower 64 bits of a product."""
    a_high, a_low, b_high, b_low = a >> HALF, a & LOWER, b >> HALF, b & LOWER
    low = a_low * b_low
    middle = a_high * b_low + (low >> HALF)
    other = a_low * b_high + (middle & LOWER)
    high = a_high * b_high + (middle >> HALF) + (other >> HALF)
    return high, (other << HALF) | (low & LOWER)

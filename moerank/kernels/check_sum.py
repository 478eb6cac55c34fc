"""A check sum of memory at the speed of memory, for files that are too large for a digest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["LANES", "fold_words", "start_lanes"]

LANES = 16
"""Sums that run side by side, so that none waits for the multiplication before it."""

MULTIPLIER = 0x9E3779B97F4A7C15
"""Odd, so that multiplying by it loses nothing: 2^64 divided by the golden ratio."""


def start_lanes() -> NDArray[np.uint64]:
    """Return the lanes before the first word, shape (LANES,)."""
    return np.arange(1, LANES + 1, dtype=np.uint64) * np.uint64(MULTIPLIER)


@kernel
def fold_words(lanes: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
    """Fold the words of a piece of memory into the lanes.

    Parameters
    ----------
    lanes : (LANES,)
        Updated.
    words : (n,)
        n is a multiple of LANES.

    Notes
    -----
    Each word is added to its lane, which is then multiplied by an odd number and has its upper half mixed into its
    lower one. Every step can be undone, so that two pieces that differ in one word have different lanes for certain;
    others are alike by one chance in 2^64. It is no defence against somebody who means to deceive. O(n).
    """
    a = np.empty(LANES, np.uint64)
    for j in range(LANES):
        a[j] = lanes[j]
    for k in range(0, len(words), LANES):
        for j in range(LANES):
            x = (a[j] ^ words[k + j]) * np.uint64(MULTIPLIER)
            a[j] = x ^ (x >> np.uint64(32))
    for j in range(LANES):
        lanes[j] = a[j]

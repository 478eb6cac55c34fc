"""Random draws for the embedded problems that stay the same for ever.

NumPy promises that the words of PCG64 and Philox never change, but not what its distributions make of them. The
problems shipped with the package must be the same with every version, so their draws are made of the words alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Draws"]


class Draws:
    """Draws made of the 64-bit words of PCG64, or of another generator.

    Parameters
    ----------
    seed : int or BitGenerator
        Not negative; or what gives the words.

    Examples
    --------
    >>> draws = Draws(0)
    >>> draws.order(5).tolist(), draws.uniform((2,)).round(3).tolist()
    ([3, 2, 1, 0, 4], [0.913, 0.607])
    """

    def __init__(self, seed: int | np.random.BitGenerator) -> None:
        self._words = seed if isinstance(seed, np.random.BitGenerator) else np.random.PCG64(seed)

    def order(self, n: int) -> NDArray[np.int64]:
        """Return the numbers 0 to n − 1 in a random order."""
        return np.argsort(self._words.random_raw(n), kind="stable")

    def uniform(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return multiples of 2⁻⁵³ in [0, 1)."""
        words = self._words.random_raw(int(np.prod(shape))).reshape(shape)
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53

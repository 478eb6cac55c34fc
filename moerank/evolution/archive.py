"""Exact archive of a search, and elimination of duplicates by digests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

import moocore
import numpy as np
from pymoo.core.duplicate import DuplicateElimination
from pymoo.core.population import Population

from moerank.arrays import Array, Mask, Matrix


class Archive:
    """Non-dominated individuals, one for each distinct objective vector.

    Objectives are minimised, and no member is dropped to save room. Of individuals with equal objectives the first one
    is kept. pymoo's archive, when full, drops members at random.

    Attributes
    ----------
    X : ndarray, shape (n_members, n_var)
        The individuals in the order of addition.
    F : ndarray of float64, shape (n_members, n_objectives)
        Their objective values; read-only.

    Notes
    -----
    Adding n individuals to m members takes O((n + m) log(n + m)) for two or three objectives.

    Examples
    --------
    >>> archive = Archive()
    >>> archive.add(np.array([[True, True], [True, False]]), np.array([[2, 0.1], [1, 0.4]]))
    >>> archive.add(np.array([[False, True], [False, False]]), np.array([[1, 0.2], [2, 0.1]]))
    >>> archive.F.tolist(), archive.X.tolist()
    ([[2.0, 0.1], [1.0, 0.2]], [[True, True], [False, True]])
    """

    def __init__(self) -> None:
        self.F: Matrix = np.empty((0, 0))
        self._rows: list[Array] = []
        self._n_bits: int | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def X(self) -> Array:
        """The members' rows, shape (n_members, n_var)."""
        rows, n_bits = self._rows, self._n_bits
        if n_bits is not None:
            rows = [np.unpackbits(row, count=n_bits).view(np.bool_) for row in rows]
        return np.array(rows) if rows else np.empty((0, 0))

    def add(self, X: Sequence[Array] | Array, F: Array) -> None:
        """Add the individuals `X`, shape (n, n_var), with the objectives `F`, shape (n, n_objectives).

        Raises a ValueError if X and F differ in length, F has another number of objectives than before, or holds NaN.
        """
        F = np.asarray(F, np.float64)
        if F.ndim != 2 or len(X) != len(F) or (len(self) and F.shape[1] != self.F.shape[1]):
            raise ValueError(
                f"archive: {len(X)} individuals came with F of shape {F.shape}; give one row of "
                f"{self.F.shape[1] or 'n'} objectives each"
            )
        if len(F) == 0:
            return
        if (undefined := np.isnan(F).any(axis=1)).any():
            i = undefined.argmax()
            raise ValueError(
                f"archive: the objective values of individual {i} are {F[i]}; let the problem return a finite penalty "
                "in place of NaN"
            )
        n_old = len(self)
        merged = np.concatenate((self.F.reshape(n_old, F.shape[1]), F))
        # Of equal vectors moocore keeps the first, so members stay.
        chosen = np.flatnonzero(moocore.is_nondominated(merged))
        if len(chosen) == n_old and (chosen < n_old).all():
            return
        # A new list and array, because a history may hold the old ones.
        self._rows = [self._rows[i] if i < n_old else self._stored(X[i - n_old]) for i in chosen.tolist()]
        self.F = merged[chosen]
        self.F.setflags(write=False)

    def _stored(self, row: Array) -> Array:
        if row.dtype != np.bool_:
            return row.copy()
        self._n_bits = len(row)
        return np.packbits(row)


class DigestDuplicates(DuplicateElimination):
    """Elimination of individuals with equal rows by digests.

    A seeded search keeps the same individuals as with pymoo's ``DefaultDuplicateElimination``, which computes all
    distances in double precision (seconds per generation at 500,000 bits).

    Examples
    --------
    >>> population = Population.new("X", np.array([[True, False], [True, True], [True, False]]))
    >>> DigestDuplicates().do(population).get("X").tolist()
    [[True, False], [True, True]]
    """

    def _do(self, pop: Population, other: Population | None, is_duplicate: Mask) -> Mask:
        seen = set() if other is None else set(row_digests(individual.X for individual in other))
        for i, digest in enumerate(row_digests(individual.X for individual in pop)):
            is_duplicate[i] = digest in seen
            if other is None:
                seen.add(digest)
        return is_duplicate


def row_digests(X: Iterable[Array]) -> list[bytes]:
    """Return 16 bytes of the SHA-256 digest of each row, the same for equal rows, with −0 equal to 0.

    A row of bits and its packed bytes have the same digest.

    Two different rows of n share a digest with a probability of about n² / 2¹²⁹. Digests can be kept in files.

    Examples
    --------
    >>> a, b, c = row_digests(np.array([[True, False], [True, True], [True, False]]))
    >>> a == c, a == b
    (True, False)
    """
    rows: Iterable[Any] = _hashed(X) if isinstance(X, np.ndarray) else map(_hashed, X)
    # Processors have instructions for SHA-256, which make it twice as fast as blake2b on long rows.
    return [sha256(row).digest()[:16] for row in rows]


def _hashed(X: Array) -> Array:
    if X.dtype == np.bool_:
        return np.packbits(X, axis=-1)
    # The sum turns -0.0 into 0.0 and leaves every other number as it is.
    return np.ascontiguousarray(X if X.dtype == np.uint8 else X + 0)

"""The exact archive: every non-dominated objective vector of all evaluations, none ever dropped to save room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import moocore
import numpy as np
from numpy.typing import NDArray

__all__ = ["Archive"]


class Archive:
    """Non-dominated members among everything added, one for each distinct objective vector.

    Objectives are minimised. A vector that equals a member's does not replace it: of several individuals with the
    same F the one added first is kept. So the content depends on the order of evaluation only, never on chance or
    time. pymoo's archive, when full, drops members at random.

    Attributes
    ----------
    X : ndarray, shape (n_members, n_var)
        The individuals, in the order they were added; bool rows are held packed and unpacked here.
    F : ndarray of float64, shape (n_members, n_objectives)
        Their objective values; read-only.

    Notes
    -----
    Adding n individuals to m members takes O((n + m) log(n + m)) for two or three objectives, and memory for the
    members alone.

    Examples
    --------
    >>> archive = Archive()
    >>> archive.add(np.array([[True, True], [True, False]]), np.array([[2, 0.1], [1, 0.4]]))
    >>> archive.add(np.array([[False, True], [False, False]]), np.array([[1, 0.2], [2, 0.1]]))
    >>> archive.F.tolist(), archive.X.tolist()
    ([[2.0, 0.1], [1.0, 0.2]], [[True, True], [False, True]])
    """

    def __init__(self) -> None:
        self.F: NDArray[np.float64] = np.empty((0, 0))
        self._rows: list[NDArray[Any]] = []
        self._n_bits: int | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def X(self) -> NDArray[Any]:
        """The members' rows, shape (n_members, n_var)."""
        rows = self._rows if self._n_bits is None else [_unpacked(row, self._n_bits) for row in self._rows]
        return np.array(rows) if rows else np.empty((0, 0))

    def add(self, X: Sequence[NDArray[Any]] | NDArray[Any], F: NDArray[Any]) -> None:
        """Take in the individuals `X`, shape (n, n_var), whose objective values are `F`, shape (n, n_objectives).

        Raises
        ------
        ValueError
            If X and F differ in length, F has another number of objectives than before, or F holds NaN.
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
        # Of equal vectors moocore keeps the first: the member before the newcomer.
        kept = np.flatnonzero(moocore.is_nondominated(merged))
        if len(kept) == n_old and (kept < n_old).all():
            return
        # New list and array, as the old ones may still stand in a history.
        self._rows = [self._rows[i] if i < n_old else self._stored(X[i - n_old]) for i in kept.tolist()]
        self.F = merged[kept]
        self.F.setflags(write=False)

    def _stored(self, row: NDArray[Any]) -> NDArray[Any]:
        if row.dtype != np.bool_:
            return row.copy()
        self._n_bits = len(row)
        return np.packbits(row)


def _unpacked(row: NDArray[np.uint8], n_bits: int) -> NDArray[np.bool_]:
    return np.unpackbits(row, count=n_bits).view(np.bool_)

"""Duplicate elimination by a digest of each row, where pymoo computes a matrix of distances."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.duplicate import DuplicateElimination
from pymoo.core.population import Population

__all__ = ["DigestDuplicates", "row_digests"]


def row_digests(X: Iterable[NDArray[Any]]) -> list[bytes]:
    """Return a 16-byte digest of each row: equal rows have equal digests, and different rows different ones.

    Parameters
    ----------
    X : array or sequence of rows, shape (n, n_var)
        bool rows are packed to bits first; other rows count by their values, with −0 equal to 0.

    Returns
    -------
    list of bytes, length n
        blake2b digests. That two different rows share one has a probability of about n² / 2¹²⁹. They do not depend
        on the machine's load or on Python's hash seed, so they can be kept in files.

    Examples
    --------
    >>> a, b, c = row_digests(np.array([[True, False], [True, True], [True, False]]))
    >>> a == c, a == b
    (True, False)
    """
    return [_digest(row) for row in X]


def _digest(row: NDArray[Any]) -> bytes:
    # The sum turns -0.0 into 0.0 and leaves every other number as it is.
    values = np.packbits(row) if row.dtype == np.bool_ else row + 0
    return blake2b(np.ascontiguousarray(values).data, digest_size=16).digest()


class DigestDuplicates(DuplicateElimination):
    """Drop individuals whose row equals one that came before, or one of the other populations.

    A drop-in for pymoo's ``DefaultDuplicateElimination``: a seeded run keeps the same individuals. It costs one
    pass over each new row, where the default computes all distances in double precision (seconds per generation at
    500,000 bits).

    The digests of the last call are remembered, as pymoo asks about the same parents again and again. So a row must
    not be changed in place once it has been through here; pymoo and the operators of this package never do.

    Examples
    --------
    >>> population = Population.new("X", np.array([[True, False], [True, True], [True, False]]))
    >>> DigestDuplicates().do(population).get("X").tolist()
    [[True, False], [True, True]]
    """

    def __init__(self) -> None:
        super().__init__()
        # id of a row -> the row and its digest; holding the row keeps its id from being given away.
        self._remembered: dict[int, tuple[NDArray[Any], bytes]] = {}

    def do(self, pop: Population, *args: Any, **kwargs: Any) -> Any:
        """Return `pop` without duplicates of its own earlier members and of the populations in `args`."""
        alive = {id(individual.X) for population in (pop, *args) for individual in population}
        self._remembered = {key: entry for key, entry in self._remembered.items() if key in alive}
        return super().do(pop, *args, **kwargs)

    def _do(self, pop: Population, other: Population | None, is_duplicate: NDArray[np.bool_]) -> NDArray[np.bool_]:
        seen = set() if other is None else set(self.digests(other))
        for i, digest in enumerate(self.digests(pop)):
            is_duplicate[i] = digest in seen
            if other is None:
                seen.add(digest)
        return is_duplicate

    def digests(self, population: Iterable[Any]) -> list[bytes]:
        """Return the digest of each individual's row (`row_digests`); rows of the last call cost nothing."""
        digests = []
        for individual in population:
            row = individual.X
            if id(row) not in self._remembered:
                self._remembered[id(row)] = row, _digest(row)
            digests.append(self._remembered[id(row)][1])
        return digests

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_remembered": {}}

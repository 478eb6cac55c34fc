"""A population cut into groups that the kernels train side by side, one individual per lane of a vector.

Lanes do not influence each other, so what becomes of an individual does not depend on how a population is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.lanes import lanes, word_type
from moerank.kernels.pair_pass import pack_lanes

__all__ = ["LaneGroup", "LanePairs", "Words", "lane_groups"]

Precision = type[np.floating[Any]]
Words = NDArray[np.unsignedinteger[Any]]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class LaneGroup:
    """Neighbouring individuals of a population, at most as many as a vector has lanes.

    Attributes
    ----------
    rows : slice
        Their rows in the arrays of the population.
    n_lanes : int
    """

    rows: slice
    n_lanes: int

    def __len__(self) -> int:
        return int(self.rows.stop - self.rows.start)

    def fill_up(self, values: NDArray[Number], empty: float = 0.0) -> NDArray[Number]:
        """Return the group's rows of `values` (n_individuals, …) as (n_lanes, …), with `empty` in the lanes left over.

        Examples
        --------
        >>> [group.fill_up(np.arange(1, 11)).tolist() for group in lane_groups(10, np.float64)]
        [[1, 2, 3, 4, 5, 6, 7, 8], [9, 10, 0, 0, 0, 0, 0, 0]]
        """
        filled: NDArray[Number] = np.full((self.n_lanes, *values.shape[1:]), empty, values.dtype)
        filled[: len(self)] = values[self.rows]
        return filled


def lane_groups(n_individuals: int, precision: Precision) -> Iterator[LaneGroup]:
    """Cut a population into groups that fill the lanes of a vector of `precision`; the last may be smaller.

    Examples
    --------
    >>> [len(group) for group in lane_groups(20, np.float64)]
    [8, 8, 4]
    """
    n_lanes = lanes(precision)
    for begin in range(0, n_individuals, n_lanes):
        yield LaneGroup(slice(begin, min(begin + n_lanes, n_individuals)), n_lanes)


class LanePairs:
    """The pairs that each lane of a group keeps, as the passes read them.

    Parameters
    ----------
    n_pairs : int
    precision : numpy float type
        Of the lanes.
    pair_mask : ndarray of bool, shape (n_individuals, n_pairs), optional
        The pairs of each individual; None means that everybody keeps all.
    """

    def __init__(self, n_pairs: int, precision: Precision, pair_mask: NDArray[np.bool_] | None = None) -> None:
        self.n_pairs = n_pairs
        self.pair_mask = pair_mask
        n_lanes = lanes(precision)
        self._words: Words = np.full(n_pairs, 2**n_lanes - 1, word_type(n_lanes))

    def pack(self, group: LaneGroup) -> tuple[Words, NDArray[np.int64]]:
        """Return one word per pair, bit l for lane l, and the number of pairs that each lane keeps (n_lanes,).

        A lane without an individual keeps none, and so stands idle. The words are valid until the next call.
        O(n_pairs · n_lanes), or O(1) where everybody keeps all pairs.
        """
        n_kept = np.zeros(group.n_lanes, np.int64)
        if self.pair_mask is None:
            n_kept[: len(group)] = self.n_pairs
        else:
            masks = self.pair_mask[group.rows]
            n_kept[: len(group)] = [np.count_nonzero(row) for row in masks]
            pack_lanes(masks, self._words)
        return self._words, n_kept

"""What each individual of a population trains on: features, and pairs, documents or queries."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias, get_args

import numpy as np

from moerank.arrays import Array, Integers, Mask, Packed
from moerank.checks import check_choice
from moerank.data import RankingData

# Unit of selection. A document keeps the pairs with other kept documents, a query keeps all of its pairs.
Unit: TypeAlias = Literal["pair", "document", "query"]


@dataclass(frozen=True, eq=False)
class Masks:
    """The features of each individual, and its training units, which all share or each has of its own."""

    features: Mask  # (n_individuals, n_features)
    unit: Unit = "pair"
    shared: Mask | None = None  # (n_units,), None for all
    own: Array | None = None  # (n_individuals, n_units), packed if the units are pairs

    @property
    def of_all(self) -> Hashable:
        """A key of the units that all individuals share, by which results are remembered."""
        return None if self.shared is None else (self.unit, np.packbits(self.shared).tobytes())

    @property
    def choose_units(self) -> bool:
        """Whether some unit is left out, as far as the masks tell."""
        return self.shared is not None or self.own is not None

    def of_rows(self, rows: Mask | slice) -> Self:
        """Return the masks of some of the individuals."""
        return replace(
            self, features=self.features[rows], own=None if self.own is None else self.own[rows]
        )

    def of_unit(self, unit: Unit) -> Mask | None:
        """Return the mask of these units, one row per individual or one for all; None if it chooses no such units."""
        if unit != self.unit:
            return None
        return self.own if self.shared is None else self.shared[None]


def read_masks(
    train: RankingData,
    pair_mask: Mask | None = None,
    feature_mask: Mask | None = None,
    unit: Unit = "pair",
) -> Masks:
    """Check the masks of a population; `pair_mask` has a column for each `unit`, or packed rows of pairs.

    A ValueError names the row for a wrong shape or type, and for an individual without a feature or without a unit.
    """
    check_choice(get_args(Unit), unit=unit)
    train.require_pairs()
    train.require_moderate_values()
    widths = {"pair": train.n_pairs, "document": train.n_documents, "query": train.n_queries}
    units = _checked_mask(pair_mask, "pair_mask", unit, widths[unit])
    features = _checked_mask(feature_mask, "feature_mask", "feature", train.n_features)
    features = np.ones(train.n_features, np.bool_) if features is None else features
    shared = units if units is not None and units.ndim == 1 and not units.all() else None
    own = units if units is not None and units.ndim == 2 else None
    if own is not None and unit == "pair":
        own = np.packbits(own, axis=1) if own.dtype == bool else np.ascontiguousarray(own)
    if features.ndim == 1:
        features = np.tile(features, (1 if own is None else len(own), 1))
    if own is not None and len(own) != len(features):
        raise ValueError(
            f"pair_mask has {len(own)} rows but feature_mask has {len(features)}; give both as many rows"
        )
    return Masks(features, "pair" if shared is own is None else unit, shared, own)


def n_ones(rows: Packed) -> Integers:
    """Return the number of ones in each row of packed bits."""
    n_bytes = rows.shape[1] // 8 * 8  # that are counted eight at a time
    parts = rows[:, :n_bytes].view(np.uint64), rows[:, n_bytes:]
    return sum(np.bitwise_count(part).sum(axis=1, dtype=np.uint32) for part in parts).astype(
        np.int64
    )


def _are_packed(rows: Array, width: int) -> bool:
    """Return whether these are rows of so many bits that np.packbits has packed."""
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != -(-width // 8):
        return False
    return width % 8 == 0 or not (rows[:, -1] & (255 >> width % 8)).any()


def _checked_mask(mask: Array | None, name: str, thing: str, width: int) -> Array | None:
    if mask is None:
        return None
    mask = np.asarray(mask)
    if thing == "pair" and _are_packed(mask, width):
        width = mask.shape[1]
    elif mask.dtype != bool:
        raise ValueError(f"{name} must be an array of bool, not of {mask.dtype}")
    if mask.ndim not in (1, 2) or mask.shape[-1] != width:
        raise ValueError(
            f"{name} must have shape (n_individuals, {width}) or ({width},), not {mask.shape}"
        )
    if not (some := np.atleast_2d(mask).any(axis=1)).all():
        raise ValueError(
            f"{name}: row {some.argmin()} selects no {thing}; every individual needs at least one"
        )
    return mask

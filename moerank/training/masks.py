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
    """The features of each individual, and its training units: the same for all, or a row for each."""

    features: Mask  # (n_individuals, n_features)
    unit: Unit = "pair"
    shared: Mask | None = None  # (n_units,), None for all
    unit_rows: Array | None = None  # (n_individuals, n_units), packed if the units are pairs

    @property
    def shared_key(self) -> Hashable:
        """The shared units in a form that can be hashed, as results are remembered with them."""
        return None if self.shared is None else (self.unit, np.packbits(self.shared).tobytes())

    @property
    def choose_units(self) -> bool:
        """True if the masks choose among the units."""
        return self.shared is not None or self.unit_rows is not None

    def of_rows(self, rows: Mask | slice) -> Self:
        """Return the masks of some individuals."""
        unit_rows = None if self.unit_rows is None else self.unit_rows[rows]
        return replace(self, features=self.features[rows], unit_rows=unit_rows)

    def of_unit(self, unit: Unit) -> Mask | None:
        """Return the mask of these units, one row per individual or one for all; None if they choose none."""
        if unit != self.unit:
            return None
        return self.unit_rows if self.shared is None else self.shared[None]


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
    features = np.ones(train.n_features, bool) if features is None else features
    shared = units if units is not None and units.ndim == 1 and not units.all() else None
    unit_rows = units if units is not None and units.ndim == 2 else None
    if unit_rows is not None and unit == "pair":
        is_packed = unit_rows.dtype != bool
        unit_rows = np.ascontiguousarray(unit_rows) if is_packed else np.packbits(unit_rows, axis=1)
    if features.ndim == 1:
        features = np.tile(features, (1 if unit_rows is None else len(unit_rows), 1))
    if unit_rows is not None and len(unit_rows) != len(features):
        raise ValueError(
            f"pair_mask has {len(unit_rows)} rows but feature_mask has {len(features)}; "
            "give both as many rows"
        )
    return Masks(features, "pair" if shared is unit_rows is None else unit, shared, unit_rows)


def n_ones(rows: Packed) -> Integers:
    """Return the number of ones in each row of packed bits."""
    n_bytes = rows.shape[1] // 8 * 8  # counted eight at a time: a fifth of the time
    n_in_words = np.bitwise_count(rows[:, :n_bytes].view(np.uint64)).sum(axis=1, dtype=np.int64)
    return n_in_words + np.bitwise_count(rows[:, n_bytes:]).sum(axis=1, dtype=np.int64)


def _are_packed(rows: Array, width: int) -> bool:
    """Return whether these are rows of `width` bits, packed by np.packbits."""
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
    if not (is_filled := np.atleast_2d(mask).any(axis=1)).all():
        raise ValueError(
            f"{name}: row {is_filled.argmin()} selects no {thing}; "
            "every individual needs at least one"
        )
    return mask

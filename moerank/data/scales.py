"""How the features of data are scaled: not at all, in each query, or by values fitted to training data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from moerank.data.blocks import ROWS, blocks

__all__ = ["PER_QUERY", "UNSCALED", "FittedKind", "FittedScaling", "Kind", "PerQuery", "Scaling", "Unscaled"]

Table: TypeAlias = NDArray[Any]

FittedKind: TypeAlias = Literal["minmax", "standard"]
Kind: TypeAlias = Literal["none", "query", "minmax", "standard"]


class _HasScaling(Protocol):
    """What a scaling is applied to; `RankingData` is, and it stands above this file."""

    def scaled_by(self, scaling: Any) -> Any: ...


D = TypeVar("D", bound=_HasScaling)


@dataclass(frozen=True)
class Unscaled:
    """Values as they were given."""

    kind: ClassVar[Literal["none"]] = "none"

    def apply(self, data: D) -> D:
        """Return the data themselves."""
        return data

    def of_features(self, mask: NDArray[np.bool_]) -> Unscaled:
        """Return the scaling of some features."""
        return self


@dataclass(frozen=True)
class PerQuery:
    """Every feature scaled to [0, 1] in every query; see `query_level_norm`."""

    kind: ClassVar[Literal["query"]] = "query"

    def apply(self, data: D) -> D:
        """Return the same documents with scaled features."""
        scaled: D = data.scaled_by(self)
        return scaled

    def of_features(self, mask: NDArray[np.bool_]) -> PerQuery:
        """Return the scaling of some features."""
        return self

    def table(self, X: Table, offsets: NDArray[np.int64]) -> Table:
        """Return x′ = (x − min) / (max − min) in each query, and 0 where a feature is constant there."""
        largest = 2.0 ** (np.finfo(X.dtype).maxexp - 2)
        shrink = X.max() >= largest or X.min() <= -largest  # the difference of two such values could overflow
        scaled = np.empty_like(X)
        for begin, end in blocks(offsets, ROWS):
            rows = slice(offsets[begin], offsets[end])
            block = X[rows] * X.dtype.type(0.5) if shrink else X[rows]
            starts, lengths = offsets[begin:end] - offsets[begin], np.diff(offsets[begin : end + 1])
            least = np.minimum.reduceat(block, starts)
            extent = np.maximum.reduceat(block, starts) - least
            extent[extent == 0.0] = 1.0
            scaled[rows] = (block - np.repeat(least, lengths, axis=0)) / np.repeat(extent, lengths, axis=0)
        return scaled


@dataclass(frozen=True)
class FittedScaling:
    """Every feature moved and stretched by two values fitted to training data: x′ = (x − offset) / scale.

    Attributes
    ----------
    kind : {"minmax", "standard"}
        Offset and scale are the minimum and the extent over all training documents, or mean and standard deviation.
    offset, scale : tuple of float, shape (n_features,)
        A feature that is constant in training has scale 1.
    """

    kind: FittedKind
    offset: tuple[float, ...]
    scale: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.kind not in get_args(FittedKind):
            raise ValueError(f"kind must be 'minmax' or 'standard', not {self.kind!r}")
        if len(self.offset) != len(self.scale):
            raise ValueError(f"{len(self.offset)} offsets and {len(self.scale)} scales are not those of one table")
        for place, (offset, scale) in enumerate(zip(self.offset, self.scale, strict=True)):
            if not isfinite(offset) or not 0 < scale < float("inf"):
                raise ValueError(f"offset {offset} and scale {scale} of feature {place} cannot be applied")

    def apply(self, data: D) -> D:
        """Return the same documents with scaled features."""
        scaled: D = data.scaled_by(self)
        return scaled

    def of_features(self, mask: NDArray[np.bool_]) -> FittedScaling:
        """Return the scaling of some features, those of `mask` (n_features,)."""

        def kept(values: Sequence[float]) -> tuple[float, ...]:
            return tuple(value for value, keep in zip(values, mask.tolist(), strict=True) if keep)

        return FittedScaling(self.kind, kept(self.offset), kept(self.scale))

    def table(self, X: Table, offsets: NDArray[np.int64] | None = None) -> Table:
        """Return the scaled values of a table (n_documents, n_features), computed in double precision.

        Queries do not matter; what is infinite afterwards, as only values far from those of the training can be, is
        left to whoever looks at the table.
        """
        if X.ndim != 2 or X.shape[1] != len(self.offset):
            raise ValueError(f"a table of shape {X.shape} has not the {len(self.offset)} features of the scaling")
        offset, scale = np.array(self.offset), np.array(self.scale)
        scaled = np.empty_like(X)
        with np.errstate(over="ignore"):
            for begin in range(0, len(X), ROWS):
                scaled[begin : begin + ROWS] = (X[begin : begin + ROWS] - offset) / scale
        return scaled


Scaling: TypeAlias = Unscaled | PerQuery | FittedScaling

UNSCALED, PER_QUERY = Unscaled(), PerQuery()

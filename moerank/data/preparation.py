"""Preparation of feature values: rules for missing ones, and what scaling does to a table."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import isfinite
from numbers import Real
from typing import Annotated, Literal, Self, TypeAlias, TypeVar, get_args

import numpy as np
from pydantic import ConfigDict, Field

from moerank.arrays import Array, Floats, Integers, Mask, Matrix, Vector
from moerank.data.inputs import row_blocks

ROWS = 1 << 14  # documents in a block


def blocks(offsets: Integers, rows: int = ROWS) -> Iterator[tuple[int, int]]:
    """Yield the first and last query (exclusive) of runs of at most `rows` documents, or of one query."""
    begin = 0
    while begin < len(offsets) - 1:
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + rows, side="right")) - 1)
        yield begin, end
        begin = end


QueryRule: TypeAlias = Literal["query-min", "query-mean", "query-worst"]
MissingRule: TypeAlias = float | QueryRule
"""A number, or a rule that uses the other values of the feature in the query."""


def check_missing_rule(rule: object, *, or_none: bool = False) -> None:
    """Raise a ValueError unless a rule is a finite number or a name, or None with `or_none`; advise the nearest."""
    if isinstance(rule, Real) and not isinstance(rule, bool) and isfinite(rule):
        return
    if rule in get_args(QueryRule) or (rule is None and or_none):
        return
    nearest = get_close_matches(str(rule), get_args(QueryRule), n=1)
    advice = f"; did you mean {nearest[0]!r}?" if nearest else ""
    choices = "a finite number, 'query-min', 'query-mean' or 'query-worst'"
    raise ValueError(f"missing must be {choices}, not {rule!r}{advice}")


def fill_missing(X: Floats, offsets: Integers, rule: MissingRule) -> None:
    """Replace every NaN of X by a rule, in place.

    A missing value becomes the number; or the smallest value, or the mean, of the feature in the query; or, for
    "query-worst", a value below the smallest one. It is lower by the gap between the two smallest distinct values, or
    by 1 if there is only one, stays below after rounding, and is finite. If a query has no value of a feature, all its
    documents get 0, so that the feature orders nothing there. O(n_documents · n_features).

    Examples
    --------
    >>> X = np.array([[0.5], [np.nan], [0.75], [np.nan]])
    >>> fill_missing(X, np.array([0, 3, 4]), "query-worst")
    >>> X.ravel().tolist()
    [0.5, 0.25, 0.75, 0.0]
    """
    if not isinstance(rule, str) and not abs(rule) <= float(np.finfo(X.dtype).max):
        raise ValueError(f"missing is {rule:g}, which is too large for a table in single precision")
    for begin, end in blocks(offsets):
        block = X[offsets[begin] : offsets[end]]
        unknown = np.isnan(block)
        columns = np.flatnonzero(unknown.any(axis=0))
        if not isinstance(rule, str):
            block[unknown] = rule
        elif len(columns):
            starts = offsets[begin:end] - offsets[begin]
            lengths = np.diff(offsets[begin : end + 1])
            # A copy in C order, so that means do not depend on the memory order.
            present = np.ascontiguousarray(block[:, columns])
            values = np.repeat(_replacements(present, starts, lengths, rule), lengths, axis=0)
            block[:, columns] = np.where(unknown[:, columns], values, block[:, columns])


def _replacements(X: Floats, starts: Integers, lengths: Integers, rule: QueryRule) -> Floats:
    """Return what a missing value becomes in each query, shape (n_queries, n_columns), in the precision of X."""
    minimum = np.fmin.reduceat(X, starts)
    nothing_known = np.isnan(minimum)
    minimum[nothing_known] = 0.0
    if rule == "query-min":
        return minimum
    with np.errstate(over="ignore"):
        if rule == "query-mean":
            n_present = lengths[:, None] - np.add.reduceat(np.isnan(X), starts, dtype=np.int64)
            # Values whose sum is finite.
            small = np.where(np.isnan(X), 0.0, X.astype(float) * 2.0**-40)
            mean = np.add.reduceat(small, starts) / np.maximum(n_present, 1) * 2.0**40
            maximum = np.fmax.reduceat(X, starts)
            maximum[nothing_known] = 0.0
            return np.clip(mean, minimum, maximum).astype(
                X.dtype
            )  # the mean of equal values is that value
        second = np.fmin.reduceat(
            np.where(np.repeat(minimum, lengths, axis=0) < X, X, np.nan), starts
        )
        gap = np.where(np.isnan(second), 1.0, second.astype(float) - minimum)
        worst = np.minimum(
            (minimum - gap).astype(X.dtype), np.nextafter(minimum, X.dtype.type(-np.inf))
        )
    worst = np.maximum(worst, np.finfo(X.dtype).min)
    return np.where(nothing_known, X.dtype.type(0), worst)


SAMPLE = 1 << 12  # documents that say whether single precision is enough
MERGED = 0.01  # share of the values of a feature that may become equal


def merges_in_single(exact: Matrix, query: Integers) -> bool:
    """Return whether single precision merges more than a hundredth of the scaled values of some feature in a query.

    A few of very many values are always so close. They may not decide, or every large table would need double.
    """
    with np.errstate(over="ignore"):
        tables = exact, exact.astype(np.float32)
    ordered = (np.sort(values + 2.0 * query[:, None], axis=0) for values in tables)
    n_distinct, n_in_single = ((values[1:] != values[:-1]).sum(axis=0) for values in ordered)
    return bool((n_in_single < (1 - MERGED) * n_distinct).any())


def sample_rows(offsets: Integers) -> tuple[Integers, Integers]:
    """Return about `SAMPLE` rows, all of every n-th query, and the query of each."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    rows = np.flatnonzero(query % -(-len(query) // SAMPLE) == 0)[:ROWS]
    return rows, query[rows]


FittedKind: TypeAlias = Literal["minmax", "standard"]


Data = TypeVar("Data")


class _Scaling:
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # for reading JSON

    def apply(self, data: Data) -> Data:
        """Return the same documents with scaled features."""
        return data.scaled_by(self)  # type: ignore[attr-defined, no-any-return]

    def of_features(self, mask: Mask) -> Self:
        """Return the scaling of the features in `mask`, shape (n_features,)."""
        return self

    def raw(self, values: Vector, feature: int) -> Vector:
        """Return the raw values of a feature, if they are known from the scaled ones alone."""
        return values


@dataclass(frozen=True)
class Unscaled(_Scaling):
    """Values as they were given."""

    kind: Literal["none"] = "none"

    def apply(self, data: Data) -> Data:
        """Return the same documents."""
        return data


@dataclass(frozen=True)
class PerQuery(_Scaling):
    """Every feature scaled to [0, 1] in every query; see `query_level_norm`."""

    kind: Literal["query"] = "query"

    def table(self, X: Array, offsets: Integers) -> Array:
        """Return x′ = (x − min) / (max − min) in each query, and 0 where a feature is constant there.

        A table in single precision stays so unless that merges values, see `merges_in_single`.
        """
        dtype = X.dtype
        if dtype == np.float32:
            sample, query = sample_rows(offsets)
            starts = np.flatnonzero(np.diff(query, prepend=-1))
            exact = self.table(X[sample].astype(float), np.append(starts, len(sample)))
            dtype = np.dtype(float) if merges_in_single(exact, query) else dtype
        largest = 2.0 ** (np.finfo(dtype).maxexp - 2)  # differences of larger values may overflow
        shrink = max(float(X.max()), -float(X.min())) >= largest
        scaled = np.empty_like(X, dtype)
        for begin, end in blocks(offsets):
            rows = slice(offsets[begin], offsets[end])
            block = X[rows].astype(dtype, copy=False)
            block = block * dtype.type(0.5) if shrink else block
            starts, lengths = offsets[begin:end] - offsets[begin], np.diff(offsets[begin : end + 1])
            minimum = np.minimum.reduceat(block, starts)
            extent = np.maximum.reduceat(block, starts) - minimum
            extent[extent == 0.0] = 1.0
            shifted = block - np.repeat(minimum, lengths, axis=0)
            scaled[rows] = shifted / np.repeat(extent, lengths, axis=0)
        return scaled


@dataclass(frozen=True)
class FittedScaling(_Scaling):
    """Every feature shifted and scaled by two values fitted to training data: x′ = (x − offset) / scale.

    Attributes
    ----------
    kind : {"minmax", "standard"}
        Offset and scale are the minimum and the extent over all training documents, or mean and standard deviation.
    offset, scale : tuple of float, shape (n_features,)
        A feature that is constant in training has scale 1.
    single : bool, default False
        Whether tables in single precision stay so: if the training data were, and that merges hardly any of their
        values. It is not stored, because `predict` and stored models scale in double precision.
    """

    kind: FittedKind
    offset: tuple[float, ...]
    scale: tuple[float, ...]
    single: Annotated[bool, Field(exclude=True)] = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for feature, (offset, scale) in enumerate(zip(self.offset, self.scale, strict=True)):
            if not isfinite(offset) or not 0 < scale < float("inf"):
                raise ValueError(
                    f"offset {offset} and scale {scale} of feature {feature} cannot be applied"
                )

    def of_features(self, mask: Mask) -> Self:
        """Return the scaling of the features in `mask`, shape (n_features,)."""
        offset, scale = np.array([self.offset, self.scale])[:, mask].tolist()
        return replace(self, offset=tuple(offset), scale=tuple(scale))

    def raw(self, values: Vector, feature: int) -> Vector:
        """Return the raw values of a feature."""
        return values * self.scale[feature] + self.offset[feature]

    def table(self, X: Array, offsets: Integers | None = None) -> Array:
        """Return the scaled values of a table (n_documents, n_features), computed in double precision.

        `offsets` is ignored. Values far from those of the training data can become infinite.
        """
        if X.ndim != 2 or X.shape[1] != len(self.offset):
            raise ValueError(
                f"the scaling has {len(self.offset)} features, but the table has shape {X.shape}"
            )
        offset, scale = np.array(self.offset), np.array(self.scale)
        scaled = np.empty_like(X, X.dtype if self.single else np.float64)
        with np.errstate(over="ignore"):
            for rows in row_blocks(len(X), ROWS):
                scaled[rows] = (X[rows] - offset) / scale
        return scaled


Scaling: TypeAlias = Annotated[Unscaled | PerQuery | FittedScaling, Field(discriminator="kind")]

UNSCALED, PER_QUERY = Unscaled(), PerQuery()

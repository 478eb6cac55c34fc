"""Preparation of feature values: replacing missing ones, scaling, and centring within queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from pydantic import ConfigDict, Field

from moerank.arrays import Array, Floats, Integers, Mask, Matrix, Vector
from moerank.checks import check_choice
from moerank.data.inputs import require_data

if TYPE_CHECKING:
    from moerank.data.ranking_data import RankingData

ROWS = 1 << 14  # documents in a block
SAMPLE = 1 << 12  # documents that say whether single precision is enough
MERGED = 0.01  # share of the values of a feature that may become equal


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
    is_number = isinstance(rule, Real) and not isinstance(rule, bool | np.bool_) and isfinite(rule)
    if (
        is_number
        or (rule is None and or_none)
        or (isinstance(rule, str) and rule in get_args(QueryRule))
    ):
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
    for begin, end in blocks(offsets, ROWS):
        block = X[offsets[begin] : offsets[end]]
        unknown = np.isnan(block)
        columns = np.flatnonzero(unknown.any(axis=0))
        if not isinstance(rule, str):
            block[unknown] = rule
        elif len(columns):
            starts = offsets[begin:end] - offsets[begin]
            lengths = np.diff(offsets[begin : end + 1])
            present = np.ascontiguousarray(
                block[:, columns]
            )  # so that means do not depend on the memory order
            values = np.repeat(_replacements(present, starts, lengths, rule), lengths, axis=0)
            block[:, columns] = np.where(unknown[:, columns], values, block[:, columns])


def _replacements(X: Floats, starts: Integers, lengths: Integers, rule: QueryRule) -> Floats:
    """Return what a missing value becomes in each query, shape (n_queries, n_columns), in the precision of X."""
    least = np.fmin.reduceat(X, starts)
    nothing_known = np.isnan(least)
    least[nothing_known] = 0.0
    if rule == "query-min":
        return least
    with np.errstate(over="ignore"):
        if rule == "query-mean":
            n_present = lengths[:, None] - np.add.reduceat(np.isnan(X), starts, dtype=np.int64)
            small = np.where(
                np.isnan(X), 0.0, X.astype(np.float64) * 2.0**-40
            )  # whose sum is finite
            mean = np.add.reduceat(small, starts) / np.maximum(n_present, 1) * 2.0**40
            greatest = np.fmax.reduceat(X, starts)
            greatest[nothing_known] = 0.0
            return np.clip(mean, least, greatest).astype(
                X.dtype
            )  # the mean of equal values is that value
        second = np.fmin.reduceat(
            np.where(np.repeat(least, lengths, axis=0) < X, X, np.nan), starts
        )
        gap = np.where(np.isnan(second), 1.0, second.astype(np.float64) - least)
        worst = np.minimum(
            (least - gap).astype(X.dtype), np.nextafter(least, X.dtype.type(-np.inf))
        )
    worst = np.maximum(worst, np.finfo(X.dtype).min)
    return np.where(nothing_known, X.dtype.type(0), worst)


def _merges_in_single(exact: Matrix, query: Integers) -> bool:
    """Return whether single precision merges more than a hundredth of the scaled values of some feature in a query.

    A few of very many values are always so close. They may not decide, or every large table would need double.
    """
    with np.errstate(over="ignore"):
        tables = exact, exact.astype(np.float32)
    ordered = (np.sort(values + 2.0 * query[:, None], axis=0) for values in tables)
    n_distinct, n_in_single = ((values[1:] != values[:-1]).sum(axis=0) for values in ordered)
    return bool((n_in_single < (1 - MERGED) * n_distinct).any())


def _sample(offsets: Integers) -> tuple[Integers, Integers]:
    """Return about `SAMPLE` rows, those of every so many queries, and the query of each."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    rows = np.flatnonzero(query % -(-len(query) // SAMPLE) == 0)[:ROWS]
    return rows, query[rows]


FittedKind: TypeAlias = Literal["minmax", "standard"]


class _Scaling:
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # for reading JSON

    def apply(self, data: RankingData) -> RankingData:
        """Return the same documents with scaled features."""
        return data if isinstance(self, Unscaled) else data.scaled_by(self)  # type: ignore[arg-type]

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


@dataclass(frozen=True)
class PerQuery(_Scaling):
    """Every feature scaled to [0, 1] in every query; see `query_level_norm`."""

    kind: Literal["query"] = "query"

    def table(self, X: Array, offsets: Integers) -> Array:
        """Return x′ = (x − min) / (max − min) in each query, and 0 where a feature is constant there.

        A table in single precision stays so unless that merges values, see `_merges_in_single`.
        """
        dtype = X.dtype
        if dtype == np.float32:
            sample, query = _sample(offsets)
            starts = np.flatnonzero(np.diff(query, prepend=-1))
            exact = self.table(X[sample].astype(np.float64), np.append(starts, len(sample)))
            dtype = np.dtype(np.float64) if _merges_in_single(exact, query) else dtype
        largest = 2.0 ** (np.finfo(dtype).maxexp - 2)
        shrink = (
            max(float(X.max()), -float(X.min())) >= largest
        )  # the difference of two such values could overflow
        scaled = np.empty_like(X, dtype)
        for begin, end in blocks(offsets, ROWS):
            rows = slice(offsets[begin], offsets[end])
            block = X[rows].astype(dtype, copy=False)
            block = block * dtype.type(0.5) if shrink else block
            starts, lengths = offsets[begin:end] - offsets[begin], np.diff(offsets[begin : end + 1])
            least = np.minimum.reduceat(block, starts)
            extent = np.maximum.reduceat(block, starts) - least
            extent[extent == 0.0] = 1.0
            scaled[rows] = (block - np.repeat(least, lengths, axis=0)) / np.repeat(
                extent, lengths, axis=0
            )
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
        offset, scale = (
            tuple(np.array(values)[mask].tolist()) for values in (self.offset, self.scale)
        )
        return replace(self, offset=offset, scale=scale)

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
            for begin in range(0, len(X), ROWS):
                scaled[begin : begin + ROWS] = (X[begin : begin + ROWS] - offset) / scale
        return scaled


Scaling: TypeAlias = Annotated[Unscaled | PerQuery | FittedScaling, Field(discriminator="kind")]

UNSCALED, PER_QUERY = Unscaled(), PerQuery()


def query_level_norm(data: RankingData) -> RankingData:
    """Scale every feature of every query to [0, 1].

    Within a query, x′ = (x − min) / (max − min), and 0 where the feature is constant. Scales that differ from query to
    query carry no preference, and the rankers assume that features are comparable.

    Parameters
    ----------
    data : RankingData
        Raw features.

    Returns
    -------
    RankingData
        The same documents with scaled features. Time O(n_documents · n_features).

    References
    ----------
    T. Qin, T.-Y. Liu, J. Xu, H. Li: LETOR: a benchmark collection for research on learning to rank for information
    retrieval. Information Retrieval 13 (2010), QueryLevelNorm.

    Examples
    --------
    >>> from moerank.data import RankingData
    >>> query_level_norm(RankingData([[10.0, 3.0], [30.0, 3.0], [15.0, 3.0]], y=[0, 2, 1], qid=0)).X
    array([[0. , 0. ], [1. , 0. ], [0.25, 0. ]])
    """
    require_data(data)
    return PER_QUERY.apply(data)


def fit_scaling(
    train: RankingData, kind: Literal["none", "query", "minmax", "standard"]
) -> Scaling:
    """Fit a scaling to training data.

    Parameters
    ----------
    train : RankingData
        Raw features.
    kind : {"none", "query", "minmax", "standard"}
        "query" scales each query by itself, as `query_level_norm` does. "minmax" maps the range of each feature over
        all training documents to [0, 1], "standard" its mean to 0 and its standard deviation to 1; a feature that is
        constant there is only shifted.

    Returns
    -------
    Scaling
        The fitted values; ``apply(data)`` scales the training data and any other.

    Raises
    ------
    ValueError
        For another kind, data that are scaled already, and a feature whose range overflows.

    Notes
    -----
    O(n_documents · n_features) time, in double precision, whatever the precision of the data. Scaled data keep single
    precision unless it merges more than a hundredth of the values of a feature, as where -999 stands for missing ones.

    Examples
    --------
    >>> from moerank.data import RankingData
    >>> train, test = RankingData([[10.0], [30.0]], y=[0, 1], qid=0), RankingData([[15.0]], y=[0], qid=0)
    >>> scaling = fit_scaling(train, "minmax")
    >>> scaling.apply(test).X.tolist(), scaling.apply(test).scaling == scaling
    ([[0.25]], True)
    """
    require_data(train)
    check_choice(("none", "query", *get_args(FittedKind)), kind=kind)
    if kind == "none":
        return UNSCALED
    if kind == "query":
        return PER_QUERY
    if train.scaling != UNSCALED:
        raise ValueError(
            f"{train.name}: the features are scaled already ({train.scaling.kind}); fit to raw values"
        )
    least, greatest = train.X.min(axis=0).astype(np.float64), train.X.max(axis=0).astype(np.float64)
    with np.errstate(over="ignore"):
        extent = greatest - least
    if np.isinf(extent).any():
        name = train.feature_names[int(np.isinf(extent).argmax())]
        raise ValueError(
            f"{train.name}: the range of feature {name!r} is too large to be a number; divide it by 2"
        )
    if kind == "minmax":
        offset, scale = least, extent
    else:
        unit = np.where(
            extent == 0, 1.0, extent
        )  # sums are over values in [0, 1], whose squares are harmless
        mean = _sum_of_powers(train, 1, least, unit, 0.0) / train.n_documents
        offset = least + mean * unit
        scale = np.sqrt(_sum_of_powers(train, 2, least, unit, mean) / train.n_documents) * unit
    constant = (extent == 0) | (scale == 0)  # the deviation of denormal numbers vanishes
    scale[constant] = 1.0
    fitted = FittedScaling(kind, tuple(offset.tolist()), tuple(scale.tolist()))
    if train.X.dtype != np.float32:
        return fitted
    sample, query = _sample(train.offsets)
    return replace(
        fitted, single=not _merges_in_single(fitted.table(train.X[sample]), np.zeros_like(query))
    )


def negative_features(data: RankingData) -> Mask:
    """Return which features have raw values below 0, but for replaced missing ones; none if scaled per query."""
    negative = np.zeros(data.n_features, np.bool_)
    if isinstance(data.scaling, PerQuery):
        return negative
    raw = np.zeros((3, data.n_features))
    raw[1] = data.missing if isinstance(data.missing, float | int) else 0.0
    raw[2] = raw[1].astype(np.float32)  # as data in single precision were filled
    raw = data.scaling.table(raw) if isinstance(data.scaling, FittedScaling) else raw
    zero, filled, filled_in_single = raw.astype(data.X.dtype)
    for begin in range(0, data.n_documents, ROWS):
        block = data.X[begin : begin + ROWS]
        negative |= ((block < zero) & (block != filled) & (block != filled_in_single)).any(axis=0)
    return negative


def _sum_of_powers(
    data: RankingData, power: int, least: Vector, unit: Vector, mean: Vector | float
) -> Vector:
    total = np.zeros(len(unit))
    for begin in range(0, data.n_documents, ROWS):
        rows = np.ascontiguousarray(
            data.X[begin : begin + ROWS]
        )  # NumPy adds up columns in an order of its own
        total += (((rows - least) / unit - mean) ** power).sum(axis=0)
    return total


def centre_in_queries(values: ArrayLike, offsets: Integers) -> Array:
    """Subtract from each column of `values` (n_documents, …) its mean over the documents of the query.

    The result has double precision. It is exactly 0 where a column is constant in the query, although rounding may
    separate the mean from the constant.
    """
    values = np.asarray(values, dtype=np.float64, order="C")
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(len(sizes)), sizes)
    means = np.add.reduceat(values, offsets[:-1]) / sizes.reshape(-1, *[1] * (values.ndim - 1))
    constant = np.maximum.reduceat(values, offsets[:-1]) == np.minimum.reduceat(
        values, offsets[:-1]
    )
    return np.where(constant[query], 0.0, values - means[query])

"""Scaling of features, and centring within queries."""

from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from moerank.arrays import Array, Integers, Mask, Vector
from moerank.checks import check_choice
from moerank.data.inputs import require_data, row_blocks
from moerank.data.preparation import (
    PER_QUERY,
    ROWS,
    UNSCALED,
    FittedKind,
    FittedScaling,
    PerQuery,
    Scaling,
    merges_in_single,
    sample_rows,
)
from moerank.data.ranking_data import RankingData


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
            f"{train.name}: the features are scaled already ({train.scaling.kind}); fit to raw "
            "values"
        )
    minimum, maximum = train.X.min(axis=0).astype(float), train.X.max(axis=0).astype(float)
    with np.errstate(over="ignore"):
        extent = maximum - minimum
    if kind == "minmax":
        offset, scale = minimum, extent
    else:
        unit = np.where(extent == 0, 1.0, extent)  # sums of squares are over values in [0, 1]
        mean = _sum_of_powers(train, 1, minimum, unit, 0.0) / train.n_documents
        offset = minimum + mean * unit
        scale = np.sqrt(_sum_of_powers(train, 2, minimum, unit, mean) / train.n_documents) * unit
    constant = (extent == 0) | (scale == 0)  # the deviation of denormal numbers vanishes
    scale[constant] = 1.0
    fitted = FittedScaling(kind, tuple(offset.tolist()), tuple(scale.tolist()))
    if train.X.dtype != np.float32:
        return fitted
    sample, query = sample_rows(train.offsets)
    exact = fitted.table(train.X[sample])
    return replace(fitted, single=not merges_in_single(exact, np.zeros_like(query)))


def negative_features(data: RankingData) -> Mask:
    """Return which features have raw values below 0, but for replaced missing ones; none if scaled per query."""
    negative = np.zeros(data.n_features, bool)
    if isinstance(data.scaling, PerQuery):
        return negative
    raw = np.zeros((3, data.n_features))
    raw[1] = data.missing if isinstance(data.missing, float | int) else 0.0
    raw[2] = raw[1].astype(np.float32)  # as data in single precision were filled
    raw = data.scaling.table(raw) if isinstance(data.scaling, FittedScaling) else raw
    zero, filled, filled_in_single = raw.astype(data.X.dtype)
    for rows in row_blocks(data.n_documents, ROWS):
        block = data.X[rows]
        negative |= ((block < zero) & (block != filled) & (block != filled_in_single)).any(axis=0)
    return negative


def _sum_of_powers(
    data: RankingData, power: int, minimum: Vector, unit: Vector, mean: Vector | float
) -> Vector:
    total = np.zeros(len(unit))
    for rows in row_blocks(data.n_documents, ROWS):
        # In C order, because NumPy adds up columns in an order of its own.
        block = np.ascontiguousarray(data.X[rows])
        total += (((block - minimum) / unit - mean) ** power).sum(axis=0)
    return total


def centre_in_queries(values: ArrayLike, offsets: Integers) -> Array:
    """Subtract from each column of `values` (n_documents, …) its mean over the documents of the query.

    The result has double precision. It is exactly 0 where a column is constant in the query, although rounding may
    separate the mean from the constant.
    """
    values = np.asarray(values, float, order="C")
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(len(sizes)), sizes)
    means = np.add.reduceat(values, offsets[:-1]) / sizes.reshape(-1, *[1] * (values.ndim - 1))
    constant = np.maximum.reduceat(values, offsets[:-1]) == np.minimum.reduceat(
        values, offsets[:-1]
    )
    return np.where(constant[query], 0.0, values - means[query])

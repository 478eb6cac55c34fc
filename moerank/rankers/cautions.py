"""What `fit` says of features that it can train on, and that should not be as they are."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from moerank.data import UNSCALED, RankingData
from moerank.rankers.spread import features_apart

__all__ = [
    "ConstantFeatureWarning",
    "ScaleWarning",
    "warn_of_constant_features",
    "warn_of_other_scales",
    "warn_of_scales",
]

SAMPLE = 10_000
"""Rows that are looked at, about, to see how large the values of a table are."""

LEAST = 50
"""Rows without which nothing is said of them."""

OTHERWISE = 3.0
"""Factor between two standard deviations beyond which features are scaled otherwise, if most of them are."""


class ConstantFeatureWarning(UserWarning):
    """Features that are constant, and so cannot move a document, are left out of the training."""


class ScaleWarning(UserWarning):
    """Features, or data, differ so much in scale that it spoils a ranker; scale them, and in the same way."""


def warn_of_constant_features(train: RankingData, varying: NDArray[np.bool_], where: str) -> None:
    """Name the features that `fit` leaves out; the warning points at the caller of `fit`."""
    names = [name for name, varies in zip(train.feature_names, varying, strict=True) if not varies]
    message = f"features constant in {where} are left out: {', '.join(names)}"
    warnings.warn(message, ConstantFeatureWarning, stacklevel=3)


def warn_of_scales(train: RankingData) -> None:
    """Name the features with the largest and the smallest scale if they are too far apart.

    Data that are scaled, in whatever way, are not looked at. The warning points at the caller of `fit`.
    """
    if train.scaling != UNSCALED or (apart := features_apart(train)) is None:
        return
    message = (
        f"{train.name}: the scales of the features differ by a factor of {apart.ratio:.0e}: within queries, feature "
        f"{train.feature_names[apart.large]!r} has a standard deviation of {apart.largest:.2g}, and feature "
        f"{train.feature_names[apart.small]!r} one of {apart.smallest:.2g}, so that it hardly counts; scale them: "
        "query_level_norm(data) or fit_scaling(train, 'standard'), in a problem file normalize = \"query\" or "
        '"standard"'
    )
    warnings.warn(message, ScaleWarning, stacklevel=3)


def warn_of_other_scales(train: RankingData, validation: RankingData) -> None:
    """Say if validation data look raw beside training data that look scaled, or the other way round.

    So they are behind the scaler of a pipeline, which transforms nothing but X. For half of the features, a standard
    deviation or the place of the mean differs by a factor of more than 3. The warning points at the caller of `fit`.
    """
    if min(train.n_documents, validation.n_documents) < LEAST:
        return
    mean, deviation = _size_of(train)
    other_mean, other = _size_of(validation)
    varies = (deviation > 0) & (other > 0)
    if not varies.any():
        return
    ratio = np.abs(np.log(other[varies] / deviation[varies]))
    shift = np.abs(other_mean - mean)[varies] / deviation[varies]
    if np.median(ratio) <= np.log(OTHERWISE) and np.median(shift) <= OTHERWISE:
        return
    message = (
        f"{validation.name} seem to be scaled otherwise than {train.name}: by the median of the features, their "
        f"standard deviation is {np.median(other[varies] / deviation[varies]):.2g} times as large, and their mean "
        f"{np.median(shift):.2g} standard deviations away; behind a scaler in a Pipeline give X_val, y_val and "
        'qid_val instead of validation, which Pipeline([…], transform_input=["X_val"]) scales, too'
    )
    warnings.warn(message, ScaleWarning, stacklevel=3)


def _size_of(data: RankingData) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return means and standard deviations of the features, (n_features,) each, in rows spread over the data."""
    rows = np.asarray(data.X[:: max(1, data.n_documents // SAMPLE)], np.float64)
    return rows.mean(axis=0), rows.std(axis=0)

"""Checks of the arguments of `fit` and `predict`, and warnings about features."""

import warnings
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.arrays import Mask, Vector
from moerank.data import RankingData, centre_in_queries, preparation, remembered
from moerank.data.overlap import shared_queries
from moerank.solvers import make_backend, read_solver

# Validation data: a RankingData, (X, y) of one query, or (X, y, qid).
Validation: TypeAlias = (
    RankingData | tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike | None]
)


def as_ranking_data(
    X: RankingData | ArrayLike,
    y: ArrayLike | None,
    qid: ArrayLike | None,
    *,
    name: str = "training data",
) -> RankingData:
    """Check the first arguments of a `fit`, and return them as data that hold at least one preference pair.

    A RankingData is returned itself, with its names and its remembered results. The columns of a DataFrame keep their
    names.

    Raises a ValueError if y is missing, or given with a RankingData, for malformed data, and for values too large to
    train on.
    """
    if isinstance(X, RankingData):
        refuse_labels(y, qid)
        data = X
    elif y is None:
        raise ValueError(
            f"{name}: y is missing: give the relevance labels, one per row of X, and qid=qid "
            "(a ranker requires y to be passed, but the target y is None)"
        )
    else:
        data = RankingData(X, y, qid, name=name)
    data.require_pairs()
    data.require_moderate_values()
    return data


def as_validation_data(validation: Validation | None, train: RankingData) -> RankingData | None:
    """Check the argument `validation` of a `fit`, and return it as data with the features of `train`, scaled alike.

    Unscaled data are scaled like the training data. If the training data were scaled per query, arrays count as scaled
    already. Missing values in arrays follow the rule of the training data.

    Raises a ValueError for anything but RankingData, (X, y), (X, y, qid) or None, malformed data, values too large to
    score, other features, another scaling or rule for missing values, and arrays without qid where the training data
    have several queries.
    """
    if validation is None:
        return None
    arrays = not isinstance(validation, RankingData)
    if not isinstance(validation, RankingData):
        validation = _validation_data(validation, train)
    if validation.n_features != train.n_features:
        raise ValueError(
            f"the training data have {train.n_features} features "
            f"but {validation!r} has another number"
        )
    check_feature_names(
        validation.given_names,
        train.given_names,
        f"the features of {validation.name}",
        "the training data",
    )
    if not arrays or isinstance(train.scaling, preparation.FittedScaling):
        validation = scaled_alike(validation, train.scaling, train.missing)
    validation.require_moderate_values()
    for sentence, is_copy in shared_queries((train, validation)).items():
        if is_copy:
            warnings.warn(sentence, stacklevel=3)
    return validation


def _validation_data(validation: object, train: RankingData) -> RankingData:
    """Return (X, y) or (X, y, qid) as data with the rule of the training data for missing values."""
    if not isinstance(validation, tuple | list) or len(validation) not in (2, 3):
        raise ValueError(
            f"validation must be a RankingData or (X, y, qid), not {type(validation).__name__}"
        )
    X, y, qid = (*validation, None)[:3]
    if qid is None and train.n_queries > 1:
        raise ValueError(
            f"validation has no qid, and {train.name} have {train.n_queries} queries: "
            "pass (X, y, qid), with qid=0 if the validation data are one query"
        )
    return RankingData(
        X,
        y,
        0 if qid is None else qid,
        name="validation data",
        missing=train.missing,
        missing_values=train.missing_values,
    )


def scaled_alike(
    data: RankingData,
    training_scaling: preparation.Scaling,
    missing: preparation.MissingRule | None,
) -> RankingData:
    """Return the data scaled like the training data; a ValueError if they are scaled in another way."""
    if missing is not None and data.missing not in (None, missing) and data.n_missing.any():
        raise ValueError(
            f"missing values of {data.name} follow the rule missing={data.missing!r}, "
            f"those of the training data missing={missing!r}; use the same rule"
        )
    if data.scaling == training_scaling:
        return data
    if data.scaling == preparation.UNSCALED:
        return training_scaling.apply(data)
    if data.scaling == preparation.PER_QUERY and training_scaling == preparation.UNSCALED:
        return data  # the training data may have been arrays of such data
    raise ValueError(
        f"the features of {data.name} are scaled ({data.scaling.kind}), but not by the scaling of "
        f"the training data ({training_scaling.kind}); fit to the scaled RankingData, or give raw "
        "values"
    )


def refuse_labels(y: ArrayLike | None, qid: ArrayLike | None) -> None:
    """Raise a ValueError for labels or queries that are given in addition to a RankingData."""
    if y is not None or qid is not None:
        raise ValueError("y and qid must not be given with a RankingData, which has its own")


def check_feature_names(
    names: Sequence[str] | None,
    expected: Sequence[str] | NDArray[np.object_] | None,
    what: str,
    whose: str,
) -> None:
    """Raise a ValueError for names of features that are known, and differ from known expected ones."""
    if names is not None and expected is not None and tuple(names) != tuple(expected):
        raise ValueError(f"{what} must be those of {whose}, in their order: {', '.join(expected)}")


def inner_ranker(ranker: object) -> object | None:
    """Return the ranker that an estimator trains, if it has one."""
    inner = getattr(ranker, "ranker", None)
    if inner is None:
        inner = getattr(ranker, "backend", None)
    if isinstance(inner, str):
        name, parameters = read_solver(inner)
        return make_backend(name, **parameters)
    return inner


def refuse_weights(train: RankingData, ranker: object) -> None:
    """Raise a ValueError for weights of queries or documents that a ranker, or the one inside it, does not use."""
    if not train.is_weighted:
        return
    while (inner := inner_ranker(ranker)) is not None:
        ranker = inner
    if getattr(ranker, "_takes_weights", False):
        return
    name, remedy = type(ranker).__name__, "Use RankRLS or LambdaMART"
    if hasattr(ranker, "ranker"):
        name, remedy = f"{name} with its default ranker", f"{remedy} as its ranker"
    raise ValueError(
        f"{train.name}: {name} takes no weights of queries or documents. "
        f"{remedy}, or a RankingData without weights"
    )


# Largest ratio of two standard deviations that gives no warning.
MAX_RATIO = 1e4


def varying_in_queries(train: RankingData) -> Mask:
    """Return the features in which two documents of some query differ, shape (n_features,), remembered."""
    return _spread(train)[0]


@remembered
def _spread(train: RankingData) -> tuple[Mask, Vector]:
    """Return for each feature whether it varies in some query, and its deviation from query means; remembered.

    O(n_documents · n_features).
    """
    varies, squares = np.zeros(train.n_features, bool), np.zeros(train.n_features)
    for begin, end in train.query_blocks(preparation.ROWS):
        offsets = train.offsets[begin : end + 1]
        X = centre_in_queries(train.X[offsets[0] : offsets[-1]], offsets - offsets[0])
        varies |= X.any(axis=0)
        squares += np.einsum("ij,ij->j", X, X)
    return varies, np.sqrt(squares / train.n_documents)


class ScaleWarning(UserWarning):
    """The scales of the features differ so much that the ranker suffers; scale the features."""


def warn_of_scales(train: RankingData) -> None:
    """Name the features with the largest and the smallest scale if their ratio is more than 10,000.

    The scale of a feature is the standard deviation √(Σ_q Σ_{i ∈ q} (x_i − x̄_q)² / n) over all documents. Only features
    that vary in some query count. Scaled data give no warning. The warning points at the caller of `fit`.
    """
    varies, deviation = _spread(train)
    if train.scaling != preparation.UNSCALED or not varies.any():
        return
    large = np.where(varies, deviation, -1.0).argmax()
    small = np.where(varies, deviation, np.inf).argmin()
    if deviation[large] <= MAX_RATIO * deviation[small]:
        return
    with np.errstate(over="ignore", divide="ignore"):
        ratio = deviation[large] / deviation[small]
    message = (
        f"{train.name}: the scales of the features differ by a factor of {ratio:.0e}: within "
        f"queries, feature {train.feature_names[large]!r} has a standard deviation of "
        f"{deviation[large]:.2g}, and feature {train.feature_names[small]!r} one of "
        f"{deviation[small]:.2g}, so the latter hardly counts; scale the features by "
        "query_level_norm(data) or fit_scaling(train, 'standard'), in a problem file by "
        'normalize = "query" or "standard"'
    )
    warnings.warn(message, ScaleWarning, stacklevel=3)

"""Checks of the arguments of `fit` and `predict`, and warnings about features."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.arrays import Array, Mask, Matrix, Vector
from moerank.data import RankingData, inputs, scaling
from moerank.data.ranking_data import labels_alone

if TYPE_CHECKING:
    from moerank.rankers.base import RankingEstimator

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
        _refuse_labels(y, qid)
        data = X
    elif isinstance(X, tuple) and y is None:
        raise ValueError(f"{name}: X is a tuple; give its parts as arguments: X, y and qid=qid")
    elif y is None:
        raise ValueError(
            "y is missing: give the relevance labels, one per row of X (a ranker requires y to be passed, but the "
            "target y is None)"
        )
    else:
        data = RankingData(X, y, qid, name=name)
    data.require_pairs()
    data.require_moderate_values()
    return data


def labelled(X: RankingData | ArrayLike, y: ArrayLike | None, qid: ArrayLike | None) -> RankingData:
    """Return test data for a metric: X if it is a RankingData, else labels and queries with one feature that is 0."""
    if isinstance(X, RankingData):
        _refuse_labels(y, qid)
        return X
    if y is None:
        raise ValueError("test data: y is missing: give the relevance labels, one per row of X")
    return labels_alone(y, qid)


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
        if not isinstance(validation, tuple | list) or len(validation) not in (2, 3):
            raise ValueError(
                f"validation must be a RankingData or (X, y, qid), not {type(validation).__name__}"
            )
        X, y, qid = (*validation, None)[:3]
        if qid is None and train.n_queries > 1:
            raise ValueError(
                f"validation has no qid, and {train.name} have {train.n_queries} queries: give (X, y, qid), with qid=0 "
                "if the validation data are one query"
            )
        qid = 0 if qid is None else qid
        rules = (train.missing, train.missing_values)
        validation = RankingData(
            X, y, qid, name="validation data", missing=rules[0], missing_values=rules[1]
        )
    if validation.n_features != train.n_features:
        raise ValueError(
            f"the training data have {train.n_features} features but {validation!r} has another number"
        )
    _check_names(
        validation.given_names,
        train.given_names,
        f"the features of {validation.name}",
        "the training data",
    )
    if not arrays or isinstance(train.scaling, scaling.FittedScaling):
        validation = _scaled_alike(validation, train.scaling, train.missing)
    validation.require_moderate_values()
    return validation


def as_feature_table(X: RankingData | ArrayLike, ranker: "RankingEstimator") -> Matrix:
    """Check the argument of a `predict`, and return it as a table, completed and scaled like the training data.

    The table is C-contiguous, float64 or float32. A fitted scaling is applied to raw values; unscaled RankingData are
    scaled per query if the training data were, but an array has no queries, so it counts as scaled already. Raises a
    ValueError for columns that differ from those of the fit in number or name, for values that are infinite, too large,
    or missing without a rule that can be followed, and for data that are scaled in another way. Raises a TypeError for
    tables of objects that are not numbers.
    """
    names, of_training, missing = (
        getattr(ranker, "feature_names_in_", None),
        ranker.scaling_,
        ranker.missing_,
    )
    if isinstance(of_training, scaling.FittedScaling):
        of_training = replace(
            of_training, single=False
        )  # so that equal values score the same in either precision
    expected = None if names is None else list(names)
    if isinstance(X, RankingData):
        _check_names(X.given_names, names, "the columns of X", "the fit")
        _check_width(X.X, ranker)
        if ranker.missing_values_ and X.missing_values != ranker.missing_values_:
            raise ValueError(
                f"{X.name}: give missing_values={ranker.missing_values_}, as in the training data"
            )
        table = _scaled_alike(X, of_training, missing).X
    else:
        _check_names(inputs.column_names(X), names, "the columns of X", "the fit")
        table = inputs.as_table(X, expected)
        _check_width(table, ranker)
        inputs.refuse_infinite_values(table, expected)
        if of_training != scaling.PER_QUERY:
            table = inputs.without_values(table, ranker.missing_values_)
        if (
            missing is not None
            and not isinstance(missing, str)
            and np.isnan(table.min(initial=0.0))
        ):
            table = table.copy(order="K") if inputs.is_frozen(table) else table
            scaling.fill_missing(table, np.array([0, len(table)]), missing)
        remedy = (
            f"the training data had no missing value, so there is no rule; give a RankingData with {inputs.RULES}"
            if missing is None
            else f"the rule missing={missing!r} needs the whole query; give a RankingData with the rule and the queries"
        )
        inputs.refuse_missing_values(table, expected, remedy=remedy)
        if isinstance(of_training, scaling.FittedScaling):
            table = of_training.table(table)
            inputs.refuse_infinite_values(table, expected)
    inputs.refuse_large_values(table, expected)
    return table


def _check_width(table: Array, ranker: "RankingEstimator") -> None:
    n_features = ranker.n_features_in_
    if table.ndim != 2 or table.shape[1] != n_features:
        raise ValueError(
            f"X has {table.shape[-1]} features, but {type(ranker).__name__} is expecting {n_features} features as "
            f"input, those of the fit. Reshape your data to (n_documents, {n_features}); one document is "
            "X.reshape(1, -1)"
        )


def _scaled_alike(
    data: RankingData, of_training: scaling.Scaling, missing: scaling.MissingRule | None
) -> RankingData:
    """Return the data scaled like the training data; a ValueError if they are scaled in another way."""
    if missing is not None and data.missing not in (None, missing) and data.n_missing.any():
        raise ValueError(
            f"missing values of {data.name} follow the rule missing={data.missing!r}, those of the training data "
            f"missing={missing!r}; use the same rule"
        )
    if data.scaling == of_training:
        return data
    if data.scaling == scaling.UNSCALED:
        return of_training.apply(data)
    if data.scaling == scaling.PER_QUERY and of_training == scaling.UNSCALED:
        return data  # the training data may have been arrays of such data
    how = "by other values" if data.scaling.kind == of_training.kind else f"({of_training.kind})"
    raise ValueError(
        f"the features of {data.name} are scaled ({data.scaling.kind}), and those of the training data are "
        f"{'not' if of_training == scaling.UNSCALED else 'scaled ' + how}; fit to the scaled RankingData, or give raw "
        "values"
    )


def _refuse_labels(y: ArrayLike | None, qid: ArrayLike | None) -> None:
    """Raise a ValueError for labels or queries that are given in addition to a RankingData."""
    if y is not None or qid is not None:
        raise ValueError("y and qid must not be given with a RankingData, which has its own")


def _check_names(
    names: Sequence[str] | None,
    expected: Sequence[str] | NDArray[np.object_] | None,
    what: str,
    whose: str,
) -> None:
    if names is not None and expected is not None and tuple(names) != tuple(expected):
        raise ValueError(f"{what} must be those of {whose}, in their order: {', '.join(expected)}")


def inner_ranker(ranker: object) -> object | None:
    """Return the ranker that an estimator trains, if it has one."""
    given = (getattr(ranker, name, None) for name in ("ranker", "backend"))
    return next(
        (inner for inner in given if inner is not None), None
    )  # an ensemble has no length before its fit


def refuse_weights(train: RankingData, ranker: object) -> None:
    """Raise a ValueError for weights of queries or documents that a ranker, or the one inside it, does not use."""
    inner = ranker
    while (further := inner_ranker(inner)) is not None:
        inner = further
    if train.is_weighted and not getattr(inner, "_takes_weights", False):
        default, its = (
            (" with its default ranker", " as its ranker") if hasattr(inner, "ranker") else ("", "")
        )
        raise ValueError(
            f"{train.name}: {type(inner).__name__}{default} takes no weights of queries or documents. Use RankRLS or "
            f"LambdaMART{its}, or a RankingData without weights"
        )


# Largest ratio of two standard deviations that gives no warning.
LARGEST_RATIO = 1e4


def varying_in_queries(train: RankingData) -> Mask:
    """Return the features in which two documents of some query differ, shape (n_features,), remembered."""
    return _spread(train)[0]


def _spread(train: RankingData) -> tuple[Mask, Vector]:
    """Return for each feature whether it varies in some query, and its deviation from query means; remembered.

    O(n_documents · n_features).
    """

    def compute() -> tuple[Mask, Vector]:
        varies, squares = np.zeros(train.n_features, np.bool_), np.zeros(train.n_features)
        for begin, end in train.query_blocks(scaling.ROWS):
            offsets = train.offsets[begin : end + 1]
            X = scaling.centre_in_queries(train.X[offsets[0] : offsets[-1]], offsets - offsets[0])
            varies |= X.any(axis=0)
            squares += np.einsum("ij,ij->j", X, X)
        return varies, np.sqrt(squares / train.n_documents)

    return train.remember("spread in queries", compute)


class ScaleWarning(UserWarning):
    """The scales of the features differ so much that the ranker suffers; scale the features."""


def warn_of_scales(train: RankingData) -> None:
    """Name the features with the largest and the smallest scale if their ratio is more than 10,000.

    The scale of a feature is the standard deviation √(Σ_q Σ_{i ∈ q} (x_i − x̄_q)² / n) over all documents. Only features
    that vary in some query count. Scaled data give no warning. The warning points at the caller of `fit`.
    """
    varies, deviation = _spread(train)
    large, small = (
        np.where(varies, deviation, -1.0).argmax(),
        np.where(varies, deviation, np.inf).argmin(),
    )
    if (
        train.scaling != scaling.UNSCALED
        or not varies.any()
        or deviation[large] <= LARGEST_RATIO * deviation[small]
    ):
        return
    with np.errstate(over="ignore", divide="ignore"):
        ratio = deviation[large] / deviation[small]
    message = (
        f"{train.name}: the scales of the features differ by a factor of {ratio:.0e}: within queries, feature "
        f"{train.feature_names[large]!r} has a standard deviation of {deviation[large]:.2g}, and feature "
        f"{train.feature_names[small]!r} one of {deviation[small]:.2g}, so the latter hardly counts; scale the "
        "features by query_level_norm(data) or fit_scaling(train, 'standard'), in a problem file by normalize = "
        '"query" or "standard"'
    )
    warnings.warn(message, ScaleWarning, stacklevel=3)

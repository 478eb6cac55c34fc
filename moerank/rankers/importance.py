"""The importance and the similarity of features: named measures, arrays, or functions of the data."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from itertools import combinations_with_replacement
from typing import Literal, TypeAlias

import numpy as np
import scipy

from moerank.arrays import Array, Mask, Matrix, Vector
from moerank.checks import check_choice
from moerank.data import RankingData, remembered
from moerank.data.describe import feature_correlations, label_correlations
from moerank.kernels.threads import one_blas_thread
from moerank.metrics import Metric, as_metric

# An importance below this is a rounding error of 0.
ZERO_TOLERANCE = 1e-12

# Number of features that are measured together, because the table of their weights is square.
BLOCK_FEATURES = 256

# Random orders of the values of each feature.
N_PERMUTATIONS = 5

FeatureImportance: TypeAlias = (
    str | Metric | Array | Sequence[float] | Callable[[RankingData], Array]
)
FeatureSimilarity: TypeAlias = (
    Literal["pearson", "spearman", "kendall", "identity"]
    | Array
    | Sequence[Sequence[float]]
    | Callable[[RankingData], Array]
)


@remembered
def feature_importance(data: RankingData, importance: FeatureImportance = "pearson") -> Vector:
    """Return the importance of each feature, shape (n_features,), 0 or more, remembered with the data.

    "pearson", "spearman" and "kendall" are the absolute correlation of a feature with the relevance label over all
    documents, whatever their query, and 0 for a constant feature; Kendall's is τ-b. "ones" is 1. A metric or its name,
    such as "NDCG@10", is measured on the ranking by the feature alone, in the better direction. You can also give an
    array, or a function of the data that returns one. O(n_documents · n_features), times log n_documents for ranks and
    metrics.

    >>> data = RankingData([[0.0, 5.0], [1.0, 5.0], [3.0, 5.0]], y=[2, 1, 0], qid=0)
    >>> feature_importance(data, "kendall").tolist(), feature_importance(data, "ones").tolist()
    ([1.0, 0.0], [1.0, 1.0])
    """
    if isinstance(importance, str) and importance in IMPORTANCES:
        s = IMPORTANCES[importance](data)
    elif isinstance(importance, str | Metric):
        s = single_feature_values(data, as_metric(importance, name="importance")).max(axis=0)
    else:
        s = _checked_measure(data, importance, "importance", (data.n_features,))
    return np.where(s < ZERO_TOLERANCE, 0.0, s)


@remembered
def feature_similarity(
    data: RankingData, similarity: FeatureSimilarity = "pearson", *, convex: bool = True
) -> Matrix:
    """Return the similarity of each pair of features, shape (n_features, n_features), remembered with the data.

    "pearson", "spearman" and "kendall" are as in `feature_importance`. "identity" is 1 for a feature with itself and
    otherwise 0. You can also give a symmetric matrix of values ≥ 0, or a function of the data that returns one. With
    `convex` negative eigenvalues are set to 0, because absolute correlations need not be positive semidefinite.
    O(n_documents · n_features² + n_features³), times log n_documents for "kendall".
    """
    if isinstance(similarity, str):
        check_choice(SIMILARITIES, similarity=similarity)
        A = SIMILARITIES[similarity](data)
    else:
        shape = (data.n_features, data.n_features)
        A = _checked_measure(data, similarity, "similarity", shape)
    if not convex:
        return A
    with one_blas_thread():
        values, vectors = np.linalg.eigh(A)
        return np.ascontiguousarray((vectors * values.clip(0.0)) @ vectors.T)


def _checked_measure(
    data: RankingData, measure: object, name: str, shape: tuple[int, ...]
) -> Array:
    """Return the numbers of an array or a function of the data; a ValueError if their shape or values are wrong."""
    try:
        values = np.asarray(measure(data) if callable(measure) else measure, float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a name, numbers or a function, not {measure!r:.80}"
        ) from None
    if values.shape != shape:
        raise ValueError(
            f"{name} has the shape {values.shape}; give it {shape}, "
            f"because {data.name} has {data.n_features} features"
        )
    if not (np.isfinite(values).all() and (values >= 0).all() and np.array_equal(values, values.T)):
        rule = "finite, 0 or more" if values.ndim == 1 else "finite, 0 or more and symmetric"
        raise ValueError(f"{name} must be {rule}")
    return values


@remembered
def single_feature_values(data: RankingData, metric: Metric) -> Matrix:
    """Return the metric of ranking by each feature alone, larger or smaller values first, shape (2, n_features).

    Remembered with the data. The values are those of the weights ±1 on one feature.

    >>> from moerank.metrics import NDCG
    >>> data = RankingData([[0.0, 3.0], [1.0, 2.0], [2.0, 1.0]], y=[0, 0, 1], qid=0)
    >>> single_feature_values(data, NDCG(1)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    means = []
    blocks = np.arange(data.n_features) // BLOCK_FEATURES
    for block in range(blocks[-1] + 1):
        part = copy(data).with_features(blocks == block)
        weights = np.eye(part.n_features)
        values = metric.mean_of_linear(part, np.vstack([weights, -weights]))
        means.append(values.reshape(2, -1))
    return np.hstack(means)


def spearman(X: Matrix) -> Matrix:
    """Return Spearman's ρ of all pairs of columns, 0 where one is constant.

    O(n_documents · n_features² + n_features · n_documents log n_documents).
    """
    ranks = scipy.stats.rankdata(X, axis=0)
    ranks -= ranks.mean(axis=0)
    norm = np.sqrt(np.square(ranks).sum(axis=0))
    ranks /= np.where(norm > 0, norm, 1.0)
    with one_blas_thread():
        return ranks.T @ ranks


def kendall_tau(X: Matrix) -> Matrix:
    """Return Kendall's τ-b of all pairs of columns, 0 where one is constant.

    O(n_features² · n_documents log n_documents).
    """
    tau = np.empty((X.shape[1], X.shape[1]))
    for i, j in combinations_with_replacement(range(X.shape[1]), 2):
        tau[i, j] = tau[j, i] = np.nan_to_num(scipy.stats.kendalltau(X[:, i], X[:, j]).statistic)
    return tau


def _with_label(correlation: Callable[[Matrix], Matrix], data: RankingData) -> Vector:
    return np.array([abs(correlation(np.column_stack([x, data.y]))[0, 1]) for x in data.X64.T])


IMPORTANCES: dict[str, Callable[[RankingData], Vector]] = {
    "pearson": label_correlations,
    "spearman": partial(_with_label, spearman),
    "kendall": partial(_with_label, kendall_tau),
    "ones": lambda data: np.ones(data.n_features),
}
SIMILARITIES: dict[str, Callable[[RankingData], Matrix]] = {
    "pearson": lambda data: feature_correlations(data.X),
    "spearman": lambda data: np.abs(spearman(data.X64)),
    "kendall": lambda data: np.abs(kendall_tau(data.X64)),
    "identity": lambda data: np.eye(data.n_features),
}


def permutation_losses(
    predict: Callable[[Matrix], Vector],
    data: RankingData,
    metric: Metric,
    mask: Mask,
    n_permutations: int = N_PERMUTATIONS,
    random_state: int | None = None,
) -> Vector:
    """Return the mean loss (n_features,) of a metric where the values of a feature are permuted; 0 outside the mask.

    They are permuted among all documents. One prediction for each permutation of each feature in the mask.
    """
    rng = np.random.default_rng(random_state)
    X = np.array(data.X64)
    losses = np.zeros(data.n_features)
    value = metric.score(data, predict(X))
    for feature in np.flatnonzero(mask):
        scores = np.empty((len(X), n_permutations))
        for permutation in scores.T:
            X[:, feature] = rng.permutation(data.X64[:, feature])
            permutation[:] = predict(X)
        X[:, feature] = data.X64[:, feature]
        losses[feature] = value - np.mean(metric.score(data, scores))
    return losses

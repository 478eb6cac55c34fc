"""Data sets that are odd but may happen, by name: every solver ranks them, or says by name what it cannot do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moerank.data import RankingData


def odd_data(name: str) -> RankingData:
    """Return the data set of that name."""
    X, y, qid = ODD[name]()
    return RankingData(X, y, qid, name=name)


def _ordinary(n_queries=4, n_documents=10, n_features=4, seed=0):
    """Documents whose labels 0, 1, 2 follow the sum of the features, with noise."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), n_documents)
    X = rng.random((len(qid), n_features))
    scores = X.sum(axis=1) + 0.3 * rng.standard_normal(len(qid))
    y = np.digitize(scores, np.quantile(scores, [0.5, 0.8]))
    return X, y, qid


def _frozen_by_columns(X):
    """What is taken as it is, without a copy."""
    X = np.asfortranarray(X)
    X.setflags(write=False)
    return X


def _times(*factors):
    """Multiply the features by these factors, the last of them also all features after it."""
    X, y, qid = _ordinary()
    return X * np.append(factors, np.full(X.shape[1] - len(factors), factors[-1])), y, qid


def _column(number, make):
    X, y, qid = _ordinary()
    X[:, number] = make(X, y)
    return X, y, qid


def _identical_large_columns():
    X, y, qid = _column(1, lambda X, _: X[:, 0])
    return 1e8 * X, y, qid


def _integers():
    X, y, qid = _ordinary()
    return (10 * X).astype(int), y, qid


def _long_query():
    X, _, qid = _ordinary(1, 2000, 3)
    scores = X.sum(axis=1) + 0.3 * np.random.default_rng(1).standard_normal(2000)
    return X, np.digitize(scores, np.quantile(scores, [0.99, 0.995])), qid


def _labels(make):
    X, y, qid = _ordinary()
    return X, make(y), qid


def _constant_labels_in_most_queries():
    X, y, qid = _ordinary(n_queries=8)
    return X, np.where(qid < 6, 1, y), qid


def _one_document_per_query_but_one():
    X, y, _ = _ordinary(n_queries=1, n_documents=30)
    return X, y, np.maximum(np.arange(30), 9)


def _inseparable():
    X, _, qid = _ordinary()
    X = np.repeat(X[::2], 2, axis=0)
    return X, np.tile([0, 1], len(X) // 2), qid


def _separable():
    X, _, qid = _ordinary()
    return X, (X[:, 0] > 0.5).astype(int) + (X[:, 0] > 0.8), qid


def _downwards(n_features):
    X, y, qid = _ordinary(n_features=max(n_features, 2))
    X = X[:, :n_features]
    X[:, 0] = -y
    return X, y, qid


ODD: dict[str, Callable] = {
    "values of 1e155": lambda: _times(1.0, 1e155, 1.0),
    "values of 1e300": lambda: _times(1e300),
    "values of 1e25": lambda: _times(1.0, 1e25, 1.0),
    "values of 1e-300": lambda: _times(1.0, 1e-300, 1.0),
    "denormal numbers": lambda: _times(5e-320),
    "scales from 1e-8 to 1e8": lambda: _times(1e-8, 1.0, 1e4, 1e8),
    "one constant column": lambda: _column(1, lambda X, _: 0.7),
    "constant labels in most queries": _constant_labels_in_most_queries,
    "one query of 2,000 documents": _long_query,
    "one query of large numbers": lambda: (1e8 * _ordinary()[0], _ordinary()[1], 0),
    "one document per query but one": _one_document_per_query_but_one,
    "two identical columns": lambda: _column(1, lambda X, _: X[:, 0]),
    "two identical columns of 1e8": _identical_large_columns,
    "a column that is the negative label": lambda: _column(0, lambda _, y: -y),
    "one feature that points downwards": lambda: _downwards(1),
    "labels 31 and 62": lambda: _labels(lambda y: np.array([0, 31, 62])[y]),
    "labels up to 63": lambda: _labels(lambda y: np.array([0, 1, 63])[y]),
    "all features zero but one": lambda: _times(0.0, 0.0, 1.0, 0.0),
    "a single feature": lambda: _ordinary(n_features=1),
    "more features than documents": lambda: _ordinary(2, 5, 25),
    "duplicate documents with different labels": _inseparable,
    "integers as features": _integers,
    "by columns": lambda: (_frozen_by_columns(_ordinary()[0]), *_ordinary()[1:]),
    "single precision, by columns": lambda: (_frozen_by_columns(_ordinary()[0].astype(np.float32)), *_ordinary()[1:]),
    "single precision, far from zero": lambda: ((1e4 + _ordinary()[0]).astype(np.float32), *_ordinary()[1:]),
    "minus zero": lambda: _column(3, lambda X, _: np.where(X[:, 3] < 0.1, 1.0, -0.0) * np.where(X[:, 3] < 0.5, 1, -1)),
    "150 columns and 60 documents": lambda: _ordinary(6, 10, 150),
    "perfectly separable": _separable,
    "one query": lambda: (*_ordinary(1, 40)[:2], 0),
    "three documents": lambda: ([[0.1, 0.9], [0.5, 0.7], [0.9, 0.8]], [0, 1, 2], 0),
    "five grades": lambda: _labels(lambda y: np.arange(len(y)) % 5),
    "query ids of text": lambda: (*_ordinary()[:2], np.repeat(["b", "a", "d", "c"], 10)),
}

_TOO_LARGE = r"X\[\d+, \d\] is .* \(row \d+, feature \d\); .* values beyond 1e\+30: scale the feature"
_TOO_MANY_GRADES = r"\d+.* too large for the gain 2\^y − 1 \(at most 62\); use .*fewer levels of relevance"
_TOO_SMALL = "too small to square.*scale the features"

REFUSALS = {
    "values of 1e155": _TOO_LARGE,
    "values of 1e300": _TOO_LARGE,
    "labels up to 63": _TOO_MANY_GRADES,
    "one query of large numbers": "alpha=1 is too small next to the squares of features.* larger alpha, or scale",
    "denormal numbers": _TOO_SMALL,
    "duplicate documents with different labels": "no feature.*ensemble=False",
}
"""What a solver may say of a data set instead of ranking it; of all others it must make something."""

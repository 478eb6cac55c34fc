"""Data sets that are odd but may happen, by name: every solver ranks them, or says by name what it cannot do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moerank.data import RankingData


def odd_data(name: str) -> RankingData:
    """Return the data set of that name."""
    X, y, qid = ODD[name]()
    return RankingData(X, y, qid, name=name)


def _ordinary(n_queries=4, n_documents=10, n_features=4):
    """Documents whose labels 0, 1, 2 follow the sum of the features, with noise."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(n_queries), n_documents)
    X = rng.random((len(qid), n_features))
    scores = X.sum(axis=1) + 0.3 * rng.standard_normal(len(qid))
    y = np.digitize(scores, np.quantile(scores, [0.5, 0.8]))
    return X, y, qid


def _changed(X=lambda X, y: X, y=lambda X, y: y, qid=None, **sizes):
    """Ordinary documents with features and labels that are made from theirs, or with other query ids."""
    features, labels, queries = _ordinary(**sizes)
    return X(features, labels), y(features, labels), queries if qid is None else qid


def _times(*factors):
    """Multiply the features by these factors, the last of them also all features after it."""
    return _changed(lambda X, _: X * np.append(factors, np.full(X.shape[1] - len(factors), factors[-1])))


def _column(number, make):
    return _changed(lambda X, y: np.column_stack([*X.T[:number], make(X, y), *X.T[number + 1 :]]))


def _frozen_by_columns(X, _):
    """What is taken as it is, without a copy."""
    X = np.asfortranarray(X)
    X.setflags(write=False)
    return X


def _few_are_good(X, _):
    scores = X.sum(axis=1) + 0.3 * np.random.default_rng(1).standard_normal(len(X))
    return np.digitize(scores, np.quantile(scores, [0.99, 0.995]))


ODD: dict[str, Callable] = {
    "values of 1e155": lambda: _times(1.0, 1e155, 1.0),
    "values of 1e300": lambda: _times(1e300),
    "values of 1e25": lambda: _times(1.0, 1e25, 1.0),
    "values of 1e-300": lambda: _times(1.0, 1e-300, 1.0),
    "denormal numbers": lambda: _times(5e-320),
    "scales from 1e-8 to 1e8": lambda: _times(1e-8, 1.0, 1e4, 1e8),
    "one constant column": lambda: _column(1, lambda X, _: np.full(len(X), 0.7)),
    "constant labels in most queries": lambda: _changed(y=lambda X, y: np.where(np.arange(80) < 60, 1, y), n_queries=8),
    "one query of 2,000 documents": lambda: _changed(y=_few_are_good, n_queries=1, n_documents=2000, n_features=3),
    "one query of large numbers": lambda: _changed(lambda X, _: 1e8 * X, qid=0),
    "one document per query but one": lambda: _changed(qid=np.maximum(np.arange(30), 9), n_queries=1, n_documents=30),
    "two identical columns": lambda: _changed(lambda X, _: X[:, [0, 0, 2, 3]]),
    "two identical columns of 1e8": lambda: _changed(lambda X, _: 1e8 * X[:, [0, 0, 2, 3]]),
    "a column that is the negative label": lambda: _column(0, lambda _, y: -y),
    "one feature that points downwards": lambda: _changed(lambda _, y: -y[:, None], n_features=2),
    "labels 31 and 62": lambda: _changed(y=lambda _, y: np.array([0, 31, 62])[y]),
    "labels up to 63": lambda: _changed(y=lambda _, y: np.array([0, 1, 63])[y]),
    "all features zero but one": lambda: _times(0.0, 0.0, 1.0, 0.0),
    "a single feature": lambda: _ordinary(n_features=1),
    "more features than documents": lambda: _ordinary(2, 5, 25),
    "duplicate documents with different labels": lambda: _changed(
        lambda X, _: np.repeat(X[::2], 2, axis=0), lambda X, _: np.arange(len(X)) % 2
    ),
    "integers as features": lambda: _changed(lambda X, _: (10 * X).astype(int)),
    "by columns": lambda: _changed(_frozen_by_columns),
    "single precision, by columns": lambda: _changed(lambda X, y: _frozen_by_columns(X.astype(np.float32), y)),
    "single precision, far from zero": lambda: _changed(lambda X, _: (1e4 + X).astype(np.float32)),
    "minus zero": lambda: _column(3, lambda X, _: np.where(X[:, 3] < 0.1, 1.0, -0.0) * np.where(X[:, 3] < 0.5, 1, -1)),
    "70 columns and 30 documents": lambda: _ordinary(6, 5, 70),
    "perfectly separable": lambda: _changed(y=lambda X, _: np.digitize(X[:, 0], [0.5, 0.8], right=True)),
    "one query": lambda: (*_ordinary(1, 40)[:2], 0),
    "three documents": lambda: ([[0.1, 0.9], [0.5, 0.7], [0.9, 0.8]], [0, 1, 2], 0),
    "five grades": lambda: _changed(y=lambda X, _: np.arange(len(X)) % 5),
    "query ids of text": lambda: _changed(qid=np.repeat(["b", "a", "d", "c"], 10)),
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

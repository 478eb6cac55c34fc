"""Models to serve, documents that are hard to score in single precision, and how exact a served score has to be."""

from functools import cache
from warnings import catch_warnings

import numpy as np

from helpers.changes import replace
from moerank.data import UNSCALED, FittedScaling, RankingData, fit_scaling
from moerank.rankers import AdditiveRLS, LambdaMART, RankBoost, RankRLS, ScaleWarning
from moerank.rankers.model import Forest, Model

NAMES = ["BM25 of title", "price.net", "46", "größe", 'a "quote"', "two\nlines", "$x}}", "last"]
LABELS = ["BM25_of_title", "price_net", "f46", "gr__e", "a__quote_", "two_lines", "_x__", "last"]

ABSENT = 0.25

GUIDE = Model(
    names=("bm25", "price", "age"),
    columns=(0, 1, 2),
    weights=(0.5, -1.25, 2.0),
    scaling=FittedScaling("standard", (0.0, 0.0, 42.0), (1.0, 50.0, 6.0)),
)
"""A worked example: (3.2, 20, 45) scores 2.1, without a price 2.6, and without an age −12.9."""

LINEAR = {
    "guide": lambda: GUIDE,
    "unscaled": lambda: fitted(RankRLS(), "none"),
    "minmax": lambda: fitted(RankRLS(), "minmax"),
    "standard": lambda: fitted(RankRLS(), "standard", ABSENT),
    "one feature": lambda: linear([-0.1], "minmax", [5.0], [5.0]),
    "constant": lambda: linear([1.0, 0.0], "minmax", [0.0, 3.0], [2.0, 1.0]),
    "below 0": lambda: linear([1.0, 3.0], "minmax", [-2.0, 0.0], [4.0, 3.0]),
    "far from 0": lambda: linear([1.0], "minmax", [1e6], [0.07]),
    "tiny scale": lambda: linear([1.0], "minmax", [0.5], [1e-30]),
}

TREES = {
    "raw": lambda: fitted(LambdaMART(40), "none"),
    "missing": lambda: fitted(LambdaMART(20), "none", ABSENT),
    "scaled": lambda: fitted(LambdaMART(20, n_leaves=5), "minmax"),
    "standard": lambda: fitted(LambdaMART(20), "standard", ABSENT),
    "stumps": lambda: fitted(RankBoost(20), "none"),
    "additive": lambda: fitted(AdditiveRLS(), "none", ABSENT),
    "interactions": lambda: fitted(AdditiveRLS(interactions=3), "none", ABSENT),
    "one leaf": lambda: stumps([0.0], extra_leaf=0.25),
    "thresholds": lambda: stumps([1e300, -1e300, 1e-6, 0.1, -1e-3, -0.7, 40.0, 1e-3]),
}


MODELS = [*(("linear", name) for name in LINEAR), *(("trees", name) for name in TREES)]


@cache
def served(name, kind):
    """The model of that name in `LINEAR` or `TREES`, whichever `kind` is the name of."""
    return {"linear": LINEAR, "trees": TREES}[kind][name]()


def fitted(ranker, normalize, missing=None):
    """Train on eight features of odd names: two on large and small scales, one constant, one below 0, one of steps."""
    rng = np.random.default_rng(7)
    X = rng.random((200, len(NAMES))) * [1, 50, 1000, 1e-3, 1, 2, 1, 1] - [0, 0, 0, 0, 0, 1, 0.5, 0]
    hidden = X[:, 0] - X[:, 1] / 50 + 300 * X[:, 3] + X[:, 7] + rng.normal(scale=0.2, size=200)
    X[:, 4], X[:, 7] = 3.25, X[:, 7].round(1)
    if missing is not None:
        X[rng.random(X.shape) < 0.1] = np.nan
    y = np.digitize(hidden, np.quantile(hidden, [0.5, 0.8]))
    data = RankingData(X, y, np.repeat(np.arange(10), 20), feature_names=NAMES, missing=missing)
    with catch_warnings(action="ignore", category=ScaleWarning):  # as is meant
        return Model.of(ranker.fit(fit_scaling(data, normalize).apply(data)), NAMES)


def linear(weights, kind, offset, scale):
    columns = tuple(range(len(weights)))
    names = tuple(f"x{column}" for column in columns)
    scaling = FittedScaling(kind, tuple(offset), tuple(scale))
    return Model(names=names, columns=columns, weights=tuple(weights), scaling=scaling)


def stumps(thresholds, extra_leaf=None):
    """Trees of two leaves over one feature, no two leaves alike; before them a tree of one leaf, if it is given."""
    trees = [(0, threshold, -(2.0**split), 3 * 2.0**split) for split, threshold in enumerate(thresholds)]
    trees = trees if extra_leaf is None else [extra_leaf, *trees]
    return Model(names=("x0",), columns=(0,), trees=Forest.of(trees))


def documents(model):
    """Rows (n_documents, n_features) of the model's own features, NaN where a value is missing.

    Values as in training and beyond them, 0, and the thresholds with their neighbours, all of single precision.
    """
    rng = np.random.default_rng(1)
    k = len(model.columns)
    offset, scale = np.zeros(k), np.ones(k)
    if isinstance(model.scaling, FittedScaling):
        offset, scale = np.array(model.scaling.offset), np.array(model.scaling.scale)
    X = offset + rng.uniform(-0.5, 1.5, (80, k)) * scale
    X[60:70] = 0.0
    if model.trees is not None:
        position_of = {column: position for position, column in enumerate(model.columns)}
        ties = np.zeros((300, k))
        for row, split in enumerate(rng.integers(len(model.trees.columns), size=300)):
            ties[row] = X[row % 80]
            position = position_of[model.trees.columns[split]]
            value = np.float32(np.clip(model.trees.thresholds[split], -3e38, 3e38) * scale[position] + offset[position])
            ties[row, position] = np.nextafter(value, (value, np.float32(3e38), np.float32(-3e38))[row % 3])
        X = np.concatenate([X, ties])
    X[rng.random(X.shape) < 0.05] = np.nan
    return X.astype(np.float32).astype(np.float64)


def expected(model, X):
    """The scores that moerank gives these rows, where what is missing without a rule counts as 0."""
    table = np.zeros((len(X), model.columns[-1] + 1))
    table[:, list(model.columns)] = np.where(np.isnan(X), 0.0 if model.missing is None else model.missing, X)
    return model.scores(table)


def tolerance(model, X):
    """How far scores (n_documents,) may lie from these in single precision: a rounding of half a unit an operation."""
    unit = 2.0**-24
    if model.trees is not None:
        sizes = replace(model.trees, leaves=tuple(abs(leaf) for leaf in model.trees.leaves))
        raw = replace(model, trees=sizes)
        return (len(model.trees.roots) + 1) * unit * expected(raw, X)
    X = np.where(np.isnan(X), 0.0 if model.missing is None else model.missing, X)
    offset, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if model.scaling != UNSCALED:
        offset, scale = np.array(model.scaling.offset), np.array(model.scaling.scale)
    return (X.shape[1] + 4) * unit * (np.abs(model.weights) * (np.abs(X) + np.abs(offset)) / scale).sum(axis=1)


def scores(server, X):
    """Return the scores of rows by a server, to which missing values are not given."""
    rows = [dict(zip(server.names, row, strict=True)) for row in X.tolist()]
    return np.array([server.score({name: x for name, x in row.items() if not np.isnan(x)}) for row in rows], float)

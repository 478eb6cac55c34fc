"""Milliseconds to train and judge one individual of a search, in a population of 100, beside the best ordinary tool.

    python tests/benchmarks/fitness.py [--data DIR]

Prints a table of times per individual and ratios, all measured in this one run. Never fails a build.
"""

from __future__ import annotations

import sys
from pathlib import Path

import frame
import numpy as np
from rich.table import Table
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers.plain import ndcg

from moerank.data import load_fold
from moerank.kernels.scores import linear_scores
from moerank.metrics import NDCG
from moerank.mofsrank import FeatureSelection, InstanceSelection
from moerank.rankers import RankRLS, RankSVM
from moerank.training.pairs import SQUARED_HINGE, ListedPairs

POPULATION = 100
C = 0.5


def seconds(function, repeats):
    """Least time of a call, after one that compiles and fills caches."""
    function(-1)
    return frame.least_seconds(function, repeats)[0]


def linear_svc(D, tol):
    sign = np.where(np.arange(len(D)) % 2, 1.0, -1.0)  # LinearSVC wants two classes
    svc = LinearSVC(loss="squared_hinge", dual=False, C=C / len(D), fit_intercept=False, tol=tol, max_iter=10_000)
    return svc.fit(D * sign[:, None], sign).coef_[0]


def lbfgs(X, better, worse):
    """SciPy's L-BFGS on products with a sparse pair matrix: the best ordinary tool."""
    p = len(better)
    rows = np.repeat(np.arange(p), 2)
    columns = np.column_stack([better, worse]).ravel()
    A = csr_matrix((np.tile([1.0, -1.0], p), (rows, columns)), shape=(p, len(X)))

    def value_and_gradient(w):
        slack = np.maximum(0.0, 1.0 - A @ (X @ w))
        return 0.5 * w @ w + C / p * slack @ slack, w - 2.0 * C / p * (X.T @ (A.T @ slack))

    return minimize(value_and_gradient, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-10}).x


def instance_selection(train, table, name):
    rng = np.random.default_rng(0)
    masks = [rng.random((POPULATION, len(train.pairs))) < 0.5 for _ in range(4)]
    stage = InstanceSelection(train, RankSVM(C), NDCG(10))
    ours = seconds(lambda r: stage.measure(masks[r]), 3) / POPULATION
    W = RankSVM(C).fit_population(train, pair_mask=masks[0][:8])
    errors = []
    for mask, w in zip(masks[0], W, strict=False):
        problem = ListedPairs(train, mask)
        best = problem.expand(problem.model(SQUARED_HINGE, C).w, C, SQUARED_HINGE).value
        errors.append(problem.expand(w, C, SQUARED_HINGE).value / best - 1.0)
    pairs = train.pairs
    sparse = seconds(lambda r: lbfgs(train.X, pairs.better[masks[0][r]], pairs.worse[masks[0][r]]), 3)
    print(f"{name}: the objectives of RankSVM on half of the pairs are within {max(errors):.0e} of their minima")
    add(table, f"{name}: RankSVM on half of the pairs, and its NDCG@10", ours, "SciPy's L-BFGS, sparse pairs", sparse)


def feature_selection(train, table, name):
    rng = np.random.default_rng(1)
    subset = np.zeros(len(train.pairs), bool)
    subset[rng.choice(len(subset), 11_000, replace=False)] = True
    masks = []
    for _ in range(6):
        sizes = rng.integers(1, train.n_features + 1, POPULATION)
        masks.append(np.array([rng.permutation(train.n_features) < size for size in sizes]))
    D = train.X[train.pairs.better[subset]] - train.X[train.pairs.worse[subset]]
    stage = FeatureSelection(train, RankSVM(C), NDCG(10), subset[None])
    ours = seconds(lambda r: stage.measure(masks[r]), 5) / POPULATION
    svc = seconds(lambda r: [linear_svc(D[:, mask], 1e-3) for mask in masks[r][:10]], 3) / 10
    add(table, f"{name}: RankSVM on some features, and its NDCG@10", ours, "LinearSVC, tolerance 1e-3", svc)

    backend = RankRLS(1e-3)
    training = seconds(lambda r: backend.fit_population(train, pair_mask=subset, feature_mask=masks[r]), 5)
    goal = np.ones(len(D))
    ridge = Ridge(alpha=1e-3 * len(D), fit_intercept=False)
    ordinary = seconds(lambda r: [ridge.fit(D[:, mask], goal) for mask in masks[r][:10]], 3) / 10
    add(table, f"{name}: RankRLS on some features", training / POPULATION, "Ridge", ordinary)


def metric(train, table, name):
    rng = np.random.default_rng(2)
    keep = rng.random((POPULATION, len(train.pairs))) < 0.5
    W = RankSVM(C).fit_population(train, pair_mask=keep)
    scores = linear_scores(train.X, W)
    ours = seconds(lambda r: NDCG(10).batch(train, scores), 9)
    loop = seconds(lambda r: ndcg(train, scores[:, [r]], 10), 5)
    add(table, f"{name}: NDCG@10 of one ranker", ours / POPULATION, "a loop in NumPy", loop)


def add(table, what, ours, peer, theirs):
    table.add_row(what, f"{ours * 1e3:.4f}", peer, f"{theirs * 1e3:.2f}", f"{theirs / ours:,.0f}")


def main():
    data = frame.arguments(__doc__).data
    table = Table("one individual", "moerank, ms", "the other tool", "its ms", "ratio")
    for name in ("OHSUMED", "MQ2008"):
        train, _, _ = load_fold(data / name / "Fold1")
        for measure in (instance_selection, feature_selection, metric):
            measure(train, table, name)
    frame.show(table, 150)


if __name__ == "__main__":
    main()

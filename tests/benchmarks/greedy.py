"""Greedy RankRLS against the wrapper that retrains RankRLS without each query for each candidate, on one thread.

    python tests/benchmarks/greedy.py [--data DIR] [--steps 2]

Times are of the processor, so that other work on the machine hardly counts. The wrappers' first steps are timed, on
fold 1; their later ones cost more, because their systems grow and their candidates hardly get fewer, so the time of
ten features is estimated from below by the mean of those steps. The second table shows that the recursion is linear
in documents and in features. Never fails a build.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from moerank.data import RankingData, centre_in_queries, load_fold
from moerank.rankers import ConstantFeatureWarning
from moerank.rankers.base import varying_in_queries
from moerank.selectors.greedy_rank_rls import GreedyRankRLS

FEATURES = 10
ALPHA = 1.0


def wrapper(data: RankingData, n_steps: int) -> tuple[list[int], list[float]]:
    """Select features by retraining, with the Gram matrix of a query taken off that of all; also each step's time."""
    X, y = centre_in_queries(data.X, data.offsets), centre_in_queries(data.y, data.offsets)
    spans = [slice(begin, end) for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    order: list[int] = []
    times = []
    for _ in range(n_steps):
        begin = time.process_time()
        candidates = []
        for feature in np.flatnonzero(varying_in_queries(data)):
            if feature in order:
                continue
            Z = np.ascontiguousarray(X[:, [*order, feature]])
            gram, moment = Z.T @ Z + ALPHA * np.eye(Z.shape[1]), Z.T @ y
            error = 0.0
            for rows in spans:
                w = np.linalg.solve(gram - Z[rows].T @ Z[rows], moment - Z[rows].T @ y[rows])
                error += np.sum((y[rows] - Z[rows] @ w) ** 2)
            candidates.append((error, feature))
        order.append(min(candidates)[1])
        times.append(time.process_time() - begin)
    return order, times


def retraining(data: RankingData, n_steps: int) -> tuple[list[int], list[float]]:
    """Select features by training on the documents of all other queries, as the definition has it."""
    X, y = centre_in_queries(data.X, data.offsets), centre_in_queries(data.y, data.offsets)
    order: list[int] = []
    times = []
    for _ in range(n_steps):
        begin = time.process_time()
        candidates = []
        for feature in np.flatnonzero(varying_in_queries(data)):
            if feature in order:
                continue
            Z = np.ascontiguousarray(X[:, [*order, feature]])
            error = 0.0
            for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
                rest, z = np.concatenate([Z[:first], Z[last:]]), np.concatenate([y[:first], y[last:]])
                w = np.linalg.solve(rest.T @ rest + ALPHA * np.eye(Z.shape[1]), rest.T @ z)
                error += np.sum((y[first:last] - Z[first:last] @ w) ** 2)
            candidates.append((error, feature))
        order.append(min(candidates)[1])
        times.append(time.process_time() - begin)
    return order, times


def seconds(data: RankingData) -> tuple[float, GreedyRankRLS]:
    """Return the least time of seven selections, and the last of them."""
    solver = GreedyRankRLS(FEATURES, ALPHA)
    times = []
    for _ in range(7):
        begin = time.process_time()
        solver._learn(data)
        times.append(time.process_time() - begin)
    return min(times), solver


def against_wrappers(console: Console, folder: Path, n_steps: int) -> None:
    """Compare the first features and the times."""
    table = Table("data", "method", f"{FEATURES} features", "ratio", "same features", title="Greedy RankRLS")
    for name in ("OHSUMED", "MQ2008"):
        train, _, _ = load_fold(folder / name / "Fold1")
        ours, solver = seconds(train)
        table.add_row(name, "recursion", f"{1e3 * ours:.1f} ms", "", "")
        for method, steps in ((wrapper, n_steps), (retraining, n_steps)):
            order, times = method(train, steps)
            whole = FEATURES * float(np.mean(times))
            same = f"{sum(a == b for a, b in zip(order, solver.order_, strict=False))} of {steps}"
            table.add_row(name, method.__name__, f"> {whole:.1f} s", f"> {whole / ours:,.0f}", same)
    console.print(table)


def growth(console: Console, folder: Path) -> None:
    """Time doubled data; what outgrows the caches is a little dearer."""
    table = Table("documents", "features", "ms", "ns per document and feature", title="Doubled sizes of OHSUMED")
    train, _, _ = load_fold(folder / "OHSUMED" / "Fold1")
    X = train.X[:, varying_in_queries(train)]
    rng = np.random.default_rng(0)
    for documents, features in ((1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (2, 2)):
        wide = np.hstack([X] + [X * rng.random(X.shape) for _ in range(features - 1)])
        n = len(X)
        qid = np.concatenate([train.qid + copy * (train.qid.max() + 1) for copy in range(documents)])
        data = RankingData(np.tile(wide, (documents, 1)), np.tile(train.y, documents), qid)
        time_taken, _ = seconds(data)
        cells = documents * n * wide.shape[1]
        table.add_row(
            f"{documents * n:,}", f"{wide.shape[1]}", f"{1e3 * time_taken:.1f}", f"{1e9 * time_taken / cells:.2f}"
        )
    console.print(table)


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.environ.get("MOERANK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default, help="folder with MQ2008/ and OHSUMED/")
    parser.add_argument("--steps", type=int, default=2, help="steps of the wrappers that are timed")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConstantFeatureWarning)
    console = Console()
    against_wrappers(console, arguments.data, arguments.steps)
    growth(console, arguments.data)


if __name__ == "__main__":
    main()

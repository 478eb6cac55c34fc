"""Greedy RankRLS by its recursion, beside wrappers that retrain RankRLS without each query for each candidate.

    python tests/benchmarks/greedy.py [--data DIR]

"retraining" trains on the documents of the other queries, as the definition has it; "downdating" has the better idea
to take the query's Gram matrix off that of all. All select ten features of fold 1. Times are of the processor, so that
other work on the machine hardly counts. Never fails a build.
"""

from __future__ import annotations

from pathlib import Path

import frame
import numpy as np
from rich.table import Table

from moerank.data import RankingData, centre_in_queries, load_fold
from moerank.rankers import varying_in_queries
from moerank.selectors.greedy import GreedyRankRLS

FEATURES = 10
ALPHA = 1.0


def downdating(data: RankingData) -> list[int]:
    """Select features by retraining, with the Gram matrix of a query taken off that of all."""
    X, y = centre_in_queries(data.X, data.offsets), centre_in_queries(data.y, data.offsets)
    spans = [slice(begin, end) for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    order: list[int] = []
    for _ in range(FEATURES):
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
    return order


def retraining(data: RankingData) -> list[int]:
    """Select features by training on the documents of all other queries, as the definition has it."""
    X, y = centre_in_queries(data.X, data.offsets), centre_in_queries(data.y, data.offsets)
    order: list[int] = []
    for _ in range(FEATURES):
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
    return order


def seconds(data: RankingData) -> tuple[float, GreedyRankRLS]:
    """Return the least time of seven selections, and the last of them."""
    return frame.least_seconds(lambda _: GreedyRankRLS(FEATURES, ALPHA)._learn(data), 7)


def against_wrappers(folder: Path) -> None:
    """Compare the features and the times."""
    table = Table("data", "method", "seconds", "ratio", "same features")
    for name in ("OHSUMED", "MQ2008"):
        train, _, _ = load_fold(folder / name / "Fold1")
        ours, solver = seconds(train)
        table.add_row(name, "recursion", f"{ours:.4f}", "", "")
        for method in (downdating, retraining):
            theirs, order = frame.least_seconds(lambda _, method=method, train=train: method(train), 1)
            same = "yes" if order == solver.order_.tolist() else "no"
            table.add_row(name, method.__name__, f"{theirs:.2f}", f"{theirs / ours:,.0f}", same)
    frame.show(table)


def main() -> None:
    """Measure both data sets."""
    arguments = frame.arguments(__doc__)
    against_wrappers(arguments.data)


if __name__ == "__main__":
    main()

"""Greedy RankRLS by its recursion, beside wrappers that retrain RankRLS without each query for each candidate.

    python tests/benchmarks/greedy.py [--data DIR]

"retraining" trains on the documents of the other queries, as the definition has it; "downdating" has the better idea
to take the query's Gram matrix off that of all. All select ten features of fold 1. Times are of the processor, so that
other work on the machine hardly counts. Never fails a build.
"""

from __future__ import annotations

import frame
import numpy as np
from rich.table import Table

from moerank.data import RankingData, centre_in_queries, load_fold
from moerank.rankers import varying_in_queries
from moerank.selectors.greedy import GreedyRankRLS

FEATURES = 10
ALPHA = 1.0


def downdating(Z, y, rows, gram, moment):
    """Return the weights without a query, whose Gram matrix is taken off that of all."""
    return np.linalg.solve(gram - Z[rows].T @ Z[rows], moment - Z[rows].T @ y[rows])


def retraining(Z, y, rows, gram, moment):
    """Return the weights of training on the documents of all other queries, as the definition has it."""
    rest, z = (np.concatenate([values[: rows.start], values[rows.stop :]]) for values in (Z, y))
    return np.linalg.solve(rest.T @ rest + ALPHA * np.eye(Z.shape[1]), rest.T @ z)


def wrapper(data: RankingData, without) -> list[int]:
    """Select features by the squared errors of rankers that are trained without each query."""
    X, y = centre_in_queries(data.X, data.offsets), centre_in_queries(data.y, data.offsets)
    queries = [slice(begin, end) for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    order: list[int] = []
    for _ in range(FEATURES):
        candidates = []
        for feature in np.setdiff1d(np.flatnonzero(varying_in_queries(data)), order):
            Z = np.ascontiguousarray(X[:, [*order, feature]])
            system = Z.T @ Z + ALPHA * np.eye(Z.shape[1]), Z.T @ y
            errors = [np.sum((y[rows] - Z[rows] @ without(Z, y, rows, *system)) ** 2) for rows in queries]
            candidates.append((sum(errors), feature))
        order.append(min(candidates)[1])
    return order


def main() -> None:
    """Compare the features and the times on both data sets."""
    folder = frame.arguments(__doc__).data
    table = Table("data", "method", "seconds", "ratio", "same features")
    for name in ("OHSUMED", "MQ2008"):
        train, _, _ = load_fold(folder / name / "Fold1")
        ours, solver = frame.least_seconds(lambda _, train=train: GreedyRankRLS(FEATURES, ALPHA)._learn(train), 7)
        table.add_row(name, "recursion", f"{ours:.4f}", "", "")
        for method in (downdating, retraining):
            theirs, order = frame.least_seconds(lambda _, method=method, train=train: wrapper(train, method), 1)
            same = "yes" if order == solver.order_.tolist() else "no"
            table.add_row(name, method.__name__, f"{theirs:.2f}", f"{theirs / ours:,.0f}", same)
    frame.show(table)


if __name__ == "__main__":
    main()

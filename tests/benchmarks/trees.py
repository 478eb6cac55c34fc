"""Trees of few features: the path of cost-efficient boosting beside that of recursive elimination, on five folds.

    python tests/benchmarks/trees.py [--data DIR] [--trees 100]

Each method trains on the training data with the same number and form of trees, and offers a ranker of at most k
features for each k. No method is tuned and test data choose nothing. Both methods are deterministic, so there are no
seeds. Times are of the processor, for the fit and the path.
"""

from __future__ import annotations

from time import process_time

import frame
import numpy as np
from rich.table import Table

from moerank.data import load_fold
from moerank.metrics import NDCG
from moerank.solvers import make_solver

SIZES = (1, 2, 3, 5, 10, 20)
MIN_LEAF = 25


def main() -> None:
    arguments = frame.arguments(__doc__, trees=100)
    for name in ("MQ2008", "OHSUMED"):
        table = Table("solver", *(f"≤ {k}" for k in SIZES), "s a fold", title=f"{name}: features · test NDCG@10")
        for solver in ("cegb", "lambdamart-rfe"):
            rows, seconds = [], 0.0
            for number in range(1, 6):
                train, _, test = load_fold(arguments.data / name / f"Fold{number}")
                began = process_time()
                fitted = make_solver(solver, n_trees=arguments.trees, min_leaf=MIN_LEAF).fit(train)
                path = fitted.path(train)
                seconds += process_time() - began
                quality = NDCG(10, convention="letor").score(test, path.scores(test.X64))
                at = np.array(SIZES) - 1
                rows.append(np.stack([path.feature_mask.sum(axis=1)[at], quality[at]]))
            sizes, quality = np.mean(rows, axis=0)
            cells = [f"{size:.1f} · {value:.4f}" for size, value in zip(sizes, quality, strict=True)]
            table.add_row(solver, *cells, f"{seconds / 5:.1f}")
        frame.show(table, 140)


if __name__ == "__main__":
    main()

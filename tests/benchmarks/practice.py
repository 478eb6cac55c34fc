"""What a ranker of practice gains on the features of a linear front.

    python tests/benchmarks/practice.py [--problems mq2008 mslr web] [--seeds 3] [--data DIR]

Rows, all on fold 1: the front of a linear search (RankRLS, staircase search, neither instance selection nor ensemble),
and `refit`, LambdaMART trained on its members. Validation chooses parameters, number of trees and member, test queries
nothing. Minutes are of the processor, on one thread; the grid of LambdaMART is searched once for each problem, and
counted for each row that needs it. The last row is LambdaMART on all features. Differences are paired, by query, of the
mean over the seeds. Never fails a build.
"""

from __future__ import annotations

import frame
import numpy as np
from rich.table import Table

from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import LambdaMART, RankRLS
from moerank.statistics import mean_and_error
from moerank.studies.problem import load_problem

METRIC = NDCG(10)
LINEAR, REFIT, ALL = "linear front", "refit", "all features"


def minutes(work):
    """Return what the work returns, and the minutes that the processor took for it."""
    seconds, found = frame.least_seconds(lambda _: work(), 1)
    return found, seconds / 60


def measured(name, seeds, folder):
    """Return for each row a list over the seeds: values of the test queries, features and minutes."""
    train, vali, test = load_problem(name).load_fold(1, folder)
    backend = RankRLS().tune(train, vali)
    trees, tuning = minutes(lambda: LambdaMART().tune(train, vali))
    trees.set_params(n_trees=LambdaMART().n_trees)
    shared = dict(
        metric=METRIC, algorithm="staircase", instance_selection=False, ensemble=False, tune=False, final="validation"
    )
    ways = {LINEAR: None, REFIT: trees}
    rows = {way: [] for way in (*ways, ALL)}
    for seed in range(seeds):
        for way, refit in ways.items():
            solver = MOFSRank(backend, refit=refit, random_state=seed, **shared)
            _, took = minutes(lambda solver=solver: solver.fit(train, validation=vali))
            values = METRIC.per_query(test, solver.predict(test))
            rows[way].append((values, int(solver.support_.sum()), took + (way != LINEAR) * tuning))
            print(name, seed, way, f"{values.mean():.4f}", rows[way][-1][1:], flush=True)
    ranker, took = minutes(lambda: trees.stopped(train, vali).fit(train))
    rows[ALL].append((METRIC.per_query(test, ranker.predict(test)), train.n_features, took + tuning))
    return rows


def table_of(name, rows):
    """Return the table of a problem."""
    columns = ("", "NDCG@10", "features", "minutes", "NDCG@10 − refit")
    n_queries = len(rows[LINEAR][0][0])
    table = Table(*columns, title=f"{name}: {n_queries} test queries, mean of {len(rows[LINEAR])} seeds")
    means = {way: np.mean([values for values, _, _ in runs], axis=0) for way, runs in rows.items()}
    took = {way: np.mean([minutes for _, _, minutes in runs]) for way, runs in rows.items()}
    for way, runs in rows.items():
        difference, error = mean_and_error(means[way] - means[REFIT])
        beside = "" if way == REFIT else f"{difference:+.4f} ± {error:.4f}"
        features = np.mean([size for _, size, _ in runs])
        table.add_row(way, f"{means[way].mean():.4f}", f"{features:.1f}", f"{took[way]:.2f}", beside)
    return table


def main():
    arguments = frame.arguments(__doc__, problems=["mq2008", "mslr", "web"], seeds=3)
    for name in arguments.problems:
        rows = measured(name, arguments.seeds, arguments.data)
        frame.show(table_of(name, rows), 120)


if __name__ == "__main__":
    main()

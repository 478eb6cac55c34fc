"""Trees of few features at equal time: a front of trees, the refit of a linear front, and recursive elimination.

    python tests/benchmarks/trees.py [--problems mq2008 ohsumed mslr web] [--seeds 5] [--trees 100] [--data DIR]

All train LambdaMART of the same form. Elimination drops 5 % of the features at a time, is deterministic, and sets the
time: the other two get as many evaluations as take as long on the processor, by two trial runs on the first fold.
Validation NDCG@10 chooses the member of each; test queries choose nothing. Splits are those that a document passes in
the trees, microseconds the time to score it by LightGBM in one thread. The last column is the paired difference from
elimination over all test queries, of the mean over seeds. Never fails a build.
"""

from __future__ import annotations

from functools import partial

import frame
import numpy as np
from rich.table import Table

from moerank.mofsrank import MOFSRank
from moerank.mofsrank.objectives import values_of
from moerank.mofsrank.tree_front import TreeFront
from moerank.rankers import LambdaMART
from moerank.rankers.lambda_mart import leaf_sizes
from moerank.rankers.tree_population import NO_STEP, TreePopulation
from moerank.selectors import LambdaMARTRFE
from moerank.statistics import mean_and_error
from moerank.studies.problem import load_problem

DROP = 0.05
TRIALS = (10, 40)
ELIMINATION, REFIT, FRONT, CASCADES = "elimination", "refit of a linear front", "front of trees", "with cascades"


def trees_of(rankers, masks):
    """Return fitted LambdaMARTs as a population that counts splits and takes times."""
    steps = np.array([(i, ranker.n_trees) for i, ranker in enumerate(rankers)])
    return TreePopulation(tuple(rankers), masks, steps, np.tile(NO_STEP, (len(rankers), 1)), 20)


def eliminated(train, vali, metric, n_trees, evaluations, seed):
    form = dict(n_trees=n_trees, min_leaf=leaf_sizes(train.n_documents)[0])
    path = LambdaMARTRFE(drop=DROP, **form).fit(train, validation=vali).path(train)
    rows = np.flatnonzero(path.feature_mask.any(axis=1))
    chosen = path.rankers.take(rows)
    return trees_of(chosen.rankers, chosen.feature_mask)


def refitted(train, vali, metric, n_trees, evaluations, seed):
    ranker = LambdaMART(n_trees, min_leaf=leaf_sizes(train.n_documents)[0])
    solver = MOFSRank(
        metric=metric,
        algorithm="staircase",
        instance_selection=False,
        ensemble=False,
        tune=False,
        refit={"ranker": ranker, "evaluations": evaluations},
        random_state=seed,
    ).fit(train, validation=vali)
    some = [i for i, ranker in enumerate(solver.front_rankers_.rankers) if ranker is not None]
    return trees_of([solver.front_rankers_.rankers[i] for i in some], solver.front_rankers_.feature_mask[some])


def searched(train, vali, metric, n_trees, evaluations, seed):
    solver = TreeFront(n_trees=n_trees, evaluations=evaluations, metric=metric, random_state=seed)
    return solver.fit(train, validation=vali).front_rankers_


def evaluations_for(run, seconds):
    """Return the evaluations that take so many seconds, from the line through two trial runs."""
    run(1, 0)  # kernels are compiled, and libraries imported
    few, many = (frame.least_seconds(lambda _, n=n: run(n, 0), 1)[0] for n in TRIALS)
    each = (many - few) / (TRIALS[1] - TRIALS[0])
    return max(TRIALS[0], round(TRIALS[0] + (seconds - few) / each))


def row(members, allowed, vali, test, metric, seconds):
    """Return values of the test queries, and features, splits, microseconds and seconds, of the best on validation."""
    quality = np.where(allowed, values_of(vali, metric, members).mean(axis=0), -np.inf)
    best = members.take(np.array([int(quality.argmax())]))
    numbers = best.used.sum(), best.visits(test)[0], best.microseconds(test)[0], seconds
    return values_of(test, metric, best)[:, 0], numbers


def measured(name, arguments):
    """Return for each way the values (n_seeds, n_test_queries) and the numbers (n_runs, 4)."""
    problem = load_problem(name)
    metric = problem.metric.make()
    ways = {ELIMINATION: eliminated, REFIT: refitted, FRONT: searched}
    found = {way: ([], []) for way in (*ways, CASCADES)}
    evaluations = {}
    for fold in range(1, 6 if name in ("mq2008", "ohsumed") else 2):
        train, vali, test = problem.load_fold(fold, arguments.data)
        values = {way: [] for way in found}
        for way, work in ways.items():
            for seed in range(1 if way == ELIMINATION else arguments.seeds):
                n = evaluations.get(way, 0)
                run = partial(work, train, vali, metric, arguments.trees, n, seed)
                seconds, members = frame.least_seconds(lambda _, run=run: run(), 1)
                if fold == 1 and way == ELIMINATION:
                    for other in (REFIT, FRONT):
                        evaluations[other] = evaluations_for(
                            partial(ways[other], train, vali, metric, arguments.trees), seconds
                        )
                for shown, allowed in ((way, ~members.is_cascade), (CASCADES, True)):
                    if shown == way or way == FRONT:
                        query_values, numbers = row(members, allowed, vali, test, metric, seconds)
                        values[shown].append(query_values)
                        found[shown][1].append(numbers)
                print(name, fold, way, seed, n, np.round(found[way][1][-1], 1), flush=True)
        for way, per_seed in values.items():
            found[way][0].append(np.mean(per_seed, axis=0))
    return {
        way: (np.concatenate(values), np.mean(numbers, axis=0)) for way, (values, numbers) in found.items()
    }, evaluations


def main() -> None:
    arguments = frame.arguments(__doc__, problems=["mq2008", "ohsumed", "mslr", "web"], seeds=5, trees=100)
    for name in arguments.problems:
        rows, evaluations = measured(name, arguments)
        columns = ("", "evaluations", "NDCG@10", "features", "splits", "µs", "s a run", "difference")
        table = Table(*columns, title=f"{name}: {len(rows[FRONT][0])} test queries, {arguments.seeds} seeds")
        for way, (values, (features, splits, microseconds, seconds)) in rows.items():
            difference, error = mean_and_error(values - rows[ELIMINATION][0])
            cells = f"{values.mean():.4f}", f"{features:.1f}", f"{splits:.0f}", f"{microseconds:.2f}", f"{seconds:.1f}"
            beside = "" if way == ELIMINATION else f"{difference:+.4f} ± {error:.4f}"
            table.add_row(way, str(evaluations.get(FRONT if way == CASCADES else way, "")), *cells, beside)
        frame.show(table, 130)


if __name__ == "__main__":
    main()

"""Five-fold test results of every solver with published ones, beside those and with the difference.

    python tests/benchmarks/published.py [--data DIR] [--problems mq2008 ohsumed] [--solvers a b …] [--workers 2]

Parameters are chosen by validation MAP over each solver's default grid; test data choose nothing. The published values
are those of the problem files. Seconds are those of the last training and of choosing the parameters, per fold.
"""

from concurrent.futures import ProcessPoolExecutor
from time import perf_counter

import frame
import numpy as np
from rich.table import Table

from moerank.metrics import MAP, NDCG
from moerank.solvers import make_solver, solvers
from moerank.studies.problem import load_problem

METRICS = (NDCG(10, convention="letor"), MAP())
BAND = 0.008


def measured(problem, solver, fold, data):
    """Test values of both metrics, number of features, seconds of training and of tuning."""
    train, vali, test = load_problem(problem).load_fold(fold, data)
    estimator = make_solver(solver, **({"random_state": 0} if "seed" in solvers()[solver].needs else {}))
    begin = perf_counter()
    if callable(getattr(estimator, "tune", None)):
        estimator = estimator.tune(train, vali)
    tuned = perf_counter()
    estimator.fit(train.X, train.y, qid=train.qid, validation=vali)
    trained = perf_counter()
    scores = estimator.predict(test.X)
    values = [metric.score(test, scores) for metric in METRICS]
    return [*values, estimator.support_.sum(), trained - tuned, tuned - begin]


def main():
    arguments = frame.arguments(__doc__, problems=["mq2008", "ohsumed"], solvers=[*solvers()], workers=1, folds=False)
    with ProcessPoolExecutor(arguments.workers) as pool:
        for problem in arguments.problems:
            published = [entry for entry in load_problem(problem).published if entry.solver in arguments.solvers]
            cells = [
                (entry, [pool.submit(measured, problem, entry.solver, fold, arguments.data) for fold in range(1, 6)])
                for entry in published
            ]
            frame.show(table(problem, cells, arguments.folds), 130)


def table(problem, cells, folds):
    columns = ["solver", "N@10", "published", "difference", "MAP", "published", "difference", "features", "published"]
    result = Table(*columns, "fit", "tune", title=f"{problem}: mean of the five test folds")
    for entry, futures in cells:
        values = np.array([future.result() for future in futures])
        row = [entry.solver]
        for mean, metric in zip(values.mean(axis=0), METRICS, strict=False):
            row += [f"{mean:.4f}", *beside(mean, entry.scores.get(metric.name))]
        row += [f"{values[:, 2].mean():.1f}", "" if entry.features is None else f"{entry.features:.1f}"]
        result.add_row(*row, *(f"{seconds:.2f} s" for seconds in values[:, 3:].mean(axis=0)))
        for fold in range(5) if folds and entry.folds else ():
            row = [f"  fold {fold + 1}"]
            for value, metric in zip(values[fold], METRICS, strict=False):
                row += [f"{value:.4f}", *beside(value, entry.folds[metric.name][fold])]
            result.add_row(*row, f"{values[fold, 2]:.0f}")
    return result


def beside(value, published):
    """The published value and the difference to it, marked where it is outside the band."""
    if published is None:
        return "", ""
    return f"{published:.4f}", f"{value - published:+.4f}" + ("" if abs(value - published) <= BAND else " !")


if __name__ == "__main__":
    main()

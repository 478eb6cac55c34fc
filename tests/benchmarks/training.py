"""Seconds of one fit of every linear solver with its default parameters, the fastest on OHSUMED first.

The evolutionary searches and FS-BFS, which evaluates thousands of subsets, are left out unless they are named.

    python tests/benchmarks/training.py [--data DIR] [--repeats 3] [--solvers a b …]

Parameters are the defaults, and times are of the processor. The least of the repeats is shown; each repeat begins with
new data, so that pairs, Gram matrices and similarities are computed again.
"""

from time import process_time

import frame
from rich.table import Table

from moerank.data import load_fold
from moerank.solvers import make_solver, solvers


def seconds(solver, train, vali):
    """Time of one fit, from arrays to weights."""
    estimator = make_solver(solver, **({"random_state": 0} if "seed" in solvers()[solver].needs else {}))
    begin = process_time()
    estimator.fit(train.X, train.y, qid=train.qid, validation=vali)
    return process_time() - begin


def main():
    linear = [row.name for row in solvers().values() if row.linear and row.family != "evolutionary"]
    linear.remove("fs-bfs")
    arguments = frame.arguments(__doc__, repeats=3, solvers=linear)
    folds = [load_fold(arguments.data / name / "Fold1") for name in ("OHSUMED", "MQ2008")]
    table = Table("solver", "OHSUMED", "MQ2008")
    found = {}
    for solver in arguments.solvers:
        seconds(solver, *folds[1][:2])  # compiles
        found[solver] = [min(seconds(solver, *fold[:2]) for _ in range(arguments.repeats)) for fold in folds]
    for solver, least in sorted(found.items(), key=lambda entry: entry[1]):
        table.add_row(solver, *(f"{time:.3f}" for time in least))
    frame.show(table)


if __name__ == "__main__":
    main()

"""Training time of every linear solver, on the first folds of OHSUMED and MQ2008, in one thread.

The evolutionary searches and FS-BFS, which evaluates thousands of subsets, are left out unless they are named.

    python tests/benchmarks/training.py [--data DIR] [--repeats 3] [--solvers a b …]

Parameters are the defaults. The least of the repeats is shown; each repeat begins with new data, so that pairs, Gram
matrices and similarities are computed again.
"""

import argparse
import os
from pathlib import Path
from time import perf_counter

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import warnings

from rich.console import Console
from rich.table import Table

from moerank.data import load_fold
from moerank.rankers import ConstantFeatureWarning
from moerank.solvers import make_solver, solvers


def seconds(solver, train, vali):
    """Time of one fit, from arrays to weights."""
    estimator = make_solver(solver, **({"random_state": 0} if "seed" in solvers()[solver].needs else {}))
    begin = perf_counter()
    estimator.fit(train.X, train.y, qid=train.qid, validation=vali)
    return perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("MOERANK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
    linear = [row.name for row in solvers().values() if row.linear and row.family != "evolutionary"]
    linear.remove("fs-bfs")
    parser.add_argument("--data", type=Path, default=default, help="folder with MQ2008/ and OHSUMED/")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--solvers", nargs="+", default=linear)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConstantFeatureWarning)
    folds = [load_fold(arguments.data / name / "Fold1") for name in ("OHSUMED", "MQ2008")]
    table = Table("solver", "OHSUMED", "MQ2008", title="Seconds of one fit, fold 1")
    for solver in arguments.solvers:
        seconds(solver, *folds[1][:2])  # compiles
        least = [min(seconds(solver, *fold[:2]) for _ in range(arguments.repeats)) for fold in folds]
        table.add_row(solver, *(f"{time:.3f}" for time in least))
    Console().print(table)


if __name__ == "__main__":
    main()

"""What odd sizes cost: time of the processor and peak memory, at a size and at a quarter of it.

    python tests/benchmarks/scale.py [--rows "5,000 features" "100,000 queries"]

An exponent of 1 means that four times the size takes four times as long. Each row runs twice in processes of its own;
peaks are above what the process and its data had before. Never fails a build.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from math import log
from time import process_time

import frame
import numpy as np
from pymoo.optimize import minimize
from rich.table import Table

import moerank as mr
from moerank.evolution import make_algorithm


def table(n_queries, n_documents, n_features, decimals=6):
    rng = np.random.default_rng(0)
    X = rng.random((n_queries * n_documents, n_features)).round(decimals)
    y = np.digitize(X[:, :5].sum(axis=1) + rng.normal(size=len(X)) / 3, [2.5, 3.0])
    return mr.RankingData(X, y, np.repeat(np.arange(n_queries), n_documents))


def search(problem, generations=1):
    minimize(problem, make_algorithm("nsga2", 100, problem.operators()), ("n_gen", generations), seed=1)


# Name, largest size, data of a size, what is timed.
ROWS = {
    "5,000 features": (5_000, lambda n: table(100, 20, n), lambda data: search(mr.FeatureSelection(data))),
    "300 features × 100 thresholds": (
        300,
        lambda n: table(100, 20, n),
        lambda data: search(mr.FeatureSelection(data, backend=mr.AdditiveRLS(n_bins=101))),
    ),
    "500,000 bits": (500_000, lambda n: table(n // 330, 40, 20), lambda data: search(mr.InstanceSelection(data))),
    "100,000 queries": (100_000, lambda n: table(n, 5, 20), lambda data: search(mr.FeatureSelection(data))),
}


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(row, size):
    """Print the seconds and the additional GiB of one row at one size, after everything has been compiled."""
    _, data_of, work = ROWS[row]
    work(table(30, 20, 20))
    data = data_of(size)
    before, began = peak(), process_time()
    work(data)
    print(process_time() - began, peak() - before)


def main():
    arguments = frame.arguments(__doc__, rows=list(ROWS), one="", size=0)
    if arguments.one:
        measure(arguments.one, arguments.size)
        return
    columns = Table("size", "first generation, s", "exponent", "peak, GiB")
    for row in arguments.rows:
        results = []
        for size in (ROWS[row][0] // 4, ROWS[row][0]):
            command = [sys.executable, __file__, "--one", row, "--size", str(size)]
            results.append([float(word) for word in subprocess.check_output(command, text=True).split()])
        (quarter, _), (seconds, memory) = results
        columns.add_row(row, f"{seconds:.1f}", f"{log(seconds / quarter, 4):.2f}", f"{memory:.2f}")
    frame.show(columns)


if __name__ == "__main__":
    main()

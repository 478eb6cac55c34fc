"""How much the search adds to the fitness, and what a whole run takes.

    python tests/benchmarks/search.py [--data DIR] [--workers 2]

Prints one generation's time outside fitness at 370,000 bits, with and without a journal, what it takes to go on from
a journal of 100 generations, then time and peak memory of whole runs at 50/100/100
generations of 100 on fold 1. Never fails a build.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import Problem

from moerank.data import load_fold
from moerank.evolution import DensitySampling, DigestDuplicates, Journal, KeepAsIs, SparseBitFlip, UniformCrossover
from moerank.evolution import search as run_search
from moerank.mofsrank import MOFSRank
from moerank.rankers import RankRLS, RankSVM

N_BITS = 370_000
GENERATIONS = 30


class Trivial(Problem):
    """Objectives that cost next to nothing, with the time spent on them."""

    def __init__(self):
        super().__init__(n_var=N_BITS, n_obj=2, vtype=bool)
        self.seconds = 0.0

    def _evaluate(self, X, out, *args, **kwargs):
        begin = time.perf_counter()
        out["F"] = np.column_stack([X[:, :1000].sum(axis=1), 1000 - X[:, 500:1500].sum(axis=1)])
        self.seconds += time.perf_counter() - begin

    def __deepcopy__(self, memo):
        return self


def search_trivial(journal, generations, progress=None):
    problem = Trivial()
    operators = dict(
        sampling=DensitySampling(), crossover=UniformCrossover(), mutation=SparseBitFlip(), repair=KeepAsIs(),
        eliminate_duplicates=DigestDuplicates(),
    )  # fmt: skip
    tell = None if progress is None else lambda *state: progress(problem.seconds)
    begin = time.perf_counter()
    run_search(problem, NSGA2(100, **operators), generations, seed=1, journal=journal, progress=tell)
    return time.perf_counter() - begin


def overhead(journal):
    stamps = []
    search_trivial(journal, GENERATIONS, lambda fitness: stamps.append((time.perf_counter(), fitness)))
    wall, fitness = np.diff(np.array(stamps), axis=0).T
    print(
        f"a generation outside fitness, {N_BITS:,} bits, 100 individuals, "
        f"{'no' if journal is None else 'with'} journal: median {np.median(wall - fitness) * 1e3:.0f} ms, "
        f"mean {np.mean(wall - fitness) * 1e3:.0f} ms"
    )


def replay(journal, generations=100):
    first, again = search_trivial(journal, generations), search_trivial(journal, generations)
    print(f"{generations} generations: {first:.1f} s with a journal, {again:.1f} s from it")


def whole_run(data, name, backend, workers):
    train, vali, _ = load_fold(data / name / "Fold1")
    begin = time.perf_counter()
    solver = MOFSRank(backend, random_state=0, workers=workers).fit(train.X, train.y, qid=train.qid, validation=vali)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    stages = ", ".join(f"{stage} {history['seconds'].iloc[-1]:.1f}" for stage, history in solver.history_.items())
    print(f"{name} {type(backend).__name__}: {seconds:.1f} s ({stages}), peak memory {peak:.2f} GiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("MOERANK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default, help="folder with MQ2008/ and OHSUMED/")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--run", nargs=2, metavar=("DATA", "BACKEND"), help="one whole run, in this process")
    arguments = parser.parse_args()
    if arguments.run:
        name, backend = arguments.run
        whole_run(arguments.data, name, {"RankSVM": RankSVM, "RankRLS": RankRLS}[backend](), arguments.workers)
        return
    overhead(None)
    with tempfile.TemporaryDirectory() as folder:
        overhead(Journal(Path(folder) / "first", {}))
        replay(Journal(Path(folder) / "second", {}))
    for name in ("OHSUMED", "MQ2008"):
        for backend in ("RankSVM", "RankRLS"):  # each in a process of its own, for its peak memory
            command = [sys.executable, __file__, "--data", str(arguments.data), "--workers", str(arguments.workers)]
            subprocess.run([*command, "--run", name, backend], check=True)


if __name__ == "__main__":
    main()

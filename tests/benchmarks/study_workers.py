"""How much faster two processes run a study than one, with one thread each, and whether the results are the same.

    python tests/benchmarks/study_workers.py [PROBLEM …] [--solvers mofsrank,mofsrank-no-ensemble] [--seeds 2]

Both times include starting Python and the processes. First comes the most that the machine allows: two processes
that each run the same cell at the same time, against one alone.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kill_study import contents

CELL = (
    "import sys, time; from moerank.studies.problem import load_problem; "
    "from moerank.studies.run_fold import run_fold; problem = load_problem(sys.argv[1]); "
    "run = lambda: run_fold(problem, 1, solver=sys.argv[2], baselines=False); run(); "
    "begin = time.perf_counter(); run(); print(time.perf_counter() - begin)"
)


def run_study(out, workers, problems, solvers, seeds):
    """Seconds of a whole command."""
    command = ["moerank", "study", *problems, "--solvers", solvers, "--seeds", str(seeds), "--workers", str(workers)]
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", *command, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def together(n_processes, problem, solver):
    """Seconds of one cell in each of several processes that run at the same time."""
    command = [sys.executable, "-c", CELL, problem, solver]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(n_processes)]
    return max(float(process.communicate()[0]) for process in processes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=["digits"])
    parser.add_argument("--solvers", default="mofsrank,mofsrank-no-ensemble")
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    solver = arguments.solvers.split(",")[0]
    alone, both = (together(n, arguments.problems[0], solver) for n in (1, 2))
    print(f"the machine allows {2 * alone / both:.2f} times", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folders = {workers: Path(name) / str(workers) for workers in (1, 2)}
        given = arguments.problems, arguments.solvers, arguments.seeds
        seconds = {workers: run_study(folder, workers, *given) for workers, folder in folders.items()}
        files = [contents(folder) for folder in folders.values()]
        n_cells = len(list((folders[1] / "cells").iterdir()))
    print(f"{n_cells} cells: {seconds[1]:.1f} s with one process, {seconds[2]:.1f} s with two")
    print(f"two processes are {seconds[1] / seconds[2]:.2f} times as fast; results equal: {files[0] == files[1]}")


if __name__ == "__main__":
    main()

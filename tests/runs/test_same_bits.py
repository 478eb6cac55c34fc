"""A seed gives the same bits with any number of workers, and whatever the libraries are told of threads."""

import json
import os
import subprocess
import sys
import warnings

from moerank.runs.problem import load_problem
from moerank.runs.run_fold import run_fold

SOLVERS = ("mofsrank", "mofsrank-mffs", "rankrls", "ranksvm-primal", "crr", "lambdamart[n_trees=10]")


SIZES = {"data.n_queries": 40, "data.n_documents": 20, "data.n_noise": 150}
"""Enough documents and features that threads share products where they may."""


def results(problem, workers):
    """What runs of the solvers store, but for the times."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for solver in SOLVERS:
            stored = json.loads(
                run_fold(load_problem(problem, SIZES), 1, solver, 0, workers=workers, baselines=False).to_json()
            )
            del stored["times"]
            found.append(stored)
    return found


def test_the_same_bits_for_any_number_of_workers_and_threads(tiny_problem_file):
    here = results(tiny_problem_file, workers=1)  # first, lest both processes compile the kernels
    environment = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    environment |= {"OMP_NUM_THREADS": "4", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    script = f"import runpy; runpy.run_path({__file__!r}, run_name='asked')['tell']({str(tiny_problem_file)!r})"
    told = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(told.stdout) == here


def tell(problem):
    """Print the results for three workers, in a process that is told of four threads."""
    print(json.dumps(results(problem, workers=3)))

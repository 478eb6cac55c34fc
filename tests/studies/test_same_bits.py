"""A seed gives the same bits with any number of workers, and whatever the libraries are told of threads."""

import os
import subprocess
import sys

import pytest

SOLVERS = (
    "mofsrank",
    "mofsrank-moead",
    "mofsrank-mffs",
    "rankrls",
    "ranksvm-primal",
    "crr",
    "lambdamart[n_trees=10]",
    "lambdamart-rfe[n_trees=3,n_features_to_select=5]",
)
CODE = """
import json, sys, warnings
from moerank.studies.problem import load_problem
from moerank.studies.run_fold import run_fold

warnings.simplefilter("ignore")
problem = load_problem(sys.argv[1])
for solver in sys.argv[3:]:
    result = json.loads(run_fold(problem, 1, solver, 0, workers=int(sys.argv[2]), baselines=False).to_json())
    del result["times"]
    print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def problem(tiny_problem_file, tmp_path_factory):
    """The tiny problem with enough documents and features that threads share products where they may."""
    path = tmp_path_factory.mktemp("bits") / "problem.toml"
    text = tiny_problem_file.read_text().replace("n_queries = 15\nn_documents = 12\nn_noise = 5", SIZES)
    assert SIZES in text
    path.write_text(text)
    return path


SIZES = "n_queries = 40\nn_documents = 20\nn_noise = 150"


def results(problem, threads, workers):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    command = [sys.executable, "-c", CODE, str(problem), str(workers), *SOLVERS]
    environment["OMP_NUM_THREADS"] = str(threads)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_same_bits_for_any_number_of_workers_and_threads(problem):
    expected = results(problem, 1, 1)
    assert len(expected) == len(SOLVERS)
    assert results(problem, 4, 3) == expected

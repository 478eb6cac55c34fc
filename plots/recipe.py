"""What the recipes of a study share: the folder on the command line, its problems and its results."""

from __future__ import annotations

import argparse
from pathlib import Path

import moerank as mr
from moerank.runs.problem import Problem
from moerank.studies.results import Results


def opened(description: str) -> tuple[list[Problem], Results, Path]:
    """Return the problems with results of the study on the command line, the results, and the folder of the figures."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("study", type=Path, help="folder of a study")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent, help="folder of the figures"
    )
    arguments = parser.parse_args()
    study = mr.Study.load(arguments.study)
    results = study.results()
    return (
        [problem for problem in study.problems if problem.name in results.problems],
        results,
        arguments.out,
    )


def searches_of(results: Results, problem: Problem) -> list[str]:
    """Return the searches with linear rankers: with any search, a ranker that can learn more fits training better."""
    runs = results.of(problem.name)
    return list(dict.fromkeys(run.solver for run in runs if run.convergence and run.best.weights))

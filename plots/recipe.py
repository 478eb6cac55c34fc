"""What the recipes of a study share: the folder on the command line, its problems and its results."""

from __future__ import annotations

import argparse
from pathlib import Path

import moerank as mr
from moerank.analysis.comparison import Results
from moerank.runs.problem import Problem


def opened(description: str) -> tuple[list[Problem], Results, Path]:
    """Return the problems of the study that the command line names, its results, and the folder of the figures."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("study", type=Path, help="folder of a study")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the figures")
    arguments = parser.parse_args()
    study = mr.Study.load(arguments.study)
    return study.problems, study.results(), arguments.out

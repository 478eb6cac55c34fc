"""Attainment surfaces: the front that half of the seeds reach, for each search of a study.

    python plots/attainment.py STUDY [--out FOLDER]

Draws `attainment-PROBLEM.png` for each problem of the study: the median surface of the training objectives
on one fold, and a band between the quartiles. Rankers that draw have no front, so only the searches are chosen.
"""

import argparse
from pathlib import Path

import moerank as mr
from moerank.figures import attainment_figure, save_figure
from moerank.solvers import solvers

FAMILY = "evolutionary"
FOLD = 1


def main() -> None:
    """Draw every problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, help="folder of a study")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the figures")
    arguments = parser.parse_args()
    study = mr.Study.load(arguments.study)
    results = study.results()
    for problem in study.problems:
        searches = [solver.label for solver in study.solvers if solvers()[solver.name].family == FAMILY]
        there = {cell.solver.label for cell in results if cell.problem.name == problem.name}
        figure = attainment_figure(results, problem, fold=FOLD, solvers=[name for name in searches if name in there])
        save_figure(figure, arguments.out / f"attainment-{problem.name}.png")


if __name__ == "__main__":
    main()

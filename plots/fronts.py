"""Fronts of a few solvers, the same members on training, validation and test queries.

    python plots/fronts.py STUDY [--out FOLDER]

Draws `fronts-PROBLEM.png` for each problem of the study. One solver of each kind is enough to see how
much of a training front is left on queries that the solver has not seen; without a choice each family has a row.
"""

import argparse
from pathlib import Path

import moerank as mr
from moerank.figures import fronts_figure, save_figure

SOLVERS = ("mofsrank", "greedy-rankrls", "gas-e", "fsmrank", "fenchelrank")
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
        there = {cell.solver.label for cell in results if (cell.problem.name, cell.fold) == (problem.name, FOLD)}
        figure = fronts_figure(results, problem, fold=FOLD, solvers=[name for name in SOLVERS if name in there])
        save_figure(figure, arguments.out / f"fronts-{problem.name}.png")


if __name__ == "__main__":
    main()

"""Hypervolume over evaluations: how fast each search gets how far, stage by stage.

    python plots/hypervolume.py STUDY [--out FOLDER]

Draws `hypervolume-PROBLEM.png` for each problem of the study: the mean over folds and seeds, and how much
the seeds differ as a band. Only the searches are chosen: else a note below the figure names all other solvers.
"""

import argparse
from pathlib import Path

import moerank as mr
from moerank.figures import hypervolume_figure, save_figure


def main() -> None:
    """Draw every problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, help="folder of a study")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the figures")
    arguments = parser.parse_args()
    study = mr.Study.load(arguments.study)
    results = study.results()
    for problem in study.problems:
        mine = {cell: result for cell, result in results.items() if cell.problem.name == problem.name}
        searches = dict.fromkeys(cell.solver.label for cell, result in mine.items() if result.convergence)
        figure = hypervolume_figure(mine, problem, solvers=list(searches))
        save_figure(figure, arguments.out / f"hypervolume-{problem.name}.png")


if __name__ == "__main__":
    main()

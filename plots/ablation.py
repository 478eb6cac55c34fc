"""Ablations: the fronts of MOFSRank with all three stages, and without one of its parts.

    python plots/ablation.py STUDY [--out FOLDER]

Draws `ablation-PROBLEM.png` for each problem of the study: the fronts of one run over each other (Cheng et
al., 2018, Figures 4 to 6), and the mean error with at most k features over all folds and seeds. The study needs
`--ablate`.
"""

import argparse
from pathlib import Path

import moerank as mr
from moerank.figures import ablation_figure, save_figure

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
        save_figure(ablation_figure(results, problem, fold=FOLD), arguments.out / f"ablation-{problem.name}.png")


if __name__ == "__main__":
    main()

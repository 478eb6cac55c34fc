"""Accuracy against number of features: what each further feature buys, for all solvers of a study.

    python plots/accuracy.py STUDY [--out FOLDER]

Draws `accuracy-PROBLEM.png` for each problem of the study: the test metric of the best with at most k
features, chosen by validation, as a mean over folds and seeds; solvers by family, published results in grey.
"""

import argparse
from pathlib import Path

import moerank as mr
from moerank.figures import accuracy_figure, save_figure

METRIC = None  # that of the objectives; or "MAP"
LIMITS = None  # of the y axis, as (0.2, 0.25); None leaves poor values with few features out


def main() -> None:
    """Draw every problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, help="folder of a study")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the figures")
    arguments = parser.parse_args()
    study = mr.Study.load(arguments.study)
    results = study.results()
    for problem in study.problems:
        figure = accuracy_figure(results, problem, METRIC, limits=LIMITS)
        save_figure(figure, arguments.out / f"accuracy-{problem.name}.png")


if __name__ == "__main__":
    main()

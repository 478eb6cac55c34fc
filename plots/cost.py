"""Cost: the accuracy of each solver against the time of its tuning and training.

    python plots/cost.py STUDY [--out FOLDER]

Draws `cost-PROBLEM.png` for each problem of the study: processor seconds on one fold against the test
metric, with a staircase over the solvers that no other one beats in both.
"""

import argparse
from pathlib import Path

import moerank as mr
from moerank.figures import cost_figure, save_figure

METRIC = None  # that of the objectives; or "MAP"


def main() -> None:
    """Draw every problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, help="folder of a study")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the figures")
    arguments = parser.parse_args()
    study = mr.Study.load(arguments.study)
    results = study.results()
    for problem in study.problems:
        save_figure(cost_figure(results, problem, METRIC), arguments.out / f"cost-{problem.name}.png")


if __name__ == "__main__":
    main()

"""Feature frequency: how often each solver chooses each feature, and how stable its choice is.

    python plots/frequency.py STUDY [--out FOLDER]

Draws `frequency-PROBLEM.png` for each problem of the study: a map solver by feature over folds and seeds,
with the stability of each solver's choice, corrected for chance.
"""

import argparse
from pathlib import Path

import moerank as mr
from moerank.figures import frequency_figure, save_figure


def main() -> None:
    """Draw every problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, help="folder of a study")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the figures")
    arguments = parser.parse_args()
    study = mr.Study.load(arguments.study)
    results = study.results()
    for problem in study.problems:
        save_figure(frequency_figure(results, problem), arguments.out / f"frequency-{problem.name}.png")


if __name__ == "__main__":
    main()

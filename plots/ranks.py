"""Critical differences: mean ranks of the solvers over the folds of all problems of a study.

    python plots/ranks.py STUDY [--out FOLDER]

Draws `ranks.png`. Bars join solvers that the data cannot tell apart (Demšar, 2006); name a problem to rank over
its folds alone.
"""

import argparse
from pathlib import Path

import moerank as mr
from moerank.figures import ranks_figure, save_figure

METRIC = None  # that of the objectives; or "MAP"
PROBLEM = None


def main() -> None:
    """Draw the diagram."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, help="folder of a study")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the figures")
    arguments = parser.parse_args()
    study = mr.Study.load(arguments.study)
    results = study.results()
    save_figure(ranks_figure(results, METRIC, problem=PROBLEM), arguments.out / "ranks.png")


if __name__ == "__main__":
    main()

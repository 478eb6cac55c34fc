"""Searches side by side: how soon each of them reaches a good front.

    python plots/searches.py [PROBLEM] [--data FOLDER] [--seeds 7] [--evaluations 10000] [--out FOLDER]

Searches the feature subsets of fold 1 with each method and seed, and draws `searches-PROBLEM.png`: the hypervolume as a
share of that of the target, median and quartiles over the seeds. The runs are stored in the folder
`results/searches-PROBLEM` and not repeated. `moerank searches moerank-6` compares more searches on more problems.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import moerank as mr
from moerank.figures.style import save_figure


def main():
    """Search and draw what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "problem", nargs="?", default="digits", help="a shipped problem, or a problem file"
    )
    parser.add_argument("--data", type=Path, help="folder that holds the data")
    parser.add_argument("--seeds", type=int, default=7)
    parser.add_argument("--evaluations", type=int, default=10_000)
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent, help="folder of the figure"
    )
    arguments = parser.parse_args()
    stages, references = mr.load_suite([arguments.problem], arguments.data)
    (name,) = stages
    budget = {"n_evaluations": arguments.evaluations, "seeds": arguments.seeds}
    searches = ("nsga2", "daea", "staircase")
    study = mr.SearchStudy(
        stages, searches, f"results/searches-{name}", **budget, targets=references
    )
    save_figure(study.run().plot("hypervolume"), arguments.out / f"searches-{name}.png")


if __name__ == "__main__":
    main()

"""Objectives: the fronts of a few solvers in each pair of the objectives that were searched.

    python plots/objectives.py STUDY [--out FOLDER]

Draws `objectives-PROBLEM.png` for each problem of the study, of the training data of one fold. It is of use where
the problem file names further objectives in `[search] objectives`.
"""

from recipe import opened

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

SOLVERS = ("mofsrank", "greedy-rankrls", "fsmrank")
FOLD = 1

problems, results, out = opened(__doc__)
for problem in problems:
    there = results.of(problem.name).first_runs(FOLD)
    shown = [name for name in SOLVERS if name in there]
    figure = FIGURES["objectives"].draw(results, problem, fold=FOLD, solvers=shown)
    save_figure(figure, out / f"objectives-{problem.name}.png")

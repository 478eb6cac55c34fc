"""Fronts of a few solvers, the same members on training, validation and test queries.

    python plots/fronts.py STUDY [--out FOLDER]

Draws `fronts-PROBLEM.png` for each problem of the study. One solver of each kind is enough to see how
much of a training front is left on queries that the solver has not seen; without a choice each family has a row.
"""

from recipe import opened

from moerank.figures import fronts_figure, save_figure

SOLVERS = ("mofsrank", "greedy-rankrls", "gas-e", "fsmrank", "fenchelrank")
FOLD = 1

problems, results, out = opened(__doc__)
for problem in problems:
    there = {cell.solver.label for cell in results if (cell.problem.name, cell.fold) == (problem.name, FOLD)}
    figure = fronts_figure(results, problem, fold=FOLD, solvers=[name for name in SOLVERS if name in there])
    save_figure(figure, out / f"fronts-{problem.name}.png")

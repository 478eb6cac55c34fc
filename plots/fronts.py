"""Fronts of a few solvers, the same members on training, validation and test queries.

    python plots/fronts.py STUDY [--out FOLDER]

Draws `fronts-PROBLEM.png` for each problem of the study. One solver of each kind is enough to see how much of a
training front is left on queries that the solver has not seen; without a choice the best of each family has a colour.
"""

from recipe import opened

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

SOLVERS = ("mofsrank", "greedy-rankrls", "gas-e", "fsmrank", "fenchelrank")
FOLD = 1

problems, results, out = opened(__doc__)
for problem in problems:
    there = results.of(problem.name).first_runs(FOLD)
    figure = FIGURES["fronts"].draw(
        results, problem, fold=FOLD, solvers=[name for name in SOLVERS if name in there]
    )
    save_figure(figure, out / f"fronts-{problem.name}.png")

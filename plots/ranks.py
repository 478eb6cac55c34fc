"""Critical differences: mean ranks of the solvers over the folds of all problems of a study.

    python plots/ranks.py STUDY [--out FOLDER]

Draws `ranks.png`. Bars join solvers that the data cannot tell apart (Demšar, 2006); name a problem to rank over
its folds alone.
"""

from recipe import opened

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

METRIC = None  # that of the objectives; or "MAP"
PROBLEM = None  # or the name of one

problems, results, out = opened(__doc__)
problem = next((problem for problem in problems if problem.name == PROBLEM), None)
save_figure(FIGURES["ranks"].draw(results, problem, metric=METRIC), out / "ranks.png")

"""Critical differences: mean ranks of the solvers over the folds of all problems of a study.

    python plots/ranks.py STUDY [--out FOLDER]

Draws `ranks.png`. Bars join solvers that the data cannot tell apart (Demšar, 2006); name a problem to rank over
its folds alone.
"""

from recipe import opened

from moerank.figures import ranks_figure, save_figure

METRIC = None  # that of the objectives; or "MAP"
PROBLEM = None

problems, results, out = opened(__doc__)
save_figure(ranks_figure(results, METRIC, problem=PROBLEM), out / "ranks.png")

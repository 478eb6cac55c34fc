"""Accuracy against number of features: what each further feature buys, for all solvers of a study.

    python plots/accuracy.py STUDY [--out FOLDER]

Draws `accuracy-PROBLEM.png` for each problem of the study: the test metric of the best with at most k
features, chosen by validation, as a mean over folds and seeds; the best of each family, the others in grey.
"""

from recipe import opened

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

METRIC = None  # that of the objectives; or "MAP"
LIMITS = None  # of the y axis, as (0.2, 0.25); None leaves poor values with few features out

problems, results, out = opened(__doc__)
for problem in problems:
    figure = FIGURES["accuracy"].draw(results, problem, metric=METRIC, limits=LIMITS)
    save_figure(figure, out / f"accuracy-{problem.name}.png")

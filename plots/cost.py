"""Cost: the accuracy of each solver against the time of its tuning and training.

    python plots/cost.py STUDY [--out FOLDER]

Draws `cost-PROBLEM.png` for each problem of the study: processor seconds on one fold against the test
metric; the best of each family, the others in grey.
"""

from recipe import opened

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

METRIC = None  # that of the objectives; or "MAP"

problems, results, out = opened(__doc__)
for problem in problems:
    save_figure(
        FIGURES["cost"].draw(results, problem, metric=METRIC), out / f"cost-{problem.name}.png"
    )

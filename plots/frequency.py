"""Feature frequency: how often each solver chooses each feature, and how stable its choice is.

    python plots/frequency.py STUDY [--out FOLDER]

Draws `frequency-PROBLEM.png` for each problem of the study: a map feature by solver over folds and seeds,
with the stability of each solver's choice, also corrected for chance.
"""

from recipe import opened

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

problems, results, out = opened(__doc__)
for problem in problems:
    save_figure(FIGURES["frequency"].draw(results, problem), out / f"frequency-{problem.name}.png")

"""Hypervolume over evaluations: how fast each search gets how far, stage by stage.

    python plots/hypervolume.py STUDY [--out FOLDER]

Draws `hypervolume-PROBLEM.png` for each problem of the study: the mean over folds and seeds, and how much
the seeds differ as a band. Only the searches of linear rankers are chosen.
"""

from recipe import opened, searches_of

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

problems, results, out = opened(__doc__)
for problem in problems:
    figure = FIGURES["hypervolume"].draw(results, problem, solvers=searches_of(results, problem))
    save_figure(figure, out / f"hypervolume-{problem.name}.png")

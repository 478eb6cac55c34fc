"""Hypervolume over evaluations: how fast each search gets how far, stage by stage.

    python plots/hypervolume.py STUDY [--out FOLDER]

Draws `hypervolume-PROBLEM.png` for each problem of the study: the mean over folds and seeds, and how much
the seeds differ as a band. Only the searches of linear rankers are chosen, because a ranker that can learn more fits
the training queries better with any search.
"""

from recipe import opened

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

problems, results, out = opened(__doc__)
for problem in problems:
    searches = dict.fromkeys(run.solver for run in results.of(problem.name) if run.convergence and run.best.weights)
    figure = FIGURES["hypervolume"].draw(results, problem, solvers=list(searches))
    save_figure(figure, out / f"hypervolume-{problem.name}.png")

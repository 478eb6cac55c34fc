"""Attainment surfaces: the front that half of the seeds reach, for each search of a study.

    python plots/attainment.py STUDY [--out FOLDER]

Draws `attainment-PROBLEM.png` for each problem of the study: the median surface of the training objectives
on one fold, and a band between the quartiles. Only the searches of linear rankers are chosen, because a ranker that can
learn more fits the training queries better with any search.
"""

from recipe import opened

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

FOLD = 1

problems, results, out = opened(__doc__)
for problem in problems:
    searches = dict.fromkeys(run.solver for run in results.of(problem.name) if run.convergence and run.best.weights)
    figure = FIGURES["attainment"].draw(results, problem, fold=FOLD, solvers=list(searches))
    save_figure(figure, out / f"attainment-{problem.name}.png")

"""Attainment surfaces: the front that half of the seeds reach, for each search of a study.

    python plots/attainment.py STUDY [--out FOLDER]

Draws `attainment-PROBLEM.png` for each problem of the study: the median surface of the training objectives
on one fold, and a band between the quartiles. Rankers that draw have no front, so only the searches are chosen.
"""

from recipe import opened

from moerank.figures import attainment_figure, save_figure
from moerank.solvers import solvers

FAMILY = "evolutionary"
FOLD = 1

problems, results, out = opened(__doc__)
for problem in problems:
    mine = [cell.solver for cell in results if cell.problem.name == problem.name]
    searches = dict.fromkeys(solver.label for solver in mine if solvers()[solver.name].family == FAMILY)
    figure = attainment_figure(results, problem, fold=FOLD, solvers=list(searches))
    save_figure(figure, out / f"attainment-{problem.name}.png")

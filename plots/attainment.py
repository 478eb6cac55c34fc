"""Attainment surfaces: the front that half of the seeds reach, for each search of a study.

    python plots/attainment.py STUDY [--out FOLDER]

Draws `attainment-PROBLEM.png` for each problem of the study: the median surface of the training objectives
on one fold, and a band between the quartiles. Rankers that draw have no front, so only the searches are chosen.
"""

from recipe import opened

from moerank.figures.of_study import FIGURES
from moerank.figures.panels import family_of
from moerank.figures.style import save_figure

FAMILY = "evolutionary"
FOLD = 1

problems, results, out = opened(__doc__)
for problem in problems:
    searches = [solver for solver in results.of(problem.name).solvers if family_of(solver) == FAMILY]
    figure = FIGURES["attainment"].draw(results, problem, fold=FOLD, solvers=searches)
    save_figure(figure, out / f"attainment-{problem.name}.png")

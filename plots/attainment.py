"""Attainment surfaces: the front that half of the seeds reach, for each search of a study.

    python plots/attainment.py STUDY [--out FOLDER]

Draws `attainment-PROBLEM.png` for each problem of the study: the median surface of the training objectives
on one fold, and a band between the quartiles. Only the searches of linear rankers are chosen.
"""

from recipe import opened, searches_of

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

FOLD = 1

problems, results, out = opened(__doc__)
for problem in problems:
    figure = FIGURES["attainment"].draw(
        results, problem, fold=FOLD, solvers=searches_of(results, problem)
    )
    save_figure(figure, out / f"attainment-{problem.name}.png")

"""Hypervolume over evaluations: how fast each search gets how far, stage by stage.

    python plots/hypervolume.py STUDY [--out FOLDER]

Draws `hypervolume-PROBLEM.png` for each problem of the study: the mean over folds and seeds, and how much
the seeds differ as a band. Only the searches are chosen: else a note below the figure names all other solvers.
"""

from recipe import opened

from moerank.figures import hypervolume_figure, save_figure

problems, results, out = opened(__doc__)
for problem in problems:
    mine = {cell: result for cell, result in results.items() if cell.problem.name == problem.name}
    searches = dict.fromkeys(cell.solver.label for cell, result in mine.items() if result.convergence)
    figure = hypervolume_figure(mine, problem, solvers=list(searches))
    save_figure(figure, out / f"hypervolume-{problem.name}.png")

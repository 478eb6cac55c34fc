"""Instances: the share of the pairs, documents or queries that each member was trained on.

The share of the training instances that each member was trained on, with the quartiles over the members of all folds
and seeds.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from moerank.figures import View
from moerank.figures.panels import named, rows_figure
from moerank.figures.style import finished
from moerank.studies.results import NoResultsError


def instances_figure(view: View) -> Figure:
    """Draw the share of the instances that each member of the fronts was trained on, with the quartiles.

    A note names the solvers without instance selection.
    """
    by_solver = view.results.by_solver()
    shares = {
        solver: [
            member.instances / run.n_instances
            for runs in folds.values()
            for run in runs
            for member in run.front
            if run.n_instances and member.instances is not None
        ]
        for solver, folds in by_solver.items()
    }
    selected = {solver: np.array(mine) for solver, mine in shares.items() if mine}
    if not selected:
        raise NoResultsError(f"no solver of the study of {view.where} selects instances")
    units = sorted({f"{run.instances}s" for run in view.results if run.instances and run.n_instances})
    middle = np.median(np.concatenate(list(selected.values())))
    figure, axes, _, y = rows_figure(list(selected), 0.01)
    for row, (solver, mine) in zip(y, selected.items(), strict=True):
        low, median, high = np.quantile(mine, (0.25, 0.5, 0.75))
        axes.plot(mine, np.full(len(mine), row), "|", color="0.75", markersize=4, zorder=0, label=solver)
        axes.plot([low, high], [row, row], color="#0072B2", linewidth=2.0, solid_capstyle="butt")
        axes.plot([median], [row], "o", color="black")
    axes.set(xlim=(0.0, 1.02), xlabel=f"Share of the {' or '.join(units)}")
    finding = f"Half of the members were trained on at most {middle:.0%} of the {' or '.join(units)}"
    lacking = named("No instance selection", [solver for solver in by_solver if solver not in selected])
    return finished(figure, axes, axes.get_ylim()[0], finding, lacking)

"""Instances: the share of the pairs, documents or queries that each member was trained on.

The share of the training instances that each member was trained on, with the quartiles over the members of all folds
and seeds that were not trained on all.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from moerank.figures import View
from moerank.figures.panels import named, rows_figure
from moerank.figures.style import Style, finished
from moerank.studies.results import NoResultsError


def instances_figure(view: View) -> Figure:
    """Draw the share of the instances that each member of the fronts was trained on, with the quartiles.

    The title counts the members that were trained on all instances, a note names the solvers without a selection.
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
    units = " or ".join(sorted({f"{run.instances}s" for run in view.results if run.instances and run.n_instances}))
    figure, axes, _, y = rows_figure(list(selected), 0.01)
    n_all = 0
    for row, mine in zip(y, selected.values(), strict=True):
        some = mine[mine < 1.0]
        n_all += len(mine) - len(some)
        hidden = "" if row == y[0] else "_"
        axes.plot(some, np.full(len(some), row), "|", color="0.6", markersize=4, zorder=0, label=f"{hidden}member")
        if len(some):
            low, median, high = np.quantile(some, (0.25, 0.5, 0.75))
            quartiles: Style = {"color": "#0072B2", "linewidth": 2.0, "solid_capstyle": "butt"}
            axes.plot([low, high], [row, row], label=f"{hidden}quartiles", **quartiles)
            axes.plot([median], [row], "o", color="black", label=f"{hidden}median")
    axes.set(xlim=(0.0, None), xlabel=f"Share of the {units}")
    chosen = np.concatenate(list(selected.values()))
    finding = f"Members with a selection of {units} use {np.median(chosen[chosen < 1.0]):.0%} of them at the median"
    if n_all:
        finding += f"; {n_all} of {len(chosen)} members use all"
    lacking = named("No instance selection", [solver for solver in by_solver if solver not in selected])
    return finished(figure, axes, axes.get_ylim()[0], finding, lacking, axes)

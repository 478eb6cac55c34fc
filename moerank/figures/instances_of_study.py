"""Instances: the share of the pairs, documents or queries that each member was trained on.

The share of the training instances that each member was trained on, with the quartiles over the members of all folds
and seeds that were not trained on all.
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
    figure, axes, y = rows_figure(list(selected))
    some = [mine[mine < 1.0] for mine in selected.values()]
    low, median, high = np.transpose(
        [np.quantile(mine, (0.25, 0.5, 0.75)) if len(mine) else [np.nan] * 3 for mine in some]
    )
    members, rows = np.concatenate(some), np.repeat(y, list(map(len, some)))
    axes.plot(members, rows, "|", color="0.6", markersize=4, zorder=0, label="member")
    axes.hlines(y, low, high, color="#0072B2", linewidth=2.0, label="quartiles")
    axes.plot(median, y, "o", color="black", label="median")
    axes.set(xlim=(0.0, None), xlabel=f"Share of the {units}")
    n_members = sum(map(len, selected.values()))
    finding = f"Members with a selection of {units} use {np.median(members):.0%} of them at the median"
    if n_all := n_members - len(members):
        finding += f"; {n_all} of {n_members} members use all"
    lacking = named("No instance selection", [solver for solver in by_solver if solver not in selected])
    return finished(figure, axes, axes.get_ylim()[0], finding, lacking, axes)

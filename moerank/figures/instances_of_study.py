"""Instances: the share of the pairs, documents or queries that each member was trained on.

The share of the training instances that each member was trained on, with the quartiles over the members of all folds
and seeds that were not trained on all.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from moerank.figures import View
from moerank.figures.panels import named, rows_figure
from moerank.figures.style import finished
from moerank.studies.results import NoResultsError


def instances_figure(view: View) -> Figure:
    """Draw the share of the instances that each member of the fronts was trained on, with the quartiles.

    The title counts the members that were trained on all instances, a note names the solvers without a selection.
    """
    shares = pd.DataFrame(
        [
            (run.solver, member.instances / run.n_instances)
            for run in view.results
            for member in run.front
            if run.n_instances and member.instances is not None
        ],
        columns=["solver", "share"],
    )
    if shares.empty:
        raise NoResultsError(f"no solver of the study of {view.where} selects instances")
    units = " or ".join(
        sorted({f"{run.instances}s" for run in view.results if run.instances and run.n_instances})
    )
    solvers, some = shares["solver"].unique().tolist(), shares[shares["share"] < 1.0]
    figure, axes, y = rows_figure(solvers)
    quartiles = (
        some.groupby("solver")["share"].quantile([0.25, 0.5, 0.75]).unstack().reindex(solvers)
    )
    rows = y[[solvers.index(solver) for solver in some["solver"]]]
    axes.plot(some["share"], rows, "|", color="0.6", markersize=4, zorder=0, label="member")
    axes.hlines(
        y, quartiles[0.25], quartiles[0.75], color="#0072B2", linewidth=2.0, label="quartiles"
    )
    axes.plot(quartiles[0.5], y, "o", color="black", label="median")
    axes.set(xlim=(0.0, None), xlabel=f"Share of the {units}")
    finding = f"Members with a selection of {units} use {np.median(some['share']):.0%} of them at the median"
    if n_all := len(shares) - len(some):
        finding += f"; {n_all} of {len(shares)} members use all"
    lacking = named(
        "No instance selection",
        [solver for solver in view.results.solvers if solver not in solvers],
    )
    return finished(figure, axes, axes.get_ylim()[0], finding, lacking, axes)

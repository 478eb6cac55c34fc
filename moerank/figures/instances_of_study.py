"""Instances: the fraction of the pairs, documents or queries that each member was trained on.

The fraction of the training instances that each member was trained on, with the quartiles of those members of all folds
and seeds that were not trained on all instances.
"""

import pandas as pd
from matplotlib.figure import Figure

from moerank.figures import View
from moerank.figures.panels import rows_figure
from moerank.figures.style import finish_figure
from moerank.studies.comparison import name_solvers
from moerank.studies.results import NoResultsError


def instances_figure(view: View) -> Figure:
    """Draw the share of the instances that each member of the fronts was trained on, with the quartiles.

    A note names the solvers without a selection.
    """
    rows = [
        (run.solver, member.instances / run.n_instances, f"{run.instances}s")
        for run in view.results
        for member in run.front
        if run.n_instances and member.instances is not None
    ]
    if not rows:
        raise NoResultsError(f"no solver of the study of {view.problem_name} selects instances")
    shares = pd.DataFrame(rows, columns=["solver", "share", "unit"])
    solvers = shares["solver"].unique().tolist()
    rest = [solver for solver in view.results.solvers if solver not in solvers]
    figure, axes, y = rows_figure(solvers)
    selections = shares[shares["share"] < 1.0]  # members that were not trained on all instances
    quantiles = selections.groupby("solver")["share"].quantile([0.25, 0.5, 0.75])
    quartiles = quantiles.unstack().reindex(solvers)
    heights = y[[solvers.index(solver) for solver in selections["solver"]]]
    axes.plot(
        selections["share"], heights, "|", color="0.6", markersize=4, zorder=0, label="member"
    )
    axes.hlines(
        y, quartiles[0.25], quartiles[0.75], color="#0072B2", linewidth=2.0, label="quartiles"
    )
    axes.plot(quartiles[0.5], y, "o", color="black", label="median")
    units = " or ".join(sorted(shares["unit"].unique()))
    axes.set(xlim=(0.0, None), xlabel=f"Share of the {units}")
    title = f"Share of the {units} that each member was trained on"
    note = name_solvers("No instance selection", rest)
    return finish_figure(figure, axes, axes.get_ylim()[0], title, note, axes)

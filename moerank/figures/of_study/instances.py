"""Instances: the share of the pairs, documents or queries that each member was trained on."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.figures.figure import StudyFigure, View
from moerank.figures.notes import named
from moerank.figures.panels import FEW_LINES, Look, Panels, by_family
from moerank.figures.style import in_style
from moerank.studies.results import NoResultsError, Results

__all__ = ["FIGURE"]


def instances_figure(view: View) -> Figure:
    """Draw the share of the instances that the members of all fronts were trained on, over their number of features.

    A note names the solvers without instance selection. More than five solvers are divided by family into panels.
    """
    found = view.results.by_solver()
    runs = {solver: [run for seeds in folds.values() for run in seeds] for solver, folds in found.items()}
    selected = {solver: each for solver, each in runs.items() if any(run.n_instances for run in each)}
    if not selected:
        raise NoResultsError(f"no solver of the study of {view.where} selects instances")
    members = {
        solver: [
            (len(member.features), member.instances / run.n_instances)
            for run in each
            for member in run.front
            if run.n_instances and member.instances is not None
        ]
        for solver, each in selected.items()
    }

    def draw(axes: Axes, _: str, look: Look) -> None:
        sizes, shares = np.array(members[look.label]).reshape(-1, 2).T
        look.plot(axes, sizes, shares, linestyle="none", markevery=1, markersize=2.5, alpha=0.5)
        axes.set_ylim(0.0, 1.05)

    units = sorted({f"{run.instances}s" for each in selected.values() for run in each if run.instances})
    with in_style():
        groups = by_family(list(selected), FEW_LINES)
        panels = Panels(
            groups,
            [""],
            height=1.9 if len(groups) == 1 else 1.3,
            xlabel="Number of features",
            ylabel=f"Share of the {' or '.join(units)}",
            notes=[named("No instance selection", [solver for solver in found if solver not in selected])],
        )
        panels.draw(draw)
    return panels.figure


def _selects(results: Results) -> bool:
    return any(run.n_instances for run in results)


FIGURE = StudyFigure(
    instances_figure,
    caption="The share of the training instances that the rankers of each member were trained on; members of all folds "
    "and seeds.",
    section="results",
    place=7,
    reported=_selects,
)

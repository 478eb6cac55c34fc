"""Accuracy against number of features, for all solvers of a study and published results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.figures.figure import StudyFigure, View
from moerank.figures.notes import errors_noted, named
from moerank.figures.panels import MOST_LINES, Look, Panels, by_family, family_of
from moerank.figures.style import GREY, Style, beyond, in_style, limits_of
from moerank.solvers import FAMILIES
from moerank.studies.external import External
from moerank.studies.problem import Published
from moerank.studies.results import Runs, mean_by_size, offers_sizes

__all__ = ["FIGURE"]

PUBLISHED = ("*", "h", "d", "8", "H", (4, 1, 0), (6, 1, 0))
"""Markers of published results, different from those of solvers."""

NAME_SIZE = 6
NAME_LENGTH = 26
"""Largest number of characters of a line below a column."""


def accuracy_figure(view: View, *, limits: tuple[float, float] | None = None) -> Figure:
    """Draw the test metric of the rankers with at most k features that validation chooses, means over folds and seeds.

    Up to eight solvers share a panel, in which a ranker without selection is a point. More have a panel for each
    family, see `panels.by_family`, and a last panel with a column for each ranker without selection. Published results
    and those of other tools are grey in the panel of their solver; a line joins those of one method. `limits` are those
    of the y axis, by default from `style.limits_of`; a note names the solvers with values beyond them.
    """
    found, metric = view.results.by_solver(), view.metric
    means = {solver: means.mean(f"test {metric}")[0] for solver, means in view.results.means().items()}
    curves = {solver: mean_by_size(folds, "test", metric) for solver, folds in found.items() if offers_sizes(folds)}
    points = {solver: (_size(folds), means[solver]) for solver, folds in found.items() if solver not in curves}
    entries = () if view.problem is None else view.problem.published
    published: dict[str, list[Published]] = {}
    for entry in sorted(entries, key=lambda entry: entry.features or 0.0):
        if entry.features is not None and entry.value(metric) is not None:
            published.setdefault(entry.label, []).append(entry)
    theirs_of_all = any(not isinstance(entry, External) for entries in published.values() for entry in entries)
    markers = dict(zip(published, cycle(PUBLISHED), strict=False))
    apart = [solver for solver in points if family_of(solver) == "ranker"] if len(found) > MOST_LINES else []
    groups = by_family([solver for solver in found if solver not in apart]) if len(found) > len(apart) else {"": []}
    for label, theirs in published.items():
        groups[_home(theirs[0], groups)].append(label)
    values = {**curves, **{solver: np.array([value]) for solver, (_, value) in points.items()}}
    shown = [entry.value(metric) or 0.0 for theirs in published.values() for entry in theirs]
    limits = limits or limits_of(values, shown)

    def draw(axes: Axes, _: str, look: Look) -> None:
        if look.label in curves:
            look.plot(axes, np.arange(1, len(curves[look.label]) + 1), curves[look.label])
        elif look.label in points:
            size, value = points[look.label]
            look.plot(axes, [size], [value], linestyle="none")
        elif not look.faint:
            theirs = published[look.label]
            places = np.array([(entry.features, entry.value(metric)) for entry in theirs], float).T
            style: Style = {"marker": markers[look.label], "markersize": 5, "color": GREY, "linewidth": 0.7}
            axes.plot(*places, label=look.label, linestyle="-" if len(theirs) > 1 else "none", clip_on=False, **style)

    with in_style():
        panels = Panels(
            groups,
            [""],
            height=2.0 if len(groups) == 1 else 0.58,
            xlabel="Number of features, at most",
            ylabel=f"Test {metric}",
            notes=[
                errors_noted(view.results, metric),
                "Published values are means over all folds." if theirs_of_all and len(view.results.folds) == 1 else "",
                named("Some values lie beyond the axis", beyond(values, limits)),
            ],
            strip=0.62 if apart else 0.0,
        )
        if panels.strip is not None:
            _columns(panels.strip, {solver: points[solver] for solver in apart}, limits[0])
        panels.draw(draw)
        next(iter(panels.axes.values())).set_ylim(*limits)
    return panels.figure


def _size(folds: Runs) -> float:
    """Return the mean number of features of a solver that offers one size."""
    return float(np.mean([len(run.best.features) for runs in folds.values() for run in runs]))


def _home(entry: Published, groups: Mapping[str, Sequence[str]]) -> str:
    """Return the panel of a published result: that of its solver, else the first."""
    return next((title for title, labels in groups.items() if entry.solver in labels), next(iter(groups)))


def _columns(axes: Axes, points: Mapping[str, tuple[float, float]], low: float) -> None:
    """Draw a column for each ranker without selection, the best first; values below the axis are written as text."""
    order = sorted(points, key=lambda solver: -points[solver][1])
    values = [points[solver][1] for solver in order]
    axes.vlines(range(len(order)), 0.0, values, color="0.85", linewidth=0.6)
    axes.plot(range(len(order)), values, "o", color="black", markersize=3, label="rankers")
    for column, value in enumerate(values):
        if value < low:
            axes.annotate(
                f"↓ {value:.3f}",
                (column, 0.04),
                xycoords=("data", "axes fraction"),
                rotation=90,
                fontsize=NAME_SIZE,
                ha="center",
                va="bottom",
            )
    names = [fill(f"{solver} ({points[solver][0]:.0f})", NAME_LENGTH) for solver in order]
    axes.set_xticks(range(len(order)), names, rotation=90, fontsize=NAME_SIZE)
    axes.set_xlim(-0.6, len(order) - 0.4)
    axes.tick_params(axis="x", length=0)
    axes.set_title(f"{FAMILIES['ranker']} (features used)", loc="left", fontsize=7, fontweight="bold")


FIGURE = StudyFigure(
    accuracy_figure,
    caption="Test value of the ranker with at most so many features that validation data choose; means over folds and "
    "seeds, for the sizes that all runs offer.",
    section="results",
    place=1,
    takes=("metric",),
)

"""Cost: test metric against training time of each solver."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import cos, hypot, pi, sin
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from moerank.arrays import Matrix
from moerank.figures.figure import StudyFigure, View
from moerank.figures.notes import errors_noted
from moerank.figures.panels import MOST_LINES, TITLES, Look, Panels, family_of
from moerank.figures.style import GREY, far_below, in_style, put_log_scale
from moerank.studies.results import Runs

__all__ = ["FIGURE"]

LEAST = 1e-3
"""Least processor seconds on the logarithmic scale; shorter times are not reliable."""

NAME_SIZE = 6
MARKER = 3.5
FAR = 12.0
"""Distance in points from which a line joins a name with its marker."""

Place: TypeAlias = tuple[float, float]


def cost_figure(view: View) -> Figure:
    """Draw the processor time of tuning and training against the test metric, means over folds and seeds.

    A staircase joins the non-dominated solvers, whose markers are filled. Up to six solvers have a marker each. More
    have that of their family, and only those on the staircase have a name. Solvers `style.far_below` the others are at
    the lower edge, with their names and an arrow; a note has their values.
    """
    found, metric = view.results.by_solver(), view.metric
    means = view.results.means()
    places = {solver: (_seconds(folds), means[solver].mean(f"test {metric}")[0]) for solver, folds in found.items()}
    best = _unbeaten(places)
    poor = far_below({solver: value for solver, (_, value) in places.items()})
    values = [value for solver, (_, value) in places.items() if solver not in poor]
    edge = min(values) - 0.1 * (max(values) - min(values))
    places |= {solver: (places[solver][0], edge) for solver in poor}
    below = [f"{solver} {value:.3f}" for solver, value in poor.items()]
    many = len(found) > MOST_LINES
    families = {f: title for f, title in TITLES.items() if any(family_of(solver) == f for solver in found)}
    members = {title: [solver for solver in found if family_of(solver) == f] for f, title in families.items()}
    marked = list(members) if many else list(found)

    def draw(axes: Axes, _: str, look: Look) -> None:
        mine = members[look.label] if many else [look.label]
        for filled in (True, False):
            x, y = np.array([places[solver] for solver in mine if (solver in best) == filled]).reshape(-1, 2).T
            changes = {} if filled else {"markerfacecolor": "white", "label": "_open"}
            look.plot(axes, x, y, linestyle="none", markersize=MARKER, markevery=1, **changes)

    with in_style():
        panels = Panels(
            marked,
            marked,
            [""],
            finding=f"{len(best)} of {len(found)} solvers are unbeaten in both test {metric} and training time",
            height=2.4 if many else 2.0,
            xlabel="Processor seconds of tuning and training",
            ylabel=f"Test {metric}",
            notes=[errors_noted(view.results, metric), f"↓ lies below the axis: {', '.join(below)}." if below else ""],
        )
        panels.draw(draw)
        (axes,) = panels.axes.values()
        put_log_scale(axes, [time for time, _ in places.values()])
        stairs = np.array([places[solver] for solver in best])
        axes.plot(*stairs.T, drawstyle="steps-post", color=GREY, linewidth=0.7, zorder=0.5, label="_best")
        if many:
            names = {solver: solver for solver in best} | {solver: f"{solver} ↓" for solver in poor}
            _name(panels.figure, axes, names, places, stairs)
    return panels.figure


def _seconds(folds: Runs) -> float:
    """Return the mean processor seconds of a run, at least `LEAST`."""
    runs = [run for seeds in folds.values() for run in seeds]
    return max(LEAST, float(np.mean([run.times.processor.tuning + run.times.processor.solver for run in runs])))


def _unbeaten(places: Mapping[str, Place]) -> list[str]:
    """Return the solvers that no other solver equals or beats in both objectives, the fastest first."""
    best: list[str] = []
    for solver in sorted(places, key=lambda name: (places[name][0], -places[name][1])):
        if not best or places[solver][1] > places[best[-1]][1]:
            best.append(solver)
    return best


def _name(figure: Figure, axes: Axes, names: Mapping[str, str], places: Mapping[str, Place], stairs: Matrix) -> None:
    """Write names at the nearest places where they cover no marker, no other name and no part of the staircase."""
    figure.draw_without_rendering()  # determines the positions of the axes
    point = figure.dpi / 72.0
    half = (MARKER + 1.0) * point / 2.0
    frame, pixels = axes.get_window_extent(), axes.transData.transform
    taken = [Bbox([here - half, here + half]) for here in pixels(list(places.values()))]
    for (x, y), (next_x, next_y) in pairwise(pixels(stairs)):
        taken += [Bbox([[x, y - point], [next_x, y + point]]), Bbox([[next_x - point, y], [next_x + point, next_y]])]
    for solver, name in names.items():
        label = axes.text(*places[solver], name, fontsize=NAME_SIZE)
        box = label.get_window_extent()
        label.remove()
        box = box.translated(-box.x0 - box.width / 2.0, -box.y0 - box.height / 2.0).translated(*pixels(places[solver]))
        offsets = _offsets(box.width, box.height, point)
        moved = ((offset, box.translated(*offset)) for offset in offsets)
        free = (
            offset
            for offset, here in moved
            if frame.contains(*here.min) and frame.contains(*here.max) and not here.count_overlaps(taken)
        )
        dx, dy = next(free, offsets[0])
        taken.append(box.translated(dx, dy))
        gap = hypot(max(0.0, abs(dx) - box.width / 2.0), max(0.0, abs(dy) - box.height / 2.0))
        line = {"arrowstyle": "-", "linewidth": 0.3, "color": GREY, "shrinkA": 0, "shrinkB": 2}
        axes.annotate(
            name,
            places[solver],
            (dx / point, dy / point),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=NAME_SIZE,
            arrowprops=line if gap > FAR * point else None,
        ).set_in_layout(False)


def _offsets(width: float, height: float, point: float) -> list[tuple[float, float]]:
    """Return offsets of a name from its marker in pixels, on growing ellipses, beginning above it."""
    return [
        ((radius * point + width / 2.0) * cos(turn * pi / 8.0), (radius * point + height / 2.0) * sin(turn * pi / 8.0))
        for radius in range(3, 120, 2)
        for turn in (4, 5, 3, 6, 2, 7, 1, 8, 0, 12, 11, 13, 10, 14, 9, 15)
    ]


FIGURE = StudyFigure(
    cost_figure,
    caption="Processor seconds of tuning and training against the test value, means over folds and seeds; solvers that "
    "no other one beats in both are filled and joined.",
    section="results",
    place=5,
    takes=("metric",),
    of_chosen=True,
)

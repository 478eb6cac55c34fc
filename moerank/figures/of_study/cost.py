"""Cost: what the accuracy of each solver takes in training time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, hypot, pi, sin
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from moerank.analysis.results import Runs
from moerank.figures.lettering import put_key, width_of
from moerank.figures.limits import far_below
from moerank.figures.notes import errors_noted, named
from moerank.figures.panels import MOST_LINES, Look, Panels, family_of
from moerank.figures.study_figure import StudyFigure, View
from moerank.figures.style import GREY, in_style
from moerank.solvers import FAMILIES

__all__ = ["FIGURE"]

LEAST = 1e-3
"""Seconds; less cannot be told from nothing, nor drawn on a logarithmic scale."""

NUMBER_SIZE = 6
MARKER = 3.5
NOTE = "Filled, joined by the line: solvers that no other one beats in both."

Place: TypeAlias = tuple[float, float]


def cost_figure(view: View) -> Figure:
    """Draw processor time of tuning and training on one fold against the test metric, means over folds and seeds.

    A staircase joins the solvers that no other one beats in both; their markers are filled. Up to eight solvers have
    a marker each. More have that of their family and a number, which the key below the axes explains.

    Solvers whose metric is `limits.far_below` those of the others are at the lower edge, with an arrow, and the note
    below the figure has their values.
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
    families = [family for family in FAMILIES if any(family_of(solver) == family for solver in found)]
    members = {FAMILIES[f]: [solver for solver in found if family_of(solver) == f] for f in families}
    groups = {"": list(members)} if many else {"": list(found)}
    order = [solver for group in members.values() for solver in group]

    def draw(axes: Axes, _: str, look: Look) -> None:
        mine = members[look.label] if many else [look.label]
        for filled in (True, False):
            x, y = np.array([places[solver] for solver in mine if (solver in best) == filled]).reshape(-1, 2).T
            changes = {} if filled else {"markerfacecolor": "white", "label": "_open"}
            look.plot(axes, x, y, linestyle="none", markersize=MARKER, markevery=1, **changes)

    with in_style():
        names = [f"{number}  {solver}" for number, solver in enumerate(order, start=1)] if many else []
        panels = Panels(
            groups,
            [""],
            height=2.4 if many else 1.9,
            xlabel="Processor seconds of tuning and training",
            ylabel=f"Test {metric}",
            notes=[NOTE, errors_noted(view.results, metric), named("↓ lies below the axis", below)],
            key=names,
        )
        panels.draw(draw)
        (axes,) = panels.axes.values()
        axes.set_xscale("log")
        times = [time for time, _ in places.values()]
        if max(times) < 100.0 * min(times):  # powers of ten would be one number or two
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        stairs = np.array([places[solver] for solver in best])
        axes.plot(*stairs.T, drawstyle="steps-post", color=GREY, linewidth=0.7, zorder=0.5, label="_best")
        if panels.key is not None:
            put_key(panels.key, names, [name for name, solver in zip(names, order, strict=True) if solver in best])
            marks = [f"{number}↓" if solver in poor else str(number) for number, solver in enumerate(order, start=1)]
            _number(panels.figure, axes, marks, [places[solver] for solver in order], [s in best for s in order])
    return panels.figure


def _seconds(folds: Runs) -> float:
    """Mean processor seconds of a run, at least `LEAST`."""
    runs = [run for seeds in folds.values() for run in seeds]
    return max(
        LEAST, float(np.mean([run.times["processor"]["tuning"] + run.times["processor"]["solver"] for run in runs]))
    )


def _unbeaten(places: Mapping[str, Place]) -> list[str]:
    """Return the solvers that no other one equals or beats in both respects, the fastest first."""
    best: list[str] = []
    for solver in sorted(places, key=lambda name: (places[name][0], -places[name][1])):
        if not best or places[solver][1] > places[best[-1]][1]:
            best.append(solver)
    return best


def _number(figure: Figure, axes: Axes, numbers: Sequence[str], places: Sequence[Place], bold: Sequence[bool]) -> None:
    """Write its number beside each place, where it covers neither a marker nor another number."""
    figure.draw_without_rendering()  # only now is it known where the axes are
    points = axes.transData.transform(np.asarray(places)) * 72.0 / figure.dpi
    frame = axes.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    inside = np.ravel(frame.get_points() * 72.0)
    taken = [_box(x, y, (MARKER, MARKER)) for x, y in points]
    for number, (x, y), place, strong in zip(numbers, points, places, bold, strict=True):
        size = (72.0 * width_of(number, NUMBER_SIZE, "bold") + 1.5, 1.2 * NUMBER_SIZE)
        dx, dy = _free(x, y, size, taken, inside)
        taken.append(_box(x + dx, y + dy, size))
        far = hypot(dx, dy) > 2.0 * NUMBER_SIZE
        axes.annotate(
            number,
            place,
            (dx, dy),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=NUMBER_SIZE,
            fontweight="bold" if strong else "normal",
            arrowprops={"arrowstyle": "-", "linewidth": 0.3, "color": GREY, "shrinkA": 2, "shrinkB": 1}
            if far
            else None,
        ).set_in_layout(False)


def _box(x: float, y: float, size: Place) -> NDArray[np.float64]:
    """Return left, bottom, right and top of a box of this size around a place."""
    return np.array([x - size[0] / 2.0, y - size[1] / 2.0, x + size[0] / 2.0, y + size[1] / 2.0])


def _free(x: float, y: float, size: Place, taken: Sequence[NDArray[np.float64]], inside: NDArray[np.float64]) -> Place:
    """Return the nearest offset, in points, at which a box of this size touches nothing; the first if there is none."""
    offsets = [
        (radius * cos(turn * pi / 8.0), 0.9 * radius * sin(turn * pi / 8.0))
        for radius in np.arange(6.5, 60.0, 2.0)
        for turn in (1, 0, 2, 15, 14, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
    ]
    others = np.array(taken)
    for dx, dy in offsets:
        box = _box(x + dx, y + dy, size)
        within = (box[:2] >= inside[:2]).all() and (box[2:] <= inside[2:]).all()
        touches = (box[:2] <= others[:, 2:]).all(axis=1) & (box[2:] >= others[:, :2]).all(axis=1)
        if within and not touches.any():
            return dx, dy
    return offsets[0]


FIGURE = StudyFigure(
    cost_figure,
    caption="Processor seconds of tuning and training against the test value; means over folds and seeds.",
    section="results",
    place=5,
    takes=("metric",),
)

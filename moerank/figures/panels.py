"""Panels for figures of many solvers: a few of them have a colour and a name, the others are pale grey behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import LineStyleType
from numpy.typing import ArrayLike

from moerank.arrays import Vector
from moerank.figures.style import WIDTH, Style, fit_height, put_note, put_title, widen
from moerank.solvers import FAMILIES
from moerank.solvers import solvers as solver_table
from moerank.studies.results import Results
from moerank.studies.summary import by_validation

MOST_LINES = 6
"""Largest number of solvers with a colour, which readers can distinguish at a glance."""

# Okabe and Ito (2008) without yellow, which is faint on white; markers and dashes distinguish solvers in grey, too.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
DASHES: tuple[LineStyleType, ...] = (
    *("-", "--", "-.", ":"),
    *((0, (5, 1, 1, 1, 1, 1)), (0, (9, 2)), (0, (1, 3)), (0, (6, 1, 2, 1))),
)
FAINT = "0.8"

GIVEN = "given"
"""Family of solvers that are not in the table."""

TITLES: dict[str, str] = {**dict(FAMILIES.items()), GIVEN: "Given in Python"}
"""Titles of families in legends."""


def solver_style(number: int) -> Style:
    """Return the colour, the marker and the dashes of a solver by its number in a figure; 616 differ."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def family_of(solver: str) -> str:
    """Return the family of a solver by its label; that of a Python object, which no table has, is "given"."""
    entry = solver_table().get(solver.partition("[")[0])
    return GIVEN if entry is None else entry.family


def best_of_families(results: Results, solvers: Sequence[str]) -> list[str]:
    """Return up to `MOST_LINES` solvers, or of more the one of each family that validation queries like best."""
    if len(solvers) <= MOST_LINES:
        return list(solvers)
    among = results.among(solvers)
    validation = {name: means.mean(f"validation {among.metric}")[0] for name, means in among.means().items()}
    selecting = by_validation(among)
    others = sorted(validation.keys() - {*selecting}, key=lambda solver: (-validation[solver], solver))
    first = {family_of(solver): solver for solver in reversed([*selecting, *others])}
    return [first[family] for family in TITLES if family in first]


@dataclass(frozen=True)
class Look:
    """Look of a solver: the number is its place among the named ones, or None for a grey one behind them."""

    label: str
    number: int | None

    @property
    def faint(self) -> bool:
        """Whether the line is drawn only for comparison."""
        return self.number is None

    @property
    def colour(self) -> str:
        """Colour of the line."""
        return FAINT if self.number is None else COLOURS[self.number % len(COLOURS)]

    def plot(self, axes: Axes, x: ArrayLike, y: ArrayLike, **changes: Any) -> None:
        """Draw a line with some markers, at other places than those of the next solver; grey ones have no markers."""
        x, y = np.asarray(x, float), np.asarray(y, float)
        if self.number is None:
            faint: Style = {"color": FAINT, "linewidth": 0.5, "zorder": 0.5, "markersize": 2.0}
            faint |= {"marker": "o" if len(x) == 1 else "", "drawstyle": changes.get("drawstyle", "default")}
            axes.plot(x, y, label=f"_{self.label}", **faint)
            return
        step = max(1, len(x) // 8)
        style = {**solver_style(self.number), "label": self.label, "markevery": (self.number % step, step)}
        axes.plot(x, y, **{**style, **changes})


Draw: TypeAlias = Callable[[Axes, str, Look], None]
"""``draw(axes, column, look)`` draws a solver into the panel of a column."""


class Panels:
    """Figure of several solvers with a panel for each column, below each other, and `axes` by column.

    All panels have one legend, of the solvers in `named`; the others are grey. `finding` is the title of the figure,
    `columns` are those of the panels (by default one panel without), `height` is that of a panel in inches, and
    `same_x` tells whether all panels have the same x axis. Axes are those of a metric, see `style.widen`, unless
    `of_metric` is false.
    """

    def __init__(
        self,
        solvers: Sequence[str],
        named: Sequence[str],
        columns: Sequence[str] = ("",),
        *,
        finding: str,
        height: float,
        xlabel: str,
        ylabel: str,
        same_x: bool = True,
        of_metric: bool = True,
        notes: Sequence[str] = (),
    ) -> None:
        self.named, self.others = list(named), [solver for solver in solvers if solver not in named]
        self._finding, self._height, self._of_metric = finding, height, of_metric
        self.figure = Figure(figsize=(WIDTH, height * len(columns) + 1.0), layout="constrained")
        panels = self.figure.subplots(len(columns), 1, sharex=same_x, squeeze=False)[:, 0]
        self.axes: dict[str, Axes] = dict(zip(columns, panels, strict=True))
        for column, axes in self.axes.items():
            axes.set_title(column, loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True, steps=[1, 2, 5, 10]))
            axes.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
        panels[-1].set_xlabel(xlabel)
        if len(panels) == 1:
            panels[0].set_ylabel(ylabel)
        else:
            self.figure.supylabel(ylabel, fontsize=8)
        put_note(self.figure, " ".join(filter(None, notes)))

    def draw(self, draw: Draw) -> Figure:
        """Draw every solver in its panels, then title and legend, and return the figure."""
        for column, axes in self.axes.items():
            for number, solver in enumerate(self.named):
                draw(axes, column, Look(solver, number))
            for solver in self.others:
                draw(axes, column, Look(solver, None))
            if n := len(self.others):
                axes.plot([], [], color=FAINT, label=f"{n} other{'s'[: n != 1]}")
            if self._of_metric:
                widen(axes)
        panels = list(self.axes.values())
        put_title(self.figure, self._finding, panels[0])
        fit_height(self.figure, panels[0], self._height)
        return self.figure


LABEL_SIZE = 6
LABEL_LENGTH = 36
"""Characters of a line of a label of a row."""

ROW, LINE = 0.13, 0.1
"""Inches of a row, and of each further line of its label."""


def rows_figure(labels: Sequence[str], beside: float) -> tuple[Figure, Axes, Axes, Vector]:
    """Return a figure with a row for each label, its axes, smaller ones beside them, and the centres of the rows.

    `beside` is the width of the second axes as a share of the first; heights are in inches from the top.
    """
    lines = [fill(label, LABEL_LENGTH) for label in labels]
    heights = np.array([ROW + LINE * text.count("\n") for text in lines])
    figure = Figure(figsize=(WIDTH, heights.sum() + 1.0), layout="constrained")
    axes, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.0, beside))
    centres = np.cumsum(heights) - heights / 2.0
    axes.set_yticks(centres, lines, fontsize=LABEL_SIZE)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(heights.sum(), 0.0)
    right.set_axis_off()
    return figure, axes, right, centres

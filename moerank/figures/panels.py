"""Panels for figures of many solvers, divided by family, with the lines of other panels in pale grey."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.typing import LineStyleType
from numpy.typing import ArrayLike

from moerank.arrays import Mask, Vector
from moerank.figures.style import WIDTH, Style, fit_height, put_legend, put_note
from moerank.solvers import BASES, FAMILIES, ablations
from moerank.solvers import solvers as solver_table

__all__ = ["FEW_LINES", "MOST_LINES", "TITLES", "Look", "Panels", "by_family", "family_of", "solver_style"]

MOST_LINES = 9
"""Largest number of lines in a panel that readers can distinguish."""

FEW_LINES = 5
"""Largest number of lines of families that share a panel."""

# Okabe and Ito (2008) without yellow, which is faint on white; markers and dashes distinguish solvers in grey, too.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
DASHES: tuple[LineStyleType, ...] = (
    *("-", "--", "-.", ":"),
    *((0, (5, 1, 1, 1, 1, 1)), (0, (9, 2)), (0, (1, 3)), (0, (6, 1, 2, 1))),
)
FAINT = "0.84"

GIVEN = "given"
"""Family of solvers that are not in the table."""

TITLES: dict[str, str] = {**dict(FAMILIES.items()), GIVEN: "Given in Python"}
"""Titles of families in panels and legends."""

PAD = 0.05
"""Inches between rows."""

THIN = 1e-3
"""Inches of a row for a title or a legend above it."""


def solver_style(number: int) -> Style:
    """Return the colour, the marker and the dashes of a solver by its number in a panel; 616 differ."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def family_of(solver: str) -> str:
    """Return the family of a solver by its label; that of a Python object, which no table has, is "given"."""
    entry = solver_table().get(solver.partition("[")[0])
    return GIVEN if entry is None else entry.family


def by_family(solvers: Sequence[str], together: int = MOST_LINES) -> dict[str, list[str]]:
    """Divide solvers into panels of at most `MOST_LINES`, by their titles.

    Up to `together` solvers share one panel with the title "". More are divided by family: small neighbours among
    wrapper, filter and embedded share a panel, MOFSRank and its ablations have their own if that needs no more panels,
    and large families are cut into equal parts.

    Examples
    --------
    >>> by_family(["gas", "fsmrank"])
    {'': ['gas', 'fsmrank']}
    """
    if len(solvers) <= together:
        return {"": list(solvers)}
    members_of = {family: [solver for solver in solvers if family_of(solver) == family] for family in FAMILIES}
    searches = members_of["evolutionary"]
    panels = [(FAMILIES["evolutionary"], searches)]
    parts = {BASES[0], *ablations()}
    own = [solver for solver in searches if solver.partition("[")[0] in parts]
    rest = [solver for solver in searches if solver not in own]
    if _n_parts(own) + _n_parts(rest) == _n_parts(searches) > 1:
        panels = [("MOFSRank and its ablations", own), ("MOFSRank with other searches", rest)]
    neighbours: list[tuple[str, list[str]]] = []
    for family in ("wrapper", "filter", "embedded"):
        mine = members_of[family]
        if neighbours and mine and len(neighbours[-1][1]) + len(mine) <= FEW_LINES:
            title, members = neighbours.pop()
            neighbours.append((f"{title}, {family}", members + mine))
        elif mine:
            neighbours.append((FAMILIES[family], mine))
    divided: dict[str, list[str]] = {}
    given = [solver for solver in solvers if family_of(solver) == GIVEN]
    for title, members in [*panels, *neighbours, (FAMILIES["ranker"], members_of["ranker"]), (TITLES[GIVEN], given)]:
        n_parts = _n_parts(members)
        for part in range(n_parts):
            numbered = f"{title}, {part + 1} of {n_parts}" if n_parts > 1 else title
            divided[numbered] = members[part * len(members) // n_parts : (part + 1) * len(members) // n_parts]
    return divided


def _n_parts(members: Sequence[str]) -> int:
    """Return the number of panels for these solvers."""
    return -(-len(members) // MOST_LINES)


@dataclass(frozen=True)
class Look:
    """Look of a solver in a panel, which is small if it is one of many.

    The number is its place in the panel, or None for a line behind those of another panel.
    """

    label: str
    number: int | None
    small: bool = False

    @property
    def faint(self) -> bool:
        """Whether the line is drawn only for comparison."""
        return self.number is None

    @property
    def colour(self) -> str:
        """Colour of the line."""
        return FAINT if self.number is None else COLOURS[self.number % len(COLOURS)]

    def plot(self, axes: Axes, x: ArrayLike, y: ArrayLike, **changes: Any) -> None:
        """Draw a line with some markers, at other places than those of the next solver."""
        x, y = np.asarray(x, float), np.asarray(y, float)
        if self.number is None:
            kept = _corners(y)
            axes.plot(x[kept], y[kept], drawstyle=changes.get("drawstyle", "default"))  # for `_join`
            return
        step = max(1, len(x) // (5 if self.small else 8))
        style = {**solver_style(self.number), "label": self.label, "markevery": (self.number % step, step)}
        if self.small:
            style |= {"markersize": 2.6, "linewidth": 0.8}
        axes.plot(x, y, **{**style, **changes})


def _corners(y: Vector) -> Mask:
    """Mark the points of a line that are needed to draw it: all but those inside a level piece."""
    level = np.zeros(len(y), bool)
    level[1:-1] = (y[1:-1] == y[:-2]) & (y[1:-1] == y[2:])
    return ~level


Draw: TypeAlias = Callable[[Axes, str, Look], None]
"""``draw(axes, column, look)`` draws a solver into the panel of a column."""


def _join(axes: Axes) -> None:
    """Join all lines into a faint one with gaps, because a vector file describes the look of each line."""
    lines = list(axes.lines)
    if lines:
        points = [np.column_stack([*line.get_data()]).astype(float) for line in lines]
        joined = np.concatenate([part for line in points for part in (line, [[np.nan, np.nan]])])
        for line in lines:
            line.remove()
        style: Style = {"color": FAINT, "linewidth": 0.5, "zorder": 0.5, "label": "_others"}
        axes.plot(*joined.T, drawstyle=lines[0].get_drawstyle(), **style)


class Panels:
    """Frame of a figure of several solvers, with `axes` by group and column.

    The panels of a single group, see `by_family`, are below each other, under its legend. Several groups have a row of
    panels each, below their legend; the panels of a column share their axes, and show the lines of other groups in pale
    grey. `columns` are the titles of the panels of a group, `height` is in inches, `same_x` tells whether all columns
    have the same x axis, and `strip` is the height of an additional last row, whose axes are `strip`.
    """

    def __init__(
        self,
        groups: Mapping[str, Sequence[str]],
        columns: Sequence[str],
        *,
        height: float,
        xlabel: str,
        ylabel: str,
        same_x: bool = True,
        notes: Sequence[str] = (),
        strip: float = 0.0,
    ) -> None:
        self.groups, self.columns, self.height = groups, columns, height
        self.many = len(groups) > 1
        # Legends and the name of the x axis stand above thin rows, so that the layout makes room for them.
        heights = [THIN, *([height] * (1 if self.many else len(columns)))] * len(groups)
        heights += [*([THIN] if xlabel else []), *([strip] if strip else [])]
        layout = ConstrainedLayoutEngine(h_pad=PAD / 2.0, w_pad=0.02, hspace=0.0, wspace=0.0)
        self.figure = Figure(figsize=(WIDTH, sum(heights)), layout=layout)
        grid = GridSpec(len(heights), len(columns) if self.many else 1, self.figure, height_ratios=heights)
        self.axes: dict[tuple[str, str], Axes] = {}
        self._legends: dict[str, Axes] = {}
        row = 0
        for title in groups:
            self._legends[title] = self._empty(grid, row)
            for place, column in enumerate(columns):
                here = grid[row + 1, place] if self.many else grid[row + 1 + place, 0]
                self.axes[title, column] = self._panel(here, column, same_x=same_x)
            row += 2 if self.many else 1 + len(columns)
        if xlabel:
            self._empty(grid, row).set_title(xlabel, fontsize=8, pad=0.0)
            row += 1
        self.strip = self.figure.add_subplot(grid[row, :], sharey=next(iter(self.axes.values()))) if strip else None
        self._inner_labels(same_x=same_x)
        if len(self.axes) == 1:
            next(iter(self.axes.values())).set_ylabel(ylabel)
        else:
            self.figure.supylabel(ylabel, fontsize=8)
        put_note(self.figure, " ".join(filter(None, notes)))

    def draw(self, draw: Draw) -> None:
        """Draw every solver in its panels, and those of the other groups behind; the strip must be drawn before."""
        for (title, column), axes in self.axes.items():
            for other, labels in self.groups.items():
                if other != title:
                    for label in labels:
                        draw(axes, column, Look(label, None))
            _join(axes)
            for number, label in enumerate(self.groups[title]):
                draw(axes, column, Look(label, number, self.many))
        for title, place in self._legends.items():
            put_legend(place, self.axes[title, self.columns[0]], title)
        fit_height(self.figure, next(iter(self.axes.values())), self.height)

    def _empty(self, grid: GridSpec, row: int) -> Axes:
        axes = self.figure.add_subplot(grid[row, :])
        axes.set_axis_off()
        return axes

    def _panel(self, here: SubplotSpec, column: str, *, same_x: bool) -> Axes:
        above = next((axes for (_, name), axes in self.axes.items() if name == column), None)
        first = next(iter(self.axes.values()), None)
        axes = self.figure.add_subplot(here, sharex=first if same_x else above, sharey=above)
        if len(self.columns) > 1 and above is None:
            axes.set_title(column, loc="left", fontsize=7 if self.many else 8)
        axes.xaxis.set_major_locator(
            MaxNLocator(nbins=4 if self.many and len(self.columns) > 1 else 9, integer=True, steps=[1, 2, 5, 10])
        )
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
        if self.many and len(self.columns) > 1:
            axes.tick_params(labelsize=6, pad=1.5)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 1000 else f"{x:g}"))
        return axes

    def _inner_labels(self, *, same_x: bool) -> None:
        """Remove the numbers of x axes above an equal one."""
        last = list(self.groups)[-1], self.columns[-1]
        for title, column in self.axes:
            if (title != last[0]) if self.many else (same_x and column != last[1]):
                self.axes[title, column].tick_params(labelbottom=False)

"""Figures of many solvers in panels, a few in colour and the others in pale grey, and the notes below them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import fill
from zlib import crc32

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import LineStyleType
from moocore import is_nondominated

from moerank.arrays import Bounds, Integers, Matrix, Vector
from moerank.evolution import ALGORITHMS
from moerank.figures import View
from moerank.figures.style import (
    NOTE_SIZE,
    RING,
    Style,
    finish_figure,
    new_figure,
    one_panel,
    put_log_scale,
    put_ticks,
    rename_solvers,
    widen,
)
from moerank.mofsrank.objectives import known_objectives
from moerank.runs.result import Result
from moerank.solvers import FAMILIES, PROMINENT
from moerank.solvers import solvers as solver_table
from moerank.studies.comparison import compare_solvers, name_solvers
from moerank.studies.results import NoResultsError, Results, by_validation

# Largest number of solvers with a colour, as many as readers can distinguish at a glance.
MAX_LINES = 6

# Okabe and Ito (2008) without yellow, which is faint on white; markers and dashes distinguish solvers in grey, too.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
DASHES: tuple[LineStyleType, ...] = (
    *("-", "--", "-.", ":"),
    *((0, (5, 1, 1, 1, 1, 1)), (0, (9, 2)), (0, (1, 3)), (0, (6, 1, 2, 1))),
)
FAINT = "0.8"


# Searches whose colours differ from each other.
SEARCHES = ("staircase", "nsga2", "daea", "sparseea", "prdh", "mffs", "moead")

# Looks that differ without colour.
N_LOOKS = len(MARKERS) * len(DASHES)


def fixed_looks() -> dict[str, int]:
    """Return the index of the look that a solver or search by name has in all figures and reports."""
    searches = list(dict.fromkeys([*SEARCHES, *ALGORITHMS]))
    solvers = list(dict.fromkeys([*PROMINENT, *solver_table()]))
    return {name: names.index(name) for names in (searches, solvers) for name in names}


def assign_looks(solvers: Sequence[str]) -> dict[str, int]:
    """Return the index of the look of each solver of a figure.

    The search for a free look starts at that of `fixed_looks`, or at a digest of the name. Names of `fixed_looks` come
    first. Each solver takes the next look with a colour that the figure does not use yet, as long as there is one.
    """
    fixed = fixed_looks()
    looks: dict[str, int] = {}
    for solver in sorted(solvers, key=lambda solver: fixed.get(solver, N_LOOKS)):
        start = fixed.get(solver, crc32(solver.encode()))
        colours = {look % len(COLOURS) for look in looks.values()}
        candidates = [(start + step) % N_LOOKS for step in range(N_LOOKS)]
        free = [look for look in candidates if look not in looks.values()]
        looks[solver] = next((look for look in free if look % len(COLOURS) not in colours), free[0])
    return looks


def solver_style(look: int) -> Style:
    """Return the colour, marker and dashes of a look; there are 616 combinations."""
    return {
        "color": COLOURS[look % len(COLOURS)],
        "marker": MARKERS[look % len(MARKERS)],
        "linestyle": DASHES[look % len(DASHES)],
    }


def best_of_families(results: Results, solvers: Sequence[str]) -> list[str]:
    """Return all solvers if they are at most `MAX_LINES`, else the best of each family by validation.

    Solvers given as Python objects are a family of their own.
    """
    if len(solvers) <= MAX_LINES:
        return list(solvers)
    results = results.among(solvers)
    validation = results.means()[0][f"validation {results.metric}"]
    ranked = by_validation(results)
    unranked = {*validation.index} - {*ranked}
    ranked += sorted(unranked, key=lambda solver: (-validation[solver], solver))
    table = solver_table()
    best: dict[str, str] = {}
    for solver in ranked:
        entry = table.get(solver.partition("[")[0])
        best.setdefault("given" if entry is None else entry.family, solver)
    return [best[family] for family in [*FAMILIES, "given"] if family in best]


@dataclass(frozen=True)
class Curve:
    """A line, or points, of a solver in a panel."""

    x: Sequence[float] | Vector
    y: Sequence[float] | Vector
    band: tuple[Vector, Vector] | None = None  # the lower and upper ends at `x`
    style: Style = field(default_factory=dict)  # properties that differ from the look of the solver
    ring: tuple[float, float] | None = None  # the point of the chosen member
    ring_label: str = "chosen"
    drops: bool = False  # True if a dotted line leads from x = 1 to each point
    has_grey: bool = True  # True if it is also drawn for a solver without a colour


@dataclass(frozen=True)
class Panel:
    """Curves of several solvers over one pair of axes."""

    curves: Mapping[str, Sequence[Curve]]  # by solver
    title: str = ""
    references: Sequence[Curve] = ()  # curves with a style of their own, drawn first
    limits: Bounds | None = None  # of the y axis
    log_axes: str = ""  # the logarithmic ones among "xy"


@dataclass(frozen=True, kw_only=True)
class Panels:
    """Description of a figure of several solvers, with panels from top to bottom; `draw_panels` draws it.

    `coloured` solvers have a colour, the others are grey. `height` is that of a panel in inches, and `labels` belong to
    the x and y axes. All panels share the x axis if `same_x`. If `is_metric`, `style.widen` widens the y axes.
    """

    title: str
    panels: Sequence[Panel]
    coloured: Sequence[str]
    height: float
    labels: tuple[str, str]
    notes: Sequence[str] = ()
    same_x: bool = True
    is_metric: bool = True


def draw_panels(frame: Panels) -> Figure:
    """Draw the panels with one legend, the title and the notes."""
    n_panels = len(frame.panels)
    figure = new_figure(frame.height * n_panels + 1.0)
    column = figure.subplots(n_panels, 1, sharex=frame.same_x, squeeze=False)[:, 0]
    for axes in column:  # before any of them is drawn, because they may share the x axis
        put_ticks(axes, "x", 9)
        put_ticks(axes, "y", 4, integer=False)
    for axes, panel in zip(column, frame.panels, strict=True):
        _draw_panel(axes, panel, frame)
        if frame.is_metric:
            widen(axes)
    xlabel, ylabel = frame.labels
    column[-1].set_xlabel(xlabel)
    if n_panels == 1:
        column[0].set_ylabel(ylabel)
    else:
        figure.supylabel(ylabel, fontsize=8)
    note = " ".join(filter(None, frame.notes))
    return finish_figure(figure, column[0], frame.height, frame.title, note, column[0])


def _draw_panel(axes: Axes, panel: Panel, frame: Panels) -> None:
    axes.set_title(panel.title, loc="left")
    for axis in panel.log_axes:
        values = [getattr(curve, axis) for curves in panel.curves.values() for curve in curves]
        put_log_scale(axes, np.concatenate([[], *values]), axis)
    if panel.limits:
        axes.set_ylim(*panel.limits)
    for curve in panel.references:
        axes.plot(curve.x, curve.y, **curve.style)
    looks = assign_looks(frame.coloured)
    for solver in frame.coloured:
        # A solver with a colour needs a line for the legend.
        for curve in panel.curves.get(solver, [Curve([], [])]):
            _draw_curve(axes, curve, solver, looks[solver])
    solvers = dict.fromkeys(solver for panel in frame.panels for solver in panel.curves)
    greys = [solver for solver in solvers if solver not in looks]
    for solver in greys:
        for curve in panel.curves.get(solver, ()):
            if curve.has_grey:
                axes.plot(
                    curve.x,
                    curve.y,
                    label=f"_{solver}",
                    color=FAINT,
                    linewidth=0.5,
                    zorder=0.5,
                    marker="o" if np.size(curve.x) == 1 else "",
                    markersize=2.0,
                    drawstyle=curve.style.get("drawstyle"),
                )
    if greys:
        plural = "" if len(greys) == 1 else "s"
        markers = {line.get_marker() for line in axes.lines[-len(greys) :]}
        kind = "o" if markers == {"o"} else "-"
        label = f"{len(greys)} other{plural}"
        axes.plot([], [], kind, color=FAINT, markersize=2.0, label=label)


def _draw_curve(axes: Axes, curve: Curve, solver: str, look: int) -> None:
    """Draw a curve with a few markers, offset from those of the next solver."""
    style = solver_style(look)
    colour = style["color"]
    if curve.band:
        axes.fill_between(
            curve.x,
            *curve.band,
            color=colour,
            alpha=0.15,
            linewidth=0,
            step="post" if "drawstyle" in curve.style else None,
        )
    spacing = max(1, np.size(curve.x) // 8)
    style |= {"label": solver, "markevery": (look % spacing, spacing)}
    axes.plot(curve.x, curve.y, **style | curve.style)
    if curve.ring:
        labels = {line.get_label() for line in axes.lines}
        hidden = "_" if curve.ring_label in labels else ""  # the legend has one ring
        axes.plot(*curve.ring, label=hidden + curve.ring_label, **RING)
    if curve.drops:
        axes.hlines(curve.y, 1.0, curve.x, color=colour, linewidth=0.5, linestyle=":")


# Longest line of a row's label, in characters.
LABEL_LENGTH = 36

# Height of a row, and of each further line of its label, in inches.
ROW, LINE = 0.13, 0.1


def rows_figure(labels: Sequence[str]) -> tuple[Figure, Axes, Vector]:
    """Return a figure with a row for each label, its axes, and the centres of the rows in inches from the top."""
    lines = [fill(rename_solvers(label), LABEL_LENGTH) for label in labels]
    heights = np.array([ROW + LINE * text.count("\n") for text in lines])
    total = max(heights.sum(), ROW)  # without a label as well
    figure, axes = one_panel(total + 1.0)
    centres = np.cumsum(heights) - heights / 2.0
    axes.set_yticks(centres, lines, fontsize=NOTE_SIZE)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(total, 0.0)
    return figure, axes, centres


def farthest_from_first(results: Results) -> list[str]:
    """Return at most `MAX_LINES` solvers: the first one, and those whose hypervolumes differ most from its own."""
    reference, *rivals = results.solvers
    if len(rivals) < MAX_LINES:
        return results.solvers
    frame = compare_solvers(results, "hypervolume", reference).frame
    farthest = frame["difference"].abs().nlargest(MAX_LINES - 1).index.sort_values()
    return [reference, *frame.loc[farthest, "solver"]]


def error_note(results: Results, metric: str) -> str:
    """Return a sentence with the standard errors over folds; "" if there is a single fold."""
    errors = results.means()[1][f"test {metric}"].dropna()
    if errors.empty:
        return ""
    span = " to ".join(sorted({f"{errors.min():.3f}", f"{errors.max():.3f}"}))
    return f"Standard error over folds of the test {metric} of chosen rankers: {span}."


def fronts_of_fold(view: View) -> tuple[dict[str, Result], list[str]]:
    """Return the first run on the selected fold of each solver that offers several sizes, and two sentences.

    The sentences name the solvers that did not run on the fold, and those that offer a single size. If there is no run,
    a NoResultsError is raised.
    """
    fold = view.fold
    runs, one_sized = {}, []
    for solver, run in view.results.first_runs(fold).items():
        if len(run.front) > 1:
            runs[solver] = run
        else:
            one_sized.append(solver)
    if not runs:
        raise NoResultsError(
            f"no solver offers more than one size on fold {fold} of {view.problem_name}"
        )
    absent = [solver for solver in view.results.solvers if solver not in {*runs, *one_sized}]
    return runs, [
        name_solvers("Not run", absent),
        name_solvers("Not drawn, because they offer a single size", one_sized),
    ]


def select_goal(view: View) -> tuple[View, str]:
    """Return the view of the goal of most runs, see `Results.alike`, and a sentence that names the other solvers."""
    (goal, results), *rest = view.results.alike().items()
    solvers = [solver for _, runs in rest for solver in runs.solvers]
    note = name_solvers(f"Not drawn, because they do not minimise {goal}", solvers)
    return replace(view, results=results), note


def box_note(result: Result, stages: Collection[str] = ()) -> str:
    """Return a sentence that names the box and the reference point of a run's hypervolumes."""
    low = ", ".join(f"{name} {end:g}" for name, (end, _) in result.box.items())
    high = ", ".join(f"{name} {end:g}" for name, (_, end) in result.box.items())
    pairs = ""
    if "instance_selection" in stages:
        pairs = " (instance selection: all pairs, error 1)"
    return f"Hypervolume: share of the box from {low} to the reference point {high}{pairs}."


def objectives_note(results: Results) -> str:
    """Return a sentence that names the two objectives of a figure if the search had more; else ""."""
    if not results.further_objectives:
        return ""
    searched = ", ".join(results.objectives)
    return f"Searched: {searched}. Shown: number of features and {results.metrics[0]}."


def has_log_axis(objective: str) -> bool:
    """Return whether the axis of an objective is logarithmic; False for one that is not installed here."""
    return getattr(known_objectives().get(objective), "log_axis", False)


def axis_title(objective: str, metric: str) -> str:
    """Return the label of an objective's axis; `metric` is the metric of the error.

    Examples
    --------
    >>> axis_title("error", "MAP"), axis_title("lead_time", "MAP")
    ('MAP', 'Lead time')
    """
    if objective == "error":
        return metric  # figures show it upwards
    words = objective.replace("_", " ").capitalize()  # of one that is not installed here
    return getattr(known_objectives().get(objective), "title", words)


def non_dominated(points: Matrix) -> Integers:
    """Return the rows of non-dominated points (n_members, n_objectives), with duplicates, by the first objective."""
    rows = np.flatnonzero(is_nondominated(points, keep_weakly=True))
    return rows[np.argsort(points[rows, 0], kind="stable")]


def view_of_run(result: Result) -> View:
    """Return the view of a single run."""
    return View(Results([result]), (), (), result.fold, result.metric)

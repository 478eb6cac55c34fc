"""Panels for figures of many solvers, a few in colour and the others in pale grey; titles and notes of figures."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import LineStyleType
from moocore import is_nondominated
from numpy.typing import ArrayLike

from moerank.arrays import Integers, Matrix, Vector
from moerank.evolution import ALGORITHMS
from moerank.figures import View
from moerank.figures.style import (
    NOTE_SIZE,
    WIDTH,
    Style,
    finished,
    one_panel,
    put_ticks,
    renamed,
    widen,
)
from moerank.mofsrank.objectives import known_objectives
from moerank.runs.result import Result
from moerank.solvers import FAMILIES
from moerank.solvers import solvers as solver_table
from moerank.statistics import LEVEL, holm, signed_rank_p
from moerank.studies.results import NoResultsError, Results, by_validation

# Largest number of solvers with a colour, as many as readers can distinguish at a glance.
MOST_LINES = 6

# Okabe and Ito (2008) without yellow, which is faint on white; markers and dashes distinguish solvers in grey, too.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
DASHES: tuple[LineStyleType, ...] = (
    *("-", "--", "-.", ":"),
    *((0, (5, 1, 1, 1, 1, 1)), (0, (9, 2)), (0, (1, 3)), (0, (6, 1, 2, 1))),
)
FAINT = "0.8"


# Solvers, and searches by name, whose colours differ from each other.
PROMINENT = (
    "mofsrank",
    "mofsrank-paper",
    "fsmrank",
    "rankrls",
    "ranksvm-primal",
    "lambdamart",
    "gas-e",
)
SEARCHES = ("staircase", "nsga2", "daea", "sparseea", "prdh", "mffs", "moead")

# Looks that differ without colour.
N_LOOKS = len(MARKERS) * len(DASHES)


def fixed_looks() -> dict[str, int]:
    """Return the number of the look that a solver or search by name has in all figures and reports."""
    groups = (dict.fromkeys([*SEARCHES, *ALGORITHMS]), dict.fromkeys([*PROMINENT, *solver_table()]))
    return {name: number for group in groups for number, name in enumerate(group)}


def looks_of(solvers: Sequence[str]) -> dict[str, int]:
    """Return the number of the look of each solver of a figure.

    A name in `fixed_looks` begins with its own, the first names first, and others with a digest of the name. Each takes
    the next one with a colour that the figure does not use, while there is one.
    """
    fixed = fixed_looks()
    looks: dict[str, int] = {}
    for solver in sorted(solvers, key=lambda solver: fixed.get(solver, N_LOOKS)):
        numbers = (fixed.get(solver, crc32(solver.encode())) + np.arange(N_LOOKS)) % N_LOOKS
        colours = {number % len(COLOURS) for number in looks.values()}
        free = [n for n in numbers.tolist() if n not in looks.values()]
        looks[solver] = next((n for n in free if n % len(COLOURS) not in colours), free[0])
    return looks


def solver_style(number: int) -> Style:
    """Return the colour, marker and dashes of a look; there are 616 combinations."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def best_of_families(results: Results, solvers: Sequence[str]) -> list[str]:
    """Return all solvers if they are at most `MOST_LINES`, else the best of each family by validation.

    Solvers given as Python objects are a family of their own.
    """
    if len(solvers) <= MOST_LINES:
        return list(solvers)
    among = results.among(solvers)
    validation = among.means()[0][f"validation {among.metric}"]
    selecting = by_validation(among)
    others = sorted(
        {*validation.index} - {*selecting}, key=lambda solver: (-validation[solver], solver)
    )
    table, best = solver_table(), dict.fromkeys([*FAMILIES, "given"], "")
    for solver in reversed([*selecting, *others]):
        entry = table.get(solver.partition("[")[0])
        best["given" if entry is None else entry.family] = solver
    return list(filter(None, best.values()))


@dataclass(frozen=True)
class Look:
    """Look of a solver in the panel of a column, by its number (`looks_of`), which is None for a grey solver."""

    axes: Axes
    column: str
    label: str
    number: int | None

    @property
    def faint(self) -> bool:
        """Whether the line is grey, drawn only for comparison."""
        return self.number is None

    @property
    def colour(self) -> str:
        """The colour of the line."""
        return FAINT if self.number is None else COLOURS[self.number % len(COLOURS)]

    def plot(self, x: ArrayLike, y: ArrayLike, **changes: Any) -> None:
        """Draw a line with a few markers, offset from those of the next solver; grey lines have no markers."""
        x, y = np.asarray(x, float), np.asarray(y, float)
        if self.number is None:
            faint: Style = {"color": FAINT, "linewidth": 0.5, "zorder": 0.5, "markersize": 2.0}
            faint |= {
                "marker": "o" if len(x) == 1 else "",
                "drawstyle": changes.get("drawstyle", "default"),
            }
            self.axes.plot(x, y, label=f"_{self.label}", **faint)
            return
        step = max(1, len(x) // 8)
        style = {
            **solver_style(self.number),
            "label": self.label,
            "markevery": (self.number % step, step),
        }
        self.axes.plot(x, y, **{**style, **changes})

    def fill(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, **changes: Any) -> None:
        """Draw a band in the colour of the line; grey lines have none."""
        if self.number is not None:
            self.axes.fill_between(
                x, low, high, color=self.colour, alpha=0.15, linewidth=0, **changes
            )


def panels_figure(
    draw: Callable[[Look], None],
    solvers: Sequence[str],
    named: Sequence[str],
    columns: Sequence[str] = ("",),
    *,
    finding: str,
    height: float,
    labels: tuple[str, str],
    same_x: bool = True,
    of_metric: bool = True,
    notes: Sequence[str] = (),
    prepare: Callable[[Axes, str], None] | None = None,
) -> Figure:
    """Return a figure of several solvers with one panel per column, stacked, and one legend.

    `prepare` is called for each panel, then `draw` for each solver in it. Solvers in `named` have a colour; the others
    are grey. `finding` is the title of the figure, `height` that of a panel in inches, and `labels` belong to the x and
    y axes. All panels share the x axis if `same_x`. If `of_metric`, `style.widen` widens the y axes.
    """
    figure = Figure(figsize=(WIDTH, height * len(columns) + 1.0), layout="constrained")
    panels = figure.subplots(len(columns), 1, sharex=same_x, squeeze=False)[:, 0]
    others, looks = [solver for solver in solvers if solver not in named], looks_of(named)
    for axes in panels:  # before any of them is prepared, because they may share the x axis
        put_ticks(axes, "x", 9)
        put_ticks(axes, "y", 4, integer=False)
    for column, axes in zip(columns, panels, strict=True):
        axes.set_title(column, loc="left")
        if prepare is not None:
            prepare(axes, column)
        for solver in [*named, *others]:
            draw(Look(axes, column, solver, looks.get(solver)))
        if n := len(others):
            dots = {line.get_marker() for line in axes.lines[-n:]} == {"o"}
            axes.plot(
                [],
                [],
                "o" if dots else "-",
                color=FAINT,
                markersize=2.0,
                label=f"{n} other{'s'[: n != 1]}",
            )
        if of_metric:
            widen(axes)
    panels[-1].set_xlabel(labels[0])
    if len(panels) == 1:
        panels[0].set_ylabel(labels[1])
    else:
        figure.supylabel(labels[1], fontsize=8)
    return finished(figure, panels[0], height, finding, " ".join(filter(None, notes)), panels[0])


# Longest line of a row's label, in characters.
LABEL_LENGTH = 36

# Height of a row, and of each further line of its label, in inches.
ROW, LINE = 0.13, 0.1


def rows_figure(labels: Sequence[str]) -> tuple[Figure, Axes, Vector]:
    """Return a figure with a row for each label, its axes, and the centres of the rows in inches from the top."""
    lines = [fill(renamed(label), LABEL_LENGTH) for label in labels]
    heights = np.array([ROW + LINE * text.count("\n") for text in lines])
    total = max(heights.sum(), ROW)  # also without a label
    figure, axes = one_panel(total + 1.0)
    centres = np.cumsum(heights) - heights / 2.0
    axes.set_yticks(centres, lines, fontsize=NOTE_SIZE)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(total, 0.0)
    return figure, axes, centres


# Largest number of solvers that a sentence names.
MOST_NAMED = 4


def named(why: str, solvers: Collection[str]) -> str:
    """Return a sentence on why some solvers are not drawn, with their names or, if many, their number; else "".

    Examples
    --------
    >>> named("No search", ["gas", "frank"]), named("No search", "abcdefg")
    ('No search: gas, frank.', 'No search: 7 solvers.')
    """
    names = ", ".join(solvers) if len(solvers) <= MOST_NAMED else f"{len(solvers)} solvers"
    return f"{why}: {names}." if solvers else ""


def apart_from_first(ends: Mapping[str, pd.Series], *, largest: bool) -> tuple[list[str], str]:
    """Return the first solver with those that differ from it significantly in training, and a sentence on the test.

    `ends` has one value of each run, by fold and seed. The signed-rank test pairs the runs that both solvers have, and
    Holm's method adjusts the p values for the number of solvers. At most `MOST_LINES` solvers are returned, those with
    the largest differences; if there are no more than that, all are returned.

    Examples
    --------
    >>> runs = pd.Series(range(9))
    >>> apart_from_first({"a": runs, "b": runs + 1, "c": runs[::-1].reset_index(drop=True)}, largest=True)[1]
    'Against a in training: 1 better, 0 worse, 1 undecided (signed-rank test of 9 runs, Holm)'
    """
    first, *others = ends
    if not others:
        return [first], f"Runs of {first}"
    ahead = [
        (ends[solver] - ends[first]).dropna() * (1.0 if largest else -1.0) for solver in others
    ]
    n_runs = max(map(len, ahead))
    if len(others) * 2.0 ** (1 - n_runs) > LEVEL:
        return list(ends)[
            :MOST_LINES
        ], f"{n_runs} run{'s'[: n_runs != 1]} of each search: too few to tell a difference"
    p = holm(
        [
            signed_rank_p(ends[one][d.index], ends[first][d.index])
            for one, d in zip(others, ahead, strict=True)
        ]
    )
    steps = np.where(
        p <= LEVEL, [difference.median() or difference.mean() for difference in ahead], 0.0
    )
    farthest = [i for i in np.argsort(-np.abs(steps), kind="stable")[: MOST_LINES - 1] if steps[i]]
    drawn = (
        [first, *(others[i] for i in sorted(farthest))] if len(ends) > MOST_LINES else list(ends)
    )
    counts = (
        f"{(steps > 0).sum()} better, {(steps < 0).sum()} worse, {(steps == 0).sum()} undecided"
    )
    return drawn, f"Against {first} in training: {counts} (signed-rank test of {n_runs} runs, Holm)"


def errors_noted(results: Results, metric: str) -> str:
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
    fold = view.fold_of(view.results)
    first = view.results.first_runs(fold)
    runs = {solver: run for solver, run in first.items() if len(run.front) > 1}
    if not runs:
        raise NoResultsError(f"no solver offers more than one size on fold {fold} of {view.where}")
    lacking = named("Not run", [solver for solver in view.results.solvers if solver not in first])
    return runs, [
        lacking,
        named("Not drawn, because they offer a single size", [s for s in first if s not in runs]),
    ]


def same_goal(view: View) -> tuple[View, str]:
    """Return the view of the goal of most runs, see `Results.alike`, and a sentence that names the other solvers."""
    (goal, alike), *others = view.results.alike().items()
    apart = [solver for _, results in others for solver in results.solvers]
    return replace(view, results=alike), named(
        f"Not drawn, because they do not minimise {goal}", apart
    )


def boxed(result: Result, stages: Collection[str]) -> str:
    """Return a sentence on the box of the hypervolumes of a run and their reference point."""
    low, high = (
        ", ".join(f"{name} {ends[i]:g}" for name, ends in result.box.items()) for i in (0, 1)
    )
    pairs = " (instance selection: all pairs, error 1)" * ("instance_selection" in stages)
    return f"Hypervolume: share of the box from {low} to the reference point {high}{pairs}."


def two_of(results: Results) -> str:
    """Return a sentence on which two objectives a figure shows if the search had more; else ""."""
    if not results.further_objectives:
        return ""
    return f"Searched: {', '.join(results.objectives)}. Shown: number of features and {results.metrics[0]}."


def title_of(objective: str, metric: str) -> str:
    """Return the label of an objective's axis; `metric` is the metric of the error.

    Examples
    --------
    >>> title_of("error", "MAP"), title_of("lead_time", "MAP")
    ('MAP', 'Lead time')
    """
    if objective == "error":
        return metric  # figures show it upwards
    if objective in (objectives := known_objectives()):
        return objectives[objective].title
    return objective.replace("_", " ").capitalize()


def non_dominated(points: Matrix) -> Integers:
    """Return the rows of non-dominated points (n_members, n_objectives), with duplicates, by the first objective."""
    rows = np.flatnonzero(is_nondominated(points, keep_weakly=True))
    return rows[np.argsort(points[rows, 0], kind="stable")]

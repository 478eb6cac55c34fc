"""Tables that the commands print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table

from moerank.cli.messages import printable
from moerank.solvers import FAMILIES, SolverEntry

if TYPE_CHECKING:  # these take seconds to load, and the table of solvers needs none
    from moerank.data import DataDescription
    from moerank.data.describe import Drift
    from moerank.studies.comparison import Summary
    from moerank.studies.problem import Problem
    from moerank.studies.result import Member, Result
    from moerank.studies.results import Results
    from moerank.studies.study import Cell


PLAIN_WIDTH = 120
"""Width of tables in files and pipes."""

WIDEST = 30
"""Width up to which columns are not broken."""


def output() -> Console:
    """Return the console of standard output."""
    plain = Console(highlight=False, markup=False, emoji=False)
    if not plain.is_terminal:
        plain.width = PLAIN_WIDTH
    return plain


def say(console: Console, text: str) -> None:
    """Print a paragraph, broken between words on a terminal, and in one line to files and pipes."""
    console.print(printable(text), soft_wrap=not console.is_terminal)


class FittedTable(Table):
    """A table that is divided into parts, one below the other, on terminals that are too narrow for all columns.

    Every part begins with the first column. Columns whose heads share their first line stay together if there is room.
    Control characters in cells are escaped.
    """

    def __init__(self, title: str | None = None, left: Iterable[str] = (), right: Iterable[str] = ()) -> None:
        super().__init__(
            title=None if title is None else printable(title),
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            padding=(0, 0, 0, 1),
            show_edge=False,
            pad_edge=False,
        )
        for head in left:
            self.add_column(printable(head), no_wrap=not self.columns)
        for head in right:
            self.add_column(printable(head), justify="right", no_wrap=not self.columns)

    def add_texts(self, *cells: str, style: str | None = None) -> None:
        """Add a row."""
        self.add_row(*map(printable, cells), style=style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the parts that fit the width of the console."""

        def fits(columns: Sequence[int]) -> bool:
            part = self._part(columns)
            for column in part.columns[1:]:
                column.max_width = WIDEST
            return Measurement.get(console, options.update_width(1_000_000), part).maximum <= options.max_width

        parts = [[0]]
        for _, shared in groupby(range(1, len(self.columns)), self._first_line):
            together = list(shared)
            for columns in [together] if fits([0, *together]) else [[column] for column in together]:
                if len(parts[-1]) > 1 and not fits([*parts[-1], *columns]):
                    parts.append([0])
                parts[-1] += columns
        for number, columns in enumerate(parts):
            if number:
                yield ""
            part = self._part(columns)
            part.title = None if number else self.title
            yield from Table.__rich_console__(part, console, options)

    def _first_line(self, column: int) -> str | int:
        first, lines, _ = str(self.columns[column].header).partition("\n")
        return first if lines else column

    def _part(self, columns: Sequence[int]) -> FittedTable:
        part = copy(self)
        part.columns = [replace(self.columns[column], _index=place) for place, column in enumerate(columns)]
        return part


def description_table(title: str, descriptions: Sequence[DataDescription]) -> FittedTable:
    """Return one column per file and one row per count."""
    columns = [description.as_dict() for description in descriptions]
    table = FittedTable(title, [""], [Path(column.pop("name")).name for column in columns])
    for key in columns[0]:
        table.add_texts(key.replace("_", " "), *(_count(column[key]) for column in columns))
    return table


def drift_table(title: str, drifts: Sequence[Drift]) -> FittedTable:
    """Return one row per feature."""
    table = FittedTable(title, ["feature"], ["PSI", "missing", "range"])
    for drift in drifts:
        missing = " → ".join(f"{share:.1%}" for share in drift.missing)
        ranges = " → ".join("none" if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}" for ends in drift.ranges)
        table.add_texts(drift.name, f"{drift.psi:.3f}", missing, ranges)
    return table


def _count(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{label}: {count:,}" for label, count in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


UNITS = {
    "document": "Instance selection chose among documents.",
    "query": "Instance selection chose among queries.",
}
"""Sentences on instances that are not preference pairs."""

MOST_NAMES = 25
"""Largest number of features named in a sentence."""


def front_table(result: Result) -> FittedTable:
    """Return the members of the front by size, then the baselines, with their values on all parts.

    Members are numbered as in front.csv and --member. Objectives other than the number of features and the error have a
    column each, for the training part.
    """
    several = len(result.front) > 1
    parts = [f"{metric}\n{part}" for metric in result.metrics for part in ("train", "vali", "test")]
    table = FittedTable(
        f"{result.problem}, fold {result.fold}: {result.solver}, seed {result.seed}",
        ["member" if several else ""],
        ["features", *result.further_objectives, *parts],
    )
    digits = len(str(len(result.front)))
    for number, member in enumerate(result.front):
        chosen = number == result.chosen
        mark = " chosen" if chosen else ""
        name = f"{number + 1:>{digits}}{mark}" if several else result.solver
        table.add_texts(name, *_cells(member, result), style="bold" if chosen else None)
    table.add_section()
    for baseline in result.baselines:
        table.add_texts(baseline.name, *_cells(baseline, result))
    return table


def _cells(ranker: Member, result: Result) -> list[str]:
    from moerank.studies.result import PARTS

    further = [f"{ranker.objectives[name]:.4g}" for name in result.further_objectives]
    values = [ranker.scores[part][metric] for metric in result.metrics for part in PARTS]
    return [str(len(ranker.features)), *further, *(f"{value:.4f}" for value in values)]


def chosen_features(result: Result) -> str:
    """Return a sentence that names the chosen features, the largest weight first."""
    best = result.best
    names = result.names(best.features)
    if best.weights is not None:
        by_size = sorted(zip(best.weights, names, strict=True), key=lambda entry: -abs(entry[0]))
        names = [f"{name} ({weight:+.3g})" for weight, name in by_size]
    if len(names) > MOST_NAMES:
        names[MOST_NAMES:] = [f"and {len(names) - MOST_NAMES} more in model.json"]
    with_weights = "" if best.weights is None else " (weight)"
    return f"Chosen {len(best.features)} of {len(result.feature_names)} features{with_weights}: {', '.join(names)}"


def summary_table(summary: Summary) -> FittedTable:
    """Return the means over the folds, with standard errors on the test part, and the published values."""
    from moerank.studies.result import PARTS

    further = list(summary.rows[0].objectives)
    parts = [f"{metric}\n{part}" for metric in summary.metrics for part in ("train", "vali", "test ± s.e.")]
    title = f"{summary.problem}: {summary.solver}, seed {summary.seed}, mean of {len(summary.folds)} folds"
    table = FittedTable(title, [""], ["features", *further, *parts])
    for row in summary.rows:
        cells = [f"{row.n_features:.1f}", *(f"{row.objectives[name]:.4g}" for name in further)]
        for metric in summary.metrics:
            cells += [f"{row.means[part][metric]:.4f}" for part in PARTS]
            cells[-1] += f" ± {row.errors['test'][metric]:.4f}"
        table.add_texts(row.name, *cells)
    table.add_section()
    for entry in summary.published:
        values = [_number(entry.value(metric), 4, absent="–") for metric in summary.metrics]
        cells = [cell for value in values for cell in ("", "", value)]
        table.add_texts(entry.label, _number(entry.features, 1, absent="all"), *([""] * len(further)), *cells)
    return table


def solver_table(entries: Iterable[SolverEntry]) -> FittedTable:
    """Return the table of solvers by family, with the authors of each paper, and an asterisk for recommended ones."""
    table = FittedTable(left=("solver", "family", "selects", "linear", "backend", "needs", "year", "authors"))
    for _, rows in groupby(sorted(entries, key=_family), _family):
        table.add_section()
        for row in rows:
            flags = ("yes" if flag else "no" for flag in (row.selects, row.linear, row.backend))
            authors = row.paper.partition(":")[0]
            name = f"{row.name} *" if row.recommended else row.name
            table.add_texts(name, row.family, *flags, ", ".join(row.needs), str(row.year), authors)
    return table


def _family(entry: SolverEntry) -> int:
    """Return the place of a family in the table; unknown families of other packages are last."""
    return list(FAMILIES).index(entry.family) if entry.family in FAMILIES else len(FAMILIES)


def cell_table(states: Mapping[Cell, str]) -> FittedTable:
    """Return the numbers of finished, failed and open cells of each solver on each problem."""
    kinds = ("finished", "failed", "open")
    table = FittedTable(left=("problem", "solver"), right=("cells", *kinds))
    rows: dict[tuple[str, str], Counter[str]] = {}
    for cell, state in states.items():
        rows.setdefault((cell.problem.name, cell.solver.label), Counter())[state] += 1
    for number, (names, counts) in enumerate([*rows.items(), (("all", ""), Counter(states.values()))]):
        if number == len(rows):
            table.add_section()
        table.add_texts(*names, str(counts.total()), *(str(counts[kind]) for kind in kinds))
    return table


def study_table(problem: Problem, results: Results) -> FittedTable:
    """Return the means of each solver over folds and seeds, with standard errors over folds, and published means."""
    beside = ["published"] * any(entry.solver for entry in problem.published)
    theirs_too = "; published values are means over all folds" * len(beside)
    table = FittedTable(
        f"{problem.name}: test means over folds and seeds ± standard error over folds{theirs_too}",
        ["solver"],
        [
            *("cells", "features", *results.further_objectives),
            *(head for metric in results.metrics for head in (metric, *beside)),
            "seconds",
        ],
    )
    for solver, means in results.means().items():
        cells = [str(means.n_runs), _with_error(*means.mean("n_features"), 1)]
        cells += [_with_error(*means.mean(objective), 4) for objective in results.further_objectives]
        for metric in results.metrics:
            cells += [_with_error(*means.mean(f"test {metric}"), 4)]
            cells += [_number(problem.published_value(solver, metric), 4) for _ in beside]
        table.add_texts(solver, *cells, _with_error(*means.mean("seconds"), 1))
    return table


def _number(value: float | None, digits: int, absent: str = "") -> str:
    return absent if value is None else f"{value:.{digits}f}"


def _with_error(mean: float, error: float, digits: int) -> str:
    """Return the mean over folds and its standard error, if there are several folds."""
    return f"{mean:.{digits}f}" if np.isnan(error) else f"{mean:.{digits}f} ± {error:.{digits}f}"

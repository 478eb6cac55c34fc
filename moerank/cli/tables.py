"""Tables that the commands print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from moerank.cli.messages import printable
from moerank.solvers import FAMILIES, SolverEntry

if TYPE_CHECKING:  # these take seconds to load, and the table of solvers needs none
    from moerank.data import DataDescription
    from moerank.data.describe import Drift
    from moerank.studies.grid import Cell
    from moerank.studies.problem import Problem
    from moerank.studies.result import Member, Result
    from moerank.studies.results import Results
    from moerank.studies.summary import Summary


PLAIN_WIDTH = 1000
"""Columns of files and pipes, in which no row is broken."""


def output() -> Console:
    """Return the console of standard output."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    return console


class TextTable(Table):
    """A table of texts, in which control characters are escaped."""

    def __init__(self, title: str | None = None, left: Iterable[str] = (), right: Iterable[str] = ()) -> None:
        super().__init__(
            title=None if title is None else printable(title),
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            padding=(0, 0, 0, 1),
            pad_edge=False,
        )
        for head in left:
            self.add_column(printable(head), overflow="fold", no_wrap=not self.columns)
        for head in right:
            self.add_column(printable(head), overflow="fold", justify="right")

    def add_texts(self, *cells: str, style: str | None = None) -> None:
        """Add a row."""
        self.add_row(*map(printable, cells), style=style)


def description_table(title: str, descriptions: Sequence[DataDescription]) -> TextTable:
    """Return one column per file and one row per count."""
    columns = [description.as_dict() for description in descriptions]
    table = TextTable(title, [""], [Path(column.pop("name")).name for column in columns])
    for key in columns[0]:
        table.add_texts(key.replace("_", " "), *(_count(column[key]) for column in columns))
    return table


def drift_table(title: str, drifts: Sequence[Drift]) -> TextTable:
    """Return one row per feature."""
    table = TextTable(title, ["feature"], ["PSI", "missing", "range"])
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


def front_table(result: Result) -> TextTable:
    """Return the members of the front by size, then the baselines, with their values on all parts.

    Members are numbered as in front.csv and --member. Objectives other than the number of features and the error have a
    column each, for the training part.
    """
    several = len(result.front) > 1
    parts = [f"{metric}\n{part}" for metric in result.metrics for part in ("train", "vali", "test")]
    table = TextTable(
        f"{result.problem}, fold {result.fold}: {result.solver}, seed {result.seed}",
        ["member" if several else ""],
        ["features", *result.further_objectives, *parts],
    )
    digits = len(str(len(result.front)))
    for number, member in enumerate(result.front):
        chosen = number == result.chosen
        mark = " chosen" if chosen else " cascade" if len(member.steps) > 1 else ""
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


def summary_table(summary: Summary) -> TextTable:
    """Return the means over the folds, with standard errors on the test part, and the published values."""
    from moerank.studies.result import PARTS

    further = list(summary.rows[0].objectives)
    parts = [f"{metric}\n{part}" for metric in summary.metrics for part in ("train", "vali", "test ± s.e.")]
    title = f"{summary.problem}: {summary.solver}, seed {summary.seed}, mean of {len(summary.folds)} folds"
    table = TextTable(title, [""], ["features", *further, *parts])
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


def solver_table(entries: Iterable[SolverEntry]) -> TextTable:
    """Return the table of solvers by family, with the paper of each, and an asterisk for recommended ones."""
    rows: dict[str, list[SolverEntry]] = {family: [] for family in FAMILIES}
    for entry in entries:
        rows.setdefault(entry.family, []).append(entry)
    table = TextTable(left=("solver", "linear", "backend", "needs", "paper"))
    for family, members in rows.items():
        table.add_section()
        table.add_texts(FAMILIES.get(family, family), style="bold")  # type: ignore[call-overload]
        for entry in members:
            first, *others = entry.paper.partition(":")[0].split(", ")
            paper = f"{first} et al. {entry.year}" if others else f"{first} {entry.year}"
            flags = ("yes" if flag else "no" for flag in (entry.linear, entry.backend))
            name = f"{entry.name} *" if entry.recommended else entry.name
            table.add_texts(name, *flags, ", ".join(entry.needs), paper)
    return table


def cell_table(states: Mapping[Cell, str]) -> TextTable:
    """Return the numbers of finished, failed and open cells of each solver on each problem."""
    kinds = ("finished", "failed", "open")
    table = TextTable(left=("problem", "solver"), right=("cells", *kinds))
    rows: dict[tuple[str, str], Counter[str]] = {}
    for cell, state in states.items():
        rows.setdefault((cell.problem.name, cell.solver.label), Counter())[state] += 1
    for number, (names, counts) in enumerate([*rows.items(), (("all", ""), Counter(states.values()))]):
        if number == len(rows):
            table.add_section()
        table.add_texts(*names, str(counts.total()), *(str(counts[kind]) for kind in kinds))
    return table


def study_table(problem: Problem, results: Results) -> TextTable:
    """Return the means of each solver over folds and seeds, with standard errors over folds, and published means."""
    from moerank.studies.summary import External

    published = ["published"] * any(entry.solver for entry in problem.published)
    theirs_too = "; published values are means over all folds" * len(published)
    table = TextTable(
        f"{problem.name}: test means over folds and seeds ± standard error over folds{theirs_too}",
        ["solver"],
        [
            *("cells", "features", *results.further_objectives),
            *(head for metric in results.metrics for head in (metric, *published)),
            "seconds",
        ],
    )
    for solver, means in results.means().items():
        cells = [str(means.n_runs), _with_error(*means.mean("n_features"), 1)]
        cells += [_with_error(*means.mean(objective), 4) for objective in results.further_objectives]
        for metric in results.metrics:
            cells += [_with_error(*means.mean(f"test {metric}"), 4)]
            cells += [_number(problem.published_value(solver, metric), 4) for _ in published]
        table.add_texts(solver, *cells, _with_error(*means.mean("seconds"), 1))
    for entry in problem.published:
        if isinstance(entry, External):
            values = ["" if entry.value(m) is None else _with_error(*entry.with_error(m), 4) for m in results.metrics]
            cells = [cell for value in values for cell in (value, *("" for _ in published))]
            further = [""] * len(results.further_objectives)
            table.add_texts(entry.method, "", _number(entry.features, 1), *further, *cells, "")
    return table


def _number(value: float | None, digits: int, absent: str = "") -> str:
    return absent if value is None else f"{value:.{digits}f}"


def _with_error(mean: float, error: float, digits: int) -> str:
    """Return the mean over folds and its standard error, if there are several folds."""
    return f"{mean:.{digits}f}" if np.isnan(error) else f"{mean:.{digits}f} ± {error:.{digits}f}"

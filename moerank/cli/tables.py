"""What the command line prints: tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from moerank.analysis.summary import Summary
from moerank.data import DataDescription
from moerank.runs.problem import Problem
from moerank.runs.result import PARTS, RunResult, ScoredRanker
from moerank.solvers import SolverEntry
from moerank.statistics import mean_and_error
from moerank.studies.cell import Cell

__all__ = [
    "cell_table",
    "chosen_features",
    "description_table",
    "front_table",
    "output",
    "solver_table",
    "study_table",
    "summary_table",
]

HEADS = {"train": "train", "validation": "vali", "test": "test"}

FAMILIES = ("evolutionary", "wrapper", "filter", "embedded", "ranker")

MOST_NAMES = 25
"""More features than these are not read in a sentence."""

PLAIN_WIDTH = 120
"""Columns where the output is a file or a pipe, which have no width of their own."""


def output() -> Console:
    """Return the console of standard output."""
    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=PLAIN_WIDTH)


def front_table(result: RunResult) -> Table:
    """Return the members of the front by size, then the baselines, with their values on all parts."""
    table = _table(f"{result.problem}, fold {result.fold}: {result.solver}, seed {result.seed}")
    table.add_column("")
    table.add_column("features", justify="right")
    for metric in result.metrics:
        for part in PARTS:
            table.add_column(f"{metric}\n{HEADS[part]}", justify="right")
    for number, member in enumerate(result.front):
        chosen = number == result.chosen
        name = result.solver if len(result.front) == 1 else "chosen" if chosen else "member"
        table.add_row(name, *_cells(member, result), style="bold" if chosen else None)
    table.add_section()
    for baseline in result.baselines:
        table.add_row(baseline.name, *_cells(baseline, result))
    return table


def chosen_features(result: RunResult) -> str:
    """Return a sentence with the names of the chosen features, the largest weight first."""
    best = result.best
    names = result.names(best.features)
    if best.weights is not None:
        by_size = sorted(zip(best.weights, names, strict=True), key=lambda entry: -abs(entry[0]))
        names = [f"{name} ({weight:+.3g})" for weight, name in by_size]
    if len(names) > MOST_NAMES:
        names[MOST_NAMES:] = [f"and {len(names) - MOST_NAMES} more in model.json"]
    with_weights = "" if best.weights is None else " (weight)"
    return f"Chosen {len(best.features)} of {len(result.feature_names)} features{with_weights}: {', '.join(names)}"


def summary_table(summary: Summary) -> Table:
    """Return the means over the folds, with standard errors on the test part, and the published values."""
    table = _table(f"{summary.problem}: {summary.solver}, seed {summary.seed}, mean of {len(summary.folds)} folds")
    table.add_column("")
    table.add_column("features", justify="right")
    for metric in summary.metrics:
        for part in PARTS:
            head = "test ± s.e." if part == "test" else HEADS[part]
            table.add_column(f"{metric}\n{head}", justify="right")
    for row in summary.rows:
        cells = [f"{row.n_features:.1f}"]
        for metric in summary.metrics:
            cells += [_number(row.means[part][metric]) for part in PARTS]
            cells[-1] += f" ± {_number(row.errors['test'][metric])}"
        table.add_row(row.name, *cells)
    table.add_section()
    for entry in summary.published:
        cells = ["all" if entry.features is None else f"{entry.features:.1f}"]
        for metric in summary.metrics:
            cells += ["", "", _number(entry.scores[metric]) if metric in entry.scores else "–"]
        table.add_row(f"{entry.method}, published", *cells)
    return table


def description_table(title: str, descriptions: Sequence[DataDescription]) -> Table:
    """Return one column a file, one row a count."""
    table = _table(title)
    table.add_column("")
    columns = [description.as_dict() for description in descriptions]
    for column in columns:
        table.add_column(Path(column.pop("name")).name, justify="right")
    for key in columns[0]:
        table.add_row(key.replace("_", " "), *(_count(column[key]) for column in columns))
    return table


def solver_table(entries: Iterable[SolverEntry]) -> Table:
    """Return the table of solvers, by family, with the authors of each paper."""
    table = _table(None)
    for head in ("solver", "family", "selects", "linear", "backend", "needs", "year", "authors"):
        table.add_column(head, no_wrap=True)
    for _, rows in groupby(sorted(entries, key=_family), _family):
        table.add_section()
        for row in rows:
            flags = ("yes" if flag else "no" for flag in (row.selects, row.linear, row.backend))
            authors = row.paper.partition(":")[0]
            table.add_row(row.name, row.family, *flags, ", ".join(row.needs), str(row.year), authors)
    return table


def _family(entry: SolverEntry) -> int:
    return FAMILIES.index(entry.family) if entry.family in FAMILIES else len(FAMILIES)


def cell_table(states: Mapping[Cell, str]) -> Table:
    """Return how many cells of each solver on each problem are finished, failed or open."""
    table = _table(None)
    kinds = ("finished", "failed", "open")
    for head in ("problem", "solver", "cells", *kinds):
        table.add_column(head, justify="left" if head in ("problem", "solver") else "right")
    rows: dict[tuple[str, str], Counter[str]] = {}
    for cell, state in states.items():
        rows.setdefault((cell.problem.name, cell.solver.label), Counter())[state] += 1
    for (problem, solver), counts in rows.items():
        table.add_row(problem, solver, str(counts.total()), *(str(counts[kind]) for kind in kinds))
    counts = Counter(states.values())
    table.add_section()
    table.add_row("all", "", str(counts.total()), *(str(counts[kind]) for kind in kinds))
    return table


def study_table(problem: Problem, frame: pd.DataFrame) -> Table:
    """Return the means of each solver over folds and seeds, with standard errors over folds, and published means."""
    metrics = [column.removeprefix("test ") for column in frame.columns if column.startswith("test ")]
    table = _table(f"{problem.name}: test means over folds and seeds ± standard error over folds")
    table.add_column("solver")
    published = {entry.solver: entry for entry in problem.published}
    for head in ("cells", "features", *metrics, "seconds"):
        table.add_column(head, justify="right")
        if head in metrics and published:
            table.add_column("published", justify="right")
    for solver, rows in frame.groupby("solver", sort=False):
        folds = rows.groupby("fold").mean(numeric_only=True)
        cells = [str(len(rows)), _with_error(folds["n_features"], 1)]
        for metric in metrics:
            scores = published[solver].scores if solver in published else {}
            cells += [_with_error(folds[f"test {metric}"], 4)]
            cells += [_number(scores[metric]) if metric in scores else ""] if published else []
        seconds = folds["tuning seconds"] + folds["training seconds"]
        table.add_row(str(solver), *cells, _with_error(seconds, 1))
    return table


def _with_error(values: pd.Series, digits: int) -> str:
    """Return the mean over folds and its standard error, which a single fold does not have."""
    mean, error = mean_and_error(values)
    return f"{mean:.{digits}f}" if len(values) == 1 else f"{mean:.{digits}f} ± {error:.{digits}f}"


def _table(title: str | None) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        show_edge=False,
        pad_edge=False,
    )


def _cells(ranker: ScoredRanker, result: RunResult) -> list[str]:
    values = [ranker.scores[part][metric] for metric in result.metrics for part in PARTS]
    return [str(len(ranker.features)), *map(_number, values)]


def _number(value: float) -> str:
    return f"{value:.4f}"


def _count(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{label}: {count:,}" for label, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"

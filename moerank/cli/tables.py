"""Tables that the commands print."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table

from moerank.cli.messages import printable
from moerank.solvers import FAMILIES, SolverEntry

if TYPE_CHECKING:  # these take seconds to import, and the table of solvers needs none of them
    import pandas as pd

    from moerank.data.describe import DataDescription
    from moerank.studies.problem import Problem
    from moerank.studies.result import Member, Result
    from moerank.studies.results import Results


# Width of output to files and pipes, wide enough that no row is wrapped.
UNBROKEN_WIDTH = 1000


def output() -> Console:
    """Return the console of standard output."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = UNBROKEN_WIDTH
    return console


def text_table(
    title: str | None,
    rows: Sequence[Mapping[str, str]],
    *,
    n_left: int = 1,
    ends: Collection[int] = (),
) -> Table:
    """Return a table whose first `n_left` columns are aligned to the left, the others to the right.

    A gap follows each row in `ends`. Control characters are escaped.
    """
    table = Table(
        title=None if title is None else printable(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        show_edge=False,
        pad_edge=False,
    )
    columns = max((list(row) for row in rows), key=len)
    for number, column in enumerate(columns):
        justify: JustifyMethod = "left" if number < n_left else "right"
        table.add_column(printable(column), justify=justify, overflow="fold", no_wrap=number == 0)
    for number, row in enumerate(rows):
        cells = (printable(row.get(column, "")) for column in columns)
        table.add_row(*cells, end_section=number in ends)
    return table


def description_table(title: str, descriptions: Sequence[DataDescription]) -> Table:
    """Return one column per file and one row per count."""
    files = {Path(description.name).name: description.as_dict() for description in descriptions}
    keys = [key for key in descriptions[0].as_dict() if key != "name"]
    rows = [
        {"": key.replace("_", " "), **{name: _count(counts[key]) for name, counts in files.items()}} for key in keys
    ]
    return text_table(title, rows)


def _count(value: object) -> str:
    if isinstance(value, Mapping):
        value = [f"{label}: {count:,}" for label, count in value.items()]
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return value if isinstance(value, str) else f"{value:,}" if type(value) is int else f"{value:g}"


# Largest number of features named in a sentence.
MOST_NAMES = 25


def front_table(result: Result) -> Table:
    """Return the members of the front by size, then the baselines, with their metrics on all parts.

    Members are numbered as in front.csv and for --member. Each objective other than the number of features and the
    error has a column with its training values.
    """
    rows = []
    for number, member in enumerate(result.front):
        mark = " chosen" if number == result.chosen else ""
        name = f"{number + 1:>{len(str(len(result.front)))}}{mark}" if len(result.front) > 1 else result.solver
        rows.append({"member": name, **_values(member, result)})
    rows += [{"member": baseline.name, **_values(baseline, result)} for baseline in result.baselines]
    title = f"{result.problem}, fold {result.fold}: {result.solver}, seed {result.seed}"
    return text_table(title, rows, ends=[len(result.front) - 1])


def _values(ranker: Member, result: Result) -> dict[str, str]:
    from moerank.studies.result import PARTS

    heads = {(name, part): f"{name}\n{part.removesuffix('dation')}" for name in result.metrics for part in PARTS}
    return {
        "features": str(len(ranker.features)),
        **{name: f"{ranker.objectives[name]:.4g}" for name in result.further_objectives},
        **{head: f"{ranker.scores[part][name]:.4f}" for (name, part), head in heads.items()},
    }


def chosen_features(result: Result) -> str:
    """Return a sentence that lists the chosen features, the largest weight first."""
    best = result.best
    names = result.names(best.features)
    if best.weights is not None:
        by_size = sorted(zip(best.weights, names, strict=True), key=lambda entry: -abs(entry[0]))
        names = [f"{name} ({weight:+.3g})" for weight, name in by_size]
    if len(names) > MOST_NAMES:
        names[MOST_NAMES:] = [f"and {len(names) - MOST_NAMES} more in model.json"]
    with_weights = "" if best.weights is None else " (weight)"
    return f"Chosen {len(best.features)} of {len(result.feature_names)} features{with_weights}: {', '.join(names)}"


def solver_table(entries: Collection[SolverEntry]) -> Table:
    """Return the table of solvers by family with their papers; an asterisk marks the recommended ones."""
    families, rows = dict.fromkeys([*FAMILIES, *(entry.family for entry in entries)]), []
    for entry in (entry for family in families for entry in entries if entry.family == family):
        first, *others = entry.paper.partition(":")[0].split(", ")
        row = {"solver": entry.name + " *" * entry.recommended, "family": entry.family, "needs": ", ".join(entry.needs)}
        row |= {key: "yes" if getattr(entry, key) else "no" for key in ("linear", "backend")}
        rows.append(row | {"paper": f"{first}{' et al.' * bool(others)} {entry.year}"})
    return text_table(None, rows, n_left=6)


def study_table(problem: Problem, results: Results) -> Table:
    """Return each solver's means over folds and seeds, with standard errors over folds, beside published means."""
    published = any(entry.solver for entry in problem.published)
    rows, n_runs, (means, errors) = [], results.frame["solver"].value_counts(), results.means()
    for solver, mean in means.iterrows():
        both = mean, errors.loc[solver]
        row = {"solver": str(solver), "cells": str(n_runs[solver]), "features": _with_error(*both, "n_features", 1)}
        row |= {name: _with_error(*both, name, 4) for name in results.further_objectives}
        for metric in results.metrics:
            row[metric] = _with_error(*both, f"test {metric}", 4)
            if published:
                value = problem.published_value(str(solver), metric)
                row[f"{metric}\npublished"] = f"{value:.4f}" if value else ""
        if not np.isnan(mean["evaluations"]):
            row["trained"] = " of ".join(f"{mean[count]:,.0f}" for count in ("trained", "evaluations"))
        rows.append(row | {"seconds": _with_error(*both, "seconds", 1)})
    note = "; published values are means over all folds" * published
    return text_table(f"{problem.name}: test means over folds and seeds ± standard error over folds{note}", rows)


def _with_error(means: pd.Series, errors: pd.Series, column: str, digits: int) -> str:
    """Return the mean of a column, with its standard error if there is one; an empty text if there is no mean."""
    texts = [f"{numbers[column]:.{digits}f}" for numbers in (means, errors) if not np.isnan(numbers[column])]
    return " ± ".join(texts)

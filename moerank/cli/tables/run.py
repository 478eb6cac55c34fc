"""The tables of a run: the members of the front, or the means over the folds, beside the baselines."""

from __future__ import annotations

from moerank.analysis.summary import Summary
from moerank.cli.tables import FittedTable, new_table
from moerank.runs.result import PARTS, RunResult, ScoredRanker

__all__ = ["UNITS", "chosen_features", "front_table", "summary_table"]

HEADS = {"train": "train", "validation": "vali", "test": "test"}

UNITS = {
    "document": "Instance selection chose among documents.",
    "query": "Instance selection chose among queries.",
}
"""What is said of instances that are not preference pairs."""

MOST_NAMES = 25
"""More features than these are not read in a sentence."""


def front_table(result: RunResult) -> FittedTable:
    """Return the members of the front by size, then the baselines, with their values on all parts.

    Members are numbered as in front.csv, and as --member names them.
    Objectives beyond the number of features and the error have a column each, for the training part.
    """
    table = new_table(f"{result.problem}, fold {result.fold}: {result.solver}, seed {result.seed}")
    digits = len(str(len(result.front)))
    for head in ("member" if len(result.front) > 1 else "", "features", *result.further_objectives):
        table.add_column(head, justify="left" if head in ("member", "") else "right")
    for metric in result.metrics:
        for part in PARTS:
            table.add_column(f"{metric}\n{HEADS[part]}", justify="right")
    for number, member in enumerate(result.front):
        chosen = number == result.chosen
        name = result.solver if len(result.front) == 1 else f"{number + 1:>{digits}}{' chosen' if chosen else ''}"
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


def summary_table(summary: Summary) -> FittedTable:
    """Return the means over the folds, with standard errors on the test part, and the published values."""
    table = new_table(f"{summary.problem}: {summary.solver}, seed {summary.seed}, mean of {len(summary.folds)} folds")
    further = list(summary.rows[0].objectives)
    for head in ("", "features", *further):
        table.add_column(head, justify="right" if head else "left")
    for metric in summary.metrics:
        for part in PARTS:
            head = "test ± s.e." if part == "test" else HEADS[part]
            table.add_column(f"{metric}\n{head}", justify="right")
    for row in summary.rows:
        cells = [f"{row.n_features:.1f}", *(f"{row.objectives[name]:.4g}" for name in further)]
        for metric in summary.metrics:
            cells += [_number(row.means[part][metric]) for part in PARTS]
            cells[-1] += f" ± {_number(row.errors['test'][metric])}"
        table.add_row(row.name, *cells)
    table.add_section()
    for entry in summary.published:
        cells = ["all" if entry.features is None else f"{entry.features:.1f}", *("" for _ in further)]
        for metric in summary.metrics:
            cells += ["", "", _number(entry.scores[metric]) if metric in entry.scores else "–"]
        table.add_row(f"{entry.method}, published", *cells)
    return table


def _cells(ranker: ScoredRanker, result: RunResult) -> list[str]:
    further = [f"{ranker.objectives[name]:.4g}" for name in result.further_objectives]
    values = [ranker.scores[part][metric] for metric in result.metrics for part in PARTS]
    return [str(len(ranker.features)), *further, *map(_number, values)]


def _number(value: float) -> str:
    return f"{value:.4f}"

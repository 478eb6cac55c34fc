"""The findings of a report: results, tests, features chosen, ablations."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from moerank import figures
from moerank.analysis.by_solver import NothingToDrawError, of_problem
from moerank.analysis.comparison import against_reference, compare_runs, feature_stability, solver_ranks
from moerank.reports.table import Entry, Section, Table, mark_best, number, p_value, text, with_error
from moerank.runs.problem import Problem
from moerank.solvers import ablated
from moerank.statistics import holm, mean_and_error

if TYPE_CHECKING:
    from moerank.reports.content import Report

__all__ = ["ablations_section", "features_section", "results_section", "tests_section"]

ALPHA = 0.05


def results_section(report: Report, problem: Problem) -> Section:
    """Return what each solver reached on a problem, and the quality of what it offers."""
    found = of_problem(report.results, problem.name)
    metrics = next(iter(next(iter(found.values())).values()))[0].metrics
    published = {entry.solver: entry for entry in problem.published if entry.solver}
    columns = ["solver", "runs", "features"]
    for metric in metrics:
        columns += [metric, *(["published"] if published else [])]
    table = Table(
        f"results-{problem.name}",
        f"{problem.name}: test queries, means over folds, after seeds, ± standard error; the best of a column is bold. "
        "Seconds are the processor's.",
        [*columns, "training (s)", "tuning (s)"],
        note=f"* differs from {report.reference} on the same queries (paired t test, Holm, {ALPHA:.0%})",
    )
    significant = {metric: _significant(report, problem, metric) for metric in metrics}
    frame = report.frame
    for solver in found:
        rows = frame[(frame["problem"] == problem.name) & (frame["solver"] == solver)]
        means = rows.groupby("fold").mean(numeric_only=True)
        entries = [text(solver), number(len(rows), 0), with_error(*mean_and_error(means["n_features"]), digits=1)]
        for metric in metrics:
            entry = with_error(*mean_and_error(means[f"test {metric}"]))
            entry.mark = "*" if solver in significant[metric] else ""
            entries.append(entry)
            if published:
                scores = published[solver].scores if solver in published else {}  # not of other parameters
                entries.append(number(scores.get(metric, np.nan)))
        seconds = [means[f"{kind} seconds"] for kind in ("training", "tuning")]
        entries += [with_error(*mean_and_error(values), digits=2) for values in seconds]
        table.rows.append(entries)
    for metric in metrics:
        column = table.columns.index(metric)
        mark_best([row[column] for row in table.rows])
    section = Section(f"Results: {problem.name}", tables=[table, _front_table(report, problem)])
    for name, draw in (
        ("accuracy", figures.accuracy_figure),
        ("fronts", figures.fronts_figure),
        ("attainment", figures.attainment_figure),
        ("hypervolume", figures.hypervolume_figure),
        ("cost", figures.cost_figure),
    ):
        try:
            section.figures[f"{name}-{problem.name}"] = draw(report.results, problem)
        except NothingToDrawError:  # this study has nothing of the kind
            continue
    return section


def _significant(report: Report, problem: Problem, metric: str) -> set[str]:
    try:
        table = against_reference(report.results, problem.name, report.reference, metric)
    except ValueError:
        return set()
    return set(table.loc[table["holm"] <= ALPHA, "solver"])


def _front_table(report: Report, problem: Problem) -> Table:
    quality = report.quality(problem)
    table = Table(
        f"fronts-{problem.name}",
        f"{problem.name}: quality of what each solver offers, on the training data. Hypervolume as a share of the "
        "rectangle from the origin to all features and the error 1; IGD+ to the joint front of all solvers.",
        ["solver", "hypervolume", "IGD+"],
    )
    for solver, rows in quality.groupby("solver", sort=False):
        folds = rows.groupby("fold").mean(numeric_only=True)
        values = [with_error(*mean_and_error(folds[name])) for name in ("hypervolume", "igd_plus")]
        table.rows.append([text(solver), *values])
    mark_best([row[1] for row in table.rows])
    mark_best([row[2] for row in table.rows], largest=False)
    return table


def tests_section(report: Report) -> Section:
    """Return which differences are more than chance."""
    tables, lacking = [], []
    for problem in report.problems:
        metric = next(r for c, r in report.results.items() if c.problem.name == problem.name).metrics[0]
        try:
            found = against_reference(report.results, problem.name, report.reference, metric)
        except ValueError:
            lacking.append(problem.name)
            continue
        table = Table(
            f"tests-{problem.name}",
            f"{problem.name}: {metric} of each solver minus that of {report.reference}, query by query; wins, ties and "
            f"losses count queries. p is that of the paired t test, adjusted by Holm's method; bold up to {ALPHA}.",
            ["solver", "difference", "wins / ties / losses", "p", "Holm"],
        )
        for row in found.itertuples():
            table.rows.append(
                [
                    text(row.solver),
                    with_error(row.difference, row.error),
                    Entry(f"{row.wins} / {row.ties} / {row.losses}", float(row.wins - row.losses)),
                    p_value(row.p),
                    replace(p_value(row.holm), best=row.holm <= ALPHA),
                ]
            )
        tables.append(table)
    section = Section("Tests", tables=[table for table in tables if table.rows])
    if lacking:
        section.paragraphs.append(f"No run of {report.reference} is finished on {', '.join(lacking)}: no tests there.")
    metric = next(iter(report.results.values())).metrics[0]
    ranks = solver_ranks(report.results, metric)
    if ranks is not None:
        section.paragraphs.append(
            f"The solvers are ranked by {metric} on each of the {ranks.test.n_blocks} folds of "
            f"{', '.join(ranks.problems)} that all of them have. The Friedman test of whether they differ at all has "
            f"p = {ranks.test.p:.3g}; two solvers differ beyond chance if their mean ranks are at least "
            f"{ranks.test.critical_difference:.2f} apart (Nemenyi test, {ALPHA:.0%})."
        )
        section.figures["ranks"] = figures.ranks_figure(report.results)
    return section


def features_section(report: Report) -> Section:
    """Return which features are chosen, and how stably."""
    section = Section("Features chosen")
    for problem in report.problems:
        found = of_problem(report.results, problem.name)
        table = Table(
            f"features-{problem.name}",
            f"{problem.name}: features chosen most often over folds and seeds, with the share of the runs. Stability "
            "is the mean pairwise Jaccard index of the choices, then corrected for chance.",
            ["solver", "features", "stability", "corrected", "most chosen"],
        )
        for solver, folds in found.items():
            runs = [run for seeds in folds.values() for run in seeds]
            if all(len(run.front) == 1 for run in runs):
                continue
            chosen = [run.best.features for run in runs]
            names = runs[0].feature_names
            count = Counter(names[feature] for features in chosen for feature in features)
            often = ", ".join(f"{name} ({n / len(runs):.0%})" for name, n in count.most_common(8))
            stable = feature_stability(chosen, len(names)) if len(runs) > 1 else (np.nan, np.nan)
            sizes = [np.mean([len(run.best.features) for run in seeds]) for seeds in folds.values()]
            size = with_error(*mean_and_error(sizes), digits=1)
            table.rows.append([text(solver), size, *(number(s, 2) for s in stable), text(often)])
        if table.rows:
            section.tables.append(table)
            section.figures[f"frequency-{problem.name}"] = figures.frequency_figure(report.results, problem)
    return section


def ablations_section(report: Report) -> Section:
    """Return what each part of MOFSRank is worth."""
    section = Section("Ablations")
    for problem in report.problems:
        found = of_problem(report.results, problem.name)
        full = _runs(report, problem, "mofsrank")
        names = [name for name in ablated() if _runs(report, problem, name) & full]
        if not names:
            continue
        quality = report.quality(problem).set_index(["solver", "fold", "seed"])["hypervolume"]
        frame = report.frame
        frame = frame[frame["problem"] == problem.name].set_index(["solver", "fold", "seed"])
        metric = next(iter(found["mofsrank"].values()))[0].metrics[0]
        measures = {
            "hypervolume": quality,
            f"test {metric}": frame[f"test {metric}"],
            "features": frame["n_features"].astype(float),
        }
        table = Table(
            f"ablations-{problem.name}",
            f"{problem.name}: MOFSRank without one of its parts minus MOFSRank with all, on the same folds with "
            "the same seeds: means over folds, after seeds, ± standard error; p of the paired t test over the folds, "
            "adjusted by Holm's method within a column.",
            ["without", *(head for name in measures for head in (name, "p"))],
        )
        columns = [[compare_runs(series, name, "mofsrank") for name in names] for series in measures.values()]
        adjusted = [holm([test.p for test in column]) for column in columns]
        for row, name in enumerate(names):
            entries = [text(ablated()[name])]
            for column, p, digits in zip(columns, adjusted, (4, 4, 1), strict=True):
                entries += [with_error(column[row].difference, column[row].error, digits), p_value(p[row])]
            table.rows.append(entries)
        section.tables.append(table)
        section.figures[f"ablation-{problem.name}"] = figures.ablation_figure(report.results, problem)
    return section


def _runs(report: Report, problem: Problem, solver: str) -> set[tuple[int, int]]:
    """Fold and number of the seed of each finished run of a solver."""
    return {
        (cell.fold, cell.seed)
        for cell in report.results
        if (cell.problem.name, cell.solver.label) == (problem.name, solver)
    }

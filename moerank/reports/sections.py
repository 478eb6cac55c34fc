"""Sections of reports, from the verdict to the commands that reproduce a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isnan

import numpy as np
import pandas as pd

from moerank.reports.report import (
    ALPHA,
    Entry,
    Report,
    Section,
    Table,
    enumeration,
    illustrations,
    mark_best,
    number,
    p_value,
    with_error,
)
from moerank.solvers import BASES, ablations
from moerank.solvers import solvers as solver_table
from moerank.statistics import holm, mean_and_error
from moerank.studies.comparison import (
    Choice,
    against_reference,
    chosen_solver,
    compare_runs,
    fewest_cells,
    solver_ranks,
    standings,
    verdicts,
)
from moerank.studies.problem import Problem, shipped_problems
from moerank.studies.results import NoResultsError, Results, feature_stability, offers_sizes
from moerank.studies.run_fold import Progress
from moerank.verdict import LEVEL, Verdict


def question(report: Report) -> Section:
    """Return the question of the study, and the missing and failed runs."""
    states, failures = report.study.states(), report.study.failures()
    n_solvers = len(report.results.solvers)
    asked = "does 1 solver" if n_solvers == 1 else f"do {n_solvers} solvers"
    paragraphs = [
        f"How well {asked} rank on {enumeration([p.name for p in report.problems])}, with how many features, and which "
        f"differences are more than chance? {len(report.results)} of {len(states)} runs are finished. Validation data "
        "choose the parameters that are not given. Unless noted otherwise, values are those of test queries, and means "
        "are taken over seeds and then over folds, with the standard error over folds."
    ]
    count = Counter((cell.problem.name, cell.solver.label) for cell, state in states.items() if state == "open")
    if count:
        listed = "; ".join(f"{solver} on {problem}: {n}" for (problem, solver), n in count.items())
        paragraphs.append(
            f"Missing runs: {listed}. The means of a solver are over its finished folds; means over different folds "
            "are not comparable."
        )
    table = Table("failures", "Runs that failed.", ["run", "message"])
    for cell, failure in failures.items():
        table.add(cell.label, str(failure["error"]))
    return Section("Question", paragraphs, [table] if failures else [])


def verdict(report: Report) -> Section:
    """Return the answer on each problem with its grounds, and the state of the study."""
    section = Section("Verdict")
    for problem in report.problems:
        results = report.results.of(problem.name)
        try:
            choice = chosen_solver(results)
        except NoResultsError as error:
            section.paragraphs.append(f"{problem.name}: no verdict, because {error}.")
            continue
        section.paragraphs += [_answer(report, problem, choice), _grounds(choice, results.metric)]
    if report.n_missing:
        section.paragraphs.append(
            f"{len(report.results)} of {len(report.study.cells())} runs are finished; others may change the verdict."
        )
    return section


def _answer(report: Report, problem: Problem, choice: Choice) -> str:
    """Return which solver, how many features, against what, and how sure."""
    found: Verdict = choice.loss["verdict"]
    outcome = found.model_copy(update={"against": ""}).outcome
    size = f"{choice.n_features:.1f} of {found.n_allowed} features{_chosen(report, problem, choice)}"
    return (
        f"{problem.name}: {choice.solver}, with {size}. Against "
        f"{found.against or 'the same ranker'} with all of them: {outcome}. The test of no difference has "
        f"{_p(found.p)}, that of a difference beyond the margin {_p(found.p_equivalent)}."
    )


def _chosen(report: Report, problem: Problem, choice: Choice) -> str:
    """Return the names of the features that more than half of the runs of the chosen solver choose."""
    runs = [run for run in report.results.of(problem.name).among([choice.solver]) if run.fold in choice.folds]
    names = runs[0].feature_names
    count = Counter(names[feature] for run in runs for feature in run.best.features)
    often = [name for name, n in count.most_common() if n > len(runs) / 2]
    if not often:
        return " (no feature in most runs)"
    listed, more = often[:MOST_NAMES], len(often) - MOST_NAMES
    where = f"in most of its {len(runs)} runs: " if len(runs) > 1 else ""
    return f" ({where}{enumeration([*listed, f'{more} more'] if more > 0 else listed)})"


def _grounds(choice: Choice, metric: str) -> str:
    """Return how validation chose the solver, its rank among the others, and the choice of test values."""
    n_selecting, n_folds = 1 + len(choice.others), len(choice.folds)
    folds = f"{n_folds} folds, after seeds" if n_folds > 1 else "one fold"
    among = f"among {n_selecting} solvers that select features" if n_selecting > 1 else "as the only one that selects"
    spread = "" if isnan(choice.error) else f" ± {choice.error:.4f} over folds"
    by = "training queries by cross-validation" if choice.cross_validated else "validation queries"
    said = [
        f"Chosen {among}, by the mean {metric} of {by} on {folds}. On test queries it has {choice.value:.4f}{spread}."
    ]
    least, most = min(choice.compared.values()), max(choice.compared.values())
    if not choice.cross_validated and most > least:
        said.append(
            f"Before, these queries compared {choice.compared[choice.solver]:,.0f} settings and members of it, and "
            f"{least:,.0f} to {most:,.0f} of each solver, which favours solvers with many. With --set "
            "comparison.cross_validation=5 the training queries choose instead."
        )
    if compared := choice.better + choice.worse + choice.undecided:
        said.append(
            f"Of {compared} other solvers, among them rankers on all features, {choice.worse} are worse and "
            f"{choice.better} are better on the test queries; {choice.undecided} are undecided (paired t tests at "
            f"{LEVEL}, Holm)."
        )
    if choice.best_on_test != choice.solver:
        said.append(
            f"Test values would choose {choice.best_on_test}; that choice would be optimistic, and is named only for "
            "comparison."
        )
    return " ".join(said)


def _p(p: float) -> str:
    shown = p_value(p).text
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def problems(report: Report) -> Section:
    """Return the data of each problem, and published results with their sources."""
    table = Table(
        "problems",
        "Data, metric of the objectives, number of features, and numbers of queries in the training, validation and "
        "test part of the first finished fold.",
        ["problem", "data", "metric", "features", "queries"],
    )
    for problem in report.problems:
        results = report.results.of(problem.name)
        result = next(result for result in results if result.fold == min(results.folds))
        queries = " / ".join(str(len(ids)) for ids in result.queries.values())
        source = getattr(problem.data, "origin", problem.data.source)
        table.add(problem.name, source, problem.metric.name, len(result.feature_names), queries)
    return Section("Problems", tables=[table, *filter(None, map(_published, report.problems))])


def _published(problem: Problem) -> Table | None:
    """Return all published results on a problem, with their sources."""
    published = problem.published
    if not published:
        return None
    metrics = list(dict.fromkeys(metric for entry in published for metric in entry.scores))
    columns = ["method", "solver here", "features", *metrics, "source"]
    table = Table(f"published-{problem.name}", f"{problem.name}: published results.", columns)
    for entry in published:
        scores = [number(entry.scores.get(metric, np.nan)) for metric in metrics]
        size = number(np.nan if entry.features is None else entry.features, 1)
        table.add(entry.method, entry.solver or "", size, *scores, entry.source)
    return table


def solvers(report: Report) -> Section:
    """Return the paper and the given parameters of each solver."""
    caption = "Solvers with their papers and given parameters."
    table = Table("solvers", caption, ["solver", "family", "paper", "given parameters"])
    for spec in report.study.solvers:
        row = solver_table().get(spec.name)
        if row is None:
            what = spec.parameters.get("class", spec.parameters.get("function", ""))
            table.add(spec.label, "given in Python", f"{what}", "as given")
            continue
        given = ", ".join(f"{key} = {value}" for key, value in spec.parameters.items()) or "none"
        table.add(spec.label, row.family, f"{row.paper}, {row.year}", given)
    return Section("Solvers", tables=[table])


def results(report: Report, problem: Problem) -> Section:
    """Return the results of each solver on a problem, and the quality of its front."""
    return Section(
        f"Results: {problem.name}",
        tables=[_means(report, problem), _fronts(report, problem), *filter(None, [_instances(report, problem)])],
        illustrate=[partial(illustrations, report, "results", problem)],
        explored=problem.name,
    )


def _means(report: Report, problem: Problem) -> Table:
    """Return the means of each solver and published ones, with * for differences from the reference."""
    mine = report.results.of(problem.name)
    metrics, further = report.metrics(problem), mine.further_objectives
    published = any(entry.solver for entry in problem.published)
    columns = ["solver", "features"]
    for metric in metrics:
        columns += [metric, *(["published"] if published else [])]
    on_training = f" {', '.join(further)}: on the training data." if further else ""
    significant = {metric: _significant(report, problem, metric) for metric in metrics}
    test = f"paired t test on the same queries, Holm, {ALPHA:.0%}"
    marks = f"* differs from {report.reference} ({test}). " if any(significant.values()) else ""
    comparable = _have_the_same_folds(mine)
    best = "the best of a column is bold" if comparable else "no best is marked, because solvers have different folds"
    table = Table(
        f"results-{problem.name}",
        f"{problem.name}: test queries, means over folds, after seeds, ± standard error; {best}.",
        [*columns, *further, "runs", "compared", "training (s)", "tuning (s)"],
        note=f"{marks}Compared: settings and members that validation queries compared. Times are processor "
        f"seconds.{on_training}{' Published values are means over all folds.' if published else ''}",
    )
    for solver, means in mine.means().items():
        entries = [with_error(*means.mean("n_features"), digits=1)]
        for metric in metrics:
            entry = with_error(*means.mean(f"test {metric}"))
            entry.mark = "*" if solver in significant[metric] else ""
            theirs = problem.published_value(solver, metric)
            entries += [entry, *([number(np.nan if theirs is None else theirs)] if published else [])]
        entries += [with_error(*means.mean(objective)) for objective in further]
        seconds = [with_error(*means.mean(f"{kind} seconds"), digits=2) for kind in ("training", "tuning")]
        table.add(solver, *entries, means.n_runs, number(means.mean("compared")[0], 0), *seconds)
    for metric in metrics if comparable else ():
        column = table.columns.index(metric)
        mark_best([row[column] for row in table.rows])
    return table


def _have_the_same_folds(results: Results) -> bool:
    """Whether all solvers have the same folds; else their means cannot be compared."""
    return len({frozenset(folds) for folds in results.by_solver().values()}) == 1


def _significant(report: Report, problem: Problem, metric: str) -> set[str]:
    """Return the solvers that differ from the reference; none by a metric without the values of queries."""
    mine = report.results.of(problem.name)
    if metric not in mine.metrics or report.reference not in mine.solvers:
        return set()
    table = against_reference(mine, report.reference, metric)
    return set(table.loc[table["holm"] <= ALPHA, "solver"])


def _fronts(report: Report, problem: Problem) -> Table:
    """Return the quality of the front of each solver."""
    quality = report.quality(problem)
    objectives = report.results.of(problem.name).objectives
    table = Table(
        f"fronts-{problem.name}",
        f"{problem.name}: quality of the fronts on the training data.",
        ["solver", "hypervolume", "IGD+"],
        note=f"Hypervolume is a share of the {_box(objectives)}; IGD+ is measured to the joint front of all solvers.",
    )
    for solver, rows in quality.groupby("solver", sort=False):
        folds = rows.groupby("fold").mean(numeric_only=True)
        values = [with_error(*mean_and_error(folds[name])) for name in ("hypervolume", "igd_plus")]
        table.add(str(solver), *values)
    if _have_the_same_folds(report.results.of(problem.name)):
        mark_best([row[1] for row in table.rows])
        mark_best([row[2] for row in table.rows], largest=False)
    return table


def _box(objectives: list[str]) -> str:
    """Describe the box in which fronts are compared, see `front_box`."""
    known = {"features": "all features", "error": "the error 1"}
    reach = [known[name] for name in objectives if name in known]
    further = [name for name in objectives if name not in known]
    sides = [f"from the origin to {' and '.join(reach)}"] if reach else []
    sides += [f"from the least to the largest {name} of all members on the fold" for name in further]
    return f"{'rectangle' if len(objectives) == 2 else 'box'} {', '.join(sides)}"


def tests(report: Report) -> Section:
    """Return the differences that are more than chance."""
    tables, lacking = [], []
    for problem in report.problems:
        try:
            tables.append(_against_reference(report, problem))
        except NoResultsError:
            lacking.append(problem.name)
    tables += [_verdicts(report, problem) for problem in report.problems]
    section = Section("Tests", tables=[table for table in tables if table.rows])
    if lacking:
        section.paragraphs.append(f"No tests on {', '.join(lacking)}, where no run of {report.reference} is finished.")
    metric = report.results.metric
    try:
        ranks = solver_ranks(report.results, metric)
    except NoResultsError:
        return section
    section.paragraphs.append(
        f"The solvers are ranked by {metric} on each of their {ranks.test.n_blocks} common folds of "
        f"{', '.join(ranks.problems)}. The Friedman test of equal ranks has p = {ranks.test.p:.3g}. Two solvers differ "
        f"significantly if their mean ranks are at least {ranks.test.critical_difference:.2f} apart (Nemenyi test, "
        f"{ALPHA:.0%})."
    )
    section.illustrate.append(partial(illustrations, report, "tests"))
    return section


def _against_reference(report: Report, problem: Problem) -> Table:
    """Return the differences from the reference on a problem."""
    results = report.results.of(problem.name)
    table = Table(
        f"tests-{problem.name}",
        f"{problem.name}: {results.metric} of each solver minus that of {report.reference}, query by query.",
        ["solver", "difference", "wins / ties / losses", "p", "Holm"],
        note="Wins, ties and losses count queries. p is that of the paired t test, and Holm is p adjusted for the "
        f"number of rows; values up to {ALPHA} are bold.",
    )
    for row in against_reference(results, report.reference, results.metric).itertuples():
        counts = Entry(f"{row.wins} / {row.ties} / {row.losses}", float(row.wins - row.losses))
        adjusted = replace(p_value(row.holm), best=row.holm <= ALPHA)
        table.add(row.solver, with_error(row.difference, row.error), counts, p_value(row.p), adjusted)
    return table


def _verdicts(report: Report, problem: Problem) -> Table:
    """Return what each selection on a problem loses against the same ranker on all features."""
    results = report.results.of(problem.name)
    table = Table(
        f"verdicts-{problem.name}",
        f"{problem.name}: {results.metric} of the chosen features minus that of the same ranker on all features, over "
        "the test queries of all folds that can differ.",
        ["solver", "against", "features", "difference", "queries", "runs", "loss", "gain", "equivalent"],
        note=f"Loss, gain and equivalent count the runs in which a loss or a gain is detected at the level {LEVEL}, or "
        "the difference is shown to lie within the margin. The same ranker is the backend of a search, the own ranker "
        "of a filter or wrapper, and RankSVM beside the embedded methods that have none; validation chose its "
        "parameters with all features.",
    )
    for row in verdicts(results).itertuples():
        found = row.verdict
        difference = with_error(found.difference, np.nan if found.error is None else found.error)
        size, counts = number(row.n_features, 1), (found.n_differing, row.runs, row.loss, row.gain, row.equivalent)
        table.add(row.solver, row.against or "its backend", size, difference, *counts)
    return table


MOST_NAMES = 8
"""Largest number of names of solvers or features in a cell."""


def certificates(report: Report) -> Section:
    """Return what is proved about the fronts that have a certificate."""
    table = Table(
        "certificates",
        "Certified fronts, for RankRLS on all preference pairs of the training part.",
        ["problem", "fold", "solver", "features", "given up", "worst", "proved", "enumerated", "hypervolume"],
        note="Given up: the largest possible share of the reduction of the loss by all features that a member lacks of "
        "the best subset of its size, of the chosen member and of the worst one. Proved: sizes whose best loss is "
        "proved. Enumerated: the largest number of features of which all subsets are ranked by. Hypervolume: share of "
        "that of the front by members on which none of these subsets improves.",
    )
    for result in report.results:
        if (found := result.certificate) is not None:
            shares = [Entry(f"{share:.1%}", share) for share in (found.given_up[result.chosen], max(found.given_up))]
            counted = f"{len(found.proved)} of {len(found.sizes)}", len(found.errors)
            of_front = Entry(f"{found.hypervolume:.0%}", found.hypervolume)
            names = result.problem, result.fold, result.solver
            table.add(*names, len(result.best.features), *shares, *counted, of_front)
    return Section("Certificates", tables=[table] if table.rows else [])


def pairs(report: Report) -> Section:
    """Return which solvers are better than others, on test queries and by the hypervolume of their fronts."""
    section = Section("All pairs of solvers")
    for problem in report.problems:
        by_queries, by_hypervolume = report.query_pairs(problem), report.hypervolume_pairs(problem)
        if len(by_queries):
            section.tables.append(_of_queries(report, problem, by_queries))
        if by_hypervolume["p"].notna().any():
            section.tables.append(_of_hypervolumes(report, problem, by_hypervolume))
        elif len(by_hypervolume):
            section.paragraphs.append(
                f"{problem.name}: the hypervolumes of the searches are not tested. Pairs: {len(by_hypervolume)}; "
                f"common cells of a pair, each a fold and a seed: {_span(by_hypervolume)}. With fewer than "
                f"{fewest_cells(len(by_hypervolume), ALPHA)} cells no adjusted signed-rank test can reach {ALPHA}."
            )
    if section.tables:
        section.paragraphs.insert(
            0,
            f"A solver is better or worse than another if the p value, adjusted by Holm's method over all tests of a "
            f"table, is at most {ALPHA}. A larger p value does not show that two are equal. moerank report --format "
            "pairs writes every difference and p value.",
        )
    return section


def _of_queries(report: Report, problem: Problem, found: pd.DataFrame) -> Table:
    """Return the standings of all solvers on test queries."""
    results = report.results.of(problem.name)
    table = Table(
        f"pairs-{problem.name}",
        f"{problem.name}: {len(results.solvers)} solvers by {results.metric}, means over folds, after seeds; "
        f"{_tests(found)}.",
        ["solver", results.metric, *STANDINGS],
        note=f"Two-sided paired t tests over the {_span(found)} test queries of all common folds, each query with its "
        "mean over the seeds. The rankers of a fold are trained on the same data, so the tests generalise to other "
        "queries, but not to other training data.",
    )
    values = {solver: means.mean(f"test {results.metric}")[0] for solver, means in results.means().items()}
    return _ranked(table, found, values)


def _of_hypervolumes(report: Report, problem: Problem, found: pd.DataFrame) -> Table:
    """Return the standings of the searches by their fronts."""
    tested = found.dropna(subset="p")
    untested = len(found) - len(tested)
    too_few = f" {untested} pairs with fewer than {fewest_cells(len(found), ALPHA)} cells are not tested."
    searches = report.results.of(problem.name).searches
    table = Table(
        f"pairs-hypervolume-{problem.name}",
        f"{problem.name}: {len(searches)} searches by the hypervolume of their last fronts on the training data, means "
        f"over folds, after seeds; {_tests(tested)}.",
        ["solver", "hypervolume", *STANDINGS],
        note=f"Two-sided signed-rank tests over the {_span(tested)} common cells, each a fold and a seed."
        f"{too_few * bool(untested)} The seeds of a fold share its data, so the tests generalise to other draws of the "
        "searches on these folds, but not to other data. A larger hypervolume means a better search; the table above "
        "tells whether it ranks other queries better.",
    )
    folds = report.quality(problem).groupby(["solver", "fold"])["hypervolume"].mean()
    return _ranked(table, tested, folds.groupby("solver").mean().to_dict())


STANDINGS = ("better", "worse", "undecided", "better than")
"""Columns of the tables of pairs behind the mean."""


def _ranked(table: Table, found: pd.DataFrame, values: dict[str, float]) -> Table:
    """Return a table with its solvers, the best mean first, and the solvers that each of them beats."""
    ahead = standings(found, ALPHA)
    ranked = sorted(ahead, key=lambda solver: -values[solver])
    for solver in ranked:
        counts = [len(ahead[solver][kind]) for kind in STANDINGS[:3]]
        beaten = [other for other in ranked if other in ahead[solver]["better"]]
        more = len(beaten) - MOST_NAMES
        named = ", ".join(beaten[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        table.add(solver, number(values[solver]), *counts, named)
    return table


def _tests(found: pd.DataFrame) -> str:
    """Return the number of tests, and the number of those that find a difference."""
    n_tests, shown = len(found), int(np.count_nonzero(found["holm"] <= ALPHA))
    finds = "finds" if shown == 1 else "find"
    tests = "1 test" if n_tests == 1 else f"{n_tests:,} tests, one for each pair"
    return f"{tests}, of which {shown:,} {finds} a difference"


def _span(found: pd.DataFrame) -> str:
    """Return the range of the numbers of queries or cells of the tests."""
    fewest, most = int(found["n"].min()), int(found["n"].max())
    return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"


def ablation(report: Report) -> Section:
    """Return the effect of each part of MOFSRank."""
    section = Section("Ablations")
    for problem in report.problems:
        tables = [table for base in BASES if (table := _differences(report, problem, base)) is not None]
        section.tables += tables
        if tables:
            section.illustrate.append(partial(illustrations, report, "ablations", problem))
    return section


KEPT = {
    "mofsrank": "Its last front keeps the members of the second stage that no ensemble dominates: by construction the "
    "ensemble cannot make the hypervolume in training worse.",
    "mofsrank-paper": "Its last front has only ensembles, as in the paper: it can be worse than the second stage's.",
}
"""The rule for the last front of each method with ablations."""


def _differences(report: Report, problem: Problem, full: str) -> Table | None:
    """Return the differences from `full` on the same folds with the same draws; None without such pairs."""
    results = report.results.of(problem.name)
    parts = ablations(full)
    runs = {solver: {(r.fold, r.seed) for r in results if r.solver == solver} for solver in (full, *parts)}
    names = [name for name in parts if runs[name] & runs[full]]
    if not names:
        return None
    quality = report.quality(problem).set_index(["solver", "fold", "seed"])["hypervolume"]
    frame = results.frame.set_index(["solver", "fold", "seed"])
    measures = {
        "hypervolume": quality,
        f"test {results.metric}": frame[f"test {results.metric}"],
        "features": frame["n_features"].astype(float),
        **{name: frame[name] for name in results.further_objectives},
    }
    table = Table(
        f"ablations-{problem.name}" if full == BASES[0] else f"ablations-{full}-{problem.name}",
        f"{problem.name}: {full} without one of its parts minus {full} with all parts, on the same folds with the same "
        "draws, means over folds, after seeds, ± standard error.",
        ["without", *(head for name in measures for head in (name, "p"))],
        note="p is that of the paired t test over the folds, adjusted by Holm's method within a column. " + KEPT[full],
    )
    columns = [[compare_runs(series, name, full) for name in names] for series in measures.values()]
    adjusted = [holm([test.p for test in column]) for column in columns]
    for row, name in enumerate(names):
        entries = []
        for measure, column, p in zip(measures, columns, adjusted, strict=True):
            digits = 1 if measure == "features" else 4
            entries += [with_error(column[row].difference, column[row].error, digits), p_value(p[row])]
        table.add(parts[name], *entries)
    return table


def _instances(report: Report, problem: Problem) -> Table | None:
    """Return how many instances the chosen members were trained on; None without a solver that selects instances."""
    table = Table(
        f"instances-{problem.name}",
        f"{problem.name}: instances in the training data, and those that the chosen member was trained on, means over "
        "folds, after seeds, ± standard error.",
        ["solver", "instances", "in the training data", "trained on", "share"],
    )
    for solver, folds in report.results.of(problem.name).by_solver().items():
        selecting = {fold: [run for run in runs if run.n_instances] for fold, runs in folds.items()}
        every = [runs for runs in selecting.values() if runs]
        if not every:
            continue
        total = [np.mean([run.n_instances or 0 for run in runs]) for runs in every]
        used = [
            np.mean([run.n_instances if run.best.instances is None else run.best.instances for run in runs])
            for runs in every
        ]
        units = ", ".join(sorted({f"{run.instances}s" for runs in every for run in runs}))
        shares = np.divide(used, total)
        entries = [with_error(*mean_and_error(values), digits=0) for values in (total, used)]
        table.add(solver, units, *entries, with_error(*mean_and_error(shares), digits=3))
    return table if table.rows else None


def features(report: Report) -> Section:
    """Return the chosen features, and the stability of the choice."""
    section = Section("Features chosen")
    for problem in report.problems:
        table = _most_chosen(report, problem)
        if table.rows:
            section.tables.append(table)
            section.illustrate.append(partial(illustrations, report, "features", problem))
    return section


def _most_chosen(report: Report, problem: Problem) -> Table:
    """Return the features that each solver chooses most often; solvers that offer one size have no row."""
    results = report.results.of(problem.name)
    means = results.means()
    table = Table(
        f"features-{problem.name}",
        f"{problem.name}: the features chosen most often over folds and seeds, with the share of the runs.",
        ["solver", "features", "stability", "corrected", "most chosen"],
        note="Stability is the mean pairwise Jaccard index of the choices, also corrected for chance.",
    )
    for solver, folds in results.by_solver().items():
        if not offers_sizes(folds):
            continue
        runs = [run for seeds in folds.values() for run in seeds]
        chosen = [run.best.features for run in runs]
        names = runs[0].feature_names
        count = Counter(names[feature] for features in chosen for feature in features)
        often = ", ".join(f"{name} ({n / len(runs):.0%})" for name, n in count.most_common(MOST_NAMES))
        stable = feature_stability(chosen, len(names)) if len(runs) > 1 else (np.nan, np.nan)
        size = with_error(*means[solver].mean("n_features"), digits=1)
        table.add(solver, size, *(number(s, 2) for s in stable), often)
    return table


def reproduction(report: Report) -> Section:
    """Return the commands, the versions, the machine and the dates of the results."""
    versions: dict[str, set[str]] = {}
    for result in report.results:
        for name, version in result.versions.items():
            versions.setdefault(name, set()).add(version)
    table = Table("versions", "Versions of the libraries, and the machine of the results.", ["library", "version"])
    for name, found in versions.items():
        table.add(name, ", ".join(sorted(found)))
    own = [problem.name for problem in report.study.problems if problem.name not in shipped_problems()]
    files = f" Replace {enumeration(own)} by the path of its problem file." if own else ""
    return Section(
        "How to reproduce",
        [
            "The random numbers of a run depend only on the name of its problem, its fold and its seed: all solvers "
            "draw the same. With these versions the same command gives the same results, on any number of processes."
            f"{files}",
            *_written(report),
        ],
        [table],
        code="\n".join(report.study.commands()),
    )


def _written(report: Report) -> list[str]:
    """Return the sentence on the dates of the results."""
    days = report.study.days()
    if not days:
        return []
    span = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"
    return [f"The files of the results were written {span} (UTC). Times are those of the machine below."]


def sections(report: Report, progress: Progress | None = None) -> list[Section]:
    """Return the sections that are not empty, in reading order.

    After each section ``progress("sections", fraction, title)`` is called.
    """
    last = (tests, pairs, certificates, features, ablation, question, problems, solvers, reproduction)
    makers: list[Callable[[], Section]] = [
        partial(verdict, report),
        *(partial(results, report, problem) for problem in report.problems),
        *(partial(make, report) for make in last),
    ]
    found = []
    for done, make in enumerate(makers, start=1):
        section = make()
        if section.paragraphs or section.tables or section.figures:
            found.append(section)
        if progress is not None:
            progress("sections", done / len(makers), section.title)
    return found

"""The content of reports: a study with its results, and sections from the verdict to the command that repeats it."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from moerank.checks import check_choice
from moerank.figures import FIGURES
from moerank.figures.panels import boxed
from moerank.runs.problem import Problem
from moerank.statistics import LEVEL, holm
from moerank.studies import results
from moerank.studies.study import Study


class Report:
    """A study with its results, the reference solver for all comparisons, and the metrics of the tables.

    Parameters
    ----------
    study : Study
    reference : str, optional
        Label of a solver; by default the first one of `moerank.studies.results.REFERENCES`.
    metrics : sequence of str, default ()
        Metrics of the results tables instead of those of the study: any of NDCG@1 to 10, P@1 to 10, MAP and MeanNDCG.

    Raises
    ------
    NoResultsError
        If no cell of the study is finished.
    ValueError
        If the reference or a metric has no results.
    """

    def __init__(
        self, study: Study, reference: str | None = None, metrics: Sequence[str] = ()
    ) -> None:
        self.study = study
        self.results = study.results()
        if not self.results:
            raise results.NoResultsError(
                f"{study.out} has no finished cell yet; run the study first"
            )
        self.reference = reference or results.default_reference(self.results)
        check_choice(self.results.solvers, reference=self.reference)
        self._metrics = metrics
        for problem in self.problems:
            self.metrics(problem)

    @property
    def title(self) -> str:
        """The heading of the report."""
        return f"Feature selection on {', '.join(problem.name for problem in self.problems)}"

    @cached_property
    def problems(self) -> list[Problem]:
        """The problems with at least one finished cell."""
        return [problem for problem in self.study.problems if problem.name in self.results.problems]

    @property
    def n_missing(self) -> int:
        """The number of cells that are not finished."""
        return len(self.study.cells()) - len(self.results)

    def metrics(self, problem: Problem) -> list[str]:
        """Return the metrics of the results table of a problem."""
        mine = self.results.of(problem.name)
        return [mine.named_metric(name, mine.all_metrics) for name in self._metrics] or mine.metrics

    @cache  # noqa: B019 (a report lives as long as its page)
    def runs(self, problem: str) -> pd.DataFrame:
        """Return the numbers of the runs on a problem, with the quality of their fronts, see `front_quality`.

        ``instances used`` is the share of the instances that the chosen member was trained on. ``given up`` bounds the
        share of the loss reduction that it gives up, and ``proved`` is the share of sizes with a proved optimum; both
        are NaN without a certificate.
        """
        mine = self.results.of(problem)
        frame = mine.frame.merge(results.front_quality(mine), on=["solver", "fold", "seed"])
        frame["IGD+"] = frame.pop("igd_plus")
        used = [
            run.best.instances or run.n_instances or np.nan for run in mine
        ]  # all instances if none were selected
        frame["instances used"] = np.divide(used, [run.n_instances or np.nan for run in mine])
        proofs = [(run.certificate, run.chosen) for run in mine]
        frame["given up"] = [
            proof.given_up[chosen] if proof else np.nan for proof, chosen in proofs
        ]
        frame["proved"] = [
            len(proof.proved) / len(proof.sizes) if proof else np.nan for proof, _ in proofs
        ]
        return frame

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """The tests between all pairs of solvers, see `query_pairs`, with the ``problem`` and the ``measure``."""
        by_problem = [self.results.of(problem.name) for problem in self.problems]
        frames = {
            (mine.problems[0], mine.metric): results.query_pairs(mine, mine.metric)
            for mine in by_problem
        }
        filled = {names: frame for names, frame in frames.items() if len(frame)} or frames
        return (
            pd.concat(filled, names=["problem", "measure"])
            .reset_index(level=[0, 1])
            .reset_index(drop=True)
        )


# Suffix for the name of a column with the standard errors of the column before it.
ERROR = " ±"


def p_text(p: float) -> str:
    """Return a p value with three decimals, or "< 0.001"."""
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"


# Formatters for columns whose values are not printed with four decimals.
FORMATTERS: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(("p", "Holm"), p_text),
    **dict.fromkeys(("training (s)", "tuning (s)", "stability", "corrected"), "{:.2f}".format),
    **dict.fromkeys(("instances used", "given up", "proved"), "{:.1%}".format),
    "features": "{:.1f}".format,
    **dict.fromkeys(("evaluations", "trained"), "{:,.0f}".format),
}


@dataclass(frozen=True)
class ReportTable:
    """A table with a name for links and a caption; the first column of its frame names the rows.

    The best value of each column in `best` is bold: the largest if True, else the least. `marked` lists by column the
    rows that differ significantly from a reference.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    best: Mapping[str, bool] = field(default_factory=dict)
    marked: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """The printed columns; standard errors are printed with their means."""
        return [column for column in self.frame if not column.endswith(ERROR)]

    def is_number(self, column: str) -> bool:
        """Whether a column has numbers, which are aligned to the right."""
        return pd.api.types.is_numeric_dtype(self.frame[column])

    @cached_property
    def texts(self) -> pd.DataFrame:
        """The texts of the cells, which are empty for NaN."""
        texts = pd.DataFrame(
            {column: self._column(column) for column in self.columns}, dtype=object
        )
        for column, rows in self.marked.items():
            texts.loc[self.frame.iloc[:, 0].isin(rows), column] += "*"
        return texts

    def _column(self, column: str) -> list[str]:
        values, form = (
            self.frame[column],
            FORMATTERS.get(column.partition(" of ")[0], "{:.4f}".format),
        )
        if not self.is_number(column):
            return [str(value) for value in values]
        if pd.api.types.is_integer_dtype(values):
            form = "{:,}".format
        errors = self.frame.get(f"{column}{ERROR}", default=pd.Series(np.nan, values.index))
        means = ["" if np.isnan(value) else form(value) for value in values]
        ends = ["" if np.isnan(error) else f" ± {form(error)}" for error in errors]
        return [mean + end for mean, end in zip(means, ends, strict=True)]

    @cached_property
    def bold(self) -> pd.DataFrame:
        """Whether a cell is bold: the best value of a column, all that are printed alike, and significant p values."""
        bold = pd.DataFrame(False, index=self.frame.index, columns=self.columns)
        for column, largest in self.best.items():
            values, means = (
                self.frame[column],
                self.texts[column].str.split().str[0].str.rstrip("*"),
            )
            if values.count() > 1:
                bold[column] = means == means[values.idxmax() if largest else values.idxmin()]
        if "Holm" in bold:
            bold["Holm"] = self.frame["Holm"] <= LEVEL
        return bold


def over_folds(runs: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return `means_over_folds` with standard errors: `columns` maps the columns to the names of their means."""
    means, errors = results.means_over_folds(runs)
    both: dict[str, pd.Series] = {}
    for column, name in columns.items():
        both |= {name: means[column], f"{name}{ERROR}": errors[column]}
    return pd.DataFrame(both).reset_index()


@dataclass
class ReportSection:
    """A section of a report. `figures` names sections of figures with a problem; `explored` is a problem."""

    title: str
    tables: list[ReportTable] = field(default_factory=list)
    paragraphs: list[str] = field(default_factory=list)
    figures: list[tuple[str, Problem]] = field(default_factory=list)
    explored: str = ""


def illustrations(report: Report, section: ReportSection) -> dict[str, tuple[Figure, str]]:
    """Draw the figures of a section in order; return them with their captions, under names for links."""
    drawn = {}
    for part, problem in section.figures:
        mine = report.results.of(problem.name)
        for name, figure in FIGURES.items():
            if figure.section == part and figure.reported(mine):
                with suppress(results.NoResultsError):  # the study has no data for this figure
                    drawn[f"{name}-{problem.name}"] = figure.draw(mine, problem), figure.caption
    return drawn


# Columns about the quality of a front; empty ones are left out.
FRONT_COLUMNS = ("hypervolume", "IGD+", "instances used", "given up", "proved")

# Largest number of feature names in a cell.
MOST_LISTED = 8


def verdict_section(report: Report) -> ReportSection:
    """Return for each problem the solver that validation chooses, with its tests, or why there is no choice."""
    sentences = [_decision(report.results.of(problem.name)) for problem in report.problems]
    if report.n_missing:
        n = len(report.results)
        sentences.append(
            f"{n} of {n + report.n_missing} runs are finished; the others may change the verdict."
        )
    sentences += [f"{remark}." for remark in report.study.newer_files()]
    return ReportSection("Verdict", [], sentences)


def _decision(mine: results.Results) -> str:
    """Return the solver to choose for one problem, or why there is no choice."""
    (problem,) = mine.problems
    try:
        chosen, others = results.chosen_solver(mine)
    except results.NoResultsError as error:
        return f"{problem}: no verdict, because {error}."
    loss = chosen["verdict"]
    by = f", chosen by validation queries from {1 + len(others)} solvers" if len(others) else ""
    return (
        f"{problem}: {chosen['solver']} with {chosen['n_features']:.1f} of {loss.n_allowed} features{by}. "
        f"Compared with {loss.against or 'the same ranker'} on all features: "
        f"{loss.model_copy(update={'against': ''}).outcome} (p of no difference {p_text(loss.p)}, of a difference "
        f"beyond the margin {p_text(loss.p_equivalent)}; unlike t tests, these tests allow for rare large losses)."
    )


def results_section(report: Report, problem: Problem) -> ReportSection:
    """Return the means of each solver beside published ones, its cost, and the quality of its front."""
    mine, runs, metrics = (
        report.results.of(problem.name),
        report.runs(problem.name),
        report.metrics(problem),
    )
    further = {name: name for name in mine.further_objectives}
    means = over_folds(
        runs,
        {"n_features": "features", **{f"test {metric}": metric for metric in metrics}, **further},
    )
    for metric in metrics if any(entry.solver for entry in problem.published) else ():
        published = [problem.published_value(solver, metric) for solver in means["solver"]]
        head = f"published {metric.partition(' (')[0]}"
        means.insert(
            means.columns.get_loc(f"{metric}{ERROR}") + 1, head, np.array(published, float)
        )
    seconds = {f"{kind} seconds": f"{kind} (s)" for kind in ("training", "tuning")}
    costs = over_folds(
        runs, {**seconds, "evaluations": "evaluations", "trained": "trained"}
    ).dropna(axis=1, how="all")
    costs.insert(1, "runs", runs.groupby("solver").size()[costs["solver"]].to_numpy())
    comparable = len({frozenset(folds) for folds in mine.by_solver().values()}) == 1
    best, best_front = (
        (dict.fromkeys(metrics, True), {"hypervolume": True, "IGD+": False})
        if comparable
        else ({}, {})
    )
    bold = (
        "the best is bold"
        if comparable
        else "none is bold, because the solvers have different folds"
    )
    of_means = (
        f"{problem.name}: test queries, means over seeds, then folds, ± standard error; {bold}; * differs from "
        f"{report.reference} (paired t test, Holm, {LEVEL:.0%}){'; on the training data: ' * bool(further)}"
        f"{', '.join(further)}."
    )
    of_costs = (
        f"{problem.name}: processor seconds; evaluations that a search asked for, and distinct individuals among them, "
        "whose rankers were trained."
    )
    compared = [
        metric for metric in metrics if metric in mine.metrics and report.reference in mine.solvers
    ]
    tests = {
        metric: results.against_reference(mine, report.reference, metric) for metric in compared
    }
    marked = {
        metric: set(frame.loc[frame["holm"] <= LEVEL, "solver"]) for metric, frame in tests.items()
    }
    tables = [
        ReportTable(f"results-{problem.name}", of_means, means, best, marked),
        ReportTable(f"cost-{problem.name}", of_costs, costs),
    ]
    for number, alike in enumerate(mine.alike().values()):
        fronts = over_folds(
            runs[runs["solver"].isin(alike.solvers)], {name: name for name in FRONT_COLUMNS}
        )
        caption = f"{problem.name}: training data; IGD+ to the joint front. {boxed(alike[0], ())}"
        name = f"fronts-{problem.name}" + f"-{number + 1}" * bool(number)
        tables.append(ReportTable(name, caption, fronts.dropna(axis=1, how="all"), best_front))
    first = next(run for run in mine if run.fold == min(mine.folds))
    queries = ", ".join(f"{len(ids)} {part}" for part, ids in first.queries.items())
    source = getattr(problem.data, "origin", problem.data.source)
    data = f"Data: {source}, {len(first.feature_names)} features; queries of fold {first.fold}: {queries}."
    return ReportSection(
        f"Results: {problem.name}", tables, [data], [("results", problem)], explored=problem.name
    )


def tests_section(report: Report) -> ReportSection:
    """Return the differences from the reference and from all features."""
    section = ReportSection("Tests")
    for mine in (report.results.of(problem.name) for problem in report.problems):
        (problem,) = mine.problems
        if report.reference in mine.solvers:
            frame = results.against_reference(mine, report.reference, mine.metric)
            frame = frame.rename(
                columns={"n": "queries", "error": f"difference{ERROR}", "holm": "Holm"}
            )
            caption = f"{problem}: {mine.metric} minus that of {report.reference}, query by query; paired t tests."
            section.tables.append(ReportTable(f"tests-{problem}", caption, frame))
        section.tables.append(_losses(mine))
    return section


def _losses(mine: results.Results) -> ReportTable:
    """Return the loss of each selection on a problem, compared with the same ranker on all features."""
    (problem,), frame = (
        mine.problems,
        results.verdicts(mine).rename(columns={"n_features": "features"}),
    )
    if len(frame):
        judged = frame.pop("verdict")
        frame["against"] = frame["against"].replace("", "its backend")
        frame["difference"] = [verdict.difference for verdict in judged]
        frame[f"difference{ERROR}"] = [verdict.error for verdict in judged]
        frame["queries"] = [verdict.n_differing for verdict in judged]
        frame = frame.astype({f"difference{ERROR}": float})
    caption = f"{problem}: {mine.metric} minus that of the same ranker on all features; numbers of runs by finding."
    return ReportTable(f"verdicts-{problem}", caption, frame)


def features_section(report: Report) -> ReportSection:
    """Return the chosen features and the stability of the choice."""
    tables = [_most_chosen(report.results.of(problem.name)) for problem in report.problems]
    return ReportSection(
        "Features chosen", tables, figures=[("features", problem) for problem in report.problems]
    )


def _most_chosen(mine: results.Results) -> ReportTable:
    """Return the features that each solver chooses most often; solvers that offer a single size have no row."""
    (problem,), rows = mine.problems, []
    sizes = over_folds(mine.frame, {"n_features": "features"}).set_index("solver")
    for solver in (
        solver for solver, folds in mine.by_solver().items() if results.offers_sizes(folds)
    ):
        runs = mine.among([solver])
        chosen = [run.best.features for run in runs]
        count = Counter(name for run in runs for name in run.names(run.best.features))
        often = ", ".join(
            f"{name} ({n / len(runs):.0%})" for name, n in count.most_common(MOST_LISTED)
        )
        stable = (
            results.feature_stability(chosen, len(runs[0].feature_names))
            if len(runs) > 1
            else (np.nan, np.nan)
        )
        rows.append((solver, *sizes.loc[solver], *stable, often))
    columns = ["solver", "features", f"features{ERROR}", "stability", "corrected", "most chosen"]
    caption = f"{problem}: the most chosen features; stability is the mean pairwise Jaccard index, plain and corrected."
    return ReportTable(f"features-{problem}", caption, pd.DataFrame(rows, columns=columns))


def ablations_section(report: Report) -> ReportSection:
    """Return the effect of each part of the ablated solvers."""
    ablations = list(enumerate(report.results.ablations))
    tables = [
        _differences(report, problem, *entry) for problem in report.problems for entry in ablations
    ]
    return ReportSection(
        "Ablations", tables, figures=[("ablations", problem) for problem in report.problems]
    )


def _differences(
    report: Report, problem: Problem, number: int, ablation: Mapping[str, str]
) -> ReportTable:
    """Return the differences of the solvers of an ablation from its base on the same folds with the same seeds."""
    mine, full = report.results.of(problem.name), next(iter(ablation))
    cells = {solver: {(r.fold, r.seed) for r in mine if r.solver == solver} for solver in ablation}
    names = [name for name in ablation if name != full and cells[name] & cells[full]]
    runs = report.runs(problem.name).set_index(["solver", "fold", "seed"])
    frame = pd.DataFrame({"solver": [ablation[name] for name in names]})
    mine = results.Results(run for run in mine if run.solver in (full, *names))
    shared = ["hypervolume", *mine.further_objectives] if len(mine.alike()) == 1 else []
    for column in (*shared, f"test {mine.metric}", "n_features") if names else ():
        tests, head = (
            [results.compare_runs(runs[column], name, full) for name in names],
            column.removeprefix("n_"),
        )
        frame[head] = [test.difference for test in tests]
        frame[f"{head}{ERROR}"] = [test.error for test in tests]
        frame[f"p of {head}"] = holm([test.p for test in tests])
    ensembles = [run.configuration.get("ensemble") or {} for run in mine if run.solver == full]
    by_design = "ensemble" in str(frame) and all(
        ensemble.get("keep_members") for ensemble in ensembles
    )
    caption = (
        f"{problem.name}: change from {ablation[full]}, same folds and seeds; paired t tests over folds, "
        f"Holm.{' By construction the ensemble cannot lower the training hypervolume.' * by_design}"
    )
    return ReportTable(f"ablations-{f'{number + 1}-' * bool(number)}{problem.name}", caption, frame)


def missing_section(report: Report) -> ReportSection:
    """Return the runs that are not finished, with the messages of the failed ones."""
    failures = {cell: str(failure["error"]) for cell, failure in report.study.failures().items()}
    states = report.study.states().items()
    cells = [
        (c.problem.name, c.solver.label, failures.get(c, "not run"))
        for c, state in states
        if state != "finished"
    ]
    columns = ["problem", "solver", "message"]
    frame = (
        pd.DataFrame(cells, columns=columns)
        .groupby(columns, sort=False)
        .size()
        .reset_index(name="runs")
    )
    return ReportSection(
        "Missing runs", [ReportTable("missing", "Means are over finished runs only.", frame)]
    )


def commands_section(report: Report) -> ReportSection:
    """Return how to run the study again, and the versions and the machine of the results."""
    versions = pd.DataFrame([run.versions for run in report.results])
    rows = [(name, ", ".join(sorted(set(versions[name].dropna())))) for name in versions]
    again = (
        "put it into an empty folder, and mr.Study.load(folder, data=DATA).run() runs everything again; Python objects "
        "need the script that made them."
    )
    table = ReportTable(
        "versions", "Libraries and machine.", pd.DataFrame(rows, columns=["library", "version"])
    )
    return ReportSection("How to reproduce", [table], [f"study.json holds the requests: {again}"])


def sections(report: Report) -> Iterator[ReportSection]:
    """Yield the sections that are not empty, in reading order, with the tables that have rows."""
    yield verdict_section(report)
    yield from (results_section(report, problem) for problem in report.problems)
    makers = (tests_section, features_section, ablations_section, missing_section, commands_section)
    for section in (make(report) for make in makers):
        section.tables = [table for table in section.tables if len(table.frame)]
        if section.paragraphs or section.tables:
            yield section

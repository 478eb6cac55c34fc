"""The content of reports: a study with its results, and sections from the verdict to the command that repeats it."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from moerank.checks import check_choice
from moerank.figures import FIGURES
from moerank.figures.panels import box_note
from moerank.runs.problem import Problem
from moerank.studies import results
from moerank.studies.comparison import compare_solvers
from moerank.studies.study import Study


class Report:
    """A study with its results, the reference solver for all comparisons, and the metrics of the tables.

    Parameters
    ----------
    study : Study
    reference : str, optional
        Label of a solver; by default that of `moerank.studies.results.default_reference`.
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

    def of(self, problem: Problem) -> results.Results:
        """Return the results on a problem."""
        return self.results.of(problem.name)

    def metrics(self, problem: Problem) -> list[str]:
        """Return the metrics of the results table of a problem."""
        runs = self.of(problem)
        metrics = [runs.named_metric(name, runs.all_metrics) for name in self._metrics]
        return metrics or runs.metrics

    @cache  # noqa: B019 (a report lives as long as its page)
    def runs(self, problem: str) -> pd.DataFrame:
        """Return the numbers of the runs on a problem, with the quality of their fronts, see `front_quality`.

        ``instances used`` is the fraction of the instances that the chosen member was trained on. ``given up`` bounds
        its optimality gap, as a fraction of the loss reduction, and ``proved`` is the fraction of the sizes with a
        proved optimum; both are NaN without a certificate.
        """
        runs = self.results.of(problem)
        frame = runs.frame.merge(results.front_quality(runs), on=["solver", "fold", "seed"])
        frame = frame.rename(columns={"igd_plus": "IGD+"})
        rows = []
        for run in runs:
            n_instances = run.n_instances or np.nan
            share = (run.best.instances or n_instances) / n_instances
            given_up = proved = np.nan
            if run.certificate:
                given_up = run.certificate.given_up[run.chosen]
                proved = len(run.certificate.proved) / len(run.certificate.sizes)
            rows.append((share, given_up, proved))
        frame[["instances used", "given up", "proved"]] = rows
        return frame

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """The comparisons of all pairs of solvers, see `ComparisonTable`, with the ``problem`` and the ``measure``."""
        frames = []
        for problem in self.problems:
            runs = self.of(problem)
            frame = compare_solvers(runs, f"test {runs.metric}").frame
            frame.insert(0, "problem", problem.name)
            frame.insert(1, "measure", runs.metric)
            frames.append(frame)
        filled = [frame for frame in frames if len(frame)]
        return pd.concat(filled or frames, ignore_index=True)


# Suffix for the name of a column with the standard errors of the column before it.
ERROR = " ±"


def p_text(p: float) -> str:
    """Return a p value with three decimals, or "< 0.001"."""
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"


# Formatters for columns whose values are not printed with four decimals.
FORMATTERS: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(("p", "adjusted p"), p_text),
    **dict.fromkeys(("training (s)", "tuning (s)", "stability", "corrected"), "{:.2f}".format),
    **dict.fromkeys(("instances used", "given up", "proved"), "{:.1%}".format),
    "features": "{:.1f}".format,
    **dict.fromkeys(("evaluations", "trained"), "{:,.0f}".format),
}


@dataclass(frozen=True)
class ReportTable:
    """A table with a name for links and a caption; the first column of its frame names the rows.

    The best value of each column in `best` is bold: the maximum if True, else the minimum. `marked` lists by column the
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

    def _column(self, column: str) -> pd.Series:
        values, errors = self.frame[column], self.frame.get(f"{column}{ERROR}")
        if not self.is_number(column):
            return values.map(str)
        form = FORMATTERS.get(column.partition(" of ")[0], "{:.4f}".format)
        if pd.api.types.is_integer_dtype(values):
            form = "{:,}".format

        def text(value: float, sign: str = "") -> str:
            return "" if pd.isna(value) else sign + form(value)

        texts = values.astype(object).map(text)
        if errors is not None:
            texts += errors.astype(object).map(partial(text, sign=" ± "))
        return texts

    @cached_property
    def bold(self) -> pd.DataFrame:
        """Whether a cell is bold: the best value of a column, and values printed like it."""
        bold = pd.DataFrame(False, index=self.frame.index, columns=self.columns)
        for column, largest in self.best.items():
            values = self.frame[column]
            means = self.texts[column].str.split().str[0].str.rstrip("*")
            if values.count() > 1:
                best = values.idxmax() if largest else values.idxmin()
                bold[column] = means == means[best]
        return bold


def means_with_errors(runs: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return `means_over_folds` with standard errors: `columns` maps the columns to the names of their means."""
    means, errors = results.means_over_folds(runs)
    frame = pd.DataFrame(index=means.index)
    for column, name in columns.items():
        frame[name] = means[column]
        frame[f"{name}{ERROR}"] = errors[column]
    return frame.reset_index()


@dataclass
class ReportSection:
    """A section of a report. `figures` pairs sections of figures with problems; `explored` names a problem."""

    title: str
    tables: list[ReportTable] = field(default_factory=list)
    paragraphs: list[str] = field(default_factory=list)
    figures: list[tuple[str, Problem]] = field(default_factory=list)
    explored: str = ""


def illustrations(report: Report, section: ReportSection) -> dict[str, tuple[Figure, str]]:
    """Draw the figures of a section in order; return them with their captions, under names for links."""
    figures = {}
    for group, problem in section.figures:
        runs = report.of(problem)
        for name, figure in FIGURES.items():
            if figure.section == group and figure.is_reported(runs):
                with suppress(results.NoResultsError):  # the study has no data for this figure
                    picture = figure.draw(runs, problem), figure.caption
                    figures[f"{name}-{problem.name}"] = picture
    return figures


# Columns about the quality of a front; empty ones are left out.
FRONT_COLUMNS = ("hypervolume", "IGD+", "instances used", "given up", "proved")

# Largest number of feature names in a cell.
MAX_LISTED = 8


def verdict_section(report: Report) -> ReportSection:
    """Return the solver that validation chooses for each problem, with its tests, or the reason why there is none."""
    sentences = [_decision(report.of(problem)) for problem in report.problems]
    if report.n_missing:
        n = len(report.results)
        sentences.append(
            f"{n} of {n + report.n_missing} runs are finished; the others may change the verdict."
        )
    sentences += [f"{remark}." for remark in report.study.newer_files()]
    return ReportSection("Verdict", [], sentences)


def _decision(runs: results.Results) -> str:
    """Return a sentence on the solver to choose for one problem, or on why there is none."""
    (problem,) = runs.problems
    try:
        choice, rivals = results.chosen_solver(runs)
    except results.NoResultsError as error:
        return f"{problem}: no verdict, because {error}."
    verdict = choice["verdict"]
    reason = ""
    if rivals:
        reason = f", chosen by validation queries from {1 + len(rivals)} solvers"
    return (
        f"{problem}: {choice['solver']}{reason}. {verdict.sentence} (p values: "
        f"{p_text(verdict.p)} for a difference, "
        f"{p_text(verdict.p_equivalent)} for equivalence within the margin)."
    )


def results_section(report: Report, problem: Problem) -> ReportSection:
    """Return the means of each solver beside published ones, its cost, and the quality of its front."""
    runs = report.of(problem)
    is_comparable = len({frozenset(folds) for folds in runs.by_solver().values()}) == 1
    first_run = next(run for run in runs if run.fold == min(runs.folds))
    queries = ", ".join(f"{len(ids)} {part}" for part, ids in first_run.queries.items())
    source = getattr(problem.data, "origin", problem.data.source)
    data = (
        f"Data: {source}, {len(first_run.feature_names)} features; "
        f"queries of fold {first_run.fold}: {queries}."
    )
    tables = [
        _means_table(report, problem, is_comparable),
        _cost_table(report, problem),
        *_front_tables(report, problem, is_comparable),
    ]
    title = f"Results: {problem.name}"
    return ReportSection(title, tables, [data], [("results", problem)], explored=problem.name)


def _means_table(report: Report, problem: Problem, is_comparable: bool) -> ReportTable:
    """Return the means of the metrics of each solver, beside published ones."""
    runs, metrics = report.of(problem), report.metrics(problem)
    columns = {"n_features": "features"}
    columns |= {f"test {metric}": metric for metric in metrics}
    columns |= {name: name for name in runs.further_objectives}
    means = means_with_errors(report.runs(problem.name), columns)
    marked = {}
    for metric in metrics:
        if any(entry.solver for entry in problem.published):
            published = [problem.published_value(solver, metric) for solver in means["solver"]]
            head = f"published {metric.partition(' (')[0]}"
            column = means.columns.get_loc(f"{metric}{ERROR}") + 1
            means.insert(column, head, np.array(published, float))
        if metric in runs.metrics and report.reference in runs.solvers:
            comparison = compare_solvers(runs, f"test {metric}", report.reference)
            marked[metric] = set(comparison.detected["solver"])
    bold = "the best is bold"
    if not is_comparable:
        bold = "none is bold, because the solvers have different folds"
    training = ""
    if runs.further_objectives:
        training = f"; on the training data: {', '.join(runs.further_objectives)}"
    caption = (
        f"{problem.name}: test queries, means over seeds, then folds, ± standard error; {bold}; "
        f"* differs from {report.reference}, which is detected{training}."
    )
    best = dict.fromkeys(metrics, True) if is_comparable else {}
    return ReportTable(f"results-{problem.name}", caption, means, best, marked)


def _cost_table(report: Report, problem: Problem) -> ReportTable:
    """Return the seconds and evaluations of each solver."""
    runs = report.runs(problem.name)
    columns = {
        "training seconds": "training (s)",
        "tuning seconds": "tuning (s)",
        "evaluations": "evaluations",
        "trained": "trained",
    }
    costs = means_with_errors(runs, columns).dropna(axis=1, how="all")
    costs.insert(1, "runs", runs.groupby("solver").size()[costs["solver"]].to_numpy())
    caption = (
        f"{problem.name}: CPU seconds; evaluations of a search, and those without repeats, "
        "whose rankers were trained."
    )
    return ReportTable(f"cost-{problem.name}", caption, costs)


def _front_tables(report: Report, problem: Problem, is_comparable: bool) -> Iterator[ReportTable]:
    """Yield the quality of the fronts of each goal."""
    runs = report.runs(problem.name)
    best = {"hypervolume": True, "IGD+": False} if is_comparable else {}
    columns = {name: name for name in FRONT_COLUMNS}
    name = f"fronts-{problem.name}"
    for index, goal in enumerate(report.of(problem).alike().values(), start=1):
        fronts = means_with_errors(runs[runs["solver"].isin(goal.solvers)], columns)
        box = box_note(goal[0])
        caption = f"{problem.name}: training data; IGD+ to the joint front. {box}"
        label = f"{name}-{index}" if index > 1 else name
        yield ReportTable(label, caption, fronts.dropna(axis=1, how="all"), best)


def tests_section(report: Report) -> ReportSection:
    """Return the differences from the reference and from all features."""
    section = ReportSection("Tests")
    for problem in report.problems:
        runs = report.of(problem)
        quantity = f"test {runs.metric}"
        if report.reference in runs.solvers:
            comparison = compare_solvers(runs, quantity, report.reference)
            heads = {"n": "queries", "error": f"difference{ERROR}", "adjusted": "adjusted p"}
            frame = comparison.frame.drop(columns="other").rename(columns=heads)
            caption = (
                f"{problem.name}: {comparison.sentence} The tests allow for rare large losses; "
                "one test of all solvers adjusts the p values for their number."
            )
            section.tables.append(ReportTable(f"tests-{problem.name}", caption, frame))
        if len(runs.solvers) > 2:
            section.paragraphs.append(f"{problem.name}: {compare_solvers(runs, quantity).sentence}")
        section.tables.append(_losses(runs))
    return section


def _losses(runs: results.Results) -> ReportTable:
    """Return the loss of each selection on a problem, compared with the same ranker on all features."""
    (problem,) = runs.problems
    frame = results.verdicts(runs).rename(columns={"n_features": "features"})
    if len(frame):
        verdicts = frame.pop("verdict")
        frame["against"] = frame["against"].replace("", "its backend")
        frame["difference"] = [verdict.difference for verdict in verdicts]
        frame[f"difference{ERROR}"] = np.array([verdict.error for verdict in verdicts], float)
        frame["queries"] = [verdict.n_differing for verdict in verdicts]
    caption = (
        f"{problem}: {runs.metric} minus that of the same ranker on all features; "
        "number of runs by finding."
    )
    return ReportTable(f"verdicts-{problem}", caption, frame)


def features_section(report: Report) -> ReportSection:
    """Return the chosen features and the stability of the choice."""
    section = ReportSection("Features chosen")
    for problem in report.problems:
        section.tables.append(_most_chosen(report.of(problem)))
        section.figures.append(("features", problem))
    return section


def _most_chosen(runs: results.Results) -> ReportTable:
    """Return the features that each solver chooses most often; solvers that offer a single size have no row."""
    (problem,) = runs.problems
    sizes = means_with_errors(runs.frame, {"n_features": "features"}).set_index("solver")
    rows = []
    for solver, folds in runs.by_solver().items():
        if not results.offers_sizes(folds):
            continue
        selections = [run.best.features for run in runs if run.solver == solver]
        names = runs[0].feature_names
        stability = (np.nan, np.nan)
        if len(selections) > 1:
            stability = results.feature_stability(selections, len(names))
        counts = Counter(names[feature] for features in selections for feature in features)
        frequent = ", ".join(
            f"{name} ({count / len(selections):.0%})"
            for name, count in counts.most_common(MAX_LISTED)
        )
        rows.append((solver, *sizes.loc[solver], *stability, frequent))
    columns = ["solver", "features", f"features{ERROR}", "stability", "corrected", "most chosen"]
    caption = (
        f"{problem}: the most chosen features; stability is the mean pairwise Jaccard index, "
        "plain and corrected."
    )
    return ReportTable(f"features-{problem}", caption, pd.DataFrame(rows, columns=columns))


def ablations_section(report: Report) -> ReportSection:
    """Return the effect of each part of the ablated solvers."""
    section = ReportSection("Ablations")
    for problem in report.problems:
        section.figures.append(("ablations", problem))
        for index, names in enumerate(report.results.ablations, start=1):
            label = f"{index}-{problem.name}" if index > 1 else problem.name
            section.tables.append(_differences(report, problem, f"ablations-{label}", names))
    return section


def _differences(
    report: Report, problem: Problem, name: str, ablation: Mapping[str, str]
) -> ReportTable:
    """Return the differences of the solvers of an ablation from its base by several quantities."""
    base = next(iter(ablation))
    metric = report.of(problem).metric
    runs = results.Results(run for run in report.of(problem) if run.solver in ablation)
    columns, caption = [pd.DataFrame()], f"{problem.name}: change from {ablation[base]}."
    quantities = ["hypervolume", *runs.further_objectives, f"test {metric}", "n_features"]
    for quantity in quantities if base in runs.solvers else ():
        comparison = compare_solvers(runs, quantity, base).renamed(ablation)
        head = quantity.removeprefix("n_")
        tests = comparison.frame.set_index("solver")[["difference", "error", "adjusted"]]
        columns.append(tests.set_axis([head, f"{head}{ERROR}", f"p of {head}"], axis=1))
        caption += f" {comparison.sentence}"
    frame = pd.concat(columns, axis=1).rename_axis("solver").reset_index()
    return ReportTable(name, caption, frame.dropna(axis=1, how="all"))


def missing_section(report: Report) -> ReportSection:
    """Return the runs that are not finished, with the messages of the failed ones."""
    failures = report.study.failures()
    counts: Counter[tuple[str, str, str]] = Counter()
    for cell, state in report.study.states().items():
        if state != "finished":
            message = str(failures[cell]["error"]) if cell in failures else "not run"
            counts[cell.problem.name, cell.solver.label, message] += 1
    rows = [(*row, n_runs) for row, n_runs in counts.items()]
    frame = pd.DataFrame(rows, columns=["problem", "solver", "message", "runs"])
    table = ReportTable("missing", "Means are over finished runs only.", frame)
    return ReportSection("Missing runs", [table])


def commands_section(report: Report) -> ReportSection:
    """Return instructions to run the study again, and the versions and the machine of its results."""
    versions = pd.DataFrame([run.versions for run in report.results])
    rows = [(name, ", ".join(sorted(set(versions[name].dropna())))) for name in versions]
    frame = pd.DataFrame(rows, columns=["library", "version"])
    sentence = (
        "study.json holds the requests: put it into an empty folder, and "
        "mr.Study.load(folder, data=DATA).run() runs everything again; "
        "Python objects need the script that made them."
    )
    table = ReportTable("versions", "Libraries and machine.", frame)
    return ReportSection("How to reproduce", [table], [sentence])


def sections(report: Report) -> Iterator[ReportSection]:
    """Yield the sections that are not empty, in reading order, with the tables that have rows."""
    yield verdict_section(report)
    for problem in report.problems:
        yield results_section(report, problem)
    for make in (
        tests_section,
        features_section,
        ablations_section,
        missing_section,
        commands_section,
    ):
        section = make(report)
        section.tables = [table for table in section.tables if len(table.frame)]
        if section.paragraphs or section.tables:
            yield section

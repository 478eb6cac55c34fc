"""The content of reports: a study with its results, and the tables and figures of sections."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from moerank.checks import check_choice
from moerank.figures import FIGURES
from moerank.studies import results
from moerank.studies.problem import Problem
from moerank.studies.study import Study

# Level of significance.
ALPHA = 0.05


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

    def __init__(self, study: Study, reference: str | None = None, metrics: Sequence[str] = ()) -> None:
        self.study = study
        self.results = study.results()
        if not self.results:
            raise results.NoResultsError(f"{study.out} has no finished cell yet; run the study first")
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
        used = [run.best.instances or run.n_instances or np.nan for run in mine]  # all instances if none were selected
        frame["instances used"] = np.divide(used, [run.n_instances or np.nan for run in mine])
        proofs = [(run.certificate, run.chosen) for run in mine]
        frame["given up"] = [proof.given_up[chosen] if proof else np.nan for proof, chosen in proofs]
        frame["proved"] = [len(proof.proved) / len(proof.sizes) if proof else np.nan for proof, _ in proofs]
        return frame

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """The tests between all pairs of solvers, see `query_pairs`, with the ``problem`` and the ``measure``."""
        by_problem = [self.results.of(problem.name) for problem in self.problems]
        frames = {(mine.problems[0], mine.metric): results.query_pairs(mine, mine.metric) for mine in by_problem}
        filled = {names: frame for names, frame in frames.items() if len(frame)} or frames
        return pd.concat(filled, names=["problem", "measure"]).reset_index(level=[0, 1]).reset_index(drop=True)


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
        texts = pd.DataFrame({column: self._column(column) for column in self.columns}, dtype=object)
        for column, rows in self.marked.items():
            texts.loc[self.frame.iloc[:, 0].isin(rows), column] += "*"
        return texts

    def _column(self, column: str) -> list[str]:
        values, form = self.frame[column], FORMATTERS.get(column.partition(" of ")[0], "{:.4f}".format)
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
            values, means = self.frame[column], self.texts[column].str.split().str[0].str.rstrip("*")
            if values.count() > 1:
                bold[column] = means == means[values.idxmax() if largest else values.idxmin()]
        if "Holm" in bold:
            bold["Holm"] = self.frame["Holm"] <= ALPHA
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

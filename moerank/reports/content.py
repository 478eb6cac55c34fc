"""What a report says: question, problems, solvers, results, tests, features, ablations, how to reproduce."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from moerank import figures
from moerank.figures.study import of_problem
from moerank.reports.table import Entry, Table, mark_best, number, text, with_error
from moerank.solvers import solvers
from moerank.studies.cell import Cell
from moerank.studies.comparison import against_reference, feature_stability, front_quality, solver_ranks
from moerank.studies.problem import Problem
from moerank.studies.result import RunResult
from moerank.studies.statistics import PairedTest, compare_paired, holm, mean_and_error
from moerank.studies.study import ABLATIONS, Study

__all__ = ["Report", "Section"]

ALPHA = 0.05
REFERENCES = ("ranksvm-primal", "rankrls", "fsmrank")
"""With whom solvers are compared unless the user says so: the first of these that the study has."""


@dataclass
class Section:
    """A part of a report.

    Attributes
    ----------
    title : str
    paragraphs : list of str
    tables : list of Table
    figures : dict of str to Figure
        By a word for files and links.
    """

    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)


class Report:
    """The content of a report on a study, whatever it is written as.

    Parameters
    ----------
    study : Study
    reference : str, optional
        Label of the solver that the others are compared with.

    Raises
    ------
    ValueError
        If no cell is finished, or the reference is none of the solvers.
    """

    def __init__(self, study: Study, reference: str | None = None) -> None:
        self.study = study
        self.results: dict[Cell, RunResult] = study.results()
        if not self.results:
            raise ValueError(f"{study.out} has no finished cell yet; run the study first")
        labels = list(dict.fromkeys(cell.solver.label for cell in self.results))
        known = [name for name in REFERENCES if name in labels]
        self.reference = reference or (known or labels)[0]
        if self.reference not in labels:
            raise ValueError(f"the study has no results of {self.reference}; choose one of {', '.join(labels)}")

    @cached_property
    def title(self) -> str:
        """The heading of the report."""
        return f"Feature selection on {_enumeration([problem.name for problem in self.problems])}"

    @cached_property
    def problems(self) -> list[Problem]:
        """The problems with at least one finished cell."""
        names = {cell.problem.name for cell in self.results}
        return [problem for problem in self.study.problems if problem.name in names]

    def sections(self) -> list[Section]:
        """Return all sections in reading order."""
        found = [self._question(), self._problems(), self._solvers()]
        found += [self._results(problem) for problem in self.problems]
        found += [self._tests(), self._features(), self._ablations(), self._reproduction()]
        return [section for section in found if section.paragraphs or section.tables or section.figures]

    def _question(self) -> Section:
        cells, failures = self.study.cells(), self.study.failures()
        n_solvers = len({cell.solver.label for cell in self.results})
        paragraphs = [
            f"How well do {n_solvers} solvers rank on {_enumeration([p.name for p in self.problems])}, with how many "
            f"features, and which differences are more than chance? {len(self.results)} of {len(cells)} runs are "
            "finished. All parameters are chosen by validation data, all values are those of test queries unless "
            "said otherwise; means are over folds, after seeds, with the standard error over folds."
        ]
        missing = [cell for cell in cells if cell not in self.results and cell not in failures]
        if missing:
            count = Counter((cell.problem.name, cell.solver.label) for cell in missing)
            listed = "; ".join(f"{solver} on {problem}: {n}" for (problem, solver), n in count.items())
            paragraphs.append(f"Missing runs: {listed}.")
        table = Table("failures", "Runs that failed.", ["run", "message"])
        table.rows.extend([text(cell.label), text(failure["error"])] for cell, failure in failures.items())
        return Section("Question", paragraphs, [table] if failures else [])

    def _problems(self) -> Section:
        table = Table(
            "problems",
            "Problems. Queries of the first fold's training, validation and test part.",
            ["problem", "data", "metric", "features", "queries"],
        )
        for problem in self.problems:
            result = next(result for cell, result in self.results.items() if cell.problem.name == problem.name)
            queries = " / ".join(str(len(ids)) for ids in result.queries.values())
            source = getattr(problem.data, "origin", problem.data.source)
            table.rows.append(
                [text(problem.name), text(source), text(problem.metric.name), number(len(result.feature_names), 0)]
                + [text(queries)]
            )
        return Section("Problems", tables=[table])

    def _solvers(self) -> Section:
        table = Table("solvers", "Solvers.", ["solver", "family", "published", "given parameters"])
        for spec in self.study.solvers:
            row = solvers()[spec.name]
            given = ", ".join(f"{key} = {value}" for key, value in spec.parameters.items()) or "none"
            table.rows.append([text(spec.label), text(row.family), text(f"{row.paper}, {row.year}"), text(given)])
        return Section("Solvers", tables=[table])

    def _results(self, problem: Problem) -> Section:
        found = of_problem(self.results, problem.name)
        metrics = next(iter(next(iter(found.values())).values()))[0].metrics
        published = {entry.solver: entry for entry in problem.published if entry.solver}
        columns = ["solver", "runs", "features"]
        for metric in metrics:
            columns += [metric, *(["published"] if published else [])]
        table = Table(
            f"results-{problem.name}",
            f"{problem.name}: means over folds ± standard error; the best of a column is bold.",
            [*columns, "training", "tuning"],
            note=f"* differs from {self.reference} on the same queries (paired t test, Holm, {ALPHA:.0%})",
        )
        significant = {metric: self._significant(problem, metric) for metric in metrics}
        frame = self.study.frame()
        for solver in found:
            rows = frame[(frame["problem"] == problem.name) & (frame["solver"] == solver)]
            means = rows.groupby("fold").mean(numeric_only=True)
            entries = [text(solver), number(len(rows), 0), with_error(*mean_and_error(means["n_features"]), digits=1)]
            name = next(cell.solver.name for cell in self.results if cell.solver.label == solver)
            for metric in metrics:
                entry = with_error(*mean_and_error(means[f"test {metric}"]))
                entry.mark = "*" if solver in significant[metric] else ""
                entries.append(entry)
                if published:
                    scores = published[name].scores if name in published else {}
                    entries.append(number(scores.get(metric, np.nan)))
            entries += [number(rows[f"{kind} seconds"].mean(), 2) for kind in ("training", "tuning")]
            table.rows.append(entries)
        for metric in metrics:
            column = table.columns.index(metric)
            mark_best([row[column] for row in table.rows])
        section = Section(f"Results: {problem.name}", tables=[table, self._front_table(problem)])
        for name, draw in (
            ("accuracy", figures.accuracy_figure),
            ("fronts", figures.fronts_figure),
            ("attainment", figures.attainment_figure),
            ("hypervolume", figures.hypervolume_figure),
            ("cost", figures.cost_figure),
        ):
            try:
                section.figures[f"{name}-{problem.name}"] = draw(self.results, problem)
            except ValueError:  # this study has nothing of the kind
                continue
        return section

    def _significant(self, problem: Problem, metric: str) -> set[str]:
        try:
            table = against_reference(self.results, problem.name, self.reference, metric)
        except ValueError:
            return set()
        return set(table.loc[table["holm"] <= ALPHA, "solver"])

    def _front_table(self, problem: Problem) -> Table:
        quality = front_quality(self.results, problem.name)
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

    def _tests(self) -> Section:
        tables = []
        for problem in self.problems:
            metric = next(r for c, r in self.results.items() if c.problem.name == problem.name).metrics[0]
            try:
                found = against_reference(self.results, problem.name, self.reference, metric)
            except ValueError:
                continue
            table = Table(
                f"tests-{problem.name}",
                f"{problem.name}: {metric} of each solver minus that of {self.reference}, query by query; wins, ties and "
                "losses count queries. p is that of the paired t test, then adjusted by Holm's method.",
                ["solver", "difference", "wins / ties / losses", "p", "Holm"],
            )
            for row in found.itertuples():
                table.rows.append(
                    [
                        text(row.solver),
                        with_error(row.difference, row.error),
                        Entry(f"{row.wins} / {row.ties} / {row.losses}", float(row.wins - row.losses)),
                        number(row.p, 3),
                        Entry(f"{row.holm:.3f}", row.holm, best=row.holm <= ALPHA),
                    ]
                )
            tables.append(table)
        section = Section("Tests", tables=[table for table in tables if table.rows])
        metric = next(iter(self.results.values())).metrics[0]
        ranks = solver_ranks(self.results, metric)
        if ranks is not None:
            section.paragraphs.append(
                f"Ranked on {ranks.test.n_blocks} folds by {metric}, the solvers differ with p = {ranks.test.p:.3g} "
                f"(Friedman); mean ranks differ beyond chance from {ranks.test.critical_difference:.2f} on (Nemenyi, "
                f"{ALPHA:.0%})."
            )
            section.figures["ranks"] = figures.ranks_figure(self.results)
        return section

    def _features(self) -> Section:
        section = Section("Features chosen")
        for problem in self.problems:
            found = of_problem(self.results, problem.name)
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
                size = float(np.mean([len(features) for features in chosen]))
                table.rows.append([text(solver), number(size, 1), *(number(s, 2) for s in stable), text(often)])
            if table.rows:
                section.tables.append(table)
                section.figures[f"frequency-{problem.name}"] = figures.frequency_figure(self.results, problem)
        return section

    def _ablations(self) -> Section:
        section = Section("Ablations")
        for problem in self.problems:
            found = of_problem(self.results, problem.name)
            names = [name for name in ABLATIONS if name in found]
            if "mofsrank" not in found or not names:
                continue
            quality = front_quality(self.results, problem.name).set_index(["solver", "fold", "seed"])["hypervolume"]
            frame = self.study.frame()
            frame = frame[frame["problem"] == problem.name].set_index(["solver", "fold", "seed"])
            metric = next(iter(found["mofsrank"].values()))[0].metrics[0]
            measures = {
                "hypervolume": quality,
                f"test {metric}": frame[f"test {metric}"],
                "features": frame["n_features"].astype(float),
            }
            table = Table(
                f"ablations-{problem.name}",
                f"{problem.name}: MOFSRank without one of its parts minus MOFSRank with all, over the same folds and "
                "seeds; p of the paired t test over the runs, adjusted by Holm's method within a column.",
                ["without", *(head for name in measures for head in (name, "p"))],
            )
            columns = [[_paired(series, name) for name in names] for series in measures.values()]
            adjusted = [holm([test.p for test in column]) for column in columns]
            for row, name in enumerate(names):
                entries = [text(name.removeprefix("mofsrank-no-").replace("-", " "))]
                for column, p in zip(columns, adjusted, strict=True):
                    entries += [with_error(column[row].difference, column[row].error), number(float(p[row]), 3)]
                table.rows.append(entries)
            section.tables.append(table)
            section.figures[f"ablation-{problem.name}"] = figures.ablation_figure(self.results, problem)
        return section

    def _reproduction(self) -> Section:
        versions = {name: set[str]() for result in self.results.values() for name in result.versions}
        for result in self.results.values():
            for name, version in result.versions.items():
                versions[name].add(version)
        table = Table("versions", "Versions of the libraries that the results come from.", ["library", "version"])
        table.rows.extend([text(name), text(", ".join(sorted(found)))] for name, found in versions.items())
        commands = "\n".join(self.study.commands())
        return Section(
            "How to reproduce",
            [
                "Every run draws from a seed that is derived from the names of its problem, fold and solver and the "
                "number of its seed, so that the same command gives the same results to the bit, on any number of "
                "processes:",
                commands,
            ],
            [table],
        )


def _paired(series: pd.Series, name: str) -> PairedTest:
    """Compare the runs of an ablation with those of the full search."""
    shared = series.loc[name].index.intersection(series.loc["mofsrank"].index)
    return compare_paired(series.loc[name].loc[shared], series.loc["mofsrank"].loc[shared])


def _enumeration(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

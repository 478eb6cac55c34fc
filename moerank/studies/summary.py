"""Means over the folds of a problem, beside published results and those of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from moerank.files import Json
from moerank.statistics import LEVEL
from moerank.studies.comparison import against_reference, verdicts
from moerank.studies.problem import Published
from moerank.studies.result import PARTS, Result
from moerank.studies.results import NoResultsError, Results, SolverMeans


@dataclass(frozen=True)
class SummaryRow:
    """One ranker's means over the folds."""

    name: str
    n_features: float
    means: dict[str, dict[str, float]]  # part, then metric, then the unweighted mean over the folds
    errors: dict[str, dict[str, float]]  # the standard errors of the same
    objectives: dict[str, float]  # means on the training part of those beyond features and error


@dataclass(frozen=True)
class Summary:
    """The table of all folds: the rows of the solver, then of the baselines, and published results beside them."""

    problem: str
    solver: str
    seed: int
    metrics: list[str]
    folds: list[int]
    rows: list[SummaryRow]
    published: list[Published]

    def as_dict(self) -> Json:
        """Return the summary as JSON keeps it, keys always in the same order."""
        rows = [{key: value for key, value in asdict(row).items() if value != {}} for row in self.rows]
        return {**asdict(self), "rows": rows, "published": [entry.model_dump(mode="json") for entry in self.published]}


def summarise(results: Sequence[Result], published: Sequence[Published] = ()) -> Summary:
    """Average the chosen member and each baseline of one solver and seed over two or more folds.

    Standard errors are those of a mean of independent folds, s / √n with s over n − 1.
    """
    found = Results(results).with_baselines()
    return Summary(
        problem=results[0].problem,
        solver=results[0].solver,
        seed=results[0].seed,
        metrics=results[0].metrics,
        folds=[result.fold for result in results],
        rows=[_row(name, means, found) for name, means in found.means().items()],
        published=list(published),
    )


def _row(name: str, means: SolverMeans, results: Results) -> SummaryRow:
    values = {part: {metric: means.mean(f"{part} {metric}") for metric in results.metrics} for part in PARTS}
    return SummaryRow(
        name=name,
        n_features=means.mean("n_features")[0],
        means={part: {metric: mean for metric, (mean, _) in table.items()} for part, table in values.items()},
        errors={part: {metric: error for metric, (_, error) in table.items()} for part, table in values.items()},
        objectives={name: means.mean(name)[0] for name in results.further_objectives},
    )


@dataclass(frozen=True)
class Choice:
    """What to take from a study of one problem: the solver with the best mean on validation queries.

    Everything is of the folds that all solvers have. Solvers that test queries show to be better or worse than it are
    counted by paired t tests at the level .05 after Holm, rankers that select nothing among them.
    """

    solver: str  # ties go to fewer features
    others: list[str]  # the other solvers that select features
    folds: list[int]
    n_features: float  # mean over folds after seeds
    value: float  # mean of the test metric over the folds, after seeds
    error: float  # its standard error
    loss: pd.Series  # its row of `verdicts`: against the same ranker on all features
    better: int
    worse: int
    undecided: int  # shown neither better nor worse
    best_on_test: str  # what one would take with the test values in sight
    compared: dict[str, float]  # mean number of settings and members that validation compared
    cross_validated: bool  # whether cross-validation within the training queries chose


def by_validation(results: Results) -> list[str]:
    """Return the solvers of one problem that select features, the one with the best validation mean first.

    The order is by the mean of the error's metric over folds, after seeds, on the training queries by cross-validation
    if all solvers have it, else on the validation queries; ties go to fewer features, then by name. Test queries do not
    count. Solvers without a verdict select nothing.
    """
    selecting = dict.fromkeys(result.solver for result in results if result.verdict is not None)
    means = results.among(list(selecting)).means() if selecting else {}
    column = "cross-validated" if cross_validated(results) else f"validation {results.metric}"
    # The last bits of a mean depend on the order of its sum: what agrees to ten places is a tie.
    order = [(-round(mean.mean(column)[0], 10), mean.mean("n_features")[0], name) for name, mean in means.items()]
    return [name for _, _, name in sorted(order)]


def cross_validated(results: Results) -> bool:
    """Whether all results that select features were cross-validated."""
    return all(result.cross_validated is not None for result in results if result.verdict is not None)


def chosen_solver(results: Results) -> Choice:
    """Choose a solver by the validation queries of one problem, and look at its test queries.

    Since test queries have no say in the choice, its difference from all features needs no adjustment for the number of
    solvers; its tests against the others are adjusted by Holm's method.
    """
    candidates = by_validation(results)
    if not candidates:
        raise NoResultsError("no finished run selects features and was judged by test queries")
    mine = results.by_solver()
    folds = sorted(set.intersection(*(set(mine[solver]) for solver in candidates)))
    if not folds:
        raise NoResultsError("the solvers that select features have no fold in common yet")
    shared = Results(result for result in results if result.fold in folds)
    solver, *others = by_validation(shared)
    means = shared.means()
    test = f"test {results.metric}"
    found = against_reference(shared, solver, results.metric)
    shown = found["holm"] <= LEVEL
    better, worse = (int(np.count_nonzero(shown & side)) for side in (found["difference"] > 0, found["difference"] < 0))
    value, error = means[solver].mean(test)
    return Choice(
        solver=solver,
        others=others,
        folds=folds,
        n_features=means[solver].mean("n_features")[0],
        value=value,
        error=error,
        loss=verdicts(shared.among([solver])).iloc[0],
        better=better,
        worse=worse,
        undecided=len(found) - better - worse,
        best_on_test=max([solver, *others], key=lambda name: round(means[name].mean(test)[0], 10)),
        compared={name: means[name].mean("compared")[0] for name in (solver, *others)},
        cross_validated=cross_validated(shared),
    )

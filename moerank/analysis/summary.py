"""Means over the folds of a problem, beside published results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from moerank.analysis.results import Results, SolverMeans
from moerank.runs.problem import Published
from moerank.runs.result import PARTS, RunResult

__all__ = ["Summary", "SummaryRow", "summarise"]


@dataclass(frozen=True)
class SummaryRow:
    """One ranker's means over the folds.

    Attributes
    ----------
    name : str
    n_features : float
        Mean number of features.
    means, errors : dict
        Part, then metric, then the unweighted mean over the folds and its standard error.
    objectives : dict
        The mean of each objective beyond the number of features and the error, on the training part.
    """

    name: str
    n_features: float
    means: dict[str, dict[str, float]]
    errors: dict[str, dict[str, float]]
    objectives: dict[str, float]


@dataclass(frozen=True)
class Summary:
    """The table of all folds.

    Attributes
    ----------
    problem, solver : str
    seed : int
    metrics : list of str
    folds : list of int
    rows : list of SummaryRow
        The solver, then the baselines.
    published : list of Published
    """

    problem: str
    solver: str
    seed: int
    metrics: list[str]
    folds: list[int]
    rows: list[SummaryRow]
    published: list[Published]

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as JSON keeps it, keys always in the same order."""
        rows = [asdict(row) for row in self.rows]
        for row in rows:
            if not row["objectives"]:
                del row["objectives"]
        published = [entry.model_dump(mode="json") for entry in self.published]
        return {**asdict(self), "rows": rows, "published": published}


def summarise(results: Sequence[RunResult], published: Sequence[Published] = ()) -> Summary:
    """Average the chosen member and each baseline over the folds.

    Parameters
    ----------
    results : sequence of RunResult, length ≥ 2
        The same solver and seed on different folds.
    published : sequence of Published
        What to show beside.

    Returns
    -------
    Summary
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

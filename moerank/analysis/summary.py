"""Means over the folds of a problem, beside published results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from moerank.runs.problem import Published
from moerank.runs.result import PARTS, RunResult, ScoredRanker

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
    """

    name: str
    n_features: float
    means: dict[str, dict[str, float]]
    errors: dict[str, dict[str, float]]


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
        return {**asdict(self), "published": [entry.model_dump(mode="json") for entry in self.published]}


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
    first = results[0]
    rankers = [[result.best, *result.baselines] for result in results]
    return Summary(
        problem=first.problem,
        solver=first.solver,
        seed=first.seed,
        metrics=first.metrics,
        folds=[result.fold for result in results],
        rows=[_row(folds, first.metrics) for folds in zip(*rankers, strict=True)],
        published=list(published),
    )


def _row(rankers: Sequence[ScoredRanker], metrics: Sequence[str]) -> SummaryRow:
    values = {
        part: {metric: np.array([ranker.scores[part][metric] for ranker in rankers]) for metric in metrics}
        for part in PARTS
    }
    return SummaryRow(
        name=rankers[0].name,
        n_features=float(np.mean([len(ranker.features) for ranker in rankers])),
        means={part: {name: float(by.mean()) for name, by in values[part].items()} for part in PARTS},
        errors={
            part: {name: float(by.std(ddof=1) / np.sqrt(len(by))) for name, by in values[part].items()}
            for part in PARTS
        },
    )

"""What a study says of its solvers: tests against a reference, ranks, the quality of fronts, stability of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moerank.runs.result import PARTS, RunResult
from moerank.statistics import (
    PairedTest,
    RankTest,
    compare_paired,
    friedman,
    holm,
    hypervolume,
    igd_plus,
    joint_front,
)
from moerank.studies.cell import Cell

__all__ = [
    "SolverRanks",
    "against_reference",
    "compare_runs",
    "feature_stability",
    "front_points",
    "front_quality",
    "results_frame",
    "solver_ranks",
]

Results: TypeAlias = Mapping[Cell, RunResult]
Array: TypeAlias = NDArray[np.float64]


def results_frame(results: Results) -> pd.DataFrame:
    """Return one row a cell.

    Columns: ``problem``, ``fold``, ``solver`` (its label), ``seed``, ``n_features``, the metrics of the chosen ranker
    as ``train NDCG@10`` and so on, ``tuning seconds`` and ``training seconds`` of the processor.
    """
    rows = []
    for cell, result in results.items():
        best, seconds = result.best, result.times["processor"]
        rows.append(
            {
                "problem": cell.problem.name,
                "fold": cell.fold,
                "solver": cell.solver.label,
                "seed": cell.seed,
                "n_features": len(best.features),
                **{f"{part} {name}": value for part in PARTS for name, value in best.scores[part].items()},
                "tuning seconds": seconds["tuning"],
                "training seconds": seconds["solver"],
            }
        )
    return pd.DataFrame(rows)


def compare_runs(values: pd.Series, solver: str, reference: str) -> PairedTest:
    """Compare two solvers by a value of each run, over the folds and seeds that both have.

    The differences of the seeds are averaged on each fold first, so that the test is over folds: runs of one fold share
    their queries, and say nothing about others.

    Parameters
    ----------
    values : Series
        By ``solver``, ``fold`` and ``seed``.
    solver, reference : str
        Labels of solvers in `values`.
    """
    difference = (values.loc[solver] - values.loc[reference]).dropna().groupby("fold").mean()
    return compare_paired(difference, np.zeros(len(difference)))


def against_reference(results: Results, problem: str, reference: str, metric: str, part: str = "test") -> pd.DataFrame:
    """Compare every solver with one of them, query by query over all folds that both have.

    Values of several seeds are averaged for each query first.

    Returns
    -------
    DataFrame
        One row a solver: ``solver``, ``difference`` (solver minus reference) and ``error`` of its mean, ``wins``,
        ``ties`` and ``losses`` in queries, ``p`` of the paired t test and ``holm``, p adjusted for all rows.
    """
    values = _query_values(results, problem, metric, part)
    if reference not in values:
        raise ValueError(f"no finished cell of {reference} on {problem}: it cannot be the reference")
    rows = []
    for solver, folds in values.items():
        shared = sorted(folds.keys() & values[reference].keys())
        if solver == reference or not shared:
            continue
        first, second = (np.concatenate([side[fold] for fold in shared]) for side in (folds, values[reference]))
        rows.append({"solver": solver, **compare_paired(first, second).__dict__})
    columns = ["solver", "difference", "error", "wins", "ties", "losses", "p"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(holm=holm(frame["p"]) if len(frame) else [])


@dataclass(frozen=True)
class SolverRanks:
    """Mean ranks of solvers over the folds of all problems; see `RankTest`.

    Attributes
    ----------
    solvers : list of str
        The best mean rank first, as in `test.ranks`.
    test : RankTest
    problems : list of str
        Those whose folds are the blocks.
    """

    solvers: list[str]
    test: RankTest
    problems: list[str]


def solver_ranks(
    results: Results, metric: str, part: str = "test", alpha: float = 0.05, problem: str | None = None
) -> SolverRanks | None:
    """Rank the solvers on every fold of every problem, or of one, that all of them have; None for too few.

    A solver's value on a fold is its mean over the seeds.
    """
    rows = [
        (cell.problem.name, cell.fold, cell.solver.label, result.best.scores[part][metric])
        for cell, result in results.items()
        if metric in result.metrics and problem in (None, cell.problem.name)
    ]
    frame = pd.DataFrame(rows, columns=["problem", "fold", "solver", "value"])
    table = frame.pivot_table(index=["problem", "fold"], columns="solver", values="value").dropna()
    if len(table) < 2 or len(table.columns) < 3:
        return None
    test = friedman(table.to_numpy(), alpha)
    order = np.argsort(test.ranks, kind="stable")
    ranked = RankTest(test.ranks[order], test.p, test.critical_difference, test.n_blocks)
    problems = list(dict.fromkeys(table.index.get_level_values("problem")))
    return SolverRanks([str(table.columns[i]) for i in order], ranked, problems)


def front_points(result: RunResult, part: str = "train") -> Array:
    """Return number of features and 1 − metric of what a solver offers, shape (n_members, 2)."""
    metric = result.metrics[0]
    return np.array([(len(member.features), 1.0 - member.scores[part][metric]) for member in result.front])


def front_quality(results: Results, problem: str, part: str = "train") -> pd.DataFrame:
    """Return the quality of each cell's front on one part of the data.

    Returns
    -------
    DataFrame
        One row a cell: ``solver``, ``fold``, ``seed``, ``hypervolume`` (as a share of the rectangle up to all features
        and the error 1) and ``igd_plus`` to the joint front of all cells of the fold, features as a share of all.
    """
    mine = {cell: result for cell, result in results.items() if cell.problem.name == problem}
    points = {cell: front_points(result, part) for cell, result in mine.items()}
    folds = {cell.fold for cell in mine}
    targets = {fold: joint_front([points[cell] for cell in mine if cell.fold == fold]) for fold in folds}
    rows = []
    for cell, result in mine.items():
        scale = (len(result.feature_names), 1.0)
        rows.append(
            {
                "solver": cell.solver.label,
                "fold": cell.fold,
                "seed": cell.seed,
                "hypervolume": hypervolume(points[cell], reference=scale),
                "igd_plus": igd_plus(points[cell], targets[cell.fold], scale=scale),
            }
        )
    return pd.DataFrame(rows, columns=["solver", "fold", "seed", "hypervolume", "igd_plus"])


def feature_stability(chosen: Sequence[Sequence[int]], n_features: int) -> tuple[float, float]:
    """Return how much the choices of several runs agree: mean pairwise Jaccard index, and corrected for chance.

    Parameters
    ----------
    chosen : sequence of sequences of int
        The columns that each run chose, at least two runs.
    n_features : int
        Number of columns there are.

    Returns
    -------
    jaccard : float, in [0, 1]
        |A ∩ B| / |A ∪ B|, averaged over the pairs of runs; 1 for two empty choices.
    corrected : float, at most 1
        (jaccard − expected) / (1 − expected), where expected is the mean Jaccard index of random choices of the same
        sizes; 0 for chance, NaN where chance always agrees.

    Examples
    --------
    >>> feature_stability([[0, 1], [0, 1], [0, 2]], n_features=10)[0].__round__(4)
    0.5556
    """
    pairs = [(set(a), set(b)) for a, b in combinations(chosen, 2)]
    if not pairs:
        raise ValueError("stability needs at least two runs")
    jaccard = np.mean([len(a & b) / len(a | b) if a | b else 1.0 for a, b in pairs])
    expected = np.mean([_expected_jaccard(len(a), len(b), n_features) for a, b in pairs])
    corrected = (jaccard - expected) / (1.0 - expected) if expected < 1.0 else np.nan
    return float(jaccard), float(corrected)


def _expected_jaccard(size_a: int, size_b: int, n_features: int) -> float:
    """Mean Jaccard index of two random subsets: their intersection is hypergeometric."""
    from scipy.stats import hypergeom

    if size_a + size_b == 0:
        return 1.0
    common = np.arange(min(size_a, size_b) + 1)
    chance = hypergeom.pmf(common, n_features, size_a, size_b)
    return float(chance @ (common / (size_a + size_b - common)))


def _query_values(results: Results, problem: str, metric: str, part: str) -> dict[str, dict[int, Array]]:
    """Values of each query by solver and fold, averaged over the seeds."""
    runs: dict[str, dict[int, list[Array]]] = {}
    for cell, result in results.items():
        if cell.problem.name == problem:
            values = np.asarray(result.best.per_query[part][metric])
            runs.setdefault(cell.solver.label, {}).setdefault(cell.fold, []).append(values)
    return {
        solver: {fold: np.asarray(np.mean(values, axis=0)) for fold, values in folds.items()}
        for solver, folds in runs.items()
    }

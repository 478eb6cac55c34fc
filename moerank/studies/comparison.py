"""Tests between solvers: against a reference query by query, by paired runs, and by ranks over folds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, log2

import numpy as np
import pandas as pd

from moerank.arrays import Vector
from moerank.statistics import PairedTest, RankTest, compare_paired, friedman, holm, signed_rank_p
from moerank.studies.results import NoResultsError, Results


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


def against_reference(results: Results, reference: str, metric: str, part: str = "test") -> pd.DataFrame:
    """Compare every solver with one of them, query by query over all folds that both have.

    Values of several seeds are averaged for each query first.

    Parameters
    ----------
    results : Results
        Of one problem.
    reference : str
        The label of a solver.
    metric, part : str

    Returns
    -------
    DataFrame
        One row per solver: ``solver``, ``difference`` (solver minus reference) and ``error`` of its mean, ``wins``,
        ``ties`` and ``losses`` in queries, ``p`` of the paired t test and ``holm``, p adjusted for all rows.

    Raises
    ------
    NoResultsError
        If the reference has no result.
    """
    values = results.query_values(metric, part)
    if reference not in values:
        where = ", ".join(results.problems)
        raise NoResultsError(f"there is no finished run of {reference} on {where}: it cannot be the reference")
    rows = []
    for solver, folds in values.items():
        shared = folds.keys() & values[reference].keys()
        if solver != reference and shared:
            test = compare_paired(pooled(folds, shared), pooled(values[reference], shared))
            rows.append({"solver": solver, **test.__dict__})
    columns = ["solver", "difference", "error", "wins", "ties", "losses", "p"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(holm=holm(frame["p"]) if len(frame) else [])


def pooled(values: Mapping[int, Vector], folds: Iterable[int]) -> Vector:
    """Return the values of the queries of some folds, in the order of the folds."""
    return np.concatenate([values[fold] for fold in sorted(folds)])


def verdicts(results: Results) -> pd.DataFrame:
    """Return what the runs of each solver lose against the same ranker on all features, where they have a verdict.

    Parameters
    ----------
    results : Results
        Of one problem.

    Returns
    -------
    DataFrame
        One row per solver: ``solver``, ``against`` (the kind of the other ranker; empty for a search's own backend),
        ``runs``, ``n_features``, the ``verdict`` on the test queries of all folds, and the runs in which a ``loss`` or
        a ``gain`` was detected or the selection shown ``equivalent``.

    Notes
    -----
    The differences of a query are averaged over the seeds first.
    """
    rows = []
    for solver, runs_of in Results(result for result in results if result.verdict is not None).by_solver().items():
        folds = {fold: [run.verdict for run in runs if run.verdict is not None] for fold, runs in runs_of.items()}
        found = [verdict for runs in folds.values() for verdict in runs]
        first = found[0]
        n_features = float(np.mean([np.mean([verdict.n_features for verdict in runs]) for runs in folds.values()]))
        means = [np.mean([verdict.differences for verdict in runs], axis=0) for runs in folds.values()]
        pooled_verdict = first.model_copy(
            update={
                "n_queries": sum(runs[0].n_queries for runs in folds.values()),
                "differences": tuple(np.concatenate(means).tolist()),
                "n_features": round(n_features),
                "margin": max(verdict.margin for verdict in found),
                "against": first.against.partition("(")[0],
                "advice": "",
                "rival": "",
            }
        )
        rows.append(
            {
                "solver": solver,
                "against": pooled_verdict.against,
                "runs": len(found),
                "n_features": n_features,
                "verdict": pooled_verdict,
                "loss": sum(verdict.finding == "loss" for verdict in found),
                "gain": sum(verdict.finding == "gain" for verdict in found),
                "equivalent": sum(verdict.equivalent for verdict in found),
            }
        )
    return pd.DataFrame(rows)


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


def solver_ranks(results: Results, metric: str, part: str = "test", alpha: float = 0.05) -> SolverRanks:
    """Rank the solvers on every fold of every problem that all of them have.

    A solver's value on a fold is its mean over the seeds. Results of problems without the metric do not count.

    Raises
    ------
    NoResultsError
        If there are fewer than three solvers or two folds.
    """
    rows = [
        (result.problem, result.fold, result.solver, result.best.score(part, metric))
        for result in results
        if metric in result.metrics or metric in result.best.further.get(part, ())
    ]
    frame = pd.DataFrame(rows, columns=["problem", "fold", "solver", "value"])
    table = frame.pivot_table(index=["problem", "fold"], columns="solver", values="value").dropna()
    if len(table) < 2 or len(table.columns) < 3:
        raise NoResultsError("ranks need at least three solvers that have at least two folds in common")
    test = friedman(table.to_numpy(), alpha)
    order = np.argsort(test.ranks, kind="stable")
    ranked = RankTest(test.ranks[order], test.p, test.critical_difference, test.n_blocks)
    problems = list(dict.fromkeys(table.index.get_level_values("problem")))
    return SolverRanks([str(table.columns[i]) for i in order], ranked, problems)


COLUMNS = ["solver", "other", "n", "difference", "error", "wins", "ties", "losses", "p", "holm"]


def query_pairs(results: Results, metric: str, part: str = "test") -> pd.DataFrame:
    """Compare all pairs of solvers, query by query over all folds that both have.

    Values of several seeds are averaged for each query first.

    Parameters
    ----------
    results : Results
        Of one problem.
    metric, part : str

    Returns
    -------
    DataFrame
        One row per pair, in the order of the study: ``solver``, ``other``, ``n`` queries, ``difference`` (solver minus
        other) and ``error`` of its mean, ``wins``, ``ties`` and ``losses`` of the solver in queries, ``p`` of the
        paired t test and ``holm``, p adjusted for all rows.

    Notes
    -----
    The rankers of a fold are trained on the same data: the tests speak of other queries for such rankers, and do not
    say how they would do with other training data. O(n_solvers² · n_queries).
    """
    values = results.query_values(metric, part)
    rows = []
    for solver, other in combinations(values, 2):
        shared = values[solver].keys() & values[other].keys()
        if shared:
            test = compare_paired(pooled(values[solver], shared), pooled(values[other], shared))
            rows.append({"solver": solver, "other": other, "n": test.wins + test.ties + test.losses, **test.__dict__})
    return _adjusted(rows)


def hypervolume_pairs(quality: pd.DataFrame, searches: Sequence[str], alpha: float = 0.05) -> pd.DataFrame:
    """Compare all pairs of searches by the hypervolume of their last fronts, over the cells that both have.

    A cell is a fold with a seed.

    Parameters
    ----------
    quality : DataFrame
        By `front_quality`, of one problem.
    searches : sequence of str
        Labels of solvers in it.
    alpha : float, default 0.05

    Returns
    -------
    DataFrame
        As `query_pairs`, with ``n`` cells and ``p`` of the signed-rank test. A pair with fewer than the `fewest_cells`
        for so many rows is not tested: its ``p`` and ``holm`` are NaN, and others are not adjusted for it.

    Notes
    -----
    Seeds of a fold share its data: the tests speak of other draws of the searches on these folds, not of other data.

    Examples
    --------
    >>> cells = {"fold": [1, 1, 1, 2, 2, 2], "seed": [0, 1, 2, 0, 1, 2]}
    >>> a = pd.DataFrame({"solver": "a", **cells, "hypervolume": [0.6, 0.7, 0.6, 0.5, 0.6, 0.5]})
    >>> b = pd.DataFrame({"solver": "b", **cells, "hypervolume": [0.5, 0.5, 0.3, 0.1, 0.1, -0.1]})
    >>> hypervolume_pairs(pd.concat([a, b]), ["a", "b"])[["n", "wins", "p", "holm"]].values.tolist()
    [[6.0, 6.0, 0.03125, 0.03125]]
    """
    values = quality.set_index(["solver", "fold", "seed"])["hypervolume"]
    common = {
        (solver, other): values.loc[solver].align(values.loc[other], join="inner")
        for solver, other in combinations(searches, 2)
    }
    common = {pair: cells for pair, cells in common.items() if len(cells[0])}
    needed = fewest_cells(len(common), alpha)
    rows = []
    for (solver, other), (first, second) in common.items():
        test = compare_paired(first, second)
        p = signed_rank_p(first, second) if len(first) >= needed else np.nan
        rows.append({"solver": solver, "other": other, "n": len(first), **test.__dict__, "p": p})
    return _adjusted(rows)


def fewest_cells(n_pairs: int, alpha: float = 0.05) -> int:
    """Return how many cells signed-rank tests of `n_pairs` need so that one can come down to `alpha`, adjusted by Holm.

    The least p value with n cells is 2^(1 − n), and the least of all is multiplied by the number of tests.

    Examples
    --------
    >>> fewest_cells(1), fewest_cells(10), fewest_cells(120)
    (6, 9, 13)
    """
    return 1 + ceil(log2(max(n_pairs, 1) / alpha))


def standings(pairs: pd.DataFrame, alpha: float = 0.05) -> dict[str, dict[str, list[str]]]:
    """Return for each solver which others it is shown to be better and worse than, and for which nothing is shown.

    Parameters
    ----------
    pairs : DataFrame
        By `query_pairs` or `hypervolume_pairs`.
    alpha : float, default 0.05
        The level of the adjusted p values.

    Returns
    -------
    dict
        By solver, then "better", "worse" and "undecided": the labels of the others that were tested against it.

    Examples
    --------
    >>> row = {"solver": "a", "other": "b", "difference": 0.1, "holm": 0.01}
    >>> standings(pd.DataFrame([row]))["b"]
    {'better': [], 'worse': ['a'], 'undecided': []}
    """
    names = dict.fromkeys([*pairs["solver"], *pairs["other"]])
    found: dict[str, dict[str, list[str]]] = {name: {"better": [], "worse": [], "undecided": []} for name in names}
    for pair in pairs.dropna(subset="holm").itertuples():
        shown = pair.holm <= alpha
        ahead = "better" if pair.difference > 0 else "worse"
        behind = "worse" if pair.difference > 0 else "better"
        found[pair.solver][ahead if shown else "undecided"].append(pair.other)
        found[pair.other][behind if shown else "undecided"].append(pair.solver)
    return found


def _adjusted(rows: list[dict[str, object]]) -> pd.DataFrame:
    """Return the rows with their p values adjusted for the number of tests."""
    frame = pd.DataFrame(rows, columns=COLUMNS)
    tested = frame["p"].notna()
    frame["holm"] = np.nan
    frame.loc[tested, "holm"] = holm(frame.loc[tested, "p"].to_numpy(float))
    return frame

"""Tests between solvers, and the choice of one by validation queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import ceil, log2

import numpy as np
import pandas as pd

from moerank.arrays import Vector
from moerank.statistics import LEVEL, PairedTest, RankTest, compare_paired, friedman, holm, signed_rank_p
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
    tests = _query_tests(values, ((solver, reference) for solver in values if solver != reference))
    return tests.drop(columns=["other", "n"])


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
        folds = [[run.verdict for run in runs if run.verdict is not None] for runs in runs_of.values()]
        every = list(chain.from_iterable(folds))
        n_features = float(np.mean([np.mean([verdict.n_features for verdict in runs]) for runs in folds]))
        means = [np.mean([verdict.differences for verdict in runs], axis=0) for runs in folds]
        against = every[0].against.partition("(")[0]
        total = {
            "n_queries": sum(runs[0].n_queries for runs in folds),
            "differences": tuple(np.concatenate(means).tolist()),
            "n_features": round(n_features),
            "margin": max(verdict.margin for verdict in every),
        }
        counts = Counter(verdict.finding for verdict in every)
        rows.append(
            {
                "solver": solver,
                "against": against,
                "runs": len(every),
                "n_features": n_features,
                "verdict": every[0].model_copy(update={**total, "against": against, "advice": "", "rival": ""}),
                "loss": counts["loss"],
                "gain": counts["gain"],
                "equivalent": sum(verdict.equivalent for verdict in every),
            }
        )
    return pd.DataFrame(rows)


def solver_ranks(results: Results, metric: str, part: str = "test", alpha: float = 0.05) -> tuple[list[str], RankTest]:
    """Rank the solvers on every fold of every problem that all of them have.

    A solver's value on a fold is its mean over the seeds. Results of problems without the metric do not count.

    Returns
    -------
    solvers : list of str
        The best mean rank first.
    test : RankTest
        With the mean ranks over the folds in this order.

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
    return [str(table.columns[i]) for i in order], ranked


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
    return _query_tests(values, combinations(values, 2))


def _query_tests(values: Mapping[str, Mapping[int, Vector]], pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """Test the pairs of solvers that have folds in common, of which `values` has the queries."""
    rows = []
    for solver, other in pairs:
        if shared := sorted(values[solver].keys() & values[other].keys()):
            first, second = (np.concatenate([values[name][fold] for fold in shared]) for name in (solver, other))
            test = compare_paired(first, second)
            rows.append({"solver": solver, "other": other, "n": len(first), **test.__dict__})
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
    rows = []
    for solver, other in combinations(searches, 2):
        first, second = values.loc[solver].align(values.loc[other], join="inner")
        if len(first):
            test = {**compare_paired(first, second).__dict__, "p": signed_rank_p(first, second)}
            rows.append({"solver": solver, "other": other, "n": len(first), **test})
    return _adjusted(rows, fewest_cells(len(rows), alpha))


def fewest_cells(n_pairs: int, alpha: float = 0.05) -> int:
    """Return how many cells signed-rank tests of `n_pairs` need so that one can come down to `alpha`, adjusted by Holm.

    The least p value with n cells is 2^(1 − n), and the least of all is multiplied by the number of tests.

    Examples
    --------
    >>> fewest_cells(1), fewest_cells(10), fewest_cells(120)
    (6, 9, 13)
    """
    return 1 + ceil(log2(max(n_pairs, 1) / alpha))


def _adjusted(rows: list[dict[str, object]], fewest: int = 0) -> pd.DataFrame:
    """Return the rows with p values adjusted for the number of tests; rows of fewer than `fewest` values are none."""
    frame = pd.DataFrame(rows, columns=COLUMNS)
    frame.loc[frame["n"] < fewest, "p"] = np.nan
    tested = frame["p"].notna()
    frame.loc[tested, "holm"] = holm(frame.loc[tested, "p"].to_numpy(float))
    return frame


@dataclass(frozen=True)
class Choice:
    """What to take from a study of one problem: the solver with the best mean on validation queries.

    Everything is of the folds that all solvers have. Solvers that test queries show to be better or worse than it are
    counted by paired t tests at the level .05 after Holm, rankers that select nothing among them.
    """

    solver: str  # ties go to fewer features
    others: list[str]  # the other solvers that select features
    n_features: float  # mean over folds after seeds
    loss: pd.Series  # its row of `verdicts`: against the same ranker on all features
    better: int
    worse: int
    undecided: int  # shown neither better nor worse


def by_validation(results: Results) -> list[str]:
    """Return the solvers of one problem that select features, the one with the best validation mean first.

    The order is by the mean of the error's metric over folds, after seeds; ties go to fewer features, then by name.
    Test queries do not count. Solvers without a verdict select nothing.
    """
    selecting = dict.fromkeys(result.solver for result in results if result.verdict is not None)
    means = results.among(list(selecting)).means() if selecting else {}
    column = f"validation {results.metric}"
    # The last bits of a mean depend on the order of its sum: what agrees to ten places is a tie.
    order = [(-round(mean.mean(column)[0], 10), mean.mean("n_features")[0], name) for name, mean in means.items()]
    return [name for _, _, name in sorted(order)]


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
    tests = against_reference(shared, solver, results.metric)
    signs = np.sign(tests["difference"]).where(tests["holm"] <= LEVEL, 0.0)
    better, worse = (int(np.count_nonzero(signs == sign)) for sign in (1, -1))
    return Choice(
        solver=solver,
        others=others,
        n_features=shared.means()[solver].mean("n_features")[0],
        loss=verdicts(shared.among([solver])).iloc[0],
        better=better,
        worse=worse,
        undecided=len(tests) - better - worse,
    )

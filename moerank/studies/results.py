"""The results of a study, read back: their means, fronts and tests, and the choice of a solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import TypeAlias

import numpy as np
import pandas as pd

from moerank.arrays import Vector
from moerank.checks import unknown
from moerank.files import Json
from moerank.statistics import (
    PairedTest,
    RankTest,
    compare_paired,
    friedman,
    holm,
    hypervolume,
    igd_plus,
    joint_front,
    mean_and_error,
)
from moerank.studies.result import PARTS, Result

Runs: TypeAlias = dict[int, list[Result]]
"""The results of a solver on a problem by fold, one for each seed."""


class NoResultsError(ValueError):
    """A study has no result of the kind that is asked for."""


@dataclass(frozen=True)
class SolverMeans:
    """What is said of a solver on a problem: means over folds, after seeds, for runs of one fold share their queries.

    Attributes
    ----------
    n_runs : int
        Runs of all folds and seeds.
    folds : DataFrame
        The numbers of `results_frame` by fold, averaged over the seeds, and their ``seconds``: tuning and training.
    """

    n_runs: int
    folds: pd.DataFrame

    def mean(self, column: str) -> tuple[float, float]:
        """Return the mean of a column over the folds and its standard error, NaN for a single fold."""
        return mean_and_error(self.folds[column])


class Results(tuple[Result, ...]):
    """Results in the order of a study; the views of them that tables, tests and figures share.

    Examples
    --------
    >>> results = Results([])
    >>> results, results.problems
    (Results(0 results), [])
    """

    def __repr__(self) -> str:
        return f"Results({len(self)} results)"

    @property
    def problems(self) -> list[str]:
        """The names of the problems."""
        return list(dict.fromkeys(result.problem for result in self))

    @property
    def solvers(self) -> list[str]:
        """The labels of the solvers."""
        return list(dict.fromkeys(result.solver for result in self))

    @property
    def searches(self) -> list[str]:
        """The labels of the solvers whose fronts come from a search."""
        return list(dict.fromkeys(result.solver for result in self if result.convergence))

    @property
    def folds(self) -> list[int]:
        """The folds, ascending."""
        return sorted({result.fold for result in self})

    @property
    def metrics(self) -> list[str]:
        """The metrics of the tables, that of the error first."""
        return list(dict.fromkeys(metric for result in self for metric in result.metrics))

    @property
    def all_metrics(self) -> list[str]:
        """The metrics of the chosen members, those of the tables first."""
        return list(dict.fromkeys([*self.metrics, *(m for run in self for m in run.best.further.get("test", ()))]))

    def named_metric(self, name: str, metrics: Sequence[str]) -> str:
        """Return the metric of a name, which may leave out the convention: "NDCG@5" for "NDCG@5 (letor)".

        Raises
        ------
        ValueError
            If it is not among `metrics`.
        """
        for metric in metrics:
            if name in (metric, metric.partition(" (")[0]):
                return metric
        raise ValueError(unknown("metric", name, metrics))

    @property
    def metric(self) -> str:
        """The metric of the error.

        Raises
        ------
        NoResultsError
            If there is no result.
        """
        if not self:
            raise NoResultsError("there is no finished run")
        return self[0].metrics[0]

    @property
    def objectives(self) -> list[str]:
        """The names of the objectives that all results have."""
        every = [result.objectives for result in self]
        return [name for name in every[0] if all(name in names for names in every)] if every else []

    @property
    def further_objectives(self) -> list[str]:
        """Those beyond the number of features and the error, which every table has."""
        return [name for name in self.objectives if name in self[0].further_objectives]

    def of(self, problem: str) -> Results:
        """Return the results of a problem.

        Raises
        ------
        NoResultsError
            If there is none.
        """
        results = Results(result for result in self if result.problem == problem)
        if not results:
            raise NoResultsError(f"there is no finished run of {problem}")
        return results

    def among(self, solvers: Sequence[str]) -> Results:
        """Return the results of these solvers, in their order; all for none.

        Raises
        ------
        ValueError
            If one of them has no result.
        """
        if not solvers:
            return self
        for solver in solvers:
            if solver not in self.solvers:
                raise ValueError(unknown("solver", solver, self.solvers))
        return Results(result for solver in solvers for result in self if result.solver == solver)

    def by_solver(self) -> dict[str, Runs]:
        """Return the results by label of the solver and fold, one for each seed."""
        runs: dict[str, Runs] = {}
        for result in self:
            runs.setdefault(result.solver, {}).setdefault(result.fold, []).append(result)
        return runs

    def by_run(self, solver: str, value: Callable[[Result], float]) -> pd.Series:
        """Return a value of each run of a solver by fold and seed."""
        return pd.Series({(run.fold, run.seed): value(run) for run in self if run.solver == solver}, dtype=float)

    def first_runs(self, fold: int) -> dict[str, Result]:
        """Return the run of each solver on a fold with its first seed, where there is one."""
        return {solver: folds[fold][0] for solver, folds in self.by_solver().items() if fold in folds}

    def with_baselines(self) -> Results:
        """Return the results, and each baseline as a result of its own, without the times and counts of the solver."""
        results = []
        for result in self:
            times = result.times.model_copy(update={"tuning": np.nan, "solver": np.nan})
            own = {"times": times, "chosen": 0}
            named = [{**own, "solver": baseline.name, "front": [baseline]} for baseline in result.baselines]
            results += [result, *(result.model_copy(update=update) for update in named)]
        return Results(results)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The numbers of all runs, see `results_frame`."""
        return results_frame(self)

    def means(self) -> dict[str, SolverMeans]:
        """Return what is said of each solver; of the results of one problem."""
        means = {}
        for solver, rows in self.frame.groupby("solver", sort=False) if self else ():
            folds = rows.drop(columns="seed").groupby("fold").mean(numeric_only=True)
            seconds = folds["tuning seconds"] + folds["training seconds"]
            means[str(solver)] = SolverMeans(len(rows), folds.assign(seconds=seconds))
        return means

    def query_values(self, metric: str, part: str = "test") -> dict[str, dict[int, Vector]]:
        """Return the metric of each query by solver and fold, averaged over the seeds; of one problem."""
        return {
            solver: {
                fold: np.asarray(np.mean([np.asarray(run.best.per_query[part][metric]) for run in runs], axis=0))
                for fold, runs in folds.items()
            }
            for solver, folds in self.by_solver().items()
        }


def results_frame(results: Iterable[Result], *, members: bool = False) -> pd.DataFrame:
    """Return one row per run, or one per member of the front of each run.

    Columns: ``problem``, ``fold``, ``solver`` (its label), ``seed``, for members ``member`` (from 1, as in front.csv)
    and ``chosen``, then ``n_features``, the metrics of the ranker as ``train NDCG@10`` and so on, its objectives beyond
    features and error by their names, ``instances`` (the share of the units of instance selection that it was trained
    on), ``tuning seconds`` and ``training seconds`` of the processor. NaN stands for what a run does not have. Of the
    metrics those of the tables come first; then NDCG and precision to each of the ranks 1 to 10, MAP and MeanNDCG.

    Parameters
    ----------
    results : iterable of Result
    members : bool, default False
        A row for each member of the front instead of the chosen one alone.
    """
    return pd.DataFrame(
        [
            _row(result, number, members=members)
            for result in results
            for number in (range(len(result.front)) if members else [result.chosen])
        ]
    )


def _row(result: Result, number: int, *, members: bool) -> Json:
    member, seconds = result.front[number], result.times
    return {
        "problem": result.problem,
        "fold": result.fold,
        "solver": result.solver,
        "seed": result.seed,
        **({"member": number + 1, "chosen": number == result.chosen} if members else {}),
        "n_features": len(member.features),
        **{f"{part} {name}": value for part in PARTS for name, value in member.scores[part].items()},
        **{name: member.objectives[name] for name in result.further_objectives},
        "instances": np.nan if member.instances is None else member.instances / (result.n_instances or 1),
        "tuning seconds": seconds.tuning,
        "training seconds": seconds.solver,
        **{f"{part} {name}": value for part, means in member.further.items() for name, value in means.items()},
    }


def offers_sizes(folds: Runs) -> bool:
    """Whether a solver offers more than one number of features in some run."""
    return any(len(run.front) > 1 for runs in folds.values() for run in runs)


def best_by_size(result: Result, part: str, metric: str, chosen_on: str = "validation") -> Vector:
    """Return the metric of the best that a solver offers with at most 1, 2, … features, shape (n_features,).

    The best is the one with the highest value of the error's metric on the part `chosen_on`, ties to fewer features:
    that is how it would be chosen. NaN where nothing so small is offered.
    """
    sizes = np.array([len(member.features) for member in result.front])
    quality = np.array([member.scores[chosen_on][result.metrics[0]] for member in result.front])
    values = np.array([member.scores[part][metric] for member in result.front])
    order = np.lexsort((sizes, -quality))  # the best first
    small = sizes[order] <= np.arange(1, len(result.feature_names) + 1)[:, None]
    return np.where(small.any(axis=1), values[order][small.argmax(axis=1)], np.nan)


def mean_by_size(folds: Runs, part: str, metric: str, chosen_on: str = "validation") -> Vector:
    """Return `best_by_size` averaged over seeds, then folds; NaN where any run offers nothing so small."""
    means = [np.mean([best_by_size(run, part, metric, chosen_on) for run in runs], axis=0) for runs in folds.values()]
    return np.asarray(np.mean(means, axis=0))


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


def front_points(result: Result, objectives: Sequence[str] | None = None) -> Vector:
    """Return the objectives of what a solver offers, on the training part, shape (n_members, n_objectives).

    Parameters
    ----------
    result : Result
    objectives : sequence of str, optional
        Their names; by default all of the result.
    """
    names = result.objectives if objectives is None else objectives
    return np.array([[member.objectives[name] for name in names] for member in result.front])


def front_box(results: Sequence[Result], objectives: Sequence[str]) -> tuple[Vector, Vector]:
    """Return the least and the largest value of each objective, the box in which fronts are compared.

    The number of features is between 0 and that of all, the error between 0 and 1. Results do not say how large other
    objectives can be: their box is that of the members of all `results`, and its sides 1 where all have one value.

    Parameters
    ----------
    results : sequence of Result, length ≥ 1
        Of one fold: those that are compared.
    objectives : sequence of str

    Returns
    -------
    ideal, reference : ndarray, shape (n_objectives,)
    """
    points = np.concatenate([front_points(result, objectives) for result in results])
    ideal, reference = points.min(axis=0), points.max(axis=0)
    reference = np.where(reference > ideal, reference, ideal + 1.0)
    largest = {"features": float(len(results[0].feature_names)), "error": 1.0}
    for column, name in enumerate(objectives):
        if name in largest:
            ideal[column], reference[column] = 0.0, largest[name]
    return ideal, reference


def front_quality(results: Results) -> pd.DataFrame:
    """Return the quality of the front of each run, in the objectives that all of them have, on the training part.

    Parameters
    ----------
    results : Results
        Of one problem.

    Returns
    -------
    DataFrame
        One row per run: ``solver``, ``fold``, ``seed``, ``hypervolume``, as a share of the box of its fold (see
        `front_box`), and ``igd_plus`` to the joint front of all runs of the fold, each objective as a share of the
        box.
    """
    objectives = results.objectives
    folds = {fold: [result for result in results if result.fold == fold] for fold in results.folds}
    boxes = {fold: front_box(runs, objectives) for fold, runs in folds.items()}
    targets = {fold: joint_front([front_points(run, objectives) for run in runs]) for fold, runs in folds.items()}
    rows = []
    for result in results:
        points, (ideal, reference) = front_points(result, objectives), boxes[result.fold]
        volume = hypervolume(points, reference=reference.tolist(), ideal=ideal.tolist())
        distance = igd_plus(points, targets[result.fold], scale=(reference - ideal).tolist())
        rows.append((result.solver, result.fold, result.seed, volume, distance))
    return pd.DataFrame(rows, columns=["solver", "fold", "seed", "hypervolume", "igd_plus"])


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


PAIR_COLUMNS = ["solver", "other", "n", "difference", "error", "wins", "ties", "losses", "p", "holm"]


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
    frame = pd.DataFrame(rows, columns=PAIR_COLUMNS)
    return frame.assign(holm=holm(frame["p"].to_numpy(float)))


@dataclass(frozen=True)
class Choice:
    """What to take from a study of one problem: the solver with the best mean on validation queries.

    Everything is of the folds that all solvers have.
    """

    solver: str  # ties go to fewer features
    others: list[str]  # the other solvers that select features
    n_features: float  # mean over folds after seeds
    loss: pd.Series  # its row of `verdicts`: against the same ranker on all features


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
    solvers.
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
    return Choice(
        solver=solver,
        others=others,
        n_features=shared.means()[solver].mean("n_features")[0],
        loss=verdicts(shared.among([solver])).iloc[0],
    )

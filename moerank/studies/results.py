"""The results of a study: their means, fronts and tests, and the choice of a solver."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain, combinations
from typing import Self, TypeAlias

import numpy as np
import pandas as pd
import scipy

from moerank import statistics
from moerank.arrays import Integers, Vector
from moerank.checks import check_choice, unknown
from moerank.files import Json
from moerank.runs.result import PARTS, Result

# The results of a solver on a problem by fold, one for each seed.
Runs: TypeAlias = dict[int, list[Result]]


class NoResultsError(ValueError):
    """A study has no result of the requested kind."""


class Results(tuple[Result, ...]):
    """Results in the order of a study, with the views that tables, tests and figures share.

    `ablations` are those of the study: the names of their solvers by label, the base first.

    Examples
    --------
    >>> results = Results([])
    >>> results, results.problems
    (Results(0 results), [])
    """

    ablations: Sequence[Mapping[str, str]]

    def __new__(
        cls, results: Iterable[Result] = (), ablations: Sequence[Mapping[str, str]] | None = None
    ) -> Self:
        """Keep the ablations of other results by default."""
        made = super().__new__(cls, results)
        made.ablations = getattr(results, "ablations", ()) if ablations is None else ablations
        return made

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
    def folds(self) -> list[int]:
        """The folds, ascending."""
        return sorted({result.fold for result in self})

    @property
    def metrics(self) -> list[str]:
        """The metrics of the tables, the metric of the error first."""
        return list(dict.fromkeys(metric for result in self for metric in result.metrics))

    @property
    def all_metrics(self) -> list[str]:
        """The metrics of the chosen members, those of the tables first."""
        return list(
            dict.fromkeys(
                [*self.metrics, *(m for run in self for m in run.best.further.get("test", ()))]
            )
        )

    def named_metric(self, name: str, metrics: Sequence[str]) -> str:
        """Return the full name of a metric; `name` may omit the convention: "NDCG@5" for "NDCG@5 (letor)".

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
        """The objectives of any result beyond the number of features and the error, which every table has."""
        return list(dict.fromkeys(name for result in self for name in result.further_objectives))

    def alike(self) -> dict[str, Self]:
        """Return the results by `Result.goal`, that of most runs first; only those of one goal share a figure."""
        goals = Counter(result.goal for result in self).most_common()
        return {
            goal: type(self)([run for run in self if run.goal == goal], self.ablations)
            for goal, _ in goals
        }

    def of(self, problem: str) -> Self:
        """Return the results of a problem.

        Raises
        ------
        NoResultsError
            If there are none.
        """
        results = type(self)(
            [result for result in self if result.problem == problem], self.ablations
        )
        if not results:
            raise NoResultsError(f"there is no finished run of {problem}")
        return results

    def among(self, solvers: Sequence[str]) -> Self:
        """Return the results of these solvers in this order; all results if `solvers` is empty.

        Raises
        ------
        ValueError
            If one of them has no result.
        """
        if not solvers:
            return self
        for solver in solvers:
            check_choice(self.solvers, solver=solver)
        return type(self)(
            [run for solver in solvers for run in self if run.solver == solver], self.ablations
        )

    def by_solver(self) -> dict[str, Runs]:
        """Return the results by solver label and fold, one for each seed."""
        runs: dict[str, Runs] = {}
        for result in self:
            runs.setdefault(result.solver, {}).setdefault(result.fold, []).append(result)
        return runs

    def by_run(self, solver: str, value: Callable[[Result], float]) -> pd.Series:
        """Return a value of each run of a solver by fold and seed."""
        return pd.Series(
            {(run.fold, run.seed): value(run) for run in self if run.solver == solver}, dtype=float
        )

    def first_runs(self, fold: int) -> dict[str, Result]:
        """Return the run of each solver on a fold with its first seed, if there is one."""
        return {
            solver: folds[fold][0] for solver, folds in self.by_solver().items() if fold in folds
        }

    def with_baselines(self) -> Self:
        """Return the results, and each baseline as a result of its own without times."""
        results = []
        for result in self:
            times = result.times.model_copy(update={"tuning": np.nan, "solver": np.nan})
            own = {"times": times, "chosen": 0}
            named = [
                {**own, "solver": baseline.name, "front": [baseline]}
                for baseline in result.baselines
            ]
            results += [result, *(result.model_copy(update=update) for update in named)]
        return type(self)(results)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The numbers of all runs, see `results_frame`."""
        return results_frame(self)

    def means(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return `means_over_folds` of one problem, with the ``seconds`` of tuning and training."""
        seconds = self.frame["tuning seconds"] + self.frame["training seconds"]
        return means_over_folds(self.frame.assign(seconds=seconds))

    def query_values(self, metric: str) -> dict[str, dict[int, Vector]]:
        """Return the metric of each test query by solver and fold, averaged over seeds, for one problem."""
        return {
            solver: {
                fold: np.asarray(
                    np.mean(
                        [np.asarray(run.best.per_query["test"][metric]) for run in runs], axis=0
                    )
                )
                for fold, runs in folds.items()
            }
            for solver, folds in self.by_solver().items()
        }

    def n_queries(self, folds: Iterable[int]) -> int:
        """Return the number of distinct test queries of these folds."""
        return len(set(self.query_numbers(folds).tolist()))

    def query_numbers(self, folds: Iterable[int]) -> Integers:
        """Return a number for each test query of these folds, in order; a query of several folds has one number."""
        runs = {run.fold: run for run in self}
        return _numbered([query for fold in folds for query in runs[fold].queries["test"]])


def _numbered(ids: Sequence[Hashable]) -> Integers:
    """Return a number for each id, equal for equal ones, from 0 in the order of their first appearance."""
    return pd.factorize(np.array(ids, object))[0]


def _by_query(values: Vector, query: Integers) -> Vector:
    """Return the mean of the values of each query, because values of one query are not independent."""
    return np.asarray(np.bincount(query, values) / np.bincount(query))


def results_frame(results: Iterable[Result], *, members: bool = False) -> pd.DataFrame:
    """Return one row per run, or one per member of the front of each run.

    The columns are ``problem``, ``fold``, ``solver`` (its label) and ``seed``; for members ``member`` (from 1, as in
    front.csv) and ``chosen``; ``n_features``; the metrics in the tables, such as ``train NDCG@10``; objectives beyond
    features and error, by name; ``instances`` (the share of the units of instance selection that the ranker was trained
    on); ``evaluations`` and ``trained`` of a search (individuals asked for, and the distinct ones among them, whose
    rankers were trained); ``tuning seconds`` and ``training seconds`` of processor time; then the other metrics: NDCG
    and precision at each of the ranks 1 to 10, MAP and MeanNDCG. NaN stands for values that a run does not have.

    Parameters
    ----------
    results : iterable of Result
    members : bool, default False
        Whether there is a row for each member of the front instead of the chosen one only.
    """
    return pd.DataFrame(
        [
            _row(result, number, members=members)
            for result in results
            for number in (range(len(result.front)) if members else [result.chosen])
        ]
    )


def means_over_folds(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the means of all numbers, a row for each solver, and their standard errors over folds.

    The means are over seeds first, because runs on one fold have the same queries. The standard error is NaN for a
    single fold. Runs without a value do not count.
    """
    folds = (
        runs.drop(columns="seed").groupby(["solver", "fold"], sort=False).mean(numeric_only=True)
    )
    by_solver = folds.groupby("solver", sort=False)
    return by_solver.mean(), by_solver.sem()


def _row(result: Result, number: int, *, members: bool) -> Json:
    member, seconds = result.front[number], result.times
    return {
        "problem": result.problem,
        "fold": result.fold,
        "solver": result.solver,
        "seed": result.seed,
        **({"member": number + 1, "chosen": number == result.chosen} if members else {}),
        "n_features": len(member.features),
        **{
            f"{part} {name}": value for part in PARTS for name, value in member.scores[part].items()
        },
        **{name: member.objectives[name] for name in result.further_objectives},
        "instances": np.nan
        if member.instances is None
        else member.instances / (result.n_instances or 1),
        "evaluations": result.n_evaluations or np.nan,
        "trained": result.n_trained or np.nan,
        "tuning seconds": seconds.tuning,
        "training seconds": seconds.solver,
        **{
            f"{part} {name}": value
            for part, means in member.further.items()
            for name, value in means.items()
        },
    }


def offers_sizes(folds: Runs) -> bool:
    """Whether a solver offers more than one number of features in some run."""
    return any(len(run.front) > 1 for runs in folds.values() for run in runs)


def best_by_size(
    result: Result, part: str, metric: str, chosen_on: str, *, exact: bool = False
) -> Vector:
    """Return the metric of the best member with at most (if `exact`, exactly) 1, 2, … features, shape (n_features,).

    The best member has the highest metric of the error on the part `chosen_on`; ties go to fewer features. NaN means
    that no member has such a size.
    """
    sizes = np.array([len(member.features) for member in result.front])
    quality = np.array([member.scores[chosen_on][result.metrics[0]] for member in result.front])
    values = np.array([member.scores[part][metric] for member in result.front])
    order = np.lexsort((sizes, -quality))  # the best one first
    counts = np.arange(1, len(result.feature_names) + 1)[:, None]
    small = sizes[order] == counts if exact else sizes[order] <= counts
    return np.where(small.any(axis=1), values[order][small.argmax(axis=1)], np.nan)


def mean_by_size(
    folds: Runs, part: str, metric: str, chosen_on: str = "validation", *, exact: bool = False
) -> Vector:
    """Return `best_by_size` averaged over seeds, then folds; NaN if some run has no member of such a size."""
    values = [
        [best_by_size(run, part, metric, chosen_on, exact=exact) for run in runs]
        for runs in folds.values()
    ]
    return np.asarray(np.mean([np.mean(seeds, axis=0) for seeds in values], axis=0))


def feature_stability(chosen: Sequence[Sequence[int]], n_features: int) -> tuple[float, float]:
    """Return how well the choices of several runs agree: the mean pairwise Jaccard index, plain and corrected.

    Parameters
    ----------
    chosen : sequence of sequences of int
        The columns that each run chose, for at least two runs.
    n_features : int
        The number of all columns.

    Returns
    -------
    jaccard : float, in [0, 1]
        |A ∩ B| / |A ∪ B|, averaged over the pairs of runs; 1 for two empty choices.
    corrected : float, at most 1
        The index corrected for chance: (jaccard − expected) / (1 − expected), where expected is the mean index of
        random choices of the same sizes. It is 0 for random choices, NaN if random choices always agree.

    Examples
    --------
    >>> feature_stability([[0, 1], [0, 1], [0, 2]], n_features=10)[0].__round__(4)
    0.5556
    """
    pairs = [(set(a), set(b)) for a, b in combinations(chosen, 2)]
    jaccard = np.mean([len(a & b) / len(a | b) if a | b else 1.0 for a, b in pairs])
    expected = np.mean([_expected_jaccard(len(a), len(b), n_features) for a, b in pairs])
    return float(jaccard), float(
        (jaccard - expected) / (1.0 - expected)
    ) if expected < 1.0 else np.nan


def _expected_jaccard(size_a: int, size_b: int, n_features: int) -> float:
    """Return the mean Jaccard index of two random subsets; the size of their intersection is hypergeometric."""
    if size_a + size_b == 0:
        return 1.0
    common = np.arange(min(size_a, size_b) + 1)
    chance = scipy.stats.hypergeom.pmf(common, n_features, size_a, size_b)
    return float(chance @ (common / (size_a + size_b - common)))


def front_points(result: Result) -> Vector:
    """Return the training objectives of the members of a front, shape (n_members, n_objectives)."""
    return np.array(
        [[member.objectives[name] for name in result.objectives] for member in result.front]
    )


def front_quality(results: Results) -> pd.DataFrame:
    """Return the quality of the front of each run on the training part, in its own objectives.

    Parameters
    ----------
    results : Results
        Results of one problem.

    Returns
    -------
    DataFrame
        One row per run: ``solver``, ``fold``, ``seed``, ``hypervolume`` as a share of `Result.box`, and ``igd_plus`` to
        the joint front of all runs on the fold with the same goal, with objectives as shares of the box.
    """
    rows = []
    for same_goal, fold in (
        (alike, fold) for alike in results.alike().values() for fold in alike.folds
    ):
        runs = [run for run in same_goal if run.fold == fold]
        ideal, reference = np.array([runs[0].box[name] for name in runs[0].objectives]).T
        reference = np.where(reference > ideal, reference, ideal + 1.0)
        target = statistics.joint_front([front_points(run) for run in runs])
        for run in runs:
            volume = statistics.hypervolume(
                front_points(run), reference=reference.tolist(), ideal=ideal.tolist()
            )
            distance = statistics.igd_plus(
                front_points(run), target, scale=(reference - ideal).tolist()
            )
            rows.append((run.solver, run.fold, run.seed, volume, distance))
    return pd.DataFrame(rows, columns=["solver", "fold", "seed", "hypervolume", "igd_plus"])


def compare_runs(values: pd.Series, solver: str, reference: str) -> statistics.PairedTest:
    """Compare two solvers by a value of each run, over the folds and seeds that both have.

    The differences are first averaged over the seeds of each fold, so that the test is over folds. Runs on one fold
    share their queries, and tell nothing about other queries.

    Parameters
    ----------
    values : Series
        The values, with the index levels ``solver``, ``fold`` and ``seed``.
    solver, reference : str
        Labels of solvers in `values`.
    """
    first, second = values.loc[solver].align(values.loc[reference], join="inner")
    difference = (
        pd.Series(statistics.paired_differences(first, second), first.index)
        .dropna()
        .groupby("fold")
        .mean()
    )
    return statistics.compare_paired(difference, np.zeros(len(difference)))


# Default references in order of preference.
REFERENCES = ("all features", "ranksvm-primal", "rankrls", "fsmrank")


def default_reference(results: Results) -> str:
    """Return the solver with which others are compared by default."""
    return next((name for name in REFERENCES if name in results.solvers), results.solvers[0])


def against_reference(results: Results, reference: str, metric: str) -> pd.DataFrame:
    """Compare every solver with a reference solver on each test query of the folds that both have.

    The values of a query are first averaged over the seeds, and over the folds if it is in several.

    Parameters
    ----------
    results : Results
        Results of one problem.
    reference : str
        The label of a solver.
    metric : str

    Returns
    -------
    DataFrame
        One row per solver: ``solver``, the number ``n`` of queries, the mean ``difference`` (solver minus reference)
        with its standard ``error``, the numbers of queries with ``wins``, ``ties`` and ``losses``, ``p`` of the paired
        t test, and ``holm``, p adjusted for all rows.
    """
    others = [(solver, reference) for solver in results.solvers if solver != reference]
    return _query_tests(results, metric, others).drop(columns="other")


def verdicts(results: Results) -> pd.DataFrame:
    """Return a verdict for each solver: its loss compared with the same ranker on all features, over all runs.

    Parameters
    ----------
    results : Results
        Results of one problem; runs without a verdict do not count.

    Returns
    -------
    DataFrame
        One row per solver: ``solver``, ``against`` (the ranker on all features; empty for a search's own backend),
        ``runs``, ``n_features``, the ``verdict`` on the test queries of all folds, and the numbers of runs that
        detected a ``loss`` or a ``gain`` or found the selection ``equivalent``.

    Notes
    -----
    The differences of a query are first averaged over the seeds, and over the folds if it is in several. The numbers of
    features in the verdict are means.
    """
    rows = []
    for solver, runs_of in (
        Results(result for result in results if result.verdict is not None).by_solver().items()
    ):
        folds = [
            [run.verdict for run in runs if run.verdict is not None] for runs in runs_of.values()
        ]
        every = list(chain.from_iterable(folds))
        n_features, n_allowed = (
            float(
                np.mean([np.mean([getattr(verdict, name) for verdict in runs]) for runs in folds])
            )
            for name in ("n_features", "n_allowed")
        )
        means = np.concatenate(
            [np.mean([verdict.differences for verdict in runs], axis=0) for runs in folds]
        )
        ids = [runs[0].queries["test"][i] for runs in runs_of.values() for i in runs[0].differing]
        if len(ids) == len(means):
            means = _by_query(means, _numbered(ids))
        against = every[0].against.partition("(")[0]
        total: Json = {
            "n_queries": results.n_queries(runs_of),
            "differences": tuple(means.tolist()),
            "n_features": round(n_features),
            "n_allowed": round(n_allowed),
            "margin": max(verdict.margin for verdict in every),
        }
        chance = all(verdict.no_better_than_chance for verdict in every)
        total |= {
            "against": against,
            "decision": "none",
            "advice": "",
            "rival": "",
            "no_better_than_chance": chance,
        }
        findings = [
            sum(verdict.finding == finding for verdict in every) for finding in ("loss", "gain")
        ]
        equivalent = sum(verdict.equivalent for verdict in every)
        rows.append(
            (
                solver,
                against,
                len(every),
                n_features,
                every[0].model_copy(update=total),
                *findings,
                equivalent,
            )
        )
    columns = ["solver", "against", "runs", "n_features", "verdict", "loss", "gain", "equivalent"]
    return pd.DataFrame(rows, columns=columns)


PAIR_COLUMNS = [
    "solver",
    "other",
    "n",
    "difference",
    "error",
    "wins",
    "ties",
    "losses",
    "p",
    "holm",
]


def query_pairs(results: Results, metric: str) -> pd.DataFrame:
    """Compare all pairs of solvers on each test query of the folds that both have.

    The values of a query are first averaged over the seeds, and over the folds if it is in several.

    Parameters
    ----------
    results : Results
        Results of one problem.
    metric : str

    Returns
    -------
    DataFrame
        One row per pair, in the order of the study: ``solver``, ``other``, the number ``n`` of queries, the mean
        ``difference`` (solver minus other) with its standard ``error``, the numbers of queries with ``wins``, ``ties``
        and ``losses`` of the solver, ``p`` of the paired t test, and ``holm``, p adjusted for all rows.

    Notes
    -----
    The rankers of a fold are trained on the same data. The tests generalise to other queries for these rankers, but not
    to other training data. O(n_solvers² · n_queries).
    """
    return _query_tests(results, metric, combinations(results.solvers, 2))


def _query_tests(results: Results, metric: str, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """Test the pairs of solvers that have folds in common."""
    values, rows, numbers = results.query_values(metric), [], cache(results.query_numbers)
    for solver, other in pairs:
        if shared := tuple(sorted(values[solver].keys() & values[other].keys())):
            first, second = (
                _by_query(np.concatenate([values[name][fold] for fold in shared]), numbers(shared))
                for name in (solver, other)
            )
            test = statistics.compare_paired(first, second)
            rows.append({"solver": solver, "other": other, "n": len(first), **test.__dict__})
    frame = pd.DataFrame(rows, columns=PAIR_COLUMNS)
    return frame.assign(holm=statistics.holm(frame["p"].to_numpy(float)))


def by_validation(results: Results) -> list[str]:
    """Return the solvers of one problem that select features, the one with the best validation mean first.

    The mean of the error's metric is over seeds, then folds. Ties go to fewer features, then to the first name. Test
    queries do not count. Solvers without a verdict select no features.
    """
    selecting = dict.fromkeys(result.solver for result in results if result.verdict is not None)
    if not selecting:
        return []
    means, _ = results.among(list(selecting)).means()
    # The last bits of a mean depend on the order of its sum, so means that agree to ten places are a tie.
    order = zip(
        -means[f"validation {results.metric}"].round(10),
        means["n_features"],
        means.index,
        strict=True,
    )
    return [name for _, _, name in sorted(order)]


def chosen_solver(results: Results) -> tuple[pd.Series, list[str]]:
    """Choose a solver by the validation queries of one problem, and judge it by the test queries.

    The row of `verdicts` of the chosen solver and the names of the other candidates are returned. All values come from
    the folds that all candidates have. Test queries do not influence the choice, so the difference from all features
    needs no adjustment for the number of solvers.
    """
    candidates = by_validation(results)
    if not candidates:
        raise NoResultsError("no finished run selects features and has a verdict on test queries")
    runs_of = results.by_solver()
    folds = sorted(set.intersection(*(set(runs_of[solver]) for solver in candidates)))
    if not folds:
        raise NoResultsError("the solvers that select features have no fold in common yet")
    shared = Results(result for result in results if result.fold in folds)
    solver, *others = by_validation(shared)
    return verdicts(shared.among([solver])).iloc[0], others

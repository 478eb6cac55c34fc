"""The results of a study: their means, fronts and tests, and the choice of a solver."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
import scipy

from moerank import statistics
from moerank.arrays import Vector
from moerank.checks import check_choice, unknown
from moerank.files import Json
from moerank.runs.result import Result, columns_of
from moerank.solvers import solvers as solver_table
from moerank.verdict import Verdict

# The results of a solver on a problem by fold, one for each seed.
Runs: TypeAlias = dict[int, list[Result]]

# A function of a run, such as one of its numbers.
ValueOfRun: TypeAlias = Callable[[Any], Any]


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
        instance = super().__new__(cls, results)
        instance.ablations = getattr(results, "ablations", ()) if ablations is None else ablations
        return instance

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
        return self[0].metric

    @property
    def objectives(self) -> list[str]:
        """The names of the objectives that all results have."""
        if not self:
            return []
        shared = set(self[0].objectives).intersection(*(run.objectives for run in self))
        return [name for name in self[0].objectives if name in shared]

    @property
    def further_objectives(self) -> list[str]:
        """The objectives of any result beyond the number of features and the error, which every table has."""
        return list(dict.fromkeys(name for result in self for name in result.further_objectives))

    def alike(self) -> dict[str, Self]:
        """Return the results by `Result.goal`, that of most runs first; only those of one goal share a figure."""
        goals = Counter(result.goal for result in self)
        results = {}
        for goal, _ in goals.most_common():
            results[goal] = type(self)([run for run in self if run.goal == goal], self.ablations)
        return results

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

    def first_runs(self, fold: int) -> dict[str, Result]:
        """Return the run of each solver on a fold with its first seed, if there is one."""
        return {
            solver: folds[fold][0] for solver, folds in self.by_solver().items() if fold in folds
        }

    def with_baselines(self) -> Self:
        """Return the results, and each baseline as a result of its own without times."""
        results = []
        for result in self:
            results.append(result)
            times = result.times.model_copy(update={"tuning": np.nan, "solver": np.nan})
            for baseline in result.baselines:
                update = {
                    "solver": baseline.name,
                    "front": [baseline],
                    "chosen": 0,
                    "times": times,
                }
                results.append(result.model_copy(update=update))
        return type(self)(results)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The numbers of all runs, see `results_frame`."""
        return results_frame(self)

    def means(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return `means_over_folds` of one problem, with the ``seconds`` of tuning and training."""
        seconds = self.frame["tuning seconds"] + self.frame["training seconds"]
        return means_over_folds(self.frame.assign(seconds=seconds))

    def query_values(self, metric: str, part: str = "test") -> pd.DataFrame:
        """Return a metric of the queries of a part for one problem: a column for each solver, means over seeds.

        The index has the levels ``fold`` and ``query``. Test queries that the metric of the error finds uninformative
        are left out of its values.
        """
        columns = {}
        for solver, folds in self.by_solver().items():
            values = {}
            for fold, runs in folds.items():
                mean = _mean(runs, lambda run: run.best.per_query[part][metric])
                values[fold] = pd.Series(mean, runs[0].queries[part])
                if part == "test" and metric == self.metric:
                    values[fold] = values[fold].iloc[runs[0].differing]
            columns[solver] = pd.concat(values, names=["fold", "query"])
        return pd.concat(columns, axis=1, sort=False)

    def query_weights(self) -> pd.Series:
        """Return the weights of the test queries by their ids."""
        runs = {run.fold: run for run in self}.values()
        weights = [
            pd.Series(run.query_weights.get("test", 1.0), run.queries["test"]) for run in runs
        ]
        return pd.concat(weights).groupby(level=0, sort=False).mean()


def _by_query(folds: Runs, value: ValueOfRun) -> tuple[float, ...]:
    """Return the mean of a value of each informative test query, because values of one query are not independent."""
    values = []
    for runs in folds.values():
        queries = [runs[0].queries["test"][i] for i in runs[0].differing]
        values.append(pd.Series(_mean(runs, value), queries))
    return tuple(pd.concat(values).groupby(level=0, sort=False).mean())


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
    rows = []
    for result in results:
        indices = range(len(result.front)) if members else [result.chosen]
        rows += [_row(result, index, members=members) for index in indices]
    return pd.DataFrame(rows)


def means_over_folds(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the means of all numbers, a row for each solver, and their standard errors over folds.

    The means are over seeds first, because runs on one fold have the same queries. The standard error is NaN for a
    single fold. Runs without a value do not count.
    """
    folds = (
        runs.drop(columns="seed").groupby(["solver", "fold"], sort=False).mean(numeric_only=True)
    )
    solvers = folds.groupby("solver", sort=False)
    return solvers.mean(), solvers.sem()


def _row(result: Result, index: int, *, members: bool) -> Json:
    member = result.front[index]
    row = {name: getattr(result, name) for name in ("problem", "fold", "solver", "seed")}
    if members:
        row |= {"member": index + 1, "chosen": index == result.chosen}
    row["n_features"] = member.n_features
    row |= columns_of(member.scores)
    row |= {name: member.objectives[name] for name in result.further_objectives}
    row["instances"] = np.nan
    if member.instances is not None:
        row["instances"] = member.instances / (result.n_instances or 1)
    row["evaluations"] = result.n_evaluations or np.nan
    row["trained"] = result.n_trained or np.nan
    row["tuning seconds"] = result.times.tuning
    row["training seconds"] = result.times.solver
    return row | columns_of(member.further)


def offers_sizes(folds: Runs) -> bool:
    """Return whether a solver offers more than one number of features in some run."""
    return any(len(run.front) > 1 for runs in folds.values() for run in runs)


def best_by_size(
    result: Result, part: str, metric: str, chosen_on: str, *, exact: bool = False
) -> Vector:
    """Return the metric of the best member with at most (if `exact`, exactly) 1, 2, … features, shape (n_features,).

    The best member has the highest metric of the error on the part `chosen_on`; ties go to fewer features. NaN means
    that no member has such a size.
    """
    sizes = np.array(result.sizes)
    quality = np.array([member.scores[chosen_on][result.metric] for member in result.front])
    values = np.array([member.scores[part][metric] for member in result.front])
    order = np.lexsort((sizes, -quality))  # the best one first
    counts = np.arange(1, len(result.feature_names) + 1)[:, None]
    small = sizes[order] == counts if exact else sizes[order] <= counts
    return np.where(small.any(axis=1), values[order][small.argmax(axis=1)], np.nan)


def mean_by_size(
    folds: Runs, part: str, metric: str, chosen_on: str = "validation", *, exact: bool = False
) -> Vector:
    """Return `best_by_size` averaged over seeds, then folds; NaN if some run has no member of such a size."""
    return _mean_over_folds(
        folds, lambda run: best_by_size(run, part, metric, chosen_on, exact=exact)
    )


def _mean_over_folds(folds: Runs, value: ValueOfRun) -> Any:
    """Return the mean of a value of each run over seeds, then over folds."""
    return np.mean([_mean(runs, value) for runs in folds.values()], axis=0)


def _mean(runs: Sequence[Result], value: ValueOfRun) -> Any:
    return np.mean([value(run) for run in runs], axis=0)


def feature_stability(selections: Sequence[Sequence[int]], n_features: int) -> tuple[float, float]:
    """Return how well the selections of several runs agree: the mean pairwise Jaccard index, plain and corrected.

    Parameters
    ----------
    selections : sequence of sequences of int
        The columns that each run selected, for at least two runs.
    n_features : int
        The number of all columns.

    Returns
    -------
    jaccard : float, in [0, 1]
        |A ∩ B| / |A ∪ B|, averaged over the pairs of runs; 1 for two empty selections.
    corrected : float, at most 1
        The index corrected for chance: (jaccard − expected) / (1 − expected), where expected is the mean index of
        random selections of the same sizes. It is 0 for random selections, NaN if they always agree.

    Examples
    --------
    >>> feature_stability([[0, 1], [0, 1], [0, 2]], n_features=10)[0].__round__(4)
    0.5556
    """
    pairs = [(set(a), set(b)) for a, b in combinations(selections, 2)]
    jaccard = np.mean([len(a & b) / len(a | b) if a | b else 1.0 for a, b in pairs])
    expected = np.mean([_expected_jaccard(len(a), len(b), n_features) for a, b in pairs])
    corrected = (jaccard - expected) / (1.0 - expected) if expected < 1.0 else np.nan
    return float(jaccard), float(corrected)


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
        [list(map(member.objectives.__getitem__, result.objectives)) for member in result.front]
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
    for same_goal in results.alike().values():
        for fold in same_goal.folds:
            runs = [run for run in same_goal if run.fold == fold]
            ideal, reference = np.array([runs[0].box[name] for name in runs[0].objectives]).T
            reference = np.where(reference > ideal, reference, ideal + 1.0)
            target = statistics.joint_front([front_points(run) for run in runs])
            for run in runs:
                points = front_points(run)
                volume = statistics.hypervolume(points, reference, ideal)
                distance = statistics.igd_plus(points, target, reference - ideal)
                rows.append((run.solver, run.fold, run.seed, volume, distance))
    return pd.DataFrame(rows, columns=["solver", "fold", "seed", "hypervolume", "igd_plus"])


def default_reference(results: Results) -> str:
    """Return the solver with which others are compared by default: all features, a backend, or the first one."""
    backends = [entry for entry in solver_table().values() if entry.backend]
    backends.sort(key=lambda entry: entry.selects)
    names = ["all features", *(entry.name for entry in backends), *results.solvers]
    return next(name for name in names if name in results.solvers)


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
    features in the verdict are means, and its decision is that of most runs.
    """
    selections = Results(result for result in results if result.verdict)
    rows = [_verdict_row(solver, folds) for solver, folds in selections.by_solver().items()]
    columns = ["solver", "against", "runs", "n_features", "verdict", "loss", "gain", "equivalent"]
    return pd.DataFrame(rows, columns=columns)


def _verdict_row(solver: str, folds: Runs) -> tuple[Any, ...]:
    """Return the verdict of a solver on all folds, for `verdicts`."""
    verdicts = [run.verdict for run in chain.from_iterable(folds.values()) if run.verdict]
    n_features = _mean_over_folds(folds, lambda run: run.verdict.n_features)
    n_allowed = _mean_over_folds(folds, lambda run: run.verdict.n_allowed)
    tail = verdicts[0].tail
    if len(folds) > 1:  # the other parts of a fold have the test queries of others
        tail = statistics.Tail(heaviest=max(verdict.tail.heaviest for verdict in verdicts))
    ids = {query for runs in folds.values() for query in runs[0].queries["test"]}
    weights = _by_query(folds, lambda run: run.verdict.weights or np.ones(run.verdict.n_differing))
    against = verdicts[0].against.partition("(")[0]
    update = {
        "n_queries": len(ids),
        "differences": _by_query(folds, lambda run: run.verdict.differences),
        "weights": weights if any(verdict.weights for verdict in verdicts) else None,
        "tail": tail,
        "n_features": round(float(n_features)),
        "n_allowed": round(float(n_allowed)),
        "margin": max(verdict.margin for verdict in verdicts),
        "against": against,
        "rival": "",
        "no_better_than_chance": all(verdict.no_better_than_chance for verdict in verdicts),
        **_decision(verdicts),
    }
    findings = Counter(verdict.finding for verdict in verdicts)
    return (
        solver,
        against,
        len(verdicts),
        float(n_features),
        verdicts[0].model_copy(update=update),
        findings["loss"],
        findings["gain"],
        sum(verdict.equivalent for verdict in verdicts),
    )


def _decision(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """Return the decision of most runs and its reason, for several runs their number, as fields of a verdict."""
    decisions = Counter((verdict.decision, verdict.ranker) for verdict in verdicts)
    (decision, ranker), n_runs = decisions.most_common(1)[0]
    advice = verdicts[0].advice
    if len(verdicts) > 1:
        advice = "" if decision == "none" else f"{n_runs} of {len(verdicts)} runs decide so"
    return {"decision": decision, "ranker": ranker, "advice": advice}


def by_validation(results: Results, *, selecting: bool = True) -> list[str]:
    """Return the solvers of one problem that select features, or the others, the best validation mean first.

    The mean of the error's metric is over seeds, then folds. Ties go to fewer features, then to the first name. Test
    queries do not count. Solvers without a verdict select no features.
    """
    solvers = dict.fromkeys(run.solver for run in results if (run.verdict is not None) == selecting)
    if not solvers:
        return []
    means, _ = results.among(list(solvers)).means()
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
    needs no adjustment for the number of solvers. The verdict also compares it with the best solver by validation that
    selects no features, as that of a run does with LambdaMART.
    """
    candidates = by_validation(results)
    if not candidates:
        raise NoResultsError("no finished run selects features and has a verdict on test queries")
    runs_of = results.by_solver()
    folds = set(results.folds).intersection(*(runs_of[solver] for solver in candidates))
    if not folds:
        raise NoResultsError("the solvers that select features have no fold in common yet")
    shared = Results(result for result in results if result.fold in folds)
    solver, *rivals = by_validation(shared)
    row = verdicts(shared.among([solver])).iloc[0].copy()
    for ranker in by_validation(shared, selecting=False)[:1]:
        row["verdict"] = _with_rival(shared.among([solver, ranker]), row["verdict"])
    return row, rivals


def _with_rival(results: Results, verdict: Verdict) -> Verdict:
    """Return the verdict on the first of two solvers compared with the second one, see `Verdict.with_rival`."""
    solver, rival = results.solvers
    values = (results.query_values(results.metric, part) for part in ("test", "validation"))
    means = (both.dropna().groupby("query", sort=False).mean() for both in values)
    test, gains = (both[rival] - both[solver] for both in means)
    update = {"differences": tuple(-test), "weights": tuple(results.query_weights()[test.index])}
    return verdict.with_rival(verdict.model_copy(update=update), rival, gains)

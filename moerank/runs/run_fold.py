"""One run: train a solver on one fold of a problem, and measure it and the baselines on all parts."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import pandas as pd

from moerank import rankers
from moerank.arrays import Bounds, Mask, Matrix, Vector
from moerank.data import RankingData
from moerank.data.scaling import negative_features
from moerank.files import Json
from moerank.kernels.counted_ranks import mean_over_queries
from moerank.kernels.threads import one_blas_thread
from moerank.metrics import (
    LARGEST_EXP2_LABEL,
    MAP,
    NDCG,
    MeanNDCG,
    Metric,
    Precision,
    as_metric,
    check_differing,
)
from moerank.mofsrank.objectives import FRONT, Candidates, Objective, bounds_of, read_objectives
from moerank.mofsrank.settings import STAGES
from moerank.rankers.importance import permutation_losses, single_feature_values
from moerank.rankers.lambda_mart import TREES, tree_baseline
from moerank.rankers.model import Model
from moerank.rankers.population import batch_of
from moerank.rankers.shapes import shapes_of
from moerank.runs.problem import Problem
from moerank.runs.result import Convergence, Explanation, Member, Result, Scores, Times
from moerank.runs.solver import NamedSolver, RunArguments, Solver, configuration
from moerank.runs.sources import DataFolder
from moerank.solvers import SERVERS, make_backend
from moerank.statistics import Tail, mean_and_error
from moerank.verdict import Verdict, compare, judge
from moerank.version import VERSION

if TYPE_CHECKING:
    from distributed import Client

# The name of the baseline with which selections are compared.
ALL_FEATURES = "all features"

# A function of the name of a stage, the fraction that is done, and a text.
Progress: TypeAlias = Callable[[str, float, str], object]


def silent(stage: str, fraction: float, text: str) -> None:
    """Report no progress."""


Parts: TypeAlias = Mapping[str, RankingData]

# Values of rankers, or what comes of them, by part and metric.
Tables: TypeAlias = dict[str, dict[str, Any]]

# Largest rank for NDCG and precision, as in LETOR's scripts.
MAX_RANK = 10


# The progress text of each stage, with a gap for the number that the stage counts.
STAGE_TEXTS = {
    **dict.fromkeys(STAGES, "generation {}"),
    "best_subset": "up to {} features",
    "refit_tuning": "by validation",
    "proposals": "{} orders of features",
    "kinds": "{} rankers by cross-validation",
    "refit": "{} rankers",
}

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pymoo", "lightgbm")


@dataclass(frozen=True)
class FoldRun:
    """What is run on which data, and who is told of the progress."""

    problem: Problem
    fold: int
    solver: Solver
    seed: int
    random_state: int
    configuration: Json
    report: Progress
    parts: Parts
    metrics: tuple[Metric, Metric]  # the metric of the error, and the second metric of the tables
    tuning: Metric


@dataclass(frozen=True)
class Prepared:
    """The estimator of a run, how it is measured, and what it is compared with."""

    estimator: Any
    searched_by: str  # the name of a metric
    box: dict[str, Bounds]  # the bounds of each objective
    measure: Measure
    baselines: list[Member]


def run_fold(
    problem: Problem,
    fold: int = 1,
    solver: Solver | str = "mofsrank",
    seed: int = 0,
    *,
    random_state: int | None = None,
    workers: int | Client = 1,
    data: DataFolder = None,
    memo: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    baselines: bool = True,
) -> Result:
    """Run a solver on one fold, and measure it and the baselines on all parts.

    Nothing is fitted or chosen on the test part.

    Parameters
    ----------
    problem : Problem
    fold : int, default 1
        From 1 to `Problem.n_folds`.
    solver : Solver or str, default "mofsrank"
        `NamedSolver.parse` reads a text. The problem file sets the parameters that the solver leaves open.
    seed : int, default 0
        The number of the run among those that differ only in their random draws.
    random_state : int, optional
        The seed of the random draws; by default `seed`.
    workers : int or distributed.Client, default 1
        Threads, or the client of a Dask scheduler whose workers evaluate individuals. The result does not depend on it.
    data : path, optional
        The folder with the data files; see `Problem.load_fold`.
    memo : path, optional
        The file in which a search stores its evaluations.
    resume : bool, default False
        Whether to continue from the memo if there is one.
    progress : callable, optional
        Called as ``progress(stage, fraction, text)``.
    baselines : bool, default True
        False leaves the baselines out.

    Returns
    -------
    Result

    Raises
    ------
    FileNotFoundError, ValueError
        If data are missing or malformed, or a name or parameter does not exist.
    """
    report = progress or silent
    solver = NamedSolver.parse(solver) if isinstance(solver, str) else solver
    settings = configuration(problem, fold, solver, seed, baselines=baselines)
    random_state = seed if random_state is None else random_state
    with one_blas_thread():
        (train, validation, test), limits = problem.load_limited_fold(fold, data)
        parts = {"train": train, "validation": validation, "test": test}
        metrics, tuning = _metrics(problem, parts), problem.metric.for_tuning()
        if baselines or fold == 1:  # a study warns about its first fold only
            for part in (train, test):  # on whose queries no ranker can differ
                if remark := check_differing(metrics[0], part):
                    warnings.warn(remark, stacklevel=2)
        run = FoldRun(
            problem, fold, solver, seed, random_state, settings, report, parts, metrics, tuning
        )
        arguments = RunArguments(
            backend=tuned_backend(problem, parts),
            metric=metrics[0],
            tuning=tuning,
            random_state=random_state,
            workers=workers,
            memo=memo,
            resume=resume,
            progress=lambda stage, fraction, number, _: report(
                stage, fraction, STAGE_TEXTS[stage].format(number)
            ),
            limits=limits,
            search_settings=problem.search_settings(settings),
        )
        prepared = _prepare(run, arguments, with_baselines=baselines)
        estimator, times = _train(run, prepared.estimator)
        if baselines and getattr(estimator, "refit_", None) is not None:
            prepared = _with_reference(prepared, estimator.reference_)
        return _measure(run, prepared, estimator, times)


def _metrics(problem: Problem, parts: Parts) -> tuple[Metric, Metric]:
    """Return the metric of the error, and the second metric of the tables."""
    metric = problem.metric.make()
    if metric != MAP():
        return metric, MAP()
    largest = max(part.y.max() for part in parts.values())
    return metric, NDCG(10, "linear" if largest > LARGEST_EXP2_LABEL else "exp2")


def tuned_backend(problem: Problem, parts: Parts) -> Any:
    """Return the backend of a problem, tuned if the problem asks for it."""
    backend = make_backend(problem.backend.name, **problem.backend.parameters)
    if problem.backend.tune and hasattr(backend, "tune"):
        backend = tuned(backend, parts, problem.metric.for_tuning())
    return backend


def tuned(
    ranker: Any,
    parts: Parts,
    metric: Metric,
    fixed: Iterable[str] = (),
    progress: Callable[[float], object] | None = None,
) -> Any:
    """Tune a ranker on its published grid by a metric, except the parameters in `fixed`."""
    train, validation = parts["train"], parts["validation"]
    grid = ranker.default_grid(train) if hasattr(ranker, "default_grid") else []
    distinct = {}
    for entry in grid:
        entry = {name: value for name, value in entry.items() if name not in fixed}
        distinct[repr(entry)] = entry
    return ranker.tune(train, validation, list(distinct.values()), metric, progress)


def _prepare(run: FoldRun, arguments: RunArguments, *, with_baselines: bool) -> Prepared:
    """Make the estimator of a run, and measure the baselines."""
    problem, train = run.problem, run.parts["train"]
    metric, objectives = arguments.metric, arguments.search_settings["objectives"]
    estimator = run.solver.make(problem, arguments)
    if run.solver.own_goal:
        parameters = estimator.get_params(deep=False)
        metric = as_metric(parameters.get("metric"), metric)
        objectives = parameters.get("objectives", objectives)
    measure = Measure(
        run.parts, run.metrics, read_objectives(objectives or FRONT), arguments.backend
    )
    box = {entry.name: bounds_of(entry, train, train.n_features) for entry in measure.objectives}
    baselines = []
    if with_baselines:
        baselines = measured_baselines(problem, run.solver.name, measure, run.report)
    for baseline in baselines:
        if baseline.name == ALL_FEATURES:
            measure = measure.compared_with(baseline)
    return Prepared(estimator, metric.name, box, measure, baselines)


def _train(run: FoldRun, estimator: Any) -> tuple[Any, Times]:
    """Tune the estimator of a run if the solver asks for it, fit it, and return it with the times."""
    report, label = run.report, run.solver.label
    start = process_time()
    if run.problem.solver.tune and run.solver.tune and callable(getattr(estimator, "tune", None)):
        fixed = run.solver.fixed_parameters(run.problem, estimator)
        estimator = tuned(
            estimator,
            run.parts,
            run.tuning,
            fixed,
            lambda share: report("tuning", share, "by validation"),
        )
    tuned_at = process_time()
    if getattr(estimator, "progress", None) is not None:  # it reports by itself
        report = silent
    report("training", 0.0, label)
    estimator = estimator.fit(run.parts["train"], validation=run.parts["validation"])
    report("training", 1.0, label)
    history = getattr(estimator, "history_", {})  # only searches have stages
    return estimator, Times(
        tuning=round(tuned_at - start, 3),
        solver=round(process_time() - tuned_at, 3),
        stages={stage: table["seconds"].tolist() for stage, table in history.items()},
    )


def _with_reference(prepared: Prepared, reference: rankers.Population) -> Prepared:
    """Let the baseline on all features be the ranker with which a verdict on another kind of ranker compares."""
    measure = prepared.measure
    (member,) = measure.measured(ALL_FEATURES, reference, reference.feature_mask)
    if member.weights is None:
        with suppress(AttributeError):  # a ranker of another package has no trees that are known
            member = member.model_copy(update={"trees": reference.forest(0)})  # type: ignore[union-attr]
    baselines = [baseline for baseline in prepared.baselines if baseline.name != ALL_FEATURES]
    return replace(prepared, measure=measure.compared_with(member), baselines=[member, *baselines])


def _measure(run: FoldRun, prepared: Prepared, estimator: Any, times: Times) -> Result:
    """Measure the rankers of a trained estimator, and return all that the run has found."""
    problem = run.problem
    train, _, test = run.parts.values()
    front, index = measured_front(estimator, run.solver.label, prepared.measure)
    history = getattr(estimator, "history_", {})
    subsets = getattr(estimator, "instance_subsets_", None)
    return Result(
        problem=problem.name,
        fold=run.fold,
        solver=run.solver.label,
        seed=run.seed,
        random_state=run.random_state,
        metrics=[metric.name for metric in run.metrics],
        objectives=list(prepared.box),
        searched_by=prepared.searched_by,
        box=prepared.box,
        configuration=run.configuration,
        feature_names=list(train.feature_names),
        scaling=train.scaling,
        missing=train.missing,
        missing_values=train.missing_values,
        negative=_names_of(train, negative_features(train)),
        instances=getattr(estimator, "instance_unit_", None),
        n_instances=None if subsets is None else subsets.shape[1],
        verdict=verdict_on_test(run, prepared, estimator, front[index]),
        queries={part: problem.data.query_ids(rows, run.fold) for part, rows in run.parts.items()},
        query_weights=_weights(run),
        differing=np.flatnonzero(run.metrics[0].can_differ(test)).tolist(),
        front=front,
        chosen=index,
        shapes=list(shapes_of(front[index].trees, train)),
        explanation=_explanation(run, front[index]),
        baselines=prepared.baselines,
        convergence={stage: _convergence(table) for stage, table in history.items()},
        n_evaluations=int(getattr(estimator, "n_evaluations_", 0)),
        n_trained=int(getattr(estimator, "n_trained_", 0)),
        times=times,
        versions=_versions(),
    )


def _explanation(run: FoldRun, member: Member) -> Explanation | None:
    """Return what explains the trees of a member that serves; None if it has no trees, or functions of one feature."""
    train, validation, _ = run.parts.values()
    if not member.ranker or member.trees is None or shapes_of(member.trees, train):
        return None
    mask, metric = np.isin(np.arange(train.n_features), member.features), run.metrics[0]
    losses = permutation_losses(
        member.trees.scores, validation, metric, mask, random_state=run.random_state
    )
    tables = train.with_features(mask), validation.with_features(mask)
    curves = make_backend(SERVERS["additive"][0]).tune(*tables, metric=run.tuning).fit(tables[0])
    scores = np.column_stack([curves.predict(tables[1]), member.trees.scores(validation.X64)])
    values = validation.weighted(metric.per_query(validation, scores))
    worth = dict(zip(_names_of(train, mask), losses[mask].tolist(), strict=True))
    ordered = dict(sorted(worth.items(), key=lambda item: -item[1]))
    return Explanation(worth=ordered, curves=mean_and_error(values @ [1.0, -1.0]))


def _names_of(data: RankingData, mask: Mask) -> list[str]:
    return [data.feature_names[feature] for feature in np.flatnonzero(mask)]


def _weights(run: FoldRun) -> dict[str, list[float]]:
    """Return the weights of the queries of each part, over their mean, if the queries have weights."""
    return {
        part: rows.weighted(np.ones(rows.n_queries)).tolist()
        for part, rows in run.parts.items()
        if rows.query_weights is not None
    }


def _convergence(table: pd.DataFrame) -> Convergence:
    """Return the course of a stage from its history."""
    table = table.rename(columns={"n_eval": "evaluations", "n_trained": "trained"})
    return Convergence.model_validate(table[[*Convergence.model_fields]].to_dict("list"))


def _versions() -> dict[str, str]:
    """Return the versions of the libraries, and the machine."""
    return {
        "moerank": VERSION,
        "python": platform.python_version(),
        **{library: version(library) for library in LIBRARIES},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
    }


@dataclass(frozen=True)
class Measure:
    """Measures rankers on the parts of a fold."""

    parts: Parts
    metrics: tuple[Metric, Metric]  # the metric of the error, and the second metric of the tables
    objectives: Sequence[Objective]  # measured for every ranker on the training part
    backend: rankers.FitnessBackend  # for objectives that need other rankers of this kind
    reference: Vector | None = (
        None  # the first metric of the baseline "all features", by test query
    )

    def compared_with(self, reference: Member) -> Self:
        """Return the measure whose intervals are of differences from a baseline on all features."""
        return replace(self, reference=np.array(reference.per_query["test"][self.metrics[0].name]))

    def fitted(self, name: str, ranker: Any) -> Member:
        """Measure a fitted estimator."""
        train = self.parts["train"]
        model = Model.of(ranker, train.feature_names, train.scaling)
        population: rankers.Population
        if model.weights is None:
            population = batch_of(lambda X: ranker._scores(X).reshape(-1, 1), 1, train.n_features)
        else:
            population = rankers.LinearPopulation(ranker.coef_[None])
        member = self.measured(name, population, ranker.support_[None])[0]
        return member.model_copy(update={"trees": model.trees, "parameters": model.parameters})

    def path(self, name: str, path: rankers.SelectionPath) -> list[Member]:
        """Measure the rankers of a path, one for each number of features."""
        sizes, rows = np.unique(path.feature_mask.sum(axis=1), return_index=True)
        rows = rows[sizes > 0]
        return self.measured(name, path.rankers.take(rows), path.feature_mask[rows], None)

    def measured(
        self,
        name: str,
        population: rankers.Population,
        feature_mask: Mask,
        best: int | None = 0,
    ) -> list[Member]:
        """Measure rankers with the features in the rows of `feature_mask`.

        Only `best` keeps the values of queries, and has the means of all metrics that the tables lack.
        """
        metric, coefs = self.metrics[0], population.coefs
        per_query = self._per_query(population, self.metrics)
        means = _apply(mean_over_queries, per_query)
        candidates = Candidates(
            self.parts["train"],
            metric,
            feature_mask,
            population,
            table_names=self.parts["train"].table_names,
            backend=self.backend,
        )
        candidates.errors = 1.0 - means["train"][metric.name]
        objectives = {objective.name: objective.values(candidates) for objective in self.objectives}
        intervals = self._intervals(per_query["test"][metric.name])
        members = []
        for i, mask in enumerate(feature_mask):
            member = Member(
                name=name,
                features=tuple(np.flatnonzero(mask).tolist()),
                weights=None if coefs is None else tuple(coefs[i, mask].tolist()),
                objectives={name: float(values[i]) for name, values in objectives.items()},
                scores=_of_ranker(means, i),
                per_query=_of_ranker(per_query, i) if i == best else {},
                further=self._further(population.take(np.array([i]))) if i == best else {},
                difference_interval=intervals[i],
            )
            members.append(member)
        return members

    def _further(self, population: rankers.Population) -> Scores:
        """Return the means of all metrics that the tables lack for the only ranker of a population."""
        names = [metric.name for metric in self.metrics]
        metrics = [metric for metric in every_metric(self.metrics[0]) if metric.name not in names]
        means = _apply(mean_over_queries, self._per_query(population, metrics))
        return _of_ranker(means, 0)

    def _intervals(self, values: Matrix) -> list[Bounds | None]:
        """Return the 95 % intervals of the differences from the baseline on all features, over all test queries."""
        test = self.parts["test"]
        can_differ = self.metrics[0].can_differ(test)
        if self.reference is None or not can_differ.any():
            return [None] * values.shape[1]
        heaviest = max(rows.weighted(np.ones(rows.n_queries)).max() for rows in self.parts.values())
        differences = np.ascontiguousarray((values.T - self.reference)[:, can_differ])
        weights = test.weighted(np.ones(test.n_queries))[can_differ]
        share, tail = weights.sum() / test.n_queries, Tail(heaviest=heaviest)
        ends = (compare(row, weights, tail=tail).interval for row in differences)
        return [(share * low, share * high) if np.isfinite(low) else None for low, high in ends]

    def _per_query(self, population: rankers.Population, metrics: Sequence[Metric]) -> Tables:
        """Return the values (n_queries, n_rankers) of each metric on each part."""
        tables = {}
        for part, rows in self.parts.items():
            if population.coefs is None:
                scores = np.ascontiguousarray(population.scores(rows.X))
                values = [metric.per_query(rows, scores) for metric in metrics]
            else:
                values = [metric.of_linear(rows, population.coefs) for metric in metrics]
            names = [metric.name for metric in metrics]
            tables[part] = dict(zip(names, map(rows.weighted, values), strict=True))
        return tables


def _apply(function: Callable[[Matrix], Any], tables: Tables) -> Tables:
    """Return a function of the values of each metric on each part."""
    results = {}
    for part, table in tables.items():
        results[part] = {metric: function(values) for metric, values in table.items()}
    return results


def _of_ranker(tables: Tables, i: int) -> Tables:
    """Return the values of ranker `i`, which are in the last dimension, of each metric on each part."""
    return _apply(lambda values: values[..., i].tolist(), tables)


def every_metric(metric: Metric) -> list[Metric]:
    """Return NDCG and precision at each of the ranks 1 to 10, MAP and MeanNDCG, with the conventions of `metric`."""
    if isinstance(metric, NDCG):
        ndcg = metric
    else:
        gains = metric if isinstance(metric, MeanNDCG) else MeanNDCG()
        ndcg = NDCG(1, gains.gain, gains.convention, gains.discount)
    ranks = range(1, MAX_RANK + 1)
    return [
        *(replace(ndcg, k=rank) for rank in ranks),
        *map(Precision, ranks),
        MAP(),
        MeanNDCG(ndcg.gain, ndcg.convention, ndcg.discount),
    ]


def measured_baselines(
    problem: Problem, solver: str, measure: Measure, report: Progress
) -> list[Member]:
    """Return the baselines all features, best single feature and LambdaMART, except one that is the solver itself."""
    train, validation = measure.parts["train"], measure.parts["validation"]
    members = []
    report("baselines", 0.0, "all features")
    if solver != problem.backend.name:
        ranker = rankers.with_features(measure.backend).fit(train)
        members.append(measure.fitted(ALL_FEATURES, ranker))
    values = single_feature_values(train, measure.metrics[0])
    downwards, feature = divmod(int(values.argmax()), values.shape[1])
    coef = np.zeros((1, values.shape[1]))
    coef[0, feature] = -1.0 if downwards else 1.0
    single_ranker = rankers.LinearPopulation(coef)
    members += measure.measured("best single feature", single_ranker, coef != 0)
    if solver != "lambdamart" and problem.comparison.trees:
        tuning, n_trees = problem.metric.for_tuning(), problem.comparison.trees
        trees = tree_baseline(train, validation, tuning, n_trees)
        member = measure.fitted(TREES, trees)
        members.append(member.model_copy(update={"trees": None}))  # they take megabytes
    report("baselines", 1.0, "measured")
    return members


def measured_front(estimator: Any, name: str, measure: Measure) -> tuple[list[Member], int]:
    """Return the members that the estimator offers, from its front or its path, and the index of the chosen one."""
    if not hasattr(estimator, "front_"):
        ranker = measure.fitted(name, estimator)
        if not hasattr(estimator, "path"):
            return [ranker], 0
        path = measure.path(name, estimator.path(measure.parts["train"]))
        smaller = [member for member in path if member.n_features < ranker.n_features]
        larger = [member for member in path if member.n_features > ranker.n_features]
        return [*smaller, ranker, *larger], len(smaller)
    index, coefs = int(estimator.chosen_), estimator.front_coefs_
    population = estimator.front_rankers_ if coefs is None else rankers.LinearPopulation(coefs)
    members = measure.measured(name, population, estimator.front_support_, index)
    if coefs is None:
        # Store the trees of the chosen member only: those of all members take megabytes.
        trees = getattr(estimator, "forest_", None)
        members[index] = members[index].model_copy(update={"trees": trees})
    if "source" in estimator.front_:
        fields = {"ranker": type(estimator.refit_).__name__}
        pairs = zip(members, estimator.front_["source"], strict=True)
        members = [
            member.model_copy(update=fields | {"source": source}) for member, source in pairs
        ]
    instances = getattr(estimator, "n_instances_", None)
    if instances is not None:
        numbers = zip(members, instances, strict=True)
        members = [member.model_copy(update={"instances": int(n)}) for member, n in numbers]
    return members, index


def verdict_on_test(
    run: FoldRun, prepared: Prepared, estimator: Any, best: Member
) -> Verdict | None:
    """Return the verdict on a selection by the test part; None for a ranker that selects no features."""
    train, validation, test = run.parts.values()
    metric, margin = run.metrics[0], run.problem.search.margin
    verdict = None
    if isinstance(estimator, rankers.Selection):
        verdict = estimator.verdict(
            test, train, validation, metric=metric, margin=margin, tuning=run.tuning
        )
    elif callable(getattr(estimator, "verdict", None)):
        if hasattr(estimator, "metric"):
            # The metric of the problem judges, also a search by its own.
            estimator = estimator.set_params(metric=metric)
        verdict = estimator.verdict(test)
    if verdict is None:
        return None
    if isinstance(getattr(estimator, "refit", None), list):
        return verdict  # its reference is the best of these rankers
    for trees in (baseline for baseline in prepared.baselines if baseline.name == TREES):
        rival = judge(
            best.per_query["test"][metric.name],
            trees.per_query["test"][metric.name],
            "test",
            metric.name,
            verdict.n_features,
            verdict.n_allowed,
            can_differ=metric.can_differ(test),
            weights=test.query_weights,
            margin=margin,
            tail=verdict.tail,
        )
        values = [member.per_query["validation"][metric.name] for member in (best, trees)]
        verdict = verdict.with_rival(rival, TREES, np.diff(values, axis=0)[0])
    return verdict

"""One run: train a solver on one fold of a problem, and measure it and the baselines on all parts."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from moerank import rankers, solvers
from moerank.arrays import Mask, Matrix, Vector
from moerank.checks import Parameters
from moerank.data import RankingData
from moerank.data.scaling import negative_features
from moerank.files import Json
from moerank.identity import digest
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
from moerank.rankers.importance import single_feature_values
from moerank.rankers.lambda_mart import LambdaMART, leaf_sizes
from moerank.rankers.model import Model
from moerank.rankers.population import batch_of
from moerank.rankers.shapes import shapes_of
from moerank.runs.problem import Problem
from moerank.runs.result import PARTS, Convergence, Member, Result, Times
from moerank.runs.solver import Solver, changed_parameters
from moerank.statistics import mean_interval
from moerank.verdict import Verdict, judge
from moerank.version import VERSION

if TYPE_CHECKING:
    from distributed import Client

# The name of the baseline with which selections are compared.
ALL_FEATURES = "all features"

# A function of the name of a stage, the fraction that is done, and a text.
Progress: TypeAlias = Callable[[str, float, str], object]


def silent(stage: str, fraction: float, text: str) -> None:
    """Report no progress."""


Parts = Mapping[str, RankingData]

# Orders of the test documents whose mean metric the chosen member must exceed.
RANDOM_ORDERS = 16

# Largest rank for NDCG and precision, as in LETOR's scripts.
MOST_RANKS = 10


@dataclass(frozen=True)
class Measure:
    """Measures rankers on the parts of a fold."""

    parts: Parts
    metrics: tuple[Metric, Metric]  # the metric of the error, and the second metric of the tables
    objectives: Sequence[Objective]  # measured for every ranker on the training part
    backend: rankers.FitnessBackend  # for objectives that need other rankers of this kind
    reference: Vector | None = (
        None  # the first metric of the baseline on all features, by test query
    )

    def fitted(self, name: str, ranker: Any) -> Member:
        """Measure a fitted estimator."""
        train = self.parts["train"]
        model = Model.of(ranker, train.feature_names, train.scaling)
        alone: rankers.Population = batch_of(
            lambda X: ranker._scores(X).reshape(-1, 1), 1, train.n_features
        )
        population = (
            alone if model.weights is None else rankers.LinearPopulation(ranker.coef_[None])
        )
        member = self.measured(name, population, ranker.support_[None])[0]
        stored = {"trees": model.trees, "parameters": model.parameters}
        return self.with_all_metrics(member.model_copy(update=stored), population)

    def with_all_metrics(self, ranker: Member, population: rankers.Population) -> Member:
        """Return a ranker with the means of all metrics that the tables lack; `population` has this ranker only."""
        in_tables = {metric.name for metric in self.metrics}
        metrics = [
            metric for metric in every_metric(self.metrics[0]) if metric.name not in in_tables
        ]
        further = {}
        for part, rows in self.parts.items():
            scores = np.ascontiguousarray(population.scores(rows.X))
            values = {
                metric.name: rows.weighted(metric.per_query(rows, scores)) for metric in metrics
            }
            further[part] = {
                name: float(mean_over_queries(value)[0]) for name, value in values.items()
            }
        return ranker.model_copy(update={"further": further})

    def path(self, name: str, path: rankers.SelectionPath) -> list[Member]:
        """Measure the rankers of a path, one for each number of features."""
        sizes, rows = np.unique(path.feature_mask.sum(axis=1), return_index=True)
        rows = rows[sizes > 0]
        members = self.measured(name, path.rankers.take(rows), path.feature_mask[rows])
        return [member.model_copy(update={"per_query": {}}) for member in members]

    def measured(
        self, name: str, population: rankers.Population, feature_mask: Mask
    ) -> list[Member]:
        """Measure rankers with the features in the rows of `feature_mask`, shape (n_rankers, n_features)."""
        train, metric = self.parts["train"], self.metrics[0]
        tables = {part: self._per_query(rows, population) for part, rows in self.parts.items()}
        means = {
            part: {m: mean_over_queries(values) for m, values in t.items()}
            for part, t in tables.items()
        }
        errors = 1.0 - means["train"][metric.name]
        candidates = Candidates(
            train,
            metric,
            feature_mask,
            population,
            table_names=train.table_names,
            measured_errors=errors,
            backend=self.backend,
        )
        objectives = {objective.name: objective.values(candidates) for objective in self.objectives}
        intervals = self._intervals(tables["test"][metric.name])
        return [
            Member(
                name=name,
                features=tuple(np.flatnonzero(mask).tolist()),
                weights=None
                if population.coefs is None
                else tuple(population.coefs[i, mask].tolist()),
                objectives={
                    objective: float(values[i]) for objective, values in objectives.items()
                },
                scores={
                    part: {m: float(values[i]) for m, values in t.items()}
                    for part, t in means.items()
                },
                per_query={
                    part: {m: values[:, i].tolist() for m, values in t.items()}
                    for part, t in tables.items()
                },
                difference_interval=intervals[i],
            )
            for i, mask in enumerate(feature_mask)
        ]

    def _intervals(self, values: Matrix) -> list[tuple[float, float] | None]:
        """Return the 95 % intervals of the differences from the baseline on all features, over all test queries."""
        if self.reference is None:
            return [None] * values.shape[1]
        can_differ = self.metrics[0].can_differ(self.parts["test"])
        differences = np.ascontiguousarray((values.T - self.reference)[:, can_differ])
        share, ends = can_differ.mean(), map(mean_interval, differences)
        return [(share * low, share * high) if np.isfinite(low) else None for low, high in ends]

    def _per_query(self, rows: RankingData, population: rankers.Population) -> dict[str, Matrix]:
        """Return the values (n_queries, n_rankers) of each metric on one part."""
        if population.coefs is not None:
            return {
                metric.name: rows.weighted(metric.of_linear(rows, population.coefs))
                for metric in self.metrics
            }
        scores = np.ascontiguousarray(population.scores(rows.X))
        return {
            metric.name: rows.weighted(metric.per_query(rows, scores)) for metric in self.metrics
        }


def every_metric(metric: Metric) -> list[Metric]:
    """Return NDCG and precision at each of the ranks 1 to 10, MAP and MeanNDCG, with the conventions of `metric`."""
    of_gain = metric if isinstance(metric, NDCG | MeanNDCG) else MeanNDCG()
    conventions: Parameters = {
        key: getattr(of_gain, key) for key in ("gain", "convention", "discount")
    }
    short: Parameters = {"short_queries": metric.short_queries} if isinstance(metric, NDCG) else {}
    ranks = range(1, MOST_RANKS + 1)
    return [
        *(NDCG(k, **conventions, **short) for k in ranks),
        *(Precision(k) for k in ranks),
        MAP(),
        MeanNDCG(**conventions),
    ]


# The baseline of trees on all features; the verdict mentions it if it is detectably better.
TREES = "LambdaMART"


def tuned(
    ranker: Any,
    parts: Parts,
    metric: Metric,
    given: Iterable[str] = (),
    progress: Callable[[float], object] | None = None,
) -> Any:
    """Tune a ranker on its published grid by a metric; parameters in `given` stay fixed."""
    train, validation = parts["train"], parts["validation"]
    entries = ranker.default_grid(train) if hasattr(ranker, "default_grid") else []
    grid = [
        {name: value for name, value in entry.items() if name not in given} for entry in entries
    ]
    distinct = list({repr(entry): entry for entry in grid}.values())
    return ranker.tune(train, validation, distinct, metric, progress)


def measured_baselines(
    backend: object, problem: Problem, solver: str, measure: Measure, report: Progress
) -> list[Member]:
    """Return the baselines all features, best single feature and LambdaMART, except one that is the solver itself."""
    train, validation = measure.parts["train"], measure.parts["validation"]
    members = []
    report("baselines", 0.0, "all features")
    if solver != problem.backend.name:
        members.append(measure.fitted(ALL_FEATURES, rankers.with_features(backend).fit(train)))
    members.append(_best_single_feature(measure))
    if solver != "lambdamart" and problem.comparison.trees:
        trees = LambdaMART(
            n_trees=problem.comparison.trees, min_leaf=leaf_sizes(train.n_documents)[0]
        )
        trees = trees.stopped(train, validation, problem.metric.for_tuning())
        members.append(
            measure.fitted(TREES, trees).model_copy(update={"trees": None})
        )  # they take megabytes
    report("baselines", 1.0, "measured")
    return members


def _best_single_feature(measure: Measure) -> Member:
    """Rank by each feature, ascending and descending, and return the best such ranker on the training part."""
    values = single_feature_values(measure.parts["train"], measure.metrics[0])
    downwards, feature = divmod(int(values.argmax()), values.shape[1])
    coef = np.zeros((1, values.shape[1]))
    coef[0, feature] = -1.0 if downwards else 1.0
    ranker = rankers.LinearPopulation(coef)
    return measure.with_all_metrics(
        measure.measured("best single feature", ranker, coef != 0)[0], ranker
    )


# The progress text of each stage, with a gap for the number that the stage counts.
COUNTED = {
    **dict.fromkeys(STAGES, "generation {}"),
    "best_subset": "up to {} features",
    "refit_tuning": "by validation",
    "refit": "{} rankers",
}

# The columns of a stage's history by the fields of `Convergence`.
COURSE = {
    "generation": "generation",
    "evaluations": "n_eval",
    "trained": "n_trained",
    "hypervolume": "hypervolume",
}

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pymoo", "lightgbm")


def run_fold(
    problem: Problem,
    fold: int = 1,
    solver: Solver | str = "mofsrank",
    seed: int = 0,
    *,
    random_state: int | None = None,
    workers: int | Client = 1,
    data: str | Path | None = None,
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
        `Solver.parse` reads a text. The problem file sets the parameters that the solver leaves open.
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
    solver = problem.spec(Solver.parse(solver) if isinstance(solver, str) else solver)
    random_state = seed if random_state is None else random_state
    settings = configuration(problem, fold, solver, seed, baselines=baselines)
    with one_blas_thread():
        (train, vali, test), limits = problem.load_limited_fold(fold, data)
        parts: Parts = {"train": train, "validation": vali, "test": test}
        metric, tuning = problem.metric.make(), problem.metric.for_tuning()
        for remark in [check_differing(metric, part) for part in (train, test)]:
            if remark and (baselines or fold == 1):  # a study warns about its first fold only
                warnings.warn(remark, stacklevel=2)
        large = max(part.y.max() for part in parts.values()) > LARGEST_EXP2_LABEL
        metrics = (metric, MAP() if metric != MAP() else NDCG(10, "linear" if large else "exp2"))

        backend = solvers.make_backend(problem.backend.name, **problem.backend.parameters)
        backend = (
            tuned(backend, parts, tuning)
            if problem.backend.tune and hasattr(backend, "tune")
            else backend
        )
        defaults = {
            "backend": backend,
            "metric": metric,
            "tune": False,  # the backend is tuned already
            "tuning": tuning,
            "random_state": random_state,
            "workers": workers,
            "memo": memo,
            "resume": resume,
            "progress": lambda stage, fraction, number, _: report(
                stage, fraction, COUNTED[stage].format(number)
            ),
            **{
                name: offer
                for name, offer in problem.offers().items()
                if name in settings or name not in STAGES
            },
            "limits": limits,
            **limits,
        }
        estimator = solver.make(problem, defaults)
        goals = {**defaults, **estimator.get_params(deep=False)} if solver.own else defaults
        objectives = read_objectives(goals["objectives"] or FRONT)
        box = {entry.name: bounds_of(entry, train, train.n_features) for entry in objectives}
        measure = Measure(parts, metrics, objectives, backend)
        compared = (
            measured_baselines(backend, problem, solver.name, measure, report) if baselines else []
        )
        for everything in (baseline for baseline in compared if baseline.name == ALL_FEATURES):
            measure = replace(
                measure, reference=np.array(everything.per_query["test"][metric.name])
            )
        estimator, seconds = _trained(solver, estimator, parts, tuning, report)
        front, chosen = _front(estimator, solver.label, measure)
        verdict = _verdict(
            estimator, front[chosen], compared, measure, problem.search.margin, tuning
        )
    return Result(
        problem=problem.name,
        fold=fold,
        solver=solver.label,
        seed=seed,
        random_state=random_state,
        metrics=[entry.name for entry in metrics],
        objectives=[objective.name for objective in objectives],
        searched_by=as_metric(goals["metric"], metric).name,
        box=box,
        configuration=settings,
        front=front,
        chosen=chosen,
        baselines=compared,
        **_fields(parts, front[chosen], estimator, seconds),
        queries={part: problem.data.query_ids(rows, fold) for part, rows in parts.items()},
        differing=np.flatnonzero(metric.can_differ(test)).tolist(),
        verdict=verdict,
    )


def _trained(
    solver: Solver, estimator: Any, parts: Parts, tuning: Metric, report: Progress
) -> tuple[Any, dict[str, float]]:
    """Tune the estimator of a run if the solver asks for it, fit it, and return it with the seconds of both."""
    began = process_time()
    if solver.tuned and callable(getattr(estimator, "tune", None)):
        given = solver.settings if solver.given is None else changed_parameters(estimator)
        estimator = tuned(
            estimator, parts, tuning, given, lambda share: report("tuning", share, "by validation")
        )
    tuned_at = process_time()
    if getattr(estimator, "progress", None) is not None:  # it reports by itself
        report = silent
    report("training", 0.0, solver.label)
    estimator = estimator.fit(parts["train"], validation=parts["validation"])
    report("training", 1.0, solver.label)
    return estimator, {
        "tuning": round(tuned_at - began, 3),
        "solver": round(process_time() - tuned_at, 3),
    }


def _fields(parts: Parts, chosen: Member, estimator: object, seconds: Mapping[str, float]) -> Json:
    """Return as fields of the result what the data, the chosen ranker and the estimator have to say."""
    train, history = parts["train"], getattr(estimator, "history_", {})  # only searches have stages
    names = list(train.feature_names)
    return {
        "feature_names": names,
        "scaling": train.scaling,
        "missing": train.missing,
        "missing_values": train.missing_values,
        "negative": [names[feature] for feature in np.flatnonzero(negative_features(train))],
        "shapes": list(shapes_of(chosen.trees, train)),
        "convergence": {
            stage: Convergence(**{name: table[column].tolist() for name, column in COURSE.items()})
            for stage, table in history.items()
        },
        "n_evaluations": int(getattr(estimator, "n_evaluations_", 0)),
        "n_trained": int(getattr(estimator, "n_trained_", 0)),
        "instances": getattr(estimator, "instance_unit_", None),
        "n_instances": None
        if (subsets := getattr(estimator, "instance_subsets_", None)) is None
        else subsets.shape[1],
        "times": Times(
            **seconds, stages={stage: table["seconds"].tolist() for stage, table in history.items()}
        ),
        "versions": {
            "moerank": VERSION,
            "python": platform.python_version(),
            **{library: version(library) for library in LIBRARIES},
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        },
    }


def configuration(
    problem: Problem, fold: int, solver: Solver, seed: int, *, baselines: bool = True
) -> Json:
    """Return all that can be seen of what determines the result of a run, as plain JSON values.

    Only the problem settings that the solver takes count: a ranker does not depend on the budget of a search. Settings
    of the baselines and their backend count if baselines are measured. The solver must come from `Problem.spec`.
    """
    parameters = solver.takes()
    settings = _as_run(problem, solver)
    unused = {
        name
        for name in (*STAGES, *(() if baselines else ("backend", "comparison")))
        if name not in parameters
    }
    if (
        not settings["search"].keys() & parameters.keys()
    ):  # then only the margin of a verdict may count
        settings["search"] = {"margin": settings["search"]["margin"]}
    used = {name: values for name, values in settings.items() if values and name not in unused}
    of_table = (
        {} if solver.given is not None else {"name": solver.name, "parameters": solver.settings}
    )
    code = _code([of_table, {**used, "data": None}])
    return {
        "problem": problem.name,
        "fold": fold,
        "seed": seed,
        "solver": {
            "name": solver.name,
            "label": solver.label,
            "parameters": solver.settings,
            "tune": solver.tuned,
        },
        **used,
        **({"code": code} if code else {}),
    }


def _code(settings: object) -> dict[str, str]:
    """Return digests of the objects that settings name as ``module:name``; ignore other texts of this form."""
    digests = {}
    for text in solvers.names_of_code(settings) if solvers.code_is_allowed() else []:
        with suppress(ValueError):
            digests[text] = digest(solvers.load_code(text), text)
    return digests


def _as_run(problem: Problem, solver: Solver) -> Json:
    """Return the settings of a problem with those that the name of a solver or the user fixes instead."""
    settings = problem.configuration()
    entry = solvers.solver_entry(solver.name) if solver.given is None else None
    if entry is None:
        return settings
    settled = entry.settled(solver.settings)
    for name in STAGES:
        if settled.get(name) is False:
            del settings[name]
        elif isinstance(settled.get(name), Mapping):
            settings[name] = {**settings[name], **settled[name]}
    settings["search"] |= {
        name: settled[name] for name in settings["search"].keys() & settled.keys()
    }
    if isinstance(backend := settled.get("backend"), str):
        name, parameters = solvers.read_solver(backend)
        settings["backend"] = {
            "name": name,
            "parameters": parameters,
            "tune": settled.get("tune", False),
        }
    name = settings["backend"]["name"]
    if "instance_selection" not in settled and (
        solvers.code_is_allowed() or not solvers.is_code(name)
    ):
        backend = solvers.solver_entry(name)
        if backend is not None and hasattr(backend.kind, "judge_of_instances"):
            del settings["instance_selection"]  # MOFSRank leaves the stage out
    return settings


def _front(estimator: Any, name: str, measure: Measure) -> tuple[list[Member], int]:
    """Return the members that the estimator offers, from its front or its path, and the index of the chosen one."""
    if not hasattr(estimator, "front_"):
        ranker = measure.fitted(name, estimator)
        if not hasattr(estimator, "path"):
            return [ranker], 0
        path = measure.path(name, estimator.path(measure.parts["train"]))
        smaller = [member for member in path if len(member.features) < len(ranker.features)]
        larger = [member for member in path if len(member.features) > len(ranker.features)]
        return [*smaller, ranker, *larger], len(smaller)
    chosen = int(estimator.chosen_)
    coefs = estimator.front_coefs_
    population = estimator.front_rankers_ if coefs is None else rankers.LinearPopulation(coefs)
    members = measure.measured(name, population, estimator.front_support_)
    members[chosen] = measure.with_all_metrics(members[chosen], population.take(np.array([chosen])))
    if coefs is None:
        # Store the trees of the chosen member only: those of all members take megabytes.
        members[chosen] = members[chosen].model_copy(
            update={"trees": getattr(estimator, "forest_", None)}
        )
    instances = getattr(estimator, "n_instances_", None)
    for i, member in enumerate(members):
        own: dict[str, object] = {} if i == chosen else {"per_query": {}}
        members[i] = member.model_copy(
            update=own if instances is None else {**own, "instances": int(instances[i])}
        )
    return members, chosen


def _verdict(
    estimator: Any,
    chosen: Member,
    baselines: Sequence[Member],
    measure: Measure,
    margin: float,
    tuning: Metric,
) -> Verdict | None:
    """Return the verdict on a selection by the test part; None for a ranker that selects no features."""
    validation, test = (measure.parts[part] for part in PARTS[1:])
    metric = measure.metrics[0]
    verdict: Verdict | None = None
    if isinstance(estimator, rankers.Selection):
        given: Parameters = {"metric": metric, "margin": margin, "tuning": tuning}
        verdict = estimator.verdict(test, measure.parts["train"], validation, **given)
    elif callable(getattr(estimator, "verdict", None)):
        # The metric of the problem judges, also a search by its own.
        verdict = (
            estimator.set_params(metric=metric) if hasattr(estimator, "metric") else estimator
        ).verdict(test)
    if verdict is None:
        return None
    about: Parameters = {
        "part": "test",
        "metric": metric.name,
        "can_differ": metric.can_differ(test),
        "margin": margin,
    }
    about |= {
        "n_features": verdict.n_features,
        "n_allowed": verdict.n_allowed,
        "weights": test.query_weights,
    }
    against = partial(judge, chosen.per_query["test"][metric.name], **about)
    orders = np.random.default_rng(0).random((test.n_documents, RANDOM_ORDERS))
    verdict = verdict.with_chance(
        against(reference=test.weighted(metric.per_query(test, orders)).mean(axis=1))
    )
    for trees in (baseline for baseline in baselines if baseline.name == TREES):
        verdict = verdict.with_rival(against(reference=trees.per_query["test"][metric.name]), TREES)
    return verdict

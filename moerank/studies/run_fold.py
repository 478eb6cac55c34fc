"""Measuring rankers on the parts of a fold: metrics, values of each query, and the objectives of the search."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Mask
from moerank.data import AnyData, RankingData
from moerank.data.ranking_data import in_one_piece
from moerank.kernels.blas import one_blas_thread
from moerank.kernels.ranks import mean_over_queries
from moerank.metrics import MAP, NDCG, MeanNDCG, Metric, Precision, check_differing
from moerank.mofsrank.objectives import Candidates, Objective, read_objectives
from moerank.mofsrank.searching import REFIT_SEARCH
from moerank.mofsrank.settings import STAGES
from moerank.rankers import (
    ConstantFeatureWarning,
    FitnessBackend,
    LinearPopulation,
    Population,
    RankingEstimator,
    Selection,
    SelectionPath,
    with_features,
)
from moerank.rankers.model import Model
from moerank.selectors.filter import single_feature_values
from moerank.solvers import (
    code_is_allowed,
    load_code,
    make_backend,
    make_solver,
    names_of_code,
    read_text,
    solver_entry,
)
from moerank.statistics import mean_and_error
from moerank.studies.problem import Problem
from moerank.studies.result import PARTS, Convergence, Member, Result, Seconds, Times
from moerank.studies.solver import Solver, describe, digest_of
from moerank.studies.sources import query_ids
from moerank.training.counted import LONGEST_LIST
from moerank.verdict import Verdict
from moerank.version import VERSION

if TYPE_CHECKING:
    from moerank.data.dask import DaskCluster


__all__ = ["ALL_FEATURES", "Measure", "Parts", "every_metric", "configuration", "run_fold"]

ALL_FEATURES = "all features"
"""The baseline that selections are compared with."""

Parts = Mapping[str, AnyData]

MOST_RANKS = 10
"""To which ranks NDCG and precision are measured, as LETOR's scripts do."""


@dataclass(frozen=True)
class Measure:
    """Measures rankers on the parts of a fold.

    Attributes
    ----------
    parts : mapping of str to RankingData
        "train", "validation" and "test".
    metrics : (Metric, Metric)
        That of the objectives, and the second one of the tables.
    objectives : sequence of Objective
        Measured on the training part, for every ranker: also for those that no search has found.
    backend : fitness backend
        For objectives that compare with another ranker of its kind.
    reference : ndarray, shape (n_test_queries,), optional
        The first metric of the ranker on all features, query by query: what others' differences have an error from.
    """

    parts: Parts
    metrics: tuple[Metric, Metric]
    objectives: Sequence[Objective]
    backend: FitnessBackend
    reference: NDArray[np.float64] | None = None

    def beside(self, baselines: Sequence[Member]) -> Measure:
        """Return the same, with what comes compared with the baseline on all features, if it is among these."""
        metric = self.metrics[0].name
        found = [baseline.per_query["test"][metric] for baseline in baselines if baseline.name == ALL_FEATURES]
        return replace(self, reference=np.array(found[0])) if found else self

    def fitted(self, name: str, ranker: Any) -> Member:
        """Measure a fitted estimator."""
        train = self.parts["train"]
        model = Model.of(ranker, train.feature_names, train.scaling)
        population = LinearPopulation(ranker.coef_[None]) if model.weights is not None else _One(ranker)
        member = self.measured(name, population, ranker.support_[None])[0]
        stored = {"trees": model.trees, "parameters": model.parameters}
        return self.whole(member.model_copy(update=stored), population)

    def weights(self, name: str, coef: NDArray[np.float64], support: NDArray[np.bool_]) -> Member:
        """Measure the ranker wᵀx on the features `support`, shapes (n_features,)."""
        ranker = LinearPopulation(coef[None])
        return self.whole(self.measured(name, ranker, support[None])[0], ranker)

    def whole(self, ranker: Member, population: Population) -> Member:
        """Return a ranker with the means of every metric that its tables do not have; it is alone in `population`."""
        known = {metric.name for metric in self.metrics}
        metrics = [metric for metric in every_metric(self.metrics[0]) if metric.name not in known]
        further = {}
        for part, rows in self.parts.items():
            values = np.concatenate(rows.map(_all_values, population, metrics), axis=1)
            further[part] = {
                metric.name: float(mean_over_queries(v)[0]) for metric, v in zip(metrics, values, strict=True)
            }
        return ranker.model_copy(update={"further": further})

    def path(self, name: str, path: SelectionPath) -> list[Member]:
        """Measure the rankers of a path, one for each number of features it has."""
        sizes, rows = np.unique(path.feature_mask.sum(axis=1), return_index=True)
        rows = rows[sizes > 0]
        members = self.measured(name, path.rankers.take(rows), path.feature_mask[rows])
        return [member.model_copy(update={"per_query": {}}) for member in members]

    def measured(self, name: str, rankers: Population, feature_mask: Mask) -> list[Member]:
        """Measure several rankers, which use the features in the rows of `feature_mask` (n_rankers, n_features)."""
        per_query = {part: self._per_query(rows, rankers) for part, rows in self.parts.items()}
        means = {
            part: {name: mean_over_queries(values) for name, values in table.items()}
            for part, table in per_query.items()
        }
        train, metric = self.parts["train"], self.metrics[0]
        errors = 1.0 - means["train"][metric.name]
        candidates = Candidates(train, metric, feature_mask, lambda: rankers, errors=errors, backend=self.backend)
        objectives = {objective.name: objective.values(candidates) for objective in self.objectives}
        paired = [self._paired_error(values) for values in per_query["test"][metric.name].T]
        return [
            Member(
                name=name,
                features=tuple(np.flatnonzero(mask).tolist()),
                weights=None if rankers.coefs is None else tuple(rankers.coefs[i, mask].tolist()),
                objectives={objective: float(values[i]) for objective, values in objectives.items()},
                scores={part: {name: float(v[i]) for name, v in table.items()} for part, table in means.items()},
                per_query={part: {name: v[:, i].tolist() for name, v in t.items()} for part, t in per_query.items()},
                paired_error=paired[i],
            )
            for i, mask in enumerate(feature_mask)
        ]

    def _paired_error(self, values: NDArray[np.float64]) -> float | None:
        """Return the standard error of the mean difference from the reference; None without one, or of one query."""
        if self.reference is None or len(values) < 2:
            return None
        return mean_and_error(values - self.reference)[1]

    def _per_query(self, rows: AnyData, rankers: Population) -> dict[str, NDArray[np.float64]]:
        """Return the values (n_queries, n_rankers) of each metric on one part."""
        if rankers.coefs is not None:
            return {metric.name: metric.of_linear(rows, rankers.coefs) for metric in self.metrics}
        scores = np.ascontiguousarray(rankers.scores(in_one_piece(rows).X))
        return {metric.name: metric.per_query(rows, scores) for metric in self.metrics}


def every_metric(metric: Metric) -> list[Metric]:
    """Return NDCG and precision to each of the ranks 1 to 10, MAP and MeanNDCG, by the conventions of `metric`.

    Examples
    --------
    >>> [metric.name for metric in every_metric(NDCG(10, convention="letor"))][8:12]
    ['NDCG@9 (letor)', 'NDCG@10 (letor)', 'P@1', 'P@2']
    """
    of_gain = metric if isinstance(metric, NDCG | MeanNDCG) else MeanNDCG()
    conventions: dict[str, Any] = {key: getattr(of_gain, key) for key in ("gain", "convention", "discount")}
    short: dict[str, Any] = {"short_queries": metric.short_queries} if isinstance(metric, NDCG) else {}
    ranks = range(1, MOST_RANKS + 1)
    return [
        *(NDCG(k, **conventions, **short) for k in ranks),
        *(Precision(k) for k in ranks),
        MAP(),
        MeanNDCG(**conventions),
    ]


def _all_values(rows: RankingData, population: Population, metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """Return the values (n_metrics, n_queries, n_rankers) of some documents, which are scored once."""
    scores = np.ascontiguousarray(population.scores(rows.X))
    return np.stack([metric.per_query(rows, scores) for metric in metrics])


@dataclass(frozen=True)
class _One:
    """A fitted estimator as a population of its own."""

    ranker: Any
    coefs: None = None

    def __len__(self) -> int:
        return 1

    def scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores (n_documents, 1) of the rows of X, which are scaled as the training data are."""
        known = isinstance(self.ranker, RankingEstimator)
        scores: NDArray[np.float64] = self.ranker._scores(X) if known else self.ranker.predict(X)
        return scores.reshape(-1, 1)

    def take(self, rows: NDArray[np.int64]) -> _One:
        return self


Progress: TypeAlias = Callable[[str, float, str], object]
"""Called with the name of the stage, the fraction done and a text."""

COUNTED = {
    **dict.fromkeys((*STAGES, REFIT_SEARCH), "generation {}"),
    "refit_tuning": "by validation MAP",
    "refit": "{} rankers",
}
"""Text beside the name of a stage, with the number that it counts."""

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pymoo", "lightgbm")


def run_fold(
    problem: Problem,
    fold: int = 1,
    solver: Solver | str = "mofsrank",
    seed: int = 0,
    *,
    random_state: int | None = None,
    workers: int = 1,
    data: str | Path | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    baselines: bool = True,
    cluster: DaskCluster | None = None,
) -> Result:
    """Run a solver on one fold, and measure it and the baselines on all parts.

    Nothing is fitted or chosen on the test part.

    Parameters
    ----------
    problem : Problem
    fold : int, default 1
        From 1 to `Problem.n_folds`.
    solver : Solver or str, default "mofsrank"
        A text is read by `Solver.parse`. The problem's file sets the parameters that the solver leaves open.
    seed : int, default 0
        The number of the run among those that differ in their draws alone.
    random_state : int, optional
        What the draws come from; by default `seed`.
    workers : int, default 1
        Threads; the result is the same for any number.
    data : path, optional
        Where files of data are; see `Problem.load_fold`.
    journal : path, optional
        Where a search writes down what it evaluates.
    resume : bool, default False
        Go on from the journal if there is one.
    progress : callable, optional
        Called as ``progress(stage, fraction, text)``.
    baselines : bool, default True
        False leaves the baselines out.
    cluster : DaskCluster, optional
        Whose workers hold the shards of the training part, where the problem's data are in shards; else this process
        does.

    Returns
    -------
    Result

    Raises
    ------
    FileNotFoundError, ValueError
        For data that are missing or malformed, and names or parameters that do not exist.
    """
    clock = _Clock()
    report = progress or (lambda stage, fraction, text: None)
    spec = problem.spec(Solver.parse(solver) if isinstance(solver, str) else solver)
    random_state = seed if random_state is None else random_state
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantFeatureWarning)  # the description of the data lists these features
        loaded, limits = problem.load_limited_fold(fold, data, cluster)
        parts = dict(zip(PARTS, loaded, strict=True))
        train = parts["train"]
        metric = problem.metric.make()
        for part in (train, parts["test"]):
            if remark := check_differing(metric, part):
                warnings.warn(remark, stacklevel=2)
        metrics = (metric, MAP() if metric != MAP() else NDCG(10))
        clock.stop("data")

        backend = make_backend(problem.backend.name, **problem.backend.parameters)
        backend = _tuned(backend, parts) if problem.backend.tune and hasattr(backend, "tune") else backend
        objectives = read_objectives(problem.search.objectives)
        measure = Measure(parts, metrics, objectives, backend)
        compared = _baselines(backend, problem.backend.name, spec.name, measure, report) if baselines else []
        measure = measure.beside(compared)
        clock.stop("baselines")

        offered = {
            "backend": backend,
            "metric": metric,
            "tune": False,  # the backend is tuned already
            "random_state": random_state,
            "workers": workers,
            "journal": journal,
            "resume": resume,
            "progress": lambda stage, fraction, number, _: report(stage, fraction, _where(stage, number, train)),
            **problem.offers(),
            **limits,
        }
        estimator = _trained(spec, spec.make(problem, offered), parts, report, clock)
        front, chosen = _front(estimator, spec.label, measure)
        verdict = _verdict(estimator, measure, problem.search.margin)
        clock.stop("measuring")
    return Result(
        problem=problem.name,
        fold=fold,
        solver=spec.label,
        seed=seed,
        random_state=random_state,
        metrics=[entry.name for entry in metrics],
        objectives=[objective.name for objective in objectives],
        configuration=configuration(problem, fold, spec, seed, baselines=baselines),
        feature_names=list(train.feature_names),
        queries={part: query_ids(rows) for part, rows in parts.items()},
        front=front,
        chosen=chosen,
        baselines=compared,
        **_course(estimator, clock),
        versions=_versions(),
        scaling=train.scaling,
        missing=train.missing,
        verdict=verdict,
    )


def _trained(spec: Solver, estimator: Any, parts: Parts, report: Progress, clock: _Clock) -> Any:
    """Return the estimator of a run, tuned where the solver asks for it, and fitted."""
    if spec.tune and callable(getattr(estimator, "tune", None)):
        estimator = _tuned(estimator, parts, spec.settings, lambda share: report("tuning", share, "by validation MAP"))
    clock.stop("tuning")
    shows_progress = getattr(estimator, "progress", None) is not None
    if not shows_progress:
        report("training", 0.0, spec.label)
    estimator = _fitted(estimator, parts["train"], parts["validation"])
    if not shows_progress:
        report("training", 1.0, spec.label)
    clock.stop("solver")
    return estimator


def _course(estimator: Any, clock: _Clock) -> dict[str, Any]:
    """Return the convergence and the times of a run as fields of its result; rankers have no stages."""
    history = getattr(estimator, "history_", {})
    return {
        "convergence": {
            stage: Convergence(
                generation=table["generation"].tolist(),
                evaluations=table["n_eval"].tolist(),
                hypervolume=table["hypervolume"].tolist(),
            )
            for stage, table in history.items()
        },
        "n_evaluations": int(getattr(estimator, "n_evaluations_", 0)),
        "instances": getattr(estimator, "instance_unit_", None),
        "n_instances": None if (subsets := getattr(estimator, "instance_subsets_", None)) is None else subsets.shape[1],
        "times": Times(
            **clock.times,
            processor=Seconds(**clock.processor),
            stages={stage: table["seconds"].tolist() for stage, table in history.items()},
        ),
    }


def _versions() -> dict[str, str]:
    """Return the versions of all that computes, and the machine."""
    return {
        "moerank": VERSION,
        "python": platform.python_version(),
        **{library: version(library) for library in LIBRARIES},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
    }


def configuration(problem: Problem, fold: int, solver: Solver, seed: int, *, baselines: bool = True) -> dict[str, Any]:
    """Return everything that decides the result of a run, as plain JSON values.

    Of the problem's settings those count that the solver takes: a ranker does not change with the budget of a search.
    The backend counts wherever baselines are measured, too.
    """
    spec = problem.spec(solver)
    known = spec.takes()
    settings = _as_run(problem.configuration(), spec)
    unused = [name for name in STAGES if name not in known and name in settings]
    if not settings["search"].keys() & known.keys():  # all that may count is the margin of a verdict
        margin = {name: value for name, value in settings["search"].items() if name == "margin"}
        settings["search"] = margin if spec.selects else {}
    unused += ["search"] if not settings["search"] else []
    unused += ["backend"] if not baselines and "backend" not in known else []
    used = {name: values for name, values in settings.items() if name not in unused}
    of_table = {} if spec.given is not None else {"name": spec.name, "parameters": spec.settings}
    code = _code([of_table, {**used, "data": None}])
    return {
        "problem": problem.name,
        "fold": fold,
        "seed": seed,
        "solver": {"name": spec.name, "label": spec.label, "parameters": spec.settings, "tune": spec.tune},
        **used,
        **({"code": code} if code else {}),
    }


def _code(settings: object) -> dict[str, str]:
    """Return digests of the objects that settings name as ``module:name``; other texts of this form name none."""
    found = {}
    for text in names_of_code(settings) if code_is_allowed() else []:
        with suppress(ValueError):
            found[text] = digest_of(describe(load_code(text), text))
    return found


def _as_run(settings: dict[str, Any], spec: Solver) -> dict[str, Any]:
    """Return the settings of a problem with those that the name of a solver or the user fixes instead."""
    entry = solver_entry(spec.name) if spec.given is None else None
    if entry is None:
        return settings
    settled = entry.settled(spec.settings)
    for name in STAGES:
        if settled.get(name) is False:
            del settings[name]
        elif isinstance(settled.get(name), Mapping):
            settings[name] = {**settings[name], **settled[name]}
    settings["search"] |= {name: settled[name] for name in settings["search"].keys() & settled.keys()}
    if isinstance(backend := settled.get("backend"), str):
        name, parameters = read_text(backend)
        settings["backend"] = {"name": name, "parameters": parameters, "tune": settled.get("tune", False)}
    return settings


def _where(stage: str, number: int, train: AnyData) -> str:
    """Say where a search stands, and where its data lie if they are in shards."""
    return COUNTED[stage].format(number) + (f", {train.where}" if train.in_shards else "")


def _fitted(estimator: Any, train: AnyData, validation: AnyData | None = None) -> Any:
    """Fit an estimator and return it; one of another package knows arrays only."""
    if isinstance(estimator, RankingEstimator):
        return estimator.fit(train, validation=validation)
    held_out = {} if validation is None else {"validation": validation}
    whole = in_one_piece(train)
    return estimator.fit(whole.X, whole.y, qid=whole.qid, **held_out)


def _tuned(
    ranker: Any, parts: Parts, given: Iterable[str] = (), progress: Callable[[float], object] | None = None
) -> Any:
    """Choose what is not given among the published grid by validation MAP."""
    train, validation = parts["train"], parts["validation"]
    grid = [{name: value for name, value in entry.items() if name not in given} for entry in ranker.default_grid(train)]
    distinct = list({repr(entry): entry for entry in grid}.values())
    return ranker.tune(train, validation, distinct, progress=progress)


def _baselines(backend: Any, backend_name: str, solver: str, measure: Measure, report: Progress) -> list[Member]:
    """Return all features, the best single feature and FSMRank, without the one that is the solver itself.

    FSMRank is left out on more than two million preference pairs, where its grid would take longer than the search.
    """
    train = measure.parts["train"]
    found = []
    if solver != backend_name:
        report("baselines", 0.0, "all features")
        found.append(measure.fitted(ALL_FEATURES, _fitted(with_features(backend), train)))
    report("baselines", 1 / 3, "single features")
    found.append(_best_single_feature(measure))
    if solver != "fsmrank" and not train.in_shards and train.n_pairs <= LONGEST_LIST:
        report("baselines", 2 / 3, "FSMRank")
        ranker = _fitted(_tuned(make_solver("fsmrank"), measure.parts), train)
        found.append(measure.fitted("FSMRank", ranker))
    report("baselines", 1.0, "measured")
    return found


def _best_single_feature(measure: Measure) -> Member:
    """Rank by each feature, upwards and downwards, and take what is best on the training part."""
    values = single_feature_values(measure.parts["train"], measure.metrics[0])
    downwards, feature = divmod(int(values.argmax()), values.shape[1])
    coef = np.zeros(values.shape[1])
    coef[feature] = -1.0 if downwards else 1.0
    return measure.weights("best single feature", coef, coef != 0)


def _front(estimator: Any, name: str, measure: Measure) -> tuple[list[Member], int]:
    """Return what the estimator offers at each size, its front or its path, and which of them was chosen."""
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
    rankers = estimator.front_rankers_ if coefs is None else LinearPopulation(coefs)
    members = measure.measured(name, rankers, estimator.front_support_)
    members[chosen] = measure.whole(members[chosen], rankers.take(np.array([chosen])))
    if coefs is None:
        # The trees of all members would take megabytes.
        members[chosen] = members[chosen].model_copy(update={"trees": getattr(estimator, "forest_", None)})
    instances = getattr(estimator, "n_instances_", None)
    for i, member in enumerate(members):
        own: dict[str, object] = {} if i == chosen else {"per_query": {}}
        members[i] = member.model_copy(update=own if instances is None else {**own, "instances": int(instances[i])})
    return members, chosen


def _verdict(estimator: Any, measure: Measure, margin: float) -> Verdict | None:
    """Return how a selection stands on the test part; None of a ranker that selects nothing."""
    if isinstance(estimator, Selection):
        validation, test = (in_one_piece(measure.parts[part]) for part in PARTS[1:])
        return estimator.verdict(test, measure.parts["train"], validation, metric=measure.metrics[0], margin=margin)
    judged = getattr(estimator, "verdict", None)
    return judged(measure.parts["test"]) if callable(judged) else None


class _Clock:
    """Seconds between its stops, and how many of them the processor worked for this process."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self.processor: dict[str, float] = {}
        self._last = perf_counter(), process_time()

    def stop(self, name: str) -> None:
        """Write down the seconds since the last stop."""
        now = perf_counter(), process_time()
        self.times[name], self.processor[name] = (
            round(after - before, 3) for after, before in zip(now, self._last, strict=True)
        )
        self._last = now

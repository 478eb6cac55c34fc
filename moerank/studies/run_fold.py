"""One run: a solver on one fold of a problem, measured beside its baselines."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from moerank.data import RankingData
from moerank.data.folds import deal_queries
from moerank.data.scaling import negative_features
from moerank.files import Json
from moerank.kernels.blas import one_blas_thread
from moerank.metrics import LARGEST_EXP2_LABEL, MAP, NDCG, Metric, check_differing
from moerank.mofsrank.objectives import read_objectives
from moerank.mofsrank.settings import STAGES
from moerank.rankers import ConstantFeatureWarning, LinearPopulation, Selection
from moerank.solvers import code_is_allowed, load_code, make_backend, names_of_code, read_text, solver_entry
from moerank.studies.measure import (
    TREES,
    Measure,
    OneRanker,
    Parts,
    Progress,
    fsm_rank,
    grid_of,
    kept_baselines,
    measured_baselines,
    tuned,
)
from moerank.studies.problem import Problem
from moerank.studies.result import PARTS, Convergence, Member, Result, Seconds, Times
from moerank.studies.solver import Solver, describe, digest_of
from moerank.studies.sources import query_ids
from moerank.verdict import Verdict, judge
from moerank.version import VERSION

if TYPE_CHECKING:
    from distributed import Client

COUNTED = {
    **dict.fromkeys(STAGES, "generation {}"),
    "best_subset": "up to {} features",
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
    workers: int | Client = 1,
    data: str | Path | None = None,
    journal: str | Path | None = None,
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

    Returns
    -------
    Result

    Raises
    ------
    FileNotFoundError, ValueError
        For data that are missing or malformed, and names or parameters that do not exist.
    """
    clock = _Clock()
    report = progress or _silent
    solver = problem.spec(Solver.parse(solver) if isinstance(solver, str) else solver)
    random_state = seed if random_state is None else random_state
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantFeatureWarning)  # the description of the data lists these features
        (train, vali, test), limits = problem.load_limited_fold(fold, data)
        parts: Parts = {"train": train, "validation": vali, "test": test}
        metric = problem.metric.make()
        _remark_on_queries(metric, (train, test), aloud=baselines or fold == 1)
        metrics = (metric, MAP() if metric != MAP() else _usual_ndcg(parts.values()))
        clock.stop("data")

        backend = make_backend(problem.backend.name, **problem.backend.parameters)
        backend = tuned(backend, parts) if problem.backend.tune and hasattr(backend, "tune") else backend
        objectives = read_objectives(problem.search.objectives)
        measure = Measure(parts, metrics, objectives, backend)
        settings = configuration(problem, fold, solver, seed, baselines=baselines)
        ask = partial(measured_baselines, backend, problem, solver.name, measure, report)
        compared = kept_baselines(journal, settings, train, resume, ask) if baselines else []
        measure = measure.beside(compared)
        clock.stop("baselines")

        offered = {
            "backend": backend,
            "metric": metric,
            "tune": False,  # the backend is tuned already
            "random_state": random_state,
            "workers": workers,
            "memo": journal,
            "resume": resume,
            "progress": lambda stage, fraction, number, _: report(stage, fraction, _where(stage, number, train)),
            **problem.offers(),
            "limits": limits,
            **limits,
        }
        estimator = _trained(solver, solver.make(problem, offered), parts, report, clock)
        validated = _validated(solver, problem, offered, estimator, train, report)
        front, chosen = _front(estimator, solver.label, measure)
        verdict = _verdict(estimator, front[chosen], compared, measure, problem.search.margin)
        clock.stop("measuring")
        compared += fsm_rank(solver.name, verdict, measure, report) if baselines else []
        clock.stop("baselines")
    return Result(
        problem=problem.name,
        fold=fold,
        solver=solver.label,
        seed=seed,
        random_state=random_state,
        metrics=[entry.name for entry in metrics],
        objectives=[objective.name for objective in objectives],
        configuration=settings,
        front=front,
        chosen=chosen,
        baselines=compared,
        **validated,
        **_course(estimator, clock),
        **_data_fields(parts),
        verdict=verdict,
    )


def _data_fields(parts: Parts) -> Json:
    """Return features, queries, scaling and the features below 0 as fields of the result."""
    train = parts["train"]
    names = list(train.feature_names)
    return {
        "feature_names": names,
        "queries": {part: query_ids(rows) for part, rows in parts.items()},
        "scaling": train.scaling,
        "missing": train.missing,
        "negative": [names[feature] for feature in np.flatnonzero(negative_features(train))],
    }


def _usual_ndcg(parts: Iterable[RankingData]) -> NDCG:
    """Return NDCG@10, with the linear gain if a label is too large for the usual one."""
    largest = max(int(part.y.max()) for part in parts)
    return NDCG(10, "linear" if largest > LARGEST_EXP2_LABEL else "exp2")


def _remark_on_queries(metric: Metric, parts: Iterable[RankingData], *, aloud: bool) -> None:
    """Refuse parts with queries that cannot differ alone, and warn of many such queries; a study of the first fold."""
    for part in parts:
        remark = check_differing(metric, part)
        if remark and aloud:
            warnings.warn(remark, stacklevel=3)


def _trained(solver: Solver, estimator: Any, parts: Parts, report: Progress, clock: _Clock) -> Any:
    """Return the estimator of a run, tuned where the solver asks for it, and fitted."""
    if solver.tune and callable(getattr(estimator, "tune", None)):
        estimator = tuned(estimator, parts, solver.settings, lambda share: report("tuning", share, "by validation MAP"))
    clock.stop("tuning")
    shows_progress = getattr(estimator, "progress", None) is not None
    if not shows_progress:
        report("training", 0.0, solver.label)
    estimator = estimator.fit(parts["train"], validation=parts["validation"])
    if not shows_progress:
        report("training", 1.0, solver.label)
    clock.stop("solver")
    return estimator


def _validated(
    solver: Solver, problem: Problem, offered: Mapping[str, Any], estimator: Any, train: RankingData, report: Progress
) -> Json:
    """Return what chooses between solvers, as fields of the result.

    ``n_compared`` counts the settings and members that the validation queries compared. For ``cross_validated`` the
    training queries are dealt into equal parts. Each in turn is ranked by a solver that is trained on the others,
    of which the one before it chooses parameters; the field is the mean metric over all queries.
    """
    n_settings = len(grid_of(solver.make(problem, offered), train, solver.settings)) if solver.tune else 0
    if "backend" in solver.takes() and problem.backend.tune:
        n_settings += len(grid_of(make_backend(problem.backend.name, **problem.backend.parameters), train))
    fields = {"n_compared": n_settings + len(getattr(estimator, "front_", ()))}
    n_parts, values = problem.comparison.cross_validation, []
    offered = {**offered, "memo": None, "resume": False, "progress": None}
    for number in range(1, n_parts + 1):
        report("cross_validation", (number - 1) / n_parts, f"part {number} of {n_parts}")
        dealt = deal_queries(train, number, n_parts, seed=offered["random_state"])
        parts = dict(zip(PARTS, dealt, strict=True))
        inner = _trained(solver, solver.make(problem, offered), parts, _silent, _Clock())
        held_out = parts["test"]
        values.append(problem.metric.make().per_query(held_out, OneRanker(inner).scores(held_out.X)))
        if train.query_weights is not None and held_out.query_weights is not None:
            values[-1] *= held_out.query_weights[:, None] / train.query_weights.mean()
    return {**fields, "cross_validated": float(np.concatenate(values).mean()) if values else None}


def _silent(stage: str, fraction: float, text: str) -> None:
    pass


def _course(estimator: object, clock: _Clock) -> Json:
    """Return the convergence, the times and the versions of a run as fields of its result; rankers have no stages."""
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
        "n_combined": getattr(estimator, "n_combined_", None),
        "n_evaluations": int(getattr(estimator, "n_evaluations_", 0)),
        "instances": getattr(estimator, "instance_unit_", None),
        "n_instances": None if (subsets := getattr(estimator, "instance_subsets_", None)) is None else subsets.shape[1],
        "times": Times(
            **clock.times,
            processor=Seconds(**clock.processor),
            stages={stage: table["seconds"].tolist() for stage, table in history.items()},
        ),
        "versions": {
            "moerank": VERSION,
            "python": platform.python_version(),
            **{library: version(library) for library in LIBRARIES},
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        },
    }


def configuration(problem: Problem, fold: int, solver: Solver, seed: int, *, baselines: bool = True) -> Json:
    """Return everything that decides the result of a run, as plain JSON values.

    Of the problem's settings those count that the solver takes: a ranker does not change with the budget of a search.
    The backend counts wherever baselines are measured, too.
    """
    solver = problem.spec(solver)
    known = solver.takes()
    settings = _as_run(problem.configuration(), solver)
    unused = {name for name in (*STAGES, *(() if baselines else ("backend",))) if name not in known}
    if not settings["search"].keys() & known.keys():  # all that may count is the margin of a verdict
        settings["search"] = {"margin": settings["search"]["margin"]} if solver.selects else {}
    compared = {"trees": baselines, "cross_validation": problem.comparison.cross_validation}
    settings["comparison"] = {name: value for name, value in settings["comparison"].items() if compared[name]}
    used = {name: values for name, values in settings.items() if values and name not in unused}
    of_table = {} if solver.given is not None else {"name": solver.name, "parameters": solver.settings}
    code = _code([of_table, {**used, "data": None}])
    return {
        "problem": problem.name,
        "fold": fold,
        "seed": seed,
        "solver": {"name": solver.name, "label": solver.label, "parameters": solver.settings, "tune": solver.tune},
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


def _as_run(settings: Json, solver: Solver) -> Json:
    """Return the settings of a problem with those that the name of a solver or the user fixes instead."""
    entry = solver_entry(solver.name) if solver.given is None else None
    if entry is None:
        return settings
    settled = entry.settled(solver.settings)
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


def _where(stage: str, number: int, train: RankingData) -> str:
    """Say where a search stands, and where its data lie if they are in shards."""
    return COUNTED[stage].format(number)


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


def _verdict(
    estimator: object, chosen: Member, baselines: Sequence[Member], measure: Measure, margin: float
) -> Verdict | None:
    """Return how a selection stands on the test part; None of a ranker that selects nothing."""
    validation, test = (measure.parts[part] for part in PARTS[1:])
    metric = measure.metrics[0]
    judged = getattr(estimator, "verdict", None)
    verdict: Verdict | None = None
    if isinstance(estimator, Selection):
        verdict = estimator.verdict(test, measure.parts["train"], validation, metric=metric, margin=margin)
    elif callable(judged):
        verdict = judged(test)
    trees = [baseline for baseline in baselines if baseline.name == TREES]
    if verdict is None or not trees:
        return verdict
    values, reference = (ranker.per_query["test"][metric.name] for ranker in (chosen, trees[0]))
    sizes, can_differ = (verdict.n_features, verdict.n_allowed), metric.can_differ(test)
    other = judge(values, reference, "test", metric.name, *sizes, can_differ=can_differ, margin=margin)
    return verdict.beside(other, TREES)


class _Clock:
    """Seconds between its stops, and how many of them the processor worked for this process."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self.processor: dict[str, float] = {}
        self._last = perf_counter(), process_time()

    def stop(self, name: str) -> None:
        """Add the seconds since the last stop to a step."""
        now = perf_counter(), process_time()
        for seconds, after, before in zip((self.times, self.processor), now, self._last, strict=True):
            seconds[name] = round(seconds.get(name, 0.0) + after - before, 3)
        self._last = now

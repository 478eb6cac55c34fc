"""One run: a solver on one fold of a problem, beside the baselines it has to beat."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from moerank.data import RankingData
from moerank.data.sharded_data import ShardedData
from moerank.kernels.blas import one_blas_thread
from moerank.metrics import MAP, NDCG
from moerank.rankers import ConstantFeatureWarning, LinearPopulation, RankingEstimator, Selection
from moerank.runs.given_solver import AnySolver
from moerank.runs.measure import ALL_FEATURES, Measure, Parts
from moerank.runs.problem import Problem
from moerank.runs.result import PARTS, RunResult, ScoredRanker
from moerank.runs.sharding import query_ids
from moerank.runs.solver_spec import read_solver
from moerank.selectors.single import single_feature_values
from moerank.solvers import make_backend, make_solver
from moerank.stages.objectives import read_objectives
from moerank.stages.settings import STAGES
from moerank.stages.staged_search import AGAIN
from moerank.training.counted_problem import LONGEST_LIST
from moerank.verdict import Verdict
from moerank.version import VERSION

if TYPE_CHECKING:
    from moerank.cluster import DaskCluster

__all__ = ["configuration", "run_fold"]

Progress = Callable[[str, float, str], None]

COUNTED = {
    **dict.fromkeys((*STAGES, AGAIN), "generation {}"),
    "refit_tuning": "by validation MAP",
    "refit": "{} rankers",
}
"""What is said of a stage beside its name, with the number that it counts."""

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pymoo", "lightgbm")


def run_fold(
    problem: Problem,
    fold: int = 1,
    solver: AnySolver | str = "mofsrank",
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
) -> RunResult:
    """Run a solver on one fold, and measure it and the baselines on all parts.

    Nothing is fitted or chosen on the test part.

    Parameters
    ----------
    problem : Problem
    fold : int, default 1
        From 1 to `Problem.n_folds`.
    solver : SolverSpec, GivenSolver or str, default "mofsrank"
        A text as `read_solver` reads it. What the problem's file gives to solvers comes beneath.
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
    RunResult

    Raises
    ------
    FileNotFoundError, ValueError
        For data that are missing or malformed, and names or parameters that do not exist.
    """
    clock = _Clock()
    report = progress or (lambda stage, fraction, text: None)
    spec = problem.spec(read_solver(solver) if isinstance(solver, str) else solver)
    random_state = seed if random_state is None else random_state
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantFeatureWarning)  # the description of the data lists these features
        loaded, limits = problem.load_limited_fold(fold, data, cluster)
        parts = dict(zip(PARTS, loaded, strict=True))
        train, validation = parts["train"], parts["validation"]
        metric = problem.metric.make()
        metrics = (metric, MAP() if metric != MAP() else NDCG(10))
        clock.stop("data")

        backend = make_backend(problem.backend.name, **problem.backend.parameters)
        backend = _tuned(backend, parts) if problem.backend.tune else backend
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
        estimator = spec.make(problem, offered)
        if spec.tune and callable(getattr(estimator, "tune", None)):
            estimator = _tuned(estimator, parts, spec.given, lambda share: report("tuning", share, "by validation MAP"))
        clock.stop("tuning")
        shows_progress = getattr(estimator, "progress", None) is not None
        if not shows_progress:
            report("training", 0.0, spec.label)
        estimator = _fitted(estimator, train, validation)
        if not shows_progress:
            report("training", 1.0, spec.label)
        clock.stop("solver")

        front, chosen = _front(estimator, spec.label, measure)
        history = getattr(estimator, "history_", {})
        verdict = _verdict(estimator, measure, problem.search.margin)
        clock.stop("measuring")
    return RunResult(
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
        convergence={
            stage: {
                "generation": table["generation"].tolist(),
                "evaluations": table["n_eval"].tolist(),
                "hypervolume": table["hypervolume"].tolist(),
            }
            for stage, table in history.items()
        },
        n_evaluations=int(getattr(estimator, "n_evaluations_", 0)),
        times={
            **clock.times,
            "processor": clock.processor,
            "stages": {stage: table["seconds"].tolist() for stage, table in history.items()},
        },
        versions={
            "moerank": VERSION,
            "python": platform.python_version(),
            **{library: version(library) for library in LIBRARIES},
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        },
        scaling=train.scaling,
        missing=train.missing,
        instances=getattr(estimator, "instance_unit_", None),
        verdict=verdict,
    )


def configuration(
    problem: Problem, fold: int, solver: AnySolver, seed: int, *, baselines: bool = True
) -> dict[str, Any]:
    """Return everything that decides the result of a run, as plain JSON values.

    Of the problem's settings those count that the solver takes: a ranker does not change with the budget of a search.
    The backend counts wherever baselines are measured, too.
    """
    spec = problem.spec(solver)
    known = spec.takes()
    settings = problem.configuration()
    unused = [name for name in STAGES if name not in known]
    if not settings["search"].keys() & known.keys():  # all that may count is the margin of a verdict
        margin = {name: value for name, value in settings["search"].items() if name == "margin"}
        settings["search"] = margin if spec.selects else {}
    unused += ["search"] if not settings["search"] else []
    unused += ["backend"] if not baselines and "backend" not in known else []
    return {
        "problem": problem.name,
        "fold": fold,
        "seed": seed,
        "solver": {"name": spec.name, "label": spec.label, "parameters": spec.given, "tune": spec.tune},
        **{name: values for name, values in settings.items() if name not in unused},
    }


def _where(stage: str, number: int, train: RankingData) -> str:
    """Say where a search stands, and where its data lie if they are in shards."""
    return COUNTED[stage].format(number) + (f", {train.where}" if isinstance(train, ShardedData) else "")


def _fitted(estimator: Any, train: RankingData, validation: RankingData | None = None) -> Any:
    """Fit an estimator and return it; one of another package knows arrays only."""
    if isinstance(estimator, RankingEstimator):
        return estimator.fit(train, validation=validation)
    held_out = {} if validation is None else {"validation": validation}
    return estimator.fit(train.X, train.y, qid=train.qid, **held_out)


def _tuned(
    ranker: Any, parts: Parts, given: Iterable[str] = (), progress: Callable[[float], object] | None = None
) -> Any:
    """Choose what is not given among the published grid by validation MAP."""
    train, validation = parts["train"], parts["validation"]
    grid = [{name: value for name, value in entry.items() if name not in given} for entry in ranker.default_grid(train)]
    distinct = list({repr(entry): entry for entry in grid}.values())
    return ranker.tune(train, validation, distinct, progress=progress)


def _baselines(backend: Any, backend_name: str, solver: str, measure: Measure, report: Progress) -> list[ScoredRanker]:
    """Return all features, the best single feature and FSMRank, without the one that is the solver itself.

    FSMRank is left out on more than two million preference pairs, where its grid would take longer than the search.
    """
    train = measure.parts["train"]
    found = []
    if solver != backend_name:
        report("baselines", 0.0, "all features")
        found.append(measure.fitted(ALL_FEATURES, _fitted(backend, train)))
    report("baselines", 1 / 3, "single features")
    found.append(_best_single_feature(measure))
    if solver != "fsmrank" and not isinstance(train, ShardedData) and train.label_runs.n_pairs <= LONGEST_LIST:
        report("baselines", 2 / 3, "FSMRank")
        ranker = _fitted(_tuned(make_solver("fsmrank"), measure.parts), train)
        found.append(measure.fitted("FSMRank", ranker))
    report("baselines", 1.0, "measured")
    return found


def _best_single_feature(measure: Measure) -> ScoredRanker:
    """Rank by each feature, upwards and downwards, and take what is best on the training part."""
    values = single_feature_values(measure.parts["train"], measure.metrics[0])
    downwards, feature = divmod(int(values.argmax()), values.shape[1])
    coef = np.zeros(values.shape[1])
    coef[feature] = -1.0 if downwards else 1.0
    return measure.weights("best single feature", coef, coef != 0)


def _front(estimator: Any, name: str, measure: Measure) -> tuple[list[ScoredRanker], int]:
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
    members = measure.population(name, rankers, estimator.front_support_)
    members[chosen] = measure.whole(members[chosen], rankers.take(np.array([chosen])))
    if coefs is None:
        # The trees of all members would take megabytes.
        best = members[chosen]
        members[chosen] = replace(best, model=replace(best.model, trees=getattr(estimator, "forest_", None)))
    return [member if i == chosen else replace(member, per_query={}) for i, member in enumerate(members)], chosen


def _verdict(estimator: Any, measure: Measure, margin: float) -> Verdict | None:
    """Return how a selection stands on the test part; None of a ranker that selects nothing."""
    train, validation, test = (measure.parts[part] for part in PARTS)
    if isinstance(estimator, Selection):
        return estimator.verdict(test, train, validation, metric=measure.metrics[0], margin=margin)
    judged = getattr(estimator, "verdict", None)
    return judged(test) if callable(judged) else None


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

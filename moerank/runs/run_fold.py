"""One run: a solver on one fold of a problem, beside the baselines it has to beat."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.kernels.blas import one_blas_thread
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, NDCG, Metric, single_feature_values
from moerank.rankers import ConstantFeatureWarning, SelectionPath
from moerank.runs.problem import Problem
from moerank.runs.result import PARTS, RunResult, ScoredRanker
from moerank.solvers import make_backend, make_solver
from moerank.version import VERSION

__all__ = ["configuration", "run_fold"]

Progress = Callable[[str, float, str], None]
Parts = Mapping[str, RankingData]

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pymoo", "lightgbm")


def run_fold(
    problem: Problem,
    fold: int = 1,
    *,
    solver: str = "mofsrank",
    seed: int = 0,
    workers: int = 1,
    data: str | Path | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    baselines: bool = True,
) -> RunResult:
    """Run a solver on one fold, and measure it and the baselines on all parts.

    Nothing is fitted or chosen on the test part.

    Parameters
    ----------
    problem : Problem
    fold : int, default 1
        From 1 to 5.
    solver : str, default "mofsrank"
        A name in the table of solvers.
    seed : int, default 0
    workers : int, default 1
        Threads; the result is the same for any number.
    data : path, optional
        Where LETOR folders are; see `Problem.load_fold`.
    checkpoint : path, optional
        Where a search keeps its state between generations.
    resume : bool, default False
        Continue from the checkpoint if there is one.
    progress : callable, optional
        Called as ``progress(stage, fraction, text)``.
    baselines : bool, default True
        False leaves the baselines out.

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
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantFeatureWarning)  # the description of the data lists these features
        parts = dict(zip(PARTS, problem.load_fold(fold, data), strict=True))
        metric = problem.metric.make()
        metrics = (metric, MAP() if metric != MAP() else NDCG(10))
        clock.stop("data")

        measure = _Measure(parts, metrics)
        backend = make_backend(problem.backend.name, **problem.backend.parameters)
        backend = _tuned(backend, parts) if problem.backend.tune else backend
        compared = _baselines(backend, problem.backend.name, solver, measure, report) if baselines else []
        clock.stop("baselines")

        offered = {
            "backend": backend,
            "metric": metric,
            "tune": False,  # the backend is tuned already
            "random_state": seed,
            "workers": workers,
            "checkpoint": checkpoint,
            "resume": resume,
            "progress": lambda stage, fraction, generation, _: report(stage, fraction, f"generation {generation}"),
            **problem.search.model_dump(),
            "instance_selection": problem.instance_selection.model_dump(),
            "feature_selection": problem.feature_selection.model_dump(),
            "ensemble": problem.ensemble.model_dump(),
        }
        known = make_solver(solver).get_params(deep=False)
        given = problem.solver.parameters
        estimator = make_solver(solver, **{name: value for name, value in offered.items() if name in known} | given)
        if problem.solver.tune and callable(getattr(estimator, "tune", None)):
            estimator = _tuned(estimator, parts, given, lambda share: report("tuning", share, "by validation MAP"))
        clock.stop("tuning")
        shows_progress = "progress" in known
        if not shows_progress:
            report("training", 0.0, solver)
        estimator.fit(parts["train"].X, parts["train"].y, qid=parts["train"].qid, validation=parts["validation"])
        if not shows_progress:
            report("training", 1.0, solver)
        clock.stop("solver")

        front, chosen = _front(estimator, solver, measure)
        history = getattr(estimator, "history_", {})
        clock.stop("measuring")
    return RunResult(
        problem=problem.name,
        fold=fold,
        solver=solver,
        seed=seed,
        metrics=[entry.name for entry in metrics],
        configuration=configuration(problem, fold, solver, seed),
        feature_names=list(parts["train"].feature_names),
        queries={part: rows.qid[rows.offsets[:-1]].tolist() for part, rows in parts.items()},
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
        },
    )


def configuration(problem: Problem, fold: int, solver: str, seed: int) -> dict[str, Any]:
    """Return everything that decides the result of a run, as plain JSON values."""
    settings = problem.configuration()
    settings["solver"] = {"name": solver, **settings["solver"]}
    return {"problem": problem.name, "fold": fold, "seed": seed, **settings}


def _tuned(
    ranker: Any, parts: Parts, given: Iterable[str] = (), progress: Callable[[float], object] | None = None
) -> Any:
    """Choose what is not given among the published grid by validation MAP."""
    train, validation = parts["train"], parts["validation"]
    grid = [{name: value for name, value in entry.items() if name not in given} for entry in ranker.default_grid(train)]
    distinct = list({repr(entry): entry for entry in grid}.values())
    return ranker.tune(train, validation, distinct, progress=progress)


@dataclass(frozen=True)
class _Measure:
    """Measures rankers on the parts of a fold."""

    parts: Parts
    metrics: tuple[Metric, Metric]

    def fitted(self, name: str, ranker: Any) -> ScoredRanker:
        """Measure a fitted estimator."""
        parameters = {key: value for key, value in ranker.get_params().items() if isinstance(value, str | int | float)}
        if hasattr(ranker, "coef_"):
            return self.weights(name, ranker.coef_, ranker.support_, parameters)
        scores = {part: ranker.predict(rows.X) for part, rows in self.parts.items()}
        return self.scores(name, scores, ranker.support_, parameters)

    def weights(
        self, name: str, coef: NDArray[np.float64], support: NDArray[np.bool_], parameters: dict[str, Any] | None = None
    ) -> ScoredRanker:
        """Measure the ranker wᵀx."""
        scores = {part: linear_scores(rows.X, coef[None])[:, 0] for part, rows in self.parts.items()}
        return replace(self.scores(name, scores, support, parameters), weights=coef[support].tolist())

    def scores(
        self,
        name: str,
        scores: Mapping[str, NDArray[np.float64]],
        support: NDArray[np.bool_],
        parameters: dict[str, Any] | None = None,
    ) -> ScoredRanker:
        """Measure a ranker by its scores of each part."""
        features = np.flatnonzero(support).tolist()
        return ScoredRanker(name, features, None, self._means(scores), self._per_query(scores), parameters or {})

    def path(self, name: str, path: SelectionPath) -> list[ScoredRanker]:
        """Measure the rankers of a path, one for each number of features it has."""
        sizes, rows = np.unique(path.feature_mask.sum(axis=1), return_index=True)
        rows = rows[sizes > 0]
        if isinstance(path.rankers, np.ndarray):
            members = [self.weights(name, path.rankers[row], path.feature_mask[row]) for row in rows]
        else:
            scores = {part: path.scores(rows.X) for part, rows in self.parts.items()}
            members = [
                self.scores(name, {part: columns[:, row] for part, columns in scores.items()}, path.feature_mask[row])
                for row in rows
            ]
        return [replace(member, per_query={}) for member in members]

    def _means(self, scores: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, float]]:
        return {
            part: {metric.name: float(metric.score(rows, scores[part])) for metric in self.metrics}
            for part, rows in self.parts.items()
        }

    def _per_query(self, scores: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, list[float]]]:
        return {
            part: {metric.name: metric.per_query(rows, scores[part]).tolist() for metric in self.metrics}
            for part, rows in self.parts.items()
        }


def _baselines(backend: Any, backend_name: str, solver: str, measure: _Measure, report: Progress) -> list[ScoredRanker]:
    """Return all features, the best single feature and FSMRank, without the one that is the solver itself."""
    train = measure.parts["train"]
    found = []
    if solver != backend_name:
        report("baselines", 0.0, "all features")
        found.append(measure.fitted("all features", backend.fit(train.X, train.y, qid=train.qid)))
    report("baselines", 1 / 3, "single features")
    found.append(_best_single_feature(measure))
    if solver != "fsmrank":
        report("baselines", 2 / 3, "FSMRank")
        ranker = _tuned(make_solver("fsmrank"), measure.parts).fit(train.X, train.y, qid=train.qid)
        found.append(measure.fitted("FSMRank", ranker))
    report("baselines", 1.0, "measured")
    return found


def _best_single_feature(measure: _Measure) -> ScoredRanker:
    """Rank by each feature, upwards and downwards, and take what is best on the training part."""
    values = single_feature_values(measure.parts["train"], measure.metrics[0])
    downwards, feature = divmod(int(values.argmax()), values.shape[1])
    coef = np.zeros(values.shape[1])
    coef[feature] = -1.0 if downwards else 1.0
    return measure.weights("best single feature", coef, coef != 0)


def _front(estimator: Any, solver: str, measure: _Measure) -> tuple[list[ScoredRanker], int]:
    """Return what the estimator offers at each size, its front or its path, and which of them was chosen."""
    if not hasattr(estimator, "front_"):
        ranker = measure.fitted(solver, estimator)
        if not hasattr(estimator, "path"):
            return [ranker], 0
        path = measure.path(solver, estimator.path(measure.parts["train"]))
        smaller = [member for member in path if len(member.features) < len(ranker.features)]
        larger = [member for member in path if len(member.features) > len(ranker.features)]
        return [*smaller, ranker, *larger], len(smaller)
    chosen = int(estimator.chosen_)
    coefs = estimator.front_coefs_
    if coefs is None:
        # The arguments of a search are in the configuration, and its threads do not belong to the result.
        return [replace(measure.fitted(solver, estimator), parameters={})], 0
    members = []
    for member, features in enumerate(estimator.front_["features"]):
        support = np.isin(np.arange(coefs.shape[1]), features)
        ranker = measure.weights(solver, coefs[member], support)
        members.append(ranker if member == chosen else replace(ranker, per_query={}))
    return members, chosen


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

"""Measuring rankers on the parts of a fold, and the baselines beside which a selection stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from moerank.arrays import Mask
from moerank.checks import Parameters
from moerank.data import RankingData
from moerank.files import read_text, replace_file
from moerank.kernels.ranks import mean_over_queries
from moerank.metrics import MAP, NDCG, MeanNDCG, Metric, Precision
from moerank.mofsrank.objectives import Candidates, Objective
from moerank.mofsrank.searching import digest_of_data
from moerank.rankers import FitnessBackend, LinearPopulation, Population, SelectionPath, with_features
from moerank.rankers.importance import single_feature_values
from moerank.rankers.lambda_mart import LambdaMART, leaf_sizes
from moerank.rankers.model import Model
from moerank.solvers import make_solver
from moerank.statistics import mean_and_error
from moerank.studies.problem import Problem
from moerank.studies.result import Member
from moerank.studies.result_files import MOST_BYTES
from moerank.training.counted import LONGEST_LIST
from moerank.verdict import Verdict

ALL_FEATURES = "all features"
"""The baseline that selections are compared with."""

Progress: TypeAlias = Callable[[str, float, str], object]
"""Called with the name of the stage, the fraction done and a text."""

Parts = Mapping[str, RankingData]

MOST_RANKS = 10
"""To which ranks NDCG and precision are measured, as LETOR's scripts do."""


@dataclass(frozen=True)
class Measure:
    """Measures rankers on the parts of a fold."""

    parts: Parts
    metrics: tuple[Metric, Metric]  # that of the objectives, and the second one of the tables
    objectives: Sequence[Objective]  # measured on the training part, for every ranker
    backend: FitnessBackend  # for objectives that compare with another ranker of its kind
    reference: NDArray[np.float64] | None = None  # the first metric of all features by test query

    def beside(self, baselines: Sequence[Member]) -> Measure:
        """Return the same, with what comes compared with the baseline on all features, if it is among these."""
        metric = self.metrics[0].name
        found = [baseline.per_query["test"][metric] for baseline in baselines if baseline.name == ALL_FEATURES]
        return replace(self, reference=np.array(found[0])) if found else self

    def fitted(self, name: str, ranker: Any) -> Member:
        """Measure a fitted estimator."""
        train = self.parts["train"]
        model = Model.of(ranker, train.feature_names, train.scaling)
        population = LinearPopulation(ranker.coef_[None]) if model.weights is not None else OneRanker(ranker)
        member = self.measured(name, population, ranker.support_[None])[0]
        stored = {"trees": model.trees, "parameters": model.parameters}
        return self.whole(member.model_copy(update=stored), population)

    def whole(self, ranker: Member, population: Population) -> Member:
        """Return a ranker with the means of every metric that its tables do not have; it is alone in `population`."""
        known = {metric.name for metric in self.metrics}
        metrics = [metric for metric in every_metric(self.metrics[0]) if metric.name not in known]
        names = [metric.name for metric in metrics]
        further = {}
        for part, rows in self.parts.items():
            values = _all_values(rows, population, metrics)
            further[part] = {name: float(mean_over_queries(v)[0]) for name, v in zip(names, values, strict=True)}
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
        candidates = Candidates(train, metric, feature_mask, rankers, measured_errors=errors, backend=self.backend)
        objectives = {objective.name: objective.values(candidates) for objective in self.objectives}
        test, reference = per_query["test"][metric.name].T, self.reference
        paired = [None if reference is None or len(v) < 2 else mean_and_error(v - reference)[1] for v in test]
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

    def _per_query(self, rows: RankingData, rankers: Population) -> dict[str, NDArray[np.float64]]:
        """Return the values (n_queries, n_rankers) of each metric on one part."""
        if rankers.coefs is not None:
            return {metric.name: rows.weighed(metric.of_linear(rows, rankers.coefs)) for metric in self.metrics}
        scores = np.ascontiguousarray(rankers.scores(rows.X))
        return {metric.name: rows.weighed(metric.per_query(rows, scores)) for metric in self.metrics}


def every_metric(metric: Metric) -> list[Metric]:
    """Return NDCG and precision to each of the ranks 1 to 10, MAP and MeanNDCG, by the conventions of `metric`."""
    of_gain = metric if isinstance(metric, NDCG | MeanNDCG) else MeanNDCG()
    conventions: Parameters = {key: getattr(of_gain, key) for key in ("gain", "convention", "discount")}
    short: Parameters = {"short_queries": metric.short_queries} if isinstance(metric, NDCG) else {}
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
    return np.stack([rows.weighed(metric.per_query(rows, scores)) for metric in metrics])


@dataclass(frozen=True)
class OneRanker:
    """A fitted estimator as a population of its own."""

    ranker: Any
    coefs: None = None

    def __len__(self) -> int:
        return 1

    def scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores (n_documents, 1) of the rows of X, which are scaled as the training data are."""
        return self.ranker._scores(X).reshape(-1, 1)

    def take(self, rows: NDArray[np.int64]) -> OneRanker:
        """Return the population itself."""
        return self


TREES = "LambdaMART"
"""The baseline of trees on all features, to which the verdict turns if it is detectably better."""


def tuned(
    ranker: Any, parts: Parts, given: Iterable[str] = (), progress: Callable[[float], object] | None = None
) -> Any:
    """Choose what is not given among the published grid by validation MAP."""
    train, validation = parts["train"], parts["validation"]
    return ranker.tune(train, validation, grid_of(ranker, train, given), progress=progress)


def grid_of(ranker: object, train: RankingData, given: Iterable[str] = ()) -> list[Parameters]:
    """Return the distinct settings of the published grid, without the parameters that are given."""
    entries = ranker.default_grid(train) if hasattr(ranker, "default_grid") else []
    grid = [{name: value for name, value in entry.items() if name not in given} for entry in entries]
    return list({repr(entry): entry for entry in grid}.values())


def kept_baselines(
    journal: str | Path | None,
    settings: Mapping[str, object],
    train: RankingData,
    resume: bool,
    measure: Callable[[], list[Member]],
) -> list[Member]:
    """Return the baselines that an interrupted run has kept beside its journal; otherwise measure and keep them.

    Without a journal nothing is kept. Baselines of other settings or data, and those of a run that is not resumed, are
    measured again.
    """
    if journal is None:
        return measure()
    path, about = Path(f"{journal}.baselines"), json.dumps({"settings": settings, "data": digest_of_data(train)})
    if resume:
        with suppress(OSError, ValueError):
            kept = _Kept.model_validate_json(read_text(path, MOST_BYTES))
            if kept.about == about:
                return kept.members
    members = measure()
    replace_file(path, _Kept(about=about, members=members).model_dump_json().encode())
    return members


class _Kept(BaseModel):
    about: str
    members: list[Member]


def measured_baselines(
    backend: object, problem: Problem, solver: str, measure: Measure, report: Progress
) -> list[Member]:
    """Return all features, the best single feature and LambdaMART, without the one that is the solver itself."""
    train, validation = measure.parts["train"], measure.parts["validation"]
    found = []
    if solver != problem.backend.name:
        report("baselines", 0.0, "all features")
        found.append(measure.fitted(ALL_FEATURES, with_features(backend).fit(train)))
    report("baselines", 1 / 3, "single features")
    found.append(_best_single_feature(measure))
    if solver != "lambdamart" and problem.comparison.trees:
        report("baselines", 2 / 3, TREES)
        least = leaf_sizes(train.n_documents)[0]
        trees = LambdaMART(n_trees=problem.comparison.trees, min_leaf=least)
        trees = trees.stopped(train, validation)
        member = measure.fitted(TREES, trees.fit(train))
        found.append(member.model_copy(update={"trees": None}))  # they would take megabytes
    report("baselines", 1.0, "measured")
    return found


def fsm_rank(solver: str, verdict: Verdict | None, measure: Measure, report: Progress) -> list[Member]:
    """Report the verdict, and return FSMRank as the last baseline, if it is not the solver itself: no verdict needs it.

    It is left out on more than two million preference pairs, where its grid would take longer than the
    search.
    """
    train = measure.parts["train"]
    if solver == "fsmrank" or train.n_pairs > LONGEST_LIST:
        return []
    if verdict is not None:
        report("verdict", 1.0, verdict.sentence)
    report("FSMRank", 0.0, "beside the front")
    ranker = tuned(make_solver("fsmrank"), measure.parts, progress=lambda share: report("FSMRank", share, "tuning"))
    member = measure.fitted("FSMRank", ranker.fit(train))
    report("FSMRank", 1.0, "measured")
    return [member]


def _best_single_feature(measure: Measure) -> Member:
    """Rank by each feature, upwards and downwards, and take what is best on the training part."""
    values = single_feature_values(measure.parts["train"], measure.metrics[0])
    downwards, feature = divmod(int(values.argmax()), values.shape[1])
    coef = np.zeros((1, values.shape[1]))
    coef[0, feature] = -1.0 if downwards else 1.0
    ranker = LinearPopulation(coef)
    return measure.whole(measure.measured("best single feature", ranker, coef != 0)[0], ranker)

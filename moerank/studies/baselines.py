"""Baselines of a run: rankers on all features and the best single feature, beside which a selection stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from moerank.checks import Parameters
from moerank.data import AnyData
from moerank.data.ranking_data import in_one_piece
from moerank.files import read_text, replace_file
from moerank.mofsrank.searching import digest_of_data
from moerank.rankers import RankingEstimator, with_features
from moerank.rankers.importance import single_feature_values
from moerank.rankers.lambda_mart import LambdaMART, leaf_sizes
from moerank.solvers import make_solver
from moerank.studies.measure import ALL_FEATURES, Measure, Parts, Progress
from moerank.studies.problem import Problem
from moerank.studies.result import Member
from moerank.studies.result_files import MOST_BYTES
from moerank.training.counted import LONGEST_LIST
from moerank.verdict import Verdict

TREES = "LambdaMART"
"""The baseline of trees on all features, to which the verdict turns if it is detectably better."""


def fitted(estimator: Any, train: AnyData, validation: AnyData | None = None) -> Any:
    """Fit an estimator and return it; one of another package knows arrays only."""
    if isinstance(estimator, RankingEstimator):
        return estimator.fit(train, validation=validation)
    held_out = {} if validation is None else {"validation": validation}
    whole = in_one_piece(train)
    return estimator.fit(whole.X, whole.y, qid=whole.qid, **held_out)


def tuned(
    ranker: Any, parts: Parts, given: Iterable[str] = (), progress: Callable[[float], object] | None = None
) -> Any:
    """Choose what is not given among the published grid by validation MAP."""
    train, validation = parts["train"], parts["validation"]
    return ranker.tune(train, validation, grid_of(ranker, train, given), progress=progress)


def grid_of(ranker: object, train: AnyData, given: Iterable[str] = ()) -> list[Parameters]:
    """Return the distinct settings of the published grid, without the parameters that are given."""
    entries = ranker.default_grid(train) if hasattr(ranker, "default_grid") else []
    grid = [{name: value for name, value in entry.items() if name not in given} for entry in entries]
    return list({repr(entry): entry for entry in grid}.values())


def kept_baselines(
    journal: str | Path | None,
    settings: Mapping[str, object],
    train: AnyData,
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
    """Return all features, the best single feature and LambdaMART, without the one that is the solver itself.

    LambdaMART is left out on shards.
    """
    train, validation = measure.parts["train"], measure.parts["validation"]
    found = []
    if solver != problem.backend.name:
        report("baselines", 0.0, "all features")
        found.append(measure.fitted(ALL_FEATURES, fitted(with_features(backend), train)))
    report("baselines", 1 / 3, "single features")
    found.append(_best_single_feature(measure))
    if solver != "lambdamart" and not train.in_shards and problem.comparison.trees:
        report("baselines", 2 / 3, TREES)
        least = leaf_sizes(train.n_documents)[0]
        trees = LambdaMART(n_trees=problem.comparison.trees, min_leaf=least)
        trees = trees.stopped(in_one_piece(train), in_one_piece(validation))
        member = measure.fitted(TREES, fitted(trees, train))
        found.append(member.model_copy(update={"trees": None}))  # they would take megabytes
    report("baselines", 1.0, "measured")
    return found


def fsm_rank(solver: str, verdict: Verdict | None, measure: Measure, report: Progress) -> list[Member]:
    """Report the verdict, and return FSMRank as the last baseline, if it is not the solver itself: no verdict needs it.

    It is left out on shards, and on more than two million preference pairs, where its grid would take longer than the
    search.
    """
    train = measure.parts["train"]
    if solver == "fsmrank" or train.in_shards or train.n_pairs > LONGEST_LIST:
        return []
    if verdict is not None:
        report("verdict", 1.0, verdict.sentence)
    report("FSMRank", 0.0, "beside the front")
    ranker = tuned(make_solver("fsmrank"), measure.parts, progress=lambda share: report("FSMRank", share, "tuning"))
    member = measure.fitted("FSMRank", fitted(ranker, train))
    report("FSMRank", 1.0, "measured")
    return [member]


def _best_single_feature(measure: Measure) -> Member:
    """Rank by each feature, upwards and downwards, and take what is best on the training part."""
    values = single_feature_values(measure.parts["train"], measure.metrics[0])
    downwards, feature = divmod(int(values.argmax()), values.shape[1])
    coef = np.zeros(values.shape[1])
    coef[feature] = -1.0 if downwards else 1.0
    return measure.weights("best single feature", coef, coef != 0)

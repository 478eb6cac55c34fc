"""Training of a ranker on the features of each member of a front, with a search before if it has a budget."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.data import RankingData
from moerank.data.folds import Draws
from moerank.kernels.threads import new_threads
from moerank.metrics import Metric
from moerank.mofsrank.front import Front
from moerank.mofsrank.searching import StagedSearch
from moerank.mofsrank.settings import RefitPlan
from moerank.rankers import LambdaMART, Population, train_on, train_on_subsets, varying_for
from moerank.rankers.arguments import read_masks

EARLY = 4
"""Divisor of the size of a ranker in its first training on a subset."""


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Scores (n_documents, n_individuals) of the training table X by rankers trained on other queries."""

    X: Matrix
    values: Matrix

    def scores(self, X: Matrix) -> Matrix:
        """Return the scores. Only the training table can be scored."""
        if X is not self.X:
            raise ValueError("scores out of fold are known for the training data alone; train a ranker for others")
        return self.values


@dataclass(eq=False)
class CrossFitting:
    """Fitness backend that judges feature subsets by a ranker out of fold, and gives up subsets that lag early.

    The training queries are dealt into two halves, and each half is scored by the ranker trained on the other one, so
    that documents learnt by heart do not count and validation data stay fresh for the choice of a member.

    A ranker with a size (trees, rounds of boosting) is first trained with a quarter of it. A subset is given up if a
    rival of at most as many features has a smaller error then; it is dominated. Otherwise the ranker is trained in
    full, and the subset has the smaller of the two errors. An error depends on the subset and the rivals alone, not on
    the batch, so that a search can be resumed and its memo checked.

    Parameters
    ----------
    ranker : estimator
        With its parameters.
    metric : Metric
        The error is 1 − this metric.
    rivals : ndarray of bool, shape (n_rivals, n_features)
        Feature subsets of another search.
    seed : int
        Deals the queries.
    workers : int, default 1
        Threads; the scores do not depend on it.

    Notes
    -----
    A subset takes two trainings on half of the queries with a quarter of the size, and two in full if it stays.

    On fold 1 of MQ2008 the rank correlation of these errors with the test NDCG@10 over 79 subsets was .42 (with thirds
    .49, at nearly twice the cost), that of validation .18 and that of the training error .51, but of 76 trees of 3
    leaves. With the larger trees that validation takes on digits the training error is 0 from 29 features on.

    References
    ----------
    K. Jamieson, A. Talwalkar: Non-stochastic best arm identification and hyperparameter optimization. AISTATS 2016. The
    rivals are ours.
    """

    ranker: Any
    metric: Metric
    rivals: Mask = field(repr=False)
    seed: int = 0
    workers: int = field(default=1, repr=False)
    _least: Vector | None = field(default=None, repr=False)

    def fit_population(
        self,
        train: RankingData,
        *,
        pair_mask: Mask | None = None,
        feature_mask: Mask | None = None,
        start: Matrix | None = None,
    ) -> OutOfFold:
        """Score the training documents for each row of `feature_mask`; see `FitnessBackend`. `start` is ignored."""
        if pair_mask is not None:
            raise ValueError("cross-fitting deals whole queries, and takes no pair_mask")
        if train.n_queries < 2:
            raise ValueError(f"{train.name}: cross-fitting deals the queries into halves, and there is one query")
        masks = read_masks(train, None, feature_mask)[2]
        size = getattr(self.ranker, "_size", None)
        if size is None:
            return OutOfFold(train.X, self._scores(self.ranker, train, masks))
        early = clone(self.ranker).set_params(**{size: max(1, getattr(self.ranker, size) // EARLY)})
        if self._least is None:
            errors = self._errors(train, self._scores(early, train, self.rivals))
            self._least = np.full(train.n_features + 1, np.inf)
            np.minimum.at(self._least, np.count_nonzero(self.rivals, axis=1), errors)
            self._least = np.minimum.accumulate(self._least)
        scores = self._scores(early, train, masks)
        errors = self._errors(train, scores)
        going = np.flatnonzero(errors <= self._least[np.count_nonzero(masks, axis=1)])
        full = self._scores(self.ranker, train, masks[going])
        better = self._errors(train, full) < errors[going]
        scores[:, going[better]] = full[:, better]
        return OutOfFold(train.X, scores)

    def _errors(self, train: RankingData, scores: Matrix) -> Vector:
        return 1.0 - self.metric.batch(train, scores)

    def _scores(self, ranker: object, train: RankingData, masks: Mask) -> Matrix:
        """Return the scores (n_documents, n_subsets) out of fold of a ranker on each subset."""
        scores = np.zeros((train.n_documents, len(masks)))
        for part, rows in halves(train, self.seed):
            usable = masks & varying_for(ranker, part)
            held_out = train.with_rows(rows)
            with new_threads(self.workers) as pool:
                for column, found in enumerate(pool.map(partial(_scored, ranker, part, held_out), usable)):
                    scores[rows, column] = found
        return scores


def halves(train: RankingData, seed: int) -> Iterator[tuple[RankingData, Integers]]:
    """Yield the documents of each half of the queries, and the rows of the other half."""
    second = np.zeros(train.n_queries, bool)
    second[Draws(seed).order(train.n_queries)[: train.n_queries // 2]] = True
    is_second = np.repeat(second, np.diff(train.offsets))
    for half in (is_second, ~is_second):
        yield train.with_rows(np.flatnonzero(half)), np.flatnonzero(~half)


def _scored(ranker: object, part: RankingData, held_out: RankingData, mask: Mask) -> Vector:
    """Train a ranker on a feature mask, and return its scores (n_documents,) of the held-out documents."""
    trained = train_on(ranker, part, mask)
    if trained is None:
        return np.zeros(held_out.n_documents)
    return np.ravel(trained.predict(copy(held_out).with_features(mask).X))


def refit_front(
    plan: RefitPlan, stages: StagedSearch, front: Front, validation: RankingData | None
) -> tuple[Any, Front, Population]:
    """Train a ranker on the features of each member of a front, and on all features.

    Returns the ranker with its parameters (of LambdaMART the largest number of trees), the front with its rankers and
    the objectives of the search, and the ranker on all features.

    The steps, by their names in `progress`:

    1. "refit_tuning": validation MAP chooses parameters from the published grid of the ranker with all features, if
       `tune` is set or the ranker was given by its name. Without validation data or a grid they stay as they are.
    2. "refit_search": with `plan.evaluations` the search goes on from the front with `CrossFitting` as the backend, for
       LambdaMART with the number of trees that validation chooses with all features.
    3. "refit": the ranker is trained on the features of each member; validation chooses the number of trees of
       LambdaMART for each.
    """
    train, settings, ranker = stages.train, stages.settings, plan.ranker
    tell = settings.progress or (lambda stage, share, number, n_eval: None)
    if validation is not None and (settings.tune or plan.named) and hasattr(ranker, "tune"):
        ranker = ranker.tune(train, validation, progress=lambda share: tell("refit_tuning", share, 0, 0))
    if isinstance(ranker, LambdaMART):
        ranker = clone(ranker).set_params(n_trees=plan.ranker.n_trees)
    F, masks = front.F, front.feature_mask
    if plan.evaluations:
        of_all = ranker.stopped(train, validation) if isinstance(ranker, LambdaMART) and validation else ranker
        backend = CrossFitting(of_all, settings.metric, masks, settings.random_state, settings.workers)
        F, masks = stages.select_again(backend, front, plan.evaluations)
    rankers = train_on_subsets(
        ranker,
        train,
        np.concatenate([masks, np.ones((1, train.n_features), bool)]),
        validation,
        workers=settings.workers,
        progress=lambda share, number: tell("refit", share, number, number),
    )
    members, last = np.arange(len(masks)), np.array([len(masks)])
    return ranker, Front(F, masks, rankers.take(members)), rankers.take(last)

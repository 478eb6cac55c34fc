"""One ranker, always with the same settings, trained on many subsets of the features."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from moerank.data import RankingData
from moerank.rankers import (
    AnyRanker,
    FitnessBackend,
    LambdaMART,
    Population,
    RankerAdapter,
    RankingEstimator,
    population_of,
    train_population,
    varying_for,
)

__all__ = ["train_on", "train_on_each"]

Mask = NDArray[np.bool_]


def train_on_each(
    ranker: Any,
    train: RankingData,
    feature_mask: Mask,
    validation: RankingData | None = None,
    *,
    workers: int = 1,
    progress: Callable[[float, int], object] | None = None,
) -> Population:
    """Train a ranker on the features of each row of `feature_mask`; equal rows are trained once.

    Parameters
    ----------
    ranker : estimator
        A fitness backend trains all subsets at once.
    train : RankingData
    feature_mask : ndarray of bool, shape (n_subsets, n_features)
        A subset of nothing but constant features scores every document alike.
    validation : RankingData, optional
        See `train_on`.
    workers : int, default 1
        Threads; the rankers are the same for any number.
    progress : callable, optional
        Called as ``progress(fraction, n_trained)``.

    Examples
    --------
    >>> from moerank.rankers import RankBoost
    >>> train = RankingData([[0.1, 0.5], [0.9, 0.4], [0.5, 0.6]], y=[0, 2, 1])
    >>> population = train_on_each(RankBoost(n_rounds=5), train, np.array([[True, False], [True, True]]))
    >>> population.scores(train.X).argmax(axis=0).tolist()
    [1, 1]
    """
    distinct, row = np.unique(feature_mask, axis=0, return_inverse=True)
    if isinstance(ranker, FitnessBackend):
        return train_population(ranker, train, feature_mask=distinct).take(row.ravel())
    usable = distinct & varying_for(ranker, train)
    rankers: list[AnyRanker | None] = []
    with ThreadPoolExecutor(workers) as pool:
        for trained in pool.map(partial(train_on, ranker, train, validation=validation), usable):
            rankers.append(trained)
            if progress is not None:
                progress(len(rankers) / len(usable), len(rankers))
    return population_of(rankers, usable).take(row.ravel())


def train_on(ranker: Any, train: RankingData, mask: Mask, validation: RankingData | None = None) -> AnyRanker | None:
    """Return a clone of a ranker trained on the features of `mask`, shape (n_features,); None if there are none.

    With validation data LambdaMART has the number of trees that `LambdaMART.stopped` chooses.
    """
    if not mask.any():
        return None
    if not isinstance(ranker, RankingEstimator):
        return RankerAdapter(ranker).train_on(train, mask)
    # Of copies, since data remember their parts, and nobody will ask for these again.
    part = copy(train).with_features(mask)
    held_out = None if validation is None else copy(validation).with_features(mask)
    if isinstance(ranker, LambdaMART) and held_out is not None:
        ranker = ranker.stopped(part, held_out)
    return clone(ranker)._learn(part, held_out)

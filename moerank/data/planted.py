"""A planted problem: it is known which features are relevant, which repeat them, and which are noise.

A document has the utility  u = mean of its relevant features + noise · (v − ½),  with v and the relevant features
uniform on [0, 1). Within each query the ⌈n_documents / 4^l⌉ documents of highest utility have label l or more.
A redundant feature is ⅘ of a relevant one plus ⅕ of a uniform number; a noise feature is uniform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.checks import check_at_least, check_not_negative, check_room, size
from moerank.data.draws import Draws
from moerank.data.folds import split_fold
from moerank.data.ranking_data import RankingData

__all__ = ["MOST_LABELS", "PlantedProblem", "load_planted_fold", "make_planted"]

MOST_LABELS = 1000

COPIES = 3
"""Of the table, as many as there are at once while it is made."""

NAME = 100
"""Bytes of the name of a feature."""


@dataclass(frozen=True, eq=False)
class PlantedProblem:
    """A data set and the role of each of its columns.

    Attributes
    ----------
    data : RankingData
        Features in [0, 1); their names tell the role: "relevant 2", "redundant 1 of 2" (the first redundant feature
        made from "relevant 2"), "noise 3".
    source : ndarray of int64, shape (n_features,)
        The column each feature is made from: its own for a relevant one, that of the relevant one for a redundant
        one, −1 for noise.
    """

    data: RankingData
    source: NDArray[np.int64]

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Which columns are relevant, shape (n_features,)."""
        return np.equal(self.source, np.arange(len(self.source)))


def make_planted(
    n_queries: int = 100,
    n_documents: int = 20,
    n_relevant: int = 5,
    n_redundant: int = 10,
    n_noise: int = 15,
    *,
    n_labels: int = 3,
    noise: float = 0.1,
    seed: int = 0,
) -> PlantedProblem:
    """Make a planted problem of any size.

    Parameters
    ----------
    n_queries, n_documents : int
        Number of queries, and of documents in each: at least 1 and 2.
    n_relevant, n_redundant, n_noise : int
        Features of each role: at least 1, 0 and 0. The redundant ones are made from the relevant ones in turn. The
        columns stand in random order.
    n_labels : int, default 3
        Labels are 0 to n_labels − 1; from 2 to 1,000.
    noise : float, default 0.1
        Width of the uniform noise on the utility, at least 0. The mean of the relevant features has standard
        deviation √(1 / (12 · n_relevant)).
    seed : int, default 0
        The same seed gives the same bits with every version of NumPy.

    Returns
    -------
    PlantedProblem
        Time O(n_documents_in_all · n_features).

    Raises
    ------
    ValueError
        For numbers outside their range, and for a table that is larger than the limit of `check_room`.

    Examples
    --------
    >>> problem = make_planted(n_queries=2, n_documents=4, n_relevant=1, n_redundant=1, n_noise=1)
    >>> problem.data.feature_names, problem.relevant.tolist(), problem.source.tolist()
    (('relevant 1', 'noise 1', 'redundant 1 of 1'), [True, False, False], [0, -1, 0])
    """
    check_at_least(1, n_queries=n_queries, n_relevant=n_relevant)
    check_at_least(2, n_documents=n_documents)
    check_at_least(0, n_redundant=n_redundant, n_noise=n_noise, seed=seed)
    check_at_least(2, MOST_LABELS, n_labels=n_labels)
    check_not_negative(noise=noise)
    n_rows, n_features = int(n_queries) * int(n_documents), int(n_relevant) + int(n_redundant) + int(n_noise)
    check_room(
        f"{size(n_queries)} queries of {size(n_documents)} documents with {size(n_features)} features",
        n_rows * 8 + n_features * (n_rows * 8 * COPIES + NAME),
    )
    draws = Draws(seed)
    relevant = draws.uniform((n_relevant, n_rows))
    copied = np.arange(n_redundant) % n_relevant
    redundant = 0.8 * relevant[copied] + 0.2 * draws.uniform((n_redundant, n_rows))
    features = np.concatenate([relevant, redundant, draws.uniform((n_noise, n_rows))])
    # Python's sum adds one feature after the other, so that the bits do not depend on how NumPy splits a sum.
    utility = sum(relevant) / n_relevant + noise * (draws.uniform((n_rows,)) - 0.5)
    order = draws.order(len(features))
    names = [f"relevant {j + 1}" for j in range(n_relevant)]
    names += [f"redundant {i // n_relevant + 1} of {j + 1}" for i, j in enumerate(copied)]
    names += [f"noise {i + 1}" for i in range(n_noise)]
    data = RankingData(
        features[order].T,
        _labels(utility.reshape(n_queries, n_documents), n_labels).ravel(),
        np.repeat(np.arange(1, n_queries + 1), n_documents),
        [names[feature] for feature in order],
        name="planted",
    )
    column = np.argsort(order)
    made_from = np.concatenate([column[:n_relevant], column[copied], np.full(n_noise, -1)])
    return PlantedProblem(data, made_from[order])


def load_planted_fold(fold: int = 1, **planted: Any) -> tuple[RankingData, RankingData, RankingData]:
    """Make a planted problem and split its queries as LETOR does.

    Parameters
    ----------
    fold : int, default 1
        From 1 to 5, see `split_fold`.
    **planted
        The arguments of `make_planted`.

    Returns
    -------
    train, vali, test : RankingData
        Three fifths, one fifth and one fifth of the queries.

    Examples
    --------
    >>> train, vali, test = load_planted_fold(2, n_queries=10)
    >>> train
    RankingData('planted, fold 2, training': 120 documents, 6 queries, 30 features)
    """
    check_at_least(1, fold=fold)
    return split_fold(make_planted(**planted).data, fold)


def _labels(utility: NDArray[np.float64], n_labels: int) -> NDArray[np.int64]:
    """Label the documents of each row of `utility` by their place in order of utility."""
    n_documents = utility.shape[1]
    place = np.argsort(np.argsort(-utility, axis=1, kind="stable"), axis=1)
    labels = np.zeros(utility.shape, np.int64)
    for label in range(1, n_labels):
        labels += place < -(-n_documents // 4**label)
    return labels

"""A population of trained rankers, with weights or without, and the backends that train one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from moerank.arrays import Integers, Mask, Matrix
from moerank.checks import Parameters
from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.rankers.model import Forest


class AnyRanker(Protocol):
    """An estimator in the style of scikit-learn; a higher prediction ranks higher."""

    def fit(self, X: Any, y: Any, /) -> Any:
        """Train on documents X (n_documents, n_features) with relevance labels y (n_documents,)."""

    def predict(self, X: Any, /) -> Any:
        """Return the scores (n_documents,) of the rows of X."""


class Scorer(Protocol):
    """Several rankers of which nothing is known but the scores."""

    def scores(self, X: Matrix, /) -> Matrix:
        """Return the scores (n_documents, n_individuals) of the rows of X, of shape (n_documents, n_features)."""


@runtime_checkable
class Population(Scorer, Protocol):
    """Trained rankers, one for each individual."""

    @property
    def coefs(self) -> Matrix | None:
        """The weights (n_individuals, n_features) of linear rankers; None if they have none."""

    def __len__(self) -> int:
        """Return the number of individuals."""

    def take(self, rows: Integers, /) -> Population:
        """Return the individuals of these numbers.

        −1 stands for a ranker without features, which scores every document 0.
        """


@runtime_checkable
class FitnessBackend(Protocol):
    """A ranker that can train a whole population at once: what the search asks of it."""

    def fit_population(
        self,
        train: RankingData,
        *,
        pair_mask: Mask | None = None,
        feature_mask: Mask | None = None,
        start: Matrix | None = None,
    ) -> Matrix | Scorer:
        """Train one ranker for each row of the masks and return their weights W (n_individuals, n_features).

        A backend whose rankers have no weights returns an object with a method ``scores(X)`` instead; nothing else is
        asked of it.

        Parameters
        ----------
        train : RankingData
        pair_mask : ndarray of bool, shape (n_individuals, n_pairs) or (n_pairs,), optional
            The preference pairs each individual trains on; one row without the first axis is shared by all.
        feature_mask : ndarray of bool, shape (n_individuals, n_features) or (n_features,), optional
            The features each individual may use, at least one.
        start : ndarray, shape (n_individuals, n_features), optional
            Where an iterative backend starts instead of at its own guess.
        """


@dataclass(frozen=True, eq=False)
class LinearPopulation:
    """Linear rankers, by their weights (n_individuals, n_features)."""

    coefs: Matrix

    def __len__(self) -> int:
        return len(self.coefs)

    def scores(self, X: Matrix) -> Matrix:
        """Return the scores (n_documents, n_individuals) of the rows of X, of shape (n_documents, n_features)."""
        return linear_scores(X, self.coefs)

    def take(self, rows: Integers) -> LinearPopulation:
        """Return the individuals of these numbers; see `Population`."""
        W = np.zeros((len(rows), self.coefs.shape[1]))
        W[rows >= 0] = self.coefs[rows[rows >= 0]]
        return LinearPopulation(W)


@dataclass(frozen=True, eq=False)
class FittedPopulation:
    """Fitted rankers without weights, each trained on the columns in its row of `feature_mask`.

    An individual without columns, whose ranker may be None, scores 0.
    """

    coefs: ClassVar[None] = None  # there are no weights
    rankers: tuple[AnyRanker | None, ...]
    feature_mask: Mask

    def __len__(self) -> int:
        return len(self.rankers)

    def scores(self, X: Matrix) -> Matrix:
        """Return the scores (n_documents, n_individuals) of the rows of X, of shape (n_documents, n_features)."""
        scores = np.zeros((len(X), len(self)))
        for individual, (ranker, mask) in enumerate(zip(self.rankers, self.feature_mask, strict=True)):
            if ranker is not None and mask.any():
                scores[:, individual] = np.ravel(ranker.predict(X[:, mask]))
        return scores

    def take(self, rows: Integers) -> FittedPopulation:
        """Return the individuals of these numbers; see `Population`."""
        feature_mask = np.zeros((len(rows), self.feature_mask.shape[1]), bool)
        feature_mask[rows >= 0] = self.feature_mask[rows[rows >= 0]]
        return FittedPopulation(tuple(self.rankers[row] if row >= 0 else None for row in rows), feature_mask)

    def forest(self, individual: int) -> Forest:
        """Return the trees of an individual, over all columns of the training table; an AttributeError without."""
        ranker: Any = self.rankers[individual]
        forest: Forest = ranker.forest_
        return forest.over(np.flatnonzero(self.feature_mask[individual]))


def population_of(rankers: Sequence[AnyRanker | None], feature_mask: Mask) -> LinearPopulation | FittedPopulation:
    """Return fitted rankers as a population: by their weights if all have a ``coef_`` of one number per feature.

    Each was trained on its row of `feature_mask`; None stands for an individual without features.

    >>> from moerank.rankers.rank_rls import RankRLS
    >>> ranker = RankRLS().fit([[0.1], [0.9], [0.5]], y=[0, 2, 1])
    >>> population = population_of([ranker, None], np.array([[False, True], [False, False]]))
    >>> (population.coefs != 0).tolist()
    [[False, True], [False, False]]
    """
    coefs = [np.ravel(getattr(ranker, "coef_", ())) for ranker in rankers]
    if any(len(coef) != np.count_nonzero(mask) for coef, mask in zip(coefs, feature_mask, strict=True)):
        return FittedPopulation(tuple(rankers), feature_mask)
    W = np.zeros(feature_mask.shape)
    W[feature_mask] = np.concatenate(coefs)
    return LinearPopulation(W)


@dataclass(frozen=True, eq=False)
class ScoredPopulation:
    """Individuals of a function that scores: column `rows[i]` of its scores, 0 for −1."""

    coefs: ClassVar[None] = None  # there are no weights
    scorer: Callable[[Matrix], Matrix]
    rows: Integers

    def __len__(self) -> int:
        return len(self.rows)

    def scores(self, X: Matrix) -> Matrix:
        """Return the scores (n_documents, n_individuals) of the rows of X, of shape (n_documents, n_features)."""
        found = np.asarray(self.scorer(X), dtype=np.float64)
        n_least = int(self.rows.max(initial=-1)) + 1
        if found.ndim != 2 or len(found) != len(X) or found.shape[1] < n_least:
            name = type(getattr(self.scorer, "__self__", self.scorer)).__name__
            raise ValueError(
                f"{name}.scores must return shape ({len(X)}, n_individuals) with at least "
                f"{n_least} individuals, not {found.shape}"
            )
        return np.column_stack([np.zeros(len(X)), found])[:, self.rows + 1].copy(order="C")

    def take(self, rows: Integers) -> ScoredPopulation:
        """Return the individuals of these numbers; see `Population`."""
        return ScoredPopulation(self.scorer, np.append(self.rows, -1)[rows])  # −1 finds the −1 at the end


def _scores_side_by_side(populations: Sequence[Population], X: Matrix) -> Matrix:
    return np.hstack([population.scores(X) for population in populations])


def _scores_on_columns(population: Population, columns: Mask, X: Matrix) -> Matrix:
    return population.scores(np.ascontiguousarray(X[:, columns]))


def side_by_side(populations: Iterable[Population]) -> Population:
    """Return one population of the individuals of several, in their order."""
    populations = tuple(populations)
    if len(populations) == 1:
        return populations[0]
    weights = [population.coefs for population in populations]
    linear = [W for W in weights if W is not None]
    if len(linear) == len(weights):
        return LinearPopulation(np.concatenate(linear))
    return ScoredPopulation(partial(_scores_side_by_side, populations), np.arange(sum(map(len, populations))))


def on_all_columns(population: Population, kept: Mask) -> Population:
    """Return rankers of the columns in `kept` (n_features,) as rankers of all columns, which look at no other.

    >>> on_all_columns(LinearPopulation(np.array([[0.5, 2.0]])), np.array([True, False, True])).coefs.tolist()
    [[0.5, 0.0, 2.0]]
    """
    if kept.all():
        return population
    if isinstance(population, FittedPopulation):
        feature_mask = np.zeros((len(population), len(kept)), np.bool_)
        feature_mask[:, kept] = population.feature_mask
        return FittedPopulation(population.rankers, feature_mask)
    if population.coefs is None:
        return ScoredPopulation(partial(_scores_on_columns, population, kept), np.arange(len(population)))
    W = np.zeros((len(population), len(kept)))
    W[:, kept] = population.coefs
    return LinearPopulation(W)


def train_population(
    backend: FitnessBackend,
    train: RankingData,
    *,
    pair_mask: Mask | None = None,
    feature_mask: Mask | None = None,
) -> Population:
    """Let a backend train one ranker for each row of the masks; arguments as in `FitnessBackend.fit_population`.

    Raises a TypeError if the backend returns neither an array nor an object with a method ``scores``, and a ValueError
    for weights of a wrong shape.
    """
    masks = {"pair_mask": pair_mask, "feature_mask": feature_mask}
    given: Parameters = {name: mask for name, mask in masks.items() if mask is not None}
    found = backend.fit_population(train, **given)
    sizes = [len(mask) for mask in given.values() if np.ndim(mask) == 2]
    size = sizes[0] if sizes else 1
    if isinstance(found, np.ndarray):
        if found.shape != (size, train.n_features):
            raise ValueError(
                f"{type(backend).__name__}.fit_population must return weights of shape ({size}, {train.n_features}), "
                f"not {found.shape}"
            )
        if not np.isfinite(found).all():
            # Features of 10²⁵ overflow in the squares of a solver: such a ranker scores every document alike.
            found = np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)
        return LinearPopulation(np.ascontiguousarray(found, dtype=np.float64))
    if isinstance(found, Population):
        return found
    if not callable(getattr(found, "scores", None)):
        raise TypeError(
            f"{type(backend).__name__}.fit_population must return an array of weights or an object with a method "
            f"scores(X), not {type(found).__name__}"
        )
    return ScoredPopulation(found.scores, np.arange(size))


def require_weights(population: Population, backend: object) -> Matrix:
    """Return the weights (n_individuals, n_features) that `backend` trained; a ValueError if there are none."""
    if population.coefs is None:
        name = type(getattr(backend, "ranker", backend)).__name__
        raise ValueError(
            f"{name} has no weights (coef_): it serves feature selection, but the ensemble stage adds up weights; "
            "use ensemble=False, or a linear backend"
        )
    return population.coefs

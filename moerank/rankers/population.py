"""Populations of trained rankers, with or without weights, and the backends that train them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from moerank.arrays import Array, Integers, Mask, Matrix
from moerank.checks import Parameters, check_room
from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.rankers.model import Forest
from moerank.rankers.table_population import TablePopulation, rows_or_zeros, sums_of_members
from moerank.training.masks import Unit


class AnyRanker(Protocol):
    """An estimator in the style of scikit-learn; a higher prediction ranks higher."""

    def fit(self, X: Any, y: Any, /) -> Any:
        """Train on documents X (n_documents, n_features) with relevance labels y (n_documents,)."""

    def predict(self, X: Any, /) -> Any:
        """Return the scores (n_documents,) of the rows of X."""


class Scorer(Protocol):
    """Several rankers that score together, and need no other method."""

    def scores(self, X: Matrix, /) -> Matrix:
        """Return the scores (n_documents, n_individuals) of the rows of X, of shape (n_documents, n_features)."""


@runtime_checkable
class FitnessBackend(Protocol):
    """A ranker that can train a whole population at once, which is all that the search needs."""

    def fit_population(
        self,
        train: RankingData,
        *,
        pair_mask: Mask | None = None,
        feature_mask: Mask | None = None,
        start: Matrix | None = None,
    ) -> Matrix | Scorer:
        """Train one ranker for each row of the masks and return their weights W (n_individuals, n_features).

        A backend whose rankers have no weights returns an object with a method ``scores(X)`` instead; it needs no other
        method.

        Parameters
        ----------
        train : RankingData
        pair_mask : ndarray of bool, shape (n_individuals, n_pairs) or (n_pairs,), optional
            The preference pairs that each individual trains on; all individuals share a mask of one axis.
        feature_mask : ndarray of bool, shape (n_individuals, n_features) or (n_features,), optional
            The features that each individual may use, at least one.
        start : ndarray, shape (n_individuals, n_features), optional
            Weights from which an iterative backend starts, in place of its own guess.
        """


@dataclass(frozen=True, eq=False)
class LinearPopulation:
    """Linear rankers, held as their weights (n_individuals, n_features)."""

    coefs: Matrix

    def __len__(self) -> int:
        return len(self.coefs)

    def scores(self, X: Matrix) -> Matrix:
        """Return the scores (n_documents, n_individuals) of the rows of X, of shape (n_documents, n_features)."""
        return linear_scores(X, self.coefs)

    def take(self, rows: Integers) -> Self:
        """Return the individuals of these numbers; −1 stands for one without features, whose scores are 0."""
        return type(self)(rows_or_zeros(self.coefs, rows))

    def on_columns(self, column_mask: Mask) -> Self:
        """Return the rankers for a wider table, of which these columns are the features (n_columns,)."""
        return type(self)(on_wider_table(self.coefs, column_mask))

    @property
    def feature_mask(self) -> Mask:
        """The features with a weight, shape (n_individuals, n_features)."""
        return self.coefs != 0

    def combined(self, weights: Matrix, feature_mask: Mask) -> Self:
        """Return sums of the rankers, weighted by each row of `weights` (n, n_individuals), on some features."""
        return type(self)(sums_of_members(weights, self.coefs, feature_mask))


# Populations whose weighted sums are rankers of the same kind.
Summable: TypeAlias = LinearPopulation | TablePopulation


@dataclass(frozen=True, eq=False)
class BatchMember:
    """A ranker that scores together with others, as one column of the scores that a function gives."""

    batch: Callable[[Matrix], Matrix]
    column: int


@dataclass(frozen=True, eq=False)
class FittedPopulation:
    """Fitted rankers without weights, each of which reads the columns in its row of `feature_mask`.

    An individual without columns, whose ranker may be None, scores 0.
    """

    coefs: ClassVar[None] = None  # there are no weights
    rankers: tuple[AnyRanker | BatchMember | None, ...]
    feature_mask: Mask

    def __len__(self) -> int:
        return len(self.rankers)

    def scores(self, X: Matrix) -> Matrix:
        """Return the scores (n_documents, n_individuals) of the rows of X, of shape (n_documents, n_features)."""
        scores = np.zeros((len(X), len(self)))
        batches: dict[tuple[int, bytes], Matrix] = {}
        for individual, (ranker, mask) in enumerate(zip(self.rankers, self.feature_mask, strict=True)):
            if isinstance(ranker, BatchMember):
                key = id(ranker.batch), mask.tobytes()
                if key not in batches:  # a batch is scored once
                    table = X if mask.all() else np.ascontiguousarray(X[:, mask])
                    batches[key] = np.asarray(ranker.batch(table), np.float64)
                scores[:, individual] = batches[key][:, ranker.column]
            elif ranker is not None and mask.any():
                scores[:, individual] = np.ravel(ranker.predict(X[:, mask]))
        return scores

    def take(self, rows: Integers) -> Self:
        """Return the individuals of these numbers; −1 stands for one without features, whose scores are 0."""
        rankers = tuple(self.rankers[row] if row >= 0 else None for row in rows)
        return type(self)(rankers, rows_or_zeros(self.feature_mask, rows))

    def on_columns(self, column_mask: Mask) -> Self:
        """Return the rankers for a wider table, of which these columns are the features (n_columns,)."""
        return type(self)(self.rankers, on_wider_table(self.feature_mask, column_mask))

    def forest(self, individual: int) -> Forest:
        """Return the trees of an individual, over all columns of the training table; an AttributeError if none."""
        ranker: Any = self.rankers[individual]
        return ranker.forest_.over(np.flatnonzero(self.feature_mask[individual]))


Population: TypeAlias = LinearPopulation | TablePopulation | FittedPopulation
"""Trained rankers, one for each individual."""


def on_wider_table(values: Array, column_mask: Mask) -> Array:
    """Return a wider table, of which these columns have the values, and others 0."""
    wide = np.zeros((len(values), len(column_mask)), values.dtype)
    wide[:, column_mask] = values
    return wide


def batch_of(batch: Callable[[Matrix], Matrix], size: int, n_features: int) -> FittedPopulation:
    """Return the population of `size` rankers that read all columns, and whose scores are columns of ``batch(X)``."""
    return FittedPopulation(tuple(BatchMember(batch, i) for i in range(size)), np.ones((size, n_features), np.bool_))


def population_of(rankers: Sequence[AnyRanker | None], feature_mask: Mask) -> LinearPopulation | FittedPopulation:
    """Return fitted rankers as a population: by their weights if all have a ``coef_`` of one number per feature.

    Each was trained on its row of `feature_mask`; None stands for an individual without features.

    >>> from moerank.rankers.rank_rls import RankRLS
    >>> ranker = RankRLS().fit([[0.1], [0.9], [0.5]], y=[0, 2, 1], qid=0)
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


def side_by_side(populations: Iterable[Population]) -> Population:
    """Return one population of the individuals of several, in their order."""
    populations = tuple(populations)
    if len(populations) == 1:
        return populations[0]
    linear = [population.coefs for population in populations if isinstance(population, LinearPopulation)]
    if len(linear) == len(populations):
        return LinearPopulation(np.concatenate(linear))
    additive = [population for population in populations if isinstance(population, TablePopulation)]
    if len(additive) == len(populations) and len({id(population.bins) for population in additive}) == 1:
        return TablePopulation(additive[0].bins, np.concatenate([population.tables for population in additive]))
    fitted = [
        each if isinstance(each, FittedPopulation) else batch_of(each.scores, len(each), each.feature_mask.shape[1])
        for each in populations
    ]
    rankers = tuple(ranker for population in fitted for ranker in population.rankers)
    return FittedPopulation(rankers, np.concatenate([population.feature_mask for population in fitted]))


def on_all_columns(population: Population, column_mask: Mask) -> Population:
    """Return rankers of the columns in `column_mask` (n_features,) as rankers of all columns that ignore the others.

    >>> on_all_columns(LinearPopulation(np.array([[0.5, 2.0]])), np.array([True, False, True])).coefs.tolist()
    [[0.5, 0.0, 2.0]]
    """
    return population if column_mask.all() else population.on_columns(column_mask)


def train_population(
    backend: FitnessBackend,
    train: RankingData,
    *,
    pair_mask: Mask | None = None,
    feature_mask: Mask | None = None,
    unit: Unit = "pair",
) -> Population:
    """Let a backend train one ranker for each row of the masks; arguments as in `Trainer.fit_population`.

    If ``fit_population`` of the backend has no argument `unit`, the pairs among the documents, or of the queries, are
    listed; if they are too many, this is a ValueError.

    Raises a ValueError if the backend returns neither weights of the right shape nor an object with ``scores``.
    """
    every = pair_mask is not None and pair_mask.ndim == 1 and pair_mask.all()
    masks = {"pair_mask": None if every else pair_mask, "feature_mask": feature_mask}
    given: Parameters = {name: mask for name, mask in masks.items() if mask is not None}
    sizes = [len(mask) for mask in given.values() if np.ndim(mask) == 2]
    size = sizes[0] if sizes else 1
    if unit != "pair" and "pair_mask" in given:
        counts = "unit" in signature(backend.fit_population).parameters
        given |= {"unit": unit} if counts else {"pair_mask": _pairs_of_units(train, given["pair_mask"], unit)}
    result: Any = backend.fit_population(train, **given)
    if isinstance(result, LinearPopulation | FittedPopulation | TablePopulation):
        return result
    if callable(getattr(result, "scores", None)):
        return batch_of(result.scores, size, train.n_features)
    if np.shape(result) != (size, train.n_features):
        raise ValueError(
            f"{type(backend).__name__}.fit_population must return weights of shape ({size}, {train.n_features}), or an "
            f"object with a method scores(X), not {type(result).__name__} of shape {np.shape(result)}"
        )
    return of_weights(np.ascontiguousarray(result, np.float64))


def of_weights(W: Matrix) -> LinearPopulation:
    """Return trained linear rankers (n_individuals, n_features); one whose training overflowed has weights of 0.

    Features of 10²⁵ overflow in the squares of a solver: such a ranker scores every document alike.
    """
    finite = np.isfinite(W).all(axis=1, keepdims=True)
    return LinearPopulation(W if finite.all() else np.where(finite, W, 0.0))


def _pairs_of_units(train: RankingData, mask: Mask, unit: Unit) -> Mask:
    """Return the pairs that each row of documents or queries keeps, shape (…, n_pairs)."""
    n_pairs, n_strings = train.n_pairs, len(np.atleast_2d(mask))
    check_room(f"{n_pairs:,} preference pairs, listed for each of {n_strings} individuals,", n_pairs * (n_strings + 8))
    better, worse = (pairs := train.pairs).better, pairs.worse
    if unit == "document":
        return mask[..., better] & mask[..., worse]
    return mask[..., np.repeat(np.arange(train.n_queries), np.diff(train.offsets))[better]]


def require_sums(population: Population, backend: object) -> Summable:
    """Return the rankers that `backend` trained; a ValueError if their sums are not rankers of the same kind."""
    if not isinstance(population, LinearPopulation | TablePopulation):
        name = type(getattr(backend, "ranker", backend)).__name__
        raise ValueError(
            f"{name} has no weights (coef_), and the ensemble stage adds up weights; use ensemble=False, or a linear "
            "backend"
        )
    return population


def scores_on(population: Population, data: RankingData) -> Matrix:
    """Return the scores (n_documents, n_individuals) of a data set, which remembers the bins of additive rankers."""
    return population.scores_of(data) if isinstance(population, TablePopulation) else population.scores(data.X)

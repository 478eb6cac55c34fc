"""Populations of trained rankers, with or without weights, and the backends that train them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np

from moerank.arrays import Array, Floats, Integers, Mask, Matrix, Vector
from moerank.checks import Parameters, check_room
from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.kernels.step_tables import table_scores
from moerank.kernels.threads import VECTOR
from moerank.rankers.model import Forest, Tree, finite_scores, linear_weights, some_rows
from moerank.training.bins import Bins
from moerank.training.masks import Masks, Unit


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
    """A ranker that can train a whole population at once, which is all that the search needs.

    Notes
    -----
    A backend may also have these attributes, which the search uses if they are there and not None:

    ``takes_packed``
        True if rows of a `pair_mask` of pairs may be packed by ``np.packbits``.
    ``ridge``
        The tuple (alpha, target) of a ridge regression on the differences of preference pairs, see `Target`. The search
        starts from the paths of this regression, and the objective "loss" is its loss.
    ``forward_path(train, n_steps)``
        The first features in the order in which they should enter; by default those of the ridge regression.
    ``max_features_at_start``
        The largest number of features of a random string at the start of the search, 1,000 by default.
    ``alternative``
        The name of the backend that a run advises to try next; by default it advises LambdaMART.
    ``systems(train, subsets, unit, workers)``
        The normal equations on each subset of units, for `ridge_subsets`, if solving them is the whole training.
    ``judge_of_instances(train, unit)``
        The backend that takes its place in the first stage, which `MOFSRank` then leaves out by default.
    ``kernels``
        The group of kernels that it calls, "pairs" by default; see `moerank.kernels.compiled.GROUPS`.
    """

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

    def take(self, rows: Integers) -> "LinearPopulation":
        """Return the individuals of these indices; −1 stands for one without features, whose scores are 0."""
        return LinearPopulation(rows_or_zeros(self.coefs, rows))

    def on_columns(self, column_mask: Mask) -> "LinearPopulation":
        """Return the rankers for a wider table, of which these columns are the features (n_columns,)."""
        return LinearPopulation(on_wider_table(self.coefs, column_mask))

    @property
    def feature_mask(self) -> Mask:
        """The features with a weight, shape (n_individuals, n_features)."""
        return self.coefs != 0

    def combined(self, weights: Matrix, feature_mask: Mask) -> "LinearPopulation":
        """Return sums of the rankers, weighted by each row of `weights` (n, n_individuals), on some features."""
        return LinearPopulation(sums_of_members(weights, self.coefs, feature_mask))


# A feature with its thresholds.
Axis: TypeAlias = tuple[int, Vector]


@dataclass(frozen=True, eq=False)
class TablePopulation:
    """Additive rankers, by the value of each bin: ``tables[individual, bins.first[f] + b]`` for bin b of feature f.

    The lowest bin of each feature has the value 0, so features that are not used have only zeros.
    """

    coefs: ClassVar[None] = None  # there are no weights
    n_scored_together: ClassVar[int] = VECTOR  # the scores of many take much memory
    bins: Bins
    tables: Matrix  # (n_individuals, n_cells)

    def __len__(self) -> int:
        return len(self.tables)

    def scores(self, X: Floats) -> Matrix:
        """Return the scores (n_documents, n_individuals) of the rows of X, of shape (n_documents, n_features)."""
        features = np.flatnonzero(self.feature_mask.any(axis=0))
        part = self._with_bins(features)
        return table_scores(part.bins.codes_of(X[:, features]), part.bins.first, part.tables)

    def scores_of(self, data: RankingData) -> Matrix:
        """Return the scores of the documents of a data set, which remembers their bins."""
        return table_scores(self.bins.codes(data), self.bins.first, self.tables)

    def take(self, rows: Integers) -> "TablePopulation":
        """Return the individuals of these indices; −1 stands for one without features, whose scores are 0."""
        return TablePopulation(self.bins, rows_or_zeros(self.tables, rows))

    @property
    def feature_mask(self) -> Mask:
        """The features that each individual uses, shape (n_individuals, n_features)."""
        return np.logical_or.reduceat(self.tables != 0, self.bins.first[:-1], axis=1)

    def combined(self, weights: Matrix, feature_mask: Mask) -> "TablePopulation":
        """Return the weighted sums of the rankers on some features; see `LinearPopulation.combined`."""
        mask = np.repeat(feature_mask, np.diff(self.bins.first), axis=1)
        return TablePopulation(self.bins, sums_of_members(weights, self.tables, mask))

    def on_columns(self, column_mask: Mask) -> "TablePopulation":
        """Return the rankers for a wider table, of which these columns are the features (n_columns,)."""
        return self._with_bins(np.where(column_mask, np.cumsum(column_mask) - 1, -1))

    def _with_bins(self, features: Integers) -> "TablePopulation":
        """Return the rankers on some of the features, in a new order; −1 stands for a feature that is not used."""
        cells = np.split(self.tables, self.bins.first[1:-1], axis=1)
        zeros = np.zeros((len(self), 1))
        thresholds, tables = [], [zeros[:, :0]]
        for feature in features.tolist():
            thresholds.append(self.bins.thresholds[feature] if feature >= 0 else np.empty(0))
            tables.append(cells[feature] if feature >= 0 else zeros)
        return TablePopulation(Bins(tuple(thresholds)), np.hstack(tables))

    def forest(
        self, individual: int, pairs: Mapping[int, tuple[Axis, ...]] | None = None
    ) -> Forest:
        """Return a balanced tree for each used feature of an individual; equal neighbouring bins are joined.

        `pairs` has the columns that hold the bin of two features together, with the thresholds of these.
        """
        trees = []
        for feature in np.flatnonzero(self.feature_mask[individual]).tolist():
            begin, end = self.bins.first[feature : feature + 2]
            axes = (pairs or {}).get(feature, ((feature, self.bins.thresholds[feature]),))
            shape = [len(cuts) + 1 for _, cuts in axes]
            trees.append(_balanced(axes, self.tables[individual, begin:end].reshape(shape)))
        return Forest.of(trees)


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
        batches = {}
        members = zip(self.rankers, self.feature_mask, strict=True)
        for individual, (ranker, mask) in enumerate(members):
            if isinstance(ranker, BatchMember):
                key = id(ranker.batch), mask.tobytes()
                if key not in batches:  # a batch is scored once
                    table = X if mask.all() else np.ascontiguousarray(X[:, mask])
                    batches[key] = np.asarray(ranker.batch(table), float)
                scores[:, individual] = batches[key][:, ranker.column]
            elif ranker is not None and mask.any():
                values = np.ravel(ranker.predict(X[:, mask]))
                scores[:, individual] = finite_scores(values, type(ranker).__name__)
        return scores

    def take(self, rows: Integers) -> "FittedPopulation":
        """Return the individuals of these indices; −1 stands for one without features, whose scores are 0."""
        rankers = tuple(self.rankers[row] if row >= 0 else None for row in rows)
        return FittedPopulation(rankers, rows_or_zeros(self.feature_mask, rows))

    def on_columns(self, column_mask: Mask) -> "FittedPopulation":
        """Return the rankers for a wider table, of which these columns are the features (n_columns,)."""
        return FittedPopulation(self.rankers, on_wider_table(self.feature_mask, column_mask))

    def forest(self, individual: int) -> Forest:
        """Return the trees of an individual, over all columns of the training table; an AttributeError if none."""
        ranker: Any = self.rankers[individual]
        return ranker.forest_.over(np.flatnonzero(self.feature_mask[individual]))


Population: TypeAlias = LinearPopulation | TablePopulation | FittedPopulation
"""Trained rankers, one for each individual."""


def rows_or_zeros(values: Array, rows: Integers) -> Array:
    """Return these rows of a table, and zeros for −1."""
    return np.vstack([values, np.zeros((1, values.shape[1]), values.dtype)])[rows]


def sums_of_members(weights: Matrix, values: Matrix, mask: Mask) -> Matrix:
    """Return Σ_k weights[:, k] · values[k] where the mask is set, else 0; shapes (n, n_members), (n_members, m)."""
    # Member by member, because the last bits of a matrix product depend on the size of the batch.
    total = np.zeros((len(weights), values.shape[1]))
    for weight, member in zip(weights.T, values, strict=True):
        total += weight[:, None] * member
    return np.where(mask, total, 0.0)


def _balanced(axes: Sequence[Axis], values: Matrix) -> Tree:
    """Return a balanced tree of a step function of some features, which has an axis for each."""
    if not axes:
        return float(values)
    (column, cuts), *rest = axes
    changes = np.flatnonzero((values[1:] != values[:-1]).any(axis=tuple(range(1, values.ndim))))
    if not len(changes):
        return _balanced(rest, values[0])
    cut = changes[len(changes) // 2]
    low = _balanced([(column, cuts[:cut]), *rest], values[: cut + 1])
    high = _balanced([(column, cuts[cut + 1 :]), *rest], values[cut + 1 :])
    return column, float(cuts[cut]), low, high


def on_wider_table(values: Array, column_mask: Mask) -> Array:
    """Return a wider table, of which these columns have the values, and others 0."""
    wide = np.zeros((len(values), len(column_mask)), values.dtype)
    wide[:, column_mask] = values
    return wide


def batch_of(batch: Callable[[Matrix], Matrix], size: int, n_features: int) -> FittedPopulation:
    """Return the population of `size` rankers that read all columns, and whose scores are columns of ``batch(X)``."""
    return FittedPopulation(
        tuple(BatchMember(batch, i) for i in range(size)), np.ones((size, n_features), bool)
    )


def population_of(
    rankers: Sequence[AnyRanker | None], feature_mask: Mask, X: Matrix
) -> LinearPopulation | FittedPopulation:
    """Return fitted rankers as a population: by their weights if all score by a ``coef_`` of one number per feature.

    Each was trained on its row of `feature_mask` of the columns of X; None stands for an individual without features.

    >>> from moerank.rankers.rank_rls import RankRLS
    >>> X = np.array([[0.1, 0.2], [0.9, 0.7], [0.5, 0.1]])
    >>> ranker = RankRLS().fit(X[:, 1:], y=[0, 2, 1], qid=0)
    >>> population = population_of([ranker, None], np.array([[False, True], [False, False]]), X)
    >>> (population.coefs != 0).tolist()
    [[False, True], [False, False]]
    """
    rows, W = some_rows(X), np.zeros(feature_mask.shape)
    for w, ranker, mask in zip(W, rankers, feature_mask, strict=True):
        coef = np.empty(0) if ranker is None else linear_weights(ranker, rows[:, mask])
        if coef is None:
            return FittedPopulation(tuple(rankers), feature_mask)
        w[mask] = coef
    return LinearPopulation(W)


def side_by_side(populations: Iterable[Population]) -> Population:
    """Return one population of the individuals of several, in their order."""
    parts: list[Any] = list(populations)
    kinds = {type(part) for part in parts}
    if len(parts) == 1:
        return parts[0]
    if kinds == {LinearPopulation}:
        return LinearPopulation(np.concatenate([part.coefs for part in parts]))
    if kinds == {TablePopulation} and len({id(part.bins) for part in parts}) == 1:
        return TablePopulation(parts[0].bins, np.concatenate([part.tables for part in parts]))
    fitted = [
        part
        if isinstance(part, FittedPopulation)
        else batch_of(part.scores, len(part), part.feature_mask.shape[1])
        for part in parts
    ]
    rankers = tuple(ranker for part in fitted for ranker in part.rankers)
    return FittedPopulation(rankers, np.concatenate([part.feature_mask for part in fitted]))


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
    masks: Parameters = {}
    if pair_mask is not None and not (pair_mask.ndim == 1 and pair_mask.all()):
        masks["pair_mask"] = pair_mask
    if feature_mask is not None:
        masks["feature_mask"] = feature_mask
    size = next((len(mask) for mask in masks.values() if np.ndim(mask) == 2), 1)
    if unit != "pair" and "pair_mask" in masks:
        if "unit" in signature(backend.fit_population).parameters:
            masks["unit"] = unit
        else:
            masks["pair_mask"] = pairs_of_units(train, masks["pair_mask"], unit)
    result: Any = backend.fit_population(train, **masks)
    if isinstance(result, LinearPopulation | FittedPopulation | TablePopulation):
        return result
    if callable(getattr(result, "scores", None)):
        return batch_of(result.scores, size, train.n_features)
    if np.shape(result) != (size, train.n_features):
        raise ValueError(
            f"{type(backend).__name__}.fit_population must return weights of shape "
            f"({size}, {train.n_features}), or an object with a method scores(X), "
            f"not {type(result).__name__} of shape {np.shape(result)}"
        )
    return of_weights(np.ascontiguousarray(result, float))


def of_weights(W: Matrix) -> LinearPopulation:
    """Return trained linear rankers (n_individuals, n_features); one whose training overflowed has weights of 0.

    Features of 10²⁵ overflow in the squares of a solver: such a ranker scores every document alike.
    """
    finite = np.isfinite(W).all(axis=1, keepdims=True)
    return LinearPopulation(W if finite.all() else np.where(finite, W, 0.0))


def listed_pairs(train: RankingData, masks: Masks) -> Mask:
    """Return the preference pairs that each individual trains on, shape (n_individuals, n_pairs), as bool.

    For backends whose training lists pairs: it unfolds masks of any unit, packed or not.
    """
    units = masks.shared if masks.unit_rows is None else masks.unit_rows
    if units is None:
        pairs = np.ones(train.n_pairs, bool)
    elif masks.unit != "pair":
        pairs = pairs_of_units(train, units, masks.unit)
    elif units.dtype == bool:
        pairs = units
    else:
        pairs = np.unpackbits(np.asarray(units), axis=1, count=train.n_pairs).astype(bool)
    return np.broadcast_to(pairs, (len(masks.features), train.n_pairs))


def pairs_of_units(train: RankingData, mask: Mask, unit: Unit) -> Mask:
    """Return the pairs that each row of documents or queries keeps, shape (…, n_pairs)."""
    n_pairs, n_strings = train.n_pairs, len(np.atleast_2d(mask))
    check_room(
        f"{n_pairs:,} preference pairs, listed for each of {n_strings} individuals,",
        n_pairs * (n_strings + 8),
    )
    better, worse = train.pairs.better, train.pairs.worse
    if unit == "document":
        return mask[..., better] & mask[..., worse]
    query = np.repeat(np.arange(train.n_queries), np.diff(train.offsets))
    return mask[..., query[better]]


def require_sums(population: Population, backend: object) -> Summable:
    """Return the rankers that `backend` trained; a ValueError if their sums are not rankers of the same kind."""
    if not isinstance(population, LinearPopulation | TablePopulation):
        name = type(getattr(backend, "ranker", backend)).__name__
        raise ValueError(
            f"{name} has no weights (coef_) by which it scores, and the ensemble stage adds up "
            "weights; use ensemble=False, or a linear backend"
        )
    return population


def scores_on(population: Population, data: RankingData) -> Matrix:
    """Return the scores (n_documents, n_individuals) of a data set, which remembers the bins of additive rankers."""
    if isinstance(population, TablePopulation):
        return population.scores_of(data)
    return population.scores(data.X)

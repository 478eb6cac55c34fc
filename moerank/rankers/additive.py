"""AdditiveRLS: regularised least squares on preference pairs for a step function of each feature."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np

from moerank.arrays import Floats, Integers, Mask, Matrix, Vector
from moerank.checks import NotNegative, Positive, check_at_least
from moerank.data import RankingData, remembered
from moerank.kernels.algebra import VECTOR_WIDTH, plus_ridge
from moerank.kernels.counted_ranks import mean_over_queries
from moerank.kernels.step_tables import forward_blocks, ridge_blocks
from moerank.rankers.base import Grid, Trainer
from moerank.rankers.boosting import steadied
from moerank.rankers.model import finite_scores
from moerank.rankers.population import Axis, TablePopulation
from moerank.rankers.rank_rls import RankRLS, TargetName, targets_to_try
from moerank.rankers.selection import nested_masks
from moerank.rankers.shapes import ShapesMixin, shapes_of
from moerank.scikit_learn import check_is_fitted
from moerank.statistics import mean_and_error
from moerank.training.bins import MAX_BINS, Bins, step_moments
from moerank.training.masks import Masks, Unit, read_masks
from moerank.training.pair_moments import TARGETS, PairMoments

if TYPE_CHECKING:  # these take long to load
    import pandas as pd
    from matplotlib.figure import Figure

SMOOTH_GRID = (0.03, 0.1, 0.3, 1.0)
DECADES: tuple[float, ...] = tuple(range(2, -5, -1))
HALF_DECADES = tuple(power / 2 for power in range(4, -9, -1))
FEW_BINS, MANY_BINS = 16, 32

# Numbers of interactions that validation compares, besides the largest one.
NUMBERS_OF_INTERACTIONS = (0, 1, 2, 3, 5, 8)

# Features whose pairs may interact: the system of 105 pairs has about 3,700 steps.
MAX_PAIRED_FEATURES = 15

# Further pairs, of a feature of the query and another one.
MAX_PAIRS_WITH_QUERIES = 30

NO_PAIRS = (
    'AdditiveRLS takes no pair_mask of pairs. Select queries, instance_selection={"unit": "query"}'
)

# Largest total number of thresholds for which the grid has 32 bins: that system takes a quarter second.
MAX_TUNED_THRESHOLDS = 2_000


class AdditiveRLS(ShapesMixin, Trainer[TablePopulation]):
    """Least squares ranking by a sum of step functions, Σ_f g_f(x_f).

    The step function g_f is constant between thresholds t_1 < … < t_B of its feature, and θ are the heights of its
    steps, the weights of the columns φ = [x_f > t_b]. With the preference pairs (i, j), p of them, it minimises

        (1 / p) Σ (t − θᵀ(φᵢ − φⱼ))² + alpha Σ_f θ_fᵀ P_f⁻¹ θ_f,   P_f = smooth² I + v vᵀ,

    t = 1, or yᵢ − yⱼ with target="difference", and v the differences of the means of x_f in neighbouring bins over its
    standard deviation. With smooth = 0 the ranker is linear in these means; with 1 the steps are nearly free.

    Parameters
    ----------
    n_bins : int, default 16
        Largest number of thresholds of a feature, from 1 to 255; see `moerank.training.bins.thresholds`.
    smooth : float, default 0.3
        How far a step function may depart from a linear one, ≥ 0.
    alpha : float, default 0.001
        Regularisation, > 0.
    target : {"unit", "difference"}, default "unit"
    interactions : int, default 0
        Largest number of pairs of features with a function of both, which `fit` adds one by one: the pair that lowers
        the loss the most, among the 15 features with the largest spread. Validation data in `fit` choose the number
        among 0, 1, 2, 3, 5, 8 and all by MAP; it is 0 unless some are better by more than one paired standard error.
        Members of a population have none, so a search does not see them; give the ranker to ``refit``.

    Attributes
    ----------
    thresholds_ : tuple of ndarray, one per feature
    tables_ : tuple of ndarray, one per feature
        The values of g_f in its bins, from the lowest on, one more than thresholds; the first one is 0.
    forest_ : Forest
        The ranker as trees, one for each feature in use.
    support_ : ndarray of bool, shape (n_features,)
        The features in use: their step function is not 0.
    n_interactions_ : int
    interactions_ : DataFrame or None
        The path of the interactions, of none, one, two, …: ``n_interactions``, ``first`` and ``second``, the features
        of the last one, and ``error`` and ``validation``, 1 − MAP on the training and the validation data, or 1 − the
        metric by which a search tunes its rankers.
    shapes_ : DataFrame
        The step functions, one row for each bin: ``feature``, ``from``, ``to``, ``value`` and ``share``, that of the
        training documents. The mean of each function over these documents is 0.

    Notes
    -----
    A ranker of a subset of the features takes a principal submatrix of one system for all features, which is made once
    for the training data: O(n_documents · n_features²) to count which bins meet, and O(n_runs · (n_features · B)²) for
    n_runs labels of all queries. A subset with k thresholds then takes O(k³ / 3), and O(n_documents) for each feature
    to score. An increasing transformation of a feature changes the scores only through v, so features need no scaling.

    The function of a pair is constant between at most five thresholds of either feature. O(n_documents · n_pairs²) and
    O(n_runs · (36 n_pairs)²) beside it for the system of all pairs.

    An individual with documents or queries of its own needs a system of its own, and so does each one if the system of
    all features does not fit the memory limit. Single pairs cannot be chosen.

    Examples
    --------
    >>> from moerank.rankers.additive import AdditiveRLS
    >>> X = [[0.0], [0.2], [0.5], [0.8], [1.0]]
    >>> ranker = AdditiveRLS(smooth=1.0).fit(X, y=[0, 1, 2, 1, 0], qid=0)
    >>> ranker.predict(X).argsort().tolist()[-1]
    2
    """

    _takes_weights = True
    _scale_free = True
    _trained_together = ("alpha",)
    _guarded = "target"
    _steadied = staticmethod(steadied)
    kernels = "steps"
    alternative = None
    max_features_at_start: ClassVar[int] = 40
    """Largest number of features in a search's first strings: systems of many columns are slow."""

    n_bins: Annotated[int, partial(check_at_least, 1, MAX_BINS)] = 16
    smooth: NotNegative = 0.3
    alpha: Positive = 0.001
    target: TargetName = "unit"
    interactions: Annotated[int, partial(check_at_least, 0)] = 0

    def _train(self, train: RankingData, masks: Masks, start: Matrix | None) -> TablePopulation:
        if masks.unit == "pair" and masks.choose_units:
            raise ValueError(f"{train.name}: {NO_PAIRS}")
        if masks.unit_rows is not None:
            members = zip(masks.features, masks.unit_rows, strict=True)
            parts = [
                self._train(
                    train,
                    replace(masks, features=features[None], shared=mask, unit_rows=None),
                    None,
                )
                for features, mask in members
            ]
            return TablePopulation(parts[0].bins, np.concatenate([part.tables for part in parts]))
        bins = Bins.of(train, self.n_bins)
        if bins.moments_fit or masks.features.all():
            return self._remembered_system(train, masks).solved(self.alpha, masks.features)
        # The system of all features is too large: each individual has one of its own features.
        tables = np.zeros((len(masks.features), int(bins.first[-1])))
        for table, features in zip(tables, masks.features, strict=True):
            part = copy(train).with_features(
                features
            )  # a copy, or the data would remember each part
            part_masks = replace(masks, features=np.ones((1, part.n_features), bool))
            cells = np.repeat(features, np.diff(bins.first))
            table[cells] = self._train(part, part_masks, None).tables[0]
        return TablePopulation(bins, tables)

    def judge_of_instances(self, train: RankingData, unit: Unit) -> RankRLS:
        """Return the linear ranker that judges subsets of the instances, for which systems of columns are too slow."""
        if unit == "pair":
            raise ValueError(f"{train.name}: {NO_PAIRS}")
        alpha = 0.01 * float(np.trace(PairMoments.of(train).gram)) / train.n_features
        return RankRLS(alpha=alpha or 1.0, target=self.target)

    def forward_path(self, train: RankingData, n_steps: int | None = None) -> Integers:
        """Return the features in the order in which they enter: each lowers the loss, with the penalty, the most.

        Those without thresholds are left out, and all others enter unless `n_steps` is given. Ties go to the first
        feature. O(n_steps · B · n_thresholds²) time for up to B thresholds of each feature.
        """
        system = self._remembered_system(train, read_masks(train))
        return system.forward_path(self.alpha, train.n_features if n_steps is None else n_steps)

    def default_grid(self, train: RankingData) -> Grid:
        """Return smooth from 0.03 to 1 and alpha = tr(A) / n_steps · 10ᵏ, k = 2, 1.5, …, −4, with 32 bins.

        Both targets are compared, see `moerank.rankers.rank_rls.targets_to_try`.

        `tune` compares the mean of the metric over an alpha and its two neighbours, because the metric jumps on few
        validation queries. To save minutes, there are 16 bins and whole k if 32 bins give more than 2,000 thresholds.
        """
        if Bins.of(train, MANY_BINS).first_step[-1] <= MAX_TUNED_THRESHOLDS:
            n_bins, powers = MANY_BINS, HALF_DECADES
        else:
            n_bins, powers = FEW_BINS, DECADES
        entries = replace(self, n_bins=n_bins).grid_of_bins(train, powers)
        return [
            {"target": target, "n_bins": n_bins, **entry}
            for target in targets_to_try(self.target, train)
            for entry in entries
        ]

    def grid_of_bins(self, train: RankingData, powers: Sequence[float] = DECADES) -> Grid:
        """Return the grid for the ranker's number of bins: smooth, and alpha by powers of ten times its scale."""
        bins = Bins.of(train, self.n_bins)
        gram, v = step_moments(train, bins, read_masks(train)).gram, _increments(train, bins)
        if not len(v):
            raise ValueError(
                f"{train.name}: no feature has two values that differ in single precision; "
                "shift or multiply the raw values"
            )
        squares = sum(v[i:j] @ gram[i:j, i:j] @ v[i:j] for i, j in pairwise(bins.first_step))
        trace = np.trace(gram)
        entries = []
        for smooth in SMOOTH_GRID:
            scale = float(smooth * smooth * trace + squares) / len(v)  # tr(A) = tr(G P)
            entries += [{"smooth": smooth, "alpha": scale * 10.0**power} for power in powers]
        return entries

    def _candidate_scores(
        self, train: RankingData, validation: RankingData, candidates: list[Self]
    ) -> Matrix:
        masks = read_masks(train)
        system = candidates[0]._system(train, masks)
        tables = [system.solved(candidate.alpha, masks.features).tables for candidate in candidates]
        return TablePopulation(system.prior.bins, np.concatenate(tables)).scores_of(validation)

    def _remembered_system(self, train: RankingData, masks: Masks) -> System:
        key = ("additive system", self.n_bins, self.smooth, self.target, masks.shared_key)
        return train.remember(key, lambda: self._system(train, masks))

    def _system(self, data: RankingData, masks: Masks, prior: _Prior | None = None) -> System:
        prior = prior or _Prior.of(data, Bins.of(data, self.n_bins), self.smooth)
        moments = step_moments(data, prior.bins, masks)
        A = prior.root(np.ascontiguousarray(prior.root(moments.gram).T))
        return System(prior, A, prior.root(TARGETS[self.target].moment(moments)[None])[0])

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self._population = self._train(train, read_masks(train), None)
        finite_scores(self._population.scores(train.X[:1])[:, 0], type(self).__name__)
        bins, table = self._population.bins, self._population.tables[0]
        self.forest_ = self._population.forest(0)
        self.interactions_: pd.DataFrame | None = None
        self.n_interactions_ = 0
        if self.interactions:
            table = self._add_interactions(train, validation)
        self.support_ = np.isin(np.arange(train.n_features), self.forest_.columns)
        self.thresholds_ = bins.thresholds
        self.tables_ = tuple(np.split(table[: bins.first[-1]], bins.first[1:-1]))
        self._shapes = shapes_of(self.forest_, train)

    def _add_interactions(self, train: RankingData, validation: RankingData | None) -> Vector:
        """Set the path of the interactions and the trees with the best number of them, and return their tables."""
        import pandas as pd

        pairs, entered, path = self._interaction_path(train)
        features = [pairs.pairs[pair] for pair in entered.tolist()]
        columns = {
            "n_interactions": np.arange(len(path)),
            "first": ["", *(train.feature_names[f] for f, _ in features)],
            "second": ["", *(train.feature_names[g] for _, g in features)],
            "error": 1.0
            - self._early_stopping_metric.score(train, path.scores(pairs.table(train.X))),
        }
        best = len(entered)
        if validation is not None:
            scores = path.scores(pairs.table(validation.X))
            metric = self._early_stopping_metric
            values = validation.weighted(metric.per_query(validation, scores))
            means = mean_over_queries(values)
            columns["validation"] = 1.0 - means
            numbers = [*(n for n in NUMBERS_OF_INTERACTIONS if n < best), best]
            best = numbers[int(np.argmax(means[numbers]))]
            gain, error = mean_and_error(values[:, best] - values[:, 0])
            if not gain > error:
                best = 0
        self.interactions_ = pd.DataFrame(columns)
        self.n_interactions_ = best
        self.forest_ = path.forest(best, pairs.axes)
        return path.tables[best]

    def with_size_of(self, fitted: Self) -> Self:
        """Return a clone with as many interactions as validation data chose for a fitted ranker."""
        return replace(self, interactions=fitted.n_interactions_)

    def _interaction_path(
        self, train: RankingData
    ) -> tuple[Interactions, Integers, TablePopulation]:
        """Return the pairs, their order of entry, and the rankers with none, one, two, … of them."""
        shapes = shapes_of(self.forest_, train)[:MAX_PAIRED_FEATURES]
        features = sorted(train.feature_names.index(shape.features[0]) for shape in shapes)
        fine = Bins.of(train, self.n_bins)
        candidates = [*combinations(features, 2), *_pairs_with_queries(train, features)]
        pairs = Interactions(Bins.of(train, N_CUTS), fine, tuple(candidates))
        data = train.with_table(pairs.table(train.X))
        single_prior = _Prior.of(train, fine, self.smooth)
        prior = replace(single_prior, bins=pairs.bins, pairs=pairs.roots(self.smooth))
        system = self._system(data, read_masks(data), prior)
        columns = system.forward_path(self.alpha, self.interactions, n_start=train.n_features)
        order = np.append(np.arange(train.n_features), columns)
        sizes = np.arange(train.n_features, len(order) + 1)
        mask = nested_masks(order, data.n_features, sizes)
        return pairs, columns - train.n_features, system.solved(self.alpha, mask)

    def plot(self) -> Figure:
        """Draw the step functions, those with the largest spread first; see `moerank.figures.shapes_of_run`."""
        check_is_fitted(self, "support_")
        return self._shapes_figure()

    def _scores(self, X: Matrix) -> Vector:
        return self.forest_.scores(X) if self.interactions else self._population.scores(X)[:, 0]


def _pairs_with_queries(train: RankingData, features: list[int]) -> list[tuple[int, int]]:
    """Return pairs of a feature that is the same for all documents of a query, and one of `features`.

    They are those where the products of feature and label, summed over each query, correlate most with the former.
    """
    constants = np.flatnonzero(train.is_of_query)
    if not len(constants) or not features:
        return []
    X, starts = train.X64[:, features], train.offsets[:-1]
    sizes = np.diff(train.offsets)
    labels = train.y - np.repeat(np.add.reduceat(train.y, starts) / sizes, sizes)
    slopes = np.add.reduceat(X * labels[:, None], starts)
    correlations = np.corrcoef(train.X64[starts][:, constants], slopes, rowvar=False)
    strength = np.abs(correlations[: len(constants), len(constants) :])
    best = np.argsort(-strength, axis=None, kind="stable")[:MAX_PAIRS_WITH_QUERIES]
    rows, columns = np.unravel_index(best, strength.shape)
    return [
        (features[column], int(constants[row])) for row, column in zip(rows, columns, strict=True)
    ]


# Rows that are multiplied by a root at a time, which saves copies of a large table.
ROOT_ROWS = 64


@dataclass(frozen=True, eq=False)
class _Prior:
    """The symmetric roots s I + c v vᵀ of the covariances s² I + v vᵀ of the steps of each feature."""

    bins: Bins
    smooth: float
    direction: Vector  # (n_steps,), v of each feature
    share: Vector  # (n_steps,), c v
    begins: Integers  # where the steps of each feature that has some begin
    pairs: Sequence[Matrix] = ()  # roots of the steps of interactions, which come last

    @classmethod
    def of(cls, train: RankingData, bins: Bins, smooth: float) -> _Prior:
        v = _increments(train, bins)
        sizes = np.diff(bins.first_step)
        begins, sizes = bins.first_step[:-1][sizes > 0], sizes[sizes > 0]
        square = np.add.reduceat(v**2, begins)
        c = (np.sqrt(smooth * smooth + square) - smooth) / square
        return cls(bins, smooth, v, np.repeat(c, sizes) * v, begins)

    def root(self, values: Matrix) -> Matrix:
        """Return values (n, n_steps) times the root."""
        n_steps = len(self.direction)
        sizes = np.diff(self.begins, append=n_steps)
        products = np.empty((len(values), n_steps))
        for begin in range(0, len(values), ROOT_ROWS):
            rows = values[begin : begin + ROOT_ROWS, :n_steps]
            sums = np.add.reduceat(rows * self.direction, self.begins, axis=1)
            block = np.repeat(sums, sizes, axis=1)
            block *= self.share
            block += self.smooth * rows
            products[begin : begin + ROOT_ROWS] = block
        if not self.pairs:
            return products
        parts = [products]
        for root in self.pairs:
            parts.append(values[:, n_steps : n_steps + len(root)] @ root)
            n_steps += len(root)
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class System:
    """The ridge system (A + alpha I) w = b of all features, in the coordinates of the prior."""

    prior: _Prior
    A: Matrix  # (n_steps, n_steps)
    b: Vector  # (n_steps,)

    def solved(self, alpha: float, feature_mask: Mask) -> TablePopulation:
        """Return the rankers on the features of each row of a mask."""
        bins = self.prior.bins
        steps = self.prior.root(ridge_blocks(self.A, self.b, bins.first_step, alpha, feature_mask))
        tables = np.zeros((len(steps), int(bins.first[-1])))
        tables[:, bins.is_step] = steps
        for feature in np.flatnonzero(feature_mask.any(axis=0)):
            cells = slice(*bins.first[feature : feature + 2])
            np.cumsum(tables[:, cells], axis=1, out=tables[:, cells])
        return TablePopulation(bins, tables)

    def forward_path(self, alpha: float, n_steps: int, n_start: int = 0) -> Integers:
        """Return the features in the order in which they enter; the path starts with the first `n_start` features.

        See `AdditiveRLS.forward_path`.
        """
        begins = self.prior.bins.first_step[n_start:]
        n_eliminated = int(begins[0])
        n = len(self.b) - n_eliminated
        system = np.column_stack([plus_ridge(self.A, alpha), self.b])
        width = -(-(n + 1) // VECTOR_WIDTH) * VECTOR_WIDTH
        total = np.zeros((width, width))
        top = system[:n_eliminated, n_eliminated:]
        solution = np.linalg.solve(system[:n_eliminated, :n_eliminated], top)
        total[:n, : n + 1] = system[n_eliminated:, n_eliminated:] - top[:, :n].T @ solution
        return n_start + forward_blocks(total, begins - n_eliminated, n_steps)


@remembered
def _increments(train: RankingData, bins: Bins) -> Vector:
    """Return the differences of the means of neighbouring bins over the standard deviation, feature by feature."""
    codes, increments = bins.codes(train), [np.empty(0)]
    for feature, cuts in enumerate(bins.thresholds):
        if len(cuts):
            x = train.X[:, feature].astype(float)
            x = (x - x.min()) / np.ptp(x)
            sums = np.bincount(codes[feature], x, len(cuts) + 1)
            means = sums / np.bincount(codes[feature], minlength=len(cuts) + 1)
            increments.append(np.diff(means) / x.std())
    return np.concatenate(increments)


# Thresholds of each feature of an interaction.
N_CUTS = 5


@dataclass(frozen=True, eq=False)
class Interactions:
    """Pairs of features as further columns of a table, which hold the number of the bin of both features together."""

    coarse: Bins  # of each feature
    fine: Bins  # of the functions of one feature
    pairs: tuple[tuple[int, int], ...]

    def table(self, X: Floats) -> Matrix:
        """Return the table (n_documents, n_features + n_pairs)."""
        codes = self.coarse.codes_of(X)
        columns = [codes[f] * np.uint8(self._width(g)) + codes[g] for f, g in self.pairs]
        return np.column_stack([X, *columns])

    @cached_property
    def bins(self) -> Bins:
        """The bins of all columns of the table; a pair has one for each bin of both features."""
        n_bins = [self._width(f) * self._width(g) for f, g in self.pairs]
        thresholds = [np.arange(0.5, n - 1) for n in n_bins]
        return Bins((*self.fine.thresholds, *thresholds))

    def roots(self, smooth: float) -> list[Matrix]:
        """Return symmetric roots of the covariances of the steps of each pair.

        Steps are those from each of its bins to the next one. Their function is a sum of products of steps,
        Σ_ab θ_ab [x_f > t_a] [x_g > u_b], and the covariance of θ is smooth² I.
        """
        roots = []
        for f, g in self.pairs:
            above_f, above_g = self._indicators(f), self._indicators(g)
            steps = np.diff(np.kron(above_f, above_g), axis=0)
            values, vectors = np.linalg.eigh(steps @ steps.T)
            roots.append(smooth * (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
        return roots

    @property
    def axes(self) -> dict[int, tuple[Axis, ...]]:
        """The columns of pairs with their features and thresholds, see `TablePopulation.forest`."""
        n_features = len(self.fine.thresholds)
        cuts = self.coarse.thresholds
        return {n_features + i: ((f, cuts[f]), (g, cuts[g])) for i, (f, g) in enumerate(self.pairs)}

    def _indicators(self, feature: int) -> Matrix:
        """Return for each bin of a feature (n_bins, n_thresholds) which thresholds it is above."""
        return np.tri(self._width(feature), k=-1)[:, :-1]

    def _width(self, feature: int) -> int:
        return len(self.coarse.thresholds[feature]) + 1

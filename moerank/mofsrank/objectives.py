"""Objectives of a search (number of features, error, cost, risk, or your own), and the choice from their fronts.

An objective is an object of a class with two methods, see `Objective`. `MOFSRank` takes such objects or their names;
problem files take names, also of objectives that packages offer by the entry point ``moerank.objectives``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import takewhile
from math import ceil, inf
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from moocore import is_nondominated
from numpy.typing import ArrayLike

from moerank import rankers, statistics
from moerank.arrays import Bounds, Integers, Mask, Matrix, Numbers, Vector
from moerank.checks import check_not_negative, unknown
from moerank.data import RankingData
from moerank.data.costs import ROUNDING
from moerank.data.folds import of_queries
from moerank.data.inputs import column_of
from moerank.identity import digest
from moerank.kernels.counted_ranks import mean_over_queries
from moerank.kernels.threads import in_pieces
from moerank.metrics import Metric
from moerank.rankers.model import is_own
from moerank.rankers.population import on_wider_table
from moerank.solvers import is_code, load_code, plugins
from moerank.training.pair_moments import UNIT, PairMoments
from moerank.verdict import Decision, short

if TYPE_CHECKING:  # pandas takes long to load
    import pandas as pd

FRONT = ("features", "error")
"""The default objectives."""


class Objective(ABC):
    """A quantity that a search minimises.

    A subclass has a name and a title, and implements `values` and `bounds`. Equal objectives give equal values.

    Attributes
    ----------
    name : str
        Name in problem files, tables and columns.
    title : str
        Title of the axis of a figure.
    log_axis : bool, default False
        Whether the axis is logarithmic.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    log_axis: ClassVar[bool] = False

    @abstractmethod
    def values(self, candidates: Candidates) -> Numbers:
        """Return the value of each candidate, shape (n_candidates,); finite, smaller is better."""

    @abstractmethod
    def bounds(self, data: RankingData, n_var: int) -> Bounds:
        """Return the smallest and largest possible value, for strings of `n_var` entries.

        `data` are your table; those of a problem file lack the features that it excludes, so find features by name.
        Hypervolumes are shares of the box between them. Empty or infeasible individuals score the upper bound plus one,
        so a stage refuses values outside the bounds.
        """

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({parameters})"


ObjectiveLike: TypeAlias = str | Objective
"""An objective, or its name."""


@dataclass(eq=False)
class Candidates:
    """Rankers on a data set, for objectives; each quantity is measured when it is first read.

    A search leaves out features that no ranker may use or that change none. Objectives see the columns of your table
    nevertheless: `uses`, `sums`, `feature_mask` and `population` are about all of its features.

    Parameters
    ----------
    data : RankingData
        The documents, with the features of the search; find these by name.
    metric : Metric
    _feature_mask : ndarray of bool, shape (n_candidates, n_features)
        The features of `data` that each ranker uses.
    _population : Population
        The rankers on the features of `data`.
    n_pairs : ndarray of int, shape (n_candidates,), optional
        Number of preference pairs of each ranker, if they have their own pairs.
    backend : fitness backend, optional
        The backend of the rankers, for objectives that train another ranker with it, such as "risk".
    table_names : tuple of str
        Names of the features of your table.
    allowed : ndarray of bool, shape (n_features,), optional
        The features of `data` that limits do not exclude; by default all.
    workers : int, default 1
        Threads that measure the rankers.
    """

    data: RankingData
    metric: Metric
    _feature_mask: Mask
    _population: rankers.Population
    _: KW_ONLY
    n_pairs: Integers | None = None
    backend: rankers.FitnessBackend | None = None
    table_names: tuple[str, ...]
    allowed: Mask | None = None
    workers: int = 1

    def __len__(self) -> int:
        return len(self._feature_mask)

    def uses(self, features: Sequence[str | int]) -> Mask:
        """Return which candidates use these features of your table, shape (n_candidates, n_given).

        Parameters
        ----------
        features : sequence of str or int
            Names of features, or columns of the table, counted from 0. A ValueError names one that does not exist.
        """
        columns = [column_of(feature, self.table_names, "uses") for feature in features]
        return self.feature_mask[:, columns]

    def sums(self, number: str) -> Vector:
        """Return the sum of a number over the features of each candidate, shape (n_candidates,).

        Parameters
        ----------
        number : str
            A column of the table of costs, such as "latency"; in the sum of "cost" groups are paid once. A ValueError
            names one that does not exist.
        """
        return self.data.require_costs(f'the objective "{number}"').sums(self._feature_mask, number)

    @property
    def _columns(self) -> Mask:
        """The features of the table that the search has, shape (n_features,)."""
        return np.isin(self.table_names, self.data.feature_names)

    @cached_property
    def feature_mask(self) -> Mask:
        """The features of your table that each candidate uses, shape (n_candidates, n_features)."""
        return on_wider_table(self._feature_mask, self._columns)

    @cached_property
    def population(self) -> rankers.Population:
        """The rankers on the columns of your table."""
        return rankers.on_all_columns(self._population, self._columns)

    @cached_property
    def errors(self) -> Vector:
        """Return 1 − metric of each ranker on the data, shape (n_candidates,)."""
        return errors_of(self.data, self.metric, self._population, workers=self.workers)

    @cached_property
    def per_query(self) -> Matrix:
        """Return the metric of each query, shape (n_queries, n_candidates)."""
        return values_of(self.data, self.metric, self._population, workers=self.workers)

    @property
    def reference(self) -> Vector:
        """The metric of each query, shape (n_queries,), for the backend trained on all features that are allowed."""
        data, metric, backend = self.data, self.metric, self.backend
        if backend is None:
            raise ValueError(
                "an objective needs a backend to compare with, or Risk(baseline=scores)"
            )
        if self.allowed is not None:
            data = data.with_features(self.allowed)
        return data.remember(
            ("reference", metric, digest(backend)),
            lambda: values_of(data, metric, rankers.train_population(backend, data))[:, 0],
        )


class Features(Objective):
    """Number of features."""

    name = "features"
    title = "Number of features"

    def values(self, candidates: Candidates) -> Numbers:
        """See `Objective`."""
        return np.count_nonzero(candidates.feature_mask, axis=1)

    def bounds(self, data: RankingData, n_var: int) -> Bounds:
        """See `Objective`."""
        return 0.0, float(n_var)


class Pairs(Objective):
    """Number of preference pairs of the ranker."""

    name = "pairs"
    title = "Number of preference pairs"

    def values(self, candidates: Candidates) -> Numbers:
        """See `Objective`."""
        if candidates.n_pairs is None:
            raise ValueError(
                'the objective "pairs" is for instance selection: '
                "these rankers have no pairs of their own"
            )
        return candidates.n_pairs

    def bounds(self, data: RankingData, n_var: int) -> Bounds:
        """See `Objective`."""
        return 0.0, float(data.n_pairs)


class Error(Objective):
    """1 − metric."""

    name = "error"
    title = "1 − metric"

    def values(self, candidates: Candidates) -> Numbers:
        """See `Objective`."""
        return candidates.errors

    def bounds(self, data: RankingData, n_var: int) -> Bounds:
        """See `Objective`."""
        return 0.0, 1.0


class Cost(Objective):
    """Sum of the costs of the features; the cost of a group is paid once."""

    name = "cost"
    title = "Cost"
    log_axis = True

    def values(self, candidates: Candidates) -> Numbers:
        """See `Objective`."""
        return candidates.sums("cost")

    def bounds(self, data: RankingData, n_var: int) -> Bounds:
        """See `Objective`."""
        return 0.0, data.require_costs('the objective "cost"').total


class Risk(Objective):
    """Weighted losses of a ranker against a baseline minus its gains, query by query.

    −(1 / Q) · [Σ gains − (1 + a) Σ losses] over the Q queries. With a = 0 it is the mean loss; a larger a gives
    losses more weight. An individual below 0 is worth the risk.

    Parameters
    ----------
    a : float, default 1.0
        Extra weight of a loss, ≥ 0.
    baseline : array-like, shape (n_documents,), optional
        Scores of the baseline, for example of the ranker in use today; by default those of the backend trained on all
        features that limits allow.

    References
    ----------
    L. Wang, P. Bennett, K. Collins-Thompson: Robust ranking models via risk-sensitive optimization. SIGIR 2012.
    """

    name = "risk"
    title = "Risk against the baseline"

    def __init__(self, a: float = 1.0, baseline: ArrayLike | None = None) -> None:
        check_not_negative(a=a)
        self.a = a
        self.baseline = None if baseline is None else np.asarray(baseline, float)

    def values(self, candidates: Candidates) -> Numbers:
        """Compare each candidate with the baseline."""
        if self.baseline is None:
            baseline = candidates.reference
        else:
            data = candidates.data
            baseline = data.weighted(candidates.metric.per_query(data, self.baseline))
        d = candidates.per_query - baseline[:, None]
        return np.where(d > 0, -d, -(1.0 + self.a) * d).mean(axis=0)

    def bounds(self, data: RankingData, n_var: int) -> Bounds:
        """Return the values of a gain or a loss of 1 in every query."""
        return -1.0, 1.0 + self.a

    def __repr__(self) -> str:
        baseline = "" if self.baseline is None else f", baseline={digest(self.baseline)}"
        return f"Risk(a={self.a:g}{baseline})"


class Loss(Objective):
    """Training loss of RankRLS on all preference pairs, alpha ‖w‖² included.

    Its least value for each number of features can be proved; see `FeatureSelection.pareto_front`.
    """

    name = "loss"
    title = "Training loss"

    def values(self, candidates: Candidates) -> Numbers:
        """See `Objective`."""
        W, ridge = candidates._population.coefs, getattr(candidates.backend, "ridge", None)
        if W is None or ridge is None or ridge[1] != UNIT:
            raise ValueError(
                'the objective "loss" needs the backend RankRLS with loss="pair" and target="unit"'
            )
        moments = PairMoments.of(candidates.data)
        return 1.0 - 2.0 * W @ moments.unit + ((W @ moments.gram + ridge[0] * W) * W).sum(axis=1)

    def bounds(self, data: RankingData, n_var: int) -> Bounds:
        """Return 0 and the loss of weights that are all 0."""
        return 0.0, 1.0


OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (Features(), Pairs(), Error(), Cost(), Risk(), Loss())
}
"""The objectives of this package by name."""


def known_objectives() -> dict[str, Objective]:
    """Return the objectives of this package and of entry points, which are objectives or their classes, by name."""
    return {
        name: _instance(entry) for name, entry in plugins("moerank.objectives").items()
    } | OBJECTIVES


def _instance(entry: Any) -> Objective:
    """Return an objective, or an instance of its class."""
    return entry() if isinstance(entry, type) else entry


def read_objectives(objectives: Sequence[ObjectiveLike]) -> tuple[Objective, ...]:
    """Return the objectives with these names; objects stay as they are.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest one, for other objects than an `Objective`, for equal names, and for no
        objective.

    Examples
    --------
    >>> read_objectives(("features", "error"))
    (Features(), Error())
    """
    table = known_objectives()
    for entry in objectives:
        if isinstance(entry, str) and entry not in table:
            if not is_code(entry):
                raise ValueError(unknown("objective", entry, table))
            table[entry] = _instance(load_code(entry))
    instances = tuple(table[entry] if isinstance(entry, str) else entry for entry in objectives)
    if not instances:
        raise ValueError("objectives: a search needs at least one")
    for objective in instances:
        if not all(hasattr(objective, name) for name in ("name", "values", "bounds")):
            raise ValueError(f"objectives: {objective!r} is neither a name nor an Objective")
    names = [objective.name for objective in instances]
    if len(set(names)) < len(names):
        raise ValueError(f"objectives: {', '.join(names)} are not all different")
    return instances


def bounds_of(objective: Objective, data: RankingData, n_var: int) -> Bounds:
    """Return the bounds of an objective; a ValueError unless those of a user's objective are finite and in order."""
    bounds = objective.bounds(data, n_var)
    if not is_own(objective):
        ordered = np.shape(bounds) == (2,) and all(isinstance(bound, Real) for bound in bounds)
        if not (ordered and -inf < bounds[0] < bounds[1] < inf):
            what = f'the objective "{objective.name}" has the bounds {bounds!r:.80}'
            raise ValueError(f"{what}. Return two finite numbers, the smaller one first")
    return bounds


def values_in_bounds(objective: Objective, candidates: Candidates, bounds: Vector) -> Numbers:
    """Return the values of candidates; a ValueError unless those of a user's objective are numbers in its bounds."""
    values = objective.values(candidates)
    if is_own(objective):
        return values
    values, n, (lower, upper) = np.asarray(values), len(candidates), bounds.tolist()
    mistakes = [f"{values.dtype} of shape {values.shape}"]
    if values.shape == (n,) and values.dtype.kind in "biuf":
        rounding = ROUNDING * (upper - lower)
        fits = (values >= lower - rounding) & (values <= upper + rounding)
        mistakes = values[~fits]  # NaN, too
    if len(mistakes):
        raise ValueError(
            f'the objective "{objective.name}" returned {mistakes[0]}. Return {n} numbers '
            f"within its bounds, {lower:g} and {upper:g}, or change these"
        )
    return values


def values_of(
    data: RankingData, metric: Metric, population: rankers.Population, *, workers: int = 1
) -> Matrix:
    """Return the metric of each ranker of a population on each query, weighted, shape (n_queries, n_individuals)."""
    if population.coefs is None:
        values = metric.per_query(data, rankers.scores_on(population, data))
    else:  # without all scores in memory
        values = metric.of_linear(data, population.coefs, workers=workers)
    return data.weighted(values)


def errors_of(
    data: RankingData, metric: Metric, population: rankers.Population, *, workers: int = 1
) -> Vector:
    """Return 1 − metric of each ranker of a population, shape (n_individuals,)."""
    if population.coefs is not None:
        return 1.0 - metric.mean_of_linear(data, population.coefs, workers=workers)

    def errors(rows: Integers) -> Vector:
        n = getattr(population, "n_scored_together", len(rows))
        means = [
            metric.batch(data, rankers.scores_on(population.take(part), data))
            for part in np.split(rows, range(n, len(rows), n))
        ]
        return 1.0 - np.concatenate(means)

    return np.concatenate(in_pieces(errors, np.arange(len(population)), workers))


Final: TypeAlias = Literal["auto", "train", "validation", "half-se", "one-se", "knee", "guaranteed"]
"""Rules for the final member of the front; see `MOFSRank`."""

# Paired standard errors by which a smaller member may be behind the best.
ERRORS: dict[str, float] = {"half-se": 0.5, "one-se": 1.0}


@dataclass(frozen=True, eq=False)
class Front:
    """Members of a front: objectives (n_members, n_objectives), features (n_members, n_features) and their rankers.

    `trained_on` (n_members, n_subsets) has the instance subsets that the rankers, or the rankers in their sums, were
    trained on; None stands for all pairs. `sources` has where the features of each member come from.
    """

    F: Matrix
    feature_mask: Mask
    population: rankers.Population
    trained_on: Mask | None = None
    sources: tuple[str, ...] | None = None

    @property
    def sizes(self) -> Integers:
        """Number of features of each member, shape (n_members,)."""
        return np.count_nonzero(self.feature_mask, axis=1)

    def on_all_columns(self, columns: Mask) -> Front:
        """Return the front over all features, for one over the features of the mask `columns`."""
        return replace(
            self,
            feature_mask=on_wider_table(self.feature_mask, columns),
            population=rankers.on_all_columns(self.population, columns),
        )

    def take(self, members: Integers) -> Front:
        """Return the members of these indices."""
        return Front(
            self.F[members],
            self.feature_mask[members],
            self.population.take(members),
            None if self.trained_on is None else self.trained_on[members],
            None if self.sources is None else tuple(self.sources[i] for i in members.tolist()),
        )

    def table(
        self, objectives: Sequence[Objective], errors: Vector, validation: Vector
    ) -> pd.DataFrame:
        """Return the table of members, see `MOFSRank.front_`."""
        import pandas as pd

        columns = {entry.name: values for entry, values in zip(objectives, self.F.T, strict=True)}
        table = {
            "n_features": self.sizes,
            "error": errors,
            **{name: values for name, values in columns.items() if name not in FRONT},
            "validation": validation,
            "features": [tuple(np.flatnonzero(mask).tolist()) for mask in self.feature_mask],
        }
        if self.sources is not None:
            table["source"] = self.sources
        return pd.DataFrame(table)


class Measured(NamedTuple):
    """The metric of the members and of the reference on each query, and whether it can differ there."""

    members: Matrix
    reference: Vector
    can_differ: Mask
    weights: Vector | None = None  # of the queries

    def weighed(self, heaviest: float = 0.0) -> tuple[Matrix, float]:
        """Return member − reference on the queries that can differ, and the scale, as `weigh` does."""
        differences = (self.members - self.reference[:, None])[self.can_differ]
        weights = self.weights
        if weights is not None:
            weights = weights[self.can_differ] / weights.mean()
        return statistics.weigh(differences, weights, heaviest)

    @property
    def differences(self) -> Matrix:
        """Member − reference, on the queries that can differ."""
        values, scale = self.weighed()
        return scale * values


def tail_of(values: Mapping[str, Measured], member: int) -> statistics.Tail:
    """Return what the parts show of the differences of a member from the reference, those of training doubled."""
    tail = statistics.Tail()
    for part, measured in values.items():
        factor = 2.0 if part == "training" else 1.0
        tail = tail.joined(factor * measured.differences[:, member], measured.weights)
    return tail


def order_by_size(
    front: Front,
    values: Mapping[str, Measured],
    objectives: Sequence[Objective],
    chosen_by: str,
    *,
    retrained: bool,
    quality: Vector | None = None,
    finalists: Integers | None = None,
) -> tuple[Front, dict[str, Measured], Vector, pd.DataFrame]:
    """Order the members by size; return them, their values, `quality` and table.

    The quality (n_members,) is the mean metric on the part `chosen_by` if none is given. Members that others dominate
    by it are left out if their rankers are `retrained`, except `finalists`.
    """
    means = {name: mean_over_queries(part.members) for name, part in values.items()}
    training = 1.0 - means["training"]
    is_judged = quality is not None
    if quality is None:
        quality = -training if chosen_by == "training" else means[chosen_by]
    is_error = np.array([objective.name == "error" for objective in objectives])
    errors = front.F[:, is_error.argmax()] if is_error.any() else training
    order = np.lexsort((*front.F.T[::-1], errors, front.sizes))
    if retrained:
        is_best = is_nondominated(np.where(is_error, -quality[order, None], front.F[order]))
        order = order[is_best | np.isin(order, [] if finalists is None else finalists)]
    front, validation = front.take(order), means.get("validation", np.full(len(errors), np.nan))
    values = {name: part._replace(members=part.members[:, order]) for name, part in values.items()}
    table = front.table(objectives, errors[order], validation[order])
    if is_judged:
        table.insert(table.columns.get_loc("validation") + 1, "unseen", quality[order])
    return front, values, quality[order], table


def choose_member(rule: Final, sizes: Integers, means: Vector, per_query: Matrix) -> int:
    """Return the index of the member that a rule chooses; see `MOFSRank`.

    The members have ascending `sizes` and the mean metrics `means`, both of shape (n_members,), and the metric
    `per_query` (n_queries, n_members).

    >>> sizes, per_query = np.array([1, 2, 6, 9]), np.array([[0.1, 0.6, 0.7, 0.5], [0.3, 0.6, 0.6, 0.9]])
    >>> means, rules = per_query.mean(axis=0), ("validation", "half-se", "one-se", "knee")
    >>> [choose_member(rule, sizes, means, per_query) for rule in rules]
    [3, 2, 1, 1]
    """
    if rule in ERRORS:
        return statistics.smallest_within_error(per_query, sizes, ERRORS[rule])
    return knee(sizes, means) if rule == "knee" else int(means.argmax())


def knee(sizes: Integers, means: Vector) -> int:
    """Return the index of the member farthest above the line from the smallest to the best, or of the best if none is.

    Size and metric are scaled to [0, 1] between these two.

    I. Das: On characterizing the "knee" of the Pareto curve based on normal-boundary intersection. Structural
    Optimization 18, 1999.

    >>> knee(np.array([1, 2, 6, 9]), np.array([0.2, 0.6, 0.65, 0.7]))
    1
    >>> knee(np.array([1, 5, 9]), np.array([0.2, 0.4, 0.6]))
    2
    """
    best = int(means.argmax())
    smallest = int(np.lexsort((-means, sizes))[0])
    if sizes[best] == sizes[smallest]:
        return best
    x = (sizes - sizes[smallest]) / (sizes[best] - sizes[smallest])
    gain = max(means[best] - means[smallest], np.finfo(float).tiny)
    y = (means - means[smallest]) / gain
    heights = np.where(x <= 1, y - x, -np.inf)
    bend = int(heights.argmax())
    return bend if heights[bend] > 1e-12 else best


def decide(
    member: int, sizes: Integers, measured: Measured, *, all_allowed: bool
) -> tuple[Decision, str]:
    """Decide on the chosen member by validation queries; return the decision and its reason, see `Verdict`.

    A member loses if it ranks below all features by more than a paired standard error. `all_allowed` tells whether the
    limits allow all features together.
    """
    n_differing = np.count_nonzero(measured.can_differ)
    if not n_differing:
        reason = "No validation query can tell sets of features apart, so their sizes alone chose"
        return "none", reason
    differences = measured.members.T - measured.reference
    gains, errors = np.transpose([statistics.mean_and_error(row) for row in differences])
    harmless = gains >= -np.nan_to_num(errors)  # a single query has no error
    if harmless[member]:
        if n_differing >= statistics.MIN_QUERIES:
            return "use", ""
        queries = "query" if n_differing == 1 else "queries"
        return "try", f"Only {n_differing} validation {queries} can tell, too few to rely on"
    loss = short(-gains[member])
    if not harmless.any():
        reason = (
            "On validation every set of the front ranked worse than all features, "
            f"the chosen one by {loss}"
        )
        return "keep" if all_allowed else "limits", reason
    smallest = int(sizes[harmless].min())
    reason = f"On validation this set ranked worse than all features, by {loss}"
    return "loss", f"{reason}; the smallest set that did not has {smallest} features"


GUARANTEE_STREAM = 0x677561  # key of the random stream that halves the validation queries


class Guarantee(NamedTuple):
    """The member that fixed-sequence testing chooses.

    Attributes
    ----------
    chosen : int
        Index of the guaranteed member, or of the first one tested.
    shown : bool
        Whether the tests show that it loses less than the margin.
    smaller : bool
        Whether a smaller member comes after it in the order of the tests.
    largest_loss : float
        The loss that it stays below with the same confidence; 1 if the tests give no smaller one.
    n_queries : int
        Number of queries of the tests that can differ.
    """

    chosen: int
    shown: bool
    smaller: bool
    largest_loss: float
    n_queries: int

    def sentence(self, sizes: Integers, n_allowed: int, metric: str, margin: float) -> str:
        """Return the guarantee in words, for members of these `sizes`."""
        loss = (
            f"less than {margin:g} {metric} against all of them, with 95 % confidence by "
            f"{self.n_queries:,} validation queries that chose nothing else"
        )
        size, largest_loss, end = sizes[self.chosen], self.largest_loss, ""
        if self.shown:
            if self.smaller:
                end = "; the next smaller set fails the test"
            return f"{size} of {n_allowed} features lose {loss}{end}"
        if largest_loss < 1:
            end = f"; {size} features lose less than {ceil(1000 * largest_loss) / 1000:g}"
        return f"No set of the front passes the test that it loses {loss}{end}"


def halves(validation: RankingData, seed: int) -> tuple[RankingData, RankingData]:
    """Split validation queries at random: one half tunes and orders the members, the other one tests them."""
    if validation.n_queries < 2:
        raise ValueError(
            f'{validation.name}: one query has no halves, which final="guaranteed" needs; give more'
        )
    order = np.random.default_rng([GUARANTEE_STREAM, seed]).permutation(validation.n_queries)
    tuning, testing = np.split(order, [len(order) // 2])
    return of_queries(validation, np.sort(tuning)), of_queries(validation, np.sort(testing))


def guaranteed_member(
    sizes: Integers,
    ordering: Vector,
    differences: Matrix,
    margin: float,
    scale: float = 1.0,
) -> Guarantee:
    """Choose the smallest member that passes the test that it loses less than the margin against all features.

    The members are tested from the best by `ordering` to smaller ones, each by `moerank.statistics.shown_above`, until
    one test fails. A member is left out if another one of at most its size is as good or better. So the chance that any
    member with a larger loss is accepted is at most .05, without a correction for their number.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_members,)
    ordering : ndarray, shape (n_members,)
        Mean metric on queries that the tests do not see.
    differences : ndarray, shape (n_queries, n_members)
        Metric of the member minus that of all features, on the queries of the tests that can differ.
    margin : float
        Positive.
    scale : float, default 1
        Of the differences, see `moerank.statistics.weigh`.

    References
    ----------
    B. Laufer-Goldshtein, A. Fisch, R. Barzilay, T. Jaakkola: Efficiently controlling multiple risks with Pareto
    testing. ICLR 2023.

    Examples
    --------
    >>> d = np.column_stack([np.full(400, loss) for loss in (-0.3, -0.01, 0.0)])
    >>> guaranteed_member(np.array([1, 2, 6]), np.array([0.2, 0.6, 0.7]), d, margin=0.05)[:3]
    (1, True, True)
    """
    order = np.lexsort((-ordering, sizes))
    best_before = np.maximum.accumulate(np.concatenate([[-np.inf], ordering[order][:-1]]))
    order = order[ordering[order] > best_before][::-1]

    bound = -margin / scale
    accepted = list(takewhile(lambda i: statistics.shown_above(differences[:, i], bound), order))
    member = int(accepted[-1] if accepted else order[0])
    loss = min(1.0, scale * statistics.largest_loss(differences[:, member]))
    return Guarantee(member, bool(accepted), len(accepted) < len(order), loss, len(differences))

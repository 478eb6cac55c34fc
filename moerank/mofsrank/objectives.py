"""Objectives of a search: number of features, error, cost, risk, or an objective of a user.

An objective is an object of a class with two methods, see `Objective`. `MOFSRank` takes such objects, problem files the
names of objectives that packages offer by the entry point ``moerank.objectives``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import check_not_negative, unknown
from moerank.data import FeatureCosts, RankingData
from moerank.data.costs import known_costs
from moerank.kernels.threads import VECTOR, in_pieces
from moerank.metrics import Metric
from moerank.rankers import FitnessBackend, Population, TablePopulation, scores_on, train_population
from moerank.solvers import is_code, load_code, plugins

FRONT = ("features", "error")
"""The default objectives."""

GROUP = "moerank.objectives"
"""Entry points of further objectives; each is an `Objective` or a class of one without arguments."""


class Objective(ABC):
    """A quantity that a search minimises.

    A subclass has a name and a title, and implements `values` and `bounds`. Equal objectives give equal values.

    Attributes
    ----------
    name : str
        Name in problem files, tables and columns.
    title : str
        Title of the axis of a figure.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def values(self, candidates: Candidates) -> NDArray[np.number]:
        """Return the value of each candidate, shape (n_candidates,); finite, smaller is better."""

    @abstractmethod
    def bounds(self, data: RankingData, n_var: int) -> tuple[float, float]:
        """Return the smallest and largest possible value, for strings of `n_var` entries.

        Hypervolumes are shares of the box between them. Empty or infeasible individuals score the upper bound plus one.
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


ObjectiveLike: TypeAlias = str | Objective
"""An objective, or its name."""


@dataclass(eq=False)
class Candidates:
    """Rankers on a data set, for objectives; what is measured is measured when it is first read.

    Parameters
    ----------
    data : RankingData
    metric : Metric
    feature_mask : ndarray of bool, shape (n_candidates, n_features)
        The features of each ranker.
    population : Population
        The rankers.
    measured_errors : ndarray, shape (n_candidates,), optional
        1 − metric of each ranker on `data`, if it was measured before.
    n_pairs : ndarray of int, shape (n_candidates,), optional
        Number of preference pairs of each ranker, if they have their own pairs.
    backend : fitness backend, optional
        The backend of the rankers, for objectives that compare with another of its rankers.
    workers : int, default 1
        Threads that measure the rankers.
    """

    data: RankingData
    metric: Metric
    feature_mask: Mask
    population: Population
    _: KW_ONLY
    measured_errors: Vector | None = None
    n_pairs: Integers | None = None
    backend: FitnessBackend | None = None
    workers: int = 1

    def __len__(self) -> int:
        return len(self.feature_mask)

    @cached_property
    def errors(self) -> Vector:
        """Return 1 − metric of each ranker on the data, shape (n_candidates,)."""
        if self.measured_errors is not None:
            return self.measured_errors
        return errors_of(self.data, self.metric, self.population, workers=self.workers)

    @cached_property
    def scores(self) -> Matrix:
        """Return the scores of the documents by each ranker, shape (n_documents, n_candidates)."""
        return scores_on(self.population, self.data)

    @cached_property
    def per_query(self) -> Matrix:
        """Return the metric of each query, shape (n_queries, n_candidates)."""
        return values_of(self.data, self.metric, self.population, workers=self.workers)


class Features(Objective):
    """Number of features."""

    name = "features"
    title = "Number of features"

    def values(self, candidates: Candidates) -> NDArray[np.number]:
        """See `Objective`."""
        return np.count_nonzero(candidates.feature_mask, axis=1)

    def bounds(self, data: RankingData, n_var: int) -> tuple[float, float]:
        """See `Objective`."""
        return 0.0, float(n_var)


class Pairs(Objective):
    """Number of preference pairs of the ranker."""

    name = "pairs"
    title = "Number of preference pairs"

    def values(self, candidates: Candidates) -> NDArray[np.number]:
        """See `Objective`."""
        if candidates.n_pairs is None:
            raise ValueError(
                'the objective "pairs" is for instance selection: these rankers have no pairs of their own'
            )
        return candidates.n_pairs

    def bounds(self, data: RankingData, n_var: int) -> tuple[float, float]:
        """See `Objective`."""
        return 0.0, float(data.n_pairs)


class Error(Objective):
    """1 − metric."""

    name = "error"
    title = "1 − metric"

    def values(self, candidates: Candidates) -> NDArray[np.number]:
        """See `Objective`."""
        return candidates.errors

    def bounds(self, data: RankingData, n_var: int) -> tuple[float, float]:
        """See `Objective`."""
        return 0.0, 1.0


class Cost(Objective):
    """Sum of the costs of the features; the cost of a group is paid once."""

    name = "cost"
    title = "Cost"

    def values(self, candidates: Candidates) -> NDArray[np.number]:
        """See `Objective`."""
        return self._of(candidates.data).sums(candidates.feature_mask)

    def bounds(self, data: RankingData, n_var: int) -> tuple[float, float]:
        """See `Objective`."""
        return 0.0, self._of(data).total

    def _of(self, data: RankingData) -> FeatureCosts:
        return known_costs(data.costs, data.name, 'the objective "cost"')


class Risk(Objective):
    """Weighted losses of a ranker against a baseline minus its gains, query by query.

    −(1 / Q) · [Σ gains − (1 + a) Σ losses] over the Q queries. With a = 0 it is the mean loss; larger a weigh losses
    more against gains. An individual below 0 is worth the risk.

    Parameters
    ----------
    a : float, default 1.0
        Extra weight of a loss, ≥ 0.
    baseline : array-like, shape (n_documents,), optional
        Scores of the baseline, for example of the ranker in use today; by default those of the backend trained on all
        features.

    References
    ----------
    L. Wang, P. Bennett, K. Collins-Thompson: Robust ranking models via risk-sensitive optimization. SIGIR 2012.
    """

    name = "risk"
    title = "Risk against the baseline"

    def __init__(self, a: float = 1.0, baseline: ArrayLike | None = None) -> None:
        check_not_negative(a=a)
        self.a = a
        self.baseline = None if baseline is None else np.asarray(baseline, np.float64)

    def values(self, candidates: Candidates) -> NDArray[np.number]:
        """Compare each candidate with the baseline."""
        d = candidates.per_query - self._baseline(candidates)[:, None]
        return np.where(d > 0, -d, -(1.0 + self.a) * d).mean(axis=0)

    def bounds(self, data: RankingData, n_var: int) -> tuple[float, float]:
        """Return the values of a gain or a loss of 1 in every query."""
        return -1.0, 1.0 + self.a

    def _baseline(self, candidates: Candidates) -> Vector:
        """Return the metric of the baseline on each query, remembered with the data."""
        data, metric, backend = candidates.data, candidates.metric, candidates.backend
        if self.baseline is not None:
            return data.weighed(metric.per_query(data, self.baseline))
        if backend is None:
            raise ValueError('the objective "risk" needs a backend to compare with, or Risk(baseline=scores)')

        def values() -> Vector:
            return values_of(data, metric, train_population(backend, data))[:, 0]

        return data.remember(("risk baseline", metric, repr(backend)), values)

    def __repr__(self) -> str:
        given = "" if self.baseline is None else f", baseline={sha256(self.baseline.tobytes()).hexdigest()}"
        return f"Risk(a={self.a:g}{given})"


OBJECTIVES: dict[str, Objective] = {
    objective.name: objective for objective in (Features(), Pairs(), Error(), Cost(), Risk())
}
"""The objectives of this package by name."""


def known_objectives() -> dict[str, Objective]:
    """Return the objectives of this package and of entry points by name."""
    return {name: _instance(entry) for name, entry in plugins(GROUP).items()} | OBJECTIVES


def _instance(entry: Any) -> Objective:
    """Return the objective that a package or the user's code offers, itself or by its class."""
    objective: Objective = entry() if isinstance(entry, type) else entry
    return objective


def read_objectives(objectives: Sequence[ObjectiveLike]) -> tuple[Objective, ...]:
    """Return the objectives of these names; objects stay as they are.

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
    by_name = known_objectives()
    for entry in objectives:
        if isinstance(entry, str) and entry not in by_name:
            if not is_code(entry):
                raise ValueError(unknown("objective", entry, by_name))
            by_name[entry] = _instance(load_code(entry))
    read = tuple(by_name[entry] if isinstance(entry, str) else entry for entry in objectives)
    if not read:
        raise ValueError("objectives: a search needs at least one")
    for objective in read:
        if not (hasattr(objective, "name") and hasattr(objective, "values") and hasattr(objective, "bounds")):
            raise ValueError(f"objectives: {objective!r} is neither a name nor an Objective")
    names = [objective.name for objective in read]
    if len(set(names)) < len(names):
        raise ValueError(f"objectives: {', '.join(names)} are not all different")
    return read


def values_of(data: RankingData, metric: Metric, population: Population, *, workers: int = 1) -> Matrix:
    """Return the metric of each ranker of a population on each query, `weighed`, shape (n_queries, n_individuals)."""
    if population.coefs is None:
        return data.weighed(metric.per_query(data, scores_on(population, data)))
    return data.weighed(metric.of_linear(data, population.coefs, workers=workers))  # without all scores in memory


def errors_of(data: RankingData, metric: Metric, population: Population, *, workers: int = 1) -> Vector:
    """Return 1 − metric of each ranker of a population, shape (n_individuals,)."""
    if population.coefs is None:

        def errors(rows: Integers) -> Vector:
            # Tables are scored by few: a batch of them takes little time, and its scores much memory.
            n = VECTOR if isinstance(population, TablePopulation) else max(len(rows), 1)
            parts = [population.take(rows[begin : begin + n]) for begin in range(0, len(rows), n)]
            return 1.0 - np.concatenate([np.empty(0), *(metric.batch(data, scores_on(part, data)) for part in parts)])

        return np.concatenate(in_pieces(errors, np.arange(len(population)), workers))
    return 1.0 - metric.mean_of_linear(data, population.coefs, workers=workers)

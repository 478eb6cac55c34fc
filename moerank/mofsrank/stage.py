"""Base class of the three stages: pymoo problems that measure each individual once."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from pymoo.core.problem import Problem

from moerank.arrays import Array, Mask, Matrix, Vector
from moerank.checks import cap_workers, check_at_least
from moerank.data import RankingData
from moerank.evolution import Operators
from moerank.evolution.operators import new_rows, row_digests
from moerank.metrics import NDCG, Metric
from moerank.mofsrank.dask_slices import Slices
from moerank.mofsrank.limits import FeatureStrings
from moerank.mofsrank.objectives import (
    Candidates,
    ObjectiveLike,
    bounds_of,
    read_objectives,
    values_in_bounds,
)
from moerank.mofsrank.settings import StageSettings
from moerank.rankers import FitnessBackend, Population


class Stage(Problem):  # type: ignore[misc]
    """A pymoo problem that minimises objectives over strings of `n_var` entries.

    A subclass trains the rankers of the strings (`_candidates`) and gives the operators that suit them (`operators`).
    `settings` has the probabilities of the operators and what else the stage needs; keywords of a stage are shorthand
    for it. `workers` threads share a batch; the objective values are the same to the bit for any number. With `slices`
    a cluster measures the batches. Objectives refer to the columns of `table`, by default of `train`. `n_counted` is
    the largest count of an objective, by default `n_var`. `variables` are passed on to pymoo, such as ``vtype`` or
    bounds.
    """

    def __init__(
        self,
        train: RankingData,
        backend: FitnessBackend | None,
        metric: Metric | None,
        n_var: int,
        objectives: Sequence[ObjectiveLike],
        settings: StageSettings,
        workers: int,
        *,
        table: RankingData | None = None,
        n_counted: int | None = None,
        **variables: object,
    ) -> None:
        check_at_least(1, workers=workers)
        self.settings = settings
        self.train = train
        self.backend: Any = backend  # None in an Ensemble alone
        self.metric = metric or NDCG(10)
        self.objectives = read_objectives(objectives)
        super().__init__(n_var=n_var, n_obj=len(self.objectives), requires_kwargs=True, **variables)
        self.workers = cap_workers(workers)
        table = table or train
        self.table_names = table.table_names
        bounds = [bounds_of(entry, table, n_counted or n_var) for entry in self.objectives]
        self.bounds_of_objectives = np.array(bounds, float).T
        self._cached: dict[bytes, Vector] = {}
        self.slices: Slices | None = None

    exact = True
    """Whether objective values do not depend on the batch, to the bit."""

    @property
    def n_trained(self) -> int:
        """The distinct strings that were measured since the stage was made or copied; studies of searches read it."""
        return len(self._cached)

    @abstractmethod
    def operators(self) -> Operators:
        """Return the sampling and the other operators for the individuals of this stage.

        Most algorithms take all of them: ``NSGA2(100, **problem.operators())``. pymoo's MOEAD takes no elimination of
        duplicates, and does not tell its operators how far the search is; so use ``make_algorithm("moead", 100,
        problem.operators())`` of `moerank.evolution` instead.
        """

    @abstractmethod
    def _candidates(self, X: Array) -> Candidates:
        """Return the rankers of non-empty individuals."""

    repairs = True
    """Whether strings that break limits are refused, because operators repair them.

    Otherwise these strings are the worst in all objectives.
    """

    strings: FeatureStrings | None = None
    """The limits of feature strings."""

    def check(self, X: Array) -> None:
        """Raise a ValueError for the first string (n, n_var) that breaks a limit of the stage."""
        if self.strings:
            self.strings.check(self._limited(X))

    def keeps_limits(self, X: Array) -> Mask:
        """Return whether strings keep the limits of the stage, shape (n,)."""
        if self.strings is None:
            return np.ones(len(X), bool)
        return self.strings.keeps_limits(self._limited(X))

    def _limited(self, X: Array) -> Mask:
        """Return the feature strings that limits refer to."""
        return X

    @property
    def worst(self) -> tuple[float, ...]:
        """Objectives of an empty individual: each upper bound plus one."""
        return tuple((self.bounds_of_objectives[1] + 1.0).tolist())

    def _is_empty(self, X: Array) -> Mask:
        return np.logical_not(np.any(X, axis=1))

    def _evaluate(
        self,
        X: Array,
        out: dict[str, object],
        *args: object,
        digests: list[bytes] | None = None,
        **kwargs: object,
    ) -> None:
        if self.vtype is bool and X.dtype != bool:
            raise ValueError(
                f"{type(self).__name__}: strings must be bool, but the algorithm makes {X.dtype}; "
                "give it the operators of the problem, as in NSGA2(100, **problem.operators())"
            )
        out["F"] = self.objectives_of(X, digests or row_digests(X))

    packs = False
    """Whether `objectives_of` also takes rows of bits that np.packbits has packed."""

    def objectives_of(self, X: Array, digests: list[bytes]) -> Matrix:
        """Look up the objectives (n, n_objectives) of strings by their digests, and measure those of new strings."""
        if new := new_rows(digests, self._cached):
            rows = X if len(new) == len(X) else X[new]  # long strings are not copied
            usable = ~self._is_empty(rows)
            if self.repairs:
                self.check(rows)
            else:
                usable &= self.keeps_limits(rows)
            F = np.tile(np.array(self.worst), (len(rows), 1))
            if usable.any():
                F[usable] = (self.slices or self).measure(rows if usable.all() else rows[usable])
            self._cached |= {digests[i]: values for i, values in zip(new, F, strict=True)}
            if len(new) == len(X):
                return F
        return np.array([self._cached[digest] for digest in digests])

    def measure(self, X: Array) -> Matrix:
        """Return the objectives (n, n_objectives) of non-empty individuals, without looking them up."""
        # The threads share the individuals in training, then the queries in measuring.
        candidates = self._candidates(X)
        measured = zip(self.objectives, self.bounds_of_objectives.T, strict=True)
        values = [values_in_bounds(objective, candidates, bounds) for objective, bounds in measured]
        return np.column_stack(values).astype(float)

    def _as_candidates(
        self, feature_mask: Mask, rankers: Population, **measured: Any
    ) -> Candidates:
        """Return rankers on the data of the stage, as objectives take them."""
        return Candidates(
            self.train,
            self.metric,
            feature_mask,
            rankers,
            backend=self.backend,
            table_names=self.table_names,
            allowed=None if self.strings is None else self.strings.allowed,
            workers=self.workers,
            **measured,
        )

    def __getstate__(self) -> dict[str, object]:
        """Leave cached values, pymoo's ``cache`` and the cluster out of pickles and copies."""
        state = self.__dict__ | {"_cached": {}, "slices": None}
        return {name: value for name, value in state.items() if name != "cache"}

    def __copy__(self) -> Self:
        """Return a stage with the same data, settings and cluster, and without cached values."""
        stage = object.__new__(type(self))
        stage.__dict__ |= self.__getstate__() | {"slices": self.slices}
        return stage

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return a copy that shares the data: pymoo copies problems with their histories, and data need no copy."""
        return copy(self)

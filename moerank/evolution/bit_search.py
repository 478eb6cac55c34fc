"""The frame of the searches that are made for bit strings: a population in arrays, and three steps to fill in."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeAlias

import moocore
import numpy as np
from numpy.typing import NDArray
from pymoo.core.algorithm import Algorithm
from pymoo.core.initialization import Initialization
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.repair import NoRepair, Repair
from pymoo.core.sampling import Sampling
from pymoo.util.display.multi import MultiObjectiveOutput

from moerank.checks import check_at_least
from moerank.evolution.duplicates import DigestDuplicates
from moerank.evolution.strings import first_of_equals

__all__ = ["BitSearch", "Start"]

Bits = NDArray[np.bool_]
Values = NDArray[np.float64]
Integers = NDArray[np.int64]

Start: TypeAlias = Bits | Population | Sampling
"""An initial population: bool rows (n, n_var), a pymoo Population, which may be evaluated, or a pymoo Sampling."""


class BitSearch(Algorithm):
    """A pymoo algorithm whose individuals are bool strings, kept as the rows of one array.

    A subclass fills in three steps: `_start` draws the first strings, `_mate` makes the next batch, `_survive` says
    who stays. They read the population from `X` and `F` and draw from ``self.random_state`` alone.

    Parameters
    ----------
    pop_size : int, at least 2, default 100
        Strings in the population, and in a batch.
    sampling : ndarray of bool, Population or Sampling, optional
        Strings that come first in the initial population, all of them even if they are more than `pop_size`. If they
        are fewer, the search's own start gives the rest. Individuals that are evaluated are not evaluated again.
    repair : pymoo Repair, optional
        Applied to each batch before it is evaluated.
    **settings
        Passed on to pymoo's Algorithm.

    Attributes
    ----------
    X : ndarray of bool, shape (n, n_var)
        The population, in the order of ``pop``.
    F : ndarray, shape (n, n_objectives)
        Its objectives.

    Raises
    ------
    ValueError
        For a problem with constraints: these searches compare objectives only. For more or fewer objectives than
        `n_objectives`. For strings that are not bool or of another length than the problem's. For an initial population
        that holds nothing but empty strings.

    Notes
    -----
    An empty string is never evaluated. Of equal strings in a batch, after the repair, one is evaluated, unless
    `sends_copies`. A batch that comes out empty ends the search, as in pymoo.

    Examples
    --------
    >>> class LocalSearch(BitSearch):
    ...     def _start(self, n):
    ...         return self.random_state.random((n, self.problem.n_var)) < 0.5
    ...
    ...     def _mate(self):
    ...         return self.X ^ (self.random_state.random(self.X.shape) < 1 / self.problem.n_var)
    ...
    ...     def _survive(self, X, F):
    ...         return np.argsort(F[:, 0], kind="stable")[: self.pop_size]
    >>> class Zeros(Problem):
    ...     def _evaluate(self, X, out, *args, **kwargs):
    ...         out["F"] = (~X).sum(axis=1)
    >>> from pymoo.optimize import minimize
    >>> minimize(Zeros(n_var=20, n_obj=1), LocalSearch(pop_size=10), ("n_gen", 50), seed=1).F.tolist()
    [0.0]
    """

    sends_copies: ClassVar[bool] = False
    """Whether the method evaluates a string as often as it stands in a batch."""

    n_objectives: ClassVar[tuple[int, int | None]] = (1, None)
    """How many objectives the method needs at least, and can take at most."""

    def __init__(
        self,
        pop_size: int = 100,
        *,
        sampling: Start | None = None,
        repair: Repair | None = None,
        **settings: Any,
    ) -> None:
        check_at_least(2, pop_size=pop_size)
        super().__init__(**{"output": MultiObjectiveOutput(), **settings})
        self.pop_size = pop_size
        self.sampling = sampling
        # pymoo's repair that changes nothing copies every string.
        self.repair = None if isinstance(repair, NoRepair) else repair
        self.eliminate_duplicates = DigestDuplicates()

    @abstractmethod
    def _start(self, n: int) -> Bits:
        """Draw `n` strings of the initial population, shape (n, n_var)."""

    @abstractmethod
    def _mate(self) -> Bits:
        """Make the next batch from the population, shape (n_children, n_var)."""

    @abstractmethod
    def _survive(self, X: Bits, F: Values) -> Integers:
        """Return the rows that stay of those that stand side by side: the population, then the batch just evaluated.

        `self.X` and `self.F` are still those of the population, without rows when the initial one comes in.
        """

    @classmethod
    def check_objectives(cls, n_objectives: int) -> None:
        """Raise a ValueError if the method is not made for so many objectives."""
        least, most = cls.n_objectives
        if n_objectives < least or (most is not None and n_objectives > most):
            raise ValueError(
                f"{cls.__name__} is made for {least} objectives{' or more' * (most is None)}, not for {n_objectives}; "
                "choose another algorithm, such as nsga2"
            )

    def _setup(self, problem: Problem, **settings: Any) -> None:
        self.check_objectives(problem.n_obj)
        if problem.has_constraints():
            raise ValueError(
                f"{type(self).__name__} knows no constraints, and this problem has some: "
                "give a repair=… that keeps every string feasible, or take another algorithm, such as pymoo's NSGA2"
            )
        self.X = np.empty((0, problem.n_var), np.bool_)
        self.F = np.empty((0, problem.n_obj))

    def _initialize_infill(self) -> Population | None:
        given = self._given()
        missing = self.pop_size - len(given)
        own = self._individuals(self._start(missing)) if missing > 0 else Population.empty()
        return self._batch(Population.merge(given, own))

    def _initialize_advance(self, infills: Population | None = None, **kwargs: Any) -> None:
        self.pop = Population.empty()
        self._advance(infills)

    def _infill(self) -> Population | None:
        return self._batch(self._individuals(self._mate()))

    def _advance(self, infills: Population | None = None, **kwargs: Any) -> None:
        if infills is None:
            return
        X = np.concatenate((self.X, _rows(infills, self.problem.n_var)))
        F = np.concatenate((self.F, [individual.F for individual in infills]))
        kept = self._survive(X, F)
        self.pop, self.X, self.F = Population.merge(self.pop, infills)[kept], X[kept], F[kept]

    def _set_optimum(self) -> None:
        if self.F.shape[1] == 1:
            self.opt = self.pop[[self.F[:, 0].argmin()]]
        else:
            best = np.flatnonzero(moocore.is_nondominated(self.F, keep_weakly=True))
            self.opt = self.pop[best[first_of_equals(self.X[best])]]

    def _given(self) -> Population:
        """Return what the caller gave for the initial population."""
        if self.sampling is None:
            return Population.empty()
        population = Initialization(self.sampling, repair=self.repair).do(
            self.problem, self.pop_size, random_state=self.random_state, algorithm=self
        )
        return self._not_empty(population)

    def _individuals(self, X: Bits) -> Population:
        """Return repaired individuals of the rows that are not empty."""
        X = X[X.any(axis=1)]
        population = Population.empty(len(X))
        for individual, row in zip(population, X, strict=True):  # a few times faster than pymoo's Population.new
            individual.X = row.copy()
        if self.repair is None or not len(population):
            return population
        population = self.repair.do(self.problem, population, random_state=self.random_state, algorithm=self)
        return self._not_empty(population)

    def _not_empty(self, population: Population) -> Population:
        return population[_rows(population, self.problem.n_var).any(axis=1)]

    def _batch(self, population: Population) -> Population | None:
        """Return what is evaluated of a batch, or None and end the search if there is nothing."""
        # This also makes the digests of the batch, which the search loop wants, and forgets those of the last one.
        distinct = self.eliminate_duplicates.do(population)
        if len(distinct):
            return population if self.sends_copies else distinct
        if not len(self.X):
            raise ValueError(f"{type(self).__name__}: no string of the initial population has a bit that is set")
        self.termination.force_termination = True
        return None


def _rows(population: Population, n_var: int) -> Bits:
    """Return the strings of a population as one array."""
    if not len(population):
        return np.empty((0, n_var), np.bool_)
    X = np.array([individual.X for individual in population])
    if X.dtype != np.bool_ or X.shape[1:] != (n_var,):
        raise ValueError(
            f"the individuals are arrays of {X.dtype} of shape {X.shape[1:]}; "
            f"give bool strings of the problem's {n_var} variables"
        )
    return X

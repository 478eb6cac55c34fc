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

__all__ = ["BitSearch", "Start", "first_of_equals", "random_members"]

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
        For a problem with constraints: these searches compare objectives only. For strings that are not bool or of
        another length than the problem's.

    Notes
    -----
    An empty string is never evaluated. Of equal strings in a batch, after the repair, one is evaluated, unless
    `sends_copies`. A batch that comes out empty ends the search, as in pymoo.
    """

    sends_copies: ClassVar[bool] = False
    """Whether the method evaluates a string as often as it stands in a batch."""

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

    def _setup(self, problem: Problem, **settings: Any) -> None:
        if problem.has_constraints():
            raise ValueError(
                f"{type(self).__name__} knows no constraints, and this problem has some: "
                "give a repair=… that keeps every string feasible, or take another algorithm, such as pymoo's NSGA2"
            )
        self.X = np.empty((0, problem.n_var), np.bool_)
        self.F = np.empty((0, problem.n_obj))

    def _initialize_infill(self) -> Population:
        given = self._given()
        missing = self.pop_size - len(given)
        return self._to_evaluate(Population.merge(given, self._made(self._start(missing))) if missing > 0 else given)

    def _initialize_advance(self, infills: Population | None = None, **kwargs: Any) -> None:
        self.pop = Population.empty()
        self._advance(infills)

    def _infill(self) -> Population | None:
        children = self._to_evaluate(self._made(self._mate()))
        if len(children):
            return children
        self.termination.force_termination = True
        return None

    def _advance(self, infills: Population | None = None, **kwargs: Any) -> None:
        if infills is None:
            return
        X = np.concatenate((self.X, _rows(infills, self.X.shape[1])))
        F = np.concatenate((self.F, [individual.F for individual in infills]))
        kept = self._survive(X, F)
        self.pop, self.X, self.F = Population.merge(self.pop, infills)[kept], X[kept], F[kept]

    def _set_optimum(self) -> None:
        if self.F.shape[1] == 1:
            self.opt = self.pop[[self.F[:, 0].argmin()]]
        else:
            self.opt = self.pop[moocore.is_nondominated(self.F, keep_weakly=True)]

    def _given(self) -> Population:
        """Return what the caller gave for the initial population."""
        if self.sampling is None:
            return Population.empty()
        return Initialization(self.sampling, repair=self.repair).do(
            self.problem, self.pop_size, random_state=self.random_state, algorithm=self
        )

    def _made(self, X: Bits) -> Population:
        """Return repaired individuals of the rows that are not empty."""
        population = Population.new("X", X[X.any(axis=1)])
        if self.repair is not None and len(population):
            population = self.repair.do(self.problem, population, random_state=self.random_state, algorithm=self)
        return population

    def _to_evaluate(self, population: Population) -> Population:
        """Return what is sent of a batch: no empty string, and no string twice."""
        population = population[_rows(population, self.X.shape[1]).any(axis=1)]
        # This also makes the digests of the batch, which the search loop wants, and forgets those of the last one.
        distinct = self.eliminate_duplicates.do(population)
        return population if self.sends_copies else distinct


def first_of_equals(rows: NDArray[Any]) -> Integers:
    """Return the numbers of the rows that equal none before them, ascending.

    Parameters
    ----------
    rows : ndarray, shape (n, n_columns)
        Strings of bool, or objectives.

    Examples
    --------
    >>> first_of_equals(np.array([[True, False], [True, True], [True, False]])).tolist()
    [0, 1]
    """
    # The sum turns -0.0 into 0.0.
    values = np.packbits(rows, axis=1) if rows.dtype == np.bool_ else np.ascontiguousarray(rows + 0)
    _, first = np.unique(values.view(f"V{values.shape[1] * values.itemsize}"), return_index=True)
    numbers: Integers = np.sort(first)
    return numbers


def random_members(masks: Bits, n: int, random_state: np.random.Generator) -> Integers:
    """Return `n` random columns of the ones in each row, drawn with replacement, shape (n, n_rows).

    Parameters
    ----------
    masks : ndarray of bool, shape (n_rows, n_columns)
        None of the rows empty.

    Examples
    --------
    >>> random_members(np.array([[True, False, True], [False, True, False]]), 4, np.random.default_rng(0)).tolist()
    [[2, 1], [0, 1], [2, 1], [2, 1]]
    """
    rows, columns = np.nonzero(masks)
    sizes = np.bincount(rows, minlength=len(masks))
    places = (random_state.random((n, len(masks))) * sizes).astype(np.int64)
    members: Integers = columns[np.cumsum(sizes) - sizes + places]
    return members


def _rows(population: Population, n_var: int) -> Bits:
    """Return the strings of a population as one array."""
    for individual in population:
        if individual.X.dtype != np.bool_ or individual.X.shape != (n_var,):
            raise ValueError(
                f"an individual is an array of {individual.X.dtype} of shape {individual.X.shape}; "
                f"give bool strings of the problem's {n_var} variables"
            )
    return np.array([individual.X for individual in population], np.bool_).reshape(len(population), n_var)

"""Table of the pymoo algorithms that work on bit strings, and a faster NSGA-II."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from math import comb
from typing import Any, TypeAlias

import numpy as np
from pymoo.algorithms.moo import nsga2
from pymoo.core.algorithm import Algorithm
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.repair import NoRepair
from pymoo.core.survival import Survival
from pymoo.util.misc import random_permutations

from moerank.arrays import Array, Integers, Matrix, Vector
from moerank.checks import Parameters, check_at_least, unknown
from moerank.evolution.bit_search import BitSearch, front_numbers, refuse_constraints
from moerank.evolution.daea import DAEA
from moerank.evolution.mffs import MFFS
from moerank.evolution.operators import (
    DigestDuplicates,
    RowCrossover,
    RowMutation,
    digests_of,
    row_digests,
    with_digests,
)
from moerank.evolution.prdh import PRDH
from moerank.evolution.sparse_ea import SparseEA
from moerank.evolution.staircase import Staircase

Operators: TypeAlias = Parameters
"""Operators of pymoo by the names of the arguments of its algorithms."""

Factory: TypeAlias = Callable[[int, Operators], Algorithm]
"""Function of the size of the population and the operators of a stage that returns a pymoo algorithm."""


class NSGA2(nsga2.NSGA2):  # type: ignore[misc]
    """pymoo's NSGA-II, which mates and selects on arrays; `settings` are pymoo's.

    With the same seed the draws are those of pymoo, bit for bit. So are the populations, except for ties in crowding
    distance: a stable sort orders them here, where pymoo's sort depends on the processor. Operators that are not of
    this package mate as pymoo's do. Problems with constraints are refused.
    """

    def __init__(self, pop_size: int = 100, **settings: object) -> None:
        super().__init__(pop_size, survival=_RankAndCrowding(filter_infeasible=False), **settings)
        operators = isinstance(self.mating.crossover, RowCrossover), isinstance(self.mating.mutation, RowMutation)
        self._mates_rows = all(operators) and isinstance(self.eliminate_duplicates, DigestDuplicates)

    def _setup(self, problem: Problem, **settings: object) -> None:
        refuse_constraints(self, problem)

    def _infill(self) -> Population | None:
        if not self._mates_rows:
            return super()._infill()
        seen, children = set(digests_of(self.pop)), dict[bytes, Array]()
        rows = [individual.X for individual in self.pop]
        F = np.array([individual.F for individual in self.pop])
        crowding = np.array([individual.data["crowding"] for individual in self.pop])
        for _ in range(self.mating.n_max_iterations):
            n_matings = -(-(self.n_offsprings - len(children)) // 2)
            X = self._mate(rows, _tournament_winners(F, crowding, 2 * n_matings, self.random_state))
            for digest, row in zip(row_digests(X), X, strict=True):
                if digest not in seen and len(children) < self.n_offsprings:
                    seen.add(digest)
                    children[digest] = row.copy()  # the individuals that survive do not keep a whole batch in memory
            if len(children) == self.n_offsprings:
                break
        if not children:
            self.termination.force_termination = True
            return None
        return with_digests(Population.new("X", list(children.values())), children)

    def _mate(self, rows: list[Array], winners: Integers) -> Array:
        """Return two children of each two winners, the first ones before the second ones."""
        parents = np.array([rows[i] for i in winners.reshape(-1, 2).T.ravel()])
        X = self.mating.crossover.cross(self.problem, parents, random_state=self.random_state)
        X = self.mating.mutation.mutate(self.problem, X, random_state=self.random_state, algorithm=self)
        if isinstance(self.repair, NoRepair):
            return X
        return np.asarray(self.repair._do(self.problem, X, random_state=self.random_state, algorithm=self))

    def _set_optimum(self) -> None:
        self.opt = self.pop[[i for i, individual in enumerate(self.pop) if individual.data["rank"] == 0]]


def _tournament_winners(F: Matrix, crowding: Vector, n: int, random_state: np.random.Generator) -> Integers:
    """Return the winners of `n` tournaments of two, by dominance, crowding distance or chance."""
    drawn = random_permutations(-(-2 * n // len(F)), len(F), random_state=random_state)[: 2 * n]
    a, b = drawn.reshape(n, 2).T
    better, worse = (F[a] < F[b]).any(axis=1), (F[a] > F[b]).any(axis=1)
    level = better == worse
    first = np.where(level, crowding[a] > crowding[b], better)
    tied = np.flatnonzero(level & (crowding[a] == crowding[b]))
    first[tied] = random_state.integers(2, size=len(tied)) == 0
    return np.where(first, a, b)


class _RankAndCrowding(Survival):  # type: ignore[misc]
    """Survival of the first fronts; the last one is cut by crowding distance."""

    def _do(
        self,
        problem: Problem,
        pop: Population,
        *,
        n_survive: int,
        random_state: np.random.Generator,
        **settings: object,
    ) -> Population:
        rank = front_numbers(F := np.array([individual.F for individual in pop]))
        crowding = _crowding_of_pymoo(F, rank)
        rows = np.argsort(rank, kind="stable")
        # All of the last front at first.
        rows = rows[: np.searchsorted(rank[rows], rank[rows[n_survive - 1]], side="right")]
        if len(rows) > n_survive:
            front = np.flatnonzero(rank == rank[rows[-1]])
            drawn = front[random_state.permutation(len(front))]
            last = drawn[np.argsort(crowding[drawn], kind="stable")[len(rows) - n_survive :]][::-1]
            rows = np.concatenate((rows[: n_survive - len(last)], last))
        survivors = pop[rows]
        for individual, number, distance in zip(survivors, rank[rows], crowding[rows], strict=True):
            individual.data |= {"rank": number, "crowding": distance}
        return survivors


def _crowding_of_pymoo(F: Matrix, front: Integers) -> Vector:
    """Return the crowding distance of each point within its own front, all at once and with the bits of pymoo's.

    It is the mean over the objectives of `crowding_distances`, except that an objective of which all values in a front
    are equal adds 0 for the ends, too.
    """
    size = np.bincount(front)
    bounds = np.append(0, np.cumsum(size))
    total, gap = np.zeros(len(F)), np.empty(len(F) + 1)
    with np.errstate(invalid="ignore"):
        for values in F.T:
            order = np.lexsort((values, front))
            value = values[order]
            gap[1:-1] = value[1:] - value[:-1]
            gap[bounds] = np.inf
            span = value[bounds[1:] - 1] - value[bounds[:-1]]
            span[span == 0] = np.nan
            shares = np.stack((gap[:-1], gap[1:])) / np.repeat(span, size)
            shares[np.isnan(shares)] = 0.0
            total[order] += shares[0] + shares[1]
    total[size[front] <= 2] = np.inf
    return total / F.shape[1]


def _with_directions(path: str, population: int, operators: Operators, n_objectives: int) -> Algorithm:
    return _imported(path)(_directions(population, n_objectives), pop_size=population, **operators)


def _spea2(population: int, operators: Operators, n_objectives: int) -> Algorithm:
    from pymoo.algorithms.moo.spea2 import SPEA2, SPEA2Survival

    # All instances share the survival of the default argument, which remembers earlier runs.
    return SPEA2(pop_size=population, survival=SPEA2Survival(normalize=True), **operators)


def _agemoea2(population: int, operators: Operators, n_objectives: int) -> Algorithm:
    from pymoo.algorithms.moo.age2 import AGEMOEA2, AGEMOEA2Survival

    def pairwise_distances(front: Matrix, p: float) -> Matrix:
        # pymoo divides by the distance from the ideal point, which is 0 for a front of one point.
        at_ideal = ~front.any(axis=1, keepdims=True)
        return AGEMOEA2Survival.pairwise_distances(np.where(at_ideal, 1e-9, front), p)

    algorithm = AGEMOEA2(pop_size=population, **operators)
    algorithm.survival.pairwise_distances = pairwise_distances
    return algorithm


def _moead(population: int, operators: Operators, n_objectives: int) -> Algorithm:
    from pymoo.algorithms.moo.moead import ParallelMOEAD

    # MOEA/D replaces neighbours one by one and has no elimination of duplicates.
    usable = {name: operator for name, operator in operators.items() if name != "eliminate_duplicates"}
    algorithm = ParallelMOEAD(_directions(population, n_objectives), n_neighbors=min(20, population), **usable)
    # Adaptive mutation needs the algorithm, which only MOEA/D does not pass to its operators.
    algorithm.mating.do = partial(algorithm.mating.do, algorithm=algorithm)
    return algorithm


def _bit_search(name: str, population: int, operators: Operators, n_objectives: int) -> Algorithm:
    usable = {key: operators[key] for key in ("sampling", "repair") if key in operators}
    return BIT_SEARCHES[name](population, **usable)


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(f"pymoo.algorithms.moo.{module}"), name)


def _directions(population: int, n_objectives: int) -> Matrix:
    """Return the largest set of at most `population` evenly spread directions."""
    from pymoo.util.ref_dirs import get_reference_directions

    if n_objectives == 1:
        return np.ones((1, 1))
    n_partitions = 1
    while comb(n_partitions + n_objectives, n_objectives - 1) <= population:
        n_partitions += 1
    return np.asarray(get_reference_directions("uniform", n_objectives, n_partitions=n_partitions), np.float64)


BIT_SEARCHES: dict[str, type[BitSearch]] = {
    "staircase": Staircase,
    "sparseea": SparseEA,
    "daea": DAEA,
    "prdh": PRDH,
    "mffs": MFFS,
}
"""Searches with their own variation, for strings in which each bit selects a feature."""

ALGORITHMS: dict[str, Callable[[int, Operators, int], Algorithm]] = {
    "nsga2": lambda population, operators, n_objectives: NSGA2(population, **operators),
    "nsga3": partial(_with_directions, "nsga3:NSGA3"),
    "spea2": _spea2,
    "agemoea2": _agemoea2,
    "smsemoa": lambda population, operators, n_objectives: _imported("sms:SMSEMOA")(population, **operators),
    "rvea": partial(_with_directions, "rvea:RVEA"),
    "moead": _moead,
    **{name: partial(_bit_search, name) for name in BIT_SEARCHES},
}

DECOMPOSING = ("rvea", "moead")
"""Algorithms that need several directions, and so several objectives."""


def make_algorithm(algorithm: str | Factory, population: int, operators: Operators, n_objectives: int = 2) -> Algorithm:
    """Return a new pymoo algorithm for a stage.

    Parameters
    ----------
    algorithm : str or callable
        A name from `ALGORITHMS`, or your own factory ``(population, operators) -> algorithm``.
    population : int, at least 2
    operators : dict
        Result of ``operators()`` of a stage. The searches in `BIT_SEARCHES` take the sampling and the repair alone;
        without a sampling they start as in their papers.
    n_objectives : int, default 2

    Raises
    ------
    ValueError
        For an unknown name, with the nearest one, and for a number of objectives that the algorithm is not made for.
    """
    check_at_least(2, population=population)
    if callable(algorithm):
        return algorithm(population, operators)
    if algorithm not in ALGORITHMS:
        raise ValueError(unknown("algorithm", algorithm, ALGORITHMS))
    if n_objectives == 1 and algorithm in DECOMPOSING:
        able = ", ".join(name for name in ALGORITHMS if name not in DECOMPOSING)
        raise ValueError(f"{algorithm} divides a front of several objectives, and there is one; choose one of {able}")
    if algorithm in BIT_SEARCHES:
        BIT_SEARCHES[algorithm].check_objectives(n_objectives)
    return ALGORITHMS[algorithm](population, operators, n_objectives)

"""Table of the pymoo algorithms that work on bit strings, and a faster NSGA-II."""

from collections.abc import Callable, Sequence
from functools import partial
from pkgutil import resolve_name
from typing import Any, TypeAlias

import numpy as np
from pymoo.algorithms.moo import nsga2
from pymoo.core.algorithm import Algorithm
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.repair import NoRepair
from pymoo.core.sampling import Sampling
from pymoo.util.misc import random_permutations

from moerank.arrays import Array, Integers, Matrix, Vector
from moerank.checks import Parameters, check_at_least, check_choice
from moerank.evolution.bit_search import (
    BitSearch,
    crowding_distances,
    front_numbers,
    refuse_constraints,
)
from moerank.evolution.daea import DAEA
from moerank.evolution.memo import ArrayEvaluator
from moerank.evolution.mffs import MFFS
from moerank.evolution.operators import (
    DigestDuplicates,
    RowCrossover,
    RowMutation,
    new_rows,
    row_digests,
)
from moerank.evolution.prdh import PRDH
from moerank.evolution.sparse_ea import SparseEA
from moerank.evolution.staircase import Staircase
from moerank.solvers import read_solver

Operators: TypeAlias = Parameters
"""Operators of pymoo by the names of the arguments of its algorithms."""

Factory: TypeAlias = Callable[[int, Operators], Algorithm]
"""Function that returns a pymoo algorithm for a population size and the operators of a stage."""


class NSGA2(nsga2.NSGA2):  # type: ignore[misc]
    """pymoo's NSGA-II on arrays; individuals are made only when `pop` or `opt` is read.

    `settings` are pymoo's. Crossover and mutation must be a `RowCrossover` and a `RowMutation`, and `DigestDuplicates`
    eliminates duplicates: all stages have such operators. With the same seed the draws are those of pymoo,
    bit for bit. So are the populations, except for ties in crowding distance: a stable sort orders them here, where
    pymoo's sort depends on the processor. With an evaluator other than `ArrayEvaluator` it is pymoo's NSGA-II. Problems
    with constraints are refused.
    """

    is_initialized: bool

    # Bits are packed if the operators take them so: long strings then need an eighth of the time to copy.
    _strings: Any = None
    F: Matrix
    _digests: list[bytes]
    _born: list[int]  # the generation of each string
    _individuals: Any = None  # the population as individuals, once it was read

    def _setup(self, problem: Problem, **settings: object) -> None:
        refuse_constraints(self, problem)

    @property
    def pop(self) -> Any:
        """The population."""
        if self._individuals is None and self._strings is not None:
            X = self._unpacked(self._strings)
            self._individuals = Population.new("X", X, "F", self.F)
            self._individuals.apply(lambda individual: individual.evaluated.update("FGH"))
            self._individuals.set(
                rank=self._rank, crowding=self._crowding, n_gen=self._born, n_iter=self._born
            )
        return self._individuals

    @pop.setter
    def pop(self, population: Any) -> None:
        self._individuals = population

    @property
    def opt(self) -> Population | None:
        """The first front of the population."""
        return None if self.pop is None else self.pop[self.pop.get("rank") == 0]

    @opt.setter
    def opt(self, population: Population | None) -> None:
        """Ignore what pymoo sets."""

    def _set_optimum(self) -> None:
        """Do nothing, because `opt` is made when it is read."""

    def next(self) -> None:
        """Make and evaluate a batch, and select the next population."""
        if not isinstance(self.evaluator, ArrayEvaluator):
            super().next()
            return
        batch = self._children() if self.is_initialized else self._sampled()
        if batch is not None:
            X, digests = batch
            problem_rows = X if getattr(self.problem, "packs", False) else self._unpacked(X)
            F = self.evaluator.eval_rows(self.problem, problem_rows, digests, self)
            self._select(X, F, digests)
        self.is_initialized = True
        self._post_advance()
        if self.termination.has_terminated():
            self.finalize()

    def _sampled(self) -> tuple[Array, list[bytes]]:
        """Return the initial strings, without duplicates, with their digests."""
        self._initialize()
        X = self.initialization.sampling
        if isinstance(X, Sampling):
            X = X._do(self.problem, self.pop_size, random_state=self.random_state, algorithm=self)
        X = self._repaired(X)
        operators = self.mating.crossover, self.mating.mutation
        self._packs = X.dtype == np.bool_ and isinstance(self.repair, NoRepair)
        self._packs &= all(operator.packs for operator in operators)
        X = np.packbits(X, axis=1) if self._packs else X
        digests = row_digests(X)
        rows = new_rows(digests, ())
        return X[rows], [digests[row] for row in rows]

    def _children(self) -> tuple[Array, list[bytes]] | None:
        """Return a batch of new strings with their digests, or None if mating gives none."""
        seen, digests = set(self._digests), list[bytes]()
        parts = []
        for _ in range(self.mating.n_max_iterations):
            n_missing = self.n_offsprings - len(digests)
            n_matings = -(-n_missing // 2)
            winners = _tournament_winners(self.F, self._crowding, 2 * n_matings, self.random_state)
            X = self._mate(winners)
            child_digests = row_digests(X)
            rows = new_rows(child_digests, seen)[:n_missing]
            parts.append(X[rows])
            digests += [child_digests[row] for row in rows]
            seen.update(digests)
            if len(digests) == self.n_offsprings:
                break
        if not digests:
            self.termination.force_termination = True
            return None
        return np.concatenate(parts), digests

    def _mate(self, winners: Integers) -> Array:
        """Return two children of each pair of winners, all first children before the second ones."""
        X = self._strings[winners.reshape(-1, 2).T.ravel()]
        X = self.mating.crossover.cross(self.problem, X, random_state=self.random_state)
        X = self.mating.mutation.mutate(
            self.problem, X, random_state=self.random_state, algorithm=self
        )
        return self._repaired(X)

    def _repaired(self, X: Array) -> Array:
        return self.repair._do(self.problem, X, random_state=self.random_state, algorithm=self)

    def _unpacked(self, X: Array) -> Array:
        """Return the rows as bools if they are packed."""
        if not self._packs:
            return X
        return np.unpackbits(X, axis=1, count=self.problem.n_var).view(bool)

    def _select(self, X: Array, F: Matrix, digests: list[bytes]) -> None:
        """Replace the population by the survivors of it and an evaluated batch; the initial batch survives."""
        n_survive = len(F)
        born = [self.n_iter] * len(F)
        if self.is_initialized:
            X, F = np.concatenate((self._strings, X)), np.concatenate((self.F, F))
            digests, born = self._digests + digests, self._born + born
            n_survive = min(self.pop_size, len(F))
        rows, self._rank, self._crowding = select_rows(F, n_survive, self.random_state)
        self._strings, self.F = X[rows], F[rows]
        self._digests, self._born = [digests[row] for row in rows], [born[row] for row in rows]
        self._individuals = None


def _tournament_winners(
    F: Matrix, crowding: Vector, n: int, random_state: np.random.Generator
) -> Integers:
    """Return the indices of the winners of `n` tournaments of two, by dominance, crowding distance or chance."""
    entrants = random_permutations(-(-2 * n // len(F)), len(F), random_state=random_state)[: 2 * n]
    a, b = entrants.reshape(n, 2).T
    better, worse = (F[a] < F[b]).any(axis=1), (F[a] > F[b]).any(axis=1)
    level = better == worse
    a_wins = np.where(level, crowding[a] > crowding[b], better)
    tied = np.flatnonzero(level & (crowding[a] == crowding[b]))
    a_wins[tied] = random_state.integers(2, size=len(tied)) == 0
    return np.where(a_wins, a, b)


def select_rows(
    F: Matrix, n: int, random_state: np.random.Generator
) -> tuple[Integers, Integers, Vector]:
    """Return the indices of `n` survivors of the first fronts, with their fronts and their crowding distances.

    The last front is cut by crowding distance.
    """
    rank = front_numbers(F)
    crowding = crowding_distances(F, rank) / F.shape[1]  # as pymoo has it
    rows = np.argsort(rank, kind="stable")
    n_with_last_front = np.searchsorted(rank[rows], rank[rows[n - 1]], side="right")
    rows = rows[:n_with_last_front]
    if len(rows) > n:
        front = np.flatnonzero(rank == rank[rows[-1]])
        shuffled = front[random_state.permutation(len(front))]
        ascending = shuffled[np.argsort(crowding[shuffled], kind="stable")]
        n_of_earlier_fronts = len(rows) - len(front)
        widest = ascending[::-1][: n - n_of_earlier_fronts]
        rows = np.concatenate((rows[:n_of_earlier_fronts], widest))
    return rows, rank[rows], crowding[rows]


def _nsga2(population: int, operators: Operators, n_objectives: int) -> Algorithm:
    classes = {
        "sampling": Sampling | np.ndarray,
        "crossover": RowCrossover,
        "mutation": RowMutation,
        "eliminate_duplicates": DigestDuplicates,
    }
    if all(isinstance(operators.get(name), kind) for name, kind in classes.items()):
        return NSGA2(population, **operators)
    return nsga2.NSGA2(population, **operators)


def _with_directions(
    path: str, population: int, operators: Operators, n_objectives: int
) -> Algorithm:
    directions = _directions(population, n_objectives)
    return resolve_name(path)(directions, pop_size=population, **operators)


def _spea2(population: int, operators: Operators, n_objectives: int) -> Algorithm:
    from pymoo.algorithms.moo.spea2 import SPEA2, SPEA2Survival

    # All instances share the survival of the default argument, which remembers earlier runs.
    return SPEA2(pop_size=population, survival=SPEA2Survival(normalize=True), **operators)


def _agemoea2(population: int, operators: Operators, n_objectives: int) -> Algorithm:
    from pymoo.algorithms.moo.age2 import AGEMOEA2, AGEMOEA2Survival

    def pairwise_distances(front: Matrix, p: float) -> Matrix:
        # pymoo divides by the distance from the ideal point, which is 0 for a front of one point.
        is_ideal = ~front.any(axis=1, keepdims=True)
        return AGEMOEA2Survival.pairwise_distances(np.where(is_ideal, 1e-9, front), p)

    algorithm = AGEMOEA2(pop_size=population, **operators)
    algorithm.survival.pairwise_distances = pairwise_distances
    return algorithm


def _moead(population: int, operators: Operators, n_objectives: int) -> Algorithm:
    from pymoo.algorithms.moo.moead import ParallelMOEAD

    # MOEA/D replaces neighbours one by one and has no elimination of duplicates.
    usable = {
        name: operator for name, operator in operators.items() if name != "eliminate_duplicates"
    }
    directions = _directions(population, n_objectives)
    initial = usable.get("sampling")
    if isinstance(initial, np.ndarray) and len(initial) != len(directions):
        raise ValueError(
            f"moead has a string for each of its {len(directions)} directions. "
            "Give as many in initial"
        )
    algorithm = ParallelMOEAD(directions, n_neighbors=min(20, population), **usable)
    # Adaptive mutation needs the algorithm, which only MOEA/D does not pass to its operators.
    algorithm.mating.do = partial(algorithm.mating.do, algorithm=algorithm)
    return algorithm


def _bit_search(
    name: str,
    population: int,
    operators: Operators,
    n_objectives: int,
    *,
    without: str | Sequence[str] = (),
) -> Algorithm:
    BIT_SEARCHES[name].check_objectives(n_objectives)
    usable = {key: operators[key] for key in ("sampling", "repair") if key in operators}
    return BIT_SEARCHES[name](population, **usable, without=without)


def _directions(population: int, n_objectives: int) -> Matrix:
    """Return the largest set of at most `population` evenly spread directions."""
    from pymoo.util.ref_dirs import get_reference_directions
    from pymoo.util.reference_direction import get_partition_closest_to_points

    n_partitions = max(1, get_partition_closest_to_points(population, n_objectives))
    return np.asarray(
        get_reference_directions("uniform", n_objectives, n_partitions=n_partitions), float
    )


BIT_SEARCHES: dict[str, type[BitSearch]] = {
    "staircase": Staircase,
    "sparseea": SparseEA,
    "daea": DAEA,
    "prdh": PRDH,
    "mffs": MFFS,
}
"""Searches with their own variation, for strings in which each bit selects a feature."""

ALGORITHMS: dict[str, Callable[..., Algorithm]] = {
    "nsga2": _nsga2,
    "nsga3": partial(_with_directions, "pymoo.algorithms.moo.nsga3:NSGA3"),
    "spea2": _spea2,
    "agemoea2": _agemoea2,
    "smsemoa": lambda size, operators, _: resolve_name("pymoo.algorithms.moo.sms:SMSEMOA")(
        size, **operators
    ),
    "rvea": partial(_with_directions, "pymoo.algorithms.moo.rvea:RVEA"),
    "moead": _moead,
    **{name: partial(_bit_search, name) for name in BIT_SEARCHES},
}

# Algorithms that need several directions, and so several objectives.
DECOMPOSING = ("rvea", "moead")


def make_algorithm(
    algorithm: str | Factory, population: int, operators: Operators, n_objectives: int = 2
) -> Algorithm:
    """Return a new pymoo algorithm for a stage.

    Parameters
    ----------
    algorithm : str or callable
        A name from `ALGORITHMS`, or your own factory ``(population, operators) -> algorithm``. A search of bit strings
        can leave out parts, as in ``staircase[without=restarts]``; see `BitSearch`.
    population : int, at least 2
    operators : dict
        Result of ``operators()`` of a stage. The searches in `BIT_SEARCHES` use only the sampling and the repair;
        without a sampling they start as in their papers.
    n_objectives : int, default 2

    Raises
    ------
    ValueError
        For an unknown name (the message suggests the nearest one), and for a wrong number of objectives.
    """
    check_at_least(2, population=population)
    if callable(algorithm):
        made_algorithm = algorithm(population, operators)
        if not isinstance(made_algorithm, Algorithm):
            raise ValueError(
                f"algorithm: the function returned {made_algorithm!r:.80}; "
                "it must return a pymoo algorithm"
            )
        return made_algorithm
    algorithm, options = read_solver(algorithm)
    if options and (algorithm not in BIT_SEARCHES or options.keys() != {"without"}):
        raise ValueError(
            f"{algorithm} takes no {', '.join(options)}; "
            "only searches of bit strings take [without=…]"
        )
    check_choice(ALGORITHMS, algorithm=algorithm)
    if n_objectives == 1 and algorithm in DECOMPOSING:
        able = ", ".join(name for name in ALGORITHMS if name not in DECOMPOSING)
        raise ValueError(
            f"{algorithm} needs several objectives, and there is one; choose one of {able}"
        )
    return ALGORITHMS[algorithm](population, operators, n_objectives, **options)

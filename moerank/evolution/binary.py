"""Operators for long bit strings: a few random draws per individual instead of one per bit.

Individuals are rows of a bool matrix with up to a million columns. pymoo's own binary operators draw a double or a
permutation entry for every gene and copy the whole population five times per generation; these hold to pymoo's
interface, work row by row and give every child memory of its own once. All randomness comes from the `random_state`
that pymoo hands over.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.crossover import Crossover
from pymoo.core.mutation import Mutation
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.repair import NoRepair
from pymoo.core.sampling import Sampling

__all__ = [
    "DENSITY",
    "DensitySampling",
    "KeepAsIs",
    "SparseBitFlip",
    "SubsetSizeSampling",
    "UniformCrossover",
]

Bits = NDArray[np.bool_]

DENSITY = (0.05, 0.5)
"""Range of the shares of ones in an initial population; started at one half a search never gets down."""


class DensitySampling(Sampling):
    """Random bit strings whose share of ones differs from individual to individual.

    Each individual draws its density log-uniformly from [`low`, `high`], then each bit independently with that
    probability; an individual that came out empty gets one random bit. Selection hardly changes the density of a
    long string within a hundred generations, so the densities a search can use must be there from the start.

    Parameters
    ----------
    low, high : float, default 0.05 and 0.5
        Range of the densities, 0 < low <= high <= 1.

    Raises
    ------
    ValueError
        If the range is empty or leaves (0, 1].

    Examples
    --------
    >>> X = DensitySampling(0.1, 0.2)._do(Problem(n_var=1000), 3, random_state=np.random.default_rng(0))
    >>> X.shape, X.dtype, X.sum(axis=1).tolist()
    ((3, 1000), dtype('bool'), [143, 98, 114])
    """

    def __init__(self, low: float = DENSITY[0], high: float = DENSITY[1]) -> None:
        super().__init__()
        if not 0 < low <= high <= 1:
            raise ValueError(f"DensitySampling: need 0 < low <= high <= 1, not low={low}, high={high}")
        self.low = low
        self.high = high

    def _do(
        self, problem: Problem, n_samples: int, *args: Any, random_state: np.random.Generator, **kwargs: Any
    ) -> Bits:
        density = self.low * (self.high / self.low) ** random_state.random(n_samples)
        X = np.empty((n_samples, problem.n_var), np.bool_)
        for row, share in zip(X, density, strict=True):
            np.less(random_state.random(problem.n_var, np.float32), share, out=row)
            if not row.any():
                row[random_state.integers(problem.n_var)] = True
        return X


class SubsetSizeSampling(Sampling):
    """Random subsets with a uniform number of members: a size from 1 … n_var, then any subset of that size.

    Parameters
    ----------
    largest : int, optional
        The largest size, by default n_var.

    Examples
    --------
    >>> X = SubsetSizeSampling()._do(Problem(n_var=8), 4, random_state=np.random.default_rng(0))
    >>> X.sum(axis=1).tolist()
    [7, 6, 5, 3]
    """

    def __init__(self, largest: int | None = None) -> None:
        super().__init__()
        self.largest = largest

    def _do(
        self, problem: Problem, n_samples: int, *args: Any, random_state: np.random.Generator, **kwargs: Any
    ) -> Bits:
        sizes = random_state.integers(1, self.largest or problem.n_var, n_samples, endpoint=True)
        X = np.zeros((n_samples, problem.n_var), np.bool_)
        for row, size in zip(X, sizes, strict=True):
            row[_distinct(problem.n_var, size, random_state)] = True
        return X


class UniformCrossover(Crossover):
    """Exchange each gene of two parents with probability one half.

    One random bit per gene; the children are ``a ^ d`` and ``b ^ d`` with ``d`` the exchanged differences. Where a
    mating does not take place they are copies of the parents. As in pymoo all first children come before all second.

    Parameters
    ----------
    prob : float, default 0.9
        Probability that a mating takes place at all.

    Examples
    --------
    >>> from pymoo.core.individual import Individual
    >>> pair = [Individual(X=np.ones(6, bool)), Individual(X=np.zeros(6, bool))]
    >>> children = UniformCrossover(prob=1.0).do(Problem(n_var=6), [pair], random_state=np.random.default_rng(0))
    >>> children.get("X").astype(int).sum(axis=0).tolist()
    [1, 1, 1, 1, 1, 1]
    """

    def __init__(self, prob: float = 0.9) -> None:
        super().__init__(n_parents=2, n_offsprings=2, prob=prob)

    def do(
        self,
        problem: Problem,
        pop: Any,
        parents: Any = None,
        *args: Any,
        random_state: np.random.Generator,
        **kwargs: Any,
    ) -> Population:
        """Cross the pairs of individuals `pop`, or those that the index pairs `parents` take from `pop`."""
        matings = pop if parents is None else [pop[pair] for pair in parents]
        taking_place = random_state.random(len(matings)) < self.prob.get()
        first, second = [], []
        for (mother, father), takes_place in zip(matings, taking_place, strict=True):
            a, b = self._row(mother), self._row(father)
            children = self._exchange(a, b, random_state) if takes_place else (a.copy(), b.copy())
            first.append(children[0])
            second.append(children[1])
        return Population.new("X", first + second)

    def _row(self, individual: Any) -> NDArray[Any]:
        return _bits(individual, self)

    def _exchange(
        self, a: NDArray[Any], b: NDArray[Any], random_state: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the two children of a mating that takes place."""
        random_bytes = np.frombuffer(random_state.bytes(-(-len(a) // 8)), np.uint8)
        exchanged = np.unpackbits(random_bytes, count=len(a))
        exchanged &= a.view(np.uint8) ^ b.view(np.uint8)
        children = np.empty(len(a), np.bool_), np.empty(len(a), np.bool_)
        for parent, child in zip((a, b), children, strict=True):
            np.bitwise_xor(parent.view(np.uint8), exchanged, out=child.view(np.uint8))
        return children


class SparseBitFlip(Mutation):
    """Flip every bit independently with a small probability, at the cost of the flips alone.

    The number of flips is drawn from Binomial(n_var, prob_var), then that many distinct positions: the same
    distribution as one coin per bit, O(flips) draws in place of O(n_var).

    Parameters
    ----------
    prob_var : float, optional
        Probability of each flip, by default 1 / n_var.

    Examples
    --------
    >>> population = Population.new("X", [np.zeros(1000, bool)] * 4)
    >>> mutated = SparseBitFlip(0.01).do(Problem(n_var=1000), population, random_state=np.random.default_rng(0))
    >>> mutated.get("X").sum(axis=1).tolist()
    [11, 8, 5, 4]
    """

    def __init__(self, prob_var: float | None = None) -> None:
        super().__init__(prob=1.0, prob_var=prob_var)

    def do(
        self,
        problem: Problem,
        pop: Population,
        inplace: bool = True,
        *args: Any,
        random_state: np.random.Generator,
        **kwargs: Any,
    ) -> Population:
        """Mutate the individuals of `pop`, or copies of them if not `inplace`; the old rows stay as they were."""
        if not inplace:
            pop = deepcopy(pop)
        counts = random_state.binomial(problem.n_var, self.get_prob_var(problem), len(pop))
        for individual, count in zip(pop, counts, strict=True):
            if count:
                row = self._row(individual).copy()
                self._flip(row, _distinct(problem.n_var, count, random_state))
                individual.X = row
        return pop

    def _row(self, individual: Any) -> NDArray[Any]:
        return _bits(individual, self)

    def _flip(self, row: NDArray[Any], positions: NDArray[np.int64]) -> None:
        row[positions] = ~row[positions]


class KeepAsIs(NoRepair):
    """The repair that leaves individuals alone; pymoo's own copies every row twice to change none.

    Examples
    --------
    >>> from pymoo.algorithms.moo.nsga2 import NSGA2
    >>> algorithm = NSGA2(100, sampling=DensitySampling(), repair=KeepAsIs())
    """

    def do(self, problem: Problem, pop: Population, **kwargs: Any) -> Population:
        """Return `pop` itself."""
        return pop


def _bits(individual: Any, operator: Any) -> Bits:
    X: Bits = individual.X
    if X.dtype != np.bool_:
        raise TypeError(
            f"{operator.name} works on bool rows, but an individual holds {X.dtype}; "
            "give the algorithm a bool sampling such as DensitySampling()"
        )
    return X


def _distinct(n: int, size: int, random_state: np.random.Generator) -> NDArray[np.int64]:
    """Return `size` distinct integers below `n`, every subset equally likely."""
    if size == 1:
        return random_state.integers(n, size=1)
    positions: NDArray[np.int64] = random_state.choice(n, size, replace=False, shuffle=False)
    return positions

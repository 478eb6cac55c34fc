"""Operators for long bit strings, and for mixed strings of bits and reals.

Bit strings are rows of a bool matrix with up to a million columns. pymoo's own binary operators draw a number for every
bit and copy the whole population five times per generation; these draw a few numbers for each individual and copy a row
once. All randomness comes from the `random_state` that pymoo passes.

Crossovers have a method ``cross`` and mutations a method ``mutate`` for the rows of one array: real numbers, or bits,
eight in a byte (`pack_rows`). pymoo calls ``do`` with individuals.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pymoo.core.algorithm import Algorithm
from pymoo.core.crossover import Crossover
from pymoo.core.mutation import Mutation
from pymoo.core.operator import Operator
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.sampling import Sampling
from pymoo.operators.crossover.sbx import cross_sbx
from pymoo.operators.mutation.pm import mut_pm

from moerank.arrays import Array, Integers, Mask, Matrix

Packed: TypeAlias = NDArray[np.uint8]
"""Rows of bits, eight in a byte."""

CROSSOVER = 0.9
"""Probability that two parents are crossed, as in NSGA-II."""

DENSITY = (0.05, 0.5)
"""Range of the shares of ones in an initial population; from one half a search never gets down."""


class DensitySampling(Sampling):
    """Random bit strings with a share of ones drawn for each individual.

    The share is drawn log-uniformly from [`low`, `high`], then each bit independently with that probability; an empty
    individual gets one random bit. Selection hardly changes the share within a hundred generations of long strings, so
    an initial population must have all useful ones.

    Parameters
    ----------
    low, high : float, default 0.05 and 0.5
        Range of the shares, 0 < low <= high <= 1.

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

    def _do(self, problem: Problem, n_samples: int, *args: object, random_state: Generator, **kwargs: object) -> Mask:
        density = self.low * (self.high / self.low) ** random_state.random(n_samples)
        X = np.empty((n_samples, problem.n_var), np.bool_)
        for row, share in zip(X, density, strict=True):
            np.less(random_state.random(len(row), np.float32), share, out=row)
            if not row.any():
                row[random_state.integers(len(row))] = True
        return X


class SubsetSizeSampling(Sampling):
    """Random subsets with a uniform size from 1 … n_var, then any subset of that size.

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

    def _do(self, problem: Problem, n_samples: int, *args: object, random_state: Generator, **kwargs: object) -> Mask:
        sizes = random_state.integers(1, self.largest or problem.n_var, n_samples, endpoint=True)
        X = np.zeros((n_samples, problem.n_var), np.bool_)
        for row, size in zip(X, sizes, strict=True):
            row[_distinct(problem.n_var, size, random_state)] = True
        return X


def pack_rows(X: Array) -> Array:
    """Return bool rows (n, n_bits) as bytes, shape (n, ⌈n_bits / 8⌉), and other rows as they are."""
    return np.packbits(X, axis=1) if X.dtype == np.bool_ else X


def unpack_rows(rows: Array, n_bits: int, room: Mask | None = None) -> Array:
    """Return packed rows as bool, shape (n, n_bits), in the first rows of `room` if it is given; others as they are.

    Examples
    --------
    >>> unpack_rows(pack_rows(np.array([[True, False, True]])), 3).tolist()
    [[True, False, True]]
    """
    if rows.dtype != np.uint8:
        return rows
    if room is None:
        return np.unpackbits(rows, axis=1, count=n_bits).view(np.bool_)
    for bits, row in zip(room, rows, strict=False):
        bits[:] = np.unpackbits(row, count=n_bits).view(np.bool_)
    return room[: len(rows)]


class RowCrossover(Crossover):
    """Base class of crossovers of two rows, which have two children."""

    def __init__(self, prob: float = CROSSOVER) -> None:
        super().__init__(n_parents=2, n_offsprings=2, prob=prob)

    @abstractmethod
    def cross(self, problem: Problem, X: Array, parents: Integers, *, random_state: Generator) -> Array:
        """Cross the rows of `X` of the pairs `parents` (n, 2); return the n first children, then the n second ones."""

    def do(
        self,
        problem: Problem,
        pop: Any,
        parents: Integers | None = None,
        *args: object,
        random_state: Generator,
        **kwargs: object,
    ) -> Population:
        """Cross the pairs of individuals in `pop`, or the pairs of `pop` that `parents` gives by index."""
        pairs = pop if parents is None else [pop[pair] for pair in parents]
        rows = pack_rows(np.array([individual.X for pair in pairs for individual in pair]))
        children = self.cross(problem, rows, np.arange(len(rows)).reshape(-1, 2), random_state=random_state)
        return Population.new("X", unpack_rows(children, problem.n_var))


class UniformCrossover(RowCrossover):
    """Exchange each gene of two parents with probability one half.

    The children are ``a ^ d`` and ``b ^ d`` with ``d`` the exchanged differences, or copies of the parents if the
    mating does not take place. As in pymoo all first children come before all second ones.

    Parameters
    ----------
    prob : float, default 0.9
        Probability that a mating takes place.

    Examples
    --------
    >>> from pymoo.core.individual import Individual
    >>> pair = [Individual(X=np.ones(6, bool)), Individual(X=np.zeros(6, bool))]
    >>> rng = np.random.default_rng(0)
    >>> children = UniformCrossover(prob=1.0).do(Problem(n_var=6), [pair], random_state=rng)
    >>> children.get("X").astype(int).sum(axis=0).tolist()
    [1, 1, 1, 1, 1, 1]
    """

    def cross(self, problem: Problem, X: Packed, parents: Integers, *, random_state: Generator) -> Packed:
        """Cross the packed rows of the pairs `parents` (n, 2); return the n first children, then the n second ones."""
        taking_place = random_state.random(len(parents)) < self.prob.get()
        a, b = _checked(X, self)[parents.T]
        exchanged = np.zeros_like(a)
        exchanged[taking_place] = _random_bytes(int(taking_place.sum()), a.shape[1], random_state)
        exchanged &= a ^ b
        return np.concatenate((a ^ exchanged, b ^ exchanged))


def _random_bytes(n: int, n_bytes: int, random_state: Generator) -> Packed:
    """Return random bytes (n, n_bytes); each row has those of ``random_state.bytes``."""
    words = random_state.integers(2**32, size=(n, -(-n_bytes // 4)), dtype=np.uint32)
    return words.astype("<u4", copy=False).view(np.uint8)[:, :n_bytes]


def own_stream(random_state: Generator) -> Generator:
    """Return a generator seeded by one draw, so that searches with other mutations have the same draws elsewhere."""
    return np.random.default_rng(random_state.integers(2**63))


class RowMutation(Mutation):
    """Base class of mutations of rows."""

    def __init__(self, prob_var: float | None = None) -> None:
        super().__init__(prob=1.0, prob_var=prob_var)

    @abstractmethod
    def mutate(
        self, problem: Problem, X: Array, *, random_state: Generator, algorithm: Algorithm | None = None
    ) -> Array:
        """Return mutated rows; those of `X` may be changed in place."""

    def do(
        self,
        problem: Problem,
        pop: Population,
        inplace: bool = True,
        *args: object,
        random_state: Generator,
        algorithm: Algorithm | None = None,
        **kwargs: object,
    ) -> Population:
        """Mutate the individuals of `pop`, or copies of them if not `inplace`; rows are never changed in place."""
        if not inplace:
            pop = deepcopy(pop)
        mutated = self.mutate(problem, pack_rows(pop.get("X")), random_state=random_state, algorithm=algorithm)
        pop.set("X", unpack_rows(mutated, problem.n_var))
        return pop


class SparseBitFlip(RowMutation):
    """Flip every bit independently with a small probability.

    The number of flips is drawn from Binomial(n_var, prob_var), then that many distinct positions: O(flips) draws.

    Parameters
    ----------
    prob_var : float, optional
        Probability of each flip, by default 1 / n_var.

    Examples
    --------
    >>> population = Population.new("X", [np.zeros(1000, bool)] * 4)
    >>> rng = np.random.default_rng(0)
    >>> mutated = SparseBitFlip(0.01).do(Problem(n_var=1000), population, random_state=rng)
    >>> mutated.get("X").sum(axis=1).tolist()
    [5, 15, 7, 14]
    """

    def mutate(
        self, problem: Problem, X: Packed, *, random_state: Generator, algorithm: Algorithm | None = None
    ) -> Packed:
        """Mutate packed rows in place."""
        random_state, n = own_stream(random_state), len(_checked(X, self))
        counts = random_state.binomial(problem.n_var, self.get_prob_var(problem), n)
        positions = _subsets(problem.n_var, counts, random_state)
        flips = (128 >> (positions & 7)).astype(np.uint8)
        np.bitwise_xor.at(X, (np.repeat(np.arange(n), counts), positions >> 3), flips)
        return X


def _checked(X: Array, operator: Operator) -> Array:
    if X.dtype != np.uint8:
        raise TypeError(
            f"{operator.name} works on bool rows, but an individual holds {X.dtype}; "
            "give the algorithm a bool sampling such as DensitySampling()"
        )
    return X


def _distinct(n: int, size: int, random_state: Generator) -> Integers:
    """Return `size` distinct integers below `n`, every subset equally likely."""
    positions: Integers = random_state.choice(n, size, replace=False, shuffle=False)
    return positions


def _subsets(n: int, sizes: Integers, random_state: Generator) -> Integers:
    """Return distinct integers below `n` for each of the sizes, one after the other, with the draws of `_distinct`."""
    if sizes.max(initial=0) > n // 20:
        return np.concatenate([_distinct(n, size, random_state) for size in sizes])
    # Floyd's algorithm: the k-th of m integers is at most n − m + k, and n − m + k itself where it was drawn before.
    ends = np.cumsum(sizes)
    most = n + np.arange(sizes.sum()) - np.repeat(ends, sizes)
    drawn = random_state.integers(most + 1)
    for begin, end in zip(ends - sizes, ends, strict=True):
        earlier: set[int] = set()
        for k in range(begin, end):
            if int(drawn[k]) in earlier:
                drawn[k] = most[k]
            earlier.add(int(drawn[k]))
    return drawn


ETA = 20.0
"""Distribution index of crossover and mutation of reals; larger values keep children closer to their parents."""


class MixedSampling(Sampling):
    """Random mixed strings: bits with a share of ones drawn from U(0, 1) for each individual, reals from U(0, 1).

    Parameters
    ----------
    n_bits : int
        Number of leading entries that are bits.
    members : ndarray, shape (n_members, n_var), optional
        Strings that take the first places of the population.

    Examples
    --------
    >>> X = MixedSampling(n_bits=3)._do(Problem(n_var=5), 2, random_state=np.random.default_rng(0))
    >>> X.round(2).tolist()
    [[1.0, 1.0, 0.0, 0.91, 0.61], [0.0, 0.0, 0.0, 0.82, 0.0]]
    """

    def __init__(self, n_bits: int, members: Matrix | None = None) -> None:
        super().__init__()
        self.n_bits = n_bits
        self.members = members

    def _do(self, problem: Problem, n_samples: int, *args: object, random_state: Generator, **kwargs: object) -> Matrix:
        density = random_state.random((n_samples, 1))
        X = random_state.random((n_samples, problem.n_var))
        X[:, : self.n_bits] = X[:, : self.n_bits] < density
        if self.members is not None:
            X[: len(self.members)] = self.members[:n_samples]
        return X


class MixedCrossover(RowCrossover):
    """Uniform crossover of the bits, simulated binary crossover of the reals.

    Parameters
    ----------
    n_bits : int
        Number of leading entries that are bits.
    prob : float, default 0.9
        Probability that a mating takes place. Each real is then crossed with probability one half.
    """

    def __init__(self, n_bits: int, prob: float = CROSSOVER) -> None:
        super().__init__(prob)
        self.n_bits = n_bits

    def cross(self, problem: Problem, X: Matrix, parents: Integers, *, random_state: Generator) -> Matrix:
        """Cross the rows of `X` of the pairs `parents` (n, 2); return the n first children, then the n second ones."""
        children: Matrix = X[parents.T]
        n = len(parents)
        taking_place = random_state.random(n) < self.prob.get()
        if taking_place.any():
            bits, reals = children[:, :, : self.n_bits], children[:, :, self.n_bits :]
            exchanged = random_state.random((n, self.n_bits)) < 0.5
            crossed = np.where(exchanged, bits[::-1], bits)
            zeros, ones = np.zeros(reals.shape[2]), np.ones(reals.shape[2])
            eta, half = np.full((n, 1), ETA), np.full((n, 1), 0.5)
            reals = cross_sbx(reals, zeros, ones, eta, half, half, random_state=random_state)
            children[:, taking_place] = np.concatenate((crossed, reals), axis=2)[:, taking_place]
        return children.reshape(-1, X.shape[1])


class MixedMutation(RowMutation):
    """Bit flip of the bits, polynomial mutation of the reals, each entry with the same probability.

    Parameters
    ----------
    n_bits : int
        Number of leading entries that are bits.
    prob_var : float, optional
        Probability that an entry changes, by default 1 / n_var.
    """

    def __init__(self, n_bits: int, prob_var: float | None = None) -> None:
        super().__init__(prob_var)
        self.n_bits = n_bits

    def mutate(
        self, problem: Problem, X: Matrix, *, random_state: Generator, algorithm: Algorithm | None = None
    ) -> Matrix:
        """Return mutated rows."""
        bits, reals = X[:, : self.n_bits], X[:, self.n_bits :]
        n, n_reals = reals.shape
        probability = self.get_prob_var(problem, size=n)
        flipped = random_state.random(bits.shape) < probability[:, None]
        zeros, ones, eta = np.zeros(n_reals), np.ones(n_reals), np.full(n, ETA)
        mutated = mut_pm(reals, zeros, ones, eta, probability, at_least_once=False, random_state=random_state)
        random_state.random(n)  # pymoo draws whether an individual mutates, which all do
        return np.concatenate((np.where(flipped, 1 - bits, bits), mutated), axis=1)

"""Operators for long bit strings, packed bit strings, and mixed strings of bits and reals.

Bit strings are rows of a bool matrix with up to a million columns. pymoo's own binary operators draw a number for every
bit and copy the whole population five times per generation; these draw a few numbers for each individual and copy a row
once. All randomness comes from the `random_state` that pymoo passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pymoo.core.crossover import Crossover
from pymoo.core.mutation import Mutation
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.repair import NoRepair
from pymoo.core.sampling import Sampling
from pymoo.operators.crossover.sbx import cross_sbx
from pymoo.operators.mutation.pm import mut_pm

from moerank.arrays import Array, Integers, Mask, Matrix
from moerank.kernels.threads import in_pieces, workers_for

Packed: TypeAlias = NDArray[np.uint8]
"""Rows of bits, eight in a byte."""

CACHED = 2**17
"""Bytes of parents that are crossed at a time: they and their children stay in the cache."""

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
        X = np.empty((n_samples, n_var := problem.n_var), np.bool_)

        def draw(rows: range, random_state: Generator) -> None:
            for i in rows:
                np.less(random_state.random(n_var, np.float32), density[i], out=X[i])

        begin = deepcopy(random_state)
        in_streams(draw, n_samples, n_var, random_state, workers_for(X.nbytes, getattr(problem, "workers", 1)))
        if not X.any(axis=1).all():  # an empty row has a further draw, before those of the next row
            random_state.bit_generator.state = begin.bit_generator.state
            for i in range(n_samples):
                draw(range(i, i + 1), random_state)
                if not X[i].any():
                    X[i, random_state.integers(n_var)] = True
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


class UniformCrossover(Crossover):
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

    dtype: type[np.generic] = np.bool_

    def __init__(self, prob: float = CROSSOVER) -> None:
        super().__init__(n_parents=2, n_offsprings=2, prob=prob)

    def do(
        self,
        problem: Problem,
        pop: Population,
        parents: Integers | None = None,
        *args: object,
        random_state: Generator,
        **kwargs: object,
    ) -> Population:
        """Cross the pairs of individuals in `pop`, or the pairs of `pop` that `parents` gives by index."""
        matings = pop if parents is None else [pop[pair] for pair in parents]
        taking_place = random_state.random(len(matings)) < self.prob.get()
        first, second = [], []
        for (mother, father), takes_place in zip(matings, taking_place, strict=True):
            a, b = _checked(mother.X, self).copy(), _checked(father.X, self).copy()
            if takes_place:
                exchanged = self._exchanged(a, b, _random_bytes((self._n_bytes(a),), random_state))
                a ^= exchanged
                b ^= exchanged
            first.append(a)
            second.append(b)
        return Population.new("X", first + second)

    def cross(self, problem: Problem, X: Array, parents: Integers, *, random_state: Generator) -> Array:
        """Cross the rows of `X` of the pairs `parents` (n, 2), with the draws of `do`; return 2n rows."""
        n, n_bytes = len(parents), self._n_bytes(_checked(X, self))
        taking_place = np.flatnonzero(random_state.random(n) < self.prob.get())
        drawn = np.zeros((n, n_bytes), np.uint8)  # zeros exchange nothing
        children = np.empty((2, n, X.shape[1]), X.dtype)
        workers = workers_for(children.nbytes, getattr(problem, "workers", 1))

        def draw(rows: range, random_state: Generator) -> None:
            drawn[taking_place[rows]] = _random_bytes((len(rows), n_bytes), random_state)

        in_streams(draw, len(taking_place), -(-n_bytes // 4), random_state, workers)
        size = max(1, CACHED // X.shape[1])

        def cross(matings: range) -> None:
            for begin in matings[::size]:
                some = slice(begin, min(begin + size, matings.stop))
                a, b = X[parents[some].T]
                exchanged = self._exchanged(a, b, drawn[some])
                np.bitwise_xor(a, exchanged, out=children[0, some])
                np.bitwise_xor(b, exchanged, out=children[1, some])

        in_pieces(cross, range(n), workers, 1)
        return children.reshape(-1, X.shape[1])

    def _n_bytes(self, X: Array) -> int:
        """Return the number of bytes with a bit for each gene of a row."""
        return -(-X.shape[-1] // 8)

    def _exchanged(self, a: Array, b: Array, drawn: Packed) -> Array:
        """Return the differences of rows that drawn bytes exchange."""
        exchanged = np.unpackbits(drawn, axis=-1, count=a.shape[-1])
        exchanged &= a.view(np.uint8) ^ b.view(np.uint8)
        return exchanged.view(np.bool_)


def _random_bytes(shape: tuple[int, ...], random_state: Generator) -> Packed:
    """Return random bytes; each row has those of ``random_state.bytes``."""
    words = random_state.integers(2**32, size=(*shape[:-1], -(-shape[-1] // 4)), dtype=np.uint32)
    return words.astype("<u4", copy=False).view(np.uint8)[..., : shape[-1]]


def in_streams(
    draw: Callable[[range, Generator], None], n: int, n_words: int, random_state: Generator, workers: int
) -> None:
    """Let threads draw `n` rows of `n_words` numbers of 32 bits each, with the draws of one thread.

    ``draw(rows, random_state)`` draws some of the rows. PCG64, numpy's usual generator, can skip those before.
    """
    if workers == 1 or type(random_state.bit_generator) is not np.random.PCG64:
        draw(range(n), random_state)
    else:
        in_pieces(lambda rows: draw(rows, _later(random_state, rows.start * n_words)), range(n), workers, 1)
        state: Any = _later(random_state, n * n_words).bit_generator.state
        random_state.bit_generator.state = state


def _later(random_state: Generator, n_words: int) -> Generator:
    """Return a copy of a generator, of PCG64, as it is after `n_words` draws of 32 bits."""
    later = deepcopy(random_state)
    if n_words:
        bits: Any = later.bit_generator
        left = n_words - bits.state["has_uint32"]  # half of the last 64 bits may be left
        bits.advance(left // 2)
        later.integers(2**32, size=left % 2, dtype=np.uint32)
    return later


def own_stream(random_state: Generator) -> Generator:
    """Return a generator seeded by one draw, so that searches with other mutations have the same draws elsewhere."""
    return np.random.default_rng(random_state.integers(2**63))


class SparseBitFlip(Mutation):
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

    dtype: type[np.generic] = np.bool_

    def __init__(self, prob_var: float | None = None) -> None:
        super().__init__(prob=1.0, prob_var=prob_var)

    def do(
        self,
        problem: Problem,
        pop: Population,
        inplace: bool = True,
        *args: object,
        random_state: Generator,
        **kwargs: object,
    ) -> Population:
        """Mutate the individuals of `pop`, or copies of them if not `inplace`; rows are never changed in place."""
        if not inplace:
            pop = deepcopy(pop)
        rows, positions = self._flips(problem, len(pop), random_state)
        for i in np.unique(rows).tolist():
            row = _checked(pop[i].X, self).copy()
            self._flip(row, positions[rows == i])
            pop[i].X = row
        return pop

    def mutate(self, problem: Problem, X: Array, *, random_state: Generator, **kwargs: object) -> Array:
        """Mutate rows in place, with the draws of `do`."""
        rows, positions = self._flips(problem, len(_checked(X, self)), random_state)
        self._flip(X, (rows, positions))
        return X

    def _flips(self, problem: Problem, n: int, random_state: Generator) -> tuple[Integers, Integers]:
        """Draw the flips of `n` individuals: the individual and the position of each."""
        random_state = own_stream(random_state)
        counts = random_state.binomial(problem.n_var, self.get_prob_var(problem), n)
        return np.repeat(np.arange(n), counts), _subsets(problem.n_var, counts, random_state)

    def _flip(self, X: Array, at: Integers | tuple[Integers, Integers]) -> None:
        X[at] = ~X[at]


class KeepAsIs(NoRepair):
    """Repair that changes nothing; pymoo's own copies every row twice."""

    def do(self, problem: Problem, pop: Population, **kwargs: object) -> Population:
        """Return `pop` itself."""
        return pop


def _checked(X: Array, operator: UniformCrossover | SparseBitFlip) -> Array:
    if X.dtype != operator.dtype:
        raise TypeError(
            f"{operator.name} works on {operator.dtype.__name__.strip('_')} rows, but an individual holds {X.dtype}; "
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
        known: set[int] = set()
        for k in range(begin, end):
            if int(drawn[k]) in known:
                drawn[k] = most[k]
            known.add(int(drawn[k]))
    return drawn


def pack_rows(X: Mask) -> Packed:
    """Return bool rows (n, n_bits) as bytes, shape (n, ⌈n_bits / 8⌉); the first bit of a byte is its highest."""
    return np.packbits(X, axis=1)


def unpack_rows(rows: Sequence[Packed] | Packed, n_bits: int, room: Mask | None = None) -> Mask:
    """Return packed rows as bool, shape (n, n_bits), in the first rows of `room` if it is given.

    Examples
    --------
    >>> unpack_rows(pack_rows(np.array([[True, False, True]])), 3).tolist()
    [[True, False, True]]
    """
    X = np.empty((len(rows), n_bits), np.bool_) if room is None else room[: len(rows)]
    for bits, row in zip(X, rows, strict=True):
        bits[:] = np.unpackbits(row, count=n_bits).view(np.bool_)
    return X


def count_ones(rows: Packed) -> Integers:
    """Return the number of ones in each of packed rows (n, n_bytes).

    Examples
    --------
    >>> count_ones(pack_rows(np.ones((2, 67), bool))).tolist()
    [67, 67]
    """
    whole = rows.shape[1] // 8 * 8  # words of eight bytes take an eighth of the time
    words = np.ascontiguousarray(rows[:, :whole]).view(np.uint64)
    return sum(np.bitwise_count(part).sum(axis=1, dtype=np.int64) for part in (words, rows[:, whole:]))


class PackedProblem(Problem):  # type: ignore[misc]
    """A pymoo problem on packed strings, for one on bool strings.

    `problem` has ``evaluate_rows`` for packed rows, ``restore_cache`` and ``measure_again``; see `search`.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(n_var=-(-problem.n_var // 8), n_obj=problem.n_obj, vtype=np.uint8)
        self.problem = problem
        self.workers = problem.workers
        self.evaluate_rows = problem.evaluate_rows
        self.restore_cache = problem.restore_cache

    def measure_again(self, X: Packed) -> Matrix:
        """Return the objectives of packed rows, without looking them up."""
        return self.problem.measure_again(unpack_rows(X, self.problem.n_var))

    def _evaluate(self, X: Packed, out: dict[str, object], *args: object, **kwargs: object) -> None:
        out["F"] = self.problem.evaluate(unpack_rows(X, self.problem.n_var))

    def __deepcopy__(self, memo: dict[int, object]) -> PackedProblem:
        """Return the problem itself."""
        return self


class PackedSampling(Sampling):
    """Packed strings of a sampling of bool strings."""

    def __init__(self, sampling: Sampling) -> None:
        super().__init__()
        self.sampling = sampling

    def _do(self, problem: PackedProblem, n_samples: int, *args: object, **kwargs: object) -> Packed:
        return pack_rows(self.sampling._do(problem.problem, n_samples, *args, **kwargs))


class PackedCrossover(UniformCrossover):
    """`UniformCrossover` of packed strings."""

    dtype = np.uint8

    def _n_bytes(self, X: Packed) -> int:
        return X.shape[-1]

    def _exchanged(self, a: Packed, b: Packed, drawn: Packed) -> Packed:
        return (a ^ b) & drawn


class PackedBitFlip(SparseBitFlip):
    """`SparseBitFlip` of packed strings."""

    dtype = np.uint8

    def _flips(self, problem: PackedProblem, n: int, random_state: Generator) -> tuple[Integers, Integers]:
        return super()._flips(problem.problem, n, random_state)

    def _flip(self, X: Packed, at: Integers | tuple[Integers, Integers]) -> None:
        *rows, positions = at if isinstance(at, tuple) else (at,)
        np.bitwise_xor.at(X, (*rows, positions >> 3), (128 >> (positions & 7)).astype(np.uint8))


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


class MixedCrossover(Crossover):
    """Uniform crossover of the bits, simulated binary crossover of the reals.

    Parameters
    ----------
    n_bits : int
        Number of leading entries that are bits.
    prob : float, default 0.9
        Probability that a mating takes place. Each real is then crossed with probability one half.
    """

    def __init__(self, n_bits: int, prob: float = CROSSOVER) -> None:
        super().__init__(n_parents=2, n_offsprings=2, prob=prob)
        self.n_bits = n_bits

    def cross(self, problem: Problem, X: Matrix, parents: Integers, *, random_state: Generator) -> Matrix:
        """Cross the rows of `X` of the pairs `parents` (n, 2), with the draws of `do`; return 2n rows."""
        children: Matrix = X[parents.T]
        taking_place = random_state.random(len(parents)) < self.prob.get()
        if taking_place.any():
            children[:, taking_place] = self._do(problem, children, random_state=random_state)[:, taking_place]
        return children.reshape(-1, X.shape[1])

    def _do(self, problem: Problem, X: Matrix, *args: object, random_state: Generator, **kwargs: object) -> Matrix:
        bits, reals = X[:, :, : self.n_bits], X[:, :, self.n_bits :]
        n_matings, n_reals = reals.shape[1:]
        exchanged = random_state.random((n_matings, self.n_bits)) < 0.5
        half = np.full((n_matings, 1), 0.5)
        children = np.empty_like(X)
        children[:, :, : self.n_bits] = np.where(exchanged, bits[::-1], bits)
        zeros, ones, eta = np.zeros(n_reals), np.ones(n_reals), np.full((n_matings, 1), ETA)
        children[:, :, self.n_bits :] = cross_sbx(reals, zeros, ones, eta, half, half, random_state=random_state)
        return children


class MixedMutation(Mutation):
    """Bit flip of the bits, polynomial mutation of the reals, each entry with the same probability.

    Parameters
    ----------
    n_bits : int
        Number of leading entries that are bits.
    prob_var : float, optional
        Probability that an entry changes, by default 1 / n_var.
    """

    def __init__(self, n_bits: int, prob_var: float | None = None) -> None:
        super().__init__(prob=1.0, prob_var=prob_var)
        self.n_bits = n_bits

    def mutate(self, problem: Problem, X: Matrix, *, random_state: Generator, **kwargs: object) -> Matrix:
        """Return mutated rows, with the draws of `do`."""
        mutated = self._do(problem, X, random_state=random_state)
        random_state.random(len(X))  # pymoo draws whether an individual mutates, which all do
        return mutated

    def _do(self, problem: Problem, X: Matrix, *args: object, random_state: Generator, **kwargs: object) -> Matrix:
        bits, reals = X[:, : self.n_bits], X[:, self.n_bits :]
        n, n_reals = reals.shape
        probability = self.get_prob_var(problem, size=n)
        flipped = random_state.random(bits.shape) < probability[:, None]
        mutated = np.empty_like(X)
        mutated[:, : self.n_bits] = np.where(flipped, 1 - bits, bits)
        zeros, ones, eta = np.zeros(n_reals), np.ones(n_reals), np.full(n, ETA)
        mutated[:, self.n_bits :] = mut_pm(
            reals, zeros, ones, eta, probability, at_least_once=False, random_state=random_state
        )
        return mutated

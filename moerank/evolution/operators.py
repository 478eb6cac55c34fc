"""Operators for bit strings and for mixed strings of bits and reals, and elimination of equal strings by digests.

Bit strings are rows of a bool matrix with up to a million columns. pymoo's own binary operators draw a number for every
bit, and its elimination of duplicates computes a matrix of distances; these draw a few numbers for each individual. All
randomness comes from the `random_state` that pymoo passes.
"""

from abc import abstractmethod
from collections.abc import Callable, Container, Sequence
from hashlib import sha256
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from pymoo.core.algorithm import Algorithm
from pymoo.core.crossover import Crossover
from pymoo.core.duplicate import DuplicateElimination
from pymoo.core.mutation import Mutation
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.sampling import Sampling
from pymoo.operators.crossover.sbx import cross_sbx
from pymoo.operators.mutation.pm import mut_pm

from moerank.arrays import Array, Integers, Mask, Matrix, Vector
from moerank.checks import check_choice
from moerank.data import RankingData
from moerank.data.describe import feature_correlations

# Probability that two parents are crossed, as in NSGA-II.
CROSSOVER = 0.9

# Random bytes that a crossover draws at once: short strings are crossed together, long ones stay in the cache.
CROSSED_BYTES = 2**16

# Average number of integers per row up to which one draw for all rows is faster.
JOINT_DRAWS = 16

# Range of the shares of ones in an initial population; a search that starts at one half never gets lower.
DENSITY = (0.05, 0.5)


class DensitySampling(Sampling):
    """Random bit strings with a share of ones drawn for each individual.

    The share is drawn log-uniformly from [`low`, `high`], then each bit independently with that probability; an empty
    individual gets one random bit. Selection hardly changes the share within a hundred generations of long strings, so
    an initial population must have all useful shares.

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
            raise ValueError(
                f"DensitySampling: need 0 < low <= high <= 1, not low={low}, high={high}"
            )
        self.low = low
        self.high = high

    def _do(
        self, problem: Problem, n_samples: int, *, random_state: Generator, **kwargs: object
    ) -> Mask:
        density = self.low * (self.high / self.low) ** random_state.random(n_samples)
        X = np.empty((n_samples, problem.n_var), bool)
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

    def _do(
        self, problem: Problem, n_samples: int, *, random_state: Generator, **kwargs: object
    ) -> Mask:
        sizes = random_state.integers(1, self.largest or problem.n_var, n_samples, endpoint=True)
        X = np.zeros((n_samples, problem.n_var), bool)
        for row, size in zip(X, sizes, strict=True):
            row[random_state.choice(problem.n_var, size, replace=False, shuffle=False)] = True
        return X


class RowCrossover(Crossover):
    """Base class of crossovers that make the rows of all children at once, for pymoo and for arrays alike."""

    packs = False  # whether `cross` also takes rows of bits that np.packbits has packed

    def __init__(self, prob: float = CROSSOVER) -> None:
        super().__init__(n_parents=2, n_offsprings=2, prob=prob)

    @abstractmethod
    def cross(self, problem: Problem, X: Array, *, random_state: Generator) -> Array:
        """Return two children of each pair of parents; may change `X`, shape (2 n, n_var).

        Row i of the first half is paired with row i of the second half, and so are the children.
        """

    def do(
        self,
        problem: Problem,
        pop: Any,
        *,
        random_state: Generator,
        **kwargs: object,
    ) -> Population:
        """Cross the pairs of individuals in `pop`."""
        X = np.array([pair[i].X for i in (0, 1) for pair in pop])
        return Population.new("X", _copies(self.cross(problem, X, random_state=random_state)))


class RowMutation(Mutation):
    """Base class of mutations that change all rows at once, for pymoo and for arrays alike."""

    packs = False  # whether `mutate` also takes rows of bits that np.packbits has packed

    def __init__(self, prob_var: float | None = None) -> None:
        super().__init__(prob=1.0, prob_var=prob_var)

    @abstractmethod
    def mutate(
        self, problem: Problem, X: Array, *, random_state: Generator, algorithm: Algorithm | None
    ) -> Array:
        """Return the mutated rows; may change `X`."""

    def do(
        self,
        problem: Problem,
        pop: Population,
        *,
        random_state: Generator,
        algorithm: Algorithm | None = None,
        **kwargs: object,
    ) -> Population:
        """Give the individuals of `pop` mutated rows; the rows that they had do not change."""
        X = np.array([individual.X for individual in pop])
        mutated = self.mutate(problem, X, random_state=random_state, algorithm=algorithm)
        pop.set("X", _copies(mutated))
        return pop


def _copies(X: Array) -> list[Array]:
    """Return copies of the rows, so that an individual that survives does not keep its whole batch in memory."""
    return list(map(np.copy, X))


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

    packs = True

    def cross(self, problem: Problem, X: Array, *, random_state: Generator) -> Array:
        """Cross the pairs of rows in place, and return them."""
        packed = _are_packed(X, problem, self)
        firsts, seconds = np.split(X, 2)
        mating = np.flatnonzero(random_state.random(len(firsts)) < self.prob.get())
        n_bytes = -(-problem.n_var // 8)
        n_pairs = max(1, CROSSED_BYTES // n_bytes)
        for begin in range(0, len(mating), n_pairs):
            pairs: Integers | slice = mating[begin : begin + n_pairs]
            n_words = len(mating[begin : begin + n_pairs]), -(-n_bytes // 4)
            words = random_state.integers(2**32, size=n_words, dtype=np.uint32)
            bits = words.astype("<u4", copy=False).view(np.uint8)[:, :n_bytes]
            if not packed:
                bits = np.unpackbits(bits, axis=1, count=problem.n_var).view(bool)
            if n_pairs == 1:
                # A slice copies no long strings.
                pairs = slice(mating[begin], mating[begin] + 1)
            exchanged = firsts[pairs] ^ seconds[pairs]
            exchanged &= bits
            firsts[pairs] ^= exchanged
            seconds[pairs] ^= exchanged
        return X


class BitFlip(RowMutation):
    """Base class of mutations of bits.

    They draw from a random stream of their own, which one draw seeds, so that the other draws of a search do not depend
    on the mutation.
    """

    @abstractmethod
    def flip(
        self, problem: Problem, X: Array, random_state: Generator, algorithm: Algorithm | None
    ) -> None:
        """Flip bits of the rows in place."""

    def mutate(
        self, problem: Problem, X: Array, *, random_state: Generator, algorithm: Algorithm | None
    ) -> Array:
        """Return the mutated rows, which are changed in place."""
        _are_packed(X, problem, self)
        self.flip(problem, X, np.random.default_rng(random_state.integers(2**63)), algorithm)
        return X


class SparseBitFlip(BitFlip):
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

    packs = True

    def flip(
        self, problem: Problem, X: Array, random_state: Generator, algorithm: Algorithm | None
    ) -> None:
        """Flip bits of the rows in place."""
        counts = random_state.binomial(problem.n_var, self.get_prob_var(problem), len(X))
        rows, bits = _distinct(problem.n_var, counts, random_state)
        if X.dtype == bool:
            X[rows, bits] ^= True
        else:
            np.bitwise_xor.at(X, (rows, bits // 8), (128 >> bits % 8).astype(np.uint8))


def _are_packed(X: Array, problem: Problem, operator: RowCrossover | RowMutation) -> bool:
    """Return whether the rows are packed bits and not bools; raise a TypeError for anything else."""
    packed = operator.packs and X.dtype == np.uint8 and X.shape[1] == -(-problem.n_var // 8)
    if X.dtype != bool and not packed:
        raise TypeError(
            f"{operator.name} works on bool rows, but an individual holds {X.dtype}; "
            "give the algorithm a bool sampling such as DensitySampling()"
        )
    return packed


def _distinct(n: int, counts: Integers, random_state: Generator) -> tuple[Integers, Integers]:
    """Return ``counts[row]`` distinct integers below `n` for each row, every subset equally likely.

    Both arrays, rows and integers, have the shape (Σ counts,). The draws are those of ``choice`` for one row after the
    other. If they are few, they are drawn for all rows at once by R. Floyd's algorithm (Bentley, Comm. ACM 30(9),
    1987): the k-th of c integers is drawn below n − c + k, and becomes n − c + k − 1 if it was drawn before.
    """
    rows = np.repeat(np.arange(len(counts)), counts)
    if len(rows) > JOINT_DRAWS * len(counts):
        draws = [random_state.choice(n, k, replace=False, shuffle=False) for k in counts]
        return rows, np.concatenate(draws)
    bounds = np.arange(len(rows)) + np.repeat(n - np.cumsum(counts), counts)
    integers = random_state.integers(bounds, endpoint=True)
    while True:
        order = np.lexsort((integers, rows))
        before, behind = order[:-1], order[1:]
        equal = (rows[behind] == rows[before]) & (integers[behind] == integers[before])
        if not equal.any():
            return rows, integers
        repeated = behind[equal]
        integers[repeated] = bounds[repeated]


class DigestDuplicates(DuplicateElimination):
    """Elimination of individuals with equal rows by digests.

    A seeded search keeps the same individuals as with pymoo's ``DefaultDuplicateElimination``, which computes all
    distances in double precision (seconds per generation at 500,000 bits).

    Examples
    --------
    >>> population = Population.new("X", np.array([[True, False], [True, True], [True, False]]))
    >>> DigestDuplicates().do(population).get("X").tolist()
    [[True, False], [True, True]]
    """

    def _do(self, pop: Population, other: Population | None, is_duplicate: Mask) -> Mask:
        earlier = () if other is None else set(row_digests(other.get("X")))
        is_duplicate[:] = True
        is_duplicate[new_rows(row_digests(pop.get("X")), earlier)] = False
        return is_duplicate


def row_digests(X: Sequence[Array] | Array) -> list[bytes]:
    """Return 16 bytes of the SHA-256 digest of each row, the same for equal rows, with −0 equal to 0.

    Two different rows of n share a digest with a probability of about n² / 2¹²⁹. Digests can be kept in files.

    Examples
    --------
    >>> a, b, c = row_digests(np.array([[True, False], [True, True], [True, False]]))
    >>> a == c, a == b
    (True, False)
    """
    # Processors have instructions for SHA-256, which make it twice as fast as blake2b on long rows.
    # The sum turns -0.0 into 0.0 and leaves every other number as it is.
    rows = np.asarray(X)
    if rows.dtype == bool:
        rows = np.packbits(rows, axis=1)
    elif rows.dtype.kind == "f":
        rows = rows + 0
    return [sha256(row).digest()[:16] for row in np.ascontiguousarray(rows)]


def new_rows(digests: Sequence[bytes], earlier: Container[bytes]) -> list[int]:
    """Return the index of the first row of each digest that is not among `earlier` ones, ascending.

    >>> new_rows([b"a", b"b", b"a", b"c"], {b"b"})
    [0, 3]
    """
    rows: dict[bytes, int] = {}
    for row, digest in enumerate(digests):
        if digest not in earlier:
            rows.setdefault(digest, row)
    return list(rows.values())


ETA = 20.0  # distribution index for reals; larger values keep children closer to their parents


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

    def _do(
        self, problem: Problem, n_samples: int, *, random_state: Generator, **kwargs: object
    ) -> Matrix:
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

    def cross(self, problem: Problem, X: Matrix, *, random_state: Generator) -> Matrix:
        """Return two children of each pair of parents."""
        pairs = X.reshape(2, -1, X.shape[1])
        mating = random_state.random(pairs.shape[1]) < self.prob.get()
        if mating.any():
            bits, reals = pairs[:, :, : self.n_bits], pairs[:, :, self.n_bits :]
            n, n_reals = reals.shape[1:]
            exchanged = random_state.random((n, self.n_bits)) < 0.5
            bits = np.where(exchanged, bits[::-1], bits)
            bounds = np.zeros(n_reals), np.ones(n_reals)
            eta, half = np.full((n, 1), ETA), np.full((n, 1), 0.5)
            reals = cross_sbx(reals, *bounds, eta, half, half, random_state=random_state)
            pairs = np.where(mating[:, None], np.concatenate((bits, reals), axis=2), pairs)
        return pairs.reshape(X.shape)


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
        self, problem: Problem, X: Matrix, *, random_state: Generator, algorithm: Algorithm | None
    ) -> Matrix:
        """Return the mutated rows."""
        bits, reals = X[:, : self.n_bits], X[:, self.n_bits :]
        n, n_reals = reals.shape
        probability = self.get_prob_var(problem, size=n)
        flipped = random_state.random(bits.shape) < probability[:, None]
        zeros, ones, eta = np.zeros(n_reals), np.ones(n_reals), np.full(n, ETA)
        mutated = mut_pm(
            reals, zeros, ones, eta, probability, at_least_once=False, random_state=random_state
        )
        random_state.random(n)  # pymoo draws whether an individual mutates, which all do
        return np.concatenate((np.where(flipped, 1 - bits, bits), mutated), axis=1)


Form: TypeAlias = Literal["additive", "convex", "product"]
Decay: TypeAlias = Literal["inverse", "exp", "geometric", "linear"]

Importance: TypeAlias = Literal["share", "accuracy", "scaled"]
Redundancy: TypeAlias = Literal["share", "mean", "selected"]

# Factor c of decay="geometric", α(t) = cᵗ, which is below 1/100 after 44 generations.
GEOMETRIC_RATIO = 0.9

_FORMS: dict[str, Callable[[float, float, Vector], Vector]] = {
    "additive": lambda pm, alpha, degree: pm + alpha * degree,
    "convex": lambda pm, alpha, degree: (1 - alpha) * pm + alpha * degree,
    "product": lambda pm, alpha, degree: pm * (1 + alpha * degree),
}
_DECAYS: dict[str, Callable[[int, float], float]] = {
    "inverse": lambda t, progress: 1 / t,
    "exp": lambda t, progress: float(np.exp(-t)),
    "geometric": lambda t, progress: float(GEOMETRIC_RATIO**t),
    "linear": lambda t, progress: max(0.0, 1 - progress),
}


def importance_degrees(accuracy: ArrayLike, importance: Importance = "share") -> Vector:
    """Return Imp of equation (5), from the ranking accuracy that each feature reaches alone.

    Parameters
    ----------
    accuracy : array-like, shape (n_features,)
        Ranking accuracy of each single feature, 0 or more. If all are 0 the importance is 0.
    importance : {"share", "accuracy", "scaled"}, default "share"
        Share of the sum of all accuracies, the accuracy itself, or the accuracy scaled to [0, 1].

    Examples
    --------
    >>> importance_degrees([0.75, 0.25, 0]).tolist()
    [0.75, 0.25, 0.0]
    """
    check_choice(get_args(Importance), importance=importance)
    values = np.asarray(accuracy, float)
    if importance == "accuracy":
        return values
    if importance == "scaled":
        spread = np.ptp(values)
        return (values - values.min()) / spread if spread > 0 else np.zeros_like(values)
    return _shares(values)


def redundancy_degrees(
    X: RankingData | ArrayLike, redundancy: Redundancy = "share", bit_of: ArrayLike | None = None
) -> Matrix:
    """Return Red of equation (6), from the absolute Pearson correlations between two features.

    Parameters
    ----------
    X : RankingData, or array-like, shape (n_documents, n_features)
        Feature values. A constant feature correlates with nothing. If no two features correlate, Red is 0.
    redundancy : {"share", "mean", "selected"}, default "share"
        Share of a feature in the correlations between all features; mean of its correlations with the others; or share
        in the correlations between the features of an individual, for which this function returns the correlations,
        shape (n_bits, n_bits).
    bit_of : array-like of int, shape (n_features,), optional
        The bit of each feature if bits stand for groups of features, whose correlations are added up.

    Notes
    -----
    O(n_documents n_features²).

    Examples
    --------
    >>> redundancy_degrees([[0, 0, 1], [1, 2, 1], [2, 4, 1]]).round(12).tolist()
    [0.5, 0.5, 0.0]
    """
    check_choice(get_args(Redundancy), redundancy=redundancy)
    correlation = feature_correlations(
        X.X if isinstance(X, RankingData) else np.asarray(X, np.float64)
    )
    np.fill_diagonal(correlation, 0.0)
    if bit_of is not None:
        membership = np.eye(int(np.max(bit_of)) + 1)[np.asarray(bit_of)]
        correlation = membership.T @ correlation @ membership
    if redundancy == "selected":
        np.fill_diagonal(correlation, 0.0)
        return correlation
    sums = correlation.sum(axis=0)
    return sums / max(1, len(sums) - 1) if redundancy == "mean" else _shares(sums)


def _shares(values: Vector) -> Vector:
    total = values.sum()
    return values / total if total > 0 else np.zeros_like(values)


def _shares_of_selected(X: Mask, correlation: Matrix) -> Matrix:
    """Return the share of each selected feature in the correlations within its individual, 0 for other features."""
    sums = np.where(X, X.astype(float) @ correlation, 0.0)
    totals = sums.sum(axis=1, keepdims=True)
    return np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)


class AdaptiveBitFlip(BitFlip):
    """Bit flip with probabilities that depend on the feature, its bit and the generation (Cheng et al. 2018).

    Important features come in, redundant ones go out. Feature j flips in generation t with probability, equations (3)
    and (4),

        pⱼ(t) = min(1, pm + α(t) Imp(j))    where feature j is not selected,
        pⱼ(t) = min(1, pm + α(t) Red(j))    where it is,                        α(t) = 1/t,

    with Imp(j) its share of the accuracies of all single features (5) and Red(j) its share of all absolute correlations
    between two features (6). Both sum to 1, so they are of the size of pm = 1/n_features. We know only a description
    of the paper's formulas; `form`, `decay`, `importance` and `redundancy` offer the readings that agree with it.

    Parameters
    ----------
    importance, redundancy : array-like, shape (n_features,)
        Imp and Red, 0 or more; see :func:`importance_degrees` and :func:`redundancy_degrees`. If `redundancy` is a
        matrix of correlations (n_features, n_features), Red is the share among the features of an individual.
    form : {"additive", "convex", "product"}, default "additive"
        pm + α·d, (1 − α)·pm + α·d or pm·(1 + α·d), with d = Imp(j) for a zero and Red(j) for a one.
    decay : {"inverse", "exp", "geometric", "linear"}, default "inverse"
        α(t) = 1/t, exp(−t), 0.9ᵗ, or 1 − progress of the termination (not reproducible if that measures time);
        t = 1 for the first mating.
    base : float, optional
        The basic probability pm, by default 1 / n_var.

    Examples
    --------
    >>> mutation = AdaptiveBitFlip(importance=[0.5, 0.5], redundancy=[0.1, 0.9], base=0.05)
    >>> mutation.probabilities(np.array([[False, True], [True, False]]), generation=2).round(3).tolist()
    [[0.3, 0.5], [0.1, 0.3]]
    """

    def __init__(
        self,
        importance: ArrayLike,
        redundancy: ArrayLike,
        form: Form = "additive",
        decay: Decay = "inverse",
        base: float | None = None,
    ) -> None:
        super().__init__()
        self.importance = np.asarray(importance, float)
        self.redundancy = np.asarray(redundancy, float)
        if not (self.importance.min(initial=0.0) >= 0 and self.redundancy.min(initial=0.0) >= 0):
            raise ValueError("AdaptiveBitFlip: importance and redundancy must be 0 or more")
        check_choice(_FORMS, form=form)
        check_choice(_DECAYS, decay=decay)
        self.form = form
        self.decay = decay
        self.base = base

    def probabilities(self, X: Mask, generation: int, progress: float = 0.0) -> Vector:
        """Return the flip probabilities of the bits of `X` in `generation` ≥ 1, shape of `X`.

        `progress` of the search, in [0, 1], is used only for ``decay="linear"``.
        """
        pm = 1 / X.shape[1] if self.base is None else self.base
        alpha = _DECAYS[self.decay](generation, progress)
        redundancy = self.redundancy
        if redundancy.ndim == 2:
            redundancy = _shares_of_selected(X, redundancy)
        switch_on = _FORMS[self.form](pm, alpha, self.importance)
        switch_off = _FORMS[self.form](pm, alpha, redundancy)
        return np.minimum(1.0, np.where(X, switch_off, switch_on))

    def flip(
        self, problem: Problem, X: Mask, random_state: Generator, algorithm: Algorithm | None
    ) -> None:
        """Flip bits of the rows in place. `algorithm` gives the generation and the progress."""
        # pymoo counts the initial population as iteration 1, so its first mating happens in iteration 2.
        if algorithm is None:
            raise TypeError(
                "AdaptiveBitFlip must know how far the search is, which pymoo's MOEAD does not "
                'tell its operators; use make_algorithm("moead", …) of moerank.evolution, '
                "or FeatureSelection(…, adaptive=False)"
            )
        X ^= random_state.random(X.shape) < self.probabilities(
            X, algorithm.n_iter - 1, algorithm.termination.perc
        )

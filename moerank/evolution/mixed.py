"""Operators for mixed strings: bits that select features, and real numbers that weigh rankers.

pymoo keeps a population in one array, so a mixed string is a float64 row whose first `n_bits` entries are 0 or 1 and
whose other entries lie in [0, 1]. The bits are exchanged one by one and flipped, the reals go through pymoo's
simulated binary crossover and polynomial mutation, both with distribution index 20.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.crossover import Crossover
from pymoo.core.mutation import Mutation
from pymoo.core.problem import Problem
from pymoo.core.sampling import Sampling
from pymoo.operators.crossover.sbx import cross_sbx
from pymoo.operators.mutation.pm import mut_pm

__all__ = ["MixedCrossover", "MixedMutation", "MixedSampling"]

Strings = NDArray[np.float64]

ETA = 20.0
"""Distribution index of crossover and mutation of the reals: the larger, the closer children stay to their parents."""


class MixedSampling(Sampling):
    """Random mixed strings: bits of a density drawn from U(0, 1) for each individual, reals from U(0, 1).

    Parameters
    ----------
    n_bits : int
        How many of the leading entries are bits.
    members : ndarray, shape (n_members, n_var), optional
        Strings that take the first places of the population.

    Examples
    --------
    >>> X = MixedSampling(n_bits=3)._do(Problem(n_var=5), 2, random_state=np.random.default_rng(0))
    >>> X.round(2).tolist()
    [[1.0, 1.0, 0.0, 0.91, 0.61], [0.0, 0.0, 0.0, 0.82, 0.0]]
    """

    def __init__(self, n_bits: int, members: Strings | None = None) -> None:
        super().__init__()
        self.n_bits = n_bits
        self.members = members

    def _do(
        self, problem: Problem, n_samples: int, *args: Any, random_state: np.random.Generator, **kwargs: Any
    ) -> Strings:
        density = random_state.random((n_samples, 1))
        X = random_state.random((n_samples, problem.n_var))
        X[:, : self.n_bits] = X[:, : self.n_bits] < density
        if self.members is not None:
            X[: len(self.members)] = self.members[:n_samples]
        return X


class MixedCrossover(Crossover):
    """Uniform crossover of the bits, simulated binary crossover of the reals.

    The order of features means nothing, so neighbouring bits are not kept together as a cut at one point would.

    Parameters
    ----------
    n_bits : int
        How many of the leading entries are bits.
    prob : float, default 0.9
        Probability that a mating takes place at all. Within one, each real is crossed with probability one half.
    """

    def __init__(self, n_bits: int, prob: float = 0.9) -> None:
        super().__init__(n_parents=2, n_offsprings=2, prob=prob)
        self.n_bits = n_bits

    def _do(
        self, problem: Problem, X: Strings, *args: Any, random_state: np.random.Generator, **kwargs: Any
    ) -> Strings:
        bits, reals = X[:, :, : self.n_bits], X[:, :, self.n_bits :]
        n_matings, n_reals = reals.shape[1:]
        exchanged = random_state.random((n_matings, self.n_bits)) < 0.5
        half = np.full((n_matings, 1), 0.5)
        children = np.empty_like(X)
        children[:, :, : self.n_bits] = np.where(exchanged, bits[::-1], bits)
        children[:, :, self.n_bits :] = cross_sbx(
            reals,
            np.zeros(n_reals),
            np.ones(n_reals),
            np.full((n_matings, 1), ETA),
            half,
            half,
            random_state=random_state,
        )
        return children


class MixedMutation(Mutation):
    """Bit flip of the bits, polynomial mutation of the reals, each entry with the same probability.

    Parameters
    ----------
    n_bits : int
        How many of the leading entries are bits.
    prob_var : float, optional
        Probability that an entry changes, by default 1 / n_var, n_var being the length of the whole string.
    """

    def __init__(self, n_bits: int, prob_var: float | None = None) -> None:
        super().__init__(prob=1.0, prob_var=prob_var)
        self.n_bits = n_bits

    def _do(
        self, problem: Problem, X: Strings, *args: Any, random_state: np.random.Generator, **kwargs: Any
    ) -> Strings:
        bits, reals = X[:, : self.n_bits], X[:, self.n_bits :]
        n, n_reals = reals.shape
        probability = self.get_prob_var(problem, size=n)
        flipped = random_state.random(bits.shape) < probability[:, None]
        mutated = np.empty_like(X)
        mutated[:, : self.n_bits] = np.where(flipped, 1 - bits, bits)
        mutated[:, self.n_bits :] = mut_pm(
            reals,
            np.zeros(n_reals),
            np.ones(n_reals),
            np.full(n, ETA),
            probability,
            at_least_once=False,
            random_state=random_state,
        )
        return mutated

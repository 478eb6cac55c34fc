"""NSGA-II of pymoo with its individuals in arrays."""

from __future__ import annotations

import numpy as np
from pymoo.algorithms.moo import nsga2
from pymoo.core.population import Population
from pymoo.util.misc import random_permutations

from moerank.arrays import Array, Integers, Matrix, Vector
from moerank.evolution.archive import DigestDuplicates, row_digests
from moerank.evolution.bit_search import front_numbers
from moerank.evolution.rows import RowAlgorithm, Rows


class NSGA2(RowAlgorithm, nsga2.NSGA2):  # type: ignore[misc]
    """pymoo's NSGA-II, which handles arrays in place of individuals where it can; `settings` are pymoo's.

    With the same seed the draws are those of pymoo, bit for bit. So are the populations, except for ties in crowding
    distance: a stable sort orders them here, where pymoo's sort depends on the processor. Arrays need operators of this
    package, which have methods ``cross`` and ``mutate``, and `DigestDuplicates`. With other operators, with constraints
    and outside of `search` it is the algorithm of pymoo.
    """

    def __init__(self, pop_size: int = 100, **settings: object) -> None:
        super().__init__(pop_size, **settings)
        self._is_plain = settings.keys().isdisjoint({"selection", "survival", "mating"})

    def give_rows(self) -> None:
        """Let the batches be `Rows` from now on, if the operators work on arrays."""
        super().give_rows()
        able = hasattr(self.mating.crossover, "cross") and hasattr(self.mating.mutation, "mutate")
        self.gives_rows &= able and self._is_plain and isinstance(self.eliminate_duplicates, DigestDuplicates)

    def _initialize_advance(self, infills: Population, **kwargs: object) -> None:
        if not self.gives_rows:
            super()._initialize_advance(infills=infills, **kwargs)
        else:
            self._select(Rows.of(infills), len(infills))

    def _infill(self) -> Rows | Population | None:
        if not self.gives_rows:
            return super()._infill()
        known = set(self.rows.digests)
        batches: list[Array] = []
        digests: list[bytes] = []
        for _ in range(self.mating.n_max_iterations):
            children = self._repaired(self._children(-(-(self.n_offsprings - len(digests)) // 2)))
            fresh: list[int] = []
            for i, digest in enumerate(row_digests(children, getattr(self.problem, "workers", 1))):
                if digest not in known and len(digests) < self.n_offsprings:
                    known.add(digest)
                    fresh.append(i)
                    digests.append(digest)
            batches.append(children if len(fresh) == len(children) else children[fresh])
            if len(digests) == self.n_offsprings:
                break
        if not digests:
            self.termination.force_termination = True
            return None
        return Rows(batches[0] if len(batches) == 1 else np.concatenate(batches), digests)

    def _children(self, n_matings: int) -> Array:
        """Return two children of each mating, the first ones before the second ones."""
        parents = self._winners(2 * n_matings).reshape(-1, 2)
        children = self.mating.crossover.cross(self.problem, self.rows.X, parents, random_state=self.random_state)
        mutated: Array = self.mating.mutation.mutate(
            self.problem, children, random_state=self.random_state, algorithm=self
        )
        return mutated

    def _winners(self, n: int) -> Integers:
        """Return the winners of `n` tournaments of two, by dominance, crowding distance or chance."""
        F, crowding = self.rows.F, self.rows.data["crowding"]
        n_permutations = -(-2 * n // len(F))
        drawn = random_permutations(n_permutations, len(F), random_state=self.random_state)[: 2 * n]
        a, b = drawn.reshape(n, 2).T
        better, worse = (F[a] < F[b]).any(axis=1), (F[a] > F[b]).any(axis=1)
        level = better == worse
        first = np.where(level, crowding[a] > crowding[b], better)
        tied = np.flatnonzero(level & (crowding[a] == crowding[b]))
        first[tied] = self.random_state.integers(2, size=len(tied)) == 0
        return np.where(first, a, b)

    def _advance(self, infills: Rows | Population | None = None, **kwargs: object) -> None:
        if not self.gives_rows:
            super()._advance(infills=infills, **kwargs)
        else:
            self._select(self.rows, self.pop_size, infills)

    def _select(self, rows: Rows, n: int, others: Rows | None = None) -> None:
        """Keep the first `n` individuals, of `rows` and then `others`, by front, then crowding distance."""
        F = rows.F if others is None else np.concatenate((rows.F, others.F))
        n = min(n, len(F))
        rank = front_numbers(F)
        crowding = crowding_sums(F, rank)
        kept = np.argsort(rank, kind="stable")
        kept = kept[: np.searchsorted(rank[kept], rank[kept[n - 1]], side="right")]  # with all of the last front
        if len(kept) > n:
            front = np.flatnonzero(rank == rank[kept[n - 1]])
            drawn = front[self.random_state.permutation(len(front))]
            last = drawn[np.argsort(crowding[drawn], kind="stable")[len(kept) - n :]][::-1]
            kept = np.concatenate((kept[: n - len(last)], last))
        self.rows = self.pop = rows.take(kept) if others is None else rows.take_with(others, kept)
        self.rows.data |= {"rank": rank[kept], "crowding": crowding[kept]}

    def _set_optimum(self) -> None:
        if not self.gives_rows:
            super()._set_optimum()
        else:
            self.opt = self.rows.take(self.rows.data["rank"] == 0)


def crowding_sums(F: Matrix, front: Integers) -> Vector:
    """Return the crowding distance of each point within its own front, all at once and with the bits of pymoo's."""
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

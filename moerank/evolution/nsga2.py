"""NSGA-II of pymoo with its individuals in arrays."""

from __future__ import annotations

import numpy as np
from pymoo.algorithms.moo import nsga2
from pymoo.core.population import Population
from pymoo.util.misc import random_permutations

from moerank.arrays import Array, Integers
from moerank.evolution.archive import DigestDuplicates, row_digests
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
        X: list[Array] = []
        digests: list[bytes] = []
        for _ in range(self.mating.n_max_iterations):
            children = self._repaired(self._children(-(-(self.n_offsprings - len(X)) // 2)))
            for row, digest in zip(children, row_digests(children, getattr(self.problem, "workers", 1)), strict=True):
                if digest not in known and len(X) < self.n_offsprings:
                    known.add(digest)
                    X.append(row)
                    digests.append(digest)
            if len(X) == self.n_offsprings:
                break
        if not X:
            self.termination.force_termination = True
            return None
        return Rows(np.array(X), digests)

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
            self._select(self.rows if infills is None else self.rows + infills, self.pop_size)

    def _select(self, rows: Rows, n: int) -> None:
        """Keep the first `n` individuals by front, then crowding distance."""
        n = min(n, len(rows))
        rank, crowding = np.zeros(len(rows), np.int64), np.zeros(len(rows))
        kept = np.empty(0, np.int64)
        for number, front in enumerate(self.survival.nds.do(rows.F, n_stop_if_ranked=n)):
            excess = max(0, len(kept) + len(front) - n)
            distance = self.survival.crowding_func.do(rows.F[front], n_remove=excess)
            rank[front], crowding[front] = number, distance
            if excess:
                drawn = self.random_state.permutation(len(front))
                front = front[drawn[np.argsort(distance[drawn], kind="stable")[excess:]]][::-1]
            kept = np.concatenate((kept, front))
        rows.data |= {"rank": rank, "crowding": crowding}
        self.rows = self.pop = rows.take(kept)

    def _set_optimum(self) -> None:
        if not self.gives_rows:
            super()._set_optimum()
        else:
            self.opt = self.rows.take(self.rows.data["rank"] == 0)

"""NSGA-II of pymoo with its individuals in arrays."""

from __future__ import annotations

import numpy as np
from pymoo.algorithms.moo import nsga2
from pymoo.core.population import Population
from pymoo.core.repair import NoRepair
from pymoo.util.misc import random_permutations

from moerank.arrays import Array, Integers
from moerank.evolution.archive import DigestDuplicates, row_digests
from moerank.evolution.bit_search import crowding_distances, front_numbers
from moerank.evolution.operators import RowCrossover, RowMutation, pack_rows, unpack_rows
from moerank.evolution.rows import RowAlgorithm, Rows


class NSGA2(RowAlgorithm, nsga2.NSGA2):  # type: ignore[misc]
    """pymoo's NSGA-II, which handles arrays in place of individuals; `settings` are pymoo's.

    With the same seed the draws are those of pymoo, bit for bit. So are the populations, except for ties in crowding
    distance: a stable sort orders them here, where pymoo's sort depends on the processor. It needs operators of this
    package, such as those of a stage, and `DigestDuplicates`.

    Raises
    ------
    ValueError
        For other operators, for a selection, survival or mating, and for a problem with constraints.
    """

    def __init__(self, pop_size: int = 100, **settings: object) -> None:
        super().__init__(pop_size, **settings)
        needed = isinstance(self.mating.crossover, RowCrossover) and isinstance(self.mating.mutation, RowMutation)
        needed = needed and isinstance(self.eliminate_duplicates, DigestDuplicates)
        if not needed or not settings.keys().isdisjoint({"selection", "survival", "mating"}):
            raise ValueError(
                "nsga2 works on arrays, with crossover, mutation and duplicate elimination of moerank.evolution; "
                "take pymoo's NSGA2 for other operators"
            )

    def _initialize_advance(self, infills: Population, **kwargs: object) -> None:
        self._select(Rows.of(infills, packed=True), len(infills))

    def _infill(self) -> Rows | None:
        parents, digests = set(self.rows.digests), dict[bytes, None]()
        batch = np.empty((0, 0))
        for _ in range(self.mating.n_max_iterations):
            children = self._children(-(-(self.n_offsprings - len(digests)) // 2))
            batch = batch if digests else children
            for child, digest in zip(children, row_digests(children), strict=True):
                if digest not in parents and digest not in digests and len(digests) < self.n_offsprings:
                    batch[len(digests)] = child  # in place of an earlier duplicate, or of itself
                    digests[digest] = None
            if len(digests) == self.n_offsprings:
                break
        if not digests:
            self.termination.force_termination = True
            return None
        return Rows(batch[: len(digests)], list(digests), n_bits=self.rows.n_bits)

    def _children(self, n_matings: int) -> Array:
        """Return two children of each mating, the first ones before the second ones."""
        parents = self._winners(2 * n_matings).reshape(-1, 2)
        children = self.mating.crossover.cross(self.problem, self.rows.X, parents, random_state=self.random_state)
        mutated = self.mating.mutation.mutate(self.problem, children, random_state=self.random_state, algorithm=self)
        if isinstance(self.repair, NoRepair):
            return np.asarray(mutated)
        return pack_rows(self._repaired(unpack_rows(mutated, self.rows.n_bits)))

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
        if infills is not None:
            others = infills if isinstance(infills, Rows) else Rows.of(infills, packed=True)
            self._select(self.rows, self.pop_size, others)

    def _select(self, rows: Rows, n: int, others: Rows | None = None) -> None:
        """Keep the first `n` individuals, of `rows` and then `others`, by front, then crowding distance."""
        F = rows.F if others is None else np.concatenate((rows.F, others.F))
        n = min(n, len(F))
        rank = front_numbers(F)
        crowding = crowding_distances(F, rank)
        survivors = np.argsort(rank, kind="stable")
        survivors = survivors[
            : np.searchsorted(rank[survivors], rank[survivors[n - 1]], side="right")
        ]  # with all of the last front
        if len(survivors) > n:
            front = np.flatnonzero(rank == rank[survivors[n - 1]])
            drawn = front[self.random_state.permutation(len(front))]
            last = drawn[np.argsort(crowding[drawn], kind="stable")[len(survivors) - n :]][::-1]
            survivors = np.concatenate((survivors[: n - len(last)], last))
        self.rows = self.pop = rows.take(survivors) if others is None else rows.take_with(others, survivors)
        self.rows.data |= {"rank": rank[survivors], "crowding": crowding[survivors]}

    def _set_optimum(self) -> None:
        self.opt = self.rows.take(self.rows.data["rank"] == 0)

"""DAEA (Xu, Xue, Zhang 2021): mating of neighbours, and removal of near duplicates among equal objective vectors."""

import numpy as np

from moerank.arrays import Integers, Mask, Matrix
from moerank.evolution import bit_search

NEIGHBOURS = 0.2  # share of the population, at least four
NEARBY = 0.8  # probability that the second parent is a neighbour of the first
BALANCED = 0.2  # probability of a mutation that flips as many ones as zeros on average


class DAEA(bit_search.BitSearch):
    """The duplication analysis based evolutionary algorithm for bit strings.

    Parameters
    ----------
    pop_size : int, default 100
    sampling, repair, **settings
        See `BitSearch`.

    Notes
    -----
    1. T = min(d, 3N). If T < d, each initial string has k ones, k uniform in 1 … T; otherwise its bits are random.
    2. Each member is the first parent of a child. The second is, with probability 0.8, one of its max(4, ⌈0.2 N⌉)
       nearest members, by the objectives scaled to [0, 1], otherwise any other member.
    3. Crossover: if the parents differ in t > 1 bits, the child takes a random number of these bits, from 1 to t − 1,
       from the second parent.
    4. Mutation: with probability 0.2 each one flips with probability 1 / (ones + 1) and each zero with 1 / (zeros + 1);
       otherwise each bit with 1/d.
    5. Only one of equal children is evaluated.
    6. Selection is among the parents and children, without copies. In each group of equal objective vectors a string
       of s ones is a near duplicate if (least Hamming distance to another of the group / 2) / s is less than
       0.8 − 0.6 (s − 1) / (d − 1). All near duplicates of a group are removed except a random one. If fewer than N
       strings are then left, none is removed.
    7. Selection goes front by front. From the last front it takes, one by one, the string whose size is rarest among
       those selected so far, of several the one with the largest crowding distance. If there are fewer than N strings,
       random ones are duplicated.

    The size of a string is the number of its ones, whatever the objectives are; there can be any number of them.
    O(N² n_objectives + N d log d) a generation, and O(n² d) more for n strings that share their objectives.

    References
    ----------
    H. Xu, B. Xue, M. Zhang: A duplication analysis-based evolutionary algorithm for biobjective feature selection.
    IEEE Trans. Evolutionary Computation 25(2), 2021.
    """

    def _start(self, n: int) -> Mask:
        d, largest = self.problem.n_var, 3 * self.pop_size
        if largest >= d:
            return self.random_state.random((n, d)) < 0.5
        return self._strings_up_to(largest, n)

    def _mate(self) -> Mask:
        return self._mutated(self._crossed(self.X, self.X[self._second_parents()]))

    def _survive(self, X: Mask, F: Matrix) -> Integers:
        distinct = bit_search.first_of_equals(X)
        n_missing = self.pop_size - len(distinct)
        if n_missing >= 0:
            copies = self.random_state.choice(len(X), n_missing, replace=n_missing > len(X))
            return np.concatenate((distinct, copies))
        unlike = distinct[~self._near_duplicates(X[distinct], F[distinct])]
        rest = unlike if len(unlike) >= self.pop_size else distinct
        return rest[_select_by_size(F[rest], np.count_nonzero(X[rest], axis=1), self.pop_size)]

    def _second_parents(self) -> Integers:
        """Return another member for each member of the population; a single member is its own mate."""
        n = len(self.X)
        if n == 1:
            return np.zeros(1, np.int64)
        spans = np.maximum(np.ptp(self.F, axis=0), np.finfo(float).tiny)
        scaled = (self.F - self.F.min(axis=0)) / spans
        distances = ((scaled[:, None] - scaled) ** 2).sum(axis=2)
        np.fill_diagonal(distances, np.inf)
        n_near = min(max(4, int(np.ceil(NEIGHBOURS * n))), n - 1)
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :n_near]
        members = np.arange(n)
        neighbours = nearest[members, self.random_state.integers(n_near, size=n)]
        strangers = (members + self.random_state.integers(1, n, n)) % n
        return np.where(self.random_state.random(n) < NEARBY, neighbours, strangers)

    def _crossed(self, parents: Mask, mates: Mask) -> Mask:
        different = parents ^ mates
        t = np.count_nonzero(different, axis=1)
        n_exchanged = np.where(t > 1, self.random_state.integers(1, np.maximum(t, 2)), 0)
        return parents ^ self._random_subsets(different, n_exchanged)

    def _mutated(self, children: Mask) -> Mask:
        n, d = children.shape
        ones = np.count_nonzero(children, axis=1)[:, None]
        balanced = np.where(children, 1 / (ones + 1), 1 / (d - ones + 1))
        probability = np.where(self.random_state.random((n, 1)) < BALANCED, balanced, 1 / d)
        return children ^ (self.random_state.random((n, d)) < probability)

    def _near_duplicates(self, X: Mask, F: Matrix) -> Mask:
        """Return the mask of the near duplicates that leave their groups of equal objective vectors."""
        removed = np.zeros(len(X), bool)
        groups = bit_search.group_numbers(F)
        shared = np.flatnonzero(np.bincount(groups)[groups] > 1)
        if not len(shared):
            return removed
        X, groups = X[shared], groups[shared]
        distances = bit_search.hamming_distances(X, X)
        distances[groups[:, None] != groups] = np.inf
        np.fill_diagonal(distances, np.inf)
        sizes = np.count_nonzero(X, axis=1)
        limit = 0.8 - 0.6 * (sizes - 1) / max(1, X.shape[1] - 1)
        is_near = distances.min(axis=1) / 2 / sizes < limit
        near = self.random_state.permutation(np.flatnonzero(is_near))
        spared = near[bit_search.first_of_equals(groups[near, None])]
        removed[shared[near]] = True
        removed[shared[spared]] = False
        return removed


def _select_by_size(F: Matrix, sizes: Integers, n: int) -> Integers:
    """Return the indices of `n` strings, front by front; from the last front those of the rarest sizes."""
    front = bit_search.front_numbers(F)
    n_up_to = np.cumsum(np.bincount(front))
    last_front = int(np.searchsorted(n_up_to, n))
    selected = np.flatnonzero(front < last_front)
    candidates = np.flatnonzero(front == last_front)
    far = np.argsort(-bit_search.crowding_distances(F, front)[candidates], kind="stable")
    candidates = candidates[far]
    # The number of strings of its size in the fronts before, and among the candidates before it.
    candidate_sizes = sizes[candidates][:, None]
    n_of_size = (candidate_sizes == sizes[selected]).sum(axis=1)
    n_of_size += np.tril(candidate_sizes == sizes[candidates], -1).sum(axis=1)
    rarest = np.argsort(n_of_size, kind="stable")[: n - len(selected)]
    return np.sort(np.concatenate((selected, candidates[rarest])))

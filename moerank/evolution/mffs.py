"""MFFS (Jiao, Xue, Zhang 2023): a search for the front, helped by the minimisation of two weighted sums."""

from collections import deque
from typing import Any

import numpy as np
from pymoo.core.problem import Problem

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import check_at_least
from moerank.evolution import bit_search

WEIGHTS = (0.01, 0.99)  # first weights of the error in the two sums
PATIENCE = 5  # generations without better sums before the weights change


class MFFS(bit_search.BitSearch):
    """Multiform feature selection for bit strings.

    Parameters
    ----------
    pop_size : int, at least 4, default 100
        Half of it searches for the front, a quarter minimises each of the two sums.
    sampling, repair, **settings
        See `BitSearch`.

    Attributes
    ----------
    X, F : ndarray
        The members of all three populations.
    front_rows : ndarray of int64
        The rows of the population that searches for the front.
    sum_rows : list of two ndarray of int64
        The rows of the populations of the sums, the best first.
    weights : ndarray, shape (2,)
        The weights of the error in the sums.

    Notes
    -----
    f₁ is the share of the bits that are ones. f₂, the error, is the objective that is not proportional to the size, the
    second one if neither is. z holds the least f₁ and f₂ in the population of the front.

    1. Start with strings of k ones, k uniform in 1 … d. The three populations are selected among them.
    2. Each breeds by tournaments (front and crowding distance, or the sum g = (1 − a)(f₁ − z₁) + a (f₂ − z₂)), uniform
       crossover and flips with probability 1/d; a string without ones becomes a random one. If a child equals a
       member of any population or a child of an earlier one, a random one and a random zero are flipped in it. Only one
       of equal children is evaluated.
    3. All children are offered to all three populations.
    4. The population of the front keeps no copies, and the whole first front. From later fronts, until there are N/2
       strings, it keeps in each group of equal objective vectors the strings whose Hamming distance to each string of
       the same size selected before (if there is none, to the members of the first front nearest in size) is at least
       the mean distance within the population, or else the farthest string. If these are too few, it goes through the
       fronts again. The last front is cut by crowding distance.
    5. The populations of the sums keep the least g.
    6. If the best of both have the objectives of five generations ago, the weights change. Of the gaps between
       neighbours of the first front, take the two with the widest angles seen from z whose midpoints (c₁, c₂) were not
       taken last time: a = (c₁ − z₁) / ((c₁ − z₁) + (c₂ − z₂)), rounded to 0.01. If no gap is left, a is random.
    7. Then the populations of the sums are filled again from copies of the strings of the front, in each of which a one
       and a zero are flipped. These copies are evaluated in a batch of their own.

    O(N² d) a generation at most.

    References
    ----------
    R. Jiao, B. Xue, M. Zhang: Benefiting from single-objective feature selection to multiobjective feature selection: a
    multiform approach. IEEE Trans. Cybernetics 53(12), 2023.
    """

    n_objectives = (2, 2)

    def __init__(self, pop_size: int = 100, **settings: Any) -> None:
        super().__init__(pop_size, **settings)
        check_at_least(4, pop_size=pop_size)
        half, quarter = (pop_size + 1) // 2, (pop_size + 2) // 4
        self.sizes = (half, quarter, pop_size - half - quarter)

    def _setup(self, problem: Problem, **settings: object) -> None:
        super()._setup(problem, **settings)
        self.weights = np.array(WEIGHTS)
        self.midpoints = np.empty((0, 2))
        self.records: deque[list[list[float]]] = deque(maxlen=PATIENCE)
        self.refilling = False
        none = np.empty(0, np.int64)
        self.front_rows, self.sum_rows = none, [none, none]

    def _start(self, n: int) -> Mask:
        return self._strings_up_to(self.problem.n_var, n)

    def _mate(self) -> Mask:
        if self.refilling:
            return self._flip_one_and_zero(self.X[self.front_rows])
        children = np.empty((0, self.problem.n_var), bool)
        populations = [self.front_rows, *self.sum_rows]
        standings = [self.standing, *self.sums]
        for rows, standing, size in zip(populations, standings, self.sizes, strict=True):
            parents = rows[self._tournament(standing, 2 * max(1, size // 2))]
            brood = self._uniform_children(self.X[parents])
            numbers = bit_search.group_numbers(np.concatenate((brood, self.X, children)))
            present = np.isin(numbers[: len(brood)], numbers[len(brood) :])
            brood[present] = self._flip_one_and_zero(brood[present])
            children = np.concatenate((children, brood))
        return children

    def _survive(self, X: Mask, F: Matrix) -> Integers:
        f = np.column_stack((X.mean(axis=1), F[:, bit_search.without_size(X, F)[-1]]))
        batch = np.arange(len(self.X), len(X))
        if self.refilling:
            self._select_sums(f, [batch, batch])
            self.refilling = False
        else:
            self._select_front(X, F, np.concatenate((self.front_rows, batch)))
            self._select_sums(f, [np.concatenate((rows, batch)) for rows in self.sum_rows])
            if self._is_stale(f):
                self._change_weights(f)
                self.refilling = True
        members = np.unique(np.concatenate((self.front_rows, *self.sum_rows)))
        self.front_rows = np.searchsorted(members, self.front_rows)
        self.sum_rows = [np.searchsorted(members, rows) for rows in self.sum_rows]
        return members

    def _select_front(self, X: Mask, F: Matrix, rows: Integers) -> None:
        parents = X[self.front_rows] if len(self.front_rows) else X
        rows = rows[bit_search.first_of_equals(X[rows])]
        candidates = rows[_unlike(X[rows], F[rows], self.sizes[0], _mean_distance(parents))]
        selected, self.standing = bit_search.select_by_crowding(F[candidates], self.sizes[0])
        self.front_rows = candidates[selected]

    def _select_sums(self, f: Matrix, candidates: list[Integers]) -> None:
        """Keep the least sums of each; the point z is left out, because it changes no order."""
        self.sum_rows, self.sums = [], []
        for weight, rows, size in zip(self.weights, candidates, self.sizes[1:], strict=True):
            g = (1 - weight) * f[rows, 0] + weight * f[rows, 1]
            best = np.argsort(g, kind="stable")[:size]
            self.sum_rows.append(rows[best])
            self.sums.append(g[best])

    def _is_stale(self, f: Matrix) -> bool:
        best = [f[rows[0]].tolist() for rows in self.sum_rows]
        if len(self.records) == PATIENCE and self.records[0] == best:
            self.records.clear()
            return True
        self.records.append(best)
        return False

    def _change_weights(self, f: Matrix) -> None:
        points = f[self.front_rows]
        points = np.unique(points[bit_search.front_numbers(points) == 0], axis=0)
        seen = points - points.min(axis=0)
        angles = -np.diff(np.arctan2(seen[:, 1], seen[:, 0]))
        gaps = ((points[1:] + points[:-1]) / 2)[np.argsort(-angles, kind="stable")]
        repeated = (gaps[:, None] == self.midpoints).all(axis=2).any(axis=1)
        self.midpoints = gaps[~repeated][:2]
        weights = self.random_state.random(2)
        c = self.midpoints - points.min(axis=0)
        weights[: len(c)] = c[:, 0] / c.sum(axis=1)
        self.weights = weights.round(2)

    def _flip_one_and_zero(self, strings: Mask) -> Mask:
        """Return the strings with a random one and a random zero of each flipped, where it has any."""
        flipped = strings.copy()
        for bit in (strings, ~strings):
            able = np.flatnonzero(bit.any(axis=1))
            flipped[able, self._random_members(bit[able], 1)[0]] ^= True
        return flipped


def _mean_distance(X: Mask) -> float:
    """Return the mean Hamming distance between two of the rows."""
    ones = np.count_nonzero(X, axis=0)
    return float((ones * (len(X) - ones)).sum() / max(1, len(X) * (len(X) - 1) / 2))


def _unlike(X: Mask, F: Matrix, n: int, distance: float) -> Integers:
    """Return the indices of `n` or more rows of the first fronts, without rows near others of equal objectives.

    See step 4.
    """
    front = bit_search.front_numbers(F)
    groups = bit_search.group_numbers(F)
    sizes = np.count_nonzero(X, axis=1)
    first_front = front == 0
    selected = first_front.copy()
    while np.count_nonzero(selected) < min(n, len(X)):
        for number in range(1, front.max() + 1):
            remaining = np.flatnonzero((front == number) & ~selected)
            alone = np.bincount(groups[remaining], minlength=1)[groups[remaining]] == 1
            far = remaining[~alone]
            if len(far):
                distances = _distances_within_size(X, sizes, far, selected, first_front)
                far = far[_are_far(distances, groups[far], distance)]
            selected[remaining[alone]] = True
            selected[far] = True
            if np.count_nonzero(selected) >= n:
                break
    return np.flatnonzero(selected)


def _distances_within_size(
    X: Mask, sizes: Integers, rows: Integers, selected: Mask, first_front: Mask
) -> Vector:
    """Return the Hamming distance of each row to the nearest selected string of its size.

    Without such a string, the distance to the nearest of the first front's strings of the nearest sizes.
    """
    distances = bit_search.hamming_distances(X[rows], X)
    size_gaps = np.abs(sizes[rows][:, None] - sizes)
    gaps_to_front = np.where(first_front, size_gaps, size_gaps.max() + 1)
    nearest = first_front & (size_gaps == gaps_to_front.min(axis=1, keepdims=True))
    peers = selected & (size_gaps == 0)
    peers = np.where(peers.any(axis=1, keepdims=True), peers, nearest)
    return np.where(peers, distances, np.inf).min(axis=1)


def _are_far(distances: Vector, groups: Integers, min_distance: float) -> Mask:
    """Return which strings are at least so far away, or the farthest of their groups."""
    far = distances >= min_distance
    farthest = np.lexsort((-distances, groups))
    farthest = farthest[bit_search.first_of_equals(groups[farthest, None])]
    far[farthest] = True
    return far

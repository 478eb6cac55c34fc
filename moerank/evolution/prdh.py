"""PRDH (Jiao, Xue, Zhang 2024): the error of the smallest string as a limit, and diversity among equal objectives."""

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.evolution import bit_search


class PRDH(bit_search.BitSearch):
    """Problem reformulation and duplication handling for bit strings.

    Parameters
    ----------
    pop_size : int, default 100
    sampling, repair, **settings
        See `BitSearch`.

    Notes
    -----
    1. Start with strings of k ones, k uniform in 1 … min(d, 3N).
    2. N parents by tournament (front, then crowding distance); uniform crossover of all pairs, each bit flips with
       probability 1/d; a string without ones becomes a random one; only one of equal children is evaluated.
    3. Selection is among the parents and children, without copies. The first front is kept whole.
    4. In every later front, in each group of equal objective vectors, keep the non-dominated strings, o₁ and o₂
       maximised: o₁ is the mean Hamming distance to the members of the first front nearest in size, o₂ the mean, over
       its members nearest in error, of the share of their ones in which the string differs from them.
    5. The smallest string (of several the one of least error) sets the limit: strings of a larger error are infeasible.
    6. If N or more strings are feasible, select among them as NSGA-II does. Otherwise take the N smallest strings,
       whatever their error, which then compete in tournaments by their size.

    The size of a string is the number of its ones. Every objective that is not proportional to the size is an error.
    With several errors, a string is infeasible if it is above the limit in all of them, and nearest in error means the
    least sum of differences, each as a share of the objective's span. The N smallest strings are also ordered by error
    within a size. O(N² d) a generation at most.

    References
    ----------
    R. Jiao, B. Xue, M. Zhang: Solving multiobjective feature selection problems in classification via problem
    reformulation and duplication handling. IEEE Trans. Evolutionary Computation 28(4), 2024.
    """

    n_objectives = (2, None)

    def _start(self, n: int) -> Mask:
        return self._strings_up_to(min(self.problem.n_var, 3 * self.pop_size), n)

    def _mate(self) -> Mask:
        n_pairs = self.pop_size // 2
        parents = self.X[self._tournament(self.standing, 2 * n_pairs)]
        return self._uniform_children(parents)

    def _survive(self, X: Mask, F: Matrix) -> Integers:
        distinct = bit_search.first_of_equals(X)
        X, F = X[distinct], F[distinct]
        errors = F[:, bit_search.without_size(X, F)]
        unlike = _unlike(X, F, errors)
        distinct, X, F, errors = distinct[unlike], X[unlike], F[unlike], errors[unlike]
        smallest = np.lexsort((*errors.T[::-1], np.count_nonzero(X, axis=1)))
        feasible = np.flatnonzero((errors <= errors[smallest[0]]).any(axis=1))
        if len(feasible) < self.pop_size:
            selected = smallest[: self.pop_size]
            self.standing = np.arange(len(selected))
            return distinct[selected]
        selected, self.standing = bit_search.select_by_crowding(F[feasible], self.pop_size)
        return distinct[feasible[selected]]


def _unlike(X: Mask, F: Matrix, errors: Matrix) -> Integers:
    """Return the indices of the rows, without later ones too similar to others of equal objectives; see step 4."""
    front, groups = bit_search.front_numbers(F), bit_search.group_numbers(F)
    first_front = front == 0
    crowd = np.flatnonzero(~first_front & (np.bincount(groups)[groups] > 1))
    if not len(crowd):
        return np.arange(len(X))
    unlikeness = np.column_stack(_unlikeness(X, errors, crowd, first_front))
    unlike = np.ones(len(X), bool)
    for number in np.unique(groups[crowd]):
        members = groups[crowd] == number
        unlike[crowd[members]] = bit_search.front_numbers(-unlikeness[members]) == 0
    return np.flatnonzero(unlike)


def _unlikeness(
    X: Mask, errors: Matrix, rows: Integers, first_front: Mask
) -> tuple[Vector, Vector]:
    """Return o₁ and o₂ of these rows, their distances from the nearest members of the first front."""
    sizes = np.count_nonzero(X, axis=1)
    distances = bit_search.hamming_distances(X[rows], X[first_front])
    row_sizes, member_sizes = sizes[rows][:, None], sizes[first_front]
    # The string lacks (distance + size of the member - size of the string) / 2 of the member's ones.
    lacking = (distances + member_sizes - row_sizes) / 2 / member_sizes
    spans = np.maximum(np.ptp(errors, axis=0), np.finfo(float).tiny)
    error_gaps = (np.abs(errors[rows][:, None] - errors[first_front]) / spans).sum(axis=2)
    size_gaps = np.abs(row_sizes - member_sizes)
    return _mean_of_nearest(distances, size_gaps), _mean_of_nearest(lacking, error_gaps)


def _mean_of_nearest(values: NDArray[np.floating], distances: NDArray[np.number]) -> Vector:
    """Return the mean of the values of least distance in each row."""
    nearest = distances == distances.min(axis=1, keepdims=True)
    return (values * nearest).sum(axis=1) / nearest.sum(axis=1)

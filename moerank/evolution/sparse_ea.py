"""SparseEA (Tian, Zhang, Wang, Jin 2020): good single features are switched on first and off last."""

from math import ceil

import numpy as np
from pymoo.core.population import Population

from moerank.arrays import Integers, Mask, Matrix
from moerank.evolution.bit_search import (
    BitSearch,
    first_of_equals,
    front_numbers,
    select_by_crowding,
)


class SparseEA(BitSearch):
    """SparseEA for bit strings.

    The d strings with a single one are evaluated first. The score of a bit is the number of the non-dominated front
    of its string among them: low is good. To switch a bit on, two candidates are drawn and the lower score wins; to
    switch one off, the higher score wins.

    Parameters
    ----------
    pop_size : int, default 100
    sampling, repair, **settings
        See `BitSearch`. Given strings take places of step 2; the strings of step 1 are still evaluated.

    Notes
    -----
    1. Evaluate the d strings, which count as evaluations and are a generation of their own; score the bits.
    2. Start: each string gets ⌈r d⌉ bits, r uniform in (0, 1), each by a tournament on the score.
    3. Select the population among these and the strings of step 1.
    4. 2N parents by tournament (front, then crowding distance); each pair (p, q) gives one child o = p.
    5. Crossover: with probability ½ switch off one of the bits in p and not in q, else switch on one of those in q and
       not in p.
    6. Mutation: with probability ½ switch off one of o's ones, else switch on one of its zeros.
    7. Keep one of equal objective vectors, and select as NSGA-II does. Go on with step 4.

    As in the authors' program, copies are evaluated again. Unlike there, a child without ones is not evaluated. The
    number of objectives is arbitrary. O(N (d + n_objectives log N)) a generation.

    References
    ----------
    Y. Tian, X. Zhang, C. Wang, Y. Jin: An evolutionary algorithm for large-scale sparse multiobjective optimization
    problems. IEEE Trans. Evolutionary Computation 24(2), 2020.
    """

    sends_copies = True

    def _initialize_infill(self) -> Population | None:
        return self._batch(np.eye(self.problem.n_var, dtype=bool))

    def _infill(self) -> Population | None:
        return super()._initialize_infill() if self.n_iter == 2 else super()._infill()

    def _start(self, n: int) -> Mask:
        X = np.zeros((n, self.problem.n_var), bool)
        for row, share in zip(X, self.random_state.random(n), strict=True):
            row[self._tournament(self.score, ceil(share * len(row)))] = True
        return X

    def _mate(self) -> Mask:
        parents = self._tournament(self.standing, 2 * self.pop_size)
        p, q = np.split(self.X[parents], 2)
        children = p.copy()
        off = self._coins()
        self._flip_one(children, np.where(off, p & ~q, q & ~p), off)
        off = self._coins()
        self._flip_one(children, children == off, off)
        return children

    def _survive(self, X: Mask, F: Matrix) -> Integers:
        if not len(self.X):
            self.score = _scores(X, F)
            return np.arange(len(X))
        distinct = first_of_equals(F)
        selected, self.standing = select_by_crowding(F[distinct], self.pop_size)
        return distinct[selected]

    def _coins(self) -> Mask:
        return self.random_state.random((self.pop_size, 1)) < 0.5

    def _flip_one(self, children: Mask, candidates: Mask, off: Mask) -> None:
        """Flip a candidate of each row that has any: the better of two to switch on, the worse to switch off."""
        able = np.flatnonzero(candidates.any(axis=1))
        a, b = self._random_members(candidates[able], 2)
        sign = np.where(off[able, 0], -1, 1)
        winners = np.where(sign * self.score[b] < sign * self.score[a], b, a)
        children[able, winners] ^= True


def _scores(X: Mask, F: Matrix) -> Integers:
    """Return the best front of the strings with each bit; after a repair there may be several."""
    front = front_numbers(F)
    return np.where(X, front[:, None], front.max() + 1).min(axis=0)

"""Staircase: a search for the front over all sizes at once, with near mates, small moves and few strings of a size."""

import warnings
from functools import reduce
from typing import Any

import moocore
import numpy as np
from pymoo.core.population import Population
from pymoo.core.problem import Problem

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.evolution.bit_search import (
    BitSearch,
    are_size,
    crowding_distances,
    first_of_equals,
    without_size,
)
from moerank.evolution.operators import SubsetSizeSampling, row_digests

MAX_OF_A_SIZE = 3  # members of one size
MAX_RANKS_AWAY = 5  # ranks between a string and its near mate, in the order of size
DECIMALS = 12  # to which objectives are compared
P_FURTHER_MOVE = 1 / 3  # probability of one more move after each
MIN_SHARE = 0.05  # of an operator
MEMORY = 0.9  # weight of earlier successes in each generation
STALE_GENERATIONS = 12  # without progress, before the search begins anew
FULL_SIZE_AT = 10_000  # evaluations at which the population has its nominal size
SMALLEST_SHARE, LARGEST_SHARE = 1 / 4, 4  # sizes of the population as shares of the nominal size
TRIES = 6  # attempts to fill a batch; in the last two each child takes two more moves
FEW_BITS = 16  # length of strings up to which all may be evaluated
SHARE_OF_SINGLES = 0.05  # largest share of the evaluations for the strings with a single one

# Ways to make a child: from a near or any mate, from either with moves, by a flip, by an exchange of bits.
OPERATORS = NEAR, ANY, MOVED, FLIP, SWAP = range(5)

ADD, DROP, EXCHANGE = range(3)  # moves


class Staircase(BitSearch):
    """Search for the staircase of the best strings up to each number of ones.

    Parameters
    ----------
    pop_size : int, default 100
        Nominal number of strings in the population, and in a batch. Both grow with the square root of the
        number of evaluations, from a quarter of this number to four times as much, and reach it at 10,000 evaluations:
        a small population is far better early, and a large one late. In a search the attribute is the current size.
    sampling, repair, without, **settings
        See `BitSearch`; `Staircase.parts` are the parts that `without` can leave out.

    Warns
    -----
    UserWarning
        If no objective is the number of ones. The front is then spread by a number that is not an objective:
        on a knapsack of weight and value SparseEA finds a better front.

    Notes
    -----
    1. Start: all strings with a single one, if they take at most a twentieth of the evaluations (of 10,000 if the
       termination is not a number of evaluations). Half of the other strings come from the method
       ``starting_strings(n)`` of the problem, if it has one; it returns at most n strings (n, n_var). The rest are
       random: a size uniform in 1 … d, or up to the attribute ``max_ones`` of the problem, then any subset of that
       size.
    2. The gap of a member is how far it lies above the staircase. With one objective e besides the size it is e − N(k),
       with N(k) the least e among members of at most its k ones. With several, each divided by its span, it is the
       least amount by which all of them must fall so that no member of at most k ones is better in all; with one
       objective this is the same. Members on the staircase have a gap of 0.
    3. Survival: by gap, then size, then crowding among members of its size; at most three of a size, and only one with
       the same size and objectives (to 12 decimals). Those on the staircase all stay, even if they are more than P.
    4. Mating: the parent is the winner of a tournament of two on the gap. A child is made in one of five ways: it takes
       each bit in which they differ with probability ½ from a mate up to five ranks away in the order of size; or from
       the winner of another tournament; or from either, followed by moves; or any one of its bits is flipped; or a
       one and a zero are exchanged. A move adds, drops or exchanges random bits; each is followed by another with
       probability ⅓. No string is evaluated twice.
    5. The share of a way is 5 %, plus a part in proportion to the share of its children that survived recently (the
       sums lose a tenth each generation).
    6. If the staircase does not fall for 12 generations, the population is put aside, the evaluated strings are
       forgotten, and the search begins again from random strings. When that population is stale too, the two are united
       and go on together; the next time the population is put aside again. A search of strings of up to 16 bits ends
       when all have been evaluated.

    A generation of P strings takes O(P (d + log P)) with one objective besides the size, and O(P²) for each of
    several. The population is not the result: ``opt`` holds the non-dominated strings of all evaluations.

    Examples
    --------
    >>> from pymoo.optimize import minimize
    >>> class Knapsack(Problem):
    ...     def _evaluate(self, X, out, *args, **kwargs):
    ...         out["F"] = np.column_stack([X.sum(axis=1), ~X @ np.array([8, 4, 2, 1])])
    >>> result = minimize(Knapsack(n_var=4, n_obj=2), Staircase(pop_size=16), ("n_gen", 10), seed=1)
    >>> sorted(result.F.tolist())
    [[1.0, 7.0], [2.0, 3.0], [3.0, 1.0], [4.0, 0.0]]
    """

    parts = (
        *("single ones", "starting paths", "near mates", "crossover", "mutation"),
        *("shares by success", "growing population", "restarts", "few of a size"),
    )

    def __init__(self, pop_size: int = 100, **settings: Any) -> None:
        super().__init__(pop_size, **settings)
        self.nominal_size = pop_size
        removed = {"near mates": [NEAR], "crossover": [NEAR, ANY], "mutation": [MOVED, FLIP, SWAP]}
        left_out = {operator for part in self.without for operator in removed.get(part, ())}
        self.is_used = np.array([operator not in left_out for operator in OPERATORS])
        self.max_of_a_size = np.inf if "few of a size" in self.without else MAX_OF_A_SIZE
        if not self.is_used.any():
            raise ValueError("Staircase needs crossover or mutation; leave out only one of them")

    def _setup(self, problem: Problem, **settings: object) -> None:
        super()._setup(problem, **settings)
        self.n_sent = self.stale = 0
        self.pop_size = self._size_now()
        # Both sums over the generations lose a tenth in each.
        self.n_children, self.n_survivors = np.zeros((2, len(OPERATORS)))
        self.aside: Population | None = None
        self.all_sent: set[bytes] = set()
        self.best = Population.empty()
        self._forget()

    def _size_now(self) -> int:
        if "growing population" in self.without:
            return self.nominal_size
        growth = np.sqrt(self.n_sent / FULL_SIZE_AT)
        return max(2, int(self.nominal_size * np.clip(growth, SMALLEST_SHARE, LARGEST_SHARE)))

    def _forget(self) -> None:
        empty = np.zeros((1, self.problem.n_var), bool)
        self.sent = set(row_digests(empty))  # the empty string is never evaluated
        self.made_by: dict[bytes, int] = {}

    def _start(self, n: int) -> Mask:
        offer = getattr(self.problem, "starting_strings", None)
        if offer is None or "starting paths" in self.without:
            return self._random_strings(n)
        paths = offer(n // 2)
        return np.concatenate((paths, self._random_strings(n - len(paths))))

    def _batch(self, X: Mask, initial: Population | None = None) -> Population | None:
        if initial is not None and "single ones" not in self.without:
            n_var = self.problem.n_var
            evaluations = getattr(self.termination, "n_max_evals", FULL_SIZE_AT)
            if n_var <= SHARE_OF_SINGLES * evaluations:
                X = np.concatenate((np.eye(n_var, dtype=bool), X))
        return super()._batch(X, initial)

    def _random_strings(self, n: int) -> Mask:
        largest = getattr(self.problem, "max_ones", None)
        return SubsetSizeSampling(largest)._do(self.problem, n, random_state=self.random_state)

    def _mate(self) -> Mask:
        if self.problem.n_var <= FEW_BITS:
            self.all_sent |= self.sent
            if len(self.all_sent) == 2**self.problem.n_var:
                return self.X[:0]  # which ends the search
        if self.stale > STALE_GENERATIONS and "restarts" not in self.without:
            self.stale = 0
            if self.aside is None:
                return self._restart()
            self._unite()
        rows = []
        self.made_by = {}
        for attempt in range(TRIES):
            operators = self._operators(self.pop_size)
            may_move = attempt >= TRIES - 2 and "mutation" not in self.without
            children = self._children(operators, 2 if may_move else 0)
            for key, child, operator in zip(
                row_digests(children), children, operators.tolist(), strict=True
            ):
                if key not in self.sent and key not in self.made_by:
                    self.made_by[key] = operator
                    rows.append(child)
            if len(rows) >= self.pop_size:
                break
        if not rows and "restarts" in self.without:
            return self.X[:0]
        if not rows:  # all strings within reach have been evaluated
            self.stale = STALE_GENERATIONS + 1
            return self._mate()
        return np.array(rows[: self.pop_size])

    def _operators(self, n: int) -> Integers:
        """Draw an operator for each of `n` children."""
        success = (self.n_survivors + 0.5) / (self.n_children + 5)
        if "shares by success" in self.without:
            success = np.ones(len(OPERATORS))
        shares = MIN_SHARE + (1 - MIN_SHARE * len(OPERATORS)) * success / success.sum()
        shares *= self.is_used
        ends = (shares / shares.sum()).cumsum()
        return (ends / ends[-1]).searchsorted(self.random_state.random(n), side="right")

    def _children(self, operators: Integers, n_further_moves: int) -> Mask:
        """Return a child for each operator, with further moves at the end."""
        n, rng = len(operators), self.random_state
        parents = self._tournament(self.gap, n)
        size_order = self.X.sum(axis=1).argsort(kind="stable")
        rank = size_order.argsort()[parents]
        distance = rng.integers(1, MAX_RANKS_AWAY, n, endpoint=True)
        direction = np.where(rng.integers(2, size=n), 1, -1)
        near = size_order.take(rank + distance * direction, mode="clip")
        is_near = (operators == NEAR) | ((operators == MOVED) & (rng.random(n) < 0.5))
        is_near &= self.is_used[NEAR]
        mates = np.where(is_near, near, self._tournament(self.gap, n))
        children = self.X[parents]
        is_mated = rng.random(children.shape, np.float32) < 0.5
        is_mated &= (operators <= MOVED)[:, None] & self.is_used[ANY]
        children = np.where(is_mated, self.X[mates], children)
        flipped = np.flatnonzero(operators == FLIP)
        children[flipped, rng.integers(children.shape[1], size=len(flipped))] ^= True
        n_random_moves = rng.geometric(1 - P_FURTHER_MOVE, n)
        n_moves = np.where(operators == MOVED, n_random_moves, operators == SWAP)
        n_moves += n_further_moves
        for step in range(int(n_moves.max())):
            rows = np.flatnonzero(n_moves > step)
            kinds = rng.integers(3, size=len(rows))
            if step == 0:
                kinds[operators[rows] == SWAP] = EXCHANGE
            self._move(children, rows, kinds)
        return children

    def _move(self, X: Mask, rows: Integers, kinds: Integers) -> None:
        """Move some strings in place: add a random bit, drop a random one, or both."""
        sizes = X[rows].sum(axis=1)
        adds = rows[(kinds != DROP) & (sizes < X.shape[1])]
        drops = rows[(kinds != ADD) & (sizes > 0)]
        zeros = self._random_members(~X[adds], 1)[0]
        ones = self._random_members(X[drops], 1)[0]
        X[adds, zeros] = True
        X[drops, ones] = False

    def _sent(self, X: Mask) -> Integers:
        distinct = super()._sent(X)
        keys = row_digests(X[distinct])
        new = [i for i, key in enumerate(keys) if key not in self.sent]
        self.sent.update(keys)
        # After a repair that leaves nothing new, the search goes on and grows stale.
        return distinct[new] if new else distinct

    def _survive(self, X: Mask, F: Matrix) -> Integers:
        n_old = len(self.X)
        self.n_sent += len(X) - n_old
        self.pop_size = self._size_now()
        sizes, values = np.count_nonzero(X, axis=1), _values_without_size(X, F)
        if n_old == 0 and self.aside is None and F.shape[1] > 1 and not are_size(X, F).any():
            warnings.warn(
                f"no objective of {type(self.problem).__name__} is the number of ones, by which "
                "Staircase spreads its members; use another search, such as NSGA-II or SparseEA",
                stacklevel=2,
            )
        is_best = moocore.is_nondominated(np.column_stack((sizes, values.round(DECIMALS))))
        self.stale = 0 if is_best[n_old:].any() else self.stale + 1
        survivors, self.gap = select_by_gap(sizes, values, self.pop_size, self.max_of_a_size)
        digests = row_digests(X[n_old:])
        operators = np.array([self.made_by.get(digest, -1) for digest in digests], np.int64)
        successful = operators[survivors[survivors >= n_old] - n_old]
        for sums, made_by in ((self.n_children, operators), (self.n_survivors, successful)):
            sums *= MEMORY
            sums += np.bincount(made_by[made_by >= 0], minlength=len(OPERATORS))
        return survivors

    def _restart(self) -> Mask:
        """Put the population aside and return the first strings of another one."""
        self.aside = self.pop
        self._hold(Population.empty())
        self._forget()
        return self._random_strings(self.pop_size)

    def _unite(self) -> None:
        """Unite the population with the one put aside, and keep the survivors."""
        self._hold(Population.merge(self.pop, self.aside))
        sizes, values = np.count_nonzero(self.X, axis=1), _values_without_size(self.X, self.F)
        survivors, self.gap = select_by_gap(sizes, values, self.pop_size, self.max_of_a_size)
        self._hold(self.pop[survivors])
        self.aside = None

    def _set_optimum(self) -> None:
        candidates = Population.merge(self.best, self.pop)
        F = self._arrays(candidates)[1]
        best = F.argmin(axis=0) if F.shape[1] == 1 else moocore.is_nondominated(F)
        self.best = self.opt = candidates[best]


def gaps(sizes: Integers, values: Matrix) -> Vector:
    """Return the gap of each member above the staircase, shape (n,); see step 2 of `Staircase`.

    >>> gaps(np.array([1, 2, 2, 3]), np.array([[0.5], [0.25], [1.0], [0.5]])).tolist()
    [0.0, 0.0, 0.75, 0.25]
    >>> gaps(np.array([1, 2, 2]), np.array([[0.5, 0.5], [0.75, 1.0], [1.0, 0.25]])).tolist()
    [0.0, 0.25, 0.0]
    """
    if values.shape[1] == 1:
        minima = np.full(sizes.max() + 1, np.inf)
        np.minimum.at(minima, sizes, values[:, 0])
        return values[:, 0] - np.minimum.accumulate(minima)[sizes]
    # One objective after the other is faster than one cube of differences.
    falls = reduce(np.minimum, (value[:, None] - value for value in values.T))
    falls[sizes[None, :] > sizes[:, None]] = -np.inf
    return falls.max(axis=1)


def select_by_gap(
    sizes: Integers, values: Matrix, n: int, max_of_a_size: float = MAX_OF_A_SIZE
) -> tuple[Integers, Vector]:
    """Return the indices of the survivors among all members, at most `max_of_a_size` of a size, and their gaps.

    See step 3 of `Staircase`.

    >>> select_by_gap(np.array([1, 2, 2, 2]), np.array([[0.5], [1.0], [0.25], [0.25]]), 3)
    (array([0, 2, 1]), array([0.  , 0.  , 0.75]))
    """
    distinct = first_of_equals(np.column_stack((sizes, values.round(DECIMALS))))
    sizes, values = sizes[distinct], values[distinct]
    gap = gaps(sizes, values)
    order = np.lexsort((-crowding_distances(values, sizes), sizes, gap))
    grouped = np.argsort(sizes[order], kind="stable")
    group_begins = np.searchsorted(sizes[order][grouped], sizes[order][grouped])
    n_before = np.empty(len(order), np.int64)  # members of the same size before each
    n_before[grouped] = np.arange(len(order)) - group_begins
    survivors = order[n_before < max_of_a_size]
    survivors = survivors[: max(n, np.count_nonzero(gap[survivors] <= 0))]
    return distinct[survivors], gap[survivors]


def _values_without_size(X: Mask, F: Matrix) -> Vector:
    """Return the objectives other than the size; several as shares of their spans."""
    values = F[:, without_size(X, F)]
    if values.shape[1] == 1:
        return values
    span = np.ptp(values, axis=0)
    return (values - values.min(axis=0)) / np.where(span > 0, span, 1.0)

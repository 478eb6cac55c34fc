"""Base class of searches for bit strings, and the steps that several of them share."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import moocore
import numpy as np
from numpy.typing import NDArray
from pymoo.core.algorithm import Algorithm
from pymoo.core.initialization import Initialization
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.repair import Repair
from pymoo.core.sampling import Sampling
from pymoo.util.display.multi import MultiObjectiveOutput

from moerank.arrays import Array, Integers, Mask, Matrix, Vector
from moerank.checks import check_at_least, unknown
from moerank.data.inputs import listed


class BitSearch(Algorithm):  # type: ignore[misc]
    """A pymoo algorithm whose individuals are bool strings, with its population also in two arrays.

    A subclass implements three steps: `_start` draws the first strings, `_mate` makes the next batch, and `_survive`
    selects the next population. They read the population from `X` and `F`, and draw only from ``self.random_state``.

    Parameters
    ----------
    pop_size : int, at least 2, default 100
        Number of strings in the population, and in a batch.
    sampling : ndarray of bool, Population or Sampling, optional
        First strings of the initial population; all are used, even if they are more than `pop_size`. If they are fewer,
        `_start` draws the rest. Evaluated individuals are not evaluated again.
    repair : pymoo Repair, optional
        Applied to each batch before its evaluation.
    without : str or sequence of str, default ()
        Parts of the search to leave out, as in ablations; the class attribute `parts` has their names.
    **settings
        Passed on to pymoo's Algorithm.

    Attributes
    ----------
    X : ndarray of bool, shape (n, n_var)
        The population, in the order of ``pop``.
    F : ndarray, shape (n, n_objectives)
        Its objectives.
    pop, off, opt : Population
        As in pymoo.

    Raises
    ------
    ValueError
        For a problem with constraints, a number of objectives outside `n_objectives`, strings of another type or length
        than the problem's, and an initial population of only empty strings.

    Notes
    -----
    Empty strings are never evaluated. Only one of equal strings in a batch, after the repair, is evaluated, unless
    `sends_copies`. An empty batch ends the search, as in pymoo.

    Examples
    --------
    >>> class LocalSearch(BitSearch):
    ...     def _start(self, n):
    ...         return self.random_state.random((n, self.problem.n_var)) < 0.5
    ...
    ...     def _mate(self):
    ...         return self.X ^ (self.random_state.random(self.X.shape) < 1 / self.problem.n_var)
    ...
    ...     def _survive(self, X, F):
    ...         return np.argsort(F[:, 0], kind="stable")[: self.pop_size]
    >>> class Zeros(Problem):
    ...     def _evaluate(self, X, out, *args, **kwargs):
    ...         out["F"] = (~X).sum(axis=1)
    >>> from pymoo.optimize import minimize
    >>> minimize(Zeros(n_var=20, n_obj=1), LocalSearch(pop_size=10), ("n_gen", 50), seed=1).F.tolist()
    [0.0]
    """

    sends_copies: ClassVar[bool] = False
    """Whether equal strings of a batch are all evaluated."""

    parts: ClassVar[tuple[str, ...]] = ()
    """Names of the parts that can be left out."""

    n_objectives: ClassVar[tuple[int, int | None]] = (1, None)
    """Smallest and largest number of objectives of the method."""

    def __init__(
        self,
        pop_size: int = 100,
        *,
        sampling: Mask | Population | Sampling | None = None,
        repair: Repair | None = None,
        without: str | Sequence[str] = (),
        **settings: object,
    ) -> None:
        check_at_least(2, pop_size=pop_size)
        self.without = frozenset(listed(without))
        for part in self.without:
            if part not in self.parts:
                raise ValueError(unknown(f"part of {type(self).__name__}", part, self.parts))
        settings.setdefault("output", MultiObjectiveOutput())
        super().__init__(**settings)
        self.pop_size = pop_size
        self.sampling = sampling
        self.repair = repair

    @abstractmethod
    def _start(self, n: int) -> Mask:
        """Draw `n` strings of the initial population, shape (n, n_var)."""

    @abstractmethod
    def _mate(self) -> Mask:
        """Make the next batch from the population, shape (n_children, n_var)."""

    @abstractmethod
    def _survive(self, X: Mask, F: Matrix) -> Integers:
        """Return the indices of the survivors; X and F hold the population, then the evaluated batch.

        `self.X` and `self.F` hold the population, without rows for the initial batch.
        """

    @classmethod
    def check_objectives(cls, n_objectives: int) -> None:
        """Raise a ValueError for a number of objectives that the method is not made for."""
        min_objectives, max_objectives = cls.n_objectives
        if n_objectives < min_objectives or (
            max_objectives is not None and n_objectives > max_objectives
        ):
            or_more = " or more" if max_objectives is None else ""
            raise ValueError(
                f"{cls.__name__} is made for {min_objectives} objectives{or_more}, "
                f"not for {n_objectives}; choose another algorithm, such as nsga2"
            )

    def _setup(self, problem: Problem, **settings: object) -> None:
        refuse_constraints(self, problem)
        self.check_objectives(problem.n_obj)
        self._hold(Population.empty())

    def _hold(self, population: Population) -> None:
        """Make these individuals the population."""
        self.pop = population
        self.X, self.F = self._arrays(population)

    def _arrays(self, population: Population) -> tuple[Mask, Matrix]:
        X = np.array([individual.X for individual in population], bool)
        F = np.array([individual.F for individual in population], float)
        return X.reshape(-1, self.problem.n_var), F.reshape(-1, self.problem.n_obj)

    def _initialize_infill(self) -> Population | None:
        initial = self._initial_individuals()
        n_missing = self.pop_size - len(initial)
        return self._batch(self._start(n_missing) if n_missing > 0 else self.X[:0], initial)

    def _initialize_advance(self, infills: Population, **kwargs: object) -> None:
        self._select(infills)

    def _infill(self) -> Population | None:
        return self._batch(self._mate())

    def _advance(self, infills: Population | None = None, **kwargs: object) -> None:
        if infills is not None:
            self._select(Population.merge(self.pop, infills))

    def _select(self, both: Population) -> None:
        """Replace the population by the survivors of it and the evaluated batch."""
        self._hold(both[self._survive(*self._arrays(both))])

    def _set_optimum(self) -> None:
        if self.F.shape[1] == 1:
            self.opt = self.pop[self.F.argmin(axis=0)]
        else:
            best = np.flatnonzero(moocore.is_nondominated(self.F, keep_weakly=True))
            self.opt = self.pop[best[first_of_equals(self.X[best])]]

    def _initial_individuals(self) -> Population:
        """Return the non-empty individuals of `sampling`."""
        if self.sampling is None:
            return Population.empty()
        population = Initialization(self.sampling, repair=self.repair).do(
            self.problem, self.pop_size, random_state=self.random_state, algorithm=self
        )
        strings = self._checked(np.array([individual.X for individual in population]))
        return population[strings.any(axis=1)]

    def _batch(self, X: Mask, initial: Population | None = None) -> Population | None:
        """Return the strings `X` as individuals behind the initial ones, if any; None ends the search."""
        batch = Population.new("X", self._strings(X))
        if initial is not None:
            batch = Population.merge(initial, batch)
        if len(batch):
            return batch[self._sent(np.array([individual.X for individual in batch]))]
        if not len(self.X):
            raise ValueError(
                f"{type(self).__name__}: every string of the initial population is empty"
            )
        self.termination.force_termination = True
        return None

    def _strings(self, X: Mask) -> Mask:
        """Return the non-empty rows, repaired."""
        X = X[X.any(axis=1)]
        if self.repair is not None and len(X):
            X = self.repair._do(self.problem, X, random_state=self.random_state, algorithm=self)
        X = self._checked(X)
        return X[X.any(axis=1)]

    def _sent(self, X: Mask) -> Integers:
        """Return the rows of a batch that are evaluated."""
        return np.arange(len(X)) if self.sends_copies else first_of_equals(X)

    def _checked(self, X: Array) -> Mask:
        n_var = self.problem.n_var
        if len(X) and (X.dtype != bool or X.shape[1:] != (n_var,)):
            raise ValueError(
                f"the individuals are arrays of {X.dtype} of shape {X.shape[1:]}; "
                f"give bool strings of the problem's {n_var} variables"
            )
        return X.reshape(len(X), n_var)

    def _tournament(self, standing: NDArray[np.number], n: int) -> Integers:
        """Return the indices of the winners of `n` tournaments of two: of equal standings the first one wins."""
        a, b = self.random_state.integers(len(standing), size=(2, n))
        return np.where(standing[b] < standing[a], b, a)

    def _uniform_children(self, parents: Mask) -> Mask:
        """Return two children of each pair by uniform crossover and bit flips with probability 1 / n_bits.

        Row i of the first half is paired with row i of the second half. An empty child becomes a random string.
        """
        mothers, fathers = np.split(parents, 2)
        exchanged = mothers ^ fathers
        exchanged &= self.random_state.random(mothers.shape, np.float32) < 0.5
        children = np.concatenate((mothers ^ exchanged, fathers ^ exchanged))
        children ^= self.random_state.random(children.shape, np.float32) < 1 / children.shape[1]
        empty = ~children.any(axis=1)
        children[empty] = self.random_state.random(children[empty].shape, np.float32) < 0.5
        return children

    def _strings_up_to(self, largest: int, n: int) -> Mask:
        """Return `n` random strings of k ones, k uniform in 1 … `largest`, shape (n, n_var)."""
        sizes = self.random_state.integers(1, largest, n, endpoint=True)
        return self._random_subsets(np.ones((n, self.problem.n_var), bool), sizes)

    def _random_subsets(self, strings: Mask, sizes: Integers) -> Mask:
        """Return for each string a random subset of its ones of the given size, all subsets equally likely."""
        draws = np.where(strings, self.random_state.random(strings.shape), 2.0)
        largest_draws = np.sort(draws, axis=1)[np.arange(len(strings)), sizes - 1]
        return draws <= np.where(sizes > 0, largest_draws, -1.0)[:, None]

    def _random_members(self, strings: Mask, n: int) -> Integers:
        """Return `n` random ones of each non-empty string, drawn with replacement, shape (n, n_strings)."""
        counts = strings.cumsum(axis=1, dtype=np.int32)
        ordinals = (self.random_state.random((n, len(strings))) * counts[:, -1]).astype(np.int64)
        return (counts > ordinals[:, :, None]).argmax(axis=2)


def refuse_constraints(algorithm: Algorithm, problem: Problem) -> None:
    """Raise a ValueError for a problem with constraints."""
    if problem.has_constraints():
        raise ValueError(
            f"{type(algorithm).__name__} handles no constraints, and this problem has some: "
            "give a repair=… that keeps every string feasible, or use another algorithm, "
            "such as pymoo's NSGA2"
        )


def select_by_crowding(F: Matrix, n: int) -> tuple[Integers, Integers]:
    """Return the `n` points of the first fronts (all if there are fewer), ascending, and their standings.

    The last front is cut by crowding distance.

    >>> F = np.array([[0.0, 4], [1, 2], [2, 1.5], [4, 0], [4, 4]])
    >>> select_by_crowding(F, 3)
    (array([0, 2, 3]), array([0, 1, 0]))
    """
    front = front_numbers(F)
    standing = standings(front, crowding_distances(F, front))
    selected = np.sort(np.argsort(standing, kind="stable")[:n])
    return selected, standing[selected]


def front_numbers(F: Matrix) -> Integers:
    """Return the index of the non-dominated front of each point, from 0 on; equal points have the same index."""
    return np.asarray(moocore.pareto_rank(F), np.int64)


def crowding_distances(F: Matrix, front: Integers) -> Vector:
    """Return the crowding distance of each point within its own front, shape (n,).

    The sum over the objectives of the gaps to the two neighbours of a point, as shares of the span of its front; the
    ends are infinitely far. An objective whose values in a front are all equal adds 0. The bits are those of pymoo.
    O(n_objectives n log n), all fronts in one sort. K. Deb et al., IEEE Trans. Evol. Comput. 6(2), 2002, III-B.
    """
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
    return total


def standings(front: Integers, crowding: Vector) -> Integers:
    """Return the standing of each point, from 0 on, by front, then crowding distance; ties have the same."""
    order = np.lexsort((-crowding, front))
    front, crowding = front[order], crowding[order]
    differs = (front[1:] != front[:-1]) | (crowding[1:] != crowding[:-1])
    standing = np.empty(len(order), np.int64)
    standing[order] = np.cumsum(np.append(False, differs))[: len(order)]
    return standing


def are_size(X: Mask, F: Matrix) -> Mask:
    """Return which objectives are the size: proportional to the number of ones of these strings, within a billionth."""
    sizes = np.count_nonzero(X, axis=1)[:, None]
    return np.isclose(F * sizes[0], F[0] * sizes, rtol=1e-9, atol=0.0).all(axis=0)


def without_size(X: Mask, F: Matrix) -> Integers:
    """Return the indices of the objectives other than the size of the strings; all if all are the size.

    >>> without_size(np.array([[True, False], [True, True]]), np.array([[0.3, 0.5], [0.2, 1.0]])).tolist()
    [0]
    """
    is_size = are_size(X, F)
    return np.flatnonzero(~is_size | is_size.all())


def hamming_distances(A: Mask, B: Mask) -> NDArray[np.float32]:
    """Return the Hamming distances between the rows of `A` and `B`, shape (n_a, n_b); exact below 2²⁴ bits."""
    a, b = A.astype(np.float32), B.astype(np.float32)
    return a.sum(axis=1)[:, None] + b.sum(axis=1) - 2 * (a @ b.T)


def first_of_equals(rows: Array) -> Integers:
    """Return the indices of the rows, of bool or objectives, that equal no earlier row, ascending.

    Examples
    --------
    >>> first_of_equals(np.array([[True, False], [True, True], [True, False]])).tolist()
    [0, 1]
    """
    _, rows_of_values = np.unique(_as_single_values(rows), return_index=True)
    return np.sort(rows_of_values)


def group_numbers(rows: Array) -> Integers:
    """Return the index of the group of equal rows, of bool or objectives, that each row is in."""
    _, numbers = np.unique(_as_single_values(rows), return_inverse=True)
    return numbers


def _as_single_values(rows: Array) -> NDArray[np.void]:
    # The sum turns -0.0 into 0.0.
    values = np.packbits(rows, axis=1) if rows.dtype == bool else np.ascontiguousarray(rows + 0)
    return values.view(f"V{values.shape[1] * values.itemsize}").ravel()

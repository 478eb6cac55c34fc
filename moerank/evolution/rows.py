"""Individuals as the rows of arrays, and the base class of pymoo algorithms that keep them so."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pymoo.core.algorithm import Algorithm
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.repair import NoRepair

from moerank.arrays import Array, Integers, Mask, Matrix
from moerank.evolution.archive import row_digests
from moerank.evolution.operators import pack_rows, unpack_rows


@dataclass
class Rows:
    """Individuals as arrays: strings (n, n_var), `row_digests`, objectives (n, n_objectives), further values (n,).

    `X` may hold bits, eight in a byte, of strings of `n_bits`. `F` is empty until the individuals are evaluated. `data`
    has values such as ``n_gen`` of pymoo.
    """

    X: Array
    digests: list[bytes]
    F: Matrix = field(default_factory=lambda: np.empty((0, 0)))
    data: dict[str, Array] = field(default_factory=dict)
    n_bits: int = 0

    @classmethod
    def of(cls, population: Population, *, packed: bool = False) -> Rows:
        """Return evaluated individuals of pymoo as arrays, bits packed or not."""
        X, F = population.get("X", "F")
        rows = pack_rows(X) if packed else X
        born = {name: population.get(name) for name in ("n_gen", "n_iter")}
        return cls(rows, row_digests(rows), F.astype(np.float64), born, X.shape[1])

    @property
    def strings(self) -> Array:
        """The strings, bits as bool."""
        return unpack_rows(self.X, self.n_bits)

    def __len__(self) -> int:
        return len(self.X)

    def __add__(self, other: Rows) -> Rows:
        X, F = np.concatenate((self.X, other.X)), np.concatenate((self.F, other.F))
        data = {name: np.concatenate((self.data[name], other.data[name])) for name in self.data.keys() & other.data}
        return Rows(X, self.digests + other.digests, F, data, self.n_bits)

    def take(self, rows: Integers | Mask) -> Rows:
        """Return the individuals of these rows, given by number or as a mask."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        data = {name: values[numbers] for name, values in self.data.items()}
        F = self.F[numbers] if len(self.F) else self.F
        return Rows(self.X[numbers], [self.digests[i] for i in numbers.tolist()], F, data, self.n_bits)

    def take_with(self, other: Rows, numbers: Integers) -> Rows:
        """Return the individuals of these numbers, at least one, of ``self + other``, and copy no other string."""
        n = len(self)
        X = np.array([self.X[i] if i < n else other.X[i - n] for i in numbers.tolist()])
        both = replace(self, X=self.X[:, :0]) + replace(other, X=other.X[:, :0])
        return replace(both.take(numbers), X=X)

    def set(self, name: str, value: object) -> None:
        """Give all individuals a further value, as pymoo does with its generations."""
        self.data[name] = np.full(len(self), value)

    def individuals(self) -> Population:
        """Return the individuals as those of pymoo."""
        population, strings = Population.empty(len(self)), self.strings
        for i, individual in enumerate(population):
            individual.X = strings[i].copy()  # pymoo's Population.new takes several times as long
            if len(self.F):
                individual.F = self.F[i].copy()
                individual.evaluated.update("FGH")
            individual.data = {name: values[i] for name, values in self.data.items()}
        return population


class _Individuals:
    """Attribute that holds individuals as `Rows`, and makes those of pymoo for its reader."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, algorithm: Algorithm | None, owner: type) -> Any:
        if algorithm is None:
            return self
        individuals = vars(algorithm)[self.name] = _as_individuals(vars(algorithm).get(self.name))
        return individuals

    def __set__(self, algorithm: Algorithm, individuals: Rows | Population | None) -> None:
        vars(algorithm)[self.name] = individuals


class RowEvaluator(Evaluator):
    """pymoo's evaluator, which evaluates `Rows`, too.

    `elapsed` are the seconds from the beginning of the search to the last evaluation.
    """

    elapsed = 0.0
    _room: Mask | None = None

    def eval(self, problem: Problem, pop: Any, *args: Any, algorithm: Algorithm | None = None, **settings: Any) -> Any:
        """Evaluate `Rows` or individuals, and count them."""
        if not isinstance(pop, Rows):
            return super().eval(problem, pop, *args, algorithm=algorithm, **settings)
        pop.F = np.asarray(self._eval_rows(problem, pop, algorithm), np.float64)
        self.n_eval += len(pop)
        if self.callback:
            self.callback(pop)
        return pop

    def _eval_rows(self, problem: Problem, rows: Rows, algorithm: Algorithm | None) -> Matrix:
        """Return the objectives of the individuals."""
        if hasattr(problem, "evaluate_rows"):
            F: Matrix = problem.evaluate_rows(self._in_room(rows), rows.digests)
        else:
            F = problem.evaluate(rows.strings, return_values_of=["F"], algorithm=algorithm)
        self._read_clock(algorithm)
        return F

    def _in_room(self, rows: Rows) -> Array:
        """Return the strings, long ones in the same memory each time: new memory takes longer than the bits."""
        if rows.X.dtype != np.uint8:
            return rows.X
        if self._room is None or self._room.shape[1] != rows.n_bits or len(self._room) < len(rows):
            self._room = np.empty((len(rows), rows.n_bits), np.bool_)
        return unpack_rows(rows.X, rows.n_bits, self._room)

    def _eval(
        self, problem: Problem, pop: Population, names: Any, algorithm: Algorithm | None = None, **kw: object
    ) -> None:
        super()._eval(problem, pop, names, algorithm=algorithm, **kw)
        self._read_clock(algorithm)

    def _read_clock(self, algorithm: Algorithm | None) -> None:
        if algorithm is not None and algorithm.start_time is not None:
            self.elapsed = max(self.elapsed, time.time() - algorithm.start_time)


class RowAlgorithm(Algorithm):
    """A pymoo algorithm that keeps its population as arrays, in `rows`, and makes batches of `Rows`.

    `pop`, `off` and `opt` are individuals of pymoo, made when they are read; changes of them do not reach the search.
    So are the batches of ``ask`` and those that an evaluator of the user's gets. Problems with constraints are refused.
    """

    pop = _Individuals()
    off = _Individuals()
    opt = _Individuals()
    rows: Rows

    def __init__(self, *args: Any, evaluator: Evaluator | None = None, **settings: Any) -> None:
        super().__init__(*args, evaluator=RowEvaluator() if evaluator is None else evaluator, **settings)

    def _setup(self, problem: Problem, **settings: object) -> None:
        if problem.has_constraints():
            raise ValueError(
                f"{type(self).__name__} knows no constraints, and this problem has some: "
                "give a repair=… that keeps every string feasible, or take another algorithm, such as pymoo's NSGA2"
            )

    def infill(self) -> Rows | Population | None:
        """Return the next batch."""
        batch = super().infill()
        return batch if isinstance(self.evaluator, RowEvaluator) else _as_individuals(batch)

    def ask(self) -> Population | None:
        """Return the next batch as individuals of pymoo."""
        return _as_individuals(self.infill())

    def advance(self, infills: Rows | Population | None = None, **kwargs: object) -> Any:
        """Take the evaluated batch, as pymoo does; with `Rows` no individual is made for a return value."""
        if not isinstance(infills, Rows) or self.archive is not None:
            return super().advance(infills=_as_individuals(infills), **kwargs)
        self.off = infills
        self._advance(infills=infills, **kwargs)
        self._post_advance()
        if self.termination.has_terminated():
            self.finalize()
        return None

    def _repaired(self, X: Array) -> Array:
        """Return the repaired rows."""
        if self.repair is None or isinstance(self.repair, NoRepair) or not len(X):
            return X
        repaired: Array = self.repair._do(self.problem, X, random_state=self.random_state, algorithm=self)
        return repaired


def _as_individuals(batch: Rows | Population | None) -> Population | None:
    return batch.individuals() if isinstance(batch, Rows) else batch

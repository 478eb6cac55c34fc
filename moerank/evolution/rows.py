"""Individuals as the rows of arrays, and the base class of pymoo algorithms that keep them so."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pymoo.core.algorithm import Algorithm
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.core.repair import NoRepair

from moerank.arrays import Array, Integers, Mask, Matrix
from moerank.evolution.archive import row_digests


@dataclass
class Rows:
    """Individuals as arrays: strings (n, n_var), `row_digests`, objectives (n, n_objectives), further values (n,).

    `F` is of no use before the evaluation. `data` has values such as ``n_gen`` of pymoo.
    """

    X: Array
    digests: list[bytes]
    F: Matrix = field(default_factory=lambda: np.empty((0, 0)))
    data: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, population: Population) -> Rows:
        """Return evaluated individuals of pymoo as arrays."""
        X, F = (np.array([getattr(individual, name) for individual in population]) for name in "XF")
        born = {name: population.get(name) for name in ("n_gen", "n_iter")}
        return cls(X, row_digests(X), F.astype(np.float64), born)

    def __len__(self) -> int:
        return len(self.X)

    def __add__(self, other: Rows) -> Rows:
        X, F = np.concatenate((self.X, other.X)), np.concatenate((self.F, other.F))
        data = {name: np.concatenate((self.data[name], other.data[name])) for name in self.data.keys() & other.data}
        return Rows(X, self.digests + other.digests, F, data)

    def take(self, rows: Integers | Mask) -> Rows:
        """Return the individuals of these rows, given by number or as a mask."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        data = {name: values[numbers] for name, values in self.data.items()}
        return Rows(self.X[numbers], [self.digests[i] for i in numbers.tolist()], self.F[numbers], data)

    def take_with(self, other: Rows, numbers: Integers) -> Rows:
        """Return the individuals of these numbers, at least one, of ``self + other``, and copy no other string."""
        n = len(self)
        X = np.array([self.X[i] if i < n else other.X[i - n] for i in numbers.tolist()])
        both = replace(self, X=self.X[:, :0]) + replace(other, X=other.X[:, :0])
        return replace(both.take(numbers), X=X)

    def set(self, name: str, value: object) -> None:
        """Give all individuals a further value, as pymoo does with its generations."""
        self.data[name] = np.full(len(self), value)

    def evaluate(self, algorithm: Algorithm) -> None:
        """Evaluate the individuals, and count them."""
        problem = algorithm.problem
        if hasattr(problem, "evaluate_rows"):
            self.put(problem.evaluate_rows(self.X, self.digests), algorithm)
        else:
            self.put(problem.evaluate(self.X, return_values_of=["F"], algorithm=algorithm), algorithm)

    def put(self, values: Matrix, algorithm: Algorithm) -> None:
        """Take known objectives, and count the individuals."""
        self.F = np.asarray(values, np.float64)
        algorithm.evaluator.n_eval += len(self)

    @property
    def values(self) -> Matrix:
        """The objectives, which a journal holds."""
        return self.F

    def feasible(self) -> tuple[Array, Matrix]:
        """Return the strings and objectives of the feasible individuals."""
        return self.X, self.F

    def individuals(self) -> Population:
        """Return the individuals as those of pymoo."""
        population = Population.empty(len(self))
        for i, individual in enumerate(population):
            individual.X = self.X[i].copy()  # pymoo's Population.new takes several times as long
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
        held = vars(algorithm).get(self.name)
        if isinstance(held, Rows):
            held = vars(algorithm)[self.name] = held.individuals()
        return held

    def __set__(self, algorithm: Algorithm, individuals: Rows | Population | None) -> None:
        vars(algorithm)[self.name] = individuals


class RowAlgorithm(Algorithm):
    """A pymoo algorithm that keeps its population as arrays, in `rows`.

    `pop`, `off` and `opt` are individuals of pymoo, made when they are read; changes of them do not reach the search.
    `gives_rows` says whether batches are `Rows`, otherwise a Population.
    """

    pop = _Individuals()
    off = _Individuals()
    opt = _Individuals()
    rows: Rows
    gives_rows = False

    def give_rows(self) -> None:
        """Let the batches be `Rows` from now on, unless something else than the search reads them."""
        self.gives_rows = (
            type(self.evaluator) is Evaluator
            and not self.evaluator.callback
            and self.archive is None
            and not self.problem.has_constraints()
        )

    def advance(self, infills: Rows | Population | None = None, **kwargs: object) -> Any:
        """Take the evaluated batch, as pymoo does; with `Rows` no individual is made for a return value."""
        if not isinstance(infills, Rows):
            return super().advance(infills=infills, **kwargs)
        self.off = infills
        self._advance(infills=infills, **kwargs)
        self._post_advance()
        if self.termination.has_terminated():
            self.finalize()
        return None

    def _repaired(self, X: Array) -> Array:
        if self.repair is None or isinstance(self.repair, NoRepair) or not len(X):
            return X
        population = Rows(X, []).individuals()
        population = self.repair.do(self.problem, population, random_state=self.random_state, algorithm=self)
        return np.array([individual.X for individual in population])

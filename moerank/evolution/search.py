"""The search loop: ask, evaluate, tell, with an exact archive, a history and a journal of the evaluations.

The populations are the same, bit for bit, as in ``pymoo.optimize.minimize`` with the same seed. A search is resumed by
running it again from its seed with the objectives in the journal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeAlias

import moocore
import numpy as np
from numpy.typing import ArrayLike
from pymoo.core.algorithm import Algorithm
from pymoo.core.evaluator import Evaluator
from pymoo.core.individual import Individual
from pymoo.core.population import Population
from pymoo.core.problem import Problem

from moerank.arrays import Array, Matrix, Vector
from moerank.evolution.archive import Archive, DigestDuplicates, row_digests
from moerank.evolution.journal import Journal, Record
from moerank.evolution.rows import RowAlgorithm, Rows

Offspring: TypeAlias = Population | Individual | None
"""The result of pymoo's ``ask``."""


@dataclass(frozen=True)
class Generation:
    """State of a search after one generation.

    Attributes
    ----------
    n_gen, n_eval : int
        Generations and evaluations so far.
    elapsed : float
        Seconds from the beginning of the search to the last evaluation, without interruptions.
    front : ndarray, shape (n_members, n_objectives)
        The objective values of the archive.
    """

    n_gen: int
    n_eval: int
    elapsed: float
    front: Matrix


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search.

    Attributes
    ----------
    algorithm : pymoo Algorithm
        The algorithm after its last generation, with its ``pop`` and ``opt``.
    archive : Archive
        The non-dominated individuals of all evaluations, and of the given archive.
    history : tuple of Generation
    """

    algorithm: Algorithm
    archive: Archive
    history: tuple[Generation, ...]

    @property
    def pop(self) -> Population:
        """The last population."""
        return self.algorithm.pop

    def hypervolume(self, reference: ArrayLike) -> Vector:
        """Return the hypervolume of the archive after each generation, against `reference`, one value per objective."""
        fronts = [generation.front for generation in self.history]
        return np.array([moocore.hypervolume(front, ref=reference) if len(front) else 0.0 for front in fronts])


def search(
    problem: Problem,
    algorithm: Algorithm,
    termination: object,
    *,
    seed: int | None,
    archive: Archive | None = None,
    journal: Journal | None = None,
    progress: Callable[[float, int, int], object] | None = None,
    verbose: bool = False,
) -> SearchResult:
    """Minimise `problem` by a pymoo `algorithm`.

    Parameters
    ----------
    problem : pymoo Problem
        It may have the methods ``restore_cache(known)``, which takes the objectives of a journal as a mapping of
        digests (`row_digests`) to tuples; ``measure_again(X)``, which returns objectives without looking them up; and
        ``evaluate_rows(rows, digests)``, which returns F for a sequence of rows without copying them to one array.
    algorithm : pymoo Algorithm
        A fresh algorithm, which is copied. Its ``sampling`` makes the initial population.
    termination : int, tuple or pymoo Termination
        A number of generations, or a termination as in pymoo: ("n_gen", 50), ("n_eval", 5000), ("time", "00:01:00") or
        a Termination object.
    seed : int or None
        Seed of all random draws; None draws one.
    archive : Archive, optional
        Known individuals. They stay where nothing dominates them, and this archive becomes that of the result.
    journal : Journal, optional
        Each batch of individuals is written to it after its evaluation. If its file exists, the search is repeated with
        the objectives and times in the file, and goes on where the file ends. The caller removes the file. A drawn seed
        stands in it, and must be given to go on.
    progress : callable, optional
        Called after each generation as ``progress(fraction, n_gen, n_eval)`` with the fraction done, in [0, 1], but not
        for generations that are repeated from a journal.
    verbose : bool, default False
        Let pymoo print its table, a line per generation.

    Returns
    -------
    SearchResult

    Raises
    ------
    ValueError
        If the algorithm has been set up already, an objective value is NaN, or the journal is damaged or belongs to
        another search, configuration or version.

    Notes
    -----
    However the search ends, the journal holds all earlier evaluations. A resumed search has the same bits as an
    undisturbed one, if the problem gives equal individuals equal values, draws come from the random state of the
    algorithm alone, and times from ``algorithm.start_time``, as in all of pymoo. A search that differs from its journal
    is refused. Only F, G and H of an individual are kept.

    At its end a resumed search measures its archive again, and refuses a journal with other values (without
    ``measure_again``, values that differ in the first nine digits, as the last bits may depend on the batch). Other
    individuals are not measured again, so that a user who may write to the folder of the journal could deceive it.

    The clock is monotonic and read once for each batch; pymoo sees that reading as the time since
    ``algorithm.start_time``.

    Examples
    --------
    >>> from pymoo.algorithms.moo.nsga2 import NSGA2
    >>> from pymoo.problems import get_problem
    >>> result = search(get_problem("zdt1", n_var=5), NSGA2(pop_size=20), ("n_gen", 5), seed=1)
    >>> [generation.n_eval for generation in result.history]
    [20, 40, 60, 80, 100]
    """
    if algorithm.problem is not None:
        raise ValueError("search: the algorithm has been set up already; give a freshly made one")
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    algorithm = deepcopy(algorithm)
    termination = ("n_gen", termination) if isinstance(termination, int) else deepcopy(termination)
    algorithm.setup(problem, termination=termination, seed=seed, verbose=verbose)
    if isinstance(algorithm, RowAlgorithm):
        algorithm.give_rows()
    history: list[Generation] = []
    steps = _Steps(problem, algorithm, Archive() if archive is None else archive, journal, _Clock(time.time()))
    try:
        if journal is not None:
            journal.open(steps.about(), sum(steps.sizes))
        while algorithm.has_next():
            n_gen = algorithm.n_iter
            steps.advance()
            if algorithm.n_iter == n_gen:
                # MOEAD tells one individual at a time; its generation is still under way.
                continue
            n_eval = algorithm.evaluator.n_eval
            history.append(Generation(len(history) + 1, n_eval, steps.clock.elapsed, steps.archive.F))
            if progress is not None and not (journal is not None and journal.repeating):
                progress(min(1.0, algorithm.termination.perc), len(history), n_eval)
        if journal is not None:
            steps.check_end(journal)
    finally:
        if journal is not None:
            journal.close()
    return SearchResult(algorithm, steps.archive, tuple(history))


@dataclass
class _Steps:
    """The steps of a search: ask, evaluate or repeat, tell."""

    problem: Problem
    algorithm: Algorithm
    archive: Archive
    journal: Journal | None
    clock: _Clock

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The numbers of objectives, inequalities and equalities."""
        return self.problem.n_obj, self.problem.n_ieq_constr, self.problem.n_eq_constr

    def about(self) -> dict[str, object]:
        """Return the properties of the search that a journal must share, beside the configuration of the run."""
        return {
            "algorithm class": type(self.algorithm).__name__,
            "seed of the search": self.algorithm.seed,
            "variables": self.problem.n_var,
            "objectives, inequalities, equalities": list(self.sizes),
        }

    def advance(self) -> None:
        """Ask, evaluate, tell, and add the feasible individuals to the archive."""
        offspring = self.algorithm.ask()
        self.algorithm.start_time = self.clock
        batch = offspring if isinstance(offspring, Rows) else _Members(offspring, self.algorithm)
        if self.journal is None:
            batch.evaluate(self.algorithm)
            self.clock.read()
        else:
            self._evaluate_once(batch, self.journal)
        if offspring is None:
            # The mating found nothing new: the algorithm has asked its termination to stop.
            self.algorithm.tell()
            return
        with np.errstate(invalid="ignore"):  # RVEA takes the arc cosine of angles that rounding made larger than 1
            self.algorithm.tell(infills=offspring)
        X, F = batch.feasible()
        if len(X):
            self.archive.add(X, F)

    def _evaluate_once(self, batch: Rows | _Members, journal: Journal) -> None:
        """Take the values of the offspring from the journal, or evaluate them and write them down."""
        digests = batch.digests
        record = journal.read(len(digests))
        if record is None:
            batch.evaluate(self.algorithm)
            self.clock.read()
            journal.append(Record(self.clock.elapsed, digests, batch.values))
            return
        if digests != record.digests:
            i = next(i for i, digest in enumerate(digests) if digest != record.digests[i])
            journal.differs(f"its individual {i + 1} of {len(digests)} is another than the one asked for")
        batch.put(record.values, self.algorithm)
        if not np.array_equal(batch.values, record.values):
            journal.differs("its values are not those of the initial population that was given")
        self.clock.put(record.elapsed)
        if hasattr(self.problem, "restore_cache"):
            F = record.values[:, : self.problem.n_obj].tolist()
            self.problem.restore_cache({digest: tuple(row) for digest, row in zip(digests, F, strict=True)})

    def check_end(self, journal: Journal) -> None:
        """Refuse a journal with further records, or with other values than the archive has when measured again."""
        n_records = journal.n_records
        if journal.read() is not None:
            journal.differs(f"the search ends after {n_records} records")
        if not journal.resumed or not len(self.archive):
            return
        X, F = self.archive.X, self.archive.F
        if hasattr(self.problem, "measure_again"):
            right = (self.problem.measure_again(X) == F).all(axis=1)
        else:
            again = Evaluator().eval(self.problem, Population.new("X", X), algorithm=self.algorithm)
            right = np.isclose(again.get("F"), F, rtol=1e-9, atol=1e-12).all(axis=1) & again.get("feas").ravel()
        if not right.all():
            i = int(right.argmin())
            raise ValueError(
                f"journal {journal.path} holds wrong values: measured again, the member of the front with "
                f"{F[i].tolist()} has others; remove the journal to begin anew (if the problem itself gives one "
                "individual changing values, it cannot be resumed)"
            )


class _Members:
    """Individuals of pymoo, with the methods of `Rows`."""

    def __init__(self, offspring: Offspring, algorithm: Algorithm) -> None:
        self.offspring = offspring
        self.members = np.empty(0, object) if offspring is None else np.atleast_1d(offspring)
        problem = algorithm.problem
        self.sizes = problem.n_obj, problem.n_ieq_constr, problem.n_eq_constr
        elimination = getattr(algorithm, "eliminate_duplicates", None)
        self.elimination = elimination if isinstance(elimination, DigestDuplicates) else None

    @property
    def digests(self) -> list[bytes]:
        if self.elimination is not None:
            return self.elimination.digests(self.members)
        return row_digests(_row(individual.X) for individual in self.members)

    def evaluate(self, algorithm: Algorithm) -> None:
        problem, evaluator = algorithm.problem, algorithm.evaluator
        if self.offspring is None:
            return
        if (
            hasattr(problem, "evaluate_rows")
            and type(evaluator) is Evaluator
            and self.elimination is not None
            and not any(individual.evaluated for individual in self.members)
        ):
            self.put(problem.evaluate_rows([individual.X for individual in self.members], self.digests), algorithm)
        else:
            evaluator.eval(problem, self.offspring, algorithm=algorithm)

    def put(self, values: Matrix, algorithm: Algorithm) -> None:
        """Do the work of pymoo's evaluator with known values, without putting all rows into one large array."""
        evaluator = algorithm.evaluator
        needed = set(evaluator.evaluate_values_of) if evaluator.skip_already_evaluated else None
        new = [i for i, individual in enumerate(self.members) if needed is None or not needed <= individual.evaluated]
        parts = np.split(values[new], np.cumsum(self.sizes)[:2], axis=1)
        for k, i in enumerate(new):
            for name, part in zip("FGH", parts, strict=True):
                self.members[i].set(name, part[k].copy())
            self.members[i].evaluated.update("FGH")
        evaluator.n_eval += len(new)
        if evaluator.callback and self.offspring is not None:
            evaluator.callback(self.offspring)

    @property
    def values(self) -> Matrix:
        """F, G and H of the individuals side by side."""
        names = [name for name, size in zip("FGH", self.sizes, strict=True) if size]
        rows = [np.concatenate([np.ravel(getattr(individual, name)) for name in names]) for individual in self.members]
        return np.array(rows, np.float64).reshape(len(rows), sum(self.sizes))

    def feasible(self) -> tuple[list[Array], Matrix]:
        feasible = [individual for individual in self.members if individual.feas]
        return [individual.X for individual in feasible], np.array([individual.F for individual in feasible])


def _row(X: Array) -> Array:
    """Return a row for its digest: numbers as they are, text and other objects as bytes of their text."""
    return X if X.dtype.kind in "biufc" else np.frombuffer(repr(X.tolist()).encode(), np.uint8)


class _Clock(float):
    """The beginning of a search, in seconds since 1970, for pymoo's ``start_time``.

    The present minus this number is the last reading in seconds, so that a repeated search sees the same times.
    """

    elapsed = 0.0

    def __init__(self, now: float) -> None:
        self.begin = time.monotonic()

    def __rsub__(self, now: float) -> float:
        return self.elapsed

    def read(self) -> None:
        """Read the clock."""
        self.elapsed = max(self.elapsed, time.monotonic() - self.begin)

    def put(self, elapsed: float) -> None:
        """Set the clock to an earlier reading."""
        self.elapsed = elapsed
        self.begin = time.monotonic() - elapsed

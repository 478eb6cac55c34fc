"""The search loop: ask, evaluate, tell, with an exact archive, a history and a journal of the evaluations.

The population goes through the same states, bit for bit, as in ``pymoo.optimize.minimize`` with the same seed; archive,
history and journal only watch. Resuming runs the search again from its seed and takes the objectives from the journal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import moocore
import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.algorithm import Algorithm
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.core.problem import Problem

from moerank.arrays import Array, Matrix, Vector
from moerank.evolution.archive import Archive, DigestDuplicates, row_digests
from moerank.evolution.journal import Journal, Record

__all__ = ["Generation", "SearchResult", "search"]


@dataclass(frozen=True)
class Generation:
    """State of a search after one generation.

    Attributes
    ----------
    n_gen, n_eval : int
        Generations and evaluations so far.
    elapsed : float
        Seconds from the beginning of the search until its objectives were known, interruptions not counted.
    front : ndarray, shape (n_members, n_objectives)
        The archive's objective values: the non-dominated ones of all evaluations so far.
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
        As it stands after its last generation, with its ``pop`` and ``opt``.
    archive : Archive
        The non-dominated members of all evaluations, and of a given archive.
    history : tuple of Generation
        One entry per generation.
    """

    algorithm: Algorithm
    archive: Archive
    history: tuple[Generation, ...]

    @property
    def pop(self) -> Population:
        """The last population."""
        return self.algorithm.pop

    def hypervolume(self, reference: ArrayLike) -> Vector:
        """Return the hypervolume of the archive after each generation against the point `reference`.

        `reference` holds one value per objective; members that do not dominate it add nothing.
        """
        fronts = [generation.front for generation in self.history]
        return np.array([moocore.hypervolume(front, ref=reference) if len(front) else 0.0 for front in fronts])


def search(
    problem: Problem,
    algorithm: Algorithm,
    termination: Any,
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
        May offer ``restore_cache(known)``, which is given the objectives of a journal, a mapping of digests
        (`row_digests`) to tuples; ``measure_again(X)``, which returns objectives without looking them up; and
        ``evaluate_rows(rows, digests)``, which returns F for a sequence of rows and spares copying them to one array.
    algorithm : pymoo Algorithm
        A fresh one; it is copied and stays as it is. Its ``sampling`` makes the initial population.
    termination : int, tuple or pymoo Termination
        A number of generations, or a termination of pymoo: ("n_gen", 50), ("n_eval", 5000), ("time", "00:01:00"), a
        Termination object.
    seed : int or None
        Seed of all random draws; None draws a fresh one.
    archive : Archive, optional
        Members known before, which stay where nothing dominates them; it becomes the archive of the result.
    journal : Journal, optional
        Each batch of individuals is written to it once it is evaluated. If its file exists, the search is run again
        from its seed with the objectives and times in the file, and goes on where the file ends. It stays until the
        caller removes it. A seed that was drawn stands in it, and has to be given to go on.
    progress : callable, optional
        Called after each generation as ``progress(fraction, n_gen, n_eval)`` with the fraction done, in [0, 1]; not
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
    Whatever ends the search, an interrupt from the keyboard or a kill included, the journal holds all that was
    evaluated before. A resumed search has the bits of an undisturbed one if the problem gives equal individuals equal
    values, and if chance comes from the algorithm's random state and time from ``algorithm.start_time`` alone, as in
    all of pymoo; a search that goes another way than its journal is refused. A search that time ends repeats all that
    the journal holds. Values of a problem beyond F, G and H are not kept.

    At its end a resumed search measures its archive again, and refuses a journal that holds other values (for
    problems without ``measure_again`` equal to nine digits, as their last bits may depend on the batch). It does not
    measure other individuals again, so that a user who may write to the journal's folder could deceive it.

    The clock is monotonic and read once for each batch; pymoo is told that reading as the time since
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
    history: list[Generation] = []
    archive = Archive() if archive is None else archive
    clock = _Clock(time.time())
    try:
        if journal is not None:
            journal.open(_about(problem, algorithm), sum(_sizes(problem)))
        while algorithm.has_next():
            n_gen = algorithm.n_iter
            _advance(problem, algorithm, archive, clock, journal)
            if algorithm.n_iter == n_gen:
                # MOEAD tells one individual at a time; its generation is still under way.
                continue
            n_eval = algorithm.evaluator.n_eval
            history.append(Generation(len(history) + 1, n_eval, clock.elapsed, archive.F))
            if progress is not None and not (journal is not None and journal.repeating):
                progress(min(1.0, algorithm.termination.perc), len(history), n_eval)
        if journal is not None:
            _check_end(problem, algorithm, archive, journal)
    finally:
        if journal is not None:
            journal.close()
    return SearchResult(algorithm, archive, tuple(history))


def _advance(problem: Problem, algorithm: Algorithm, archive: Archive, clock: _Clock, journal: Journal | None) -> None:
    """Ask, evaluate, tell, and put the evaluated individuals into the archive."""
    offspring = algorithm.ask()
    algorithm.start_time = clock
    members = np.empty(0, object) if offspring is None else np.atleast_1d(offspring)
    if journal is None:
        _evaluate(problem, algorithm, offspring, members)
        clock.read()
    else:
        _evaluate_once(problem, algorithm, offspring, members, clock, journal)
    if offspring is None:
        # The mating found nothing new: the algorithm has asked its termination to stop.
        algorithm.tell()
        return
    with np.errstate(invalid="ignore"):  # RVEA takes the arc cosine of angles that rounding made larger than 1
        algorithm.tell(infills=offspring)
    feasible = [individual for individual in members if individual.feas]
    if feasible:
        archive.add([individual.X for individual in feasible], np.array([individual.F for individual in feasible]))


def _evaluate(problem: Problem, algorithm: Algorithm, offspring: object, members: NDArray[np.object_]) -> None:
    evaluator, elimination = algorithm.evaluator, getattr(algorithm, "eliminate_duplicates", None)
    if offspring is None:
        return
    if (
        hasattr(problem, "evaluate_rows")
        and type(evaluator) is Evaluator
        and isinstance(elimination, DigestDuplicates)
        and not any(individual.evaluated for individual in members)
    ):
        F = problem.evaluate_rows([individual.X for individual in members], elimination.digests(members))
        _put(F, _sizes(problem), evaluator, offspring, members)
    else:
        evaluator.eval(problem, offspring, algorithm=algorithm)


def _evaluate_once(
    problem: Problem,
    algorithm: Algorithm,
    offspring: object,
    members: NDArray[np.object_],
    clock: _Clock,
    journal: Journal,
) -> None:
    """Take the values of the offspring from the journal, or evaluate them and write them down."""
    elimination = getattr(algorithm, "eliminate_duplicates", None)
    if isinstance(elimination, DigestDuplicates):
        digests = elimination.digests(members)
    else:
        digests = row_digests(_row(individual.X) for individual in members)
    record = journal.read(len(digests))
    if record is None:
        _evaluate(problem, algorithm, offspring, members)
        clock.read()
        journal.append(Record(clock.elapsed, digests, _values(problem, members)))
        return
    if digests != record.digests:
        i = next(i for i, digest in enumerate(digests) if digest != record.digests[i])
        journal.differs(f"its individual {i + 1} of {len(digests)} is another than the one asked for")
    _put(record.values, _sizes(problem), algorithm.evaluator, offspring, members)
    if not np.array_equal(_values(problem, members), record.values):
        journal.differs("its values are not those of the initial population that was given")
    clock.put(record.elapsed)
    if hasattr(problem, "restore_cache"):
        F = record.values[:, : problem.n_obj].tolist()
        problem.restore_cache({digest: tuple(row) for digest, row in zip(digests, F, strict=True)})


def _put(
    values: Matrix,
    sizes: tuple[int, int, int],
    evaluator: Evaluator,
    offspring: object,
    members: NDArray[np.object_],
) -> None:
    """Act as pymoo's evaluator with known values; pymoo's own would put all rows into one large array."""
    needed = set(evaluator.evaluate_values_of) if evaluator.skip_already_evaluated else None
    new = [i for i, individual in enumerate(members) if needed is None or not needed <= individual.evaluated]
    parts = np.split(values[new], np.cumsum(sizes)[:2], axis=1)
    for k, i in enumerate(new):
        members[i].set("F", parts[0][k].copy())
        members[i].set("G", parts[1][k].copy())
        members[i].set("H", parts[2][k].copy())
        members[i].evaluated.update("FGH")
    evaluator.n_eval += len(new)
    if evaluator.callback and offspring is not None:
        evaluator.callback(offspring)


def _check_end(problem: Problem, algorithm: Algorithm, archive: Archive, journal: Journal) -> None:
    """Refuse a journal that goes on after the search, or whose values are not those that are measured again."""
    n_records = journal.n_records
    if journal.read() is not None:
        journal.differs(f"the search ends after {n_records} records")
    if not journal.resumed or not len(archive):
        return
    X, F = archive.X, archive.F
    if hasattr(problem, "measure_again"):
        right = (problem.measure_again(X) == F).all(axis=1)
    else:
        again = Evaluator().eval(problem, Population.new("X", X), algorithm=algorithm)
        right = np.isclose(again.get("F"), F, rtol=1e-9, atol=1e-12).all(axis=1) & again.get("feas").ravel()
    if not right.all():
        i = int(right.argmin())
        raise ValueError(
            f"journal {journal.path} holds wrong values: measured again, the member of the front with {F[i].tolist()} "
            "has others; remove the journal to begin anew (if the problem itself gives one individual changing "
            "values, it cannot be resumed)"
        )


def _about(problem: Problem, algorithm: Algorithm) -> dict[str, object]:
    """Return the properties of the search that a journal has to share, beside the configuration of the run."""
    return {
        "algorithm class": type(algorithm).__name__,
        "seed of the search": algorithm.seed,
        "variables": problem.n_var,
        "objectives, inequalities, equalities": list(_sizes(problem)),
    }


def _sizes(problem: Problem) -> tuple[int, int, int]:
    return problem.n_obj, problem.n_ieq_constr, problem.n_eq_constr


def _values(problem: Problem, members: NDArray[np.object_]) -> Vector:
    """Return F, G and H of the individuals side by side."""
    names = [name for name, size in zip("FGH", _sizes(problem), strict=True) if size]
    rows = [np.concatenate([np.ravel(getattr(individual, name)) for name in names]) for individual in members]
    return np.array(rows, np.float64).reshape(len(members), sum(_sizes(problem)))


def _row(X: Array) -> Array:
    """Return the row to make a digest of: itself, or the text of a row of strings or other objects."""
    return X if X.dtype.kind in "biufc" else np.frombuffer(repr(X.tolist()).encode(), np.uint8)


class _Clock(float):
    """The moment at which a search began, in seconds since 1970, for pymoo's ``start_time``.

    Subtracted from the present it gives the seconds of the search, which stand still between two readings, so that a
    repeated search is told the same.
    """

    elapsed = 0.0

    def __init__(self, now: float) -> None:
        self.begin = time.monotonic()

    def __rsub__(self, now: float) -> float:
        return self.elapsed

    def read(self) -> None:
        """Move on to the present."""
        self.elapsed = max(self.elapsed, time.monotonic() - self.begin)

    def put(self, elapsed: float) -> None:
        """Show an earlier reading, and count on from there."""
        self.elapsed = elapsed
        self.begin = time.monotonic() - elapsed

"""The search loop: ask, evaluate, tell, with an exact archive, a history and checkpoints between generations.

The population goes through the same states, bit for bit, as in ``pymoo.optimize.minimize`` with the same seed; what
is added only watches.
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
from pymoo.algorithms.moo.moead import ParallelMOEAD
from pymoo.core.algorithm import Algorithm, LoopwiseAlgorithm
from pymoo.core.population import Population
from pymoo.core.problem import Problem

from moerank.evolution.archive import Archive
from moerank.evolution.checkpoint import Checkpoint

__all__ = ["Generation", "SearchResult", "search"]


@dataclass(frozen=True)
class Generation:
    """What is known after one generation.

    Attributes
    ----------
    n_gen, n_eval : int
        Generations and evaluations so far.
    elapsed : float
        Seconds since the search began, interruptions not counted.
    front : ndarray, shape (n_members, n_objectives)
        The archive's objective values: the non-dominated ones of all evaluations so far.
    """

    n_gen: int
    n_eval: int
    elapsed: float
    front: NDArray[np.float64]


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search.

    Attributes
    ----------
    algorithm : pymoo Algorithm
        As it stands after its last generation, with its ``pop`` and ``opt``.
    archive : Archive
        The non-dominated members of all evaluations.
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

    def hypervolume(self, reference: ArrayLike) -> NDArray[np.float64]:
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
    checkpoint: Checkpoint | None = None,
    progress: Callable[[float, int, int], object] | None = None,
    verbose: bool = False,
) -> SearchResult:
    """Minimise `problem` by a pymoo `algorithm`.

    Parameters
    ----------
    problem : pymoo Problem
        May offer ``cache_state()`` and ``restore_cache(state)``; the checkpoint then carries that state along.
    algorithm : pymoo Algorithm
        A fresh one; it is copied and stays as it is. Its ``sampling`` makes the initial population.
    termination : int, tuple or pymoo Termination
        A number of generations, or what pymoo takes: ("n_gen", 50), ("n_eval", 5000), ("time", "00:01:00"),
        a Termination object.
    seed : int or None
        Seed of all random draws; None draws a fresh one.
    checkpoint : Checkpoint, optional
        Where the state is kept between generations. If its file exists, the search goes on from there, with the
        algorithm, termination, seed and archive found in it. The last state stays in the file until the caller, who
        knows when the whole run has ended, removes it.
    progress : callable, optional
        Called after each generation as ``progress(fraction, n_gen, n_eval)`` with the fraction done, in [0, 1].
    verbose : bool, default False
        Let pymoo print its table, a line per generation.

    Returns
    -------
    SearchResult

    Raises
    ------
    ValueError
        If the algorithm has been set up already, cannot be written to a checkpoint, an objective value is NaN, or
        the checkpoint belongs to another configuration or version.

    Notes
    -----
    Whatever exception ends the search, an interrupt from the keyboard included, the state after the last finished
    generation is written to the checkpoint before the exception leaves.

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
    if checkpoint is not None and isinstance(algorithm, LoopwiseAlgorithm) and not isinstance(algorithm, ParallelMOEAD):
        raise ValueError(
            f"search: {type(algorithm).__name__} keeps its state in a Python generator, which cannot be written to a "
            "checkpoint; use ParallelMOEAD in place of MOEAD, or search without a checkpoint"
        )
    history: list[Generation] = []
    archive = Archive()
    if checkpoint is not None and checkpoint.exists():
        algorithm, archive, history = checkpoint.load(problem)
    else:
        algorithm = deepcopy(algorithm)
        termination = ("n_gen", termination) if isinstance(termination, int) else deepcopy(termination)
        algorithm.setup(problem, termination=termination, seed=seed, verbose=verbose)
    try:
        while algorithm.has_next():
            n_gen = algorithm.n_iter
            _advance(problem, algorithm, archive)
            if algorithm.n_iter == n_gen:
                # MOEAD tells one individual at a time; its generation is still under way.
                continue
            elapsed = time.time() - algorithm.start_time
            n_eval = algorithm.evaluator.n_eval
            history.append(Generation(len(history) + 1, n_eval, elapsed, archive.F))
            if checkpoint is not None:
                checkpoint.record(problem, algorithm, archive, history)
            if progress is not None:
                progress(min(1.0, algorithm.termination.perc), len(history), n_eval)
    finally:
        if checkpoint is not None:
            checkpoint.save()
    return SearchResult(algorithm, archive, tuple(history))


def _advance(problem: Problem, algorithm: Algorithm, archive: Archive) -> None:
    """Ask, evaluate, tell, and put what was evaluated into the archive."""
    offspring = algorithm.ask()
    if offspring is None:
        # The mating found nothing new: the algorithm has asked its termination to stop.
        algorithm.tell()
        return
    algorithm.evaluator.eval(problem, offspring, algorithm=algorithm)
    with np.errstate(invalid="ignore"):  # RVEA takes the arc cosine of angles that rounding made larger than 1
        algorithm.tell(infills=offspring)
    feasible = [individual for individual in np.atleast_1d(offspring) if individual.feas]
    if feasible:
        archive.add([individual.X for individual in feasible], np.array([individual.F for individual in feasible]))

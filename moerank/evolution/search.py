"""The search loop: pymoo's own, with an exact archive, a history and a memo of the evaluations.

The populations are the same, bit for bit, as in ``pymoo.optimize.minimize`` with the same seed. A search is resumed by
running it again from its seed with the memo.
"""

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import moocore
import numpy as np
from numpy.typing import ArrayLike
from pymoo.core.algorithm import Algorithm
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.termination.max_gen import MaximumGenerationTermination

from moerank.arrays import Array, Matrix, Vector
from moerank.evolution.memo import ArrayEvaluator, Memo


class Archive:
    """Non-dominated individuals, one for each distinct objective vector.

    Objectives are minimised, and no member is dropped to save room. Of individuals with equal objectives the first one
    is kept. pymoo's archive, when full, drops members at random.

    Attributes
    ----------
    X : ndarray, shape (n_members, n_var)
        The individuals in the order of addition.
    F : ndarray of float64, shape (n_members, n_objectives)
        Their objective values; read-only.

    Notes
    -----
    Adding n individuals to m members takes O((n + m) log(n + m)) for two or three objectives.

    Examples
    --------
    >>> archive = Archive()
    >>> archive.add(np.array([[True, True], [True, False]]), np.array([[2, 0.1], [1, 0.4]]))
    >>> archive.add(np.array([[False, True], [False, False]]), np.array([[1, 0.2], [2, 0.1]]))
    >>> archive.F.tolist(), archive.X.tolist()
    ([[2.0, 0.1], [1.0, 0.2]], [[True, True], [False, True]])
    """

    def __init__(self) -> None:
        self.F: Matrix = np.empty((0, 0))
        self._rows: list[Array] = []  # as a list, because long strings take long to copy

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def X(self) -> Array:
        """The members' rows, shape (n_members, n_var)."""
        return np.array(self._rows) if self._rows else np.empty((0, 0))

    def add(self, X: Sequence[Array] | Array, F: Array, *, n_bits: int | None = None) -> None:
        """Add the individuals `X`, shape (n, n_var), with the objectives `F`, shape (n, n_objectives).

        `X` may have rows that np.packbits has packed; `n_bits` then is their number of bits.
        Raises a ValueError if F holds NaN.
        """
        F = np.asarray(F, float)
        if len(F) == 0:
            return
        undefined = np.isnan(F).any(axis=1)
        if undefined.any():
            i = int(undefined.argmax())
            raise ValueError(
                f"archive: the objective values of individual {i} are {F[i]}; "
                "let the problem return a finite penalty in place of NaN"
            )
        n_old = len(self)
        merged = np.concatenate((self.F.reshape(n_old, F.shape[1]), F))
        # Of equal vectors moocore keeps the first, so members stay.
        best = np.flatnonzero(moocore.is_nondominated(merged)).tolist()
        if best == list(range(n_old)):
            return
        # A new list and array, because a history may hold the old ones.
        rows = [self._rows[row] for row in best if row < n_old]
        for row in best[len(rows) :]:
            added = X[row - n_old]
            if n_bits is None:
                rows.append(np.copy(added))
            else:
                rows.append(np.unpackbits(added, count=n_bits).view(bool))
        self._rows = rows
        self.F = merged[best]
        self.F.setflags(write=False)


@dataclass(frozen=True)
class Generation:
    """State of a search after one generation.

    Attributes
    ----------
    n_gen, n_eval, n_trained : int
        Generations, evaluations and distinct evaluated individuals so far.
    elapsed : float
        Seconds from the beginning of the search, without interruptions.
    front : ndarray, shape (n_members, n_objectives)
        The objective values of the archive.
    """

    n_gen: int
    n_eval: int
    n_trained: int
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
        return np.array(
            [moocore.hypervolume(front, ref=reference) if len(front) else 0.0 for front in fronts]
        )


def search(
    problem: Problem,
    algorithm: Algorithm,
    termination: object,
    *,
    seed: int | None,
    archive: Archive | None = None,
    memo: Memo | None = None,
    progress: Callable[[float, int, int], object] | None = None,
    verbose: bool = False,
) -> SearchResult:
    """Minimise `problem` by a pymoo `algorithm`.

    Parameters
    ----------
    problem : pymoo Problem
        If it has an attribute ``exact`` that is true, its values do not depend on the batch, and its memo is checked to
        the last bit.
    algorithm : pymoo Algorithm
        A fresh algorithm, which is copied. Its ``sampling`` makes the initial population.
    termination : int, tuple or pymoo Termination
        A number of generations, or a termination as in pymoo: ("n_gen", 50), ("n_eval", 5000), ("time", "00:01:00") or
        a Termination object.
    seed : int or None
        Seed of all random draws; None draws one.
    archive : Archive, optional
        Known individuals. They stay unless they are dominated; the result has this archive.
    memo : Memo, optional
        Evaluates the individuals and records them. If its file exists, the search is repeated with the values and times
        in the file, and goes on where the file ends; at the end the archive is measured again. The caller removes the
        file. If the seed was drawn, read it there and give it to resume.
    progress : callable, optional
        Called after each generation as ``progress(fraction, n_gen, n_eval)`` with the finished fraction, in [0, 1], but
        not for generations that are repeated from a memo.
    verbose : bool, default False
        Let pymoo print its table, a line per generation.

    Returns
    -------
    SearchResult

    Raises
    ------
    ValueError
        If the algorithm has been set up already or has an evaluator of its own, an objective value is NaN, or the memo
        is refused (see `Memo`).

    Notes
    -----
    However the search ends, the memo holds all earlier evaluations. A resumed search has the same bits as an
    undisturbed one, if the problem gives equal individuals equal values and draws come only from the random state of
    the algorithm. A time limit includes the seconds before the interruption, and may end a resumed search elsewhere.

    Examples
    --------
    >>> from pymoo.algorithms.moo.nsga2 import NSGA2
    >>> from pymoo.problems import get_problem
    >>> result = search(get_problem("zdt1", n_var=5), NSGA2(pop_size=20), ("n_gen", 5), seed=1)
    >>> [generation.n_eval for generation in result.history]
    [20, 40, 60, 80, 100]
    """
    if algorithm.problem is not None:
        raise ValueError("search: the algorithm has been set up already; give a new one")
    if type(algorithm.evaluator) is not Evaluator:
        raise ValueError(
            "search: the algorithm has an evaluator of its own; use pymoo.optimize.minimize for it"
        )
    archive = Archive() if archive is None else archive
    evaluator = ArrayEvaluator() if memo is None else memo
    evaluator.callback = partial(_collect, archive)
    evaluator.collect = archive.add
    algorithm = deepcopy(algorithm)
    algorithm.setup(
        problem,
        termination=("n_gen", termination)
        if isinstance(termination, int)
        else deepcopy(termination),
        seed=int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed,
        verbose=verbose,
        evaluator=evaluator,
    )
    if isinstance(algorithm.termination, MaximumGenerationTermination):
        # RVEA takes fewer evaluations than its population for no generation; like all others it must finish the first.
        algorithm.termination.n_max_gen = max(1, algorithm.termination.n_max_gen)
    history: list[Generation] = []
    while algorithm.has_next():
        n_gen = algorithm.n_iter
        # RVEA takes the arc cosine of angles that rounding made larger than 1.
        with np.errstate(invalid="ignore"):
            algorithm.next()
        if algorithm.n_iter == n_gen:
            # MOEAD evaluates one individual at a time; its generation is still under way.
            continue
        elapsed = time.time() - algorithm.start_time if memo is None else memo.elapsed
        history.append(
            Generation(len(history) + 1, evaluator.n_eval, len(evaluator.seen), elapsed, archive.F)
        )
        if progress is not None and not evaluator.repeating:
            progress(min(1.0, algorithm.termination.perc), len(history), evaluator.n_eval)
    if memo is not None and memo.resumed and len(archive):
        memo.check(problem, archive.X, archive.F)
    return SearchResult(algorithm, archive, tuple(history))


def _collect(archive: Archive, batch: Population) -> None:
    """Add the feasible individuals of an evaluated batch to an archive."""
    feasible = batch[batch.get("feas").ravel()]
    archive.add(feasible.get("X"), feasible.get("F"))

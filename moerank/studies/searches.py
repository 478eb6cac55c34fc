"""A study of searches: pymoo problems × algorithms × seeds, with the table of medians that papers print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Self

import numpy as np
import pandas as pd
from pymoo.core.algorithm import Algorithm
from pymoo.core.problem import Problem

from moerank.checks import check_at_least, check_choice
from moerank.evolution import search
from moerank.statistics import holm, hypervolume, igd_plus, joint_front, signed_rank_p
from moerank.studies.cells import Store, Work, run_cells
from moerank.studies.result import Stored
from moerank.studies.solver import identity_of
from moerank.studies.study import MOST_CELLS, warn_of_failures

SYMBOLS = {1: "+", -1: "−", 0: "="}


class SearchRun(Stored):
    """The outcome of one run of a search: the front of all evaluations."""

    F: list[list[float]]  # objectives, shape (n_members, n_objectives)
    X: list[list[float]]  # variables, shape (n_members, n_var); 0 and 1 for bits
    n_evaluations: int
    seconds: float  # by the clock


@dataclass(frozen=True, eq=False)
class SearchCell(Work):
    """One run of a study of searches; the algorithm may be a function of the problem that returns one."""

    problem_name: str
    problem: Problem
    algorithm_name: str
    algorithm: Algorithm | Callable[[Problem], Algorithm]
    n_evaluations: int
    seed: int

    @property
    def label(self) -> str:
        """What messages call the cell."""
        return f"{self.problem_name}, {self.algorithm_name}, seed {self.seed}"

    def identity(self) -> object:
        """Return both names, problem, algorithm, evaluations and seed."""
        algorithm = [self.algorithm_name, identity_of(self.algorithm, f"the algorithm {self.algorithm_name}")]
        problem = [self.problem_name, identity_of(self.problem, f"the problem {self.problem_name}")]
        return [algorithm, problem, self.n_evaluations, self.seed]

    def read(self, text: str) -> SearchRun:
        """Return the outcome from the text of its file."""
        return SearchRun.from_json(text)

    def run(self, data: object = None) -> SearchRun:
        """Run the search; its data are in the problem."""
        began = perf_counter()
        algorithm = self.algorithm if isinstance(self.algorithm, Algorithm) else self.algorithm(self.problem)
        result = search(deepcopy(self.problem), algorithm, ("n_eval", self.n_evaluations), seed=self.seed)
        X, n_evaluations = np.asarray(result.archive.X).astype(float).tolist(), result.history[-1].n_eval
        seconds = perf_counter() - began
        return SearchRun(F=result.archive.F.tolist(), X=X, n_evaluations=n_evaluations, seconds=seconds)


class SearchStudy:
    """Problems × algorithms × seeds in a folder, as cells that run in any order and are never run twice.

    Parameters
    ----------
    problems : mapping of str to pymoo Problem
        Two or more objectives, without constraints that pymoo handles by penalties of its own.
    algorithms : mapping of str to pymoo Algorithm, or to a function ``make(problem)`` that returns one
    out : path
        The folder of the study.
    n_evaluations : int, default 10,000
        Of each run; the last generation is finished.
    seeds : int, default 30
        Runs of each algorithm on each problem. All algorithms draw from the same seeds.

    Notes
    -----
    What names a cell is a digest of problem, algorithm, evaluations and seed (`moerank.studies.solver.identity_of`), so
    that a study with another problem of the same name runs anew.

    Examples
    --------
    >>> from pymoo.problems.multi import ZDT5
    >>> from moerank.evolution import SparseEA, Staircase
    >>> searches = {"staircase": Staircase(), "sparseea": SparseEA()}
    >>> study = SearchStudy({"zdt5": ZDT5()}, searches, "results/zdt5")
    >>> len(study.cells())
    60
    """

    def __init__(
        self,
        problems: Mapping[str, Problem],
        algorithms: Mapping[str, Algorithm | Callable[[Problem], Algorithm]],
        out: str | Path,
        *,
        n_evaluations: int = 10_000,
        seeds: int = 30,
    ) -> None:
        check_at_least(1, n_evaluations=n_evaluations)
        check_at_least(1, MOST_CELLS, seeds=seeds)
        for name, problem in problems.items():
            if problem.n_obj < 2:
                raise ValueError(f"the problem {name} has one objective; a front needs two or more")
        self.problems, self.algorithms = dict(problems), dict(algorithms)
        self.out, self.n_evaluations, self.seeds = Path(out), n_evaluations, seeds

    def cells(self) -> list[SearchCell]:
        """Return all cells, by seed first."""
        return [
            SearchCell(name, problem, label, algorithm, self.n_evaluations, seed)
            for seed in range(self.seeds)
            for name, problem in self.problems.items()
            for label, algorithm in self.algorithms.items()
        ]

    def run(
        self,
        *,
        workers: int = 1,
        dask: str | None = None,
        done: Callable[[SearchCell, bool], object] = lambda cell, succeeded: None,
    ) -> Self:
        """Run what is not finished, and return the study; see `moerank.studies.study.Study.run`.

        Cells that failed run again.
        """
        cells = self.cells()
        with Store(self.out) as store:
            run_cells(store, cells, workers=workers, dask=dask, retry_failed=True, done=done)
            warn_of_failures(store.failures(cells), len(cells), f"{self.out / 'failures'} has their tracebacks")
        return self

    def runs(self) -> dict[SearchCell, SearchRun]:
        """Return the finished runs."""
        return Store(self.out).results(self.cells())

    def frame(self) -> pd.DataFrame:
        """Return a row for each finished run.

        Returns
        -------
        DataFrame
            ``problem``, ``algorithm``, ``seed``, ``members``, ``evaluations``, ``seconds``, and the qualities of the
            front: ``hypervolume``, the share of the box from the best to 1.1 times the worst of the joint front of all
            runs on the problem, at best that of the joint front; and ``igd+``, the mean distance by which the front
            falls short of the joint front, in shares of the box.
        """
        finished, rows = self.runs(), []
        for name in self.problems:
            runs = {cell: run for cell, run in finished.items() if cell.problem_name == name}
            if not runs:
                continue
            target = joint_front([run.F for run in runs.values()])
            ideal, span = target.min(axis=0), np.ptp(target, axis=0)
            span[span == 0] = 1.0
            for cell, run in runs.items():
                row = {"problem": name, "algorithm": cell.algorithm_name, "seed": cell.seed, "members": len(run.F)}
                row |= {"evaluations": run.n_evaluations, "seconds": run.seconds}
                row |= {"hypervolume": hypervolume(run.F, ideal + 1.1 * span, ideal)}
                rows.append({**row, "igd+": igd_plus(run.F, target, span)})
        return pd.DataFrame(rows)

    def table(self, reference: str | None = None, quality: str = "hypervolume", alpha: float = 0.05) -> pd.DataFrame:
        """Return the table of medians: a row for each problem, a column for each algorithm.

        Parameters
        ----------
        reference : str, optional
            The algorithm with which the others are compared; by default the last one.
        quality : {"hypervolume", "igd+"}, default "hypervolume"
        alpha : float, default 0.05
            Level of the tests.

        Returns
        -------
        DataFrame of str
            The median of each algorithm, its interquartile range in brackets, and "+" where it is better than the
            reference, "−" where it is worse, "=" where no difference is shown, by Wilcoxon's signed-rank test over the
            seeds that both have. The p values are adjusted by Holm over the table. The last row counts the signs.
        """
        names = list(self.algorithms)
        reference = names[-1] if reference is None else reference
        check_choice(names, reference=reference)
        check_choice(("hypervolume", "igd+"), quality=quality)
        values = self.frame().pivot(index=["problem", "seed"], columns="algorithm", values=quality)
        pairs = [(p, a) for p in values.index.unique("problem") for a in names if a != reference and a in values]
        upwards = 1.0 if quality == "hypervolume" else -1.0
        both = {(p, a): values.loc[p][[a, reference]].dropna() * upwards for p, a in pairs}
        adjusted = holm([signed_rank_p(part[a], part[reference]) for (_, a), part in both.items()])
        signs: dict[tuple[str, str], str] = {}
        for (pair, part), p in zip(both.items(), adjusted, strict=True):
            ahead = part[pair[1]] - part[reference]
            signs[pair] = SYMBOLS[int(np.sign(ahead.median() or ahead.mean())) if p <= alpha else 0]
        quartiles = values.groupby(level="problem").quantile([0.25, 0.5, 0.75])
        table = pd.DataFrame(index=list(dict.fromkeys(p for p, _ in values.index)), columns=names, dtype=object)
        for p in table.index:
            for a in names:
                low, middle, high = quartiles.loc[p].get(a, pd.Series([np.nan] * 3))
                table.loc[p, a] = f"{middle:.4f} ({high - low:.4f}) {signs.get((p, a), '')}".rstrip()
        counts = {a: [sign for (_, b), sign in signs.items() if b == a] for a in names}
        table.loc["+/−/="] = ["/".join(str(counts[a].count(s)) for s in "+−=") if counts[a] else "" for a in names]
        return table

"""Studies of searches: pymoo problems × algorithms × seeds, with anytime fronts, indicators and tests as in papers."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import chain, filterfalse, product
from pathlib import Path
from pkgutil import resolve_name
from time import process_time
from typing import Any, Self, TypeAlias

import moocore
import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike
from pymoo.core.algorithm import Algorithm
from pymoo.core.problem import Problem
from pymoo.indicators.spacing import SpacingIndicator

from moerank import statistics
from moerank.arrays import Array, Matrix
from moerank.checks import check_at_least, check_choice
from moerank.evolution import ALGORITHMS, BIT_SEARCHES, Archive, make_algorithm, search
from moerank.files import replace_file
from moerank.identity import identify
from moerank.mofsrank import FeatureSelection
from moerank.mofsrank.stage import Stage
from moerank.rankers import RankRLS, varying_in_queries
from moerank.runs.problem import load_problem
from moerank.runs.result import Stored
from moerank.runs.sources import DataFolder, shipped_folder
from moerank.solvers import is_code, load_code
from moerank.studies.cells import Store, Work, run_cells
from moerank.studies.results import NoResultsError
from moerank.studies.study import MAX_CELLS, warn_of_failures

SYMBOLS = {1: "+", -1: "−", 0: "="}

# What a search is charged for: individuals that it asked for, or distinct ones, for which a ranker was trained.
COUNTS = ("evaluations", "trained")

# Indicators of a front; 1 for those of which a larger value is better.
QUALITIES = {"hypervolume share": 1.0, "igd+": -1.0, "epsilon": -1.0, "r2": -1.0, "spread": -1.0}

# Shares of the hypervolume of the target front.
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)

# Population of the algorithms that are given by name.
POPULATION = 100

# Problems by suite. Staircase was developed on the first suite; nobody has looked at the second one.
SUITES = {
    "moerank-6": ("digits", "planted", "mq2008", "ohsumed", "mslr", "web"),
    "moerank-held-out": ("mq2007", "td2004", "np2004", "hp2004", "yahoo1", "yahoo2"),
}

# Algorithms, or functions that make one for a problem, by name.
Searches: TypeAlias = Mapping[str, Algorithm | Callable[[Problem], Algorithm]]


@dataclass(frozen=True)
class TargetFront:
    """The front that others are compared with, shape (n_members, n_objectives), and what it is."""

    front: Matrix
    origin: str  # "Proved front", "Reference front of long runs" or "Joint front of all runs"

    def scaled(self, F: ArrayLike) -> Matrix:
        """Return objectives in which the target reaches from 0 to 1."""
        ideal, span = self.front.min(axis=0), np.ptp(self.front, axis=0)
        return (np.asarray(F, float) - ideal) / np.where(span > 0, span, 1.0)

    def share(self, F: Matrix) -> float:
        """Return the hypervolume as a share of that of the target; the reference point is 1.1 in each objective."""
        if not len(F):
            return 0.0
        reference = [1.1] * self.front.shape[1]
        volumes = [
            statistics.hypervolume(self.scaled(front), reference) for front in (F, self.front)
        ]
        return volumes[0] / volumes[1]

    def qualities(self, F: Matrix) -> dict[str, float]:
        """Return all `QUALITIES` of a front; R2 for two objectives, the spread from two members on.

        An empty front has no hypervolume, and NaN elsewhere.
        """
        if not len(F):
            return dict.fromkeys(QUALITIES, np.nan) | {"hypervolume share": 0.0}
        points, goal = self.scaled(F), self.scaled(self.front)
        spread = SpacingIndicator().do(points) if len(points) > 1 else np.nan
        # The R2 indicator is not defined beyond the ideal point, which runs may reach if the target is not proved.
        r2 = moocore.r2_exact(points.clip(0.0), ref=np.zeros(2)) if points.shape[1] == 2 else np.nan
        return {
            "hypervolume share": self.share(F),
            "igd+": statistics.igd_plus(points, goal, 1.0),
            "epsilon": float(moocore.epsilon_additive(points, ref=goal)),
            "r2": float(r2),
            "spread": float(spread),
        }


class SearchRun(Stored):
    """The outcome of one run of a search: the front of all evaluated individuals, and how it came about."""

    F: list[list[float]]  # objectives, shape (n_members, n_objectives)
    X: list[list[float]]  # variables, shape (n_members, n_var); 0 and 1 for bits
    entered: list[
        list[float]
    ]  # when an individual joined the front: evaluations, trained rankers, and its objectives
    n_evaluations: int
    n_trained: int
    seconds: float  # of processor time

    def front(self, limit: float = np.inf, count: str = "evaluations") -> Matrix:
        """Return the front after so many evaluations or trained rankers, shape (n_members, n_objectives)."""
        rows = np.array(self.entered or np.empty((0, 2 * len(COUNTS))))  # nothing was feasible
        points = rows[rows[:, COUNTS.index(count)] <= limit, len(COUNTS) :]
        return points[moocore.is_nondominated(points)] if len(points) else points


class TimedArchive(Archive):
    """Archive that records after how many evaluations, and trained rankers, an individual joined it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.problem, self.n_evaluations = problem, 0
        self.entered: dict[tuple[float, ...], tuple[int, int]] = {}

    @property
    def n_trained(self) -> int:
        """Rankers that were trained; for problems that do not count them, the evaluations."""
        return self.problem.n_trained if isinstance(self.problem, Stage) else self.n_evaluations

    def add(self, X: Sequence[Array] | Array, F: Array, *, n_bits: int | None = None) -> None:
        """Add individuals; see `Archive`."""
        super().add(X, F, n_bits=n_bits)
        before, self.n_evaluations = self.n_evaluations, self.n_evaluations + len(F)
        members = set(map(tuple, self.F.tolist()))
        for number, row in enumerate(map(tuple, np.asarray(F, float).tolist()), before + 1):
            if row in members:
                self.entered.setdefault(row, (number, min(number, self.n_trained)))

    def synchronise(self, fraction: float, n_gen: int, n_eval: int) -> None:
        """Count infeasible individuals, too, which are not added."""
        self.n_evaluations = n_eval


@dataclass(frozen=True, eq=False)
class SearchCell(Work):
    """One run of a study of searches; the algorithm may be a function that makes one for the problem."""

    problem_name: str
    problem: Problem
    algorithm_name: str
    algorithm: Algorithm | Callable[[Problem], Algorithm]
    n_evaluations: int
    seed: int
    description: tuple[Any, Any]  # of algorithm and problem, see `moerank.identity`

    outcome = SearchRun

    @property
    def label(self) -> str:
        """The name of the cell in messages."""
        return f"{self.problem_name}, {self.algorithm_name}, seed {self.seed}"

    def identity(self) -> object:
        """Return names and descriptions of algorithm and problem, the number of evaluations, and the seed."""
        return [
            "search 3",
            [self.algorithm_name, self.problem_name],
            *self.description,
            self.n_evaluations,
            self.seed,
        ]

    def run(self, data: object = None) -> SearchRun:
        """Run the search on a copy of the problem, after a generation that loads kernels and prepares the data."""
        self._search(("n_gen", 1))
        began = process_time()
        archive = self._search(("n_eval", self.n_evaluations))
        seconds = process_time() - began
        if archive.n_trained > archive.n_evaluations:
            raise ValueError(
                f"{self.algorithm_name} trained {archive.n_trained:,} rankers for "
                f"{archive.n_evaluations:,} evaluations; let it evaluate by pymoo's evaluator "
                "alone, which counts them"
            )
        return SearchRun(
            F=archive.F.tolist(),
            X=np.asarray(archive.X).astype(float).tolist(),
            entered=[[*counts, *row] for row, counts in archive.entered.items()],
            n_evaluations=archive.n_evaluations,
            n_trained=archive.n_trained,
            seconds=seconds,
        )

    def _search(self, termination: tuple[str, int]) -> TimedArchive:
        problem = deepcopy(self.problem)  # a stage has a cache, which no other run may use
        algorithm, archive = self.algorithm, TimedArchive(problem)
        if not isinstance(algorithm, Algorithm):
            algorithm = algorithm(problem)
        show = archive.synchronise
        search(problem, algorithm, termination, seed=self.seed, archive=archive, progress=show)
        return archive


class SearchStudy:
    """Problems × algorithms × seeds in a folder, as cells that run in any order and never twice.

    Parameters
    ----------
    problems : mapping of str to pymoo Problem
        Problems with two or more objectives, without constraints that pymoo turns into penalties.
    algorithms : mapping of str to pymoo Algorithm, or to a function ``make(problem)`` that returns one
        A sequence of names takes searches of this package, see `named_searches`.
    out : path
        The folder of the study.
    n_evaluations : int, default 10,000
        Evaluations of each run. What a last generation evaluates beyond them does not count.
    seeds : int, default 30
        Runs of each algorithm on each problem. All algorithms draw from the same seeds.
    targets : mapping of str to array-like, optional
        Reference fronts (n_members, n_objectives) of problems. By default a problem's target is its `pareto_front()`,
        and where that is None, the joint front of all runs.

    Notes
    -----
    The name of a cell's file is a digest of problem, algorithm, evaluations and seed
    (`moerank.identity.identify`), as they are when the study is made, so a study with another problem of the
    same name runs anew. Each run has a copy of its problem. Before it the first generation runs on another copy, not
    timed and not counted, to load kernels and prepare the data. A problem with a cache of its own must leave it out of
    its copies and of ``__getstate__``, as the stages do.

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
        algorithms: Searches | Sequence[str],
        out: str | Path,
        *,
        n_evaluations: int = 10_000,
        seeds: int = 30,
        targets: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        check_at_least(1, n_evaluations=n_evaluations)
        check_at_least(1, MAX_CELLS, seeds=seeds)
        self.algorithms = dict(
            algorithms if isinstance(algorithms, Mapping) else named_searches(algorithms)
        )
        self.problems = {name: copy(problem) for name, problem in problems.items()}
        for problem in self.problems.values():
            vars(problem).pop("cache", None)  # pymoo keeps known fronts there
        self.out, self.n_evaluations, self.seeds = Path(out), n_evaluations, seeds
        self._references = targets or {}
        problem_ids = {
            name: identify(problem, f"the problem {name}")
            for name, problem in self.problems.items()
        }
        algorithm_ids = {
            name: identify(algorithm, f"the algorithm {name}")
            for name, algorithm in self.algorithms.items()
        }
        self._cells = [
            SearchCell(
                name,
                problem,
                label,
                algorithm,
                n_evaluations,
                seed,
                (algorithm_ids[label], problem_ids[name]),
            )
            for seed in range(seeds)
            for name, problem in self.problems.items()
            for label, algorithm in self.algorithms.items()
        ]

    def cells(self) -> list[SearchCell]:
        """Return all cells, by seed first."""
        return self._cells

    def run(
        self,
        *,
        workers: int = 1,
        dask: str | None = None,
        done: Callable[[SearchCell, bool], object] = lambda cell, succeeded: None,
    ) -> Self:
        """Run the cells that are not finished, and return the study; see `moerank.studies.study.Study.run`.

        Failed cells run again.
        """
        cells = self.cells()
        with Store(self.out) as store:
            run_cells(store, cells, workers=workers, dask=dask, retry_failed=True, done=done)
            warn_of_failures(
                store.failures(cells), len(cells), f"The tracebacks are in {self.out / 'failures'}"
            )
        return self

    def runs(self) -> dict[SearchCell, SearchRun]:
        """Return the finished runs."""
        return Store(self.out).results(self.cells())

    def targets(self) -> dict[str, TargetFront]:
        """Return the target of each problem that has a finished run."""
        fronts = defaultdict(list)
        for cell, run in self.runs().items():
            fronts[cell.problem_name].append(run.F)
        return {name: self._target(name, group) for name, group in fronts.items()}

    def _target(self, name: str, fronts: Sequence[Sequence[Sequence[float]]]) -> TargetFront:
        if name in self._references:
            return TargetFront(
                statistics.joint_front([self._references[name]]), "Reference front of long runs"
            )
        proved = deepcopy(self.problems[name]).pareto_front()
        if proved is not None:
            return TargetFront(statistics.joint_front([proved]), "Proved front")
        empty = np.empty((0, self.problems[name].n_obj))
        joint = statistics.joint_front([empty, *filter(len, fronts)])
        return TargetFront(joint, "Joint front of all runs")

    def frame(self, most: float | None = None, count: str = "evaluations") -> pd.DataFrame:
        """Return a row for each finished run, with the quality of its front after `most` evaluations.

        Parameters
        ----------
        most : float, optional
            By default the evaluations of the study.
        count : {"evaluations", "trained"}, default "evaluations"
            Whether `most` counts the individuals that a search asks for, or the rankers that were trained for them.

        Returns
        -------
        DataFrame
            ``problem``, ``algorithm``, ``seed``, ``members``, ``evaluations``, ``trained``, ``seconds`` of the
            processor, and the quality of the front compared with the target (`targets`), in objectives in which the
            target reaches from 0 to 1: ``hypervolume share``, of that of the target, with the reference point 1.1;
            ``igd+``, the mean distance by which the front falls short of the target; additive ``epsilon``; ``r2``
            (exact, two objectives); and ``spread``, Schott's spacing. NaN if the front is empty.
        """
        check_choice(COUNTS, count=count)
        targets, rows = self.targets(), []
        for cell, run in self.runs().items():
            front = run.front(self.n_evaluations if most is None else most, count)
            rows.append(
                {
                    "problem": cell.problem_name,
                    "algorithm": cell.algorithm_name,
                    "seed": cell.seed,
                    "members": len(front),
                    "evaluations": run.n_evaluations,
                    "trained": run.n_trained,
                    "seconds": run.seconds,
                    **targets[cell.problem_name].qualities(front),
                }
            )
        return pd.DataFrame(rows)

    def anytime(self, problem: str, count: str = "evaluations", points: int = 60) -> pd.DataFrame:
        """Return the hypervolume share of each run on a problem, a column for algorithm and seed.

        The evaluations, or trained rankers by `count`, are the index: `points` of them in equal ratios.
        """
        check_choice(self.problems, problem=problem)
        check_choice(COUNTS, count=count)
        target = self.targets()[problem]
        steps = np.unique(
            np.geomspace(min(POPULATION, self.n_evaluations), self.n_evaluations, points).round()
        )
        curves = {}
        for cell, run in self.runs().items():
            if cell.problem_name == problem:
                shares = [target.share(run.front(step, count)) for step in steps]
                curves[cell.algorithm_name, cell.seed] = shares
        return pd.DataFrame(curves, index=pd.Index(steps, name=count))

    def runtimes(
        self, targets: Sequence[float] = SHARES, count: str = "evaluations"
    ) -> pd.DataFrame:
        """Return after how many evaluations each run reached each target, a share of the target's hypervolume.

        Returns
        -------
        DataFrame
            ``problem``, ``algorithm``, ``seed``, ``target``, whether it was ``reached``, and the evaluations (or
            trained rankers) until then, or all of the run if it was not.
        """
        check_choice(COUNTS, count=count)
        goals, rows = self.targets(), []
        for cell, run in self.runs().items():
            total = run.n_evaluations if count == "evaluations" else run.n_trained
            total = min(self.n_evaluations, total)
            entered = np.array([row[COUNTS.index(count)] for row in run.entered])
            steps = np.unique(entered[entered <= total])
            shares = [goals[cell.problem_name].share(run.front(step, count)) for step in steps]
            best = np.maximum.accumulate(np.array(shares, float))
            for target in targets:
                index = int(np.searchsorted(best, target))
                reached = index < len(steps)
                n = int(steps[index]) if reached else total
                rows.append((cell.problem_name, cell.algorithm_name, cell.seed, target, reached, n))
        return pd.DataFrame(
            rows, columns=["problem", "algorithm", "seed", "target", "reached", count]
        )

    def expected_runtimes(
        self, targets: Sequence[float] = SHARES, count: str = "evaluations"
    ) -> pd.DataFrame:
        """Return the expected running time to each target: a row for problem and target, a column for each algorithm.

        The evaluations of all runs until they reached the target or ended, divided by the number of runs that reached
        it; infinity if none did.

        References
        ----------
        N. Hansen et al.: COCO: a platform for comparing continuous optimizers in a black-box setting. Optimization
        Methods and Software 36, 2021.
        """
        runs = self.runtimes(targets, count).groupby(["problem", "target", "algorithm"], sort=False)
        expected = (runs[count].sum() / runs["reached"].sum().replace(0, np.nan)).fillna(np.inf)
        return expected.unstack("algorithm").reindex(columns=list(self.algorithms))

    def tests(
        self, reference: str | None = None, quality: str = "hypervolume share"
    ) -> pd.DataFrame:
        """Compare each algorithm with a reference on each problem; the parameters are those of `table`.

        Returns
        -------
        DataFrame
            ``problem``, ``algorithm``, number of ``runs`` that both have, the median ``difference`` (positive if the
            algorithm is better), ``p`` of Wilcoxon's signed-rank test over the seeds, ``holm``, adjusted over the
            table, the ``sign`` of a difference at the level .05 ("=" if none is detected), and ``A12``, the
            probability that a run of the algorithm is better than one of the reference, with half of the ties.

        References
        ----------
        A. Vargha, H. D. Delaney: A critique and improvement of the CL common language effect size statistics of McGraw
        and Wong. Journal of Educational and Behavioral Statistics 25, 2000.
        """
        reference = reference or list(self.algorithms)[-1]
        check_choice(self.algorithms, reference=reference)
        values, rows = self._values(quality) * QUALITIES[quality], []
        for (problem, runs), name in product(
            values.groupby(level=0, sort=False), values.columns.drop(reference)
        ):
            values_a, values_b = runs[[name, reference]].dropna().to_numpy().T
            n = len(values_a)
            if n:
                difference = np.median(values_a - values_b) or np.mean(values_a - values_b)
                p_value = statistics.signed_rank_p(values_a, values_b)
                effect = scipy.stats.mannwhitneyu(values_a, values_b).statistic / n**2
                rows.append((problem, name, n, difference, p_value, effect))
        tests = pd.DataFrame(
            rows, columns=["problem", "algorithm", "runs", "difference", "p", "A12"]
        )
        tests.insert(5, "holm", statistics.holm(tests["p"].to_numpy(float)))
        is_detected = tests["holm"] <= statistics.LEVEL
        tests.insert(6, "sign", np.sign(tests["difference"]).where(is_detected, 0).map(SYMBOLS))
        return tests

    def _values(self, quality: str) -> pd.DataFrame:
        """Return a quality of each run: a row for problem and seed, a column for each algorithm."""
        check_choice(QUALITIES, quality=quality)
        frame = self.frame()
        if frame.empty:
            raise NoResultsError(f"{self.out} has no finished run yet; run the study first")
        values = frame.pivot(index=["problem", "seed"], columns="algorithm", values=quality)
        problems = [name for name in self.problems if name in values.index.levels[0]]
        return values.reindex(columns=list(self.algorithms)).loc[problems]

    def table(
        self, reference: str | None = None, quality: str = "hypervolume share"
    ) -> pd.DataFrame:
        """Return the table of medians: a row for each problem, a column for each algorithm.

        Parameters
        ----------
        reference : str, optional
            The algorithm with which the others are compared; by default the last one.
        quality : str, default "hypervolume share"
            Or "igd+", "epsilon", "r2" or "spread"; see `frame`.

        Returns
        -------
        DataFrame of str
            The median of each algorithm, its interquartile range in brackets, "+" if it is better than the reference,
            "−" if it is worse, "=" if no difference is detected, and the effect size A12; see `tests`. The last row
            counts the signs. ``to_latex()`` makes a table for a paper.
        """
        tests = self.tests(reference, quality).set_index(["problem", "algorithm"])
        problems = self._values(quality).groupby(level="problem", sort=False)
        low, median, high = (problems.quantile(share) for share in (0.25, 0.5, 0.75))
        ends = (" " + tests["sign"] + tests["A12"].map(" {:.2f}".format)).unstack(
            "algorithm", fill_value=""
        )
        table = median.map("{:.4f}".format) + (high - low).map(" ({:.4f})".format)
        table += ends.reindex(index=table.index, columns=table.columns, fill_value="")
        table = table.mask(median.isna(), "no run")
        signs = tests["sign"].groupby(level="algorithm")
        counts = signs.agg(lambda group: "/".join(str((group == sign).sum()) for sign in "+−="))
        table.loc["+/−/="] = counts.reindex(table.columns, fill_value="")
        return table.rename_axis(index=None, columns=None)

    def ranks(self, *, tested: bool = False) -> tuple[list[str], statistics.RankTest]:
        """Return the algorithms by mean rank of their median hypervolume shares, and Friedman's and Nemenyi's tests.

        A NoResultsError is raised if fewer than three algorithms have runs on two problems, or, to be `tested`, on
        `MIN_BLOCKS` problems.
        """
        medians = self._values("hypervolume share").groupby(level="problem").median().dropna(axis=1)
        min_blocks = statistics.MIN_BLOCKS if tested else 2
        if len(medians) < min_blocks or medians.shape[1] < 3:
            raise NoResultsError(
                f"ranks need three searches on {min_blocks} problems; "
                f"{len(medians)} problems have runs"
            )
        test = statistics.friedman(medians.to_numpy())
        return [str(medians.columns[i]) for i in test.order], test

    def finding(self) -> str:
        """Return in a sentence how the searches differ from the last one in the hypervolume share; see `tests`."""
        tests = self.tests()
        if tests.empty:
            return (
                "No two searches have runs of the same problem and seed: "
                "there is nothing to compare"
            )
        n_runs = int(tests["runs"].max())
        if len(tests) * 2.0 ** (1 - n_runs) > statistics.LEVEL:
            return f"{n_runs} runs of each search on each problem: too few to tell a difference"
        better, worse, level = ((tests["sign"] == symbol).sum() for symbol in "+−=")
        return (
            f"Against {list(self.algorithms)[-1]} in hypervolume share after "
            f"{self.n_evaluations:,} evaluations: {better} better, {worse} worse, "
            f"{level} undecided (signed-rank test of {n_runs} runs, Holm)"
        )

    def sentences(self) -> list[str]:
        """Return what the tests and ranks tell, what the targets are, and on which problems a search was developed."""
        targets, sentences = self.targets(), [self.finding()]
        with suppress(NoResultsError):
            names, test = self.ranks()
            ranks = zip(names, test.ranks, strict=True)
            sentence = f"Mean ranks: {', '.join(f'{name} {rank:.1f}' for name, rank in ranks)}"
            if test.n_blocks < statistics.MIN_BLOCKS:
                sentence += f"; {test.n_blocks} problems are too few for a test of ranks"
            sentences.append(sentence)
        origins = pd.Series({name: target.origin for name, target in targets.items()})
        for origin, group in origins.groupby(origins, sort=False):
            sentences.append(f"{origin}: {', '.join(group.index)}")
        empty = {
            f"{cell.problem_name}, {cell.algorithm_name}"
            for cell, run in self.runs().items()
            if not run.F
        }
        if empty:
            sentences.append(
                "Runs without a feasible solution, hence a hypervolume of 0: "
                f"{'; '.join(sorted(empty))}"
            )
        developed = [name for name in targets if name in SUITES["moerank-6"]]
        if "staircase" in self.algorithms and developed:
            sentences.append(f"Staircase was developed on {', '.join(developed)}")
        return [f"{sentence}." for sentence in sentences]

    def plot(self, name: str = "hypervolume", **options: Any) -> Any:
        """Return the figure "hypervolume", "runtimes", "attainment" or "ranks"; see `moerank.figures.draw_searches`."""
        return resolve_name("moerank.figures:draw_searches")(self, name, **options)

    def report(self, path: str | Path | None = None) -> Path:
        """Write tables, sentences and figures as one web page, by default ``searches.html`` in the folder."""
        path = Path(path or self.out / "searches.html")
        replace_file(path, resolve_name("moerank.reports.rendering:searches_page")(self).encode())
        return path


def _named(name: str, problem: Problem) -> Algorithm:
    """Return a search of this package for a stage, with the operators of the stage."""
    operators = problem.operators()
    if name in BIT_SEARCHES:
        operators.pop("sampling")  # they start as in their papers
    return make_algorithm(name, POPULATION, operators, problem.n_obj)


def named_searches(names: Iterable[str]) -> Searches:
    """Return searches with a population of 100 by name, for problems with ``operators()``, such as the stages.

    The names are those of `moerank.evolution.ALGORITHMS`, or ``package.module:name`` for a function of yours that makes
    an algorithm for a problem; `moerank.solvers.allow_code` must allow it.

    >>> list(named_searches(["nsga2", "staircase"]))
    ['nsga2', 'staircase']
    """
    names = list(names)
    for name in filterfalse(is_code, names):
        check_choice(ALGORITHMS, algorithm=name)
    return {name: load_code(name) if is_code(name) else partial(_named, name) for name in names}


def load_suite(
    names: Iterable[str], data: DataFolder = None, *, objective: str = "error"
) -> tuple[dict[str, FeatureSelection], dict[str, Matrix]]:
    """Return the feature selection on the first fold of problems, and reference fronts.

    Each stage has the features that vary within a query, RankRLS tuned on the validation queries, the metric of the
    problem, and mutation that does not adapt.

    Parameters
    ----------
    names : iterable of str
        Suites from `SUITES`, and shipped problems or problem files.
    data : path, optional
        The folder with the data files.
    objective : {"error", "loss"}, default "error"
        The objective besides the number of features. The fronts of "loss", the training loss of RankRLS, can be
        proved (`FeatureSelection.pareto_front`).

    Returns
    -------
    problems : dict of str to FeatureSelection
    references : dict of str to ndarray
        For the error, the best fronts of long runs, as they are measured on these data. They are not proved.

    Examples
    --------
    >>> problems, references = load_suite(["planted"])
    >>> problems["planted"].n_var, references["planted"].shape
    (30, (15, 2))
    """
    check_choice(("error", "loss"), objective=objective)
    path = shipped_folder() / "reference_fronts.json"
    fronts = json.loads(path.read_text(encoding="utf-8"))
    stages, references = {}, {}
    problems = chain.from_iterable(SUITES.get(name, (name,)) for name in names)
    for problem in map(load_problem, dict.fromkeys(problems)):
        train, validation, _ = problem.load_fold(1, data)
        backend, varying = RankRLS().tune(train, validation), varying_in_queries(train)
        train, metric = train.with_features(varying), problem.metric.make()
        stage = FeatureSelection(
            train, backend, metric, objectives=("features", objective), adaptive=False
        )
        stages[problem.name] = stage
        if objective == "error" and problem.name in fronts:
            rows = [list(bytes.fromhex(row)) for row in fronts[problem.name]]
            packed = np.array(rows, np.uint8)
            bits = np.unpackbits(packed, axis=1, count=stage.n_var)
            references[problem.name] = stage.measure(bits.view(bool))
    return stages, references

"""Evidence for a selection: certificates of a front, and how often halves of the queries select each feature."""

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from math import ceil, floor, sqrt
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
from pydantic import Field

from moerank.arrays import Integers, Mask, Vector
from moerank.checks import Parameters, check_at_least, check_share
from moerank.data import RankingData
from moerank.data.folds import Draws, of_queries
from moerank.data.inputs import column_mask
from moerank.files import Json
from moerank.identity import identify
from moerank.metrics import Metric
from moerank.mofsrank.limits import FeatureStrings
from moerank.mofsrank.settings import Limits, given_settings
from moerank.rankers import RankRLS, varying_in_queries
from moerank.runs.problem import Problem, make_problem
from moerank.runs.result import Certificate, Natural, Result, Stored
from moerank.runs.run_fold import Progress, run_fold, silent, tuned_backend
from moerank.runs.solver import NamedSolver, Solver
from moerank.runs.sources import DataFolder, read_memory
from moerank.scikit_learn import ConvergenceWarning, clone
from moerank.selectors.best_subset import BestSubset
from moerank.solvers import make_backend
from moerank.studies.cells import Store, Work, run_cells
from moerank.studies.study import Cell, read_solvers
from moerank.training.pair_moments import UNIT, PairMoments

# Largest difference of errors, metrics or frequencies that counts as rounding.
SAME = 1e-9


def certify(
    result: Result, data: DataFolder = None, *, progress: Progress | None = None
) -> Certificate:
    """Bound how far each member of a front is from the best subset of its size, for RankRLS on all training pairs.

    If bits of the run stand for groups, the size is the number of groups; a feature without a group counts as one.
    Ctrl-C ends the search for best subsets; bounds then replace the missing proofs. A backend other than RankRLS with
    the pair loss, and data other than those of the run, raise a ValueError.
    """
    report = progress or silent
    problem, has_groups = _settings(result)
    (train, vali, _), limits = problem.load_limited_fold(result.fold, data)
    _check_data(result, train, problem.metric.make())
    alpha = tuned_backend(problem, {"train": train, "validation": vali}).alpha
    columns = np.arange(train.n_features)
    feature_mask = np.array([np.isin(columns, member.features) for member in result.front])
    coefs = RankRLS(alpha).fit_population(train, feature_mask=feature_mask)
    losses = 1.0 - coefs @ PairMoments.of(train).unit
    unit = "groups" if has_groups else "features"
    solver = BestSubset(
        train.n_features,
        alpha,
        **limits,
        by_group=has_groups,
        progress=lambda _, fraction, size, n: report(
            "best_subset", fraction, f"up to {size} {unit}, {n:,} nodes"
        ),
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        solver.fit(train)  # the certificate has the bounds of what is not proved
    strings = FeatureStrings(train, Limits(**limits), by_group=has_groups)
    numbers, sizes = strings.bits(feature_mask).sum(axis=1), strings.bits(solver.masks_).sum(axis=1)
    bounds = [solver.bounds_[sizes <= max(number, sizes[0])].min() for number in numbers]
    return Certificate(
        alpha=alpha,
        sizes=sizes.tolist(),
        best=solver.losses_.tolist(),
        bounds=solver.bounds_.tolist(),
        losses=losses.tolist(),
        least=np.minimum(bounds, losses).tolist(),
        groups=numbers.tolist() if has_groups else None,
    )


def _settings(result: Result) -> tuple[Problem, bool]:
    """Return the problem of a run, and whether bits stand for groups; refuse a backend without best subsets."""
    settings = result.configuration
    sections = {
        name: settings[name] for name in ("features", "metric", "backend") if name in settings
    }
    problem = Problem.model_validate({"name": result.problem, "data": settings["data"], **sections})
    backend = make_backend(problem.backend.name, **problem.backend.parameters)
    ridge = getattr(backend, "ridge", None)
    if ridge is None or ridge[1] != UNIT:
        raise ValueError(
            f"{problem.name}: certify bounds the pair loss of RankRLS, with one weight a feature, "
            f"but the backend is {backend!r}; run the problem with --backend rankrls"
        )
    return problem, bool((settings.get("feature_selection") or {}).get("by_group"))


def _check_data(result: Result, train: RankingData, metric: Metric) -> None:
    """Refuse data on which a member does not reach its training metric of the run."""
    same = len(result.feature_names) == train.n_features
    for member in (*result.front, *result.baselines):
        if same and member.weights is not None:
            coefs = result.model(member).coef(train.n_features)[None]
            value = metric.mean_of_linear(train, coefs)[0]
            same = abs(value - member.scores["train"][metric.name]) <= SAME
    if not same:
        raise ValueError(
            f"{train.name} differs from the data of this run; give the right folder with --data"
        )


def expected_false(size: int, n_features: int, threshold: float) -> float:
    """Bound the expected number of false selections by complementary pairs: size² / (n_features · (2 τ − 1)).

    A feature is false if half of the queries select it with a probability p of at most θ = size / n_features, the
    probability in a random choice. Both halves of a pair select it with probability p², because they are independent. A
    frequency of at least the threshold τ > 1/2 requires that a share of 2 τ − 1 of the pairs do so. By Markov's
    inequality, the probability of that is at most p² / (2 τ − 1). The sum over false features is at most
    θ · size / (2 τ − 1). The bound assumes nothing about the solver, the number of pairs or the other features.

    References
    ----------
    R. D. Shah, R. J. Samworth: Variable selection with error control: another look at stability selection. Journal of
    the Royal Statistical Society B 75, 2013. Theorem 1 (a), with at most `size` features in a selection.

    Examples
    --------
    >>> expected_false(4, n_features=64, threshold=0.75)
    0.5
    """
    return size**2 / (n_features * (2 * threshold - 1))


def _largest_size(n_features: int, threshold: float) -> int:
    """Return the largest size at which `expected_false` is at most one, but at least one."""
    return max(1, floor(sqrt((2 * threshold - 1) * n_features) + SAME))


class Stability(Stored):
    """How often halves of the training queries select each feature.

    Attributes
    ----------
    solver, data : str
    configuration : dict
        All settings that determine what a half selects.
    feature_names : list of str
    n_queries : int
        Training queries; each half has ⌊n/2⌋.
    pairs : int
        Pairs of halves.
    seed : int
    threshold : float
        A feature counts as selected if it has at least this frequency.
    size : int
        Largest number of features of a member that counts, without those that limits include in every selection.
    frequency : list of float, shape (n_features,)
        For each feature, the share of the halves whose largest member with at most `size` features has it.
    counted : list of int
        The columns that vary within a query and that no limit includes in every selection.
    bound : float
        Bound on the expected number of false features among `selected`, see `expected_false`.
    """

    solver: str
    data: str
    configuration: Json
    feature_names: list[str]
    n_queries: Natural
    pairs: Natural
    seed: Natural
    threshold: float
    size: Natural
    frequency: list[Annotated[float, Field(ge=0, le=1)]]
    counted: list[Natural]
    bound: float

    @property
    def order(self) -> list[int]:
        """The counted features that at least one half selects, the most frequent one first."""
        selected = [feature for feature in self.counted if self.frequency[feature]]
        return sorted(selected, key=lambda feature: -self.frequency[feature])

    @property
    def selected(self) -> list[int]:
        """The features whose frequency is at least the threshold, the most frequent one first."""
        return [
            feature for feature in self.order if self.frequency[feature] >= self.threshold - SAME
        ]

    @property
    def finding(self) -> str:
        """The selected features as a sentence."""
        if not self.order:
            return (
                "No feature was selected: "
                f"the solver has no member with at most {self.size} features"
            )
        features = ", ".join(
            f"{self.feature_names[feature]} ({self.frequency[feature]:.0%})"
            for feature in self.selected or self.order[:1]
        )
        return (
            f"At least {self.threshold:.0%} of {2 * self.pairs} halves of {self.n_queries:,} "
            f"training queries select {len(self.selected)} of {len(self.counted)} features, each "
            f"half at most {self.size}{':' if self.selected else '; the most frequent is'} "
            f"{features}"
        )

    def sentences(self) -> list[str]:
        """Return the finding, and its risk if any feature is selected."""
        if not self.selected:
            return [self.finding]
        risk = f"Expect at most {ceil(100 * self.bound - SAME) / 100:g} of them to be false"
        if self.bound < len(self.selected):
            risk += (
                ": half of the queries select a false feature with a probability of at most "
                f"{self.size} in {len(self.counted)}, that of a random choice"
            )
        else:
            risk += (
                ", which says nothing: all of them may be. "
                "Take a smaller size or a larger threshold"
            )
        return [self.finding, risk]


def half_of(n_queries: int, half: int, seed: int) -> Integers:
    """Return ⌊n/2⌋ of the queries. Halves 2 j and 2 j + 1, counted from 0, are pair j and share no query."""
    (pair, side), n_half = divmod(half, 2), n_queries // 2
    order = Draws(np.random.PCG64(np.random.SeedSequence([seed, pair]))).order(n_queries)
    return order[side * n_half : (side + 1) * n_half]


class Selections(Stored):
    """The features of the members that the solver offers on a half, one member per size."""

    features: list[list[Natural]]


@dataclass(frozen=True, eq=False)
class Half(Work):
    """A run of the solver of a cell on one half of the training queries."""

    cell: Cell
    half: int
    description: Json  # of the cell and its data

    outcome = Selections

    @property
    def label(self) -> str:
        """The name of the half in messages."""
        return f"{self.cell.label}, half {self.half + 1}"

    def identity(self) -> Json:
        """Return all that can be seen of what determines the selections, as plain JSON values."""
        return {**self.description, "half": self.half}

    def run(self, data: DataFolder) -> Selections:
        """Run the solver on the half, with the files in the folder `data`."""
        problem, cell = self.cell.problem, self.cell
        train, validation, test = problem.data.read(cell.fold, problem.folders(data))
        queries = np.sort(half_of(train.n_queries, self.half, cell.seed))
        settings = problem.data.model_dump(include={"normalize", "scaled", "overlap"})
        section = read_memory((of_queries(train, queries), validation, test), settings)
        halved = problem.model_copy(update={"data": section})
        random_state = (cell.random_state + self.half) % 2**32
        solver = _with_draws_of(self.half, cell.solver, problem)
        with warnings.catch_warnings(action="ignore"):  # else each half would repeat them
            result = run_fold(halved, 1, solver, random_state=random_state, baselines=False)
        metric = result.metric
        members = sorted(result.front, key=lambda member: member.score("train", metric))
        best_of_size = {member.n_features: list(member.features) for member in members}
        return Selections(features=list(best_of_size.values()))


def _with_draws_of(half: int, solver: Solver, problem: Problem) -> Solver:
    """Return a solver with random states of the half, because the luck of a single one would look reliable."""
    if isinstance(solver, NamedSolver):  # its random state is that of the run
        return solver
    states = {
        name: int(np.random.SeedSequence([int(state), half]).generate_state(1)[0] >> 1)
        for name, state in solver.fixed_parameters(problem).items()
        if name.endswith("random_state") and isinstance(state, Integral)
    }
    source = clone(solver.source).set_params(**states) if states else solver.source
    return solver.model_copy(update={"source": source})


def stability(
    solver: object,
    train: RankingData | Problem,
    validation: RankingData | None = None,
    *,
    fold: int = 1,
    data: DataFolder = None,
    size: int | None = None,
    threshold: float = 0.75,
    pairs: int = 25,
    seed: int = 0,
    workers: int = 1,
    dask: str | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Stability:
    r"""Find the features that most halves of the training queries select.

    The queries are halved at random, `pairs` times, and the solver is trained on each half. Each half selects at most
    `size` features: those of the largest member of the front or path that is small enough. A feature counts as selected
    if at least a share of `threshold` of the halves selects it. `expected_false` bounds the expected number of false
    selections, by Shah and Samworth (2013). The bound assumes only that queries are independent.

    Parameters
    ----------
    solver : estimator or str
        An estimator with a front, a path or ``support_``, or a name in the table of solvers. Each half has a random
        state of its own, drawn from that of the estimator if it has one.
    train : RankingData or Problem
        A problem has its own validation queries, and settings for the solver.
    validation : RankingData
        Passed to the solver with each half.
    fold : int, default 1
        The fold of a problem.
    data : path, optional
        The folder with the files of a problem; see `Problem.load_fold`.
    size : int, optional
        Largest number of features, without those that limits include in every selection. By default the largest size
        at which the expected number of false selections is at most one.
    threshold : float, default 0.75
        Above 1/2, at most 1.
    pairs : int, default 25
        The bound holds for any number. More pairs leave less to chance.
    seed : int, default 0
        Seed of the halves; all solvers get the same ones.
    workers : int, default 1
        Number of processes; it does not change the result.
    dask : str, optional
        Address of a Dask scheduler whose workers run the halves instead.
    out : path, optional
        Folder for the selections of finished halves. A call that was interrupted goes on from them, and several
        processes with the same call share the work.
    progress : callable, optional
        Called as ``progress("half-samples", fraction, text)``.

    Returns
    -------
    Stability
        ``print(*result.sentences(), sep="\n")`` prints it in words.

    Raises
    ------
    ValueError
        If the solver refuses the data, for example because no query of a half has different labels, or if there are
        fewer than two features.
    OSError
        If a file cannot be written, or the Dask scheduler is gone.

    Notes
    -----
    The cost is 2 · `pairs` fits on half of the queries.

    Examples
    --------
    >>> import moerank as mr
    >>> train, vali, _ = mr.load_planted_fold(1)
    >>> result = mr.stability(mr.GreedyRankRLS(5), train, vali, pairs=5, size=3, threshold=0.6)
    >>> [result.feature_names[feature] for feature in result.selected]
    ['relevant 4']
    """
    _check(threshold, pairs, seed)
    problem = _as_problem(train, validation)
    [method] = read_solvers(solver, own_goal=True, tune=False)
    (queries, held_out, _), limits = problem.load_limited_fold(fold, data)
    included = _included(method, limits, queries)
    counted = _counted(queries, included)
    check_at_least(1, len(counted), or_none=True, size=size)
    size = size or _largest_size(len(counted), threshold)
    cell = Cell(problem, fold, method, seed)
    description = {"halves of": cell.identity(), "data": identify([queries, held_out])}
    halves = [Half(cell, half, description) for half in range(2 * pairs)]
    with TemporaryDirectory() if out is None else nullcontext(out) as folder:
        selections = _run_halves(halves, Store(folder), workers, dask, data, progress or silent)
    max_size = size + int(included.sum())
    return Stability(
        solver=method.label,
        data=queries.name,
        configuration=cell.identity(),
        feature_names=list(queries.feature_names),
        n_queries=queries.n_queries,
        pairs=pairs,
        seed=seed,
        threshold=threshold,
        size=size,
        frequency=_frequency(selections, max_size, queries.n_features).tolist(),
        counted=counted.tolist(),
        bound=expected_false(size, len(counted), threshold),
    )


def _check(threshold: float, pairs: int, seed: int) -> None:
    check_share(threshold=threshold)
    check_at_least(1, pairs=pairs)
    check_at_least(0, seed=seed)
    if threshold <= 0.5:
        raise ValueError(
            f"threshold is {threshold:g}; it must be above 1/2, because the bound needs that"
        )


def _as_problem(train: RankingData | Problem, validation: RankingData | None) -> Problem:
    if isinstance(train, Problem):
        return train
    if validation is None:
        raise ValueError("the solver needs validation queries; pass them as the third argument")
    return make_problem("train", (train, validation, validation), {"data.overlap": "allow"})


def _included(solver: Solver, limits: Parameters, train: RankingData) -> Mask:
    """Return which features belong to every selection, by the limits of the problem and of the solver."""
    arguments = solver.parameters if isinstance(solver, NamedSolver) else vars(solver.source)
    limits = {**limits, **arguments, **given_settings(arguments.get("limits"))}
    return column_mask(limits.get("include") or (), train.feature_names, "include")


def _counted(queries: RankingData, included: Mask) -> Integers:
    """Return the features that vary within queries and that halves may leave out, at least two."""
    counted = np.flatnonzero(varying_in_queries(queries) & ~included)
    if len(counted) < 2:
        raise ValueError(
            f"{queries.name}: {len(counted)} optional features vary within queries; two are needed"
        )
    if queries.n_queries < 2:
        raise ValueError(f"{queries.name}: one training query has no halves; give two or more")
    return counted


def _frequency(selections: Sequence[Selections], max_size: int, n_features: int) -> Vector:
    """Return the share of the halves whose largest member with at most `max_size` features has each feature."""
    n_selected = np.zeros(n_features)
    for selection in selections:
        small = [member for member in selection.features if len(member) <= max_size]
        n_selected[max(small, key=len, default=[])] += 1
    return n_selected / len(selections)


def _run_halves(
    halves: list[Half],
    store: Store,
    workers: int,
    dask: str | None,
    data: DataFolder,
    report: Progress,
) -> list[Selections]:
    """Run the halves that are not finished, and return the selections of all; refuse what the solver refuses."""
    n_done = count(1)

    def show(half: Half, succeeded: bool) -> None:
        n = next(n_done)
        report("half-samples", n / len(halves), f"{n} of {len(halves)}")

    with store:
        run_cells(
            store, halves, workers=workers, dask=dask, data=data, retry_failed=True, done=show
        )
    failures = store.failures(halves)
    if failures:
        half, failure = next(iter(failures.items()))
        raise ValueError(f"{half.label}: {failure['error']}")
    return list(store.results(halves).values())

"""Evidence for a selection: certificates of a front, and how often halves of the queries select each feature."""

import warnings
from math import ceil, floor, sqrt
from pathlib import Path
from typing import Annotated

import numpy as np
from joblib import Parallel, delayed, parallel_config
from pydantic import Field

from moerank.arrays import Integers
from moerank.checks import cap_workers, check_at_least, check_share
from moerank.data import RankingData
from moerank.data.folds import Draws, of_queries
from moerank.data.inputs import column_mask
from moerank.evolution import Finished
from moerank.files import Json
from moerank.identity import identify
from moerank.metrics import Metric
from moerank.mofsrank.limits import FeatureStrings
from moerank.mofsrank.settings import Limits, given_settings
from moerank.rankers import RankRLS, varying_in_queries
from moerank.runs.problem import Problem, make_problem
from moerank.runs.result import Certificate, Natural, Result, Stored
from moerank.runs.run_fold import Progress, run_fold, silent, tuned
from moerank.runs.sources import read_memory
from moerank.scikit_learn import ConvergenceWarning
from moerank.selectors.best_subset import BestSubset
from moerank.solvers import allow_code, code_is_allowed, make_backend
from moerank.studies.study import Cell, read_solvers
from moerank.training.pair_moments import PairMoments

# Largest difference of errors, metrics or frequencies that counts as rounding.
SAME = 1e-9


def certify(
    result: Result, data: str | Path | None = None, *, progress: Progress | None = None
) -> Certificate:
    """Bound how far each member of a front is from the best subset of its size, for RankRLS on all training pairs.

    If bits of the run stand for groups, the size is the number of groups; a feature without a group counts as one.
    Ctrl-C ends the search for best subsets; bounds then replace the missing proofs. A backend other than RankRLS with
    the pair loss, and data other than those of the run, raise a ValueError.
    """
    report = progress or silent
    problem, backend, by_group = _settings(result)
    (train, vali, _), limits = problem.load_limited_fold(result.fold, data)
    _check_data(result, train, problem.metric.make())
    parts, tuning = {"train": train, "validation": vali}, problem.metric.for_tuning()
    alpha = (tuned(backend, parts, tuning) if problem.backend.tune else backend).alpha
    feature_mask = np.array(
        [np.isin(np.arange(train.n_features), member.features) for member in result.front]
    )
    losses = (
        1.0
        - RankRLS(alpha).fit_population(train, feature_mask=feature_mask)
        @ PairMoments.of(train).unit
    )

    strings, unit = (
        FeatureStrings(train, Limits(**limits), by_group=by_group),
        "group" if by_group else "feature",
    )
    solver = BestSubset(
        train.n_features,
        alpha,
        **limits,
        by_group=by_group,
        progress=lambda _, fraction, size, n: report(
            "best_subset", fraction, f"up to {size} {unit}s, {n:,} nodes"
        ),
    )
    with warnings.catch_warnings(
        action="ignore", category=ConvergenceWarning
    ):  # the certificate has the bounds
        solver.fit(train)
    numbers, sizes = strings.bits(feature_mask).sum(axis=1), strings.bits(solver.masks_).sum(axis=1)
    least = np.array([solver.bounds_[sizes <= max(number, sizes[0])].min() for number in numbers])
    return Certificate(
        alpha=alpha,
        sizes=sizes.tolist(),
        best=solver.losses_.tolist(),
        bounds=solver.bounds_.tolist(),
        losses=losses.tolist(),
        least=np.minimum(least, losses).tolist(),
        groups=numbers.tolist() if by_group else None,
    )


def _settings(result: Result) -> tuple[Problem, RankRLS, bool]:
    """Return the problem of a run, its untuned backend, and whether bits stand for groups.

    A backend raises a ValueError if there are no best subsets for its loss.
    """
    settings = result.configuration
    sections = {
        name: settings[name]
        for name in ("features", "metric", "backend")
        if settings.get(name) is not None
    }
    problem = Problem.model_validate({"name": result.problem, "data": settings["data"], **sections})
    backend = make_backend(problem.backend.name, **problem.backend.parameters)
    if not isinstance(backend, RankRLS) or (backend.loss, backend.target) != ("pair", "unit"):
        raise ValueError(
            f"{problem.name}: certify bounds the pair loss of RankRLS, with one weight a feature, but the backend is "
            f"{backend!r}; run the problem with --backend rankrls"
        )
    return problem, backend, bool((settings.get("feature_selection") or {}).get("by_group"))


def _check_data(result: Result, train: RankingData, metric: Metric) -> None:
    """Refuse data on which a member does not reach its training metric of the run."""
    same = len(result.feature_names) == train.n_features
    for member in (*result.front, *result.baselines):
        if same and member.weights is not None:
            value = metric.mean_of_linear(train, result.model(member).coef(train.n_features)[None])[
                0
            ]
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
            return f"No feature was selected: the solver has no member with at most {self.size} features"
        named = self.selected or self.order[:1]
        listed = ", ".join(
            f"{self.feature_names[feature]} ({self.frequency[feature]:.0%})" for feature in named
        )
        return (
            f"At least {self.threshold:.0%} of {2 * self.pairs} halves of {self.n_queries:,} training queries select "
            f"{len(self.selected)} of {len(self.counted)} features, each half at most {self.size}"
            f"{':' if self.selected else '; the most frequent is'} {listed}"
        )

    def sentences(self) -> list[str]:
        """Return the finding, and its risk if any feature is selected."""
        most = f"Expect at most {ceil(100 * self.bound - SAME) / 100:g} of them to be false"
        risk = (
            f"{most}: half of the queries select a false feature with a probability of at most {self.size} in "
            f"{len(self.counted)}, that of a random choice"
        )
        if self.bound >= len(self.selected):
            risk = f"{most}, which says nothing: all of them may be. Take a smaller size or a larger threshold"
        return [self.finding, risk] if self.selected else [self.finding]


def half_of(n_queries: int, half: int, seed: int) -> Integers:
    """Return ⌊n/2⌋ of the queries. Halves 2 j and 2 j + 1, counted from 0, are pair j and share no query."""
    (pair, side), n_half = divmod(half, 2), n_queries // 2
    order = Draws(np.random.PCG64(np.random.SeedSequence([seed, pair]))).order(n_queries)
    return order[side * n_half : (side + 1) * n_half]


def _selections(
    cell: Cell, data: str | Path | None, code_allowed: bool, half: int
) -> list[list[int]]:
    """Return the features of the members that the solver offers on a half, one member per size."""
    problem = cell.problem
    parts = problem.data.read(cell.fold, problem.folders(data))
    rows = of_queries(parts[0], np.sort(half_of(parts[0].n_queries, half, cell.seed)))
    in_memory = read_memory(
        (rows, *parts[1:]), problem.data.model_dump(include={"normalize", "scaled"})
    )
    halved = problem.model_copy(update={"data": in_memory})
    with (
        allow_code(code_allowed),
        warnings.catch_warnings(action="ignore"),
    ):  # else each half would repeat them
        result = run_fold(
            halved, 1, cell.solver, random_state=(cell.random_state + half) % 2**32, baselines=False
        )
    best_last = sorted(result.front, key=lambda member: member.score("train", result.metrics[0]))
    return list({len(member.features): list(member.features) for member in best_last}.values())


def stability(
    solver: object,
    train: RankingData | Problem,
    validation: RankingData | None = None,
    *,
    fold: int = 1,
    data: str | Path | None = None,
    size: int | None = None,
    threshold: float = 0.75,
    pairs: int = 25,
    seed: int = 0,
    workers: int = 1,
    memo: str | Path | None = None,
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
        An estimator with a front, a path or ``support_``, or a name in the table of solvers. If its random state is
        None, each half gets another one.
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
    memo : path, optional
        File with the selections of finished halves: a call that was interrupted goes on from it. Remove it afterwards.
    progress : callable, optional
        Called as ``progress("half-samples", fraction, text)``.

    Returns
    -------
    Stability
        ``print(*result.sentences(), sep="\n")`` prints it in words.

    Raises
    ------
    ValueError
        If the solver refuses the data, for example because no query of a half has different labels, if there are
        fewer than two features, or if the memo belongs to other settings.

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
    check_share(threshold=threshold)
    check_at_least(1, pairs=pairs, workers=workers)
    check_at_least(0, seed=seed)
    if threshold <= 0.5:
        raise ValueError(
            f"threshold is {threshold:g}; it must be above 1/2, because the bound needs that"
        )
    if isinstance(train, Problem):
        problem = train
    elif validation is None:
        raise ValueError("the solver needs validation queries; pass them as the third argument")
    else:
        problem = make_problem("train", (train, validation, validation))
    [method] = read_solvers(solver, own=True, tune=False)
    (queries, held_out, _), limits = problem.load_limited_fold(fold, data)
    own = method.settings if method.source is None else vars(method.source)
    limits |= {**own, **given_settings(own.get("limits"))}
    included = column_mask(limits.get("include") or (), queries.feature_names, "include")
    counted = np.flatnonzero(varying_in_queries(queries) & ~included)
    if len(counted) < 2:
        raise ValueError(
            f"{queries.name}: {len(counted)} optional features vary within queries; two are needed"
        )
    check_at_least(1, len(counted), or_none=True, size=size)
    if queries.n_queries < 2:
        raise ValueError(f"{queries.name}: one training query has no halves; give two or more")
    size = size or max(1, floor(sqrt((2 * threshold - 1) * len(counted)) + SAME))
    cell = Cell(problem, fold, method, seed)
    mask = np.zeros((2 * pairs, queries.n_features), np.bool_)
    report = progress or silent
    about = {"halves of": cell.identity(), "data": identify([queries, held_out])}
    finished = {} if memo is None else Finished(Path(memo), about, resume=True)
    left = [half for half in range(2 * pairs) if str(half) not in finished]
    tasks = (delayed(_selections)(cell, data, code_is_allowed(), half) for half in left)
    with parallel_config("loky", inner_max_num_threads=1):
        selections = Parallel(cap_workers(workers), return_as="generator", max_nbytes=None)(tasks)
        for half, members in zip(left, selections, strict=True):
            finished[str(half)] = members
            report("half-samples", (half + 1) / len(mask), f"{half + 1} of {len(mask)}")
    for half, row in enumerate(mask):
        small = [member for member in finished[str(half)] if len(member) <= size + included.sum()]
        row[max(small, key=len, default=[])] = True
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
        frequency=(mask.sum(axis=0) / (2 * pairs)).tolist(),
        counted=counted.tolist(),
        bound=expected_false(size, len(counted), threshold),
    )

"""Stability: which features halves of the training queries select again and again, and which replace each other."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil, floor, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from moerank.arrays import Integers, Mask
from moerank.checks import check_at_least, check_share
from moerank.data import RankingData
from moerank.data.describe import feature_correlations
from moerank.data.folds import Draws, of_queries
from moerank.data.inputs import column_mask
from moerank.data.scaling import centre_in_queries
from moerank.files import Json
from moerank.mofsrank.settings import Limits
from moerank.rankers import varying_in_queries
from moerank.studies.executors import check_can_be_sent, find_executor, run_cells
from moerank.studies.grid import Cell
from moerank.studies.measure import Progress
from moerank.studies.problem import Problem, make_problem
from moerank.studies.result import STRICT, Natural, Stored
from moerank.studies.run_fold import run_fold
from moerank.studies.solver import Solver, digest_of
from moerank.studies.sources import read_memory
from moerank.studies.store import Store

MOST_SIZES = 20
"""Frequencies are kept for 1, 2, … features up to this number, or up to a larger size that is asked for."""

ROUNDING = 1e-9


def expected_false(size: int, n_features: int, threshold: float) -> float:
    """Bound the expected number of false selections by complementary pairs: size² / (n_features · (2 τ − 1)).

    A feature is false if half of the queries select it with a probability p of at most θ = size / n_features, as a
    random choice does. Both halves of a pair select it with the probability p², because they are independent. A
    frequency of at least the threshold τ > 1/2 needs 2 τ − 1 of the pairs to do so, and has a probability of at most
    p² / (2 τ − 1) by Markov's inequality. The sum over false features is at most θ · size / (2 τ − 1). Nothing is
    assumed of the solver, of the number of pairs, or of the other features.

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


class Replaceable(BaseModel):
    """Features that are alike, of which halves mostly select one in place of the others.

    Attributes
    ----------
    features : list of int
        The columns that were selected, the most frequent one first.
    frequency, several : float
        Shares of the halves that select at least one of them, and at least two.
    """

    model_config = STRICT

    features: list[Natural]
    frequency: float
    several: float


class Stability(BaseModel):
    """How often halves of the training queries select each feature.

    Attributes
    ----------
    solver, data : str
    configuration : dict
        All settings that decide what a half selects.
    feature_names : list of str
    n_queries : int
        Training queries; each half has ⌊n/2⌋.
    pairs : int
        Pairs of halves.
    seed : int
    threshold : float
        Frequency from which a feature counts as selected.
    size : int
        Most features of the members that are judged, beside those that limits include in every selection.
    frequencies : list of list of float, shape (n_sizes, n_features)
        For 1, 2, … features the share of the halves whose largest member with at most so many features has each one.
    counted : list of int
        The columns that vary within a query and are not included by a limit.
    bound : float
        Bound on the expected number of false ones among `selected`, see `expected_false`.
    alike : float
        Least |correlation| within queries of the features of a set.
    sets : list of Replaceable
        The sets that at least `threshold` of the halves select a feature of, but no single feature.
    n_sets : int
        Number of sets into which the counted features fall; most of them have one feature.
    bound_sets : float
        Bound with sets in place of features.
    """

    model_config = STRICT

    solver: str
    data: str
    configuration: Json
    feature_names: list[str]
    n_queries: Natural
    pairs: Natural
    seed: Natural
    threshold: float
    size: Natural
    frequencies: list[list[Annotated[float, Field(ge=0, le=1)]]]
    counted: list[Natural]
    bound: float
    alike: float
    sets: list[Replaceable]
    n_sets: Natural
    bound_sets: float

    @property
    def frequency(self) -> list[float]:
        """The frequency of each feature at `size`."""
        return self.frequencies[self.size - 1]

    @property
    def order(self) -> list[int]:
        """The counted features that any half selects at `size`, the most frequent one first."""
        found = [feature for feature in self.counted if self.frequency[feature]]
        return sorted(found, key=lambda feature: -self.frequency[feature])

    @property
    def selected(self) -> list[int]:
        """The features whose frequency is at least the threshold, the most frequent one first."""
        return [feature for feature in self.order if self.frequency[feature] >= self.threshold - ROUNDING]

    @property
    def finding(self) -> str:
        """The features that are selected, in words."""
        n_all, found = len(self.counted), self.selected or self.order[:1]
        if not found:
            return f"No feature was selected: the solver has no member of at most {self.size} features"
        halves = f"{2 * self.pairs} halves of {self.n_queries:,} training queries"
        features = f"{self.size} feature{'s' * (self.size > 1)}"
        where = f"in at least {self.threshold:.0%} of the selections of {features} on {halves}"
        named = _joined([f"{self.feature_names[feature]} ({self.frequency[feature]:.0%})" for feature in found])
        if not self.selected:
            return f"None of {n_all} features is {where}; the most frequent is feature {named}"
        return f"{len(found)} of {n_all} features {'is' if len(found) == 1 else 'are'} {where}: {named}"

    def sentences(self) -> list[str]:
        """Return the finding, its risk, the sets of features that take each other's place, and their risk."""
        said = [self.finding]
        if self.selected:
            said.append(self._risk("features", self.bound, len(self.counted)))
        for found in self.sets:
            listed = _joined([self.feature_names[feature] for feature in found.features])
            some = f"{found.frequency:.0%} of the halves select at least one of the features {listed}"
            said.append(f"{some}, {found.several:.0%} several: they take each other's place")
        if self.sets:
            said.append(f"{self._risk('sets', self.bound_sets, self.n_sets)}, the number of sets of alike features")
        return said

    def _risk(self, kind: str, bound: float, n_all: int) -> str:
        chance = f"false {kind}, which half of the queries select with a probability of at most {self.size} in {n_all}"
        if bound > 1 + ROUNDING:
            return f"Up to {bound:.2g} may be {chance}"
        return f"At most {ceil(100 * bound - ROUNDING) / 100:g} are expected to be {chance}"


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


class Selections(Stored):
    """The features of the members that a half offers, one member a size."""

    members: list[list[Natural]]


@dataclass(frozen=True, eq=False)
class HalfSample:
    """A cell of a study on half of its training queries. Halves 2 j and 2 j + 1, from 0, are the pair j."""

    cell: Cell
    half: int = 0

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"{self.cell.label}, half {self.half}"

    @property
    def key(self) -> str:
        """The name of its file: a digest of all that decides the outcome."""
        return digest_of({**self.cell.configuration(), "half": self.half})

    def queries(self, n_queries: int) -> Integers:
        """Return ⌊n/2⌋ of the queries, which the other half of the pair does not have."""
        (pair, side), n_half = divmod(self.half, 2), n_queries // 2
        order = Draws(np.random.PCG64(np.random.SeedSequence([self.cell.seed, pair]))).order(n_queries)
        return order[side * n_half : (side + 1) * n_half]

    def run(self, data: str | Path | None = None) -> Selections:
        """Run the solver on the half."""
        problem = self.cell.problem
        parts = problem.data.read(self.cell.fold, problem.places(data))
        half = of_queries(parts[0], np.sort(self.queries(parts[0].n_queries)))
        in_memory = read_memory((half, *parts[1:]), problem.data.model_dump(include={"normalize", "scaled"}))
        halved = problem.model_copy(update={"data": in_memory})
        seed = (self.cell.random_state + self.half) % 2**32
        with warnings.catch_warnings(action="ignore"):  # each half would repeat them
            result = run_fold(halved, 1, self.cell.solver, random_state=seed, baselines=False)
        best_last = sorted(result.front, key=lambda member: member.score("train", result.metrics[0]))
        return Selections(members=list({len(member.features): list(member.features) for member in best_last}.values()))

    def read(self, text: str) -> Selections:
        """Return the outcome from the text of its file."""
        return Selections.model_validate_json(text)


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
    alike: float = 0.9,
    seed: int = 0,
    workers: int = 1,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Stability:
    r"""Say which features halves of the training queries select again and again, and which replace each other.

    The queries are halved at random, `pairs` times, and the solver is trained on each half. At most `size` features are
    taken of each, those of the largest member of its front or path that is small enough. A feature counts as selected
    if at least `threshold` of the halves select it. The expected number of false selections has the bound of
    `expected_false`, that of Shah and Samworth (2013) without assumptions beyond independent queries.

    Parameters
    ----------
    solver : estimator or str
        An estimator with a front, a path or ``support_``, or a name in the table of solvers. A random state of None is
        drawn anew for each half.
    train : RankingData or Problem
        A problem has validation queries of its own, and settings of the solver.
    validation : RankingData
        Given to the solver with each half. They also say which features are alike.
    fold : int, default 1
        Of a problem.
    data : path, optional
        Where files of a problem are; see `Problem.load_fold`.
    size : int, optional
        Features that limits include in every selection come on top. By default the largest size at which at most one
        false selection is expected, by sets of alike features.
    threshold : float, default 0.75
        Above 1/2, at most 1.
    pairs : int, default 25
        The bound holds for any number. With more pairs less is left to chance.
    alike : float, default 0.9
        Features are a set if the |correlation| within queries of all pairs of them is at least so large (complete
        linkage).
    seed : int, default 0
        The same halves for all solvers.
    workers : int, default 1
        Processes; the result is the same for any number.
    out : path, optional
        A folder that keeps what is finished. After an interruption, or with more pairs, only the rest is run.
    progress : callable, optional
        Called as ``progress("half-samples", fraction, text)``.

    Returns
    -------
    Stability
        ``print(*result.sentences(), sep="\n")`` says it in words.

    Raises
    ------
    ValueError
        If the solver fails on a half, as where no query of it has different labels; and for fewer than two features.

    Notes
    -----
    Costs 2 · `pairs` fits on half of the queries, and O(n_documents · n_features²) for the correlations.

    Examples
    --------
    >>> import moerank as mr
    >>> train, vali, _ = mr.load_planted_fold(1)
    >>> found = mr.stability(mr.GreedyRankRLS(5), train, vali, pairs=5)
    >>> [found.feature_names[feature] for feature in found.sets[0].features]
    ['relevant 4', 'redundant 1 of 4']
    """
    check_share(threshold=threshold, alike=alike)
    check_at_least(1, pairs=pairs)
    check_at_least(0, seed=seed)
    check_at_least(1, or_none=True, size=size)
    if threshold <= 0.5:
        raise ValueError(f"threshold is {threshold:g}; it must be above 1/2, for no bound is known below")
    if isinstance(train, Problem):
        problem = train
    elif validation is None:
        raise ValueError("validation queries say which features are alike; give them as the third argument")
    else:
        problem = make_problem("train", (train, validation, validation))
    if not isinstance(solver, Solver):
        solver = Solver.parse(solver) if isinstance(solver, str) else Solver.of(solver, type(solver).__name__)
    (whole, held_out, _), limits = problem.load_limited_fold(fold, data)
    whole = whole
    own = solver.settings if solver.source is None else vars(solver.source)
    set_by_user = own.get("limits") or {}
    of_solver = set_by_user.given if isinstance(set_by_user, Limits) else set_by_user
    given = {**limits, **own, **of_solver}.get("include") or ()
    included = column_mask(given, whole.feature_names, "include")
    counted = np.flatnonzero(varying_in_queries(whole) & ~included)
    if len(counted) < 2:
        raise ValueError(f"{whole.name}: {len(counted)} features vary within queries and can be left out; give two")
    centred = centre_in_queries(held_out.X, held_out.offsets)[:, counted]
    distances = squareform(1.0 - feature_correlations(centred), checks=False).clip(min=0.0)
    labels = fcluster(linkage(distances, "complete"), 1.0 - alike, "distance")
    n_sets = int(labels.max())
    size = size or max(1, floor(sqrt((2 * threshold - 1) * n_sets) + ROUNDING))
    cell = Cell(problem, fold, solver, seed)
    with TemporaryDirectory() as folder:
        samples = [HalfSample(cell, half) for half in range(2 * pairs)]
        outcomes = _outcomes(samples, Path(folder if out is None else out), data, workers, progress)
    masks = np.zeros((max(size, min(MOST_SIZES, len(counted))), 2 * pairs, whole.n_features), np.bool_)
    for half, outcome in enumerate(outcomes):
        for member in sorted(outcome.members, key=len):  # each takes the place of smaller ones
            masks[max(0, len(member) - included.sum() - 1) :, half] = np.isin(np.arange(whole.n_features), member)
    return Stability(
        solver=solver.label,
        data=whole.name,
        configuration=cell.configuration(),
        feature_names=list(whole.feature_names),
        n_queries=whole.n_queries,
        pairs=pairs,
        seed=seed,
        threshold=threshold,
        size=size,
        frequencies=(masks.sum(axis=1) / (2 * pairs)).tolist(),
        counted=counted.tolist(),
        bound=expected_false(size, len(counted), threshold),
        alike=alike,
        sets=_replaceable(masks[size - 1][:, counted], labels, counted, threshold),
        n_sets=n_sets,
        bound_sets=expected_false(size, n_sets, threshold),
    )


def _outcomes(
    samples: list[HalfSample], folder: Path, data: str | Path | None, workers: int, progress: Progress | None
) -> list[Selections]:
    """Run the half-samples that are not finished in a folder, and return all outcomes; the first failure ends it."""
    if workers > 1:
        check_can_be_sent({samples[0].label: samples[0]})
    report, numbers = progress or (lambda stage, fraction, text: None), count(1)

    def done(sample: HalfSample, succeeded: bool) -> None:
        if not succeeded:
            raise ValueError(f"{sample.label}: {store.read_failure(sample)['error']}")
        number = next(numbers)
        report("half-samples", number / len(samples), f"{number} of {len(samples)}")

    with Store(folder) as store:
        for sample in samples:
            store.forget_failure(sample)
        run_cells(store, samples, lambda: find_executor(workers, None, data), done)
        return [store.read(sample) for sample in samples]


def _replaceable(chosen: Mask, labels: Integers, counted: Integers, threshold: float) -> list[Replaceable]:
    """Return the sets of features that take each other's place, the most frequent first.

    `chosen` (n_halves, n_counted) and `labels` (n_counted,) are those of the counted features.
    """
    sets = []
    for label in np.unique(labels):
        masks = chosen[:, labels == label]
        shares, n_chosen = masks.sum(axis=0) / len(masks), masks.sum(axis=1)
        order = np.argsort(-shares, kind="stable")[: np.count_nonzero(shares)]
        frequency, several = float((n_chosen > 0).mean()), float((n_chosen > 1).mean())
        if frequency >= threshold - ROUNDING > shares.max() and 2 * several <= frequency:
            features = counted[labels == label][order].tolist()
            sets.append(Replaceable(features=features, frequency=frequency, several=several))
    return sorted(sets, key=lambda found: -found.frequency)

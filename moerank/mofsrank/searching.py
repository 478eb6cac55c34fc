"""The search of a stage: the problem as it is asked, the algorithm with the stage's operators, journal and history."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.sampling import Sampling

from moerank.checks import check_room, unknown
from moerank.data import RankingData
from moerank.data.shards import NOT_ON_SHARDS
from moerank.evolution import (
    ALGORITHMS,
    BIT_SEARCHES,
    Archive,
    Factory,
    Journal,
    PackedProblem,
    SearchResult,
    make_algorithm,
    search,
    unpack_rows,
)
from moerank.metrics import Metric
from moerank.mofsrank.ensemble import Ensemble
from moerank.mofsrank.feature_selection import FeatureSelection
from moerank.mofsrank.front import Front
from moerank.mofsrank.instance_selection import InstanceSelection, Unit, default_unit, spread_along_front
from moerank.mofsrank.limits import FeatureLimits
from moerank.mofsrank.objectives import Objective
from moerank.mofsrank.settings import (
    STAGES,
    EnsembleSettings,
    FeatureSelectionSettings,
    InstanceSelectionSettings,
    StagePlan,
)
from moerank.mofsrank.stage import Stage
from moerank.rankers import FitnessBackend, LinearPopulation, require_weights

__all__ = [
    "check_algorithm",
    "check_on_shards",
    "digest_of",
    "history_of",
    "is_sparse_search",
    "journal_of_stage",
    "search_arguments",
    "AGAIN",
    "Plans",
    "Progress",
    "StagedSearch",
]


def is_sparse_search(algorithm: str | Factory) -> bool:
    """Whether an algorithm is one of `BIT_SEARCHES`, which search the feature strings of the second stage alone."""
    return isinstance(algorithm, str) and algorithm in BIT_SEARCHES


def check_algorithm(algorithm: object, population: int, n_objectives: int) -> None:
    """Raise a ValueError for what cannot search the second stage, before the first one begins.

    Examples
    --------
    >>> check_algorithm("mffs", population=100, n_objectives=3)
    Traceback (most recent call last):
        ...
    ValueError: MFFS is made for 2 objectives, not for 3; choose another algorithm, such as nsga2
    """
    if isinstance(algorithm, str):
        if algorithm not in ALGORITHMS:
            raise ValueError(unknown("algorithm", algorithm, ALGORITHMS))
        if is_sparse_search(algorithm):
            make_algorithm(algorithm, population, {}, n_objectives)
    elif not callable(algorithm):
        raise ValueError(f"algorithm must be a name or a factory of pymoo algorithms, not {algorithm!r}")


def check_on_shards(backend: object, unit: str, refit: object = None) -> None:
    """Raise a ValueError for what cannot search on data in shards; None stands for the default backend.

    Examples
    --------
    >>> check_on_shards(None, "pair")
    Traceback (most recent call last):
        ...
    ValueError: unit="pair" lists the preference pairs, which data in shards do not; take "query" or "document"
    """
    if backend is not None and not getattr(backend, "on_shards", False):
        raise ValueError(f"the backend {type(backend).__name__} {NOT_ON_SHARDS}")
    if refit is not None:
        raise ValueError(f"refit {NOT_ON_SHARDS}; train that ranker on the chosen features of a sample")
    if unit == "pair":
        raise ValueError(
            'unit="pair" lists the preference pairs, which data in shards do not; take "query" or "document"'
        )


def search_arguments(
    name: str, stage: Stage, algorithm: str | Factory, plan: StagePlan[Any]
) -> tuple[Problem, Any, Any]:
    """Return the problem that a stage poses, a fresh pymoo algorithm for it, and when the search ends.

    Sparse searches are given the feature strings; the other stages are searched by NSGA-II in their place.

    Raises
    ------
    ValueError
        If the population does not fit in memory; the message calls the stage by `name`.
    """
    population = plan.settings.population
    check_room(f"{name}: a population of {population:,} strings of {stage.n_var:,}", population * stage.n_var)
    problem, operators = stage, stage.operators()
    if is_sparse_search(algorithm):
        if isinstance(stage, FeatureSelection):
            del operators["sampling"]  # the start of the search itself comes in its place
        else:
            algorithm = "nsga2"
    if plan.initial is not None:
        operators["sampling"] = _checked(name, stage, plan.initial)
    elif isinstance(stage, InstanceSelection) and isinstance(algorithm, str):
        problem, operators = PackedProblem(stage), stage.packed_operators()
    return problem, make_algorithm(algorithm, population, operators, stage.n_obj), _end(algorithm, plan)


class _Checked(Sampling):  # type: ignore[misc]
    """A sampling of the user's, whose strings a stage refuses if they break its limits: it repairs none of them."""

    def __init__(self, sampling: Sampling, stage: Stage) -> None:
        super().__init__()
        self.sampling = sampling
        self.stage = stage

    def do(self, *args: Any, **kwargs: Any) -> Population:
        population = self.sampling.do(*args, **kwargs)
        self.stage.check(np.array([individual.X for individual in population]))
        return population


def _checked(name: str, stage: Stage, initial: Any) -> NDArray[Any] | Sampling:
    """Return an initial population, which a stage takes as it is or refuses."""
    if isinstance(initial, Sampling):
        return _Checked(initial, stage)
    X = np.asarray(initial)
    if X.ndim != 2 or X.shape[1] != stage.n_var:
        raise ValueError(f"{name}: initial must have shape (n_individuals, {stage.n_var}), not {X.shape}")
    try:
        stage.check(X)
    except ValueError as error:
        raise ValueError(f"{name}: initial: {error}") from None
    return X


def _end(algorithm: str | Factory, plan: StagePlan[Any]) -> Any:
    """Return when a search ends: as its plan has it, else after its generations.

    Those of a staircase search differ in size; it ends after as many evaluations as the plan's stand for.
    """
    if plan.termination is not None:
        return plan.termination
    settings = plan.settings
    if algorithm == "staircase":
        return "n_eval", settings.population * settings.generations
    return "n_gen", settings.generations


def history_of(result: SearchResult, stage: Stage) -> pd.DataFrame:
    """Return a row for each generation of a stage's search, as `MOFSRank.history_` has it.

    The box of the hypervolume is that of all features, whatever the strings are, so that stages can be compared.
    """
    train = stage.train
    least, largest = np.array([entry.bounds(train, train.n_features) for entry in stage.objectives], np.float64).T
    return pd.DataFrame(
        {
            "generation": [generation.n_gen for generation in result.history],
            "n_eval": [generation.n_eval for generation in result.history],
            "hypervolume": result.hypervolume(largest) / np.prod(largest - least),
            "seconds": [generation.elapsed for generation in result.history],
        }
    )


def journal_of_stage(path: str | Path, stage: str, configuration: Mapping[str, Any]) -> Journal:
    """Return the journal of one stage, beside those of the others, for a search with this configuration."""
    # A factory or a sampling of the user's shows its address, which is another in every process.
    stable = json.loads(re.sub(r" at 0x[0-9a-f]+", "", json.dumps(configuration)))
    return Journal(Path(path).with_name(f"{Path(path).name}.{stage}"), stable)


def digest_of(train: RankingData) -> str:
    """Return what tells data apart, one pass over them and no copy, and remembered with them."""

    def digest() -> str:
        costs = () if train.costs is None else (train.costs.own, train.costs.group, train.costs.shared)
        digests = train.map(_digest, costs)
        if len(digests) == 1:
            return digests[0]
        return hashlib.blake2b("".join(digests).encode(), digest_size=16).hexdigest()

    return train.remember("digest of the data", digest)


def _digest(data: RankingData, costs: Sequence[NDArray[Any]]) -> str:
    total = hashlib.blake2b(digest_size=16)
    for array in (data.X, data.y, data.offsets, *costs):
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


AGAIN = "refit_search"
"""The stage in which the ranker that serves goes on with the search."""

FEW = 40
"""Nominal population of that stage: batches of ten, for a staircase search begins with a quarter."""

Progress: TypeAlias = Callable[[str, float, int, int], object]
"""Called with the stage, the fraction of it that is done, the generation and the evaluations."""


@dataclass(frozen=True)
class Plans:
    """How each stage is run."""

    instance_selection: StagePlan[InstanceSelectionSettings]
    feature_selection: StagePlan[FeatureSelectionSettings]
    ensemble: StagePlan[EnsembleSettings]


@dataclass
class StagedSearch:
    """Searches the stages one after the other, all on the same data with the same backend and metric.

    Attributes
    ----------
    train : RankingData
    backend : fitness backend
        With the regularisation that is used.
    metric : Metric
    objectives : tuple of Objective
        What the second and the third stage minimise.
    plans : Plans
    limits : FeatureLimits
        What the feature strings of these two keep.
    algorithm : str or callable
        A name from `moerank.evolution.ALGORITHMS`, or a factory of pymoo algorithms.
    adaptive_mutation : bool
    random_state : int
        The seed that each stage draws its own from.
    workers : int
        Threads.
    journal : path or None
        What the stages write down what they evaluate into, one file each.
    resume : bool
        Go on from the journal if there is one.
    progress : callable or None
    verbose : bool
        Print pymoo's table of generations.
    instance_unit : {"pair", "document", "query"} or None
        What the first stage chose among; None without it.
    fronts, history : dict
        The front and the generations of each stage that was searched; see `MOFSRank`.
    n_evaluations : int
        Individuals evaluated so far, repetitions counted.
    """

    train: RankingData
    backend: FitnessBackend
    metric: Metric
    objectives: tuple[Objective, ...]
    plans: Plans
    limits: FeatureLimits
    algorithm: str | Factory
    adaptive_mutation: bool
    random_state: int
    workers: int
    journal: str | Path | None
    resume: bool
    progress: Progress | None
    verbose: bool
    instance_unit: Unit | None = None
    fronts: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    history: dict[str, pd.DataFrame] = field(default_factory=dict)
    n_evaluations: int = 0

    def select_instances(self) -> NDArray[np.bool_]:
        """Stage 1: the instance subsets (n_subsets, n_units) that the second stage trains on."""
        settings = self.plans.instance_selection.settings
        self.instance_unit = default_unit(self.train) if settings.unit == "auto" else settings.unit
        stage = InstanceSelection(
            self.train,
            self.backend,
            self.metric,
            unit=self.instance_unit,
            density=settings.density,
            workers=self.workers,
        )
        found = self._search("instance_selection", stage, self.plans.instance_selection)
        X = found.X if found.X.dtype == np.bool_ else unpack_rows(found.X, stage.n_var)
        return spread_along_front(X, found.F, settings.max_subsets, include_all=settings.include_all)

    def select_features(self, pair_masks: NDArray[np.bool_] | None) -> Front:
        """Stage 2: the front, its members and their rankers; without masks all train on all pairs."""
        settings = self.plans.feature_selection.settings
        stage = FeatureSelection(
            self.train,
            self.backend,
            self.metric,
            pair_masks,
            unit=self.instance_unit or "pair",
            objectives=self.objectives,
            limits=self.limits,
            by_group=settings.by_group,
            adaptive=self.adaptive_mutation and not is_sparse_search(self.algorithm),
            form=settings.form,
            decay=settings.decay,
            workers=self.workers,
        )
        found = self._search("feature_selection", stage, self.plans.feature_selection)
        return Front(found.F, stage.strings.columns(found.X), stage.rankers(found.X))

    def combine(self, front: Front) -> Front:
        """Stage 3: the front, its members and their combined rankers."""
        settings = self.plans.ensemble.settings
        stage = Ensemble(
            self.train,
            require_weights(front.population, self.backend),
            self.metric,
            objectives=self.objectives,
            limits=self.limits,
            by_group=self.plans.feature_selection.settings.by_group,
            backend=self.backend,
            inject=settings.inject,
            workers=self.workers,
        )
        archive = Archive()
        if settings.keep_members:
            archive.add(stage.members(), stage.evaluate(stage.members()))
        found = self._search("ensemble", stage, self.plans.ensemble, archive=archive)
        return Front(found.F, stage.feature_mask(found.X), LinearPopulation(stage.weights(found.X)))

    def select_again(
        self, backend: FitnessBackend, front: Front, evaluations: int
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Go on from the members of a front with another backend: objectives and features of the front that follows.

        It is what so many evaluations find that is not dominated. The staircase search gets furthest with few of them,
        whatever searched before.
        """
        stage = FeatureSelection(
            self.train,
            backend,
            self.metric,
            objectives=self.objectives,
            limits=self.limits,
            by_group=self.plans.feature_selection.settings.by_group,
            adaptive=False,
        )
        members = spread_along_front(front.feature_mask, front.F, max(1, evaluations // 2), include_all=False)
        initial = stage.strings.bits(members)
        plan = StagePlan(FeatureSelectionSettings(population=FEW), ("n_eval", evaluations), initial)
        found = self._search(AGAIN, stage, plan, algorithm="staircase")
        return found.F, stage.strings.columns(found.X)

    def _search(
        self,
        name: str,
        stage: Stage,
        plan: StagePlan[Any],
        *,
        archive: Archive | None = None,
        algorithm: str | Factory | None = None,
    ) -> Archive:
        """Run one stage and return the non-dominated members of all its evaluations and of a given archive."""
        problem, searching, termination = search_arguments(name, stage, algorithm or self.algorithm, plan)
        sequence = np.random.SeedSequence(self.random_state, spawn_key=((*STAGES, AGAIN).index(name),))
        journal = self._journal(name, stage)
        if journal is not None and not self.resume:
            journal.remove()
        report = self.progress
        result = search(
            problem,
            searching,
            termination,
            seed=int(sequence.generate_state(1)[0]),
            archive=archive,
            journal=journal,
            progress=None if report is None else lambda *state: report(name, *state),
            verbose=self.verbose,
        )
        self.fronts[name] = result.archive.F
        self.history[name] = history_of(result, stage)
        self.n_evaluations += result.history[-1].n_eval
        return result.archive

    def _journal(self, name: str, stage: Stage) -> Journal | None:
        if self.journal is None:
            return None
        configuration = {
            "stage": name,
            "data": digest_of(self.train),
            "backend": repr(getattr(stage, "backend", self.backend)),
            "metric": repr(self.metric),
            "objectives": [repr(objective) for objective in self.objectives],
            "limits": repr(self.limits),
            "algorithm": str(self.algorithm),
            "adaptive_mutation": self.adaptive_mutation,
            "random_state": self.random_state,
            "settings": [
                repr(plan)
                for plan in (self.plans.instance_selection, self.plans.feature_selection, self.plans.ensemble)
            ],
        }
        return journal_of_stage(self.journal, name, configuration)

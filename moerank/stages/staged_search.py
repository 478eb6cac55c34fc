"""The three stages of MOFSRank as searches: each posed, searched, written down, and its front handed on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.evolution import Archive, Factory, Journal, search, unpack_rows
from moerank.metrics import Metric
from moerank.rankers import FitnessBackend, LinearPopulation, require_weights
from moerank.stages.ensemble import Ensemble
from moerank.stages.feature_selection import FeatureSelection
from moerank.stages.feature_strings import FeatureLimits
from moerank.stages.front import Front
from moerank.stages.instance_selection import InstanceSelection, spread_along_front
from moerank.stages.instance_units import Unit, default_unit
from moerank.stages.objectives import Objective
from moerank.stages.searching import digest_of, history_of, is_sparse_search, journal_of_stage, search_arguments
from moerank.stages.settings import (
    STAGES,
    EnsembleSettings,
    FeatureSelectionSettings,
    InstanceSelectionSettings,
    StagePlan,
)
from moerank.stages.stage import Stage

__all__ = ["AGAIN", "Plans", "Progress", "StagedSearch"]

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

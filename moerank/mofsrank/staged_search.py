"""The searches of the three stages in a row, on the same data with the same settings."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from pymoo.core.algorithm import Algorithm
from pymoo.core.duplicate import NoDuplicateElimination
from pymoo.core.sampling import Sampling
from pymoo.operators.sampling.rnd import BinaryRandomSampling

from moerank import rankers
from moerank.arrays import Mask, Matrix
from moerank.checks import check_room
from moerank.data import RankingData
from moerank.evolution import Archive, Factory, Memo, SearchResult, make_algorithm, search
from moerank.identity import digest, identify
from moerank.mofsrank import objectives
from moerank.mofsrank.dask_slices import Slices
from moerank.mofsrank.ensemble import Ensemble
from moerank.mofsrank.feature_selection import FeatureSelection
from moerank.mofsrank.instance_selection import InstanceSelection, default_unit, spread_along_front
from moerank.mofsrank.objectives import Front
from moerank.mofsrank.settings import STAGES, Settings, is_sparse
from moerank.mofsrank.stage import Stage
from moerank.training.masks import Unit

if TYPE_CHECKING:  # slow to load
    import pandas as pd


@dataclass
class StagedSearch:
    """The searches of the stages, on the same data with the same settings.

    In the settings the backend is tuned, the seed is drawn, and included features are named. `table` has all features.
    `instance_unit`, `fronts` and `history` are as in `MOFSRank`.
    """

    train: RankingData
    settings: Settings
    table: RankingData
    instance_unit: Unit | None = None
    fronts: dict[str, Matrix] = field(default_factory=dict)
    history: dict[str, pd.DataFrame] = field(default_factory=dict)

    def select_instances(self) -> Mask:
        """Run the first stage, and return the instance subsets (n_subsets, n_units) for the second."""
        backend, settings = self.settings.backend, self.settings.instance_selection
        assert settings is not None
        unit = default_unit(self.train)
        judge_of_instances = getattr(backend, "judge_of_instances", None)
        if settings.unit != "auto":
            unit = settings.unit
        elif judge_of_instances:
            unit = "query"
        if judge_of_instances:
            backend = judge_of_instances(self.train, unit)
        self.instance_unit = unit
        stage = InstanceSelection(
            self.train,
            backend,
            self.settings.metric,
            settings,
            unit=unit,
            workers=self.settings.workers,
        )
        archive = self._search("instance_selection", stage)
        return spread_along_front(
            archive.X, archive.F, settings.max_subsets, include_all=settings.include_all
        )

    def select_features(self, pair_masks: Mask | None) -> Front:
        """Run the second stage, and return its front; without masks all rankers train on all pairs."""
        settings = self.settings
        stage = FeatureSelection(
            self.train,
            settings.backend,
            settings.metric,
            pair_masks,
            settings.feature_selection,
            unit=self.instance_unit or "pair",
            objectives=settings.objectives,
            limits=settings.limits,
            adaptive=settings.adaptive_mutation and not is_sparse(settings.algorithm),
            table=self.table,
            workers=settings.workers,
        )
        archive = self._search("feature_selection", stage)
        population, subsets, _ = stage.most_accurate(archive.X)
        trained_on = None if pair_masks is None else subsets[:, None] == np.arange(len(pair_masks))
        return Front(archive.F, stage.feature_mask(archive.X), population, trained_on)

    def combine(self, front: Front) -> Front:
        """Run the third stage on the members of a front, and return its front."""
        settings = self.settings
        assert settings.ensemble is not None
        stage = Ensemble(
            self.train,
            rankers.require_sums(front.population, settings.backend),
            settings.metric,
            settings.ensemble,
            objectives=settings.objectives,
            limits=settings.limits,
            by_group=settings.feature_selection.by_group,
            backend=settings.backend,
            table=self.table,
            workers=settings.workers,
        )
        archive = Archive()
        if settings.ensemble.keep_members:
            archive.add(stage.members(), stage.evaluate(stage.members()))
        archive = self._search("ensemble", stage, archive=archive)
        X = archive.X
        trained_on = None if front.trained_on is None else stage.summed(X) @ front.trained_on
        return Front(archive.F, stage.feature_mask(X), stage.combined(X), trained_on)

    def _search(self, name: str, stage: Stage, *, archive: Archive | None = None) -> Archive:
        """Search a stage; return the non-dominated individuals of all evaluations and of the given archive."""
        settings = self.settings
        algorithm, termination = search_arguments(name, stage, settings.algorithm)
        sequence = np.random.SeedSequence(settings.random_state, spawn_key=(STAGES.index(name),))
        if settings.client is not None:
            stage.slices = Slices(settings.client, stage)
        memo = None
        if settings.memo is not None:
            configuration = {
                "stage": name,
                "data": digest(self.train),
                **settings.configuration(),
                "backend": identify(stage.backend, "backend"),
            }
            memo = Memo(f"{settings.memo}.{name}", configuration)
            if not settings.resume:
                memo.path.unlink(missing_ok=True)
        result = search(
            stage,
            algorithm,
            termination,
            seed=int(sequence.generate_state(1)[0]),
            archive=archive,
            memo=memo,
            progress=None if settings.progress is None else partial(settings.progress, name),
            verbose=settings.verbose,
        )
        if not (stage.repairs or stage.keeps_limits(result.archive.X).all()):
            raise ValueError(
                f"{name}: without repair no string of the search kept the limits; "
                "leave repair=False out"
            )
        self.fronts[name] = result.archive.F
        history = self.history[name] = _history(result, stage, self.table)
        n_eval, seconds, hypervolume = history[["n_eval", "seconds", "hypervolume"]].iloc[-1]
        logging.getLogger("moerank").info(
            "%s: %d evaluations in %.1f s, %d members, hypervolume %.4f",
            *(name, n_eval, seconds, len(result.archive.F), hypervolume),
        )
        return result.archive


def search_arguments(name: str, stage: Stage, algorithm: str | Factory) -> tuple[Algorithm, object]:
    """Return a fresh pymoo algorithm for a stage, and its termination.

    Sparse searches are for feature strings; NSGA-II takes their place in the other stages. Raises a ValueError that
    names the stage if the population does not fit in memory.
    """
    settings = stage.settings
    population = settings.population
    what = f"{name}: a population of {population:,} strings of {stage.n_var:,}"
    # Besides its entries a string takes about 1,000 bytes: objectives, digests and the values that are looked up.
    check_room(what, population * (stage.n_var + 1000))
    operators = stage.operators()
    if is_sparse(algorithm):
        if isinstance(stage, FeatureSelection):
            del operators["sampling"]  # the search draws its own strings
        else:
            algorithm = "nsga2"
    if not settings.eliminate_duplicates:
        operators["eliminate_duplicates"] = NoDuplicateElimination()
    if not settings.repair:
        operators.pop("repair", None)
        stage.repairs = False
    initial = settings.initial
    if isinstance(initial, str):
        if initial != "random" or stage.vtype is not bool:
            raise ValueError(
                f'{name}: initial must be an array, a pymoo Sampling or, for bits, "random"'
            )
        initial = BinaryRandomSampling()
    elif initial is not None and not isinstance(initial, Sampling):
        initial = np.asarray(initial)
        if initial.shape[1:] != (stage.n_var,) or not len(initial):
            raise ValueError(
                f"{name}: initial must have shape (n_individuals, {stage.n_var}), "
                f"not {initial.shape}"
            )
        if stage.vtype is bool and not np.isin(initial, (0, 1)).all():
            raise ValueError(
                f"{name}: initial must hold bits. Give True or False for each entry of a string"
            )
        initial = initial.astype(stage.vtype or np.float64)
    if initial is not None:  # the repair brings it within the limits of the stage
        operators["sampling"] = initial
    end = settings.termination or ("n_gen", settings.generations)
    if settings.termination is None and str(algorithm).partition("[")[0] == "staircase":
        # Its generations differ in size, so it ends after as many evaluations as other searches take.
        end = "n_eval", population * settings.generations
    return make_algorithm(algorithm, population, operators, stage.n_obj), end


def _history(result: SearchResult, stage: Stage, table: RankingData) -> pd.DataFrame:
    """Return the table of generations, see `MOFSRank.history_`."""
    import pandas as pd

    # The box of all features, whatever the strings are, so that stages and solvers can be compared.
    box = [objectives.bounds_of(entry, table, table.n_features) for entry in stage.objectives]
    lower, upper = np.array(box, float).T
    history = pd.DataFrame([vars(generation) for generation in result.history])
    history = history.drop(columns="front")
    history.insert(3, "hypervolume", result.hypervolume(upper) / np.prod(upper - lower))
    return history.rename(columns={"n_gen": "generation", "elapsed": "seconds"})

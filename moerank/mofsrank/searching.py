"""Searches of the stages, one after the other, with their algorithms, memos and histories."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from pymoo.core.algorithm import Algorithm
from pymoo.core.population import Population
from pymoo.core.sampling import Sampling

from moerank.arrays import Array, Mask, Matrix
from moerank.checks import Parameters, check_room
from moerank.data import RankingData
from moerank.evolution import Archive, Factory, Memo, SearchResult, make_algorithm, search
from moerank.mofsrank.dask_slices import Slices
from moerank.mofsrank.ensemble import Ensemble
from moerank.mofsrank.feature_selection import FeatureSelection
from moerank.mofsrank.front import Front
from moerank.mofsrank.instance_selection import InstanceSelection, default_unit, spread_along_front
from moerank.mofsrank.settings import STAGES, Settings, StageSettings, is_sparse
from moerank.mofsrank.stage import Stage
from moerank.rankers import require_sums
from moerank.training.masks import Unit

LOGGER = logging.getLogger("moerank")


@dataclass
class StagedSearch:
    """Searches of the stages, on the same data with the same settings.

    In the settings the backend is tuned, the seed is drawn, and included features are named. `instance_unit`, `fronts`,
    `history` and `n_evaluations` are as in `MOFSRank`.
    """

    train: RankingData
    settings: Settings
    instance_unit: Unit | None = None
    fronts: dict[str, Matrix] = field(default_factory=dict)
    history: dict[str, pd.DataFrame] = field(default_factory=dict)
    n_evaluations: int = 0

    def select_instances(self) -> Mask:
        """Run the first stage, and return the instance subsets (n_subsets, n_units) for the second."""
        settings, chosen = self.settings, self.settings.instance_selection
        assert chosen is not None
        self.instance_unit = default_unit(self.train) if chosen.unit == "auto" else chosen.unit
        linear = getattr(settings.backend, "judge_of_instances", None)
        stage = InstanceSelection(
            self.train,
            settings.backend if linear is None else linear(self.train),
            settings.metric,
            unit=self.instance_unit,
            workers=settings.workers,
            **chosen.model_dump(include={"density", "crossover", "mutation"}),
        )
        archive = self._search("instance_selection", stage, chosen)
        return spread_along_front(archive.X, archive.F, chosen.max_subsets, include_all=chosen.include_all)

    def select_features(self, pair_masks: Mask | None) -> Front:
        """Run the second stage, and return its front; without masks all rankers train on all pairs."""
        settings, chosen = self.settings, self.settings.feature_selection
        stage = FeatureSelection(
            self.train,
            settings.backend,
            pair_masks=pair_masks,
            unit=self.instance_unit or "pair",
            adaptive=settings.adaptive_mutation and not is_sparse(settings.algorithm),
            workers=settings.workers,
            **self._shared(),
            **chosen.model_dump(include={"form", "decay", "importance", "redundancy", "crossover", "mutation"}),
        )
        archive = self._search("feature_selection", stage, chosen)
        rankers, subsets, _ = stage.most_accurate(archive.X)
        trained_on = None if pair_masks is None else subsets[:, None] == np.arange(len(pair_masks))
        return Front(archive.F, stage.feature_mask(archive.X), rankers, trained_on)

    def combine(self, front: Front) -> Front:
        """Run the third stage on the members of a front, and return its front."""
        settings, chosen = self.settings, self.settings.ensemble
        assert chosen is not None
        stage = Ensemble(
            self.train,
            require_sums(front.population, settings.backend),
            backend=settings.backend,
            workers=settings.workers,
            **self._shared(),
            **chosen.model_dump(include={"inject", "count", "crossover", "mutation"}),
        )
        archive = Archive()
        if chosen.keep_members:
            archive.add(stage.members(), stage.evaluate(stage.members()))
        archive = self._search("ensemble", stage, chosen, archive=archive)
        trained_on = None if front.trained_on is None else stage.summed(archive.X) @ front.trained_on
        return Front(archive.F, stage.feature_mask(archive.X), stage.combined(archive.X), trained_on)

    def _shared(self) -> Parameters:
        """Return the arguments that the second and the third stage share."""
        settings = self.settings
        return {
            "metric": settings.metric,
            "objectives": settings.objectives,
            "limits": settings.limits,
            "by_group": settings.feature_selection.by_group,
        }

    def _search(self, name: str, stage: Stage, chosen: StageSettings, *, archive: Archive | None = None) -> Archive:
        """Search a stage; return the non-dominated individuals of all evaluations and of the given archive."""
        settings = self.settings
        searching, termination = search_arguments(name, stage, settings.algorithm, chosen)
        sequence = np.random.SeedSequence(settings.random_state, spawn_key=(STAGES.index(name),))
        if settings.client is not None:
            stage.slices = Slices(settings.client, stage)
        memo = self._memo(name, stage)
        if memo is not None and not settings.resume:
            memo.remove()
        report = settings.progress
        archive = Archive() if archive is None else archive

        def progress(fraction: float, n_gen: int, n_eval: int) -> None:
            if report is not None:
                report(name, fraction, n_gen, n_eval)

        result = search(
            stage,
            searching,
            termination,
            seed=int(sequence.generate_state(1)[0]),
            archive=archive,
            memo=memo,
            progress=progress,
            verbose=settings.verbose,
        )
        self.fronts[name] = result.archive.F
        self.history[name] = _history(result, stage)
        self.n_evaluations += result.history[-1].n_eval
        last = self.history[name].iloc[-1]
        LOGGER.info(
            "%s: %d evaluations in %.1f s, %d members, hypervolume %.4f",
            *(name, last["n_eval"], last["seconds"], len(result.archive.F), last["hypervolume"]),
        )
        return result.archive

    def _memo(self, name: str, stage: Stage) -> Memo | None:
        """Return the memo of one stage."""
        if self.settings.memo is None:
            return None
        path = Path(self.settings.memo)
        about = {"stage": name, "data": digest_of_data(self.train), **self.settings.configuration()}
        about["backend"] = repr(stage.backend)
        return Memo(path.with_name(f"{path.name}.{name}"), about)


def search_arguments(
    name: str, stage: Stage, algorithm: str | Factory, settings: StageSettings
) -> tuple[Algorithm, object]:
    """Return a fresh pymoo algorithm for a stage, and its termination.

    Sparse searches are for feature strings; NSGA-II takes their place in the other stages. Raises a ValueError that
    names the stage if the population does not fit in memory.
    """
    population = settings.population
    check_room(f"{name}: a population of {population:,} strings of {stage.n_var:,}", population * stage.n_var)
    operators = stage.operators()
    if is_sparse(algorithm):
        if isinstance(stage, FeatureSelection):
            del operators["sampling"]  # the search has its own
        else:
            algorithm = "nsga2"
    if settings.initial is not None:
        operators["sampling"] = _checked(name, stage, settings.initial)
    return make_algorithm(algorithm, population, operators, stage.n_obj), _end(algorithm, settings)


class _Initial(Sampling):  # type: ignore[misc]
    """Sampling of the user; the stage refuses strings that break its limits, where a repair would change them."""

    def __init__(self, sampling: Sampling, stage: Stage) -> None:
        super().__init__()
        self.sampling = sampling
        self.stage = stage

    def do(self, *args: object, **kwargs: object) -> Population:
        population = self.sampling.do(*args, **kwargs)
        self.stage.check(np.array([individual.X for individual in population]))
        return population


def _checked(name: str, stage: Stage, initial: object) -> Array | Sampling:
    """Return an initial population whose strings keep the limits of the stage."""
    if isinstance(initial, Sampling):
        return _Initial(initial, stage)
    X = np.asarray(initial)
    if X.ndim != 2 or X.shape[1] != stage.n_var:
        raise ValueError(f"{name}: initial must have shape (n_individuals, {stage.n_var}), not {X.shape}")
    try:
        stage.check(X)
    except ValueError as error:
        raise ValueError(f"{name}: initial: {error}") from None
    return X


def _end(algorithm: str | Factory, settings: StageSettings) -> object:
    """Return the given termination, otherwise the number of generations.

    The generations of Staircase differ in size, so that it ends after the evaluations that other searches take.
    """
    if settings.termination is not None:
        return settings.termination
    if algorithm == "staircase":
        return "n_eval", settings.population * settings.generations
    return "n_gen", settings.generations


def _history(result: SearchResult, stage: Stage) -> pd.DataFrame:
    """Return a row for each generation, as in `MOFSRank.history_`."""
    train = stage.train
    # The box of all features, whatever the strings are, so that stages can be compared.
    least, largest = np.array([entry.bounds(train, train.n_features) for entry in stage.objectives], np.float64).T
    return pd.DataFrame(
        {
            "generation": [generation.n_gen for generation in result.history],
            "n_eval": [generation.n_eval for generation in result.history],
            "hypervolume": result.hypervolume(largest) / np.prod(largest - least),
            "seconds": [generation.elapsed for generation in result.history],
        }
    )


def digest_of_data(train: RankingData) -> str:
    """Return a digest of the data, remembered with them."""

    def digest() -> str:
        costs = () if train.costs is None else (train.costs.own, train.costs.group, train.costs.shared)
        total = hashlib.blake2b(digest_size=16)
        for array in (train.X, train.y, train.offsets, *costs):
            total.update(np.ascontiguousarray(array).data)
        return total.hexdigest()

    return train.remember("digest of the data", digest)

"""MOFSRank: feature selection for learning to rank by three evolutionary searches in a row (Cheng et al., 2018)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from moerank.checks import unknown
from moerank.data import RankingData
from moerank.evolution import Archive, Checkpoint, make_algorithm, search
from moerank.kernels.blas import one_blas_thread
from moerank.metrics import NDCG
from moerank.rankers import (
    LinearPopulation,
    Population,
    RankRLS,
    SelectionPath,
    as_feature_table,
    as_ranking_data,
    as_validation_data,
    require_weights,
    train_population,
    varying_in_queries,
)
from moerank.rankers.arguments import Validation
from moerank.rankers.estimator import warn_of_constant_features
from moerank.stages import Ensemble, FeatureSelection, InstanceSelection
from moerank.stages.instance_selection import spread_along_front
from moerank.stages.settings import (
    EnsembleSettings,
    FeatureSelectionSettings,
    InstanceSelectionSettings,
    StageSettings,
    read_settings,
)
from moerank.stages.stage import Stage

__all__ = ["MOFSRank"]

Progress = Callable[[str, float, int, int], object]

STAGES = ("instance_selection", "feature_selection", "ensemble")


class MOFSRank(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Select features for ranking: instance selection, feature selection, ensemble.

    Parameters
    ----------
    backend : ranker with ``fit_population``, default RankRLS()
        Judges each individual.
    metric : Metric, default NDCG(10)
        Objective of all three stages is 1 − this metric on the training data.
    instance_selection, ensemble : bool or mapping, default True
        False leaves the stage out; a mapping changes its settings, as ``{"generations": 20}``.
    feature_selection : True or mapping
        Settings of the second stage.
    adaptive_mutation : bool, default True
        False mutates features with the plain bit flip.
    algorithm : str or callable, default "nsga2"
        Any name from `moerank.evolution.ALGORITHMS`, or a factory ``(population, operators) -> pymoo algorithm``.
    final : {"auto", "train", "validation"}, default "auto"
        Which member of the last front is chosen: the one with the smallest training error (the paper's rule), or the
        best by the metric on the validation data; ties go to fewer features. "auto" is "validation" where validation
        data are given.
    tune : bool, default True
        Choose the backend's regularisation before the search, with all pairs and all features, by validation MAP
        over its published grid. Without validation data the backend stays as it is.
    random_state : int, optional
        Seed; None draws one, kept in `random_state_`.
    workers : int, default 1
        Threads. The result is the same to the bit for any number.
    checkpoint : path, optional
        Where the run keeps its state, one file a stage with this name as the beginning; removed when it ends.
    resume : bool, default False
        Continue from the checkpoint if there is one.
    progress : callable, optional
        Called as ``progress(stage, fraction, generation, n_eval)`` after each generation, the fraction of the stage
        in [0, 1].
    verbose : bool, default False
        Print pymoo's table of generations.

    Attributes
    ----------
    front_ : DataFrame
        One row for each non-dominated member of the last stage, by size: ``n_features``, ``error`` (1 − metric on
        the training data), ``validation`` (metric, NaN without data) and ``features`` (tuple of columns of X).
    front_coefs_ : ndarray, shape (n_members, n_features)
        The rankers of these members; None if the backend's rankers have no weights.
    chosen_ : int
        The row of `front_` that was chosen.
    coef_ : ndarray, shape (n_features,)
        Its ranker, 0 for features left out.
    support_ : ndarray of bool, shape (n_features,)
    backend_ : ranker
        The backend with the regularisation that was used.
    fronts_ : dict of ndarray, shape (n_members, 2)
        The front of each stage.
    history_ : dict of DataFrame
        For each stage and generation: ``generation``, ``n_eval``, ``hypervolume`` (reference point: n_var, 1; as a
        share of the rectangle it spans with the origin) and ``seconds``.
    n_evaluations_ : int
        Individuals evaluated in all stages, repetitions counted.
    random_state_ : int

    References
    ----------
    F. Cheng, W. Guo, X. Zhang: MOFSRank: a multiobjective evolutionary algorithm for feature selection in learning
    to rank. Complexity, 2018.

    Examples
    --------
    >>> from moerank.data import make_planted
    >>> train = make_planted(n_queries=8, n_documents=12, seed=1).data
    >>> budget = {"population": 10, "generations": 5}
    >>> solver = MOFSRank(instance_selection=budget, feature_selection=budget, ensemble=budget, random_state=0)
    >>> bool(solver.fit(train.X, train.y, qid=train.qid).transform(train.X).shape[1] == solver.support_.sum())
    True
    """

    def __init__(
        self,
        backend: Any = None,
        metric: Any = None,
        *,
        instance_selection: bool | Mapping[str, Any] = True,
        feature_selection: bool | Mapping[str, Any] = True,
        ensemble: bool | Mapping[str, Any] = True,
        adaptive_mutation: bool = True,
        algorithm: Any = "nsga2",
        final: str = "auto",
        tune: bool = True,
        random_state: int | None = None,
        workers: int = 1,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Progress | None = None,
        verbose: bool = False,
    ) -> None:
        self.backend = backend
        self.metric = metric
        self.instance_selection = instance_selection
        self.feature_selection = feature_selection
        self.ensemble = ensemble
        self.adaptive_mutation = adaptive_mutation
        self.algorithm = algorithm
        self.final = final
        self.tune = tune
        self.random_state = random_state
        self.workers = workers
        self.checkpoint = checkpoint
        self.resume = resume
        self.progress = progress
        self.verbose = verbose

    def fit(
        self,
        X: RankingData | ArrayLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        validation: Validation | None = None,
    ) -> Self:
        """Search for the front, and choose one of its members.

        Parameters
        ----------
        X : RankingData, or array-like, shape (n_documents, n_features)
        y : array-like, shape (n_documents,)
            Relevance labels, integers from 0.
        qid : array-like, shape (n_documents,), optional
            Queries, in contiguous rows; None means one query.
        validation : RankingData or (X, y, qid), optional
            Chooses the regularisation and the final member; never part of the objectives.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If data or parameters are malformed; the message names the place.
        """
        train = as_ranking_data(X, y, qid)
        self.n_features_in_ = train.n_features
        if train.given_names is not None:
            self.feature_names_in_ = np.asarray(train.given_names, dtype=object)
        if not (varying := varying_in_queries(train)).all():
            # The search need not know: a member without such a feature dominates the same one with it.
            warn_of_constant_features(train, varying, "every query")
        held_out = as_validation_data(validation, train)
        self._metric = self.metric or NDCG(10)
        self._instances = read_settings(InstanceSelectionSettings, "instance_selection", self.instance_selection)
        self._features = read_settings(FeatureSelectionSettings, "feature_selection", self.feature_selection)
        self._ensemble = read_settings(EnsembleSettings, "ensemble", self.ensemble)
        if self.feature_selection is False:
            raise ValueError("feature_selection cannot be switched off: it is what MOFSRank is for")
        self._final = self._final_rule(held_out)
        self.random_state_ = _seed(self.random_state)
        self.fronts_: dict[str, NDArray[np.float64]] = {}
        self.history_: dict[str, pd.DataFrame] = {}
        self.n_evaluations_ = 0
        with one_blas_thread():
            self.backend_ = self._tuned_backend(train, held_out)
            pair_masks = self._select_instances(train)
            members, population = self._select_features(train, pair_masks)
            if self.ensemble is not False:
                members, population = self._combine(train, population)
            self._choose(members, population, held_out)
        for stage in STAGES:
            if (checkpoint := self._checkpoint(stage, train)) is not None:
                checkpoint.remove()
        return self

    def predict(self, X: RankingData | ArrayLike) -> NDArray[np.float64]:
        """Return the chosen ranker's scores (n_documents,) of the rows of X, all features in their columns."""
        check_is_fitted(self, "front_")
        table = as_feature_table(X, self.n_features_in_, getattr(self, "feature_names_in_", None))
        return self._population.take(np.array([self.chosen_])).scores(table)[:, 0]

    def path(self, train: RankingData) -> SelectionPath:
        """Return for each k the member of the front with at most k features that is best by the rule of `final`.

        `train` is what the search was fitted on.
        """
        check_is_fitted(self, "front_")
        sizes, errors = self.front_["n_features"].to_numpy(), self._front_errors()
        k = np.arange(1, self.n_features_in_ + 1)
        best = np.where(sizes <= k[:, None], errors, np.inf).argmin(axis=1)
        masks = np.zeros((len(sizes), self.n_features_in_), bool)
        for member, features in enumerate(self.front_["features"]):
            masks[member, list(features)] = True
        small = (sizes[best] <= k)[:, None]  # some member of the front is
        return SelectionPath(masks[best] & small, self._population.take(np.where(small[:, 0], best, -1)))

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "front_")
        return self.support_

    def _tuned_backend(self, train: RankingData, validation: RankingData | None) -> Any:
        backend = clone(self.backend) if self.backend is not None else RankRLS()
        if self.tune and validation is not None and hasattr(backend, "tune"):
            backend = backend.tune(train, validation)
        if self.ensemble is not False:  # find out before the search, not after two stages of it
            require_weights(train_population(backend, train), backend)
        return backend

    def _select_instances(self, train: RankingData) -> NDArray[np.bool_] | None:
        """Stage 1: the pair subsets that the second stage trains on, or None for all pairs."""
        if self.instance_selection is False:
            return None
        settings = self._instances
        stage = InstanceSelection(train, self.backend_, self._metric, density=settings.density, workers=self.workers)
        found = self._search("instance_selection", stage, settings, train)
        return spread_along_front(found.X, found.F, settings.max_subsets, include_all=settings.include_all)

    def _select_features(self, train: RankingData, pair_masks: NDArray[np.bool_] | None) -> tuple[Any, Population]:
        """Stage 2: the front's objectives and its rankers."""
        settings = self._features
        stage = FeatureSelection(
            train,
            self.backend_,
            self._metric,
            pair_masks,
            adaptive=self.adaptive_mutation,
            form=settings.form,
            decay=settings.decay,
            workers=self.workers,
        )
        found = self._search("feature_selection", stage, settings, train)
        self._front_masks = found.X
        return found.F, stage.rankers(found.X)

    def _combine(self, train: RankingData, members: Population) -> tuple[Any, Population]:
        """Stage 3: the front's objectives and its combined rankers."""
        coefs = require_weights(members, self.backend_)
        stage = Ensemble(train, coefs, self._metric, inject=self._ensemble.inject, workers=self.workers)
        found = self._search("ensemble", stage, self._ensemble, train)
        weights = stage.weights(found.X)
        self._front_masks = weights != 0
        return found.F, LinearPopulation(weights)

    def _search(self, name: str, stage: Stage, settings: StageSettings, train: RankingData) -> Archive:
        """Run one stage and return the non-dominated members of all its evaluations."""
        operators = stage.operators()
        if settings.initial is not None:
            operators["sampling"] = settings.initial
        sequence = np.random.SeedSequence(self.random_state_, spawn_key=(STAGES.index(name),))
        checkpoint = self._checkpoint(name, train)
        if checkpoint is not None and not self.resume:
            checkpoint.remove()
        report = self.progress
        result = search(
            stage,
            make_algorithm(self.algorithm, settings.population, operators),
            settings.termination or ("n_gen", settings.generations),
            seed=int(sequence.generate_state(1)[0]),
            checkpoint=checkpoint,
            progress=None if report is None else lambda *state: report(name, *state),
            verbose=self.verbose,
        )
        reference = (float(stage.n_var), 1.0)
        self.fronts_[name] = result.archive.F
        self.history_[name] = pd.DataFrame(
            {
                "generation": [generation.n_gen for generation in result.history],
                "n_eval": [generation.n_eval for generation in result.history],
                "hypervolume": result.hypervolume(reference) / np.prod(reference),
                "seconds": [generation.elapsed for generation in result.history],
            }
        )
        self.n_evaluations_ += result.history[-1].n_eval
        return result.archive

    def _choose(self, F: NDArray[np.float64], population: Population, validation: RankingData | None) -> None:
        quality = np.full(len(F), np.nan)
        if validation is not None:
            quality = self._metric.batch(validation, population.scores(validation.X))
        order = np.lexsort((F[:, 1], F[:, 0]))
        self.front_ = pd.DataFrame(
            {
                "n_features": F[order, 0].astype(int),
                "error": F[order, 1],
                "validation": quality[order],
                "features": [tuple(np.flatnonzero(mask).tolist()) for mask in self._front_masks[order]],
            }
        )
        # The rows are sorted by size, so the first of several equals is the smallest.
        self.chosen_ = int(np.argmin(self._front_errors()))
        self.support_ = self._front_masks[order][self.chosen_]
        self._population = population.take(order)
        self.front_coefs_ = self._population.coefs
        if self.front_coefs_ is not None:
            self.coef_ = self.front_coefs_[self.chosen_]

    def _front_errors(self) -> NDArray[np.float64]:
        """Return what the choice of a member minimises, shape (n_members,)."""
        errors = self.front_["error"] if self._final == "train" else -self.front_["validation"]
        return np.asarray(errors, np.float64)

    def _final_rule(self, validation: RankingData | None) -> str:
        if self.final not in ("auto", "train", "validation"):
            raise ValueError(unknown("final", self.final, ("auto", "train", "validation")))
        if self.final == "validation" and validation is None:
            raise ValueError('final="validation" needs validation data; pass validation=… to fit')
        if self.final == "auto":
            return "train" if validation is None else "validation"
        return self.final

    def _checkpoint(self, stage: str, train: RankingData) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        path = Path(self.checkpoint)
        digest = hashlib.blake2b(train.X.tobytes() + train.y.tobytes() + train.offsets.tobytes(), digest_size=16)
        configuration = {
            "stage": stage,
            "data": digest.hexdigest(),
            "backend": repr(self.backend_),
            "metric": repr(self._metric),
            "algorithm": str(self.algorithm),
            "adaptive_mutation": self.adaptive_mutation,
            "random_state": self.random_state_,
            "settings": [str(asdict(settings)) for settings in (self._instances, self._features, self._ensemble)],
        }
        # A factory or a sampling of the user's shows its address, which is another in every process.
        stable = json.loads(re.sub(r" at 0x[0-9a-f]+", "", json.dumps(configuration)))
        return Checkpoint(path.with_name(f"{path.name}.{stage}"), stable)


def _seed(random_state: int | None) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(f"random_state must be a non-negative integer or None, not {random_state!r}")
    return int(random_state)

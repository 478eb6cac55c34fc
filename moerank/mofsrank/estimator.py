"""MOFSRank: feature selection for learning to rank by three evolutionary searches in a row (Cheng et al., 2018)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from moerank import rankers
from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import Parameters
from moerank.data import RankingData
from moerank.data.inputs import column_mask
from moerank.evolution import Factory, Finished
from moerank.identity import identify
from moerank.kernels.threads import one_blas_thread
from moerank.metrics import NDCG, Metric, as_metric, check_differing
from moerank.mofsrank import objectives
from moerank.mofsrank.feature_selection import FeatureSelection
from moerank.mofsrank.limits import FeatureStrings, allowed_features, with_costs
from moerank.mofsrank.objectives import Final, Front, Measured, ObjectiveLike
from moerank.mofsrank.serving import (
    GREEDY_SOURCE,
    SEARCH_SOURCE,
    FeatureSets,
    Judgement,
    Serving,
    find_finalists,
    probes_of,
)
from moerank.mofsrank.settings import (
    SEARCH_DEFAULTS,
    Limits,
    SearchProgress,
    Settings,
    StageArgument,
    listed_settings,
    merged_settings,
    read_proposal,
    read_refit,
)
from moerank.mofsrank.staged_search import StagedSearch
from moerank.rankers.arguments import as_ranking_data
from moerank.rankers.lambda_mart import TREES, tree_baseline
from moerank.rankers.model import Forest
from moerank.rankers.shapes import ShapesMixin, shapes_of
from moerank.scikit_learn import check_is_fitted, clone
from moerank.solvers import PROPOSALS, read_solver
from moerank.statistics import LEVEL, level_of_each
from moerank.verdict import Decision, Verdict, judge, judge_scores

if TYPE_CHECKING:  # slow to load
    from distributed import Client
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _SearchData(NamedTuple):
    """Training data with the costs of the limits: with all features, and with those that the search can use.

    `allowed`, `columns` and `served` (n_features,) are the features that the limits allow, those that the search can
    use, and those that a ranker can use that serves. The `limits` name features.
    """

    table: RankingData
    varying: RankingData
    allowed: Mask
    columns: Mask
    served: Mask
    limits: Limits


class MOFSRank(ShapesMixin, rankers.RankingEstimator):
    """Select features for ranking: instance selection, feature selection, ensemble.

    Parameters
    ----------
    For the search

    backend : ranker or its name, default RankRLS()
        Trains each individual by ``fit_population``. A name is that of a backend in the table of solvers, such as
        "additive". With ``instance_selection=False`` it can also be any ranker in the
        style of scikit-learn, such as LGBMRanker or XGBRanker, which `RankerAdapter` adapts.
    metric : Metric or its name, default NDCG(10)
        The error is 1 − this metric on the training data.
    instance_selection, ensemble : bool or mapping, default True
        False leaves the stage out. `instance_selection` is False by default for `AdditiveRLS`; if it is
        True, a linear ranker stands in. A mapping such as ``{"generations": 20}`` changes its settings, and so does
        ``set_params(ensemble__generations=20)``.
    feature_selection : True or mapping
        Settings of the second stage.
    objectives : sequence of str or Objective, default ("features", "error")
        Objectives of the second and the third stage; see `moerank.mofsrank.objectives`. The first stage minimises the
        number of preference pairs and the error.
    adaptive_mutation : bool, default True
        False mutates features with the plain bit flip.
    algorithm : str or callable, default "nsga2"
        A name from `moerank.evolution.ALGORITHMS`, or a factory ``(population, operators) -> pymoo algorithm``, which
        makes the search of every stage; only the second and third stage have an operator ``"repair"``. The
        sparse searches ("staircase", "sparseea", "daea", "prdh", "mffs") are for the second stage, without adaptive
        mutation; then NSGA-II searches the other stages.
    limits : Limits or mapping, optional
        Features that every selection has or none has, the largest number and cost of features, and their costs and
        groups, such as ``Limits(max_features=8)``; see `Limits`. ``set_params(limits__max_features=8)`` sets one alone.

    For the choice of a member

    final : {"auto", "train", "validation", "half-se", "one-se", "knee", "guaranteed"}, default "auto"
        Rule for the chosen member of the last front: "train", the smallest training error (the rule of the paper);
        "validation", the best metric on the validation data; "half-se" and "one-se", the smallest member within half a
        paired standard error of the best, or within one; "knee", the member farthest above the line from the smallest
        member to the best. Ties go to fewer features. "auto" is "half-se" with validation data, else "train".
        "half-se", "one-se" and "knee" use the validation data if there are any. "guaranteed" needs validation data:
        half of their queries take no part in tuning, and test which members lose less than `margin` against all
        features, with 95 % confidence. The smallest one that passes is chosen; see `moerank.mofsrank.objectives`.
    refit : ranker, its name, or a list of these, optional
        Ranker that is trained on the features of each member of the last front after the search. One of these rankers
        is chosen, judged and used to predict. A name is that of a ranker in the table of solvers, such as "lambdamart".
        Validation data choose its parameters from its published grid, once, with all features; the same holds for an
        estimator with such a grid, unless ``tune=False``. For LambdaMART the grid is `LambdaMART.short_grid`, and
        validation chooses the number of trees for each member. Without validation data the training metric chooses the
        member, as for ``final="train"``; rankers that memorise their training data are then chosen by size alone.

        Of a list, cross-validation over the training and the validation queries chooses one ranker for all members. The
        members are then the sets of the search, of the forward path of the backend and of `proposals`, and `final`
        chooses among the best of each of six classes of sizes by cross-validation as well. The verdict compares with
        the ranker of the list that is best on all features by validation. See `moerank.mofsrank.serving`. The same
        holds for a single ranker, such as trees, that can use features which are the same for all documents of a query,
        if there are some: the search cannot.
    proposals : sequence of str
        Solvers that order the features; the first 1, 2, … 20 of each order are further sets for a list of rankers. By
        default the gain, the recursive elimination and the permutation importance of LambdaMART.
    margin : float, default 0.005
        Differences of the metric below the margin do not matter to the verdict and to ``final="guaranteed"``.
    tune : bool, default True
        Choose the regularisation of the backend before the search, with all pairs and all features, by validation over
        its published grid. Without validation data the backend stays as it is.
    tuning : Metric or its name, optional
        The metric by which validation data choose parameters; by default `metric`.

    For the run

    random_state : int, optional
        Seed; None draws one, kept in `random_state_`.
    workers : int or distributed.Client, default 1
        Number of threads, or a client of a Dask scheduler whose workers evaluate the individuals in slices. Their
        number does not change a bit of the result.
    memo : path, optional
        Beginning of the names of the files, one per stage, to which the evaluations are written. The files remain after
        the search; remove them once the result is safe.
    resume : bool, default False
        Continue from the memo if there is one: the search repeats its steps, but trains no individual of the memo
        again. It needs the same data, arguments and `random_state`.
    progress : callable, optional
        Called as ``progress(stage, fraction, generation, n_eval)`` after each generation, with the fraction of the
        stage in [0, 1].
    verbose : bool, default False
        Print pymoo's table of generations.

    Attributes
    ----------
    front_ : DataFrame
        One row for each non-dominated member of the last stage, by size: ``n_features``, ``error`` (1 − metric on
        the training data), further objectives by their names, ``validation`` (metric, NaN without data) and
        ``features`` (tuple of columns of X). With `refit`, ``error`` and objectives are those of the search, and
        ``validation`` is that of the new rankers; members that others dominate by the metric that `final` uses are
        left out, except those among which it chooses. For a list of rankers ``source`` says what proposed the features,
        and ``unseen`` is the metric by which members dominate: cross-validated over training and validation queries if
        the rankers train together, else that of validation.
    front_support_ : ndarray of bool, shape (n_members, n_features)
        The features of these members.
    front_coefs_ : ndarray, shape (n_members, n_features)
        Their weights; None for rankers without weights.
    front_rankers_ : Population
        Their rankers, with a method ``scores(X)``.
    chosen_ : int
        The row of the chosen member in `front_`.
    coef_ : ndarray, shape (n_features,)
        Its weights, 0 for features left out; only for rankers with weights.
    forest_ : Forest
        Its trees; only for rankers with trees.
    shapes_ : DataFrame
        What each of its features adds to the score; only for additive rankers, see `AdditiveRLS`.
    reference_ : Population
        The ranker on all allowed features with which verdicts compare.
    support_ : ndarray of bool, shape (n_features,)
    verdict_ : Verdict or None
        The chosen member against the same ranker on all allowed features, on the validation queries: optimistic,
        because they chose it. None without validation data. `verdict` judges on test queries.
    guarantee_ : Guarantee or None
        The result of ``final="guaranteed"``; else None.
    backend_ : ranker
        The backend with its regularisation.
    refit_ : ranker or None
        The ranker of `refit` with its parameters.
    instance_unit_ : {"pair", "document", "query"} or None
        Unit of the first stage; None without it.
    instance_subsets_ : ndarray of bool, shape (n_subsets, n_units), or None
        The units of each instance subset that the second stage trains on.
    trained_on_ : ndarray of bool, shape (n_members, n_subsets), or None
        The instance subsets that the ranker of each member of `front_`, or the rankers of its sum, were trained on.
        None if they were trained on all pairs: without the first stage, and with `refit`.
    fronts_ : dict of ndarray, shape (n_members, n_objectives)
        The front of each stage.
    history_ : dict of DataFrame
        For each stage and generation: ``generation``, ``n_eval``, ``n_trained`` (the distinct individuals so far),
        ``hypervolume`` (as a share of the box between the bounds of the objectives for all features of the table, here
        up to the reference point of all features and an error of 1) and ``seconds``.
    n_evaluations_, n_trained_ : int
        Individuals evaluated in all stages with and without repetitions, which train nothing.
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
    >>> stages = {"instance_selection": budget, "feature_selection": budget, "ensemble": budget}
    >>> solver = MOFSRank(**stages, random_state=0).fit(train)
    >>> print(solver.front_[["n_features", "error"]].head(5).round(3).to_string(index=False))
     n_features  error
              1  0.563
              3  0.331
              4  0.208
              5  0.186
              6  0.136
    """

    _takes_weights = True

    backend: rankers.FitnessBackend | rankers.AnyRanker | None = None
    metric: Metric | str | None = None
    _: KW_ONLY
    instance_selection: StageArgument | None = None
    feature_selection: StageArgument = True
    ensemble: StageArgument = True
    objectives: Sequence[ObjectiveLike] = SEARCH_DEFAULTS.objectives
    limits: Limits | Mapping[str, object] | None = None
    adaptive_mutation: bool = True
    algorithm: str | Factory = SEARCH_DEFAULTS.algorithm
    final: Final = SEARCH_DEFAULTS.final
    refit: rankers.AnyRanker | str | Sequence[rankers.AnyRanker | str] | None = None
    proposals: Sequence[str] = PROPOSALS
    margin: float = SEARCH_DEFAULTS.margin
    tune: bool = True
    tuning: Metric | str | None = None
    random_state: int | None = None
    workers: int | Client = 1
    memo: str | Path | None = None
    resume: bool = False
    progress: SearchProgress | None = None
    verbose: bool = False

    def get_params(self, deep: bool = True) -> Parameters:
        """Return the parameters; with `deep` also nested ones, such as ``ensemble__generations``."""
        parameters = super().get_params(deep)
        return parameters | listed_settings(parameters) if deep else parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of the backend, limits and settings of stages."""
        return super().set_params(**merged_settings(self.get_params(deep=False), params))

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy; it shares a Dask client, which cannot be copied."""
        fresh = super(MOFSRank, copy(self)).__sklearn_clone__()
        fresh.workers = self.workers
        return fresh

    def __getstate__(self) -> Parameters:
        """Return the state for pickles and copies, without a Dask client, which the settings of `fit` hold too."""
        state = {name: value for name, value in vars(self).items() if name != "_settings"}
        return state | {"workers": 1} if hasattr(self.workers, "scatter") else state

    def path(self, train: RankingData) -> rankers.SelectionPath:
        """Return for each k the member of the front with at most k features and the least error that the search had.

        `train` is the data that the search was fitted on.
        """
        check_is_fitted(self, "front_")
        return rankers.best_of_each_size(
            self.front_support_, self.front_rankers_, -self.front_["error"].to_numpy()
        )

    @property
    def _scored_by(self) -> Metric:
        return as_metric(self.metric, NDCG(10))

    @property
    def _tuned_by(self) -> Metric:
        return as_metric(self.tuning, self._scored_by, name="tuning")

    def _check_parameters(self) -> None:
        self._settings = Settings.of(self.get_params(deep=False))

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self.random_state_ = self._settings.random_state
        refit = read_refit(self.refit, self.random_state_)
        if validation is None and self.final in ("validation", "guaranteed"):
            raise ValueError(
                f'final="{self.final}" needs validation data; pass validation=… to fit'
            )
        parts = {"training": train}
        if validation is not None and self.final == "guaranteed":
            # These queries test; the others tune and choose.
            validation, parts["tests"] = objectives.halves(validation, self.random_state_)
        if validation is not None:
            parts["validation"] = validation
        data = self._search_data(train, refit)
        with one_blas_thread():
            tuning_metric = self._tuned_by
            self.backend_ = clone(self._settings.backend, safe=False)
            if validation is not None and self.tune and hasattr(self.backend_, "tune"):
                tables = [part.with_features(data.allowed) for part in (data.table, validation)]
                self.backend_ = self.backend_.tune(*tables, metric=tuning_metric)
            front, reference = self._run_stages(data)
            self.refit_, self._against = None, ""
            judgement = None
            front = front.on_all_columns(data.columns)
            reference = rankers.on_all_columns(reference, data.columns)
            uses_more = validation is not None and data.columns.sum() < data.served.sum()
            if isinstance(refit, list) or uses_more:
                front, reference, judgement = self._serve(front, data, validation)
            elif refit is not None:
                front, reference = self._refit_members(refit, front, data, validation)
            self.reference_ = reference
            values = {name: self._measure(front, part) for name, part in parts.items()}
            self._choose(front, values, judgement)
        self._shapes = shapes_of(getattr(self, "forest_", None), train)

    def _search_data(self, train: RankingData, refit: object) -> _SearchData:
        """Leave out features that are excluded or change no ranker; refuse limits that no selection can keep."""
        settings, limits = self._settings, self._settings.limits
        allowed, limits_by_name = allowed_features(train, limits)
        trained: list[object] = [settings.backend]
        if refit is not None:
            trained += refit if isinstance(refit, list) else [refit]
        included = column_mask(limits.include, train.feature_names, "include")
        # Bits that change no ranker of the search waste evaluations.
        useful = np.array([rankers.varying_for(ranker, train) for ranker in trained])
        columns, served = (
            allowed & (useful[0] | included),
            allowed & (useful.any(axis=0) | included),
        )
        if not columns.any():
            raise ValueError(
                f"{train.name}: the allowed features are constant in every query; allow others"
            )
        check_differing(self._scored_by, train)
        table = with_costs(train, limits)
        data = _SearchData(
            table, table.with_features(columns), allowed, columns, served, Limits(**limits_by_name)
        )
        strings = self._strings(table.with_features(served), data.limits)
        self._all_allowed = bool(strings.keeps_limits(np.ones((1, strings.n_bits), bool))[0])
        self._n_allowed = int(np.count_nonzero(served))
        return data

    def _strings(self, train: RankingData, limits: Limits) -> FeatureStrings:
        return FeatureStrings(train, limits, by_group=self._settings.feature_selection.by_group)

    def _run_stages(self, data: _SearchData) -> tuple[Front, rankers.Population]:
        """Run the stages; return the front of the last one, and the backend's ranker on all of its features."""
        settings = self._settings.model_copy(
            update={"backend": self.backend_, "limits": data.limits}
        )
        reference = rankers.train_population(self.backend_, data.varying)
        if settings.ensemble:  # refuse rankers without weights before the search
            rankers.require_sums(reference, self.backend_)
        stages = StagedSearch(data.varying, settings, data.table)
        self.instance_subsets_ = None
        if settings.instance_selection:
            self.instance_subsets_ = stages.select_instances()
        front = stages.select_features(self.instance_subsets_)
        if settings.ensemble:
            front = stages.combine(front)
        self.instance_unit_ = stages.instance_unit
        self.fronts_ = stages.fronts
        self.history_ = stages.history
        ends = [history[["n_eval", "n_trained"]].iloc[-1] for history in stages.history.values()]
        self.n_evaluations_, self.n_trained_ = np.sum(ends, axis=0).tolist()
        return front, reference

    def _serve(
        self, front: Front, data: _SearchData, validation: RankingData | None
    ) -> tuple[Front, rankers.Population, Judgement]:
        """Choose the kind of ranker that serves, and train it on the sets of all sources; set `refit_`.

        The reference is the ranker on all features that ranks the validation queries best. See `serving`.
        """
        if validation is None:
            raise ValueError("refit with several rankers needs validation data; pass validation=…")
        train, held_out = (part.with_features(data.served) for part in (data.table, validation))
        kinds: Any = self.refit if isinstance(self.refit, list | tuple) else [self.refit]
        settled = [self._settled_kind(kind, train, held_out) for kind in kinds]
        serving = Serving(
            settled, train, held_out, self._tuned_by, self.random_state_, self._settings.workers
        )
        sets = self._candidate_sets(front, train, held_out, data)
        self._report("kinds", 0.0, len(kinds))
        kind = serving.best_kind(probes_of(sets))
        self.refit_ = settled[kind]
        progress = partial(self._report, "refit")
        population = serving.trained(kind, sets.feature_mask, progress=progress)
        reference = serving.best_reference()
        self._against = "" if reference == kind else " ".join(repr(settled[reference]).split())
        front = Front(sets.F, sets.feature_mask, population, sources=sets.sources)
        judgement = serving.compare(kind, sets.feature_mask, population)
        if unseen_values := judgement.unseen_values:
            judgement = judgement._replace(
                unseen_values=lambda masks: unseen_values(masks[:, data.served])
            )
        return (
            front.on_all_columns(data.served),
            rankers.on_all_columns(serving.references[reference], data.served),
            judgement,
        )

    def _settled_kind(
        self, kind: rankers.AnyRanker | str, train: RankingData, validation: RankingData
    ) -> Any:
        """Return a ranker with the parameters of the backend if it is of its kind, tuned otherwise.

        Parameters that a text gives stay as they are.
        """
        ranker = read_refit(kind, self.random_state_)
        fixed = read_solver(kind)[1] if isinstance(kind, str) else {}
        if not (self.tune or isinstance(kind, str)):
            return ranker
        if type(ranker) is type(self.backend_):
            return clone(self.backend_).set_params(**fixed)
        if hasattr(ranker, "tune_to_serve"):
            return ranker.tune_to_serve(train, validation, fixed, metric=self._tuned_by)
        if not hasattr(ranker, "tune"):
            return ranker
        return ranker.tune(train, validation, metric=self._tuned_by).set_params(**fixed)

    def _candidate_sets(
        self, front: Front, train: RankingData, validation: RankingData, data: _SearchData
    ) -> FeatureSets:
        """Return the sets of the search and those of the proposing solvers, over the columns of `train`."""
        settings = self._settings
        stage = FeatureSelection(
            train,
            self.backend_,
            settings.metric,
            settings=settings.feature_selection,
            objectives=settings.objectives,
            limits=data.limits,
            workers=settings.workers,
        )
        searched = front.feature_mask[:, data.served]
        parts = [FeatureSets(searched, front.F, (SEARCH_SOURCE,) * len(front.F))]
        if hasattr(self.backend_, "forward_path"):
            order = self.backend_.forward_path(train)
            parts.append(FeatureSets.of_order(order, stage, GREEDY_SOURCE))
        proposals = self._settings.proposals
        for number, name in enumerate(proposals):
            self._report("proposals", number / len(proposals), number)
            solver = read_proposal(name, self._tuned_by, self.random_state_)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # on the ranker of the solver, which nobody uses
                order = solver.fit(train, validation=validation).order_
            parts.append(FeatureSets.of_order(order, stage, name))
        return FeatureSets.joined(parts)

    def _refit_members(
        self, ranker: Any, front: Front, data: _SearchData, validation: RankingData | None
    ) -> tuple[Front, rankers.Population]:
        """Train the ranker of `refit` on the features of each member, and on all of them; set `refit_`.

        It is tuned before if it was given by name or if `tune` is set.
        """
        train = data.table.with_features(data.served)
        if validation is not None:
            validation = validation.with_features(data.served)
        finished = None  # the tuning and the trees of an interrupted run
        if self._settings.memo is not None and hasattr(ranker, "tune_to_serve"):
            configuration = identify([ranker, self._tuned_by, train, validation], "refit")
            path = Path(f"{self._settings.memo}.refit")
            finished = Finished(path, {"refit": configuration}, resume=self._settings.resume)
        is_open = self.tune or isinstance(self.refit, str)
        tune = getattr(ranker, "tune_to_serve", getattr(ranker, "tune", None))
        if is_open and finished is not None and "tuning" in finished:
            ranker.set_params(**finished["tuning"])
        elif is_open and validation is not None and tune is not None:
            progress = partial(self._report, "refit_tuning")
            ranker = tune(train, validation, metric=self._tuned_by, progress=progress)
            if finished is not None:
                finished["tuning"] = ranker.get_params()
        self.refit_ = ranker
        masks = np.vstack([front.feature_mask[:, data.served], np.ones(train.n_features, bool)])
        refitted = rankers.train_on_subsets(
            ranker,
            train,
            masks,
            validation,
            metric=self._tuned_by,
            workers=self._settings.workers,
            progress=partial(self._report, "refit"),
            finished=finished,
        )
        refitted = rankers.on_all_columns(refitted, data.served)
        members, reference = np.split(np.arange(len(masks)), [len(front.F)])
        front = replace(front, population=refitted.take(members), trained_on=None)
        return front, refitted.take(reference)

    def _report(self, stage: str, share: float, number: int = 0) -> None:
        if self.progress:
            self.progress(stage, share, number, number)

    def _measure(self, front: Front, part: RankingData) -> Measured:
        """Measure the members and the reference on each query of a part."""
        values = objectives.values_of(
            part, self._scored_by, rankers.side_by_side([front.population, self.reference_])
        )
        return Measured(
            values[:, :-1], values[:, -1], self._scored_by.can_differ(part), part.query_weights
        )

    def _scores(self, X: Matrix) -> Vector:
        return self.front_rankers_.take(np.array([self.chosen_])).scores(X)[:, 0]

    def _choose(
        self,
        front: Front,
        values: Mapping[str, Measured],
        judgement: Judgement | None,
    ) -> None:
        """Order the members by size, choose one by the rule `final`, and judge it on the validation queries."""
        # The rule of the paper uses only the training data.
        part = "training" if self.final == "train" or "validation" not in values else "validation"
        quality = judgement.quality if judgement else None
        front, values, quality, self.front_ = objectives.order_by_size(
            front,
            values,
            objectives.read_objectives(self.objectives),
            part,
            retrained=self.refit_ is not None,
            quality=quality,
            finalists=None if quality is None else find_finalists(front.sizes, quality),
        )
        self.front_support_, self.front_coefs_ = front.feature_mask, front.population.coefs
        self.front_rankers_, self.trained_on_ = front.population, front.trained_on
        self.chosen_, self._decision, self._advice = self._choose_member(
            front, quality, values, part, judgement.unseen_values if judgement else None
        )
        self.support_ = self.front_support_[self.chosen_]
        if self.front_coefs_ is not None:
            self.coef_ = self.front_coefs_[self.chosen_]
        elif hasattr(self, "coef_"):  # from an earlier fit
            del self.coef_
        self.verdict_ = None
        self._tail = objectives.tail_of(values, self.chosen_)
        if "validation" in values:
            validated = values["validation"]
            self.verdict_ = judge(
                validated.members[:, self.chosen_],
                validated.reference,
                "validation",
                self._scored_by.name,
                can_differ=validated.can_differ,
                weights=validated.weights,
                tail=objectives.tail_of({"training": values["training"]}, self.chosen_),
                level=LEVEL if self.final == "train" else level_of_each(validated.differences),
                **self._fields_of_verdict(),
            )

    def _choose_member(
        self,
        front: Front,
        quality: Vector,
        values: Mapping[str, Measured],
        part: str,
        unseen_values: Callable[[Mask], Matrix] | None,
    ) -> tuple[int, Decision, str]:
        """Return the index of the chosen member, the decision on it and the reason; set `guarantee_`."""
        self.guarantee_ = None
        sizes = front.sizes
        if "tests" in values:
            differences, scale = values["tests"].weighed(objectives.tail_of(values, 0).heaviest)
            guarantee = objectives.guaranteed_member(
                sizes, quality, differences, self.margin, scale
            )
            self.guarantee_ = guarantee
            advice = guarantee.sentence(sizes, self._n_allowed, self._scored_by.name, self.margin)
            return guarantee.chosen, "use" if guarantee.shown else "keep", advice
        rule = "half-se" if self.final == "auto" and "validation" in values else self.final
        if unseen_values is None:
            member = objectives.choose_member(rule, sizes, quality, values[part].members)
        else:
            members = find_finalists(sizes, quality)
            unseen = unseen_values(front.feature_mask[members])
            finalist = objectives.choose_member(rule, sizes[members], unseen.mean(axis=0), unseen)
            member = int(members[finalist])
        if "validation" not in values:
            return member, "none", ""
        decision, advice = objectives.decide(
            member, sizes, values["validation"], all_allowed=self._all_allowed
        )
        return member, decision, advice

    def _fields_of_verdict(self) -> Parameters:
        return {
            "n_features": int(self.support_.sum()),
            "n_allowed": self._n_allowed,
            "margin": self.margin,
            "decision": self._decision,
            "ranker": type(self.refit_).__name__ if isinstance(self.refit, list | tuple) else "",
            "against": self._against,
            "advice": self._advice,
        }

    def plot(
        self, what: Literal["front", "shapes"] = "front", *, axes: Axes | None = None
    ) -> Axes | Figure:
        """Draw the front, or what each feature of the chosen member adds to its score.

        Parameters
        ----------
        what : {"front", "shapes"}, default "front"
            "front": the number of features against the metric on training and validation data. "shapes": the functions
            of `shapes_`, of a member that adds up functions of one or two features.
        axes : matplotlib.axes.Axes, optional
            Where to draw the front; by default axes of a new figure.

        Returns
        -------
        matplotlib.axes.Axes or matplotlib.figure.Figure
            Of a front, on which a circle marks the chosen member; of shapes.
        """
        check_is_fitted(self, "front_")
        if what == "shapes":
            return self._shapes_figure()
        import pandas as pd

        front, metric = self.front_, self._scored_by.name
        values = pd.DataFrame(
            {"training": 1 - front["error"], "validation": front["validation"]}
        ).dropna(axis=1)
        values.index = pd.Index(front["n_features"], name="number of features")
        axes = values.plot(style=["o-", "s--"], ylabel=f"{metric} (higher is better)", ax=axes)
        size, served = values.index[self.chosen_], values.iloc[self.chosen_, -1]
        axes.plot(
            [size],
            [served],
            "o",
            fillstyle="none",
            markersize=12,
            color="C3",
            label=f"chosen ({size})",
        )
        axes.legend()
        return axes

    @property
    def n_instances_(self) -> Integers | None:
        """Number of units that each member of `front_` was trained on, shape (n_members,); None for all pairs."""
        if self.trained_on_ is None or self.instance_subsets_ is None:
            return None
        return np.count_nonzero(self.trained_on_ @ self.instance_subsets_, axis=1)

    @property
    def forest_(self) -> Forest:
        """The trees of the chosen member, over all columns of the training table."""
        population: Any = self.front_rankers_
        return population.forest(self.chosen_)

    def verdict(
        self,
        X: RankingData | ArrayLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        train: RankingData | None = None,
        validation: RankingData | None = None,
    ) -> Verdict:
        """Compare the chosen member with the same ranker on all features, on test queries.

        If `refit` names several rankers, the comparison is with the best of them on all features.

        Parameters
        ----------
        X, y, qid
            Test data, as in `fit`. None of its queries may have been used for training or for the choice.
        train, validation : RankingData, optional
            The data of `fit`. With both of them LambdaMART on all features is trained, too, and the verdict tells if
            it is better, as that of ``moerank run`` does. A list of rankers in `refit` has its own reference.

        Returns
        -------
        Verdict
            ``print(solver.verdict(test).sentence)`` prints it in words.

        Raises
        ------
        ValueError
            If the data are malformed.
        """
        check_is_fitted(self, "front_")
        data = X if isinstance(X, RankingData) else as_ranking_data(X, y, qid, name="test data")
        table = self._table(data)

        def against(reference: Vector) -> Verdict:
            return judge_scores(
                data,
                self._scored_by,
                np.column_stack([self._scores(table), reference]),
                tail=self._tail,
                **self._fields_of_verdict(),
            )

        verdict = against(self.reference_.scores(table)[:, 0])
        if train is None or validation is None or isinstance(self.refit, list | tuple):
            return verdict
        trees = tree_baseline(train, validation, self._tuned_by)
        scores = [ranker.predict(validation) for ranker in (trees, self)]
        values = self._scored_by.per_query(validation, np.column_stack(scores))
        gains = validation.weighted(values) @ [1.0, -1.0]
        return verdict.with_rival(against(trees.predict(data)), TREES, gains)

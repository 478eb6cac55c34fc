"""MOFSRank: feature selection for learning to rank by three evolutionary searches in a row (Cheng et al., 2018)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import Parameters
from moerank.data import RankingData
from moerank.data.inputs import column_mask
from moerank.evolution import Factory
from moerank.kernels.blas import one_blas_thread
from moerank.kernels.ranks import mean_over_queries
from moerank.metrics import NDCG, Metric, as_metric, check_differing
from moerank.mofsrank.front import Final, Front, advice_against, choose_member
from moerank.mofsrank.guarantee import guaranteed_member, halves
from moerank.mofsrank.limits import (
    Costs,
    FeatureLimits,
    Features,
    FeatureStrings,
    GroupCosts,
    Groups,
    allowed_features,
    with_costs,
)
from moerank.mofsrank.objectives import FRONT, ObjectiveLike, errors_of, read_objectives, values_of
from moerank.mofsrank.refit import refit_front
from moerank.mofsrank.searching import StagedSearch
from moerank.mofsrank.settings import (
    RefitPlan,
    Settings,
    StageArgument,
    StageProgress,
    listed_settings,
    merged_settings,
    read_refit,
)
from moerank.rankers import (
    AnyRanker,
    FitnessBackend,
    RankingEstimator,
    SelectionPath,
    best_of_each_size,
    on_all_columns,
    require_weights,
    train_population,
    varying_for,
)
from moerank.rankers.arguments import as_ranking_data
from moerank.rankers.model import Forest
from moerank.statistics import level_of_each
from moerank.verdict import LEVEL, MARGIN, Part, Verdict, judge

if TYPE_CHECKING:  # matplotlib takes long to load
    from distributed import Client
    from matplotlib.axes import Axes


def tuned_backend(backend: FitnessBackend, train: RankingData, validation: RankingData | None) -> FitnessBackend:
    """Return a copy of the backend with parameters chosen by validation MAP from its published grid, if it has one."""
    copy: Any = clone(backend)
    if validation is not None and hasattr(copy, "tune"):
        copy = copy.tune(train, validation)
    return cast(FitnessBackend, copy)


@dataclass(eq=False, repr=False)
class MOFSRank(RankingEstimator):
    """Select features for ranking: instance selection, feature selection, ensemble.

    Parameters
    ----------
    backend : ranker, default RankRLS()
        Judges each individual by ``fit_population``. With ``instance_selection=False`` it can also be any ranker in the
        style of scikit-learn, such as LGBMRanker or XGBRanker, which `RankerAdapter` adapts.
    metric : Metric or its name, default NDCG(10)
        The error is 1 − this metric on the training data.
    instance_selection, ensemble : bool or mapping, default True
        False leaves the stage out. A mapping changes its settings, as ``{"generations": 20}`` or
        ``set_params(ensemble__generations=20)``.
    feature_selection : True or mapping
        Settings of the second stage.
    objectives : sequence of str or Objective, default ("features", "error")
        Objectives of the second and the third stage; see `moerank.mofsrank.objectives`. The first stage minimises the
        number of preference pairs and the error.
    max_features : int, optional
        Largest number of features of a selection. Every string of the second and the third stage keeps this limit and
        the next seven; limits that no selection can keep are refused.
    max_cost : float, optional
        Largest cost of all features of a selection together.
    include : sequence of int or str, default ()
        Columns, from 0, or names of features of every selection, which count even if their weight is 0.
    at_most, at_least : mapping, optional
        Largest and smallest number of features of `groups` by name, as ``{"title": 3}``.
    requires : mapping, optional
        For a feature, by column or name, the features that every selection with it has, too.
    today : sequence of int or str, default ()
        Columns or names of the features in use today, for `max_changes`.
    max_changes : int, optional
        Largest number of features by which a selection differs from `today`, those added and those dropped.
    exclude : sequence of int or str, default ()
        Columns or names of features that leave the data before the search, also for the reference of the verdict.
    only : sequence of int or str, default ()
        All other features leave the data, too, as if they were in `exclude`; by default none. The features of the first
        ranking phase make a ranker for that phase.
    costs : array-like or mapping, shape (n_features,), optional
        Cost of each feature, in the order of the columns or by name, for the objective "cost" and for `max_cost`; by
        default that of the data. A `FeatureCosts` has groups, too.
    groups : sequence or mapping, optional
        Group of each feature that is computed together with others, else None. Without `costs` a feature costs 0 by
        itself. With ``feature_selection={"by_group": True}`` groups are selected as a whole.
    group_costs : mapping, optional
        Cost of each group, paid once however many of its features are used.
    adaptive_mutation : bool, default True
        False mutates features with the plain bit flip.
    algorithm : str or callable, default "nsga2"
        A name from `moerank.evolution.ALGORITHMS`, or a factory ``(population, operators) -> pymoo algorithm``. The
        sparse searches ("staircase", "sparseea", "daea", "prdh", "mffs") are for the second stage, without adaptive
        mutation; NSGA-II searches the other stages then.
    final : {"auto", "train", "validation", "one-se", "knee", "guaranteed"}, default "auto"
        Rule for the chosen member of the last front: "train", the smallest training error (the rule of the paper);
        "validation", the best metric on the validation data; "one-se", the smallest member within one paired standard
        error of the best; "knee", the member farthest above the line from the smallest member to the best. Ties go to
        fewer features. "auto" is "validation" with validation data, else "train". "one-se" and "knee" take the
        validation data if there are any. "guaranteed" needs validation data: half of their queries take no part in
        tuning, and test which members lose less than `margin` against all features, with 95 % confidence. The smallest
        one that is shown to is chosen; see `moerank.mofsrank.guarantee`.
    refit : ranker, its name or a mapping, optional
        Ranker that is trained on the features of each member of the last front after the search. One of these rankers
        is chosen and judged, and predicts. A name is that of a ranker in the table of solvers, as "lambdamart".
        Validation MAP chooses its parameters from its published grid, once, with all features; also those of an
        estimator with such a grid, unless ``tune=False``. Validation chooses the number of trees of LambdaMART for each
        member. Without validation data the training metric chooses the member, as for ``final="train"``; rankers that
        learn their training data by heart are then chosen for their size. With
        ``{"ranker": "lambdamart", "evaluations": 200}`` the search goes on with this ranker as the judge before; see
        `moerank.mofsrank.refit`.
    margin : float, default 0.005
        Differences of the metric below the margin do not matter to the verdict and to ``final="guaranteed"``.
    tune : bool, default True
        Choose the regularisation of the backend before the search, with all pairs and all features, by validation MAP
        over its published grid. Without validation data the backend stays as it is.
    random_state : int, optional
        Seed; None draws one, kept in `random_state_`.
    workers : int or distributed.Client, default 1
        Threads, or a client of a Dask scheduler whose workers evaluate the individuals in slices. The result is the
        same to the bit for any number.
    memo : path, optional
        Beginning of the names of the files, one per stage, to which the evaluations are written. The files stay at the
        end; remove them once the result is safe.
    resume : bool, default False
        Go on from the memo if there is one: the search is repeated without training its individuals again. It needs
        the same data, arguments and `random_state`.
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
        ``validation`` is that of the new rankers; members that others dominate by the metric that `final` takes are
        left out.
    front_support_ : ndarray of bool, shape (n_members, n_features)
        The features of these members.
    front_coefs_ : ndarray, shape (n_members, n_features)
        Their weights; None for rankers without weights.
    front_rankers_ : Population
        Their rankers, with a method ``scores(X)``.
    chosen_ : int
        The row of the chosen member in `front_`.
    coef_ : ndarray, shape (n_features,)
        Its weights, 0 for features left out; only of rankers with weights.
    forest_ : Forest
        Its trees; only of rankers with trees.
    support_ : ndarray of bool, shape (n_features,)
    verdict_ : Verdict or None
        The chosen member against the same ranker on all allowed features, on the validation queries: optimistic, as
        they chose it. None without validation data. `verdict` judges on test queries.
    guarantee_ : Guarantee or None
        What ``final="guaranteed"`` has shown; else None.
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
        For each stage and generation: ``generation``, ``n_eval``, ``hypervolume`` (as a share of the box between the
        bounds of the objectives, here all features and an error of 1) and ``seconds``.
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

    backend: FitnessBackend | AnyRanker | None = None
    metric: Metric | str | None = None
    _: KW_ONLY
    instance_selection: StageArgument = True
    feature_selection: StageArgument = True
    ensemble: StageArgument = True
    objectives: Sequence[ObjectiveLike] = FRONT
    max_features: int | None = None
    max_cost: float | None = None
    include: Features = ()
    at_most: Mapping[Any, int] | None = None
    at_least: Mapping[Any, int] | None = None
    requires: Mapping[Any, Features] | None = None
    today: Features = ()
    max_changes: int | None = None
    exclude: Features = ()
    only: Features = ()
    costs: Costs | None = None
    groups: Groups | None = None
    group_costs: GroupCosts | None = None
    adaptive_mutation: bool = True
    algorithm: str | Factory = "nsga2"
    final: Final = "auto"
    refit: AnyRanker | str | Mapping[str, object] | None = None
    margin: float = MARGIN
    tune: bool = True
    random_state: int | None = None
    workers: int | Client = 1
    memo: str | Path | None = None
    resume: bool = False
    progress: StageProgress | None = None
    verbose: bool = False

    def get_params(self, deep: bool = True) -> Parameters:
        """Return the parameters; with `deep` also settings of the stages, as ``feature_selection__generations``."""
        own = super().get_params(deep)
        return {**own, **listed_settings(own)} if deep else own

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of the backend, and settings of the stages: ``set_params(ensemble__generations=5)``."""
        return super().set_params(**merged_settings(self.get_params(deep=False), params))

    def path(self, train: RankingData) -> SelectionPath:
        """Return for each k the best member of the front with at most k features, by the metric that `final` takes.

        The search was fitted on `train`.
        """
        check_is_fitted(self, "front_")
        return best_of_each_size(self.front_support_, self.front_rankers_, self._quality)

    @property
    def _scored_by(self) -> Metric:
        return as_metric(self.metric, NDCG(10))

    def _check_parameters(self) -> None:
        self._settings = Settings.of(self.get_params(deep=False))

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        if self.final in ("validation", "guaranteed") and validation is None:
            raise ValueError(f'final="{self.final}" needs validation data; pass validation=… to fit')
        settings = self._settings
        self.random_state_ = settings.random_state
        tests = None
        if self.final == "guaranteed" and validation is not None:
            validation, tests = halves(validation, self.random_state_)
        allowed, limits = allowed_features(train, settings.limits, self.exclude, self.only)
        plan = read_refit(self.refit, self.random_state_)
        kept = allowed & self._useful(train, limits, plan)
        if not kept.any():
            raise ValueError(f"{train.name}: the allowed features are constant in every query; allow others")
        priced = with_costs(train, self.costs, self.groups, self.group_costs)
        searched = priced.with_features(kept)
        settings = settings.model_copy(update=vars(limits))
        # Refuse limits that no selection can keep before the search.
        strings = FeatureStrings(searched, limits, by_group=settings.feature_selection.by_group)
        self._all_allowed = bool(strings.keeps_limits(np.ones((1, strings.n_bits), np.bool_))[0])
        check_differing(self._scored_by, train)
        with one_blas_thread():
            tuning = None if validation is None or not self.tune else validation.with_features(allowed)
            self.backend_ = tuned_backend(settings.backend, priced.with_features(allowed), tuning)
            reference = train_population(self.backend_, searched)
            if settings.ensemble is not None:  # refuse rankers without weights before the search
                require_weights(reference, self.backend_)
            stages = StagedSearch(searched, settings.model_copy(update={"backend": self.backend_}))
            pair_masks = None if settings.instance_selection is None else stages.select_instances()
            front = stages.select_features(pair_masks)
            if settings.ensemble is not None:
                front = stages.combine(front)
            self.refit_ = None
            if plan is not None:
                held_out = None if validation is None else validation.with_features(kept)
                self.refit_, front, reference = refit_front(plan, stages, front, held_out)
            self.instance_unit_, self.instance_subsets_ = stages.instance_unit, pair_masks
            self.fronts_, self.history_ = stages.fronts, stages.history
            self.n_evaluations_ = stages.n_evaluations
            self._n_allowed, self._reference = int(allowed.sum()), on_all_columns(reference, kept)
            self._choose(front.on_all_columns(kept), train, validation, tests)

    def _useful(self, train: RankingData, limits: FeatureLimits, plan: RefitPlan | None) -> Mask:
        """Return the features whose bits may change a ranker: the search would waste evaluations on others."""
        if limits.may_need_more:
            return np.ones(train.n_features, np.bool_)
        rankers = [self._settings.backend, *([] if plan is None else [plan.ranker])]
        included = column_mask(limits.include, train.feature_names, "include")
        return np.any([included, *(varying_for(ranker, train) for ranker in rankers)], axis=0)

    def _scores(self, X: Matrix) -> Vector:
        return self.front_rankers_.take(np.array([self.chosen_])).scores(X)[:, 0]

    def _choose(
        self, front: Front, train: RankingData, validation: RankingData | None, tests: RankingData | None
    ) -> None:
        metric, objectives = self._scored_by, read_objectives(self.objectives)
        front, errors = front.by_size(objectives, train, metric)
        held_out = None if validation is None else values_of(validation, metric, front.population)
        quality = np.full(len(errors), np.nan) if held_out is None else mean_over_queries(held_out)
        # The rule of the paper takes the training data alone.
        by_training = held_out is None or self.final == "train"
        serving = -errors if by_training else quality
        if self.refit_ is not None:
            if by_training:
                serving = -errors_of(train, metric, front.population)
            kept = front.non_dominated(objectives, -serving)
            front, errors, quality, serving = front.take(kept), errors[kept], quality[kept], serving[kept]
            held_out = None if held_out is None else held_out[:, kept]
        self._quality = serving
        self.front_ = front.table(objectives, errors, quality)
        self.front_support_, self.front_coefs_ = front.feature_mask, front.population.coefs
        self.front_rankers_, self.trained_on_ = front.population, front.trained_on

        def per_query() -> Matrix:
            return values_of(train, metric, front.population) if held_out is None else held_out

        self.chosen_ = choose_member(self.final, front.sizes, self._quality, per_query)
        self.guarantee_ = None
        if tests is not None:
            losses = values_of(tests, metric, front.population) - values_of(tests, metric, self._reference)
            losses = losses[metric.can_differ(tests)]
            self.guarantee_ = guaranteed_member(front.sizes, self._quality, losses, self.margin)
            self.chosen_ = self.guarantee_.chosen
        self.support_ = self.front_support_[self.chosen_]
        if self.front_coefs_ is not None:
            self.coef_ = self.front_coefs_[self.chosen_]
        elif hasattr(self, "coef_"):  # from an earlier fit
            del self.coef_
        self._advice, self.verdict_ = "", None
        if validation is not None and held_out is not None:
            reference = values_of(validation, metric, self._reference)[:, 0]
            self._advice = (
                advice_against(self.chosen_, front.sizes, held_out, reference, all_allowed=self._all_allowed)
                if self.guarantee_ is None
                else self.guarantee_.sentence(front.sizes, self._n_allowed, metric.name, self.margin)
            )
            differences = (held_out - reference[:, None])[metric.can_differ(validation)]
            level = level_of_each(differences) if self.final != "train" else LEVEL
            self.verdict_ = self._judged(held_out[:, self.chosen_], reference, validation, "validation", level)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the front: the number of features against the metric on training and validation data.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; by default axes of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            A circle marks the chosen member.
        """
        check_is_fitted(self, "front_")
        front, metric = self.front_, self._scored_by.name
        values = pd.DataFrame({"training": 1 - front["error"], "validation": front["validation"]}).dropna(axis=1)
        values.index = pd.Index(front["n_features"], name="number of features")
        axes = values.plot(style=["o-", "s--"], ylabel=f"{metric} (higher is better)", ax=axes)
        size, served = values.index[self.chosen_], values.iloc[self.chosen_, -1]
        axes.plot([size], [served], "o", fillstyle="none", markersize=12, color="C3", label=f"chosen ({size})")
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
        rankers: Any = self.front_rankers_
        return rankers.forest(self.chosen_)

    def verdict(
        self, X: RankingData | ArrayLike, y: ArrayLike | None = None, *, qid: ArrayLike | None = None
    ) -> Verdict:
        """Compare the chosen member with the same ranker on all features, on test queries.

        Parameters
        ----------
        X, y, qid
            Test data, as in `fit`. No query of them may have been used for training or choice.

        Returns
        -------
        Verdict
            ``print(solver.verdict(test).sentence)`` says it in words.

        Raises
        ------
        ValueError
            If the data are malformed.
        """
        check_is_fitted(self, "front_")
        data = X if isinstance(X, RankingData) else as_ranking_data(X, y, qid, name="test data")
        table = self._table(data)
        scores = np.column_stack([self._scores(table), self._reference.scores(table)[:, 0]])
        selection, reference = data.weighed(self._scored_by.per_query(data, scores)).T
        return self._judged(selection, reference, data, "test")

    def _judged(
        self, selection: Vector, reference: Vector, data: RankingData, part: Part, level: float = LEVEL
    ) -> Verdict:
        return judge(
            selection,
            reference,
            part,
            self._scored_by.name,
            int(self.support_.sum()),
            self._n_allowed,
            can_differ=self._scored_by.can_differ(data),
            margin=self.margin,
            advice=self._advice,
            level=level,
        )

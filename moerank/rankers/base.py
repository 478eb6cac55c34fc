"""Base classes of rankers: estimators of scikit-learn that are fitted to ranking data."""

import warnings
from collections import defaultdict
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    overload,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.arrays import Array, Integers, Mask, Matrix, Vector
from moerank.checks import Parameters, check_fields, is_made_of_fields
from moerank.data import (
    PER_QUERY,
    UNSCALED,
    FittedScaling,
    MissingRule,
    RankingData,
    Scaling,
    inputs,
)
from moerank.data.preparation import fill_missing
from moerank.data.ranking_data import labels_alone
from moerank.data.scaling import negative_features
from moerank.identity import digest
from moerank.kernels.newton import MAX_STEPS
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, Metric, as_metric
from moerank.rankers import arguments
from moerank.rankers.model import SAME_SCORES, finite_scores, is_own, linear_weights, some_rows
from moerank.scikit_learn import (
    BaseEstimator,
    ConvergenceWarning,
    TransformerMixin,
    check_is_fitted,
    clone,
)
from moerank.statistics import mean_and_error
from moerank.training.masks import Masks, Unit, read_masks
from moerank.training.pairs import PairLoss, Pairs, solve_pairs

# Number of single-precision rows that are converted to double precision at a time to score them.
SCORED_ROWS = 1 << 16


@dataclass_transform(eq_default=False)
class RankingEstimator(TransformerMixin, BaseEstimator):
    """Base of all estimators that are fitted to ranking data and rank documents by some of their features.

    Each subclass becomes a dataclass, whose fields are its parameters with their constraints, unless it or a base has
    an `__init__` of its own, which stores the parameters; then it may check them in `_check_parameters`. It implements
    `_fit`, which sets `support_`, and `_scores`.

    Attributes
    ----------
    support_ : ndarray of bool, shape (n_features,)
        The features that the estimator uses.
    varying_ : ndarray of bool, shape (n_features,)
        The features that the training uses. The others are constant: in every query or, for rankers in which features
        interact, in all documents.
    n_features_in_ : int
        Number of features of the training data.
    n_queries_ : int
        Number of queries of the training data.
    feature_names_in_ : ndarray of str, shape (n_features,)
        Names of the features, if the training data have any.
    scaling_ : Scaling
        How the training data were scaled; `predict` applies a fitted scaling to raw values.
    missing_ : float, "query-min", "query-mean", "query-worst" or None
        The rule that missing values of the training data followed.
    missing_values_ : tuple of float
        The numbers that counted as missing.
    negative_ : ndarray of bool, shape (n_features,)
        The features with raw values below 0 in the training data, which some search engines refuse.
    """

    # True if a score is a sum over single features: then a feature that is constant in every query moves no document.
    _additive: ClassVar[bool] = True

    # The arguments that scikit-learn's metadata routing, if enabled, passes on by default.
    __metadata_request__fit: ClassVar = {"qid": True, "validation": True}
    __metadata_request__score: ClassVar = {"qid": True}

    # True if the training, or that of the default ranker, uses weights of queries and documents.
    _takes_weights: ClassVar[bool] = False

    # Advice for a fit that finds no feature to rank by, or scores all documents alike.
    _remedy = (
        "check that the labels depend on the features, and that the features have comparable scales"
    )

    # True if the ranker depends only on the order of each feature's values, as trees do.
    _scale_free: ClassVar[bool] = False

    support_: Mask
    varying_: Mask
    scaling_: Scaling = UNSCALED  # an estimator inside another one gets scaled tables
    missing_: MissingRule | None = None
    missing_values_: tuple[float, ...] = ()
    negative_: Mask
    n_features_in_: int
    n_queries_: int
    feature_names_in_: NDArray[np.object_]

    tol: float  # of those rankers that warn by `_converged`
    n_iter_: int
    _early_stopping_metric: Metric = MAP()  # Metric monitored for early stopping.

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if is_made_of_fields(cls):
            dataclass(eq=False, repr=False)(cls)

    def fit(
        self,
        X: RankingData | ArrayLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        validation: arguments.Validation | None = None,
    ) -> Self:
        """Train on all preference pairs and all features.

        Parameters
        ----------
        X : RankingData, or array-like, shape (n_documents, n_features)
            A RankingData includes labels, queries and names. It remembers what is computed from it, so that fitting and
            tuning on the same object again costs little.
        y : array-like, shape (n_documents,)
            Relevance labels, integers from 0. Only if X is an array.
        qid : array-like, shape (n_documents,), optional
            The query of each row; the rows of a query are contiguous. One number, such as ``qid=0``, means one query;
            so does None for up to 1,000 rows, with a warning. Only if X is an array.
        validation : RankingData or (X, y, qid), optional
            Data that the method may use without training on them; most methods ignore them. They need a qid unless the
            training data are one query. If X is an array, scale them like X: a Pipeline does not scale them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If parameters or data are malformed, the data hold no preference pair, they have weights of queries or
            documents that the training does not take, or the scores come out infinite or NaN; the message names the
            place.
        TypeError
            For tables of objects that are not numbers.

        Warns
        -----
        ScaleWarning
            If the scales of unscaled features differ by a factor of more than 10,000, and it matters.
        ConvergenceWarning
            If the training stopped at a limit, or found nothing to rank by; the message says what to change.
        """
        self._check_parameters()
        train = arguments.as_ranking_data(X, y, qid)
        held_out = arguments.as_validation_data(validation, train)
        self._look_at(train)
        self.scaling_ = train.scaling
        self.missing_, self.missing_values_ = train.missing, train.missing_values
        self.negative_ = negative_features(train)
        if train.given_names is not None:
            self.feature_names_in_ = np.asarray(train.given_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if self._scales_matter():
            arguments.warn_of_scales(train)
        try:
            self._fit(train, held_out)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                f"{type(self).__name__}: {error}; scale the features, or change the parameters"
            ) from None
        rows = np.asarray(some_rows(train.X), float)
        scores = self._scores(rows).reshape(len(rows))
        finite_scores(scores[:1], type(self).__name__)
        if not is_own(self):
            self._compare_scores(rows)
        messages = [self._fit_warning()]
        reason = "" if self.support_.any() else "found no feature to rank by, and "
        if reason or ((scores == scores[0]).all() and not np.ptp(self.predict(train))):
            messages.insert(0, f"{reason}scores all documents alike; {self._remedy}")
        for message in filter(None, messages):
            warnings.warn(f"{type(self).__name__} {message}", ConvergenceWarning, stacklevel=2)
        return self

    def _compare_scores(self, X: Matrix) -> None:
        """Compare the `predict` of a user's class on a scaled table with its `_scores`, and these with its `coef_`."""
        unscaled = copy(self)
        unscaled.scaling_, unscaled.missing_, unscaled.missing_values_ = UNSCALED, None, ()
        scores, predicted = unscaled._scores(X).reshape(len(X)), np.ravel(unscaled.predict(X))
        if not np.ptp(predicted - scores) <= SAME_SCORES * np.abs(scores).max():
            raise ValueError(
                f"{type(self).__name__}.predict differs from its _scores, "
                "by which searches and studies rank. Change _scores alone"
            )
        self._linear = linear_weights(unscaled, X) is not None  # read by `Model.of`

    def predict(self, X: RankingData | ArrayLike) -> Vector:
        """Return the scores (n_documents,) of the rows of X, which has all features; higher ranks higher.

        Raw values are scaled like the training data, and missing values follow the same rule. An array has no queries:
        if the training data were scaled per query, it counts as scaled already, and its missing values can only follow
        a rule that is a number. A RankingData with the scaling of the training data is used as it is.
        """
        name, table = type(self).__name__, self._table(X)
        if getattr(self, "coef_", None) is not None:
            # A sum in the precision of the features, as in the training.
            return finite_scores(self._scores(table).reshape(len(table)), name)
        step = SCORED_ROWS if self._additive and table.dtype != float else max(len(table), 1)
        scores = [np.empty(0)]
        for begin in range(0, len(table), step):
            rows = np.asarray(table[begin : begin + step], float)
            scores.append(self._scores(rows).reshape(len(rows)))
        return finite_scores(np.concatenate(scores), name)

    def score(
        self,
        X: RankingData | ArrayLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
    ) -> float:
        """Return the mean average precision of a ranking, the metric of `tune`; MOFSRank uses its own metric.

        `Metric.scorer` gives any other metric to scikit-learn.

        Parameters
        ----------
        X, y, qid
            As in `fit`. Without `qid` the documents are one query; the training data must then be one query, too.

        Returns
        -------
        float
            Between 0 and 1, by LETOR's conventions.

        Raises
        ------
        ValueError
            For malformed data or a missing `qid`.
        """
        scores = self.predict(X)
        if isinstance(X, RankingData):
            arguments.refuse_labels(y, qid)
            return self._scored_by.score(X, scores)
        if y is None:
            raise ValueError("test data: y is missing: give the relevance labels, one per row of X")
        if qid is None and self.n_queries_ > 1:
            raise ValueError(
                f"score needs qid, because the training data had {self.n_queries_} queries; "
                "scikit-learn's searches hand it on after "
                "sklearn.set_config(enable_metadata_routing=True)"
            )
        return self._scored_by.score(labels_alone(y, 0 if qid is None else qid), scores)

    @property
    def _scored_by(self) -> Metric:
        return MAP()

    def transform(self, X: RankingData | ArrayLike) -> Any:
        """Return the columns of X that the estimator uses, as an array or in the container of ``set_output``.

        X has all features. They are completed and scaled as in `predict`.
        """
        check_is_fitted(self, "support_")
        is_raw = not isinstance(self.scaling_, FittedScaling) and self.missing_ is None
        if not isinstance(X, RankingData) and is_raw:
            # Not imported above, because it loads a third of scikit-learn.
            from sklearn.feature_selection import SelectorMixin

            return SelectorMixin.transform(self, X)
        return self._table(X)[:, self.support_]

    def _transform(self, X: Any) -> Any:
        """Return the columns of a checked table that the estimator uses; `SelectorMixin.transform` calls it."""
        from sklearn.utils import _safe_indexing

        return _safe_indexing(X, self.support_, axis=1)

    def inverse_transform(self, X: ArrayLike) -> Any:
        """Return a table with all features from the columns that `transform` returns; the other values are 0."""
        from sklearn.feature_selection import SelectorMixin

        return SelectorMixin.inverse_transform(self, X)

    @overload
    def get_support(self, indices: Literal[False] = False) -> Mask: ...
    @overload
    def get_support(self, indices: Literal[True]) -> Integers: ...
    def get_support(self, indices: bool = False) -> Array:
        """Return which features the estimator uses: a mask, or with ``indices=True`` their columns."""
        check_is_fitted(self, "support_")
        return np.flatnonzero(self.support_) if indices else self.support_

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the names of the features that the estimator uses, in the order of their columns."""
        from sklearn.utils.validation import _check_feature_names_in

        check_is_fitted(self, "support_")
        return _check_feature_names_in(self, input_features)[self.support_]

    def _table(self, X: RankingData | ArrayLike) -> Matrix:
        """Check X, and return it as a C-contiguous table in its precision, completed and scaled like the training data.

        Raises a ValueError for columns that differ from those of the fit in number or name, for values that are
        infinite, too large, or missing without a rule that can be followed, and for data that are scaled in another
        way. Raises a TypeError for tables of objects that are not numbers.
        """
        check_is_fitted(self, "support_")
        names = list(getattr(self, "feature_names_in_", ())) or None
        scaling = self.scaling_
        if isinstance(scaling, FittedScaling):
            # Without rounding, so that equal values score the same in either precision.
            scaling = replace(scaling, single=False)
        columns = X.given_names if isinstance(X, RankingData) else inputs.column_names(X)
        arguments.check_feature_names(columns, names, "the columns of X", "the fit")
        table = X.X if isinstance(X, RankingData) else inputs.as_table(X, names)
        n_features = self.n_features_in_
        if table.ndim != 2 or table.shape[1] != n_features:
            raise ValueError(
                f"X has {table.shape[-1]} features, but {type(self).__name__} is expecting "
                f"{n_features} features as input, those of the fit. Reshape your data to "
                f"(n_documents, {n_features}); one document is X.reshape(1, -1)"
            )
        if not isinstance(X, RankingData):
            table = self._completed(table, names, scaling)
        elif self.missing_values_ and X.missing_values != self.missing_values_:
            raise ValueError(
                f"{X.name}: give missing_values={self.missing_values_}, as in the training data"
            )
        else:
            table = arguments.scaled_alike(X, scaling, self.missing_).X
        inputs.refuse_values(table, inputs.LARGE, names)
        return table

    def _completed(self, table: Matrix, names: list[str] | None, scaling: Scaling) -> Matrix:
        """Return the table of an array without missing values, scaled if the scaling was fitted.

        An array has no queries, so it counts as scaled already if the training data were scaled per query.
        """
        inputs.refuse_values(table, inputs.INFINITE, names)
        if scaling != PER_QUERY:
            table = inputs.without_values(table, self.missing_values_)
        if self.missing_ is None:
            remedy = (
                "the training data had no missing value, so there is no rule; "
                f"give a RankingData with {inputs.RULES}"
            )
        elif isinstance(self.missing_, str):
            remedy = (
                f"the rule missing={self.missing_!r} needs the whole query; "
                "give a RankingData with the rule and the queries"
            )
        else:
            remedy = ""
            if np.isnan(table.min(initial=0.0)):
                table = table.copy(order="K") if inputs.is_frozen(table) else table
                fill_missing(table, np.array([0, len(table)]), self.missing_)
        inputs.refuse_values(table, (np.isnan, remedy), names)
        if isinstance(scaling, FittedScaling):
            table = scaling.table(table)
            inputs.refuse_values(table, inputs.INFINITE, names)
        return table

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Return the parameters, looked up once: a grid of thousands of entries asks for them several times each."""
        return super()._get_param_names()

    def _scales_matter(self) -> bool:
        """Return whether the scales of features matter to the ranker, or to the one inside it.

        They do not for rankers of other packages, about which nothing is known.
        """
        inner = arguments.inner_ranker(self)
        if inner is None:
            return not self._scale_free
        return isinstance(inner, RankingEstimator) and inner._scales_matter()

    def _learn(self, train: RankingData, validation: RankingData | None = None) -> Self:
        """Fit on checked data, without a warning."""
        self._look_at(train)
        self._fit(train, validation)
        return self

    def _look_at(self, train: RankingData) -> None:
        """Find the features that vary, and refuse data that cannot be trained on."""
        train.require_moderate_values()
        arguments.refuse_weights(train, self)
        self.n_features_in_, self.n_queries_ = train.n_features, train.n_queries
        # An interaction can use a feature that is the same for all documents of a query.
        if self._additive and not getattr(self, "interactions", 0):
            self.varying_, where = arguments.varying_in_queries(train), "every query"
        else:
            self.varying_, where = np.ptp(train.X, axis=0) > 0, "all documents"
        if not self.varying_.any():
            raise ValueError(
                f"{train.name}: every feature is constant in {where}: there is nothing to rank by"
            )

    def _check_parameters(self) -> None:
        """Check the parameters of an estimator that is a dataclass against the constraints in their annotations."""
        if is_dataclass(self):
            check_fields(self)

    def _fit_warning(self) -> str:
        """Return a further warning about the fit, which continues the class name, or nothing."""
        return ""

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        raise NotImplementedError

    def _scores(self, X: Matrix) -> Matrix:
        raise NotImplementedError


Grid: TypeAlias = list[Parameters]


def check_metric(**metrics: Any) -> None:
    """Raise a ValueError for an argument that is neither a metric, nor the name of one, nor None."""
    for name, value in metrics.items():
        as_metric(value, MAP(), name=name)


# A metric or its name; None stands for the metric that the class documents.
MetricOrNone: TypeAlias = Annotated[Metric | str | None, check_metric]


class Ranker(RankingEstimator):
    """Base of all rankers and solvers except MOFSRank, which tunes its backend inside `fit`.

    A subclass implements what `RankingEstimator` asks for and, if it has parameters to choose, `default_grid`. If one
    fit of a large size (rounds of boosting, features selected) contains the fits of all smaller sizes, it names the
    parameter in `_size` and implements `_scores_by_size`.
    """

    _converged = True
    _size: ClassVar[str | None] = None
    # Parameters, besides the size, that may differ between entries that are trained together; None for all.
    _trained_together: ClassVar[tuple[str, ...] | None] = ()
    # A parameter that leaves its first value in the grid only for a gain of one paired standard error.
    _guarded: ClassVar[str | None] = None

    def _fit_warning(self) -> str:
        if self._converged:
            return ""
        return f"did not converge to tol={self.tol} in {self.n_iter_} steps; raise tol, or lower C"

    def default_grid(self, train: RankingData) -> Grid:
        """Return the published grid of hyper-parameters for these training data, the simplest ranker first."""
        return [{}]

    def tune(
        self,
        train: RankingData,
        validation: RankingData,
        grid: Grid | None = None,
        metric: Metric | str | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> Self:
        """Return a clone with the parameters of the grid that rank the validation data best.

        Parameters
        ----------
        train, validation : RankingData
        grid : list of parameter dictionaries, optional
            Default: the published grid.
        metric : Metric or its name, default MAP()
            Ties go to the earlier entry of the grid. Entries whose scores are all equal come last, because they rank
            by the order of the rows.
        progress : callable, optional
            Called as ``progress(fraction)`` with the finished share of the grid.
        """
        measure = as_metric(metric, MAP())
        self._check_parameters()
        arguments.refuse_weights(train, self)
        settled = clone(self).set_params(**self._settled(train, validation, measure))
        candidates = [
            clone(settled).set_params(**entry) for entry in grid or self.default_grid(train)
        ]
        for candidate in candidates:
            candidate._check_parameters()
            candidate._early_stopping_metric = measure
        if len(candidates) == 1:
            return candidates[0]
        quality = np.empty(len(candidates))
        groups = self._groups(candidates)
        for done, group in enumerate(groups, start=1):
            scores = self._candidate_scores(train, validation, [candidates[i] for i in group])
            quality[group] = self._steadied(quality_of(scores, validation, measure))
            if progress is not None:
                progress(done / len(groups))
        best = int(np.argmax(quality))
        if self._guarded is not None:
            values = [getattr(candidate, self._guarded) for candidate in candidates]
            usual = np.flatnonzero([value == values[0] for value in values])
            best_usual = int(usual[np.argmax(quality[usual])])
            rankers = [candidates[best], candidates[best_usual]]
            if not self._is_safely_better(rankers, train, validation, measure):
                best = best_usual
        return candidates[best]

    def _is_safely_better(
        self, rankers: list[Self], train: RankingData, validation: RankingData, metric: Metric
    ) -> bool:
        """Return whether the first of two rankers is better on validation queries by more than a standard error."""
        scores = [self._candidate_scores(train, validation, [ranker]) for ranker in rankers]
        values = validation.weighted(metric.per_query(validation, np.hstack(scores)))
        gain, error = mean_and_error(values[:, 0] - values[:, 1])
        return gain > error

    def _settled(self, train: RankingData, validation: RankingData, metric: Metric) -> Parameters:
        """Return the parameters that `tune` chooses before those of the grid."""
        return {}

    def _groups(self, candidates: list[Self]) -> list[list[int]]:
        """Return the indices of the entries that are trained together, one list for each group."""
        if self._trained_together is None:
            return [list(range(len(candidates)))]
        groups = defaultdict(list)
        for index, candidate in enumerate(candidates):
            settings = candidate.get_params()
            for name in (self._size or "", *self._trained_together):
                settings.pop(name, None)
            groups[digest(settings)].append(index)
        return list(groups.values())

    def _candidate_scores(
        self, train: RankingData, validation: RankingData, candidates: list[Self]
    ) -> Matrix:
        """Return the validation scores (n_documents, n_candidates) of one group, trained on all pairs and features."""
        sizes = [getattr(candidate, self._size) if self._size else 1 for candidate in candidates]
        largest = candidates[int(np.argmax(sizes))]
        staged = largest._validation_scores(train, validation)
        return staged[:, np.minimum(sizes, staged.shape[1]) - 1]

    def _validation_scores(self, train: RankingData, validation: RankingData) -> Matrix:
        """Train, and return the validation scores (n_documents, n_sizes) at sizes 1, 2, … up to its own."""
        return clone(self)._learn(train, validation)._scores_by_size(train, validation.X64)

    def _steadied(self, values: Vector) -> Vector:
        """Return the values (n_entries,) by which the entries of a group of the grid are compared."""
        return values

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        """Return the scores (n_documents, n_sizes) of the rows of X at sizes 1, 2, … up to that of the fit.

        `train` is the data that the ranker was fitted to.
        """
        return self._scores(X)[:, None]

    def _everywhere(self, values: Array) -> Matrix:
        """Spread values (…, n_varying) of the varying features over all columns, 0 for the others."""
        spread = np.zeros((*values.shape[:-1], self.n_features_in_))
        spread[..., self.varying_] = values
        return spread


class LinearRanker(Ranker):
    """Base of the rankers that score a document by wᵀx with the weights ``coef_``; a subclass implements `_weights`."""

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self._set_weights(self._everywhere(self._weights(train.with_features(self.varying_))))

    def _weights(self, train: RankingData) -> Matrix:
        """Train on data all of whose features vary, and return their weights (n_features,)."""
        raise NotImplementedError

    def _set_weights(self, coef: Matrix) -> None:
        self.coef_ = coef
        self.support_ = coef != 0

    def _scores(self, X: Matrix) -> Matrix:
        return linear_scores(X, self.coef_[None])[:, 0]

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        return linear_scores(X, getattr(self, "path_coefs_", self.coef_[None]))


Trained = TypeVar("Trained")


class Trainer(Ranker, Generic[Trained]):
    """Base of the rankers that train a whole population at once; a subclass implements `_train`."""

    alternative: ClassVar[str | None] = "additive"

    def fit_population(
        self,
        train: RankingData,
        *,
        pair_mask: Mask | None = None,
        feature_mask: Mask | None = None,
        start: Matrix | None = None,
        unit: Unit = "pair",
    ) -> Trained:
        """Train one ranker for each row of the masks.

        Parameters
        ----------
        train : RankingData
        pair_mask : ndarray of bool, shape (n_individuals, n_units) or (n_units,), optional
            The units that each individual trains on; all individuals share a mask of one axis. Rows of pairs may be
            packed, ``np.packbits(pair_mask, axis=1)``.
        feature_mask : ndarray of bool, shape (n_individuals, n_features) or (n_features,), optional
            The features that each individual may use, at least one.
        start : ndarray, shape (n_individuals, n_features), optional
            Weights from which an iterative backend starts, in place of its own guess.
        unit : {"pair", "document", "query"}, default "pair"
            What a column of `pair_mask` stands for. A document keeps its pairs with other kept documents, and a query
            keeps all of its pairs; they are counted, not listed.

        Returns
        -------
        ndarray, shape (n_individuals, n_features), or TablePopulation
            The weights of linear rankers, or the tables of additive ones.

        Raises
        ------
        ValueError
            For wrong parameters or masks, a row that keeps no preference pair, and weights of queries or documents
            that the training does not use.
        """
        self._check_parameters()
        arguments.refuse_weights(train, self)
        return self._train(train, read_masks(train, pair_mask, feature_mask, unit), start)

    @property
    def takes_packed(self) -> bool:
        """Whether rows of pairs may be packed: True unless a subclass reads the masks by itself."""
        return type(self).fit_population is Trainer.fit_population

    def _train(self, train: RankingData, masks: Masks, start: Matrix | None) -> Trained:
        """Return the trained rankers of a population; `listed_pairs` unfolds the masks."""
        raise NotImplementedError


class Backend(LinearRanker, Trainer[Matrix]):
    """Base of the linear rankers that train a whole population at once.

    A subclass implements `_train`, and `_fit_candidates` where it can train entries of a grid together.
    """

    _trained_together: ClassVar[tuple[str, ...] | None] = None

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self._set_weights(self._train(train, read_masks(train), None)[0])

    def _candidate_scores(
        self, train: RankingData, validation: RankingData, candidates: list[Self]
    ) -> Matrix:
        return linear_scores(validation.X, self._fit_candidates(train, candidates))

    def _fit_candidates(self, train: RankingData, candidates: list[Self]) -> Matrix:
        """Train each entry of a grid on all pairs and features, and return W (n_candidates, n_features)."""
        return np.concatenate([candidate.fit_population(train) for candidate in candidates])

    def _solved(
        self, loss: PairLoss, C: float, pairs: Pairs, masks: Masks, start: Matrix | None
    ) -> Matrix:
        """Return the minima of a loss, with the relative error `tol`."""
        W, converged = solve_pairs(loss, pairs, masks, C, tolerance=self.tol, start=start)
        if not converged.all():
            # Always the same text, so that a search of many generations shows it once.
            warnings.warn(
                f"{type(self).__name__} stopped at {MAX_STEPS} Newton steps for some individuals, "
                f"before tol={self.tol} was reached; raise tol, regularise more, or scale the "
                "features",
                ConvergenceWarning,
                stacklevel=4,
            )
        return W


def quality_of(scores: Matrix, validation: RankingData, metric: Metric) -> Vector:
    """Return the metric of each column of scores (n_documents, n_rankers), −1 for a column of equal scores."""
    return np.where(np.ptp(scores, axis=0) > 0, metric.score(validation, scores), -1.0)

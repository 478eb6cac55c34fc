"""What all rankers share: the estimator interface, checked data, and the choice of parameters by validation data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, Metric
from moerank.rankers.population import Mask, Matrix

__all__ = [
    "ConstantFeatureWarning",
    "LinearBackend",
    "LinearRanker",
    "Mask",
    "Matrix",
    "Ranker",
    "as_feature_table",
    "as_ranking_data",
    "as_validation_data",
    "varying_in_queries",
    "warn_of_constant_features",
]

Grid: TypeAlias = list[dict[str, Any]]


class ConstantFeatureWarning(UserWarning):
    """Features that are constant, and so cannot move a document, are left out of the training."""


class Ranker(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all rankers and solvers.

    A subclass stores its parameters, and implements `_fit`, which sets `support_`, and `_scores`; if it has parameters
    to choose, `default_grid`. Where one fit of a large size (rounds of boosting, features selected) contains those of
    all smaller sizes, it names the parameter in `_size` and implements `_scores_by_size`.

    Attributes
    ----------
    support_ : ndarray of bool, shape (n_features,)
        The features that the ranker uses.
    varying_ : ndarray of bool, shape (n_features,)
        The features that training looks at. The others are constant, in every query or, for rankers in which
        features interact, in all documents.
    """

    _additive: ClassVar[bool] = True
    """Whether a score is a sum over single features: one that is constant in every query moves no document then."""

    _size: ClassVar[str | None] = None
    _trained_together: ClassVar[tuple[str, ...] | None] = ()
    """Parameters, beside the size, in which entries of a grid may differ and yet be trained together; None for all."""

    def fit(self, X: ArrayLike, y: ArrayLike = None, *, qid: ArrayLike | None = None, validation: Any = None) -> Self:
        """Train on all preference pairs and all features.

        Parameters
        ----------
        X : array-like, shape (n_documents, n_features)
        y : array-like, shape (n_documents,)
            Relevance labels, integers from 0.
        qid : array-like, shape (n_documents,), optional
            Queries, in contiguous rows; None means one query.
        validation : RankingData or (X, y, qid), optional
            Data that the method may look at without training on them; most ignore them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are malformed or hold no preference pair; the message names the place.

        Warns
        -----
        ConstantFeatureWarning
            If constant features are left out.
        """
        train = as_ranking_data(X, y, qid)
        self._learn(train, as_validation_data(validation, train.n_features))
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(train.feature_names, dtype=object)
        if not self.varying_.all():
            warn_of_constant_features(train, self.varying_, "every query" if self._additive else "all documents")
        return self

    def predict(self, X: ArrayLike) -> Matrix:
        """Return the scores (n_documents,) of the rows of X, all features in their columns; higher ranks higher."""
        check_is_fitted(self, "support_")
        return self._scores(as_feature_table(X, self.n_features_in_, getattr(self, "feature_names_in_", None)))

    def default_grid(self, train: RankingData) -> Grid:
        """Return the published grid of hyper-parameters for these training data, the simplest ranker first."""
        return [{}]

    def tune(
        self,
        train: RankingData,
        validation: RankingData,
        grid: Grid | None = None,
        metric: Metric | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> Self:
        """Return a clone with the parameters of the grid that rank the validation data best.

        Parameters
        ----------
        train, validation : RankingData
        grid : list of parameter dictionaries, optional
            Default: the published grid.
        metric : Metric, default MAP()
            Ties go to the earlier entry of the grid. Scores that are all equal come last: what they rank by is the
            order of the rows.
        progress : callable, optional
            Called as ``progress(fraction)`` with the share of the grid that is done.
        """
        metric = metric or MAP()
        candidates = [clone(self).set_params(**entry) for entry in grid or self.default_grid(train)]
        if len(candidates) == 1:
            return candidates[0]
        scores = self._grid_scores(train, validation, candidates, progress)
        quality = np.where(np.ptp(scores, axis=0) > 0, metric.score(validation, scores), -1.0)
        best: Self = candidates[int(np.argmax(quality))]
        return best

    def _learn(self, train: RankingData, validation: RankingData | None = None) -> Self:
        """Fit on checked data."""
        self.n_features_in_ = train.n_features
        self.varying_ = varying_in_queries(train) if self._additive else np.ptp(train.X, axis=0) > 0
        if not self.varying_.any():
            where = "every query" if self._additive else "all documents"
            raise ValueError(f"{train.name}: every feature is constant in {where}: there is nothing to rank by")
        self._fit(train, validation)
        return self

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        raise TypeError(f"{type(self).__name__} does not implement _fit")

    def _scores(self, X: Matrix) -> Matrix:
        raise TypeError(f"{type(self).__name__} does not implement _scores")

    def _grid_scores(
        self,
        train: RankingData,
        validation: RankingData,
        candidates: list[Self],
        progress: Callable[[float], object] | None = None,
    ) -> Matrix:
        """Return the validation scores (n_documents, n_candidates) of all entries of a grid."""
        scores = np.empty((validation.n_documents, len(candidates)))
        groups = self._groups(candidates)
        for done, group in enumerate(groups, start=1):
            scores[:, group] = self._candidate_scores(train, validation, [candidates[i] for i in group])
            if progress is not None:
                progress(done / len(groups))
        return scores

    def _groups(self, candidates: list[Self]) -> list[list[int]]:
        """Return the entries of a grid that are trained together, by their numbers."""
        if self._trained_together is None:
            return [list(range(len(candidates)))]
        groups: dict[str, list[int]] = {}
        for i, candidate in enumerate(candidates):
            setting = {
                name: repr(value)
                for name, value in candidate.get_params().items()
                if name != self._size and name not in self._trained_together
            }
            groups.setdefault(repr(setting), []).append(i)
        return list(groups.values())

    def _candidate_scores(self, train: RankingData, validation: RankingData, candidates: list[Self]) -> Matrix:
        """Return the validation scores (n_documents, n_candidates) of one group, trained on everything."""
        sizes = [getattr(candidate, self._size) if self._size else 1 for candidate in candidates]
        largest = clone(candidates[int(np.argmax(sizes))])._learn(train, validation)
        by_size = largest._scores_by_size(train, validation.X)
        return by_size[:, np.minimum(sizes, by_size.shape[1]) - 1]

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        """Return the scores (n_documents, n_sizes) of the rows of X at size 1, 2, … up to that of the fit.

        `train` is what the ranker was fitted on.
        """
        return self._scores(X)[:, None]

    def _everywhere(self, values: Matrix) -> Matrix:
        """Spread values (…, n_varying) of the varying features over all columns, 0 for the others."""
        spread = np.zeros((*values.shape[:-1], self.n_features_in_))
        spread[..., self.varying_] = values
        return spread

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self, "support_")
        return self.support_


class LinearRanker(Ranker):
    """Base of the rankers that score a document by wᵀx.

    A subclass implements `_weights`.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
        The weights, after `fit`.
    """

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self._set_weights(self._everywhere(self._weights(train.with_features(self.varying_))))

    def _weights(self, train: RankingData) -> Matrix:
        """Train on data all of whose features vary, and return their weights (n_features,)."""
        raise TypeError(f"{type(self).__name__} does not implement _weights")

    def _set_weights(self, coef: Matrix) -> None:
        self.coef_ = coef
        self.support_ = coef != 0

    def _scores(self, X: Matrix) -> Matrix:
        return linear_scores(X, self.coef_[None])[:, 0]


class LinearBackend(LinearRanker):
    """Base of the linear rankers that can train a whole population at once.

    A subclass implements `fit_population`.
    """

    _trained_together = None

    def fit_population(
        self,
        train: RankingData,
        *,
        pair_mask: Mask | None = None,
        feature_mask: Mask | None = None,
        start: Matrix | None = None,
    ) -> Matrix:
        """Train one ranker for each row of the masks; see `FitnessBackend`."""
        raise TypeError(f"{type(self).__name__} does not implement fit_population")

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self._set_weights(self.fit_population(train)[0])

    def _candidate_scores(self, train: RankingData, validation: RankingData, candidates: list[Self]) -> Matrix:
        return linear_scores(validation.X, self._fit_candidates(train, candidates))

    def _fit_candidates(self, train: RankingData, candidates: list[Self]) -> Matrix:
        """Train each entry of a grid on everything: W (n_candidates, n_features)."""
        return np.concatenate([candidate.fit_population(train) for candidate in candidates])


def as_ranking_data(X: ArrayLike, y: ArrayLike, qid: ArrayLike | None, *, name: str = "training data") -> RankingData:
    """Check the arguments of a `fit` and return them as data that hold at least one preference pair."""
    if isinstance(X, RankingData):
        X.require_pairs()
        return X
    columns = getattr(X, "columns", None)
    data = RankingData(X, y, qid, None if columns is None else [str(column) for column in columns], name=name)
    data.require_pairs()
    return data


def as_feature_table(X: ArrayLike, n_features: int, names: NDArray[np.object_] | None = None) -> Matrix:
    """Check the argument of a `predict`, whose columns are those of the fit, and return it as kernels want it."""
    columns = getattr(X, "columns", None)
    if names is not None and columns is not None and [str(column) for column in columns] != names.tolist():
        raise ValueError(f"the columns of X must be those of the fit, in their order: {', '.join(names)}")
    table = np.ascontiguousarray(X, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != n_features:
        raise ValueError(f"X must have shape (n_documents, {n_features}), the features of the fit, not {table.shape}")
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"X[{row}, {column}] is {table[row, column]} (row {row}, feature {column + 1}); replace missing values "
            "before ranking, for instance by the smallest value in the query"
        )
    return table


def as_validation_data(validation: Any, n_features: int) -> RankingData | None:
    """Check the argument `validation` of a `fit`: RankingData, (X, y, qid) or None."""
    if validation is None:
        return None
    if not isinstance(validation, RankingData):
        X, y, *rest = validation
        validation = RankingData(X, y, rest[0] if rest else None, name="validation data")
    if validation.n_features != n_features:
        raise ValueError(f"the training data have {n_features} features but {validation!r} has another number")
    return validation


def varying_in_queries(train: RankingData) -> Mask:
    """Return the features in which two documents of some query differ, shape (n_features,), remembered."""

    def compute() -> Mask:
        starts = train.offsets[:-1]
        extent = np.maximum.reduceat(train.X, starts) != np.minimum.reduceat(train.X, starts)
        return np.asarray(extent.any(axis=0))

    return train.remember("features that vary in queries", compute)


def warn_of_constant_features(train: RankingData, varying: Mask, where: str) -> None:
    """Name the features that `fit` leaves out; the warning points at the caller of `fit`."""
    names = [name for name, varies in zip(train.feature_names, varying, strict=True) if not varies]
    message = f"features constant in {where} are left out: {', '.join(names)}"
    warnings.warn(message, ConstantFeatureWarning, stacklevel=3)

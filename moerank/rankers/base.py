"""What all rankers share: the estimator interface, and the masks with which a search asks for a whole population."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, Metric
from moerank.rankers.population import Population

__all__ = ["FitnessBackend", "LinearRanker", "as_feature_table", "as_ranking_data", "read_masks"]

Matrix: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Validation: TypeAlias = RankingData | tuple[ArrayLike, ArrayLike, ArrayLike]


class FitnessBackend(Protocol):
    """A ranker that can train a whole population at once: what the search asks of it."""

    def fit_population(
        self,
        train: RankingData,
        *,
        pair_mask: Mask | None = None,
        feature_mask: Mask | None = None,
        start: Matrix | None = None,
    ) -> Population:
        """Train one ranker for each row of the masks and return their weights W (n_individuals, n_features).

        A backend whose rankers have no weights returns a `FittedPopulation` instead.

        Parameters
        ----------
        train : RankingData
        pair_mask : ndarray of bool, shape (n_individuals, n_pairs) or (n_pairs,), optional
            The preference pairs each individual trains on; one row without the first axis is shared by all.
        feature_mask : ndarray of bool, shape (n_individuals, n_features) or (n_features,), optional
            The features each individual may use, at least one.
        start : ndarray, shape (n_individuals, n_features), optional
            Where an iterative backend starts instead of at its own guess.
        """


class LinearRanker(BaseEstimator):  # type: ignore[misc]
    """Base of the rankers that score a document by wᵀx.

    A subclass stores its parameters, and implements `fit_population` and, if it has parameters, `default_grid`.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
        The weights, after `fit`.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, *, qid: ArrayLike | None = None, validation: Any = None) -> Self:
        """Train on all preference pairs and all features.

        Parameters
        ----------
        X : array-like, shape (n_documents, n_features)
        y : array-like, shape (n_documents,)
            Relevance labels, integers from 0.
        qid : array-like, shape (n_documents,), optional
            Queries, in contiguous rows; None means one query.
        validation : ignored
            Present so that all rankers and solvers are called alike.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are malformed or hold no preference pair; the message names the place.
        """
        self.coef_ = self.fit_population(as_ranking_data(X, y, qid))[0]
        self.n_features_in_ = len(self.coef_)
        return self

    def predict(self, X: ArrayLike) -> Matrix:
        """Return the scores (n_documents,) of the rows of X; a higher score ranks higher."""
        check_is_fitted(self, "coef_")
        return linear_scores(as_feature_table(X, self.n_features_in_), self.coef_[None])[:, 0]

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

    def default_grid(self, train: RankingData) -> list[dict[str, Any]]:
        """Return the published grid of hyper-parameters for these training data, the most regular first."""
        return [{}]

    def tune(
        self,
        train: RankingData,
        validation: RankingData,
        grid: list[dict[str, Any]] | None = None,
        metric: Metric | None = None,
    ) -> Self:
        """Return a clone with the parameters of the grid that rank the validation data best.

        Parameters
        ----------
        train, validation : RankingData
        grid : list of parameter dictionaries, optional
            Default: the published grid.
        metric : Metric, default MAP()
            Ties go to the earlier entry of the grid. Weights that are all 0 come last: what they score is the order
            of the rows.
        """
        metric = metric or MAP()
        candidates = [clone(self).set_params(**entry) for entry in grid or self.default_grid(train)]
        W = self._fit_candidates(train, candidates)
        quality = np.where(W.any(axis=1), metric.score(validation, linear_scores(validation.X, W)), -1.0)
        best: Self = candidates[int(np.argmax(quality))]
        return best

    def _fit_candidates(self, train: RankingData, candidates: list[Self]) -> Matrix:
        """Train each entry of a grid on everything: W (n_candidates, n_features)."""
        return np.concatenate([candidate.fit_population(train) for candidate in candidates])


def as_ranking_data(X: ArrayLike, y: ArrayLike, qid: ArrayLike | None, *, name: str = "training data") -> RankingData:
    """Check the arguments of a `fit` and return them as data that hold at least one preference pair."""
    columns = getattr(X, "columns", None)
    data = RankingData(X, y, qid, None if columns is None else [str(column) for column in columns], name=name)
    data.require_pairs()
    return data


def as_feature_table(X: ArrayLike, n_features: int) -> Matrix:
    """Check the argument of a `predict`, whose columns are those of the fit, and return it as kernels want it."""
    table = np.ascontiguousarray(X, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != n_features:
        raise ValueError(f"X must have shape (n_documents, {n_features}), the features of the fit, not {table.shape}")
    return table


def read_masks(
    train: RankingData, pair_mask: Mask | None, feature_mask: Mask | None
) -> tuple[Mask | None, Mask | None, Mask]:
    """Check the masks of a population and say what each individual has of its own.

    Returns
    -------
    subset : ndarray of bool, shape (n_pairs,), or None
        The pairs shared by all individuals; None where all pairs are.
    pairs : ndarray of bool, shape (n_individuals, n_pairs), or None
        Each individual's own pairs.
    features : ndarray of bool, shape (n_individuals, n_features)

    Raises
    ------
    ValueError
        For a wrong shape or type, or an individual without a feature or without a pair; the message names the row.
    """
    train.require_pairs()
    pair_mask = _checked_mask(pair_mask, "pair_mask", "pair", len(train.pairs))
    feature_mask = _checked_mask(feature_mask, "feature_mask", "feature", train.n_features)
    if feature_mask is None:
        feature_mask = np.ones(train.n_features, bool)
    subset = pair_mask if pair_mask is not None and pair_mask.ndim == 1 else None
    pairs = pair_mask if pair_mask is not None and pair_mask.ndim == 2 else None
    if feature_mask.ndim == 1:
        feature_mask = np.tile(feature_mask, (1 if pairs is None else len(pairs), 1))
    if pairs is not None and len(pairs) != len(feature_mask):
        raise ValueError(f"pair_mask has {len(pairs)} rows but feature_mask has {len(feature_mask)}; give one each")
    return subset, pairs, feature_mask


def _checked_mask(mask: Mask | None, name: str, thing: str, width: int) -> Mask | None:
    if mask is None:
        return None
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"{name} must be an array of bool, not of {mask.dtype}")
    if mask.ndim not in (1, 2) or mask.shape[-1] != width:
        raise ValueError(f"{name} must have shape (n_individuals, {width}) or ({width},), not {mask.shape}")
    for number, row in enumerate(np.atleast_2d(mask)):  # row by row, any() stops at the first bit that is set
        if not row.any():
            raise ValueError(f"{name}: row {number} selects no {thing}; every individual needs at least one")
    return mask

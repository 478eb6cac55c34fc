"""What all rankers share: the choice of parameters by validation data, and training by weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from moerank.data import RankingData
from moerank.kernels.newton import MAX_STEPS
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, Metric, as_metric
from moerank.rankers.arguments import Mask, Matrix, Vector
from moerank.rankers.estimator import RankingEstimator
from moerank.training.dense_newton import QuadraticModel
from moerank.training.losses import PairLoss
from moerank.training.pair_problem import PairProblem

__all__ = ["Grid", "LinearBackend", "LinearRanker", "Mask", "Matrix", "PairBackend", "Ranker", "quality_of"]

Grid: TypeAlias = list[dict[str, Any]]


class Ranker(RankingEstimator):
    """Base of all rankers and solvers but MOFSRank, which tunes its backend inside `fit`.

    A subclass implements what `RankingEstimator` asks for and, if it has parameters to choose, `default_grid`. Where
    one fit of a large size (rounds of boosting, features selected) contains those of all smaller sizes, it names the
    parameter in `_size` and implements `_scores_by_size`.
    """

    _size: ClassVar[str | None] = None
    _trained_together: ClassVar[tuple[str, ...] | None] = ()
    """Parameters, beside the size, in which entries of a grid may differ and yet be trained together; None for all."""

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
            Ties go to the earlier entry of the grid. Scores that are all equal come last: what they rank by is the
            order of the rows.
        progress : callable, optional
            Called as ``progress(fraction)`` with the share of the grid that is done.
        """
        measure = as_metric(metric, MAP())
        self._check_parameters()
        candidates = [clone(self).set_params(**entry) for entry in grid or self.default_grid(train)]
        for candidate in candidates:
            candidate._check_parameters()
        if len(candidates) == 1:
            return candidates[0]
        quality = np.empty(len(candidates))
        for group, scores in self._grid_scores(train, validation, candidates, progress):
            quality[group] = self._steadied(quality_of(scores, validation, measure))
        best: Self = candidates[int(np.argmax(quality))]
        return best

    def _grid_scores(
        self,
        train: RankingData,
        validation: RankingData,
        candidates: list[Self],
        progress: Callable[[float], object] | None = None,
    ) -> Iterator[tuple[list[int], Matrix]]:
        """Yield the numbers of the entries of a grid that are trained together, and their validation scores.

        The scores of a group have the shape (n_documents, n_entries).
        """
        groups = self._groups(candidates)
        for done, group in enumerate(groups, start=1):
            yield group, self._candidate_scores(train, validation, [candidates[i] for i in group])
            if progress is not None:
                progress(done / len(groups))

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
        by_size = candidates[int(np.argmax(sizes))]._validation_scores(train, validation)
        return by_size[:, np.minimum(sizes, by_size.shape[1]) - 1]

    def _validation_scores(self, train: RankingData, validation: RankingData) -> Matrix:
        """Train, and return the validation scores (n_documents, n_sizes) at size 1, 2, … up to the own one."""
        return clone(self)._learn(train, validation)._scores_by_size(train, validation.X64)

    def _steadied(self, values: Vector) -> Vector:
        """Return the validation values (n_entries,) of a group of the grid as they are to be compared."""
        return values

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


class PairBackend(LinearBackend):
    """Base of the backends that solve a `PairProblem` for each individual; they have the parameter `tol`."""

    on_shards = True
    tol: float

    def _solve_population(
        self,
        problem: PairProblem,
        model: QuadraticModel,
        C: float,
        loss: PairLoss,
        pair_mask: Mask | None,
        feature_mask: Mask,
        start: Matrix | None,
    ) -> Matrix:
        """Solve the problem for each row of the masks, from the model of one that is close to all of them."""
        return self._told(
            *problem.solve_population(C, loss, model, pair_mask, feature_mask, tolerance=self.tol, start=start)
        )

    def _told(self, W: Matrix, converged: Mask) -> Matrix:
        """Return the weights, and warn where the solver stopped at its bound."""
        if not converged.all():
            # Always the same text, so that a search of many generations shows it once.
            warnings.warn(
                f"{type(self).__name__} stopped at {MAX_STEPS} Newton steps for some individuals, before "
                f"tol={self.tol} was reached; raise tol, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )
        return W


def quality_of(scores: Matrix, validation: RankingData, metric: Metric) -> Vector:
    """Return the metric of each column of scores (n_documents, n_rankers), −1 for those that are all equal."""
    return np.where(np.ptp(scores, axis=0) > 0, metric.score(validation, scores), -1.0)

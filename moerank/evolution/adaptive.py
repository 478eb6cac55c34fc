"""Adaptive mutation of feature subsets: important features come in, redundant ones go out (Cheng et al. 2018).

Feature j flips in generation t with probability, equations (3) and (4),

    pⱼ(t) = min(1, pm + α(t) Imp(j))    where feature j is not selected,
    pⱼ(t) = min(1, pm + α(t) Red(j))    where it is,                        α(t) = 1/t,

with Imp(j) its share of the accuracies of all single features (5) and Red(j) its share of all absolute correlations
between two features (6). Both sum to 1, so they are of the size of pm = 1/n_features. Only a description of the paper's
formulas is known; `form`, `decay`, `importance` and `redundancy` offer the readings that agree with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from pymoo.core.algorithm import Algorithm
from pymoo.core.problem import Problem

from moerank.arrays import Mask, Matrix, Vector
from moerank.checks import check_choice
from moerank.data import RankingData
from moerank.data.describe import feature_correlations
from moerank.evolution.operators import BitFlip

Form: TypeAlias = Literal["additive", "convex", "product"]
Decay: TypeAlias = Literal["inverse", "exp", "geometric", "linear"]

Importance: TypeAlias = Literal["share", "accuracy", "scaled"]
Redundancy: TypeAlias = Literal["share", "mean", "selected"]

GEOMETRIC_RATIO = 0.9
"""Factor c of ``decay="geometric"``, α(t) = cᵗ, which is below 1/100 after 44 generations."""

_FORMS: dict[str, Callable[[float, float, Vector], Vector]] = {
    "additive": lambda pm, alpha, degree: pm + alpha * degree,
    "convex": lambda pm, alpha, degree: (1 - alpha) * pm + alpha * degree,
    "product": lambda pm, alpha, degree: pm * (1 + alpha * degree),
}
_DECAYS: dict[str, Callable[[int, float], float]] = {
    "inverse": lambda t, progress: 1 / t,
    "exp": lambda t, progress: float(np.exp(-t)),
    "geometric": lambda t, progress: float(GEOMETRIC_RATIO**t),
    "linear": lambda t, progress: max(0.0, 1 - progress),
}


def importance_degrees(accuracy: ArrayLike, importance: Importance = "share") -> Vector:
    """Return Imp of equation (5), from the ranking accuracy that each feature reaches alone.

    Parameters
    ----------
    accuracy : array-like, shape (n_features,)
        Ranking accuracy of each single feature, 0 or more. If all are 0 the importance is 0.
    importance : {"share", "accuracy", "scaled"}, default "share"
        Share of the sum of all accuracies, the accuracy itself, or the accuracy scaled to [0, 1].

    Examples
    --------
    >>> importance_degrees([0.75, 0.25, 0]).tolist()
    [0.75, 0.25, 0.0]
    """
    check_choice(get_args(Importance), importance=importance)
    values = np.asarray(accuracy, np.float64)
    if importance == "accuracy":
        return values
    if importance == "scaled":
        spread = np.ptp(values)
        return (values - values.min()) / spread if spread > 0 else np.zeros_like(values)
    return _shares(values)


def redundancy_degrees(
    X: RankingData | ArrayLike, redundancy: Redundancy = "share", bit_of: ArrayLike | None = None
) -> Matrix:
    """Return Red of equation (6), from the absolute Pearson correlations between two features.

    Parameters
    ----------
    X : RankingData, or array-like, shape (n_documents, n_features)
        Feature values. A constant feature correlates with nothing. If no two features correlate, Red is 0.
    redundancy : {"share", "mean", "selected"}, default "share"
        Share of a feature in the correlations between all features; mean of its correlations with the others; or share
        in the correlations between the features of an individual, for which the correlations are returned, shape
        (n_bits, n_bits).
    bit_of : array-like of int, shape (n_features,), optional
        The bit of each feature where bits stand for groups, whose correlations are added up.

    Notes
    -----
    O(n_documents n_features²).

    Examples
    --------
    >>> redundancy_degrees([[0, 0, 1], [1, 2, 1], [2, 4, 1]]).round(12).tolist()
    [0.5, 0.5, 0.0]
    """
    check_choice(get_args(Redundancy), redundancy=redundancy)
    if not isinstance(X, RankingData):
        X = np.asarray(X)
        X = X if X.dtype == np.float32 else X.astype(np.float64, copy=False)
    correlation = feature_correlations(X)
    np.fill_diagonal(correlation, 0.0)
    if bit_of is not None:
        of_bit = np.eye(int(np.max(bit_of)) + 1)[np.asarray(bit_of)]
        correlation = of_bit.T @ correlation @ of_bit
    if redundancy == "selected":
        np.fill_diagonal(correlation, 0.0)
        return correlation
    sums = correlation.sum(axis=0)
    return sums / max(1, len(sums) - 1) if redundancy == "mean" else _shares(sums)


def _shares(values: Vector) -> Vector:
    total = values.sum()
    return values / total if total > 0 else np.zeros_like(values)


def _shares_of_selected(X: Mask, correlation: Matrix) -> Matrix:
    """Return the share of each selected feature in the correlations within its individual, 0 for other features."""
    sums = np.where(X, X.astype(np.float64) @ correlation, 0.0)
    totals = sums.sum(axis=1, keepdims=True)
    return np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)


class AdaptiveBitFlip(BitFlip):
    """Bit flip with probabilities that depend on the feature, its bit and the generation.

    Parameters
    ----------
    importance, redundancy : array-like, shape (n_features,)
        Imp and Red, 0 or more; see :func:`importance_degrees` and :func:`redundancy_degrees`. For a matrix of
        correlations (n_features, n_features) Red is the share among the features of an individual.
    form : {"additive", "convex", "product"}, default "additive"
        pm + α·d, (1 − α)·pm + α·d or pm·(1 + α·d), with d = Imp(j) for a zero and Red(j) for a one.
    decay : {"inverse", "exp", "geometric", "linear"}, default "inverse"
        α(t) = 1/t, exp(−t), 0.9ᵗ, or 1 − progress of the termination (not reproducible if that measures time);
        t = 1 for the first mating.
    base : float, optional
        The basic probability pm, by default 1 / n_var.

    Examples
    --------
    >>> mutation = AdaptiveBitFlip(importance=[0.5, 0.5], redundancy=[0.1, 0.9], base=0.05)
    >>> mutation.probabilities(np.array([[False, True], [True, False]]), generation=2).round(3).tolist()
    [[0.3, 0.5], [0.1, 0.3]]
    """

    def __init__(
        self,
        importance: ArrayLike,
        redundancy: ArrayLike,
        form: Form = "additive",
        decay: Decay = "inverse",
        base: float | None = None,
    ) -> None:
        super().__init__()
        self.importance = np.asarray(importance, np.float64)
        self.redundancy = np.asarray(redundancy, np.float64)
        n = len(self.importance)
        if self.importance.ndim != 1 or self.redundancy.shape not in ((n,), (n, n)):
            raise ValueError(
                f"AdaptiveBitFlip: importance has shape {self.importance.shape} and redundancy "
                f"{self.redundancy.shape}; give one number per feature each"
            )
        if not (self.importance.min(initial=0.0) >= 0 and self.redundancy.min(initial=0.0) >= 0):
            raise ValueError("AdaptiveBitFlip: importance and redundancy must be 0 or more")
        check_choice(_FORMS, form=form)
        check_choice(_DECAYS, decay=decay)
        self.form = form
        self.decay = decay
        self.base = base

    def probabilities(self, X: Mask, generation: int, progress: float = 0.0) -> Vector:
        """Return the flip probabilities of the bits of `X` in `generation` ≥ 1, shape of `X`.

        `progress` of the search, in [0, 1], is for ``decay="linear"`` alone.
        """
        pm = 1 / X.shape[1] if self.base is None else self.base
        alpha = _DECAYS[self.decay](generation, progress)
        redundancy = self.redundancy if self.redundancy.ndim == 1 else _shares_of_selected(X, self.redundancy)
        switch_on, switch_off = (_FORMS[self.form](pm, alpha, degree) for degree in (self.importance, redundancy))
        return np.minimum(1.0, np.where(X, switch_off, switch_on))

    def flip(self, problem: Problem, X: Mask, random_state: np.random.Generator, algorithm: Algorithm | None) -> None:
        """Flip bits of the rows in place. `algorithm` knows how far the search is."""
        # pymoo counts the initial population as iteration 1, so its first mating happens in iteration 2.
        if algorithm is None:
            raise TypeError(
                "AdaptiveBitFlip must know how far the search is, which pymoo's MOEAD does not tell its operators; "
                'take make_algorithm("moead", …) of moerank.evolution, or FeatureSelection(…, adaptive=False)'
            )
        X ^= random_state.random(X.shape) < self.probabilities(X, algorithm.n_iter - 1, algorithm.termination.perc)

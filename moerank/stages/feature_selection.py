"""MOFS, the second stage of MOFSRank: which features are worth computing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.evolution import AdaptiveBitFlip, DigestDuplicates, SparseBitFlip, SubsetSizeSampling, UniformCrossover
from moerank.kernels.blas import one_blas_thread
from moerank.metrics import NDCG, Metric
from moerank.rankers import FitnessBackend, RankRLS
from moerank.stages.stage import Stage, training_errors

__all__ = ["FeatureSelection", "feature_importance", "feature_redundancy"]


class FeatureSelection(Stage):
    """Minimise (|F|, 1 − max over S of RAcc(Train(S, F))) over the subsets F of the features.

    An individual is a bit string, one bit a feature. It is trained on every given pair subset S, and the most
    accurate of these rankers on all training data is the ranker of the individual.

    Parameters
    ----------
    train : RankingData
        Training data with at least one preference pair.
    backend : ranker with ``fit_population``, default RankRLS()
    metric : Metric, default NDCG(10)
    pair_masks : ndarray of bool, shape (n_subsets, n_pairs), optional
        The pair subsets of the first stage; None trains on all pairs.
    adaptive : bool, default True
        Mutate a bit the more readily the more important an absent feature is, and the more redundant a present one
        is, as equations (3)–(6) have it; False is the plain bit flip.
    form, decay : str
        The reading of equations (3)–(4) and of the factor α(t); see `AdaptiveBitFlip`.
    workers : int, default 1
        Threads; the result does not depend on it.

    Notes
    -----
    An evaluation is n_subsets trainings, each O(k³) for RankRLS with k features, and as many metrics on all
    documents, which take most of the time.

    References
    ----------
    F. Cheng, W. Guo, X. Zhang: MOFSRank. Complexity, 2018, formulas (2)–(6) and Algorithm 3.

    Examples
    --------
    >>> import numpy as np
    >>> train = RankingData([[0.1, 0.5], [0.9, 0.4], [0.5, 0.6]], y=[0, 2, 1])
    >>> FeatureSelection(train, metric=NDCG(2)).evaluate(np.array([[True, False], [True, True], [False, False]]))
    array([[1., 0.],
           [2., 0.],
           [3., 2.]])
    """

    def __init__(
        self,
        train: RankingData,
        backend: FitnessBackend | None = None,
        metric: Metric | None = None,
        pair_masks: NDArray[np.bool_] | None = None,
        *,
        adaptive: bool = True,
        form: str = "additive",
        decay: str = "inverse",
        workers: int = 1,
    ) -> None:
        train.require_pairs()
        super().__init__(train.n_features, workers=workers, vtype=bool)
        self.train = train
        self.backend = backend or RankRLS()
        self.metric = metric or NDCG(10)
        self.pair_masks = pair_masks
        self.adaptive = adaptive
        self.form = form
        self.decay = decay

    def operators(self) -> dict[str, Any]:
        """Return uniform subset sizes, uniform crossover, (adaptive) bit flips and elimination of equal strings."""
        mutation = SparseBitFlip()
        if self.adaptive:
            importance = feature_importance(self.train, self.metric)
            mutation = AdaptiveBitFlip(importance, feature_redundancy(self.train), form=self.form, decay=self.decay)
        return {
            "sampling": SubsetSizeSampling(),
            "crossover": UniformCrossover(prob=0.9),
            "mutation": mutation,
            "eliminate_duplicates": DigestDuplicates(),
        }

    def rankers(self, X: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the weights (n_individuals, n_features) of each individual's ranker, the best over the pair subsets.

        Raises
        ------
        ValueError
            If the backend's rankers have no weights.
        """
        W, errors = self._train_on_subsets(X)
        return W[np.arange(len(X)), errors.argmin(axis=1)]

    def _measure(self, X: NDArray[np.bool_]) -> NDArray[np.float64]:
        _, errors = self._train_on_subsets(X)
        return np.column_stack([np.count_nonzero(X, axis=1), errors.min(axis=1)])

    def _train_on_subsets(self, X: NDArray[np.bool_]) -> tuple[Any, NDArray[np.float64]]:
        """Rankers (n_individuals, n_subsets, n_features) and their errors (n_individuals, n_subsets)."""
        if self.pair_masks is None:
            populations = [self.backend.fit_population(self.train, feature_mask=X)]
        else:
            populations = [
                self.backend.fit_population(self.train, pair_mask=mask, feature_mask=X) for mask in self.pair_masks
            ]
        if not isinstance(populations[0], np.ndarray):
            errors = [training_errors(self.train, self.metric, population) for population in populations]
            return populations, np.stack(errors, axis=1)
        # The rankers of one individual stand side by side: they share their features, which scoring makes use of.
        W = np.stack(populations, axis=1)
        flat = np.ascontiguousarray(W.reshape(-1, W.shape[-1]))
        return W, training_errors(self.train, self.metric, flat).reshape(W.shape[:2])


def feature_importance(train: RankingData, metric: Metric) -> NDArray[np.float64]:
    """Imp(j) = RAcc(f_j) / Σ RAcc, equation (5): each feature's own accuracy as a score, in its better direction."""
    accuracy = np.maximum(metric.batch(train, train.X), metric.batch(train, -train.X))
    total = accuracy.sum()
    return accuracy / total if total > 0 else np.full(len(accuracy), 1.0 / len(accuracy))


def feature_redundancy(train: RankingData) -> NDArray[np.float64]:
    """Red(j) = Σ_{k≠j} |PCC(f_j, f_k)| / Σ over all such pairs, equation (6); over all training documents.

    The correlation of a constant feature is taken as 0.
    """
    X = train.X - train.X.mean(axis=0)
    norms = np.sqrt((X * X).sum(axis=0))
    constant = np.ptp(train.X, axis=0) == 0
    X = np.where(constant, 0.0, X) / np.where(constant, 1.0, norms)
    with one_blas_thread():
        correlation = np.abs(X.T @ X)
    np.fill_diagonal(correlation, 0.0)
    total = correlation.sum()
    return correlation.sum(axis=1) / total if total > 0 else np.zeros(train.n_features)

"""MOFS, the second stage of MOFSRank: which features are worth computing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.mutation import Mutation

from moerank.data import RankingData
from moerank.evolution import (
    AdaptiveBitFlip,
    DigestDuplicates,
    KeepAsIs,
    SparseBitFlip,
    SubsetSizeSampling,
    UniformCrossover,
    importance_degrees,
    redundancy_degrees,
)
from moerank.metrics import NDCG, Metric, single_feature_values
from moerank.rankers import FitnessBackend, FittedPopulation, Population, RankRLS, require_weights
from moerank.stages.stage import Stage, training_errors

__all__ = ["FeatureSelection"]


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
        form: Any = "additive",
        decay: Any = "inverse",
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
        mutation: Mutation = SparseBitFlip()
        if self.adaptive:
            accuracy = single_feature_values(self.train, self.metric).max(axis=0)  # in the better direction
            importance, redundancy = importance_degrees(accuracy), redundancy_degrees(self.train.X)
            mutation = AdaptiveBitFlip(importance, redundancy, form=self.form, decay=self.decay)
        return {
            "sampling": SubsetSizeSampling(),
            "crossover": UniformCrossover(prob=0.9),
            "mutation": mutation,
            "repair": KeepAsIs(),
            "eliminate_duplicates": DigestDuplicates(),
        }

    def rankers(self, X: NDArray[np.bool_]) -> Population:
        """Return each individual's ranker, the most accurate over the pair subsets, as the backend returns them."""
        population, errors = self._train_on_subsets(X)
        if isinstance(population, FittedPopulation):
            return population
        best: NDArray[np.float64] = population[np.arange(len(X)), errors.argmin(axis=1)]
        return best

    def _measure(self, X: NDArray[np.bool_]) -> NDArray[np.float64]:
        _, errors = self._train_on_subsets(X)
        return np.column_stack([np.count_nonzero(X, axis=1), errors.min(axis=1)])

    def _train_on_subsets(self, X: NDArray[np.bool_]) -> tuple[Population, NDArray[np.float64]]:
        """Return rankers (n_individuals, n_subsets, n_features) and their errors (n_individuals, n_subsets)."""
        if self.pair_masks is None:
            populations = [self.backend.fit_population(self.train, feature_mask=X)]
        else:
            populations = [
                self.backend.fit_population(self.train, pair_mask=mask, feature_mask=X) for mask in self.pair_masks
            ]
        if isinstance(populations[0], FittedPopulation):  # then there is one: such rankers take no pair masks
            return populations[0], training_errors(self.train, self.metric, populations[0])[:, None]
        # The rankers of one individual stand side by side: they share their features, which scoring makes use of.
        W = np.stack([require_weights(population, self.backend) for population in populations], axis=1)
        flat = np.ascontiguousarray(W.reshape(-1, W.shape[-1]))
        return W, training_errors(self.train, self.metric, flat).reshape(W.shape[:2])

"""MOEN, the third stage of MOFSRank: weighted sums of the front's rankers on some of their features."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moerank.arrays import Mask, Matrix
from moerank.data import RankingData
from moerank.evolution import (
    DigestDuplicates,
    MixedCrossover,
    MixedMutation,
    MixedSampling,
    Operators,
)
from moerank.metrics import Metric
from moerank.mofsrank.limits import UNLIMITED, FeatureStrings
from moerank.mofsrank.objectives import FRONT, Candidates, ObjectiveLike
from moerank.mofsrank.settings import EnsembleSettings, Limits, settings_with
from moerank.mofsrank.stage import Stage
from moerank.rankers import FitnessBackend, LinearPopulation
from moerank.rankers.population import Summable


class Ensemble(Stage):
    """Minimise (number of features, 1 − RAcc(ens)) over mixed strings.

    A string has one bit for each distinct feature of the front, then one weight in [0, 1] for each of its K members:

        ens_j = bit_j · Σ_k weight_k · r_k(j),                                                        (7)

    where r_k is the ranker of the k-th member. Nothing is trained again. By default a feature counts if its weight in
    the sum is not zero: the others need not be computed.

    Parameters
    ----------
    train : RankingData
    coefs : array-like, shape (n_members, n_features), or LinearPopulation or TablePopulation
        The rankers of the front, or their weights, 0 for features that a ranker does not use. For additive rankers
        r_k(j) is the table of a feature.
    metric, objectives, limits, table, workers
        See `FeatureSelection`. An included feature counts, and costs, even if its weight is 0.
    settings : EnsembleSettings, optional
        Probabilities of crossover and mutation, and what follows; each setting can also be a keyword argument. With
        `inject` the members are in the initial population, so that the training error of the front is no worse than
        theirs; the paper does not. `count` counts the features with a weight ("weights"), or the bits that are 1
        ("bits"), as the paper does. The counts differ if all members with a weight for a feature have weight 0
        themselves.
    by_group : bool, default False
        All features of a group count if one of them has a weight.
    backend : fitness backend, optional
        The backend of the rankers, for objectives that train another ranker with it, such as "risk".

    Notes
    -----
    X is one float matrix (n_individuals, n_bits + n_members) whose first columns are 0 or 1. The paper leaves the
    operators open; here they are uniform crossover and bit flips of the bits, simulated binary crossover and polynomial
    mutation of the weights.

    References
    ----------
    F. Cheng, W. Guo, X. Zhang: MOFSRank. Complexity, 2018, formulas (7)–(8), Figure 2 and Algorithm 4.

    Examples
    --------
    >>> from moerank.data import RankingData
    >>> import numpy as np
    >>> from moerank.metrics import NDCG
    >>> train = RankingData([[0.1, 0.5], [0.9, 0.4], [0.5, 0.6]], y=[0, 2, 1], qid=0)
    >>> stage = Ensemble(train, coefs=[[1.0, 0.0], [2.0, -1.0]], metric=NDCG(2))
    >>> stage.combined(np.array([[1.0, 1.0, 0.5, 0.25]])).coefs
    array([[ 1.  , -0.25]])
    """

    settings: EnsembleSettings

    def __init__(
        self,
        train: RankingData,
        coefs: ArrayLike | Summable,
        metric: Metric | None = None,
        settings: EnsembleSettings | None = None,
        *,
        objectives: Sequence[ObjectiveLike] = FRONT,
        limits: Limits = UNLIMITED,
        by_group: bool = False,
        backend: FitnessBackend | None = None,
        table: RankingData | None = None,
        workers: int = 1,
        **keywords: Any,
    ) -> None:
        settings = settings_with(EnsembleSettings, settings, keywords)
        rankers = coefs
        if not isinstance(rankers, Summable):
            rankers = LinearPopulation(np.asarray(coefs, dtype=float))
        self.strings: FeatureStrings = FeatureStrings(train, limits, by_group=by_group)
        train = self.strings.data
        self._members = self.strings.bits(rankers.feature_mask)
        self._bits = np.flatnonzero(self._members.any(axis=0) & self.strings.allowed_bits)
        self.n_bits = len(self._bits)  # of distinct features, or groups of them
        if self.n_bits == 0:
            raise ValueError(
                "no feature has a weight in any ranker of the front (coefs are all zero): "
                "there is nothing to combine; check whether the labels depend on the features, "
                "or leave the stage out with ensemble=False"
            )
        n_var = self.n_bits + len(rankers)
        n_counted = max(n_var, train.n_features) if by_group or limits.given else n_var
        super().__init__(
            train,
            backend,
            metric,
            n_var,
            objectives,
            settings,
            workers,
            table=table,
            n_counted=n_counted,
            xl=0.0,
            xu=1.0,
        )
        self.rankers = rankers

    def operators(self) -> Operators:
        """Return the mixed sampling, crossover and mutation, and elimination of equal strings by digest."""
        settings = self.settings
        members = self.members() if settings.inject else None
        return {
            "sampling": MixedSampling(self.n_bits, members=members),
            "crossover": MixedCrossover(self.n_bits, settings.crossover),
            "mutation": MixedMutation(self.n_bits, settings.mutation),
            "repair": self.strings.repair(self._bits),
            "eliminate_duplicates": DigestDuplicates(),
        }

    def members(self) -> Matrix:
        """Return the strings (n_members, n_var) of the members of the front."""
        return np.hstack([self._members[:, self._bits], np.eye(len(self.rankers))])

    def combined(self, X: Matrix) -> Summable:
        """Return the combined rankers of the strings, formula (7)."""
        return self.rankers.combined(X[:, self.n_bits :], self._used_features(X))

    def summed(self, X: Matrix) -> Mask:
        """Return the members of the front with a weight in the sums of each individual, (n_individuals, n_members)."""
        return (X[:, self.n_bits :] != 0) & (self._used_features(X) @ self.rankers.feature_mask.T)

    def _used_features(self, X: Matrix) -> Mask:
        return self.strings.columns(self._feature_strings(X))

    def feature_mask(self, X: Matrix) -> Mask:
        """Return the features that count for each individual, shape (n_individuals, n_features)."""
        return self._counted(X, self.combined(X).feature_mask)

    def _limited(self, X: Matrix) -> Mask:
        return self._feature_strings(X) | self.strings.included_bits

    def _feature_strings(self, X: Matrix) -> Mask:
        """Return the bits of the strings, with zeros for features that no member uses."""
        return self.strings.of_mixed(X, self._bits)

    def _counted(self, X: Matrix, feature_mask: Mask) -> Mask:
        """Return the features that count, of strings whose rankers have weights for `feature_mask`."""
        strings = self.strings.bits(feature_mask)
        if self.settings.count == "bits":
            strings = self._feature_strings(X)
        return self.strings.columns(strings) | self.strings.included

    def _is_empty(self, X: Matrix) -> Mask:
        return np.logical_not(self.combined(X).feature_mask.any(axis=1))

    def _candidates(self, X: Matrix) -> Candidates:
        rankers = self.combined(X)
        return self._as_candidates(self._counted(X, rankers.feature_mask), rankers)

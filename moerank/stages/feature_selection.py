"""MOFS, the second stage of MOFSRank: which features are worth computing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.mutation import Mutation

from moerank.data import RankingData
from moerank.evolution import (
    DECAY,
    FORM,
    AdaptiveBitFlip,
    Decay,
    DigestDuplicates,
    Form,
    KeepAsIs,
    SparseBitFlip,
    SubsetSizeSampling,
    UniformCrossover,
    importance_degrees,
    redundancy_degrees,
)
from moerank.metrics import NDCG, Metric
from moerank.rankers import FitnessBackend, Population, RankRLS, nested_masks, side_by_side
from moerank.rankers.rank_rls import TARGETS
from moerank.selectors.single import single_feature_values
from moerank.stages.instance_units import Unit, train_on_units
from moerank.stages.objectives import FRONT, Candidates, ObjectiveLike, errors_of
from moerank.stages.stage import Stage
from moerank.training.losses import UNIT
from moerank.training.pair_moments import PairMoments
from moerank.training.ridge_paths import backward_path, forward_path

__all__ = ["FeatureSelection"]

MOST_BACKWARD = 1_000
"""Features up to which the backward path is worth its time: some seconds."""


class FeatureSelection(Stage):
    """Minimise (|F|, 1 − max over S of RAcc(Train(S, F))) over the subsets F of the features.

    An individual is a bit string, one bit per feature. It is trained on every given pair subset S, and the most
    accurate of these rankers on all training data is the ranker of the individual.

    Parameters
    ----------
    train : RankingData
        Training data with at least one preference pair.
    backend : ranker with ``fit_population``, default RankRLS()
    metric : Metric, default NDCG(10)
    pair_masks : ndarray of bool, shape (n_subsets, n_units), optional
        The instance subsets of the first stage; None trains on all pairs.
    unit : {"pair", "document", "query"}, default "pair"
        What a column of `pair_masks` stands for; see `InstanceSelection`.
    objectives : sequence of str or Objective, default ("features", "error")
        What is minimised; see `moerank.stages.objectives`.
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
        unit: Unit = "pair",
        objectives: Sequence[ObjectiveLike] = FRONT,
        adaptive: bool = True,
        form: Form = FORM,
        decay: Decay = DECAY,
        workers: int = 1,
    ) -> None:
        train.require_pairs()
        super().__init__(train, train.n_features, objectives, workers=workers, vtype=bool)
        self.backend = backend or RankRLS()
        self.metric = metric or NDCG(10)
        self.pair_masks = pair_masks
        self._subsets = [None] if pair_masks is None else [_frozen(mask) for mask in pair_masks]
        self.unit = unit
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

    def starting_strings(self, n: int) -> NDArray[np.bool_]:
        """Return at most `n` nested strings to start a search from, no metric being measured.

        The first half are the beginning of the forward path of the ridge regression on all pairs, from one feature on;
        the others are of its backward path, spread evenly over all sizes. With the pair loss of RankRLS it is its
        own regression, with other backends alpha is a hundredth of tr(G) / n_features. O(n_features³) time; beyond
        1,000 features there is no backward path.
        """
        A, b = self._ridge_system()
        half = min(n // 2, self.n_var)
        strings = [nested_masks(forward_path(A, b, half), self.n_var)[:half]]
        if self.n_var <= MOST_BACKWARD and n > half:
            ends = np.unique(np.linspace(0, self.n_var - 1, min(n - half, self.n_var)).round().astype(np.int64))
            strings.append(nested_masks(backward_path(A, b), self.n_var)[ends])
        return np.concatenate(strings)

    def _ridge_system(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return G + alpha I and the moment of all pairs."""
        moments = PairMoments.of(self.train)
        if isinstance(self.backend, RankRLS) and self.backend.loss == "pair":
            alpha, target = self.backend.alpha, TARGETS[self.backend.target]
        else:
            alpha, target = 0.01 * float(np.trace(moments.gram)) / self.n_var, UNIT
        return moments.gram + alpha * np.eye(self.n_var), moments.moment(target)

    def rankers(self, X: NDArray[np.bool_]) -> Population:
        """Return each individual's ranker, the most accurate over the pair subsets."""
        return self._candidates(X).population

    def measure(self, X: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the objectives of individuals that are not empty; see `Stage.measure`.

        The threads share the individuals while these are trained, and then the queries: going through all documents is
        what costs most.
        """
        return self._measure(X) if len(X) else super().measure(X)

    def _candidates(self, X: NDArray[np.bool_]) -> Candidates:
        n_subsets = len(self._subsets)
        # The rankers of one individual stand side by side: they share their features, which scoring makes use of.
        trained = side_by_side(self._in_pieces(self._train, X))
        if trained.coefs is None:  # each scores all documents as it pleases
            errors = np.concatenate(self._in_pieces(partial(self._errors_of_rows, trained), np.arange(len(trained))))
        else:
            errors = errors_of(self.train, self.metric, trained, workers=self.workers)
        errors = errors.reshape(len(X), n_subsets)
        best = trained.take(np.arange(len(X)) * n_subsets + errors.argmin(axis=1))
        return Candidates(self.train, self.metric, X, lambda: best, errors=errors.min(axis=1), backend=self.backend)

    def _train(self, X: NDArray[np.bool_]) -> Population:
        """Train each individual on each subset of the instances, its rankers one after the other."""
        populations = [train_on_units(self.backend, self.train, self.unit, subset, X) for subset in self._subsets]
        order = np.arange(len(populations) * len(X)).reshape(len(populations), -1).T.ravel()
        return side_by_side(populations).take(order)

    def _errors_of_rows(self, population: Population, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return errors_of(self.train, self.metric, population.take(rows))


def _frozen(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a copy that nobody can write to, so that what is remembered for a mask is found without reading it."""
    copy = mask.copy()
    copy.setflags(write=False)
    return copy

"""MOFS, the second stage of MOFSRank: selection of features."""

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from moocore import is_nondominated

from moerank import evolution
from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.data import RankingData
from moerank.evolution.bit_search import first_of_equals
from moerank.kernels.algebra import plus_ridge, ridge_subsets
from moerank.kernels.threads import in_pieces
from moerank.metrics import Metric
from moerank.mofsrank.instance_selection import evenly_spaced
from moerank.mofsrank.limits import UNLIMITED, FeatureStrings
from moerank.mofsrank.objectives import FRONT, Candidates, ObjectiveLike, errors_of
from moerank.mofsrank.settings import FeatureSelectionSettings, Limits, settings_with
from moerank.mofsrank.stage import Stage
from moerank.rankers import (
    AnyRanker,
    FitnessBackend,
    Population,
    as_backend,
    nested_masks,
)
from moerank.rankers.importance import single_feature_values
from moerank.rankers.population import (
    of_weights,
    side_by_side,
    train_population,
)
from moerank.scikit_learn import ConvergenceWarning
from moerank.selectors.best_subset import BestSubset
from moerank.training.masks import Unit
from moerank.training.pair_moments import UNIT, PairMoments, backward_path, forward_path

# Features of a random string at the start, and for the backward path. Both take seconds at this size.
MAX_AT_START = 1_000


class FeatureSelection(Stage):
    """Minimise (|F|, 1 − max over S of RAcc(Train(S, F))) over the subsets F of the features.

    An individual is a bit string with a bit for each feature, or for each group of features. It is trained on every
    given instance subset S; its ranker is the most accurate of these rankers on all training data.

    Parameters
    ----------
    train, backend, metric, workers
        See `InstanceSelection`.
    pair_masks : ndarray of bool, shape (n_subsets, n_units), optional
        Instance subsets of the first stage; None trains on all pairs.
    settings : FeatureSelectionSettings, optional
        Probabilities of crossover and mutation, the bits, and the reading of equations (3) to (6); `mutation` is the
        basic probability pm of the adaptive mutation. Each setting can also be a keyword argument, such as
        ``by_group=True``. With `by_group` the importance of a group is that of its best feature, its redundancy the sum
        of those of its features.
    unit : {"pair", "document", "query"}, default "pair"
        Unit of the columns of `pair_masks`.
    objectives : sequence of str or Objective, default ("features", "error")
    limits : Limits or mapping, optional
        Limits that every string keeps. The repair of `operators` enforces them, and other strings are refused. Costs
        and groups of the limits replace those of `train`.
    adaptive : bool, default True
        Adaptive mutation, equations (3)–(6): important features are added, redundant ones are removed. False is the
        plain bit flip.
    table : RankingData, optional
        The table that `train` has some columns of, if objectives refer to its columns.

    Notes
    -----
    An evaluation takes n_subsets trainings, each O(k³) for RankRLS with k features, and as many metrics on all
    documents, which take most of the time.

    References
    ----------
    F. Cheng, W. Guo, X. Zhang: MOFSRank. Complexity, 2018, formulas (2)–(6) and Algorithm 3.

    Examples
    --------
    >>> from moerank.data import RankingData
    >>> import numpy as np
    >>> from moerank.metrics import NDCG
    >>> train = RankingData([[0.1, 0.5], [0.9, 0.4], [0.5, 0.6]], y=[0, 2, 1], qid=0)
    >>> kept = np.array([[True, False], [True, True], [False, False]])
    >>> FeatureSelection(train, metric=NDCG(2)).evaluate(kept)
    array([[1., 0.],
           [2., 0.],
           [3., 2.]])
    """

    settings: FeatureSelectionSettings

    def __init__(
        self,
        train: RankingData,
        backend: FitnessBackend | AnyRanker | None = None,
        metric: Metric | None = None,
        pair_masks: Mask | None = None,
        settings: FeatureSelectionSettings | None = None,
        *,
        unit: Unit = "pair",
        objectives: Sequence[ObjectiveLike] = FRONT,
        limits: Limits | Mapping[str, object] = UNLIMITED,
        adaptive: bool = True,
        table: RankingData | None = None,
        workers: int = 1,
        **keywords: Any,
    ) -> None:
        train.require_pairs()
        settings = settings_with(FeatureSelectionSettings, settings, keywords)
        limits = limits if isinstance(limits, Limits) else Limits(**limits)
        self.strings: FeatureStrings = FeatureStrings(train, limits, by_group=settings.by_group)
        train, n_bits, n_features = self.strings.data, self.strings.n_bits, train.n_features
        backend = as_backend(backend)
        # A backend with many columns per feature has a smaller limit.
        self.max_at_start: int = min(
            n_features, getattr(backend, "max_features_at_start", MAX_AT_START)
        )
        self.max_ones = min(self.strings.max_ones, self.max_at_start)  # of a random one
        super().__init__(
            train,
            backend,
            metric,
            n_bits,
            objectives,
            settings,
            workers,
            table=table,
            n_counted=n_features,
            vtype=bool,
        )
        self.pair_masks = pair_masks
        self._subsets = [None] if pair_masks is None else list(pair_masks)
        self.unit = unit
        self.adaptive = adaptive

    def operators(self) -> evolution.Operators:
        """Return uniform subset sizes, uniform crossover, (adaptive) bit flips and elimination of equal strings."""
        settings = self.settings
        mutation = evolution.SparseBitFlip(settings.mutation)
        if self.adaptive:
            values = single_feature_values(self.train, self.metric)
            accuracy = np.zeros(self.n_var)
            # In the better direction.
            np.maximum.at(accuracy, self.strings.bit_of, values.max(axis=0))
            bit_of = self.strings.bit_of if self.n_var < self.train.n_features else None
            mutation = evolution.AdaptiveBitFlip(
                evolution.importance_degrees(accuracy, settings.importance),
                evolution.redundancy_degrees(self.train, settings.redundancy, bit_of),
                settings.form,
                settings.decay,
                settings.mutation,
            )
        return {
            "sampling": evolution.SubsetSizeSampling(self.max_ones),
            "crossover": evolution.UniformCrossover(settings.crossover),
            "mutation": mutation,
            "repair": self.strings.repair(),
            "eliminate_duplicates": evolution.DigestDuplicates(),
        }

    def starting_strings(self, n: int) -> Mask:
        """Return at most `n` nested strings to start a search from, by ridge regression on all pairs.

        The first half is the beginning of the forward path, from one feature on; a backend may have its own. The others
        are spread evenly over the backward path, up to 1,000 features. A backend that is such a regression has its own
        alpha; for others it is a hundredth of tr(G) / n_features. O(n_features³) time; no metric is measured.
        """
        A, b = self._ridge_system()
        half = min(n // 2, self.train.n_features, self.max_at_start)
        path = partial(forward_path, A, b)
        if hasattr(self.backend, "forward_path"):
            path = partial(self.backend.forward_path, self.train)
        forward = self._strings_of(path(half))[:half]
        if self.train.n_features > MAX_AT_START or n <= half:
            return forward
        backward = self._strings_of(backward_path(A, b)[: self.max_at_start])
        return np.concatenate((forward, backward[evenly_spaced(len(backward), n - half)]))

    def _strings_of(self, path: Integers) -> Mask:
        """Return the strings of the beginnings of a path that keep the limits, from one feature on."""
        X = self.strings.bits(nested_masks(path, self.train.n_features))
        X = (X | self.strings.included_bits) & self.strings.allowed_bits
        X = X[first_of_equals(X)]
        return X[self.strings.keeps_limits(X)]

    def _ridge_system(self) -> tuple[Matrix, Vector]:
        """Return G + alpha I and the moment of all pairs."""
        moments = PairMoments.of(self.train)
        # The trace is 0 if all features are denormal, because their squares vanish.
        usual = 0.01 * float(np.trace(moments.gram)) / self.train.n_features or 1.0, UNIT
        alpha, target = getattr(self.backend, "ridge", None) or usual
        return plus_ridge(moments.gram, alpha), target.moment(moments)

    def pareto_front(self) -> Matrix | None:
        """Return the front of all strings if it is proved, shape (n_members, n_objectives); else None.

        Returns
        -------
        ndarray or None
            In the order of the number of features. None without a proof, for objectives other than "features" and
            "loss", for bits that stand for groups, and for strings that are trained on instance subsets.

        Notes
        -----
        Leaps and bounds (`moerank.selectors.best_subset.BestSubset`) prove the front where their limit on nodes
        suffices.
        """
        names = [objective.name for objective in self.objectives]
        if self.strings.by_group or self.pair_masks is not None or names != ["features", "loss"]:
            return None
        self.measure(np.eye(1, self.n_var, dtype=bool))  # refuses other backends
        limits = self.strings.limits.given
        # It warns about what is not proved.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            solver = BestSubset(self.n_var, self.backend.alpha, **limits).fit(self.train)
        if solver.gaps_.any():
            return None
        F = self.measure(solver.masks_)
        return F[is_nondominated(F)]

    def feature_mask(self, X: Mask) -> Mask:
        """Return the features of each individual, shape (n_individuals, n_features)."""
        return self.strings.columns(X)

    def rankers(self, X: Mask) -> Population:
        """Return the ranker of each individual, the most accurate over the instance subsets."""
        return self.most_accurate(X)[0]

    def most_accurate(self, X: Mask) -> tuple[Population, Integers, Vector]:
        """Train each individual on each instance subset, and return the most accurate of its rankers.

        Returns
        -------
        rankers : Population
        subsets : ndarray of int, shape (n_individuals,)
            The row of `pair_masks` that each of them was trained on; 0 without masks.
        errors : ndarray, shape (n_individuals,)
        """
        n_subsets = len(self._subsets)
        # The rankers of an individual stand side by side: scoring is faster for equal features.
        trained = self._train(self.strings.columns(X))
        errors = errors_of(self.train, self.metric, trained, workers=self.workers).reshape(
            len(X), n_subsets
        )
        best = errors.argmin(axis=1)
        return trained.take(np.arange(len(X)) * n_subsets + best), best, errors.min(axis=1)

    def _candidates(self, X: Mask) -> Candidates:
        rankers, _, errors = self.most_accurate(X)
        candidates = self._as_candidates(self.feature_mask(X), rankers)
        candidates.errors = errors
        return candidates

    @cached_property
    def _systems(self) -> tuple[Matrix, Matrix] | None:
        """The normal equations on each instance subset, if the backend solves such."""
        systems = getattr(self.backend, "systems", None)
        return systems and systems(self.train, self._subsets, self.unit, self.workers)

    def _train(self, masks: Mask) -> Population:
        """Train each feature mask on each instance subset; the rankers of a mask stand side by side."""
        if self._systems is not None:
            solve = partial(ridge_subsets, *self._systems)
            weights = in_pieces(solve, np.ascontiguousarray(masks), self.workers)
            return of_weights(np.concatenate(weights))

        def train(subset: Mask | None, masks: Mask) -> Population:
            return train_population(
                self.backend, self.train, pair_mask=subset, feature_mask=masks, unit=self.unit
            )

        if len(self._subsets) < self.workers:
            populations = [
                side_by_side(in_pieces(partial(train, subset), masks, self.workers))
                for subset in self._subsets
            ]
        else:  # the threads share the subsets, each of which may need a Gram matrix
            parts = in_pieces(
                lambda subsets: [train(subset, masks) for subset in subsets],
                self._subsets,
                self.workers,
                1,
            )
            populations = list(chain.from_iterable(parts))
        order = np.arange(len(populations) * len(masks)).reshape(len(populations), -1).T.ravel()
        return side_by_side(populations).take(order)

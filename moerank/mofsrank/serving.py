"""The ranker that serves: one kind of ranker, on sets of features from several sources.

A member of the front is a set of features and a ranker on it. The sets are those of the search, of the backend's
forward path and of proposing solvers, such as the orders of trees. Cross-validation over the training and the
validation queries chooses the kind of ranker once, for all sets: if each member had the kind that validates best, the
most flexible kind would win by luck on few validation queries. The same cross-validation compares all sets if their
rankers train together, and the finalists, the best members of a few sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from moerank import rankers
from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.data import RankingData
from moerank.kernels.counted_ranks import mean_over_queries
from moerank.metrics import Metric
from moerank.mofsrank.feature_selection import FeatureSelection
from moerank.mofsrank.objectives import values_of
from moerank.rankers.adapter import train_on_subsets, trains_together
from moerank.rankers.selection import nested_masks

# Sizes of the proposed sets.
PROPOSED_SIZES = np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20])

# Largest sizes of the classes, each of which sends its best member to the final.
SIZE_CLASSES = np.array([2, 3, 5, 8, 12])

# Number of features of the proposed sets on which kinds of rankers are compared.
N_PROBED = 10

SEARCH_SOURCE = "search"
"""The source of the members of the front of the search."""

GREEDY_SOURCE = "greedy path"
"""The source of the sets of the forward path of the backend."""

N_PARTS = 3

FOLD_STREAM = 0x666F6C64  # key of the random stream that deals the queries to folds


@dataclass(frozen=True, eq=False)
class FeatureSets:
    """Candidate sets of features (n_sets, n_features), their objectives in the search, and the source of each."""

    feature_mask: Mask
    F: Matrix  # (n_sets, n_objectives)
    sources: tuple[str, ...]

    @classmethod
    def of_order(cls, order: Integers, stage: FeatureSelection, source: str) -> FeatureSets:
        """Return the first features of an order, in sets of `PROPOSED_SIZES` that keep the limits of a stage."""
        strings, sizes = stage.strings, np.unique(np.minimum(PROPOSED_SIZES, len(order)))
        masks = nested_masks(order, stage.train.n_features, sizes) & strings.allowed
        X = strings.bits(masks) | strings.included_bits
        X = X[strings.keeps_limits(X) & X.any(axis=1)]
        return cls(strings.columns(X), stage.evaluate(X), (source,) * len(X))

    @classmethod
    def joined(cls, parts: Sequence[FeatureSets]) -> FeatureSets:
        """Return the sets of all parts, without those that came before."""
        masks = np.concatenate([part.feature_mask for part in parts])
        sources = [source for part in parts for source in part.sources]
        new = np.sort(np.unique(masks, axis=0, return_index=True)[1])
        F = np.concatenate([part.F for part in parts])[new]
        return cls(masks[new], F, tuple(sources[row] for row in new))


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The metric of rankers on queries that they were not trained on.

    `folds` (n_queries,) has the fold of each query of `data`.
    """

    data: RankingData
    folds: Integers
    metric: Metric
    workers: int = 1

    @classmethod
    def over(
        cls, data: RankingData, metric: Metric, random_state: int, workers: int
    ) -> CrossValidation:
        """Deal the queries to folds at random, those with preference pairs evenly."""
        order = np.random.default_rng((random_state, FOLD_STREAM)).permutation(data.n_queries)
        has_pairs = data.label_runs.n_pairs_of[order] > 0
        folds = np.empty(data.n_queries, np.int64)
        folds[np.concatenate((order[has_pairs], order[~has_pairs]))] = (
            np.arange(data.n_queries) % N_PARTS
        )
        return cls(data, folds, metric, workers)

    @property
    def suffices(self) -> bool:
        """Whether every fold leaves queries with preference pairs for training."""
        return int(np.count_nonzero(self.data.label_runs.n_pairs_of)) >= N_PARTS

    def values(self, ranker: Any, feature_mask: Mask) -> Matrix:
        """Return the metric, weighted, of the ranker on each set, shape (n_queries, n_sets)."""
        values = np.empty((self.data.n_queries, len(feature_mask)))
        fold_of = np.repeat(self.folds, np.diff(self.data.offsets))
        for fold in range(N_PARTS):
            train = self.data.with_rows(np.flatnonzero(fold_of != fold))
            held_out = self.data.with_rows(np.flatnonzero(fold_of == fold))
            trained = train_on_subsets(ranker, train, feature_mask, workers=self.workers)
            scores = rankers.scores_on(trained, held_out)
            values[self.folds == fold] = self.metric.per_query(held_out, scores)
        return self.data.weighted(values)


class Judgement(NamedTuple):
    """How members compare: their mean metric (n_members,), and a function with that of sets by query, on all queries.

    `quality` is cross-validated if the members train together, else of validation queries. There is no function where
    cross-validation is impossible.
    """

    quality: Vector
    unseen_values: Callable[[Mask], Matrix] | None


@dataclass(frozen=True, eq=False)
class Serving:
    """Kinds of rankers that can serve, tuned, and the queries that choose among them.

    `references` has each kind trained on all features.
    """

    kinds: Sequence[Any]
    train: RankingData
    validation: RankingData
    metric: Metric
    random_state: int
    workers: int = 1

    def trained(self, kind: int, feature_mask: Mask, **arguments: Any) -> rankers.Population:
        """Return the rankers of a kind on sets of features; validation queries choose their sizes."""
        return train_on_subsets(
            self.kinds[kind],
            self.train,
            feature_mask,
            self.validation,
            metric=self.metric,
            workers=self.workers,
            **arguments,
        )

    @cached_property
    def references(self) -> list[rankers.Population]:
        """The ranker of each kind on all features."""
        everything = np.ones((1, self.train.n_features), np.bool_)
        return [self.trained(kind, everything) for kind in range(len(self.kinds))]

    @cached_property
    def queries(self) -> CrossValidation:
        """All queries of both parts, dealt to folds."""
        data = self.train.with_queries_of(self.validation)
        return CrossValidation.over(data, self.metric, self.random_state, self.workers)

    def unseen_values(self, kind: int, feature_mask: Mask) -> Matrix:
        """Return the cross-validated metric of a kind on sets of features, shape (n_queries, n_sets).

        Its rankers have the size that validation queries choose on all features.
        """
        fitted = getattr(self.references[kind], "rankers", (None,))[0]
        ranker = self.kinds[kind]
        if fitted is not None and hasattr(ranker, "with_size_of"):
            ranker = ranker.with_size_of(fitted)
        return self.queries.values(ranker, feature_mask)

    def compare(self, kind: int, feature_mask: Mask, population: rankers.Population) -> Judgement:
        """Return how the rankers of a kind on sets of features compare."""
        unseen_values = partial(self.unseen_values, kind) if self.queries.suffices else None
        if unseen_values and trains_together(self.kinds[kind]):
            return Judgement(mean_over_queries(unseen_values(feature_mask)), unseen_values)
        values = values_of(self.validation, self.metric, population)
        return Judgement(mean_over_queries(values), unseen_values)

    def best_kind(self, probes: Mask) -> int:
        """Return the index of the kind with the best cross-validated mean on the probes; ties go to the first."""
        if len(self.kinds) == 1 or not self.queries.suffices:
            return 0
        means = [self.unseen_values(kind, probes).mean() for kind in range(len(self.kinds))]
        return int(np.argmax(means))

    def best_reference(self) -> int:
        """Return the index of the kind that ranks the validation queries best with all features."""
        values = [
            values_of(self.validation, self.metric, population).mean()
            for population in self.references
        ]
        return int(np.argmax(values))


def probes_of(sets: FeatureSets) -> Mask:
    """Return the sets on which kinds are compared.

    They are the two largest of the search, one of about ten features of each other source, and all features.
    """
    sizes = np.count_nonzero(sets.feature_mask, axis=1)
    source_of = np.array(sets.sources)
    rows = []
    for source in dict.fromkeys(sets.sources):
        members = np.flatnonzero((source_of == source) & (sizes <= PROPOSED_SIZES[-1]))
        if source == SEARCH_SOURCE:
            rows += members[np.argsort(sizes[members], kind="stable")[-2:]].tolist()
        elif len(members):
            rows.append(members[np.argmin(np.abs(sizes[members] - N_PROBED))])
    everything = np.ones((1, sets.feature_mask.shape[1]), np.bool_)
    return np.concatenate((sets.feature_mask[rows], everything))


def find_finalists(sizes: Integers, means: Vector) -> Integers:
    """Return the members with the best mean metric in each of the `SIZE_CLASSES` of sizes, ascending."""
    class_of = np.searchsorted(SIZE_CLASSES, sizes)
    best = []
    for number in np.unique(class_of):
        members = np.flatnonzero(class_of == number)
        best.append(members[np.argmax(means[members])])
    return np.sort(best)

"""MOIS, the first stage of MOFSRank: selection of preference pairs, documents or queries to train on."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from moerank.arrays import Array, Integers, Mask, Matrix
from moerank.checks import check_choice
from moerank.data import RankingData
from moerank.data.ranking_data import n_pairs_of_documents
from moerank.evolution import (
    DensitySampling,
    DigestDuplicates,
    Operators,
    SparseBitFlip,
    UniformCrossover,
)
from moerank.kernels.threads import in_pieces
from moerank.metrics import Metric
from moerank.mofsrank.objectives import Candidates, ObjectiveLike
from moerank.mofsrank.settings import InstanceSelectionSettings, settings_with
from moerank.mofsrank.stage import Stage
from moerank.rankers import (
    AnyRanker,
    FitnessBackend,
    Population,
    as_backend,
    side_by_side,
    train_population,
)
from moerank.training.masks import Unit, n_ones

MAX_PAIRS = 1_000_000  # up to which a bit stands for a pair by default


class InstanceSelection(Stage):
    """Minimise (|S|, 1 − RAcc(Train(S, all features))) over the subsets S of the preference pairs.

    An individual is a bit string with a bit for each preference pair, in the order of ``train.pairs``, or for each
    document or query. RAcc is the metric, on all training data, of the ranker that is trained on the kept pairs.

    Parameters
    ----------
    train : RankingData
        Training data with at least one preference pair.
    backend : ranker, default RankRLS()
        A fitness backend, with ``fit_population``, or a ranker in the style of scikit-learn, which `RankerAdapter`
        adapts.
    metric : Metric, default NDCG(10)
    unit : {"pair", "document", "query"}, default "pair"
        What a bit stands for; in the paper it is a pair. With "document" a pair is kept if both of its documents are,
        with "query" if its query is.
    objectives : sequence of str or Objective, default ("pairs", "error")
        Minimised; see `moerank.mofsrank.objectives`.
    workers : int, default 1
        Threads; the result does not depend on it.
    settings : InstanceSelectionSettings, optional
        Probabilities of crossover and mutation, and the range `density` of the shares of ones in the initial
        population, (0.05, 0.5), drawn log-uniformly. The search hardly lowers them afterwards, so the lower end decides
        how few pairs are kept. Each setting can also be a keyword argument, such as ``density=(0.02, 0.1)``.

    Notes
    -----
    The paper leaves the initial population and the operators open; here they are sparse strings, uniform crossover with
    probability 0.9 and bit flips with probability 1 / n_bits. An evaluation is one training by `backend` and one
    metric on all documents: O(n_pairs + n_documents · n_features) for the linear backends.

    References
    ----------
    F. Cheng, W. Guo, X. Zhang: MOFSRank. Complexity, 2018, formula (1) and Algorithm 2.

    Examples
    --------
    >>> from moerank.data import RankingData
    >>> import numpy as np
    >>> from moerank.metrics import NDCG
    >>> train = RankingData([[0.1, 0.5], [0.9, 0.4], [0.5, 0.6]], y=[0, 2, 1], qid=0)
    >>> subsets = np.array([[True, False, False], [True, True, True]])
    >>> InstanceSelection(train, metric=NDCG(2)).evaluate(subsets)
    array([[1., 0.],
           [3., 0.]])
    """

    settings: InstanceSelectionSettings

    def __init__(
        self,
        train: RankingData,
        backend: FitnessBackend | AnyRanker | None = None,
        metric: Metric | None = None,
        settings: InstanceSelectionSettings | None = None,
        *,
        unit: Unit = "pair",
        objectives: Sequence[ObjectiveLike] = ("pairs", "error"),
        workers: int = 1,
        **keywords: Any,
    ) -> None:
        train.require_pairs()
        n_units = {"pair": train.n_pairs, "document": train.n_documents, "query": train.n_queries}
        check_choice(n_units, unit=unit)
        super().__init__(
            train,
            as_backend(backend),
            metric,
            n_units[unit],
            objectives,
            settings_with(InstanceSelectionSettings, settings, keywords),
            workers,
            vtype=bool,
        )
        self.unit = unit
        self.packs = unit == "pair" and getattr(self.backend, "takes_packed", False)

    def operators(self) -> Operators:
        """Return sparse sampling, uniform crossover, bit flips and elimination of equal strings by digest."""
        return {
            "sampling": DensitySampling(*self.settings.density),
            "crossover": UniformCrossover(self.settings.crossover),
            "mutation": SparseBitFlip(self.settings.mutation),
            "eliminate_duplicates": DigestDuplicates(),
        }

    def _is_empty(self, X: Array) -> Mask:
        """Return whether no pair is left to train on."""
        if self.unit == "pair":
            return super()._is_empty(X)
        return n_pairs_kept(self.train, self.unit, X) == 0

    def _train(self, X: Array) -> Population:
        return train_population(self.backend, self.train, pair_mask=X, unit=self.unit)

    def _candidates(self, X: Array) -> Candidates:
        populations = in_pieces(self._train, X, self.workers)
        n_pairs = in_pieces(partial(n_pairs_kept, self.train, self.unit), X, self.workers)
        return self._as_candidates(
            np.ones((len(X), self.train.n_features), bool),
            side_by_side(populations),
            n_pairs=np.concatenate(n_pairs),
        )


def default_unit(train: RankingData) -> Unit:
    """Return "pair" for up to `MAX_PAIRS` pairs without weights, otherwise "query"."""
    return "pair" if train.n_pairs <= MAX_PAIRS and not train.is_weighted else "query"


def n_pairs_kept(train: RankingData, unit: Unit, masks: Array) -> Integers:
    """Return the number of preference pairs that each row of `masks` (n_individuals, n_units), or packed row, keeps."""
    if unit == "pair":
        return n_ones(np.packbits(masks, axis=1) if masks.dtype == bool else masks)
    if unit == "query":
        return masks @ train.label_runs.n_pairs_of
    return n_pairs_of_documents(train, masks)


def evenly_spaced(n: int, maximum: int) -> Integers:
    """Return at most `maximum` of the numbers 0 to n − 1, evenly spaced from the first to the last.

    >>> evenly_spaced(10, 4).tolist()
    [0, 3, 6, 9]
    """
    return np.unique(np.linspace(0, n - 1, min(maximum, n)).round().astype(np.int64))


def spread_along_front(X: Mask, F: Matrix, maximum: int, *, include_all: bool) -> Mask:
    """Return at most `maximum` subsets (n_chosen, n_units) of a front, evenly spaced by size, the smallest first.

    The size is the first column of F. With `include_all` the subset of all units is one of them, whether it is in the
    front or not.
    """
    order = np.lexsort(F.T[::-1])
    if include_all:
        order = order[~X[order].all(axis=1)]
        maximum -= 1
    subsets = X[order[evenly_spaced(len(order), maximum)]]
    return np.vstack([subsets, np.ones((int(include_all), X.shape[1]), bool)])

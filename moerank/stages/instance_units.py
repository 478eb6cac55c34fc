"""What one bit of the first stage stands for: a preference pair, a document, or a query."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.checks import check_room
from moerank.data import RankingData
from moerank.data.pair_counts import n_pairs_of_documents, n_pairs_of_queries
from moerank.rankers import FitnessBackend, LinearPopulation, Population, train_population

__all__ = ["MOST_PAIRS", "Unit", "count_units", "default_unit", "n_pairs_kept", "train_on_units"]

Unit: TypeAlias = Literal["pair", "document", "query"]
"""A pair of documents counts where both are kept, a pair of a query where the query is."""

Mask: TypeAlias = NDArray[np.bool_]

MOST_PAIRS = 5_000_000
"""Up to as many preference pairs have a bit each, unless the user says otherwise."""


def default_unit(train: RankingData) -> Unit:
    """Return "pair" for up to five million pairs that are not in shards, else "query"."""
    return "pair" if train.n_pairs <= MOST_PAIRS and train.n_shards == 1 else "query"


def count_units(train: RankingData, unit: Unit) -> int:
    """Return how many there are: the length of a string."""
    counts = {"pair": train.n_pairs, "document": train.n_documents, "query": train.n_queries}
    return counts[unit]


def n_pairs_kept(train: RankingData, unit: Unit, masks: Mask) -> NDArray[np.int64]:
    """Return the number of preference pairs that each string of `masks` (n_individuals, n_units) keeps."""
    if unit == "pair":
        return np.array([np.count_nonzero(mask) for mask in masks], np.int64)
    return n_pairs_of_queries(train, masks) if unit == "query" else n_pairs_of_documents(train, masks)


def train_on_units(
    backend: FitnessBackend, train: RankingData, unit: Unit, masks: Mask | None, feature_mask: Mask | None = None
) -> Population:
    """Let a backend train one ranker on the pairs that each string keeps.

    Parameters
    ----------
    backend : ranker with ``fit_population``
        One that has ``fit_queries`` or ``fit_documents``, too, trains on these without listing their pairs.
    masks : ndarray of bool, shape (n_individuals, n_units) or (n_units,)
        One string without the first axis is shared by all; None keeps everything.
    feature_mask : ndarray of bool, shape (n_individuals, n_features), optional

    Raises
    ------
    ValueError
        If the pairs would have to be listed, and are too many for that.
    """
    if masks is None or (masks.ndim == 1 and masks.all()):
        return train_population(backend, train, feature_mask=feature_mask)
    fit = {"document": "fit_documents", "query": "fit_queries"}.get(unit)
    if fit is not None and hasattr(backend, fit):
        return LinearPopulation(getattr(backend, fit)(train, masks, feature_mask))
    return train_population(backend, train, pair_mask=_pair_mask(train, unit, masks), feature_mask=feature_mask)


def _pair_mask(train: RankingData, unit: Unit, masks: Mask) -> Mask:
    """Return the preference pairs that each string keeps, shape (…, n_pairs)."""
    if unit == "pair":
        return masks
    n_pairs, n_strings = train.n_pairs, len(np.atleast_2d(masks))
    check_room(
        f"{n_pairs:,} preference pairs, listed for each of {n_strings} strings (which RankRLS, RankSVM and FSMRank do "
        "without if documents or queries are the units),",
        n_pairs * (n_strings + 8),
    )
    better, worse = train.pairs.better, train.pairs.worse
    if unit == "document":
        return masks[..., better] & masks[..., worse]
    query = np.repeat(np.arange(train.n_queries), np.diff(train.offsets))
    return masks[..., query[better]]

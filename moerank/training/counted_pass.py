"""One pass over the preference pairs of some documents, counted and not listed: what it adds up for a population.

The problem of all pairs (`moerank.training.counted_problem`) asks for such sums, shard by shard where the documents are
in shards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.kernels.lanes import lanes, word_type
from moerank.kernels.places import places_of
from moerank.kernels.run_pass import centres, rows_by_run, run_pass
from moerank.training.losses import PairLoss, Target

__all__ = ["sums_of_pass"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

NOBODY_CHOOSES: Mask = np.zeros((0, 0), np.bool_)


def sums_of_pass(
    data: RankingData,
    loss: PairLoss,
    target: Target,
    task: NDArray[np.int64],
    feature_mask: Mask,
    w: NDArray[np.floating[Any]],
    v: NDArray[np.floating[Any]],
    documents: Mask | None,
    queries: Mask | None,
) -> tuple[Matrix, Matrix]:
    """Return the sums of vectors and of slacks of a pass, as `moerank.kernels.run_pass` defines them.

    Parameters
    ----------
    data : RankingData
    loss : PairLoss
    target : Target
        The margin of a pair.
    task : ndarray of int64, shape (n_individuals,)
    feature_mask : ndarray of bool, shape (n_individuals, n_features)
    w, v : ndarray, shape (n_places,)
        Weights and directions of the features of each individual, one individual after the other, in the precision of
        the pass.
    documents, queries : ndarray of bool, optional
        Whose pairs count, shapes (n_individuals, n_documents) and (n_individuals, n_queries), or one row for all.

    Returns
    -------
    sums : ndarray, shape (n_places,)
    slack : ndarray, shape (n_individuals,)
    """
    sorted_rows, runs = _Rows.of(data), data.label_runs
    used, begin, place = _places(feature_mask)
    sums, slack = np.zeros(len(place)), np.zeros(len(feature_mask))
    shift = np.asarray(target.per_label * data.y, np.float64) if target.per_label else np.empty(0)
    if len(sorted_rows.counted):
        run_pass(
            data.columns, sorted_rows.centres, data.offsets, sorted_rows.counted, runs.first, sorted_rows.start,
            sorted_rows.row, used, begin, place, w, v, task,
            NOBODY_CHOOSES if documents is None else documents, NOBODY_CHOOSES if queries is None else queries,
            target.margin, shift, loss.one_sided, _prefixes(w.dtype.type), sums, slack,
        )  # fmt: skip
    return sums, slack


class _Rows(NamedTuple):
    """What passes need of the documents beside their features and labels.

    Attributes
    ----------
    counted : ndarray of int64
        The queries with pairs.
    row, start : ndarray
        The documents by run, and where each run begins.
    centres : ndarray, shape (n_features, n_queries)
    """

    counted: NDArray[np.int64]
    row: NDArray[np.int32]
    start: NDArray[np.int64]
    centres: Matrix

    @classmethod
    def of(cls, data: RankingData) -> _Rows:
        def make() -> _Rows:
            runs = data.label_runs
            sorted_rows = rows_by_run(runs.run, len(runs.n_worse))
            return cls(np.flatnonzero(runs.n_pairs_of), *sorted_rows, centres(data.columns, data.offsets))

        return data.remember("rows of a pass", make)


def _places(feature_mask: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return where a pass finds the features of each individual: `used`, `begin` and `place` of `run_pass`."""
    used = np.flatnonzero(feature_mask.any(axis=0))
    return used, *places_of(feature_mask[:, used])


def _prefixes(precision: type[np.floating[Any]]) -> NDArray[np.unsignedinteger[Any]]:
    """Return the words of which number l has the bits of the lanes before lane l."""
    width = lanes(precision)
    return np.array([2**lane - 1 for lane in range(width)], word_type(width))

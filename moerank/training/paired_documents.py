"""The documents that take part in preference pairs: no other moves a ranker that is trained on pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.kernels.counted_sums import CountedPairs

__all__ = ["PairedDocuments"]


@dataclass(frozen=True, eq=False)
class PairedDocuments:
    """The documents that take part in preference pairs.

    Attributes
    ----------
    rows : ndarray of bool, shape (n_documents,)
        Whether a document's query has different labels.
    pairs : CountedPairs
        The pairs of those documents, which are numbered anew.
    """

    rows: NDArray[np.bool_]
    pairs: CountedPairs

    @classmethod
    def of(cls, data: RankingData) -> PairedDocuments:
        """Return the documents of a data set, remembered with it."""

        def make() -> PairedDocuments:
            everything = CountedPairs(data.y, data.offsets)
            paired = everything.n_levels > 1
            sizes = np.diff(data.offsets)
            rows = np.repeat(paired, sizes)
            return cls(rows, CountedPairs(data.y[rows], np.append(0, np.cumsum(sizes[paired]))))

        return data.remember("paired documents", make)

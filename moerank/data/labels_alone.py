"""Labels without the features that documents were ranked by, which is all that a metric looks at."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from moerank.data.ranking_data import RankingData

__all__ = ["labels_alone"]


def labels_alone(y: ArrayLike, qid: ArrayLike | None) -> RankingData:
    """Return test data for a metric: labels and queries beside a feature that is 0.

    Raises
    ------
    ValueError
        For malformed labels or queries; see `RankingData`.

    Examples
    --------
    >>> labels_alone([0, 1, 0], qid=[1, 1, 2]).n_queries
    2
    """
    return RankingData(np.zeros((len(np.asarray(y)), 1)), y, qid, name="test data")

"""Sums of packed matrices, one per query, over the queries of each individual, always in the order of the queries.

A product masks × matrices by a linear algebra library would be as fast, but the last bits of a row would depend on how
many rows there are. Here an individual's sum depends on nothing but its own queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["sums_over_queries"]

ENTRIES = 256
"""Entries that are added together; those of `QUERIES` queries stay in the second level of the cache."""

QUERIES = 512


@kernel
def sums_over_queries(packed: NDArray[np.floating[Any]], query_mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return Σ of the rows of `packed` (n_queries, n_entries) that each row of `query_mask` keeps.

    Shape (n_individuals, n_entries), summed in double precision in order of query. O(n_individuals · n_queries ·
    n_entries), the queries that an individual leaves out costing nothing.
    """
    n_queries, n_entries = packed.shape
    sums = np.zeros((len(query_mask), n_entries))
    for first in range(0, n_queries, QUERIES):
        last = min(first + QUERIES, n_queries)
        for begin in range(0, n_entries, ENTRIES):
            end = min(begin + ENTRIES, n_entries)
            for individual in range(len(query_mask)):
                for q in range(first, last):
                    if query_mask[individual, q]:
                        for entry in range(begin, end):
                            sums[individual, entry] += packed[q, entry]
    return sums

"""Tiles of features: whole queries copied from columns into blocks that stay in the cache.

A tile holds four vectors of documents, feature by feature: the u-th feature has the rows ``(t · n_used + u) ·
TILE`` and the next three in tile t. Each query begins a new vector; the numbers after its last document are
finite.
"""

from typing import TypeAlias

import numpy as np

from moerank.arrays import Floats, Integers, Mask
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import load_at, prefetch, spread, store

# Vectors of a tile: as many sums run side by side, which hides the latency of an addition.
TILE = 4

# Approximate number of documents in a block; a longer query forms a block alone.
TILED_BLOCK = 512

# Features between the one that is copied and the one that is prefetched.
AHEAD = 4

# `features`, `begin` and `position`: individual i has ``features[position[k]]``, k from ``begin[i]`` to
# ``begin[i + 1]``, increasing; each of the features belongs to some individual.
FeatureLists: TypeAlias = tuple[Integers, Integers, Integers]


@kernel
def longest_query(offsets: Integers, query: Integers) -> int:
    """Return the number of documents of the longest of these queries."""
    longest = 0
    for q in query:
        longest = max(longest, offsets[q + 1] - offsets[q])
    return longest


@kernel
def cut_block(
    offsets: Integers, query: Integers, begin: int, width: int, first_vector: Integers
) -> tuple[int, int]:
    """Return the end of the block of queries that begins at index `begin` of `query`, and its number of vectors.

    ``first_vector`` (TILED_BLOCK + 1,) receives where each query of the block begins.
    """
    end, n_vectors = begin, 0
    while end < len(query) and end - begin < TILED_BLOCK:
        size = (offsets[query[end] + 1] - offsets[query[end]] + width - 1) // width
        if end > begin and (n_vectors + size) * width > TILED_BLOCK:
            break
        first_vector[end - begin] = n_vectors
        n_vectors += size
        end += 1
    return end, n_vectors


@kernel
def copy_to_tiles(
    columns: Floats,
    n_documents: int,
    features: Integers,
    offsets: Integers,
    queries: Integers,
    first_vector: Integers,
    tiles: Floats,
) -> None:
    """Copy the features of the queries of a block, in the precision of the tiles.

    `columns` are the numbers of all features, one feature after the other.
    """
    flat = tiles.reshape(-1)
    n_used, width = len(features), tiles.shape[1]
    line = 64 // columns.itemsize
    like = spread(tiles.dtype.type(0))
    for u in range(n_used):
        # Features are far apart in memory: without this the processor would wait for each one.
        ahead = features[min(u + AHEAD, n_used - 1)] * n_documents
        for source in range(offsets[queries[0]], offsets[queries[-1] + 1], line):
            prefetch(columns, ahead + source)
        column = features[u] * n_documents
        for q in range(len(queries)):
            source, stop = offsets[queries[q]], offsets[queries[q] + 1]
            within = first_vector[q] % TILE
            target = (first_vector[q] - within) * n_used + u * TILE + within
            full_end = source + (stop - source - 1) // width * width
            if full_end + width <= n_documents:
                full_end = stop
            for row in range(source, full_end, width):
                store(tiles, target, load_at(like, columns, column + row))
                target += 1
                within += 1
                if within == TILE:  # the next tile is n_used features on
                    within = 0
                    target += (n_used - 1) * TILE
            for row in range(full_end, stop):  # a vector may not reach beyond the last document
                flat[target * width + row - full_end] = columns[column + row]


def true_columns(mask: Mask) -> tuple[Integers, Integers]:
    """Return where the true columns of each row begin, shape (n_rows + 1,), and these columns, shape (n_true,).

    ``values[mask]`` has the same order. Both are contiguous, so that kernels are compiled once.

    >>> begin, column = true_columns(np.array([[True, False, True], [False, True, False]]))
    >>> begin.tolist(), column.tolist()
    ([0, 2, 3], [0, 2, 1])
    """
    row, column = np.nonzero(mask)
    return np.searchsorted(row, np.arange(len(mask) + 1)), np.ascontiguousarray(column)


def feature_lists(feature_mask: Mask) -> FeatureLists:
    """Return the features of each row of a mask (n_individuals, n_features), as kernels on tiles read them.

    >>> [array.tolist() for array in feature_lists(np.array([[True, False, True], [False, False, True]]))]
    [[0, 2], [0, 2, 3], [0, 1, 1]]
    """
    features = np.flatnonzero(feature_mask.any(axis=0))
    return features, *true_columns(feature_mask[:, features])

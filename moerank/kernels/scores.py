"""Scores of a population of linear rankers, whose bits do not depend on the other individuals and documents."""

from collections.abc import Callable, Sequence

import numpy as np

from moerank.arrays import Array, Floats, Integers, Matrix, Vector
from moerank.kernels.compiled import kernel, read_only
from moerank.kernels.lanes import lanes
from moerank.kernels.pair_pass import project, used_features
from moerank.kernels.threads import in_pieces


def linear_scores(X: Floats, W: Matrix) -> Matrix:
    """Return the scores (n_documents, n_individuals) of the rankers in the rows of W (n_individuals, n_features).

    X (n_documents, n_features) is copied unless it is C-contiguous. A score is summed in the precision of X, to which W
    is rounded, in feature order. A product by a linear algebra library may give two identical documents different last
    bits, depending on their row and on the batch, and so break ties at random. O(n_documents · n_individuals · k), k
    the number of features that any of the neighbours in a vector uses.
    """
    tables = read_only(np.ascontiguousarray(X)), read_only(np.ascontiguousarray(W))
    scores: Matrix = _scores(*tables, lanes(X.dtype.type))
    return scores


def values_by_blocks(
    measure: Callable[..., Matrix],
    plan: tuple[Array, ...],
    X: Floats,
    W: Matrix,
    offsets: Integers,
    blocks: Sequence[tuple[int, int]],
    workers: int = 1,
) -> Matrix:
    """Return the value (n_queries, n_individuals) of each query under linear rankers, scored block by block.

    measure : a kernel of `moerank.kernels.counted_ranks`
    plan : its arguments after scores and offsets, for all queries
    X, W : as in `linear_scores`
    offsets : (n_queries + 1,)
    blocks : where the queries of each block begin and end
    workers : threads that share the blocks
    """
    values = np.zeros((len(offsets) - 1, len(W)))

    def fill(part: Sequence[tuple[int, int]]) -> None:
        for begin, end in part:
            block_offsets = offsets[begin : end + 1]
            scores = linear_scores(X[block_offsets[0] : block_offsets[-1]], W)
            part_of_plan = _part_of_plan(plan, begin, end, block_offsets)
            values[begin:end] = measure(
                read_only(scores), read_only(block_offsets - block_offsets[0]), *part_of_plan
            )

    in_pieces(fill, blocks, workers, 1)
    return values


def _part_of_plan(
    plan: tuple[Array, ...], begin: int, end: int, offsets: Integers
) -> tuple[Array, ...]:
    """Return the plan of the queries `begin` to `end`, whose rows begin at `offsets` (end − begin + 1,)."""
    query, gain, *rest = plan
    start, stop = np.searchsorted(query, [begin, end])
    part = query[start:stop] - begin, gain[offsets[0] : offsets[-1]]
    if len(rest) < 4:
        return *part, *rest
    discount, depth, ideal, ideal_first = rest
    return *part, discount, depth[start:stop], ideal, ideal_first[start : stop + 1]


@kernel
def tree_scores(
    X: Matrix,
    columns: Integers,
    thresholds: Vector,
    left_child: Integers,
    right_child: Integers,
    leaves: Vector,
    roots: Integers,
) -> Vector:
    """Return for each row of X the sum of its leaves in tree order; the lists are those of `Forest`."""
    scores = np.zeros(len(X))
    for i in range(len(X)):
        for root in roots:
            node = root
            while node >= 0:
                node = (
                    left_child[node]
                    if X[i, columns[node]] <= thresholds[node]
                    else right_child[node]
                )
            scores[i] += leaves[-1 - node]
    return scores


@kernel
def _scores(X: Floats, W: Matrix, width: int) -> Matrix:
    n_individuals = len(W)
    scores = np.empty((len(X), n_individuals))
    block = np.empty((len(X), width), X.dtype)
    for start in range(0, n_individuals, width):
        n = min(width, n_individuals - start)
        weights = np.zeros((W.shape[1], width), X.dtype)
        for lane in range(n):
            for f in range(W.shape[1]):
                weights[f, lane] = W[start + lane, f]
        project(X, weights, used_features(weights), block)
        for i in range(len(X)):
            for lane in range(n):
                scores[i, start + lane] = block[i, lane]
    return scores

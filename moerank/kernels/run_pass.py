"""Sums over preference pairs by runs of labels, for many individuals, without a list of pairs.

Where documents are sorted by label, the worse documents of a document are all documents of its query before its own
run. Documents are the lanes: an individual takes time for its own features only, and its sums do not depend on the
others. Whole queries are processed in blocks of about 512 documents. The features of a block, centred in their queries,
are copied into tiles that stay in the cache: there all individuals are scored, their scores are replaced by the sums
over the pairs of each document, and these are multiplied by the features.

In a query with n documents and runs of labels a pass over its pairs takes O(n²) at worst, n² / 32 vector operations in
single precision; up to some 5,000 documents that is faster than sorting the scores.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Floats, Integers, Mask, Matrix, Vector, Words
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import blend, fused, load, load_mask, put, spread, store, sum_four
from moerank.kernels.tiles import (
    TILE,
    TILED_BLOCK,
    FeatureLists,
    copy_to_tiles,
    cut_block,
    longest_query,
)

# `query`, `first_run`, `start` and `row`: the queries with pairs, increasing; query q has the runs ``first_run[q]`` to
# ``first_run[q + 1]``, run r the documents ``row[start[r]]`` to ``row[start[r + 1]]``.
RunOrder: TypeAlias = tuple[Integers, Integers, Integers, NDArray[np.int32]]


@kernel
def _add_pairs(
    loser: Floats,
    level: Floats,
    move: Floats | None,
    moved: Floats | None,
    total: Floats,
    sums: Floats,
    runs: tuple[Integers, int, int],
    prefix: Words,
    four: Floats,
) -> float:
    """Add d to the winner and −d to the loser of every pair of a query with d > 0, and return Σ d.

    With `move` the difference of the moves replaces d. Four winners are processed side by side. numba compiles the two
    cases apart, because it knows at compile time whether an argument is None.
    """
    start, first_run, end_run = runs
    width, four_sums = len(prefix), four.reshape(-1)
    zero, low = spread(loser.dtype.type(0)), spread(loser.dtype.type(-np.inf))
    nobody = loser.dtype.type(-np.inf)
    nothing = zero, zero, zero, zero
    slack = zero
    for r in range(first_run + 1, end_run):
        begin, stop = start[r] - start[first_run], start[r + 1] - start[first_run]
        n_full, rest = begin // width, begin % width
        for i in range(begin, stop, 4):
            a = z = gains = d = nothing
            for j in range(4):
                a = put(a, j, spread(level[i + j] if i + j < stop else nobody))
                if moved is not None:
                    z = put(z, j, spread(moved[i + j]))
            for vector in range(n_full + (rest > 0)):
                s = load(loser, vector)
                if vector == n_full:
                    s = blend(load_mask(prefix, rest), s, low)
                for j in range(4):
                    gap = a[j] + s
                    change = gap if move is None else z[j] - load(move, vector)
                    d = put(d, j, blend(gap > zero, change, zero))
                    gains = put(gains, j, gains[j] + d[j])
                store(total, vector, load(total, vector) - ((d[0] + d[1]) + (d[2] + d[3])))
            won = sum_four(*gains)
            slack = slack + won
            store(four, 0, won)
            for j in range(4):
                sums[i + j] += four_sums[j]
    store(four, 0, slack)
    return (
        np.float64(four[0, 0])
        + np.float64(four[0, 1])
        + np.float64(four[0, 2])
        + np.float64(four[0, 3])
    )


@kernel
def _add_all_pairs(
    score: Floats, is_kept: Mask, margin: float, sums: Floats, runs: tuple[Integers, int, int]
) -> float:
    """Add d = margin − (sᵢ − sⱼ) to the winner and −d to the loser of every pair of a query; return Σ d.

    Sums per run are enough: a document with w worse and b better ones gets (w − b) margin − (w + b) s plus the scores
    of all these. Pairs count if `is_kept` (n,) is true for both documents.
    """
    start, first_run, end_run = runs
    slack = 0.0
    # The sums of each document over the worse documents, then over the better ones.
    for side in (1.0, -1.0):
        other = 0.0
        n_others = 0
        for number in range(end_run - first_run):
            r = first_run + number if side > 0 else end_run - 1 - number
            begin, stop = start[r] - start[first_run], start[r + 1] - start[first_run]
            for k in range(begin, stop):
                if is_kept[k]:
                    d = n_others * (side * margin - score[k]) + other
                    sums[k] += d
                    slack += d if side > 0 else 0.0
            for k in range(begin, stop):
                if is_kept[k]:
                    other += score[k]
                    n_others += 1
    return slack


# Tasks of a pass for an individual: nothing; the sum of residuals at w; the second derivative at w times v.
IDLE, RESIDUALS, CURVATURE = 0, 1, 2


@kernel
def centres(columns: Floats, offsets: Integers) -> Matrix:
    """Return the mean of each feature in each query, shape (n_features, n_queries); exact for a constant."""
    result = np.empty((len(columns), len(offsets) - 1))
    for f in range(len(columns)):
        for q in range(len(offsets) - 1):
            begin, end = offsets[q], offsets[q + 1]
            total = 0.0
            constant = True
            for i in range(begin, end):
                total += columns[f, i]
                constant = constant and columns[f, i] == columns[f, begin]
            result[f, q] = columns[f, begin] if constant else total / (end - begin)
    return result


@kernel
def run_pass(
    columns: NDArray[np.uint8],
    is_single: bool,
    centre: Matrix,
    offsets: Integers,
    order: RunOrder,
    lists: FeatureLists,
    w: Floats,
    v: Floats,
    task: Integers,
    unit_masks: tuple[Mask, Mask],
    margin: float,
    shift: Vector,
    hinge: bool,
    prefix: Words,
    sums: Matrix,
    slack: Vector,
) -> None:
    """Sum over the preference pairs (i, j) of each individual, with targets t = margin + shiftᵢ − shiftⱼ.

    Only pairs with d = t − wᵀ(xᵢ − xⱼ) > 0 count with the `hinge`, else all. The task of an individual is `RESIDUALS`
    for Σ d (xᵢ − xⱼ) and Σ t d, or `CURVATURE` for Σ vᵀ(xᵢ − xⱼ) (xᵢ − xⱼ).

    columns : (n_features · n_documents · 4 or 8,), the bytes of all features, one after the other, in single precision
        if `is_single`, else in double; so the pass is compiled once for both
    centre : (n_features, n_queries), subtracted in each query
    offsets : (n_queries + 1,)
    order, lists : see `RunOrder` and `FeatureLists`
    w, v : (n_own,), weights and directions in the precision of the pass
    task : (n_individuals,)
    unit_masks : (n_individuals, n_documents), the documents whose pairs count; one row for all individuals, or no
        row for all documents; and (n_individuals, n_queries), the same for queries
    shift : (n_documents,), or empty for 0
    prefix : (lanes,) words; word l has the bits of the lanes before lane l
    sums : (n_own,), receives the sums of vectors, on the individual's features
    slack : (n_individuals,), receives Σ t d
    """
    query, first_run, start, row = order
    features, begin, position = lists
    documents, queries = unit_masks
    n_individuals, width = len(begin) - 1, len(prefix)
    longest = longest_query(offsets, query)
    step = TILE * width
    room = (max(TILED_BLOCK, longest) + step - 1) // step * step
    tiles = np.zeros((room // width * len(features), width), w.dtype)
    scores = np.zeros((n_individuals * (room // width), width), w.dtype)
    moves = np.zeros((n_individuals * (room // width), width), w.dtype)
    partial = np.zeros((len(position) + 3, width), w.dtype)
    sorted_size = longest // width + 2
    loser, winner = np.empty((sorted_size, width), w.dtype), np.empty((sorted_size, width), w.dtype)
    move, total = np.empty((sorted_size, width), w.dtype), np.empty((sorted_size, width), w.dtype)
    four = np.empty((1, width), w.dtype)
    # Views are made once: inside the loops each would count its references.
    score, moved = scores.reshape(-1), moves.reshape(-1)
    as_loser = loser.reshape(-1)
    as_winner = winner.reshape(-1)
    as_move = move.reshape(-1)
    added = total.reshape(-1)
    nothing = spread(w.dtype.type(0))
    is_kept = np.ones(longest, np.bool_)
    label_order, label_rank = np.empty(room, np.uint32), np.empty(room, np.uint32)
    sums[:] = 0.0
    slack[:] = 0.0
    first_vector = np.empty(TILED_BLOCK + 1, np.int64)  # of each query of the block
    c: int = np.int64(0)  # type: ignore[assignment]  # a literal would be a type of its own
    while c < len(query):
        end, n = cut_block(offsets, query, c, width, first_vector)
        for q in range(c, end):
            document = first_vector[q - c] * width
            offset = offsets[query[q]]
            sorted_first = start[first_run[query[q]]]
            for k in range(offsets[query[q] + 1] - offset):
                label_order[document + k] = document + row[sorted_first + k] - offset
                label_rank[document + row[sorted_first + k] - offset] = k
        if is_single:
            copy_to_tiles(
                columns.view(np.float32),
                offsets[-1],
                features,
                offsets,
                query[c:end],
                first_vector,
                tiles,
            )
        else:
            copy_to_tiles(
                columns.view(np.float64),
                offsets[-1],
                features,
                offsets,
                query[c:end],
                first_vector,
                tiles,
            )
        _centre(tiles, features, centre, offsets, query[c:end], first_vector)
        n_tiles = (n + TILE - 1) // TILE
        _score(tiles, n_tiles, lists, w, task, RESIDUALS, scores, room // width)
        _score(tiles, n_tiles, lists, v, task, CURVATURE, moves, room // width)
        for individual in range(n_individuals):
            if task[individual] == IDLE:
                continue
            at = individual * room
            for q in range(c, end):
                document = first_vector[q - c] * width
                r = first_run[query[q]]
                r_end = first_run[query[q] + 1]
                runs = start, r, r_end
                n_of_query = start[r_end] - start[r]
                if len(queries) and not queries[min(individual, len(queries) - 1), query[q]]:
                    for vector in range(at + document, at + document + n_of_query, width):
                        store(scores, vector // width, nothing)
                    continue
                for vector in range(n_of_query // width + 2):
                    store(total, vector, nothing)
                _gather(score, at, label_order, document, n_of_query, 0, as_loser)
                if len(documents):
                    mask = min(individual, len(documents) - 1)
                    for k in range(n_of_query):
                        is_kept[k] = documents[mask, row[start[r] + k]]
                if len(shift):
                    for k in range(n_of_query):
                        as_loser[k] -= shift[row[start[r] + k]]
                if task[individual] == CURVATURE:
                    _gather(moved, at, label_order, document, n_of_query, 0, as_move)
                total_slack = 0.0
                if hinge:
                    for k in range(n_of_query):
                        as_winner[k] = w.dtype.type(margin) - as_loser[k]
                    if len(documents):
                        for k in range(n_of_query):
                            if not is_kept[k]:
                                as_loser[k] = as_winner[k] = -np.inf
                    if task[individual] == RESIDUALS:
                        total_slack = _add_pairs(
                            loser, as_winner, None, None, total, added, runs, prefix, four
                        )
                    else:
                        _add_pairs(
                            loser, as_winner, move, as_move, total, added, runs, prefix, four
                        )
                elif task[individual] == RESIDUALS:
                    total_slack = _add_all_pairs(as_loser, is_kept, margin, added, runs)
                else:
                    _add_all_pairs(as_move, is_kept, 0.0, added, runs)
                    for k in range(n_of_query):
                        added[k] = -added[k]
                slack[individual] += margin * total_slack
                if len(shift) and task[individual] == RESIDUALS:
                    for k in range(n_of_query):
                        slack[individual] += shift[row[start[r] + k]] * added[k]
                store(scores, (at + document + n_of_query - 1) // width, nothing)
                _gather(added, 0, label_rank, document, n_of_query, at + document, score)
            for vector in range(n, n_tiles * TILE):
                store(scores, at // width + vector, nothing)
        _pull_back(tiles, n_tiles, lists, task, scores, room // width, partial)
        for k in range(0, len(position), 4):
            store(
                four,
                0,
                sum_four(
                    load(partial, k),
                    load(partial, k + 1),
                    load(partial, k + 2),
                    load(partial, k + 3),
                ),
            )
            for j in range(min(4, len(position) - k)):
                sums[k + j] += four[0, j]
        partial[:] = 0
        c = end


@kernel
def _centre(
    tiles: Floats,
    features: Integers,
    centre: Matrix,
    offsets: Integers,
    queries: Integers,
    first_vector: Integers,
) -> None:
    """Subtract the mean in each query of the block from each of the features."""
    n_used, width = len(features), tiles.shape[1]
    for q in range(len(queries)):
        n_vectors = (offsets[queries[q] + 1] - offsets[queries[q]] + width - 1) // width
        for u in range(n_used):
            mean = spread(tiles.dtype.type(centre[features[u], queries[q]]))
            for vector in range(first_vector[q], first_vector[q] + n_vectors):
                row = (vector - vector % TILE) * n_used + u * TILE + vector % TILE
                store(tiles, row, load(tiles, row) - mean)


@kernel
def _score(
    tiles: Floats,
    n_tiles: int,
    lists: FeatureLists,
    w: Floats,
    task: Integers,
    min_task: int,
    scores: Floats,
    room: int,
) -> None:
    """Sum wᵀx of each tile under each individual whose task is at least `min_task`, in feature order."""
    features, begin, position = lists
    zero = spread(w.dtype.type(0))
    for t in range(n_tiles):
        tile = t * len(features) * TILE
        for individual in range(len(begin) - 1):
            if task[individual] < min_task:
                continue
            sums = zero, zero, zero, zero
            for k in range(begin[individual], begin[individual + 1]):
                weight = spread(w[k])
                x = tile + position[k] * TILE
                for j in range(TILE):
                    sums = put(sums, j, fused(load(tiles, x + j), weight, sums[j]))
            for j in range(TILE):
                store(scores, individual * room + t * TILE + j, sums[j])


@kernel
def _gather(
    values: Floats,
    at: int,
    position: NDArray[np.uint32],
    begin: int,
    n: int,
    target: int,
    result: Floats,
) -> None:
    """Copy the values at ``at + position[begin]``, … one after the other to `result`, from `target` on."""
    for k in range(n):  # unsigned indices are not tested for being negative
        result[np.uint64(target + k)] = values[np.uint64(at) + position[np.uint64(begin + k)]]


@kernel
def _pull_back(
    tiles: Floats,
    n_tiles: int,
    lists: FeatureLists,
    task: Integers,
    documents: Floats,
    room: int,
    partial: Floats,
) -> None:
    """Add xᵀ documents to `partial`, lane by lane, on the features of each individual."""
    features, begin, position = lists
    zero = spread(partial.dtype.type(0))
    for t in range(n_tiles):
        tile = t * len(features) * TILE
        for individual in range(len(begin) - 1):
            if task[individual] == IDLE:
                continue
            source = individual * room + t * TILE
            rows = zero, zero, zero, zero
            for j in range(TILE):
                rows = put(rows, j, load(documents, source + j))
            for k in range(begin[individual], begin[individual + 1]):
                total = load(partial, k)
                for j in range(TILE):
                    total = fused(load(tiles, tile + position[k] * TILE + j), rows[j], total)
                store(partial, k, total)

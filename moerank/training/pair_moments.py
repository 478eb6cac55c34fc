"""Second and first moments of the differences of all preference pairs, from sums per label, and their linear systems.

With x centred in its query, c the number of documents with a label in a query and s their sum, the n − c pairs of each
document and the sums of each label give

    Σ (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ = Σ_q [ Σ_i (n_q − c_{yᵢ}) xᵢ xᵢᵀ + Σ_l s_{q,l} s_{q,l}ᵀ ],

the square of a matrix with the rows √(n_q − c) x and s. Without the centring single-precision features with a mean far
above their spread would lose their digits in differences.
"""

from dataclasses import dataclass

import numpy as np

from moerank.arrays import Array, Floats, FloatType, Integers, Mask, Matrix, Vector
from moerank.checks import check_room, check_square, memory_limit
from moerank.data import RankingData, centre_in_queries, remembered
from moerank.kernels.algebra import (
    MIN_PIVOT,
    centred_stack,
    factorise,
    product,
    solve,
    square,
    sums_over_queries,
)
from moerank.kernels.threads import one_blas_thread

# Approximate number of documents in a block, so large that the product takes most of the time.
MOMENT_BLOCK = 2048

# Maximum size in bytes of the matrices of all queries in double precision; larger ones are in single precision.
DOUBLE_ROOM = 2**29


@dataclass(frozen=True)
class Target:
    """The score difference that a pair (i, j) should have: t = margin + per_label · (yᵢ − yⱼ)."""

    margin: float
    per_label: float

    def moment(self, moments: "PairMoments | QueryMoments") -> Matrix:
        """Return the mean of t (xᵢ − xⱼ), shape (n_features,), or its sum for each query."""
        return self.margin * moments.unit + self.per_label * moments.difference


# The same margin for every pair.
UNIT = Target(margin=1.0, per_label=0.0)
# The difference of the labels.
DIFFERENCE = Target(margin=0.0, per_label=1.0)

TARGETS = {"unit": UNIT, "difference": DIFFERENCE}


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Moments of the differences xᵢ − xⱼ over all preference pairs (i, j)."""

    # Means over the pairs, by their weights v_q u_i u_j if queries or documents have any.
    gram: Matrix  # (n_features, n_features), mean of (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ
    unit: Matrix  # (n_features,), mean of xᵢ − xⱼ
    difference: Matrix  # (n_features,), mean of (yᵢ − yⱼ)(xᵢ − xⱼ)

    @classmethod
    @remembered
    def of(cls, data: RankingData, document_mask: Mask | None = None) -> "PairMoments":
        """Return the moments of the pairs among the documents in `document_mask`, or of all pairs, remembered.

        O(n_documents · n_features²) once, in double precision; besides the features only one block is in memory.
        """
        part = data if document_mask is None else data.with_rows(np.flatnonzero(document_mask))
        *sums, n_pairs = _sums(part)
        return cls(*(np.divide(total, n_pairs, out=total) for total in sums))


@dataclass(frozen=True, eq=False)
class QueryMoments:
    """Sums over the preference pairs of each query, which add up to the sums of any subset of the queries.

    With `every_pair` they are sums over all document pairs of a query, equal labels included. Each pair counts
    1 / (2 |Q|), and a query counts as one pair, so the sums are X̃ᵀX̃, 0 and X̃ᵀỹ of features and labels centred in it.

    `packed` is in double precision, or in single if that takes more than `DOUBLE_ROOM` bytes. The error of an entry is
    then relative to the largest entry of the query, so the scales of the features must be comparable.
    """

    packed: Floats  # (n_queries, n_features · (n_features + 1) / 2), lower triangles of Σ (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ, by rows
    unit: Matrix  # (n_queries, n_features), Σ (xᵢ − xⱼ)
    difference: Matrix  # (n_queries, n_features), Σ (yᵢ − yⱼ)(xᵢ − xⱼ)
    n_pairs: Integers | Vector  # (n_queries,), or the sums of the weights of the pairs

    @classmethod
    @remembered
    def of(cls, data: RankingData, *, every_pair: bool = False) -> "QueryMoments":
        """Return the sums of a data set, remembered with it; O(n_documents · n_features²) once.

        Raises a ValueError if they take more memory than the limit.
        """
        n_features = data.n_features
        rows, columns = np.tril_indices(n_features)
        dtype, n_bytes = _size(data)
        check_room(
            f"a matrix of {n_features} × {n_features} for each of {data.n_queries:,} queries",
            n_bytes,
        )
        packed = np.empty((data.n_queries, len(rows)), dtype)
        unit, difference = np.zeros((2, data.n_queries, n_features))
        for q in range(data.n_queries):
            stack, sums, excess, label_sum = (centred if every_pair else _stack)(data, q, q + 1)
            packed[q] = square(stack)[rows, columns]
            unit[q], difference[q] = product(sums, excess), product(sums, label_sum)
        n_pairs: Integers | Vector = np.ones(data.n_queries, np.int64)
        if not every_pair:
            n_pairs = _weight_of_pairs(data) if data.is_weighted else data.label_runs.n_pairs_of
        return cls(packed, unit, difference, n_pairs)

    @classmethod
    def fit(cls, data: RankingData) -> bool:
        """Return whether the sums of a data set fit the memory limit."""
        return _size(data)[1] <= memory_limit()

    @classmethod
    def means(
        cls, data: RankingData, query_mask: Mask, target: Target, *, every_pair: bool
    ) -> tuple[Matrix, Matrix]:
        """Return the mean square and moment of the pairs of each subset of the queries of a data set.

        Shapes (n_individuals, n_features, n_features) and (n_individuals, n_features); each row of `query_mask`
        (n_individuals, n_queries) keeps at least one pair, and its means do not depend on the other rows.
        """
        sums = cls.of(data, every_pair=every_pair)
        check_square(data.n_features, len(query_mask))
        n_pairs = (query_mask @ sums.n_pairs)[:, None]
        moments = sums_over_queries(target.moment(sums), query_mask)
        squares = np.empty((len(query_mask), data.n_features, data.n_features))
        rows, columns = np.tril_indices(data.n_features)
        squares[:, rows, columns] = squares[:, columns, rows] = (
            sums_over_queries(sums.packed, query_mask) / n_pairs
        )
        return squares, moments / n_pairs


def _sums(data: RankingData) -> tuple[Matrix, Matrix, Matrix, float]:
    """Return the sums of gram, unit and difference, and the number of pairs, or the sum of their weights."""
    check_square(data.n_features)
    gram = np.zeros((data.n_features, data.n_features))
    unit, difference = np.zeros((2, data.n_features))
    for begin, end in data.query_blocks(MOMENT_BLOCK):
        stack, sums, excess, label_sum = _stack(data, begin, end)
        gram += square(stack)
        unit += product(sums, excess)
        difference += product(sums, label_sum)
    n_pairs = _weight_of_pairs(data).sum() if data.is_weighted else data.n_pairs
    return gram, unit, difference, n_pairs


def _weight_of_pairs(data: RankingData) -> Vector:
    """Return Σ v_q u_i u_j over the pairs of each query, shape (n_queries,)."""
    u, v = weights_or_ones(data)
    runs = data.label_runs
    weight = np.bincount(runs.run, u, len(runs.n_worse))
    total = np.add.reduceat(weight, runs.query_begin[:-1])
    squares = np.add.reduceat(weight**2, runs.query_begin[:-1])
    return v * (total**2 - squares) / 2.0


def weights_or_ones(data: RankingData) -> tuple[Vector, Vector]:
    """Return the weights of the documents and of the queries, which are ones if the data have none."""
    documents, queries = data.document_weights, data.query_weights
    return (
        np.ones(data.n_documents) if documents is None else documents,
        np.ones(data.n_queries) if queries is None else queries,
    )


def _size(data: RankingData) -> tuple[FloatType, int]:
    """Return the precision of the matrices of all queries, and the bytes that they take."""
    n_values = data.n_queries * data.n_features * (data.n_features + 1) // 2
    return (np.float64, 8 * n_values) if 8 * n_values <= DOUBLE_ROOM else (np.float32, 4 * n_values)


def _stack(data: RankingData, begin: int, end: int) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Return the factors of the moments of the queries `begin` to `end`.

    The product of `stack` (n_features, n_documents + n_runs) with its transpose is the sum of squares. The sums of x
    over each run (n_features, n_runs) are multiplied by two vectors (n_runs,): for Σ (xᵢ − xⱼ) by the number of
    worse minus better documents, and for Σ (yᵢ − yⱼ)(xᵢ − xⱼ) = Σ n_q yᵢ xᵢ − (Σ y)(Σ x), in which Σ x is 0, by n_q y.
    Labels y count from the lowest one of a query. With weights, sums of weights u replace numbers of documents, also in
    the centring, and the factors of a query are multiplied by the square root of its weight.
    """
    if data.is_weighted:
        return _weighted_stack(data, begin, end)
    runs = data.label_runs
    rows, offsets = _block(data, begin, end)
    block_runs = slice(runs.query_begin[begin], runs.query_begin[end])
    run = runs.run[rows] - runs.query_begin[begin]
    n_worse, n_better = runs.n_worse[block_runs], runs.n_better[block_runs]
    stack = np.empty((data.n_features, len(run) + len(n_worse)))
    root_degree = np.sqrt((n_worse + n_better).astype(float))
    centred_stack(*_flat(data.X, rows), offsets, run, root_degree[run], stack)
    n_labels = runs.n_labels[begin:end]
    label = np.empty(len(n_worse))
    label[run] = data.y[rows]
    # Large labels would multiply the rounding errors of Σ x.
    label -= np.repeat(label[n_worse == 0], n_labels)
    size = np.repeat(np.diff(offsets), n_labels)
    return stack, stack[:, len(run) :], (n_worse - n_better).astype(float), label * size


def _flat(X: Matrix, rows: slice) -> tuple[Vector, int, int]:
    """Return ``flat, stride, start``: feature f of the i-th of the rows is ``flat[f · stride + start + i]``."""
    is_column_major = bool(X.flags.f_contiguous)
    flat = X.T.reshape(-1) if is_column_major else np.ascontiguousarray(X[rows].T).reshape(-1)
    flat.setflags(write=False)  # so that kernels are compiled once
    return (flat, len(X), rows.start) if is_column_major else (flat, rows.stop - rows.start, 0)


def _weighted_stack(
    data: RankingData, begin: int, end: int
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Return the factors of `_stack` for weighted pairs."""
    runs = data.label_runs
    rows, _ = _block(data, begin, end)
    first_run = runs.query_begin[begin:end] - runs.query_begin[begin]
    run = runs.run[rows] - runs.query_begin[begin]
    query = np.repeat(np.arange(end - begin), runs.n_labels[begin:end])
    X, u, root = _weighted_rows(data, begin, end)
    weight, worse, query_weight = weights_of_runs(run, u, first_run, query)
    unlike_weight = query_weight - weight
    order = np.argsort(run, kind="stable")
    run_begin = np.searchsorted(run[order], np.arange(len(query)))
    sums = np.add.reduceat((u[:, None] * X)[order], run_begin, axis=0)
    run_factor = root[query]
    row_factor = np.sqrt(u * unlike_weight[run]) * run_factor[run]
    stack = np.vstack([row_factor[:, None] * X, run_factor[:, None] * sums]).T
    label = np.empty(len(query))
    label[run] = data.y[rows]
    label -= label[first_run][query]
    excess = run_factor * (2.0 * worse - unlike_weight)
    return stack, stack[:, len(run) :], excess, run_factor * label * query_weight


def weights_of_runs(
    run: Array, weight: Vector, first_run: Integers, query: Integers
) -> tuple[Vector, Vector, Vector]:
    """Return for each run the weight of its documents, of the worse documents of its query, and of all of them.

    Shapes (n_runs,), from `run` and `weight` of each document, the first run of each query, and the query of each run.
    """
    size = np.asarray(np.bincount(run, weight, len(query)), float)
    worse = np.cumsum(size) - size
    worse -= worse[first_run][query]
    return size, worse, np.add.reduceat(size, first_run)[query]


def _block(data: RankingData, begin: int, end: int) -> tuple[slice, Integers]:
    """Return the rows of the queries `begin` to `end`, and where each query begins among them."""
    offsets = data.offsets[begin : end + 1]
    return slice(offsets[0], offsets[-1]), offsets - offsets[0]


def _weighted_rows(data: RankingData, begin: int, end: int) -> tuple[Matrix, Vector, Vector]:
    """Return features minus their weighted means, the document weights, and the square roots of the query weights."""
    rows, offsets = _block(data, begin, end)
    document_weights, query_weights = weights_or_ones(data)
    u = document_weights[rows]
    X = data.X[rows].astype(float)
    sums = np.add.reduceat(u[:, None] * X, offsets[:-1], axis=0)
    means = sums / np.add.reduceat(u, offsets[:-1])[:, None]
    root = np.sqrt(query_weights[begin:end])
    return X - np.repeat(means, np.diff(offsets), axis=0), u, root


def centred(data: RankingData, begin: int, end: int) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Return the factors of the moments of all document pairs of the queries `begin` to `end`, as in `_stack`.

    A query Q counts as Σ_Q v / (2 Σu) Σ uᵢ uⱼ (…), which is v Σ uᵢ (…) of centred documents.
    """
    rows, offsets = _block(data, begin, end)
    y = centre_in_queries(data.y[rows], offsets)
    if data.is_weighted:
        X, u, root = _weighted_rows(data, begin, end)
        factor = np.sqrt(u) * np.repeat(root, np.diff(offsets))
        stack = (factor[:, None] * X).T
        return stack, stack, np.zeros(len(u)), factor * y
    stack = centre_in_queries(data.X[rows], offsets).T
    return stack, stack, np.zeros(len(y)), y


def solve_positive_definite(A: Matrix, b: Matrix) -> Matrix:
    """Return x (n,) with A x = b for a positive definite matrix A (n, n), however different the scales of its rows.

    If rounding makes A singular, for example with features of very different scales, its diagonal is scaled to 1, and x
    is the least-squares solution, of several the one with the smallest norm in that scale.

    >>> solve_positive_definite(np.array([[1e18, 1e18], [1e18, 1e18]]), np.array([1e9, 1e9])).round(20).tolist()
    [5e-10, 5e-10]
    """
    mask = np.ones((1, len(b)), bool)
    factor = factorise(np.ascontiguousarray(A), mask)[0]
    square = np.diagonal(A)
    # The share of a pivot above which rounding leaves it intact.
    min_share = max(len(b) * np.finfo(float).eps, 2.0 * MIN_PIVOT)
    if (np.diagonal(factor) ** 2 > min_share * square).all():
        x = np.empty(len(b))
        solve(factor, mask[0], np.array(b), x)
        return x
    scale = np.sqrt(np.where(square > 0, square, 1.0))
    with one_blas_thread():
        solution = np.linalg.lstsq(A / np.outer(scale, scale), b / scale, rcond=None)[0]
    return solution / scale


def forward_path(A: Matrix, b: Matrix, n_steps: int | None = None) -> Integers:
    """Return the features in the order in which they enter: each lowers min_w wᵀA w − 2 bᵀw the most.

    A (n_features, n_features) is positive definite. All features enter unless `n_steps` is given. Ties go to the first
    feature. O(n_steps · n_features²) time.

    >>> forward_path(np.diag([1.0, 1.0, 4.0]), np.array([1.0, 3.0, 4.0])).tolist()
    [1, 2, 0]
    """
    return _pivots(A, b, len(b) if n_steps is None else n_steps, 1.0)


def backward_path(A: Matrix, b: Matrix) -> Integers:
    """Return the features in reverse order of their removal, starting from all features.

    Each step removes the feature without which min_w wᵀA w − 2 bᵀw rises the least, so the first k of the result are
    the last k that remain. Ties go to the first feature. O(n_features³) time.

    >>> backward_path(np.diag([1.0, 1.0, 4.0]), np.array([1.0, 3.0, 4.0])).tolist()
    [1, 2, 0]
    """
    mask = np.ones((1, len(b)), bool)
    factor = factorise(np.ascontiguousarray(A), mask)[0]
    inverse = np.empty_like(A)
    w = np.empty(len(b))
    solve(factor, mask[0], np.array(b), w)
    for row, unit in zip(inverse, np.eye(len(b)), strict=True):
        solve(factor, mask[0], unit, row)
    return _pivots(inverse, w, len(b), -1.0)[::-1].copy()


def _pivots(A: Matrix, b: Matrix, n_steps: int, sign: float) -> Integers:
    """Return the features in order of ``sign · bⱼ² / Aⱼⱼ``, largest first; each is eliminated before the next one.

    With A and b it is the change of the minimum when a feature enters; with the inverse of A and the solution, the
    change when it leaves. All operations are elementwise, so the bits are always the same.
    """
    A, b, unselected = A.copy(), b.copy(), np.ones(len(b), bool)
    order = np.empty(n_steps, np.int64)
    for step in range(n_steps):
        change = sign * b**2 / np.where(unselected, np.diag(A), 1.0)
        order[step] = j = int(np.where(unselected, change, -np.inf).argmax())
        unselected[j] = False
        column = A[:, j] / A[j, j]
        b -= b[j] * column
        A -= np.outer(column, A[j])
    return order

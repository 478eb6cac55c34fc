"""A web search problem of any size, in the shape of MSLR-WEB30K, of which it is known what its features are.

A document has 136 features in single precision, made of numbers a, u uniform on the multiples of 2⁻²⁴ in [0, 1):

* 20 informative ones, a_j;
* 40 copies of these in turn, s·a_j + (1 − s)·u, with s = .9 for the first copy of each and .6 for the second;
* 76 of noise: 30 uniform, u; 24 tails, ((1 − u)^(−1/2) − 1) / 10, and 18 counts, ⌊(1 − u)^(−1/2)⌋ − 1, both of
  infinite variance; 4 that are one integer from 0 to 15 throughout a query.

Its utility is  Σ_j .85^(j−1) a_j + 1.5 · (v₁ + v₂) + w,  with v₁, v₂ uniform for each document and w for each query.
Four limits on it cut the labels 0 to 4, which 52, 32, 13, 2 and 1 of a hundred documents have.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, log
from statistics import NormalDist

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moerank.checks import check_at_least, check_room, size
from moerank.data.draws import Draws
from moerank.data.folds import N_FOLDS, fold_queries
from moerank.data.ranking_data import RankingData
from moerank.data.sharded_data import shard_ends
from moerank.kernels.columns import rows_to_columns

__all__ = ["load_web_fold", "make_web", "web_bytes", "web_shard"]

N_INFORMATIVE, N_UNIFORM, N_TAILS, N_COUNTS, N_OF_QUERY = 20, 30, 24, 18, 4
KEPT = (0.9, 0.6)
"""Share of the informative feature in its first and its second copy."""

N_FEATURES = N_INFORMATIVE * (1 + len(KEPT)) + N_UNIFORM + N_TAILS + N_COUNTS + N_OF_QUERY
WORDS = (N_FEATURES + 2) // 2
"""Of 64 bits for a document: two uniform numbers each, the last two for the noise on its utility."""

MEAN, SPREAD, LONGEST = 115, 0.6, 1251
"""Documents of a query: mean, standard deviation of the logarithm, and the most, which is that of MSLR-WEB30K."""

DECAY, NOISE = np.float32(0.85), np.float32(1.5)
LIMITS = np.array([5.244, 6.081, 6.829, 7.181], np.float32)

BLOCK = 64
"""Queries that are drawn together, from a counter of their own: where one begins depends on no other."""

MOST_SEED = 2**64 - 1


def make_web(n_queries: int = 300, seed: int = 0, dtype: DTypeLike = np.float32) -> RankingData:
    """Make a web search problem with known informative features.

    Parameters
    ----------
    n_queries : int, default 300
        At least 1; MSLR-WEB30K has 31,531. Any number of queries is the beginning of more.
    seed : int, default 0
        From 0 to 2⁶⁴ − 1. The same seed gives the same bits with every version of NumPy.
    dtype : {float32, float64}, default float32
        Of the features; the values are the same.

    Returns
    -------
    RankingData
        About 115 documents per query, 136 features. Their names tell what they are: "informative 1" (the strongest) to
        "informative 20", "copy 2 of 1" (the second of "informative 1"), "uniform 1", "tail 1", "count 1", "query 1".
        Query ids are 1 to `n_queries`. Time O(n_documents · n_features); memory is that of the table and some
        megabytes.

    Raises
    ------
    ValueError
        For numbers outside their range, and for a table that is larger than the limit of `check_room`.

    Examples
    --------
    >>> data = make_web(20)
    >>> data
    RankingData('web': 2290 documents, 20 queries, 136 features)
    >>> data.X.dtype, data.feature_names[:3]
    (dtype('float32'), ('informative 18', 'copy 1 of 15', 'tail 12'))
    """
    offsets = _offsets(n_queries, seed, dtype)
    return _documents(offsets, np.arange(n_queries), seed, dtype, "web")


def load_web_fold(
    fold: int = 1, *, n_queries: int = 300, seed: int = 0, dtype: DTypeLike = np.float32
) -> tuple[RankingData, RankingData, RankingData]:
    """Make a web search problem and split its queries as LETOR does.

    Parameters
    ----------
    fold : int, default 1
        From 1 to 5, see `split_fold`.
    n_queries, seed, dtype
        As in `make_web`; at least 5 queries.

    Returns
    -------
    train, vali, test : RankingData
        Three fifths, one fifth and one fifth of the queries, as `split_fold` makes them of `make_web`; but no
        document is ever held twice.

    Examples
    --------
    >>> train, vali, test = load_web_fold(2, n_queries=10)
    >>> train
    RankingData('web, fold 2, training': 927 documents, 6 queries, 136 features)
    """
    check_at_least(1, N_FOLDS, fold=fold)
    offsets = _offsets(n_queries, seed, dtype)
    train, vali, test = (
        _documents(offsets, queries, seed, dtype, f"web, fold {fold}, {part}")
        for part, queries in fold_queries(n_queries, fold, "web").items()
    )
    return train, vali, test


def web_shard(
    fold: int, number: int, n_shards: int, *, n_queries: int = 300, seed: int = 0, dtype: DTypeLike = np.float32
) -> RankingData:
    """Make a shard of the training part that `load_web_fold` makes, and nothing else of it.

    Parameters
    ----------
    fold : int
        From 1 to 5.
    number, n_shards : int
        Which shard, from 0, and of how many.
    n_queries, seed, dtype
        As in `load_web_fold`.

    Examples
    --------
    >>> web_shard(1, 1, 3, n_queries=10)
    RankingData('web, fold 1, training, shard 2 of 3': 106 documents, 1 queries, 136 features)
    """
    check_at_least(1, N_FOLDS, fold=fold)
    offsets = _offsets(n_queries, seed, dtype, n_shards + 1)
    queries = fold_queries(n_queries, fold, "web")["training"]
    ends = shard_ends(np.append(0, np.cumsum(np.diff(offsets)[queries])), n_shards)
    name = f"web, fold {fold}, training, shard {number + 1} of {n_shards}"
    return _documents(offsets, queries[ends[number] : ends[number + 1]], seed, dtype, name)


def web_bytes(n_queries: int, dtype: DTypeLike) -> int:
    """Return about how much memory so many queries take."""
    return int(n_queries) * MEAN * (N_FEATURES * np.dtype(dtype).itemsize + 16)


def _offsets(n_queries: int, seed: int, dtype: DTypeLike, n_parts: int = 1) -> NDArray[np.int64]:
    """Draw how many documents each query has; return where they begin, shape (n_queries + 1,).

    Their table must fit the limit on memory unless it is made in parts.
    """
    check_at_least(1, n_queries=n_queries)
    check_at_least(0, MOST_SEED, seed=seed)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {np.dtype(dtype)}")
    if n_parts == 1:
        what = f"{size(n_queries)} queries of {MEAN} documents with {N_FEATURES} features"
        check_room(what, web_bytes(n_queries, dtype))
    normal = NormalDist(log(MEAN) - SPREAD**2 / 2, SPREAD)
    chances = Draws(_generator(seed, 0)).uniform((n_queries,))
    # In Python's arithmetic: what NumPy makes of a logarithm depends on the processor.
    sizes = [min(max(round(exp(normal.inv_cdf(max(chance, 2.0**-53)))), 1), LONGEST) for chance in chances.tolist()]
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


def _documents(
    offsets: NDArray[np.int64], queries: NDArray[np.int64], seed: int, dtype: DTypeLike, name: str
) -> RankingData:
    """Draw the documents of some queries, which ascend within each block."""
    order = Draws(_generator(seed, 1)).order(N_FEATURES)
    lengths = np.diff(offsets)[queries]
    X = np.empty((int(lengths.sum()), N_FEATURES), dtype, order="F")  # as the scores of a population read it
    y = np.empty(len(X), np.int64)
    end = 0
    for block in _runs(queries // BLOCK):
        wanted = queries[block]
        first = wanted[0] // BLOCK * BLOCK
        drawn = np.arange(first, wanted[-1] + 1)
        values, labels = _block(np.diff(offsets)[drawn], seed, first // BLOCK)
        rows = np.repeat(np.isin(drawn, wanted), np.diff(offsets)[drawn])
        begin, end = end, end + int(rows.sum())
        kept = values if rows.all() else values[rows]
        kept = np.ascontiguousarray(kept, dtype)
        rows_to_columns(kept.reshape(-1), len(kept), kept.shape[1], order, X.T.reshape(-1), len(X), begin)
        y[begin:end] = labels[rows]
    names = _names()
    X.setflags(write=False)  # so that it is not copied
    return RankingData(X, y, np.repeat(queries + 1, lengths), [names[feature] for feature in order], name=name)


def _runs(blocks: NDArray[np.int64]) -> Iterable[slice]:
    """Return the slices in which a list of blocks stays the same."""
    ends = np.append(np.flatnonzero(np.diff(blocks)) + 1, len(blocks)).tolist()
    return (slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False))


def _block(lengths: NDArray[np.int64], seed: int, block: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Draw the documents of the first queries of a block; return features (n_documents, 136) and labels.

    Every step is one operation of IEEE 754 on single numbers, so that the bits are the same everywhere.
    """
    of_query = _uniform(seed, 2 * block + 2, len(lengths), (N_OF_QUERY + 2) // 2)
    uniform = _uniform(seed, 2 * block + 3, int(lengths.sum()), WORDS)
    values, noise = uniform[:, :N_FEATURES], uniform[:, N_FEATURES:]
    kinds = (N_INFORMATIVE, *(N_INFORMATIVE for _ in KEPT), N_UNIFORM, N_TAILS, N_COUNTS, N_OF_QUERY)
    informative, *copies, _, tails, counts, constant = np.split(values, np.cumsum(kinds)[:-1], axis=1)
    for share, copy in zip(KEPT, copies, strict=True):
        copy *= np.float32(1 - share)
        copy += np.float32(share) * informative
    for heavy in (tails, counts):
        heavy[...] = np.float32(1) / np.sqrt(np.float32(1) - heavy)
    tails -= np.float32(1)
    tails *= np.float32(0.1)
    np.floor(counts, out=counts)
    counts -= np.float32(1)
    of_document = np.repeat(of_query, lengths, axis=0)
    constant[...] = np.floor(np.float32(16) * of_document[:, :N_OF_QUERY])
    utility = NOISE * (noise[:, 0] + noise[:, 1]) + of_document[:, N_OF_QUERY]
    strength = np.float32(1)
    for feature in informative.T:
        utility += strength * feature
        strength *= DECAY
    return values, np.searchsorted(LIMITS, utility, side="right").astype(np.int64)


def _uniform(seed: int, counter: int, n_rows: int, n_words: int) -> NDArray[np.float32]:
    """Return multiples of 2⁻²⁴ in [0, 1), two from each word, shape (n_rows, 2 · n_words); more rows begin the same."""
    words = _generator(seed, counter).random_raw(n_rows * n_words)
    halves = words.astype("<u8", copy=False).view("<u4")
    halves >>= np.uint32(8)
    uniform = halves.astype(np.float32)
    uniform *= np.float32(2.0**-24)
    return uniform.reshape(n_rows, 2 * n_words)


def _generator(seed: int, counter: int) -> np.random.Philox:
    return np.random.Philox(key=np.array([seed, counter], np.uint64))


def _names() -> list[str]:
    """Return the names of the features in the order in which `_block` draws them."""
    informative = range(1, N_INFORMATIVE + 1)
    kinds = {"uniform": N_UNIFORM, "tail": N_TAILS, "count": N_COUNTS, "query": N_OF_QUERY}
    return [
        *(f"informative {j}" for j in informative),
        *(f"copy {copy} of {j}" for copy in range(1, len(KEPT) + 1) for j in informative),
        *(f"{kind} {number}" for kind, n in kinds.items() for number in range(1, n + 1)),
    ]

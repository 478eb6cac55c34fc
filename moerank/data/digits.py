"""Query by example on handwritten digits: a real ranking problem that needs no download.

A query is an image of a digit, its documents are other images, and a document is relevant if it shows the same digit.
The features compare the two images pixel by pixel, so a feature selection is a set of pixels, which can be looked at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.checks import check_at_least
from moerank.data.draws import Draws
from moerank.data.folds import split_fold
from moerank.data.ranking_data import RankingData

__all__ = ["load_digits_fold"]

SIDE = 8
"""Pixels along each side of an image."""

BRIGHTEST = 16
"""Pixels are integers from 0 to 16."""


def load_digits_fold(
    fold: int = 1, *, n_queries: int = 150, n_documents: int = 100, seed: int = 0
) -> tuple[RankingData, RankingData, RankingData]:
    """Make a fold of query by example on scikit-learn's copy of the UCI digits.

    The query images are distinct. The documents of a query are drawn uniformly from all other images, without
    replacement, and drawn again in the rare case that all or none show the digit of the query: about one in ten
    is relevant. An image can be a document of several queries.

    Parameters
    ----------
    fold : int, default 1
        From 1 to 5; the queries are dealt into five parts as LETOR does, see `split_fold`.
    n_queries : int, default 150
        From 5 to 1797, the number of images.
    n_documents : int, default 100
        Documents of each query, from 2 to 1796.
    seed : int, default 0
        Of the draws of query images and documents; the same in all folds.

    Returns
    -------
    train, vali, test : RankingData
        64 features in [0, 1], 1 − |difference| / 16 of each pixel, named "row 1 column 1" to "row 8 column 8", row by
        row: feature f is the pixel ``divmod(f, 8)``. Labels are 1 for the digit of the query, else 0. Query ids are
        1 to `n_queries`.

    Raises
    ------
    ValueError
        For numbers outside their range.

    References
    ----------
    E. Alpaydin, C. Kaynak: Optical recognition of handwritten digits. UCI Machine Learning Repository (1998), the test
    part.

    Examples
    --------
    >>> train, vali, test = load_digits_fold(1)
    >>> train
    RankingData('digits, fold 1, training': 9000 documents, 90 queries, 64 features)
    """
    from sklearn.datasets import load_digits

    check_at_least(0, seed=seed)
    check_at_least(1, fold=fold)
    images, digits = load_digits(return_X_y=True)
    n_images = len(images)
    check_at_least(5, n_images, n_queries=n_queries)
    check_at_least(2, n_images - 1, n_documents=n_documents)
    draws = Draws(seed)
    queries = draws.order(n_images)[:n_queries]
    documents = np.array([_draw_documents(draws, digits, query, n_documents) for query in queries])
    difference = np.abs(images[documents] - images[queries, None])
    data = RankingData(
        (1.0 - difference / BRIGHTEST).reshape(-1, SIDE * SIDE),
        (digits[documents] == digits[queries, None]).ravel(),
        np.repeat(np.arange(1, n_queries + 1), n_documents),
        [f"row {row} column {column}" for row in range(1, SIDE + 1) for column in range(1, SIDE + 1)],
        name="digits",
    )
    return split_fold(data, fold)


def _draw_documents(draws: Draws, digits: NDArray[np.int64], query: int, n_documents: int) -> NDArray[np.int64]:
    while True:
        others = draws.order(len(digits))
        documents: NDArray[np.int64] = others[others != query][:n_documents]
        if len(np.unique(digits[documents] == digits[query])) == 2:
            return documents

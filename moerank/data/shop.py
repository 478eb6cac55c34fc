"""A synthetic shop: products for queries, and labels that follow eight features in curves and steps."""

from collections.abc import Callable

import numpy as np
from scipy.special import expit, ndtri

from moerank.arrays import Array, Matrix
from moerank.checks import check_at_least, check_not_negative, check_room
from moerank.data.folds import Draws, split_fold
from moerank.data.ranking_data import Fold, RankingData

# How a standard normal variable becomes a feature, by the kind of the feature: each is increasing.
UNITS: dict[str, Callable[[Array], Array]] = {
    "score": lambda z: np.round(np.maximum(12 + 4 * z, 0), 3),
    "cosine": lambda z: np.round(expit(z - 0.5), 4),
    "money": lambda z: np.round(np.exp(3 + z), 2),
    "count": lambda z: np.floor(np.exp(4 + z)),
    "few": lambda z: np.floor(np.exp(1 + 0.7 * z)),
    "rating": lambda z: np.round(1 + 4 * expit(z + 1), 1),
    "share": lambda z: np.round(expit(z - 3), 4),
    "mostly": lambda z: (z > -0.9).astype(float),
    "rarely": lambda z: (z > 1.3).astype(float),
}

# The features of each kind; experiments, which nobody cleaned up, follow them.
KINDS = {
    "score": "title match, description match, brand match, category match, tag match",
    "cosine": "title similarity, description similarity, image similarity",
    "money": "price, shipping cost, margin, seller turnover",
    "count": (
        "age in days, hours to deliver, sales in 7 days, sales in 30 days, sales in 90 days, "
        "views in 30 days, reviews, title length, description length, weight, box size, "
        "warranty in days, seller age in days, seller products"
    ),
    "few": "questions, answers, wish lists, pictures, colours, sizes",
    "rating": "stars, seller rating",
    "share": "click rate, cart rate, return rate, discount",
    "mostly": "in stock, verified brand, free shipping",
    "rarely": "new, sponsored, refurbished",
}

# The common cause of correlated features, and the correlation of the normal variable with it.
LOADINGS = {
    "text": {
        "title match": 0.9,
        "description match": 0.7,
        "brand match": 0.5,
        "category match": 0.5,
        "tag match": 0.6,
        "title similarity": 0.6,
        "description similarity": 0.4,
        "image similarity": 0.3,
    },
    "demand": {
        "sales in 30 days": 0.9,
        "sales in 7 days": 0.7,
        "sales in 90 days": 0.8,
        "views in 30 days": 0.7,
        "click rate": 0.4,
        "cart rate": 0.4,
        "reviews": 0.6,
    },
}

RELEVANT = (
    "title match",
    "title similarity",
    "price",
    "stars",
    "sales in 30 days",
    "age in days",
    "hours to deliver",
    "in stock",
)
"""The features that the labels depend on."""

# Shares of the documents with a label below 1, 2, 3 and 4.
LABEL_SHARES = (0.55, 0.75, 0.88, 0.96)


def make_shop(
    n_queries: int = 2000, n_documents: int = 10, *, noise: float = 0.5, seed: int = 0
) -> RankingData:
    """Make a table of products for queries, of which eight of 50 features matter.

    Labels rise with the match and the similarity of the title, with sales, and with stars up to a point. They fall with
    the hours to deliver. New products gain, products out of stock lose, and a price is good if it is neither low nor
    high: a linear ranker cannot say that, and an additive one can.

    Parameters
    ----------
    n_queries, n_documents : int
        Number of queries, and of documents in each: at least 1 and 2.
    noise : float, default 0.5
        Standard deviation of the noise on the utility, whose own is about 2.3; at least 0.
    seed : int, default 0
        At least 0; the same seed gives the same table.

    Returns
    -------
    RankingData
        Labels 0 to 4. Prices are in euros; `RELEVANT` has the names of the features that matter.
        Time O(n_documents_in_all · 50).

    Raises
    ------
    ValueError
        For numbers outside their range, and for a table that is larger than the limit of `check_room`.

    Examples
    --------
    >>> make_shop(n_queries=20)
    RankingData('shop': 200 documents, 20 queries, 50 features)
    """
    check_at_least(1, n_queries=n_queries)
    check_at_least(2, n_documents=n_documents)
    check_at_least(0, seed=seed)
    check_not_negative(noise=noise)
    kinds = {name: kind for kind, names in KINDS.items() for name in names.split(", ")}
    kinds |= {f"experiment {i + 1}": "score" for i in range(6)}
    shape = (n_queries, n_documents)
    check_room(
        f"{n_queries:,} queries of {n_documents:,} documents",
        3 * 8 * n_queries * n_documents * len(kinds),
    )
    draws = Draws(seed)

    def normal() -> Matrix:
        return ndtri(np.maximum(draws.uniform(shape), 2.0**-53))

    causes = {cause: normal() for cause in LOADINGS}
    hidden = {}
    for name in kinds:
        cause = "demand" if name in LOADINGS["demand"] else "text"
        correlation = LOADINGS[cause].get(name, 0.0)
        hidden[name] = correlation * causes[cause] + np.sqrt(1 - correlation**2) * normal()
    utility = _utility(hidden) + noise * normal()
    return RankingData(
        np.stack([UNITS[kind](hidden[name]).ravel() for name, kind in kinds.items()], axis=1),
        np.digitize(utility, np.quantile(utility, LABEL_SHARES)).ravel(),
        np.repeat(np.arange(1, n_queries + 1), n_documents),
        list(kinds),
        name="shop",
    )


def _utility(z: dict[str, Matrix]) -> Matrix:
    """Return what a product is worth to a user, from the standard normal variables of its relevant features."""
    text = 1.3 * np.tanh(1.2 * z["title match"]) + 0.8 * np.maximum(z["title similarity"], 0)
    offer = (
        -1.4 * np.minimum(np.abs(z["price"]), 2)
        - 0.5 * z["hours to deliver"]
        - 1.8 * (z["in stock"] <= -0.9)
    )
    popular = 0.8 * np.minimum(z["stars"], 0.5) + 0.8 * z["sales in 30 days"]
    return text + offer + popular + 0.9 * (z["age in days"] < -0.8)


def load_shop_fold(
    fold: int = 1, *, n_queries: int = 2000, n_documents: int = 10, seed: int = 0
) -> Fold:
    """Make a shop's table and split its queries as LETOR does; see `make_shop` and `split_fold`.

    Examples
    --------
    >>> train, vali, test = load_shop_fold(1, n_queries=50)
    >>> test
    RankingData('shop, fold 1, test': 100 documents, 10 queries, 50 features)
    """
    return split_fold(make_shop(n_queries, n_documents, seed=seed), fold)

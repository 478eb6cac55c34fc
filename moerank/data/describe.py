"""Statistics of data: counts, and absolute Pearson correlations of features and labels."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from moerank.arrays import Matrix, Vector
from moerank.checks import check_square
from moerank.data.inputs import require_data, row_blocks
from moerank.data.overlap import digests_of_rows
from moerank.data.preparation import ROWS
from moerank.data.ranking_data import RankingData
from moerank.files import Json
from moerank.kernels.algebra import product, square


@dataclass(frozen=True)
class DataDescription:
    """Counts of a data set.

    Attributes
    ----------
    name : str
        The name of the data set in messages.
    documents, queries, features : int
        Its size.
    labels : dict of int to int
        How many documents have each relevance label that occurs.
    queries_without_relevant : int
        Queries in which every label is 0; every metric counts them as 0.
    short_queries : int
        Queries with fewer than 10 documents; LETOR's NDCG@10 counts them as 0.
    shortest_query, longest_query : int
        Documents of the shortest and the longest query.
    median_query : float
        The median number of documents of a query.
    constant_features : tuple of str
        Names of the features with one value throughout.
    extreme_features : tuple of str
        Names of the features with values beyond 10⁶ times their 99 % quantile, or beyond 1e30.
    pairs : int
        Preference pairs.
    queries_without_pairs : int
        Queries whose documents all have the same label: rankers learn nothing from them.
    identical_groups : int
        Groups of two or more documents of one query that no feature tells apart: every ranker gives them one score.
    identical_documents : int
        Documents in such groups.
    missing_values : int
        Number of values that were missing before the rule replaced them.
    missing_share : float
        Share of these among all values.
    missing_by_feature : dict of str to int
        Number of these for each feature with missing values.
    scaling : str
        The scaling of the features as far as it is known: "none", "query", "minmax" or "standard".
    weighted : tuple of str
        Whether "queries", "documents" or both have weights that differ.
    comes_scaled : bool
        Whether every feature that varies in a query has the minimum 0 and the maximum 1 there.
    cautions : tuple of str
        Sentences about extreme values, values that number the rows, labels without 0, the order of the rows, features
        of the query, and a query with most pairs.
    """

    name: str
    documents: int
    queries: int
    features: int
    labels: dict[int, int]
    queries_without_relevant: int
    short_queries: int
    shortest_query: int
    median_query: float
    longest_query: int
    constant_features: tuple[str, ...]
    extreme_features: tuple[str, ...]
    pairs: int
    queries_without_pairs: int
    identical_groups: int
    identical_documents: int
    missing_values: int
    missing_share: float
    missing_by_feature: dict[str, int]
    scaling: str
    weighted: tuple[str, ...]
    comes_scaled: bool
    cautions: tuple[str, ...]

    def as_dict(self) -> Json:
        """Return the attributes as JSON holds them: lists for tuples, strings for the labels."""
        return json.loads(json.dumps(asdict(self)))

    def remarks(self) -> list[str]:
        """Return sentences about the counts that need attention."""
        remarks = [f"No value of the {self.features:,} features is infinite or missing."]
        if self.missing_values:
            worst = max(self.missing_by_feature, key=self.missing_by_feature.__getitem__)
            remarks = [
                f"{self.missing_values:,} values were missing ({self.missing_share:.1%} of all), "
                f"most of them of feature {worst}."
            ]
        remarks += self.cautions
        for units in self.weighted:
            remarks.append(f"The {units} have weights, which training and metrics use.")
        if self.identical_documents:
            remarks.append(
                "No ranker can order identical documents of a query: leave out copies, or add a "
                "feature that tells them apart."
            )
        if self.comes_scaled and self.scaling == "none":
            remarks.append(
                "The features come scaled per query, as LETOR's QueryLevelNorm files are: set "
                'scaled = "query" in the problem file, or call data.mark_scaled("query") in Python.'
            )
        return remarks


def describe(data: RankingData) -> DataDescription:
    """Count what a data set holds.

    Parameters
    ----------
    data : RankingData
        The data set.

    Returns
    -------
    DataDescription
        Time O(n_documents · (n_features + log n_documents)).

    Examples
    --------
    >>> description = describe(RankingData([[0.5, 1], [0.25, 1], [0.5, 1]], y=[0, 2, 0], qid=0))
    >>> description.labels, description.pairs, description.constant_features, description.identical_documents
    ({0: 2, 2: 1}, 2, ('2',), 2)
    """
    require_data(data)
    starts, lengths = data.offsets[:-1], np.diff(data.offsets)
    maximum, minimum = np.maximum.reduceat(data.X, starts), np.minimum.reduceat(data.X, starts)
    copies = _sizes_of_copies(data)
    n_missing = data.n_missing
    names = np.array(data.feature_names, object)
    return DataDescription(
        name=data.name,
        documents=data.n_documents,
        queries=data.n_queries,
        features=data.n_features,
        labels=dict(sorted(Counter(data.y.tolist()).items())),
        queries_without_relevant=int((np.maximum.reduceat(data.y, starts) == 0).sum()),
        short_queries=int((lengths < 10).sum()),
        shortest_query=int(lengths.min()),
        median_query=float(np.median(lengths)),
        longest_query=int(lengths.max()),
        constant_features=tuple(names[minimum.min(axis=0) == maximum.max(axis=0)]),
        extreme_features=tuple(names[data.is_extreme]),
        pairs=data.n_pairs,
        queries_without_pairs=int((data.label_runs.n_pairs_of == 0).sum()),
        identical_groups=len(copies),
        identical_documents=sum(copies),
        missing_values=int(n_missing.sum()),
        missing_share=float(n_missing.sum() / data.X.size),
        missing_by_feature={
            name: n for name, n in zip(data.feature_names, n_missing.tolist(), strict=True) if n
        },
        scaling=data.scaling.kind,
        weighted=_weighted_units(data),
        comes_scaled=_come_scaled(minimum, maximum),
        cautions=tuple(cautions_about(data)),
    )


def _weighted_units(data: RankingData) -> tuple[str, ...]:
    weights = {"queries": data.query_weights, "documents": data.document_weights}
    return tuple(units for units, values in weights.items() if values is not None)


def _come_scaled(minimum: Matrix, maximum: Matrix) -> bool:
    """Return whether features that vary in a query, and there are some, have the range from 0 to 1 there."""
    varies = minimum != maximum
    return bool(varies.any() and (minimum[varies] == 0).all() and (maximum[varies] == 1).all())


FEWEST = 20  # documents or queries, of which a feature or a query stands out by chance if there are fewer

EXTREME = (
    "reach beyond 1,000,000 times the feature's 99 % quantile, or beyond 1e30. If they stand for "
    "missing ones, list them: missing_values = [-999]."
)
RISING = "rise from row to row. If they number the rows, leave the feature out."


def cautions_about(data: RankingData) -> list[str]:
    """Return sentences about values, labels, the order of the rows, and a query with most pairs that need attention."""
    rises = (np.diff(data.X[:ROWS], axis=0) > 0).all(axis=0) & (data.n_documents >= FEWEST)
    sentences = []
    for mask, finding in ((data.is_extreme, EXTREME), (rises, RISING)):
        names = [repr(data.feature_names[feature]) for feature in np.flatnonzero(mask)]
        if names:
            features = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
            sentences.append(f"Values of {features} {finding}")
    lowest, *higher = np.unique(data.y).tolist()
    if lowest:
        sentences.append(
            f"No document has label 0, so those with label {lowest} count as relevant, too: "
            f"subtract {lowest} from all labels, or set the limits labels = {higher}."
        )
    sentences += _order_of_rows(data)
    n_of_query = np.count_nonzero(data.is_of_query)
    if n_of_query:
        example = data.feature_names[data.is_of_query.argmax()]
        sentences.append(
            f"All documents of a query have the same value of {n_of_query} of {data.n_features} "
            f"features, such as {example!r}: only trees and interactions can use it."
        )
    pairs = data.label_runs.n_pairs_of
    if data.n_queries >= FEWEST and pairs.max() > pairs.sum() / 2:
        sentences.append(
            f"Query {data.query_ids[pairs.argmax()]} holds {pairs.max():,} of {pairs.sum():,} "
            "preference pairs, so rankers hardly learn from others: check the query ids, or keep "
            "fewer of its documents."
        )
    return sentences


def _order_of_rows(data: RankingData) -> list[str]:
    """Return a sentence if labels or a feature sort nearly all first rows within queries, with ties across labels."""
    query = np.repeat(np.arange(data.n_queries), np.diff(data.offsets))[:ROWS]
    steps = np.diff(np.column_stack([data.y[:ROWS], data.X[:ROWS]]), axis=0)[np.diff(query) == 0]
    rises, falls = np.count_nonzero(steps > 0, axis=0), np.count_nonzero(steps < 0, axis=0)
    n_steps = rises + falls
    is_sorted = (np.minimum(rises, falls) <= 0.01 * n_steps) & (n_steps >= FEWEST)
    if not is_sorted.any() or not (steps[steps[:, 0] != 0, 1:] == 0).any():
        return []
    column = is_sorted.argmax()
    key = repr(data.feature_names[column - 1]) if column else "label"
    return [
        f"The rows of each query are sorted by {key}. Nothing here uses this order, because equal "
        "scores count as the mean over all orders; other tools, and metrics of your own, may."
    ]


def _sizes_of_copies(data: RankingData) -> list[int]:
    """Return the size of each group of two or more documents of one query with the same features."""
    query = np.repeat(np.arange(data.n_queries), np.diff(data.offsets))
    sizes = np.unique(digests_of_rows([query, *data.X.T]), return_counts=True)[1]
    return sizes[sizes > 1].tolist()


SMALLEST_SQUARED = 1e-140  # features with smaller values are scaled up, because their squares lose digits or vanish
ROWS_AT_A_TIME = 2048  # documents that are centred at a time, which saves a copy of all


def feature_correlations(X: Matrix) -> Matrix:
    """Return |Pearson correlation| of each pair of features of a table; a constant one has 0 with all."""
    check_square(X.shape[1])
    scatter = np.zeros((X.shape[1], X.shape[1]))
    for _, centred in _centred_blocks(X):
        scatter += square(centred)
    norm = np.sqrt(np.diagonal(scatter))
    norm = np.where(norm > 0.0, norm, 1.0)
    share = np.abs(scatter / norm / norm[:, None])
    return 0.5 * (share + share.T)  # symmetric in spite of the order of the divisions


def label_correlations(data: RankingData) -> Vector:
    """Return |Pearson correlation| of each feature with the labels, which must differ; 0 for a constant feature."""
    labels = (
        data.y.astype(float) - int(data.y.sum()) / data.n_documents
    )  # a sum of integers, and so exact
    products, length = np.zeros((2, data.n_features))
    for rows, centred in _centred_blocks(data.X):
        products += product(centred, labels[rows])
        length += (centred * centred).sum(axis=1)
    norm = np.where(length > 0.0, np.sqrt(length), 1.0)
    return np.abs(products) / norm / np.sqrt(float((labels * labels).sum()))


def _centred_blocks(X: Matrix) -> Iterator[tuple[slice, Matrix]]:
    """Yield the rows of each block of X, and its centred features as rows."""
    blocks = list(row_blocks(len(X), ROWS_AT_A_TIME))
    total = np.zeros(X.shape[1])
    for rows in blocks:  # NumPy adds up the rows of a table in C order one after the other
        total = np.ascontiguousarray(np.vstack([total, X[rows]])).sum(axis=0)
    minimum, maximum = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
    size = np.maximum(np.abs(minimum), np.abs(maximum))
    divisor = np.where(size < SMALLEST_SQUARED, size, 1.0)
    divisor[minimum == maximum] = np.inf  # so that a constant feature becomes 0
    for rows in blocks:
        centred = X[rows].T.astype(float, order="C")
        centred -= (total / len(X))[:, None]
        if (divisor != 1.0).any():
            centred /= divisor[:, None]
        yield rows, centred

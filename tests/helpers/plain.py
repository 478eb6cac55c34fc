"""The stages' objectives once more, in plain numpy and with nothing shared but the data."""

from itertools import pairwise, permutations, product

import numpy as np

from moerank.data.overlap import digests_of_rows


def ndcg(data, scores, k):
    """The usual NDCG@k, one individual a column of `scores` (n_documents, n_individuals)."""
    values = np.zeros((data.n_queries, scores.shape[1]))
    for q, (begin, end) in enumerate(pairwise(data.offsets)):
        gains = 2.0 ** data.y[begin:end] - 1.0
        ideal = np.sort(gains)[::-1][:k]
        discount = 1.0 / np.log2(np.arange(2, len(ideal) + 2))
        if ideal.sum() > 0:
            for column, s in enumerate(scores[begin:end].T):
                means = np.array([gains[s == score].mean() for score in np.sort(s)[::-1][:k]])
                values[q, column] = discount @ means / (discount @ ideal)
    return values.mean(axis=0)


def all_orders(scores):
    """Every ranking of the documents that has the larger scores first, as columns of distinct scores."""
    groups = [np.flatnonzero(scores == score) for score in np.unique(scores)[::-1]]
    rankings = [np.concatenate(ranking) for ranking in product(*map(permutations, groups))]
    return -np.argsort(rankings, axis=1).T.astype(float)


def rows_of_lightgbm(data, X):
    """The order of the rows in which LightGBM gets a table, which their contents determine: it orders equal scores."""
    contents = digests_of_rows([*X.T.astype(np.float32), data.y])
    return np.lexsort((contents, np.arange(data.n_queries).repeat(np.diff(data.offsets))))


def ridge(data, alpha, keep=None, features=None):
    """RankRLS with the pair loss and target 1, from explicit differences."""
    better, worse = data.pairs.better, data.pairs.worse
    D = data.X[better] - data.X[worse]
    D = D if keep is None else D[keep]
    features = np.ones(data.n_features, bool) if features is None else features
    w = np.zeros(data.n_features)
    A = D[:, features].T @ D[:, features] / len(D) + alpha * np.eye(features.sum())
    w[features] = np.linalg.solve(A, D[:, features].mean(axis=0))
    return w


def ordered_scores(X, W):
    """X · Wᵀ summed in feature order, so that equal documents tie."""
    scores = np.zeros((len(X), len(W)))
    for f in range(X.shape[1]):
        scores = scores + X[:, f, None] * W[:, f]
    return scores


def all_subsets(n):
    """Every non-empty subset of n elements as bool rows."""
    return (np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1 == 1


def front(F):
    """Distinct non-dominated rows of F, by brute force over the distinct ones."""
    distinct = np.unique(F, axis=0)
    dominated = [any((other <= row).all() and (other < row).any() for other in distinct) for row in distinct]
    return distinct[~np.array(dominated)]

"""The stages' objectives once more, in plain numpy and with nothing shared but the data."""

import numpy as np

from moerank.kernels.counted_ranks import ndcg as definition


def ndcg(data, scores, k):
    """The usual NDCG@k, one individual a column of `scores`."""
    return definition(data.y, data.offsets, scores, k).mean(axis=0)


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

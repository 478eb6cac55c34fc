"""HCAS against clusters joined one by one from their definition, at every number of them."""

from itertools import combinations

import numpy as np
import pytest

from moerank.metrics import NDCG
from moerank.rankers.importance import single_feature_values
from moerank.selectors.gas import HCAS, absolute_correlations, cluster_order


def squared_radius(members, squares):
    """The sum of squared distances of points to their mean, from the squared distances of all pairs."""
    return sum(squares[a, b] for a, b in combinations(members, 2)) / len(members)


def clusters(distances, method, n_clusters):
    """Join the two nearest clusters until so many are left; for Ward, those whose union spreads the least more."""
    found = [[f] for f in range(len(distances))]
    while len(found) > n_clusters:

        def apart(pair):
            a, b = pair
            if method == "single":
                return min(distances[i, j] for i in a for j in b)
            spread = [squared_radius(members, distances**2) for members in (a + b, a, b)]
            return spread[0] - spread[1] - spread[2]

        a, b = min(combinations(found, 2), key=apart)
        found = [members for members in found if members is not a and members is not b] + [a + b]
    return found


@pytest.mark.parametrize("method", ["single", "ward"])
@pytest.mark.parametrize("seed", range(4))
def test_for_each_number_the_most_relevant_of_each_cluster(seed, method):
    rng = np.random.default_rng(seed)
    relevance, pairs = rng.random(9).round(1), rng.random((9, 9))  # relevances with ties, distances without
    similarity = np.maximum(pairs, pairs.T)
    np.fill_diagonal(similarity, 1.0)
    order = cluster_order(relevance, similarity, method)
    for k in range(1, 10):
        best = {min(members, key=lambda f: (-relevance[f], f)) for members in clusters(1 - similarity, method, k)}
        assert set(order[:k].tolist()) == best


def test_parts_are_put_together_as_documented(data):
    relevance = single_feature_values(data, NDCG(10)).max(axis=0)
    for similarity in ("spearman", "kendall"):
        selector = HCAS(3, linkage="ward", similarity=similarity)._learn(data)
        expected = cluster_order(relevance, absolute_correlations(data, similarity), "ward")
        assert selector.order_.tolist() == expected.tolist()


def test_a_single_feature_and_copies_are_no_trouble():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    y = [0, 0, 1, 1]
    assert HCAS(1).fit(x[:, None], y).order_.tolist() == [0]
    assert HCAS(2).fit(np.column_stack([x, x, -x]), y).order_.tolist() in ([0, 1, 2], [0, 2, 1])

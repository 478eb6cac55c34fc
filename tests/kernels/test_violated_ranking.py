from itertools import permutations

import numpy as np
import pytest

from moerank.kernels.violated_ranking import most_violated_rankings


def all_rankings(n_documents):
    """The place (n_rankings, n_documents) of each document in every ranking; the first is the order of the rows."""
    return np.array(list(permutations(range(n_documents))))


def joint_features(place, X, relevant):
    """ψ of rankings (n_rankings, n) by its definition: the mean of ± (xᵢ − xⱼ) over relevant i and irrelevant j."""
    total = np.zeros((len(place), X.shape[1]))
    for i in np.flatnonzero(relevant):
        for j in np.flatnonzero(~relevant):
            total += np.where(place[:, i] < place[:, j], 1.0, -1.0)[:, None] * (X[i] - X[j])
    return total / (relevant.sum() * (~relevant).sum())


def one_less_average_precision(place, relevant):
    hits = relevant[np.argsort(place, axis=1)]
    precision = np.cumsum(hits, axis=1) / np.arange(1, len(relevant) + 1)
    return 1.0 - (precision * hits).sum(axis=1) / relevant.sum()


def right_ranking(relevant):
    """The place (1, n_documents) of each document where the relevant ones come first."""
    return np.argsort(np.argsort(~relevant, kind="stable"))[None]


def largest_violation(scores, relevant):
    """The largest loss less the joint score the right ranking is ahead, over all rankings."""
    place, X = all_rankings(len(scores)), scores[:, None]
    behind = joint_features(place, X, relevant) - joint_features(right_ranking(relevant), X, relevant)
    return (one_less_average_precision(place, relevant) + behind[:, 0]).max()


def some_query(rng, n_documents=7):
    relevant = rng.random(n_documents) < rng.uniform(0.1, 0.9)
    relevant[:2] = True, False
    return rng.permutation(relevant)


@pytest.mark.parametrize("scale", [0.0, 0.01, 0.1, 0.5, 3.0])
def test_greedy_insertion_finds_the_best_of_all_rankings(scale):
    rng = np.random.default_rng(1)
    for _ in range(40):
        relevant, scores = some_query(rng), scale * rng.normal(size=7)
        weight, loss = most_violated_rankings(scores, relevant, np.array([0, 7]))
        assert loss - scores @ weight == pytest.approx(largest_violation(scores, relevant), abs=1e-12)


@pytest.mark.parametrize("n_documents", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0])
def test_ties_may_fall_either_way(n_documents, scale):
    rng = np.random.default_rng(n_documents)
    for _ in range(20):
        relevant, scores = some_query(rng, n_documents), scale * rng.integers(-3, 4, n_documents) / 2.0
        weight, loss = most_violated_rankings(scores, relevant, np.array([0, n_documents]))
        assert loss - scores @ weight == pytest.approx(largest_violation(scores, relevant), abs=1e-12)


def test_weight_and_loss_belong_to_one_ranking():
    """Whatever ranking is found, X · weight is ψ(r*) − ψ(r) of a ranking whose 1 − AP is the loss."""
    rng = np.random.default_rng(5)
    place = all_rankings(6)
    for _ in range(20):
        relevant, X = some_query(rng, 6), rng.normal(size=(6, 3))
        weight, loss = most_violated_rankings(0.3 * rng.normal(size=6), relevant, np.array([0, 6]))
        ahead = joint_features(right_ranking(relevant), X, relevant) - joint_features(place, X, relevant)
        same_loss = np.isclose(one_less_average_precision(place, relevant), loss, rtol=0, atol=1e-12)
        assert (same_loss & np.isclose(ahead, weight @ X, rtol=0, atol=1e-12).all(axis=1)).any()


def test_queries_add_up():
    rng = np.random.default_rng(6)
    queries = [(some_query(rng, size), 0.2 * rng.normal(size=size)) for size in (5, 2, 40, 9)]
    alone = [most_violated_rankings(scores, relevant, np.array([0, len(scores)])) for relevant, scores in queries]
    relevant, scores = (np.concatenate(parts) for parts in zip(*queries, strict=True))
    weight, loss = most_violated_rankings(scores, relevant, np.array([0, 5, 7, 47, 56]))
    np.testing.assert_array_equal(weight, np.concatenate([part for part, _ in alone]))
    assert loss == pytest.approx(sum(part for _, part in alone), rel=1e-12)


def test_a_right_ranking_with_room_to_spare_is_not_violated():
    weight, loss = most_violated_rankings(np.array([90.0, 80.0, 1.0]), np.array([True, True, False]), np.array([0, 3]))
    assert loss == 0.0
    np.testing.assert_array_equal(weight, 0.0)

import numpy as np
import pytest

from moerank.data import make_planted
from moerank.mofsrank import FeatureSelection
from moerank.rankers import RankRLS
from moerank.training.pair_moments import backward_path, forward_path


def loss(A, b, features):
    """The least of wᵀA w − 2 bᵀw over the weights of these features, up to its sign and factor."""
    features = list(features)
    return -b[features] @ np.linalg.solve(A[np.ix_(features, features)], b[features]) if features else 0.0


def forward_by_hand(A, b):
    order = []
    while len(order) < len(b):
        left = [j for j in range(len(b)) if j not in order]
        order.append(min(left, key=lambda j: loss(A, b, [*order, j])))
    return order


def backward_by_hand(A, b):
    left, gone = list(range(len(b))), []
    while left:
        gone.append(min(left, key=lambda j: loss(A, b, [i for i in left if i != j])))
        left.remove(gone[-1])
    return gone[::-1]


@pytest.mark.parametrize("seed", range(4))
def test_paths_are_those_of_solving_every_subset(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 12)) @ rng.normal(size=(12, 12))
    A, b = X.T @ X / 30 + 0.01 * np.eye(12), X.T @ rng.normal(size=30) / 30
    given = A.copy(), b.copy()
    assert forward_path(A, b).tolist() == forward_by_hand(A, b)
    assert forward_path(A, b, 5).tolist() == forward_by_hand(A, b)[:5]
    assert backward_path(A, b).tolist() == backward_by_hand(A, b)
    assert forward_by_hand(A, b) != backward_by_hand(A, b)
    np.testing.assert_array_equal(A, given[0])
    np.testing.assert_array_equal(b, given[1])


def test_a_stage_offers_the_beginning_of_one_path_and_the_whole_of_the_other():
    data = make_planted(n_queries=10, n_documents=15, n_relevant=4, n_redundant=4, n_noise=4, seed=2).data
    better, worse = data.X[data.pairs.better], data.X[data.pairs.worse]
    A = (better - worse).T @ (better - worse) / len(better) + 0.02 * np.eye(12)
    b = (better - worse).mean(axis=0)
    strings = FeatureSelection(data, RankRLS(0.02)).starting_strings(8)
    forward, backward = forward_by_hand(A, b), backward_by_hand(A, b)
    assert [set(np.flatnonzero(row)) for row in strings[:4]] == [set(forward[:k]) for k in (1, 2, 3, 4)]
    assert [set(np.flatnonzero(row)) for row in strings[4:]] == [set(backward[:k]) for k in (1, 5, 8, 12)]

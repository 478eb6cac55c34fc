import numpy as np
import pytest
from helpers.plain import all_subsets, front, ndcg, ordered_scores
from pymoo.algorithms.moo.nsga2 import NSGA2

from moerank.data import RankingData
from moerank.evolution import search
from moerank.metrics import NDCG
from moerank.mofsrank import Ensemble


def plain_objectives(data, coefs, features, strings, k):
    """Formula (7) string by string."""
    W = np.zeros((len(strings), data.n_features))
    for row, string in enumerate(strings):
        for bit, feature in zip(string[: len(features)], features, strict=True):
            W[row, feature] = bit * sum(
                weight * ranker[feature] for weight, ranker in zip(string[len(features) :], coefs, strict=True)
            )
    return np.column_stack([(W != 0).sum(axis=1), 1.0 - ndcg(data, ordered_scores(data.X, W), k)])


@pytest.fixture(scope="module")
def coefs():
    """Three rankers that together use four of five features."""
    return np.array([[1.0, 0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, -0.3, 0.0], [0.7, 0.2, 0.0, 0.0, 0.0]])


def test_objectives_equal_formula_seven(small_data, coefs):
    stage = Ensemble(small_data, coefs, NDCG(5))
    rng = np.random.default_rng(0)
    X = np.hstack([rng.random((200, 4)) < 0.6, rng.random((200, 3))]).astype(float)
    X = X[X[:, :4].any(axis=1)]
    assert stage._bits.tolist() == [0, 1, 2, 3]
    expected = plain_objectives(small_data, coefs, [0, 1, 2, 3], X, 5)
    np.testing.assert_allclose(stage.evaluate(X), expected, rtol=0, atol=1e-12)


def test_summed_members_alone_decide_the_weights(small_data, coefs):
    stage = Ensemble(small_data, coefs, NDCG(5))
    rng = np.random.default_rng(1)
    X = np.hstack([rng.random((100, 4)) < 0.5, rng.random((100, 3)) * (rng.random((100, 3)) < 0.6)]).astype(float)
    summed, W = stage.summed(X), stage.combined(X).coefs
    np.testing.assert_array_equal(stage.combined(np.hstack([X[:, :4], X[:, 4:] * summed])).coefs, W)
    for member in range(3):
        without = X.copy()
        without[:, 4 + member] = 0.0
        np.testing.assert_array_equal((stage.combined(without).coefs != W).any(axis=1), summed[:, member])


def test_with_one_ranker_the_front_is_that_of_its_sub_rankers(small_data):
    # Rounded features tie, and how depends on the last bits of the weight; so no two documents are alike here.
    X = small_data.X + np.random.default_rng(9).random(small_data.X.shape)
    data = RankingData(X, small_data.y, small_data.qid)
    ranker = np.array([[1.0, -0.2, 0.8, 0.1, 0.3]])
    stage = Ensemble(data, ranker, NDCG(5))
    strings = np.hstack([all_subsets(5), np.ones((31, 1))]).astype(float)
    exact = front(plain_objectives(data, ranker, range(5), strings, 5).round(12))
    F = search(stage, NSGA2(30, **stage.operators()), ("n_gen", 30), seed=0).archive.F
    np.testing.assert_allclose(F[np.lexsort(F.T[::-1])], exact, rtol=0, atol=1e-11)


def test_strings_without_a_weight_are_worse_than_any_other(small_data, coefs):
    stage = Ensemble(small_data, coefs, NDCG(5))
    no_bits, no_weights = np.array([0, 0, 0, 0, 1, 1, 1.0]), np.array([1, 1, 1, 1, 0, 0, 0.0])
    np.testing.assert_array_equal(stage.evaluate(np.array([no_bits, no_weights])), [[8.0, 2.0]] * 2)


def test_injected_members_bound_the_training_error(small_data, coefs):
    members = plain_objectives(small_data, coefs, range(5), np.hstack([np.ones((3, 5)), np.eye(3)]), 5)
    stage = Ensemble(small_data, coefs, NDCG(5), inject=True)
    first = stage.operators()["sampling"]._do(stage, 10, random_state=np.random.default_rng(0))[:3]
    np.testing.assert_allclose(stage.evaluate(first), members, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("coefs", "message"), [(np.zeros((2, 5)), "all zero"), (np.ones((2, 4)), "shape")])
def test_wrong_rankers_are_refused(small_data, coefs, message):
    with pytest.raises(ValueError, match=message):
        Ensemble(small_data, coefs)


def test_bits_count_as_the_paper_counts_them(small_data, coefs):
    used = np.flatnonzero((coefs != 0).any(axis=0))
    string = np.concatenate([np.ones(len(used)), [1.0, 0.0, 0.0]])[None]
    with_weight = np.count_nonzero(coefs[0])
    assert with_weight < len(used), "the first member leaves features out"
    for count, expected in (("weights", with_weight), ("bits", len(used))):
        stage = Ensemble(small_data, coefs, NDCG(5), count=count)
        assert stage.evaluate(string)[0, 0] == expected
        assert stage.feature_mask(string).sum() == expected
    with pytest.raises(ValueError, match="count should be 'weights' or 'bits', not 'ones'"):
        Ensemble(small_data, coefs, count="ones")

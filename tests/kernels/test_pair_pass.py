"""The pair passes against plain numpy on explicit pairs."""

import numpy as np
import pytest

from moerank.data import RankingData
from moerank.kernels.lanes import lanes
from moerank.kernels.pair_pass import curvature_pass, hinge_pass, pack_lanes, project, pull_back

WORDS = {np.float32: np.uint16, np.float64: np.uint8}
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-13}


@pytest.fixture(params=[np.float32, np.float64], ids=["single", "double"])
def case(request):
    """Pairs, scores and bit planes of one vector of individuals, in the precision asked for."""
    dtype = request.param
    rng = np.random.default_rng(11)
    data = RankingData(rng.random((70, 6)), rng.integers(0, 4, 70), np.sort(rng.integers(0, 5, 70)))
    mask = rng.random((lanes(dtype), len(data.pairs))) < 0.4
    words = np.empty(len(data.pairs), WORDS[dtype])
    pack_lanes(mask, words)
    return dtype, data, mask, words, rng.normal(size=(70, lanes(dtype))).astype(dtype)


def scatter(pairs, D, n_documents):
    total = np.zeros((n_documents, D.shape[1]))
    np.add.at(total, pairs.better, D)
    np.add.at(total, pairs.worse, -D)
    return total


def bits(words, n_lanes):
    return (words[:, None] >> np.arange(n_lanes)) & 1 == 1


@pytest.mark.parametrize("margin", [1.0, 0.0])
@pytest.mark.parametrize("hinge", [True, False])
def test_hinge_pass(case, margin, hinge):
    dtype, data, mask, words, scores = case
    active = np.empty_like(words)
    residual = np.empty_like(scores)
    slack_sum = np.empty(lanes(dtype))
    pairs = data.pairs
    hinge_pass(pairs.groups, words, scores, margin, hinge, active, residual, slack_sum)
    D = margin - (scores[pairs.better].astype(float) - scores[pairs.worse])
    counts = mask.T & (D > 0) if hinge else mask.T
    D = np.where(counts, D, 0.0)
    np.testing.assert_array_equal(bits(active, lanes(dtype)), counts)
    np.testing.assert_allclose(residual, scatter(pairs, D, 70), rtol=0, atol=40 * TOLERANCE[dtype])
    np.testing.assert_allclose(slack_sum, D.sum(axis=0), rtol=10 * TOLERANCE[dtype], atol=1e-12)
    loss = margin * slack_sum - np.sum(scores.astype(float) * residual, axis=0)
    np.testing.assert_allclose(loss, (D**2).sum(axis=0), rtol=100 * TOLERANCE[dtype])


def test_curvature_pass(case):
    dtype, data, mask, words, scores = case
    result = np.empty_like(scores)
    curvature_pass(data.pairs.groups, words, scores, result)
    D = np.where(mask.T, scores[data.pairs.better].astype(float) - scores[data.pairs.worse], 0.0)
    np.testing.assert_allclose(result, scatter(data.pairs, D, 70), rtol=0, atol=40 * TOLERANCE[dtype])


@pytest.mark.parametrize("n_documents", [1, 4, 70, 300])
def test_project_and_pull_back_are_products(case, n_documents):
    dtype = case[0]
    rng = np.random.default_rng(12)
    X = rng.normal(size=(n_documents, 7)).astype(dtype)
    weights = rng.normal(size=(7, lanes(dtype))).astype(dtype)
    scores = np.empty((n_documents, lanes(dtype)), dtype)
    project(X, weights, np.arange(7), scores)
    np.testing.assert_allclose(scores, X.astype(float) @ weights, rtol=0, atol=100 * TOLERANCE[dtype])
    features = np.empty((7, lanes(dtype)))
    expected = X.T.astype(float) @ scores
    for used in (np.arange(7), np.array([0, 2, 3, 4, 6])):
        pull_back(X, scores, used, np.empty_like(weights), features)
        np.testing.assert_allclose(features[used], expected[used], rtol=0, atol=5000 * TOLERANCE[dtype])
        assert not np.delete(features, used, axis=0).any()

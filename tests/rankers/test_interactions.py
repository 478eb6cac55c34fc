"""Interactions of additive rankers against the explicit table of products of steps."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone

from moerank import MAP, MOFSRank
from moerank.data import RankingData
from moerank.rankers import AdditiveRLS
from moerank.training.bins import thresholds


@pytest.fixture(scope="module")
def parts():
    """Data in which the sign of a feature depends on another one."""

    def made(seed):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=(240, 3)), rng.integers(0, 2, 240)])
        y = np.digitize(X[:, 0] * (2 * X[:, 3] - 1) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=240), [-0.5, 0.5])
        return RankingData(X, y, np.arange(240) // 12, feature_names=["a", "b", "c", "switch"])

    return made(0), made(1)


def steps(x, n_bins):
    return x[:, None] > thresholds(x, n_bins)


def differences(data, columns):
    pairs = [(i, j) for i in range(240) for j in range(240) if data.qid[i] == data.qid[j] and data.y[i] > data.y[j]]
    better, worse = np.transpose(pairs)
    return columns[better].astype(float) - columns[worse]


def minimum(D, P, alpha):
    """Return the weights and the loss of least squares with the penalty alpha θᵀ P⁻¹ θ."""
    A, b = D.T @ D / len(D), D.mean(axis=0)
    theta = np.linalg.solve(A + alpha * np.linalg.inv(P), b)
    return theta, 1.0 - b @ theta


def test_each_pair_lowers_the_loss_of_the_explicit_table_the_most(parts):
    train, _ = parts
    alpha, smooth = 0.02, 0.7
    ranker = AdditiveRLS(n_bins=3, smooth=smooth, alpha=alpha, interactions=3).fit(train)
    X = train.X
    blocks, priors = [], []
    for x in X.T:
        block = steps(x, 3)
        bins = block.sum(axis=1)
        v = np.diff([x[bins == b].mean() for b in range(block.shape[1] + 1)]) / x.std()
        blocks.append(block)
        priors.append(smooth**2 * np.eye(len(v)) + np.outer(v, v))
    products = {}
    for f, g in combinations(range(4), 2):
        columns = (steps(X[:, f], 5)[:, :, None] & steps(X[:, g], 5)[:, None, :]).reshape(240, -1)
        products[f, g] = columns
    order = []

    def solved(pairs):
        columns = np.hstack([*blocks, *(products[pair] for pair in pairs)])
        n, n_single = columns.shape[1], sum(map(len, priors))
        P = smooth**2 * np.eye(n)
        begin = 0
        for prior in priors:
            P[begin : begin + len(prior), begin : begin + len(prior)] = prior
            begin += len(prior)
        assert begin == n_single
        theta, loss = minimum(differences(train, columns), P, alpha)
        return columns @ theta, loss

    for _ in range(3):
        order.append(min(products.keys() - set(order), key=lambda pair: solved([*order, pair])[1]))
    names = train.feature_names
    path = ranker.interactions_
    assert list(zip(path["first"][1:], path["second"][1:], strict=True)) == [(names[f], names[g]) for f, g in order]
    assert order[0] == (0, 3)
    np.testing.assert_allclose(ranker.predict(X), solved(order)[0], rtol=0, atol=1e-9)
    for n, error in enumerate(path["error"]):
        assert error == pytest.approx(1.0 - MAP().score(train, solved(order[:n])[0]), abs=1e-9)
    assert len(ranker.forest_.roots) == len(blocks) + 3
    assert [len(table) for table in ranker.tables_] == [4, 4, 4, 2]


def test_validation_chooses_the_number_and_a_search_trains_its_members_again(parts):
    train, validation = parts
    ranker = AdditiveRLS(interactions=6).fit(train, validation=validation)
    path = ranker.interactions_
    assert path["n_interactions"].tolist() == list(range(7))
    n = int(path["validation"].idxmin())
    assert n > 0
    assert len(ranker.forest_.roots) == 4 + n
    score = MAP().score(validation, ranker.predict(validation.X))
    assert path["validation"][n] == pytest.approx(1.0 - score, abs=1e-12)
    alone = AdditiveRLS().fit(train)
    assert score > MAP().score(validation, alone.predict(validation.X)) + 0.1
    budget = {"population": 8, "generations": 2}
    solver = MOFSRank(
        clone(alone), refit=ranker, tune=False, ensemble=False, feature_selection=budget, random_state=0, workers=2
    ).fit(train, validation=validation)
    features = solver.support_
    again = clone(ranker).fit(train.with_features(features), validation=validation.with_features(features))
    np.testing.assert_array_equal(solver.predict(train.X), again.predict(train.X[:, features]))
    assert solver.shapes_["feature_2"].notna().any()


def test_one_feature_has_no_interactions_and_many_have_those_of_the_largest_spread(parts, monkeypatch):
    train, _ = parts
    one = train.with_features(np.array([True, False, False, False]))
    ranker = AdditiveRLS(interactions=2).fit(one)
    assert len(ranker.interactions_) == 1
    np.testing.assert_allclose(ranker.predict(one.X), AdditiveRLS().fit(one).predict(one.X), atol=1e-12)
    monkeypatch.setattr("moerank.rankers.additive.MOST_PAIRED", 2)
    few = AdditiveRLS(interactions=5).fit(train)
    spread = AdditiveRLS().fit(train).shapes_["feature"].drop_duplicates().tolist()[:2]
    assert {few.interactions_["first"][1], few.interactions_["second"][1]} == set(spread)
    assert len(few.interactions_) == 2

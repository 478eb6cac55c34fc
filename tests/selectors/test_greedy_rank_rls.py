import numpy as np
import pytest

from moerank.data import RankingData
from moerank.metrics import MAP
from moerank.selectors.greedy_rank_rls import GreedyRankRLS


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    sizes = [1, 20, 2, 25, 14, 18]
    X = rng.random((sum(sizes), 8))
    y = np.digitize(X[:, 1] + 0.5 * X[:, 4] + rng.normal(scale=0.2, size=len(X)), [0.7, 1.0])
    return RankingData(X, y, np.repeat(np.arange(len(sizes)), sizes))


def spans(data):
    return [slice(begin, end) for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True)]


def centred(data):
    X, y = data.X.copy(), data.y.astype(float)
    for rows in spans(data):
        X[rows] -= X[rows].mean(axis=0)
        y[rows] -= y[rows].mean()
    return X, y


def naive_wrapper(data, alpha, n_steps):
    """Forward selection that retrains without every query for every candidate."""
    X, y = centred(data)
    order, errors = [], []
    for _ in range(n_steps):
        candidates = []
        for feature in set(range(X.shape[1])) - set(order):
            Z = X[:, [*order, feature]]
            error = 0.0
            for rows in spans(data):
                rest = np.ones(len(y), bool)
                rest[rows] = False
                w = np.linalg.solve(Z[rest].T @ Z[rest] + alpha * np.eye(Z.shape[1]), Z[rest].T @ y[rest])
                error += np.sum((y[rows] - Z[rows] @ w) ** 2)
            candidates.append((error, feature))
        error, feature = min(candidates)
        order.append(feature)
        errors.append(error)
    return order, errors


@pytest.mark.parametrize("alpha", [2.0**-7, 1.0, 2.0**8])
def test_features_errors_and_weights_equal_the_naive_wrapper(data, alpha):
    solver = GreedyRankRLS(8, alpha).fit(data.X, data.y, qid=data.qid)
    order, errors = naive_wrapper(data, alpha, 8)
    assert solver.order_.tolist() == order
    np.testing.assert_allclose(solver.errors_, errors, rtol=1e-8)
    X, y = centred(data)
    for k, w in enumerate(solver.path_coefs_, start=1):
        Z = X[:, order[:k]]
        expected = np.linalg.solve(Z.T @ Z + alpha * np.eye(k), Z.T @ y)
        np.testing.assert_allclose(w[order[:k]], expected, rtol=1e-8, atol=1e-10)
        assert np.count_nonzero(w) == k


def test_a_shorter_path_is_the_beginning_of_a_longer_one(data):
    long, short = (GreedyRankRLS(k).fit(data.X, data.y, qid=data.qid) for k in (6, 3))
    np.testing.assert_array_equal(short.path_coefs_, long.path_coefs_[:3])
    assert short.get_support(indices=True).tolist() == sorted(long.order_[:3].tolist())
    np.testing.assert_allclose(short.predict(data.X), data.X @ short.coef_, rtol=1e-12)


def test_tuning_takes_the_best_of_all_paths(data):
    alphas = (100.0, 0.1)
    grid = [{"n_features_to_select": size, "alpha": alpha} for size in range(1, 9) for alpha in alphas]
    tuned = GreedyRankRLS().tune(data, data, grid)
    values = {}
    for alpha in alphas:
        solver = GreedyRankRLS(8, alpha).fit(data.X, data.y, qid=data.qid)
        for k, w in enumerate(solver.path_coefs_, start=1):
            values[alpha, k] = MAP().score(data, data.X @ w)
    assert values[tuned.alpha, tuned.n_features_to_select] == max(values.values())


def test_a_ridge_that_vanishes_beside_the_features_is_refused_with_the_remedy():
    rng = np.random.default_rng(0)
    X, y = 1e8 * rng.random((40, 3)), rng.integers(0, 3, 40)
    with pytest.raises(ValueError, match=r"alpha=1 vanishes beside .* larger alpha, or scale the features"):
        GreedyRankRLS(alpha=1.0).fit(X, y)
    assert np.isfinite(GreedyRankRLS(alpha=1e16).fit(X, y).errors_).all()

import numpy as np
import pytest

from moerank.selectors.fsm import FSMRankSubgradient


@pytest.fixture(scope="module")
def data(three_relevant):
    return three_relevant


def restated(data, lambda1, lambda2, eta0, max_iter):
    """The iterates and their objectives on explicit differences, similarities as they are."""
    s = np.array([abs(np.corrcoef(x, data.y)[0, 1]) for x in data.X.T])
    A = np.tile(abs(np.corrcoef(data.X.T)), (2, 2))
    cost = np.tile(1.0 / s, 2)
    D = data.X[data.pairs.better] - data.X[data.pairs.worse]
    D = np.hstack([D, -D])
    w = np.zeros(D.shape[1])
    points, values = [], []
    for t in range(1, max_iter + 2):
        slack = np.maximum(0.0, 1.0 - D @ w)
        points.append(w)
        values.append(np.mean(slack**2) + 0.5 * lambda1 * w @ A @ w + lambda2 * cost @ w)
        gradient = -2.0 * D.T @ slack / len(D) + lambda1 * A @ w + lambda2 * cost
        w = np.maximum(0.0, w - eta0 / np.sqrt(t) * gradient)
    return np.array(points), np.array(values)


@pytest.mark.parametrize(("lambda1", "lambda2", "eta0"), [(1e-3, 1e-3, 0.3), (0.5, 1e-2, 1.0), (1e-2, 0.0, 5.0)])
def test_iterates_are_those_of_a_plain_restatement(data, lambda1, lambda2, eta0):
    points, values = restated(data, lambda1, lambda2, eta0, 60)
    ranker = FSMRankSubgradient(lambda1, lambda2, eta0, 60, convex=False).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(ranker.objectives_, values, rtol=1e-9)
    assert len(ranker.default_grid(data)) == 196
    best = int(np.argmin(values))
    np.testing.assert_allclose(ranker.variables_, points[best], rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(ranker.coef_, points[best][:10] - points[best][10:], rtol=1e-8, atol=1e-11)

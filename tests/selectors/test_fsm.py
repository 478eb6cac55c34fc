import numpy as np
import pytest

from moerank.metrics import MAP, NDCG
from moerank.rankers import FSMRank, RankSVM
from moerank.rankers.importance import feature_importance
from moerank.selectors.sparse_rankers import FSMSVM, FSMRankSubgradient


@pytest.mark.parametrize(("lambda1", "lambda2"), [(1e-3, 1e-4), (0.1, 1e-6), (None, None)])
def test_order_is_that_of_the_weights_of_fsm_rank_then_of_importance(data, lambda1, lambda2):
    given = {} if lambda1 is None else {"lambda1": lambda1, "lambda2": lambda2}
    weights = np.abs(FSMRank(**given).fit(data.X, data.y, qid=data.qid).coef_)
    selector = FSMSVM(3, lambda1=lambda1, lambda2=lambda2).fit(data.X, data.y, qid=data.qid)
    assert (np.diff(weights[selector.order_]) <= 0).all()
    rest = selector.order_[np.count_nonzero(weights) :]
    assert (np.diff(feature_importance(data)[rest]) <= 0).all()
    alone = RankSVM().fit(data.X[:, selector.support_], data.y, qid=data.qid)
    np.testing.assert_allclose(selector.coef_[selector.support_], alone.coef_, rtol=1e-4)


@pytest.mark.parametrize("metric", [MAP(), NDCG(5)])
def test_tuning_settles_fsm_rank_first_then_size_and_ranker(data, held_out, metric):
    tuned = FSMSVM().tune(data, held_out, metric=metric)
    first = FSMRank().tune(data, held_out, metric=metric)
    assert (tuned.lambda1, tuned.lambda2) == (first.lambda1, first.lambda2)
    values = []
    grid = FSMSVM().default_grid(data)
    for entry in grid:
        selector = FSMSVM(lambda1=first.lambda1, lambda2=first.lambda2, **entry)
        values.append(metric.score(held_out, selector.fit(data.X, data.y, qid=data.qid).predict(held_out.X)))
    best = grid[int(np.argmax(values))]
    assert tuned.n_features_to_select == best["n_features_to_select"]
    assert tuned.ranker.C == best["ranker"].C


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
def test_iterates_are_those_of_a_plain_restatement(three_relevant, lambda1, lambda2, eta0):
    data = three_relevant
    points, values = restated(data, lambda1, lambda2, eta0, 60)
    ranker = FSMRankSubgradient(lambda1, lambda2, eta0, 60, convex=False).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(ranker.objectives_, values, rtol=1e-9)
    assert len(ranker.default_grid(data)) == 196
    best = int(np.argmin(values))
    np.testing.assert_allclose(ranker.variables_, points[best], rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(ranker.coef_, points[best][:10] - points[best][10:], rtol=1e-8, atol=1e-11)

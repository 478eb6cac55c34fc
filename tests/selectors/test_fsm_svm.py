import numpy as np
import pytest

from moerank.metrics import MAP, NDCG
from moerank.rankers import FSMRank, RankSVM
from moerank.rankers.importance import feature_importance
from moerank.selectors.fsm import FSMSVM


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

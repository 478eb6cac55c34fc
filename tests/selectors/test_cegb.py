"""Cost-efficient boosting against LambdaMART, and against the gains of all first splits less their costs."""

import numpy as np
import pytest

from moerank import CEGB
from moerank.data import FeatureCosts, RankingData
from moerank.rankers import LambdaMART
from moerank.selectors.cegb import relative_costs

SMALL = dict(n_trees=25, n_leaves=4, min_leaf=5)


def priced(data, costs):
    return RankingData(data.X, data.y, qid=data.qid, costs=costs)


def stump_gains(data):
    """The gain of the best first split by each feature, from a LambdaMART of one stump on it alone."""
    gains = []
    for f in range(data.n_features):
        alone = data.with_features(np.arange(data.n_features) == f)
        gains.append(LambdaMART(1, n_leaves=2, min_leaf=5)._learn(alone).booster_.feature_importance("gain")[0])
    return np.array(gains)


def test_without_costs_the_trees_are_those_of_lambda_mart(data):
    free, plain = CEGB(tradeoff=0.0, **SMALL)._learn(data), LambdaMART(**SMALL)._learn(data)
    assert free._scores(data.X).tobytes() == plain._scores(data.X).tobytes()


@pytest.mark.parametrize("share", [0.3, 0.7, 1.2])
def test_the_first_split_has_the_largest_gain_less_its_cost(data, share):
    gains = stump_gains(data)
    best = int(gains.argmax())
    costs = np.where(np.arange(8) == best, 4.0, 1.0)
    tradeoff = share * gains.max() * costs.mean() / 4.0
    reduced = gains - tradeoff * costs / costs.mean()
    stump = CEGB(tradeoff=tradeoff, n_trees=1, n_leaves=2, min_leaf=5)._learn(priced(data, costs))
    expected = [int(reduced.argmax())] if reduced.max() > 0 else []
    assert np.flatnonzero(stump.support_).tolist() == expected


def test_a_group_pays_its_shared_cost_in_equal_parts(data):
    costs = FeatureCosts.of(
        [1.0, 2.0, 3.0, 0, 0, 0, 0, 0], ["a", "a", None, "b", "b", "b", "b", None], {"a": 6, "b": 4}
    )
    assert relative_costs(priced(data, costs)) == pytest.approx(np.array([4, 5, 3, 1, 1, 1, 1, 0]) / 2)
    assert relative_costs(priced(data, np.zeros(8))).tolist() == [1.0] * 8


def test_the_path_is_the_sweep(data):
    solver = CEGB(tradeoff=2.0, **SMALL)._learn(data)
    path = solver.path(data)
    sweep = [CEGB(tradeoff=10.0 ** (p / 2), **SMALL)._learn(data) for p in range(-2, 7)]
    sweep = [LambdaMART(**SMALL)._learn(data), *sweep, solver]
    sweep.sort(key=lambda member: getattr(member, "tradeoff", 0.0))
    for k in range(1, 9):
        fits = [member for member in sweep if 0 < member.support_.sum() <= k]
        member = max(fits, key=lambda member: member.support_.sum(), default=None)
        assert path.feature_mask[k - 1].tolist() == (member.support_.tolist() if member else [False] * 8)
        scores = member._scores(data.X) if member else np.zeros(data.n_documents)
        assert path.scores(data.X)[:, k - 1].tobytes() == scores.tobytes()
    assert len({tuple(row) for row in path.feature_mask.tolist()}) > 2


def test_validation_chooses_the_tradeoff_and_the_number_of_trees(data, held_out):
    tuned = CEGB(**SMALL).tune(data, held_out)
    assert CEGB(**tuned.get_params())._learn(data).support_.any()
    assert tuned.n_trees <= 25
    assert tuned.without_selection().get_params() == LambdaMART(tuned.n_trees, n_leaves=4, min_leaf=5).get_params()

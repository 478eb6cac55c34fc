"""Importance by permutation against plain loops."""

import numpy as np
import pytest

from moerank import LambdaMARTPermutation, PermutationImportance
from moerank.metrics import MAP, NDCG
from moerank.rankers import LambdaMART, RankRLS


def plain_losses(ranker, part, metric, n_permutations, seed, features):
    rng, losses = np.random.default_rng(seed), [0.0] * part.n_features
    for f in features:
        for _ in range(n_permutations):
            changed = [list(row) for row in part.X]
            for row, value in zip(changed, rng.permutation([row[f] for row in changed]), strict=True):
                row[f] = value
            loss = metric.score(part, ranker.predict(part.X)) - metric.score(part, ranker.predict(np.array(changed)))
            losses[f] += loss / n_permutations
    return np.array(losses)


@pytest.mark.parametrize("watched", [False, True])
def test_a_linear_judge_loses_the_metric_that_loops_measure(data, held_out, watched):
    part = held_out if watched else data
    judge = RankRLS(0.1).fit(data)
    expected = plain_losses(judge, part, MAP(), 3, 7, range(8))
    validation = held_out if watched else None
    solver = PermutationImportance(3, judge=RankRLS(0.1), metric="MAP", n_permutations=3, random_state=7)
    solver.fit(data, validation=validation)
    assert solver.order_.tolist() == np.argsort(-expected, kind="stable").tolist()
    assert set(solver.order_[:2]) == {1, 4}
    measured = solver._losses(judge.predict, data, validation, np.ones(8, bool))
    np.testing.assert_allclose(measured, expected, atol=1e-12)


def test_validation_chooses_the_regularisation_of_the_judge(data, held_out):
    given = RankRLS().tune(data, held_out)
    orders = [
        PermutationImportance(judge=judge, random_state=0).fit(data, validation=held_out).order_.tolist()
        for judge in (None, given)
    ]
    assert orders[0] == orders[1]


def test_trees_lose_by_the_features_that_they_split_by(data, held_out):
    small = dict(n_trees=12, n_leaves=3, min_leaf=5)
    trees = LambdaMART(**small).stopped(data, held_out).fit(data)
    expected = plain_losses(trees, held_out, NDCG(10), 5, 2, np.flatnonzero(trees.support_))
    gain = trees.booster_.feature_importance("gain")
    solver = LambdaMARTPermutation(3, **small, random_state=2).fit(data, validation=held_out)
    assert solver.order_.tolist() == sorted(range(8), key=lambda f: (-expected[f], -gain[f]))

"""ILMART against LightGBM with its constraints, and against walks through all trees."""

import lightgbm
import numpy as np
import pytest

from moerank.metrics import MAP
from moerank.rankers import LambdaMART
from moerank.rankers.boosting import steadied
from moerank.rankers.lambda_mart import scores_by_trees
from moerank.selectors.tree_filters import ILMART, PAIR_TREES, PairwiseLambdaMART

SMALL = dict(n_trees=25, n_leaves=4, min_leaf=5)


def trees_of(booster):
    return [tree["tree_structure"] for tree in booster.dump_model()["tree_info"]]


def branches(node, above=frozenset()):
    """The features of each path from the root to a leaf."""
    if "split_feature" not in node:
        return [above]
    above = above | {node["split_feature"]}
    return branches(node["left_child"], above) + branches(node["right_child"], above)


def lightgbm_of(data, n_trees, constraints, start=None, columns=None, n_leaves=4):
    parameters = {"objective": "lambdarank", "learning_rate": 0.1, "num_leaves": n_leaves, "min_data_in_leaf": 5}
    parameters |= {"min_data_in_bin": 1, "max_bin": 255, "lambdarank_truncation_level": 10, "num_threads": 1}
    parameters |= {"label_gain": [0, 1, 3], "deterministic": True, "force_col_wise": True, "verbosity": -1}
    if constraints:
        parameters["interaction_constraints"] = constraints
    table = data.X if columns is None else data.X[:, columns]
    train = lightgbm.Dataset(table, data.y, group=np.diff(data.offsets), params=parameters)
    return lightgbm.train(parameters, train, n_trees, init_model=start)


def plain(data, n_pairs, n_pair_trees):
    """LightGBM's trees of one feature, the best pairs, and LightGBM's trees of both kinds."""
    single = lightgbm_of(data, 25, [[f] for f in range(8)])
    used = sorted(set().union(*(branch for tree in trees_of(single) for branch in branches(tree))))
    pairs = []
    for tree in trees_of(lightgbm_of(data, PAIR_TREES, None, columns=used, n_leaves=3)):
        features = sorted({used[f] for branch in branches(tree) for f in branch})
        if len(features) == 2 and features not in pairs:
            pairs.append(features)
    return single, pairs[:n_pairs], lightgbm_of(data, n_pair_trees, pairs[:n_pairs], start=single)


@pytest.mark.parametrize("n_pairs", [1, 3, 40])
def test_trees_are_those_of_lightgbm_with_the_best_pairs(data, n_pairs):
    single, pairs, both = plain(data, n_pairs, 15)
    ranker = PairwiseLambdaMART(**SMALL, n_pairs=n_pairs, n_pair_trees=15)._learn(data)
    np.testing.assert_array_equal(ranker._scores(data.X), both.predict(data.X))
    trees = trees_of(ranker.booster_)
    assert len(trees) == 40
    assert all(len(set().union(*branches(tree))) <= 1 for tree in trees[:25])
    allowed = [set(pair) for pair in pairs]
    split = [branch for tree in trees[25:] for branch in branches(tree) if branch]
    assert all(any(branch <= pair for pair in allowed) for branch in split)
    assert any(len(branch) == 2 for branch in split)
    alone = PairwiseLambdaMART(**SMALL, n_pair_trees=0)._learn(data)
    np.testing.assert_array_equal(alone._scores(data.X), single.predict(data.X))


def test_features_are_ordered_as_trees_of_one_feature_first_split_by_them(data):
    entered = []
    for tree in trees_of(lightgbm_of(data, 25, [[f] for f in range(8)])):
        entered += [f for f in set().union(*branches(tree)) if f not in entered]
    solver = ILMART(3, **SMALL).fit(data)
    assert solver.order_.tolist() == entered + [f for f in range(8) if f not in entered]
    masks = solver.path(data).feature_mask
    assert [set(np.flatnonzero(row)) for row in masks] == [set(solver.order_[:k].tolist()) for k in range(1, 9)]
    np.testing.assert_allclose(solver.forest_.scores(data.X), solver.predict(data.X), rtol=1e-12)


def test_validation_chooses_both_numbers_of_trees(data, held_out):
    chosen = PairwiseLambdaMART(**SMALL, n_pairs=3, n_pair_trees=30).stopped(data, held_out)
    single = PairwiseLambdaMART(**SMALL, n_pair_trees=0)
    values = MAP().score(held_out, scores_by_trees(single._learn(data).booster_, held_out.X))
    assert chosen.n_trees == 1 + steadied(values).argmax()
    both = PairwiseLambdaMART(chosen.n_trees, n_leaves=4, min_leaf=5, n_pairs=3, n_pair_trees=30)._learn(data)
    scores = scores_by_trees(both.booster_, held_out.X)[:, chosen.n_trees - 1 :]
    best = steadied(MAP().score(held_out, scores)).argmax()
    assert (chosen.n_pairs, chosen.n_pair_trees) == (3, best)
    solver = ILMART(8, **SMALL, n_pairs=3).fit(data, validation=held_out)
    assert solver.n_trees_ == chosen.n_trees
    assert solver.without_selection().get_params() == LambdaMART(**SMALL).get_params()

"""Selection by gain, by Shapley values, by elimination and by ILMART, against plain loops, all sets, and LightGBM."""

from itertools import combinations
from math import factorial

import lightgbm
import numpy as np
import pytest
from helpers.plain import rows_of_lightgbm

from moerank import CEGB, ILMART, LambdaMARTGain, LambdaMARTRFE, LambdaMARTSHAP
from moerank.data import FeatureCosts, RankingData
from moerank.metrics import MAP
from moerank.rankers import LambdaMART, RankRLS
from moerank.rankers.boosting import steadied
from moerank.selectors.tree_filters import (
    PAIR_TREES,
    PairwiseLambdaMART,
    mean_absolute_shap,
    relative_costs,
    sizes_by_dropping,
)

KINDS = [LambdaMARTGain, LambdaMARTSHAP, LambdaMARTRFE]
SMALL = dict(n_trees=25, n_leaves=4, min_leaf=5)


def trees_of(booster):
    return [tree["tree_structure"] for tree in booster.dump_model()["tree_info"]]


def gains(node, total):
    """Add the gain of every split of a tree to its feature."""
    if "split_feature" in node:
        total[node["split_feature"]] += node["split_gain"]
        gains(node["left_child"], total)
        gains(node["right_child"], total)


def n_below(node):
    return node["internal_count"] if "split_feature" in node else node["leaf_count"]


def expected_score(node, x, reference):
    """The score of a tree where only the features of `known` have the values of x."""
    if "split_feature" not in node:
        return node["leaf_value"]
    left, right = node["left_child"], node["right_child"]
    if node["split_feature"] in reference:
        return expected_score(left if x[node["split_feature"]] <= node["threshold"] else right, x, reference)
    parts = [n_below(child) * expected_score(child, x, reference) for child in (left, right)]
    return sum(parts) / n_below(node)


def shapley(tree, x, n):
    """The Shapley values of the game in which a set of features plays for the expected score."""
    worth = {s: expected_score(tree, x, s) for k in range(n + 1) for s in combinations(range(n), k)}
    values = np.zeros(n)
    for s, value in worth.items():
        for f in set(range(n)) - set(s):
            weight = factorial(len(s)) * factorial(n - len(s) - 1) / factorial(n)
            values[f] += weight * (worth[tuple(sorted((*s, f)))] - value)
    return values


@pytest.fixture(scope="module")
def four(data):
    return data.with_features(np.arange(8) < 4)


def test_shapley_values_are_those_of_all_sets_of_features(four):
    selector = LambdaMARTSHAP(2, n_trees=6, n_leaves=6, min_leaf=3)._learn(four)
    booster = LambdaMART(6, n_leaves=6, min_leaf=3)._learn(four).booster_
    forest = trees_of(booster)
    assert any("split_feature" in tree["left_child"] for tree in forest)
    values = [sum(shapley(tree, x, 4) for tree in forest) for x in four.X]
    expected = np.abs(values).mean(axis=0)
    assert np.count_nonzero(expected) > 2
    np.testing.assert_allclose(mean_absolute_shap(booster, four.X), expected, rtol=1e-9, atol=1e-12)
    assert selector.order_.tolist() == np.argsort(-expected).tolist()


def test_blocks_of_rows_change_nothing_but_rounding(four):
    booster = LambdaMART(6, min_leaf=3)._learn(four).booster_
    together = mean_absolute_shap(booster, four.X)
    for entries in (1, 35, 10**6):
        np.testing.assert_allclose(mean_absolute_shap(booster, four.X, entries), together, rtol=1e-12)


def test_gain_is_summed_over_the_splits_of_all_trees(data):
    total = np.zeros(8)
    for tree in trees_of(LambdaMART(25, n_leaves=4, min_leaf=5)._learn(data).booster_):
        gains(tree, total)
    assert LambdaMARTGain(3, **SMALL)._learn(data).order_.tolist() == np.argsort(-total, kind="stable").tolist()
    assert set(np.argsort(-total)[:2]) == {1, 4}


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("drop", [0.2, 0.5, 0.9])
def test_elimination_is_the_loop_of_training_and_dropping(data, held_out, drop, watched):
    left, visited = list(range(8)), []
    while True:
        visited.append(left)
        if len(left) == 1:
            break
        columns = np.isin(np.arange(8), left)
        trees = LambdaMART(25, n_leaves=4, min_leaf=5)
        if watched:
            trees = trees.stopped(data.with_features(columns), held_out.with_features(columns))
        total = np.zeros(len(left))
        for tree in trees_of(trees._learn(data.with_features(columns)).booster_):
            gains(tree, total)
        weakest = sorted(range(len(left)), key=lambda i: (total[i], -i))[: max(1, int(drop * len(left)))]
        left = [f for i, f in enumerate(left) if i not in weakest]
    selector = LambdaMARTRFE(3, drop=drop, **SMALL)._learn(data, held_out if watched else None)
    masks = selector.path(data).feature_mask
    for k in range(1, 9):
        expected = next(features for features in visited if len(features) <= k)
        assert np.flatnonzero(masks[k - 1]).tolist() == expected
    assert np.flatnonzero(selector.support_).tolist() == next(v for v in visited if len(v) <= 3)
    assert sizes_by_dropping(8, drop) == [len(features) for features in visited[::-1]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_lambdamart_with_the_number_of_trees_that_validation_chooses_is_served(data, held_out, kind):
    selector = kind(3, **SMALL).fit(data, validation=held_out)
    columns = selector.support_
    trees = LambdaMART(**SMALL).stopped(data.with_features(columns), held_out.with_features(columns))
    assert selector.n_trees_ == trees.n_trees
    expected = trees.fit(data.X[:, columns], data.y, qid=data.qid).predict(held_out.X[:, columns])
    np.testing.assert_array_equal(selector.predict(held_out.X), expected)
    np.testing.assert_allclose(selector.forest_.scores(held_out.X), expected, rtol=1e-12)
    alone = kind(3, **SMALL).fit(data)
    assert alone.n_trees_ == 25
    path = selector.path(data)
    np.testing.assert_array_equal(path.scores(held_out.X)[:, columns.sum() - 1], expected)


@pytest.mark.parametrize("kind", KINDS)
def test_another_ranker_may_be_served(data, held_out, kind):
    ranker = RankRLS(alpha=0.1)
    selector = kind(3, ranker, **SMALL).fit(data, validation=held_out)
    assert selector.order_.tolist() == kind(3, **SMALL).fit(data, validation=held_out).order_.tolist()
    columns = selector.support_
    expected = ranker.fit(data.X[:, columns], data.y, qid=data.qid).coef_
    np.testing.assert_allclose(selector.coef_[columns], expected, rtol=1e-6)
    assert len(selector.default_grid(data)) == 8 * 2 * len(ranker.default_grid(data))


def branches(node, above=frozenset()):
    """The features of each path from the root to a leaf."""
    if "split_feature" not in node:
        return [above]
    above = above | {node["split_feature"]}
    return branches(node["left_child"], above) + branches(node["right_child"], above)


def branches_of_forest(forest, node, above=frozenset()):
    """The features of each path from a node of a forest to a leaf."""
    if node < 0:
        return [above]
    above = above | {forest.columns[node]}
    children = forest.left[node], forest.right[node]
    return [branch for child in children for branch in branches_of_forest(forest, child, above)]


def lightgbm_of(data, n_trees, constraints, start=None, columns=None, n_leaves=4):
    parameters = {"objective": "lambdarank", "learning_rate": 0.1, "num_leaves": n_leaves, "min_data_in_leaf": 5}
    parameters |= {"min_data_in_bin": 1, "max_bin": 255, "lambdarank_truncation_level": 10, "num_threads": 1}
    parameters |= {"label_gain": [0, 1, 3], "deterministic": True, "force_col_wise": True, "verbosity": -1}
    if constraints:
        parameters["interaction_constraints"] = constraints
    table = data.X if columns is None else data.X[:, columns]
    rows = rows_of_lightgbm(data, table)
    train = lightgbm.Dataset(table[rows], data.y[rows], group=np.diff(data.offsets), params=parameters)
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
    roots = ranker.forest_.roots
    assert len(roots) == 40
    features = [branches_of_forest(ranker.forest_, root) for root in roots]
    assert all(len(set().union(*tree)) <= 1 for tree in features[:25])
    allowed = [set(pair) for pair in pairs]
    split = [branch for tree in features[25:] for branch in tree if branch]
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
    values = MAP().score(held_out, single._learn(data).forest_.staged_scores(held_out.X))
    assert chosen.n_trees == 1 + steadied(values).argmax()
    both = PairwiseLambdaMART(chosen.n_trees, n_leaves=4, min_leaf=5, n_pairs=3, n_pair_trees=30)._learn(data)
    scores = both.forest_.staged_scores(held_out.X)[:, chosen.n_trees - 1 :]
    quality = MAP().score(held_out, scores)
    # Training keeps the trees up to the best mean over the last 21.
    n_kept = 21 + np.convolve(quality[1:], np.ones(21), "valid").argmax()
    best = steadied(quality[: 1 + n_kept]).argmax()
    assert (chosen.n_pairs, chosen.n_pair_trees) == (3, best)
    solver = ILMART(8, **SMALL, n_pairs=3).fit(data, validation=held_out)
    assert solver.n_trees_ == chosen.n_trees
    assert solver.without_selection().get_params() == LambdaMART(**SMALL).get_params()


def priced(data, costs):
    return RankingData(data.X, data.y, qid=data.qid, costs=costs)


def stump_gains(data):
    """The gain of the best first split by each feature, from LightGBM's trees of one stump by it alone."""
    return sum(lightgbm_of(data, 1, [[f]], n_leaves=2).feature_importance("gain") for f in range(data.n_features))


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

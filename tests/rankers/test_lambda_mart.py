"""LambdaMART and BL-MART against direct calls of LightGBM's own ranker."""

import numpy as np
import pytest
from helpers.plain import rows_of_lightgbm
from lightgbm import LGBMRanker

from moerank.data import RankingData
from moerank.metrics import MAP
from moerank.rankers import BaggedLambdaMART, LambdaMART


def lightgbm_ranker(data, **parameters):
    """LightGBM's estimator with what both rankers always set."""
    fixed = dict(
        n_jobs=1,
        verbose=-1,
        min_child_samples=1,
        min_data_in_bin=1,
        lambdarank_truncation_level=10,
        label_gain=[2**y - 1 for y in range(data.y.max() + 1)],
        deterministic=True,
        force_col_wise=True,
    )
    rows = rows_of_lightgbm(data, data.X[:, np.ptp(data.X, axis=0) > 0])
    return LGBMRanker(**{**fixed, **parameters}).fit(data.X[rows], data.y[rows], group=np.diff(data.offsets))


@pytest.fixture(scope="module")
def held_out():
    rng = np.random.default_rng(8)
    X = rng.random((90, 12))
    return RankingData(X, (2.9 * X[:, 0]).astype(int), np.repeat(np.arange(6), 15))


@pytest.mark.parametrize(("n_leaves", "min_leaf", "k"), [(10, 1, 10), (4, 7, 3)])
def test_equals_a_direct_call_of_lightgbm(noisy_data, held_out, n_leaves, min_leaf, k):
    ranker = LambdaMART(60, 0.2, n_leaves, min_leaf, n_bins=50, k=k).fit(noisy_data)
    direct = lightgbm_ranker(
        noisy_data,
        n_estimators=60,
        learning_rate=0.2,
        num_leaves=n_leaves,
        min_child_samples=min_leaf,
        max_bin=50,
        lambdarank_truncation_level=k,
    )
    np.testing.assert_array_equal(ranker.predict(held_out.X), direct.predict(held_out.X))
    np.testing.assert_array_equal(ranker.support_, direct.feature_importances_ > 0)
    assert len(np.unique(ranker.predict(held_out.X))) > 20


@pytest.mark.parametrize("ranker", [LambdaMART(20), BaggedLambdaMART(2, n_trees=20, random_state=0)], ids=type)
def test_the_order_of_the_rows_of_a_query_does_not_count(noisy_data, held_out, ranker):
    query = np.repeat(np.arange(noisy_data.n_queries), np.diff(noisy_data.offsets))
    expected = ranker.fit(noisy_data).predict(held_out.X)
    for key in (noisy_data.y, -noisy_data.y, np.random.default_rng(0).random(len(query))):
        rows = np.lexsort((key, query))
        data = RankingData(noisy_data.X[rows], noisy_data.y[rows], noisy_data.qid[rows])
        np.testing.assert_array_equal(ranker.fit(data).predict(held_out.X), expected)


def mean_of_neighbours(values, reach):
    return [np.mean([values[j] for j in range(len(values)) if abs(i - j) <= reach]) for i in range(len(values))]


def test_tuning_takes_the_form_and_the_number_of_trees_with_the_best_neighbourhood(noisy_data, held_out):
    grid = LambdaMART(20, min_leaf=2).default_grid(noisy_data)
    found = {}
    for form in [{name: entry[name] for name in entry if name != "n_trees"} for entry in grid[: len(grid) // 20]]:
        ranker = LambdaMART(20, **form).fit(noisy_data)
        quality = [MAP().score(held_out, ranker.booster_.predict(held_out.X, num_iteration=t)) for t in range(1, 21)]
        found |= {(t, *form.values()): v for t, v in enumerate(mean_of_neighbours(quality, 2), start=1)}
    tuned = LambdaMART(20, min_leaf=2).tune(noisy_data, held_out)
    assert found[tuned.n_trees, tuned.n_leaves, tuned.min_leaf, tuned.learning_rate] == pytest.approx(
        max(found.values()), rel=1e-12
    )
    assert len(found) == 20 * len({entry[1:] for entry in found}) == len(grid)


def test_trees_end_where_the_mean_of_21_values_has_not_grown_for_long(noisy_data, held_out):
    ranker = LambdaMART(400, patience=7)
    direct = LambdaMART(400).fit(noisy_data)
    staged = direct.forest_.staged_scores(held_out.X)
    quality = MAP().score(held_out, staged)
    means = [np.mean(quality[t - 21 : t]) for t in range(21, 401)]
    end = next(t for t in range(len(means)) if max(means[: t + 1]) == max(means[: t + 8])) + 21
    scores = ranker._validation_scores(noisy_data, held_out)
    assert 21 < end < 393
    np.testing.assert_array_equal(scores, staged[:, :end])
    best = int(np.argmax(mean_of_neighbours(quality[:end], min(10, end // 10))))
    stopped = ranker.stopped(noisy_data, held_out)
    assert stopped.n_trees == best + 1
    assert LambdaMART(15).stopped(noisy_data, held_out).n_trees > 1, "fewer than 21 trees are all looked at"
    assert stopped.get_params() == {**ranker.get_params(), "n_trees": best + 1}


def bag_of(data, queries):
    rows = np.isin(np.searchsorted(data.offsets, np.arange(data.n_documents), side="right") - 1, queries)
    return RankingData(data.X[rows], data.y[rows], data.qid[rows])


def test_bagging_is_the_mean_of_rankers_trained_on_their_bags(noisy_data, held_out):
    settings = dict(document_share=1.0, feature_share=1.0, min_leaf_share=0.03, patience=7)
    ranker = BaggedLambdaMART(n_bags=4, n_trees=40, random_state=0, **settings).fit(noisy_data, validation=held_out)
    assert len({tuple(bag) for bag in ranker.bags_}) > 1
    teaching = [q for q in range(noisy_data.n_queries) if np.ptp(noisy_data.y[noisy_data.qid == q]) > 0]
    members = []
    for queries, n_trees in zip(ranker.bags_, ranker.n_trees_, strict=True):
        assert len(set(queries)) == len(queries) == round(0.67 * len(teaching))
        assert set(queries) <= set(teaching)
        bag = bag_of(noisy_data, queries)
        parameters = {"learning_rate": 0.05, "num_leaves": 7, "min_child_samples": round(0.03 * bag.n_documents)}
        direct = lightgbm_ranker(bag, n_estimators=40, **parameters)
        quality = [MAP().score(held_out, direct.predict(held_out.X, num_iteration=t)) for t in range(1, 41)]
        ends = next(t for t in range(1, 41) if t == 40 or max(quality[: t + 1]) == max(quality[: t + 8]))
        assert n_trees == 1 + np.argmax(quality[: ends + 7])
        members.append(direct.predict(noisy_data.X, num_iteration=n_trees))
    np.testing.assert_allclose(ranker.predict(noisy_data.X), np.mean(members, axis=0), rtol=1e-12)


def test_without_validation_data_the_queries_left_out_are_watched(noisy_data):
    ranker = BaggedLambdaMART(n_bags=3, n_trees=60, patience=60, random_state=1).fit(noisy_data)
    for bag, booster, n_trees in zip(ranker.bags_, ranker.boosters_, ranker.n_trees_, strict=True):
        teaching = [q for q in range(noisy_data.n_queries) if np.ptp(noisy_data.y[noisy_data.qid == q]) > 0]
        left_out = bag_of(noisy_data, np.setdiff1d(teaching, bag))
        quality = [MAP().score(left_out, booster.predict(left_out.X, num_iteration=t)) for t in range(1, 61)]
        assert n_trees == 1 + np.argmax(quality)

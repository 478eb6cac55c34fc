"""The ranker that serves: candidate sets, the kind by cross-validation, the finalists, and features of the query."""

import numpy as np
import pytest

from moerank.data import RankingData, load_planted_fold
from moerank.metrics import NDCG
from moerank.mofsrank.estimator import MOFSRank
from moerank.mofsrank.feature_selection import FeatureSelection
from moerank.mofsrank.objectives import choose_member
from moerank.mofsrank.serving import CrossValidation, FeatureSets, find_finalists, probes_of
from moerank.mofsrank.settings import Limits
from moerank.rankers import AdditiveRLS, LambdaMART, RankRLS
from moerank.rankers.adapter import train_on_subsets

METRIC = NDCG(5)
BUDGET = {"population": 10, "generations": 4}
TREES = "lambdamart[n_trees=30,n_leaves=4,min_leaf=3,patience=10]"
PROPOSALS = ("lambdamart-gain[n_trees=20,n_leaves=4]",)


@pytest.fixture(scope="module")
def fold():
    return load_planted_fold(1, n_queries=60, n_documents=10, n_relevant=3, n_redundant=2, n_noise=4)


def by_query(seed, n_queries):
    """Data in which a feature of the query, the last one, says which of two features of the documents counts."""
    rng = np.random.default_rng(seed)
    kind = np.repeat(rng.integers(0, 2, n_queries), 12)
    X = np.column_stack([rng.normal(size=(12 * n_queries, 5)), kind])
    utility = np.where(kind == 1, X[:, 0], X[:, 1]) + 0.3 * rng.normal(size=len(X))
    return RankingData(X, np.digitize(utility, np.quantile(utility, [0.6, 0.85])), np.repeat(np.arange(n_queries), 12))


def fitted(fold, refit, **arguments):
    settings = {
        "feature_selection": BUDGET,
        "ensemble": False,
        "instance_selection": False,
        "random_state": 0,
        "proposals": PROPOSALS,
        "metric": METRIC,
    }
    solver = MOFSRank("additive", refit=refit, **settings | arguments)
    return solver.fit(fold[0], validation=fold[1])


def test_an_order_gives_sets_of_growing_size_that_keep_the_limits(fold):
    train = fold[0]
    limits = Limits(include=[2], exclude=[7], max_features=4)
    stage = FeatureSelection(train, AdditiveRLS(), METRIC, limits=limits)
    sets = FeatureSets.of_order(np.array([7, 5, 1, 0, 3]), stage, "gain")
    assert [np.flatnonzero(row).tolist() for row in sets.feature_mask] == [[2], [2, 5], [1, 2, 5], [0, 1, 2, 5]]
    np.testing.assert_array_equal(sets.F, stage.evaluate(sets.feature_mask))
    other = FeatureSets(np.eye(3, train.n_features, dtype=bool), np.zeros((3, 2)), ("search",) * 3)
    joined = FeatureSets.joined([other, sets])
    assert joined.sources == ("search",) * 3 + ("gain",) * 3  # {2} came before
    assert len(np.unique(joined.feature_mask, axis=0)) == len(joined.feature_mask) == len(joined.F) == 6


def test_cross_validation_scores_each_query_by_rankers_of_other_queries(fold):
    train, validation, _ = fold
    data = train.with_queries_of(validation)
    assert data.n_queries == train.n_queries + validation.n_queries
    np.testing.assert_array_equal(data.X, np.vstack([train.X, validation.X]))
    queries = CrossValidation.over(data, METRIC, random_state=3, workers=2)
    assert np.bincount(queries.folds).tolist() == [16, 16, 16]
    masks = np.random.default_rng(0).random((3, train.n_features)) < 0.5
    values = queries.values(RankRLS(alpha=0.1), masks)
    for fold_number in range(3):
        rows = np.repeat(queries.folds, np.diff(data.offsets)) == fold_number
        for mask, column in zip(masks, values.T, strict=True):
            ranker = RankRLS(alpha=0.1).fit(data.X[~rows][:, mask], data.y[~rows], qid=data.qid[~rows])
            scores = ranker.predict(data.X[rows][:, mask])
            expected = METRIC.per_query(data.with_rows(np.flatnonzero(rows)), scores)
            np.testing.assert_allclose(column[queries.folds == fold_number], expected, atol=1e-12)


def test_folds_share_the_queries_with_pairs_evenly():
    y = np.r_[np.tile([0, 1], 4), np.zeros(16, int)]
    data = RankingData(np.random.default_rng(0).random((24, 2)), y, np.repeat(np.arange(12), 2))
    queries = CrossValidation.over(data, METRIC, random_state=0, workers=1)
    assert sorted(np.bincount(queries.folds[:4], minlength=3)) == [1, 1, 2]
    assert queries.suffices
    few = data.with_rows(np.arange(4, 24))
    assert not CrossValidation.over(few, METRIC, random_state=0, workers=1).suffices


def test_the_best_member_of_each_class_of_sizes_is_a_finalist():
    sizes = np.array([1, 2, 3, 4, 5, 7, 9, 12, 13, 30])
    means = np.array([0.3, 0.2, 0.5, 0.6, 0.55, 0.5, 0.7, 0.7, 0.1, 0.8])
    assert find_finalists(sizes, means).tolist() == [0, 2, 3, 5, 6, 9]


def test_probes_are_of_each_source_and_the_largest_of_the_search():
    masks = np.tri(30, 30, dtype=bool)  # 1, 2, … 30 features
    sets = FeatureSets(masks[[0, 4, 14, 24, 7, 11, 2]], np.zeros((7, 2)), ("search",) * 4 + ("gain",) * 2 + ("rfe",))
    assert np.count_nonzero(probes_of(sets), axis=1).tolist() == [5, 15, 8, 3, 30]


def test_the_kind_is_chosen_by_cross_validation_and_the_member_among_finalists(fold):
    train, validation, test = fold
    solver = fitted(fold, ["rankrls", TREES])
    kinds = [
        RankRLS().tune(train, validation, metric=METRIC),
        LambdaMART(n_trees=30, n_leaves=4, min_leaf=3, patience=10),
    ]
    queries = CrossValidation.over(train.with_queries_of(validation), METRIC, random_state=0, workers=1)
    reference = train_on_subsets(kinds[1], train, np.ones((1, 9), bool), validation, metric=METRIC).rankers[0]
    settled = [kinds[0], LambdaMART(max(20, reference.n_trees), n_leaves=4, min_leaf=3, patience=10)]
    everything = np.ones((1, 9), bool)
    assert isinstance(solver.refit_, RankRLS)  # the data are linear
    means = [queries.values(ranker, everything).mean() for ranker in settled]
    assert means[0] > means[1]

    front = solver.front_
    assert set(front["source"]) <= {"search", "greedy path", *PROPOSALS}
    # Linear rankers train together, so that cross-validation compares all sets; trees are compared by validation.
    sizes, quality = front["n_features"].to_numpy(), queries.values(settled[0], solver.front_support_).mean(axis=0)
    np.testing.assert_allclose(front["unseen"], quality, atol=1e-12)
    few = find_finalists(sizes, quality)
    unseen = queries.values(settled[0], solver.front_support_[few])
    assert solver.chosen_ == few[choose_member("half-se", sizes[few], unseen.mean(axis=0), unseen)]
    better = [
        np.any((sizes <= sizes[i]) & (quality >= quality[i]) & ((sizes < sizes[i]) | (quality > quality[i])))
        for i in range(len(sizes))
    ]
    assert not np.any(np.delete(better, few))
    scores = kinds[0].fit(train).predict(validation.X)
    assert METRIC.score(validation, scores) >= METRIC.score(validation, reference.predict(validation.X))
    assert solver.verdict(test).against == ""


@pytest.fixture(scope="module")
def query_fold():
    return by_query(1, 60), by_query(2, 40), by_query(3, 60)


def test_trees_serve_where_a_feature_of_the_query_decides(query_fold):
    solver = fitted(query_fold, ["additive", TREES])
    assert isinstance(solver.refit_, LambdaMART)
    assert set(np.flatnonzero(solver.support_)) >= {0, 1, 5}
    assert solver.verdict_.n_allowed == 6
    alone = MOFSRank("additive", METRIC, feature_selection=BUDGET, ensemble=False, random_state=0)
    alone.fit(query_fold[0], validation=query_fold[1])
    test = query_fold[2]
    assert METRIC.score(test, solver.predict(test.X)) > METRIC.score(test, alone.predict(test.X)) + 0.05


def test_a_single_ranker_that_can_use_features_of_the_query_gets_them(query_fold):
    solver = fitted(query_fold, LambdaMART(n_trees=30, n_leaves=4, min_leaf=3), tune=False)
    assert solver.front_support_[:, 5].any()
    assert (solver.front_["source"] != "search").any()


def test_the_result_does_not_depend_on_the_number_of_threads(query_fold):
    solvers = [fitted(query_fold, ["additive", TREES], workers=workers) for workers in (1, 2)]
    assert solvers[0].front_.equals(solvers[1].front_)
    test = query_fold[2]
    np.testing.assert_array_equal(solvers[0].predict(test.X), solvers[1].predict(test.X))


def test_several_rankers_need_validation_data(fold):
    with pytest.raises(ValueError, match="refit with several rankers needs validation data; pass validation="):
        MOFSRank("additive", METRIC, refit=["rankrls", "additive"]).fit(fold[0])


def test_weights_and_large_labels_reach_every_kind_and_every_proposal(fold):
    rng = np.random.default_rng(0)
    parts = [
        RankingData(part.X64, 40 * part.y, part.qid, query_weights=rng.integers(1, 4, part.n_queries)) for part in fold
    ]
    proposals = (*PROPOSALS, "lambdamart-permutation[n_trees=10,n_permutations=1]", "lambdamart-rfe[n_trees=10]")
    solver = fitted(parts, ["rankrls", TREES], metric=NDCG(5, gain="linear"), proposals=proposals)
    assert set(solver.front_["source"]) <= {"search", "greedy path", *proposals}
    assert parts[0].y.max() > 62 and np.isfinite(solver.predict(parts[2])).all()


def test_sets_of_trees_are_compared_by_validation_and_few_queries_by_nothing_else(fold):
    solver = fitted(fold, [TREES])
    sizes, quality = solver.front_["n_features"].to_numpy(), solver.front_["validation"].to_numpy()
    better = [
        np.any((sizes <= n) & (quality >= v) & ((sizes < n) | (quality > v)))
        for n, v in zip(sizes, quality, strict=True)
    ]
    assert not np.any(np.delete(better, find_finalists(sizes, quality)))
    np.testing.assert_allclose(solver.front_["unseen"], quality, atol=1e-12)
    train, validation, _ = fold
    one = [part.with_rows(np.arange(10)) for part in (train, validation)]
    few = fitted(one, ["rankrls", TREES])  # no fold of one of two queries could be trained on
    assert isinstance(few.refit_, RankRLS) and few.front_["validation"].notna().all()

import numpy as np
import pytest
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge

from moerank import LambdaMARTPermutation, PermutationImportance
from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, NDCG, MeanNDCG, Precision
from moerank.rankers import FSMRank, LambdaMART, LinearRanker, RankRLS, RankSVM
from moerank.rankers.importance import single_feature_values
from moerank.selectors.filter import Filter, SingleFeatures

TREES = LGBMRanker(n_estimators=5, min_child_samples=5, n_jobs=1, verbose=-1, random_state=0)


class Given(Filter):
    """Orders the features from the last to the first, or the other way; counts how often it is asked."""

    asked = 0

    def __init__(self, n_features_to_select=10, ranker=None, forwards=False):
        super().__init__(n_features_to_select, ranker)
        self.forwards = forwards

    def _own_grid(self, train):
        return [{"forwards": False}, {"forwards": True}]

    def _order(self, train, validation):
        Given.asked += 1
        assert all(np.ptp(column) > 0 for column in train.X.T)
        assert validation is None or validation.n_features == train.n_features
        return np.arange(train.n_features)[:: 1 if self.forwards else -1]


class Rounds(LinearRanker):
    _size = "rounds"

    def __init__(self, rounds=1):
        self.rounds = rounds

    def default_grid(self, train):
        return [{"rounds": rounds} for rounds in range(1, 6)]

    def _weights(self, train):
        return np.full(train.n_features, 1.0 / self.rounds)


@pytest.fixture
def with_constant(data):
    X = data.X.copy()
    X[:, 6] = 0.5
    return RankingData(X, data.y, data.qid)


@pytest.mark.parametrize("ranker", [None, RankRLS(alpha=0.1), FSMRank(lambda2=1e-6), Ridge(), Rounds(3), TREES])
def test_the_ranker_is_trained_on_the_first_features_only(with_constant, ranker):
    data = with_constant
    selector = Given(3, ranker).fit(data.X, data.y, qid=data.qid)
    assert selector.order_.tolist() == [7, 5, 4, 3, 2, 1, 0]
    assert np.flatnonzero(selector.support_).tolist() == [4, 5, 7]
    columns = data.X[:, [4, 5, 7]]
    alone = RankSVM() if ranker is None else ranker
    queries = {"group": np.diff(data.offsets)} if ranker is TREES else {"qid": data.qid}
    alone.fit(columns, data.y, **({} if isinstance(ranker, Ridge) else queries))
    expected = alone.predict(columns) - getattr(alone, "intercept_", 0.0)
    np.testing.assert_allclose(selector.predict(data.X), expected, rtol=1e-4, atol=1e-8)
    assert hasattr(selector, "coef_") == (ranker is not TREES)


def test_rankers_without_weights_have_a_path(data):
    selector = Given(3, TREES).fit(data.X, data.y, qid=data.qid)
    path = selector.path(data)
    assert path.feature_mask.sum(axis=1).tolist() == list(range(1, 9))
    np.testing.assert_array_equal(path.scores(data.X)[:, 2], selector.predict(data.X))
    with pytest.raises(AttributeError, match="LGBMRanker has no weights"):
        selector.coef_  # noqa: B018


def test_grid_crosses_sizes_outermost_with_the_filter_and_the_ranker(data):
    grid = Given().default_grid(data)
    assert len(grid) == 8 * 2 * 5
    assert [entry["n_features_to_select"] for entry in grid] == np.repeat(np.arange(1, 9), 10).tolist()
    assert [entry["ranker"].C for entry in grid[:5]] == [0.005, 0.05, 0.5, 5.0, 50.0]
    assert [entry["forwards"] for entry in grid[:10]] == [False] * 5 + [True] * 5
    assert Given(ranker=Ridge(alpha=7.0)).default_grid(data)[0]["ranker"].alpha == 7.0
    assert {entry["ranker"].rounds for entry in Given(ranker=Rounds()).default_grid(data)} == {5}


def test_tuning_orders_once_a_setting_and_finds_the_best_of_all(data, held_out):
    train = RankingData(data.X, data.y, data.qid)
    Given.asked = 0
    tuned = Given().tune(train, held_out)
    assert Given.asked == 2
    values = []
    for entry in Given().default_grid(train):
        selector = Given(**entry).fit(train.X, train.y, qid=train.qid)
        values.append(MAP().score(held_out, selector.predict(held_out.X)))
    best = Given().default_grid(train)[int(np.argmax(values))]
    assert (tuned.n_features_to_select, tuned.forwards, tuned.ranker.C) == (
        best["n_features_to_select"],
        best["forwards"],
        best["ranker"].C,
    )


def test_orders_by_the_better_direction(data):
    both = SingleFeatures(2, metric=MAP()).fit(data.X, data.y, qid=data.qid)
    assert np.flatnonzero(both.support_).tolist() == [1, 4]
    assert np.flatnonzero(both.coef_).tolist() == [1, 4]
    assert both.coef_[1] > 0 > both.coef_[4]
    values = single_feature_values(data, MAP())
    assert (np.diff(values.max(axis=0)[both.order_]) <= 0).all()


@pytest.mark.parametrize("metric", [NDCG(5), MAP(), MeanNDCG(), Precision(3)], ids=repr)
def test_values_of_single_features_are_those_of_unit_weights_to_the_bit(metric):
    rng = np.random.default_rng(18)
    X = np.round(rng.normal(size=(90, 11)), 1)
    X[rng.random(X.shape) < 0.3] = 0.0
    X[rng.random(X.shape) < 0.2] = -0.0  # as scores they tie with 0, and rank in order of row
    data = RankingData(X, rng.integers(0, 3, 90), np.sort(rng.integers(0, 9, 90)))
    values = single_feature_values(data, metric)
    assert values.shape == (2, 11)
    for sign, row in zip((1.0, -1.0), values, strict=True):
        np.testing.assert_array_equal(row, metric.score(data, linear_scores(data.X, sign * np.eye(11))))
        np.testing.assert_array_equal(row, [metric.score(data, sign * x) for x in data.X.T])
    assert len(np.unique(values)) > 4


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

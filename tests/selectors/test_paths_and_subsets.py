"""Greedy selection against retraining, and best subsets against all; test_additive.py has paths of step functions."""

import warnings
from itertools import combinations, pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from moerank import GreedyAdditive
from moerank.data import FeatureCosts, RankingData, centre_in_queries, load_planted_fold
from moerank.metrics import MAP, NDCG
from moerank.rankers import AdditiveRLS, LambdaMART, RankRLS
from moerank.selectors.best_subset import BestSubset
from moerank.selectors.greedy import GreedyRankRLS


def ridge_weights(X, y, ridge):
    return np.linalg.solve(X.T @ X + ridge * np.eye(X.shape[1]), X.T @ y)


def left_out_error(X, y, offsets, ridge):
    """Σ over queries of the squared error of the ranker trained without the query."""
    total = 0.0
    for begin, end in pairwise(offsets):
        query = np.arange(begin, end)
        w = ridge_weights(np.delete(X, query, axis=0), np.delete(y, query), ridge)
        total += np.sum((y[begin:end] - X[begin:end] @ w) ** 2)
    return total


@pytest.mark.parametrize("alpha", [1e-18, 1e-14, 0.1, 1.0, 100.0])  # 1e-18 stands for features of 1e9
@pytest.mark.parametrize(
    ("sizes", "n_features"),
    [([7, 12, 2, 9], 5), ([11, 8, 15], 8), ([5, 20, 1, 13, 6], 13)],
    ids=["fewer than a vector", "one vector", "two vectors"],
)
def test_features_errors_and_weights_are_those_of_retraining_without_each_query(sizes, n_features, alpha):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(sum(sizes), n_features))
    y = np.digitize(X[:, : n_features // 2].sum(axis=1) + rng.normal(size=len(X)), [-1, 0, 1])
    data = RankingData(X, y, np.repeat(np.arange(len(sizes)), sizes))
    solver = GreedyRankRLS(n_features, alpha).fit(data)
    X, y = centre_in_queries(X, data.offsets), centre_in_queries(y.astype(float), data.offsets)
    order = []
    for error, w in zip(solver.errors_, solver.path_coefs_, strict=True):
        rest = [f for f in range(n_features) if f not in order]
        trials = [left_out_error(X[:, [*order, f]], y, data.offsets, alpha) for f in rest]
        order.append(rest[int(np.argmin(trials))])
        assert error == pytest.approx(min(trials), rel=1e-9)
        np.testing.assert_allclose(w[order], ridge_weights(X[:, order], y, alpha), rtol=1e-8, atol=1e-10)
        assert not np.delete(w, order).any()
    assert solver.order_.tolist() == order


def test_a_feature_whose_error_rounding_decides_is_refused(data):
    X = np.column_stack([data.X, np.where(data.qid == data.qid[-1], data.X[:, 0], 0.0)])  # nothing is left without it
    assert len(GreedyRankRLS(9, 1e-9).fit(X, data.y, qid=data.qid).order_) == 9
    with pytest.raises(ValueError, match=r"alpha=1e-15 is too small next to .* take a larger alpha, or scale"):
        GreedyRankRLS(9, 1e-15).fit(X, data.y, qid=data.qid)


def test_a_shorter_path_is_the_beginning_of_a_longer_one(data):
    long, short = (GreedyRankRLS(k).fit(data.X, data.y, qid=data.qid) for k in (6, 3))
    np.testing.assert_array_equal(short.path_coefs_, long.path_coefs_[:3])
    assert short.get_support(indices=True).tolist() == sorted(long.order_[:3].tolist())
    np.testing.assert_allclose(short.predict(data.X), data.X @ short.coef_, rtol=1e-12)


def test_tuning_takes_the_best_of_all_paths(data):
    alphas = (100.0, 0.1)
    grid = [{"n_features_to_select": size, "alpha": alpha} for size in range(1, 9) for alpha in alphas]
    tuned = GreedyRankRLS().tune(data, data, grid)
    values = {}
    for alpha in alphas:
        solver = GreedyRankRLS(8, alpha).fit(data.X, data.y, qid=data.qid)
        for k, w in enumerate(solver.path_coefs_, start=1):
            values[alpha, k] = MAP().score(data, data.X @ w)
    assert values[tuned.alpha, tuned.n_features_to_select] == max(values.values())


PARAMETERS = {"n_bins": 6, "smooth": 0.5, "alpha": 0.01}


def test_each_size_has_the_additive_ranker_of_the_first_features(data):
    solver = GreedyAdditive(3, **PARAMETERS).fit(data)
    judge = AdditiveRLS(**PARAMETERS)
    assert solver.order_.tolist() == judge.forward_path(data).tolist()
    masks = np.array([np.isin(np.arange(8), solver.order_[:k]) for k in range(1, 9)])
    expected = judge.fit_population(data, feature_mask=masks).scores(data.X)
    np.testing.assert_array_equal(solver.path(data).scores(data.X), expected)
    np.testing.assert_array_equal(solver.predict(data.X), expected[:, 2])
    assert len(solver.forest_.roots) == solver.support_.sum() == 3


def test_tuning_tries_every_size_with_the_grid_of_the_ranker(data, held_out):
    tuned = GreedyAdditive(n_bins=4).tune(data, held_out, metric=NDCG(5))
    grid = AdditiveRLS(4).grid_of_bins(data)
    best = NDCG(5).score(held_out, GreedyAdditive(**tuned.get_params(deep=False)).fit(data).predict(held_out.X))
    values = []
    for entry in grid:
        scores = GreedyAdditive(n_bins=4, **entry).fit(data).path(data).scores(held_out.X)
        values += NDCG(5).score(held_out, scores).tolist()
    assert best == max(values)


def test_another_ranker_may_be_served(data):
    trees = LambdaMART(10, n_leaves=4)
    solver = GreedyAdditive(2, trees, **PARAMETERS).fit(data)
    columns = solver.support_
    expected = trees.fit(data.X[:, columns], data.y, qid=data.qid).predict(data.X[:, columns])
    np.testing.assert_array_equal(solver.predict(data.X), expected)


def some_data(seed, n_features, costs=None, repeats=2):
    """Documents whose features are sums of a few others, so that greedy paths go wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(72, n_features)) @ (np.eye(n_features) + rng.normal(size=(n_features, n_features)))
    for column in range(repeats):
        X[:, column] = X[:, -1 - column] + 0.05 * rng.normal(size=72)
    y = np.digitize(X @ rng.normal(size=n_features) + rng.normal(size=72), [-3, 0, 3])
    return RankingData(X / X.std(axis=0), y, np.repeat(np.arange(6), 12), costs=costs)


def system(data, alpha):
    """The normal equations, from a list of the preference pairs."""
    better, worse = data.pairs.better, data.pairs.worse
    D = data.X[better] - data.X[worse]
    return D.T @ D / len(D) + alpha * np.eye(data.n_features), D.mean(axis=0)


def losses_of(data, alpha, subsets):
    A, b = system(data, alpha)
    return np.array([1 - b[S] @ np.linalg.solve(A[np.ix_(S, S)], b[S]) for S in map(list, subsets)])


def enumerated(data, alpha, keeps=lambda S: True, units=None):
    """The least loss of every number of units, over all subsets that keep the limits."""
    units = units or [(column,) for column in range(data.n_features)]
    least = {}
    for k in range(1, len(units) + 1):
        joined = [sum(chosen, ()) for chosen in combinations(units, k)]
        if subsets := [S for S in joined if keeps(S)]:
            least[k] = losses_of(data, alpha, subsets).min()
    return least


@pytest.mark.parametrize("alpha", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_subset_of_any_size_is_better(seed, alpha):
    data = some_data(seed, 10)
    solver = BestSubset(3, alpha).fit(data)
    np.testing.assert_allclose(solver.losses_, list(enumerated(data, alpha).values()), rtol=1e-10)
    np.testing.assert_allclose(losses_of(data, alpha, map(np.flatnonzero, solver.masks_)), solver.losses_, rtol=1e-10)
    np.testing.assert_array_equal(solver.bounds_, solver.losses_)
    assert solver.masks_.sum(axis=1).tolist() == list(range(1, 11))


COSTS = FeatureCosts.of([1, 2, 1, 5, 3, 2, 1, 4], ["a", "a", None, "b", "b", "b", None, None], {"a": 4, "b": 2})


def cost_of(S):
    return COSTS.sums(np.isin(np.arange(8), S)[None])[0]


GROUPS = [(0, 1), (3, 4, 5), (2,), (6,), (7,)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("units", "limits", "keeps"),
    [
        (None, {"include": [4, 6]}, lambda S: {4, 6} <= {*S}),
        (None, {"exclude": [0, 7]}, lambda S: not {0, 7} & {*S}),
        (None, {"max_features": 3}, lambda S: len(S) <= 3),
        (None, {"max_cost": 9.0}, lambda S: cost_of(S) <= 9),
        (None, {"max_cost": 12.0, "include": 3}, lambda S: cost_of(S) <= 12 and 3 in S),
        (GROUPS, {}, lambda S: True),
        (GROUPS, {"max_features": 5}, lambda S: len(S) <= 5),
        (GROUPS, {"max_cost": 14.0}, lambda S: cost_of(S) <= 14),
        (
            GROUPS,
            {"max_cost": 16.0, "max_features": 4, "include": 2},
            lambda S: cost_of(S) <= 16 and len(S) <= 4 and 2 in S,
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_the_best_subsets_and_groups_within_limits(seed, units, limits, keeps):
    data = some_data(seed, 8, COSTS)
    solver = BestSubset(5 if units else 2, 0.01, by_group=units is not None, **limits).fit(data)
    least = enumerated(data, 0.01, keeps, units)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        early = BestSubset(5, 0.01, by_group=units is not None, max_nodes=1, **limits).fit(data)
    for found in (solver, early):
        n_units = [sum(mask[list(unit)].all() for unit in units or np.arange(8)[:, None]) for mask in found.masks_]
        assert n_units == list(least)
        assert all(keeps(np.flatnonzero(mask).tolist()) for mask in found.masks_)
    values = np.array(list(least.values()))
    np.testing.assert_allclose(solver.losses_, values, rtol=1e-10)
    assert (early.bounds_ <= values * (1 + 1e-10)).all() and (early.losses_ >= values * (1 - 1e-10)).all()


def test_the_largest_subset_pays_a_shared_cost_once_if_that_is_cheapest():
    """The cheapest features first, each with its group, would be two of those alone."""
    costs = FeatureCosts.of([0, 0, 0, 3, 3, 3], ["a", "a", "a", None, None, None], {"a": 5})
    data = some_data(0, 6, costs)
    with pytest.warns(ConvergenceWarning, match="ended at max_nodes=1: subsets of 1 to 3 features"):
        solver = BestSubset(6, 0.1, max_cost=7.0, max_nodes=1).fit(data)
    assert solver.masks_[-1].tolist() == [True] * 3 + [False] * 3


def test_a_search_that_ends_early_bounds_what_it_has_not_proved():
    data = some_data(3, 14, repeats=5)
    truth = BestSubset(alpha=0.01).fit(data)
    widths = []
    for max_nodes in (1, 100, 300):
        with pytest.warns(ConvergenceWarning, match=f"max_nodes={max_nodes:,}: subsets of .* % above the optimum"):
            solver = BestSubset(alpha=0.01, max_nodes=max_nodes).fit(data)
        assert solver.n_nodes_ == max_nodes
        assert (solver.bounds_ <= truth.losses_ * (1 + 1e-9)).all()
        assert (solver.losses_ >= truth.losses_ * (1 - 1e-9)).all()
        assert (solver.gaps_ >= 0).all()
        widths.append(solver.gaps_.sum())
    assert widths == sorted(widths, reverse=True) and widths[0] > widths[-1] > 0
    assert solver.gaps_[0] == 0 < solver.gaps_[6]  # small sizes come first


def test_time_and_the_user_end_a_search():
    data = some_data(3, 40)

    def interrupt(stage, fraction, size, n_nodes):
        assert stage == "best_subset" and size in (1, 3) and 0 < fraction < 1 and n_nodes > 0
        if size == 3:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match=r"ended at Ctrl-C: subsets of 2 to 3. features"):
        BestSubset(alpha=0.01, progress=interrupt).fit(data)
    with pytest.warns(ConvergenceWarning, match=r"ended at time_limit=1e-09: subsets of"):
        solver = BestSubset(alpha=0.01, time_limit=1e-9).fit(data)
    assert len(solver.losses_) == 40


def test_its_rankers_are_those_of_rankrls_on_the_best_subsets():
    train, vali, _ = load_planted_fold(1, n_queries=60, n_documents=8)
    solver = BestSubset(4, max_features=5).fit(train, validation=vali)
    assert solver.alpha_ == RankRLS().tune(train, vali).alpha
    weights = RankRLS(solver.alpha_).fit_population(train, feature_mask=solver.masks_)
    np.testing.assert_array_equal(solver.path_coefs_, weights)
    np.testing.assert_array_equal(solver.coef_, weights[3])
    path = solver.path(train)
    np.testing.assert_array_equal(path.feature_mask[:5], solver.masks_)
    np.testing.assert_array_equal(path.rankers.coefs[5:], np.tile(weights[4], (train.n_features - 5, 1)))
    np.testing.assert_array_equal(solver._scores_by_size(train, vali.X)[:, 3], solver.predict(vali))
    tuned = BestSubset(max_features=5).tune(train, vali)
    assert tuned.n_features_to_select <= 5


def test_what_it_cannot_answer():
    data = some_data(0, 6)
    for parameters, message in (
        ({"include": [1, 2, 3]}, "n_features_to_select=2: the smallest subset within the limits has 3 features"),
        ({"include": [1], "exclude": [1]}, "feature '2' is both in include and in exclude"),
        ({"exclude": range(6)}, "exclude leaves none of the features"),
        ({"max_cost": 1.0}, "max_cost needs to know what the features cost"),
        ({"alpha": -1.0}, "alpha must be positive, or None, not -1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            BestSubset(2, **{"alpha": 0.1, **parameters}).fit(data)
    twins = RankingData(data.X[:, [0, 0, 1, 1, 2, 2]], data.y, data.qid)
    with pytest.raises(ValueError, match="alpha=1e-300 is too small next to the squares of the features"):
        BestSubset(2, alpha=1e-300).fit(twins)
    dear = RankingData(data.X, data.y, data.qid, costs=[3.0] * 6)
    with pytest.raises(ValueError, match=r"no subset of the features of .* keeps the limits"):
        BestSubset(2, alpha=0.1, max_cost=1.0).fit(dear)

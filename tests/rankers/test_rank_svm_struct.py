import numpy as np
import pytest
from helpers.pair_problems import differences
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from moerank.data import RankingData
from moerank.metrics import MAP
from moerank.rankers import RankSVMStruct


def explicit_objective(w, data, C):
    return 0.5 * w @ w + C / data.n_queries * np.maximum(0.0, 1.0 - differences(data) @ w).sum()


@pytest.mark.parametrize("C", [1e-4, 0.003, 0.1])
def test_objective_equals_linear_svc_on_explicit_pairs(noisy_data, C):
    D = differences(noisy_data)
    sign = np.random.default_rng(0).choice([-1.0, 1.0], len(D))  # two classes: turn half of the pairs round
    svc = LinearSVC(loss="hinge", C=C / noisy_data.n_queries, fit_intercept=False, tol=1e-9, max_iter=10**6)
    reference = svc.fit(D * sign[:, None], sign).coef_[0]
    ranker = RankSVMStruct(C=C, eps=1e-7).fit(noisy_data)
    best = explicit_objective(reference, noisy_data, C)
    assert explicit_objective(ranker.coef_, noisy_data, C) == pytest.approx(best, rel=1e-6)
    default = RankSVMStruct(C=C).fit(noisy_data)
    assert explicit_objective(default.coef_, noisy_data, C) == pytest.approx(best, rel=1e-5)


def test_queries_without_pairs_count_in_the_mean(noisy_data):
    idle = RankingData(
        np.vstack([noisy_data.X, np.random.default_rng(2).random((5, noisy_data.n_features))]),
        np.append(noisy_data.y, np.zeros(5, int)),
        np.append(noisy_data.qid, [100, 100, 101, 102, 102]),
    )
    C = 0.01
    more = C * idle.n_queries / noisy_data.n_queries
    np.testing.assert_allclose(
        RankSVMStruct(C=more, eps=1e-8).fit(idle).coef_, RankSVMStruct(C=C, eps=1e-8).fit(noisy_data).coef_, atol=1e-4
    )


def test_tuning_on_shared_planes_chooses_what_single_fits_choose(noisy_data):
    rng = np.random.default_rng(3)
    validation = RankingData(
        noisy_data.X + rng.normal(scale=0.1, size=noisy_data.X.shape), noisy_data.y, noisy_data.qid
    )
    grid = [{"C": C} for C in (10.0, 1e-6, 1e-3, 0.1)]
    single = [MAP().score(validation, RankSVMStruct(**entry).fit(noisy_data).predict(validation.X)) for entry in grid]
    chosen = RankSVMStruct().tune(noisy_data, validation, grid).get_params()["C"]
    assert chosen == grid[int(np.argmax(single))]["C"]
    candidates = [RankSVMStruct(**entry) for entry in grid]
    scores = RankSVMStruct()._candidate_scores(noisy_data, validation, candidates)
    for column, entry in zip(scores.T, grid, strict=True):
        np.testing.assert_allclose(column, RankSVMStruct(**entry).fit(noisy_data).predict(validation.X), atol=0.05)


def test_an_early_end_is_told_with_its_remedy():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 4)), rng.integers(0, 3, 60)
    with pytest.warns(ConvergenceWarning, match="RankSVMStruct stopped within .* after max_iter=2 .*; raise max_iter"):
        RankSVMStruct(C=10.0, max_iter=2).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="rounding allows no better .*; scale them"):
        RankSVMStruct(C=10.0).fit(X * [1e-8, 1.0, 1e4, 1e8], y)

import numpy as np
import pytest
from helpers.pair_problems import differences
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from moerank.data import RankingData, load_fold
from moerank.metrics import MAP, NDCG
from moerank.rankers import RankSVM, RankSVMStruct


def explicit_objective(w, data, C):
    return 0.5 * w @ w + C / data.n_queries * np.maximum(0.0, 1.0 - differences(data) @ w).sum()


def fit(data, **parameters):
    return RankSVMStruct(**parameters).fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize("C", [1e-4, 0.003, 0.1])
def test_objective_equals_linear_svc_on_explicit_pairs(noisy_data, C):
    D = differences(noisy_data)
    sign = np.random.default_rng(0).choice([-1.0, 1.0], len(D))  # two classes: turn half of the pairs round
    svc = LinearSVC(loss="hinge", C=C / noisy_data.n_queries, fit_intercept=False, tol=1e-9, max_iter=10**6)
    reference = svc.fit(D * sign[:, None], sign).coef_[0]
    ranker = fit(noisy_data, C=C, eps=1e-7)
    best = explicit_objective(reference, noisy_data, C)
    assert explicit_objective(ranker.coef_, noisy_data, C) == pytest.approx(best, rel=1e-6)
    default = fit(noisy_data, C=C)
    assert explicit_objective(default.coef_, noisy_data, C) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("eps", [10.0, 0.1, 1e-3])
def test_the_violation_at_the_end_certifies_the_objective(noisy_data, eps):
    C = 0.05
    ranker, exact = fit(noisy_data, C=C, eps=eps), fit(noisy_data, C=C, eps=1e-8)
    error = explicit_objective(ranker.coef_, noisy_data, C) - explicit_objective(exact.coef_, noisy_data, C)
    assert -1e-9 <= error <= ranker.gap_ + 1e-9
    assert ranker.gap_ <= C * eps
    assert ranker.n_iter_ <= exact.n_iter_


def test_separation_is_a_subgradient_of_the_risk(noisy_data):
    separate = RankSVMStruct()._separation(noisy_data)
    rng = np.random.default_rng(1)
    D = differences(noisy_data)
    for scale in (0.0, 0.3, 3.0):
        w = scale * rng.normal(size=noisy_data.n_features)
        a, b = separate(w)
        inside = D @ w < 1.0
        np.testing.assert_allclose(a, D[inside].sum(axis=0) / noisy_data.n_queries, rtol=1e-9, atol=1e-9)
        assert b == pytest.approx(inside.sum() / noisy_data.n_queries)


def test_queries_without_pairs_count_in_the_mean(noisy_data):
    idle = RankingData(
        np.vstack([noisy_data.X, np.random.default_rng(2).random((5, noisy_data.n_features))]),
        np.append(noisy_data.y, np.zeros(5, int)),
        np.append(noisy_data.qid, [100, 100, 101, 102, 102]),
    )
    C = 0.01
    more = C * idle.n_queries / noisy_data.n_queries
    np.testing.assert_allclose(fit(idle, C=more, eps=1e-8).coef_, fit(noisy_data, C=C, eps=1e-8).coef_, atol=1e-4)


def test_ranks_like_the_squared_hinge_at_the_c_of_the_docstring(noisy_data):
    C = 0.1
    other = RankSVM(C * len(noisy_data.pairs) / noisy_data.n_queries)
    other.fit(noisy_data.X, noisy_data.y, qid=noisy_data.qid)
    assert np.corrcoef(fit(noisy_data, C=C).predict(noisy_data.X), other.predict(noisy_data.X))[0, 1] > 0.98


def test_tuning_on_shared_planes_chooses_what_single_fits_choose(noisy_data):
    rng = np.random.default_rng(3)
    validation = RankingData(
        noisy_data.X + rng.normal(scale=0.1, size=noisy_data.X.shape), noisy_data.y, noisy_data.qid
    )
    grid = [{"C": C} for C in (10.0, 1e-6, 1e-3, 0.1)]
    single = [MAP().score(validation, fit(noisy_data, **entry).predict(validation.X)) for entry in grid]
    chosen = RankSVMStruct().tune(noisy_data, validation, grid).get_params()["C"]
    assert chosen == grid[int(np.argmax(single))]["C"]
    candidates = [RankSVMStruct(**entry) for entry in grid]
    scores = RankSVMStruct()._candidate_scores(noisy_data, validation, candidates)
    for column, entry in zip(scores.T, grid, strict=True):
        np.testing.assert_allclose(column, fit(noisy_data, **entry).predict(validation.X), atol=0.05)


def test_five_folds_come_close_to_the_published_means(letor_folder):
    values = []
    for fold in range(1, 6):
        train, vali, test = load_fold(letor_folder / "OHSUMED" / f"Fold{fold}")
        grid = [{"C": 1e-5 * 2.0**k} for k in range(13)]
        scores = RankSVMStruct().tune(train, vali, grid).fit(train.X, train.y, qid=train.qid).predict(test.X)
        values.append((NDCG(10, convention="letor").score(test, scores), MAP().score(test, scores)))
    np.testing.assert_allclose(np.mean(values, axis=0), (0.4523, 0.4478), atol=8e-3)


def test_an_early_end_is_told_with_its_remedy():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 4)), rng.integers(0, 3, 60)
    with pytest.warns(ConvergenceWarning, match="RankSVMStruct stopped within .* after max_iter=2 .*; raise max_iter"):
        RankSVMStruct(C=10.0, max_iter=2).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="rounding allows no better .*; scale them"):
        RankSVMStruct(C=10.0).fit(X * [1e-8, 1.0, 1e4, 1e8], y)

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from moerank.data import RankingData, load_fold
from moerank.metrics import MAP, NDCG
from moerank.rankers import RankSVM
from moerank.training.listed import PairProblem
from moerank.training.losses import SQUARED_HINGE


def explicit_objective(w, D, C):
    return 0.5 * w @ w + C * np.mean(np.maximum(0.0, 1.0 - D @ w) ** 2)


def reference_solution(data, C, keep=None, features=None):
    """Minimise the objective on explicit differences with scipy."""
    better, worse = data.pairs.better, data.pairs.worse
    keep = slice(None) if keep is None else keep
    features = np.ones(data.n_features, bool) if features is None else features
    D = (data.X[better] - data.X[worse])[keep][:, features]

    def value_and_gradient(w):
        slack = np.maximum(0.0, 1.0 - D @ w)
        return 0.5 * w @ w + C * np.mean(slack**2), w - 2.0 * C * D.T @ slack / len(D)

    options = {"maxiter": 5000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-10}
    result = minimize(value_and_gradient, np.zeros(D.shape[1]), jac=True, method="L-BFGS-B", options=options)
    return result.fun, D


@pytest.mark.parametrize("C", [0.005, 0.5, 50.0, 5000.0])
def test_fit_reaches_the_minimum_that_scipy_finds(noisy_data, C):
    best, D = reference_solution(noisy_data, C)
    ranker = RankSVM(C).fit(noisy_data.X, noisy_data.y, qid=noisy_data.qid)
    assert explicit_objective(ranker.coef_, D, C) == pytest.approx(best, rel=1e-9)


def test_objective_and_gradient_agree_with_explicit_pairs_and_finite_differences(noisy_data):
    problem = PairProblem.of(noisy_data)
    D = noisy_data.X[noisy_data.pairs.better] - noisy_data.X[noisy_data.pairs.worse]
    w = np.random.default_rng(4).normal(size=noisy_data.n_features)
    f, gradient = problem.objective(w, 3.0, SQUARED_HINGE)
    assert f == pytest.approx(explicit_objective(w, D, 3.0), rel=1e-12)
    numeric = approx_fprime(w, lambda v: problem.objective(v, 3.0, SQUARED_HINGE)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
@pytest.mark.parametrize("density", [0.5, 0.05])
def test_population_on_own_pairs_equals_one_by_one(noisy_data, C, density):
    rng = np.random.default_rng(5)
    keep = rng.random((37, len(noisy_data.pairs))) < density  # no multiple of the group size
    features = rng.random((37, noisy_data.n_features)) < 0.6
    features[:, 0] = True
    W = RankSVM(C).fit_population(noisy_data, pair_mask=keep, feature_mask=features)
    for row in range(0, 37, 4):
        best, D = reference_solution(noisy_data, C, keep[row], features[row])
        assert explicit_objective(W[row, features[row]], D, C) == pytest.approx(best, rel=1e-6)
    assert not W[~features].any()


@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
def test_population_on_shared_pairs_equals_one_by_one(noisy_data, C):
    rng = np.random.default_rng(6)
    keep = rng.random(len(noisy_data.pairs)) < 0.2
    features = rng.random((20, noisy_data.n_features)) < 0.4
    features[:, 3] = True
    W = RankSVM(C).fit_population(noisy_data, pair_mask=keep, feature_mask=features)
    for row in range(0, 20, 3):
        best, D = reference_solution(noisy_data, C, keep, features[row])
        assert explicit_objective(W[row, features[row]], D, C) == pytest.approx(best, rel=1e-6)


def test_a_bad_start_ends_at_the_same_minimum(noisy_data):
    rng = np.random.default_rng(7)
    keep = rng.random((5, len(noisy_data.pairs))) < 0.3
    start = rng.normal(scale=20.0, size=(5, noisy_data.n_features))
    W = RankSVM(10.0).fit_population(noisy_data, pair_mask=keep, start=start)
    for row in range(5):
        best, D = reference_solution(noisy_data, 10.0, keep[row])
        assert explicit_objective(W[row], D, 10.0) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(("name", "share"), [("MQ2008", 1.0), ("OHSUMED", 0.2)])
def test_objective_equals_linear_svc_on_real_pairs(letor_folder, name, share):
    train, _, _ = load_fold(letor_folder / name / "Fold1")
    rng = np.random.default_rng(0)
    keep = rng.random(len(train.pairs)) < share
    D = train.X[train.pairs.better[keep]] - train.X[train.pairs.worse[keep]]
    sign = rng.choice([-1.0, 1.0], len(D))  # LinearSVC wants two classes: turn half of the pairs round
    C = 0.5
    svc = LinearSVC(loss="squared_hinge", dual=False, C=C / len(D), fit_intercept=False, tol=1e-10, max_iter=10_000)
    w = svc.fit(D * sign[:, None], sign).coef_[0]
    ours = RankSVM(C).fit_population(train, pair_mask=keep)[0]
    assert explicit_objective(ours, D, C) == pytest.approx(explicit_objective(w, D, C), rel=1e-6)


@pytest.mark.parametrize(("name", "ndcg", "mean_ap"), [("MQ2008", 0.2309, 0.4744), ("OHSUMED", 0.4504, 0.4446)])
def test_five_folds_reproduce_the_published_means(letor_folder, name, ndcg, mean_ap):
    values = []
    for fold in range(1, 6):
        train, vali, test = load_fold(letor_folder / name / f"Fold{fold}")
        scores = RankSVM().tune(train, vali).fit(train.X, train.y, qid=train.qid).predict(test.X)
        values.append((NDCG(10, convention="letor").score(test, scores), MAP().score(test, scores)))
    np.testing.assert_allclose(np.mean(values, axis=0), (ndcg, mean_ap), atol=5e-4)


@pytest.mark.parametrize("C", [0.0, -1.0, np.nan])
def test_c_must_be_positive(noisy_data, C):
    with pytest.raises(ValueError, match="C must be positive"):
        RankSVM(C).fit(noisy_data.X, noisy_data.y, qid=noisy_data.qid)


def test_constant_features_get_no_weight():
    rng = np.random.default_rng(8)
    X = np.column_stack([rng.random(30), np.full(30, 7.0)])
    assert RankSVM().fit(X, rng.integers(0, 3, 30)).coef_[1] == 0.0


def test_two_features_that_are_equal_share_the_weight():
    rng = np.random.default_rng(9)
    x = rng.random(40)
    data = RankingData(np.column_stack([x, x]), rng.integers(0, 3, 40))
    w = RankSVM(C=100.0).fit_population(data)[0]
    assert w[0] == pytest.approx(w[1], rel=1e-9)


def test_the_common_start_gives_the_bits_of_an_own_one(noisy_data):
    keep = np.random.default_rng(10).random((3, len(noisy_data.pairs))) < 0.3
    everything = np.ones((3, noisy_data.n_features), bool)
    fewer = everything.copy()
    fewer[2, 4] = False  # now the group computes its scores itself
    together = RankSVM(5.0).fit_population(noisy_data, pair_mask=keep, feature_mask=everything)
    mixed = RankSVM(5.0).fit_population(noisy_data, pair_mask=keep, feature_mask=fewer)
    np.testing.assert_array_equal(mixed[:2], together[:2])


def test_a_minimum_that_is_not_reached_is_told_with_its_remedy(noisy_data, monkeypatch):
    monkeypatch.setattr("moerank.training.counted.MAX_STEPS", 1)
    with pytest.warns(
        ConvergenceWarning, match=r"stopped at \d+ Newton steps before the minimum for C=5e\+06; lower C"
    ):
        RankSVM(5e6).fit(noisy_data)

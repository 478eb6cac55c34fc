import numpy as np
import pytest
from helpers.pair_problems import differences, minimum, pair_objective
from sklearn.base import clone
from sklearn.svm import LinearSVC

from moerank.data import RankingData, load_fold
from moerank.rankers import RankSVM, RankSVMTRON

GRID = [0.005, 0.05, 0.5, 5.0, 50.0]
EXACT = [(RankSVM(), 1e-9), (RankSVMTRON(), 1e-5), (RankSVMTRON(tol=1e-8), 1e-9)]


@pytest.mark.parametrize("C", [*GRID, 5000.0])
@pytest.mark.parametrize(("ranker", "error"), EXACT)
def test_fit_reaches_the_minimum_that_scipy_finds_on_explicit_pairs(noisy_data, ranker, error, C):
    objective = pair_objective(differences(noisy_data), C)
    weights = clone(ranker).set_params(C=C).fit(noisy_data).coef_
    assert objective(weights)[0] == pytest.approx(minimum(objective, 12).fun, rel=error)


@pytest.mark.parametrize("ranker", [RankSVM(), RankSVMTRON()])
def test_a_number_that_all_values_share_moves_no_weight(noisy_data, ranker):
    X = np.round(noisy_data.X * 1024) / 1024
    near, far = (RankingData(X + shift, noisy_data.y, noisy_data.qid) for shift in (0.0, 2.0**30))
    expected = clone(ranker).fit(near).coef_
    np.testing.assert_allclose(clone(ranker).fit(far).coef_, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
@pytest.mark.parametrize(
    ("density", "shared", "scale"), [(0.5, False, 0), (0.05, False, 0), (0.2, True, 0), (0.3, False, 20)]
)
def test_a_population_equals_one_by_one_from_any_start(noisy_data, C, density, shared, scale):
    rng = np.random.default_rng(5)
    keep = rng.random((37, len(noisy_data.pairs))) < density  # no multiple of the group size
    features = rng.random((37, noisy_data.n_features)) < 0.6
    features[:, 0] = True
    start = rng.normal(scale=scale, size=features.shape) if scale else None
    pairs = keep[0] if shared else keep
    W = RankSVM(C).fit_population(noisy_data, pair_mask=pairs, feature_mask=features, start=start)
    for row in range(0, 37, 4):
        D = differences(noisy_data, keep[0 if shared else row])[:, features[row]]
        objective = pair_objective(D, C)
        assert objective(W[row, features[row]])[0] == pytest.approx(minimum(objective, D.shape[1]).fun, rel=1e-6)
    assert not W[~features].any()


@pytest.mark.parametrize(("name", "share"), [("MQ2008", 1.0), ("OHSUMED", 0.2)])
def test_objective_equals_linear_svc_on_real_pairs(letor_folder, name, share):
    train, _, _ = load_fold(letor_folder / name / "Fold1")
    rng = np.random.default_rng(0)
    keep = rng.random(len(train.pairs)) < share
    D = differences(train, keep)
    sign = rng.choice([-1.0, 1.0], len(D))  # LinearSVC wants two classes: turn half of the pairs round
    C = 0.5
    svc = LinearSVC(loss="squared_hinge", dual=False, C=C / len(D), fit_intercept=False, tol=1e-10, max_iter=10_000)
    w = svc.fit(D * sign[:, None], sign).coef_[0]
    ours = RankSVM(C).fit_population(train, pair_mask=keep)[0]
    objective = pair_objective(D, C)
    assert objective(ours)[0] == pytest.approx(objective(w)[0], rel=1e-6)


def test_the_common_start_gives_the_bits_of_an_own_one(noisy_data):
    keep = np.random.default_rng(10).random((3, len(noisy_data.pairs))) < 0.3
    everything = np.ones((3, noisy_data.n_features), bool)
    fewer = everything.copy()
    fewer[2, 4] = False  # now the group computes its scores itself
    together = RankSVM(5.0).fit_population(noisy_data, pair_mask=keep, feature_mask=everything)
    mixed = RankSVM(5.0).fit_population(noisy_data, pair_mask=keep, feature_mask=fewer)
    np.testing.assert_array_equal(mixed[:2], together[:2])

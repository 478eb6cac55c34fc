import numpy as np
import pytest
from sklearn.svm import LinearSVC

from moerank.data import RankingData, load_fold
from moerank.rankers import RankSVMStruct


def differences(data):
    return data.X[data.pairs.better] - data.X[data.pairs.worse]


def explicit_objective(w, D, C):
    return 0.5 * w @ w + C * np.mean(np.maximum(0.0, 1.0 - D @ w))


def fit(data, *arguments, **parameters):
    return RankSVMStruct(*arguments, **parameters).fit(data.X, data.y, qid=data.qid)


def reference_objective(data, C):
    """The minimum by LinearSVC's dual coordinate descent on explicit differences."""
    D = differences(data)
    sign = np.random.default_rng(0).choice([-1.0, 1.0], len(D))  # it wants two classes: turn half of the pairs round
    svc = LinearSVC(loss="hinge", C=C / len(D), fit_intercept=False, tol=1e-9, max_iter=200_000, random_state=0)
    return explicit_objective(svc.fit(D * sign[:, None], sign).coef_[0], D, C)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 100.0])
def test_objective_equals_linear_svc_on_explicit_pairs(noisy_data, C):
    ranker = fit(noisy_data, C, eps=1e-8)
    objective = explicit_objective(ranker.coef_, differences(noisy_data), C)
    assert objective == pytest.approx(reference_objective(noisy_data, C), rel=1e-6)
    assert ranker.objective_ == pytest.approx(objective, rel=1e-10)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("eps", [1e-1, 1e-2, 1e-3, 1e-5])
def test_eps_bounds_the_distance_from_the_minimum(noisy_data, C, eps):
    ranker = fit(noisy_data, C, eps=eps)
    excess = explicit_objective(ranker.coef_, differences(noisy_data), C) - fit(noisy_data, C, eps=1e-10).objective_
    assert excess <= ranker.gap_ + 1e-9 * C
    assert ranker.gap_ <= C * eps


def test_stops_earlier_for_a_larger_eps(noisy_data):
    assert fit(noisy_data, 10.0, eps=0.1).n_iter_ < fit(noisy_data, 10.0, eps=1e-3).n_iter_


def test_default_is_exact_on_real_pairs(letor_folder):
    train, _, _ = load_fold(letor_folder / "MQ2008" / "Fold1")
    ranker = fit(train)
    objective = explicit_objective(ranker.coef_, differences(train), 1.0)
    assert ranker.objective_ == pytest.approx(objective, rel=1e-10)
    assert ranker.gap_ <= 1e-5
    assert objective == pytest.approx(fit(train, eps=1e-9).objective_, abs=1e-5)


def test_grid_is_that_of_the_tool_which_divides_by_queries(noisy_data):
    grid = RankSVMStruct().default_grid(noisy_data)
    tool = np.array([entry["C"] for entry in grid]) * noisy_data.n_queries / len(noisy_data.pairs)
    np.testing.assert_allclose(tool, 1e-5 * 2.0 ** np.arange(21), rtol=1e-12)


def test_separable_pairs_reach_the_margin():
    data = RankingData([[0.0], [0.5], [1.0]], [0, 1, 2])
    assert fit(data, C=1e4).coef_[0] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"), [({"C": 0.0}, "C must be positive"), ({"eps": -1.0}, "eps must be positive")]
)
def test_wrong_parameters_are_refused(noisy_data, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(noisy_data, **parameters)

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from moerank.data import RankingData, load_fold
from moerank.metrics import MAP, NDCG
from moerank.rankers import ListNet
from moerank.rankers.list_net import list_net_loss


def fit(data, **parameters):
    return ListNet(**parameters).fit(data.X, data.y, qid=data.qid)


def explicit_loss(data, w):
    """The mean cross entropy by its definition."""
    losses = []
    for q in range(data.n_queries):
        rows = slice(data.offsets[q], data.offsets[q + 1])
        if np.ptp(data.y[rows]) > 0:
            target = np.exp(data.y[rows].astype(float))
            odds = np.exp(data.X[rows] @ w)
            losses.append(-(target / target.sum()) @ np.log(odds / odds.sum()))
    return np.mean(losses)


def scipy_minimum(data):
    options = {"maxiter": 10_000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-10}
    start = np.zeros(data.n_features)
    return minimize(lambda w: list_net_loss(data, w), start, jac=True, method="L-BFGS-B", options=options)


def test_loss_and_gradient_agree_with_their_definition_and_finite_differences(noisy_data):
    w = np.random.default_rng(1).normal(size=noisy_data.n_features)
    value, gradient = list_net_loss(noisy_data, w)
    assert value == pytest.approx(explicit_loss(noisy_data, w), rel=1e-12)
    np.testing.assert_allclose(gradient, approx_fprime(w, lambda v: explicit_loss(noisy_data, v), 1e-7), atol=1e-6)


def test_newton_reaches_the_minimum_that_scipy_finds(noisy_data):
    best = scipy_minimum(noisy_data)
    ranker = fit(noisy_data, solver="newton")
    assert explicit_loss(noisy_data, ranker.coef_) == pytest.approx(best.fun, rel=1e-12)
    np.testing.assert_allclose(ranker.coef_, best.x, atol=1e-5)
    assert np.abs(list_net_loss(noisy_data, ranker.coef_)[1]).max() < 1e-7


def test_descent_approaches_the_minimum_as_the_rate_falls(noisy_data):
    best = explicit_loss(noisy_data, fit(noisy_data, solver="newton").coef_)
    start = explicit_loss(noisy_data, np.zeros(noisy_data.n_features))
    excess = [
        explicit_loss(noisy_data, fit(noisy_data, rate=rate, n_epochs=int(3000 / rate)).coef_) - best
        for rate in (1.0, 0.1, 0.01)
    ]
    assert excess[2] < 1e-6 * (start - best)
    assert excess[2] < 0.1 * excess[1] < 0.01 * excess[0]


def test_newton_is_the_minimum_of_real_data(letor_folder):
    train, _, _ = load_fold(letor_folder / "OHSUMED" / "Fold1")
    ranker = fit(train, solver="newton")
    value, gradient = list_net_loss(train, ranker.coef_)
    assert value == pytest.approx(explicit_loss(train, ranker.coef_), rel=1e-12)
    assert np.abs(gradient).max() < 1e-7


def test_a_run_contains_all_shorter_ones(noisy_data):
    ranker = fit(noisy_data, rate=0.1, n_epochs=20)
    by_size = ranker._scores_by_size(noisy_data, noisy_data.X)
    for n_epochs in (1, 7, 20):
        np.testing.assert_array_equal(
            by_size[:, n_epochs - 1], fit(noisy_data, rate=0.1, n_epochs=n_epochs).predict(noisy_data.X)
        )


def test_tuning_chooses_what_fitting_every_entry_would(noisy_data):
    grid = [{"rate": rate, "n_epochs": n} for rate in (0.001, 0.1) for n in (1, 3, 9)]
    quality = [MAP().score(noisy_data, fit(noisy_data, **entry).predict(noisy_data.X)) for entry in grid]
    tuned = ListNet().tune(noisy_data, noisy_data, grid=grid)
    assert {"rate": tuned.rate, "n_epochs": tuned.n_epochs} == grid[int(np.argmax(quality))]


def test_queries_with_equal_labels_change_nothing(noisy_data):
    rng = np.random.default_rng(2)
    X = np.vstack([rng.random((6, noisy_data.n_features)), noisy_data.X])
    y, qid = np.append([2] * 6, noisy_data.y), np.append([99] * 6, noisy_data.qid)
    more = RankingData(X, y, qid)
    for solver in ("descent", "newton"):
        np.testing.assert_array_equal(fit(more, solver=solver).coef_, fit(noisy_data, solver=solver).coef_)


@pytest.mark.parametrize(("name", "ndcg", "mean_ap"), [("MQ2008", 0.2303, 0.4775), ("OHSUMED", 0.4410, 0.4457)])
def test_five_folds_come_near_the_published_means(letor_folder, name, ndcg, mean_ap):
    values = []
    for fold in range(1, 6):
        train, vali, test = load_fold(letor_folder / name / f"Fold{fold}")
        scores = ListNet().tune(train, vali).fit(train.X, train.y, qid=train.qid).predict(test.X)
        values.append((NDCG(10).score(test, scores), MAP().score(test, scores)))
    np.testing.assert_allclose(np.mean(values, axis=0), (ndcg, mean_ap), atol=0.008)


def test_grid_has_every_number_of_passes_of_each_rate(noisy_data):
    grid = ListNet().default_grid(noisy_data)
    assert len(grid) == 900
    assert {entry["n_epochs"] for entry in grid} == set(range(1, 301))
    assert ListNet(solver="newton").default_grid(noisy_data) == [{}]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rate": 0.0}, "rate must be positive"),
        ({"n_epochs": 0}, "n_epochs must be an integer from 1"),
        ({"n_epochs": 1.5}, "n_epochs must be an integer from 1"),
        ({"solver": "adam"}, "solver must be one of"),
    ],
)
def test_wrong_parameters_are_refused(noisy_data, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(noisy_data, **parameters)

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge

from moerank.data import RankingData, load_fold
from moerank.rankers import CombinedRegressionRanking, RankRLS


def fit(data, **parameters):
    return CombinedRegressionRanking(**parameters).fit(data.X, data.y, qid=data.qid)


def explicit(data, alpha, lam, loss):
    """The objective and its gradient in (w, c), on explicit documents and pairs."""
    D = data.X[data.pairs.better] - data.X[data.pairs.worse]
    y = data.y / (1.0 if loss == "squared" else data.y.max())
    target = y[data.pairs.better] - y[data.pairs.worse]
    if loss == "logistic":
        target = (1.0 + target) / 2.0

    def value_and_gradient(v):
        w, c = v[:-1], v[-1]
        f, g = 0.5 * lam * w @ w, np.append(lam * w, 0.0)
        for share, table, t, u in (
            (alpha, np.column_stack([data.X, np.ones(len(y))]), y, data.X @ w + c),
            (1.0 - alpha, np.column_stack([D, np.zeros(len(D))]), target, D @ w),
        ):
            if loss == "squared":
                f += share * np.mean((t - u) ** 2)
                g += share * table.T @ (2.0 * (u - t)) / len(t)
            else:
                f += share * np.mean(np.logaddexp(0.0, u) - t * u)
                g += share * table.T @ (expit(u) - t) / len(t)
        return f, g

    return value_and_gradient


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("lam", [1e-4, 0.1])
def test_fit_reaches_the_minimum_that_scipy_finds(noisy_data, loss, alpha, lam):
    objective = explicit(noisy_data, alpha, lam, loss)
    options = {"maxiter": 10_000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-11}
    start = np.zeros(noisy_data.n_features + 1)
    best = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    ranker = fit(noisy_data, alpha=alpha, lam=lam, loss=loss)
    value, gradient = objective(np.append(ranker.coef_, ranker.intercept_))
    assert value == pytest.approx(best.fun, rel=1e-10)
    assert np.abs(gradient).max() < 1e-7
    np.testing.assert_allclose(ranker.coef_, best.x[:-1], rtol=1e-4, atol=1e-5)


def test_ranking_alone_is_rank_rls_on_label_differences(noisy_data):
    ranker = fit(noisy_data, alpha=0.0, lam=0.02)
    rls = RankRLS(alpha=0.01, target="difference").fit(noisy_data.X, noisy_data.y, qid=noisy_data.qid)
    np.testing.assert_allclose(ranker.coef_, rls.coef_, rtol=1e-9)
    assert ranker.intercept_ == 0.0


def test_regression_alone_is_ridge_regression(noisy_data):
    ranker = fit(noisy_data, alpha=1.0, lam=0.02)
    ridge = Ridge(alpha=0.01 * noisy_data.n_documents).fit(noisy_data.X, noisy_data.y)
    np.testing.assert_allclose(ranker.coef_, ridge.coef_, rtol=1e-9)
    estimate = ranker.predict(noisy_data.X) + ranker.intercept_
    np.testing.assert_allclose(estimate, ridge.predict(noisy_data.X), rtol=1e-9)


def test_logistic_regression_alone_is_that_of_sklearn(noisy_data):
    binary = RankingData(noisy_data.X, noisy_data.y > 1, noisy_data.qid)
    ranker = fit(binary, alpha=1.0, lam=0.01, loss="logistic")
    C = 1.0 / (0.01 * binary.n_documents)
    reference = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12).fit(binary.X, binary.y)
    np.testing.assert_allclose(ranker.coef_, reference.coef_[0], rtol=1e-6, atol=1e-6)
    assert ranker.intercept_ == pytest.approx(reference.intercept_[0], rel=1e-6)


def test_logistic_loss_reads_labels_relative_to_the_largest(noisy_data):
    doubled = RankingData(noisy_data.X, 2 * noisy_data.y, noisy_data.qid)
    np.testing.assert_array_equal(fit(doubled, loss="logistic").coef_, fit(noisy_data, loss="logistic").coef_)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_gradient_vanishes_on_real_data(letor_folder, loss):
    train, _, _ = load_fold(letor_folder / "MQ2008" / "Fold1")
    ranker = fit(train, alpha=0.5, lam=1e-5, loss=loss)
    _, gradient = explicit(train, 0.5, 1e-5, loss)(np.append(ranker.coef_, ranker.intercept_))
    assert np.abs(gradient[:-1][ranker.varying_]).max() < 1e-7
    assert abs(gradient[-1]) < 1e-7


def test_grid_has_all_shares_and_strengths(noisy_data):
    grid = CombinedRegressionRanking().default_grid(noisy_data)
    assert sorted({entry["alpha"] for entry in grid}) == [k / 10 for k in range(11)]
    np.testing.assert_allclose(sorted({entry["lam"] for entry in grid}), 10.0 ** np.arange(-7, 1))
    assert len(grid) == 88
    assert grid[0]["lam"] == 1.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 1.1}, "alpha must be between 0 and 1"),
        ({"alpha": np.nan}, "alpha must be between 0 and 1"),
        ({"lam": 0.0}, "lam must be positive"),
        ({"loss": "hinge"}, "loss must be one of"),
    ],
)
def test_wrong_parameters_are_refused(noisy_data, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(noisy_data, **parameters)

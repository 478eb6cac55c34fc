import numpy as np
import pytest
from scipy.optimize import minimize

from moerank.rankers import CombinedRegressionRanking


def explicit_objective(w, b, data, alpha, ridge, loss):
    """The objective and its gradient in (w, b), on explicit documents and pairs."""
    D = data.X[data.pairs.better] - data.X[data.pairs.worse]
    y = data.y / (data.y.max() if loss == "logistic" else 1.0)
    u = y[data.pairs.better] - y[data.pairs.worse]
    z, d = data.X @ w + b, D @ w
    if loss == "squared":
        values, slopes = ((z - y) ** 2, (d - u) ** 2), (2.0 * (z - y), 2.0 * (d - u))
    else:
        t = (1.0 + u) / 2.0
        values = (np.logaddexp(0.0, z) - y * z, np.logaddexp(0.0, d) - t * d)
        slopes = (1.0 / (1.0 + np.exp(-z)) - y, 1.0 / (1.0 + np.exp(-d)) - t)
    value = alpha * values[0].mean() + (1.0 - alpha) * values[1].mean() + 0.5 * ridge * w @ w
    slope_w = alpha * data.X.T @ slopes[0] / len(z) + (1.0 - alpha) * D.T @ slopes[1] / len(d) + ridge * w
    return value, np.append(slope_w, alpha * slopes[0].mean())


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("ridge", [1.0, 1e-3, 1e-7])
def test_minimum_is_the_one_that_scipy_finds_on_explicit_pairs_and_documents(noisy_data, loss, alpha, ridge):
    def value_and_gradient(v):
        return explicit_objective(v[:-1], v[-1], noisy_data, alpha, ridge, loss)

    options = {"maxiter": 5000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-11}
    result = minimize(value_and_gradient, np.zeros(13), jac=True, method="L-BFGS-B", options=options)
    ranker = CombinedRegressionRanking(alpha=alpha, ridge=ridge, loss=loss).fit(noisy_data)
    value, gradient = value_and_gradient(np.append(ranker.coef_, ranker.intercept_))
    assert value == pytest.approx(result.fun, rel=1e-8)
    assert value <= result.fun * (1 + 1e-12)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from moerank.data import RankingData
from moerank.rankers import ListNet


def loss(w, data):
    value = 0.0
    for rows in np.split(np.arange(data.n_documents), data.offsets[1:-1]):
        if np.ptp(data.y[rows]) > 0:
            value -= softmax(data.y[rows].astype(float)) @ log_softmax(data.X[rows] @ w)
    return value


@pytest.fixture(scope="module")
def few_features(noisy_data):
    return RankingData(noisy_data.X[:, [0, 3, 7]], noisy_data.y, noisy_data.qid)


def test_small_steps_end_at_the_minimum_that_scipy_finds(few_features):
    best = minimize(loss, np.zeros(3), args=(few_features,), method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
    errors = []
    for rate in (0.02, 0.01):
        ranker = ListNet(6000, rate).fit(few_features)
        errors.append(loss(ranker.coef_, few_features) - best.fun)
    assert -1e-9 < errors[1] < 1e-3 * (loss(np.zeros(3), few_features) - best.fun)
    assert errors[1] < errors[0] / 3  # the distance to the minimum goes with the step, the loss with its square

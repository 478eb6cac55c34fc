from itertools import permutations

import numpy as np
import pytest
from helpers.read_only import read_only

from moerank.kernels.counted_ranks import most_violated_rankings

PLACES = np.arange(1, 8)


def joint_features(order, relevant, X):
    """Ψ of the ranking `order` (best first), pair by pair."""
    position = np.argsort(order)
    total = np.zeros(X.shape[1])
    for i in np.flatnonzero(relevant):
        for j in np.flatnonzero(~relevant):
            total += (1.0 if position[i] < position[j] else -1.0) * (X[i] - X[j])
    return total / relevant.sum() / (~relevant).sum()


def average_precision(order, relevant):
    hits = relevant[list(order)]
    return np.mean((hits.cumsum() / np.arange(1, len(hits) + 1))[hits])


def violated(z, relevant, offsets=None):
    offsets = np.array([0, len(z)]) if offsets is None else offsets
    coefficients, losses = np.full(len(z), np.nan), np.full(len(offsets) - 1, np.nan)
    most_violated_rankings(z, relevant, read_only(offsets), coefficients, losses)
    return coefficients, losses


@pytest.mark.parametrize("seed", range(25))
def test_no_permutation_of_seven_documents_is_violated_more(seed):
    rng = np.random.default_rng(seed)
    relevant = rng.permutation(np.arange(7) < rng.integers(1, 7))
    X = rng.normal(size=(7, 3))
    w = rng.normal(size=3) * 10.0 ** rng.uniform(-2.5, 0.5)
    orders = [np.array(order) for order in permutations(range(7))]
    signs = np.sign(np.argsort(orders)[:, None, :] - np.argsort(orders)[:, :, None])  # + where i stands above j
    z = X @ w
    gains = (signs * (z[:, None] - z[None, :]))[:, relevant][:, :, ~relevant].mean(axis=(1, 2))
    hits = relevant[np.array(orders)]
    precisions = (hits * hits.cumsum(axis=1) / PLACES).sum(axis=1) / relevant.sum()
    violations = 1.0 - precisions + gains
    worst = orders[int(violations.argmax())]

    coefficients, losses = violated(z, relevant)
    perfect = joint_features(np.argsort(~relevant, kind="stable"), relevant, X)
    assert losses[0] - coefficients @ z == pytest.approx(violations.max() - perfect @ w, abs=1e-12)
    assert losses[0] == pytest.approx(1.0 - average_precision(worst, relevant), abs=1e-12)
    np.testing.assert_allclose(coefficients @ X, perfect - joint_features(worst, relevant, X), atol=1e-12)

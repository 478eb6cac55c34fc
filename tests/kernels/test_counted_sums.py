from itertools import permutations

import numpy as np
import pytest
from helpers.read_only import read_only
from hypothesis import given, settings
from hypothesis import strategies as st

from moerank.data.ranking_data import PreferencePairs
from moerank.kernels.counted_ranks import most_violated_rankings
from moerank.kernels.counted_sums import LabelRuns, MarginPairs


def explicit(y, offsets, z, s):
    """Counts, losses, gradient and Hessian product from the list of all pairs."""
    pairs = PreferencePairs.of(y, offsets)
    slack = 1.0 - (z[pairs.better] - z[pairs.worse])
    near = z[pairs.better] - z[pairs.worse] < 1.0
    i, j, slack = pairs.better[near], pairs.worse[near], slack[near]
    m = len(y)
    difference = s[i] - s[j]
    return {
        "n_worse": np.bincount(i, minlength=m),
        "n_better": np.bincount(j, minlength=m),
        "loss": np.sum(slack**2),
        "gradient": 2.0 * (np.bincount(j, slack, m) - np.bincount(i, slack, m)),
        "product": 2.0 * (np.bincount(i, difference, m) - np.bincount(j, difference, m)),
    }


def check(y, offsets, z, s):
    pairs, expected = LabelRuns.of(read_only(y), read_only(offsets)), explicit(y, offsets, z, s)
    near = MarginPairs(pairs, z)
    everything = PreferencePairs.of(y, offsets)
    assert pairs.n_pairs == len(everything)
    np.testing.assert_array_equal(pairs.n_worse[pairs.run], np.bincount(everything.better, minlength=len(y)))
    np.testing.assert_array_equal(pairs.n_better[pairs.run], np.bincount(everything.worse, minlength=len(y)))
    np.testing.assert_array_equal(near.n_worse, expected["n_worse"])
    np.testing.assert_array_equal(near.n_better, expected["n_better"])
    assert near.n_pairs == expected["n_worse"].sum()
    assert near.loss == pytest.approx(expected["loss"], rel=1e-10)
    for name, result in (("gradient", near.gradient), ("product", near.product(s))):
        scale = np.abs(expected[name]).max(initial=0.0)
        np.testing.assert_allclose(result, expected[name], rtol=1e-10, atol=1e-10 * scale)


def some_queries(rng, n_labels, sizes=(1, 40, 2, 1, 75, 13, 3)):
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    return rng.integers(0, n_labels, offsets[-1]), offsets


@pytest.mark.parametrize("n_labels", [1, 2, 3, 5, 60, 10**9])
@pytest.mark.parametrize("spread", [0.01, 0.7, 30.0])
def test_sums_equal_those_over_explicit_pairs(n_labels, spread):
    rng = np.random.default_rng(n_labels)
    y, offsets = some_queries(rng, n_labels)
    check(y, offsets, spread * rng.normal(size=len(y)), rng.normal(size=len(y)))


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_sums_equal_those_over_explicit_pairs_whatever_the_data(data):
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    m = sum(sizes)
    y = np.array(data.draw(st.lists(st.integers(0, 6), min_size=m, max_size=m)), np.int64)
    lattice = st.lists(st.integers(-16, 16), min_size=m, max_size=m)
    z, s = (np.array(data.draw(lattice)) / 8.0 for _ in range(2))
    check(y, np.concatenate(([0], np.cumsum(sizes))), z, s)


@given(seed=st.integers(0, 10**6), digits=st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_both_documents_of_a_pair_agree_at_the_edge_of_the_margin(seed, digits):
    """Decimal scores differ by 1 up to rounding, to either side: a pair must still count twice or never."""
    rng = np.random.default_rng(seed)
    y, offsets = some_queries(rng, 4, sizes=(25, 25))
    z = rng.integers(0, 3 * 10**digits, len(y)) / 10.0**digits
    near = MarginPairs(LabelRuns.of(read_only(y), read_only(offsets)), z)
    assert near.n_worse.sum() == near.n_better.sum()
    np.testing.assert_array_equal(near.n_worse, explicit(y, offsets, z, z)["n_worse"])


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

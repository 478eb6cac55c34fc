from types import SimpleNamespace

import numpy as np
import pytest
from helpers.toy_search import WeighedBits, operators
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.population import Population
from pymoo.core.problem import Problem

from moerank.evolution import AdaptiveBitFlip, SparseBitFlip, importance_degrees, redundancy_degrees, search

IMPORTANCE = np.array([0.5, 0.2, 0.3, 0.0])
REDUNDANCY = np.array([0.1, 0.6, 0.0, 0.3])
X = np.array([[False, True, False, True], [True, False, True, False]])
DEGREE = np.array([[0.5, 0.6, 0.3, 0.3], [0.1, 0.2, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("decay", "alpha"), [("inverse", 1 / 3), ("exp", np.e**-3), ("geometric", 0.729), ("linear", 0.6)]
)
@pytest.mark.parametrize("base", [None, 0.05])
def test_probabilities_follow_the_formulas_and_stop_at_one(decay, alpha, base):
    pm = 0.25 if base is None else base
    expected = {
        "additive": pm + alpha * DEGREE,
        "convex": (1 - alpha) * pm + alpha * DEGREE,
        "product": pm * (1 + alpha * DEGREE),
    }
    for form, probability in expected.items():
        mutation = AdaptiveBitFlip(IMPORTANCE, REDUNDANCY, form=form, decay=decay, base=base)
        np.testing.assert_allclose(mutation.probabilities(X, 3, progress=0.4), probability, rtol=1e-14)
    mutation = AdaptiveBitFlip([9.0, 0.1], [0.2, 9.0], base=0.3)
    np.testing.assert_allclose(mutation.probabilities(np.array([[False, True]]), 1), [[1.0, 1.0]])


def test_bits_flip_at_their_probabilities():
    mutation = AdaptiveBitFlip(IMPORTANCE, REDUNDANCY)
    rows = np.repeat(X, 10_000, axis=0)
    algorithm = SimpleNamespace(n_iter=3, termination=SimpleNamespace(perc=0.1))
    population = mutation.do(
        Problem(n_var=4), Population.new("X", rows), algorithm=algorithm, random_state=np.random.default_rng(0)
    )
    flips = population.get("X") ^ rows
    assert population.get("X").dtype == bool
    expected = mutation.probabilities(X, generation=2)
    assert len(np.unique(expected)) == 6
    # Four standard errors of a share of 10,000 are at most 0.02.
    np.testing.assert_allclose(flips.reshape(2, -1, 4).mean(axis=1), expected, atol=0.02)


def test_the_first_mating_is_generation_one():
    seen = []

    class Recording(AdaptiveBitFlip):
        def probabilities(self, X, generation, progress=0.0):
            seen.append((generation, progress))
            return super().probabilities(X, generation, progress)

    n = WeighedBits().n_var
    algorithm = NSGA2(8, **operators() | dict(mutation=Recording(np.full(n, 1 / n), np.full(n, 1 / n))))
    search(WeighedBits(), algorithm, 5, seed=1)
    assert sorted(set(seen)) == [(1, 0.2), (2, 0.4), (3, 0.6), (4, 0.8)]


def test_redundancy_is_the_share_of_the_absolute_correlations():
    features = np.random.default_rng(0).random((50, 4)) @ np.random.default_rng(1).normal(size=(4, 6))
    correlation = np.abs(np.corrcoef(features.T)) - np.eye(6)
    expected = correlation.sum(axis=0) / correlation.sum()
    np.testing.assert_allclose(redundancy_degrees(features), expected, rtol=1e-12)
    # A constant feature, even one whose mean is not exact, correlates with nothing and takes nothing from the others.
    with_constant = np.insert(features, 2, 0.1, axis=1)
    np.testing.assert_allclose(redundancy_degrees(with_constant), np.insert(expected, 2, 0.0), rtol=1e-12)
    np.testing.assert_array_equal(redundancy_degrees(np.ones((5, 3))), np.zeros(3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(redundancy=[-0.1, 0.2, 0.3, 0.4]), "must be 0 or more"),
        (dict(importance=[np.nan, 0.2, 0.3, 0.4]), "must be 0 or more"),
        (dict(form="sum"), "form must be one of 'additive', 'convex', 'product', not 'sum'"),
        (dict(decay="slow"), "decay must be one of 'inverse', 'exp', 'geometric', 'linear', not 'slow'"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        AdaptiveBitFlip(**dict(importance=IMPORTANCE, redundancy=REDUNDANCY) | change)


def test_the_readings_of_importance_follow_their_formulas():
    accuracy = np.array([0.2, 0.5, 0.3, 0.4])
    np.testing.assert_allclose(importance_degrees(accuracy, "accuracy"), accuracy)
    np.testing.assert_allclose(importance_degrees(accuracy, "scaled"), (accuracy - 0.2) / 0.3)
    np.testing.assert_allclose(importance_degrees(accuracy), accuracy / 1.4, rtol=1e-15)
    assert importance_degrees([0.5, 0.5], "scaled").tolist() == importance_degrees([0.0, 0.0]).tolist() == [0.0, 0.0]


def test_the_readings_of_redundancy_follow_their_formulas():
    table = np.random.default_rng(0).normal(size=(50, 4)) @ np.random.default_rng(1).normal(size=(4, 4))
    absolute = np.abs(np.corrcoef(table.T)) - np.eye(4)
    np.testing.assert_allclose(redundancy_degrees(table, "mean"), absolute.sum(axis=0) / 3, rtol=1e-12)
    np.testing.assert_allclose(redundancy_degrees(table, "selected"), absolute, rtol=1e-12, atol=1e-15)
    mutation = AdaptiveBitFlip(IMPORTANCE, redundancy_degrees(table, "selected"))
    for row, chances in zip(X, mutation.probabilities(X, 1), strict=True):
        ones = np.flatnonzero(row)
        total = sum(absolute[i, k] for i in ones for k in ones)
        for j in ones:
            assert chances[j] == pytest.approx(min(1.0, 0.25 + sum(absolute[j, k] for k in ones) / total))
    alone = np.array([[True, False, False, False]])
    assert mutation.probabilities(alone, 1)[0, 0] == 0.25, "a feature alone is redundant with nothing"


def test_groups_add_up_the_correlations_of_their_features():
    table = np.random.default_rng(2).normal(size=(40, 4)) @ np.random.default_rng(3).normal(size=(4, 4))
    shares = redundancy_degrees(table)
    grouped = redundancy_degrees(table, bit_of=[0, 1, 1, 2])
    np.testing.assert_allclose(grouped, [shares[0], shares[1] + shares[2], shares[3]], rtol=1e-12)


@pytest.mark.parametrize("mutation", [AdaptiveBitFlip(IMPORTANCE, REDUNDANCY), SparseBitFlip(), SparseBitFlip(0.7)])
def test_every_mutation_moves_the_draws_of_the_others_alike(mutation):
    shared, alone = np.random.default_rng(5), np.random.default_rng(5)
    algorithm = SimpleNamespace(n_iter=3, termination=SimpleNamespace(perc=0.1))
    mutation.do(Problem(n_var=4), Population.new("X", X.copy()), algorithm=algorithm, random_state=shared)
    alone.integers(2**63)
    assert shared.random() == alone.random()

import pickle

import numpy as np
import pytest
from helpers.toy_search import WeighedBits
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.duplicate import DefaultDuplicateElimination
from pymoo.core.population import Population
from pymoo.operators.crossover.pntx import TwoPointCrossover
from pymoo.operators.mutation.bitflip import BitflipMutation
from pymoo.operators.sampling.rnd import BinaryRandomSampling
from pymoo.optimize import minimize

from moerank.evolution import DigestDuplicates, row_digests


@pytest.mark.parametrize("dtype", [bool, np.float64, np.int64])
def test_digests_are_equal_exactly_where_rows_are(dtype):
    X = np.random.default_rng(0).integers(0, 2, (300, 7)).astype(dtype)
    digests = row_digests(X)
    equal = (X[:, None, :] == X[None, :, :]).all(axis=2)
    assert 300 < equal.sum() < 90_000
    np.testing.assert_array_equal(np.equal.outer(digests, digests), equal)
    assert row_digests(np.asfortranarray(X)) == digests
    assert row_digests(list(X)) == digests


def test_digests_see_the_last_bit_and_no_sign_of_zero():
    X = np.zeros((2, 1001), bool)
    X[1, -1] = True
    assert len(set(row_digests(X))) == 2
    assert len(set(row_digests(np.array([[0.0, 1.0], [-0.0, 1.0]])))) == 1
    assert len(set(row_digests(np.array([[1.0], [np.nextafter(1.0, 2.0)]])))) == 2


@pytest.mark.parametrize("dtype", [bool, np.float64])
def test_the_same_individuals_stay_as_with_distances(dtype):
    rng = np.random.default_rng(1)
    ours, theirs = DigestDuplicates(), DefaultDuplicateElimination()
    removed = 0
    for _ in range(20):
        new, parents, siblings = (
            Population.new("X", rng.integers(0, 2, (size, 6)).astype(dtype)) for size in (12, 10, 4)
        )
        kept = theirs.do(new, parents, siblings, return_indices=True)
        removed += len(kept[2])
        for result, expected in zip(ours.do(new, parents, siblings, return_indices=True), kept, strict=True):
            assert list(result) == list(expected)
        assert list(ours.do(new, parents, to_itself=False)) == list(theirs.do(new, parents, to_itself=False))
    assert 0 < removed < 240
    assert len(ours.do(Population.empty())) == 0


def test_a_seeded_run_is_that_of_the_default_elimination():
    def run(elimination):
        algorithm = NSGA2(
            20,
            sampling=BinaryRandomSampling(),
            crossover=TwoPointCrossover(),
            mutation=BitflipMutation(),
            eliminate_duplicates=elimination,
        )
        return minimize(WeighedBits(n_var=12), algorithm, ("n_gen", 30), seed=5)

    ours, theirs, none = run(DigestDuplicates()), run(True), run(False)
    np.testing.assert_array_equal(ours.pop.get("X"), theirs.pop.get("X"))
    np.testing.assert_array_equal(ours.pop.get("F"), theirs.pop.get("F"))
    assert not np.array_equal(ours.pop.get("X"), none.pop.get("X"))


def test_only_rows_of_the_last_call_are_remembered_and_none_is_pickled():
    elimination = DigestDuplicates()
    for seed in range(5):
        X = np.random.default_rng(seed).random((10, 50)) < 0.5
        elimination.do(Population.new("X", X), Population.new("X", X[:5]))
        assert len(elimination._remembered) == 15
    assert pickle.loads(pickle.dumps(elimination))._remembered == {}

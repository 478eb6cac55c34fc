import numpy as np
import pytest
from pymoo.optimize import minimize
from toy_search import ALGORITHMS, WeighedBits

from moerank.evolution import search


def assert_same_population(here, there):
    np.testing.assert_array_equal(here.get("X"), there.get("X"))
    np.testing.assert_array_equal(here.get("F"), there.get("F"))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_populations_are_those_of_minimize(name):
    problem = WeighedBits()
    expected = minimize(problem, ALGORITHMS[name](), ("n_gen", 12), seed=3)
    result = search(problem, ALGORITHMS[name](), ("n_gen", 12), seed=3)
    assert_same_population(result.pop, expected.pop)
    assert_same_population(result.algorithm.opt, expected.opt)
    assert result.pop.get("X").dtype == bool
    assert len(result.history) == 12
    assert result.history[-1].n_eval == expected.algorithm.evaluator.n_eval

"""Pairs counted by label against pairs listed."""

import numpy as np
import pytest

from moerank.data.pairs import LabelRuns, PreferencePairs


@pytest.mark.parametrize("most", [1, 2, 5, 1000])
def test_counts_are_those_of_the_listed_pairs(most):
    rng = np.random.default_rng(most)
    sizes = rng.integers(1, 40, 30)
    offsets = np.append(0, np.cumsum(sizes))
    y = rng.integers(0, most, offsets[-1])
    runs, pairs = LabelRuns.of(y, offsets), PreferencePairs.of(y, offsets)
    assert runs.n_pairs == len(pairs)
    np.testing.assert_array_equal(runs.n_worse[runs.run], np.bincount(pairs.better, minlength=len(y)))
    np.testing.assert_array_equal(runs.n_better[runs.run], np.bincount(pairs.worse, minlength=len(y)))


def test_runs_are_numbered_by_query_and_label():
    runs = LabelRuns.of(np.array([7, 0, 7, 3, 0, 9]), np.array([0, 4, 6]))
    assert runs.run.tolist() == [2, 0, 2, 1, 3, 4]
    assert runs.first.tolist() == [0, 3, 5]

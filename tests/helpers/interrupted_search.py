"""Searches that are interrupted in the middle of an evaluation, and the comparison of what they end with."""

import numpy as np
import pytest

from helpers.toy_search import WeighedBits
from moerank.evolution import Memo, search

GENERATIONS = 12


class Counting(WeighedBits):
    """Counts the batches that it evaluates, and raises in the middle of the given one."""

    def __init__(self, last=None):
        super().__init__()
        self.calls = 0
        self.last = last

    def _evaluate(self, X, out, *args, **kwargs):
        self.calls += 1
        if self.calls == self.last:
            raise KeyboardInterrupt
        super()._evaluate(X, out)


def assert_same_result(here, there):
    np.testing.assert_array_equal(here.pop.get("X"), there.pop.get("X"))
    for name in ("F", "G", "H"):
        np.testing.assert_array_equal(here.pop.get(name), there.pop.get(name))
    np.testing.assert_array_equal(here.archive.X, there.archive.X)
    np.testing.assert_array_equal(here.archive.F, there.archive.F)
    for one, other in zip(here.history, there.history, strict=True):
        assert (one.n_gen, one.n_eval) == (other.n_gen, other.n_eval)
        np.testing.assert_array_equal(one.front, other.front)


def interrupted(path, algorithm, last=7):
    """Search, and raise in the evaluation of the given batch."""
    with pytest.raises(KeyboardInterrupt):
        search(Counting(last), algorithm, GENERATIONS, seed=3, memo=Memo(path))

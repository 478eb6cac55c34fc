import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from pymoo.algorithms.moo.moead import MOEAD
from toy_search import ALGORITHMS, WeighedBits, directions, operators

from moerank.evolution import Checkpoint, search

GENERATIONS = 12


class Interrupted(WeighedBits):
    """Raises once, in the middle of the given generation, after half of the work was done."""

    def __init__(self, generation, error=KeyboardInterrupt):
        super().__init__()
        self.calls_left = generation
        self.error = error

    def _evaluate(self, X, out, *args, **kwargs):
        self.calls_left -= 1
        if self.calls_left == 0:
            raise self.error
        super()._evaluate(X, out, *args, **kwargs)


def assert_same_result(here, there):
    np.testing.assert_array_equal(here.pop.get("X"), there.pop.get("X"))
    np.testing.assert_array_equal(here.pop.get("F"), there.pop.get("F"))
    np.testing.assert_array_equal(here.archive.X, there.archive.X)
    np.testing.assert_array_equal(here.archive.F, there.archive.F)
    for one, other in zip(here.history, there.history, strict=True):
        assert (one.n_gen, one.n_eval) == (other.n_gen, other.n_eval)
        np.testing.assert_array_equal(one.front, other.front)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_interrupted_search_resumes_to_the_same_bits(name, tmp_path):
    undisturbed = search(WeighedBits(), ALGORITHMS[name](), GENERATIONS, seed=3)
    checkpoint = Checkpoint(tmp_path / "run", {"seed": 3}, every=1e9)
    finished = 0
    for more in (3, 1, 2, 5):
        with pytest.raises(KeyboardInterrupt):
            search(Interrupted(more + 1), ALGORITHMS[name](), GENERATIONS, seed=3, checkpoint=checkpoint)
        finished += more
        _, _, history = checkpoint.load(WeighedBits())
        assert len(history) == finished
    resumed = search(WeighedBits(), ALGORITHMS[name](), GENERATIONS, seed=3, checkpoint=checkpoint)
    assert_same_result(resumed, undisturbed)

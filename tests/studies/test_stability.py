import numpy as np
import pytest

from moerank.studies.results import feature_stability


def test_stability_of_a_worked_example():
    jaccard, corrected = feature_stability([[0, 1], [0, 1], [0, 2]], 10)
    assert jaccard == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)
    # Two random pairs out of ten share both with chance 1/45, one with 16/45.
    expected = 1 / 45 + 16 / 45 / 3
    assert corrected == pytest.approx((jaccard - expected) / (1 - expected))


def test_random_choices_are_as_stable_as_chance():
    rng = np.random.default_rng(0)
    chosen = [rng.choice(12, rng.integers(1, 8), replace=False).tolist() for _ in range(60)]
    assert feature_stability(chosen, 12)[1] == pytest.approx(0.0, abs=0.01)
    assert feature_stability([[1, 2]] * 4, 12) == (1.0, 1.0)

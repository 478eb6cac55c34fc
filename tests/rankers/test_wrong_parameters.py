"""The bounds of each ranker's parameters; nonsense of any kind is tested for all solvers alike."""

import numpy as np
import pytest

import moerank as mr


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (mr.RankSVM(C=0.0), "C must be positive, not 0.0"),
        (mr.ListNet(n_epochs=0), "n_epochs must be at least 1, not 0"),
        (mr.LambdaMART(n_leaves=1), "n_leaves must be at least 2, not 1"),
        (mr.BaggedLambdaMART(query_share=0.0), r"query_share must be in \(0, 1\], not 0.0"),
    ],
)
def test_values_just_beyond_a_bound_are_refused(noisy_data, ranker, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        ranker.fit(noisy_data)


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("similarity", "kendal", "similarity must be one of .*; did you mean 'kendall'"),
        ("similarity", {"a": 1}, "similarity must be a name, numbers or a function, not {'a': 1}"),
        ("similarity", np.triu(np.ones((12, 12))), "similarity must be finite, 0 or more and symmetric"),
        ("importance", "losses", "importance must be a Metric or the name of one: unknown metric 'losses'"),
        ("importance", np.ones(3), r"importance has the shape \(3,\); give it \(12,\), as data has 12 features"),
        ("importance", [-1.0] * 12, "importance must be finite, 0 or more"),
    ],
)
def test_measures_of_features_that_are_none_are_refused(noisy_data, parameter, value, message):
    with pytest.raises(ValueError, match=message):
        mr.FSMRank(**{parameter: value}).fit(noisy_data)

"""The bounds of each ranker's parameters; nonsense of any kind is tested for all solvers alike."""

import numpy as np
import pytest

import moerank as mr

CUTTING_PLANE = {"C": 0.0, "eps": 0.0, "max_iter": 0}
STUMPS = {"n_rounds": 0, "n_thresholds": 0}
MAP_OF_KERNEL = {"C": 0.0, "gamma": 0.0, "tol": 0.0, "n_components": 0}
BOUNDS = {
    mr.RankSVM: {"C": 0.0, "tol": -0.1},
    mr.RankSVMTRON: {"C": 0.0, "tol": 0.0},
    mr.RankRLS: {"alpha": 0.0, "tol": -0.1},
    mr.FSMRank: {"lambda1": -0.1, "lambda2": -0.1, "max_iter": 0, "tol": -0.1},
    mr.LambdaMART: {
        **dict.fromkeys(("n_trees", "min_leaf", "k", "patience"), 0),
        "learning_rate": 0.0,
        "n_leaves": 1,
        "n_bins": 1,
    },
    mr.BaggedLambdaMART: {
        **dict.fromkeys(("n_bags", "n_trees", "k", "patience"), 0),
        "query_share": 0.0,
        "document_share": 1.5,
        "feature_share": 0.0,
        "min_leaf_share": 1.0,
        "n_leaves": 1,
    },
    mr.ListNet: {"n_epochs": 0, "learning_rate": 0.0},
    mr.AdaRank: {"n_rounds": 0},
    mr.SVMMAP: CUTTING_PLANE,
    mr.RankSVMStruct: CUTTING_PLANE,
    mr.KernelRankSVM: dict.fromkeys(("C", "gamma", "tol"), 0.0),
    mr.RankNystrom: MAP_OF_KERNEL,
    mr.RankFourier: MAP_OF_KERNEL,
    mr.RankBoost: STUMPS,
    mr.FRank: STUMPS,
    mr.CombinedRegressionRanking: {"alpha": 1.1, "ridge": 0.0},
}
"""Values just beyond the bound of a parameter."""


@pytest.mark.parametrize("ranker", BOUNDS, ids=lambda ranker: ranker.__name__)
def test_values_beyond_a_bound_are_refused(noisy_data, ranker):
    for parameter, value in BOUNDS[ranker].items():
        with pytest.raises(ValueError, match=f"^{parameter} must .*{value}$"):
            ranker(**{parameter: value}).fit(noisy_data)


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("similarity", "kendal", "similarity must be one of .*; did you mean 'kendall'"),
        ("similarity", {"a": 1}, "similarity must be a name, numbers or a function, not {'a': 1}"),
        ("similarity", np.triu(np.ones((12, 12))), "similarity must be finite, 0 or more and symmetric"),
        ("importance", "losses", "importance must be one of 'pearson', .* or a metric: unknown metric 'losses'"),
        ("importance", np.ones(3), r"importance has the shape \(3,\); give it \(12,\), as data has 12 features"),
        ("importance", [-1.0] * 12, "importance must be finite, 0 or more"),
    ],
)
def test_measures_of_features_that_are_none_are_refused(noisy_data, parameter, value, message):
    with pytest.raises(ValueError, match=message):
        mr.FSMRank(**{parameter: value}).fit(noisy_data)

"""The bounds of each ranker's parameters; nonsense of any kind is tested for all solvers alike."""

import numpy as np
import pytest

import moerank as mr

MAP_OF_KERNEL = [
    ("C", 0.0, "C must be positive, not 0.0"),
    ("gamma", -1.0, "gamma must be positive"),
    ("tol", np.nan, "tol must be positive"),
    ("n_components", 0, "n_components must be at least 1, not 0"),
]
STUMPS = [("n_rounds", 0, "n_rounds must be"), ("n_thresholds", 0, "n_thresholds must be")]
CUTTING_PLANE = [("C", 0.0, "C must be positive"), ("eps", 0.0, "eps must be"), ("max_iter", 0, "max_iter must be")]
WRONG = {
    mr.RankSVM: [("C", 0.0, "C must be positive, not 0.0")],
    mr.RankSVMTRON: [
        ("C", 0.0, "C must be positive, not 0.0"),
        ("C", np.nan, "C must be"),
        ("tol", -1.0, "tol must be"),
    ],
    mr.FSMRank: [
        ("lambda1", -1.0, "lambda1 must not be negative"),
        ("lambda2", np.nan, "lambda2 must not be negative"),
        ("max_iter", 0, "max_iter must be at least 1"),
        ("tol", -1e-4, "tol must not be negative"),
        ("similarity", "kendal", "similarity must be one of .*; did you mean 'kendall'"),
        ("similarity", {"a": 1}, "similarity must be a name, numbers or a function, not {'a': 1}"),
        ("similarity", np.triu(np.ones((12, 12))), "similarity must be finite, 0 or more and symmetric"),
        ("importance", "losses", "importance must be one of 'pearson', .* or a metric: unknown metric 'losses'"),
        (
            "importance",
            np.ones(3),
            r"importance has the shape \(3,\); give it \(12,\), as training data has 12 features",
        ),
        ("importance", [-1.0] * 12, "importance must be finite, 0 or more"),
    ],
    mr.LambdaMART: [
        ("n_trees", 0, "n_trees must be at least 1"),
        ("learning_rate", 0.0, "learning_rate must be positive"),
        ("n_leaves", 1, "n_leaves must be at least 2"),
        ("min_leaf", 0, "min_leaf must be at least 1"),
        ("n_bins", 1, "n_bins must be at least 2"),
        ("k", 0, "k must be at least 1"),
        ("patience", 0, "patience must be at least 1"),
    ],
    mr.BaggedLambdaMART: [
        ("n_bags", 0, "n_bags must be at least 1"),
        ("patience", 0, "patience must be at least 1"),
        ("query_share", 0.0, r"query_share must be in \(0, 1\]"),
        ("document_share", 1.5, r"document_share must be in \(0, 1\]"),
        ("feature_share", -1.0, r"feature_share must be in \(0, 1\]"),
        ("min_leaf_share", 1.0, r"min_leaf_share must be in \[0, 1\)"),
        ("n_leaves", 1, "n_leaves must be at least 2"),
    ],
    mr.ListNet: [
        ("n_epochs", 0, "n_epochs must be at least 1"),
        ("learning_rate", 0.0, "learning_rate must be positive"),
    ],
    mr.AdaRank: [
        ("measure", "rbp", "measure must be"),
        ("n_rounds", 0, "n_rounds must be at least 1"),
        ("reweighting", "own", "reweighting must be one of"),
        ("max_consecutive", 0, "max_consecutive must be"),
        ("tol", -0.1, "tol must not be negative"),
    ],
    mr.SVMMAP: CUTTING_PLANE,
    mr.RankSVMStruct: CUTTING_PLANE,
    mr.RankRLS: [
        ("alpha", 0.0, "alpha must be positive"),
        ("loss", "hinge", "loss must"),
        ("target", "x", "target must"),
    ],
    mr.KernelRankSVM: [(name, 0.0, f"{name} must be positive") for name in ("C", "gamma", "tol", "memory_limit")],
    mr.RankNystrom: MAP_OF_KERNEL,
    mr.RankFourier: MAP_OF_KERNEL,
    mr.RankBoost: STUMPS,
    mr.FRank: STUMPS,
    mr.CombinedRegressionRanking: [
        ("alpha", -0.1, r"alpha must be in \[0, 1\]"),
        ("ridge", 0.0, "ridge must be positive"),
        ("loss", "hinge", "loss must be one of"),
    ],
}


@pytest.mark.parametrize("ranker", WRONG, ids=lambda ranker: ranker.__name__)
def test_wrong_parameters_are_refused(noisy_data, ranker):
    for parameter, value, message in WRONG[ranker]:
        with pytest.raises(ValueError, match=message):
            ranker(**{parameter: value}).fit(noisy_data.X, noisy_data.y, qid=noisy_data.qid)

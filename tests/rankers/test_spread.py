"""How far features spread within queries, against the formula in plain Python, and the warning that depends on it."""

import math
import re
import statistics
import warnings

import numpy as np
import pytest
from lightgbm import LGBMRanker

from moerank.data import RankingData, fit_scaling, query_level_norm
from moerank.mofsrank import MOFSRank
from moerank.rankers import (
    FRank,
    KernelRankSVM,
    LambdaMART,
    RankBoost,
    RankerAdapter,
    RankRLS,
    RankSVM,
    ScaleWarning,
    varying_in_queries,
)
from moerank.rankers.arguments import warn_of_scales
from moerank.selectors.filter import SingleFeatures


def data_of_scales(*scales, seed=0, sizes=(5, 1, 12, 3)):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = (rng.random((len(qid), len(scales))) + rng.random(len(sizes))[qid][:, None] * 100) * scales
    return RankingData(X, rng.integers(0, 3, len(qid)), qid)


def deviations(data):
    result = []
    for f in range(data.n_features):
        total = 0.0
        for begin, end in zip(data.offsets[:-1].tolist(), data.offsets[1:].tolist(), strict=True):
            values = [float(value) for value in data.X[begin:end, f]]
            total += len(values) * statistics.pvariance(values)
        result.append(math.sqrt(total / data.n_documents))
    return result


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_two_features_and_their_deviations(dtype):
    data = data_of_scales(1.0, 1e5, 0.0, 3.0, 1e-2)
    data = RankingData(data.X.astype(dtype), data.y, data.qid)
    expected = deviations(data)
    said = (
        rf"by a factor of {expected[1] / expected[4]:.0e}: .* '2' .* of {expected[1]:.2g}, .* '5' .* {expected[4]:.2g},"
    )
    with pytest.warns(ScaleWarning, match=re.escape(said).replace(r"\.\*", ".*")):
        warn_of_scales(data)
    assert varying_in_queries(data).tolist() == [True, True, False, True, True]


@pytest.mark.parametrize(
    "ranker", [RankSVM(), RankRLS(), KernelRankSVM(), SingleFeatures(1), SingleFeatures(1, RankSVM())]
)
def test_one_warning_names_both_features_and_the_remedies_at_the_users_call(ranker):
    data = data_of_scales(1.0, 1e7)
    named = RankingData(data.X, data.y, data.qid, ["small", "large"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker.fit(named)
    (warning,) = [entry for entry in caught if entry.category is ScaleWarning]
    assert warning.filename == __file__
    said = str(warning.message)
    for part in ("factor of 1e+07", "'large'", "'small'", "query_level_norm", "fit_scaling", 'normalize = "query"'):
        assert part in said, said


@pytest.mark.parametrize(
    "ranker",
    [
        LambdaMART(2),
        RankBoost(2),
        FRank(2),
        SingleFeatures(1, LambdaMART(2)),
        MOFSRank(
            RankerAdapter(LGBMRanker(n_estimators=2, verbose=-1)),
            instance_selection=False,
            feature_selection={"population": 4, "generations": 1},
            ensemble=False,
        ),
    ],
)
def test_trees_rankers_from_elsewhere_and_scaled_data_are_spared(ranker):
    data = data_of_scales(1.0, 1e7)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaleWarning)
        ranker.fit(data)
        for scaled in (query_level_norm(data), fit_scaling(data, "standard").apply(data), data.declared("query")):
            RankSVM().fit(scaled)

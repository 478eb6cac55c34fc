"""Means over the five test folds of LETOR's sets, against the published ones."""

from functools import cache

import numpy as np
import pytest

from moerank.data import load_fold
from moerank.metrics import MAP, NDCG
from moerank.rankers import AdaRank, FSMRank, ListNet, RankBoost, RankSVM, RankSVMStruct

LAMBDAS = [10.0**-k for k in range(7)]
GRIDS = {
    RankSVMStruct: [{"C": 1e-5 * 2.0**k} for k in range(13)],
    ListNet: [{"n_epochs": n} for n in range(1, 301)],
    FSMRank: [{"lambda1": first, "lambda2": second} for first in LAMBDAS for second in LAMBDAS],
}
"""Grids without the entries that take minutes, and coarser ones."""

load_once = cache(load_fold)


@pytest.mark.parametrize(
    ("ranker", "name", "published", "error"),
    [
        (RankSVM(), "MQ2008", (0.2309, 0.4744), 5e-4),
        (RankSVM(), "OHSUMED", (0.4504, 0.4446), 5e-4),
        (RankSVMStruct(), "OHSUMED", (0.4523, 0.4478), 8e-3),
        (ListNet(), "MQ2008", (0.2303, 0.4775), 8e-3),
        (ListNet(), "OHSUMED", (0.4410, 0.4457), 8e-3),
        (AdaRank("ndcg", n_rounds=60), "OHSUMED", (0.4496, 0.4498), 8e-3),
        (RankBoost(100), "MQ2008", (0.2255, 0.4775), 8e-3),
        (FSMRank(), "MQ2008", (0.2327, 0.4771), 8e-3),
    ],
    ids=repr,
)
def test_ndcg_and_map_are_near_the_published_means(letor_folder, ranker, name, published, error):
    values, n_features = [], []
    for fold in range(1, 6):
        train, vali, test = load_once(letor_folder / name / f"Fold{fold}")
        fitted = ranker.tune(train, vali, GRIDS.get(type(ranker))).fit(train)
        scores = fitted.predict(test)
        metrics = NDCG(10, convention="letor", ties="order"), MAP(ties="order")  # those of LETOR's scripts
        values.append([metric.score(test, scores) for metric in metrics])
        n_features.append(fitted.support_.sum())
    np.testing.assert_allclose(np.mean(values, axis=0), published, atol=error)
    if isinstance(ranker, FSMRank):
        assert np.mean(n_features) == pytest.approx(13.2, abs=3.0)

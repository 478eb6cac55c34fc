import numpy as np
import pytest
from lightgbm import LGBMRanker
from scipy.stats import kendalltau, spearmanr

from moerank.metrics import NDCG
from moerank.selectors.gas import NGAS, absolute_correlations, values_by_trees


@pytest.mark.parametrize(("similarity", "scipys"), [("spearman", spearmanr), ("kendall", kendalltau)])
def test_similarity_is_the_absolute_mean_of_scipys_correlation(data, similarity, scipys):
    found = absolute_correlations(data, similarity)
    rows = [slice(a, b) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True) if b - a > 1]
    for f, g in ((0, 1), (1, 4), (6, 2)):
        expected = abs(np.mean([scipys(data.X[r, f], data.X[r, g]).statistic for r in rows]))
        assert found[f, g] == found[g, f] == pytest.approx(expected, abs=1e-12)


def test_relevance_by_trees_is_the_metric_of_lightgbm_on_one_column(data):
    found = values_by_trees(data, NDCG(10))
    for f in (0, 1, 4):
        direct = LGBMRanker(
            n_estimators=30,
            num_leaves=10,
            min_child_samples=20,
            min_data_in_bin=1,
            lambdarank_truncation_level=10,
            label_gain=[0, 1, 3],
            deterministic=True,
            n_jobs=1,
            verbose=-1,
        ).fit(data.X[:, [f]], data.y, group=np.diff(data.offsets))
        assert found[f] == NDCG(10).score(data, direct.predict(data.X[:, [f]]))
    assert NGAS(relevance="lambdamart")._learn(data).order_[0] == np.argmax(found)

import numpy as np
import pytest
from lightgbm import LGBMRanker
from scipy.stats import kendalltau, spearmanr

from moerank.data import RankingData
from moerank.metrics import NDCG
from moerank.selectors.gas import NGAS, absolute_correlations, values_by_trees


@pytest.mark.parametrize(("similarity", "scipys"), [("spearman", spearmanr), ("kendall", kendalltau)])
def test_similarity_is_the_mean_of_scipys_absolute_correlations(data, similarity, scipys):
    rows = [slice(a, b) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True) if b - a > 1]
    for over, parts in (("queries", rows), ("documents", [slice(None)])):
        found = absolute_correlations(data, similarity, over)
        for f, g in ((0, 1), (1, 4), (6, 2)):
            expected = np.mean([abs(scipys(data.X[r, f], data.X[r, g]).statistic) for r in parts])
            assert found[f, g] == found[g, f] == pytest.approx(expected, abs=1e-12)


def test_opposite_correlations_of_queries_do_not_cancel():
    """Feature 1 agrees with 0 in one query and opposes it in the other; 2 hardly agrees with 0 in both."""
    X = np.array([[1, 1, 2], [2, 2, 4], [3, 3, 1], [4, 4, 3], [1, 4, 2], [2, 3, 4], [3, 2, 1], [4, 1, 3]], float)
    data = RankingData(X, [0, 0, 1, 2] * 2, np.repeat([1, 2], 4))
    np.testing.assert_allclose(absolute_correlations(data, "spearman")[0], [1.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(absolute_correlations(data, "spearman", "documents")[0], [1.0, 0.0, 0.0], atol=1e-12)


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

"""The rule for memory is asked before a table of all pairs of features, and before one of all threads."""

import tracemalloc

import numpy as np
import pytest

from moerank.data import RankingData
from moerank.data.describe import feature_correlations
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import CombinedRegressionRanking, FSMRank, RankRLS, RankSVM, nested_masks
from moerank.rankers.importance import single_feature_values
from moerank.selectors.gas import GAS, NGAS

SQUARES = {
    "RankRLS": lambda data: RankRLS().fit(data),
    "RankRLS of queries": lambda data: RankRLS(loss="query").fit(data),
    "RankSVM": lambda data: RankSVM().fit(data),
    "RankSVM of a subset": lambda data: RankSVM().fit_population(data, pair_mask=np.ones((1, data.n_pairs), bool)),
    "CRR": lambda data: CombinedRegressionRanking().fit(data),
    "FSMRank": lambda data: FSMRank().fit(data),
    "GAS": lambda data: GAS().fit(data),
    "NGAS": lambda data: NGAS().fit(data),
    "MOFSRank": lambda data: MOFSRank(random_state=0).fit(data),
    "correlations": feature_correlations,
}


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    return RankingData(rng.random((100, 400)), rng.integers(0, 3, 100), np.repeat(np.arange(10), 10))


@pytest.mark.parametrize("name", SQUARES)
def test_tables_of_all_pairs_of_features_ask_the_rule_for_memory(wide, name, monkeypatch):
    monkeypatch.setenv("MOERANK_MEMORY", "0.001")
    data = RankingData(wide.X, wide.y, wide.qid)  # which remembers nothing
    with pytest.raises(ValueError, match=r"a .*40[01] × 40[01].* would take 0\.00\d.* limit is 0\.001"):
        SQUARES[name](data)


def test_single_features_of_a_wide_table_take_no_square_table():
    rng = np.random.default_rng(0)
    data = RankingData(rng.random((60, 3000)), rng.integers(0, 3, 60), np.repeat(np.arange(6), 10))
    expected = [NDCG(5).score(data, sign * data.X[:, f]) for sign in (1, -1) for f in (0, 255, 256, 2999)]
    tracemalloc.start()
    values = single_feature_values(data, NDCG(5))
    first = nested_masks(np.arange(3000), 3000, np.array([2, 5]))
    assert tracemalloc.get_traced_memory()[1] < 3000 * 3000
    tracemalloc.stop()
    assert values[:, [0, 255, 256, 2999]].ravel().tolist() == expected
    assert first.sum(axis=1).tolist() == [2, 5]

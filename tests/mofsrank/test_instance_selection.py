import numpy as np
import pytest
from helpers.plain import all_subsets, front, ndcg, ordered_scores, ridge
from pymoo.algorithms.moo.nsga2 import NSGA2

from moerank.data import RankingData
from moerank.evolution import search
from moerank.metrics import NDCG
from moerank.mofsrank import InstanceSelection
from moerank.mofsrank.instance_selection import spread_along_front
from moerank.rankers import RankRLS


@pytest.fixture(scope="module")
def tiny():
    """Twelve preference pairs in three queries."""
    rng = np.random.default_rng(7)
    return RankingData(rng.random((11, 3)), [0, 1, 0, 2, 1, 0, 0, 1, 2, 0, 1], [1] * 4 + [2] * 4 + [3] * 3)


@pytest.fixture(scope="module")
def enumeration(tiny):
    X = all_subsets(len(tiny.pairs))
    W = np.array([ridge(tiny, 0.01, keep=mask) for mask in X])
    return X, np.column_stack([X.sum(axis=1), 1.0 - ndcg(tiny, ordered_scores(tiny.X, W), 3)])


def test_objectives_equal_the_enumeration_of_all_subsets(tiny, enumeration):
    X, F = enumeration
    assert len(tiny.pairs) == 12
    np.testing.assert_allclose(InstanceSelection(tiny, RankRLS(0.01), NDCG(3)).evaluate(X), F, rtol=0, atol=1e-12)


def test_search_finds_the_exact_front(tiny, enumeration):
    stage = InstanceSelection(tiny, RankRLS(0.01), NDCG(3))
    result = search(stage, NSGA2(40, **stage.operators()), ("n_gen", 40), seed=0)
    F = result.archive.F
    np.testing.assert_allclose(F[np.lexsort(F.T[::-1])], front(enumeration[1].round(12)), rtol=0, atol=1e-11)


def test_the_start_is_sparse(small_data):
    stage = InstanceSelection(small_data, density=(0.02, 0.1))
    X = stage.operators()["sampling"]._do(stage, 200, random_state=np.random.default_rng(0))
    assert X.any(axis=1).all()
    assert X.mean(axis=1).max() < 0.2


def test_no_pairs_are_refused():
    with pytest.raises(ValueError, match="no preference pair"):
        InstanceSelection(RankingData(np.zeros((3, 2)), [1, 1, 1], 0))


def test_subsets_are_spread_along_the_front():
    F = np.array([[5.0, 0.1], [1.0, 0.5], [3.0, 0.3], [2.0, 0.4], [4.0, 0.2]])
    X = np.arange(8) < F[:, :1]
    sizes = spread_along_front(X, F, 3, include_all=False).sum(axis=1)
    assert sizes.tolist() == [1, 3, 5]
    sizes = spread_along_front(X, F, 3, include_all=True).sum(axis=1)
    assert sizes.tolist() == [1, 5, 8]
    assert spread_along_front(X, F, 10, include_all=True).sum(axis=1).tolist() == [1, 2, 3, 4, 5, 8]
    assert spread_along_front(X, F, 1, include_all=True).all()

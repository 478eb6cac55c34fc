from functools import partial

import numpy as np
import pytest
from helpers.plain import all_subsets, front, ndcg, ordered_scores, ridge
from pymoo.algorithms.moo.nsga2 import NSGA2

import moerank as mr
from moerank.data import RankingData
from moerank.evolution import search
from moerank.metrics import NDCG
from moerank.mofsrank import InstanceSelection
from moerank.mofsrank.instance_selection import default_unit, n_pairs_kept, spread_along_front
from moerank.rankers import RankRLS, train_population


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


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    sizes = np.append(rng.integers(2, 15, 25), [1, 1])
    X = rng.normal(size=(sizes.sum(), 5))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X)) + 1), 0, 3).astype(int)
    return mr.RankingData(X, y, np.repeat(np.arange(27), sizes))


def pairs_of(data, unit, mask):
    """Which pairs a string keeps, one by one."""
    if unit == "pair":
        return mask
    kept = np.repeat(mask, np.diff(data.offsets)) if unit == "query" else mask
    return np.array([kept[i] and kept[j] for i, j in zip(data.pairs.better, data.pairs.worse, strict=True)])


BACKENDS = [
    mr.RankRLS(alpha=0.1, tol=1e-12),
    mr.RankSVM(C=2.0, tol=1e-12),
    mr.RankRLS(0.1, target="difference", tol=1e-12),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("unit", ["pair", "document", "query"])
def test_rankers_are_those_of_the_pairs_that_are_kept(data, unit, backend):
    rng = np.random.default_rng(1)
    masks = rng.random((4, mr.InstanceSelection(data, unit=unit).n_var)) < 0.6
    features = rng.random((4, 5)) < 0.7
    features[:, 0] = True
    expected = [pairs_of(data, unit, mask) for mask in masks]
    assert n_pairs_kept(data, unit, masks).tolist() == [int(mask.sum()) for mask in expected]
    for mask, pairs, chosen in zip(masks, expected, features, strict=True):
        w = backend.fit_population(data, pair_mask=pairs, feature_mask=chosen[None])[0]
        shared = train_population(backend, data, pair_mask=mask, feature_mask=chosen[None], unit=unit).coefs[0]
        np.testing.assert_allclose(shared, w, rtol=1e-5, atol=1e-6)
    own = train_population(backend, data, pair_mask=masks, unit=unit).coefs
    for mask, pairs, found in zip(masks, expected, own, strict=True):
        w = backend.fit_population(data, pair_mask=pairs)[0]
        np.testing.assert_allclose(found, w, rtol=1e-4, atol=1e-6)
        alone = train_population(backend, data, pair_mask=mask[None], unit=unit).coefs[0]
        np.testing.assert_array_equal(alone, found)  # whatever its company


@pytest.mark.parametrize("target", ["unit", "difference"])
def test_matrices_of_queries_that_do_not_fit_are_done_without(data, monkeypatch, target):
    rng = np.random.default_rng(2)
    masks, features = rng.random((4, data.n_queries)) < 0.6, rng.random((4, 5)) < 0.8
    features[:, 0] = True
    backend = mr.RankRLS(0.1, target=target, tol=1e-12)
    fit = partial(backend.fit_population, data, feature_mask=features, unit="query")
    own, shared = fit(pair_mask=masks), fit(pair_mask=masks[0])
    monkeypatch.setattr("moerank.training.pair_moments.memory_limit", lambda: 1000)
    np.testing.assert_allclose(fit(pair_mask=masks), own, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(fit(pair_mask=masks[0]), shared, rtol=1e-9, atol=1e-12)
    monkeypatch.undo()
    assert backend.fit_population(data, pair_mask=masks[0], unit="query").shape == (1, 5)


@pytest.mark.parametrize("unit", ["document", "query"])
def test_the_stage_counts_pairs_and_has_no_empty_winner(data, unit):
    stage = mr.InstanceSelection(data, mr.RankRLS(alpha=0.1), mr.NDCG(5), unit=unit)
    masks = np.ones((3, stage.n_var), bool)
    masks[1] = False
    masks[2] = False
    masks[2, -1] = True  # a query, or a document, without a pair
    F = stage.evaluate(masks)
    everything = mr.RankRLS(alpha=0.1).fit(data).predict(data.X)
    assert F[0, 0] == len(data.pairs)
    assert F[0, 1] == pytest.approx(1 - mr.NDCG(5).score(data, everything), abs=1e-12)
    np.testing.assert_array_equal(F[1:], [[len(data.pairs) + 1, 2.0]] * 2)


def test_the_default_is_pairs_as_long_as_they_are_few(data, monkeypatch):
    assert default_unit(data) == "pair"
    monkeypatch.setattr("moerank.mofsrank.instance_selection.MAX_PAIRS", len(data.pairs) - 1)
    assert default_unit(data) == "query"


def test_single_precision_sums_keep_to_double(data, monkeypatch):
    masks = np.random.default_rng(2).random((3, data.n_queries)) < 0.5
    exact = mr.RankRLS(alpha=0.1).fit_population(data, pair_mask=masks, unit="query")
    monkeypatch.setattr("moerank.training.pair_moments.DOUBLE_ROOM", 0)
    again = mr.RankingData(data.X, data.y, data.qid)
    np.testing.assert_allclose(
        mr.RankRLS(alpha=0.1).fit_population(again, pair_mask=masks, unit="query"), exact, rtol=1e-5, atol=1e-6
    )


def test_pairs_that_do_not_fit_are_refused_with_the_remedy(data, monkeypatch):
    monkeypatch.setenv("MOERANK_MEMORY", "1e-9")
    with pytest.raises(ValueError, match=r"preference pairs, listed for each of 2 individuals.*MOERANK_MEMORY"):
        masks = np.ones((2, data.n_queries), bool)
        train_population(mr.RankerAdapter(mr.ListNet()), data, pair_mask=masks, unit="query")
    monkeypatch.setenv("MOERANK_MEMORY", "1e-7")
    with pytest.raises(
        ValueError, match=r"a list of \d+ preference pairs \(which RankRLS, RankSVM and FSMRank do without\) would take"
    ):
        len(mr.RankingData(data.X, data.y, data.qid).pairs)

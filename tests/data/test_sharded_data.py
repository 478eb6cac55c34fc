"""Data in shards give what the whole data give, and the same bits whoever adds up which shards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moerank.data import RankingData, describe, fit_scaling, make_web
from moerank.data.blocks import ByDocument, ByQuery, add_up, runs_of
from moerank.data.describe import feature_correlations, label_correlations
from moerank.data.folds import split_queries
from moerank.data.ranking_data import in_one_piece, n_pairs_of_documents, n_pairs_of_queries
from moerank.data.shards import LocalShards, ShardedData, cut_into_shards, shard_ends
from moerank.metrics import NDCG
from moerank.rankers import AdaRank, RankRLS


@pytest.fixture(scope="module")
def data():
    return make_web(12, seed=5)


@pytest.fixture(scope="module")
def shards(data):
    return cut_into_shards(data, 5)


def test_every_document_is_in_one_shard_and_queries_are_whole(data, shards):
    assert shards.n_shards == 5
    for name in ("X", "y", "qid"):
        parts = shards.map(lambda shard, name=name: getattr(shard, name))
        np.testing.assert_array_equal(np.concatenate(parts), getattr(data, name))
    assert (shards.n_documents, shards.n_queries, shards.n_pairs) == (data.n_documents, data.n_queries, data.n_pairs)
    assert shards.feature_names == data.feature_names
    assert repr(shards) == "ShardedData('web': 1287 documents, 12 queries, 136 features, 5 shards)"


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.data())
def test_shards_are_about_alike_and_none_is_empty(lengths, draw):
    n_shards = draw.draw(st.integers(1, len(lengths)))
    ends = shard_ends(np.append(0, np.cumsum(lengths)), n_shards)
    assert (ends[0], ends[-1], len(ends)) == (0, len(lengths), n_shards + 1)
    assert (np.diff(ends) > 0).all()


def test_more_shards_than_queries_are_refused(data):
    with pytest.raises(ValueError, match=r"shards must be .* 12"):
        cut_into_shards(data, 13)


@given(st.integers(1, 20), st.data())
def test_a_sum_does_not_depend_on_who_adds_up_which_shards(n_shards, draw):
    values = np.random.default_rng(n_shards).normal(size=(n_shards, 3)) * 10.0 ** np.arange(n_shards)[:, None]
    owner = draw.draw(st.lists(st.integers(0, 3), min_size=n_shards, max_size=n_shards))
    known = {}
    for worker in range(4):
        own = [shard for shard in range(n_shards) if owner[shard] == worker]
        runs = runs_of(own, n_shards)
        assert sorted(shard for run in runs for shard in range(*run)) == own
        known |= {run: add_up(run, values.__getitem__) for run in runs}
    total = add_up((0, n_shards), lambda shard: known[shard, shard + 1], known)
    np.testing.assert_array_equal(total, add_up((0, n_shards), values.__getitem__))
    np.testing.assert_allclose(total, values.sum(axis=0))


def test_each_shard_gets_its_share_of_values_by_query_and_document(data, shards):
    masks = np.random.default_rng(0).random((3, data.n_queries)) < 0.5
    assert n_pairs_of_queries(shards, masks).tolist() == n_pairs_of_queries(data, masks).tolist()
    documents = np.random.default_rng(0).random((3, data.n_documents)) < 0.5
    assert n_pairs_of_documents(shards, documents).tolist() == n_pairs_of_documents(data, documents).tolist()
    labels = shards.map(lambda shard, y: (shard.y == y).all(), ByDocument(data.y))
    assert all(labels)
    with pytest.raises(ValueError, match="13 values are not one for each of 12"):
        shards.map(np.shape, ByQuery(np.zeros(13)))


def test_correlations_and_fitted_scalings_are_those_of_all_documents(data, shards):
    np.testing.assert_allclose(feature_correlations(shards), feature_correlations(data), atol=1e-13)
    np.testing.assert_allclose(label_correlations(shards), label_correlations(data), atol=1e-13)
    for kind in ("minmax", "standard"):
        here, there = fit_scaling(data, kind), fit_scaling(shards, kind)
        np.testing.assert_allclose(there.offset, here.offset, rtol=1e-13)
        np.testing.assert_allclose(there.scale, here.scale, rtol=1e-13)
        scaled = here.apply(shards)
        np.testing.assert_array_equal(np.concatenate(scaled.map(lambda shard: shard.X)), here.apply(data).X)
        assert scaled.scaling == here


def test_features_costs_and_declared_scalings_carry_over(data, shards):
    kept = np.arange(data.n_features) < 3
    costs = np.arange(data.n_features, dtype=float)
    few = shards.with_costs(costs).with_features(kept).declared("query")
    assert few.feature_names == data.feature_names[:3]
    assert (few.scaling.kind, few.costs.own.tolist()) == ("query", [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(np.concatenate(few.map(lambda shard: shard.X)), data.X[:, :3])
    assert shards.with_features(np.ones(data.n_features, bool)) is shards


def test_what_needs_all_documents_is_refused_with_a_remedy(data, shards):
    ranker = RankRLS().fit(data)
    for ask in (
        lambda: in_one_piece(shards),
        lambda: ranker.predict(shards),
        lambda: ranker.score(shards),
        lambda: ranker.leave_query_out(shards),
        lambda: NDCG(10).per_query(shards, np.zeros(data.n_documents)),
        lambda: RankRLS().fit(data, validation=shards),
        lambda: split_queries(shards),
    ):
        with pytest.raises(
            ValueError, match=r"web: the documents are in 5 shards, .* take RankRLS, RankSVM or FSMRank"
        ):
            ask()
    for ask in (lambda: AdaRank().fit(shards), lambda: AdaRank().tune(shards, data)):
        with pytest.raises(ValueError, match="AdaRank needs all documents at once"):
            ask()
    assert not isinstance(shards, RankingData)


def test_shards_that_differ_are_refused(data):
    other = RankingData(data.X[:, :5], data.y, data.qid)
    with pytest.raises(ValueError, match="shard 2 of 2 has another names than the first one"):
        ShardedData(LocalShards([data, other]))


def test_values_too_large_are_found_in_their_shard():
    data = RankingData([[1.0], [2.0], [3.0], [1e31]], [0, 1, 0, 1], [1, 1, 2, 2])
    shards = cut_into_shards(data, 2)
    with pytest.raises(ValueError, match=r"data, shard 2 of 2: X\[1, 0\] is 1e\+31"):
        shards.require_moderate_values()


def test_descriptions_are_those_of_all_documents(data, shards):
    assert describe(shards) == describe(data)

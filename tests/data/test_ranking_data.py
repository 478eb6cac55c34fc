import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from moerank.data import RankingData, describe, query_level_norm
from moerank.data.ranking_data import PreferencePairs
from moerank.kernels.counted_sums import LabelRuns
from moerank.metrics import NDCG
from moerank.rankers import RankRLS


def small(n_documents=40, n_queries=6, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    qid = np.sort(rng.integers(0, n_queries, n_documents))
    return rng.random((n_documents, 4)), rng.integers(0, n_labels, n_documents), qid


def test_pairs_are_all_ordered_pairs_by_query_then_better_then_worse():
    X, y, qid = small()
    expected = [(i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]]
    pairs = RankingData(X, y, qid).pairs
    assert list(zip(pairs.better.tolist(), pairs.worse.tolist(), strict=True)) == expected
    assert len(pairs) == len(expected)


@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_winners_group_the_pairs_of_any_subset(density):
    X, y, qid = small(seed=1)
    pairs = RankingData(X, y, qid).pairs
    keep = np.random.default_rng(2).random(len(pairs)) < density
    subset = pairs.subset(keep)
    np.testing.assert_array_equal(subset.better, pairs.better[keep])
    np.testing.assert_array_equal(np.repeat(subset.winner, np.diff(subset.first)), subset.better)
    assert len(np.unique(subset.winner)) == len(subset.winner)


@pytest.mark.parametrize("most", [1, 2, 5, 1000])
def test_counts_are_those_of_the_listed_pairs(most):
    rng = np.random.default_rng(most)
    sizes = rng.integers(1, 40, 30)
    offsets = np.append(0, np.cumsum(sizes))
    y = rng.integers(0, most, offsets[-1])
    runs, pairs = LabelRuns.of(y, offsets), PreferencePairs.of(y, offsets)
    assert runs.n_pairs_of.sum() == len(pairs)
    np.testing.assert_array_equal(runs.n_worse[runs.run], np.bincount(pairs.better, minlength=len(y)))
    np.testing.assert_array_equal(runs.n_better[runs.run], np.bincount(pairs.worse, minlength=len(y)))


NEEDS_B = r"^mine: X\[1, 1\] is NaN \(row 1, feature 'b'\); say what missing values become, .* 'query-worst' \(below"
DATES = np.array([0, 2, 1], "datetime64[s]")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(X=np.zeros(3)), "shape"),
        (dict(X=np.zeros((0, 2)), y=[], qid=[]), "no rows"),
        (dict(X=np.zeros((3, 0))), r"0 feature\(s\) \(shape=\(3, 0\)\)"),
        (dict(X=[[1, 2], [3, np.nan], [5, 6]]), r"row 1, feature 2"),
        (dict(X=[[1, 2], [3, 4], [np.inf, 6]]), r"X\[2, 0\] is inf \(row 2, feature 1\); a value must be finite"),
        (dict(X=[[1, 2], [3, np.nan], [-np.inf, 6]], missing="query-min"), r"X\[2, 0\] is -inf"),
        (dict(X=[["a", "b"]] * 3), "table of numbers"),
        (dict(y=[0, 1]), r"y has shape \(2,\); give 3 numbers"),
        (dict(y=[0, 1, -1]), r"y\[2\] is -1"),
        (dict(y=[0, 0.5, 1]), r"y\[1\] is 0.5"),
        (dict(qid=[1, 1]), "qid has shape"),
        (dict(qid=[1, 2, 1]), "query 1 are not contiguous: it begins again at row 2"),
        (dict(qid=[1.0, np.nan, 2.0]), r"qid\[1\] is nan; every row needs an id"),
        (dict(qid=["a", "a", float("nan")]), r"qid\[2\] is nan; every row"),
        (dict(qid=pd.Series([1, None, 2], dtype="Int64")), r"qid\[1\] is (nan|<NA>); every row"),
        (dict(qid=[1, 1, 1 + 1j]), "data: qid holds complex numbers; give integers or texts"),
        (dict(qid=np.array([1, 1, 1 + 1j])), "data: qid holds complex numbers"),
        (dict(qid="a"), r"qid has shape \(\)"),
        (dict(y=np.array([0, "one", 1], dtype=object)), "y must be numbers"),
        (dict(X=[[1, 2], [3, np.nan], [5, 6]], feature_names=["a", "b"], name="mine"), NEEDS_B),
        (dict(feature_names=["a"]), "feature_names has 1"),
        (dict(feature_names=["a", "a"]), "distinct"),
        (dict(qid=[2**53, 2**53 + 1, 2**53 + 1.0]), r"qid\[0\] is 9007199254740992 as a float"),
        (dict(y=pd.Series([0, pd.NA, 1], dtype="Int64")), r"y\[1\] is nan"),
        (dict(y=DATES), r"y must be numbers .*datetime64"),
        (dict(y=pd.Series(DATES)), r"y must be numbers .*datetime64"),
        (dict(y=pd.Categorical(["bad", "good", "fair"])), r"y must be numbers .*bad"),
        (dict(query_weights=[1.0]), r"data: query_weights has shape \(1,\); give 2 numbers"),
        (dict(document_weights=[1.0, 0.0, 1.0]), r"data: document_weights\[1\] is 0; weights are positive"),
        (dict(document_weights=[np.inf, 1.0, 1.0]), r"data: document_weights\[0\] is inf"),
        (dict(query_weights=["a", "b"]), "data: query_weights must be numbers"),
        (dict(X=np.array([[10**400, 2]] * 3, object)), "data: X must be a table of numbers.*holds integers beyond"),
        (dict(X=pd.DataFrame({"a": [10**400, 1, 2]})), "column 'a' of X is no feature.*too large"),
        (dict(documents=["a", None, "c"]), r"data: documents\[1\] is None; every row needs an id"),
        (dict(documents=pd.Series(["a", "b", None])), r"data: documents\[2\] is (nan|None); every row needs an id"),
        (dict(documents=["a"]), r"data: documents has shape \(1,\); give the ids of 3 documents"),
    ],
)
def test_bad_input_is_refused_by_place(change, message):
    arguments = dict(X=np.zeros((3, 2)), y=[0, 1, 2], qid=[1, 1, 2]) | change
    with pytest.raises(ValueError, match=message):
        RankingData(**arguments)


def test_no_pairs_is_an_error_only_when_pairs_are_required():
    data = RankingData(np.zeros((3, 2)), [1, 1, 1], 0)
    assert len(data.pairs) == 0
    with pytest.raises(ValueError, match="no preference pair"):
        data.require_pairs()


def test_arrays_are_copies_and_read_only():
    X, y, qid = small()
    data = RankingData(X, y, qid)
    X[0, 0] = 99.0
    assert data.X[0, 0] != 99.0
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1.0


def test_pickle_keeps_data_and_drops_what_was_derived():
    data = RankingData(*small())
    n_pairs = len(data.pairs)
    data.remember("key", lambda: 1)
    twin = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(twin.X, data.X)
    assert len(twin.pairs) == n_pairs
    assert twin.remember("key", lambda: 2) == 2


def test_a_number_for_qid_is_one_query_and_texts_are_queries_too():
    X, y = np.zeros((1001, 1)), np.zeros(1001)
    with pytest.raises(ValueError, match=r"qid is missing, so all 1,001 rows are one query.* qid=0"):
        RankingData(X, y)
    with pytest.warns(UserWarning, match="shop: qid is missing, so all 1,000 rows are one query; give .* or qid=0 if"):
        assert RankingData(X[:1000], y[:1000], name="shop").n_queries == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankingData(X[:1], y[:1])
        RankingData(X, y, 0)
    for number in (0, np.int64(7)):
        data = RankingData(X, y, number)
        assert data.offsets.tolist() == [0, 1001]
        assert set(data.qid.tolist()) == {int(number)}
    texts = ["b", "b", "a", "c"]
    for qid in (texts, np.array(texts), np.array(texts, dtype=object), pd.Series(texts, index=[3, 1, 0, 9])):
        assert RankingData(X[:4], y[:4], qid).offsets.tolist() == [0, 2, 3, 4]


def test_values_too_large_to_compute_with_are_named_when_they_are_to_be_moderate():
    data = RankingData([[1.0, -1e30], [0.5, 0.0]], [0, 1], 0, feature_names=["a", "b"])
    data.require_moderate_values()
    data = RankingData([[1.0, 0.0], [0.5, -1.1e30]], [0, 1], 0, feature_names=["a", "b"], name="mine")
    message = r"mine: X\[1, 1\] is -1\.1e\+30 \(row 1, feature 'b'\); .* scale the feature, .* query_level_norm"
    with pytest.raises(ValueError, match=message):
        data.require_moderate_values()
    query_level_norm(data).require_moderate_values()


def test_ids_and_weights_go_with_their_documents():
    data = RankingData(
        np.arange(6.0)[:, None],
        [0, 1, 0, 1, 2, 0],
        [7, 7, 8, 8, 8, 9],
        documents=["a", "b", "a", "d", "e", "f"],
        query_weights=[1, 2, 3],
        document_weights=[1, 2, 3, 4, 5, 3],
    )
    assert data.query_weights.tolist() == [0.5, 1.0, 1.5]
    equal = RankingData([[0.1], [0.9]], [0, 1], [1, 2], query_weights=[0.3, 0.3], document_weights=[7, 7])
    assert equal.query_weights is equal.document_weights is None
    part = data.with_rows(np.array([5, 3, 2]))
    assert (part.documents.tolist(), part.query_weights.tolist()) == (["f", "d", "a"], [1.5, 1.0])
    np.testing.assert_array_equal(part.document_weights, np.array([3, 4, 3]) / 3)
    scaled = data.with_costs([1.0]).with_features(np.array([True]))
    assert scaled.query_weights is data.query_weights
    assert scaled.documents is data.documents


@pytest.mark.parametrize(
    "scores", [[1j, 0], np.array([1j, 0]), [2**53, 2**53 + 1], [0.5, 2**53 + 1], np.array([2**64 - 1, 0], np.uint64)]
)
def test_scores_that_double_precision_cannot_hold_are_refused(scores):
    with pytest.raises(ValueError, match=r"data: scores must be numbers \((the values are of|holds integers beyond 2)"):
        NDCG(1).score(RankingData([[0.0], [0.0]], [0, 1], [1, 1]), scores)


def test_an_array_is_no_ranking_data():
    X = np.zeros((2, 1))
    for call in (lambda: NDCG(1).score(X, [0, 1]), lambda: describe(X), lambda: query_level_norm(X)):
        with pytest.raises(ValueError, match=r"data must be a RankingData, not a ndarray"):
            call()
    for use in (lambda s: RankingData(s, [0, 1], [1, 1]), RankRLS().fit([[1], [2]], [0, 1], qid=1).predict):
        with pytest.raises(ValueError, match="X is a Series, not a table"):
            use(pd.Series([0.0, 1.0]))

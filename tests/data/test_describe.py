import json

import numpy as np
import pytest
from scipy.stats import pearsonr

from moerank.data import RankingData, describe, load_letor, query_level_norm
from moerank.data.describe import cautions_about, feature_correlations, label_correlations


def test_every_count_of_a_small_set():
    X = [
        *([0.0, 1.0, 5.0], [-0.0, 1.0, 5.0], [0.5, 1.0, 5.0], [0.5, 1.0, 5.0], [0.5, 1.0, 5.0]),  # query 4
        *([0.5, 1.0, 5.0], [0.1, 1.0, 5.0]),  # query 2: the first equals a document of another query
        *([0.1 * i, 2.0, 5.0] for i in range(12)),  # query 9
    ]
    y = [0, 0, 1, 3, 0, 0, 0, *([3] * 12)]
    qid = [4] * 5 + [2] * 2 + [9] * 12
    description = describe(RankingData(X, y, qid, ["a", "b", "c"], name="small"))
    assert description.as_dict() == {
        "name": "small",
        "documents": 19,
        "queries": 3,
        "features": 3,
        "labels": {"0": 5, "1": 1, "3": 13},
        "queries_without_relevant": 1,
        "short_queries": 2,
        "shortest_query": 2,
        "median_query": 5.0,
        "longest_query": 12,
        "constant_features": ["c"],
        "extreme_features": [],
        "pairs": 7,
        "queries_without_pairs": 2,
        "identical_groups": 2,
        "identical_documents": 5,
        "missing_values": 0,
        "missing_share": 0.0,
        "missing_by_feature": {},
        "scaling": "none",
        "weighted": [],
        "comes_scaled": False,
        "cautions": [
            "All documents of a query have the same value of 1 of 3 features, such as 'b': only trees and "
            "interactions can use it."
        ],
    }
    complete, _, identical = description.remarks()
    assert complete == "No value of the 3 features is infinite or missing."
    assert identical.startswith("No ranker can order identical documents of a query: leave out copies")
    assert description.labels == {0: 5, 1: 1, 3: 13}
    assert json.loads(json.dumps(description.as_dict())) == description.as_dict()


def test_weights_are_named_by_their_owners():
    for which, name in {"queries": "query_weights", "documents": "document_weights"}.items():
        description = describe(RankingData([[1.0], [2.0]], [0, 1], [1, 2], **{name: [1.0, 3.0]}))
        assert f"The {which} have weights, which training and metrics use." in description.remarks()


@pytest.mark.parametrize(
    ("name", "labels", "without_relevant", "short", "lengths", "constant"),
    [
        ("MQ2008", {0: 12279, 1: 2001, 2: 931}, 220, 403, (5, 8.0, 121), (6, 7, 8, 9, 10, 43)),
        ("OHSUMED", {0: 11303, 1: 2585, 2: 2252}, 1, 0, None, (5, 6, 7, 20, 21, 22, 35, 36, 37)),
    ],
)
def test_whole_real_sets_have_the_known_counts(letor_folder, name, labels, without_relevant, short, lengths, constant):
    parts = [load_letor(letor_folder / name / f"Fold{fold}" / "test.txt") for fold in range(1, 6)]
    X, y, qid = (np.concatenate([getattr(part, field) for part in parts]) for field in ("X", "y", "qid"))
    description = describe(RankingData(X, y, qid))
    assert description.labels == labels
    assert description.queries_without_relevant == without_relevant
    assert description.short_queries == short
    assert description.constant_features == tuple(map(str, constant))
    assert description.comes_scaled
    if lengths:
        assert (description.shortest_query, description.median_query, description.longest_query) == lengths
    else:
        assert description.shortest_query == 35


def test_missing_values_are_counted_by_feature_and_query():
    nan = np.nan
    X = [[1, nan, nan], [2, nan, 4], [3, 5, 6], [4, nan, 7], [5, nan, nan]]
    data = RankingData(X, [0, 1, 2, 0, 1], [1, 1, 2, 3, 3], ["a", "b", "c"], missing="query-worst")
    description = describe(data)
    assert description.missing_values == 6
    assert description.missing_share == 6 / 15
    assert description.missing_by_feature == {"b": 4, "c": 2}
    assert description.remarks()[0] == "6 values were missing (40.0% of all), most of them of feature b."
    assert describe(data.with_rows(np.arange(3))).missing_by_feature == {"b": 2, "c": 1}
    assert json.loads(json.dumps(description.as_dict())) == description.as_dict()


@pytest.mark.parametrize(
    ("largest", "share", "is_extreme"),
    [(1e7, 0.005, True), (1e5, 0.005, False), (1e7, 0.02, False), (2e30, 0.02, True), (-1e7, 0.005, True)],
)
@pytest.mark.parametrize("zeros", [0.0, 0.995])
def test_features_with_extreme_values_are_named_before_and_after_scaling(largest, share, is_extreme, zeros):
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (100_000, 2))
    X[rng.random(X.shape) < zeros] = 0.0
    present = np.flatnonzero(X[:, 1])
    X[present[: int(share * len(present))], 1] = largest
    data = RankingData(X, np.arange(100_000) % 3, np.arange(100_000) // 10, ["a", "b"])
    named = ("b",) if is_extreme else ()
    assert describe(data).extreme_features == named
    assert describe(query_level_norm(data).with_features(np.array([False, True]))).extreme_features == named
    said = "Values of 'b' reach beyond 1,000,000 times"
    assert any(remark.startswith(said) for remark in describe(data).remarks()) == is_extreme


def test_features_that_come_scaled_per_query_are_recognised():
    rng = np.random.default_rng(0)
    data = RankingData(rng.random((30, 3)), rng.integers(0, 3, 30), np.repeat(np.arange(5), 6))
    scaled = query_level_norm(data)
    given = RankingData(scaled.X, data.y, data.qid)
    assert not describe(data).comes_scaled
    assert describe(given).comes_scaled
    assert 'set scaled = "query" in the problem file, or call data.mark_scaled("query")' in describe(given).remarks()[1]
    for known in (scaled, given.mark_scaled("query")):
        assert (describe(known).scaling, describe(known).comes_scaled) == ("query", True)
        assert len(describe(known).remarks()) == 1
    X = scaled.X.copy()
    X[6:12, 1] = 0.25  # constant in a query, at whatever value
    assert describe(RankingData(X, data.y, data.qid)).comes_scaled
    X[6, 1] = 0.0
    assert not describe(RankingData(X, data.y, data.qid)).comes_scaled
    assert not describe(RankingData([[0.5], [0.5]], [0, 1], 0)).comes_scaled, "nothing varies"


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) @ RNG.normal(size=(3, 6)) + 0.5 * RNG.normal(size=(60, 6)) + 10.0
Y = np.random.default_rng(1).integers(0, 4, 60)
FAINT = np.array([1.0, 1e-160, 1.0, 1e-300, 1.0, 1.0])  # whose squares vanish
LEVEL = np.insert(X, 2, 0.1, axis=1)  # 0.1 has no exact mean


@pytest.mark.parametrize("factors", [1.0, FAINT, FAINT[::-1]])
def test_correlations_are_those_of_scipy(factors):
    expected = [[abs(pearsonr(a, b).statistic) for a in X.T] for b in X.T]
    correlations, rtol = feature_correlations(X * factors), 1e-9 if np.ndim(factors) else 1e-12
    np.testing.assert_allclose(correlations, expected, rtol=rtol)
    assert (correlations < 0.9).any()
    np.testing.assert_array_equal(correlations, correlations.T)
    labels = label_correlations(RankingData(X * factors, Y, 0))
    np.testing.assert_allclose(labels, [abs(pearsonr(x, Y).statistic) for x in X.T], rtol=rtol)


def test_rising_and_falling_features_correlate_with_their_own_labels():
    rising = np.arange(60)
    both_ways = RankingData(np.column_stack([rising, -3.0 * rising]), rising, 0)
    np.testing.assert_allclose(label_correlations(both_ways), 1.0, rtol=1e-14)


def test_a_constant_feature_correlates_with_nothing():
    features, labels = feature_correlations(LEVEL), label_correlations(RankingData(LEVEL, Y, 0))
    for constant in (features[2], features[:, 2], labels[2]):
        np.testing.assert_array_equal(constant, 0.0)
    np.testing.assert_allclose(np.delete(labels, 2), label_correlations(RankingData(X, Y, 0)), rtol=1e-12)


def test_rows_that_labels_or_a_feature_sort_are_named_where_ties_would_believe_them():
    rng = np.random.default_rng(0)
    y, X = rng.integers(0, 3, 300), rng.normal(size=(300, 2))
    X[:, 1] = rng.random(300) < 0.1
    qid = np.repeat(np.arange(30), 10)

    def said(key, X):
        rows = np.lexsort((key, qid))
        return [line for line in cautions_about(RankingData(X[rows], y[rows], qid)) if "sorted by" in line]

    assert said(rng.random(300), X) == []
    for key in (y, -y):
        assert said(key, X)[0].startswith("The rows of each query are sorted by label. Nothing here uses this order")
    for key in (X[:, 0], -X[:, 0]):
        assert said(key, X)[0].startswith("The rows of each query are sorted by '1'.")
    assert said(y, rng.normal(size=(300, 2))) == []  # no equal values, so that the order tells nothing


def test_features_of_the_query_are_named():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(60), np.repeat(rng.random(6), 10), np.ones(60), np.repeat(rng.random(6), 10)])
    data = RankingData(X, rng.integers(0, 3, 60), np.repeat(np.arange(6), 10))
    assert data.is_of_query.tolist() == [False, True, False, True]
    said = "All documents of a query have the same value of 2 of 4 features, such as '2': only trees and interactions"
    (sentence,) = cautions_about(data)
    assert sentence == f"{said} can use it."
    assert cautions_about(data.with_features(~data.is_of_query)) == []

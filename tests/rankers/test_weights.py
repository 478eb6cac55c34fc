"""Weights of queries and documents, against explicit pairs and copies of queries and documents."""

import numpy as np
import pytest
from helpers.pair_problems import weighted_pairs
from sklearn.base import clone

from moerank import HCAS
from moerank.data import RankingData
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import LambdaMART, RankRLS


def weighted_data(seed=0, n_queries=9, *, queries=True, documents=True, dtype=np.float64):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, n_queries)
    qid = np.repeat(np.arange(n_queries), sizes)
    weights = {
        "query_weights": rng.integers(1, 4, n_queries) if queries else None,
        "document_weights": rng.integers(1, 4, len(qid)) if documents else None,
    }
    X = (rng.standard_normal((len(qid), 4)) + 3.0).astype(dtype)
    return RankingData(X, rng.integers(0, 3, len(qid)), qid, **weights)


KINDS = [{"documents": False}, {"queries": False}, {}]


def least_squares(D, t, share, alpha=0.3):
    """The minimum of Σ share (t − wᵀd)² + alpha ‖w‖²."""
    root = np.sqrt(share)
    A = np.vstack([root[:, None] * D, np.sqrt(alpha) * np.eye(D.shape[1])])
    return np.linalg.lstsq(A, np.append(root * t, np.zeros(D.shape[1])))[0]


@pytest.mark.parametrize("kind", KINDS, ids=["queries", "documents", "both"])
@pytest.mark.parametrize("target", ["unit", "difference"])
def test_weighted_pairs_have_their_minimum_however_they_are_chosen(kind, target):
    data, ranker = weighted_data(**kind), RankRLS(alpha=0.3, target=target)
    i, j, q, omega = weighted_pairs(data)
    D, t = data.X[i] - data.X[j], data.y[i] - data.y[j] if target == "difference" else np.ones(len(i))

    def expected(kept, features):
        w = np.zeros(4)
        w[features] = least_squares(D[kept][:, features], t[kept], omega[kept] / omega[kept].sum())
        return w

    rng = np.random.default_rng(1)
    features = rng.random((5, 4)) < 0.6
    features[:, 0] = True
    documents, queries = rng.random(data.n_documents) < 0.8, rng.random((5, data.n_queries)) < 0.7
    cases = [
        (None, "pair", [np.ones(len(t), bool)] * 5),
        (documents, "document", [documents[i] & documents[j]] * 5),
        (queries, "query", queries[:, q]),
        (queries[0], "query", [queries[0, q]] * 5),
    ]
    for mask, unit, kept in cases:
        found = ranker.fit_population(data, pair_mask=mask, feature_mask=features, unit=unit)
        by_hand = np.array([expected(pairs, own) for pairs, own in zip(kept, features, strict=True)])
        np.testing.assert_allclose(found, by_hand, rtol=1e-7, atol=1e-10)


def test_the_query_loss_weighs_queries_and_documents():
    data, alpha = weighted_data(3), 0.7
    A, b = alpha * np.eye(4), np.zeros(4)
    for q in range(data.n_queries):
        rows = range(data.offsets[q], data.offsets[q + 1])
        u = data.document_weights
        for i in rows:
            for j in rows:
                factor = data.query_weights[q] * u[i] * u[j] / (2 * sum(u[k] for k in rows))
                A += factor * np.outer(data.X[i] - data.X[j], data.X[i] - data.X[j])
                b += factor * (data.y[i] - data.y[j]) * (data.X[i] - data.X[j])
    ranker = RankRLS(alpha=alpha, loss="query")
    expected = np.linalg.solve(A, b)
    np.testing.assert_allclose(ranker.fit(data).coef_, expected, rtol=1e-9)
    every = np.ones((1, data.n_queries), bool)
    np.testing.assert_allclose(ranker.fit_population(data, pair_mask=every, unit="query")[0], expected, rtol=1e-9)


def test_trees_weigh_queries_as_copies():
    rng = np.random.default_rng(9)
    plain = weighted_data(9, 20, queries=False, documents=False)
    times = rng.integers(1, 4, plain.n_queries)
    data = RankingData(plain.X, plain.y, plain.qid, query_weights=times)
    ranker = LambdaMART(n_trees=10, n_leaves=4)
    rows = [np.arange(*plain.offsets[q : q + 2]) for q in np.repeat(np.arange(plain.n_queries), times)]
    copies = np.concatenate(rows)
    repeated = RankingData(plain.X[copies], plain.y[copies], np.repeat(np.arange(len(rows)), list(map(len, rows))))
    expected = ranker.fit(repeated).predict(plain.X)
    np.testing.assert_allclose(ranker.fit(data).predict(plain.X), expected, rtol=1e-5)  # in single precision
    assert np.abs(ranker.fit(plain).predict(plain.X) - expected).max() > 1e-3
    heavy = RankingData(plain.X, plain.y, plain.qid, document_weights=rng.integers(1, 9, plain.n_documents))
    assert np.abs(ranker.fit(heavy).predict(plain.X) - ranker.fit(plain).predict(plain.X)).max() > 1e-3


def test_what_takes_weights_is_trained_around_others():
    data = weighted_data(12)
    for ranker in (LambdaMART(n_trees=2), HCAS(ranker=RankRLS()), MOFSRank(**SHORT)):
        ranker.fit(data)
    assert ranker.instance_unit_ == "query"


STAGES = ("instance_selection", "feature_selection", "ensemble")
SHORT = {"random_state": 0, **{key: {"generations": 2, "population": 8} for key in STAGES}}


def test_searches_minimise_the_weighted_error():
    data, validation = weighted_data(13, 40), weighted_data(14, 40)
    stage = SHORT["instance_selection"] | {"unit": "query"}
    solver = MOFSRank(RankRLS(), **SHORT | {"instance_selection": stage}, workers=2)
    solver.fit(data, validation=validation)
    for w, member in zip(solver.front_coefs_, solver.front_.itertuples(), strict=True):
        values = NDCG(10).per_query(data, data.X @ w)
        expected = values @ data.query_weights / data.query_weights.sum()
        assert 1 - member.error == pytest.approx(expected, abs=1e-12)
    one = clone(solver).set_params(workers=1).fit(data, validation=validation)
    np.testing.assert_array_equal(one.front_coefs_, solver.front_coefs_)
    heavy = RankingData(validation.X, validation.y, validation.qid, query_weights=np.where(np.arange(40) < 3, 90, 1))
    for data in (validation, heavy):
        scores = np.column_stack([solver.predict(data), solver.reference_.scores(data.X)[:, 0]])
        differs = NDCG(10).can_differ(data)
        assert not differs.all()
        d, v = (NDCG(10).per_query(data, scores) @ [1, -1])[differs], data.query_weights[differs]
        verdict = solver.verdict(data)
        np.testing.assert_allclose(verdict.differences, d * v / v.mean(), atol=1e-12)
        assert verdict.difference == pytest.approx(d @ v / v.sum(), abs=1e-12)
    assert max(np.abs(verdict.differences)) > 1

import numpy as np
import pytest
from helpers.pair_problems import differences, pair_objective

from moerank.data import RankingData
from moerank.rankers import CombinedRegressionRanking, RankRLS

LOSSES = [{"loss": "pair", "target": "unit"}, {"loss": "pair", "target": "difference"}, {"loss": "query"}]


def dense_solution(data, alpha, loss="pair", target="unit", keep=slice(None), features=slice(None)):
    """Ridge regression on explicit document pairs."""
    if loss == "pair":
        i, j = data.pairs.better[keep], data.pairs.worse[keep]
        weights = np.full(len(i), 1.0 / len(i))
    else:
        same = np.equal.outer(data.qid, data.qid)
        i, j = np.nonzero(same)
        weights = 0.5 / same.sum(axis=1)[i]
    t = np.ones(len(i)) if (loss, target) == ("pair", "unit") else data.y[i] - data.y[j]
    D = (data.X[i] - data.X[j])[:, features]
    return np.linalg.solve(D.T @ (weights[:, None] * D) + alpha * np.eye(D.shape[1]), D.T @ (weights * t))


@pytest.mark.parametrize("parameters", LOSSES)
@pytest.mark.parametrize("alpha", [1e-4, 0.1, 10.0])
def test_fit_equals_the_dense_closed_form(noisy_data, parameters, alpha):
    ranker = RankRLS(alpha, **parameters).fit(noisy_data)
    np.testing.assert_allclose(ranker.coef_, dense_solution(noisy_data, alpha, **parameters), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("parameters", LOSSES)
def test_feature_subsets_equal_the_dense_closed_form(noisy_data, parameters):
    rng = np.random.default_rng(1)
    features = rng.random((25, noisy_data.n_features)) < 0.4
    features[:, 5] = True
    W = RankRLS(0.02, **parameters).fit_population(noisy_data, feature_mask=features)
    for w, mask in zip(W, features, strict=True):
        np.testing.assert_allclose(w[mask], dense_solution(noisy_data, 0.02, **parameters, features=mask), rtol=1e-9)
        assert not w[~mask].any()


@pytest.mark.parametrize("target", ["unit", "difference"])
@pytest.mark.parametrize(("alpha", "scale"), [(1e-3, 0), (0.1, 0), (0.1, 0.5)])
def test_own_pairs_reach_the_minimum_of_the_objective_from_any_start(noisy_data, target, alpha, scale):
    rng = np.random.default_rng(2)
    keep = rng.random((19, len(noisy_data.pairs))) < rng.uniform(0.05, 0.9, (19, 1))
    features = rng.random((19, noisy_data.n_features)) < 0.6
    features[:, 0] = True
    start = rng.normal(scale=scale, size=features.shape) if scale else None
    W = RankRLS(alpha, target=target).fit_population(noisy_data, pair_mask=keep, feature_mask=features, start=start)
    for w, mask, used in zip(W, keep, features, strict=True):
        better, worse = noisy_data.pairs.better[mask], noisy_data.pairs.worse[mask]
        t = 1.0 if target == "unit" else noisy_data.y[better] - noisy_data.y[worse]
        objective = pair_objective(differences(noisy_data, mask)[:, used], 0.5 / alpha, t, one_sided=False)
        best = dense_solution(noisy_data, alpha, target=target, keep=mask, features=used)
        assert objective(w[used])[0] == pytest.approx(objective(best)[0], rel=1e-6)
    assert not W[~features].any()


def test_query_loss_trains_on_chosen_queries(noisy_data):
    data = noisy_data
    rng = np.random.default_rng(4)
    queries, features = rng.random((5, noisy_data.n_queries)) < 0.6, rng.random((5, noisy_data.n_features)) < 0.7
    queries[:, 1] = features[:, 0] = True
    backend = RankRLS(0.1, loss="query")
    own, shared = (
        backend.fit_population(data, pair_mask=queries, feature_mask=features, unit="query"),
        backend.fit_population(data, pair_mask=queries[0], feature_mask=features, unit="query"),
    )
    for w, same, kept, used in zip(own, shared, queries, features, strict=True):
        for found, mask in ((w, kept), (same, queries[0])):
            rows = np.repeat(mask, np.diff(noisy_data.offsets))
            part = RankingData(noisy_data.X[rows], noisy_data.y[rows], noisy_data.qid[rows])
            np.testing.assert_allclose(found[used], dense_solution(part, 0.1, "query", features=used), rtol=1e-9)
            assert not found[~used].any()


def test_query_loss_of_queries_whose_matrices_do_not_fit_is_refused(noisy_data, monkeypatch):
    monkeypatch.setenv("MOERANK_MEMORY", "1e-9")
    again = RankingData(noisy_data.X, noisy_data.y, noisy_data.qid)
    with pytest.raises(ValueError, match=r"12 × 12 for each of 9 queries would take .*MOERANK_MEMORY"):
        RankRLS(loss="query").fit_population(again, pair_mask=np.eye(9, dtype=bool), unit="query")


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("ridge", [1.0, 1e-3, 1e-7])
def test_combined_regression_equals_least_squares_on_explicit_pairs_and_documents(noisy_data, alpha, ridge):
    D, n = differences(noisy_data), noisy_data.n_features
    u = noisy_data.y[noisy_data.pairs.better] - noisy_data.y[noisy_data.pairs.worse]
    documents, pairs = np.sqrt(alpha / noisy_data.n_documents), np.sqrt((1.0 - alpha) / len(D))
    A = np.vstack([
        documents * np.column_stack([noisy_data.X, np.ones(noisy_data.n_documents)]),
        pairs * np.column_stack([D, np.zeros(len(D))]),
        np.sqrt(0.5 * ridge) * np.eye(n, n + 1),
    ])  # fmt: skip
    solution = np.linalg.lstsq(A, np.concatenate([documents * noisy_data.y, pairs * u, np.zeros(n)]))[0]
    ranker = CombinedRegressionRanking(alpha=alpha, ridge=ridge).fit(noisy_data)
    np.testing.assert_allclose(np.append(ranker.coef_, ranker.intercept_), solution, rtol=1e-7, atol=1e-9)

"""FSMRank by passes over counted pairs against its steps on listed pairs."""

import numpy as np
import pytest

from moerank.rankers import FSMRank
from moerank.training.pairs import CountedPairs

SETTINGS = [(1e-3, 1e-3), (1.0, 1e-2), (0.0, 0.1), (1e-5, 1e-6)]


@pytest.fixture
def counted(monkeypatch):
    """Let no pair be listed."""
    monkeypatch.setattr("moerank.rankers.fsm_rank.pairs_for", lambda train, masks: CountedPairs.of(train))


@pytest.mark.parametrize(("lambda1", "lambda2"), SETTINGS)
def test_a_fit_takes_the_same_steps_as_on_listed_pairs(noisy_data, lambda1, lambda2, counted, request):
    by_passes = FSMRank(lambda1, lambda2, tol=1e-9).fit(noisy_data)
    request.getfixturevalue("monkeypatch").undo()
    listed = FSMRank(lambda1, lambda2, tol=1e-9).fit(noisy_data)
    assert by_passes.n_iter_ == listed.n_iter_
    np.testing.assert_allclose(by_passes.objectives_, listed.objectives_, rtol=1e-11)
    np.testing.assert_allclose(by_passes.coef_, listed.coef_, rtol=0, atol=1e-9 * np.abs(listed.coef_).max())


def test_documents_and_queries_are_the_pairs_among_them(noisy_data):
    rng = np.random.default_rng(2)
    ranker = FSMRank(1e-2, 1e-3, tol=1e-8)
    features = rng.random((5, noisy_data.n_features)) < 0.7
    features[:, :2] = True
    documents = rng.random((5, noisy_data.n_documents)) < 0.6
    queries = rng.random((5, noisy_data.n_queries)) < 0.5
    queries[:, 0] = True
    better, worse = noisy_data.pairs.better, noisy_data.pairs.worse
    query = np.repeat(np.arange(noisy_data.n_queries), np.diff(noisy_data.offsets))
    for unit, masks, pairs in (
        ("document", documents, documents[:, better] & documents[:, worse]),
        ("query", queries, queries[:, query[better]]),
    ):

        def fit(mask, features, unit=unit):
            return ranker.fit_population(noisy_data, pair_mask=mask, feature_mask=features, unit=unit)

        W = fit(masks, features)
        listed = ranker.fit_population(noisy_data, pair_mask=pairs, feature_mask=features)
        np.testing.assert_allclose(W, listed, rtol=0, atol=1e-8 * np.abs(listed).max())
        for row in range(5):
            np.testing.assert_array_equal(fit(masks[row], features[[row]])[0], W[row])
            np.testing.assert_array_equal(fit(masks[[row]], features[[row]])[0], W[row])


def test_a_start_and_a_grid_are_those_of_listed_pairs(noisy_data, counted, request):
    ranker, start = FSMRank(tol=1e-8), np.full((1, noisy_data.n_features), 0.1)
    candidates = [FSMRank(*lambdas, tol=1e-8) for lambdas in SETTINGS]

    def found():
        grid = ranker._fit_candidates(noisy_data, candidates)
        return np.vstack([ranker.fit_population(noisy_data, start=start), grid])

    by_passes = found()
    request.getfixturevalue("monkeypatch").undo()
    np.testing.assert_allclose(by_passes, found(), rtol=0, atol=1e-7)

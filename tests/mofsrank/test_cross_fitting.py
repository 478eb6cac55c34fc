"""Cross-fitting against a literal reference that trains each ranker by itself and compares errors one by one."""

import numpy as np
import pytest

from moerank.data import RankingData, make_planted
from moerank.data.folds import Draws
from moerank.metrics import NDCG
from moerank.mofsrank.refit import CrossFitting
from moerank.rankers import LambdaMART, RankBoost, RankSVM, train_population

METRIC = NDCG(5)


@pytest.fixture(scope="module")
def train():
    return make_planted(n_queries=13, n_documents=10, n_relevant=3, n_redundant=1, n_noise=3, seed=2).data


@pytest.fixture(scope="module")
def masks(train):
    masks = np.random.default_rng(3).random((14, train.n_features)) < 0.4
    return masks[masks.any(axis=1)]


def by_hand(ranker, train, mask, seed=0):
    """Scores of each document by the ranker that is fitted to the half of the queries without its own."""
    first = set(Draws(seed).order(train.n_queries)[: train.n_queries // 2].tolist())
    number = {query: i for i, query in enumerate(dict.fromkeys(train.qid.tolist()))}
    in_first = np.array([number[query] in first for query in train.qid.tolist()])
    scores = np.empty(train.n_documents)
    for half in (in_first, ~in_first):
        fit = ranker.fit(train.X[half][:, mask], train.y[half], qid=train.qid[half])
        scores[~half] = fit.predict(train.X[~half][:, mask])
    return scores


def judged_by_hand(few, in_full, train, masks, rivals):
    """Of each subset the scores that count, and whether it was trained in full."""
    against = [(rival.sum(), 1.0 - METRIC.score(train, by_hand(few, train, rival))) for rival in rivals]
    for mask in masks:
        early = by_hand(few, train, mask)
        error = 1.0 - METRIC.score(train, early)
        if any(size <= mask.sum() and smaller < error for size, smaller in against):
            yield early, False
            continue
        full = by_hand(in_full, train, mask)
        yield (full if 1.0 - METRIC.score(train, full) < error else early), True


@pytest.mark.parametrize(("few", "ranker"), [(LambdaMART(3), LambdaMART(12)), (RankBoost(2), RankBoost(9))])
def test_equals_the_literal_reference_and_what_was_given_up_is_dominated_by_a_rival(train, masks, few, ranker):
    rivals = masks[:3]
    found = CrossFitting(ranker, METRIC, rivals).fit_population(train, feature_mask=masks).scores(train.X)
    errors, sizes = 1.0 - METRIC.score(train, found), masks.sum(axis=1)
    given_up = 0
    for i, (scores, full) in enumerate(judged_by_hand(few, ranker, train, masks, rivals)):
        np.testing.assert_array_equal(found[:, i], scores)
        if not full:
            assert any(sizes[j] <= sizes[i] and errors[j] < errors[i] for j in range(3))
            given_up += 1
    assert 3 <= given_up <= len(masks) - 3


def test_neither_the_batch_nor_threads_nor_the_order_count(train, masks):
    def scores(rows, workers=1):
        backend = CrossFitting(LambdaMART(12), METRIC, masks[:3], workers=workers)
        return np.column_stack([train_population(backend, train, feature_mask=r).scores(train.X) for r in rows])

    together = scores([masks])
    np.testing.assert_array_equal(scores([masks], workers=2), together)
    np.testing.assert_array_equal(scores([mask[None] for mask in masks[::-1]])[:, ::-1], together)


def test_a_ranker_without_a_size_is_trained_in_full_at_once(train, masks):
    found = CrossFitting(RankSVM(), METRIC, masks[:1], seed=4).fit_population(train, feature_mask=masks)
    expected = [by_hand(RankSVM(), train, mask, seed=4) for mask in masks]
    np.testing.assert_allclose(found.scores(train.X), np.transpose(expected), rtol=0, atol=1e-9)


def test_the_labels_of_a_query_have_no_say_in_its_scores(train, masks):
    """Nor in those of the other queries of its half; and in all the others they have."""
    rows = train.qid == train.qid[0]
    other = RankingData(train.X, np.where(rows, train.y.max() - train.y, train.y), train.qid)
    before, after = (
        CrossFitting(RankSVM(), METRIC, masks).fit_population(data, feature_mask=masks).scores(data.X)
        for data in (train, other)
    )
    same = (before == after).all(axis=1)
    assert same[rows].all()
    assert len(set(train.qid[same])) in (train.n_queries // 2, train.n_queries - train.n_queries // 2)


def test_what_cannot_be_is_refused(train, masks):
    backend = CrossFitting(LambdaMART(4), METRIC, masks)
    scores = backend.fit_population(train, feature_mask=masks[:2])
    with pytest.raises(ValueError, match="known for the training data alone"):
        scores.scores(train.X.copy())
    with pytest.raises(ValueError, match="takes no pair_mask"):
        backend.fit_population(train, pair_mask=np.ones((1, train.label_runs.n_pairs), bool))
    alone = RankingData(train.X[:10], train.y[:10], qid=0)
    with pytest.raises(ValueError, match="there is one query"):
        backend.fit_population(alone, feature_mask=masks)

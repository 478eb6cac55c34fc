import hashlib

import numpy as np
import pytest

from moerank.data import load_planted_fold, make_planted


def test_sizes_names_and_roles():
    problem = make_planted(n_queries=7, n_documents=11, n_relevant=3, n_redundant=5, n_noise=4, seed=2)
    data = problem.data
    assert data.X.shape == (77, 12)
    assert set(np.diff(data.offsets)) == {11}
    assert data.X.min() >= 0.0
    assert data.X.max() < 1.0
    assert set(data.feature_names) == {
        *("relevant 1", "relevant 2", "relevant 3", "noise 1", "noise 2", "noise 3", "noise 4"),
        *("redundant 1 of 1", "redundant 1 of 2", "redundant 1 of 3", "redundant 2 of 1", "redundant 2 of 2"),
    }
    for name, source, relevant in zip(data.feature_names, problem.source, problem.relevant, strict=True):
        assert relevant == name.startswith("relevant")
        if name.startswith("noise"):
            assert source == -1
        else:
            assert data.feature_names[source] == f"relevant {name.split()[-1]}"


def test_columns_are_made_as_their_roles_say():
    problem = make_planted(n_queries=200, n_documents=25, n_relevant=4, n_redundant=6, n_noise=5)
    correlation = np.corrcoef(problem.data.X.T)
    expected = np.eye(15)
    for f in range(15):
        for g in range(15):
            if f != g and problem.source[f] == problem.source[g] >= 0:
                # cov(0.8 a + 0.2 b, a) over its standard deviations, squared where both are redundant
                cosine = 0.8 / np.hypot(0.8, 0.2)
                expected[f, g] = cosine if problem.relevant[f] or problem.relevant[g] else cosine**2
    np.testing.assert_allclose(correlation, expected, atol=0.06)


def test_without_noise_the_relevant_features_alone_order_the_documents():
    problem = make_planted(n_queries=20, n_documents=30, n_labels=4, noise=0.0)
    data = problem.data
    utility = data.X[:, problem.relevant].mean(axis=1)
    assert (utility[data.pairs.better] > utility[data.pairs.worse]).all()
    for query in range(20):
        labels = data.y[data.offsets[query] : data.offsets[query + 1]]
        assert [int((labels >= label).sum()) for label in range(1, 4)] == [8, 2, 1]


def test_noise_disturbs_the_order_but_not_the_counts_of_labels():
    still, disturbed = (make_planted(noise=noise, seed=3) for noise in (0.0, 0.4))
    np.testing.assert_array_equal(still.data.X, disturbed.data.X)
    assert 0.02 < (still.data.y != disturbed.data.y).mean() < 0.5
    np.testing.assert_array_equal(np.bincount(still.data.y), np.bincount(disturbed.data.y))


@pytest.mark.parametrize("sizes", [dict(n_documents=2, n_queries=1), dict(n_redundant=0, n_noise=0), dict(n_labels=9)])
def test_every_query_has_a_preference_pair_whatever_the_sizes(sizes):
    data = make_planted(**sizes).data
    assert set(data.qid[data.pairs.better]) == set(data.qid)


def test_the_default_problem_never_changes():
    data = make_planted().data
    stored = data.X.astype("<f8").tobytes() + data.y.astype("<i8").tobytes()
    assert hashlib.sha256(stored).hexdigest()[:16] == "848394511b26df11"


def test_folds_are_those_of_the_planted_problem():
    whole = make_planted(n_queries=10, seed=4).data
    parts = load_planted_fold(3, n_queries=10, seed=4)
    assert [sorted(set(part.qid)) for part in parts] == [[5, 6, 7, 8, 9, 10], [1, 2], [3, 4]]
    for part in parts:
        np.testing.assert_array_equal(part.X, whole.X[np.isin(whole.qid, part.qid)])
        assert part.feature_names == whole.feature_names


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("n_queries", 0), ("n_documents", 1), ("n_relevant", 0), ("n_redundant", -1), ("n_noise", -1)),
        *(("n_labels", 1), ("noise", -0.1), ("noise", np.nan), ("noise", np.inf)),
        *(("n_queries", "5"), ("n_documents", 5.0), ("n_relevant", True), ("n_redundant", None), ("n_noise", "5")),
    ],
)
def test_numbers_out_of_range_are_refused(argument, value):
    with pytest.raises(ValueError, match=f"{argument} must "):
        make_planted(**{argument: value})


def test_a_table_beyond_the_limit_is_refused_before_it_is_made(monkeypatch):
    with pytest.raises(ValueError, match=r"10 queries of 10 documents with 100,000,000,015 features would take .* GiB"):
        make_planted(10, 10, n_noise=10**11)
    with pytest.raises(ValueError, match=r"about 2\^996 queries .* would take about 2\^"):
        make_planted(10**300)
    rows, features = 1000, 30
    needed = (8 * rows + features * (3 * 8 * rows + 100)) / 2**30
    monkeypatch.setenv("MOERANK_MEMORY", str(needed * 0.999))
    with pytest.raises(ValueError, match="raise the limit with the environment variable MOERANK_MEMORY, in GiB"):
        make_planted(100, 10)
    monkeypatch.setenv("MOERANK_MEMORY", str(needed * 1.001))
    assert make_planted(100, 10).data.n_documents == rows

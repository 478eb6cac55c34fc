import hashlib

import numpy as np
import pytest

from moerank.data import load_web_fold, make_web, split_fold
from moerank.data.embedded import BLOCK


@pytest.fixture(scope="module")
def web():
    return make_web(1000, seed=3)


def test_shape_sizes_and_labels(web):
    lengths = np.diff(web.offsets)
    assert web.n_features == 136
    assert abs(lengths.mean() - 115) < 8  # its standard error is 2.4
    assert abs(np.log(lengths).std() - 0.6) < 0.05
    shares = np.bincount(web.y) / web.n_documents
    np.testing.assert_allclose(shares, [0.52, 0.32, 0.13, 0.02, 0.01], atol=0.02)
    assert web.qid[web.offsets[:-1]].tolist() == list(range(1, 1001))


def columns(web, kind):
    named = {name: column for column, name in enumerate(web.feature_names) if name.startswith(kind + " ")}
    return web.X[:, [named[name] for name in sorted(named, key=lambda name: int(name.split()[-1]))]].astype(float)


def test_kinds_of_features_are_what_is_said_of_them(web):
    informative, tails, counts = (columns(web, kind) for kind in ("informative", "tail", "count"))
    sizes = [columns(web, kind).shape[1] for kind in ("informative", "copy", "uniform", "tail", "count", "query")]
    assert sizes == [20, 40, 30, 24, 18, 4]
    for values in (informative, columns(web, "copy"), columns(web, "uniform")):
        assert (values >= 0).all() and (values < 1).all()
        np.testing.assert_allclose(values.mean(axis=0), 0.5, atol=0.01)
    # P(tail > t) = (1 + 10 t)^-2 and P(count >= c) = (1 + c)^-2
    for limit in (0.1, 1.0, 3.0):
        np.testing.assert_allclose((tails > limit).mean(), (1 + 10 * limit) ** -2, rtol=0.1)
    for limit in (1, 5, 30):
        np.testing.assert_allclose((counts >= limit).mean(), (1 + limit) ** -2.0, rtol=0.1)
    assert np.array_equal(counts, np.floor(counts))
    of_query = columns(web, "query")
    assert np.array_equal(of_query, np.repeat(of_query[web.offsets[:-1]], np.diff(web.offsets), axis=0))
    assert set(np.unique(of_query)) == set(range(16))


def test_copies_are_correlated_with_what_they_copy_and_nothing_else_is(web):
    names = web.feature_names
    correlation = np.corrcoef(web.X.T.astype(float))
    cosines = {"1": 0.9 / np.hypot(0.9, 0.1), "2": 0.6 / np.hypot(0.6, 0.4)}
    for f, name in enumerate(names):
        kind, *words = name.split()
        for g, other in enumerate(names):
            expected = 0.0
            if kind == "copy" and other.startswith("informative "):
                expected = cosines[words[0]] * (words[2] == other.split()[1])
            elif not (kind in ("informative", "uniform") and other.split()[0] in ("informative", "uniform") and f != g):
                continue
            assert abs(correlation[f, g] - expected) < 0.02


def test_labels_follow_the_utility_that_is_documented(web):
    """The weights of least squares within queries are proportional to .85^(j-1), and 0 for what is not informative."""
    X = np.hstack([columns(web, "informative"), columns(web, "uniform")])
    starts, lengths = web.offsets[:-1], np.diff(web.offsets)
    X -= np.repeat(np.add.reduceat(X, starts) / lengths[:, None], lengths, axis=0)
    y = web.y - np.repeat(np.add.reduceat(web.y, starts) / lengths, lengths)
    weights = np.linalg.lstsq(X, y, rcond=None)[0]
    expected = np.append(0.85 ** np.arange(20), np.zeros(30))
    np.testing.assert_allclose(weights / weights[0], expected, atol=0.03)


@pytest.mark.parametrize("n_queries", [1, BLOCK - 1, BLOCK, BLOCK + 7])
def test_fewer_queries_are_the_beginning_of_more(web, n_queries):
    fewer = make_web(n_queries, seed=3)
    assert np.array_equal(fewer.offsets, web.offsets[: n_queries + 1])
    assert np.array_equal(fewer.X, web.X[: fewer.n_documents])
    assert np.array_equal(fewer.y, web.y[: fewer.n_documents])


@pytest.mark.parametrize("fold", range(1, 6))
def test_folds_are_those_that_splitting_makes(fold):
    whole = split_fold(make_web(203, seed=1), fold)
    for part, expected in zip(load_web_fold(fold, n_queries=203, seed=1), whole, strict=True):
        assert np.array_equal(part.X, expected.X)
        assert np.array_equal(part.y, expected.y)
        assert np.array_equal(part.qid, expected.qid)
        assert (part.name, part.given_names) == (expected.name, expected.given_names)


def test_double_precision_holds_the_same_values():
    single, double = make_web(5), make_web(5, dtype=np.float64)
    assert (single.X.dtype, double.X.dtype) == (np.float32, np.float64)
    assert np.array_equal(single.X, double.X)
    assert load_web_fold(1, n_queries=5, dtype=np.float64)[2].X.dtype == np.float64


def test_the_default_problem_never_changes():
    data = make_web()
    stored = data.X.astype("<f4").tobytes() + data.y.astype("<i8").tobytes() + data.qid.astype("<i8").tobytes()
    assert hashlib.sha256(stored).hexdigest()[:16] == "0a35e55b9804d310"


def test_seeds_differ():
    first, second = make_web(5, seed=0), make_web(5, seed=2**64 - 1)
    assert first.X[0, 0] != second.X[0, 0]
    assert first.feature_names != second.feature_names


def test_what_cannot_be_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="n_queries must be at least 1, not 0"):
        make_web(0)
    with pytest.raises(ValueError, match="seed must be at most "):
        make_web(1, seed=2**64)
    with pytest.raises(ValueError, match="dtype must be float32 or float64, not int32"):
        make_web(1, dtype=np.int32)
    with pytest.raises(ValueError, match="fold must be at most 5, not 6"):
        load_web_fold(6)
    with pytest.raises(ValueError, match="web: 4 queries cannot be dealt into 5 parts"):
        load_web_fold(1, n_queries=4)
    with pytest.raises(ValueError, match="10,000,000 queries of 115 documents with 136 features would take "):
        make_web(10**7)
    monkeypatch.setenv("MOERANK_MEMORY", "0.01")
    with pytest.raises(ValueError, match=r"the limit is 0\.01 GiB"):
        load_web_fold(1, n_queries=300)

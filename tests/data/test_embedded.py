"""Problems that are made on the spot: digits, planted features, and the web."""

import hashlib

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

from moerank.data import load_digits_fold, load_web_fold, make_planted, make_shop, make_web
from moerank.data.folds import QUERIES_OF_A_BLOCK
from moerank.data.shop import LABEL_SHARES, LOADINGS, RELEVANT


@pytest.mark.parametrize(
    ("parts", "factor", "dtype", "integers", "digest"),
    [
        (lambda: load_digits_fold(1), 16, "<i8", ["y"], "b60cd6697c429331"),
        (lambda: [make_planted().data], 1, "<f8", ["y"], "848394511b26df11"),
        (lambda: [make_shop(100)], 1, "<f8", ["y"], "8a63b3ba0e2b6649"),
        (lambda: [make_web()], 1, "<f4", ["y", "qid"], "0a35e55b9804d310"),
    ],
)
def test_default_problems_never_change(parts, factor, dtype, integers, digest):
    stored = hashlib.sha256()
    for part in parts():
        stored.update(np.ascontiguousarray(part.X * factor, dtype=dtype).tobytes())
        for name in integers:
            stored.update(getattr(part, name).astype("<i8").tobytes())
    assert stored.hexdigest()[:16] == digest


def test_seeds_differ():
    assert (load_digits_fold(1, seed=0)[0].X != load_digits_fold(1, seed=1)[0].X).any()
    first, second = make_web(5, seed=0), make_web(5, seed=2**64 - 1)
    assert first.X[0, 0] != second.X[0, 0]
    assert first.feature_names != second.feature_names


@pytest.mark.parametrize(
    ("make", "argument", "value"),
    [
        *((load_digits_fold, "fold", value) for value in (0, 6, "5")),
        *((load_digits_fold, "n_queries", value) for value in (4, 1798, 5.0)),
        *((load_digits_fold, "n_documents", value) for value in (1, 1797, True)),
        *((make_planted, name, -1) for name in ("n_queries", "n_documents", "n_relevant", "n_redundant", "n_noise")),
        *((make_planted, "noise", value) for value in (-0.1, np.nan, np.inf)),
        (make_planted, "n_labels", 1),
        *((make_shop, name, -1) for name in ("n_queries", "n_documents", "noise", "seed")),
        (make_web, "n_queries", 0),
        (make_web, "seed", 2**64),
        (load_web_fold, "fold", 6),
    ],
)
def test_numbers_out_of_range_are_refused(make, argument, value):
    with pytest.raises(ValueError, match=f"{argument} (must |is )"):
        make(**{argument: value})


def test_documents_are_other_images_compared_with_the_query_image():
    """One image alone, taken as the query, explains the features as similarities to other images, and the labels."""
    images, digits = load_digits(return_X_y=True)
    _, _, test = load_digits_fold(1, n_queries=5, n_documents=30)
    found = []
    for query in range(len(images)):
        similarity = 1.0 - np.abs(images - images[query]) / 16.0
        if (similarity == test.X[0]).all(axis=1).any():
            where = (similarity[:, None] == test.X).all(axis=2)
            if where.any(axis=0).all():
                found.append((query, where.argmax(axis=0)))
    ((query, documents),) = found
    assert len(set(documents)) == 30
    assert query not in documents
    np.testing.assert_array_equal(digits[documents] == digits[query], test.y == 1)


def test_sizes_names_and_roles_of_planted_features():
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


@pytest.fixture(scope="module")
def shop():
    return make_shop(3000, 10)


def test_labels_of_the_shop_follow_eight_features_as_its_documentation_says(shop):
    """The mean label of each decile of a feature says how it counts, because most others are independent of it."""
    np.testing.assert_allclose((shop.y[:, None] < [1, 2, 3, 4]).mean(axis=0), LABEL_SHARES, atol=1e-3)
    correlated = {*LOADINGS["text"], *LOADINGS["demand"]}  # with the title's match or with sales
    for name, column in zip(shop.feature_names, shop.X.T, strict=True):
        low, middle, high = (shop.y[np.argsort(column)[part]].mean() for part in np.split(np.arange(30_000), 3))
        if name == "price":
            assert middle > low + 0.3, name
            assert middle > high + 0.3, name
        elif name in {"hours to deliver", "age in days"}:
            assert low > high + 0.2, name
        elif name in RELEVANT:
            assert high > low + 0.2, name
        elif name not in correlated:
            assert abs(high - low) < 0.06, name  # three standard errors


def test_features_of_the_shop_are_correlated_as_their_loadings_say(shop):
    """The rank correlation of two normal variables is 6/π · asin(ρ/2), whatever increases with them."""
    loadings = [(name, cause, size) for cause, sizes in LOADINGS.items() for name, size in sizes.items()]
    names, cause, loading = (np.array(values) for values in zip(*loadings, strict=True))
    ranks = spearmanr(shop.X[:, [shop.feature_names.index(name) for name in names]]).statistic
    expected = np.where(cause[:, None] == cause, np.outer(loading, loading), 0.0)
    np.testing.assert_allclose(ranks, 6 / np.pi * np.arcsin((expected + np.diag(1 - loading**2)) / 2), atol=0.02)


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


@pytest.mark.parametrize("n_queries", [1, QUERIES_OF_A_BLOCK - 1, QUERIES_OF_A_BLOCK, QUERIES_OF_A_BLOCK + 7])
def test_fewer_queries_are_the_beginning_of_more(web, n_queries):
    fewer = make_web(n_queries, seed=3)
    assert np.array_equal(fewer.offsets, web.offsets[: n_queries + 1])
    assert np.array_equal(fewer.X, web.X[: fewer.n_documents])
    assert np.array_equal(fewer.y, web.y[: fewer.n_documents])

"""Problems on counted pairs against scipy on explicit pairs, and against the lists of `ListedPairs`."""

import numpy as np
import pytest
from helpers.pair_problems import differences, minimum, pair_objective
from helpers.read_only import read_only

from moerank.data import RankingData
from moerank.kernels.run_pass import RESIDUALS, centres
from moerank.kernels.tiles import TILED_BLOCK
from moerank.training.masks import Masks
from moerank.training.pair_moments import DIFFERENCE, UNIT
from moerank.training.pairs import SQUARED, SQUARED_HINGE, CountedPairs, ListedPairs

CASES = [(SQUARED_HINGE, UNIT), (SQUARED, UNIT), (SQUARED, DIFFERENCE)]


@pytest.fixture(scope="module")
def data():
    """Queries of one document, of a few, and of more than a block, one of them with a single label."""
    rng = np.random.default_rng(3)
    qid = np.repeat(np.arange(8), [1, 37, 5, 2, TILED_BLOCK + 70, 16, 30, 3])
    X = np.column_stack([rng.random((len(qid), 6)), 0.1 * qid])
    y = np.digitize(X[:, 0] - X[:, 4] + rng.normal(scale=0.3, size=len(qid)), [-0.2, 0.2, 0.6])
    y[(qid == 4) & (rng.random(len(qid)) > 0.02)] = 0
    y[qid == 5] = 2
    return RankingData(X, y, qid)


def least(data, kept, features, C, loss, target):
    """The least objective on explicit pairs, and the objective at any point."""
    better, worse = data.pairs.better[kept], data.pairs.worse[kept]
    t = target.margin + target.per_label * (data.y[better] - data.y[worse])
    objective = pair_objective(np.where(features, differences(data, kept), 0.0), C, t, loss.one_sided)
    return minimum(objective, len(features)).fun, lambda w: objective(w)[0]


@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
def test_the_minima_are_those_of_explicit_pairs(data, C):
    problem = CountedPairs(data)
    W, reached = problem.minima(SQUARED_HINGE, [C, 2.0 * C])
    assert reached.all()
    everything = np.ones(len(data.pairs), bool), np.ones(data.n_features, bool)
    for w, scale in zip(W, (C, 2.0 * C), strict=True):
        best, objective = least(data, *everything, scale, SQUARED_HINGE, UNIT)
        assert objective(w) <= best * (1 + 1e-11)
    exact = ListedPairs(data).model(SQUARED_HINGE, C).w
    np.testing.assert_allclose(W[0], exact, rtol=0, atol=3e-6 * np.abs(exact).max())
    np.testing.assert_array_equal(CountedPairs(data).minima(SQUARED_HINGE, [C])[0][0], W[0])  # the same bits alone


@pytest.mark.parametrize(("loss", "target"), CASES)
def test_the_model_has_value_gradient_and_curvature_of_the_objective(data, loss, target):
    model = CountedPairs(data, target).model(loss, 3.0)
    at = ListedPairs(data, target=target).expand(model.w, 3.0, loss)
    np.testing.assert_allclose(model.B, at.hessian, rtol=0, atol=1e-6 * np.abs(at.hessian).max())
    np.testing.assert_allclose(model.B @ model.w - model.rhs, at.gradient, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("loss", "target"), CASES)
@pytest.mark.parametrize("own", ["pair", "document", "query"])
def test_each_individual_reaches_its_minimum(data, loss, target, own):
    rng = np.random.default_rng(8)
    features = rng.random((9, data.n_features)) < 0.6
    features[:, 0] = True
    units = {"document": rng.random((9, data.n_documents)) < 0.6, "query": rng.random((9, data.n_queries)) < 0.5}
    units["query"][:, 1] = True
    problem = CountedPairs(data, target)
    model = problem.model(loss, 5.0)
    W, reached = problem.solve_population(model, Masks(features, own, None, units.get(own)), tolerance=1e-9)
    assert reached.all()
    assert not W[~features].any()
    query = np.repeat(np.arange(data.n_queries), np.diff(data.offsets))
    for i, w in enumerate(W):
        kept = np.ones(len(data.pairs), bool)
        if own == "document":
            kept = units[own][i, data.pairs.better] & units[own][i, data.pairs.worse]
        elif own == "query":
            kept = units[own][i, query[data.pairs.better]]
        best, objective = least(data, kept, features[i], 5.0, loss, target)
        assert objective(w) <= best * (1 + 1e-7)
        alone = Masks(features[[i]], own, None, units[own][[i]] if own in units else None)
        np.testing.assert_array_equal(problem.solve_population(model, alone, tolerance=1e-9)[0][0], w)


def test_single_precision_features_train_as_double_ones_do(data):
    single = RankingData(data.X.astype(np.float32), data.y, data.qid)
    double = RankingData(single.X.astype(np.float64), data.y, data.qid)
    np.testing.assert_array_equal(
        CountedPairs(single).minima(SQUARED_HINGE, [5.0])[0], CountedPairs(double).minima(SQUARED_HINGE, [5.0])[0]
    )


def test_a_mean_far_above_the_spread_costs_no_digits(data):
    far, w = RankingData(data.X + 1000.0, data.y, data.qid), np.linspace(-1.0, 1.0, data.n_features)
    every, task = Masks(np.ones((1, len(w)), bool)), np.array([RESIDUALS])
    sums, _ = CountedPairs(far).sums(SQUARED_HINGE, np.float32, task, every, w[None], np.zeros((1, len(w))))
    D = differences(far)
    expected = np.maximum(0.0, 1.0 - D @ w) @ D
    np.testing.assert_allclose(sums[0], expected, rtol=0, atol=3e-5 * np.abs(expected).max())


def test_a_constant_is_its_own_mean_to_the_bit():
    assert centres(read_only(np.full((1, 3), 0.1)), read_only([0, 3]))[0, 0] == 0.1
    assert centres(read_only([[1.0, 2.0, 6.0, 5.0]]), read_only([0, 3, 4])).tolist() == [[3.0, 5.0]]

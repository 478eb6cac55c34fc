from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize

from moerank.data import RankingData
from moerank.rankers import SVMMAP


def fit(data, *arguments, **parameters):
    return SVMMAP(*arguments, **parameters).fit(data.X, data.y, qid=data.qid)


@pytest.fixture(scope="module")
def short_queries():
    rng = np.random.default_rng(0)
    y = np.array([1, 0, 0, 2, 0, 0, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0])
    X = rng.normal(size=(20, 3))
    X[:, 0] += 0.5 * (y > 0)
    return RankingData(X, y, np.repeat(np.arange(4), 5))


def all_constraints(data):
    """For every query, ψ(r*) − ψ(r) and 1 − AP(r) of all rankings r, by their definitions."""
    queries = []
    for q in range(data.n_queries):
        rows = slice(data.offsets[q], data.offsets[q + 1])
        X, relevant = data.X[rows], data.y[rows] > 0
        pairs = [(i, j) for i in np.flatnonzero(relevant) for j in np.flatnonzero(~relevant)]
        steps, losses = [], []
        for order in permutations(range(len(X))):
            place = np.argsort(order)
            hits = relevant[list(order)]
            steps.append(sum(2.0 * (place[i] > place[j]) * (X[i] - X[j]) for i, j in pairs) / len(pairs))
            losses.append(1.0 - np.mean((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits]))
        queries.append((np.array(steps), np.array(losses)))
    return queries


def explicit_objective(w, queries, C):
    return 0.5 * w @ w + C * np.mean([(losses - steps @ w).max() for steps, losses in queries])


def reference_objective(queries, C):
    """Minimise the n-slack form under the constraints of all rankings with scipy."""
    n = queries[0][0].shape[1]
    rows = [np.unique(np.column_stack([steps, losses]).round(14), axis=0) for steps, losses in queries]
    A = np.vstack(
        [np.hstack([block[:, :n], np.tile(np.eye(len(rows))[q], (len(block), 1))]) for q, block in enumerate(rows)]
    )
    b = np.concatenate([block[:, n] for block in rows])
    result = minimize(
        lambda v: 0.5 * v[:n] @ v[:n] + C * v[n:].mean(),
        np.append(np.zeros(n), np.ones(len(rows))),
        jac=lambda v: np.append(v[:n], np.full(len(rows), C / len(rows))),
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return result.fun


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 100.0])
def test_minimum_is_that_of_the_constraints_of_all_rankings(short_queries, C):
    queries = all_constraints(short_queries)
    ranker = fit(short_queries, C, eps=1e-9)
    objective = explicit_objective(ranker.coef_, queries, C)
    assert ranker.objective_ == pytest.approx(objective, rel=1e-10)
    assert objective == pytest.approx(reference_objective(queries, C), rel=1e-7)


@pytest.mark.parametrize("eps", [1e-1, 1e-2, 1e-4])
def test_eps_bounds_the_distance_from_the_minimum(noisy_data, eps):
    ranker = fit(noisy_data, 20.0, eps=eps)
    excess = ranker.objective_ - fit(noisy_data, 20.0, eps=1e-9).objective_
    assert excess <= ranker.gap_ + 1e-12
    assert ranker.gap_ <= 20.0 * eps


def test_grades_of_relevance_are_read_as_relevant_or_not(noisy_data):
    binary = RankingData(noisy_data.X, noisy_data.y > 0, noisy_data.qid)
    np.testing.assert_array_equal(fit(noisy_data).coef_, fit(binary).coef_)


def test_queries_of_one_kind_change_nothing(short_queries):
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(3, 3)), short_queries.X, rng.normal(size=(4, 3))])
    y = np.concatenate([[0, 0, 0], short_queries.y, [1, 1, 2, 1]])
    qid = np.concatenate([[8, 8, 8], short_queries.qid, [9, 9, 9, 9]])
    np.testing.assert_allclose(fit(RankingData(X, y, qid)).coef_, fit(short_queries).coef_, rtol=1e-12)


def test_labels_without_an_irrelevant_document_are_refused():
    with pytest.raises(ValueError, match="no query has both relevant documents"):
        SVMMAP().fit([[0.0], [1.0]], [1, 2])


@pytest.mark.parametrize(
    ("parameters", "message"), [({"C": -1.0}, "C must be positive"), ({"eps": 0.0}, "eps must be positive")]
)
def test_wrong_parameters_are_refused(noisy_data, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(noisy_data, **parameters)

import numpy as np
import pytest
from helpers.pair_problems import differences, minimum, pair_objective

from moerank.data import RankingData, load_fold
from moerank.kernels.counted_sums import CountedPairs
from moerank.rankers import RankSVM, RankSVMTRON
from moerank.training.listed import PairProblem
from moerank.training.losses import SQUARED_HINGE

GRID = [0.005, 0.05, 0.5, 5.0, 50.0]


@pytest.mark.parametrize("C", [*GRID, 5000.0])
@pytest.mark.parametrize(("tol", "error"), [(None, 1e-5), (1e-8, 1e-9)])
def test_fit_reaches_the_minimum_that_scipy_finds_on_explicit_pairs(noisy_data, C, tol, error):
    ranker = RankSVMTRON(C) if tol is None else RankSVMTRON(C, tol=tol)
    ranker.fit(noisy_data.X, noisy_data.y, qid=noisy_data.qid)
    objective = pair_objective(differences(noisy_data), C)
    assert objective(ranker.coef_)[0] == pytest.approx(minimum(objective, 12).fun, rel=error)


@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED"])
def test_objective_on_real_data_is_that_of_rank_svm(letor_folder, name):
    train, _, _ = load_fold(letor_folder / name / "Fold1")
    problem = PairProblem.of(train)
    for C in GRID:
        best = problem.expand(RankSVM(C)._learn(train).coef_, C, SQUARED_HINGE).value
        for ranker, error in ((RankSVMTRON(C), 1e-5), (RankSVMTRON(C, tol=1e-8), 1e-9)):
            found = problem.expand(ranker._learn(train).coef_, C, SQUARED_HINGE).value
            assert found == pytest.approx(best, rel=error)


def test_documents_of_queries_without_pairs_do_not_matter(noisy_data):
    rng = np.random.default_rng(0)
    alike = [(rng.random((n, 12)), np.full(n, label)) for n, label in ((7, 0), (1, 3))]
    X = np.concatenate([alike[0][0], noisy_data.X, alike[1][0]])
    y = np.concatenate([alike[0][1], noisy_data.y, alike[1][1]])
    qid = np.concatenate([np.full(7, -1), noisy_data.qid, [99]])
    more = RankSVMTRON(5.0).fit(X, y, qid=qid).coef_
    np.testing.assert_array_equal(more, RankSVMTRON(5.0).fit(noisy_data.X, noisy_data.y, qid=noisy_data.qid).coef_)


def test_as_many_labels_as_documents():
    rng = np.random.default_rng(1)
    X = rng.random((200, 5))
    y = np.argsort(np.argsort(X @ [3.0, -1.0, 0.0, 0.5, 0.0] + rng.normal(scale=0.3, size=200)))
    data = RankingData(X, y)
    assert CountedPairs(data.y, data.offsets).n_pairs == 200 * 199 // 2
    objective = pair_objective(differences(data), 20.0)
    found = RankSVMTRON(20.0, tol=1e-8).fit(X, y).coef_
    assert objective(found)[0] == pytest.approx(minimum(objective, 5).fun, rel=1e-9)

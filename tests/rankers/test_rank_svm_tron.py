import pytest
from helpers.pair_problems import differences, minimum, pair_objective

from moerank.data import load_fold
from moerank.rankers import RankSVM, RankSVMTRON
from moerank.training.pair_loss import SQUARED_HINGE
from moerank.training.pairs import ListedPairs

GRID = [0.005, 0.05, 0.5, 5.0, 50.0]


@pytest.mark.parametrize("C", [*GRID, 5000.0])
@pytest.mark.parametrize(("tol", "error"), [(None, 1e-5), (1e-8, 1e-9)])
def test_fit_reaches_the_minimum_that_scipy_finds_on_explicit_pairs(noisy_data, C, tol, error):
    ranker = RankSVMTRON(C) if tol is None else RankSVMTRON(C, tol=tol)
    ranker.fit(noisy_data)
    objective = pair_objective(differences(noisy_data), C)
    assert objective(ranker.coef_)[0] == pytest.approx(minimum(objective, 12).fun, rel=error)


@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED"])
def test_objective_on_real_data_is_that_of_rank_svm(letor_folder, name):
    train, _, _ = load_fold(letor_folder / name / "Fold1")
    problem = ListedPairs.of(train)
    for C in GRID:
        best = problem.expand(RankSVM(C)._learn(train).coef_, C, SQUARED_HINGE).value
        for ranker, error in ((RankSVMTRON(C), 1e-5), (RankSVMTRON(C, tol=1e-8), 1e-9)):
            found = problem.expand(ranker._learn(train).coef_, C, SQUARED_HINGE).value
            assert found == pytest.approx(best, rel=error)

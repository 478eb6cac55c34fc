"""Solvers that are given as objects, run on a fold."""

import numpy as np
import pytest
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge

from moerank.mofsrank import MOFSRank
from moerank.rankers import RankSVM
from moerank.studies.result import Result
from moerank.studies.run_fold import run_fold
from moerank.studies.solver import Solver

SMALL = {"population": 8, "generations": 3}
STAGES = dict(instance_selection=SMALL, feature_selection=SMALL, ensemble=SMALL)


def spea2(population, operators):
    """A factory of a pymoo algorithm, as users write it."""
    from pymoo.algorithms.moo.spea2 import SPEA2

    return SPEA2(pop_size=population, **operators)


def test_an_estimator_runs_as_it_is_given(tiny_problem):
    result = run_fold(tiny_problem, 1, Solver.of(RankSVM(C=0.25)), baselines=False)
    train = tiny_problem.load_fold(1)[0]
    alone = RankSVM(C=0.25).fit(train)
    assert np.array_equal(result.best.weights, alone.coef_)
    assert result.solver == "RankSVM"
    assert Result.from_json(result.to_json()) == result


def test_a_search_has_its_own_budget_and_draws_from_the_seed_of_the_cell(tiny_problem):
    solver = Solver.of(MOFSRank(algorithm=spea2, **STAGES, workers=7), "mine")
    assert Solver.of(MOFSRank(algorithm=spea2, ensemble=False)).label == "MOFSRank"
    assert solver.seeded
    result = run_fold(tiny_problem, 1, solver, random_state=5, baselines=False)
    train, vali, _ = tiny_problem.load_fold(1)
    alone = MOFSRank(algorithm=spea2, **STAGES, random_state=5).fit(train, validation=vali)
    assert [member.features for member in result.front] == alone.front_["features"].tolist()
    fixed = Solver.of(MOFSRank(algorithm=spea2, **STAGES, random_state=5), "fixed")
    other = run_fold(tiny_problem, 1, fixed, baselines=False)
    assert [member.weights for member in other.front] == [member.weights for member in result.front]
    assert not Solver.of(MOFSRank(random_state=5)).seeded


def test_a_function_makes_the_solver_of_each_cell(tiny_problem):
    asked = []

    def make(problem, seed):
        asked.append((problem.name, seed))
        return RankSVM(C=seed)

    result = run_fold(tiny_problem, 1, Solver.of(make, "mine"), random_state=2**31 + 3, baselines=False)
    assert asked == [("tiny", 3)]  # no library has larger seeds
    assert result.best.parameters["C"] == 3
    with pytest.raises(ValueError, match="mine must return an estimator with fit, predict and get_params, not 3"):
        run_fold(tiny_problem, 1, Solver.of(lambda problem, seed: 3, "mine"), baselines=False)


@pytest.mark.parametrize("ranker", [LGBMRanker(n_estimators=3, n_jobs=1, verbose=-1, min_child_samples=2), Ridge()])
def test_rankers_of_other_libraries_use_all_features(tiny_problem, ranker):
    result = run_fold(tiny_problem, 1, Solver.of(ranker, "theirs"), baselines=False)
    train, _, test = tiny_problem.load_fold(1)
    group = {"group": np.diff(train.offsets)} if isinstance(ranker, LGBMRanker) else {}
    if group:
        ranker = LGBMRanker(**{**ranker.get_params(), "random_state": 0})
    scores = ranker.fit(train.X, train.y, **group).predict(test.X)
    assert result.best.scores["test"]["NDCG@10"] == tiny_problem.metric.make().score(test, scores)
    assert len(result.best.features) == train.n_features


@pytest.mark.parametrize(
    ("given", "name", "message"),
    [
        (3, None, "a solver is a name, an estimator such as"),
        (RankSVM, None, "a solver is a name, an estimator such as"),
        (RankSVM(), "fsmrank", "'fsmrank' is in the table of solvers"),
        (RankSVM(), "  ", "give the solver another name"),
    ],
)
def test_what_cannot_be_a_solver_is_refused(given, name, message):
    with pytest.raises(ValueError, match=message):
        Solver.of(given, name)

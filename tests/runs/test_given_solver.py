"""Solvers that are given as objects, and those that are named: both are judged, tuned and searched alike."""

import importlib
import linecache
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import pytest
from helpers.changes import replace
from helpers.drawn import panels_of
from helpers.third_objective import QueriesHurt
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from moerank import GAS
from moerank.data import load_planted_fold
from moerank.figures import FIGURES
from moerank.metrics import MAP, NDCG
from moerank.mofsrank import FeatureSelection, InstanceSelection, MOFSRank
from moerank.rankers import RankingEstimator, RankRLS, RankSVM
from moerank.runs.problem import load_problem
from moerank.runs.result import Result
from moerank.runs.run_fold import run_fold
from moerank.runs.solver import GivenSolver, NamedSolver
from moerank.studies.study import Study

SMALL = {"population": 8, "generations": 3}
STAGES = dict(instance_selection=SMALL, feature_selection=SMALL, ensemble=SMALL)


@dataclass
class Wrapped(RankingEstimator):
    """An estimator of a user with a search in it."""

    search: object = None

    def _fit(self, train, validation):
        self.fitted = self.search.fit(train, validation=validation)
        self.coef_, self.support_ = self.fitted.coef_, self.fitted.support_

    def _scores(self, X):
        return self.fitted._scores(X)


@pytest.fixture(scope="module")
def letor(tiny_problem_file):
    """The tiny problem with the convention of LETOR, which no estimator has by default, and another budget."""
    return load_problem(tiny_problem_file, {"metric.convention": "letor", "feature_selection.population": 12})


def own(problem, seed):
    """Return a search by another metric."""
    return MOFSRank(metric=MAP(), random_state=seed)


def same(problem, seed):
    """Return the search as a user of the recipe writes it."""
    return MOFSRank(ensemble=False, feature_selection={"generations": 4}, random_state=seed)


def test_a_search_is_the_same_by_name_as_an_estimator_and_as_a_function(letor):
    given = [
        NamedSolver.parse('mofsrank[ensemble=false,feature_selection={"generations":4}]'),
        GivenSolver.of(MOFSRank(ensemble=False, feature_selection={"generations": 4}), "mine"),
        GivenSolver.of(same, "made"),
    ]
    for seed in (3, 2**31 + 3):  # no other library has larger seeds
        named, *others = (run_fold(letor, 1, solver, random_state=seed, baselines=False) for solver in given)
        for other in others:
            front = [replace(member, name=named.solver) for member in other.front]
            assert (front, other.convergence) == (named.front, named.convergence)
            assert other.verdict.metric == named.verdict.metric == named.searched_by == "NDCG@10 (letor)"
    # An own table changes only its keys: the population is that of the problem.
    assert named.convergence["feature_selection"].evaluations[-1] == 12 * 4
    assert Result.from_json(named.to_json()) == named


def test_estimators_are_tuned_as_names_are(tiny_problem):
    def chosen(solver):
        return run_fold(tiny_problem, 1, solver, baselines=False).best.parameters

    assert (
        chosen("ranksvm-primal") == chosen(GivenSolver.of(RankSVM())) != chosen(GivenSolver.of(RankSVM(), tune=False))
    )
    assert chosen(GivenSolver.of(RankSVM(C=0.25)))["C"] == 0.25  # what is set stays
    assert chosen(GivenSolver.of(RankSVM(), tune=False)) == RankSVM().get_params()
    problem = tiny_problem.model_copy(update={"solver": tiny_problem.solver.model_copy(update={"tune": False})})
    assert run_fold(problem, 1, GivenSolver.of(RankSVM()), baselines=False).best.parameters == RankSVM().get_params()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            MOFSRank(metric=NDCG(10)),
            r"has the metric NDCG@10, and the problem tiny has NDCG@10 \(letor\)\. Leave metric",
        ),
        (MOFSRank(metric="map"), r"metric MAP, and the problem tiny has NDCG@10 \(letor\)"),
        (GAS(metric=NDCG(5, convention="letor")), r"metric NDCG@5 \(letor\)"),
        (Wrapped(MOFSRank(metric=MAP())), "metric MAP"),
        (
            MOFSRank(objectives=("features", "error", QueriesHurt())),
            r"has the objectives Features\(\), Error\(\), QueriesHurt\(\), and the problem tiny has Feat",
        ),
        (own, "own has the metric MAP"),
        ("mofsrank[metric=MAP]", r"mofsrank\[metric=MAP\] has the metric MAP, and the problem tiny has NDCG@10"),
        ('mofsrank[objectives=["error","features","risk"]]', r"Error\(\), Features\(\), Risk\(a=1\)"),
    ],
)
def test_another_goal_than_that_of_the_problem_is_refused_by_both_names(given, message, letor, tmp_path):
    study = Study([letor], given, tmp_path, folds=[1])
    if callable(given):  # a function is seen when its cell runs
        with pytest.warns(UserWarning, match=message):
            study.run()
        return
    with pytest.raises(ValueError, match=message):
        study.run()


def test_what_is_left_open_in_an_inner_search_is_set_too(letor):
    result = run_fold(letor, 1, GivenSolver.of(Wrapped(MOFSRank(**STAGES, random_state=0))), baselines=False)
    train, vali, _ = letor.load_fold(1)
    inner = MOFSRank(**STAGES, random_state=0, metric=NDCG(10, convention="letor")).fit(train, validation=vali)
    assert np.array_equal(np.flatnonzero(inner.support_), result.best.features)


def test_a_goal_of_its_own_reaches_results_and_shares_no_figure(letor, tmp_path):
    three = MOFSRank(objectives=("features", "error", QueriesHurt()), algorithm="nsga3")
    given = {"by map": own, "three": three, "mofsrank": "mofsrank", "gas": "gas"}
    study = Study([letor], given, tmp_path, folds=[1], seeds=2, own_goal=True).run()
    results = study.results()
    by_solver = {run.solver: run for run in results}
    assert by_solver["by map"].searched_by == "MAP"
    assert by_solver["by map"].verdict.metric == results.metric == "NDCG@10 (letor)"  # all are judged alike
    assert by_solver["three"].objectives == ["features", "error", "hurt"]
    assert by_solver["three"].box["hurt"] == (0.0, len(by_solver["three"].queries["train"]))
    frame = study.frame(members=True)
    assert (frame["hurt"].notna() == (frame["solver"] == "three")).all()
    figure = FIGURES["hypervolume"].draw(results, letor)
    titles = [axes.get_title(loc="left") for axes in panels_of(figure)]
    assert len(titles) == 9 and "Ensemble: features, error, hurt by NDCG@10 (letor)" in titles
    for axes in panels_of(figure):
        assert len([line for line in axes.lines if len(line.get_xdata())]) == 1
    for name, apart in (("attainment", "by map, three"), ("fronts", "by map, three"), ("objectives", "by map, three")):
        note = " ".join(FIGURES[name].draw(results, letor)._supxlabel.get_text().split())
        assert f"they do not minimise features, error by NDCG@10 (letor): {apart}." in note, name


@pytest.mark.parametrize("algorithm", ["nsga2", "moead", "staircase", "sparseea"])
def test_evaluations_are_counted_as_asked_for_and_as_trained(algorithm, tiny_problem, monkeypatch):
    trained = []
    for stage in (InstanceSelection, FeatureSelection):
        measure = stage.measure

        def counted(self, X, measure=measure):
            trained.append(len(X))
            return measure(self, X)

        monkeypatch.setattr(stage, "measure", counted)
    repeats = {"population": 8, "generations": 8, "eliminate_duplicates": False, "mutation": 0.02}
    solver = MOFSRank(algorithm=algorithm, feature_selection=repeats, ensemble=False, adaptive_mutation=False)
    result = run_fold(tiny_problem, 1, GivenSolver.of(solver), random_state=1, baselines=False)
    assert result.n_trained == sum(trained) <= result.n_evaluations
    assert (result.n_trained < result.n_evaluations) or algorithm == "staircase"
    for history in result.convergence.values():
        assert all(n <= asked for n, asked in zip(history.trained, history.evaluations, strict=True))
    assert sum(history.trained[-1] for history in result.convergence.values()) == result.n_trained


def test_a_search_draws_from_the_seed_of_the_cell_unless_it_has_one(tiny_problem):
    drawn, fixed = (
        GivenSolver.of(MOFSRank(**STAGES, workers=7), "mine"),
        GivenSolver.of(MOFSRank(**STAGES, random_state=5), "it"),
    )
    assert drawn.seeded and not fixed.seeded
    assert GivenSolver.of(MOFSRank(ensemble=False)).label == "MOFSRank"
    first = run_fold(tiny_problem, 1, drawn, random_state=5, baselines=False)
    second = run_fold(tiny_problem, 1, fixed, random_state=6, baselines=False)
    assert [member.weights for member in first.front] == [member.weights for member in second.front]


def test_a_function_makes_the_solver_of_each_cell(tiny_problem):
    asked = []

    def make(problem, seed):
        asked.append((problem.name, seed))
        return RankSVM(C=seed)

    result = run_fold(tiny_problem, 1, GivenSolver.of(make, "mine"), random_state=2**31 + 3, baselines=False)
    assert asked == [("tiny", 3)]
    assert result.best.parameters["C"] == 3
    with pytest.raises(ValueError, match="mine must return an estimator with fit, predict and get_params, not 3"):
        run_fold(tiny_problem, 1, GivenSolver.of(lambda problem, seed: 3, "mine"), baselines=False)


@pytest.mark.parametrize(
    "ranker",  # the last one has a metric and an algorithm of its own
    [LGBMRanker(n_estimators=3, n_jobs=1, verbose=-1, min_child_samples=2), Ridge(), KNeighborsRegressor(3)],
)
def test_rankers_of_other_libraries_use_all_features_and_their_own_parameters(tiny_problem, ranker):
    result = run_fold(tiny_problem, 1, GivenSolver.of(ranker, "theirs"), baselines=False)
    train, _, test = tiny_problem.load_fold(1)
    group = {"group": np.diff(train.offsets)} if isinstance(ranker, LGBMRanker) else {}
    if group:
        ranker = LGBMRanker(**{**ranker.get_params(), "random_state": 0})
    scores = ranker.fit(train.X, train.y, **group).predict(test.X)
    assert result.best.scores["test"]["NDCG@10"] == tiny_problem.metric.make().score(test, scores)
    assert len(result.best.features) == train.n_features


def test_a_module_newer_than_its_results_is_named(tiny_problem, tmp_path, monkeypatch):
    file = tmp_path / "mine_newer.py"
    file.write_text(
        "from moerank.rankers import RankRLS\nALPHA = 1.0\ndef make(problem, seed):\n    return RankRLS(ALPHA)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import mine_newer

    study = Study([tiny_problem], {"mine": mine_newer.make, "rankrls": "rankrls"}, tmp_path / "s", folds=[1, 2]).run()
    study.run()  # without a warning
    later = max(path.stat().st_mtime for path in (tmp_path / "s" / "cells").iterdir()) + 10
    os.utime(file, (later, later))
    with pytest.warns(
        UserWarning, match=r"mine_newer.py is newer than 2 of 2 results of mine, which may come from older"
    ):
        study.run()


def test_a_solver_runs_again_when_a_module_that_it_uses_was_edited(tiny_problem, tmp_path, monkeypatch):
    (tmp_path / "mine_edited.py").write_text(
        "import mine_helper\nfrom moerank.rankers import RankRLS\n"
        "def make(problem, seed):\n    return RankRLS(mine_helper.alpha())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder, weights = tmp_path / "s", []
    for alpha in (1e-3, 1e6):
        (tmp_path / "mine_helper.py").write_text(f"def alpha():\n    return {alpha!r}\n")
        make = importlib.import_module("mine_edited").make
        study = Study([tiny_problem], {"mine": make}, folder, folds=[1])
        with nullcontext() if not weights else pytest.warns(UserWarning, match="the code of mine has changed"):
            weights.append(study.run().results()[0].best.weights)
        for name in ("mine_edited", "mine_helper"):
            del sys.modules[name]
        linecache.clearcache()
    assert weights[0] != weights[1]
    assert Study.load(folder).results()[0].best.weights == weights[1]


@pytest.mark.parametrize(
    ("given", "name", "message"),
    [
        (3, None, "a solver is a name, an estimator such as"),
        (RankSVM, None, "a solver is a name, an estimator such as"),
        (RankSVM(), "fsmrank", "'fsmrank' is in the table of solvers"),
    ],
)
def test_what_cannot_be_a_solver_is_refused(given, name, message):
    with pytest.raises(ValueError, match=message):
        GivenSolver.of(given, name)


MOFS = dict(instance_selection=False, feature_selection=SMALL, ensemble=False)


@pytest.fixture(scope="module")
def fold():
    return load_planted_fold(1, n_queries=15, n_documents=8, n_noise=3)


def weak(problem, seed):
    return RankRLS(alpha=100.0)


def strong(problem, seed):
    return RankRLS(alpha=0.01)


def test_a_single_thing_needs_no_list(tiny_problem_file, tiny_problem):
    for problem in (str(tiny_problem_file), tiny_problem_file, tiny_problem):
        study = Study(problem, "fsmrank[lambda1=0.5]", folds=[1])
        assert [cell.label for cell in study.cells()] == ["tiny, fold 1, fsmrank[lambda1=0.5]"]
    study = Study("planted", RankSVM(C=2), folds=[3])
    assert [cell.label for cell in study.cells()] == ["planted, fold 3, RankSVM"]


def test_data_estimators_and_functions_run_as_cells(fold, tmp_path):
    solvers = {"mofs": MOFSRank(**MOFS), "weak": weak, "gas": "gas", "fixed": MOFSRank(**MOFS, random_state=7)}
    study = Study({"mine": fold, "again": [fold, fold]}, solvers, tmp_path, seeds=2).run()
    assert not study.failures()
    frame = study.frame().set_index(["problem", "fold", "solver", "seed"])
    assert len(frame) == 3 * (2 + 2 + 1 + 1)  # mofs and the function draw
    assert len({*frame.xs("fixed", level="solver")["train NDCG@10"]}) == 1  # the same data, the same seed
    assert frame["test P@3"].between(0, 1).all()
    loaded = Study.load(tmp_path)
    assert [cell.key for cell in loaded.cells()] == [cell.key for cell in study.cells()]
    assert loaded.run().frame().equals(study.frame())  # nothing is left to run


def test_another_function_or_data_of_the_same_name_is_not_taken_for_the_first(fold, tmp_path):
    first = Study({"mine": fold}, {"rls": weak}, tmp_path).run()
    again = Study({"mine": fold}, {"rls": weak}, tmp_path)
    assert set(again.states().values()) == {"finished"}
    changed = Study({"mine": fold}, {"rls": strong}, tmp_path)
    assert set(changed.states().values()) == {"open"}
    with pytest.raises(ValueError, match="holds another solver rls, with other code or settings"):
        changed.run()
    with pytest.raises(ValueError, match="holds another solver rls"):
        Study({"mine": fold}, {"rls": RankRLS()}, tmp_path).run()
    Study({"mine": fold}, "rankrls", tmp_path).run()
    changed = Study({"mine": load_planted_fold(1, n_queries=15, n_documents=8, n_noise=3, seed=1)}, "rankrls", tmp_path)
    assert set(changed.states().values()) == {"open"}
    with pytest.raises(ValueError, match="holds another problem mine, with other code or settings"):
        changed.run()
    apart = Study({"mine": fold}, {"strong": strong}, tmp_path).run()
    assert apart.results()[0].best.weights != first.results()[0].best.weights
    assert len(Study.load(tmp_path).results()) == 3


def test_what_a_folder_knows_by_its_digest_alone_is_asked_for(fold, tmp_path):
    study = Study({"mine": fold}, {"weak": weak}, tmp_path).run()
    next((tmp_path / "cells").iterdir()).unlink()
    with pytest.raises(ValueError, match="weak was given as a Python object; pass it to Study again"):
        Study.load(tmp_path).run()
    assert len(study.run().results()) == 1
    Study({"mine": fold}, "rankrls", tmp_path / "data").run()
    next((tmp_path / "data" / "cells").iterdir()).unlink()
    with pytest.raises(ValueError, match="mine was given as a Python object"):
        Study.load(tmp_path / "data").run()


@pytest.mark.parametrize(
    ("problems", "solvers", "message"),
    [
        ("planted", {"mine": "fsmrank"}, "fsmrank keeps its name: solvers={'fsmrank': 'fsmrank'}"),
        ("planted", [RankSVM(), type("RankSVM", (RankSVM,), {})()], "two solvers are called RankSVM"),
        ("planted", (), "^a study needs a problem, a solver and a fold; moerank solvers lists"),
        (["planted", load_problem("planted", {"metric.name": "MAP"})], "gas", "two problems are called planted"),
        ({"no name": "planted"}, "gas", "--set name"),
        (load_planted_fold(1), "gas", "data in memory need a name: problems="),
    ],
)
def test_what_cannot_be_asked_for_is_refused(problems, solvers, message):
    with pytest.raises(ValueError, match=message.replace("{", r"\{")):
        Study(problems, solvers, folds=[1])


def test_an_estimator_that_changes_later_is_run_as_it_was_given(fold, tmp_path):
    ranker = RankRLS(alpha=0.5)
    study = Study({"mine": fold}, {"rls": ranker}, tmp_path)
    ranker.set_params(alpha=100.0)
    assert study.run().results()[0].best.parameters["alpha"] == 0.5


def test_a_function_of_a_script_runs_in_its_processes(tmp_path):
    """What is in __main__ cannot be imported elsewhere, and is sent as code."""
    script = tmp_path / "mine.py"
    script.write_text(
        "from moerank import RankRLS, Study, load_planted_fold\n"
        "ALPHA = 0.5\n"
        "def make(problem, seed):\n"
        "    return RankRLS(alpha=ALPHA)\n"
        "if __name__ == '__main__':\n"
        "    fold = load_planted_fold(1, n_queries=15, n_documents=8, n_noise=3)\n"
        f"    study = Study({{'mine': fold}}, {{'made': make}}, {str(tmp_path / 'study')!r}).run(workers=2)\n"
        "    print(study.failures(), [result.best.parameters['alpha'] for result in study.results()])\n"
    )
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert found.stdout == "{} [0.5]\n"

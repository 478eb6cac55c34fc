"""Ablations: a base, and variants that lack one part each and draw from the same seeds."""

import numpy as np
import pytest

from moerank.evolution import Staircase, make_algorithm
from moerank.mofsrank import FeatureSelection, Limits, MOFSRank
from moerank.rankers import RankRLS
from moerank.runs.problem import load_problem
from moerank.runs.run_fold import run_fold
from moerank.runs.solver import SWITCHES, NamedSolver, ablations
from moerank.solvers import read_solver
from moerank.studies.study import Study


@pytest.fixture(scope="module")
def limited(tiny_problem_file):
    """The tiny problem with a limit, so that the repair has work to do."""
    return load_problem(tiny_problem_file, {"features.max_features": 6})


@pytest.mark.parametrize(
    ("base", "own"), [("mofsrank", ()), ("mofsrank-paper", ()), ("mofsrank-staircase", Staircase.parts)]
)
def test_every_part_is_a_switch_that_changes_the_search(base, own, limited):
    """And nothing before its stage: the draws are the same."""
    parts = [part for part in SWITCHES if not own or part not in ("adaptive mutation", "elimination of duplicates")]
    named = ablations(base, [*parts, *(part for part in own if part not in parts)])
    assert next(iter(named)) == named[base] == base
    problem = limited
    if own:  # restarts and shares take some generations
        budget = {"data.n_queries": 30, "feature_selection.population": 32, "feature_selection.generations": 36}
        problem = load_problem("planted", {"features.max_features": 12, **budget, "ensemble.generations": 2})
        problem = problem.model_copy(update={"instance_selection": limited.instance_selection})
    results = {name: run_fold(problem, 1, text, random_state=2, baselines=False) for name, text in named.items()}
    complete = results.pop(base)
    for name, result in results.items():
        assert max(len(member.features) for member in result.front) <= (12 if own else 6), name
        stages = result.convergence
        same = [stage for stage in complete.convergence if stages.get(stage) == complete.convergence[stage]]
        expected = {"without ensemble": 2, "without instance selection": 0, "without repair": 1}
        expected["without elimination of duplicates"] = 1  # the strings of pairs are too long for duplicates
        within = {"adaptive mutation", *own} - {"crossover", "mutation"}
        n_same = expected.get(name, 1 if name.removeprefix("without ") in within else 0)
        assert len(same) == n_same, name


@pytest.mark.parametrize(
    ("base", "parts", "message"),
    [
        ("mofsrank", ["crossovers"], "unknown part of mofsrank 'crossovers'; did you mean 'crossover'"),
        ("mofsrank-staircase", ["adaptive mutation"], "unknown part of mofsrank-staircase"),
        ("mofsrank-sparseea", ["crossover"], "choose one of instance selection, ensemble, repair, initial sizes"),
        ("mofsrank[ensemble=false]", ["ensemble"], "unknown part of"),
        ("fsmrank", [], "fsmrank has no parts to leave out; ablate mofsrank"),
    ],
)
def test_a_part_that_a_solver_does_not_have_is_refused(base, parts, message):
    with pytest.raises(ValueError, match=message):
        ablations(base, parts)


def test_the_papers_parts_are_left_out_by_default():
    for base in ("mofsrank", "mofsrank-paper"):
        _, *variants = ablations(base).values()
        left_out = [read_solver(text)[1] for text in variants]
        assert left_out == [{"instance_selection": False}, {"adaptive_mutation": False}, {"ensemble": False}]
    twice = ablations("mofsrank[algorithm=staircase[without=restarts]]", ["near mates"])["without near mates"]
    assert NamedSolver.parse(twice).parameters["algorithm"] == 'staircase[without=["restarts","near mates"]]'


def test_parts_of_a_search_are_refused_by_name(small_stage):
    for text, message in [
        ("staircase[without=restart]", "unknown part of Staircase 'restart'; did you mean 'restarts'"),
        ("nsga2[without=restarts]", "nsga2 takes no without"),
        ("staircase[pop=3]", "staircase takes no pop"),
        ('staircase[without=["crossover","mutation"]]', "needs crossover or mutation"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_algorithm(text, 8, small_stage.operators())


@pytest.fixture
def small_stage(tiny_problem):
    return FeatureSelection(tiny_problem.load_fold(1)[0], RankRLS(0.1))


def test_without_repair_a_string_beyond_a_limit_is_the_worst_in_everything(limited):
    train = limited.load_fold(1)[0]
    stage = FeatureSelection(train, RankRLS(0.1), limits=Limits(max_features=3))
    stage.repairs = False
    X = np.arange(train.n_features) < np.array([[2], [3], [4]])
    assert stage.evaluate(X)[2].tolist() == list(stage.worst)
    assert (stage.evaluate(X)[:2] < stage.worst).all()


def test_a_study_reports_the_ablation_of_any_solvers(tiny_problem, tmp_path):
    small = MOFSRank(ensemble=False)
    ablate = {"base": small, "without crossover": MOFSRank(ensemble=False, feature_selection={"crossover": 0.0})}
    study = Study([tiny_problem], "fsmrank", tmp_path, folds=[1, 2], seeds=2, ablate=ablate).run()
    assert study.ablations == study.results().ablations == [{"base": "base", "without crossover": "without crossover"}]
    assert Study.load(tmp_path).ablations == study.ablations
    named = Study([tiny_problem], (), tmp_path, folds=[1, 2], ablate=ablations("mofsrank", ["ensemble"])).run()
    assert named.ablations == [{"mofsrank": "mofsrank", "mofsrank[ensemble=false]": "without ensemble"}]
    assert len(Study.load(tmp_path).ablations) == 2
    for wrong in ({"base": "mofsrank"}, {"base": "mofsrank", "again": "mofsrank"}):
        with pytest.raises(ValueError, match="ablate needs a base and other solvers"):
            Study([tiny_problem], (), tmp_path, ablate=wrong)

"""What a run reports is measured again here with the plainest means."""

import numpy as np
import pytest
from helpers.changes import replace

from moerank.data import RankingData
from moerank.metrics import MAP, NDCG
from moerank.mofsrank.settings import Settings
from moerank.rankers import RankRLS
from moerank.solvers import make_backend
from moerank.studies.problem import load_problem, make_problem
from moerank.studies.result import Result
from moerank.studies.run_fold import configuration, run_fold
from moerank.studies.solver import Solver

METRICS = {"NDCG@10": NDCG(10), "MAP": MAP()}


def test_values_are_those_of_the_weights(tiny_result, parts):
    assert len(tiny_result.front) > 1
    assert tiny_result.metrics == list(METRICS)
    for ranker in [*tiny_result.front, *tiny_result.baselines]:
        assert bool(ranker.per_query) == (ranker is tiny_result.best or ranker in tiny_result.baselines)
        for part, rows in parts.items():
            assert tiny_result.queries[part] == list(dict.fromkeys(rows.qid.tolist()))
            scores = rows.X[:, ranker.features] @ np.array(ranker.weights)
            for name, metric in METRICS.items():
                assert ranker.scores[part][name] == pytest.approx(metric.score(rows, scores), abs=1e-12)
                if ranker.per_query:
                    per_query = metric.per_query(rows, scores)
                    assert ranker.per_query[part][name] == pytest.approx(per_query, abs=1e-12)


def test_baselines(tiny_result, parts):
    every, single, fsm_rank = tiny_result.baselines
    assert [every.name, single.name, fsm_rank.name] == ["all features", "best single feature", "FSMRank"]
    assert every.features == tuple(range(parts["train"].n_features))
    assert every.parameters["alpha"] > 0
    ranked = {
        (feature, sign): NDCG(10).score(parts["train"], sign * parts["train"].X[:, feature])
        for feature in range(parts["train"].n_features)
        for sign in (1.0, -1.0)
    }
    best = max(ranked, key=ranked.get)
    assert (single.features, single.weights) == ((best[0],), (best[1],))
    assert 0 < len(fsm_rank.features) <= parts["train"].n_features
    assert all(fsm_rank.weights)


def test_a_feature_that_ranks_downwards_is_found_as_such():
    rng = np.random.default_rng(0)

    def part():
        labels = rng.permuted([[0, 0, 0, 1, 1, 2]] * 4, axis=1).ravel()
        queries = np.repeat(np.arange(4), 6)
        return RankingData(np.column_stack([rng.random(24), 1 - labels / 4 - queries]), labels, queries)

    problem = make_problem("upside", (part(), part(), part()), {"metric.name": "NDCG@3"})
    result = run_fold(problem, solver="rankrls")
    assert (result.baselines[0].features, result.baselines[0].weights) == ((1,), (-1.0,))
    assert result.baselines[0].scores["test"]["NDCG@3"] == 1.0


@pytest.mark.parametrize(
    ("solver", "stages"),
    [
        ("mofsrank", ["instance_selection", "feature_selection", "ensemble"]),
        ("mofsrank[instance_selection=false]", ["feature_selection", "ensemble"]),
        ("mofsrank[ensemble=false]", ["instance_selection", "feature_selection"]),
        ("mofsrank[adaptive_mutation=false]", ["instance_selection", "feature_selection", "ensemble"]),
    ],
)
def test_ablations_leave_out_their_stage(tiny_problem, solver, stages):
    seen = []
    result = run_fold(tiny_problem, solver=solver, progress=lambda stage, fraction, text: seen.append(stage))
    assert list(result.convergence) == list(result.times.stages) == stages
    assert list(dict.fromkeys(seen)) == ["baselines", *stages, "verdict", "FSMRank"]
    for stage in stages:
        history = result.convergence[stage]
        assert history.generation == [1, 2, 3]
        assert history.evaluations[-1] <= 24
        assert history.hypervolume == sorted(history.hypervolume)
    assert result.n_evaluations == sum(history.evaluations[-1] for history in result.convergence.values())


def test_a_ranker_is_tuned_and_stands_alone(tiny_problem, tiny_result):
    result = run_fold(tiny_problem, 2, solver="rankrls")
    assert result.convergence == {}
    assert [ranker.name for ranker in result.baselines] == ["best single feature", "FSMRank"]
    (ranker,) = result.front
    assert replace(ranker, name="all features", paired_error=None) == tiny_result.baselines[0]
    result = run_fold(tiny_problem, 2, solver="fsmrank")
    assert [baseline.name for baseline in result.baselines] == ["all features", "best single feature"]
    assert replace(result.best, name="FSMRank") == tiny_result.baselines[2]


def test_the_backend_of_the_problem_is_used(tiny_problem_file, tiny_result):
    fixed = {"backend.name": "ranksvm-primal", "backend.parameters": {"C": 0.5}, "backend.tune": False}
    result = run_fold(load_problem(tiny_problem_file, fixed), 2, seed=4)
    assert result.baselines[0].parameters["C"] == 0.5
    assert result.front != tiny_result.front
    with pytest.raises(ValueError, match="mofsrank cannot serve as a fitness backend; choose one of fsmrank"):
        run_fold(load_problem(tiny_problem_file, {"backend.name": "mofsrank"}))


def test_a_selection_without_a_front_shows_its_path(tiny_problem, parts):
    result = run_fold(tiny_problem, 2, solver="greedy-rankrls")
    sizes = [len(member.features) for member in result.front]
    assert sizes == list(range(1, parts["train"].n_features + 1))
    assert result.best.per_query
    assert not any(member.per_query for member in result.front if member is not result.best)
    assert set(result.front[2].features) < set(result.front[3].features)
    test = parts["test"]
    for member in (result.front[0], result.best):
        scores = test.X[:, member.features] @ member.weights
        assert member.scores["test"]["MAP"] == pytest.approx(MAP().score(test, scores), abs=1e-12)


def test_the_configuration_covers_what_the_solver_takes(tiny_problem, tiny_problem_file):
    longer = load_problem(tiny_problem_file, {"ensemble.generations": 7})
    other = load_problem(tiny_problem_file, {"backend.name": "ranksvm-primal"})

    def changes(solver, problem, **settings):
        before, after = (
            configuration(entry, 1, Solver(name=solver), 0, **settings) for entry in (tiny_problem, problem)
        )
        return before != after

    assert changes("mofsrank", longer, baselines=False)
    assert not changes("rankrls", longer)
    assert changes("rankrls", other)  # the baselines are those of the backend
    assert not changes("rankrls", other, baselines=False)
    assert changes("mofsrank", other, baselines=False)
    wider = load_problem(tiny_problem_file, {"search.margin": 0.03})
    assert changes("mofsrank", wider) and changes("gas", wider)


def test_selections_have_a_verdict_and_rankers_have_none(tiny_problem_file, parts):
    wider = load_problem(tiny_problem_file, {"search.margin": 0.03})
    result = run_fold(wider, 2, solver="greedy-rankrls")
    everything = RankRLS(loss="query").tune(parts["train"], parts["validation"]).fit(parts["train"])
    values = NDCG(10).per_query(parts["test"], everything.predict(parts["test"]))
    d = np.subtract(result.best.per_query["test"]["NDCG@10"], values)
    assert result.verdict.difference == pytest.approx(d.mean(), abs=1e-12)
    assert (result.verdict.margin, result.verdict.against) == (0.03, repr(everything))
    assert Result.from_json(result.to_json()) == result
    assert run_fold(wider, 2, solver="rankrls").verdict is None


@pytest.mark.parametrize(
    ("solver", "settings", "selects_instances"),
    [
        ("mofsrank", {}, False),
        ("mofsrank", {"instance_selection.generations": 2}, True),
        ('mofsrank[instance_selection={"generations":2,"population":4}]', {}, True),
        ("mofsrank[backend=rankrls]", {}, True),
    ],
)
def test_an_additive_backend_selects_instances_where_one_asks(parts, solver, settings, selects_instances):
    settings = {"backend.name": "additive", "feature_selection.generations": 1, "ensemble.generations": 1, **settings}
    problem = make_problem("shop", tuple(parts.values()), settings)
    spec = problem.spec(Solver.parse(solver))
    assert ("instance_selection" in configuration(problem, 1, spec, 0)) == selects_instances
    made = spec.make(problem, problem.offers() | {"backend": make_backend(problem.backend.name)})
    assert (Settings.of(made.get_params(deep=False)).instance_selection is not None) == selects_instances
    if not selects_instances:
        assert list(run_fold(problem, solver=solver, baselines=False).convergence) == ["feature_selection", "ensemble"]


def test_the_shapes_of_a_ranker_by_trees_of_one_or_two_features_are_stored(parts):
    problem = make_problem("tiny", tuple(parts.values()))
    result = run_fold(problem, 1, "additive[alpha=0.01,interactions=2]", baselines=False)
    names = set(result.names(result.best.features))
    assert {name for shape in result.shapes for name in shape.features} == names
    assert sum(len(shape.features) == 2 for shape in result.shapes) <= 2
    assert run_fold(problem, 1, "rankrls", baselines=False).shapes == []

"""What a run reports is measured again here with the plainest means."""

import json

import numpy as np
import pytest
from helpers.changes import replace

from moerank.data import PER_QUERY, RankingData, fit_scaling, load_planted_fold
from moerank.metrics import MAP, NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import RankBoost, RankRLS
from moerank.rankers.lambda_mart import LambdaMART
from moerank.runs.problem import load_problem, make_problem, with_settings
from moerank.runs.result import Result, write_result
from moerank.runs.run_fold import run_fold
from moerank.runs.solver import GivenSolver, NamedSolver, configuration
from moerank.verdict import compare

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
    every, single = tiny_result.baselines
    assert [every.name, single.name] == ["all features", "best single feature"]
    assert every.features == tuple(range(parts["train"].n_features))
    assert every.parameters["alpha"] > 0
    ranked = {
        (feature, sign): NDCG(10).score(parts["train"], sign * parts["train"].X[:, feature])
        for feature in range(parts["train"].n_features)
        for sign in (1.0, -1.0)
    }
    best = max(ranked, key=ranked.get)
    assert (single.features, single.weights) == ((best[0],), (best[1],))


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
    ],
)
def test_ablations_leave_out_their_stage(tiny_problem, solver, stages):
    seen = []
    result = run_fold(tiny_problem, solver=solver, progress=lambda stage, fraction, text: seen.append(stage))
    assert list(result.convergence) == list(result.times.stages) == stages
    assert list(dict.fromkeys(seen)) == ["baselines", *stages]
    for stage in stages:
        history = result.convergence[stage]
        assert history.generation == [1, 2, 3]
        assert history.evaluations[-1] <= 24
        assert history.hypervolume == sorted(history.hypervolume)
    assert result.n_evaluations == sum(history.evaluations[-1] for history in result.convergence.values())


def test_a_ranker_is_tuned_and_stands_alone(tiny_problem, tiny_result):
    result = run_fold(tiny_problem, 2, solver="rankrls")
    assert result.convergence == {}
    assert [ranker.name for ranker in result.baselines] == ["best single feature"]
    (ranker,) = result.front
    assert replace(ranker, name="all features", difference_interval=None) == tiny_result.baselines[0]


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
            configuration(entry, 1, NamedSolver(name=solver), 0, **settings) for entry in (tiny_problem, problem)
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
        ("mofsrank", {"instance_selection.generations": 2}, False),
        ('mofsrank[instance_selection={"generations":2,"population":4}]', {}, True),
        ("mofsrank[backend=rankrls]", {"instance_selection.generations": 2}, True),
    ],
)
def test_an_additive_backend_selects_instances_where_the_solver_asks(parts, solver, settings, selects_instances):
    settings = {"backend.name": "additive", "feature_selection.generations": 1, "ensemble.generations": 1, **settings}
    problem = make_problem("shop", tuple(parts.values()), settings)
    settings = configuration(problem, 1, NamedSolver.parse(solver), 0)
    assert ("instance_selection" in settings) == selects_instances
    stages = run_fold(problem, solver=solver, baselines=False).convergence
    assert list(stages) == ["instance_selection"] * selects_instances + ["feature_selection", "ensemble"]
    assert len(stages.get("instance_selection", stages["ensemble"]).evaluations) <= 2


def test_the_shapes_of_a_ranker_by_trees_of_one_or_two_features_are_stored(parts):
    problem = make_problem("tiny", tuple(part.with_features(np.arange(20) < 8) for part in parts.values()))
    result = run_fold(problem, 1, "additive[alpha=0.01,interactions=2]", baselines=False)
    names = set(result.names(result.best.features))
    assert {name for shape in result.shapes for name in shape.features} == names
    assert sum(len(shape.features) == 2 for shape in result.shapes) <= 2
    assert run_fold(problem, 1, "rankrls", baselines=False).shapes == []


SMALL = {"population": 8, "generations": 3}


def problem_of(label):
    """Return a problem in which the label of a document is a function of two of its features."""
    X = np.random.default_rng(0).normal(size=(3000, 4)).round(3)
    data = RankingData(X, [label(*x[:2]) for x in X], np.arange(3000) // 20)
    return make_problem("shop", data, dict.fromkeys(("feature_selection", "ensemble", "instance_selection"), SMALL))


@pytest.mark.parametrize(
    ("label", "found"), [(lambda a, b: int(a * b > 0), True), (lambda a, b: int(a + b > 1), False)]
)
def test_the_verdict_names_trees_that_are_detectably_better(label, found):
    problem = problem_of(label)
    result = run_fold(problem)
    trees = result.baselines[-1]
    assert trees.name == "LambdaMART"
    said = "LambdaMART on all features is better by" in result.verdict.sentence
    assert said == found
    train, validation, test = problem.load_fold(1)
    forms = LambdaMART(n_trees=100, min_leaf=round(0.0025 * train.n_documents))
    ranker = forms.stopped(train, validation).fit(train)
    for name, metric in (("NDCG@10", NDCG(10)), ("MAP", MAP())):
        assert trees.scores["test"][name] == pytest.approx(metric.score(test, ranker.predict(test)), abs=1e-12)
    if found:
        loss = trees.scores["test"]["NDCG@10"] - result.best.scores["test"]["NDCG@10"]
        assert f"better by {loss:.3f}".replace("0.", ".") in result.verdict.sentence


def test_a_verdict_in_python_says_what_that_of_a_run_says():
    held = []

    def made(problem, seed):
        stages = {"instance_selection": False, "feature_selection": SMALL, "ensemble": False}
        held.append(MOFSRank(**stages, random_state=seed))
        return held[-1]

    for label in (lambda a, b: int(a * b > 0), lambda a, b: int(a + b > 1)):
        problem = problem_of(label)
        result = run_fold(problem, solver=GivenSolver.of(made, "mine"))
        train, validation, test = problem.load_fold(1)
        assert held[-1].verdict(test, train=train, validation=validation) == result.verdict
        alone = held[-1].verdict(test)
        decided = {name: getattr(alone, name) for name in ("decision", "advice")}
        assert alone == result.verdict.model_copy(update={"rival": "", "other": "", **decided})


def test_a_run_says_weighted_means():
    weighted_parts = []
    for seed, part in enumerate(load_planted_fold(1, n_queries=400, n_documents=10)):
        weights = np.random.default_rng(seed).integers(1, 9, part.n_queries)
        weighted_parts.append(RankingData(part.X, part.y, part.qid, name=part.name, query_weights=weights))
    settings = {"comparison.trees": 0, "metric.name": "NDCG@5", "backend.tune": False}
    problem = make_problem("mine", tuple(weighted_parts), settings)
    result = run_fold(problem, solver="rankrls[alpha=0.5]", seed=2)
    ranker = RankRLS(alpha=0.5).fit(weighted_parts[0])
    for name, part in zip(("train", "validation", "test"), weighted_parts, strict=True):
        values = NDCG(5).per_query(part, part.X @ ranker.coef_)
        mean = values @ part.query_weights / part.query_weights.sum()
        assert abs(mean - values.mean()) > 1e-4
        assert result.best.scores[name]["NDCG@5"] == pytest.approx(mean, abs=1e-12)
        assert np.mean(result.best.per_query[name]["NDCG@5"]) == pytest.approx(mean, abs=1e-12)
        assert result.best.further[name]["NDCG@3"] == pytest.approx(
            NDCG(3).per_query(part, part.X @ ranker.coef_) @ part.query_weights / part.query_weights.sum(), abs=1e-12
        )
    result = run_fold(problem, solver="lambdamart[n_trees=5,min_leaf=3]")
    everything = next(member for member in result.baselines if member.name == "all features")
    d, weights = np.subtract(*(r.per_query["test"]["NDCG@5"] for r in (result.best, everything))), part.query_weights
    share = weights[differs := NDCG(5).can_differ(part)].sum() / weights.sum()
    expected = compare(d[differs], weights[differs]).interval
    assert result.best.difference_interval == pytest.approx([share * end for end in expected], rel=1e-9)


STAIRCASE = 'mofsrank-staircase[instance_selection=false,ensemble=false,feature_selection={"generations":2}]'


@pytest.mark.parametrize("heavy", [2, 900])
def test_the_interval_of_a_member_counts_weighted_queries_as_the_verdict_does(heavy):
    parts = []
    for part in load_planted_fold(1, n_queries=240, n_documents=8):
        weights = np.where(np.arange(part.n_queries) % 7 == 0, heavy, 1.0)
        parts.append(RankingData(part.X, part.y, part.qid, name=part.name, query_weights=weights))
    settings = {"comparison.trees": 0, "metric.name": "NDCG@5", "backend.tune": False}
    result = run_fold(make_problem("mine", tuple(parts), settings), solver=STAIRCASE)
    every = next(ranker for ranker in result.baselines if ranker.name == "all features")
    differences = np.subtract(*(ranker.per_query["test"]["NDCG@5"] for ranker in (result.best, every)))
    counted = NDCG(5).can_differ(parts[2])
    weights = parts[2].query_weights
    low, high = compare(differences[counted] * weights.mean(), weights[counted]).interval
    share = weights[counted].sum() / weights.sum()
    if heavy > 2:  # few queries decide
        assert low == -np.inf
        assert result.best.difference_interval is None
    else:
        assert result.best.difference_interval == pytest.approx((share * low, share * high), rel=1e-9)


def test_all_members_are_those_of_the_search_with_the_ranker_that_serves(tiny_problem_file, tiny_result, tiny_problem):
    refitted = run_fold(load_problem(tiny_problem_file, {"serve.rankers": "rankboost"}), 2, seed=4)
    train, vali, test = tiny_problem.load_fold(2)
    of_search = {member.features for member in tiny_result.front}
    assert {member.features for member in refitted.front} <= of_search
    tuned = RankBoost().tune(train, vali)
    for member in refitted.front:
        part, columns = train.with_features(np.isin(range(train.n_features), member.features)), list(member.features)
        scores = tuned.fit(part.X, part.y, qid=part.qid).predict(test.X[:, columns])
        assert member.scores["test"]["NDCG@10"] == pytest.approx(NDCG(10).score(test, scores), abs=1e-12)
    values = [member.scores["validation"]["NDCG@10"] for member in refitted.front]
    assert refitted.chosen == int(np.argmax(values))
    read = Result.from_json(refitted.to_json())
    assert read == refitted
    for number, member in enumerate(read.front):  # only the chosen member is stored with its trees
        assert (member.trees is not None) == bool(member.per_query) == (number == read.chosen)
    scores = read.model(read.best).scores(test.X)
    assert NDCG(10).score(test, scores) == pytest.approx(read.best.scores["test"]["NDCG@10"], abs=1e-12)


@pytest.mark.parametrize(
    ("solver", "kind"),
    [("mofsrank", "minmax"), ("lambdamart[n_trees=20]", "standard"), ("ranksvm-kernel[C=1.0]", "query")],
)
def test_a_result_is_read_as_it_was_written_and_its_models_take_raw_values(tiny_problem, tmp_path, solver, kind):
    rng, raw = np.random.default_rng(0), []
    for part in tiny_problem.load_fold(1):
        X = part.X * np.arange(1, part.n_features + 1) + 3
        X[rng.random(X.shape) < 0.1] = np.nan
        raw.append(RankingData(X, part.y, part.qid, missing=0.5))
    budget = tiny_problem.model_dump(exclude_unset=True, exclude={"name", "data"})
    result = run_fold(make_problem("mine", tuple(raw), {"data.normalize": kind, **budget}), solver=solver)
    scaling = fit_scaling(raw[0], kind)
    assert (result.scaling, result.missing) == (scaling, 0.5)
    again = Result.from_json(result.to_json())
    assert again == result
    for member in [*again.front, *again.baselines]:
        model = again.model(member)
        assert model.missing == 0.5
        assert model.scaling.kind == kind
        if model.weights is None and model.trees is None:
            continue
        table = raw[2].X if kind != "query" else scaling.apply(raw[2]).X
        assert MAP().score(raw[2], model.scores(table)) == pytest.approx(member.scores["test"]["MAP"])
    write_result(result, tmp_path)
    model = json.loads((tmp_path / "model.json").read_text())
    assert (model["scaling"]["kind"], model["missing"]) == (kind, 0.5)


def test_data_that_came_scaled_are_remembered(tiny_problem):
    result = run_fold(with_settings(tiny_problem, {"data.scaled": "query"}), solver="rankrls")
    assert json.loads(result.to_json())["scaling"] == {"kind": "query"}
    assert Result.from_json(result.to_json()).scaling == PER_QUERY

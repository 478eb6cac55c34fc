"""What tables and figures take from the results of a study, computed again with the plainest means."""

import csv
import errno
import os
import statistics

import numpy as np
import pandas as pd
import pytest
from helpers.changes import replace
from helpers.further_objective import cost, with_cost
from helpers.plain import front as non_dominated_points
from scipy import stats

from moerank.files import replace_file
from moerank.metrics import MAP, NDCG, MeanNDCG, Precision
from moerank.rankers.model import Model
from moerank.runs.result import write_result
from moerank.runs.run_fold import every_metric, run_fold
from moerank.statistics import Tail
from moerank.studies.results import (
    NoResultsError,
    Results,
    best_by_size,
    by_validation,
    chosen_solver,
    feature_stability,
    front_points,
    front_quality,
    mean_by_size,
    offers_sizes,
    results_frame,
    verdicts,
)
from moerank.verdict import judge


def test_results_are_chosen_by_problem_and_solver(results):
    elsewhere = [replace(result, problem="other") for result in results]
    both = Results([*results, *elsewhere])
    assert both.problems == ["tiny", "other"]
    assert list(both.of("other")) == elsewhere
    some = results.among(["mofsrank", "fsmrank"])
    assert some.solvers == ["mofsrank", "fsmrank"]  # in the order that was asked for
    assert sorted(map(id, some)) == sorted(id(r) for r in results if r.solver in ("mofsrank", "fsmrank"))
    assert results.among([]) is results
    with pytest.raises(NoResultsError, match="no finished run of elsewhere"):
        both.of("elsewhere")
    with pytest.raises(ValueError, match="did you mean 'fsmrank'"):
        results.among(["fsmrnk"])
    with pytest.raises(NoResultsError, match="no finished run"):
        _ = Results([]).metric


def test_means_are_over_folds_after_seeds(results):
    means, errors = results.means()
    assert means.index.tolist() == results.solvers
    for solver in means.index:
        runs = [run for run in results if run.solver == solver]
        values = {
            "n_features": lambda run: len(run.best.features),
            "test MAP": lambda run: run.best.scores["test"]["MAP"],
            "train NDCG@10": lambda run: run.best.scores["train"]["NDCG@10"],
            "seconds": lambda run: run.times.tuning + run.times.solver,
        }
        for column, value in values.items():
            folds = [statistics.fmean(value(run) for run in runs if run.fold == fold) for fold in (1, 2)]
            assert means.at[solver, column] == pytest.approx(statistics.fmean(folds), rel=1e-14)
            assert errors.at[solver, column] == pytest.approx(statistics.stdev(folds) / 2**0.5, rel=1e-9, abs=1e-15)


def test_baselines_are_results_of_their_own(tiny_result):
    found = Results([tiny_result]).with_baselines()
    assert found.solvers == ["mofsrank", "all features", "best single feature"]
    assert [result.best for result in found] == [tiny_result.best, *tiny_result.baselines]
    assert found[0] is tiny_result
    own = found.frame[["training seconds", "tuning seconds"]].notna().all(axis=1)
    assert own.tolist() == [True, False, False]  # those of the solver are not those of the baselines


def test_objectives_are_those_of_all_results_and_further_ones_those_of_any(results):
    assert results.objectives == ["features", "error"]
    assert results.further_objectives == []
    priced = Results(with_cost(result) for result in results)
    assert (priced.objectives, priced.further_objectives) == (["features", "error", "cost"], ["cost"])
    mixed = Results([*priced, results[0]])
    assert (mixed.objectives, mixed.further_objectives) == (["features", "error"], ["cost"])
    costs = [
        statistics.fmean(r.best.objectives["cost"] for r in priced.among(["mofsrank"]) if r.fold == f) for f in (1, 2)
    ]
    assert priced.means()[0].at["mofsrank", "cost"] == pytest.approx(statistics.fmean(costs))
    assert Results([]).objectives == Results([]).further_objectives == []


def covered(points, ideal, reference):
    """The share of the box that points dominate: the box is cut at every coordinate, and each piece is in or out."""
    sides = zip(points.T, ideal, reference, strict=True)
    cuts = [np.unique([low, high, *np.clip(values, low, high)]) for values, low, high in sides]
    corners = np.stack(np.meshgrid(*(cut[:-1] for cut in cuts), indexing="ij"), axis=-1)
    inside = np.any([(point <= corners).all(axis=-1) for point in points], axis=0)
    volumes = np.prod(np.stack(np.meshgrid(*(np.diff(cut) for cut in cuts), indexing="ij"), axis=-1), axis=-1)
    return volumes[inside].sum() / np.prod(np.subtract(reference, ideal))


@pytest.mark.parametrize("further", [lambda run: run, with_cost, lambda run: replace(run, objectives=["error"])])
def test_quality_is_measured_in_all_objectives_against_all_of_the_fold(results, further):
    every = Results(map(further, results))
    table = front_quality(every)
    for fold in (1, 2):
        runs = [result for result in every if result.fold == fold]
        everything = np.concatenate([front_points(run) for run in runs])
        largest = {"features": 20.0, "error": 1.0, "cost": cost(range(20))}
        ideal, reference = np.zeros(everything.shape[1]), np.array([largest[name] for name in every.objectives])
        target = non_dominated_points(everything)
        for result, (_, row) in zip(runs, table[table["fold"] == fold].iterrows(), strict=True):
            points = front_points(result)
            values = {
                "features": [len(member.features) for member in result.front],
                "error": [1.0 - member.scores["train"]["NDCG@10"] for member in result.front],
                "cost": [cost(member.features) for member in result.front],
            }
            assert points.T.tolist() == [values[name] for name in every.objectives]
            assert row["hypervolume"] == pytest.approx(covered(points, ideal, reference), rel=1e-9, abs=1e-12)
            side = reference - ideal
            gaps = np.maximum(points[None] - target[:, None], 0.0) / side
            assert row["igd_plus"] == pytest.approx(np.sqrt((gaps**2).sum(axis=2)).min(axis=1).mean(), abs=1e-12)


def test_an_objective_that_is_the_same_for_all_changes_no_hypervolume(results):
    def level(member):
        return replace(member, objectives={**member.objectives, "level": 7.0})

    changes = {"objectives": [*results.objectives, "level"], "box": {**results[0].box, "level": (7.0, 7.0)}}
    flat = Results(replace(r, **changes, front=[level(m) for m in r.front]) for r in results)
    np.testing.assert_allclose(front_quality(flat)["hypervolume"], front_quality(results)["hypervolume"], rtol=1e-12)


def test_hypervolumes_of_figures_and_tables_are_one_number(results):
    table = front_quality(results).set_index(["solver", "fold", "seed"])["hypervolume"]
    searches = [run for run in results if run.convergence]
    for run in searches:
        assert run.box == {"features": (0.0, 20.0), "error": (0.0, 1.0)}
        last = list(run.convergence.values())[-1].hypervolume[-1]
        assert table[run.solver, run.fold, run.seed] == pytest.approx(last, rel=1e-12)
    assert searches


def test_only_fronts_of_one_goal_are_compared(results):
    other = [replace(with_cost(run), solver="own") for run in results if run.solver == "mofsrank"]
    both = Results([*results, *other])
    assert list(both.alike()) == ["features, error by NDCG@10", "features, error, cost by NDCG@10"]
    apart = pd.concat([front_quality(results), front_quality(Results(other))], ignore_index=True)
    pd.testing.assert_frame_equal(front_quality(both), apart)


METRIC = "NDCG@10"


@pytest.fixture(scope="module")
def run(tiny_study):
    return next(result for result in tiny_study.results() if result.solver == "fsmrank")


def made(run, solver, fold=1, validation=0.5, test=(0.5,), columns=2):
    """Return a run of a solver that takes the first columns, with this validation mean and these test queries."""
    scores = {"train": {METRIC: 0.5}, "validation": {METRIC: validation}, "test": {METRIC: float(np.mean(test))}}
    few = {"features": run.best.features[:columns], "weights": run.best.weights[:columns]}
    values = {"validation": [validation], "test": test}
    per_query = {part: {METRIC: np.resize(of_part, len(run.queries[part]))} for part, of_part in values.items()}
    best = replace(run.best, **few, scores=scores, per_query=per_query)
    return replace(run, solver=solver, fold=fold, metrics=[METRIC], front=[best], chosen=0)


def test_validation_chooses_and_ties_go_to_fewer_features(run):
    results = [made(run, "a", validation=0.6, columns=5), made(run, "b", validation=0.6, columns=3)]
    results += [made(run, "c", validation=0.7), made(run, "d", validation=0.5, test=(0.9, 0.8))]
    assert by_validation(Results(results)) == ["c", "b", "a", "d"]


def test_test_queries_have_no_say_in_the_choice(run):
    for best, other in ((0.9, 0.1), (0.1, 0.9)):
        results = Results([made(run, "a", validation=0.7, test=(best,)), made(run, "b", test=(other,))])
        chosen, others = chosen_solver(results)
        assert (chosen["solver"], others) == ("a", ["b"])


def test_what_selects_nothing_is_compared_and_not_chosen(run):
    ranker = replace(made(run, "ranker", validation=0.9), verdict=None)
    chosen, others = chosen_solver(Results([ranker, made(run, "a")]))
    assert (chosen["solver"], others) == ("a", [])
    with pytest.raises(NoResultsError, match="no finished run selects features and has a verdict on test queries"):
        chosen_solver(Results([ranker]))


def test_the_decision_on_a_single_run_is_that_of_the_run(results):
    for run in results.among(["mofsrank"]):
        for decision, advice in (
            ("use", ""),
            ("loss", "On validation this set ranked worse"),
            ("try", "Only 6 can tell"),
        ):
            verdict = run.verdict.model_copy(update={"decision": decision, "advice": advice})
            chosen, _ = chosen_solver(Results([replace(run, verdict=verdict)]))
            assert chosen["verdict"].sentence == verdict.sentence


def test_several_runs_decide_as_most_of_them(results):
    run = next(run for run in results if run.solver == "mofsrank")
    given = zip(("keep", "use", "use"), ("A", "B", "B"), strict=True)
    fields = [{"decision": decision, "advice": "of one run", "ranker": ranker} for decision, ranker in given]
    runs = [replace(run, seed=seed, verdict=run.verdict.model_copy(update=each)) for seed, each in enumerate(fields)]
    verdict = chosen_solver(Results(runs))[0]["verdict"]
    assert verdict.sentence.startswith(f"Use {verdict.n_features} of 20 features, ranked by B; estimated ")
    assert verdict.sentence.endswith(". 2 of 3 runs decide so")
    undecided = [replace(each, verdict=each.verdict.model_copy(update={"decision": "none"})) for each in runs]
    assert chosen_solver(Results(undecided))[0]["verdict"].advice == ""


def test_a_better_ranker_on_all_features_is_the_decision(results):
    """The best of them by validation is compared; it decides if validation prefers it by a paired error."""
    run = next(run for run in results if run.solver == "mofsrank")
    rng, n = np.random.default_rng(0), 400
    ids, d = [str(query) for query in range(n)], rng.normal(-0.1, 0.1, (2, n))
    half = np.full(n, 0.5)

    def of(solver, per_query, **fields):
        scores = {part: {METRIC: float(np.mean(values))} for part, values in per_query.items()}
        values = {part: {METRIC: values.tolist()} for part, values in per_query.items()}
        best = replace(run.best, scores={**scores, "train": {METRIC: 0.5}}, per_query=values)
        queries = {"train": ids, "validation": ids, "test": ids}
        fields |= {"queries": queries, "differing": list(range(n)), "metrics": [METRIC], "front": [best], "chosen": 0}
        return replace(run, solver=solver, **fields)

    verdict = judge(half, half - d[1], "test", METRIC, 5, 20, decision="use")
    chosen = of("chosen", {"validation": half + d[0], "test": half + d[1]}, verdict=verdict)
    rankers = [of("worse", {"validation": half - 1, "test": half + 9}, verdict=None)]
    for name, gain in (("better", 0.0), ("no better", -0.1)):
        rankers = [*rankers[:1], of(name, {"validation": half + gain, "test": half}, verdict=None)]
        found = chosen_solver(Results([chosen, *rankers]))[0]["verdict"]
        assert found.rival.startswith(f"{name} on all features is better by .{-1000 * d[1].mean():.0f} (95 %: ")
        if gain:
            assert (found.decision, found.headline) == ("use", "5 of 20 features rank worse")
        else:
            assert found.headline == "better with all 20 features ranks better"
            error = stats.sem(d[0])
            assert f"better by .{-1000 * d[0].mean():.0f} ± .{1000 * error:03.0f}; " in found.advice
            assert 'rankers = "better"' in found.advice


def test_only_folds_that_all_of_them_have_count(run):
    """The second fold alone would make the first solver the best."""
    results = [made(run, "a", 1, 0.5), made(run, "a", 2, 0.99), made(run, "b", 1, 0.6)]
    chosen, _ = chosen_solver(Results(results))
    assert chosen["solver"] == "b"
    assert by_validation(Results(results)) == ["a", "b"]
    with pytest.raises(NoResultsError, match="no fold in common yet"):
        chosen_solver(Results(results[1:]))


def offering(result, members):
    """Return the result with members of given sizes and values in validation and in the test."""
    front = [
        replace(
            result.best,
            features=tuple(range(size)),
            weights=(1.0,) * size,
            scores={"validation": {"NDCG@10": validation}, "test": {"NDCG@10": test}},
        )
        for size, validation, test in members
    ]
    return replace(result, front=front, chosen=0, feature_names=list("abcdef"))


def test_the_best_is_chosen_by_validation_with_ties_to_fewer_features(tiny_result):
    run = offering(tiny_result, [(2, 0.5, 0.1), (3, 0.5, 0.9), (4, 0.7, 0.2), (5, 0.6, 0.8)])
    np.testing.assert_array_equal(best_by_size(run, "test", "NDCG@10", "validation"), [np.nan, 0.1, 0.1, 0.2, 0.2, 0.2])
    on_test = best_by_size(run, "test", "NDCG@10", chosen_on="test")
    np.testing.assert_array_equal(on_test, [np.nan, 0.1, 0.9, 0.9, 0.9, 0.9])


def test_means_are_over_seeds_first_and_need_every_run(tiny_result):
    one, two, three = (
        offering(tiny_result, [(1, 0.1, a), (2, 0.2, b)]) for a, b in ((0.2, 0.4), (0.4, 0.8), (0.1, 0.2))
    )
    mean = mean_by_size({1: [one, two], 2: [three]}, "test", "NDCG@10")
    np.testing.assert_allclose(mean, [0.2, *[0.4] * 5], rtol=1e-15)
    late = offering(tiny_result, [(2, 0.2, 0.4)])
    np.testing.assert_array_equal(np.isnan(mean_by_size({1: [one, late]}, "test", "NDCG@10")), [True, *[False] * 5])
    assert offers_sizes({1: [late], 2: [one]})
    assert not offers_sizes({1: [late]})


METRICS = [*map(NDCG, range(1, 11)), *map(Precision, range(1, 11)), MAP(), MeanNDCG()]


def test_every_metric_of_a_run_is_that_of_its_weights(tiny_problem, tiny_result):
    row = results_frame([tiny_result]).iloc[0]
    best = tiny_result.best
    for part, data in zip(("train", "validation", "test"), tiny_problem.load_fold(2), strict=True):
        scores = data.X[:, list(best.features)] @ np.array(best.weights)
        for metric in METRICS:
            assert row[f"{part} {metric.name}"] == pytest.approx(metric.score(data, scores), abs=1e-12)


def test_metrics_follow_the_conventions_of_the_problem():
    names = [metric.name for metric in every_metric(NDCG(5, gain="linear", convention="letor"))]
    assert names[0] == "NDCG@1 (gain=linear, letor)"
    assert names[-1] == "MeanNDCG (gain=linear, letor)"
    assert names[10:12] == ["P@1", "P@2"]


def test_baselines_have_every_metric_and_other_members_those_of_the_tables(tiny_result):
    assert all(baseline.further.keys() == {"train", "validation", "test"} for baseline in tiny_result.baselines)
    others = [member for number, member in enumerate(tiny_result.front) if number != tiny_result.chosen]
    assert not any(member.further for member in others)
    frame = results_frame([tiny_result], members=True)
    assert frame["test MAP"].tolist() == [member.scores["test"]["MAP"] for member in tiny_result.front]
    assert frame["test P@1"].notna().tolist() == frame["chosen"].tolist()


def test_stability_of_a_worked_example():
    jaccard, corrected = feature_stability([[0, 1], [0, 1], [0, 2]], 10)
    assert jaccard == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)
    # Two random pairs out of ten share both with chance 1/45, one with 16/45.
    expected = 1 / 45 + 16 / 45 / 3
    assert corrected == pytest.approx((jaccard - expected) / (1 - expected))
    assert feature_stability([[0], [0, 1]], 3)[1] == pytest.approx(1 / 4)  # by chance 1/2 in two of three cases
    assert feature_stability([[1, 2]] * 4, 12) == (1.0, 1.0)


def test_verdicts_are_means_over_all_queries_after_seeds(results, tiny_problem):
    found = verdicts(results).set_index("solver")
    assert dict(found["against"]) == {
        "fsmrank": "RankSVM",
        "mofsrank": "",
        "mofsrank[ensemble=false]": "",
        "greedy-rankrls": "RankRLS",
    }
    found = found[found["against"] == ""]
    everything = {fold: run_fold(tiny_problem, fold, "single").baselines[0].per_query["test"] for fold in (1, 2)}
    metric = results.metric
    for solver, row in found.iterrows():
        mine = [result for result in results if result.solver == solver]
        folds = {fold: [r.best.per_query["test"][metric] for r in mine if r.fold == fold] for fold in (1, 2)}
        d = [np.mean(runs, axis=0) - everything[fold][metric] for fold, runs in folds.items()]
        assert row["verdict"].difference == pytest.approx(np.concatenate(d).mean(), abs=1e-12)
        assert row["verdict"].error == pytest.approx(stats.sem(np.concatenate(d)))
        assert (row["verdict"].n_queries, row["runs"]) == (len(np.concatenate(d)), len(mine))


def test_findings_of_the_runs_are_counted(results):
    run = next(r for r in results if r.solver == "fsmrank")
    differences = np.multiply.outer([-1, 0, 1], SPREAD)
    half, allowed = np.full(400, 0.5), (20, 18, 16)  # features that vary in each fold
    found = [judge(0.5 + d, half, "test", "NDCG@10", 5, n) for d, n in zip(differences, allowed, strict=True)]
    found[0] = found[0].with_chance(found[0])
    runs = [
        replace(
            run,
            verdict=verdict,
            fold=fold,
            configuration={**run.configuration, "fold": fold},
            queries={**run.queries, "test": [f"{query} of fold {fold}" for query in range(400)]},
            differing=list(range(400)),
        )
        for fold, verdict in enumerate(found, start=1)
    ]
    (row,) = verdicts(Results(runs)).itertuples()
    assert (row.runs, row.loss, row.gain, row.equivalent) == (3, 1, 1, 0)
    assert (row.verdict.n_differing, row.verdict.weights) == (1200, None)
    assert row.verdict.title.startswith("5 of 18 features: ")  # only the first run was not better than a random order


def test_a_verdict_over_folds_counts_queries_by_their_weights(results):
    """A query of one fold is a training query of another, so other parts add nothing but their heaviest query."""
    run, rng = next(r for r in results if r.solver == "fsmrank"), np.random.default_rng(1)
    d, w = rng.normal(-0.05, 0.1, (2, 400)), rng.lognormal(0, 0.6, (2, 400))
    tails = Tail(1200, 0.8, 4.0), Tail(1200, 0.9, 5.0)
    weighted, half = d * w / w.mean(axis=1, keepdims=True), np.full(400, 0.5)
    runs = [
        replace(
            run,
            verdict=judge(0.5 + x, half, "test", "NDCG@10", 5, 20, weights=v, tail=tail),
            fold=fold,
            configuration={**run.configuration, "fold": fold},
            queries={**run.queries, "test": [f"{query} of fold {fold}" for query in range(400)]},
            differing=list(range(400)),
        )
        for fold, (x, v, tail) in enumerate(zip(weighted, w, tails, strict=True), start=1)
    ]
    (row,) = verdicts(Results(runs)).itertuples()
    w = w / w.mean(axis=1, keepdims=True)
    assert row.verdict.difference == pytest.approx(np.average(d, weights=w), rel=1e-12)
    assert row.verdict.n_effective == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-12)
    assert row.verdict.tail == (0, 0.0, 5.0)
    (row,) = verdicts(Results(runs[1:])).itertuples()
    assert (row.verdict.tail, row.verdict.interval) == (tails[1], pytest.approx(runs[1].verdict.interval, rel=1e-12))


SPREAD = np.tile([0.01, 0.03], 200)


def test_the_files_have_the_front_and_the_chosen_model(tiny_result, tmp_path):
    write_result(tiny_result, tmp_path)
    assert Model.from_json((tmp_path / "model.json").read_text()) == tiny_result.model(tiny_result.best)
    with (tmp_path / "front.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(tiny_result.front)
    for row, member in zip(rows, tiny_result.front, strict=True):
        assert int(row["n_features"]) == len(row["features"].split("; ")) == len(member.features)
        assert float(row["validation MAP"]) == member.scores["validation"]["MAP"]
    assert [int(row["chosen"]) for row in rows].index(1) == tiny_result.chosen


def test_front_table_has_a_column_for_each_further_objective(tiny_result, tmp_path):
    write_result(tiny_result, tmp_path)
    plain = (tmp_path / "front.csv").read_text().splitlines()
    write_result(with_cost(tiny_result), tmp_path)
    with (tmp_path / "front.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head[2] == "cost"
    for row, member in zip(rows, tiny_result.front, strict=True):
        assert float(row[2]) == cost(member.features)
    assert [",".join([*row[:2], *row[3:]]) for row in (head, *rows)] == plain


def test_a_spreadsheet_runs_no_name_of_the_front_table(tiny_result, tmp_path):
    hostile = [f"{sign}cmd|' /C calc'!A{k}" for k, sign in enumerate("=+-@\ta", 1)]
    names = (hostile * len(tiny_result.feature_names))[: len(tiny_result.feature_names)]
    names = [f"{name}{k}" for k, name in enumerate(names)]
    write_result(tiny_result.model_copy(update={"feature_names": names}), tmp_path)
    with (tmp_path / "front.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    shown = {name for row in rows for name in row["features"].split("; ")}
    members = {name for member in tiny_result.front for name in (names[feature] for feature in member.features)}
    assert shown == {name if name[0] == "a" else f"'{name}" for name in members}
    assert {name[1] for name in shown if name[0] == "'"} >= set("=+")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    replace_file(path, b"old")

    def fail(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"cannot write .*file: No space left on device; make room, or choose another"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]

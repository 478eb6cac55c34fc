import json
import re
from itertools import product

import numpy as np
import pytest

from moerank.data import FeatureCosts
from moerank.data.costs import read_cost_table
from moerank.data.measured_costs import (
    Measurements,
    Profiles,
    design_table,
    estimate_costs,
    fewest_runs,
    switch_design,
)

GROUPS = ("title",) * 4 + ("body",) * 4 + (None,) * 3
NAMES = tuple("abcdefghijk")
COSTS = FeatureCosts.of(np.arange(11) / 4, GROUPS, {"title": 3.0, "body": 5.0})


def paid(runs, costs, groups):
    """The time of each run by the model, written out."""
    return np.array(
        [
            sum(costs.own[on])
            + sum(costs.shared[costs.names.index(group)] for group in {groups[k] for k in np.flatnonzero(on)} - {None})
            for on in runs
        ]
    )


def measured(runs, times, groups=GROUPS, names=NAMES, rounds=None):
    return Measurements(names, groups, runs, times, np.zeros(len(runs), int) if rounds is None else rounds)


@pytest.mark.parametrize(("n_runs", "own", "shared"), [(28, 0.46, 0.71), (32, 0.42, 0.68), (48, 0.34, 0.54)])
def test_a_design_reaches_the_known_standard_errors(n_runs, own, shared):
    runs = switch_design(GROUPS, n_runs)
    title, body = runs[:, :4].any(axis=1), runs[:, 4:8].any(axis=1)
    A = np.column_stack([np.ones(n_runs), runs, title, body])
    errors = np.sqrt(np.diag(np.linalg.inv(A.T @ A)))[1:]
    assert errors[:11].max() < own
    assert errors[11:].max() < shared
    np.testing.assert_array_equal(runs, switch_design(GROUPS, n_runs))
    assert (runs != switch_design(GROUPS, n_runs, seed=1)).any()


def test_a_design_without_groups_is_nearly_as_good_as_that_of_plackett_and_burman():
    runs = switch_design([None] * 11, 24)
    A = np.column_stack([np.ones(24), runs])
    errors = np.sqrt(np.diag(np.linalg.inv(A.T @ A)))[1:]
    assert errors.max() < 1.15 * 2 / np.sqrt(24)


def test_designs_that_tell_nothing_are_refused():
    assert fewest_runs(GROUPS) == 28
    with pytest.raises(ValueError, match="11 features, 2 groups and a constant need at least 28 runs, not 27"):
        switch_design(GROUPS, 27)
    with pytest.raises(ValueError, match="group 'x' has one feature: its own cost and that of the group are one"):
        switch_design(["x", None, "y", "y"], 32)


def test_the_regression_is_that_of_the_worked_example():
    runs = np.array(list(product([False, True], repeat=3)))
    times = np.array([4.02, 4.22, 7.51, 7.79, 6.47, 6.80, 7.97, 8.27])
    found = estimate_costs(measured(runs, times, ("G", "G", None), tuple("ABC")))
    assert found.constant == pytest.approx(3.98125, abs=1e-9)
    np.testing.assert_allclose(found.values, [0.47, 1.485, 0.2775, 2.045], atol=1e-9)
    np.testing.assert_allclose(found.errors, [0.0393, 0.0393, 0.0278, 0.0556], atol=5e-5)
    assert (found.freedom, found.labels) == (3, ["A", "B", "C", "group G"])
    assert "3 degrees of freedom are few" in next(found.remarks())
    np.testing.assert_allclose(found.high - found.values, 3.182446 * found.errors, rtol=1e-6)  # t table, 3, 97.5 %


def test_a_simulated_engine_is_recovered_and_its_costs_are_covered():
    rng = np.random.default_rng(0)
    runs = switch_design(GROUPS, 32)
    exact, rounds = 20.0 + paid(runs, COSTS, GROUPS), np.arange(32) % 2
    true = np.concatenate((COSTS.own, COSTS.shared))
    found = estimate_costs(measured(runs, exact + 7.0 * rounds, rounds=rounds))
    np.testing.assert_allclose(found.values, true, atol=1e-9)
    covered = []
    for _ in range(150):
        found = estimate_costs(measured(runs, exact + rng.normal(0, 0.5, 32)))
        assert (np.abs(found.values - true) <= 4.5 * found.errors).all()
        covered.append((found.low <= true) & (true <= found.high))
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02)
    assert found.values.min() >= 0


def test_with_known_costs_of_features_those_of_groups_are_estimated():
    runs = switch_design(GROUPS, 28)[:14]
    times = 2.0 + paid(runs, COSTS, GROUPS) + np.random.default_rng(0).normal(0, 1e-6, 14)
    found = estimate_costs(measured(runs, times), COSTS.own)
    np.testing.assert_allclose(found.values, [*COSTS.own, 3.0, 5.0], atol=1e-5)
    assert not found.errors[:11].any()
    assert found.freedom == 11


def test_costs_that_runs_do_not_tell_apart_are_named():
    shifted = [np.roll([1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0], k) for k in range(11)]  # Plackett and Burman
    runs = np.array([*shifted, np.zeros(11)], bool)
    with pytest.raises(ValueError, match=r"these runs do not tell the costs of .*group title, group body apart"):
        estimate_costs(measured(runs, np.ones(12)))
    with pytest.raises(ValueError, match="12 runs are too few for the standard errors of 11 costs"):
        estimate_costs(measured(runs, np.ones(12), (None,) * 11))


def test_an_unresolved_cost_is_said_with_the_runs_that_resolve_it():
    runs = switch_design([None] * 3, 16)
    noise = np.random.default_rng(1).normal(0, 0.1, 16)
    found = estimate_costs(measured(runs, 5 + runs @ [2.0, 1.0, 0.03] + noise, (None,) * 3, tuple("abc")))
    assert found.resolved.tolist() == [True, True, False]
    (remark,) = found.remarks()
    assert remark.startswith("the cost of c is not resolved: at most")
    n = int(remark.split("about ")[1].split()[0].replace(",", ""))
    assert n == round(16 * (2 * found.errors[2] / found.values[2]) ** 2)


def test_tables_go_out_and_come_back(tmp_path):
    runs = switch_design(GROUPS, 28)
    lines = design_table(NAMES, GROUPS, runs, 2).splitlines()
    assert len(lines) == 2 + 56
    filled = []
    for line in lines[2:-3]:
        run, number, _, *switches = line.split(",")
        on = np.array([cell == "1" for cell in switches])
        np.testing.assert_array_equal(on, runs[int(run) - 1])
        filled.append(f"{run},{number},{paid(on[None], COSTS, GROUPS)[0] + int(number)},{','.join(switches)}")
    read = Measurements.read("\n".join([*lines[:2], *filled, *lines[-3:]]), "m.csv")
    assert (read.names, read.groups, read.n_open, len(read.runs)) == (NAMES, GROUPS, 3, 53)
    found = estimate_costs(read)
    beside = found.write(tmp_path / "features.csv")
    again = read_cost_table((tmp_path / "features.csv").read_text(), "features.csv", NAMES)
    np.testing.assert_allclose(again.own, COSTS.own, atol=1e-9)
    np.testing.assert_allclose(again.shared, COSTS.shared, atol=1e-9)
    assert (again.group == COSTS.group).all()
    assert beside.name == "features-errors.csv"
    assert beside.read_text().splitlines()[-1].startswith("group body,5,")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,time,a\n1,2,1", "m.csv: line 1: the columns must be run, round, time, and one for each feature"),
        ("run,round,time,a\n1,1,2,yes", "m.csv: line 2: a feature is off, 0, or on, 1, not 'yes'"),
        ("run,round,time,a\n1,1,soon,1", "m.csv: line 2: time must be a number from 0 on, not 'soon'"),
        ("run,round,time,a\n1,1,2", "m.csv: line 2: 4 values are needed"),
        ("run,round,time,a\n1,1,,1", "m.csv: no run has a time"),
        ('run,round,time,a\n1,1,"2"3,1', "m.csv: line 2: ',' expected after"),
    ],
)
def test_malformed_measurements_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Measurements.read(text, "m.csv")


ELASTICSEARCH = """
{"profile":{"shards":[{"id":"[n1][shop][0]","searches":[{"query":[
 {"type":"TermQuery","description":"title:shoes","time_in_nanos":90000,"breakdown":{"score":20000,"score_count":120}},
 {"type":"RankerQuery","description":"rankerquery:","time_in_nanos":2600000,"breakdown":{"score":1100000},"children":[
  {"type":"BooleanQuery","description":"title:trail title:shoes","time_in_nanos":900000,"breakdown":{},"children":[
    {"type":"TermQuery","description":"title:trail","time_in_nanos":300000,"breakdown":{}},
    {"type":"TermQuery","description":"title:shoes","time_in_nanos":350000,"breakdown":{}}]},
  {"type":"FunctionScoreQuery","description":"function score (stars)","time_in_nanos":250000,"breakdown":{}},
  {"type":"FunctionScoreQuery","description":"function score (*:*)","time_in_nanos":450000,"breakdown":{}}]}],
 "rewrite_time":4000,"collector":[]}],"aggregations":[]}]}}
"""
LOG = {"main": [{"name": name} for name in ("title_bm25", "stars", "age_days")]}
VESPA = """
{"root":{"children":[{"fields":{"matchfeatures":{"bm25(title)":6.25,"attribute(stars)":4.5,"age_days":12.0,
 "fieldMatch(title).proximity":1,"fieldMatch(title).completeness":1}}}]},
 "trace":{"children":[{"message":[{"tag":"query_execution","threads":[{"traces":[
 {"tag":"first_phase_profiling","profiler":"flat","topn":1000,"total_time_ms":0.82,"roots":[
  {"name":"rank feature bm25(title)","count":300,"self_time_ms":0.45},
  {"name":"function age_days","count":300,"self_time_ms":0.25},
  {"name":"rank feature attribute(stars)","count":300,"self_time_ms":0.12}]}]},
 {"traces":[{"tag":"second_phase_profiling","profiler":"tree","depth":9,"total_time_ms":0.5,"roots":[
  {"name":"rank feature fieldMatch(title)","count":10,"total_time_ms":0.5,"self_time_ms":0.3,"children":[
   {"name":"rank feature bm25(title)","count":10,"total_time_ms":0.2}]}]}]}]}]}]}}
"""


def slower(text, factor):
    """The same profile with times multiplied."""
    return json.loads(re.sub(r'(?<="time_in_nanos":)\d+', lambda time: str(int(time[0]) * factor), text))


def test_the_children_of_a_ranker_are_the_features_of_elasticsearch():
    profiles = Profiles()
    for query, factor in [("q1", 9), ("q1", 1), ("q2", 70), ("q2", 2), ("q2", 3), ("q2", 50)]:
        response = slower(ELASTICSEARCH, factor)
        response["profile"]["shards"] *= 2
        response["hits"] = {"hits": [{"_index": "shop", "_id": "p7", "fields": {"_ltrlog": [LOG]}}]}
        assert profiles.add(query, response)
    assert not profiles.add("q3", {"hits": {"hits": []}})
    found = profiles.costs()
    assert found.names == ("title_bm25", "stars", "age_days")
    one = 2 * np.array([900.0, 250.0, 450.0])  # µs of both shards
    np.testing.assert_allclose(
        found.values, one * (1 + 3) / 2
    )  # the first pass is dropped; 3 is the median of 2, 3, 50
    np.testing.assert_allclose(found.errors, one)  # of two values, 1 and 3, the standard error is 1
    assert (found.n_measured, found.costs.names) == (2, ())


def test_outputs_of_one_executor_of_vespa_share_its_time():
    profiles = Profiles()
    for query in "ab":
        profiles.add(query, json.loads(VESPA))
    found = profiles.costs()
    costs = dict(zip(found.names, found.costs.own, strict=True))
    assert costs == pytest.approx(
        {"bm25(title)": 650, "attribute(stars)": 120, "age_days": 250, "fieldMatch(title).proximity": 0,
         "fieldMatch(title).completeness": 0}
    )  # fmt: skip
    assert found.costs.names == ("fieldMatch(title)",)
    np.testing.assert_allclose(found.costs.shared, [300.0])
    assert found.costs.group.tolist() == [-1, -1, -1, 0, 0]


def test_profiles_that_tell_nothing_are_refused():
    response = json.loads(ELASTICSEARCH)
    with pytest.raises(ValueError, match="the ranker in the profile has 3 children, and there are 2 features"):
        Profiles(("a", "b")).add("q", response)
    ranker = response["profile"]["shards"][0]["searches"][0]["query"][1]
    ranker["children"][1]["max_slice_time_in_nanos"] = 5
    with pytest.raises(ValueError, match="concurrent segment search; switch that off"):
        Profiles(("a", "b", "c")).add("q", response)
    del ranker["children"]
    with pytest.raises(ValueError, match="an sltr in a filter computes features in the fetch phase"):
        Profiles(("a", "b", "c")).add("q", response)
    profiles = Profiles(("bm25(title)", "bm25(body)"))
    profiles.add("q", json.loads(VESPA))
    with pytest.raises(ValueError, match="costs need the profiles of at least 2 queries, better 200, and there are 1"):
        profiles.costs()
    profiles.add("r", json.loads(VESPA))
    with pytest.raises(ValueError, match=r"no profile has the feature 'bm25\(body\)'; profile a model that uses it"):
        profiles.costs()


def test_a_deactivated_feature_has_no_cost():
    response = json.loads(ELASTICSEARCH)
    children = response["profile"]["shards"][0]["searches"][0]["query"][1]["children"]
    children[1] |= {"type": "MatchNoDocsQuery", "description": 'MatchNoDocsQuery("Feature stars deactivated")'}
    profiles = Profiles(("title_bm25", "stars", "age_days"))
    profiles.add("q", response)
    profiles.add("r", response)
    with pytest.raises(ValueError, match="no profile has the feature 'stars'"):
        profiles.costs()

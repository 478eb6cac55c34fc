import json
import time

import pytest

from moerank.studies.result import Result


@pytest.fixture(scope="module")
def text(tiny_result):
    return tiny_result.to_json()


def put(values, place, value):
    """Set, or with None for the value's place delete, what stands at a dotted place."""
    *path, last = [int(part) if part.isdigit() else part for part in place.split("/")]
    for part in path:
        values = values[part]
    if value is DELETED:
        del values[last]
    else:
        values[last] = value


DELETED = object()

CHANGES = [
    ("fold", -1, "fold: "),
    ("fold", 1001, "fold: "),
    ("fold", True, "fold: "),
    ("fold", "2", "fold: "),
    ("seed", -1, "seed: "),
    ("seed", 5, "seed is 5, but 4 in configuration"),
    ("problem", "other", "problem is 'other', but 'tiny' in configuration"),
    ("solver", "gas", "solver is 'gas', but 'mofsrank' in configuration"),
    ("random_state", 1.0, "random_state: "),
    ("metrics", [], "metrics: "),
    ("metrics", ["MAP"], r"front\.0\.scores\.train must have the keys MAP, not NDCG@10, MAP"),
    ("objectives", DELETED, "objectives: Field required"),
    ("configuration/instance_selection/density/0", -1.0, r"configuration\.instance_selection\.density\.0: "),
    ("new", 1, "new: Extra inputs are not permitted"),
    ("chosen", 10**6, r"chosen is 1000000, but front has \d+ members"),
    ("chosen", -1, "chosen: "),
    ("front", [], "front: "),
    ("front", {}, "front: "),
    ("front/0", None, r"front\.0: "),
    ("front/0/features/0", "1", r"front\.0\.features\.0: "),
    ("front/0/features/0", -1, r"front\.0\.features\.0: "),
    ("front/0/features", [0, 99], r"front\.0\.features has column 99, but there are 20 features"),
    ("front/0/weights", [0.5] * 50, r"front\.0\.weights has 50 values for \d+ features"),
    ("front/0/weights/0", "x", r"front\.0\.weights\.0: "),
    ("front/0/trees", {"columns": []}, r"front\.0\.trees\."),
    ("front/0/parameters", {"a": [1]}, r"front\.0\.parameters\.a\."),
    ("front/0/features", [1, 0], r"front\.0\.features must ascend"),
    ("front/0/objectives/error", DELETED, r"front\.0\.objectives must have the keys features, error, not features"),
    ("front/0/scores/test", {}, r"front\.0\.scores\.test must have the keys NDCG@10, MAP, not none"),
    ("front/0/scores/test/MAP", True, r"front\.0\.scores\.test\.MAP: "),
    ("front/0/x", 1, r"front\.0\.x: Extra"),
    ("baselines/0/per_query", {}, r"baselines\.0\.per_query must have the keys train, validation, test, not none"),
    ("baselines/0/per_query/test/MAP", [0.5], r"baselines\.0\.per_query\.test\.MAP has 1 values, but there are 3 que"),
    ("queries/test", DELETED, "queries must have the keys train, validation, test"),
    ("queries/test/0", [1], r"queries\.test\.0"),
    ("feature_names/1", "relevant 1", "feature_names must be distinct"),
    ("feature_names", ["a"], r"front\.\d\.features has column \d+, but there are 1 features"),
    ("configuration", [], "configuration: "),
    ("configuration/data/source", "x", r"configuration\.data: "),
    ("configuration/data/grid", DELETED, r"configuration\.data must have the keys normalize, grid"),
    ("configuration/data/n_queries", "15", r"configuration\.data\.planted\.n_queries: n_queries must be an integer"),
    (
        "configuration/solver/parameters",
        {"resume": True},
        r"configuration\.solver\.parameters: resume belongs",
    ),
    ("configuration/x", 1, r"configuration\.x: Extra"),
    ("convergence/ensemble/generation", [1], r"convergence\.ensemble: its lists have different lengths"),
    ("times/processor", 1.0, r"times\.processor: "),
    ("times/processor/solver", DELETED, r"times\.processor\.solver: Field required"),
    ("versions/numpy", 2, r"versions\.numpy: "),
    ("format", "4", "format of another kind, written by moerank"),
    ("format", 3, r"format 3, written by moerank [\d.]+\w*; moerank [\d.]+\w* here reads format 4"),
]


@pytest.mark.parametrize(("place", "value", "sentence"), CHANGES)
def test_a_result_of_another_shape_is_refused_by_its_place(text, place, value, sentence):
    values = json.loads(text)
    put(values, place, value)
    with pytest.raises(ValueError, match=rf"^not a result of this version of moerank \({sentence}"):
        Result.from_json(json.dumps(values))


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(text, token, tiny_result):
    value = json.dumps(tiny_result.front[0].scores["test"]["MAP"])
    with pytest.raises(ValueError, match="not a result of this version"):
        Result.from_json(text.replace(value, token))


@pytest.mark.parametrize("damaged", ["[" * 200_000, '{"format":' * 200_000, "", "null", '"x"', "{", "3"])
def test_texts_that_are_no_result_are_refused_at_once(damaged):
    begin = time.monotonic()
    with pytest.raises(ValueError, match="not a result of this version"):
        Result.from_json(damaged)
    assert time.monotonic() - begin < 1


def test_every_number_is_read_to_the_bit(text, tiny_result):
    read = Result.from_json(text)
    assert read == tiny_result
    assert read.to_json() == text
    strange = [5e-324, 1.7976931348623157e308, 0.1, 2 / 3, 9007199254740993.0, -0.0, 123456789.12345679]
    values = json.loads(text)
    values["times"]["stages"]["ensemble"] = strange
    assert list(map(repr, Result.from_json(json.dumps(values)).times.stages["ensemble"])) == list(map(repr, strange))


@pytest.mark.parametrize("ids", [[1, 2, 3], ["a", "1", "ä"], [1.5, 2.0, 3.25]])
def test_query_ids_keep_their_kind(text, ids):
    values = json.loads(text)
    values["queries"]["test"] = ids
    read = Result.from_json(json.dumps(values)).queries["test"]
    assert read == ids
    assert list(map(type, read)) == list(map(type, ids))

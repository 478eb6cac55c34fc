import json
import time

import pytest

from moerank.studies.result import Result


@pytest.fixture(scope="module")
def text(tiny_result):
    return tiny_result.to_json()


def put(values, key, value):
    """Set, or with None for the value's place delete, what stands at a dotted place."""
    *path, last = [int(part) if part.isdigit() else part for part in key.split("/")]
    for part in path:
        values = values[part]
    if value is DELETED:
        del values[last]
    else:
        values[last] = value


DELETED = object()

CHANGES = [
    ("fold", 1001, "fold: "),
    ("objectives", DELETED, "objectives: Field required"),
    ("new", 1, "new: Extra inputs are not permitted"),
    ("front/0/features/0", -1, r"front\.0\.features\.0: "),
    ("front/0/trees", {"columns": []}, r"front\.0\.trees\."),
    ("front/0/scores/test/MAP", True, r"front\.0\.scores\.test\.MAP: "),
    ("scaling", {"kind": "minmax", "offset": [0.0] * 20, "scale": [0.0] * 20}, ".*offset 0.0 and scale 0.0"),
    ("format", 3, r"format: the file has format 3, and moerank [\d.]+\w* reads format 6"),
]


@pytest.mark.parametrize(("key", "value", "sentence"), CHANGES)
def test_a_result_of_another_shape_is_refused_by_its_place(text, key, value, sentence):
    values = json.loads(text)
    put(values, key, value)
    with pytest.raises(ValueError, match=rf"^not written by this version of moerank \({sentence}"):
        Result.from_json(json.dumps(values))


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(text, token, tiny_result):
    value = json.dumps(tiny_result.front[0].scores["test"]["MAP"])
    with pytest.raises(ValueError, match="not written by this version"):
        Result.from_json(text.replace(value, token))


@pytest.mark.parametrize("damaged", ["[" * 200_000, '{"format":' * 200_000, "", "null", '"x"', "{", "3"])
def test_texts_that_are_no_result_are_refused_at_once(damaged):
    begin = time.monotonic()
    with pytest.raises(ValueError, match="not written by this version"):
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

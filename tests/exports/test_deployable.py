"""Names of features in other systems, files that say what these are, and numbers of single precision."""

import re
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moerank.checks import plain_name
from moerank.exports.deployable import (
    engine_names,
    largest_value,
    read_features,
    single_above,
    single_at_most,
)


@given(st.text())
def test_every_name_becomes_a_plain_one_that_is_kept_from_then_on(name):
    plain = plain_name(name)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", plain, re.ASCII)
    assert len(plain) in (len(name), len(name) + 1)
    assert plain_name(plain) == plain
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
        assert plain == name


@pytest.mark.parametrize("name", ["a b", 'a"b', "a\\b", "a\nb", "a\x7fb", "a\x00b"])
def test_two_features_of_one_name_are_refused_with_the_remedy(name):
    with pytest.raises(ValueError, match="would both be called 'a_b'; rename one of them") as caught:
        engine_names(["a_b", name], [None, None])
    key, value = re.search(r"--features: \[(.*)\] with (.*)$", str(caught.value), re.DOTALL).groups()
    told = tomllib.loads(f"[{key}]\n{value}")
    assert engine_names(["a_b", name], [None, read_features(told)[name].name]) == ("a_b", "a_b_2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not a TOML file"),
        ('["x"]\nnane = "y"', "x.nane: Extra inputs"),
        ('["x"]\nname = "a b"', "x.name: String should match pattern"),
        ('["x"]\nsolr = {params = {}}', "x.solr.class: Field required"),
        ('["x"]\nsolr = {class = "SolrFeature", params = {q = 2026-01-01}}', "x.solr.params.q"),
        ('["x"]\nelasticsearch = {params = ["q"]}', "x.elasticsearch.template: Field required"),
        ('["x"]\nvespa = "a\\nb"', "x.vespa: String should match pattern"),
        ("x = 1", "x: Input should be a valid dictionary"),
    ],
)
def test_files_that_say_something_else_are_refused_with_the_place(tmp_path, text, message):
    path = tmp_path / "features.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")):
        read_features(path)


FINITE = st.floats(allow_nan=False, allow_infinity=False)
LARGEST = float(np.finfo(np.float32).max)


@given(FINITE)
def test_single_precision_is_parted_where_double_precision_is(value):
    below, above = single_at_most(value), single_above(value)
    assert np.float32(below) == below and np.float32(above) == above
    assert abs(below) <= LARGEST and abs(above) <= LARGEST
    if abs(value) < LARGEST:
        assert below <= value < above
        assert np.nextafter(np.float32(below), np.float32(np.inf)) == above
    else:
        assert below == np.copysign(LARGEST, value)


@given(st.lists(FINITE, min_size=1, max_size=4))
def test_the_largest_value_is_found_of_any_size(values):
    bounds = np.array(values)
    np.testing.assert_array_equal(largest_value(len(values), lambda x: x <= bounds, np.float64), bounds)
    singles = np.array([single_at_most(value) for value in values])
    np.testing.assert_array_equal(largest_value(len(values), lambda x: x <= bounds, np.float32), singles)

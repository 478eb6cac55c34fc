"""Drift of features between two data sets, and the command that bounds it."""

import json
from math import log

import numpy as np
import pytest

from moerank.data import RankingData
from moerank.data.describe import MISSING, drifts


def data(name="data", **features):
    X = np.column_stack([np.asarray(values, float) for values in features.values()])
    labels = np.zeros(len(X), int)
    return RankingData(X, labels, 0, feature_names=list(features), name=name, missing=MISSING)


def test_the_index_of_two_values_by_hand():
    first, second = data(a=[0.0] * 60 + [1.0] * 40), data(a=[0.0] * 20 + [1.0] * 70 + [np.nan] * 10)
    (found,) = drifts(first, second)
    before, after = [60.5, 40.5, 0.5], [20.5, 70.5, 10.5]
    shares = [(b / 101.5, a / 101.5) for b, a in zip(before, after, strict=True)]
    assert found.psi == pytest.approx(sum((a - b) * log(a / b) for b, a in shares), abs=1e-12)
    assert found.missing == (0.0, pytest.approx(0.1))
    assert found.ranges == ((0.0, 1.0), (0.0, 1.0))


def test_tenths_and_both_outsides_are_bins():
    first = data(a=np.arange(100.0))
    (same,) = drifts(first, data(a=np.arange(100.0)))
    assert same.psi == 0
    (found,) = drifts(first, data(a=[*np.arange(50.0), *[-7.0] * 20, *[200.0] * 30]))
    shares = [(10.5, 10.5)] * 5 + [(10.5, 0.5)] * 5 + [(0.5, 20.5), (0.5, 30.5)]
    assert found.psi == pytest.approx(sum((b - a) / 106 * log(b / a) for a, b in shares), abs=1e-12)
    assert found.ranges == ((0.0, 99.0), (-7.0, 200.0))


def test_a_constant_that_falls_has_drifted_and_what_is_missing_everywhere_has_no_range():
    first = data(constant=[3.0] * 50, gone=[1.0, 2.0] * 25, fine=np.arange(50.0))
    second = data(fine=np.arange(50.0), gone=[np.nan] * 50, constant=[2.0] * 50, new=np.ones(50))
    found = drifts(first, second)
    assert [drift.name for drift in found][-1] == "fine"
    by_name = {drift.name: drift for drift in found}
    assert by_name["constant"].psi > 4 and by_name["gone"].psi > 4
    assert (by_name["gone"].missing, by_name["gone"].ranges) == ((0, 1), ((1, 2), None))
    with pytest.raises(ValueError, match="now has no feature 'gone', which data has"):
        drifts(first, data("now", constant=[1.0], fine=[2.0]))


def test_the_command_fails_beyond_its_bounds(command, tmp_path, monkeypatch):
    monkeypatch.setenv("MOERANK_CACHE", "off")
    draw = np.random.default_rng(0)
    for name, shift, some in (("old", 0.0, 1), ("new", 1.0, 5)):
        values = draw.normal(size=(500, 2))
        rows = [f"{q},0,{x + shift},{y if some == 1 or q % some else ''}" for q, (x, y) in enumerate(values)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["query,label,moved,missing", *rows]) + "\n")
    outcome = command("data", "compare", "old.csv", "new.csv")
    assert outcome.exit_code == 0, outcome.stderr
    rows = {line.split()[0]: line for line in outcome.stdout.splitlines() if line.split()}
    assert "0.0% → 20.0%" in rows["missing"]
    told = json.loads(command("data", "compare", "old.csv", "new.csv", "--json").stdout)
    (moved,) = (drift for drift in told if drift["name"] == "moved")
    assert 0.7 < moved["psi"] < 1.3  # of two normal distributions a standard deviation apart it is 1, without bins
    for words, code, said in (
        (("--most-psi", 0.6), 3, "beyond the bounds: moved, missing\n"),
        (("--most-missing", 0.1), 3, "beyond the bounds: missing\n"),
        (("--most-psi", 5, "--most-missing", 0.5), 0, ""),
    ):
        outcome = command("data", "compare", "old.csv", "new.csv", *words)
        assert outcome.exit_code == code
        assert outcome.stderr.endswith(said)

"""A result remembers how the features were scaled and what became of missing values, and its models take raw values."""

import json

import numpy as np
import pytest

from moerank.data import PER_QUERY, RankingData, fit_scaling
from moerank.metrics import MAP
from moerank.studies.problem import make_problem, with_settings
from moerank.studies.result import Result, write_result
from moerank.studies.run_fold import run_fold


@pytest.fixture
def raw(tiny_problem):
    """The parts of a fold on scales of their own, with missing values."""
    rng = np.random.default_rng(0)

    def made(part):
        X = part.X * np.arange(1, part.n_features + 1) + 3
        X[rng.random(X.shape) < 0.1] = np.nan
        return RankingData(X, part.y, part.qid, missing=0.5)

    return tuple(made(part) for part in tiny_problem.load_fold(1))


@pytest.fixture
def run(tiny_problem, raw):
    budget = tiny_problem.model_dump(exclude_unset=True, exclude={"name", "data"})

    def call(solver, kind):
        problem = make_problem("mine", raw, {"data.normalize": kind, **budget})
        return run_fold(problem, solver=solver), fit_scaling(raw[0], kind)

    return call


@pytest.mark.parametrize(
    ("solver", "kind"),
    [("mofsrank", "minmax"), ("lambdamart[n_trees=20]", "standard"), ("ranksvm-kernel[C=1.0]", "query")],
)
def test_a_result_is_read_as_it_was_written_and_its_models_take_raw_values(run, raw, tmp_path, solver, kind):
    result, scaling = run(solver, kind)
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

"""The Python function, run, and the JSON text, scored as it says, against the models to the last bits."""

import ast
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.changes import replace
from helpers.served_models import GUIDE, MODELS, documents, expected, served, tolerance

from moerank.exports.deployable import deployable
from moerank.exports.json import plain_json
from moerank.exports.onnx import onnx_graph
from moerank.exports.python import python


def function(model):
    """The function that is written: alone in its module, in ASCII, and without an import."""
    (content,) = python(deployable(model, "moerank", {}), Path("out/score.py")).files.values()
    module = ast.parse(content.decode("ascii"))
    assert [type(entry).__name__ for entry in module.body] == ["Expr", "FunctionDef"]
    assert not [entry for entry in ast.walk(module) if isinstance(entry, ast.Import | ast.ImportFrom)]
    names = {}
    exec(compile(module, "score.py", "exec"), names)
    return names["score"]


def score_by_json(model, row):
    """Do what the entry `score` says, with what is missing put in before."""
    if any(math.isnan(value) for value in row) and model["missing"] is None:
        return math.nan
    values = [model["missing"] if math.isnan(value) else value for value in row]
    if model["kind"] == "linear":
        assert "weight * ((value - offset) / scale)" in model["score"]
        numbers = [[feature[key] for key in ("weight", "offset", "scale")] for feature in model["features"]]
        return sum(w * ((value - a) / b) for value, (w, a, b) in zip(values, numbers, strict=True))
    trees, total = model["trees"], 0.0
    for node in trees["roots"]:
        while node >= 0:
            side = "left" if values[trees["columns"][node]] <= trees["thresholds"][node] else "right"
            node = trees[side][node]
        total += trees["leaves"][-1 - node]
    return total


@pytest.mark.parametrize(("kind", "name"), MODELS, ids=str)
def test_the_function_scores_as_the_model_does(kind, name):
    model = served(name, kind)
    score, X = function(model), documents(model)
    for row, right in zip(X.tolist(), expected(model, X).tolist(), strict=True):
        document = dict(zip(model.names, row, strict=True))
        lacking = {name: x for name, x in document.items() if not math.isnan(x)}
        if len(lacking) < len(document) and model.missing is None:
            for given in (document, lacking, lacking | dict.fromkeys(document.keys() - lacking.keys())):
                with pytest.raises(ValueError, match="the document has no value of "):
                    score(given)
            continue
        assert score(document) == score(lacking) == pytest.approx(right, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("kind", "name"), MODELS, ids=str)
def test_json_says_all_that_is_needed(kind, name):
    model = served(name, kind)
    (content,) = plain_json(deployable(model, "moerank", {}), Path("out/ranker.json")).files.values()
    read = json.loads(content)
    assert [feature["name"] for feature in read["features"]] == list(model.names)
    X = documents(model)
    found = np.array([score_by_json(read, row) for row in X.tolist()])
    known = ~np.isnan(found)
    assert known.all() == (model.missing is not None)
    np.testing.assert_allclose(found[known], expected(model, X)[known], rtol=1e-12, atol=1e-12)


def test_no_name_is_taken_for_code():
    names = ('"""', "'''\n", "{missing}\\")
    score = function(replace(GUIDE, names=names))
    assert score(dict(zip(names, (3.2, 20, 45), strict=True))) == pytest.approx(2.1)


PATH = Path("out/m.onnx")


def exported(model):
    files = onnx_graph(deployable(model, "moerank", {}), PATH).files
    assert list(files) == [PATH]
    return files[PATH]


def scores(content, X):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (found,) = session.run(["score"], {"X": X.astype(np.float32)})
    assert found.shape == (len(X), 1)
    return found[:, 0]


@pytest.mark.parametrize(("kind", "name"), MODELS, ids=str)
def test_onnxruntime_scores_as_the_model_does(kind, name):
    onnx = pytest.importorskip("onnx")
    model = served(name, kind)
    content = exported(model)
    graph = onnx.load_from_string(content)
    onnx.checker.check_model(graph, full_check=True)
    assert graph.ir_version == 8
    assert {entry.domain: entry.version for entry in graph.opset_import} == {"": 13, "ai.onnx.ml": 3}
    properties = {entry.key: entry.value for entry in graph.metadata_props}
    assert json.loads(properties["features"]) == list(model.names)
    X = documents(model)
    found, absent = scores(content, X), np.isnan(X).any(axis=1)
    assert absent.any() and (np.isnan(found) == (absent if model.missing is None else False)).all()
    known = ~np.isnan(found)
    assert (np.abs(found - expected(model, X)) <= tolerance(model, X))[known].all()
    assert exported(model) == content


def test_without_onnx_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"ONNX needs the package onnx, .*: pip install 'moerank\[onnx\]'"):
        exported(GUIDE)

"""ONNX graphs, run by onnxruntime, against the models."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.served_models import GUIDE, MODELS, documents, expected, served, tolerance

from moerank.exports.deployable import deployable
from moerank.exports.onnx import onnx_graph

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

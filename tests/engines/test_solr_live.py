"""Solr itself: the page about it, and every kind of model that is exported to it."""

import doctest
import io
import json
import math
import os
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import make_golden
import numpy as np
import pytest
from helpers.pages import blocks

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "recipes" / "solr.md").read_text()


@pytest.mark.filterwarnings("ignore::moerank.rankers.ScaleWarning")
def test_solr_ranks_as_the_models_do_and_as_the_golden_file_says(solr):
    golden, differences = make_golden.solr(solr)
    assert differences.keys() == make_golden.CASES.keys()
    assert max(differences.values()) < 1e-6, differences
    stored = json.loads((make_golden.GOLDEN / "solr.json").read_text())
    assert (golden["engine"], golden["models"].keys()) == (stored["engine"], stored["models"].keys())
    for name, model in golden["models"].items():
        scores = np.array(stored["models"][name]["scores"])
        np.testing.assert_allclose(model["scores"], scores, rtol=0, atol=1e-6 * np.abs(scores).max(), err_msg=name)


def test_the_page_about_solr_does_what_it_says(solr, tmp_path, monkeypatch):
    (tmp_path / "moerank").write_text(f'#!/bin/sh\nexec {sys.executable} -m moerank "$@"\n')
    (tmp_path / "moerank").chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT)}
    monkeypatch.chdir(tmp_path)
    names, printed = {}, ""
    for block in blocks(PAGE):
        if block.file:
            (tmp_path / block.file).write_text(block.text)
        elif block.compared:
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(block.text, printed, flags), (block.line, printed)
        elif block.kind == "python":
            with redirect_stdout(io.StringIO()) as output:
                exec(compile(block.text, f"solr.md, line {block.line}", "exec"), names)
            printed = output.getvalue()
        elif block.runs:
            script = block.text.replace("http://localhost:8983/solr", solr.address)
            script = script.replace("tests/engines/", f"{make_golden.GOLDEN.parent}/")
            done = subprocess.run(
                ["bash", "-euc", script], env=environment, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, (block.line, done.stdout, done.stderr)
            assert '"error"' not in done.stdout, (block.line, done.stdout)
            printed = done.stdout


ABSENT = {
    ("linear", None): 0.0,
    ("linear", "2"): 2.0,
    ("min-max from 1 to 3", None): -0.5,
    ("tree", None): "left",
    ("tree", "2"): "right",
    ("linear", "NaN"): math.nan,
    ("tree", "NaN"): "right",
}
"""The value of a field that is absent, by kind of model and default: as it is, after scaling, and at the split 0.5."""


@pytest.mark.parametrize(("kind", "default"), ABSENT)
def test_what_solr_takes_an_absent_value_for(solr, kind, default):
    params = {"field": "absent"} | ({} if default is None else {"defaultValue": default})
    solr.put("feature", [{"store": "absent", "name": "x", "class": f"{make_golden.CLASS}.FieldValueFeature", "params": params}])
    feature = {"name": "x"}
    if kind.startswith("min-max"):
        norm = {"class": "org.apache.solr.ltr.norm.MinMaxNormalizer", "params": {"min": "1", "max": "3"}}
        feature |= {"norm": norm}
    model, content = "LinearModel", {"weights": {"x": 1.0}}
    if kind == "tree":
        root = {"feature": "x", "threshold": "0.5", "left": {"value": "-1"}, "right": {"value": "1"}}
        model, content = "MultipleAdditiveTreesModel", {"trees": [{"weight": "1", "root": root}]}
    solr.put("model", [{"store": "absent", "name": "absent", "class": f"org.apache.solr.ltr.model.{model}", "features": [feature], "params": content}])
    answer = solr.search("w1", "rq={!ltr model=absent reRankDocs=3}", "rows=3", "fl=score")
    scores = {float(document["score"]) for document in answer["response"]["docs"]}
    right = {"left": -1.0, "right": 1.0}.get(ABSENT[kind, default], ABSENT[kind, default])
    np.testing.assert_equal(list(scores)[:1], [right])

"""Engines themselves: every kind of model that is exported, the page about Solr, and what absent values mean."""

import json
import math
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import make_golden
import numpy as np
import pytest
import shop
from helpers.pages import blocks, follow

from moerank import export
from moerank.exports.deployable import read_features
from moerank.rankers.model import Model

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "recipes" / "solr.md").read_text()
PRODUCTION = (PROJECT / "docs" / "guide" / "production.md").read_text()


@pytest.mark.parametrize("engine", ["solr", "vespa"])
def test_engines_rank_as_the_models_do_and_as_their_golden_files_say(engine, request):
    golden, differences = getattr(make_golden, engine)(request.getfixturevalue(engine))
    assert differences.keys() == make_golden.CASES.keys()
    assert max(differences.values()) < 1e-6, differences
    stored = json.loads((make_golden.GOLDEN / f"{engine}.json").read_text())
    assert (golden["engine"], golden["models"].keys()) == (stored["engine"], stored["models"].keys())
    for name, model in golden["models"].items():
        scores = np.array(stored["models"][name]["scores"])
        np.testing.assert_allclose(model["scores"], scores, rtol=0, atol=1e-6 * np.abs(scores).max(), err_msg=name)


def test_the_page_about_solr_does_what_it_says(solr, command, undrawn, tmp_path):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT)}

    def run(block):
        if block.text.startswith("moerank "):
            outcome = command(*shlex.split(block.text)[1:])
            assert outcome.exit_code == 0, (block.line, outcome.stderr)
            return outcome.stdout
        script = block.text.replace("http://localhost:8983/solr", solr.address)
        script = script.replace("tests/engines/", f"{make_golden.GOLDEN.parent}/")
        done = subprocess.run(["bash", "-euc", script], env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (block.line, done.stdout, done.stderr)
        assert '"error"' not in done.stdout, (block.line, done.stdout)
        return done.stdout

    follow("solr.md", PAGE, tmp_path, run)


ABSENT = {
    ("linear", None): 0.0,
    ("linear", "2"): 2.0,
    ("linear", "NaN"): math.nan,
    ("min-max", None): -0.5,
    ("tree", None): "left",
    ("tree", "2"): "right",
    ("tree", "NaN"): "right",
}
"""What Solr takes an absent field for, by kind of model and default: the score, or the side of the split 0.5."""


def solr_model(kind):
    """Return a model of one feature x as Solr reads it; min-max is from 1 to 3."""
    norm = {"norm": {"class": "org.apache.solr.ltr.norm.MinMaxNormalizer", "params": {"min": "1", "max": "3"}}}
    root = {"feature": "x", "threshold": "0.5", "left": {"value": "-1"}, "right": {"value": "1"}}
    model, params = "LinearModel", {"weights": {"x": 1.0}}
    if kind == "tree":
        model, params = "MultipleAdditiveTreesModel", {"trees": [{"weight": "1", "root": root}]}
    features = [{"name": "x"} | (norm if kind == "min-max" else {})]
    model = f"org.apache.solr.ltr.model.{model}"
    return {"store": "absent", "name": "absent", "class": model, "features": features, "params": params}


@pytest.mark.parametrize(("kind", "default"), ABSENT)
def test_what_solr_takes_an_absent_value_for(solr, kind, default):
    params = {"field": "absent"} | ({} if default is None else {"defaultValue": default})
    feature = {"store": "absent", "name": "x", "class": f"{make_golden.CLASS}.FieldValueFeature", "params": params}
    solr.put("feature", [feature])
    solr.put("model", [solr_model(kind)])
    answer = solr.search("w1", "rq={!ltr model=absent reRankDocs=1}", "rows=1", "fl=score")
    right = ABSENT[kind, default]
    score = float(answer["response"]["docs"][0]["score"])
    np.testing.assert_equal(score, {"left": -1.0, "right": 1.0}.get(right, right))


def test_what_vespa_takes_an_absent_value_for(vespa):
    """An attribute without a value is NaN. A split sends it right, unless it has `default_left`; ours have not."""
    profile = """rank-profile {} {{
        function f_x() {{ expression: attribute(x) }}
        second-phase {{ expression: {} }}
    }}"""
    files = {"linear.profile": profile.format("linear", "1.0 * f_x")}
    for name, left in (("to_right", False), ("to_left", True)):
        leaves = {"left_child": {"leaf_value": -1.0}, "right_child": {"leaf_value": 1.0}}
        split = {"split_feature": 0, "threshold": 0.5, "decision_type": "<=", "default_left": left, **leaves}
        dump = {"objective": "lambdarank", "feature_names": ["f_x"], "pandas_categorical": []}
        files[f"{name}.json"] = json.dumps(dump | {"tree_info": [{"tree_structure": split}]})
        files[f"{name}.profile"] = profile.format(name, f'lightgbm("{name}.json")')
    scores = make_golden.scored_by_vespa(vespa, files, [{"x": None}])
    assert scores == {"linear": ["NaN"], "to_right": [1.0], "to_left": [-1.0]}


JSON = ("-H", "Content-Type: application/x-ndjson", "--data-binary")


def values(address, template):
    """Return what a query of a feature set says of each document of the shop."""
    search = f"{address}/shop/_search?size=1000&_source=false"
    answer = make_golden.curl(search, *JSON, json.dumps({"query": template}))
    return {hit["_id"]: hit["_score"] for hit in answer["hits"]["hits"]}


def test_queries_of_feature_sets_are_values_of_fields_in_opensearch(opensearch, tmp_path):
    """With the number for missing values. Values below 0 are refused, and the way out of production.md works."""
    documents = {document.pop("id"): document for document in shop.products()}
    mapping = {"properties": {name: {"type": "float"} for name in ("price", "trend", "stock")}}
    make_golden.curl("-X", "PUT", f"{opensearch}/shop", *JSON, json.dumps({"mappings": mapping}))
    lines = [line for name, document in documents.items() for line in ({"index": {"_id": name}}, document)]
    bulk = "".join(json.dumps(line) + "\n" for line in lines)
    assert not make_golden.curl(f"{opensearch}/shop/_bulk?refresh=true", *JSON, "@-", input=bulk)["errors"]
    model = Model(names=("price", "stock", "trend"), columns=(0, 1, 2), weights=(1.0, 1.0, 1.0), missing=5.0)
    files = export(model, "opensearch", tmp_path / "m.json").files
    written = json.loads(files[tmp_path / "m-features.json"])["featureset"]["features"]
    templates = {feature["name"]: feature["template"] for feature in written}
    for name in ("price", "stock"):
        right = {key: document.get(name, 5.0) for key, document in documents.items()}
        assert values(opensearch, templates[name]) == pytest.approx(right, rel=1e-6)
    with pytest.raises(ValueError, match="must not produce negative scores"):
        values(opensearch, templates["trend"])
    toml = next(block.text for block in blocks(PRODUCTION) if block.file == "cosine.toml")
    way_out = read_features(tomllib.loads(toml.replace("cosine", "trend")))["trend"].elasticsearch.template
    right = {key: document["trend"] + 1 for key, document in documents.items()}
    assert values(opensearch, way_out) == pytest.approx(right, abs=1e-6)

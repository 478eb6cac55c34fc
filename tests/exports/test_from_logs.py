"""From a log to a model: readers of the exported files score the rows that the engine logged as the ranker does."""

import json

import numpy as np
import pytest
from helpers import logs
from helpers.serving_elasticsearch import PluginModel
from helpers.serving_solr import SolrModel
from helpers.serving_vespa import VespaProfile

from moerank.data import load_table
from moerank.data.ingest import ingest, read_definitions
from moerank.exports import export
from moerank.rankers import LambdaMART, RankRLS

SHOP = logs.shop(12)


def logged(names):
    """Yield the values of the documents that are judged, as an engine has them."""
    for _, _, documents in SHOP:
        for _, grade, *values in documents:
            if grade is not None:
                yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


def opensearch(follows_missing):
    return lambda *texts: PluginModel(*texts, follows_missing)


@pytest.mark.parametrize("ranker", [RankRLS(alpha=0.1), LambdaMART(n_trees=20, n_leaves=6)], ids=["linear", "trees"])
@pytest.mark.parametrize(
    ("format", "write", "names", "definitions", "server"),
    [
        ("elasticsearch", logs.plugin, logs.NAMES, logs.FEATURE_SET, PluginModel),
        ("elasticsearch", logs.plugin, logs.NAMES, logs.FEATURE_SET, opensearch("zero")),
        ("opensearch", logs.plugin, logs.NAMES, logs.FEATURE_SET, opensearch(None)),
        ("solr", logs.solr, logs.NAMES, logs.STORE, SolrModel),
        ("vespa", logs.vespa, logs.VESPA_NAMES, None, VespaProfile),
    ],
)
def test_logged_rows_have_the_scores_of_the_ranker(format, write, names, definitions, server, ranker, tmp_path):
    (tmp_path / "log.jsonl").write_text(write(SHOP))
    (tmp_path / "judgments.csv").write_text(logs.quepid(SHOP))
    (tmp_path / "definitions.json").write_text(json.dumps(definitions))
    done = ingest(
        tmp_path / "log.jsonl",
        tmp_path / "t.parquet",
        judgments=tmp_path / "judgments.csv",
        definitions=definitions and tmp_path / "definitions.json",
    )
    data = load_table(done.table, missing=0)
    ranker.fit(data)
    files = export(ranker, format, tmp_path / "model", features=tmp_path / "features.toml").files
    texts = [path.read_text() for path in files]
    rows = list(logged(names))
    if format == "vespa":
        trees, profile = ({"moerank.json": texts[0]}, texts[1]) if len(texts) > 1 else ({}, texts[0])
        engine = server(profile, trees)
        engine.functions["age_days"] = "attribute(age_days)"  # of the profile that it inherits from
        rows = [{**row, "attribute(age_days)": row["age_days"]} for row in rows]
    else:
        engine = server(*texts)
    scores = [engine.score(row) for row in rows]
    assert len(data.y) == len(scores) > 80
    assert np.ptp(scores) > 0.1
    np.testing.assert_allclose(scores, ranker.predict(data.X), rtol=1e-5, atol=1e-5 * np.ptp(scores))


@pytest.mark.parametrize(("content", "format"), [(logs.FEATURE_SET, "elasticsearch"), (logs.STORE, "solr")])
def test_the_features_of_the_engine_come_back_as_they_were(content, format, tmp_path):
    (tmp_path / "log.jsonl").write_text(logs.plugin(SHOP))
    (tmp_path / "judgments.csv").write_text(logs.quepid(SHOP))
    (tmp_path / "store.json").write_text(json.dumps(content))
    files = {"judgments": tmp_path / "judgments.csv", "definitions": tmp_path / "store.json"}
    done = ingest(tmp_path / "log.jsonl", tmp_path / "t.parquet", **files)
    assert not any("without a definition" in line for line in done.lines)
    ranker = RankRLS().fit(load_table(done.table, missing=0))
    first, _ = export(ranker, format, tmp_path / "model.json", features=tmp_path / "features.toml").files
    written = json.loads(first.read_text())
    if format == "solr":
        given = content["features"]
        written = [{**feature, "store": "shop"} for feature in written]
    else:
        given, written = content["_source"]["featureset"]["features"], written["featureset"]["features"]
    assert written == given
    (tmp_path / "store.json").write_text(json.dumps({"features": logs.STORE["features"][:2]}))
    again = ingest(tmp_path / "log.jsonl", tmp_path / "t.parquet", force=True, **files)
    assert f"kept {tmp_path / 'features.toml'}; remove it to take the definitions" in again.lines
    assert "features without a definition: age_days" in again.lines


TWICE = [{"name": "a", "class": "F"}, {"name": "a", "class": "G"}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}', "no feature is defined"),
        ("{", "Expecting property"),
        (json.dumps(TWICE), "'a' is defined twice, and not alike"),
    ],
)
def test_what_is_no_definition_is_refused(content, message, tmp_path):
    (tmp_path / "model.json").write_text(content)
    with pytest.raises(ValueError, match=rf"model.json: .*{message}"):
        read_definitions(tmp_path / "model.json")

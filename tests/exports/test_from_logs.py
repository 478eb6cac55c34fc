"""From a log to a model: readers of the exported files score the rows that the engine logged as the ranker does."""

import numpy as np
import pytest
from helpers import logs
from helpers.serving_elasticsearch import PluginModel
from helpers.serving_solr import SolrModel
from helpers.serving_vespa import VespaProfile

from moerank.data import load_table
from moerank.data.ingest import ingest
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
    ("format", "write", "names", "features", "server"),
    [
        ("elasticsearch", logs.plugin, logs.NAMES, logs.TEMPLATES, PluginModel),
        ("elasticsearch", logs.plugin, logs.NAMES, logs.TEMPLATES, opensearch("zero")),
        ("opensearch", logs.plugin, logs.NAMES, logs.TEMPLATES, opensearch(None)),
        ("solr", logs.solr, logs.NAMES, logs.CLASSES, SolrModel),
        ("vespa", logs.vespa, logs.VESPA_NAMES, None, VespaProfile),
    ],
)
def test_logged_rows_have_the_scores_of_the_ranker(format, write, names, features, server, ranker, tmp_path):
    (tmp_path / "log.jsonl").write_text(write(SHOP))
    (tmp_path / "judgments.csv").write_text(logs.quepid(SHOP))
    done = ingest(tmp_path / "log.jsonl", tmp_path / "t.parquet", judgments=tmp_path / "judgments.csv")
    data = load_table(done.table, missing=0)
    ranker.fit(data)
    files = export(ranker, format, tmp_path / "model", features=features).files
    texts = [path.read_text() for path in files]
    rows = list(logged(names))
    if format == "vespa":
        trees, profile = ({"moerank.json": texts[0]}, texts[1]) if len(texts) > 1 else ({}, texts[0])
        engine = server(profile, trees)
        rows = [{**row, "attribute(age_days)": row["age_days"]} for row in rows]
    else:
        engine = server(*texts)
    scores = [engine.score(row) for row in rows]
    assert len(data.y) == len(scores) > 80
    assert np.ptp(scores) > 0.1
    np.testing.assert_allclose(scores, ranker.predict(data.X), rtol=1e-5, atol=1e-5 * np.ptp(scores))

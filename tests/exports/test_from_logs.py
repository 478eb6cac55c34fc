"""From a log to a model: readers of the exported files score the rows that the engine logged as the ranker does."""

import numpy as np
import pytest
from helpers import logs
from helpers.serving_elasticsearch import PluginModel
from helpers.serving_solr import SolrModel
from helpers.serving_vespa import VespaProfile

from moerank.data import load_table
from moerank.data.logs.ingest import ingest
from moerank.data.logs.responses import LogOptions
from moerank.exports import export
from moerank.rankers import RankRLS

SHOP = logs.shop(12)


def logged(names):
    """Yield the values of the documents that are judged, as an engine has them."""
    for _, _, documents in SHOP:
        for _, grade, *values in documents:
            if grade is not None:
                yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


@pytest.mark.parametrize(
    ("format", "write", "names", "options"),
    [
        ("elasticsearch", logs.plugin, logs.NAMES, LogOptions()),
        ("solr", logs.solr, logs.NAMES, LogOptions(query_param="q")),
        ("vespa", logs.vespa, logs.VESPA_NAMES, LogOptions()),
    ],
)
def test_logged_rows_have_the_scores_of_the_ranker(format, write, names, options, tmp_path):
    (tmp_path / "log.jsonl").write_text(write(SHOP))
    (tmp_path / "judgments.csv").write_text(logs.quepid(SHOP))
    table = ingest(
        tmp_path / "log.jsonl", tmp_path / "t.parquet", judgments=tmp_path / "judgments.csv", options=options
    ).table
    data = load_table(table, missing=0)
    ranker = RankRLS(alpha=0.1).fit(data)
    files = export(ranker, format, tmp_path / "model", features=tmp_path / "features.toml").files
    texts = [path.read_text() for path in files]
    rows = list(logged(names))
    if format == "vespa":
        server = VespaProfile(texts[0])
        server.functions["age_days"] = "attribute(age_days)"  # of the profile that it inherits from
        scores = [server.score({**row, "attribute(age_days)": row["age_days"]}) for row in rows]
    else:
        server = {"elasticsearch": PluginModel, "solr": SolrModel}[format](*texts)
        scores = [server.score(row) for row in rows]
    assert len(data.y) == len(scores) > 80
    np.testing.assert_allclose(scores, ranker.predict(data.X), rtol=1e-5, atol=1e-5 * np.ptp(scores))

"""What engines answered once, against moerank of today; it needs no engine."""

import json

import make_golden
import numpy as np
import pyarrow.parquet as pq
import pytest
from helpers.serving_solr import SolrModel
from helpers.serving_vespa import VespaProfile

from moerank import export
from moerank.rankers.model import Model

ANSWERS = {path.stem: json.loads(path.read_text()) for path in sorted(make_golden.GOLDEN.glob("*.json"))}
MODELS = [(engine, name) for engine, answers in ANSWERS.items() for name in answers["models"]]


FILES = {"solr": "{}.json", "vespa": "{}.profile"}
NAMED = {"solr": "{}", "vespa": "attribute({})"}
EVALUATORS = {
    "solr": lambda files: SolrModel(*files.values()),
    "vespa": lambda files: VespaProfile(files.pop(next(name for name in files if name.endswith("profile"))), files),
}
"""What stands for an engine in tests/exports, by the engine."""


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """The tables that are made of the logs, by engine."""
    return {
        engine: make_golden.logged_table(answers["log"], tmp_path_factory.mktemp(engine))
        for engine, answers in ANSWERS.items()
    }


@pytest.mark.parametrize(("engine", "name"), MODELS)
def test_models_score_as_the_engine_did_and_are_exported_as_it_read_them(engine, name, tables, tmp_path):
    """So what the engine proved of these files holds for the files of today."""
    entry = ANSWERS[engine]["models"][name]
    model = Model.from_json(json.dumps(entry["model"]))
    own, served = np.array(list(make_golden.expected(model, tables[engine]).values())), np.array(entry["scores"])
    close = 1e-6 * np.abs(served).max()
    assert len(served) >= 45
    np.testing.assert_allclose(own, served, rtol=0, atol=close)
    assert (np.diff(own[np.argsort(served)]) >= -close).all()
    if "files" in entry:
        evaluator = EVALUATORS[engine](dict(entry["files"]))
        rows = pq.read_table(tables[engine]).select(list(model.names)).to_pylist()
        by_ours = [
            evaluator.score({NAMED[engine].format(k): v for k, v in row.items() if v is not None}) for row in rows
        ]
        np.testing.assert_allclose(by_ours, served, rtol=0, atol=close)
        out, features = tmp_path / FILES[engine].format(name), make_golden.DEFINITIONS[engine]
        written = export(model, engine, out, name=name, features=features).files
        assert {path.name: text.decode() for path, text in written.items()} == entry["files"]


def test_golden_logs_hold_what_is_hard_and_are_small(tables):
    for engine, table in tables.items():
        X = pq.read_table(table).to_pandas()
        assert X.isna().any(axis=None), engine
        assert engine == "elasticsearch" or (X["trend"] < 0).any()
    assert sum(path.stat().st_size for path in make_golden.GOLDEN.iterdir()) < 300_000

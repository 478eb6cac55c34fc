"""Engines that keep values in single precision score the training rows as the ranker does, which has them in double."""

from pathlib import Path

import numpy as np
import pytest
from helpers.changes import replace
from helpers.served_models import tolerance
from helpers.serving_elasticsearch import PluginModel
from helpers.serving_solr import SolrModel
from helpers.serving_vespa import VespaProfile

from moerank.data import RankingData, fit_scaling
from moerank.exports.deployable import deployable
from moerank.exports.elasticsearch import elasticsearch
from moerank.exports.onnx import onnx_graph
from moerank.exports.solr import solr
from moerank.exports.vespa import vespa
from moerank.rankers import AdditiveRLS, BaggedLambdaMART, FRank, LambdaMART, RankBoost
from moerank.rankers.model import Model

NAMES, SCALINGS = ["a", "b", "c"], ["none", "minmax", "standard"]
RANKERS = [
    RankBoost(20),
    RankBoost(20, n_thresholds=None),
    FRank(20),
    LambdaMART(20),
    BaggedLambdaMART(n_bags=2, n_trees=15, random_state=0),
    AdditiveRLS(),
]


def by_engine(ranker, rows):
    """Yield the name of each engine and the scores of the rows by it."""
    json, profile, fields = Path("out/m.json"), Path("out/m.profile"), "attribute({})".format
    for write, server in ((elasticsearch, PluginModel), (solr, SolrModel)):
        reader = server(*write(ranker, json).files.values())
        yield write.__name__, [reader.score(row) for row in rows]
    trees, text = vespa(ranker, profile).files.values()
    reader = VespaProfile(text.decode(), {"moerank.json": trees})
    yield "vespa", [reader.score({fields(name): value for name, value in row.items()}) for row in rows]
    (content,) = onnx_graph(ranker, json).files.values()
    session = pytest.importorskip("onnxruntime").InferenceSession(content, providers=["CPUExecutionProvider"])
    table = np.array([list(row.values()) for row in rows], np.float32)
    yield "onnx", session.run(["score"], {"X": table})[0][:, 0]


def trained(ranker, X, normalize="none"):
    rng = np.random.default_rng(1)
    hidden = X @ (1.0 / X.std(axis=0)) + rng.normal(0, 0.3, len(X))
    y = np.digitize(hidden, np.quantile(hidden, [0.4, 0.6, 0.8]))
    data = RankingData(X, y, np.repeat(np.arange(len(X) // 20), 20), feature_names=NAMES)
    return replace(Model.of(ranker.fit(fit_scaling(data, normalize).apply(data)), NAMES), negative=())


@pytest.mark.filterwarnings("ignore:.*scale")
@pytest.mark.parametrize(("digits", "normalize"), [*zip([1, 2, 4, 6, 1, 6], 2 * SCALINGS, strict=True)])
@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_training_rows_keep_their_scores_when_they_are_rounded(ranker, normalize, digits):
    X = (np.random.default_rng(0).random((300, 3)) - [0.0, 0.5, -5.0]).round(digits)
    model = trained(ranker, X, normalize)
    right, allowed = model.scores(X), tolerance(model, X[:, list(model.columns)])
    served = deployable(model, "moerank", {})
    rounded = X[:, list(model.columns)].astype(np.float32).astype(np.float64).tolist()
    rows = [dict(zip(model.names, row, strict=True)) for row in rounded]
    for engine, scores in by_engine(served, rows):
        assert (np.abs(scores - right) <= allowed).all(), engine


@pytest.mark.parametrize("normalize", SCALINGS)
@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_values_that_single_precision_does_not_tell_apart_are_never_parted(ranker, normalize):
    X = np.random.default_rng(0).random((300, 3))
    X[:, 1] = 1.7e9 + np.round(6000 * X[:, 1])  # seconds of less than two hours
    model = trained(ranker, X, normalize)
    rounded = X.astype(np.float32).astype(np.float64)
    assert len(np.unique(rounded[:, 1])) < 60
    np.testing.assert_array_equal(model.scores(rounded), model.scores(X))
    served = deployable(model, "moerank", {})
    assert served.precision_remarks == [
        "Single precision keeps fewer than three digits of 'b', because its values are far from 0 compared to their "
        "spread. Subtract a constant before it is stored, and train again."
    ]
    assert not deployable(trained(ranker, X - [0, 1.7e9, 0], normalize), "moerank", {}).precision_remarks


@pytest.mark.parametrize("normalize", SCALINGS)
@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_a_model_of_a_table_in_single_precision_scores_the_same_documents_alike_in_double(ranker, normalize):
    X = 80_000 + np.random.default_rng(0).integers(1, 200, (300, 3)) / 100
    rounded = X.astype(np.float32)
    model = trained(ranker, rounded, normalize)
    np.testing.assert_array_equal(model.scores(X), model.scores(rounded))


def test_a_threshold_lies_between_values_whatever_part_of_the_data_a_tree_is_shown():
    X = np.random.default_rng(0).random((300, 3)).round(2)
    model = trained(BaggedLambdaMART(n_bags=3, n_trees=15, random_state=0), X)
    for column, threshold in zip(model.trees.columns, model.trees.thresholds, strict=True):
        values = np.unique(X[:, column])
        above = np.searchsorted(values, threshold, side="right")
        assert threshold == pytest.approx((values[above - 1] + values[above]) / 2, abs=1e-7)

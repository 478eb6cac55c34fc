"""Shapes of additive rankers against their scores, document by document."""

import numpy as np
import pandas as pd
import pytest

from moerank import MOFSRank
from moerank.data import make_planted
from moerank.data.preparation import FittedScaling
from moerank.rankers import AdditiveRLS, LambdaMART, RankBoost
from moerank.rankers.model import Forest
from moerank.rankers.shapes import shapes_of

DATA = make_planted(n_queries=12, n_documents=15, n_noise=5, seed=1).data

# [x1 > 1] [x0 > 2], plus 3 [x0 > 4].
PAIR = Forest.of([(1, 1.0, 0.0, (0, 2.0, 0.0, 1.0)), (0, 4.0, 0.0, 3.0)])


def scores_of(table, X, names):
    """Add up the values of the bins of each document, row by row of the table."""
    scores = np.zeros(len(X))
    for row in table.to_dict("records"):
        inside = (X[:, names.index(row["feature"])] > row["from"]) & (X[:, names.index(row["feature"])] <= row["to"])
        if isinstance(row.get("feature_2"), str):
            x = X[:, names.index(row["feature_2"])]
            inside &= (x > row["from_2"]) & (x <= row["to_2"])
        scores[inside] += row["value"]
    return scores


@pytest.mark.parametrize(
    "ranker",
    [
        AdditiveRLS(n_bins=4),
        AdditiveRLS(n_bins=4, interactions=3),
        MOFSRank("additive", ensemble=False, feature_selection={"population": 10, "generations": 3}, random_state=0),
    ],
)
def test_the_rows_of_shapes_add_up_to_the_scores(ranker):
    table = ranker.fit(DATA).shapes_
    names, X = list(DATA.feature_names), DATA.X
    assert set(table["feature"]) == {names[f] for f in np.flatnonzero(ranker.support_)}
    scores = ranker.predict(X)
    np.testing.assert_allclose(scores_of(table, X, names), scores - scores.mean(), rtol=0, atol=1e-12)
    function = table["feature"] + (table["feature_2"].fillna("") if "feature_2" in table else "")
    np.testing.assert_allclose(table.groupby(function)["share"].sum(), 1.0, rtol=1e-12)
    means = (table["value"] * table["share"]).groupby(function, sort=False).sum()
    np.testing.assert_allclose(means, 0.0, atol=1e-15)
    spread = (table["value"] ** 2 * table["share"]).groupby(function, sort=False).sum()
    assert spread.tolist() == sorted(spread, reverse=True)


def test_trees_of_one_or_two_features_are_shapes_and_others_are_none():
    X = np.random.default_rng(0).uniform(0, 5, (40, 2))
    data = type(DATA)(X, np.arange(40) % 3, np.arange(40) // 10)
    shapes = shapes_of(PAIR, data)
    assert sorted(shape.features for shape in shapes) == [("1",), ("1", "2"), ("2",)]
    two = max(shapes, key=lambda shape: len(shape.features))
    values, shares = np.reshape(two.values, two.n_bins), np.reshape(two.shares, two.n_bins)
    assert values[1, 1] - values[0, 1] - values[1, 0] + values[0, 0] == pytest.approx(1.0)
    for axis in (0, 1):  # what depends on one feature alone is in its own function
        np.testing.assert_allclose((values * shares).sum(axis=axis), 0.0, atol=1e-12)
    table = pd.concat([shape.rows() for shape in shapes], ignore_index=True)
    scores = PAIR.scores(X)
    np.testing.assert_allclose(scores_of(table, X, ["1", "2"]), scores - scores.mean(), atol=1e-12)
    inside = [[((X[:, 0] > 2) == a) & ((X[:, 1] > 1) == b) for b in (False, True)] for a in (False, True)]
    np.testing.assert_allclose(np.reshape(two.shares, two.n_bins), np.mean(inside, axis=-1))
    scaling = FittedScaling("standard", offset=(7.0, -1.0), scale=(0.5, 2.0))
    raw = type(DATA)(X * scaling.scale + scaling.offset, data.y, data.qid).scaled_by(scaling)
    (of_first,) = [shape for shape in shapes_of(PAIR, raw) if shape.features == ("1",)]
    assert of_first.thresholds == ((8.0, 9.0),)  # 2 and 4 of the scaled values
    np.testing.assert_allclose(of_first.deciles[0][-1], X[:, 0].max() * 0.5 + 7.0)
    stumps = RankBoost(n_rounds=5).fit(DATA)
    shapes = shapes_of(stumps.forest_, DATA)
    scores = stumps.predict(DATA.X)
    added = sum(np.take(s.values, np.searchsorted(s.thresholds[0], DATA.X[:, column(s)])) for s in shapes)
    np.testing.assert_allclose(added, scores - scores.mean(), atol=1e-12)
    assert shapes_of(LambdaMART(n_trees=20).fit(DATA).forest_, DATA) == shapes_of(None, DATA) == ()


def column(shape):
    return DATA.feature_names.index(shape.features[0])

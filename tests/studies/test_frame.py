"""The table of results: every metric, measured again from the stored weights."""

import numpy as np
import pytest

from moerank.metrics import MAP, NDCG, MeanNDCG, Precision
from moerank.studies.results import results_frame
from moerank.studies.run_fold import every_metric

METRICS = [*map(NDCG, range(1, 11)), *map(Precision, range(1, 11)), MAP(), MeanNDCG()]


def test_every_metric_of_a_run_is_that_of_its_weights(tiny_problem, tiny_result):
    row = results_frame([tiny_result]).iloc[0]
    best = tiny_result.best
    for part, data in zip(("train", "validation", "test"), tiny_problem.load_fold(2), strict=True):
        scores = data.X[:, list(best.features)] @ np.array(best.weights)
        for metric in METRICS:
            assert row[f"{part} {metric.name}"] == pytest.approx(metric.score(data, scores), abs=1e-12)


def test_metrics_follow_the_conventions_of_the_problem():
    names = [metric.name for metric in every_metric(NDCG(5, gain="linear", convention="letor"))]
    assert names[0] == "NDCG@1 (gain=linear, letor)"
    assert names[-1] == "MeanNDCG (gain=linear, letor)"
    assert names[10:12] == ["P@1", "P@2"]


def test_baselines_have_every_metric_and_other_members_those_of_the_tables(tiny_result):
    assert all(baseline.further.keys() == {"train", "validation", "test"} for baseline in tiny_result.baselines)
    others = [member for number, member in enumerate(tiny_result.front) if number != tiny_result.chosen]
    assert not any(member.further for member in others)
    frame = results_frame([tiny_result], members=True)
    assert frame["test MAP"].tolist() == [member.scores["test"]["MAP"] for member in tiny_result.front]
    assert frame["test P@1"].notna().tolist() == frame["chosen"].tolist()

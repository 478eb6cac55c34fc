"""The table of results: every metric, measured again from the stored weights by the book."""

import numpy as np
import pytest

from moerank.metrics import NDCG
from moerank.studies.measure import every_metric
from moerank.studies.result_files import results_frame


def by_the_book(test, scores):
    """Precision, NDCG with the usual discount, MAP and MeanNDCG, query by query, as their definitions have them."""
    rows = []
    for begin, end in zip(test.offsets, test.offsets[1:], strict=False):
        labels = test.y[begin:end][np.argsort(-scores[begin:end], kind="stable")].astype(float)
        discount = 1 / np.log2(np.arange(2, len(labels) + 2))
        gains, ideal = (np.cumsum((2**order - 1) * discount) for order in (labels, np.sort(labels)[::-1]))
        relevant = labels > 0
        precision = np.cumsum(relevant) / np.arange(1, len(labels) + 1)
        values = gains / ideal
        rows.append(
            {
                **{f"NDCG@{k}": values[k - 1] for k in range(1, 11)},
                **{f"P@{k}": precision[k - 1] for k in range(1, 11)},
                "MAP": precision[relevant].mean(),
                "MeanNDCG": values.mean(),
            }
        )
    return {name: np.mean([row[name] for row in rows]) for name in rows[0]}


def test_every_metric_of_a_run_is_that_of_its_weights(tiny_problem, tiny_result):
    row = results_frame([tiny_result]).iloc[0]
    best = tiny_result.best
    for part, data in zip(("train", "validation", "test"), tiny_problem.load_fold(2), strict=True):
        assert all(len(set(labels)) > 1 for labels in np.split(data.y, data.offsets[1:-1]))
        expected = by_the_book(data, data.X[:, list(best.features)] @ np.array(best.weights))
        assert len(expected) == 22
        for name, value in expected.items():
            assert row[f"{part} {name}"] == pytest.approx(value, abs=1e-12), (part, name)


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

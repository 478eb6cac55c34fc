import numpy as np
import pytest
from helpers.changes import replace
from helpers.further_objective import cost, with_cost
from scipy import stats

from moerank.figures.of_run import RUN_FIGURES
from moerank.figures.panels import judged
from moerank.studies.result import Result


def axes_of(result):
    return RUN_FIGURES["front"].draw(result).axes[0]


def paired_error(member, reference):
    d = np.subtract(member.per_query["test"]["NDCG@10"], reference.per_query["test"]["NDCG@10"])
    return np.sqrt(((d - d.mean()) ** 2).sum() / (len(d) - 1) / len(d))


def test_the_band_is_the_interval_of_the_differences_query_by_query(tiny_result):
    every = tiny_result.baselines[0]
    assert tiny_result.best.paired_error == pytest.approx(paired_error(tiny_result.best, every), rel=1e-12)
    (band,) = axes_of(tiny_result).collections
    assert band.get_label() == "95 % interval, against all features"
    half = stats.t.ppf(0.975, len(every.per_query["test"]["NDCG@10"]) - 1) * tiny_result.best.paired_error
    vertices = band.get_paths()[0].vertices
    at_chosen = vertices[vertices[:, 0] == len(tiny_result.best.features), 1]
    value = tiny_result.best.scores["test"]["NDCG@10"]
    np.testing.assert_allclose([at_chosen.min(), at_chosen.max()], [value - half, value + half], rtol=1e-12)


def test_without_the_baseline_there_is_no_band(tiny_result):
    front = [replace(member, paired_error=None) for member in tiny_result.front]
    without = replace(tiny_result, front=front, baselines=[])
    assert not axes_of(without).collections
    assert Result.from_json(without.to_json()) == without


def test_the_title_is_the_verdict_the_note_names_the_run_and_the_ring_the_choice(tiny_result):
    axes = axes_of(tiny_result)
    title = " ".join(axes.figure.legends[0].get_title().get_text().split())
    assert title == judged(tiny_result.verdict)
    run = f"{tiny_result.problem}, fold {tiny_result.fold}: {tiny_result.solver}."
    assert axes.figure._supxlabel.get_text() == run
    (ring,) = [line for line in axes.lines if str(line.get_label()).startswith("chosen")]
    value = tiny_result.best.scores["test"]["NDCG@10"]
    assert ring.get_label() == f"chosen ({len(tiny_result.best.features)}), test {value:.3f}"
    assert (list(ring.get_xdata()), list(ring.get_ydata())) == ([len(tiny_result.best.features)], [value])


def test_what_the_search_counted_is_on_the_axis(tiny_result):
    priced = replace(with_cost(tiny_result), objectives=["cost", "error"])
    axes = axes_of(priced)
    lines = {line.get_label(): line for line in axes.lines}
    assert axes.get_xlabel() == "Cost"
    assert list(lines["test"].get_xdata()) == sorted(cost(member.features) for member in tiny_result.front)
    assert lines[f"all features ({cost(range(20)):g}), test"].get_xdata().tolist() == [cost(range(20))]
    assert (axes.get_xscale(), len(axes.collections)) == ("log", 1)
    free = [replace(member, objectives={**member.objectives, "cost": 0.0}) for member in priced.front[:1]]
    assert axes_of(replace(priced, front=[*free, *priced.front[1:]])).get_xscale() == "symlog"
    assert axes_of(tiny_result).get_xscale() == "linear"


def test_of_three_objectives_members_are_points_and_a_note_says_what_is_shown(tiny_result):
    axes = axes_of(replace(with_cost(tiny_result), objectives=["cost", "error", "risk"]))
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["test"].get_linestyle() == "None"
    assert not axes.collections
    texts = [text.get_text() for text in axes.figure.texts]
    assert any("Searched: cost, error, risk. Shown: cost and NDCG@10." in text.replace("\n", " ") for text in texts)

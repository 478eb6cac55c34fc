from pathlib import Path

import numpy as np
import pytest
from helpers.changes import replace
from helpers.drawn import OF_EVERY_SEARCH, assert_legible, title_of_figure
from helpers.further_objective import cost, with_cost

from moerank.figures import RUN_FIGURES, available_figures
from moerank.rankers.shapes import Shape
from moerank.runs.result import Certificate, Member, Result
from moerank.studies.results import NoResultsError

PROJECT = Path(__file__).resolve().parents[2]


def draw(name, result):
    return RUN_FIGURES[name].draw(result)


def axes_of(result):
    return draw("front", result).axes[0]


def with_many_features(result):
    names = [f"feature with a long name {number}" for number in range(200)]
    scores = result.best.scores
    front = [
        Member(name="mofsrank", features=tuple(range(size)), weights=(1.0,) * size, objectives={}, scores=scores)
        for size in range(1, 71)
    ]
    return replace(result, feature_names=names, front=front, chosen=30)


def on_a_grid(result, shape):
    data = {**result.configuration["data"], "grid": list(shape)}
    return replace(result, configuration={**result.configuration, "data": data})


@pytest.mark.parametrize("name", RUN_FIGURES)
@pytest.mark.parametrize("change", [lambda result: result, lambda result: on_a_grid(result, (4, 5))])
def test_a_figure_is_as_wide_as_the_paper_asks(tiny_result, name, change):
    losses = np.linspace(0.5, 0.4, len(tiny_result.front)).tolist()
    certificate = Certificate(alpha=1.0, sizes=[1, 2], best=[0.5, 0.4], bounds=[0.5, 0.3], losses=losses, least=losses)
    result = replace(with_cost(change(tiny_result)), shapes=SHAPES, certificate=certificate)
    figure = RUN_FIGURES[name].draw(result, {"width": 120.0, "title": False})
    assert figure.get_figwidth() * 25.4 == pytest.approx(120)


@pytest.mark.parametrize("name", OF_EVERY_SEARCH)
@pytest.mark.parametrize("change", [lambda result: result, with_many_features])
def test_no_text_is_clipped_or_overlaps(tiny_result, name, change):
    assert_legible(draw(name, change(tiny_result)))


def test_front_shows_the_values_of_every_member(tiny_result):
    (axes,) = draw("front", tiny_result).axes
    lines = {line.get_label(): line for line in axes.lines}
    parts = {"train": "Training", "validation": "Validation", "test": "Test"}
    for part, name in parts.items():
        sizes, values = lines[name].get_data()
        assert list(sizes) == [len(member.features) for member in tiny_result.front]
        assert list(values) == [member.scores[part]["NDCG@10"] for member in tiny_result.front]
    named = {text.get_text(): text.xy for text in axes.texts}
    for baseline in [baseline for baseline in tiny_result.baselines if baseline.name != "best single feature"]:
        point = (len(baseline.features), baseline.scores["test"]["NDCG@10"])
        assert named[f"{baseline.name} ({point[0]})"] == point == tuple(*lines[f"_{baseline.name}"].get_xydata())
    looks = {(lines[name].get_marker(), lines[name].get_linestyle()) for name in parts.values()}
    assert len(looks) == 3


def test_convergence_has_a_panel_for_each_stage(tiny_result):
    figure = draw("convergence", tiny_result)
    note = " ".join(figure._supxlabel.get_text().split())
    assert note.startswith(
        "Hypervolume: share of the box from features 0, error 0 to the reference point features 20, "
    )
    for panel, (stage, history) in zip(figure.axes, tiny_result.convergence.items(), strict=True):
        assert panel.get_title(loc="left") == stage.replace("_", " ").capitalize()
        shares = np.divide(history.hypervolume, history.hypervolume[-1])
        np.testing.assert_allclose(panel.lines[0].get_xydata().T, [history.evaluations, shares])
        assert np.ptp(panel.get_ylim()) >= 0.02 - 1e-12  # tiny differences do not fill it
        assert panel.get_ylim() == figure.axes[0].get_ylim()  # a step is as high in each panel
    with pytest.raises(NoResultsError, match="is a search"):
        draw("convergence", replace(tiny_result, solver="rankrls", convergence={}))


def test_matrix_has_a_cell_for_each_feature_of_each_member(tiny_result):
    (axes,) = draw("features", tiny_result).axes
    cells = np.asarray(axes.images[0].get_array())
    names = [label.get_text() for label in axes.get_yticklabels()]
    for column, member in enumerate(tiny_result.front):
        assert {names[row] for row in np.flatnonzero(cells[:, column])} == set(tiny_result.names(member.features))
        assert set(cells[:, column]) <= ({0, 2} if column == tiny_result.chosen else {0, 1})
    used = (cells > 0).sum(axis=1)
    assert list(used) == sorted(used, reverse=True)


def test_image_counts_members_and_marks_the_chosen_pixels(tiny_result):
    axes = draw("features", on_a_grid(tiny_result, (4, 5))).axes[0]
    share = np.asarray(axes.images[0].get_array())
    for feature in range(20):
        members = [feature in member.features for member in tiny_result.front]
        assert share[feature // 5, feature % 5] == pytest.approx(np.mean(members), abs=1e-15)
    columns, rows = axes.lines[0].get_data()
    assert (np.multiply(rows, 5) + columns).tolist() == list(tiny_result.best.features)


def test_a_run_has_the_figures_that_have_something_to_show(tiny_result):
    assert available_figures(tiny_result).keys() >= {*OF_EVERY_SEARCH}
    assert available_figures(tiny_result).keys().isdisjoint({"certificate", "objectives", "shapes"})
    ranker = replace(tiny_result, convergence={})
    assert [name for name in OF_EVERY_SEARCH if not RUN_FIGURES[name].has_data(ranker)] == ["convergence"]


def test_the_band_is_the_interval_of_the_verdict(tiny_result):
    every, best, verdict = tiny_result.baselines[0], tiny_result.best, tiny_result.verdict
    share = verdict.n_differing / verdict.n_queries
    assert best.difference_interval == pytest.approx(tuple(share * end for end in verdict.interval), rel=1e-12)
    (band,) = axes_of(tiny_result).collections
    assert band.get_label() == "95 % interval, against all features"
    vertices = band.get_paths()[0].vertices
    at_chosen = vertices[vertices[:, 0] == len(best.features), 1]
    reference = every.scores["test"]["NDCG@10"]
    expected = [reference + end for end in best.difference_interval]
    np.testing.assert_allclose([at_chosen.min(), at_chosen.max()], expected, rtol=1e-12)


def test_the_title_is_the_verdict_the_note_names_the_run_and_the_ring_the_choice(tiny_result):
    axes = axes_of(tiny_result)
    assert title_of_figure(axes.figure) == tiny_result.verdict.title
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
    assert list(lines["Test"].get_xdata()) == sorted(cost(member.features) for member in tiny_result.front)
    assert {text.get_text(): text.xy[0] for text in axes.texts}[f"all features ({cost(range(20)):g})"] == cost(
        range(20)
    )
    assert (axes.get_xscale(), len(axes.collections)) == ("log", 1)
    free = [replace(member, objectives={**member.objectives, "cost": 0.0}) for member in priced.front[:1]]
    assert axes_of(replace(priced, front=[*free, *priced.front[1:]])).get_xscale() == "symlog"
    assert axes_of(tiny_result).get_xscale() == "linear"
    axes = axes_of(replace(priced, objectives=["cost", "error", "risk"]))
    note = " ".join(axes.figure._supxlabel.get_text().split())
    assert note.startswith("Searched: cost, error, risk. Shown: cost and NDCG@10.")
    assert (axes.lines[0].get_linestyle(), len(axes.collections)) == ("None", 0)


def shape_of(name, cuts, values, deciles):
    return Shape((name,), (tuple(cuts),), (tuple(deciles),), tuple(values), (1 / len(values),) * len(values))


SHAPES = [
    shape_of("price", [2.0, 30.0], [-0.5, 0.9, -0.4], [0.0, *range(1, 10), 5000.0]),
    shape_of("in_stock", [0.5], [-0.3, 0.3], [0.0] * 5 + [1.0] * 6),
    shape_of("a feature with a very long name", [-1.0, 0.0], [-0.2, 0.1, 0.1], np.linspace(-3.0, 2.0, 11).tolist()),
]


PAIR = Shape(
    ("free_shipping", "number_of_reviews"),
    ((0.5,), (10.0, 20.0)),
    ((0.0,) * 5 + (1.0,) * 6, tuple(range(11))),
    (0.1, -0.2, 0.3, -0.1, 0.2, -0.3),
    (1 / 6,) * 6,
)


def test_interactions_are_maps_with_a_scale(tiny_result):
    figure = draw("shapes", replace(tiny_result, shapes=[PAIR, PAIR, PAIR, *SHAPES]))
    assert_legible(figure)
    maps = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title(loc="left") for axes in maps] == ["free_s… × number…"] * 3
    (image,) = maps[0].images
    np.testing.assert_array_equal(image.get_array(), np.reshape(PAIR.values, (2, 3)).T)
    assert image.get_clim() == (-0.3, 0.3)
    assert [label.get_text() for label in maps[0].get_yticklabels()] == ["10", "20"]


def test_shapes_have_one_vertical_scale_and_a_panel_each(tiny_result):
    assert not RUN_FIGURES["shapes"].has_data(tiny_result)
    result = replace(tiny_result, shapes=SHAPES)
    assert Result.from_json(result.to_json()).shapes == SHAPES
    figure = draw("shapes", result)
    assert_legible(figure)
    for axes, shape in zip(figure.axes, SHAPES, strict=True):
        steps = axes.patches[-1].get_data()
        assert list(steps.values) == list(shape.values)
        assert list(steps.edges[1:-1]) == list(shape.thresholds[0])
        assert axes.get_ylim() == figure.axes[0].get_ylim()
        assert [*axes.lines[-1].get_xdata()] == list(shape.deciles[0])
    assert [axes.get_xscale() for axes in figure.axes] == ["symlog", "linear", "linear"]
    assert title_of_figure(figure) == "What each feature adds to the score"
    many = draw("shapes", replace(tiny_result, shapes=[SHAPES[0]] * 40))
    assert_legible(many)
    assert "22 functions with a smaller spread are left out." in many._supxlabel.get_text().replace("\n", " ")
    assert "shapes" in available_figures(result)

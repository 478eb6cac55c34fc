"""Figures of results with more objectives than number of features and error."""

import numpy as np
import pytest
from helpers.changes import replace
from helpers.drawn import OF_EVERY_SEARCH, assert_legible, lines_of, panels_of, title_of_figure
from helpers.further_objective import with_cost
from helpers.plain import front

from moerank.figures import FIGURES, RUN_FIGURES, available_figures
from moerank.studies.results import NoResultsError, Results, front_points


@pytest.fixture(scope="module")
def priced(tiny_result):
    return with_cost(tiny_result)


@pytest.fixture(scope="module")
def small(results):
    return Results(map(with_cost, results), results.ablations)


@pytest.fixture(scope="module")
def many(large):
    return Results(map(with_cost, large))


def four(result):
    """The result with a fourth objective, of a long name."""

    def risky(member):
        risk = -member.scores["validation"]["MAP"]
        return replace(member, objectives={**member.objectives, "the_risk_that_queries_become_worse": risk})

    names = [*result.objectives, "the_risk_that_queries_become_worse"]
    box = {name: result.box.get(name, (-1.0, 0.0)) for name in names}
    return replace(result, objectives=names, box=box, front=[risky(member) for member in result.front])


def metric_for_error(points, columns=(0, 1, 2)):
    """The points with NDCG in place of the error, which is objective 1."""
    return np.column_stack([1 - points[:, i] if column == 1 else points[:, i] for i, column in enumerate(columns)])


def points_of(line):
    return sorted(zip(*map(np.ndarray.tolist, map(np.asarray, line.get_data())), strict=True))


def test_a_run_shows_every_pair_of_objectives_by_their_titles(priced):
    assert RUN_FIGURES["objectives"].has_data(priced)
    panels = panels_of(RUN_FIGURES["objectives"].draw(priced))
    labels = ["Number of features", "NDCG@10", "Cost"]
    points = metric_for_error(front_points(priced))
    for axes, (x, y) in zip(panels, [(0, 1), (0, 2), (1, 2)], strict=True):
        assert axes.get_title(loc="left").replace("\n", " ").lower() == f"{labels[y]} against {labels[x]}".lower()
        assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log" if labels[y] == "Cost" else "linear")
        lines = lines_of(axes)
        best, rest, chosen = (points_of(lines[label]) for label in (priced.solver, "_members", "chosen"))
        assert rest == sorted(map(tuple, points[:, [x, y]].tolist()))
        least = front(front_points(priced)[:, [x, y]])
        assert sorted(set(best)) == sorted(map(tuple, metric_for_error(least, [x, y]).tolist()))
        assert chosen == [tuple(points[priced.chosen, [x, y]])]


def test_a_run_has_the_figure_of_objectives_only_where_there_are_others(tiny_result, priced):
    assert not RUN_FIGURES["objectives"].has_data(tiny_result)
    single = replace(priced, objectives=["cost"])
    assert not RUN_FIGURES["objectives"].has_data(single)
    with pytest.raises(NoResultsError, match="one objective"):
        RUN_FIGURES["objectives"].draw(single)
    assert available_figures(priced).keys() >= {*OF_EVERY_SEARCH, "objectives"}


@pytest.mark.parametrize("change", [lambda r: r, four, lambda r: replace(r, objectives=["error", "cost"])])
@pytest.mark.parametrize("name", ["front", "objectives"])
def test_no_text_of_a_run_is_clipped_or_overlaps(name, change, priced):
    assert_legible(RUN_FIGURES[name].draw(change(priced)))


@pytest.mark.parametrize(
    ("name", "study"), [("ablation", "small"), ("fronts", "many"), ("objectives", "small"), ("objectives", "many")]
)
def test_no_text_of_a_study_is_clipped_or_overlaps(name, study, request, problem):
    figure = FIGURES[name].draw(request.getfixturevalue(study), problem)
    assert_legible(figure)
    assert figure.get_figheight() < 9.2


def test_a_study_shows_the_fronts_in_every_pair(small, problem):
    panels = panels_of(FIGURES["objectives"].draw(small, problem, fold=2))
    titles = ["NDCG@10 against number of features", "Cost against number of features", "Cost against NDCG@10"]
    assert [axes.get_title(loc="left") for axes in panels] == titles
    for axes, pair in zip(panels, [(0, 1), (0, 2), (1, 2)], strict=True):
        for solver in ("mofsrank", "greedy-rankrls"):
            points = front_points(small.first_runs(2)[solver])[:, pair]
            line = points_of(lines_of(axes)[solver])
            assert sorted(set(line)) == sorted(map(tuple, metric_for_error(front(points), pair).tolist()))
            members = [points_of(one) for one in axes.lines if one.get_label() == "_members"]
            assert sorted(map(tuple, metric_for_error(points, pair).tolist())) in members
        assert "ranksvm-primal" not in lines_of(axes)


def test_four_objectives_fit_a_page(many, problem):
    studied = Results(map(four, many))
    figure = FIGURES["objectives"].draw(studied, problem)
    assert_legible(figure)
    assert len(panels_of(figure)) == 6
    assert figure.get_figheight() < 11.0
    assert title_of_figure(figure) == "Fronts of fold 1 in each pair of objectives"


def test_figures_of_two_objectives_say_which_and_join_no_members(small, problem, priced):
    said = "Searched: features, error, cost. Shown: number of features and NDCG@10."
    fronts = FIGURES["fronts"].draw(small, problem)
    ablation = FIGURES["ablation"].draw(small, problem)
    one = RUN_FIGURES["front"].draw(priced)
    for figure in (fronts, ablation, one):
        assert said in " ".join(figure._supxlabel.get_text().split())
    assert all(line.get_linestyle() == "None" for axes in panels_of(fronts) for line in axes.lines)
    assert all(line.get_linestyle() == "None" for line in panels_of(ablation)[0].lines)
    assert [line.get_linestyle() for line in panels_of(one)[0].lines[:3]] == ["None"] * 3


def test_attainment_surfaces_are_of_number_of_features_and_error(small, problem):
    with pytest.raises(NoResultsError, match="but tiny has features, error, cost"):
        FIGURES["attainment"].draw(small, problem)

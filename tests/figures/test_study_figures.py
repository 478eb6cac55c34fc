import dataclasses

import numpy as np
import pytest
from test_figures import texts_on_the_page

from moerank import figures
from moerank.figures.study import best_by_size, mean_by_size, of_problem, solver_style
from moerank.studies.cell import Cell, SolverSpec
from moerank.studies.problem import Published

OF_PROBLEMS = ("ablation", "accuracy", "attainment", "cost", "frequency", "fronts", "hypervolume")


@pytest.fixture(scope="module")
def problem(tiny_study):
    return tiny_study.problems[0]


@pytest.fixture(scope="module")
def results(tiny_study):
    return tiny_study.results()


@pytest.fixture(scope="module")
def crowd(results):
    """A study of twenty solvers with long labels."""
    cells = {}
    for number in range(4):
        for cell, result in results.items():
            given = {} if number == 0 else {"a_parameter": number}
            cells[Cell(cell.problem, cell.fold, SolverSpec(cell.solver.name, given), cell.seed)] = result
    return cells


def draw(name, results, problem):
    figure = getattr(figures, f"{name}_figure")
    return figure(results) if name == "ranks" else figure(results, problem)


@pytest.fixture(scope="module")
def hostile(results):
    """A study with labels longer than the page is wide, and names with signs that mean something elsewhere."""
    cells = {}
    for cell, result in results.items():
        names = [f"$x^{{{number} <b>& a name that goes on and on \\frac$" for number in range(20)]
        given = {"lambda1": 0.001, "lambda2": 0.001, "target": "$y^", "another_one": "difference"}
        renamed = dataclasses.replace(result, feature_names=names)
        cells[cell] = renamed
        cells[Cell(cell.problem, cell.fold, SolverSpec(cell.solver.name, given), cell.seed)] = renamed
    return cells


@pytest.mark.parametrize("name", [*OF_PROBLEMS, "ranks"])
@pytest.mark.parametrize("of", ["results", "crowd", "hostile"])
def test_no_text_is_clipped_or_overlaps(name, of, request, problem):
    published = tuple(
        Published(method=f"Method {i} of others", features=3 + i, scores={"NDCG@10": 0.9}, source="") for i in range(9)
    )
    problem = problem.model_copy(update={"published": published})
    figure = draw(name, request.getfixturevalue(of), problem)
    boxes = texts_on_the_page(figure)
    page = figure.bbox
    assert len(boxes) > 5
    assert figure.get_figwidth() == pytest.approx(3.4)
    heights = [axes.get_window_extent().height / figure.dpi for axes in figure.axes if axes.get_label() != "<colorbar>"]
    assert min(heights) > 0.6  # the legend takes nothing from the panels
    for text, box in boxes:
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1, text
    for number, (text, box) in enumerate(boxes):
        for other, another in boxes[:number]:
            assert not box.shrunk(0.9, 0.9).overlaps(another.shrunk(0.9, 0.9)), (text, other)


def test_best_by_size_is_what_validation_would_choose(results):
    result = next(result for cell, result in results.items() if cell.solver.name == "mofsrank")
    values = best_by_size(result, "test", "MAP")
    for k, value in enumerate(values, start=1):
        small = [member for member in result.front if len(member.features) <= k]
        if not small:
            assert np.isnan(value)
            continue
        best = max(small, key=lambda m: (m.scores["validation"][result.metrics[0]], -len(m.features)))
        assert value == best.scores["test"]["MAP"]


def test_means_are_over_seeds_then_folds(results):
    folds = of_problem(results, "tiny")["mofsrank"]
    expected = np.mean([np.mean([best_by_size(r, "test", "MAP") for r in runs], axis=0) for runs in folds.values()], 0)
    np.testing.assert_array_equal(mean_by_size(folds, "test", "MAP"), expected)


def test_published_points_are_shown_where_they_are_known(results, problem):
    entry = Published(method="Theirs", features=4.0, scores={"NDCG@10": 0.9}, source="a paper")
    known = problem.model_copy(update={"published": (entry,)})
    texts = [text for text, _ in texts_on_the_page(figures.accuracy_figure(results, known))]
    assert "Theirs, published" in texts


def test_styles_differ():
    styles = [tuple(map(str, solver_style(number).values())) for number in range(385)]
    assert len(set(styles)) == 385


@pytest.mark.parametrize("name", ["ablation", "attainment", "hypervolume", "frequency", "ranks"])
def test_what_a_study_does_not_have_is_not_drawn(name, results, problem):
    only = {cell: result for cell, result in results.items() if cell.solver.name == "ranksvm-primal"}
    with pytest.raises(ValueError, match=r"."):
        draw(name, only, problem)
    with pytest.raises(ValueError, match="no finished cell of elsewhere"):
        figures.accuracy_figure(results, problem.model_copy(update={"name": "elsewhere"}))


def test_the_metric_is_that_of_the_problem(results, problem):
    """Not that of whichever problem comes first in the study."""
    other = problem.model_copy(update={"name": "other"})
    renamed = {}
    for cell, result in results.items():
        scores = {part: {"P@5": values["MAP"]} for part, values in result.best.scores.items()}
        front = [dataclasses.replace(result.best, scores=scores)]
        moved = dataclasses.replace(result, metrics=["P@5"], front=front, chosen=0)
        renamed[Cell(other, cell.fold, cell.solver, cell.seed)] = moved
    for draw_it in (figures.accuracy_figure, figures.cost_figure):
        (axes,) = draw_it({**results, **renamed}, other).axes
        assert axes.get_ylabel() == "Test P@5"


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_files_are_always_the_same_and_of_the_format_of_their_ending(kind, results, problem, tmp_path):
    first, second = (
        figures.save_figure(figures.cost_figure(results, problem), tmp_path / f"{i}.{kind}").read_bytes() for i in "ab"
    )
    assert first == second
    assert {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[kind] == first[: 5 if kind == "svg" else 4]


@pytest.mark.parametrize("name", ["figure", "figure.jpeg"])
def test_a_file_that_is_no_figure_is_refused(name, results, problem, tmp_path):
    with pytest.raises(ValueError, match=r"ends in one of \.png, \.pdf, \.svg"):
        figures.save_figure(figures.cost_figure(results, problem), tmp_path / name)

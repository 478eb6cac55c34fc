import logging
import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from helpers.changes import replace
from helpers.drawn import assert_legible, texts_on_the_page

from moerank.figures.of_study import FIGURES
from moerank.figures.panels import MOST_LINES, by_family, solver_style
from moerank.figures.style import encode, save_figure
from moerank.solvers import solvers
from moerank.studies.problem import Published
from moerank.studies.results import NoResultsError, Results
from moerank.studies.solver import Solver


def relabelled(result, parameters):
    return replace(result, solver=Solver(name=result.solver, parameters=parameters).label)


def draw(name, results, problem, **options):
    return FIGURES[name].draw(results, problem if FIGURES[name].of_problem else None, **options)


def panels_of(figure):
    """Return the axes that are drawn; those of legends are not."""
    return [axes for axes in figure.axes if axes.axison]


def words_of(texts):
    """Return all words, labels that are broken at a hyphen put together."""
    texts = [re.sub(r"-\n\s*", "-", text) for text in texts]
    return {word.strip(".:") for text in texts for word in re.split(r"[\s,]+", text)}


@pytest.fixture(scope="module")
def hostile(results):
    """A study with labels longer than the page is wide, and names with signs that mean something elsewhere."""
    names = [f"$x^{{{number} <b>& a name that goes on and on \\frac$" for number in range(20)]
    given = {"lambda1": 0.001, "lambda2": 0.001, "target": "$y^", "another_one": "difference"}
    renamed = [replace(result, feature_names=names) for result in results]
    return Results(entry for result in renamed for entry in (result, relabelled(result, given)))


@pytest.fixture(scope="module")
def crowded_problem(problem):
    """The problem with many published results."""
    published = tuple(
        Published(method=f"Method {i} of others", features=3 + i, scores={"NDCG@10": 0.9}, source="") for i in range(9)
    )
    return problem.model_copy(update={"published": published})


def assert_well_laid_out(figure):
    """Assert that a column is filled and everything legible, and return the texts."""
    texts = assert_legible(figure)
    assert figure.get_figwidth() == pytest.approx(3.4)
    panels = [axes for axes in panels_of(figure) if axes.get_label() != "<colorbar>"]
    heights = [axes.get_window_extent().height / figure.dpi for axes in panels]
    assert min(heights) > 0.55  # legends and notes take nothing from the panels
    return texts


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_is_clipped_or_overlaps(name, hostile, crowded_problem):
    assert_well_laid_out(draw(name, hostile, crowded_problem))


def test_published_results_of_one_method_are_joined_by_their_number_of_features(results, problem):
    sizes = {"Front": (9.0, 3.0, 6.0), "Point": (4.0,)}
    entries = [
        Published(method=method, features=size, scores={"NDCG@10": 0.8 + size / 100}, source="a paper")
        for method, of_method in sizes.items()
        for size in of_method
    ]
    figure = draw("accuracy", results, problem.model_copy(update={"published": tuple(entries)}))
    lines = {line.get_label(): line for axes in panels_of(figure) for line in axes.lines}
    front, point = lines["Front, published"], lines["Point, published"]
    np.testing.assert_allclose(front.get_xydata(), [[3.0, 0.83], [6.0, 0.86], [9.0, 0.89]])
    assert (front.get_linestyle(), point.get_linestyle()) == ("-", "None")
    np.testing.assert_allclose(point.get_xydata(), [[4.0, 0.84]])


def test_styles_differ():
    styles = [tuple(map(str, solver_style(number).values())) for number in range(616)]
    assert len(set(styles)) == 616


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ablation", "the study of tiny has no ablations; add them with moerank study … --ablate"),
        ("attainment", "no solver ran with several seeds and offers several sizes on fold 1 of tiny"),
        ("fronts", "no solver offers more than one size on fold 1 of tiny"),
        ("hypervolume", "no solver of the study of tiny is a search"),
        ("frequency", "no solver of the study of tiny selects features"),
        ("ranks", "ranks need at least three solvers that have at least two folds in common"),
    ],
)
def test_what_a_study_does_not_have_is_not_drawn(name, message, results, problem):
    with pytest.raises(NoResultsError, match=re.escape(message)):
        draw(name, results.among(["ranksvm-primal"]), problem)


def test_what_was_not_run_or_is_not_taken_is_refused(results, problem):
    for name, asked, message in [
        ("accuracy", dict(problem=problem.model_copy(update={"name": "elsewhere"})), "no finished run of elsewhere"),
        ("accuracy", dict(problem=problem, metric="MPA"), "did you mean 'MAP'"),
        ("fronts", dict(problem=problem, fold=3), "fold 3 has no finished cell; choose one of 1, 2"),
        ("fronts", dict(problem=problem, metric="MAP"), "takes no metric"),
        ("cost", dict(problem=problem, fold=1), "takes no fold"),
        ("cost", dict(), "of one problem"),
    ]:
        with pytest.raises(ValueError, match=message):
            FIGURES[name].draw(results, **asked)


def test_the_metric_is_that_of_the_problem(results, problem):
    """Not that of whichever problem comes first in the study."""
    other = problem.model_copy(update={"name": "other"})
    renamed = []
    for result in results:
        scores = {part: {"P@5": values["MAP"]} for part, values in result.best.scores.items()}
        front = [replace(result.best, scores=scores)]
        renamed.append(replace(result, problem="other", metrics=["P@5"], front=front, chosen=0))
    both = Results([*results, *renamed])
    for name in ("accuracy", "cost"):
        assert [axes.get_ylabel() for axes in panels_of(draw(name, both, other))] == ["Test P@5"]


@pytest.mark.parametrize(
    ("name", "kind", "begin", "end"),
    [
        ("accuracy", "png", b"\x89PNG", b"IEND\xaeB`\x82"),
        ("cost", "pdf", b"%PDF", b"%%EOF"),
        ("frequency", "svg", b"<?xml", b"</svg>"),
    ],
)
def test_files_are_always_the_same_and_of_the_format_of_their_ending(
    name, kind, begin, end, results, problem, tmp_path
):
    figures = [draw(name, results, problem) for _ in range(2)]
    first, second = (save_figure(figure, tmp_path / f"x.{kind}").read_bytes() for figure in figures)
    assert first == second
    assert first.startswith(begin) and first.rstrip().endswith(end)


@pytest.mark.parametrize("name", ["figure", "figure.jpeg"])
def test_a_file_that_is_no_figure_is_refused(name, results, problem, tmp_path):
    with pytest.raises(ValueError, match=r"ends in one of \.png, \.pdf, \.svg"):
        save_figure(draw("cost", results, problem), tmp_path / name)


@pytest.mark.parametrize("name", FIGURES)
def test_a_large_study_fits_a_page_and_names_every_solver(name, large, drawn_large):
    figure = drawn_large(name)
    words = words_of(assert_well_laid_out(figure))
    assert figure.get_figheight() < 9.2  # the height of the text on a page of A4
    # An ablation has four solvers, and the cost names those that no other one beats; its other tests say which.
    expected = large.solvers if name not in ("ablation", "cost") else []
    assert set(expected) <= words


@pytest.mark.parametrize("name", ["accuracy", "attainment", "fronts", "hypervolume"])
def test_no_panel_has_more_lines_than_can_be_told_apart_without_colour(name, drawn_large):
    panels = panels_of(drawn_large(name))
    assert len(panels) > 1
    for axes in panels:
        lines = [line for line in axes.lines if not line.get_label().startswith("_")]
        of_solvers = [line for line in lines if not line.get_label().endswith(", published")]  # grey points
        assert 0 < len(of_solvers) <= MOST_LINES
        assert len({str(line._unscaled_dash_pattern) + str(line.get_marker()) for line in lines}) == len(lines)


def test_families_are_divided_into_panels_with_their_title():
    table = list(solvers())
    panels = by_family(table)
    assert sorted(solver for panel in panels.values() for solver in panel) == sorted(table)
    assert panels["Wrapper"] == [name for name in table if solvers()[name].family == "wrapper"]
    searches = [solver for solver in table if solvers()[solver].family == "evolutionary"]
    assert panels["Evolutionary search, 1 of 2"] + panels["Evolutionary search, 2 of 2"] == searches
    fewer = by_family(table[:10])
    assert fewer["MOFSRank and its ablations"] == table[:4]
    assert fewer["MOFSRank with other searches"] == table[4:10]
    assert [len(panel) for title, panel in panels.items() if title.startswith("Ranker")] == [8, 8]
    few = ["mofsrank", "rankrls", "gas", "listnet", "fs-bfs", "fsmrank", "frank", "crr", "svm-map", "adarank"]
    assert by_family(few)["Wrapper, filter, embedded"] == ["fs-bfs", "gas", "fsmrank"]
    many = [f"fsmrank[lambda1={i}]" for i in range(19)]
    parts = by_family(many)
    assert list(parts) == [f"Embedded, {number} of 3" for number in (1, 2, 3)]
    assert [solver for part in parts.values() for solver in part] == many
    assert by_family(few[:9]) == {"": few[:9]}


@pytest.mark.parametrize("name", FIGURES)
def test_only_the_chosen_solvers_are_drawn(name, results, problem):
    chosen = ["mofsrank-no-ensemble", "mofsrank", "greedy-rankrls"]
    if name in ("attainment", "hypervolume", "ablation"):
        chosen = chosen[:2]
    words = words_of(text for text, _ in texts_on_the_page(draw(name, results, problem, solvers=chosen)))
    shown = {"all": "mofsrank", "ensemble": "mofsrank-no-ensemble"} if name == "ablation" else {s: s for s in chosen}
    assert set(shown) <= words
    assert not {"fsmrank", "ranksvm-primal"} & words
    with pytest.raises(ValueError, match="did you mean 'fsmrank'"):
        draw(name, results, problem, solvers=["fsmrnk"])


def test_what_is_asked_for_and_cannot_be_drawn_is_named(results, problem):
    asked = ["mofsrank", "ranksvm-primal"]
    notes = {
        "fronts": "No front, for they offer one size: ranksvm-primal.",
        "attainment": "Median and quartiles of 3 seeds. No surface, for they ran with one seed: ranksvm-primal.",
        "hypervolume": "No search: ranksvm-primal.",
        "frequency": "Left out, for they offer one size: ranksvm-primal.",
    }
    for name, note in notes.items():
        texts = [text.replace("\n", " ") for text, _ in texts_on_the_page(draw(name, results, problem, solvers=asked))]
        assert note in texts, name


@pytest.mark.parametrize("name", ["fronts", "frequency", "cost"])
def test_vector_files_are_made_without_a_warning_and_are_small(name, drawn_large, caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        pdf, svg = (encode(drawn_large(name), kind) for kind in ("pdf", "svg"))
    assert caplog.records == []
    assert pdf.startswith(b"%PDF") and pdf.rstrip().endswith(b"%%EOF")
    ElementTree.fromstring(svg)
    assert len(svg) < 7_100 * len(solvers())


def test_a_small_svg_has_lines_and_markers_where_they_were(results, problem):
    figure = draw("accuracy", results, problem, solvers=["greedy-rankrls"], limits=(0.0, 1.0))
    svg = ElementTree.fromstring(encode(figure, "svg"))
    axes = panels_of(figure)[0]
    figure.dpi = 72  # that of the file, for which the panels were laid out
    (line,) = (line for line in axes.lines if line.get_label() == "greedy-rankrls")
    there = axes.transData.transform(np.column_stack(line.get_data())) * (1, -1) + (0, 72 * figure.get_figheight())
    space = "{http://www.w3.org/2000/svg}"
    paths = [path.get("d") for path in svg.iter(f"{space}path") if path.get("clip-path")]
    drawn = [np.array(re.findall(r"[ML] (\S+) (\S+)", path), float) for path in paths]
    assert min(np.abs(d - there).max() for d in drawn if d.shape == there.shape) < 0.011
    uses = [use for use in svg.iter(f"{space}use") if use.get("x")]
    markers = np.array([(float(use.get("x")), float(use.get("y"))) for use in uses])
    first = there[:: max(1, len(there) // 8)]
    assert all(np.abs(markers - place).max(axis=1).min() < 0.011 for place in first)

import logging
import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from helpers.changes import replace
from helpers.drawn import assert_legible, panels_of, texts_on_the_page

from moerank.figures import FIGURES
from moerank.figures.panels import MOST_LINES, apart_from_first, best_of_families
from moerank.figures.style import encode, save_figure
from moerank.rankers.shapes import Shape
from moerank.solvers import FAMILIES, solvers
from moerank.studies.problem import Published
from moerank.studies.results import NoResultsError, Results
from moerank.studies.solver import Solver

OF_SOLVERS = [name for name in FIGURES if name != "shapes"]  # which no solver of these studies has


def relabelled(result, parameters):
    return replace(result, solver=Solver(name=result.solver, parameters=parameters).label)


def draw(name, results, problem, **options):
    return FIGURES[name].draw(results, problem, **options)


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
    both = [entry for result in renamed for entry in (result, relabelled(result, given))]
    return Results(both, results.ablations)


@pytest.fixture(scope="module")
def crowded_problem(problem):
    """The problem with many published results."""
    published = tuple(
        Published(method=f"Method {i} of others", features=3 + i, scores={"NDCG@10": 0.9}, source="") for i in range(9)
    )
    return problem.model_copy(update={"published": published})


def assert_well_laid_out(figure):
    """Assert that everything is legible and panels are high enough."""
    assert_legible(figure)
    panels = [axes for axes in panels_of(figure) if axes.get_label() != "<colorbar>"]
    heights = [axes.get_window_extent().height / figure.dpi for axes in panels]
    assert min(heights) > 0.55  # legends and notes take nothing from the panels


@pytest.mark.parametrize("name", OF_SOLVERS)
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


def test_shapes_are_those_of_the_first_solver_that_has_some(results, problem):
    shape = Shape(("price",), ((2.0, 30.0),), (tuple(range(11)),), (-0.5, 0.9, -0.4), (0.2, 0.3, 0.5))
    additive = Results(replace(run, shapes=[shape] * (run.solver == "mofsrank")) for run in results)
    assert FIGURES["shapes"].reported(additive) and not FIGURES["shapes"].reported(results)
    figure = draw("shapes", additive, problem, fold=2)
    assert_well_laid_out(figure)
    assert "fold 2: mofsrank." in " ".join(figure._supxlabel.get_text().split())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ablation", "the study of tiny has no ablations; add them with moerank study … --ablate"),
        ("attainment", "no solver ran with several seeds and offers several sizes on fold 1 of tiny"),
        ("fronts", "no solver offers more than one size on fold 1 of tiny"),
        ("hypervolume", "no solver of the study of tiny is a search"),
        ("frequency", "no solver of the study of tiny selects features"),
        ("shapes", "no solver adds up functions of features on fold 1 of tiny"),
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
    with pytest.raises(ValueError, match="Format 'docx' is not supported"):
        save_figure(figures[0], tmp_path / "figure.docx")


@pytest.mark.parametrize("name", OF_SOLVERS)
def test_a_large_study_fits_a_glance_and_its_lines_can_be_told_apart_without_colour(name, drawn_large):
    figure = drawn_large(name)
    assert_well_laid_out(figure)
    assert figure.get_figheight() < 9.0  # at most a page
    for axes in panels_of(figure) if name in ("accuracy", "attainment", "fronts", "hypervolume") else ():
        lines = [line for line in axes.lines if not line.get_label().startswith("_")]
        of_solvers = [line for line in lines if not re.search(r", published| others$|^chosen", line.get_label())]
        assert 0 < len(of_solvers) <= MOST_LINES + 1
        looks = {str(line._unscaled_dash_pattern) + str(line.get_marker()) for line in of_solvers}
        assert len(looks) == len(of_solvers)


def test_of_many_solvers_the_best_of_each_family_by_validation_have_a_colour(large):
    frame = large.frame
    folds = frame.groupby(["solver", "fold"])["validation NDCG@10"].mean()
    means = folds.groupby("solver").mean()
    best = [max((s for s in means.index if solvers()[s].family == f), key=means.get) for f in FAMILIES]
    assert best_of_families(large, large.solvers) == best
    assert best_of_families(large, large.solvers[:6]) == large.solvers[:6]


def test_findings_are_worded_by_what_is_shown(results):
    (run, *_) = [result for result in results if result.solver == "fsmrank"]
    size = f"{run.verdict.n_features} of 20 features"
    for difference, n, words in [
        (-0.05, 400, f"{size}, at a loss: they score .050 below all 20, which is detected on 400 test queries"),
        (0.05, 400, f"{size}: they score .050 above all 20, which is detected on 400 test queries"),
        (-0.0003, 1000, f"{size}: they score .000 below all 20, which is within .005 on 1,000 test queries"),
        (-0.002, 40, f"{size}: they score .002 below all 20, which 40 test queries cannot tell from 0"),
        (-0.05, 8, f"{size}: they score .050 below all 20, which 8 test queries cannot tell from 0"),
    ]:
        spread = 0.05 if n == 40 else 0.01
        differences = tuple(np.tile([difference - spread, difference + spread], n // 2).tolist())
        assert run.verdict.model_copy(update={"n_queries": n, "differences": differences}).title == words
    some = run.verdict.model_copy(update={"n_queries": 500, "differences": (-0.06, -0.04) * 200})
    assert some.title.endswith("is detected on the 400 of 500 test queries that can differ")


def runs_ahead(step, noise=0.0):
    """A value of 25 runs, 5 folds of 5 seeds, that is ahead of that of the solver without a step."""
    index = pd.MultiIndex.from_product([range(1, 6), range(5)])
    return pd.Series(np.repeat(np.arange(5.0), 5) + step + noise * (-1.0) ** np.arange(25), index)


def test_solvers_are_apart_if_a_test_says_so():
    ends = {"a": runs_ahead(0), "b": runs_ahead(0, noise=1), "c": runs_ahead(3), "d": runs_ahead(-1)}
    title = "Against a in training (signed-rank test of 25 runs, Holm): 1 better, 1 worse, 1 undecided"
    assert apart_from_first(ends, largest=True) == (["a", "b", "c", "d"], title)
    assert apart_from_first({"a": ends["a"], "c": ends["c"]}, largest=False)[1].endswith(
        ": 0 better, 1 worse, 0 undecided"
    )
    many = ends | {f"m{i}": runs_ahead(0) for i in range(9)} | {f"far{i}": runs_ahead(9 + i) for i in range(6)}
    drawn, title = apart_from_first(many, largest=True)
    assert drawn == ["a", *(f"far{i}" for i in range(1, 6))]  # the farthest
    assert title.endswith(": 7 better, 1 worse, 10 undecided")
    few = {name: values.loc[1] for name, values in ends.items()}
    assert apart_from_first(few, largest=True)[1] == "5 runs of each search: too few to tell a difference"


@pytest.mark.parametrize("folds", [1, 5])
def test_equal_searches_are_rarely_called_different(folds):
    """Families of seven equal searches with five seeds a fold: at most 6 % of the titles word a finding."""
    rng, index = np.random.default_rng(1), pd.MultiIndex.from_product([range(folds), range(5)])
    titles = []
    for _ in range(300):
        easy = np.repeat(rng.normal(size=folds), 5)
        ends = {name: pd.Series(easy + rng.normal(size=len(index)), index) for name in "abcdefg"}
        titles.append(apart_from_first(ends, largest=True)[1])
    worded = sum("too few" not in title and "0 better, 0 worse" not in title for title in titles)
    assert worded <= 18


@pytest.mark.parametrize("name", OF_SOLVERS)
def test_only_the_chosen_solvers_are_drawn(name, results, problem):
    chosen = ["mofsrank[ensemble=false]", "mofsrank"]
    texts = [text for text, _ in texts_on_the_page(draw(name, results, problem, solvers=chosen))]
    words, page = words_of(texts), re.sub(r"\s", "", "".join(texts))
    shown = ("complete", "ensemble") if name == "ablation" else chosen
    assert all(re.sub(r"\s", "", label) in page for label in shown)
    assert not {"fsmrank", "ranksvm-primal"} & words
    with pytest.raises(ValueError, match="did you mean 'fsmrank'"):
        draw(name, results, problem, solvers=["fsmrnk"])


def test_what_is_asked_for_and_cannot_be_drawn_is_named(results, problem):
    asked = ["mofsrank", "ranksvm-primal"]
    notes = {
        "fronts": "Not drawn, because they offer a single size: ranksvm-primal.",
        "attainment": "Median and quartiles of 3 seeds. Not drawn, because they have a single seed: ranksvm-primal.",
        "hypervolume": "Hypervolume: share of the box from features 0, error 0 to the reference point features 20, "
        "error 1 (instance selection: all pairs, error 1). No search: ranksvm-primal.",
        "frequency": "Cells: per cent of the runs. Below the solvers: mean Jaccard index of two runs (corrected for "
        "chance). Not drawn, because they offer a single size: ranksvm-primal.",
    }
    for name, note in notes.items():
        texts = [text.replace("\n", " ") for text, _ in texts_on_the_page(draw(name, results, problem, solvers=asked))]
        assert note in texts, name
    some = Results(run for run in results if (run.solver, run.fold) != ("mofsrank", 2))
    texts = [text.replace("\n", " ") for text, _ in texts_on_the_page(draw("fronts", some, problem, fold=2))]
    assert any(text.startswith("Not run: mofsrank. Not drawn, because they offer a single size: ") for text in texts)


@pytest.mark.parametrize("name", ["fronts", "frequency", "cost"])
def test_vector_files_are_made_without_a_warning_and_are_small(name, drawn_large, caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        pdf, svg = (encode(drawn_large(name), kind) for kind in ("pdf", "svg"))
    assert caplog.records == []
    assert pdf.startswith(b"%PDF")
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
    first, step = line.get_markevery()
    assert all(np.abs(markers - point).max(axis=1).min() < 0.011 for point in there[first::step])

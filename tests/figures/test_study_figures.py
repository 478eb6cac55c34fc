import itertools
import logging
import re
import warnings
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from helpers.changes import replace
from helpers.drawn import assert_legible, lines_of, panels_of, texts_on_the_page, title_of_figure
from scipy.stats import rankdata

from moerank.figures import FIGURES
from moerank.figures.panels import (
    MAX_LINES,
    assign_looks,
    best_of_families,
    farthest_from_first,
    fixed_looks,
    solver_style,
)
from moerank.figures.ranks_of_study import ranks_figure
from moerank.figures.style import axis_limits, encode, in_style, save_figure
from moerank.rankers.shapes import Shape
from moerank.runs.problem import Published
from moerank.runs.solver import NamedSolver
from moerank.solvers import FAMILIES, solvers
from moerank.statistics import friedman
from moerank.studies.comparison import compare_solvers
from moerank.studies.results import NoResultsError, Results

OF_SOLVERS = [name for name in FIGURES if name != "shapes"]  # which no solver of these studies has


def relabelled(result, parameters):
    return replace(result, solver=NamedSolver(name=result.solver, parameters=parameters).label)


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
    rename_solvers = [replace(result, feature_names=names) for result in results]
    both = [entry for result in rename_solvers for entry in (result, relabelled(result, given))]
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
    assert "Published: all folds, by the papers' programs. Ours: fold 1, 2." in " ".join(
        figure._supxlabel.get_text().split()
    )


def test_shapes_are_those_of_the_first_solver_that_has_some(results, problem):
    shape = Shape(("price",), ((2.0, 30.0),), (tuple(range(11)),), (-0.5, 0.9, -0.4), (0.2, 0.3, 0.5))
    additive = Results(replace(run, shapes=[shape] * (run.solver == "mofsrank")) for run in results)
    assert FIGURES["shapes"].is_reported(additive) and not FIGURES["shapes"].is_reported(results)
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
        ("shapes", "no solver has shape functions on fold 1 of tiny"),
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
    rename_solvers = []
    for result in results:
        scores, per_query = (
            {part: {"P@5": values["MAP"]} for part, values in measured.items()}
            for measured in (result.best.scores, result.best.per_query)
        )
        front = [replace(result.best, scores=scores, per_query=per_query)]
        rename_solvers.append(replace(result, problem="other", metrics=["P@5"], front=front, chosen=0))
    both = Results([*results, *rename_solvers])
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
        assert 0 < len(of_solvers) <= MAX_LINES + 1
        looks = {str(line._unscaled_dash_pattern) + str(line.get_marker()) for line in of_solvers}
        assert len(looks) == len(of_solvers)


def test_a_solver_has_its_look_in_each_figure_and_no_two_of_a_figure_share_a_colour():
    solvers = ["fenchelrank", "greedy-rankrls", "mofsrank", "fsmrank", "gas-e"]  # two of which begin with one colour
    looks = assign_looks(solvers)
    assert len({solver_style(number)["color"] for number in looks.values()}) == len(solvers)
    for solver in ("mofsrank", "fsmrank", "gas-e"):
        assert looks[solver] == assign_looks([solver])[solver]
    assert looks == assign_looks(solvers[::-1])
    many = assign_looks([*fixed_looks()])
    assert len(set(many.values())) == len(many)


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
        (-0.05, 400, f"{size} rank worse: on 400 test queries, they score .050 below all 20, which is detected"),
        (0.05, 400, f"{size}: on 400 test queries, they score .050 above all 20, which is detected"),
        (-0.0003, 1000, f"{size}: on 1,000 test queries, they score .000 below all 20, which is within .005"),
        (-0.002, 40, f"{size}: on 40 test queries, they score .002 below all 20; too few to tell"),
        (-0.05, 8, f"{size}: on 8 test queries, they score .050 below all 20; too few to tell"),
    ]:
        spread = 0.05 if n == 40 else 0.01
        differences = tuple(np.tile([difference - spread, difference + spread], n // 2).tolist())
        assert run.verdict.model_copy(update={"n_queries": n, "differences": differences}).title == words
    some = run.verdict.model_copy(update={"n_queries": 500, "differences": (-0.06, -0.04) * 200})
    assert ": on 400 informative test queries of 500, they score .050 below" in some.title


def test_of_many_solvers_those_have_colours_that_are_farthest_from_the_first(results):
    """By the hypervolume, as a mean over seeds, then folds."""
    some = results.among(["mofsrank", "fsmrank", "ranksvm-primal", "greedy-rankrls"])
    assert farthest_from_first(some) == some.solvers
    far = {run.solver: run for run in results}["ranksvm-primal"].front  # a single member with all features
    near = [replace(run, solver=f"near {i}") for i in range(9) for run in results if run.solver == "mofsrank"]
    away = [replace(run, solver=f"far {i}", front=far, chosen=0) for i in (0, 1, 2) for run in near[:6]]
    many = Results([*near[:12], *away, *near[12:]])
    assert farthest_from_first(many) == ["near 0", "near 1", "far 0", "far 1", "far 2", "near 2"]


def test_only_four_figures_state_a_finding(results, problem):
    titles = {
        name: title_of_figure(draw(name, results, problem, paper={})) for name in OF_SOLVERS if name != "objectives"
    }
    assert "Validation chooses " in titles.pop("accuracy")
    pair = results.among(["mofsrank", "mofsrank[ensemble=false]"])
    names = {"mofsrank": "complete", "mofsrank[ensemble=false]": "without ensemble"}
    assert titles.pop("ablation") == compare_solvers(pair, "test NDCG@10", "mofsrank").renamed(names).sentence
    assert titles.pop("hypervolume") == (
        "Hypervolume against mofsrank, fold by fold (2). True by construction, not tested: mofsrank without ensemble."
    )
    assert titles == {
        "fronts": "Fronts of fold 1",
        "attainment": "Attainment surfaces of fold 1",
        "cost": "Test NDCG@10 and training time of 5 solvers",
        "instances": "Share of the pairs that each member was trained on",
        "frequency": "Frequency of the features in the chosen members",
    }


@pytest.mark.parametrize("name", OF_SOLVERS)
def test_only_the_chosen_solvers_are_drawn(name, results, problem):
    chosen = ["mofsrank[ensemble=false]", "mofsrank"]
    texts = [text for text, _ in texts_on_the_page(draw(name, results, problem, solvers=chosen))]
    words, page = words_of(texts), re.sub(r"\s", "", "".join(texts))
    shown = ("complete", "ensemble") if name == "ablation" else ("mofsrank without ensemble", "mofsrank")
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


PARTS = ("train", "validation", "test")


def panel_of(figure, solver, column=0):
    """Return the axes in which a solver has a line of its own, that of the given column."""
    return [axes for axes in panels_of(figure) if solver in lines_of(axes)][column]


def runs_of(results, solver):
    """Return the results of a solver by fold, in the order of the seeds."""
    runs = {}
    for result in sorted((r for r in results if r.solver == solver), key=lambda r: (r.fold, r.seed)):
        runs.setdefault(result.fold, []).append(result)
    return runs


def mean_over_runs(results, solver, value):
    """Average over the seeds of a fold, then over the folds."""
    return np.mean([np.mean([value(run) for run in seeds], axis=0) for seeds in runs_of(results, solver).values()], 0)


def best_with(run, k, chosen_on):
    small = [member for member in run.front if len(member.features) <= k]
    return max(small, key=lambda m: (m.scores[chosen_on][run.metrics[0]], -len(m.features)), default=None)


def curve(results, solver, part, metric, chosen_on="validation"):
    def values(run):
        members = [best_with(run, k, chosen_on) for k in range(1, len(run.feature_names) + 1)]
        return [np.nan if member is None else member.scores[part][metric] for member in members]

    return mean_over_runs(results, solver, values)


def score(results, solver, metric):
    return float(mean_over_runs(results, solver, lambda run: run.best.scores["test"][metric]))


def seconds(results, solver):
    runs = [run for seeds in runs_of(results, solver).values() for run in seeds]
    return np.mean([run.times.tuning + run.times.solver for run in runs])


@pytest.mark.parametrize("metric", ["NDCG@10", "MAP"])
def test_accuracy_is_of_what_validation_would_choose(results, problem, metric):
    lines = lines_of(panel_of(FIGURES["accuracy"].draw(results, problem, metric=metric), "mofsrank"))
    for solver in ("mofsrank", "mofsrank[ensemble=false]", "greedy-rankrls", "fsmrank"):
        x, y = lines[solver].get_data()
        assert list(x) == list(range(1, 21))
        np.testing.assert_allclose(y, curve(results, solver, "test", metric), rtol=1e-14)
    x, y = lines["ranksvm-primal"].get_data()
    assert list(x) == [20]
    assert y[0] == pytest.approx(score(results, "ranksvm-primal", metric), rel=1e-14)


def test_accuracy_of_many_has_the_best_of_each_family_and_the_others_in_grey(large, drawn_large):
    (axes,) = drawn_large("accuracy").axes
    lines = lines_of(axes)
    best = best_of_families(large, large.solvers)
    others = f"{len(large.solvers) - len(best)} others"
    assert lines[others].get_linestyle() == "-"
    assert lines_of(*drawn_large("cost").axes)[others].get_marker() == "o", "drawn as points"
    for solver in large.solvers:
        if solvers()[solver].family == "ranker":
            expected = [(20.0, score(large, solver, "NDCG@10"))]
        else:
            expected = list(enumerate(curve(large, solver, "test", "NDCG@10"), start=1))
        line = lines[solver if solver in best else f"_{solver}"]
        np.testing.assert_allclose(line.get_xydata(), expected, rtol=1e-14)
        assert (line.get_color() == "0.8") == (solver not in best)
    assert lines["Theirs, published"].get_xydata().tolist() == [[4.0, 0.93]]
    assert lines["Others, published"].get_xydata().tolist() == [[7.5, 0.91]]


def test_fronts_are_the_members_of_the_first_seed(results, problem):
    figure = FIGURES["fronts"].draw(results, problem, fold=2)
    for solver in ("mofsrank", "greedy-rankrls"):
        front = runs_of(results, solver)[2][0].front
        for column, part in enumerate(PARTS):
            sizes, values = lines_of(panel_of(figure, solver, column))[solver].get_data()
            assert list(sizes) == [len(member.features) for member in front]
            assert list(values) == [member.scores[part]["NDCG@10"] for member in front]


def test_attainment_is_that_of_half_and_of_the_quartiles_of_the_seeds(results, problem):
    figure = FIGURES["attainment"].draw(results, problem, fold=2)
    axes = panel_of(figure, "mofsrank")
    runs = runs_of(results, "mofsrank")[2]
    k, median = lines_of(axes)["mofsrank"].get_data()
    expected = {need: [] for need in (1, 2, 3)}  # ⌈share · 3 seeds⌉ for the shares 1/4, 1/2, 3/4
    for size in k:
        least = sorted(
            min((1 - m.scores["train"]["NDCG@10"] for m in run.front if len(m.features) <= size), default=np.inf)
            for run in runs
        )
        for need, values in expected.items():
            values.append(least[need - 1])
    np.testing.assert_allclose(np.nan_to_num(1.0 - median, nan=np.inf), expected[2], rtol=1e-12)
    corners = 1.0 - axes.collections[0].get_paths()[0].vertices[:, 1]
    drawn = [pair for pair in zip(expected[1], expected[3], strict=True) if np.isfinite(pair).all()]
    finite = [value for pair in drawn for value in pair]
    assert all(np.abs(corners - value).min() < 1e-12 for value in finite)
    assert corners.min() == pytest.approx(min(finite), rel=1e-12)


def test_hypervolume_is_the_mean_and_the_band_how_seeds_differ(results, problem):
    figure = FIGURES["hypervolume"].draw(results, problem)
    for column, stage in enumerate(("instance_selection", "feature_selection", "ensemble")):
        axes = panel_of(figure, "mofsrank", column)
        folds = runs_of(results, "mofsrank")
        values = np.array([[run.convergence[stage].hypervolume for run in seeds] for seeds in folds.values()])
        ends = [
            [
                run.convergence[stage].hypervolume[-1]
                for seeds in runs_of(results, solver).values()
                for run in seeds
                if stage in run.convergence
            ]
            for solver in results.solvers
        ]
        values /= max(np.mean(mine) for mine in ends if mine)
        x, y = lines_of(axes)["mofsrank"].get_data()
        evaluations = [run.convergence[stage].evaluations for seeds in folds.values() for run in seeds]
        np.testing.assert_allclose(x, np.mean(evaluations, axis=0))
        np.testing.assert_allclose(y, values.mean(axis=(0, 1)), rtol=1e-12)
        moved = (values - values.mean(axis=1, keepdims=True)).reshape(-1, values.shape[-1]) + values.mean(axis=(0, 1))
        low, high = np.quantile(moved, 0.25, axis=0), np.quantile(moved, 0.75, axis=0)
        band = axes.collections[0].get_paths()[0].vertices
        for position, bottom, top in zip(x, low, high, strict=True):
            heights = band[np.isclose(band[:, 0], position), 1]
            assert (heights.min(), heights.max()) == (pytest.approx(bottom, rel=1e-9), pytest.approx(top, rel=1e-9))
    assert not lines_of(panel_of(figure, "mofsrank[ensemble=false]", 2))["mofsrank[ensemble=false]"].get_xdata().size


def test_frequency_is_the_share_of_the_runs(results, problem):
    figure = FIGURES["frequency"].draw(results, problem)
    (axes,) = figure.axes
    share = np.asarray(axes.images[0].get_array())
    names = [label.get_text() for label in axes.get_yticklabels()]
    for column, label in enumerate(axes.get_xticklabels()):
        *words, stability = label.get_text().split("\n")
        solver = " ".join(words).replace("mofsrank without ensemble", "mofsrank[ensemble=false]")
        runs = [run for seeds in runs_of(results, solver.replace("- ", "-")).values() for run in seeds]
        chosen = [set(run.names(run.best.features)) for run in runs]
        jaccard = np.mean([len(a & b) / len(a | b) for a, b in itertools.combinations(chosen, 2)])
        assert stability.startswith(f"{jaccard:.2f} (")
        for row, name in enumerate(names):
            assert share[row, column] == pytest.approx(np.mean([name in features for features in chosen]), abs=1e-12)
    assert list(share.sum(axis=1).round(9)) == sorted(share.sum(axis=1).round(9), reverse=True)
    assert [text.get_text() for text in axes.texts] == [f"{100 * value:.0f}" for value in share.ravel()]
    many = Results(replace(run, solver=f"mine {i}") for run in results if run.solver == "fsmrank" for i in range(7))
    note = " ".join(FIGURES["frequency"].draw(many, problem)._supxlabel.get_text().split())
    assert "Not drawn, as one of their family is better by validation: 6 solvers." in note


def test_instances_are_the_shares_of_all_members(results, problem):
    figure = FIGURES["instances"].draw(results, problem)
    shares = {}
    for run in results:
        mine = [member.instances / run.n_instances for member in run.front if run.n_instances and member.instances]
        shares.setdefault(run.solver, []).extend(mine)
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    rows = [row.replace("mofsrank without ensemble", "mofsrank[ensemble=false]") for row in rows]
    assert rows == [solver for solver, mine in shares.items() if mine]
    some = {solver: [share for share in shares[solver] if share < 1] for solver in rows}
    members, median = (lines_of(figure.axes[0])[name].get_xydata() for name in ("member", "median"))
    (quartiles,) = figure.axes[0].collections
    for mine, (middle, row), ends in zip(some.values(), median, quartiles.get_segments(), strict=True):
        assert sorted(members[members[:, 1] == row, 0]) == sorted(mine)
        np.testing.assert_allclose([*ends[:, 0], middle], np.quantile(mine, (0.25, 0.75, 0.5)))


def test_cost_is_processor_time_and_the_metric_and_the_note_has_its_errors(large, drawn_large, results, problem):
    for study, figure, metric in (
        (results, FIGURES["cost"].draw(results, problem, metric="MAP"), "MAP"),
        (large, drawn_large("cost"), "NDCG@10"),
    ):
        (axes,) = figure.axes
        assert axes.get_xscale() == "log"
        points = sorted((seconds(study, solver), score(study, solver, metric)) for solver in study.solvers)
        drawn = sorted(tuple(np.ravel(line.get_data())) for line in axes.lines if len(line.get_xdata()) == 1)
        np.testing.assert_allclose(drawn, points, rtol=1e-12)
    alone = FIGURES["cost"].draw(results, problem, metric="MAP", solvers=["mofsrank"])
    folds = [
        np.mean([run.best.scores["test"]["MAP"] for run in seeds]) for seeds in runs_of(results, "mofsrank").values()
    ]
    error = np.std(folds, ddof=1) / np.sqrt(len(folds))
    note = " ".join(alone._supxlabel.get_text().split())
    assert note == f"Standard error over folds of the test MAP of chosen rankers: {error:.3f}."


@pytest.mark.parametrize("n", [5, 30])
def test_bars_join_ranks_closer_than_the_critical_difference(n):
    values = np.random.default_rng(n).normal(size=(12, n)) + np.arange(n) / 3
    test, names = friedman(values), [f"a search with number {i}" for i in range(n)]
    study = SimpleNamespace(ranks=lambda tested: ([names[i] for i in test.order], test))
    with in_style():
        figure = ranks_figure(study)
    assert_legible(figure)
    (axes,) = figure.axes
    every = np.sort(rankdata(-values, axis=1).mean(axis=0))
    ranks, lines = every[:16], lines_of(axes)
    shown = [names[i] for i in np.argsort(rankdata(-values, axis=1).mean(axis=0), kind="stable")[:16]]
    assert [lines[name].get_xdata()[0] for name in shown] == pytest.approx(ranks)
    assert {text.get_text().rpartition(" (")[0].strip() for text in axes.texts} == set(shown)
    joined = np.zeros((len(ranks), len(ranks)), bool)
    for bar in (line.get_xdata() for name, line in lines.items() if name.startswith("_bar")):
        inside = (ranks >= bar[0]) & (ranks <= bar[1])
        joined |= inside[:, None] & inside
    close = np.abs(ranks[:, None] - ranks) < test.critical_difference
    np.testing.assert_array_equal(joined | np.eye(len(ranks), dtype=bool), close)
    assert title_of_figure(figure) == "Mean ranks by median hypervolume share on 12 problems"


def test_ablations_show_the_fronts_of_a_run_and_the_means_of_all(results, problem):
    figure = FIGURES["ablation"].draw(results, problem, fold=2)
    for title, solver in (("complete", "mofsrank"), ("without ensemble", "mofsrank[ensemble=false]")):
        sizes, values = lines_of(panel_of(figure, title))[title].get_data()
        front = runs_of(results, solver)[2][0].front
        assert list(sizes) == [len(member.features) for member in front]
        assert list(values) == [member.scores["train"]["NDCG@10"] for member in front]
        for column, part in ((1, "train"), (2, "test")):
            drawn = lines_of(panel_of(figure, title, column))[title].get_ydata()
            np.testing.assert_allclose(drawn, curve(results, solver, part, "NDCG@10", "train"), rtol=1e-12)


def test_a_few_poor_values_take_at_most_half_of_the_axis():
    good, poor = np.linspace(0.8, 1.0, 97), np.array([0.1, 0.2, 0.75])
    low, high = axis_limits({"good": good, "poor at first": np.concatenate([poor, good])})
    assert 0.55 < low < 0.7
    assert high == pytest.approx(1.0 + 0.05 * (1.0 - (low + 0.05 * high) / 1.05), rel=0.01)
    low, high = axis_limits({"good": good, "always poor": poor[:2]})
    assert low < 0.2  # its best value is inside
    low, high = axis_limits({"good": good}, required=[0.3, np.nextafter(1.2, 0)])
    assert low < 0.3 and high > 1.2
    low, high = axis_limits({"level": np.full(3, 0.5), "nothing": np.full(3, np.nan)})
    assert low < 0.5 < high

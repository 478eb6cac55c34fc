"""The numbers that the figures of a study draw, against computations from the results."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.drawn import assert_legible, lines_of, panels_of, title_of_figure
from scipy.stats import rankdata

from moerank.figures import FIGURES
from moerank.figures.panels import best_of_families
from moerank.figures.ranks_of_study import ranks_figure
from moerank.figures.style import in_style, limits_of
from moerank.solvers import solvers
from moerank.statistics import friedman

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
    assert f"{len(large.solvers) - len(best)} others" in lines
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
        runs = [run for seeds in runs_of(results, "".join(words)).values() for run in seeds]
        chosen = [set(run.names(run.best.features)) for run in runs]
        jaccard = np.mean([len(a & b) / len(a | b) for a, b in itertools.combinations(chosen, 2)])
        assert stability.startswith(f"{jaccard:.2f} (")
        for row, name in enumerate(names):
            assert share[row, column] == pytest.approx(np.mean([name in features for features in chosen]), abs=1e-12)
    assert list(share.sum(axis=1).round(9)) == sorted(share.sum(axis=1).round(9), reverse=True)
    assert [text.get_text() for text in axes.texts] == [f"{100 * value:.0f}" for value in share.ravel()]
    often = (share[0] > 0.5).sum()
    said = f"Most frequent: {names[0]}, which {often} of {share.shape[1]} solvers chose in more than half of the runs"
    assert title_of_figure(figure) == said


def test_instances_are_the_shares_of_all_members(results, problem):
    figure = FIGURES["instances"].draw(results, problem)
    shares = {}
    for run in results:
        mine = [member.instances / run.n_instances for member in run.front if run.n_instances and member.instances]
        shares.setdefault(run.solver, []).extend(mine)
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == [solver for solver, mine in shares.items() if mine]
    some = {solver: [share for share in shares[solver] if share < 1] for solver in rows}
    members, median = (lines_of(figure.axes[0])[name].get_xydata() for name in ("member", "median"))
    (quartiles,) = figure.axes[0].collections
    for mine, (middle, row), ends in zip(some.values(), median, quartiles.get_segments(), strict=True):
        assert sorted(members[members[:, 1] == row, 0]) == sorted(mine)
        np.testing.assert_allclose([*ends[:, 0], middle], np.quantile(mine, (0.25, 0.75, 0.5)))
    middle, title = np.median([share for mine in some.values() for share in mine]), title_of_figure(figure)
    n_all, n_members = (sum(len(shares[s]) - n * len(some[s]) for s in rows) for n in (1, 0))
    assert f"use {middle:.0%} of them at the median" in title
    assert (f"; {n_all} of {n_members} members use all" in title) == (n_all > 0)


def test_cost_is_processor_time_and_the_metric_with_its_error(large, drawn_large, results, problem):
    for study, figure, metric in (
        (results, FIGURES["cost"].draw(results, problem, metric="MAP"), "MAP"),
        (large, drawn_large("cost"), "NDCG@10"),
    ):
        (axes,) = figure.axes
        assert axes.get_xscale() == "log"
        points = sorted((seconds(study, solver), score(study, solver, metric)) for solver in study.solvers)
        drawn = sorted(tuple(np.ravel(line.get_data())) for line in axes.lines if len(line.get_xdata()) == 1)
        np.testing.assert_allclose(drawn, points, rtol=1e-12)
    folds = [
        np.mean([run.best.scores["test"]["MAP"] for run in seeds]) for seeds in runs_of(results, "mofsrank").values()
    ]
    error = np.std(folds, ddof=1) / np.sqrt(len(folds))
    bars = panels_of(FIGURES["cost"].draw(results, problem, metric="MAP"))[0].collections
    lengths = [np.ptp(bar.get_segments()[0][:, 1]) / 2 for bar in bars]
    assert min(abs(length - error) for length in lengths) < 1e-12


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
    apart = (np.abs(every[:, None] - every) >= test.critical_difference).sum() // 2
    assert 0 < apart < n * (n - 1) // 2
    assert f"{apart} of {n * (n - 1) // 2} differences are detected" in title_of_figure(figure)


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
    low, high = limits_of({"good": good, "poor at first": np.concatenate([poor, good])})
    assert 0.55 < low < 0.7
    assert high == pytest.approx(1.0 + 0.05 * (1.0 - (low + 0.05 * high) / 1.05), rel=0.01)
    low, high = limits_of({"good": good, "always poor": poor[:2]})
    assert low < 0.2  # its best value is inside
    low, high = limits_of({"good": good}, always=[0.3, np.nextafter(1.2, 0)])
    assert low < 0.3 and high > 1.2
    low, high = limits_of({"level": np.full(3, 0.5), "nothing": np.full(3, np.nan)})
    assert low < 0.5 < high

"""Stability against a loop over half-samples, linear programming, enumeration, and planted false features."""

import json
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from helpers.changes import replace
from scipy.optimize import linprog
from sklearn.base import clone
from typer.testing import CliRunner

import moerank as mr
from moerank import GreedyRankRLS
from moerank.cli.app import app
from moerank.data import RankingData, make_planted
from moerank.figures.frequency_of_study import stability_figure
from moerank.runs.problem import load_problem
from moerank.studies.evidence import Stability, expected_false, half_of, stability

ALPHA = 1e-3


def starts(folder):
    """The key of the half that each line of the log of starts names."""
    return [line.split()[0] for line in (folder / "starts.log").read_text().splitlines()]


@pytest.fixture(scope="module")
def parts():
    return mr.load_planted_fold(1, n_queries=61, n_documents=8)


@pytest.fixture(scope="module")
def found(parts):
    return stability(GreedyRankRLS(5, alpha=ALPHA), *parts[:2], size=3, pairs=6)


def rows_of(data, queries):
    return np.concatenate([np.arange(*data.offsets[q : q + 2]) for q in sorted(queries)])


def selections(train, size, pairs, alpha=ALPHA):
    """Greedy RankRLS on each half, by a loop over halves."""
    masks = []
    for half in range(2 * pairs):
        part = train.with_rows(rows_of(train, half_of(train.n_queries, half, 0)))
        masks.append(GreedyRankRLS(size, alpha=alpha).fit(part).support_)
    return np.array(masks)


def test_halves_are_complementary_and_differ_between_pairs_and_seeds():
    drawn = [set(half_of(37, half, 0)) for half in range(20)]
    assert all(len(half) == 18 for half in drawn)
    assert all(not first & second for first, second in zip(drawn[::2], drawn[1::2], strict=True))
    assert all(first != second for first, second in pairwise(drawn))
    assert set(half_of(37, 0, 1)) != drawn[0]
    shares = np.bincount([query for half in range(400) for query in half_of(10, half, 0)]) / 400
    np.testing.assert_allclose(shares, 0.5, atol=1e-12)  # of an even number, each pair has every query once


def test_frequencies_are_those_of_a_loop_over_halves(parts, found):
    train = parts[0]
    np.testing.assert_array_equal(found.frequency, selections(train, 3, 6).mean(axis=0))
    assert found.selected == [i for i in found.order if found.frequency[i] >= 0.75]
    assert stability(GreedyRankRLS(3), *parts[:2], pairs=1).size == 3  # the largest with size² / (30 · 0.5) ≤ 1
    assert found.bound == expected_false(3, 30, 0.75) == pytest.approx(0.6)
    with pytest.raises(ValueError, match=r"^size must be at most 30, or None, not 100$"):
        stability(GreedyRankRLS(3), *parts[:2], pairs=1, size=100)


@pytest.mark.parametrize(("n_pairs", "tau", "theta"), [(4, 0.75, 0.1), (10, 0.6, 0.2), (10, 0.9, 0.3), (7, 0.8, 0.05)])
def test_the_bound_is_the_worst_case_over_all_distributions(n_pairs, tau, theta):
    """The probability of a frequency ≥ τ, maximised by linear programming over all distributions of the counts.

    Of B exchangeable pairs s have two selections and u one; independent halves make the mean of s that of B p², and
    the mean of 2 s + u that of 2 B p.
    """
    outcomes = [(s, u) for s in range(n_pairs + 1) for u in range(n_pairs + 1 - s)]
    s, u = np.array(outcomes).T
    reached = 2 * s + u >= 2 * n_pairs * tau - 1e-9
    for p in (theta / 4, theta / 2, theta):
        means = [np.ones(len(s)), s / n_pairs, (2 * s + u) / (2 * n_pairs)]
        worst = -linprog(-reached.astype(float), A_eq=means, b_eq=[1, p**2, p]).fun
        # expected_false is the sum of p² / (2 τ − 1) over false features, with θ for one p of each square.
        assert worst <= p**2 / (2 * tau - 1) + 1e-9
    if abs(2 * n_pairs * tau % 2) < 1e-9:  # Markov's inequality is attained where 2 B τ is even
        assert worst == pytest.approx(theta**2 / (2 * tau - 1))
    assert expected_false(3, n_features=50, threshold=tau) == pytest.approx(50 * (3 / 50) ** 2 / (2 * tau - 1))


def test_any_number_of_workers_gives_the_same_result(parts, found):
    assert stability(GreedyRankRLS(5, alpha=ALPHA), *parts[:2], size=3, pairs=6, workers=2) == found
    assert Stability.model_validate_json(found.model_dump_json()) == found


def test_an_interrupted_call_goes_on_where_it_ended(parts, found, tmp_path):
    call = partial(stability, GreedyRankRLS(5, alpha=ALPHA), *parts[:2], size=3, out=tmp_path)

    def interrupt(stage, fraction, text):
        if text == "5 of 12":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(pairs=6, progress=interrupt)
    assert len(starts(tmp_path)) == 5
    told = []
    assert call(pairs=6, progress=lambda *state: told.append(state)) == found
    assert [text for *_, text in told] == [f"{half} of 12" for half in range(1, 13)]
    assert call(pairs=6) == found
    assert len(set(starts(tmp_path))) == len(starts(tmp_path)) == 12
    assert call(pairs=1, seed=1) == stability(GreedyRankRLS(5, alpha=ALPHA), *parts[:2], size=3, pairs=1, seed=1)
    assert len(starts(tmp_path)) == 14  # another seed has other halves


RUNNER = """
import sys, moerank as mr
train, vali, _ = mr.load_planted_fold(1, n_queries=61, n_documents=8)
mr.stability(mr.GreedyRankRLS(5, alpha=1e-3), train, vali, size=3, pairs=6, out=sys.argv[1])
"""


@pytest.mark.parametrize("killed", [False, True])
def test_two_processes_share_the_halves(parts, found, tmp_path, killed):
    other = subprocess.Popen([sys.executable, "-c", RUNNER, str(tmp_path)])
    while other.poll() is None and not (tmp_path / "starts.log").exists():
        time.sleep(0.01)
    solver = GreedyRankRLS(5, alpha=ALPHA)
    end = other.kill if killed else lambda: None
    assert stability(solver, *parts[:2], size=3, pairs=6, out=tmp_path, progress=lambda *_: end()) == found
    assert other.wait() == 0 or killed
    assert len(set(starts(tmp_path))) == 12
    assert len(starts(tmp_path)) <= 12 + killed  # the half that was under way is begun again


def test_what_the_solver_refuses_is_told_and_runs_again(parts, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("out of luck")

    call = partial(stability, GreedyRankRLS(3), *parts[:2], pairs=1, out=tmp_path)
    with monkeypatch.context() as patch, pytest.raises(ValueError, match=r"half 1: RuntimeError: out of luck"):
        patch.setattr(GreedyRankRLS, "fit", fail)
        call()
    assert call().n_queries == 37


def test_a_random_search_draws_anew_for_each_half_and_the_same_for_each_seed(parts):
    stage = {"population": 8, "generations": 3}
    solver = mr.MOFSRank(instance_selection=False, ensemble=False, feature_selection=stage)
    first, again, other = (stability(solver, *parts[:2], pairs=2, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first.frequency != other.frequency
    shares = np.array(first.frequency) * 4
    np.testing.assert_array_equal(shares, shares.round())
    assert shares.sum() <= 4 * first.size


@pytest.mark.parametrize(
    "solver",
    [
        mr.MOFSRank(instance_selection=False, ensemble=False, feature_selection={"population": 4, "generations": 1}),
        mr.BaggedLambdaMART(n_bags=2, n_trees=3),
    ],
)
def test_a_fixed_random_state_seeds_the_draws_of_each_half(parts, solver, monkeypatch):
    """Else all halves choose what one start of a search happens to look at, and it would seem reliable."""
    states, fit = [], type(solver)._fit

    def noting(self, *data):
        states.append(self.random_state)
        fit(self, *data)

    monkeypatch.setattr(type(solver), "_fit", noting)
    for state in (0, 0, np.int64(1)):
        stability(clone(solver).set_params(random_state=state), *parts[:2], pairs=2)
    first, again, other = np.reshape(states, (3, 4)).tolist()
    assert first == again
    assert len({*first, *other}) == 8


def test_included_features_are_not_counted(parts):
    train, vali, _ = parts
    solver = mr.make_solver("best-subset", alpha=0.01, max_features=4, include=["noise 1", "noise 2"])
    result = stability(solver, train, vali, size=2, pairs=3)
    included = [train.feature_names.index(f"noise {number}") for number in (1, 2)]
    assert all(result.frequency[i] == 1 for i in included)
    assert not {*included} & {*result.counted} and len(result.counted) == 28
    assert sum(result.frequency) == pytest.approx(4)
    assert result.bound == pytest.approx(4 / (28 * 0.5))


def test_where_no_process_can_be_started_the_remedy_is_named(parts, monkeypatch):
    def fail(*_, **__):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("loky.ProcessPoolExecutor", fail)
    with pytest.raises(OSError, match="cannot start a process: Broken pipe; use 1 worker") as caught:
        stability(GreedyRankRLS(3), *parts[:2], pairs=1, workers=2)
    assert not isinstance(caught.value, BrokenPipeError)  # with which click ends a command without a word


def test_what_cannot_be_said_is_refused(parts):
    train, vali, _ = parts
    solver = GreedyRankRLS(3)
    with pytest.raises(ValueError, match=r"threshold is 0\.5; it must be above 1/2"):
        stability(solver, train, vali, threshold=0.5)
    with pytest.raises(ValueError, match="the solver needs validation queries"):
        stability(solver, train)
    with pytest.raises(ValueError, match="workers must be at least 1, not 0"):
        stability(solver, train, vali, workers=0)
    single = [RankingData(part.X[:, :1], part.y, part.qid) for part in (train, vali)]
    with pytest.raises(ValueError, match="1 optional features vary within queries"):
        stability(solver, *single)
    few = train.with_rows(rows_of(train, [0]))
    with pytest.raises(ValueError, match="one training query has no halves"):
        stability(solver, few, vali)
    everything = stability(mr.RankSVM(), train, vali, pairs=1)
    assert "the solver has no member with at most 3 features" in everything.sentences()[0]


def test_the_sentences_say_what_is_known(found):
    names = found.feature_names
    frequency = [0.0] * len(names)
    frequency[found.counted[0]], frequency[found.counted[1]] = 0.9, 0.8
    finding, risk = found.model_copy(update={"frequency": frequency}).sentences()
    assert finding == (
        "At least 75% of 12 halves of 37 training queries select 2 of 30 features, each half at most 3: "
        f"{names[found.counted[0]]} (90%), {names[found.counted[1]]} (80%)"
    )
    assert risk.startswith("Expect at most 0.6 of them to be false: half of the queries select a false feature")
    _, risk = found.model_copy(update={"frequency": frequency, "bound": 2.0}).sentences()
    assert risk == (
        "Expect at most 2 of them to be false, which says nothing: all of them may be. Take a smaller size or a larger "
        "threshold"
    )
    assert found.model_copy(update={"frequency": [0.5, *[0.0] * 29]}).sentences() == [
        "At least 75% of 12 halves of 37 training queries select 0 of 30 features, each half at most 3; "
        f"the most frequent is {names[0]} (50%)"
    ]


def test_the_command_prints_the_sentences_and_writes_result_and_figure(tmp_path):
    settings = ["--set", "data.n_queries=40", "--set", "data.n_documents=8"]
    command = ["stability", "planted", "--solver", "greedy-rankrls", "--pairs", "3", "--workers", "1", *settings]
    ran = CliRunner().invoke(app, [*command, "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    found = Stability.model_validate_json((tmp_path / "stability.json").read_text())
    problem = load_problem("planted", {"data.n_queries": 40, "data.n_documents": 8})
    assert found == stability("greedy-rankrls", problem, pairs=3)
    for sentence in found.sentences():
        assert f"{sentence}." in " ".join(ran.stdout.split())
    assert (tmp_path / "stability.png").stat().st_size > 10_000
    ran = CliRunner().invoke(app, [*command, "--out", str(tmp_path), "--json"])
    assert json.loads(ran.stdout) == found.model_dump()
    ran = CliRunner().invoke(app, [*command, "--out", str(tmp_path), "--threshold", "0.4"])
    assert ran.exit_code == 2 and "threshold is 0.4" in ran.stderr


def test_the_figure_has_a_bar_for_each_feature_and_the_finding_as_its_note(found):
    figure = stability_figure(found)
    (left,) = figure.axes
    order = found.order[:20]
    assert [bar.get_width() for bar in left.patches] == [found.frequency[feature] for feature in order]
    assert [label.get_text() for label in left.get_yticklabels()] == [found.feature_names[i] for i in order]
    assert " ".join(figure.get_supxlabel().split()) == " ".join(f"{sentence}." for sentence in found.sentences())


def test_the_figure_of_no_selection_has_room_for_its_axes(found):
    figure = stability_figure(replace(found, frequency=[0.0] * len(found.frequency)))
    figure.draw_without_rendering()
    assert figure.axes[0].get_window_extent().height > 0.1 * figure.dpi
    assert figure.get_supxlabel().startswith("No feature was selected")


def test_fewer_false_features_are_selected_than_the_bound_allows():
    """The noise features of planted data are exchangeable: with relevant ones above θ, their probability is below."""
    size, n_draws = 3, 12
    n_false = np.zeros(n_draws)
    rates = {"noise": [], "relevant": []}
    for seed in range(n_draws):
        made = make_planted(35, 6, n_relevant=2, n_redundant=0, n_noise=10, noise=2.0, seed=seed)
        train, vali = (made.data.with_rows(rows_of(made.data, queries)) for queries in (range(30), range(30, 35)))
        solver = GreedyRankRLS(size, alpha=ALPHA)
        result = stability(solver, train, vali, size=size, threshold=0.6, pairs=5)
        n_false[seed] = np.count_nonzero(~made.relevant[result.selected])
        for role, columns in (("noise", ~made.relevant), ("relevant", made.relevant)):
            rates[role].append(np.mean(np.array(result.frequency)[columns]))
    assert np.mean(rates["noise"]) < size / 12 < np.mean(rates["relevant"])
    assert 0 < n_false.mean() < result.bound == expected_false(3, 12, 0.6)
    assert n_false.mean() < 1

"""A study of searches against the searches themselves, pymoo's and moocore's indicators, and SciPy's tests."""

import re

import numpy as np
import pytest
from helpers.plain import front
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import Problem
from pymoo.indicators.hv import HV
from pymoo.indicators.igd_plus import IGDPlus
from pymoo.indicators.spacing import SpacingIndicator
from pymoo.operators.crossover.ux import UX
from pymoo.operators.mutation.bitflip import BitflipMutation
from pymoo.problems import get_problem
from scipy import stats

from moerank.data import RankingData, load_planted_fold, make_planted
from moerank.evolution import DAEA, SparseEA, Staircase, make_algorithm, search
from moerank.figures import SEARCH_FIGURES
from moerank.metrics import NDCG
from moerank.mofsrank import Ensemble, FeatureSelection, InstanceSelection
from moerank.rankers import RankRLS, RankSVM
from moerank.studies.results import NoResultsError
from moerank.studies.searches import QUALITIES, SearchStudy, TargetFront, load_suite


class Knapsack(Problem):
    def __init__(self, seed=0, weighed=False, fails=False):
        super().__init__(n_var=20, n_obj=2, vtype=bool)
        self.weights, self.values = np.random.default_rng(seed).integers(1, 100, (2, 20))
        self.weighed, self.fails = weighed, fails

    def _evaluate(self, X, out, *args, **kwargs):
        if self.fails:
            raise ArithmeticError("no values")
        out["F"] = np.column_stack([X @ self.weights if self.weighed else X.sum(axis=1), ~X @ self.values])


def make(problem):
    return SparseEA(16)


PROBLEMS = {"first": Knapsack(), "second": Knapsack(1)}
ALGORITHMS = {"staircase": Staircase(16), "daea": DAEA(16), "sparseea": make}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return SearchStudy(PROBLEMS, ALGORITHMS, tmp_path_factory.mktemp("s"), n_evaluations=150, seeds=9).run()


def counted(problem, algorithm, n, seed):
    """All evaluated objectives of a search in their order."""
    every, evaluate = [], type(problem)._evaluate

    class Counting(type(problem)):
        def _evaluate(self, X, out, *args, **kwargs):
            evaluate(self, X, out, *args, **kwargs)
            every.append(out["F"])

    problem = Counting(1)
    result = search(problem, algorithm, ("n_eval", n), seed=seed)
    return np.concatenate(every), result


def test_a_run_is_the_search_of_its_seed_and_keeps_its_front_after_every_evaluation(study):
    cell = next(cell for cell in study.cells() if cell.label == "second, sparseea, seed 3")
    every, result = counted(Knapsack(1), SparseEA(16), 150, 3)
    run = study.runs()[cell]
    np.testing.assert_array_equal(run.F, result.archive.F)
    np.testing.assert_array_equal(run.X, result.archive.X)
    assert run.n_evaluations == len(every) == result.history[-1].n_eval
    for generation in result.history:
        n = generation.n_eval
        drawn = sorted(map(tuple, run.front(n).tolist()))
        assert drawn == sorted(set(map(tuple, front(every[:n]).tolist())))
    assert len(run.front(0)) == 0


def test_what_is_evaluated_beyond_the_budget_does_not_count(study, tmp_path):
    longer = SearchStudy({"second": Knapsack(1)}, {"daea": DAEA(100)}, tmp_path, n_evaluations=150, seeds=1).run()
    (run,) = longer.runs().values()
    every, _ = counted(Knapsack(1), DAEA(100), 150, 0)
    assert run.n_evaluations == len(every) == 200
    target = longer.targets()["second"]
    last = run.front(150)
    assert len(last) < len(run.F) or target.share(last) < 1
    assert longer.frame()["hypervolume share"].item() == target.share(last)


def test_the_table_has_the_medians_of_the_indicators_and_the_signs_of_the_tests(study):
    frame = study.frame().set_index(["problem", "algorithm", "seed"])
    ours, p_values, signs = {}, [], []
    for name in PROBLEMS:
        fronts = {cell: run.front(150) for cell, run in study.runs().items() if cell.problem_name == name}
        points = np.concatenate([run.F for cell, run in study.runs().items() if cell.problem_name == name])
        best = np.unique(front(points), axis=0)
        ideal, span = best.min(axis=0), np.ptp(best, axis=0)
        goal, volume = (best - ideal) / span, HV(ref_point=np.full(2, 1.1))
        for cell, F in fronts.items():
            F, row = (F - ideal) / span, frame.loc[name, cell.algorithm_name, cell.seed]
            ours[name, cell.algorithm_name, cell.seed] = volume(F) / volume(goal)
            assert row["hypervolume share"] == pytest.approx(volume(F) / volume(goal), rel=1e-12)
            assert row["igd+"] == pytest.approx(IGDPlus(goal)(F), rel=1e-12)
            assert row["epsilon"] == pytest.approx(np.max([np.min(np.max(F - g, axis=1)) for g in goal]), abs=1e-12)
            assert row["spread"] == pytest.approx(SpacingIndicator()(F), rel=1e-12)
            weights = np.column_stack([w := np.linspace(0, 1, 20_001), 1 - w])
            r2 = np.mean(np.max(weights[:, None] * F, axis=2).min(axis=1))
            assert row["r2"] == pytest.approx(r2, rel=1e-3)
    table, tests = study.table("daea"), study.tests("daea").set_index(["problem", "algorithm"])
    for name in PROBLEMS:
        of = {a: np.array([ours[name, a, seed] for seed in range(9)]) for a in ALGORITHMS}
        for algorithm, values in of.items():
            low, median, high = np.percentile(values, [25, 50, 75])
            assert table.loc[name, algorithm].startswith(f"{median:.4f} ({high - low:.4f})")
            if algorithm != "daea":
                p_values.append(stats.wilcoxon(values, of["daea"], method="exact").pvalue)
                signs.append((table.loc[name, algorithm].split()[2], np.median(values - of["daea"]) > 0))
                wins = np.mean([(a > b) + (a == b) / 2 for a in values for b in of["daea"]])
                assert tests.loc[(name, algorithm), "A12"] == pytest.approx(wins)
                assert table.loc[name, algorithm].endswith(f" {wins:.2f}")
    largest = 0.0
    for rank, i in enumerate(np.argsort(p_values)):
        largest = max(largest, (len(p_values) - rank) * p_values[i])
        assert signs[i][0] == ("=" if largest > 0.05 else "+" if signs[i][1] else "−")
    assert {sign for sign, _ in signs} == {"+", "="}
    plus, minus, same = (sum(sign == s for sign, _ in signs) for s in "+−=")
    totals = [table.loc["+/−/=", a].split("/") for a in ("staircase", "sparseea")]
    assert np.array(totals, int).sum(axis=0).tolist() == [plus, minus, same]
    assert f"{plus} better, {minus} worse, {same} undecided" in SearchStudy.finding(_last("daea", study))
    assert "tabular" in table.to_latex()


def _last(name, study):
    """The same study with another search last."""
    others = {label: algorithm for label, algorithm in study.algorithms.items() if label != name}
    order = others | {name: study.algorithms[name]}
    return SearchStudy(PROBLEMS, order, study.out, n_evaluations=150, seeds=9)


def test_runtimes_are_the_first_evaluations_that_reach_a_share(study):
    times = study.runtimes([0.5, 0.9, 2.0]).set_index(["problem", "algorithm", "seed", "target"])
    for cell, run in [*study.runs().items()][::4]:
        target = study.targets()[cell.problem_name]
        shares = [target.share(run.front(n)) for n in range(1, 151)]
        for share in (0.5, 0.9, 2.0):
            reached, n = times.loc[cell.problem_name, cell.algorithm_name, cell.seed, share]
            first = next((n for n, value in enumerate(shares, 1) if value >= share), None)
            assert (reached, n) == (first is not None, first or 150)
    expected = study.expected_runtimes([0.9, 2.0])
    mine = times.xs(("first", "daea", 0.9), level=["problem", "algorithm", "target"])
    assert expected.loc[("first", 0.9), "daea"] == pytest.approx(mine["evaluations"].sum() / mine["reached"].sum())
    assert np.isinf(expected.loc[("first", 2.0)]).all()


def test_better_is_smaller_for_all_but_the_hypervolume():
    target = TargetFront(np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]), "Proved front")
    exact, shifted = (target.qualities(target.front + step) for step in (0.0, 0.05))
    assert exact["hypervolume share"] == 1 and exact["igd+"] == exact["epsilon"] == 0
    assert all(QUALITIES[name] * (exact[name] - shifted[name]) > 0 for name in QUALITIES if name != "spread")


def test_targets_are_proved_given_or_of_all_runs(study, tmp_path):
    assert {target.origin for target in study.targets().values()} == {"Joint front of all runs"}
    given = {"first": [[0.0, 1000.0], [20.0, 0.0]]}
    other = SearchStudy(PROBLEMS, ALGORITHMS, study.out, n_evaluations=150, seeds=9, targets=given)
    assert other.targets()["first"].origin == "Reference front of long runs"
    np.testing.assert_array_equal(other.targets()["first"].front, given["first"])
    problem = get_problem("zdt1", n_var=5)
    known = SearchStudy({"zdt1": problem}, {"nsga2": NSGA2(10)}, tmp_path, n_evaluations=50, seeds=1).run()
    assert known.targets()["zdt1"].origin == "Proved front"
    problem.pareto_front()  # pymoo remembers it with the problem
    again = SearchStudy({"zdt1": problem}, {"nsga2": NSGA2(10)}, tmp_path, n_evaluations=50, seeds=1)
    assert len(again.runs()) == 1


def nsga2(problem):
    return make_algorithm("nsga2", 16, problem.operators(), 2)


@pytest.mark.parametrize("name", ["instances", "features", "ensemble"])
def test_a_study_of_a_stage_has_its_rows_and_finds_its_cells_again(name, tmp_path):
    train, _, _ = load_planted_fold(1, n_queries=20)

    def stage():
        features = FeatureSelection(train, RankSVM())
        X = np.eye(30, dtype=bool)[:4]
        stages = {"features": features, "instances": InstanceSelection(train, RankRLS())}
        return stages.get(name) or Ensemble(train, features.rankers(X).coefs)

    problem, runs = stage(), {"first": nsga2, "second": nsga2}
    study = SearchStudy({name: problem}, runs, tmp_path, n_evaluations=60, seeds=2).run()
    frame = study.frame()
    assert len(frame) == 4 and problem.n_trained == 0
    # The second search has the same seeds, and nothing from the first one.
    first, second = (frame[frame["algorithm"] == label].drop(columns=["algorithm", "seconds"]) for label in runs)
    np.testing.assert_array_equal(first, second)
    assert (frame["trained"] > 0).all()
    problem.evaluate(problem.operators()["sampling"].do(problem, 5, random_state=np.random.default_rng(0)).get("X"))
    for same in (problem, stage()):
        SearchStudy({name: same}, runs, tmp_path, n_evaluations=60, seeds=2).run()
        assert len(list((tmp_path / "cells").iterdir())) == 4
    other = FeatureSelection(train, RankSVM(C=2.0))
    assert not SearchStudy({name: other}, runs, tmp_path, n_evaluations=60, seeds=2).runs()


def test_a_search_that_hides_evaluations_is_refused(tmp_path):
    train, _, _ = load_planted_fold(1, n_queries=20)

    class Hidden(NSGA2):
        def _infill(self):
            X = self.random_state.random((40, self.problem.n_var)) < 0.5
            self.problem.evaluate(X)
            return super()._infill()

    def hidden(problem):
        return Hidden(16, **problem.operators())

    hidden.version = "1"
    stage = FeatureSelection(train, RankRLS(), adaptive=False)
    study = SearchStudy({"planted": stage}, {"hidden": hidden}, tmp_path, n_evaluations=60, seeds=1)
    with pytest.warns(UserWarning, match="hidden trained .* rankers for .* evaluations; let it evaluate by pymoo's"):
        study.run()


def test_the_suite_is_measured_against_its_references():
    problems, references = load_suite(["planted", "digits"])
    assert {name: stage.n_var for name, stage in problems.items()} == {"planted": 30, "digits": 61}
    for name, stage in problems.items():
        np.testing.assert_array_equal(np.unique(references[name], axis=0), references[name])
        one = np.eye(stage.n_var, dtype=bool)
        small = (one[:, None] | one).reshape(-1, stage.n_var)  # all of one or two features
        np.testing.assert_array_equal(references[name][references[name][:, 0] <= 2], front(stage.evaluate(small)))
    proved, none = load_suite(["planted"], objective="loss")
    assert not none and len(proved["planted"].pareto_front()) == 30


@pytest.mark.parametrize("name", SEARCH_FIGURES)
def test_figures_show_medians_and_refuse_what_they_cannot(name, study):
    if name == "ranks":
        with pytest.raises(NoResultsError, match="ranks need three searches on 10 problems; 2 problems have runs"):
            study.plot(name)
        return
    figure = study.plot(name, problem="second", title=False, width=84, names={"daea": "DAEA", "sparseea": "SparseEA"})
    assert figure.get_figwidth() * 25.4 == pytest.approx(84)
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {"staircase", "DAEA", "SparseEA"}
    assert not legend.get_title().get_visible()
    line = {line.get_label(): line for line in figure.axes[0].lines}["daea"]
    runs = [run for cell, run in study.runs().items() if cell.label.startswith("second, daea")]
    target = study.targets()["second"]
    x, y = line.get_data()
    if name == "hypervolume":
        expected = [np.median([target.share(run.front(n)) for run in runs]) for n in x]
    elif name == "runtimes":
        times = study.runtimes().query("problem == 'second' and algorithm == 'daea'")
        expected = np.sort([(times["evaluations"] <= n)[times["reached"]].sum() / len(times) for n in x])
        y = np.maximum.reduceat(y, np.unique(x, return_index=True)[1])
        expected = np.unique(expected)
        y = np.unique(y)
    else:
        least = [[F[F[:, 0] <= k, 1].min(initial=np.inf) for F in (run.front(150) for run in runs)] for k in x]
        expected = [np.sort(values)[4] for values in least]
        y = np.where(np.isnan(y), np.inf, y)
    np.testing.assert_allclose(y, expected)


def test_the_page_has_every_table_and_figure(study, tmp_path):
    page = study.report(tmp_path / "page.html").read_text(encoding="utf-8")
    for text in (*QUALITIES, *study.sentences(), "Evaluations until a hypervolume share", 'data-name="attainment"'):
        assert text in page
    assert not re.search(r'(src|href)="(?!#)', page)  # it loads nothing


def test_finished_cells_are_not_run_again_and_those_of_another_problem_are(study):
    def again(problems):
        ran = SearchStudy(problems, ALGORITHMS, study.out, n_evaluations=150, seeds=2)
        files = {path: path.stat().st_mtime_ns for path in (study.out / "cells").iterdir()}
        ran.run()
        return [path for path in (study.out / "cells").iterdir() if path.stat().st_mtime_ns != files.get(path)]

    assert not again(PROBLEMS)
    assert len(again({"first": Knapsack(7)})) == 6


def test_processes_find_the_same(study, tmp_path):
    few = {name: study.algorithms[name] for name in ("staircase", "daea")}
    there = SearchStudy({"first": Knapsack()}, few, tmp_path, n_evaluations=150, seeds=2).run(workers=2)
    here = {cell.label: run for cell, run in study.runs().items()}
    assert len(there.runs()) == 4
    for cell, run in there.runs().items():
        assert (here[cell.label].F, here[cell.label].entered) == (run.F, run.entered)


class Tight(Knapsack):
    """Strings with more than `most` ones are not feasible."""

    def __init__(self, most):
        super().__init__()
        self.most, self.n_ieq_constr = most, 1

    def _evaluate(self, X, out, *args, **kwargs):
        super()._evaluate(X, out)
        out["G"] = X.sum(axis=1)[:, None] - self.most


def test_a_run_without_a_feasible_solution_has_no_hypervolume_and_stops_no_other(tmp_path):
    problems, first = {"some": Tight(6), "none": Tight(-1)}, {"many": ~np.eye(20, dtype=bool), "few": np.tri(20) > 0}
    given = {name: NSGA2(20, sampling=X, crossover=UX(), mutation=BitflipMutation()) for name, X in first.items()}
    study = SearchStudy(problems, given, tmp_path, n_evaluations=60, seeds=2).run()
    frame = study.frame().set_index(["problem", "algorithm"])
    empty = frame.loc[frame["members"] == 0]
    assert set(empty.index) == {("some", "many"), ("none", "many"), ("none", "few")}
    assert (empty["hypervolume share"] == 0).all() and empty["igd+"].isna().all()
    assert (frame.loc[("some", "few"), "hypervolume share"] > 0.5).all()
    assert study.table().loc["some", "many"].startswith("0.0000")
    assert not study.runtimes().set_index("problem").loc["none", "reached"].any()
    said = "Runs without a feasible solution, hence a hypervolume of 0: none, few; none, many; some, many."
    assert said in study.sentences()
    for name in ("hypervolume", "runtimes", "attainment"):
        study.plot(name)
    study.report()


def test_a_search_that_fails_is_told_and_stops_no_other(tmp_path):
    problems, daea = {"good": Knapsack(), "bad": Knapsack(fails=True)}, {"daea": DAEA(16)}
    study = SearchStudy(problems, daea, tmp_path, n_evaluations=50, seeds=2)
    with pytest.warns(UserWarning, match=r"2 of 4 cells failed, first bad, daea, seed 0: ArithmeticError: no values"):
        study.run()
    assert len(study.runs()) == 2
    assert study.finding() == "No two searches have runs of the same problem and seed: there is nothing to compare"
    mended = SearchStudy(problems | {"bad": Knapsack()}, daea, tmp_path, n_evaluations=50, seeds=2)
    assert len(mended.run().runs()) == 4


def test_staircase_warns_where_no_objective_is_the_number_of_ones(recwarn):
    train = make_planted(n_queries=5, n_documents=6, n_relevant=2, n_redundant=1, n_noise=2).data
    X = np.column_stack([train.X, np.ones(len(train.X))])  # constant features are not counted
    stage = FeatureSelection(RankingData(X, train.y, train.qid), backend=RankRLS(), metric=NDCG(10))
    for problem in (Knapsack(), stage):
        search(problem, Staircase(16), ("n_eval", 50), seed=0)
    flat = Knapsack()
    flat.values[:] = 1  # the first strings are equal in both objectives
    search(flat, Staircase(8, sampling=np.eye(20, dtype=bool)[:8]), ("n_eval", 50), seed=0)
    assert not [told for told in recwarn.list if told.category is UserWarning]
    with pytest.warns(UserWarning, match="no objective of Knapsack is the number of ones, by which Staircase") as told:
        search(Knapsack(weighed=True), Staircase(16), ("n_eval", 500), seed=0)
    assert len(told) == 1

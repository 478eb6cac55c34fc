"""A study of searches against the searches themselves, pymoo's indicators and SciPy's test."""

import numpy as np
import pytest
from pymoo.core.problem import Problem
from pymoo.indicators.hv import HV
from scipy import stats

from moerank.data import RankingData, make_planted
from moerank.evolution import DAEA, SparseEA, Staircase, search
from moerank.metrics import NDCG
from moerank.mofsrank import FeatureSelection
from moerank.rankers import RankRLS
from moerank.studies.searches import SearchStudy


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


def test_a_run_is_the_search_of_its_seed(study):
    cell = next(cell for cell in study.cells() if cell.label == "second, sparseea, seed 3")
    found = search(Knapsack(1), SparseEA(16), ("n_eval", 150), seed=3)
    run = study.runs()[cell]
    np.testing.assert_array_equal(run.F, found.archive.F)
    np.testing.assert_array_equal(run.X, found.archive.X)
    assert run.n_evaluations == found.history[-1].n_eval


def test_the_table_has_the_medians_of_the_indicators_and_the_signs_of_the_tests(study):
    frame = study.frame()
    ours, p_values, signs = {}, [], []
    for name in PROBLEMS:
        fronts = {cell: np.array(run.F) for cell, run in study.runs().items() if cell.problem_name == name}
        points = np.concatenate(list(fronts.values()))
        best = points[[not ((points <= x).all(axis=1) & (points < x).any(axis=1)).any() for x in points]]
        ideal, span = best.min(axis=0), np.ptp(best, axis=0)
        volume = HV(ref_point=np.full(2, 1.1))
        for cell, F in fronts.items():
            ours[name, cell.algorithm_name, cell.seed] = volume((F - ideal) / span) / 1.21
    for row in frame.itertuples():
        assert row.hypervolume == pytest.approx(ours[row.problem, row.algorithm, row.seed], rel=1e-12)
    table = study.table("daea")
    for name in PROBLEMS:
        of = {a: np.array([ours[name, a, seed] for seed in range(9)]) for a in ALGORITHMS}
        for algorithm, values in of.items():
            low, median, high = np.percentile(values, [25, 50, 75])
            assert table.loc[name, algorithm].startswith(f"{median:.4f} ({high - low:.4f})")
            if algorithm != "daea":
                p_values.append(stats.wilcoxon(values, of["daea"], method="exact").pvalue)
                signs.append((table.loc[name, algorithm][-1], np.median(values - of["daea"]) > 0))
    largest = 0.0
    for place, i in enumerate(np.argsort(p_values)):
        largest = max(largest, (len(p_values) - place) * p_values[i])
        assert signs[i][0] == ("=" if largest > 0.05 else "+" if signs[i][1] else "−")
    assert {sign for sign, _ in signs} == {"+", "="}
    plus, minus, same = (sum(sign == s for sign, _ in signs) for s in "+−=")
    counted = [table.loc["+/−/=", a].split("/") for a in ("staircase", "sparseea")]
    assert np.array(counted, int).sum(axis=0).tolist() == [plus, minus, same]


def test_a_smaller_distance_is_better(study):
    near, far = study.table("daea", "igd+"), study.table("daea")
    assert [near.loc["first", a][-1] for a in ("staircase", "sparseea")] == [
        far.loc["first", a][-1] for a in ("staircase", "sparseea")
    ]


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
    here = {cell.label: run.F for cell, run in study.runs().items()}
    assert len(there.runs()) == 4
    for cell, run in there.runs().items():
        assert here[cell.label] == run.F


def test_a_search_that_fails_is_told_and_stops_no_other(tmp_path):
    problems = {"good": Knapsack(), "bad": Knapsack(fails=True)}
    study = SearchStudy(problems, {"daea": DAEA(16)}, tmp_path, n_evaluations=50, seeds=2)
    with pytest.warns(UserWarning, match=r"2 of 4 cells failed, first bad, daea, seed 0: ArithmeticError: no values"):
        study.run()
    assert len(study.runs()) == 2
    problems["bad"].fails = False
    assert len(study.run().runs()) == 4


def test_staircase_warns_where_no_objective_is_the_number_of_ones(recwarn):
    search(Knapsack(), Staircase(16), ("n_eval", 50), seed=0)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="no objective of Knapsack is the number of ones, by which Staircase") as told:
        search(Knapsack(weighed=True), Staircase(16), ("n_eval", 500), seed=0)
    assert len(told) == 1


def test_staircase_does_not_warn_where_constant_features_are_not_counted(recwarn):
    train = make_planted(n_queries=5, n_documents=6, n_relevant=2, n_redundant=1, n_noise=2).data
    X = np.column_stack([train.X, np.ones(len(train.X))])
    stage = FeatureSelection(RankingData(X, train.y, train.qid), backend=RankRLS(), metric=NDCG(10))
    search(stage, Staircase(16), ("n_eval", 50), seed=0)
    assert not [told for told in recwarn.list if told.category is UserWarning]

import numpy as np
import pytest
from helpers.changes import replace
from scipy import stats

from moerank.studies.comparison import against_reference, solver_ranks, verdicts
from moerank.studies.results import NoResultsError, Results
from moerank.studies.run_fold import run_fold


@pytest.fixture(scope="module")
def results(tiny_study):
    return Results(tiny_study.results())


def values(results, solver, fold):
    """Test MAP of every query, averaged over the seeds by hand."""
    runs = [r.best.per_query["test"]["MAP"] for r in results if (r.solver, r.fold) == (solver, fold)]
    return np.mean(runs, axis=0)


def test_solvers_are_compared_query_by_query_over_all_folds(results):
    table = against_reference(results, "fsmrank", "MAP").set_index("solver")
    assert set(table.index) == {"ranksvm-primal", "mofsrank", "mofsrank-no-ensemble", "greedy-rankrls"}
    for solver, row in table.iterrows():
        a, b = (np.concatenate([values(results, name, fold) for fold in (1, 2)]) for name in (solver, "fsmrank"))
        assert row["difference"] == pytest.approx((a - b).mean())
        assert row["p"] == pytest.approx(stats.ttest_rel(a, b).pvalue if (a != b).any() else 1.0)
        assert row["wins"] + row["ties"] + row["losses"] == len(a)
    assert (table["holm"] >= table["p"]).all()


def test_a_solver_with_a_missing_fold_is_compared_on_what_is_there(results):
    part = Results(r for r in results if (r.solver, r.fold) != ("mofsrank", 2))
    table = against_reference(part, "fsmrank", "MAP").set_index("solver")
    row = table.loc["mofsrank"]
    assert row["wins"] + row["ties"] + row["losses"] == len(values(results, "fsmrank", 1))
    with pytest.raises(NoResultsError, match="no finished run of rankboost on tiny"):
        against_reference(results, "rankboost", "MAP")


def test_ranks_are_those_of_the_mean_over_the_seeds(results):
    ranks = solver_ranks(results, "MAP")
    names = ["fsmrank", "ranksvm-primal", "mofsrank", "mofsrank-no-ensemble", "greedy-rankrls"]
    table = np.array([[values(results, name, fold).mean() for name in names] for fold in (1, 2)])
    expected = dict(zip(names, stats.rankdata(-table, axis=1).mean(axis=0), strict=True))
    np.testing.assert_allclose(ranks.test.ranks, [expected[name] for name in ranks.solvers])
    assert (np.diff(ranks.test.ranks) >= 0).all()
    with pytest.raises(NoResultsError, match="at least three solvers that have at least two folds in common"):
        solver_ranks(Results([results[0]]), "MAP")


def test_verdicts_are_means_over_all_queries_after_seeds(results, tiny_problem):
    found = verdicts(results).set_index("solver")
    assert dict(found["against"]) == {
        "fsmrank": "RankSVM",
        "mofsrank": "",
        "mofsrank-no-ensemble": "",
        "greedy-rankrls": "RankRLS",
    }
    found = found[found["against"] == ""]
    everything = {fold: run_fold(tiny_problem, fold, "single").baselines[0].per_query["test"] for fold in (1, 2)}
    metric = results.metric
    for solver, row in found.iterrows():
        mine = [result for result in results if result.solver == solver]
        folds = {fold: [r.best.per_query["test"][metric] for r in mine if r.fold == fold] for fold in (1, 2)}
        d = [np.mean(runs, axis=0) - everything[fold][metric] for fold, runs in folds.items()]
        assert row["difference"] == pytest.approx(np.concatenate(d).mean(), abs=1e-12)
        assert (row["queries"], row["runs"]) == (len(np.concatenate(d)), len(mine))
        losses = [values for values in differences(mine, everything, metric) if values.mean() < 0]
        assert row["loss"] == sum(stats.ttest_1samp(values, 0).pvalue < 0.05 for values in losses)


def differences(results, everything, metric):
    """The differences of each run from the ranker on all features."""
    return [np.subtract(r.best.per_query["test"][metric], everything[r.fold][metric]) for r in results]


def test_the_verdict_of_a_single_run_is_that_of_the_run(results):
    """With one fold and one seed, its p values are those of the tests on the queries themselves."""
    for result in results:
        if result.verdict is not None:
            (row,) = verdicts(Results([result])).itertuples()
            assert row.p == pytest.approx(result.verdict.p)
            assert row.p_equivalent == pytest.approx(result.verdict.p_equivalent)
            assert (row.n_allowed, row.margin) == (20, 0.005)


def test_verdicts_of_two_folds_are_tested_with_the_errors_of_both(results):
    runs = [r for r in results if (r.solver, r.seed) == ("fsmrank", 0)]
    (row,) = verdicts(Results(runs)).itertuples()
    n = np.array([run.verdict.n_queries for run in runs])
    error = np.sqrt(sum((k * run.verdict.error) ** 2 for k, run in zip(n, runs, strict=True))) / n.sum()
    t = stats.t(n.sum() - 2)
    assert row.p == pytest.approx(2 * t.cdf(-abs(row.difference) / error))
    one_sided = [t.sf((0.005 + side * row.difference) / error) for side in (1, -1)]
    assert row.p_equivalent == pytest.approx(max(one_sided))


def test_verdicts_without_any_spread_are_certain(results):
    run = next(r for r in results if r.solver == "fsmrank")
    for difference, error, p, p_equivalent in [(0.0, 0.0, 1, 0), (-0.1, 0.0, 0, 1), (0.0, None, 1, 1)]:
        changed = replace(run.verdict, difference=difference, error=error)
        (row,) = verdicts(Results([replace(run, verdict=changed)])).itertuples()
        assert (row.p, row.p_equivalent) == (p, p_equivalent)

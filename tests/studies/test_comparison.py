import numpy as np
import pytest
from helpers.changes import replace
from scipy import stats

from moerank.studies.results import NoResultsError, Results, against_reference, verdicts
from moerank.studies.run_fold import run_fold
from moerank.verdict import judge


def values(results, solver, fold):
    """Test MAP of every query, averaged over the seeds by hand."""
    runs = [r.best.per_query["test"]["MAP"] for r in results if (r.solver, r.fold) == (solver, fold)]
    return np.mean(runs, axis=0)


def test_solvers_are_compared_query_by_query_over_all_folds(results):
    table = against_reference(results, "fsmrank", "MAP").set_index("solver")
    assert set(table.index) == {"ranksvm-primal", "mofsrank", "mofsrank[ensemble=false]", "greedy-rankrls"}
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
    with pytest.raises(NoResultsError, match="the reference rankboost has no finished run on tiny"):
        against_reference(results, "rankboost", "MAP")


def test_verdicts_are_means_over_all_queries_after_seeds(results, tiny_problem):
    found = verdicts(results).set_index("solver")
    assert dict(found["against"]) == {
        "fsmrank": "RankSVM",
        "mofsrank": "",
        "mofsrank[ensemble=false]": "",
        "greedy-rankrls": "RankRLS",
    }
    found = found[found["against"] == ""]
    everything = {fold: run_fold(tiny_problem, fold, "single").baselines[0].per_query["test"] for fold in (1, 2)}
    metric = results.metric
    for solver, row in found.iterrows():
        mine = [result for result in results if result.solver == solver]
        folds = {fold: [r.best.per_query["test"][metric] for r in mine if r.fold == fold] for fold in (1, 2)}
        d = [np.mean(runs, axis=0) - everything[fold][metric] for fold, runs in folds.items()]
        assert row["verdict"].difference == pytest.approx(np.concatenate(d).mean(), abs=1e-12)
        assert row["verdict"].error == pytest.approx(stats.sem(np.concatenate(d)))
        assert (row["verdict"].n_queries, row["runs"]) == (len(np.concatenate(d)), len(mine))


def test_findings_of_the_runs_are_counted(results):
    run = next(r for r in results if r.solver == "fsmrank")
    found = [judge(0.5 + d, np.full(400, 0.5), "test", "NDCG@10", 5, 20) for d in np.multiply.outer([-1, 0, 1], SPREAD)]
    runs = [
        replace(run, verdict=verdict, fold=fold, configuration={**run.configuration, "fold": fold})
        for fold, verdict in enumerate(found, start=1)
    ]
    (row,) = verdicts(Results(runs)).itertuples()
    assert (row.runs, row.loss, row.gain, row.equivalent) == (3, 1, 1, 0)
    assert row.verdict.n_differing == 1200


SPREAD = np.tile([0.01, 0.03], 200)

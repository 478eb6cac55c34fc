import statistics

import pytest
from helpers.changes import replace
from helpers.further_objective import with_cost

from moerank.studies.results import NoResultsError, Results


def test_results_are_chosen_by_problem_and_solver(results):
    elsewhere = [replace(result, problem="other") for result in results]
    both = Results([*results, *elsewhere])
    assert both.problems == ["tiny", "other"]
    assert list(both.of("other")) == elsewhere
    some = results.among(["mofsrank", "fsmrank"])
    assert some.solvers == ["mofsrank", "fsmrank"]  # in the order that was asked for
    assert sorted(map(id, some)) == sorted(id(r) for r in results if r.solver in ("mofsrank", "fsmrank"))
    assert results.among([]) is results
    with pytest.raises(NoResultsError, match="no finished run of elsewhere"):
        both.of("elsewhere")
    with pytest.raises(ValueError, match="did you mean 'fsmrank'"):
        results.among(["fsmrnk"])
    with pytest.raises(NoResultsError, match="no finished run"):
        _ = Results([]).metric


def test_means_are_over_folds_after_seeds(results):
    for solver, means in results.means().items():
        runs = [run for run in results if run.solver == solver]
        assert means.n_runs == len(runs)
        values = {
            "n_features": lambda run: len(run.best.features),
            "test MAP": lambda run: run.best.scores["test"]["MAP"],
            "train NDCG@10": lambda run: run.best.scores["train"]["NDCG@10"],
            "seconds": lambda run: run.times.tuning + run.times.solver,
        }
        for column, value in values.items():
            folds = [statistics.fmean(value(run) for run in runs if run.fold == fold) for fold in (1, 2)]
            mean, error = means.mean(column)
            assert mean == pytest.approx(statistics.fmean(folds), rel=1e-14)
            assert error == pytest.approx(statistics.stdev(folds) / 2**0.5, rel=1e-9, abs=1e-15)
    assert Results([]).means() == {}


def test_baselines_are_results_of_their_own(tiny_result):
    found = Results([tiny_result]).with_baselines()
    assert found.solvers == ["mofsrank", "all features", "best single feature", "FSMRank"]
    assert [result.best for result in found] == [tiny_result.best, *tiny_result.baselines]
    assert found[0] is tiny_result
    own = found.frame[["training seconds", "tuning seconds"]].notna().all(axis=1)
    assert own.tolist() == [True, False, False, False]  # those of the solver are not those of the baselines


def test_objectives_are_those_of_all_results_and_further_ones_those_of_any(results):
    assert results.objectives == ["features", "error"]
    assert results.further_objectives == []
    priced = Results(with_cost(result) for result in results)
    assert (priced.objectives, priced.further_objectives) == (["features", "error", "cost"], ["cost"])
    mixed = Results([*priced, results[0]])
    assert (mixed.objectives, mixed.further_objectives) == (["features", "error"], ["cost"])
    costs = [
        statistics.fmean(r.best.objectives["cost"] for r in priced.among(["mofsrank"]) if r.fold == f) for f in (1, 2)
    ]
    assert priced.means()["mofsrank"].mean("cost")[0] == pytest.approx(statistics.fmean(costs))
    assert Results([]).objectives == Results([]).further_objectives == []

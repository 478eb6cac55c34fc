import pytest

from moerank.figures.figure import View
from moerank.figures.notes import fronts_of_fold
from moerank.studies.results import NoResultsError, Results


def view(results, problem, fold):
    return View(results, problem, (), fold, results.metric)


def test_fronts_are_of_the_first_seed_and_the_others_are_named(results, problem):
    runs_there = Results(run for run in results if (run.solver, run.fold) != ("mofsrank", 2))
    runs, sentences = fronts_of_fold(view(runs_there, problem, 2))
    first = {run.solver: run for run in runs_there if (run.fold, run.seed) == (2, 0)}
    sizeless = [solver for solver, run in first.items() if len(run.front) == 1]
    assert "ranksvm-primal" in sizeless
    assert "greedy-rankrls" in runs
    assert runs == {solver: run for solver, run in first.items() if solver not in sizeless}
    assert sentences == ["Not run: mofsrank.", f"No front, for they offer one size: {', '.join(sizeless)}."]


def test_without_others_the_sentences_are_empty(results, problem):
    runs, sentences = fronts_of_fold(view(results.among(["mofsrank"]), problem, None))
    assert [(run.fold, run.seed) for run in runs.values()] == [(1, 0)]
    assert sentences == ["", ""]


@pytest.mark.parametrize("fold", [1, 2])
def test_without_a_front_there_is_nothing_to_draw(results, problem, fold):
    with pytest.raises(NoResultsError, match=f"^no solver offers more than one size on fold {fold} of tiny$"):
        fronts_of_fold(view(results.among(["ranksvm-primal"]), problem, fold))

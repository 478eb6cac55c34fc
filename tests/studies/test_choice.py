import numpy as np
import pytest
from helpers.changes import replace

from moerank.studies.results import NoResultsError, Results, by_validation, chosen_solver

METRIC = "NDCG@10"


@pytest.fixture(scope="module")
def run(tiny_study):
    return next(result for result in tiny_study.results() if result.solver == "fsmrank")


def made(run, solver, fold=1, validation=0.5, test=(0.5,), columns=2):
    """Return a run of a solver that takes the first columns, with this validation mean and these test queries."""
    scores = {"train": {METRIC: 0.5}, "validation": {METRIC: validation}, "test": {METRIC: float(np.mean(test))}}
    few = {"features": run.best.features[:columns], "weights": run.best.weights[:columns]}
    best = replace(run.best, **few, scores=scores, per_query={"test": {METRIC: list(test)}})
    return replace(run, solver=solver, fold=fold, metrics=[METRIC], front=[best], chosen=0)


def test_validation_chooses_and_ties_go_to_fewer_features(run):
    results = [made(run, "a", validation=0.6, columns=5), made(run, "b", validation=0.6, columns=3)]
    results += [made(run, "c", validation=0.7), made(run, "d", validation=0.5, test=(0.9, 0.8))]
    assert by_validation(Results(results)) == ["c", "b", "a", "d"]


def test_test_queries_have_no_say_in_the_choice(run):
    for best, other in ((0.9, 0.1), (0.1, 0.9)):
        results = Results([made(run, "a", validation=0.7, test=(best,)), made(run, "b", test=(other,))])
        choice = chosen_solver(results)
        assert (choice.solver, choice.others) == ("a", ["b"])


def test_what_selects_nothing_is_compared_and_not_chosen(run):
    ranker = replace(made(run, "ranker", validation=0.9), verdict=None)
    choice = chosen_solver(Results([ranker, made(run, "a")]))
    assert (choice.solver, choice.others) == ("a", [])
    with pytest.raises(NoResultsError, match="no finished run selects features and was judged by test queries"):
        chosen_solver(Results([ranker]))


def test_only_folds_that_all_of_them_have_count(run):
    """The second fold alone would make the first solver the best."""
    results = [made(run, "a", 1, 0.5), made(run, "a", 2, 0.99), made(run, "b", 1, 0.6)]
    choice = chosen_solver(Results(results))
    assert choice.solver == "b"
    assert by_validation(Results(results)) == ["a", "b"]
    with pytest.raises(NoResultsError, match="no fold in common yet"):
        chosen_solver(Results(results[1:]))

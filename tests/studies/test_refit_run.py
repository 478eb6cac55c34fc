"""A run whose front another ranker serves: every member is measured, and the chosen one is stored whole."""

import numpy as np
import pytest

from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import RankBoost, RankRLS
from moerank.studies.problem import load_problem
from moerank.studies.result import Result
from moerank.studies.run_fold import run_fold

REFIT = {"search.refit": "rankboost"}


@pytest.fixture(scope="module")
def result(tiny_problem_file):
    return run_fold(load_problem(tiny_problem_file, REFIT), 2, seed=4)


def test_all_members_are_those_of_the_search_with_the_ranker_that_serves(result, tiny_result, tiny_problem):
    train, vali, test = tiny_problem.load_fold(2)
    of_search = {member.features for member in tiny_result.front}
    assert {member.features for member in result.front} <= of_search
    tuned = RankBoost().tune(train, vali)
    for member in result.front:
        part, columns = train.with_features(np.isin(range(train.n_features), member.features)), list(member.features)
        scores = tuned.fit(part.X, part.y, qid=part.qid).predict(test.X[:, columns])
        assert member.scores["test"]["NDCG@10"] == pytest.approx(NDCG(10).score(test, scores), abs=1e-12)
    values = [member.scores["validation"]["NDCG@10"] for member in result.front]
    assert result.chosen == int(np.argmax(values))


def test_the_chosen_member_is_stored_with_its_trees_and_the_others_without(result, tiny_problem):
    test = tiny_problem.load_fold(2)[2]
    read = Result.from_json(result.to_json())
    assert read == result
    for number, member in enumerate(read.front):
        assert (member.trees is not None) == bool(member.per_query) == (number == read.chosen)
    scores = read.model(read.best).scores(test.X)
    assert NDCG(10).score(test, scores) == pytest.approx(read.best.scores["test"]["NDCG@10"], abs=1e-12)


def test_the_verdict_is_that_of_the_estimator(result, tiny_problem):
    train, vali, test = tiny_problem.load_fold(2)
    stages = {name: getattr(tiny_problem, name).model_dump() for name in ("instance_selection", "ensemble")}
    budget = tiny_problem.feature_selection.model_dump()
    solver = MOFSRank(RankRLS().tune(train, vali), refit="rankboost", tune=False, random_state=4, **stages)
    solver.set_params(feature_selection=budget).fit(train, validation=vali)
    assert solver.verdict(test) == result.verdict

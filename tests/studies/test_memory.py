"""Problems whose data are in memory."""

import pickle

import numpy as np
import pytest

from moerank.data import RankingData, load_planted_fold
from moerank.data.folds import deal_queries, split_queries
from moerank.studies.problem import Problem, make_problem


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    return RankingData(rng.random((60, 3)), rng.integers(0, 3, 60), np.repeat(np.arange(15), 4))


def test_parts_are_held_as_they_are():
    fold = load_planted_fold(1)
    problem = make_problem("mine", fold)
    assert problem.n_folds() == 1
    assert all(here is there for here, there in zip(problem.load_fold(1), fold, strict=True))
    several = make_problem("mine", [load_planted_fold(1), load_planted_fold(2)])
    assert several.n_folds() == 2
    assert several.data.digest != problem.data.digest
    with pytest.raises(ValueError, match="fold must be at most 1"):
        problem.load_fold(2)


def test_one_table_is_cut_by_query(table):
    parts = make_problem("mine", table).load_fold(1)
    for part, expected in zip(parts, split_queries(table), strict=True):
        assert np.array_equal(part.X, expected.X)
    dealt = make_problem("mine", table, {"data.split": {"folds": 5, "seed": 2}})
    assert dealt.n_folds() == 5
    for part, expected in zip(dealt.load_fold(4), deal_queries(table, 4, 5, seed=2), strict=True):
        assert np.array_equal(part.y, expected.y)


def test_settings_are_those_of_a_problem_file(table):
    problem = make_problem("mine", table, {"metric.name": "MAP", "data.normalize": "minmax", "ensemble.generations": 7})
    assert problem.metric.name == "MAP"
    assert problem.ensemble.generations == 7
    train = problem.load_fold(1)[0]
    assert train.X.min(axis=0).tolist() == [0, 0, 0]
    assert train.X.max(axis=0).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"unknown key \[metric\] nam; did you mean name"):
        make_problem("mine", table, {"metric.nam": "MAP"})
    with pytest.raises(ValueError, match="split is for one RankingData"):
        make_problem("mine", split_queries(table), {"data.split": {"folds": 5}})


def test_the_key_of_a_cell_holds_the_digest_and_files_hold_nothing_else(table):
    problem = make_problem("mine", table)
    assert problem.configuration()["data"]["digest"] == problem.data.digest
    read = Problem.model_validate_json(problem.model_dump_json())
    assert read.configuration() == problem.configuration()
    with pytest.raises(ValueError, match="were in memory; give them to Study again"):
        read.load_fold(1)
    sent = pickle.loads(pickle.dumps(problem))
    assert np.array_equal(sent.load_fold(1)[0].X, problem.load_fold(1)[0].X)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "a fold in memory is a tuple of three"),
        ([], "a fold in memory is a tuple of three"),
        ([(1, 2, 3)], "a fold in memory is a tuple of three"),
        ([RankingData([[0.1], [0.2]], [0, 1])] * 2, "a fold in memory is"),
        (
            [RankingData([[0.1] * n, [0.2] * n], [0, 1], name=f"of {n}") for n in (1, 2, 1)],
            "of 2 and of 1 have different",
        ),
    ],
)
def test_what_cannot_be_data_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        make_problem("mine", data)

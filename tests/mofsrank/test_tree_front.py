"""Fronts of trees against walks of single documents, cascades by hand, and rankers trained on halves of the queries."""

import numpy as np
import pytest

from moerank.data import FeatureCosts, RankingData, load_planted_fold
from moerank.data.folds import Draws
from moerank.metrics import NDCG
from moerank.mofsrank.objectives import OBJECTIVES, Candidates, Visits
from moerank.mofsrank.tree_front import TreeFront
from moerank.rankers import FittedPopulation, KernelRankSVM, LambdaMART, LinearPopulation
from moerank.rankers.lambda_mart import visits_by_trees
from moerank.studies.problem import load_problem
from moerank.studies.result import _front_table
from moerank.studies.run_fold import OneRanker, run_fold

SMALL = dict(n_trees=12, n_leaves=4, evaluations=25, reranked=3, random_state=3)


COSTS = FeatureCosts.of(np.arange(1.0, 31.0), ["body"] * 4 + [None] * 26, {"body": 7.0})


@pytest.fixture(scope="module")
def fold():
    parts = load_planted_fold(1, n_queries=40, n_documents=10)
    return [RankingData(part.X, part.y, qid=part.qid, costs=COSTS) for part in parts]


@pytest.fixture(scope="module")
def solver(fold):
    train, validation, _ = fold
    return TreeFront(objectives=("cost", "visits", "error"), **SMALL).fit(train, validation=validation)


def walk(forest, x):
    """The score of one document, and the splits that it passes."""
    score, passed = 0.0, 0
    for place in forest.roots:
        while place >= 0:
            passed += 1
            goes_left = x[forest.columns[place]] <= forest.thresholds[place]
            place = forest.left[place] if goes_left else forest.right[place]
        score += forest.leaves[-1 - place]
    return score, passed


def forests_of(members, i):
    """The forests of the steps of a member."""
    steps = [members.first[[i]], members.second[[i]]]
    none = np.array([[-1, 0]])
    parts = [type(members)(members.rankers, members.feature_mask, step, none, 3) for step in steps if step[0, 0] >= 0]
    return [part.forest(0) for part in parts]


def by_hand(data, forests, n):
    """Scores, mean number of splits, and share of the documents that the second forest sees, by single documents."""
    scores, splits, anew = np.zeros(data.n_documents), 0, 0
    for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        walks = [walk(forests[0], x) for x in data.X[begin:end]]
        splits += sum(passed for _, passed in walks)
        order = sorted(range(end - begin), key=lambda d: -walks[d][0])
        if len(forests) == 2:
            again = {d: walk(forests[1], data.X[begin + d]) for d in order[:n]}
            splits += sum(passed for _, passed in again.values())
            order = sorted(order[:n], key=lambda d: -again[d][0]) + order[n:]
            anew += len(again)
        for rank, d in enumerate(order):
            scores[begin + d] = -rank if len(forests) == 2 else walks[d][0]
    return scores, splits / data.n_documents, anew / data.n_documents


def test_members_score_pass_splits_and_cost_as_by_hand(fold, solver):
    train, _, test = fold
    members, table = solver.front_rankers_, solver.front_
    assert members.is_cascade.any()
    assert not members.is_cascade.all()
    shown = np.unique(np.append(np.flatnonzero(members.is_cascade)[:3], np.arange(0, len(members), 7)))
    scores, visits = members.take(shown).scores_of_queries(test), members.visits(train)
    for column, i in enumerate(shown):
        forests = forests_of(members, i)
        expected, _, _ = by_hand(test, forests, 3)
        np.testing.assert_allclose(scores[:, column], expected, rtol=1e-12, atol=1e-12)
        _, splits, share = by_hand(train, forests, 3)
        assert visits[i] == pytest.approx(splits, rel=1e-12)
        assert table.visits[i] == visits[i]
        first, second = ({*forest.columns} for forest in (*forests, *forests[:1])[:2])
        only = second - first
        body = COSTS.shared[0] * (1.0 if first & {0, 1, 2, 3} else share if only & {0, 1, 2, 3} else 0.0)
        cost = sum(COSTS.own[f] for f in first) + share * sum(COSTS.own[f] for f in only) + body
        assert table.cost[i] == pytest.approx(cost, rel=1e-11)
        assert table.features[i] == tuple(sorted(first | second))
        assert [n for n, _ in table.steps[i]] == [len({*forest.columns}) for forest in forests]


def test_errors_are_out_of_fold(fold, solver):
    train = fold[0]
    members = solver.front_rankers_
    seed = int(np.random.default_rng(3).integers(2**31))
    second = np.isin(np.arange(train.n_queries), Draws(seed).order(train.n_queries)[: train.n_queries // 2])
    half = np.repeat(second, np.diff(train.offsets))
    for i in np.flatnonzero(~members.is_cascade)[::5]:
        number, n_trees = members.first[i]
        columns = np.flatnonzero(members.feature_mask[number])
        scores = np.empty(train.n_documents)
        for rows in (half, ~half):
            part, rest = (RankingData(train.X[r][:, columns], train.y[r], qid=train.qid[r]) for r in (rows, ~rows))
            scores[~rows] = LambdaMART(int(n_trees), n_leaves=4, min_leaf=1)._learn(part).predict(rest)
        assert solver.front_.error[i] == pytest.approx(1.0 - NDCG(10).score(train, scores), abs=1e-12)


def test_no_member_dominates_another_and_the_best_of_one_step_is_chosen(solver):
    F = solver.front_[["cost", "visits", "error"]].to_numpy()
    at_most, less = (F[:, None] <= F).all(axis=2), (F[:, None] < F).any(axis=2)
    assert not (at_most & less).any()
    quality = solver.front_.validation.where(~solver.front_rankers_.is_cascade, -1.0)
    assert solver.chosen_ == quality.argmax()


def test_the_chosen_member_predicts_and_is_stored_as_one_forest(fold, solver):
    test = fold[2]
    assert solver.predict(test).tobytes() == solver.forest_.scores(test.X).tobytes()
    cascade = np.flatnonzero(solver.front_rankers_.is_cascade)[:1]
    with pytest.raises(ValueError, match="score them as a RankingData"):
        solver.front_rankers_.take(cascade).scores(test.X)
    with pytest.raises(AttributeError, match="a cascade has two forests"):
        solver.front_rankers_.forest(int(cascade[0]))
    assert (solver.front_rankers_.take(np.array([solver.chosen_, *cascade])).microseconds(test, 1) > 0).all()


def test_without_an_objective_for_time_no_member_is_a_cascade(fold):
    train, validation, test = fold
    small = SMALL | {"random_state": 0}  # which finds cascades that dominate single forests
    solver = TreeFront(objectives=("features", "error"), **small).fit(train, validation=validation)
    assert not solver.front_rankers_.is_cascade.any()
    assert solver.predict(test).shape == (test.n_documents,)


def test_any_number_of_threads_gives_the_same_front(fold, solver):
    train, validation, _ = fold
    told = []
    again = TreeFront(
        objectives=("cost", "visits", "error"), workers=3, progress=lambda *report: told.append(report), **SMALL
    ).fit(train, validation=validation)
    assert again.front_.equals(solver.front_)
    assert {stage for stage, *_ in told} == {"refit_search", "refit"}


def test_visits_are_an_objective_of_any_ranker_of_trees_or_weights(fold):
    data = fold[0]
    trees = FittedPopulation((LambdaMART(5)._learn(data), None), np.array([[True] * 30, [False] * 30]))
    linear = LinearPopulation(np.ones((2, 30)))
    masks = np.ones((2, 30), bool)
    objective = OBJECTIVES["visits"]
    values = objective.values(Candidates(data, NDCG(10), masks, lambda: trees))
    expected = np.mean([walk(trees.forest(0), x)[1] for x in data.X])
    assert values == pytest.approx([expected, 0.0], rel=1e-12)
    assert visits_by_trees(trees.rankers[0].booster_, data.X)[:, -1].mean() == pytest.approx(expected, rel=1e-12)
    assert objective.values(Candidates(data, NDCG(10), masks, lambda: linear)).tolist() == [0.0, 0.0]
    assert Visits(most=50).bounds(data, 30) == (0.0, 50)
    with pytest.raises(ValueError, match='"visits" is for rankers of trees or weights'):
        objective.values(Candidates(data, NDCG(10), masks, lambda: type("Unknown", (), {"coefs": None})()))
    without_trees = FittedPopulation((KernelRankSVM()._learn(data),), masks[:1])
    for population in (without_trees, OneRanker(without_trees.rankers[0])):
        with pytest.raises(ValueError, match='"visits" is for rankers of trees or weights'):
            objective.values(Candidates(data, NDCG(10), masks[:1], lambda population=population: population))


def test_costs_of_shares_are_those_of_the_mean_document():
    shares = np.array([[1.0, 0.25, 0.0], [0.0, 0.5, 0.5]])
    costs = FeatureCosts.of([4.0, 8.0, 2.0], ["a", "a", None], {"a": 10.0})
    assert costs.sums(shares).tolist() == [4.0 + 2.0 + 10.0, 4.0 + 1.0 + 5.0]


def test_a_run_shows_the_front_in_the_objectives_of_the_problem():
    problem = load_problem("planted", {"search.objectives": ["features", "visits", "error"]})
    result = run_fold(problem, 1, "tree-front[n_trees=8,evaluations=15]", baselines=False)
    assert result.objectives == ["features", "visits", "error"]
    assert result.best.trees is not None
    assert all(member.objectives["visits"] > 0 for member in result.front)
    cascade = next(i for i, member in enumerate(result.front) if len(member.steps) == 2)
    (few, trees), (more, all_trees) = result.front[cascade].steps
    row = _front_table(result).splitlines()[cascade + 1]
    assert f",{few} features × {trees} trees then {more} features × {all_trees} trees,0," in row
    assert result.best.steps == ((len(result.best.features), len(result.best.trees.roots)),)

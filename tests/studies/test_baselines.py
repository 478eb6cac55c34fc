"""Baselines of a run: trees that the verdict names if they are better."""

import numpy as np
import pytest

from moerank.data import RankingData
from moerank.metrics import MAP, NDCG
from moerank.rankers.lambda_mart import LambdaMART
from moerank.studies.problem import make_problem
from moerank.studies.run_fold import run_fold

BUDGET = {"population": 8, "generations": 3}


def problem_of(label):
    """Return a problem in which the label of a document is a function of two of its features."""
    X = np.random.default_rng(0).normal(size=(3000, 4)).round(3)
    data = RankingData(X, [label(*x[:2]) for x in X], np.arange(3000) // 20)
    return make_problem("shop", data, dict.fromkeys(("feature_selection", "ensemble", "instance_selection"), BUDGET))


@pytest.mark.parametrize(
    ("label", "found"), [(lambda a, b: int(a * b > 0), True), (lambda a, b: int(a + b > 1), False)]
)
def test_the_verdict_names_trees_that_are_detectably_better(label, found):
    problem = problem_of(label)
    result = run_fold(problem)
    trees, _ = result.baselines[-2:]
    assert trees.name == "LambdaMART"
    said = "LambdaMART on all features is better by" in result.verdict.sentence
    assert said == found
    train, validation, test = problem.load_fold(1)
    forms = LambdaMART(n_trees=100, min_leaf=round(0.0025 * train.n_documents))
    ranker = forms.stopped(train, validation).fit(train)
    for name, metric in (("NDCG@10", NDCG(10)), ("MAP", MAP())):
        assert trees.scores["test"][name] == pytest.approx(metric.score(test, ranker.predict(test)), abs=1e-12)
    if found:
        loss = trees.scores["test"]["NDCG@10"] - result.best.scores["test"]["NDCG@10"]
        assert f"better by {loss:.3f}".replace("0.", ".") in result.verdict.sentence

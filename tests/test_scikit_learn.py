"""Rankers and solvers in scikit-learn's own tools, as a user puts them together."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import moerank as mr

BUDGET = {"population": 8, "generations": 3}
TINY = dict(instance_selection=False, feature_selection=BUDGET, ensemble=BUDGET, random_state=0)
RAW = np.array([1.0, 50.0, 0.2, 7.0, 300.0, 1.0])
"""Scales of the features as they come."""


@pytest.fixture(scope="module")
def fold():
    """Training, validation and test data of raw features, as (X, y, qid)."""
    size = dict(n_queries=30, n_documents=12, n_relevant=2, n_redundant=1, n_noise=3)
    return [(data.X * RAW + 5 * RAW, data.y, data.qid) for data in mr.load_planted_fold(1, **size, seed=3)]


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def by_hand(ranker, metric, X, y, qid, cv):
    """The metric on each part of a cross-validation."""
    values = []
    for train, test in cv.split(X, y, qid):
        scores = clone(ranker).fit(X[train], y[train], qid=qid[train]).predict(X[test])
        values.append(metric.score(mr.RankingData(X[test], y[test], qid[test]), scores))
    return values


def test_a_fold_that_is_taken_for_one_query_is_said(fold):
    (X, y, _), *_ = fold
    with pytest.warns(UserWarning, match=r"training data: qid is missing, so all 144 rows are one query"):
        values = cross_val_score(mr.RankRLS(), X, y, cv=3)
    assert np.isfinite(values).all()


def test_score_is_the_metric_of_the_predictions(fold):
    (X, y, qid), _, (X_test, y_test, qid_test) = fold
    test = mr.RankingData(X_test, y_test, qid_test)
    ranker = mr.RankRLS().fit(X, y, qid=qid)
    expected = mr.MAP().score(test, ranker.predict(X_test))
    assert ranker.score(X_test, y_test, qid=qid_test) == ranker.score(test) == expected
    solver = mr.MOFSRank(**TINY, metric="P@3").fit(X, y, qid=qid)
    assert solver.score(test) == mr.Precision(3).score(test, solver.predict(X_test))
    with pytest.raises(ValueError, match=r"score needs qid, because the training data had \d+ queries"):
        ranker.score(X_test, y_test)
    with pytest.raises(ValueError, match="must not be given with a RankingData"):
        ranker.score(test, qid=qid_test)
    with pytest.raises(ValueError, match="test data: y is missing"):
        ranker.score(X_test, qid=qid_test)
    one, other = qid == qid[0], qid == qid[-1]
    alone = mr.RankRLS().fit(X[one], y[one], qid=0, validation=(X[other], y[other]))  # without a warning, as is `score`
    assert 0 <= alone.score(X[one], y[one]) <= 1


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("metric", [mr.NDCG(3), mr.MAP()])
def test_cross_validation_scores_whole_queries(fold, metric):
    X, y, qid = fold[0]
    cv, params = GroupKFold(3), {"qid": qid, "groups": qid}
    validated = cross_validate(mr.RankRLS(), X, y, cv=cv, scoring=metric.scorer(), params=params)
    assert validated["test_score"].tolist() == by_hand(mr.RankRLS(), metric, X, y, qid, cv)
    own = cross_val_score(mr.RankRLS(), X, y, cv=cv, params=params)
    assert own.tolist() == by_hand(mr.RankRLS(), mr.MAP(), X, y, qid, cv)
    other = cross_val_score(Ridge(), X, y, cv=cv, scoring=metric.scorer(), params=params)  # a ranker from elsewhere
    assert len(set(other)) == 3 and (other > 0).all()


@pytest.mark.usefixtures("routing")
def test_a_grid_search_chooses_what_is_best_by_the_metric(fold):
    X, y, qid = fold[0]
    grid = {"rank__alpha": [1e-4, 1e2, 1e6], "scale__with_mean": [True, False]}
    pipeline = Pipeline([("scale", StandardScaler()), ("rank", mr.RankRLS())])
    search = GridSearchCV(pipeline, grid, scoring=mr.MAP().scorer(), cv=GroupKFold(3)).fit(X, y, qid=qid, groups=qid)
    for setting, value in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        parts = by_hand(clone(pipeline).set_params(**setting), mr.MAP(), X, y, qid, GroupKFold(3))
        assert value == pytest.approx(np.mean(parts), abs=1e-15)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    direct = clone(pipeline).set_params(**search.best_params_).fit(X, y, qid=qid)
    np.testing.assert_array_equal(search.predict(X), direct.predict(X))
    assert search.score(X, y, qid=qid) == mr.MAP().score(mr.RankingData(X, y, qid), direct.predict(X))


def test_without_routing_predictions_are_scored_afterwards(fold):
    X, y, qid = fold[0]
    scores = cross_val_predict(mr.RankRLS(), X, y, groups=qid, cv=GroupKFold(3), params={"qid": qid})
    expected = np.empty(len(y))
    for train, test in GroupKFold(3).split(X, y, qid):
        expected[test] = mr.RankRLS().fit(X[train], y[train], qid=qid[train]).predict(X[test])
    np.testing.assert_array_equal(scores, expected)
    with pytest.raises(ValueError, match=r"a ranking metric needs the query of each document: .*enable_metadata_rout"):
        mr.NDCG(10).scorer()(mr.RankRLS().fit(X, y, qid=qid), X, y)


def test_a_scorer_can_be_sent_to_another_process(fold):
    X, y, qid = fold[0]
    ranker = mr.RankRLS().fit(X, y, qid=qid)
    again = pickle.loads(pickle.dumps(mr.NDCG(3).scorer()))
    with config_context(enable_metadata_routing=True):
        assert again(ranker, X, y, qid=qid) == mr.NDCG(3).score(mr.RankingData(X, y, qid), ranker.predict(X))

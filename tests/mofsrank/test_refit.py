"""The ranker that serves after a search, against the same steps by hand."""

import numpy as np
import pytest

from moerank.data import load_planted_fold
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import BaggedLambdaMART, LambdaMART, RankBoost, RankRLS
from moerank.verdict import judge

METRIC = NDCG(5)
BUDGET = {"population": 12, "generations": 5}
TREES = LambdaMART(25, n_leaves=4, min_leaf=3)
SMALL = dict(
    metric=METRIC, instance_selection=False, feature_selection=BUDGET, ensemble=False, tune=False, random_state=0
)


@pytest.fixture(scope="module")
def fold():
    return load_planted_fold(1, n_queries=30, n_documents=12, n_relevant=3, n_redundant=2, n_noise=3, seed=7)


def fitted(fold, validation=True, **parameters):
    train, vali, _ = fold
    return MOFSRank(**{**SMALL, **parameters}).fit(train, validation=vali if validation else None)


@pytest.fixture(scope="module")
def plain(fold):
    return fitted(fold)


@pytest.fixture(scope="module")
def served(fold):
    return fitted(fold, refit=TREES)


@pytest.fixture(scope="module")
def by_hand(fold, served):
    """LambdaMART on the features of each member, and on all."""
    train, vali, _ = fold
    masks = [*served.front_support_, np.ones(train.n_features, bool)]
    rankers = []
    for mask in masks:
        part, held_out = train.with_features(mask), vali.with_features(mask)
        rankers.append(TREES.stopped(part, held_out).fit(part.X, part.y, qid=part.qid))
    return lambda data: np.column_stack([r.predict(data.X[:, m]) for r, m in zip(rankers, masks, strict=True)])


def test_each_member_gets_the_ranker_trained_on_its_features_and_validation_chooses(fold, plain, served, by_hand):
    train, vali, test = fold
    for data in (train, test):
        np.testing.assert_array_equal(served.front_rankers_.scores(data.X), by_hand(data)[:, :-1])
    values = METRIC.score(vali, by_hand(vali)[:, :-1])
    np.testing.assert_allclose(served.front_["validation"], values, rtol=0, atol=1e-15)
    assert served.chosen_ == int(np.argmax(values))
    np.testing.assert_array_equal(served.predict(test.X), by_hand(test)[:, served.chosen_])
    assert served.front_coefs_ is None
    assert not hasattr(served, "coef_")
    np.testing.assert_array_equal(served.path(train).scores(test.X)[:, -1], served.predict(test.X))


def test_members_that_the_new_rankers_leave_dominated_are_left_out():
    noisy = load_planted_fold(1, n_queries=30, n_documents=12, n_relevant=4, n_redundant=2, n_noise=8, seed=1)
    plain, served = fitted(noisy), fitted(noisy, refit=TREES)
    train, vali, _ = noisy
    points = []
    for mask in plain.front_support_:
        part, held_out = train.with_features(mask), vali.with_features(mask)
        ranker = TREES.stopped(part, held_out).fit(part.X, part.y, qid=part.qid)
        points.append((mask.sum(), 1.0 - METRIC.score(vali, ranker.predict(held_out.X))))
    kept = [i for i, (n, e) in enumerate(points) if not any(m <= n and f <= e and (m, f) != (n, e) for m, f in points)]
    assert 1 < len(kept) < len(points)
    np.testing.assert_array_equal(served.front_support_, plain.front_support_[kept])
    np.testing.assert_array_equal(served.front_["error"], plain.front_["error"].iloc[kept])  # those of the search


def test_the_verdict_is_against_the_same_ranker_on_all_features(fold, served, by_hand):
    for data, found in ((fold[2], served.verdict(fold[2])), (fold[1], served.verdict_)):
        selection, everything = METRIC.per_query(data, by_hand(data)[:, [served.chosen_, -1]]).T
        sizes = served.support_.sum(), data.n_features
        expected = judge(selection, everything, found.part, METRIC.name, *sizes, advice=found.advice, level=found.level)
        assert found == expected
        assert (found.level < 0.05) == (found.part == "validation")


@pytest.mark.parametrize("given", [dict(validation=False), dict(final="train")])
def test_the_training_metric_of_the_rankers_that_serve_chooses_where_validation_does_not(fold, given):
    solver = fitted(fold, refit=TREES, **given)
    values = METRIC.score(fold[0], solver.front_rankers_.scores(fold[0].X))
    assert solver.chosen_ == int(np.argmax(values))
    assert solver.front_["validation"].isna().all() == ("validation" in given)


def test_weights_of_a_linear_ranker_are_those_of_the_columns(fold, plain):
    train, vali, _ = fold
    solver = fitted(fold, refit="rankrls")
    tuned = RankRLS().tune(train, vali)
    assert solver.refit_.get_params() == tuned.get_params() != RankRLS().get_params()
    for mask, w in zip(solver.front_support_, solver.front_coefs_, strict=True):
        np.testing.assert_allclose(w[mask], tuned.fit(train.X[:, mask], train.y, qid=train.qid).coef_, rtol=1e-9)
    np.testing.assert_array_equal(solver.coef_, solver.front_coefs_[solver.chosen_])
    solver.set_params(refit=TREES).fit(train, validation=vali)
    assert not hasattr(solver, "coef_")


def test_parameters_are_tuned_for_a_name_and_where_tune_says_so(fold):
    train, vali, _ = fold
    tuned = LambdaMART(20).tune(train, vali)
    found = fitted(fold, refit=LambdaMART(20), tune=True)
    assert found.refit_.get_params() == {**tuned.get_params(), "n_trees": 20}
    assert fitted(fold, refit=LambdaMART(20)).refit_.get_params() == LambdaMART(20).get_params()
    by_name = fitted(fold, refit="rankboost").refit_
    assert by_name.get_params() == RankBoost().tune(train, vali).get_params() != RankBoost().get_params()
    assert fitted(fold, refit="rankboost", validation=False).refit_.get_params() == RankBoost().get_params()


def test_what_draws_is_given_the_seed_of_the_run(fold):
    bags = BaggedLambdaMART(n_bags=2, n_trees=5)
    assert fitted(fold, refit=bags, random_state=7).refit_.random_state == 7
    assert fitted(fold, refit=bags.set_params(random_state=3), random_state=7).refit_.random_state == 3


def test_progress_tells_of_each_step(fold):
    told = []
    fitted(fold, refit="rankboost", progress=lambda *state: told.append(state))
    stages = ["feature_selection", "refit_tuning", "refit"]
    assert list(dict.fromkeys(stage for stage, *_ in told)) == stages
    for stage in stages:
        fractions = [fraction for name, fraction, *_ in told if name == stage]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0


def test_same_bits_with_any_number_of_workers(fold):
    one, two = fitted(fold, refit=RankBoost(8)), fitted(fold, refit=RankBoost(8), workers=2)
    np.testing.assert_array_equal(one.front_rankers_.scores(fold[2].X), two.front_rankers_.scores(fold[2].X))
    assert one.front_.equals(two.front_)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (dict(refit="lambdamat"), "unknown ranker 'lambdamat'; did you mean 'lambdamart'"),
        (dict(refit=LambdaMART), "refit must be the name of a ranker or an estimator with fit and predict, not <class"),
        (
            dict(backend=LambdaMART(), instance_selection=True),
            "LambdaMART .* serves feature selection without instance",
        ),
    ],
)
def test_wrong_rankers_are_refused_in_words(fold, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        fitted(fold, **given)

"""The ranker that serves after a search, against the same steps by hand."""

import numpy as np
import pytest

from moerank.data import load_planted_fold
from moerank.metrics import MAP, NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import BaggedLambdaMART, LambdaMART, RankBoost, RankRLS
from moerank.statistics import smallest_within_error
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


def scores_by_hand(fold, masks):
    """The scores of LambdaMART on the features of each mask, as a function of the data."""
    rankers = []
    for mask in masks:
        part, held_out, _ = (one.with_features(mask) for one in fold)
        rankers.append(TREES.stopped(part, held_out, METRIC).fit(part.X, part.y, qid=part.qid))
    return lambda data: np.column_stack([r.predict(data.X[:, m]) for r, m in zip(rankers, masks, strict=True)])


@pytest.fixture(scope="module")
def by_hand(fold, served):
    """Scores with the features of each member, and with all."""
    return scores_by_hand(fold, [*served.front_support_, np.ones(fold[0].n_features, bool)])


def test_each_member_gets_the_ranker_trained_on_its_features_and_validation_chooses(fold, plain, served, by_hand):
    train, vali, test = fold
    for data in (train, test):
        np.testing.assert_array_equal(served.front_rankers_.scores(data.X), by_hand(data)[:, :-1])
    values = METRIC.score(vali, by_hand(vali)[:, :-1])
    np.testing.assert_allclose(served.front_["validation"], values, rtol=0, atol=1e-15)
    sizes = served.front_["n_features"]
    assert served.chosen_ == smallest_within_error(METRIC.per_query(vali, by_hand(vali)[:, :-1]), sizes, 0.5)
    np.testing.assert_array_equal(served.predict(test.X), by_hand(test)[:, served.chosen_])
    assert served.front_coefs_ is None
    assert not hasattr(served, "coef_")
    best = served.front_rankers_.scores(test.X)[:, served.front_["error"].argmin()]
    np.testing.assert_array_equal(served.path(train).scores(test.X)[:, -1], best)


def test_members_that_the_new_rankers_leave_dominated_are_left_out():
    noisy = load_planted_fold(1, n_queries=30, n_documents=12, n_relevant=4, n_redundant=2, n_noise=8, seed=1)
    plain, served = fitted(noisy), fitted(noisy, refit=TREES)
    errors = 1.0 - METRIC.score(noisy[1], scores_by_hand(noisy, plain.front_support_)(noisy[1]))
    points = list(zip(plain.front_support_.sum(axis=1), errors, strict=True))
    kept = [i for i, (n, e) in enumerate(points) if not any(m <= n and f <= e and (m, f) != (n, e) for m, f in points)]
    assert 1 < len(kept) < len(points)
    np.testing.assert_array_equal(served.front_support_, plain.front_support_[kept])
    np.testing.assert_array_equal(served.front_["error"], plain.front_["error"].iloc[kept])  # those of the search


def test_the_verdict_is_against_the_same_ranker_on_all_features(fold, served, by_hand):
    for data, found in ((fold[2], served.verdict(fold[2])), (fold[1], served.verdict_)):
        selection, everything = METRIC.per_query(data, by_hand(data)[:, [served.chosen_, -1]]).T
        sizes = served.support_.sum(), data.n_features
        said = {name: getattr(found, name) for name in ("decision", "advice", "level", "tail", "no_better_than_chance")}
        expected = judge(selection, everything, found.part, METRIC.name, *sizes, **said)
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
    tuned = RankRLS().tune(train, vali, metric=METRIC)
    assert solver.refit_.get_params() == tuned.get_params() != RankRLS().get_params()
    for mask, w in zip(solver.front_support_, solver.front_coefs_, strict=True):
        np.testing.assert_allclose(w[mask], tuned.fit(train.X[:, mask], train.y, qid=train.qid).coef_, rtol=1e-9)
    np.testing.assert_array_equal(solver.coef_, solver.front_coefs_[solver.chosen_])
    solver.set_params(refit=TREES).fit(train, validation=vali)
    assert not hasattr(solver, "coef_")


def test_parameters_are_tuned_for_a_name_and_where_tune_says_so(fold):
    train, vali, _ = fold
    grid = [entry for entry in LambdaMART(20).default_grid(train) if entry["learning_rate"] == 0.1]
    tuned = LambdaMART(20).tune(train, vali, grid, METRIC)
    found = fitted(fold, refit=LambdaMART(20), tune=True)
    assert found.refit_.get_params() == {**tuned.get_params(), "n_trees": 20}
    assert fitted(fold, refit=LambdaMART(20)).refit_.get_params() == LambdaMART(20).get_params()
    by_name = fitted(fold, refit="rankboost").refit_
    assert by_name.get_params() == RankBoost().tune(train, vali, metric=METRIC).get_params() != RankBoost().get_params()
    assert fitted(fold, refit="rankboost", validation=False).refit_.get_params() == RankBoost().get_params()


def test_what_draws_is_given_the_seed_of_the_run(fold):
    bags = BaggedLambdaMART(n_bags=2, n_trees=5)
    assert fitted(fold, refit=bags, random_state=7).refit_.random_state == 7
    assert fitted(fold, refit=bags.set_params(random_state=3), random_state=7).refit_.random_state == 3


@pytest.mark.parametrize(("kind", "seed"), [(RankRLS, 1), (RankBoost, 0)])
def test_the_metric_of_the_search_tunes_unless_another_is_named(kind, seed):
    fold = load_planted_fold(1, n_queries=30, n_documents=12, seed=seed)
    by = [kind().tune(*fold[:2], metric=metric).get_params() for metric in (METRIC, MAP())]
    assert by[0] != by[1]
    found = [fitted(fold, backend=RankRLS(), refit=kind(), tune=True, tuning=tuning) for tuning in (None, "MAP")]
    assert [solver.refit_.get_params() for solver in found] == by
    if kind is RankRLS:
        assert [solver.backend_.get_params() for solver in found] == by


@pytest.mark.parametrize("n_finished", [0, 1, 3])
def test_an_interrupted_refit_goes_on(fold, n_finished, tmp_path, monkeypatch):
    settings = dict(refit=LambdaMART(25, n_leaves=4, min_leaf=3), tune=True)
    undisturbed = fitted(fold, **settings)
    trained, original = [], LambdaMART.stopped

    def interrupted(*arguments):
        trained.append(arguments)
        if len(trained) > n_finished:
            raise KeyboardInterrupt
        return original(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LambdaMART, "stopped", interrupted)
        fitted(fold, **settings, memo=tmp_path / "memo")
    with (tmp_path / "memo.refit").open("ab") as file:
        file.write(b'{"torn": ')
    trained.clear()
    monkeypatch.setattr(LambdaMART, "tune", None)  # it has ended
    monkeypatch.setattr(LambdaMART, "stopped", lambda *arguments: trained.append(1) or original(*arguments))
    resumed = fitted(fold, **settings, memo=tmp_path / "memo", resume=True)
    assert len(trained) == len(undisturbed.fronts_["feature_selection"]) + 1 - n_finished
    assert resumed.front_.equals(undisturbed.front_)
    np.testing.assert_array_equal(resumed.predict(fold[2].X), undisturbed.predict(fold[2].X))


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
        (dict(refit=LambdaMART), "refit must be the name of a ranker, or a ranker with fit and predict, not <class"),
        (dict(backend=MOFSRank()), "backend must be a ranker with fit_population, .*, not MOFSRank"),
        (dict(tuning="bogus"), "tuning must be a Metric or the name of one"),
        (
            dict(backend=LambdaMART(), instance_selection=True),
            "LambdaMART is trained on documents, so it cannot choose",
        ),
    ],
)
def test_wrong_rankers_are_refused_in_words(fold, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        fitted(fold, **given)

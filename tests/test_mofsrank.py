import json
import logging
import os
from unittest.mock import patch

import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.termination.ftol import MultiObjectiveSpaceTermination
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from moerank.data import RankingData, load_planted_fold, make_planted
from moerank.evolution import BIT_SEARCHES, SubsetSizeSampling, UniformCrossover
from moerank.identity import digest
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, NDCG
from moerank.mofsrank import FeatureSelection, MOFSRank
from moerank.rankers import FSMRank, RankerAdapter, RankRLS, RankSVM
from moerank.solvers import make_solver

BUDGET = {"population": 16, "generations": 6}
SMALL = dict(instance_selection=BUDGET, feature_selection=BUDGET, ensemble=BUDGET, metric=NDCG(5))
STAGES = ["instance_selection", "feature_selection", "ensemble"]


@pytest.fixture(scope="module")
def fold():
    return load_planted_fold(1, n_queries=25, n_documents=14, n_relevant=3, n_redundant=2, n_noise=3, seed=5)


def fitted(fold, **parameters):
    train, vali, _ = fold
    return MOFSRank(**{**SMALL, "random_state": 0, **parameters}).fit(train.X, train.y, qid=train.qid, validation=vali)


def same_bits(a, b):
    np.testing.assert_array_equal(a.front_coefs_, b.front_coefs_)
    np.testing.assert_array_equal(a.front_["error"], b.front_["error"])
    for stage in a.fronts_:
        np.testing.assert_array_equal(a.fronts_[stage], b.fronts_[stage])
        np.testing.assert_array_equal(a.history_[stage]["hypervolume"], b.history_[stage]["hypervolume"])


@pytest.mark.parametrize("backend", [RankRLS(), RankSVM(), FSMRank()], ids=lambda b: type(b).__name__)
def test_the_front_says_what_its_rankers_do(fold, backend):
    train, vali, _ = fold
    solver = fitted(fold, backend=backend)
    assert list(solver.fronts_) == STAGES
    front = solver.front_
    assert (np.diff(front["n_features"]) > 0).all()
    assert (np.diff(front["error"]) < 0).all()
    scores = linear_scores(train.X, solver.front_coefs_)
    np.testing.assert_allclose(front["error"], 1.0 - NDCG(5).score(train, scores), rtol=0, atol=1e-15)
    scores = linear_scores(vali.X, solver.front_coefs_)
    np.testing.assert_allclose(front["validation"], NDCG(5).score(vali, scores), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(solver.front_support_, solver.front_coefs_ != 0, strict=True)
    assert front["features"].tolist() == [tuple(np.flatnonzero(weights)) for weights in solver.front_coefs_]
    np.testing.assert_array_equal(solver.support_, solver.front_support_[solver.chosen_])


@pytest.mark.parametrize("unit", ["pair", "query"])
def test_the_instances_of_each_member_are_those_of_its_ranker(fold, unit):
    train, _, _ = fold
    budget = {"population": 12, "generations": 4}
    stages = {"instance_selection": {**budget, "unit": unit}, "feature_selection": budget}
    solver = MOFSRank(RankRLS(), **stages, ensemble=False, tune=False, random_state=0).fit(train)
    assert (solver.trained_on_.sum(axis=1) == 1).all()
    for member, mask in enumerate(solver.trained_on_ @ solver.instance_subsets_):
        features = solver.front_support_[member][None]
        pair_mask = mask if unit == "pair" else mask[None]
        trained = RankRLS().fit_population(train, pair_mask=pair_mask, feature_mask=features, unit=unit)
        np.testing.assert_allclose(solver.front_coefs_[member], trained[0], rtol=1e-9, atol=1e-12)
        assert solver.n_instances_[member] == mask.sum()


def test_the_plot_holds_the_front(fold):
    train, vali, _ = fold
    small = dict(instance_selection=False, feature_selection=BUDGET, ensemble=False, random_state=0)
    solver = MOFSRank(**small).fit(train, validation=vali)
    axes, front = solver.plot(), solver.front_
    training, validation, chosen = axes.get_lines()
    assert training.get_xdata().tolist() == front["n_features"].tolist()
    assert training.get_ydata().tolist() == (1 - front["error"]).tolist()
    assert validation.get_ydata().tolist() == front["validation"].tolist()
    assert [chosen.get_xdata()[0], chosen.get_ydata()[0]] == [solver.support_.sum(), front["validation"].max()]
    assert axes.get_ylabel() == "NDCG@10 (higher is better)"
    alone = MOFSRank(**small).fit(train)
    assert alone.plot(axes=axes) is axes
    assert len(axes.get_lines()) == 5
    with pytest.raises(AttributeError, match="no shapes: fit it with a backend"):
        alone.plot("shapes")


def test_the_logger_tells_of_each_stage_and_is_silent_by_default(fold, caplog, capfd):
    fitted(fold)
    assert caplog.messages == [] and "".join(capfd.readouterr()) == ""
    with caplog.at_level(logging.INFO, "moerank"):
        solver = fitted(fold)
    assert [message.partition(":")[0] for message in caplog.messages] == list(solver.fronts_)


def test_the_front_never_goes_backwards_unless_the_members_may_go(fold):
    solver = fitted(fold)
    left = fitted(fold, ensemble={**BUDGET, "keep_members": False})
    assert goes_backwards(left)  # the paper's rule: what follows can fail
    assert not goes_backwards(solver)
    ensembles = {tuple(point) for point in left.fronts_["ensemble"]}
    members = {tuple(point) for point in solver.fronts_["feature_selection"]}
    assert {tuple(point) for point in solver.fronts_["ensemble"]} <= ensembles | members
    first, last = solver.history_["ensemble"]["hypervolume"].iloc[[0, -1]]
    assert solver.history_["feature_selection"]["hypervolume"].iloc[-1] <= first <= last


def goes_backwards(solver):
    """Whether some member of the second stage's front is not reached by any of the third's."""
    members, ensembles = solver.fronts_["feature_selection"], solver.fronts_["ensemble"]
    return not (ensembles[None] <= members[:, None]).all(axis=2).any(axis=1).all()


@pytest.mark.parametrize("algorithm", ["nsga2", "staircase"])
def test_constant_features_change_no_bit_of_a_search(fold, algorithm):
    """They take no evaluations: the fronts are those of a table without them."""

    def with_constants(part):
        X = np.insert(part.X, [0, 3, 3, part.n_features], [7.0, 0.0, -1.0, 2.0], axis=1)
        return RankingData(X, part.y, qid=part.qid)

    plain = fitted(fold, algorithm=algorithm, tune=False)  # the grid of alpha depends on the number of features
    more = fitted([with_constants(part) for part in fold], algorithm=algorithm, tune=False)
    varying = np.setdiff1d(np.arange(more.n_features_in_), [0, 4, 5, more.n_features_in_ - 1])
    np.testing.assert_array_equal(more.front_coefs_[:, varying], plain.front_coefs_)
    np.testing.assert_array_equal(more.front_support_.sum(axis=1), plain.front_support_.sum(axis=1))
    for stage in plain.fronts_:
        np.testing.assert_array_equal(more.fronts_[stage], plain.fronts_[stage])


def test_a_constant_feature_stays_if_a_limit_names_it(fold):
    train, vali = [RankingData(np.insert(part.X, 0, 1.0, axis=1), part.y, qid=part.qid) for part in fold[:2]]
    solver = MOFSRank(**SMALL, random_state=0, limits={"include": 0}).fit(train, validation=vali)
    assert solver.front_support_[:, 1:].any(axis=1).all()
    with pytest.raises(ValueError, match="the allowed features are constant in every query; allow others"):
        MOFSRank(**SMALL, random_state=0, limits={"exclude": range(1, train.n_features)}).fit(train, validation=vali)


def test_an_ablation_changes_one_thing(fold):
    complete = fitted(fold)
    for switches in ({"adaptive_mutation": False}, {"ensemble": False}):
        part = fitted(fold, **switches)
        np.testing.assert_array_equal(part.fronts_["instance_selection"], complete.fronts_["instance_selection"])
        if "ensemble" in switches:
            np.testing.assert_array_equal(part.fronts_["feature_selection"], complete.fronts_["feature_selection"])


def test_the_initial_population_of_a_stage_is_the_same_without_others(fold):
    seen = []

    class Recording(SubsetSizeSampling):
        def _do(self, problem, n_samples, **kwargs):
            X = super()._do(problem, n_samples, **kwargs)
            seen.append(X.copy())
            return X

    most = fold[0].n_features
    for switches in ({}, {"instance_selection": False, "adaptive_mutation": False}):
        fitted(fold, **switches, feature_selection={**BUDGET, "initial": Recording(most)}, ensemble=False)
    np.testing.assert_array_equal(*seen)


def test_the_papers_method_is_a_row_of_the_table(fold):
    train, vali, _ = fold
    solver = make_solver("mofsrank-paper", **{**SMALL, "ensemble": BUDGET}, random_state=0)
    assert (repr(solver.backend), solver.final, solver.tune) == ("RankSVM()", "train", True)
    assert solver.instance_selection == {**BUDGET, "include_all": False, "max_subsets": 100}
    assert solver.ensemble == {**BUDGET, "keep_members": False, "count": "bits"}
    solver.fit(train, validation=vali)
    assert solver.chosen_ == int(np.argmin(solver.front_["error"]))
    assert solver.front_["n_features"].max() <= train.n_features


@pytest.mark.parametrize("algorithm", BIT_SEARCHES)
def test_sparse_searches_search_the_feature_strings_alone(fold, algorithm):
    usual, sparse = fitted(fold), fitted(fold, algorithm=algorithm)
    np.testing.assert_array_equal(sparse.fronts_["instance_selection"], usual.fronts_["instance_selection"])
    again = fitted(fold, algorithm=algorithm, adaptive_mutation=False)
    same_bits(sparse, again)
    assert sparse.history_["ensemble"]["n_eval"].tolist() == usual.history_["ensemble"]["n_eval"].tolist()
    # They start as their papers have it: SparseEA with the single features.
    first = sparse.history_["feature_selection"]["n_eval"][0]
    assert first == 8 if algorithm == "sparseea" else first <= 16
    assert not np.array_equal(
        sparse.history_["feature_selection"]["hypervolume"], usual.history_["feature_selection"]["hypervolume"]
    )


def test_the_seed_decides_and_workers_do_not(fold):
    reference = fitted(fold)
    same_bits(reference, fitted(fold))
    same_bits(reference, fitted(fold, workers=2))
    assert not np.array_equal(
        reference.history_["ensemble"]["hypervolume"], fitted(fold, random_state=1).history_["ensemble"]["hypervolume"]
    )
    drawn = fitted(fold, random_state=None)
    same_bits(drawn, fitted(fold, random_state=drawn.random_state_))


def test_tuning_is_by_validation_map_over_the_grid(fold):
    train, vali, _ = fold
    solver = fitted(fold)
    values = []
    grid = [entry for entry in RankRLS().default_grid(train) if entry["target"] == solver.backend_.target]
    for entry in grid:
        ranker = RankRLS(**entry).fit(train.X, train.y, qid=train.qid)
        values.append(MAP().score(vali, ranker.predict(vali.X)))
    best = grid[int(np.argmax(values))]
    assert solver.backend_.alpha == pytest.approx(best["alpha"], rel=1e-12)
    assert fitted(fold, backend=RankRLS(0.3), tune=False).backend_.alpha == 0.3


def test_a_ranker_without_weights_serves_feature_selection_only(fold):
    trees = RankerAdapter(DecisionTreeRegressor(max_depth=3, random_state=0))
    solver = fitted(fold, backend=trees, instance_selection=False, ensemble=False)
    assert solver.front_coefs_ is None
    assert list(map(tuple, map(np.flatnonzero, solver.front_support_))) == solver.front_["features"].tolist()
    scores = solver.predict(fold[0].X)
    assert 1.0 - NDCG(5).score(fold[0], scores) == pytest.approx(solver.front_["error"][solver.chosen_], abs=1e-15)
    with pytest.raises(ValueError, match="ensemble stage adds up weights"):
        fitted(fold, backend=trees, instance_selection=False)
    with pytest.raises(ValueError, match="use instance_selection=False"):
        fitted(fold, backend=RankerAdapter(LinearRegression()))


def test_a_termination_and_an_initial_population_can_be_given(fold):
    initial = np.eye(8, dtype=int)
    settings = {"population": 8, "termination": ("n_eval", 24), "initial": initial}
    solver = fitted(fold, instance_selection=False, ensemble=False, feature_selection=settings)
    assert solver.n_evaluations_ == 24
    first = fitted(
        fold, instance_selection=False, ensemble=False, feature_selection={**settings, "termination": ("n_eval", 8)}
    )
    assert first.front_["n_features"].tolist() == [1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(instance_selection={"generatons": 3}), "did you mean 'generations'"),
        (dict(algorithm="nsga"), "did you mean"),
        (dict(algorithm="prdh", objectives=("error",)), "PRDH is made for 2 objectives or more, not for 1"),
        (dict(algorithm="mffs", feature_selection={"population": 3}), "pop_size must be at least 4, not 3"),
        (
            dict(final="test"),
            "final should be 'auto', 'train', 'validation', 'half-se', 'one-se', 'knee' or 'guaranteed', not 'test'",
        ),
        (dict(objectives=("feature", "error")), "unknown objective 'feature'; did you mean 'features'"),
        (dict(instance_selection={"generations": "5"}), "generations must be an integer, not '5'"),
        (dict(feature_selection=False), "cannot be switched off"),
        *(
            (
                dict(algorithm="moead", feature_selection={"population": 8, "initial": np.eye(8, dtype=bool)[rows]}),
                message,
            )
            for rows, message in (([0, 1, 2], "moead has a string for each of its 8 directions"), ([], r"not \(0, 8\)"))
        ),
        (dict(feature_selection={"initial": np.full((3, 8), 2)}), "feature_selection: initial must hold bits"),
        *(
            (dict(algorithm="rvea", ensemble={"termination": value}), "ensemble: rvea must know its end beforehand")
            for value in (("time", 2), "moo", MultiObjectiveSpaceTermination())
        ),
        (
            dict(feature_selection={"population": 10**9}),
            "feature_selection: a population of 1,000,000,000 strings of 8",
        ),
        (dict(ensemble={"population": 1}), "population must be at least 2"),
        (dict(random_state=-1), "random_state must be at least 0, not -1"),
        (dict(workers=0), "workers must be at least 1, not 0"),
        (dict(tune="no"), "tune must be True or False, not 'no'"),
        (dict(margin=2), "margin should be less than or equal to 1"),
        (dict(ensemble={"inject": "maybe"}), "ensemble: inject should be a valid boolean"),
        (dict(metric="NDGC@10"), "metric must be a Metric or the name of one: unknown metric 'NDGC@10'"),
        *(
            (dict(feature_selection={"termination": value}), "feature_selection: termination must be")
            for value in (
                "x",
                5,
                (),
                ("x", 3),
                ("n_gen", "3"),
                ("n_gen", 0),
                ("n_eval", 2, 3),
                "n_gen",
            )
        ),
        *(
            (dict(ensemble={"termination": ("time", value)}), "ensemble: termination must be")
            for value in ("x", 0, -1, float("nan"), float("inf"), None)
        ),
        (dict(ensemble={"initial": "x"}), "ensemble: initial must be an array, a pymoo Sampling or, for bits"),
        (dict(algorithm=5), "algorithm must be one of 'nsga2', .*, not '5'"),
        (dict(algorithm=lambda n, operators: NSGA2), "the function returned <class .*; it must return a pymoo"),
    ],
)
def test_wrong_parameters_are_refused(fold, parameters, message):
    with pytest.raises(ValueError, match=message):
        fitted(fold, **parameters)


def test_resuming_after_an_interrupt_gives_the_same_bits(fold, tmp_path):
    """Processes are killed by tests/benchmarks/kill_runs.py; what a batch writes is in the file when it has ended."""
    stage, generation = "feature_selection", 4
    memo = tmp_path / "memo"

    def interrupt(name, fraction, n_gen, n_eval):
        if (name, n_gen) == (stage, generation):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(fold, memo=memo, progress=interrupt)
    assert sorted(os.listdir(tmp_path)) == sorted(f"memo.{name}" for name in STAGES[: STAGES.index(stage) + 1])
    steps_after = []
    resumed = fitted(fold, memo=memo, resume=True, progress=lambda *call: steps_after.append(call[::2]))
    same_bits(resumed, fitted(fold))
    steps = [(name, n_gen) for name in STAGES for n_gen in range(1, 7)]
    assert steps_after == steps[steps.index((stage, generation)) + 1 :]
    # The memos stay: whoever keeps the result removes them.
    assert sorted(os.listdir(tmp_path)) == sorted(f"memo.{name}" for name in STAGES)


def test_each_reading_of_the_adaptive_mutation_reaches_the_search(fold):
    readings = {"form": "convex", "decay": "linear", "importance": "scaled", "redundancy": "mean"}
    alone = {"instance_selection": False, "ensemble": False}
    with patch("moerank.mofsrank.staged_search.FeatureSelection", side_effect=FeatureSelection) as made:
        fitted(fold, **alone, feature_selection=BUDGET | readings)
    assert readings.items() <= dict(made.call_args.args[4]).items()


def test_the_memos_of_all_stages_know_the_data_by_one_digest(tmp_path):
    train = make_planted(n_queries=20, seed=1).data
    MOFSRank(**SMALL, random_state=0, memo=tmp_path / "memo").fit(train)
    headers = [json.loads((tmp_path / f"memo.{stage}").read_bytes().partition(b"\n")[0]) for stage in STAGES]
    assert {header["configuration"]["data"] for header in headers} == {digest(train)}
    altered = train.X.copy()
    tables = np.asfortranarray(altered), altered + (altered > 0.9)
    same, other = (RankingData(X, train.y, train.qid, train.given_names) for X in tables)
    assert digest(same) == digest(train) != digest(other)
    heavy = RankingData(train.X, train.y, train.qid, document_weights=1 + train.y)
    assert digest(heavy) != digest(train)


def test_a_memo_of_other_settings_is_refused_by_their_names(fold, tmp_path):
    memo = tmp_path / "memo"
    fitted(fold, memo=memo)
    sentence = (
        r"another configuration: adaptive_mutation is True .* here, feature_selection.generations is 6 there and 5"
    )
    changes = {"adaptive_mutation": False, "feature_selection": {**BUDGET, "generations": 5}}
    with pytest.raises(ValueError, match=sentence):
        fitted(fold, memo=memo, resume=True, **changes)
    fitted(fold, memo=memo, resume=True, final="knee", workers=2)


def test_a_memo_of_another_long_argument_is_refused(tmp_path):
    """Of arrays of more than 1,000 numbers, `repr` shows the corners alone."""
    train = make_planted(n_queries=20, n_noise=40, seed=1).data
    first = np.eye(train.n_features)
    second = first.copy()
    second[20, 22] = second[22, 20] = 0.5
    assert repr(first) == repr(second)

    def search(similarity, **more):
        settings = {**SMALL, "instance_selection": False, "memo": tmp_path / "memo", "random_state": 0}
        MOFSRank(FSMRank(similarity=similarity), **settings, **more).fit(train)

    search(first)
    with pytest.raises(ValueError, match=r"configuration: backend.parameters.similarity is '?\w{32}'? there and"):
        search(second, resume=True)
    search(first.copy(), resume=True)


@pytest.mark.usefixtures("pymoo_sorts_stably")
def test_a_factory_of_the_user_gets_bool_strings_and_finds_the_same(fold):
    kinds = []

    def factory(population, operators):
        kinds.append(type(operators["crossover"]))
        return NSGA2(population, **operators)

    same_bits(fitted(fold, algorithm=factory), fitted(fold, algorithm="nsga2"))
    assert kinds[:2] == [UniformCrossover, UniformCrossover]

"""What all three stages promise: the same bits under pymoo and under our loop, and for any number of workers."""

import copy
from threading import Barrier

import numpy as np
import pytest
from pymoo.algorithms.moo.moead import MOEAD
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.constraints.as_penalty import ConstraintsAsPenalty
from pymoo.optimize import minimize

from moerank.data import RankingData
from moerank.evolution import ALGORITHMS, BIT_SEARCHES, Memo, make_algorithm, row_digests, search
from moerank.identity import digest
from moerank.metrics import NDCG
from moerank.mofsrank import Ensemble, FeatureSelection, InstanceSelection
from moerank.rankers import FSMRank, RankRLS, RankSVM


def make_stage(name, data, workers=1, backend=None):
    backend = backend or RankRLS(0.01)
    masks = np.random.default_rng(0).random((3, len(data.pairs))) < 0.4
    coefs = RankRLS(0.01).fit_population(data, feature_mask=np.eye(5, dtype=bool) | np.eye(5, k=1, dtype=bool))
    return {
        "instances": lambda: InstanceSelection(data, backend, NDCG(5), workers=workers),
        "features": lambda: FeatureSelection(data, backend, NDCG(5), masks, workers=workers),
        "ensemble": lambda: Ensemble(data, coefs, NDCG(5), workers=workers),
    }[name]()


STAGES = ["instances", "features", "ensemble"]
BACKENDS = [RankRLS(0.01), RankSVM(5.0), FSMRank(lambda2=1e-4)]


@pytest.mark.usefixtures("pymoo_sorts_stably")
@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("in_arrays", [False, True])
def test_plain_pymoo_and_our_loop_end_with_the_same_population(small_data, name, in_arrays):
    first, second = make_stage(name, small_data), make_stage(name, small_data)
    plain = minimize(first, NSGA2(24, **first.operators()), ("n_gen", 8), seed=5)
    np.random.seed(99)  # noqa: NPY002 — the global state must not matter
    algorithm = make_algorithm("nsga2", 24, second.operators()) if in_arrays else NSGA2(24, **second.operators())
    ours = search(second, algorithm, ("n_gen", 8), seed=5)
    for here, there in ((ours.pop, plain.pop), (ours.algorithm.opt, plain.opt)):
        for key in ("X", "F", "rank", "crowding", "n_gen", "feas"):
            np.testing.assert_array_equal(here.get(key), there.get(key), err_msg=key)


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: type(b).__name__)
def test_workers_change_no_bit(small_data, name, backend):
    runs = []
    for workers in (1, 2, 3):
        stage = make_stage(name, small_data, workers, backend)
        runs.append(search(stage, NSGA2(40, **stage.operators()), ("n_gen", 5), seed=2))
    for run in runs[1:]:
        np.testing.assert_array_equal(run.pop.get("X"), runs[0].pop.get("X"))
        np.testing.assert_array_equal(run.pop.get("F"), runs[0].pop.get("F"))


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: type(b).__name__)
def test_an_individual_does_not_depend_on_its_batch(small_data, name, backend):
    stage, alone = (make_stage(name, small_data, backend=backend) for _ in range(2))
    X = stage.operators()["sampling"]._do(stage, 35, random_state=np.random.default_rng(2))
    np.testing.assert_array_equal(np.concatenate([alone.evaluate(row[None]) for row in X]), stage.evaluate(X))


@pytest.mark.parametrize("name", STAGES)
def test_known_individuals_are_not_measured_again(small_data, name, monkeypatch):
    stage = make_stage(name, small_data)
    X = stage.operators()["sampling"]._do(stage, 12, random_state=np.random.default_rng(0))
    X[3] = False
    F = stage.evaluate(X)
    assert F[3].tolist() == list(stage.worst)
    monkeypatch.setattr(stage, "measure", lambda X: pytest.fail("measured again"))
    np.testing.assert_array_equal(stage.evaluate(X[::-1]), F[::-1])
    np.testing.assert_array_equal(stage.evaluate(X), F)


def counted_search(name, algorithm, data, memo, last=10**9):
    """Search with a memo; return the result and the strings that were trained, and raise at the last batch."""
    sparse = algorithm in BIT_SEARCHES
    stage = FeatureSelection(data, RankRLS(0.01), NDCG(5), adaptive=False) if sparse else make_stage(name, data)
    operators = stage.operators()
    if sparse:
        del operators["sampling"]
    measure, trained = stage.measure, []

    def counting(X):
        trained.append(row_digests(X))
        if len(trained) == last:
            raise KeyboardInterrupt
        return measure(X)

    stage.measure = counting
    result = search(stage, make_algorithm(algorithm, 16, operators), ("n_gen", 12), seed=3, memo=memo)
    return result, trained


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_search_killed_anywhere_resumes_to_the_same_bits_and_trains_nothing_twice(
    small_data, name, algorithm, tmp_path
):
    if algorithm in BIT_SEARCHES and name != "features":
        pytest.skip("the search is for feature strings")
    whole, trained = counted_search(name, algorithm, small_data, Memo(tmp_path / "whole"))
    last = int(np.random.default_rng([len(algorithm), len(name)]).integers(2, len(trained)))
    path = tmp_path / "memo"
    with pytest.raises(KeyboardInterrupt):
        counted_search(name, algorithm, small_data, Memo(path), last)
    with path.open("ab") as file:
        file.write(b'[0.5, {"torn')
    resumed, rest = counted_search(name, algorithm, small_data, Memo(path))
    assert resumed.archive.X.tobytes() == whole.archive.X.tobytes()
    assert resumed.archive.F.tobytes() == whole.archive.F.tobytes()
    assert [g.n_eval for g in resumed.history] == [g.n_eval for g in whole.history]
    # The rest is trained once; then the members of the front that stood in the memo are measured again.
    assert rest[: len(trained) - last + 1] == trained[last - 1 :]
    again = [digest for batch in rest[len(trained) - last + 1 :] for digest in batch]
    assert set(again) <= set(row_digests(resumed.archive.X))


@pytest.mark.parametrize("name", STAGES[:2])
def test_an_algorithm_without_the_operators_of_the_stage_is_told_so(small_data, name):
    with pytest.raises(ValueError, match="strings must be bool, but the algorithm makes float64; give it the op"):
        minimize(make_stage(name, small_data), NSGA2(16), ("n_gen", 2), seed=1)


def test_moead_works_as_it_is_made_here_and_says_so_elsewhere(small_data):
    stage = make_stage("features", small_data)
    directions = np.column_stack([np.linspace(0, 1, 12), np.linspace(1, 0, 12)])
    with pytest.raises(TypeError, match="got multiple values for keyword argument 'eliminate_duplicates'"):
        MOEAD(directions, **stage.operators())  # as the guide says
    kept = {name: operator for name, operator in stage.operators().items() if name != "eliminate_duplicates"}
    with pytest.raises(TypeError, match=r'how far the search is, .* make_algorithm\("moead", …\)'):
        minimize(stage, MOEAD(directions, n_neighbors=5, **kept), ("n_gen", 2), seed=1)
    result = minimize(stage, make_algorithm("moead", 12, stage.operators()), ("n_gen", 3), seed=1)
    np.testing.assert_array_equal(make_stage("features", small_data).evaluate(result.X), result.F)


def test_workers_train_side_by_side(small_data):
    """Each of two threads waits inside the backend until the other is there, too."""
    together = Barrier(2)

    class Patient(RankRLS):
        def fit_population(self, train, **masks):
            together.wait(timeout=30)
            return super().fit_population(train, **masks)

    stage = make_stage("instances", small_data, workers=2, backend=Patient(0.01))
    stage.evaluate(stage.operators()["sampling"]._do(stage, 32, random_state=np.random.default_rng(0)))


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_shares_the_data_and_nothing_that_changes(small_data, name, copied):
    stage = make_stage(name, small_data)
    X = stage.operators()["sampling"]._do(stage, 12, random_state=np.random.default_rng(0))
    F = stage.evaluate(X)
    variant = copied(stage)
    assert variant.train is stage.train and (len(stage._cached), len(variant._cached)) == (len(np.unique(X, axis=0)), 0)
    before, key = vars(stage).copy(), digest(stage)
    variant.metric, variant.adaptive = NDCG(1), False
    assert not np.array_equal(variant.evaluate(X)[:, 1], F[:, 1])
    wrapped = ConstraintsAsPenalty(stage)
    assert not wrapped._cached and vars(stage) == before
    np.testing.assert_array_equal(stage.evaluate(X), F)
    stage.pareto_front()
    assert digest(stage) == key == digest(make_stage(name, small_data))
    assert digest(variant) != key


def test_a_wide_problem_starts_with_few_features():
    rng = np.random.default_rng(0)
    data = RankingData(rng.random((12, 1_500)), rng.integers(0, 3, 12), np.repeat([1, 2, 3], 4))
    stage = FeatureSelection(data, metric=NDCG(5), adaptive=False)
    sizes = stage.operators()["sampling"]._do(stage, 200, random_state=rng).sum(axis=1)
    assert 900 < sizes.max() <= 1_000

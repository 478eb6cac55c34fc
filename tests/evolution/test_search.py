import numpy as np
import pytest
from helpers.toy_search import ALGORITHMS, POP_SIZE, SPARSE, WeighedBits, operators
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.duplicate import DefaultDuplicateElimination
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.core.termination import TerminateIfAny
from pymoo.operators.survival.rank_and_crowding.metrics import get_crowding_function
from pymoo.optimize import minimize
from pymoo.termination.ftol import MultiObjectiveSpaceTermination
from pymoo.termination.max_eval import MaximumFunctionCallTermination
from pymoo.termination.max_time import TimeBasedTermination
from pymoo.termination.robust import RobustTermination
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from moerank.evolution import Archive, DigestDuplicates, row_digests, search
from moerank.evolution.algorithms import select_rows


class Recorded(WeighedBits):
    """Keeps everything that was evaluated."""

    def __init__(self):
        super().__init__()
        self.X, self.F = [], []

    def _evaluate(self, X, out, *args, **kwargs):
        super()._evaluate(X, out)
        self.X.extend(X.copy())
        self.F.extend(out["F"])


def assert_same_population(here, there):
    np.testing.assert_array_equal(here.get("X"), there.get("X"))
    np.testing.assert_array_equal(here.get("F"), there.get("F"))


@pytest.mark.usefixtures("pymoo_sorts_stably")
@pytest.mark.parametrize("made", [*ALGORITHMS.values(), *SPARSE.values()], ids=[*ALGORITHMS, *SPARSE])
def test_populations_are_those_of_minimize(made):
    problem, algorithm = WeighedBits(), made()
    expected = minimize(problem, made(), ("n_gen", 12), seed=3)
    result = search(problem, algorithm, ("n_gen", 12), seed=3)
    assert_same_population(result.pop, expected.pop)
    assert_same_population(result.algorithm.opt, expected.opt)
    assert result.pop.get("X").dtype == bool
    assert len(result.history) == 12
    assert result.history[-1].n_eval == expected.algorithm.evaluator.n_eval
    # The given algorithm was copied, so it serves again, and another seed gives another run.
    again = search(problem, algorithm, ("n_gen", 12), seed=3)
    assert_same_population(again.pop, expected.pop)
    other = search(problem, algorithm, ("n_gen", 12), seed=4)
    assert not np.array_equal(other.pop.get("X"), expected.pop.get("X"))


TERMINATIONS = {
    "number": (7, 7),
    "any": (TerminateIfAny(TimeBasedTermination(3600), MaximumFunctionCallTermination(3 * POP_SIZE)), 3),
    "tolerance": (RobustTermination(MultiObjectiveSpaceTermination(0.05, only_feas=False), period=5), None),
}


@pytest.mark.parametrize(("termination", "generations"), TERMINATIONS.values(), ids=TERMINATIONS)
def test_terminations_are_those_of_pymoo(termination, generations):
    pymoos = ("n_gen", termination) if isinstance(termination, int) else termination
    expected = minimize(WeighedBits(), ALGORITHMS["NSGA2"](), pymoos, seed=1)
    for _ in range(2):
        result = search(WeighedBits(), ALGORITHMS["NSGA2"](), termination, seed=1)
        assert_same_population(result.pop, expected.pop)
        assert len(result.history) == (generations or expected.algorithm.n_gen - 1)
    assert len(result.history) < 500


def test_fewer_evaluations_than_the_population_are_one_generation():
    result = search(WeighedBits(), ALGORITHMS["RVEA"](), ("n_eval", POP_SIZE - 1), seed=1)
    assert [generation.n_eval for generation in result.history] == [POP_SIZE]


def test_archive_holds_all_that_is_not_dominated():
    problem = Recorded()
    result = search(problem, ALGORITHMS["NSGA2"](), 20, seed=2)
    F = np.array(problem.F)
    assert len(F) == result.history[-1].n_eval == 20 * POP_SIZE
    smaller, larger = ((F[None, :, k] < F[:, None, k] for k in (0, 1)), (F[None, :, k] > F[:, None, k] for k in (0, 1)))
    free = np.flatnonzero(~(np.logical_or(*smaller) & ~np.logical_or(*larger)).any(axis=1))
    first = np.sort(free[np.unique(F[free], axis=0, return_index=True)[1]])
    np.testing.assert_array_equal(result.archive.F, F[first])
    np.testing.assert_array_equal(result.archive.X, np.array(problem.X)[first])
    assert len(first) > POP_SIZE


def test_history_tells_how_the_front_grew():
    result = search(WeighedBits(), ALGORITHMS["NSGA2"](), 15, seed=2)
    assert [generation.n_gen for generation in result.history] == list(range(1, 16))
    assert np.all(np.diff([generation.elapsed for generation in result.history]) >= 0)
    for generation in result.history:
        short = search(WeighedBits(), ALGORITHMS["NSGA2"](), generation.n_gen, seed=2)
        np.testing.assert_array_equal(short.archive.F, generation.front)
    reference = np.array([61.0, 40.0])
    volume = result.hypervolume(reference)
    assert np.all(np.diff(volume) >= 0)
    assert volume[-1] > volume[0]
    front = result.archive.F[np.argsort(result.archive.F[:, 0])]
    ceilings = np.minimum.accumulate(np.append(reference[1], front[:, 1]))
    by_hand = sum((reference[0] - f[0]) * max(0.0, top - f[1]) for f, top in zip(front, ceilings, strict=False))
    np.testing.assert_allclose(volume[-1], by_hand, rtol=1e-12)


def test_search_ends_where_nothing_new_is_left():
    problem = WeighedBits(n_var=2)
    expected = minimize(problem, NSGA2(4, **operators()), ("n_gen", 50), seed=1)
    result = search(problem, NSGA2(4, **operators()), ("n_gen", 50), seed=1)
    assert_same_population(result.pop, expected.pop)
    assert len(result.history) == expected.algorithm.n_gen - 1 < 50
    assert len(np.unique(result.pop.get("X"), axis=0)) == 4


def test_an_algorithm_in_use_or_with_an_evaluator_of_its_own_is_refused():
    used, own = ALGORITHMS["NSGA2"](), ALGORITHMS["NSGA2"]()
    used.setup(WeighedBits(), termination=("n_gen", 2))
    own.evaluator = type("OwnEvaluator", (Evaluator,), {})()
    for algorithm, message in ((used, "set up already"), (own, "has an evaluator of its own")):
        with pytest.raises(ValueError, match=message):
            search(WeighedBits(), algorithm, 2, seed=1)


def test_undefined_objectives_are_refused():
    class Undefined(WeighedBits):
        def _evaluate(self, X, out, *args, **kwargs):
            out["F"] = np.full((len(X), 2), np.nan)

    with pytest.raises(ValueError, match="finite penalty"):
        search(Undefined(), ALGORITHMS["NSGA2"](), 2, seed=1)


def brute_force(F):
    """Indices of the vectors that no other one dominates, of equal ones the first."""
    dominated = [any(np.all(g <= f) and np.any(g < f) for g in F) for f in F]
    repeated = [any(np.array_equal(g, f) for g in F[:i]) for i, f in enumerate(F)]
    return [i for i in range(len(F)) if not dominated[i] and not repeated[i]]


@settings(deadline=None, max_examples=200)
@given(
    F=st.integers(1, 4).flatmap(
        lambda n_obj: st.integers(1, 30).flatmap(lambda n: arrays(np.float64, (n, n_obj), elements=st.integers(0, 5)))
    ),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    is_bool=st.booleans(),
)
def test_members_are_those_of_brute_force_however_they_came(F, cuts, is_bool):
    X = (np.arange(len(F))[:, None] >> np.arange(9)) & 1
    X = X.astype(bool if is_bool else float)
    archive = Archive()
    for part in np.split(np.arange(len(F)), sorted(min(cut, len(F)) for cut in cuts)):
        archive.add(X[part], F[part])
    expected = brute_force(F)
    np.testing.assert_array_equal(archive.F, F[expected])
    np.testing.assert_array_equal(archive.X, X[expected])
    assert archive.X.dtype == X.dtype
    assert len(archive) == len(expected)


@pytest.mark.parametrize("dtype", [bool, float])
def test_what_was_added_stays_as_it_was(dtype):
    X, archive = np.ones((1, 3), dtype), Archive()
    archive.add(X, np.array([[1.0, 2.0]]))
    before = archive.F
    X[:] = 0
    assert archive.X.all()
    archive.add(np.zeros((1, 3), bool), np.array([[0.0, 0.0]]))
    np.testing.assert_array_equal(before, [[1.0, 2.0]])
    with pytest.raises(ValueError, match="read-only"):
        archive.F[0, 0] = 5.0


def test_what_cannot_be_compared_is_refused():
    archive = Archive()
    archive.add(np.zeros((1, 3)), np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"individual 1 are .*finite penalty"):
        archive.add(np.zeros((2, 3)), np.array([[0, 1], [0, np.nan]]))


@pytest.mark.parametrize("dtype", [bool, np.float64, np.int64, object])
def test_digests_are_equal_exactly_where_rows_are(dtype):
    X = np.random.default_rng(0).integers(0, 2, (300, 7)).astype(dtype)
    digests = row_digests(X)
    equal = (X[:, None, :] == X[None, :, :]).all(axis=2)
    assert 300 < equal.sum() < 90_000
    np.testing.assert_array_equal(np.equal.outer(digests, digests), equal)
    assert row_digests(np.asfortranarray(X)) == digests
    assert row_digests(list(X)) == digests


def test_digests_see_the_last_bit_and_no_sign_of_zero():
    X = np.zeros((2, 1001), bool)
    X[1, -1] = True
    assert len(set(row_digests(X))) == 2
    assert len(set(row_digests(np.array([[0.0, 1.0], [-0.0, 1.0]])))) == 1
    assert len(set(row_digests(np.array([[1.0], [np.nextafter(1.0, 2.0)]])))) == 2


@pytest.mark.parametrize("dtype", [bool, np.float64])
def test_the_same_individuals_stay_as_with_distances(dtype):
    rng = np.random.default_rng(1)
    ours, theirs = DigestDuplicates(), DefaultDuplicateElimination()
    removed = 0
    for _ in range(20):
        new, parents, siblings = (
            Population.new("X", rng.integers(0, 2, (size, 6)).astype(dtype)) for size in (12, 10, 4)
        )
        kept = theirs.do(new, parents, siblings, return_indices=True)
        removed += len(kept[2])
        for result, expected in zip(ours.do(new, parents, siblings, return_indices=True), kept, strict=True):
            assert list(result) == list(expected)
    assert 0 < removed < 240
    assert len(ours.do(Population.empty())) == 0


def selected_front_by_front(F, n, random_state):
    kept, rank, crowding = np.empty(0, np.int64), np.zeros(len(F), np.int64), np.zeros(len(F))
    for number, front in enumerate(NonDominatedSorting().do(F, n_stop_if_ranked=n)):
        excess = max(0, len(kept) + len(front) - n)
        distance = get_crowding_function("cd").do(F[front])
        rank[front], crowding[front] = number, distance
        if excess:
            drawn = random_state.permutation(len(front))
            front = front[drawn[np.argsort(distance[drawn], kind="stable")[excess:]]][::-1]
        kept = np.concatenate((kept, front))
    return kept, rank[kept], crowding[kept]


@pytest.mark.parametrize("n_objectives", [1, 2, 3])
@pytest.mark.parametrize("n_values", [1, 2, 5, 40, 1000])
def test_individuals_are_selected_as_by_pymoo_front_by_front(n_objectives, n_values):
    rng = np.random.default_rng(n_values)
    for seed in range(200):
        size = int(rng.integers(1, 100))
        F = rng.integers(0, n_values, (size, n_objectives)) * 0.1
        n = int(rng.integers(1, size + 1))
        drawing, right = np.random.default_rng(seed), np.random.default_rng(seed)
        results = select_rows(F, n, drawing), selected_front_by_front(F, n, right)
        for array, expected in zip(*results, strict=True):
            assert array.tobytes() == expected.tobytes()
        assert drawing.bit_generator.state == right.bit_generator.state

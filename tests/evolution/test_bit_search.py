"""What the searches that are made for bit strings have in common, whichever they are."""

import numpy as np
import pytest
from helpers.chance import plausible
from helpers.plain import all_subsets, front
from helpers.populations import crowded, peeled, placed, strings
from helpers.toy_search import POP_SIZE, SPARSE, WeighedBits
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.repair import Repair
from pymoo.optimize import minimize
from scipy import stats

from moerank.evolution import PRDH, DensitySampling, SubsetSizeSampling, search
from moerank.evolution.bit_search import (
    first_of_equals,
    group_numbers,
    select_by_crowding,
    without_size,
)

EVERY = pytest.mark.parametrize("made", SPARSE.values(), ids=SPARSE)


class Watched(WeighedBits):
    """Keeps the batches that it was asked for."""

    def __init__(self, n_var=40):
        super().__init__(n_var)
        self.batches = []

    def _evaluate(self, X, out, *args, **kwargs):
        super()._evaluate(X, out)
        self.batches.append(X.copy())


class AtMostFive(Repair):
    """Takes out random ones until five are left, and the first bit always."""

    def _do(self, problem, X, *, random_state, **kwargs):
        lots = np.where(X, random_state.random(X.shape), 2.0)
        few = X & (lots <= np.sort(lots, axis=1)[:, 4:5])
        few[:, 0] = False
        return few


@EVERY
def test_the_front_of_all_strings_is_found(made):
    problem = WeighedBits(8)
    found = search(problem, made(pop_size=40), ("n_gen", 40), seed=1)
    for F in (found.archive.F, found.algorithm.opt.get("F")):
        np.testing.assert_array_equal(np.unique(F, axis=0), front(problem.evaluate(all_subsets(8))))


@EVERY
def test_only_strings_with_ones_are_evaluated_and_none_twice_in_a_batch(made):
    problem = Watched(12)
    search(problem, made(), ("n_gen", 25), seed=2)
    assert len(problem.batches) == 25
    for X in problem.batches:
        assert X.dtype == np.bool_
        assert X.any(axis=1).all()
        assert 0 < len(X) <= POP_SIZE + 12 * (made is SPARSE["staircase"])
    copies = sum(len(X) - len(np.unique(X, axis=0)) for X in problem.batches)
    assert (copies > 0) == (made is SPARSE["sparseea"]), "the authors of SparseEA evaluate copies"


@EVERY
@pytest.mark.parametrize("n_var", [3, 60])
def test_the_population_stands_in_arrays_and_in_individuals_alike(made, n_var):
    problem = WeighedBits(n_var)
    algorithm = search(problem, made(), ("n_gen", 9), seed=2).algorithm
    np.testing.assert_array_equal(algorithm.X, algorithm.pop.get("X"))
    np.testing.assert_array_equal(algorithm.F, algorithm.pop.get("F"))
    np.testing.assert_allclose(algorithm.F, problem.evaluate(algorithm.X), rtol=1e-12)
    best = front(np.concatenate((algorithm.F, algorithm.opt.get("F"))))
    np.testing.assert_array_equal(np.unique(algorithm.opt.get("F"), axis=0), best)
    assert len(np.unique(algorithm.opt.get("X"), axis=0)) == len(algorithm.opt)


@EVERY
def test_a_repair_is_kept_by_every_string(made):
    problem = Watched()
    found = search(problem, made(repair=AtMostFive()), ("n_gen", 12), seed=1)
    sent = np.concatenate(problem.batches)
    assert sent.sum(axis=1).max() <= 5
    assert not sent[:, 0].any()
    assert found.archive.F[:, 0].max() == 5
    given = search(Watched(), made(repair=AtMostFive(), sampling=DensitySampling(0.9, 1.0)), ("n_gen", 2), seed=1)
    assert given.pop.get("X").sum(axis=1).max() <= 5


@EVERY
@pytest.mark.parametrize("n_given", [5, POP_SIZE, POP_SIZE + 9])
def test_given_strings_come_first(made, n_given):
    given = SubsetSizeSampling()._do(Problem(n_var=40), n_given, random_state=np.random.default_rng(3))
    problem = Watched()
    search(problem, made(sampling=given), 2, seed=1)
    first = problem.batches[1 if made is SPARSE["sparseea"] else 0]
    np.testing.assert_array_equal(first[:n_given], given)
    # Staircase evaluates the 40 strings of a single one, too; some of them are among the others.
    singles = np.count_nonzero(first.sum(axis=1) == 1) if made is SPARSE["staircase"] else 0
    assert max(n_given, POP_SIZE) <= len(first) <= max(n_given, POP_SIZE) + singles
    assert singles in (0, 40)


@EVERY
def test_individuals_that_are_evaluated_are_not_again(made):
    X = SubsetSizeSampling()._do(Problem(n_var=40), 6, random_state=np.random.default_rng(3))
    known = Population.new("X", X, "F", WeighedBits(40).evaluate(X))
    for individual in known:
        individual.evaluated.update("FGH")
    problem = Watched()
    result = minimize(problem, made(sampling=known), ("n_gen", 3), seed=1)
    first = problem.batches[1 if made is SPARSE["sparseea"] else 0]
    assert len(first) == POP_SIZE - 6 + 40 * (made is SPARSE["staircase"])
    assert result.algorithm.evaluator.n_eval == sum(map(len, problem.batches))


@EVERY
def test_what_cannot_be_searched_is_refused(made):
    name = made.func.__name__
    with pytest.raises(ValueError, match=rf"^{name} handles no constraints, .* give a repair=… .* pymoo's NSGA2"):
        made().setup(Problem(n_var=5, n_obj=2, n_ieq_constr=1))
    with pytest.raises(ValueError, match="pop_size must be at least"):
        made(pop_size=1)
    for given in (np.eye(40), np.eye(39, dtype=bool)):
        with pytest.raises(ValueError, match="give bool strings of the problem's 40 variables"):
            search(WeighedBits(40), made(sampling=given), 3, seed=1)


class NothingAfter(Repair):
    """Leaves no bit after some generations."""

    def __init__(self, n_gen):
        super().__init__()
        self.n_gen = n_gen

    def _do(self, problem, X, *, algorithm, **kwargs):
        return X if algorithm.n_iter <= self.n_gen else np.zeros_like(X)


@EVERY
def test_a_search_with_nothing_left_to_evaluate_ends_and_one_with_nothing_to_begin_with_is_refused(made):
    found = search(WeighedBits(), made(repair=NothingAfter(3)), 20, seed=1)
    assert len(found.history) < 20
    assert found.history[-1].n_eval == found.history[2].n_eval
    for settings in ({}, dict(sampling=np.zeros((POP_SIZE, 60), bool))):
        with pytest.raises(ValueError, match="every string of the initial population is empty"):
            search(WeighedBits(), made(**settings, repair=NothingAfter(0)), 5, seed=1)


@pytest.fixture(params=[1, 2, 3])
def points(request):
    """Points on a coarse grid, so that many share a coordinate, and some are equal."""
    return np.random.default_rng(request.param).integers(0, 9, (80, request.param)) / 8


@pytest.mark.parametrize("n", [1, 7, 33, 80, 200])
def test_whole_fronts_survive_and_of_the_last_the_least_crowded(points, n):
    points = np.unique(points, axis=0)
    front = peeled(points)
    distance = crowded(points, front)
    kept, standing = select_by_crowding(points, n)
    assert len(kept) == min(n, len(points))
    assert (np.diff(kept) > 0).all()
    out = np.setdiff1d(np.arange(len(points)), kept)
    for gone in out:
        assert front[gone] >= front[kept].max()
        same = kept[front[kept] == front[gone]]
        assert (distance[same] >= distance[gone] - 1e-12).all()
    for i, j in zip(range(len(kept)), range(1, len(kept)), strict=False):
        a, b = (front[kept[i]], -distance[kept[i]].round(9)), (front[kept[j]], -distance[kept[j]].round(9))
        assert (standing[i] < standing[j]) == (a < b) or a == b


SEEDED = np.random.default_rng


@pytest.mark.parametrize("rows", [SEEDED(0).random((60, 5)) < 0.5, SEEDED(1).integers(0, 3, (60, 2)) / 3])
def test_equal_rows_are_found(rows):
    groups = group_numbers(rows)
    for i, row in enumerate(rows):
        assert ((groups == groups[i]) == (rows == row).all(axis=1)).all()
    expected = [i for i, row in enumerate(rows) if not (rows[:i] == row).all(axis=1).any()]
    assert len(expected) < len(rows)
    assert first_of_equals(rows).tolist() == expected


def test_children_have_each_bit_from_either_parent_but_for_flips():
    n = 20_000
    a, b = strings("11110000", "11001100")
    children = placed(PRDH(), a[None], [[0, 0]], 8)._uniform_children(np.repeat([a, b], n, axis=0))
    first, second = children[:n], children[n:]
    # A flip turns one of the two equal bits, at each of these four places in each child with probability 1/8.
    flipped = children[:, a == b] != a[a == b]
    assert plausible(np.bincount(flipped.sum(axis=1), minlength=5), stats.binom.pmf(range(5), 4, 1 / 8))
    # What one child has of the one parent, the other has of the other: they differ unless one of both was flipped.
    exchanged = first[:, a != b] != second[:, a != b]
    np.testing.assert_allclose(exchanged.mean(), 1 - 2 * (1 / 8) * (7 / 8), atol=0.004)
    assert plausible(np.bincount(first[:, a != b] @ (1 << np.arange(4))), np.ones(16))


def test_a_child_without_ones_becomes_a_random_string():
    children = placed(PRDH(), strings("10"), [[0, 0]], 9)._uniform_children(np.zeros((40_000, 2), bool))
    # Each of the four strings comes about by flips with probability 1/4, and the empty one is drawn again.
    assert plausible(np.bincount(children @ [1, 2]), [1 / 16, 5 / 16, 5 / 16, 5 / 16])


@pytest.mark.parametrize("share", [1.0, 1 / 7])
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_size_is_known_in_any_place_and_unit(share, order):
    X = all_subsets(7)
    F = np.column_stack((X.sum(axis=1) * share, SEEDED(0).random(len(X))))[:, order]
    assert without_size(X, F).tolist() == [order.index(1)]


def test_objectives_that_are_no_size_all_count():
    X = strings("110", "011", "111")
    costs, errors = X @ np.array([1.0, 5, 2]), np.array([0.3, 0.2, 0.1])
    assert without_size(X, np.column_stack((costs, errors))).tolist() == [0, 1]
    assert without_size(X, X.sum(axis=1)[:, None].astype(float)).tolist() == [0]

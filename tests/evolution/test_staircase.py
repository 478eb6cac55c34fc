import numpy as np
import pytest
from helpers.chance import plausible
from helpers.populations import placed, strings
from helpers.toy_search import WeighedBits
from pymoo.core.population import Population
from pymoo.core.problem import Problem

from moerank.evolution import Staircase, row_digests, search
from moerank.evolution.staircase import (
    ANY,
    FLIP,
    MOVED,
    NEAR,
    OPERATORS,
    STALE_GENERATIONS,
    SWAP,
    gaps,
    select_by_gap,
)


def gap_by_hand(i, sizes, values):
    """The least fall of all values of member i after which no member of at most its size is less in all of them."""
    no_larger = [j for j in range(len(sizes)) if sizes[j] <= sizes[i]]
    return max(min(values[i][k] - values[j][k] for k in range(len(values[i]))) for j in no_larger)


@pytest.mark.parametrize("n_values", [1, 2, 3])
def test_gaps_are_those_of_the_definition(n_values):
    rng = np.random.default_rng(n_values)
    sizes, values = rng.integers(1, 9, 40), rng.integers(0, 16, (40, n_values)) / 16
    expected = [gap_by_hand(i, sizes, values) for i in range(40)]
    assert 0 < expected.count(0.0) < 40
    np.testing.assert_array_equal(gaps(sizes, values), expected)


def selected_by_hand(sizes, errors, n):
    """The walk down the list: by gap, then size; three of a size, none twice."""
    gap = [gap_by_hand(i, sizes, errors[:, None]) for i in range(len(sizes))]
    kept, seen, counted = [], set(), {}
    for i in sorted(range(len(sizes)), key=lambda i: (gap[i], sizes[i])):
        if (sizes[i], errors[i]) in seen:
            continue
        seen.add((sizes[i], errors[i]))
        counted[sizes[i]] = counted.get(sizes[i], 0) + 1
        if counted[sizes[i]] <= 3:
            kept.append(i)
    on_staircase = sum(gap[i] == 0 for i in kept)
    return kept[: max(n, on_staircase)]


@pytest.mark.parametrize("n", [2, 9, 20, 200])
def test_survivors_are_those_of_the_walk_down_the_list(n):
    rng = np.random.default_rng(4)
    sizes, errors = rng.integers(1, 7, 120), rng.integers(0, 40, 120) / 64
    kept, gap = select_by_gap(sizes, errors[:, None], n)
    assert sorted(kept.tolist()) == sorted(selected_by_hand(sizes, errors, n))
    assert np.all(np.diff(gap) >= 0)
    assert np.bincount(sizes[kept]).max() <= 3


class Offering(WeighedBits):
    """Offers the strings with the first 1, 2, … bits."""

    asked = ()

    def starting_strings(self, n):
        self.asked = (*self.asked, n)
        return np.tri(self.n_var, dtype=bool)[: n - 1]

    def __deepcopy__(self, memo):
        return self


def test_half_of_the_start_is_what_the_problem_offers():
    problem = Offering(40)
    algorithm = Staircase(80)
    algorithm.setup(problem, termination=("n_gen", 2), seed=1)
    X = algorithm.ask().get("X")
    assert problem.asked == (10,)
    assert X.shape == (40 + 19, 40)
    np.testing.assert_array_equal(X[:40], np.eye(40, dtype=bool))
    np.testing.assert_array_equal(X[40:48], np.tri(40, dtype=bool)[1:9])  # its first string is a single one


@pytest.mark.parametrize(("evaluations", "n_singles"), [(799, 0), (800, 40)])
def test_all_single_ones_come_first_where_they_take_a_twentieth_of_the_evaluations(evaluations, n_singles):
    algorithm = Staircase(400)
    algorithm.setup(Problem(n_var=40, n_obj=2), termination=("n_eval", evaluations), seed=1)
    X = algorithm.ask().get("X")
    np.testing.assert_array_equal(X[:n_singles], np.eye(40, dtype=bool)[:n_singles])
    assert len(X) - n_singles in range(90, 101)


def test_the_population_grows_with_the_root_of_what_was_sent():
    algorithm = placed(Staircase(40), strings("10"), [[1, 0.5]])
    sizes = []
    for sent in (0, 400, 625, 2_500, 10_000, 40_000, 160_000, 10**7):
        algorithm.n_sent = sent
        sizes.append(algorithm._size_now())
    assert sizes == [10, 10, 10, 20, 40, 80, 160, 160]
    found = search(WeighedBits(30), Staircase(16), ("n_eval", 700), seed=1)
    sent = np.diff([0, *(generation.n_eval for generation in found.history)])
    assert sent[0] == 30 + 4
    later, counts = sent[1:], np.cumsum(sent)[1:]
    assert all(size <= max(4, int(16 * (n / 10_000) ** 0.5)) for size, n in zip(later, counts, strict=True))


def children(rows, gap, operator, n=4_000):
    X = strings(*rows)
    algorithm = placed(Staircase(), X, np.zeros((len(X), 2)), seed=5)
    algorithm.gap = np.array(gap, float)
    return algorithm, algorithm._children(np.full(n, operator), n_further_moves=0)


def test_a_flip_changes_any_bit_of_the_winner_and_a_swap_exchanges_any_one_and_any_zero():
    _, made = children(["110100"], [0], FLIP)
    changed = made ^ strings("110100")
    assert (changed.sum(axis=1) == 1).all()
    assert plausible(changed.sum(axis=0), np.ones(6))
    _, made = children(["110100"], [0], SWAP)
    changed = made ^ strings("110100")
    assert (changed.sum(axis=1) == 2).all()
    assert (made.sum(axis=1) == 3).all()
    assert plausible(changed[:, [0, 1, 3]].sum(axis=0), np.ones(3))
    assert plausible(changed[:, [2, 4, 5]].sum(axis=0), np.ones(3))


def test_parents_win_tournaments_on_the_gap():
    _, made = children(["110000", "001111"], [0.2, 0.1], SWAP)
    assert plausible(np.bincount(made.sum(axis=1), minlength=5)[[2, 4]], [1, 3])


def test_a_child_of_two_takes_each_differing_bit_of_either():
    _, made = children(["1100", "0101"], [0.0, 0.0], ANY)
    # Parent and mate are one and the same in half of the matings.
    code = made @ (1 << np.arange(4))
    counts = np.bincount(code, minlength=16)
    assert set(np.flatnonzero(counts)) == {0b0011, 0b1010, 0b0010, 0b1011}
    assert plausible(counts[[0b0011, 0b1010, 0b0010, 0b1011]], [3, 3, 1, 1])


def test_near_mates_are_up_to_five_places_away_in_size():
    # Thirteen nested strings; the parent is always the middle one, so that a child tells how far its mate was.
    n = 13
    X = np.tri(n, n, dtype=bool)
    gap = np.ones(n)
    gap[6] = 0
    algorithm = placed(Staircase(), X[::-1], np.zeros((n, 2)), seed=3)
    algorithm.gap = gap

    algorithm._tournament = lambda standing, size: np.full(size, 6)
    made = algorithm._children(np.full(6_000, NEAR), n_further_moves=0)
    changed = made ^ X[6]
    assert changed[:, 7:12].any(axis=0).all()
    assert changed[:, 2:7].any(axis=0).all()
    assert not changed[:, [0, 1, 12]].any()
    # Bit 7 + k - 1 differs from mates k … 5 places up, each of them one in ten, and is taken by half.
    assert plausible(changed[:, 7:12].sum(axis=0), [5, 4, 3, 2, 1])


def test_moves_follow_one_another_with_probability_a_third():
    _, made = children(["1" * 500 + "0" * 500], [0], MOVED, n=2_000)
    changed = (made ^ strings("1" * 500 + "0" * 500)).sum(axis=1)
    # One move changes one bit (2/3) or two (1/3); two bits also come from two moves of one each.
    one, two = 2 / 3 * 2 / 3, 2 / 3 * 1 / 3 + 2 / 9 * 4 / 9
    counts = np.array([(changed == 1).sum(), (changed == 2).sum(), (changed > 2).sum()])
    assert plausible(counts, [one, two, 1 - one - two])


def test_operators_are_chosen_by_their_latest_success():
    algorithm = placed(Staircase(), strings("110", "011"), [[2, 0.5], [2, 0.6]], seed=1)
    algorithm.gap = np.array([0.0, 0.1])
    newcomers = strings("100", "010", "111")
    algorithm.made_by = dict(zip(row_digests(newcomers), (NEAR, NEAR, FLIP), strict=True))
    X = np.concatenate((algorithm.X, newcomers))
    F = np.array([[2, 0.5], [2, 0.6], [1, 0.7], [1, 0.7], [3, 0.4]])
    kept = algorithm._survive(X, F)
    assert sorted(kept.tolist()) == [0, 1, 2, 4]  # the fourth has the size and the objectives of the third
    assert algorithm.n_children.tolist() == [2, 0, 0, 1, 0]
    assert algorithm.n_survivors.tolist() == [1, 0, 0, 1, 0]
    success = np.array([1.5 / 7, 0.5 / 5, 0.5 / 5, 1.5 / 6, 0.5 / 5])
    shares = 0.05 + 0.75 * success / success.sum()
    assert plausible(np.bincount(algorithm._operators(20_000), minlength=len(OPERATORS)), shares)
    algorithm.made_by = {}
    algorithm._hold(Population.new(X=X[kept], F=F[kept]))
    algorithm._survive(algorithm.X, algorithm.F)
    np.testing.assert_allclose(algorithm.n_children, [1.8, 0, 0, 0.9, 0])


class Flat(Problem):
    """Every string of a size is as good as any other."""

    def __init__(self, n_var=12):
        super().__init__(n_var=n_var, n_obj=2)
        self.batches = []

    def _evaluate(self, X, out, *args, **kwargs):
        self.batches.append(X.copy())
        sizes = X.sum(axis=1)
        out["F"] = np.column_stack([sizes, 1 / sizes])

    def __deepcopy__(self, memo):
        return self


def test_a_stale_search_begins_anew_then_unites_and_goes_on():
    problem, algorithm = Flat(), Staircase(40)
    algorithm.setup(problem, termination=("n_gen", 10**6), seed=1)
    stale, asides = [], []
    for _ in range(120):
        algorithm.next()
        stale.append(algorithm.stale)
        asides.append(algorithm.aside is not None)
    assert max(stale) == STALE_GENERATIONS + 1
    changes = np.flatnonzero(np.diff(asides))
    assert len(changes) >= 3
    begins = changes[::2] + 1
    assert all(stale[i - 1] == STALE_GENERATIONS + 1 for i in changes + 1)
    assert all(stale[i] == 0 for i in begins)
    # Within an epoch no string is sent twice; a new one sends some again.
    epochs = np.split(np.arange(120), begins)
    for epoch in epochs:
        X = np.concatenate([problem.batches[i] for i in epoch])
        assert len(np.unique(X, axis=0)) == len(X)
    everything = np.concatenate(problem.batches)
    assert len(np.unique(everything, axis=0)) < len(everything)
    assert sorted(algorithm.opt.get("F")[:, 0]) == list(range(1, 13))


def test_uniting_lets_both_populations_survive():
    algorithm = placed(Staircase(400), strings("110", "100"), [[2, 0.5], [1, 0.6]])
    algorithm.gap = np.zeros(2)
    anew = algorithm._restart()
    assert len(anew) == 100
    assert len(algorithm.X) == len(algorithm.F) == len(algorithm.pop) == 0
    other = placed(Staircase(), strings("001", "111"), [[1, 0.7], [3, 0.1]])
    algorithm._hold(other.pop)
    algorithm._unite()
    assert algorithm.aside is None
    rows = sorted(zip(algorithm.F[:, 0].tolist(), algorithm.F[:, 1].tolist(), algorithm.gap.round(12), strict=True))
    assert rows == [(1, 0.6, 0), (1, 0.7, 0.1), (2, 0.5, 0), (3, 0.1, 0)]
    np.testing.assert_array_equal(algorithm.pop.get("X"), algorithm.X)


def test_a_search_ends_when_all_strings_have_been_sent():
    found = search(WeighedBits(4), Staircase(8), ("n_eval", 10_000), seed=1)
    assert found.history[-1].n_eval < 200
    expected = search(WeighedBits(4), Staircase(64), ("n_eval", 100), seed=2)
    np.testing.assert_array_equal(np.unique(found.archive.F, axis=0), np.unique(expected.archive.F, axis=0))

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from helpers.chance import plausible
from helpers.populations import crowded, dominates, hamming, peeled, placed, strings
from helpers.toy_search import WeighedBits
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from scipy import stats

from moerank.evolution import DAEA, MFFS, PRDH, SparseEA, search
from moerank.evolution.daea import _select_by_size
from moerank.evolution.mffs import _mean_distance, _unlike

CODE = 1 << np.arange(4)


def winners(candidates, value):
    """The probability of each candidate to win a tournament of two that the smaller value wins, or the first drawn."""
    chance = Counter()
    for a, b in product(candidates, repeat=2):
        chance[b if value[b] < value[a] else a] += 1 / len(candidates) ** 2
    return chance


def flips(o, bits, score, off):
    """The probability of each string that flipping one of the bits can give; the string itself if there are none."""
    if not bits:
        return {o: 1.0}
    return {o ^ (1 << bit): share for bit, share in winners(bits, -score if off else score).items()}


def children_of(parents, score, standing):
    """The probability of each child, steps 4 to 6 in numbers."""
    chosen, chance = winners(range(len(parents)), standing), Counter()
    for i, j in product(chosen, repeat=2):
        p, q = parents[i], parents[j]
        for cross_off, mutate_off in product([True, False], repeat=2):
            for o, share in flips(p, ones(p & ~q if cross_off else q & ~p), score, cross_off).items():
                for child, part in flips(o, ones(o if mutate_off else ~o), score, mutate_off).items():
                    chance[child] += chosen[i] * chosen[j] * share * part / 4
    return np.array([chance[o] for o in range(16)])


def ones(o):
    return [bit for bit in range(4) if o >> bit & 1]


@pytest.mark.parametrize(
    ("rows", "score", "standing"),
    [
        (["1100"], [0, 1, 2, 3], [0]),
        (["1100", "0110"], [3, 1, 1, 0], [0, 0]),
        (["1111", "1000"], [0, 2, 1, 2], [1, 0]),
        (["1011", "0110", "0001"], [0, 0, 1, 1], [2, 0, 1]),
    ],
)
def test_children_are_as_likely_as_the_steps_make_them(rows, score, standing):
    X = strings(*rows)
    algorithm = placed(SparseEA(30_000), X, np.zeros((len(X), 2)), seed=3)
    algorithm.score, algorithm.standing = np.array(score), np.array(standing)
    expected = children_of([int(row @ CODE) for row in X], algorithm.score, algorithm.standing)
    np.testing.assert_allclose(expected.sum(), 1)
    counts = np.bincount(algorithm._mate() @ CODE, minlength=16)
    assert not counts[expected == 0].any()
    assert plausible(counts[expected > 0], expected[expected > 0])


def test_a_start_is_drawn_by_tournaments_on_the_score():
    algorithm = placed(SparseEA(10), strings("10"), [[0, 0]], seed=1)
    algorithm.score = np.array([0, 1])
    counts = np.bincount(algorithm._start(30_000) @ [1, 2], minlength=4)
    # One draw or two, as likely; each is the first bit with probability 3/4.
    first, second = (3 / 4 + 9 / 16) / 2, (1 / 4 + 1 / 16) / 2
    assert counts[0] == 0
    assert plausible(counts[1:], [first, second, 1 - first - second])


def test_single_strings_are_evaluated_first_and_score_the_bits():
    problem = WeighedBits(7)
    found = search(problem, SparseEA(10), 1, seed=1)
    np.testing.assert_array_equal(found.pop.get("X"), np.eye(7, dtype=bool))
    assert found.history[-1].n_eval == 7
    np.testing.assert_array_equal(found.algorithm.score, peeled(problem.evaluate(np.eye(7, dtype=bool))))
    assert [generation.n_eval for generation in search(problem, SparseEA(10), 3, seed=1).history][:2] == [7, 17]


def test_what_a_repair_adds_does_not_lower_the_score_of_a_bit():
    algorithm = placed(SparseEA(4), np.empty((0, 3), bool), np.empty((0, 2)))
    # The last bit stands in every string; the second one's string could not be evaluated.
    algorithm._survive(strings("101", "001"), np.array([[2.0, 5], [1, 4]]))
    assert algorithm.score.tolist() == [1, 2, 0]


def test_of_equal_objectives_the_older_survives_and_then_the_less_crowded():
    rng = np.random.default_rng(2)
    X = rng.random((60, 9)) < 0.5
    F = rng.integers(0, 12, (60, 2)).astype(float)
    algorithm = placed(SparseEA(12), X[:20], F[:20])
    kept = algorithm._survive(X, F)
    distinct = [i for i, row in enumerate(F) if not (F[:i] == row).all(axis=1).any()]
    front = peeled(F[distinct])
    order = np.lexsort((-crowded(F[distinct], front), front))
    assert len(distinct) > 12
    assert set(kept) <= set(distinct)
    assert sorted(front[np.searchsorted(distinct, kept)]) == sorted(front[order[:12]])
    best = kept[algorithm.standing == algorithm.standing.min()]
    assert set(best) <= {distinct[i] for i in order[: len(best)]}


def test_few_distinct_objectives_make_a_small_population():
    class Few(Problem):
        def _evaluate(self, X, out, *args, **kwargs):
            out["F"] = np.column_stack((X.sum(axis=1) % 3, X.sum(axis=1) % 2))

    found = search(Few(n_var=6, n_obj=2), SparseEA(20), 5, seed=1)
    assert len(found.pop) == 6
    assert found.history[-1].n_eval - found.history[-2].n_eval > 10, "the batch is as large as ever"


def drawing(pop_size=8, d=8, seed=0):
    """A search that can draw, its population left open."""
    return placed(DAEA(pop_size), np.ones((1, d), bool), [[0, 0]], seed)


def near_copies(rows, X, d):
    """Those of a group of equal objectives that are nearer to another than their size allows."""
    for i in rows:
        distance = min(hamming(X[i], X[j]) for j in rows if j != i)
        if distance / 2 / X[i].sum() < 0.8 - 0.6 * (X[i].sum() - 1) / (d - 1):
            yield i


def grouped(F):
    groups = {}
    for i, row in enumerate(F.tolist()):
        groups.setdefault(tuple(row), []).append(i)
    return [rows for rows in groups.values() if len(rows) > 1]


def test_long_strings_start_with_few_ones_and_short_ones_at_random():
    sizes = drawing(pop_size=3, d=40)._start(20_000).sum(axis=1)
    assert plausible(np.bincount(sizes, minlength=10)[1:], np.ones(9))
    sizes = drawing(pop_size=3, d=9)._start(20_000).sum(axis=1)
    assert plausible(np.bincount(sizes, minlength=10), stats.binom.pmf(range(10), 9, 0.5))


@pytest.mark.parametrize(("n", "n_near"), [(6, 4), (31, 7)])
def test_most_second_parents_are_near_in_the_scaled_objectives(n, n_near):
    rng = np.random.default_rng(5)
    F = np.column_stack((rng.permutation(n) * 100.0, rng.random(n) / 50))
    algorithm = placed(DAEA(n), rng.random((n, 9)) < 0.5, F)
    drawn = np.array([algorithm._second_parents() for _ in range(4_000)])
    scaled = (F - F.min(axis=0)) / (F.max(axis=0) - F.min(axis=0))
    for i in (0, 3, n - 1):
        nearest = sorted((np.hypot(*(scaled[i] - scaled[j])), j) for j in range(n) if j != i)[:n_near]
        chance = np.full(n, 0.2 / (n - 1))
        chance[[j for _, j in nearest]] += 0.8 / n_near
        chance[i] = 0
        counts = np.bincount(drawn[:, i], minlength=n)
        assert counts[i] == 0
        others = np.arange(n) != i
        assert plausible(counts[others], chance[others])


def test_a_child_takes_some_of_the_bits_in_which_its_parents_differ():
    n = 30_000
    first, second = strings("110010"), strings("000110")
    different = np.flatnonzero((first ^ second)[0])
    assert len(different) == 3
    children = drawing(d=6)._crossed(np.repeat(first, n, axis=0), np.repeat(second, n, axis=0))
    taken = children ^ first
    counts = np.bincount(taken @ (1 << np.arange(6)), minlength=64)
    expected = [sum(1 << bit for bit in some) for size in (1, 2) for some in combinations(different, size)]
    assert counts[expected].sum() == n
    assert plausible(counts[expected], np.ones(6))


@pytest.mark.parametrize("second", ["1100", "1110"])
def test_parents_that_differ_in_one_bit_at_most_leave_the_first(second):
    first = np.repeat(strings("1100"), 50, axis=0)
    np.testing.assert_array_equal(drawing(d=4)._crossed(first, np.repeat(strings(second), 50, axis=0)), first)


def test_one_child_in_five_is_mutated_evenly_between_ones_and_zeros():
    mutated = drawing()._mutated(np.repeat(strings("11000000"), 40_000, axis=0))
    flips = mutated ^ strings("11000000")
    off, on = flips[:, :2].sum(axis=1), flips[:, 2:].sum(axis=1)
    balanced = np.outer(stats.binom.pmf(range(3), 2, 1 / 3), stats.binom.pmf(range(4), 6, 1 / 7))
    plain = np.outer(stats.binom.pmf(range(3), 2, 1 / 8), stats.binom.pmf(range(4), 6, 1 / 8))
    usual = on < 4
    counts = np.bincount(off[usual] * 4 + on[usual], minlength=12)
    assert plausible(counts, (0.2 * balanced + 0.8 * plain).ravel())


@pytest.mark.parametrize("seed", range(5))
def test_of_the_near_copies_in_a_group_one_is_spared(seed):
    rng = np.random.default_rng(seed)
    X = np.unique(rng.random((90, 14)) < rng.random((90, 1)), axis=0)
    X = X[X.any(axis=1)]
    F = np.column_stack((X.sum(axis=1), X[:, 0] + X[:, 1]))
    removed = drawing(d=14, seed=seed)._near_duplicates(X, F)
    gone = set(np.flatnonzero(removed))
    assert 0 < len(gone) < sum(map(len, grouped(F)))
    for rows in grouped(F):
        near = set(near_copies(rows, X, 14))
        assert len(gone & set(rows)) == max(0, len(near) - 1)
        assert gone & set(rows) <= near


def test_the_one_that_is_spared_is_any():
    X = strings("1100", "1010", "1001", "0111")
    F = np.array([[2.0, 1], [2, 1], [2, 1], [3, 0]])
    spared = [tuple(~drawing(d=4, seed=seed)._near_duplicates(X, F)) for seed in range(900)]
    assert plausible([spared.count((i == 0, i == 1, i == 2, True)) for i in range(3)], np.ones(3))


@pytest.mark.parametrize("n", [5, 20, 33, 50])
def test_the_last_front_is_taken_one_by_one(n):
    rng = np.random.default_rng(n)
    F = rng.permutation(120).reshape(60, 2) / 7.0
    sizes = rng.integers(1, 6, 60)
    front = peeled(F)
    distance = crowded(F, front)
    last = sorted(front)[n - 1]
    selected = [i for i in range(60) if front[i] < last]
    left = sorted((i for i in range(60) if front[i] == last), key=lambda i: -distance[i])
    while len(selected) < n:
        met = [sum(sizes[j] == sizes[i] for j in selected) for i in left]
        selected.append(left.pop(met.index(min(met))))
    assert _select_by_size(F, sizes, n).tolist() == sorted(selected)


def test_near_copies_stay_where_too_few_would_be_left():
    X = strings("1100", "1010", "1001", "0111")
    F = np.array([[2.0, 1], [2, 1], [2, 1], [3, 0]])
    kept = {n: {tuple(placed(DAEA(n), X[:2], F[:2], seed)._survive(X, F)) for seed in range(20)} for n in (2, 3)}
    assert kept[2] == {(0, 3), (1, 3), (2, 3)}
    assert len(kept[3]) == 1, "none is removed, so none is drawn"


def test_a_population_is_filled_with_copies():
    X = strings("1100", "1010", "1100")
    F = np.array([[2.0, 1], [2, 2], [2, 1]])
    kept = placed(DAEA(6), X[:1], F[:1])._survive(X, F)
    assert len(kept) == 6
    assert kept[:2].tolist() == [0, 1]


def mean_of_nearest(values, distances):
    """The mean value of those whose distance is the least."""
    near = [value for value, distance in zip(values, distances, strict=True) if distance == min(distances)]
    return sum(near) / len(near)


def unlikeness(x, size, error, first):
    """o₁ and o₂ of a string; `first` lists string, size and error of each member of the first front."""
    lacking = [sum(p & ~x) / p.sum() for p, _, _ in first]
    by_size, by_error = [abs(size - s) for _, s, _ in first], [abs(error - e) for _, _, e in first]
    return mean_of_nearest([hamming(x, p) for p, _, _ in first], by_size), mean_of_nearest(lacking, by_error)


def selected_by_hand(X, sizes, errors, n):
    """Steps 3 to 6 in loops: the rows that stay, each with its standing."""
    F = np.column_stack((sizes, errors))
    rows = [i for i in range(len(X)) if not (X[:i] == X[i]).all(axis=1).any()]
    front = dict(zip(rows, peeled(F[rows]), strict=True))
    first = [(X[i], sizes[i], errors[i]) for i in rows if front[i] == 0]
    for i in list(rows):
        group = [j for j in front if front[j] == front[i] > 0 and (F[j] == F[i]).all()]
        far = {j: unlikeness(X[j], sizes[j], errors[j], first) for j in group}
        if any(dominates([-o for o in far[j]], [-o for o in far[i]]) for j in group):
            rows.remove(i)
    rows.sort(key=lambda i: (sizes[i], errors[i]))
    feasible = [i for i in rows if errors[i] <= errors[rows[0]]]
    if len(feasible) < n:
        return {i: (place,) for place, i in enumerate(rows[:n])}
    feasible.sort()
    numbers = peeled(F[feasible])
    distances = crowded(F[feasible], numbers)
    standing = {i: (a, -b) for i, a, b in zip(feasible, numbers, distances, strict=True)}
    return {i: standing[i] for i in sorted(feasible, key=standing.get)[:n]}


def crowd(seed, limit):
    """Strings that share their errors a lot; `limit` is the error of the smallest."""
    rng = np.random.default_rng(seed)
    X = rng.random((70, 8)) < rng.uniform(0.2, 0.9, (70, 1))
    X = np.vstack((X[X.any(axis=1)], X[X.any(axis=1)][:5]))
    sizes = X.sum(axis=1)
    errors = (X[:, :3].sum(axis=1) * 4 - sizes + 10) / 16
    errors[sizes == sizes.min()] = limit
    return X, sizes, errors


@pytest.mark.parametrize("limit", [0.3, 0.9])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("share", "order"), [(1, [0, 1]), (1 / 8, [1, 0])], ids=["size first", "share last"])
def test_the_selection_is_that_of_the_listing_wherever_the_error_stands(seed, limit, share, order):
    X, sizes, errors = crowd(seed, limit)
    n, F = 16, np.column_stack((sizes * share, errors))[:, order]
    algorithm = placed(PRDH(n), X[:30], F[:30])
    kept = algorithm._survive(X, F)
    expected = selected_by_hand(X, sizes, errors, n)
    here = sorted((sizes[i], errors[i]) for i in kept)
    assert len(kept) == n
    assert here == sorted((sizes[i], errors[i]) for i in expected)
    assert (max(errors[kept]) > limit) == (limit == 0.3), "with few feasible ones others are taken, and only then"
    # Who stands better here does so by hand, too.
    by_standing = [(sizes[i], errors[i]) for i in kept[np.argsort(algorithm.standing, kind="stable")]]
    assert by_standing[0] in [(sizes[i], errors[i]) for i, place in expected.items() if place == min(expected.values())]


def test_neither_distance_alone_decides():
    # Nearest in size is 0111 (3, 3), nearest in error 100000 (1, 5): one is farther from the one, one from the other.
    X = strings("100000", "011100", "011010", "100011", "101100")
    F = np.array([[1.0, 5], [3, 3], [3, 5], [3, 5], [3, 5]])
    # o₁ = 2, 6, 2 bits; o₂ = 1, 0, 0 of the one bit.
    assert sorted(placed(PRDH(9), X[:1], F[:1])._survive(X, F)) == [0, 1, 2, 3]


def test_with_three_objectives_a_string_has_to_be_worse_in_both_others():
    X = strings("1000", "0111", "1101", "0011")
    F = np.array([[1.0, 5, 5], [3, 6, 4], [3, 4, 6], [2, 6, 6]])
    assert sorted(placed(PRDH(3), X[:1], F[:1])._survive(X, F)) == [0, 1, 2]


def test_a_start_has_up_to_three_times_as_many_ones_as_strings():
    sizes = placed(PRDH(3), strings("1" * 40), [[0, 0]])._start(20_000).sum(axis=1)
    assert plausible(np.bincount(sizes, minlength=10)[1:], np.ones(9))


def test_parents_are_chosen_by_their_standing():
    algorithm = placed(PRDH(30_000), strings("10" * 40, "01" * 40), [[0, 0], [0, 0]])
    algorithm.standing = np.array([1, 0])
    share = algorithm._mate()[:, 1::2].mean()  # of the second parent's bits, a few flipped
    assert share == pytest.approx((3 / 4) * (1 - 1 / 80) + (1 / 4) / 80, abs=0.01)


def standing(pop_size, X, errors, *, front, sums, weights=(0.01, 0.99), seed=0):
    """A search whose three populations are the given rows."""
    F = np.column_stack((X.sum(axis=1), errors))
    algorithm = placed(MFFS(pop_size), X, F, seed)
    algorithm.front_rows, algorithm.sum_rows = np.array(front), [np.array(rows) for rows in sums]
    algorithm.standing, algorithm.weights = np.zeros(len(front), int), np.array(weights)
    algorithm.sums = [np.zeros(len(rows)) for rows in sums]
    return algorithm


def started(seed=1, pop_size=20):
    """A search after its first generation."""
    algorithm = MFFS(pop_size).setup(WeighedBits(24), termination=("n_gen", 99), seed=seed)
    algorithm.next()
    return algorithm


def unlike_by_hand(X, F, n, distance):
    """Step 4 in loops: the rows of the first fronts, without those that are too near to what stands already."""
    front, sizes = peeled(F), X.sum(axis=1)
    first = [i for i in range(len(X)) if front[i] == 0]
    selected = list(first)

    def nearness(i):
        peers = [j for j in selected if sizes[j] == sizes[i]]
        apart = min(abs(sizes[j] - sizes[i]) for j in first)
        peers = peers or [j for j in first if abs(sizes[j] - sizes[i]) == apart]
        return min(hamming(X[i], X[j]) for j in peers)

    while len(selected) < min(n, len(X)):
        for number in range(1, max(front) + 1):
            left = [i for i in range(len(X)) if front[i] == number and i not in selected]
            new = []
            for values in {tuple(F[i]) for i in left}:
                group = [i for i in left if tuple(F[i]) == values]
                far = [i for i in group if nearness(i) >= distance]
                new += group if len(group) == 1 else far or [max(group, key=nearness)]
            selected += new
            if len(selected) >= n:
                break
    return sorted(selected)


@pytest.mark.parametrize(("pop_size", "sizes"), [(100, (50, 25, 25)), (10, (5, 3, 2)), (7, (4, 2, 1)), (4, (2, 1, 1))])
def test_half_searches_for_the_front_and_a_quarter_for_each_sum(pop_size, sizes):
    algorithm = started(pop_size=pop_size)
    assert (len(algorithm.front_rows), *map(len, algorithm.sum_rows)) == sizes
    for _ in range(12):
        algorithm.next()
        assert len(algorithm.front_rows) == sizes[0]
        together = np.unique(np.concatenate((algorithm.front_rows, *algorithm.sum_rows)))
        np.testing.assert_array_equal(together, np.arange(len(algorithm.X)))


def test_the_mean_distance_is_that_of_all_pairs():
    X = np.random.default_rng(0).random((9, 20)) < 0.4
    assert _mean_distance(X) == pytest.approx(np.mean([hamming(a, b) for a, b in combinations(X, 2)]), rel=1e-12)
    assert _mean_distance(X[:1]) == 0


@pytest.mark.parametrize("n", [3, 12, 25, 40, 60, 99])
def test_equal_objectives_need_strings_that_are_far_apart(n):
    rng = np.random.default_rng(n)
    X = np.unique(rng.random((80, 8)) < rng.uniform(0.1, 0.9, (80, 1)), axis=0)
    X = X[X.any(axis=1)]
    F = np.column_stack((X.sum(axis=1), (X[:, :3].sum(axis=1) - X.sum(axis=1) / 2) // 2))
    distance = _mean_distance(X)
    apart = np.array([hamming(a, b) for a, b in combinations(X, 2)])
    assert len(apart[apart >= distance]) > len(apart) / 4
    chosen = _unlike(X, F, n, distance)
    # Where several of a group are the farthest, the first one is taken, here and by hand.
    assert chosen.tolist() == unlike_by_hand(X, F, n, distance)
    assert len(chosen) >= min(n, len(X))


def test_the_sums_keep_their_least_of_their_own_and_of_all_children():
    X = strings("1000", "1100", "1110", "1111", "0111", "0011", "0001")
    errors = np.array([0.9, 0.6, 0.5, 0.1, 0.3, 0.35, 0.8])
    algorithm = standing(8, X[:4], errors[:4], front=[0, 1], sums=[[1, 2], [0, 2]], weights=(0.2, 0.9))
    kept = algorithm._survive(X, np.column_stack((X.sum(axis=1), errors)))
    # g is 0.8 · ones/4 + 0.2 · error: 0.38, 0.52, 0.7 … of rows 0, 1, 2; 0.66, 0.47, 0.36 of the children 4, 5, 6.
    # With 0.1 and 0.9 it is 0.835, 0.525 of rows 0, 2; 0.345, 0.365, 0.745 of the children.
    assert [kept[rows].tolist() for rows in algorithm.sum_rows] == [[6, 5], [4, 5]]
    np.testing.assert_allclose(algorithm.sums, [[0.36, 0.47], [0.345, 0.365]])


def test_a_child_that_equals_a_member_is_changed():
    # Crossing all equal strings changes nothing, and of 400 bits about one flips.
    X = np.repeat(np.arange(400)[None] % 2 == 0, 3, axis=0)
    algorithm = standing(400, X, [0.5, 0.5, 0.5], front=[0], sums=[[1], [2]])
    children = algorithm._mate()
    assert len(children) == 400
    changed = children ^ X[0]
    flips = changed.sum(axis=1)
    assert flips.min() == 1
    two = changed[flips == 2]
    # In e⁻¹ of the children nothing flips, and they have a one and a zero changed; in e⁻¹/2 of them any two bits flip.
    assert len(two) / 400 == pytest.approx(1.5 * np.exp(-1), abs=0.08)
    assert (two[:, ::2].sum(axis=1) == 1).mean() == pytest.approx((1 + 0.5 / 2) / 1.5, abs=0.08)


def test_a_one_and_a_zero_are_flipped_where_there_are_such():
    algorithm = started()
    X = np.repeat(strings("110000", "111111"), 600, axis=0)
    flipped = algorithm._flip_one_and_zero(X)
    assert (flipped[:600].sum(axis=1) == 2).all()
    assert ((flipped ^ X)[:600].sum(axis=1) == 2).all()
    assert (flipped[600:].sum(axis=1) == 5).all()
    assert len(np.unique(flipped[:600], axis=0)) == 8
    assert len(np.unique(flipped[600:], axis=0)) == 6


def test_new_weights_come_after_five_generations_without_a_better_sum():
    algorithm = started()
    X, F = algorithm.X.copy(), algorithm.F.copy()
    worse = np.ones((1, 24), bool)
    known = []
    for _ in range(5):
        # A child that is worse in both sums: the best remain what they were.
        algorithm._survive(np.vstack((algorithm.X, worse)), np.vstack((algorithm.F, [[24, 99.0]])))
        known.append(algorithm.refilling)
        if not algorithm.refilling:
            algorithm._hold(Population.new(X=X, F=F))
    assert known == [False, False, False, False, True]
    assert not np.array_equal(algorithm.weights, [0.01, 0.99])
    assert not algorithm.records


def test_weights_follow_the_widest_angles_that_are_new():
    X = strings("1000000000", "1100000000", "1111000000", "1111100000", "1111111110", "1111111111")
    errors = np.array([0.9, 0.5, 0.4, 0.35, 0.1, 0.8])
    f = np.column_stack((X.mean(axis=1), errors))
    algorithm = standing(12, X, errors, front=range(6), sums=[[0], [1]])
    # The front is (0.1, 0.9), (0.2, 0.5), (0.4, 0.4), (0.5, 0.35), (0.9, 0.1); seen from (0.1, 0.1) it stands at
    # 90°, 76°, 45°, 32° and 0°. The gaps are 14°, 31°, 13° and 32° wide, their midpoints (0.15, 0.7), (0.3, 0.45),
    # (0.45, 0.375) and (0.7, 0.225), and a = 0.6/0.725, 0.2/0.55, 0.05/0.65, 0.35/0.625.
    algorithm._change_weights(f)
    assert algorithm.weights.tolist() == [0.83, 0.36]
    algorithm._change_weights(f)
    assert algorithm.weights.tolist() == [0.08, 0.56]
    algorithm._change_weights(f)
    assert algorithm.weights.tolist() == [0.83, 0.36]


def test_where_no_gap_is_new_the_weights_are_random():
    X, errors = strings("1000", "1100", "1110"), np.array([0.9, 0.5, 0.7])
    f = np.column_stack((X.mean(axis=1), errors))
    first, second = (standing(8, X, errors, front=[0, 1, 2], sums=[[0], [1]], seed=seed) for seed in (1, 2))
    for algorithm in (first, second):
        algorithm._change_weights(f)
        assert algorithm.weights[0] == 0.38  # (0.375, 0.7) seen from (0.25, 0.5)
    assert first.weights[1] != second.weights[1]
    first._change_weights(f)
    assert first.weights[0] != 0.38
    assert (first.weights == first.weights.round(2)).all()


def test_the_sums_are_filled_anew_from_the_front():
    algorithm = started(pop_size=40)
    algorithm.refilling, algorithm.weights = True, np.array([0.3, 0.7])
    before = algorithm.front_rows.copy()
    strings_before = algorithm.X[before]
    algorithm.next()
    sent = algorithm.off.get("X")
    distances = np.array([[hamming(a, b) for b in strings_before] for a in sent])
    assert (distances.min(axis=1) <= 2).all()
    np.testing.assert_array_equal(algorithm.X[algorithm.front_rows], strings_before)
    for rows, weight in zip(algorithm.sum_rows, (0.3, 0.7), strict=True):
        found = algorithm.X[rows]
        assert all(any((row == child).all() for child in sent) for row in found)
        f = np.column_stack((sent.mean(axis=1), algorithm.off.get("F")[:, 1])) @ (1 - weight, weight)
        np.testing.assert_allclose(np.sort(f)[: len(rows)], algorithm.sums[0 if weight == 0.3 else 1], rtol=1e-12)
    assert not algorithm.refilling

from itertools import combinations

import numpy as np
import pytest
from helpers.chance import plausible
from helpers.populations import crowded, hamming, peeled, placed, strings
from scipy import stats

from moerank.evolution import DAEA
from moerank.evolution.daea import _select_by_size


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

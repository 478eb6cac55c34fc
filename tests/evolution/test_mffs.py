from itertools import combinations

import numpy as np
import pytest
from helpers.populations import hamming, peeled, placed, strings
from helpers.toy_search import WeighedBits
from pymoo.core.population import Population

from moerank.evolution import MFFS
from moerank.evolution.mffs import _mean_distance, _unlike


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
    flipped = algorithm._one_and_zero_flipped(X)
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
    algorithm._weigh_anew(f)
    assert algorithm.weights.tolist() == [0.83, 0.36]
    algorithm._weigh_anew(f)
    assert algorithm.weights.tolist() == [0.08, 0.56]
    algorithm._weigh_anew(f)
    assert algorithm.weights.tolist() == [0.83, 0.36]


def test_where_no_gap_is_new_the_weights_are_random():
    X, errors = strings("1000", "1100", "1110"), np.array([0.9, 0.5, 0.7])
    f = np.column_stack((X.mean(axis=1), errors))
    first, second = (standing(8, X, errors, front=[0, 1, 2], sums=[[0], [1]], seed=seed) for seed in (1, 2))
    for algorithm in (first, second):
        algorithm._weigh_anew(f)
        assert algorithm.weights[0] == 0.38  # (0.375, 0.7) seen from (0.25, 0.5)
    assert first.weights[1] != second.weights[1]
    first._weigh_anew(f)
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

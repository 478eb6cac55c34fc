import numpy as np
import pytest
from helpers.chance import plausible
from helpers.populations import crowded, dominates, hamming, peeled, placed, strings

from moerank.evolution import PRDH


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

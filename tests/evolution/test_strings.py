import numpy as np
import pytest
from helpers.chance import plausible
from helpers.plain import all_subsets
from helpers.populations import hamming, strings
from scipy import stats

from moerank.evolution.bit_search import (
    first_of_equals,
    group_numbers,
    hamming_distances,
    random_members,
    random_subsets,
    uniform_children,
    without_size,
)

SEEDED = np.random.default_rng


@pytest.mark.parametrize("rows", [SEEDED(0).random((60, 5)) < 0.5, SEEDED(1).integers(0, 3, (60, 2)) / 3])
def test_equal_rows_are_found(rows):
    groups = group_numbers(rows)
    for i, row in enumerate(rows):
        assert ((groups == groups[i]) == (rows == row).all(axis=1)).all()
    expected = [i for i, row in enumerate(rows) if not (rows[:i] == row).all(axis=1).any()]
    assert len(expected) < len(rows)
    assert first_of_equals(rows).tolist() == expected


def test_zeros_of_either_sign_are_equal():
    assert first_of_equals(np.array([[0.0, 1], [-0.0, 1]])).tolist() == [0]


def test_distances_count_the_bits_that_differ():
    A, B = SEEDED(0).random((7, 40)) < 0.3, SEEDED(1).random((5, 40)) < 0.6
    np.testing.assert_array_equal(hamming_distances(A, B), [[hamming(a, b) for b in B] for a in A])


def test_members_are_drawn_evenly():
    masks = np.repeat(strings("10110", "01000"), 3_000, axis=0)
    members = random_members(masks, 2, SEEDED(2))
    assert plausible(np.bincount(members[:, :3_000].ravel(), minlength=5)[[0, 2, 3]], np.ones(3))
    assert (members[:, 3_000:] == 1).all()
    assert plausible(np.bincount(members[0, :3_000] * 5 + members[1, :3_000], minlength=25)[[0, 2, 3]], np.ones(3))


def test_every_subset_of_a_size_is_as_likely():
    masks = np.repeat(strings("110111"), 20_000, axis=0)
    subsets = random_subsets(masks, np.full(20_000, 3), SEEDED(3))
    assert (subsets.sum(axis=1) == 3).all()
    assert not (subsets & ~masks).any()
    counts = np.bincount(subsets @ (1 << np.arange(6)), minlength=64)
    expected = [number for number in range(64) if number.bit_count() == 3 and not number & 4]
    assert len(expected) == 10
    assert plausible(counts[expected], np.ones(10))


def test_subsets_have_the_sizes_that_are_asked_for():
    masks = SEEDED(5).random((200, 9)) < 0.5
    sizes = SEEDED(6).integers(0, masks.sum(axis=1), endpoint=True)
    assert (random_subsets(masks, sizes, SEEDED(7)).sum(axis=1) == sizes).all()


def test_children_have_each_bit_from_either_parent_but_for_flips():
    n = 20_000
    a, b = strings("11110000", "11001100")
    children = uniform_children(np.repeat([a, b], n, axis=0), SEEDED(8))
    first, second = children[:n], children[n:]
    # A flip turns one of the two equal bits, at each of these four places in each child with probability 1/8.
    flipped = children[:, a == b] != a[a == b]
    assert plausible(np.bincount(flipped.sum(axis=1), minlength=5), stats.binom.pmf(range(5), 4, 1 / 8))
    # What one child has of the one parent, the other has of the other: they differ unless one of both was flipped.
    exchanged = first[:, a != b] != second[:, a != b]
    np.testing.assert_allclose(exchanged.mean(), 1 - 2 * (1 / 8) * (7 / 8), atol=0.004)
    assert plausible(np.bincount(first[:, a != b] @ (1 << np.arange(4))), np.ones(16))


def test_a_child_without_ones_becomes_a_random_string():
    children = uniform_children(np.zeros((40_000, 2), bool), SEEDED(9))
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

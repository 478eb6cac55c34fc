import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from moerank.statistics import (
    attainment_surfaces,
    friedman,
    holm,
    hypervolume,
    igd_plus,
    joint_front,
    level_of_each,
    mean_and_error,
    mean_interval,
    p_above,
    p_differs,
    p_not_within,
    paired_differences,
    queries_needed,
    signed_rank_p,
    smallest_within_error,
)
from moerank.verdict import compare, judge

# Ranks of C4.5 and three variants on 14 data sets: Demšar, JMLR 7, 2006, Table 6.
DEMSAR = np.array(
    [
        [4, 3, 2, 1],
        [1, 2, 3, 4],
        [4, 1, 2, 3],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
        [1, 2.5, 4, 2.5],
        [3, 2, 4, 1],
        [2.5, 2.5, 4, 1],
        [4, 3, 2, 1],
        [2.5, 2.5, 2.5, 2.5],
        [4, 2.5, 1, 2.5],
        [3, 2, 4, 1],
        [4, 1, 2, 3],
        [3, 1, 4, 2],
    ]
)
points = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 16).map(lambda k: k / 16)), min_size=1, max_size=6)


def counted_share(fronts, grid):
    """The share of the fronts that dominate or equal each point of a grid."""
    return np.mean([[(np.asarray(front) <= point).all(axis=1).any() for point in grid] for front in fronts], axis=0)


def test_friedman_and_nemenyi_equal_the_published_example():
    test = friedman(-DEMSAR)
    assert test.order.tolist() == [3, 1, 2, 0]
    np.testing.assert_allclose(test.ranks, [1.964, 2.000, 2.893, 3.143], atol=5e-4)
    assert test.critical_difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), abs=1e-3)
    assert friedman(-DEMSAR, alpha=0.1).critical_difference == pytest.approx(1.12, abs=5e-3)
    # χ² from the published ranks, without the correction for ties that scipy makes.
    chi2 = 12 * 14 / (4 * 5) * ((test.ranks**2).sum() - 4 * 5**2 / 4)
    assert chi2 == pytest.approx(9.28, abs=0.01)
    assert 0.01 < test.p < stats.chi2.sf(chi2, 3)


def test_ranks_without_ties_equal_the_formula():
    values = np.random.default_rng(0).random((9, 5))
    ranks = np.array([[1 + (row > value).sum() for value in row] for row in values])
    chi2 = 12 * 9 / (5 * 6) * ((ranks.mean(axis=0) ** 2).sum() - 5 * 6**2 / 4)
    test = friedman(values)
    np.testing.assert_allclose(test.ranks, ranks.mean(axis=0)[test.order])
    assert test.p == pytest.approx(stats.chi2.sf(chi2, 4), rel=1e-10)


def test_solvers_that_are_all_equal_do_not_differ():
    assert friedman(np.ones((4, 3))).p == 1.0


def test_holm_rejects_what_the_sequential_procedure_rejects():
    rng = np.random.default_rng(1)
    for _ in range(200):
        p = rng.random(6) ** 3
        for alpha in (0.01, 0.05, 0.2):
            rejected = np.zeros(6, bool)
            for position, i in enumerate(np.argsort(p)):
                if p[i] > alpha / (6 - position):
                    break
                rejected[i] = True
            np.testing.assert_array_equal(holm(p) <= alpha, rejected)


def test_paired_differences_are_zero_but_for_rounding():
    assert paired_differences([0.3, 0.75], [0.1 + 0.2, 0.5]).tolist() == [0.0, 0.25]
    for one in ([0.5], 0.5, [[0.5], [0.75]]):
        with pytest.raises(ValueError, match="a value for each query"):
            paired_differences([0.5, 0.75], one)
    np.testing.assert_array_equal(mean_and_error([0.3]), [0.3, np.nan])


def test_a_run_without_a_feasible_solution_attains_nothing():
    low, median = attainment_surfaces([np.empty((0, 2)), [[1, 2]]], (0.5, 1.0))
    assert (low.tolist(), median.tolist()) == ([[1.0, 2.0]], [[np.inf, np.inf]])
    assert attainment_surfaces([np.empty((0, 2))], (1.0,))[0].tolist() == [[np.inf, np.inf]]


def test_differences_that_are_equal_but_for_rounding_find_nothing():
    for n in (30, 100):
        d = np.full(n, 0.5) - np.linspace(0.1, 0.1 + 1e-14, n)
        assert (p_above(d), p_differs(d), queries_needed(d, 0.005)) == (1.0, 1.0, None)
        assert mean_interval(d) == (-np.inf, np.inf)


def counted_signs(d):
    """The share of all 2ⁿ ways to sign the ranks whose sum is as far from its middle as that of the differences."""
    d = d[d != 0]
    ranks = stats.rankdata(np.abs(d))
    signs = np.array(list(itertools.product((-1, 1), repeat=len(d))))
    return np.mean(np.abs(signs @ ranks) >= abs(np.sign(d) @ ranks) - 1e-9)


@pytest.mark.parametrize("digits", [6, 1])
def test_signed_ranks_equal_counting_all_signs(digits):
    """With six digits there are no ties; with one there are, and pairs that do not differ."""
    rng = np.random.default_rng(3)
    for n in (2, 5, 9):
        for _ in range(5):
            a, b = rng.integers(0, 10**digits, n) / 2**20, rng.integers(0, 10**digits, n) / 2**20
            if (a != b).any():
                assert signed_rank_p(a, b) == pytest.approx(counted_signs(a - b), abs=1e-12)


def test_signed_ranks_at_their_ends():
    assert signed_rank_p([0.5, 0.25], [0.5, 0.25]) == 1.0
    assert signed_rank_p([0.0] * 20 + [1, 2, 3, 4, 5], [0.0] * 25) == 0.0625
    assert signed_rank_p(np.arange(6) + 1.0, np.zeros(6)) == 2 / 2**6
    assert signed_rank_p([0.5], [0.25]) == 1.0
    assert signed_rank_p([0.3] * 8, [0.1 + 0.2] * 8) == 1.0  # equal but for rounding
    # Differences of .1, but for rounding, and one of −.1: 14 of the 64 signs are as far from the middle.
    assert signed_rank_p([0.5, 0.4, 0.3, 0.9, 0.7, 0.6], [0.4, 0.3, 0.2, 1.0, 0.6, 0.5]) == 14 / 64
    many = np.arange(60) % 7 / 10 + 0.1
    d = np.where(np.arange(60) % 3, 0.1, -0.2)
    assert signed_rank_p(many + d, many) == stats.wilcoxon(d).pvalue


@given(points)
def test_hypervolume_equals_counting_unit_cells(front):
    covered = sum(any(f <= column and e <= row / 16 for f, e in front) for column in range(1, 10) for row in range(16))
    assert hypervolume(front, reference=(10, 1)) == pytest.approx(covered / (10 * 16), abs=1e-12)


@given(points, points)
def test_igd_plus_equals_its_definition(front, target):
    shortfall = [min(np.hypot(max(f - tf, 0) / 8, max(e - te, 0)) for f, e in front) for tf, te in target]
    assert igd_plus(front, target, scale=(8, 1)) == pytest.approx(np.mean(shortfall), abs=1e-12)
    assert igd_plus(target, target, scale=(8, 1)) == 0.0


@settings(max_examples=60)
@given(st.lists(points, min_size=1, max_size=5), st.sampled_from([0.2, 0.25, 0.5, 0.75, 1.0]))
def test_attainment_surfaces_equal_direct_counting(fronts, share):
    (surface,) = attainment_surfaces(fronts, shares=[share])
    grid = [(f, e / 16) for f in range(1, 9) for e in range(17)]
    attained = counted_share(fronts, grid) >= share - 1e-9
    np.testing.assert_array_equal(counted_share([surface], grid) > 0, attained)
    assert (np.diff(surface[:, 0]) > 0).all()


@given(st.lists(points, min_size=1, max_size=4))
def test_the_joint_front_is_what_nothing_dominates(fronts):
    everything = {tuple(map(float, point)) for front in fronts for point in front}
    expected = {(f, e) for f, e in everything if not any(g <= f and h <= e and (g, h) != (f, e) for g, h in everything)}
    assert set(map(tuple, joint_front(fronts).tolist())) == expected


PAIRS = {
    "paired_differences": paired_differences,
    "signed_rank_p": signed_rank_p,
    "judge": lambda a, b: judge(a, b, "test", "MAP", 1, 2),
}
DIFFERENCES = {
    "mean_and_error": mean_and_error,
    "p_above": p_above,
    "p_differs": p_differs,
    "p_not_within": lambda d: p_not_within(d, 0.005),
    "mean_interval": mean_interval,
    "queries_needed": lambda d: queries_needed(d, 0.005),
    **{name: lambda d, call=call: call(d, np.zeros(np.shape(d))) for name, call in PAIRS.items()},
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_differences_that_are_unknown_or_not_there_are_refused(name):
    for differences, reason in (
        ([0.1, np.nan, 0.3] * 20, "a value is nan; leave it out"),
        ([], "pass a list of numbers"),
        (np.zeros((3, 2)), "pass "),
    ):
        with pytest.raises(ValueError, match=reason):
            DIFFERENCES[name](differences)


def test_differences_of_a_metric_lie_within_one():
    with pytest.raises(ValueError, match=r"a value is -3\.0; leave it out, or give a number from -1 to 1"):
        judge([0.5, -2.0], [0.5, 1.0], "test", "MAP", 1, 2)
    assert judge([1 + 1e-10], [0.0], "test", "MAP", 1, 2).n_queries == 1
    for call in (compare, p_above, p_differs, mean_interval, lambda d: compare(d, weights=np.full(60, 2.0))):
        with pytest.raises(ValueError, match=r"a value is (-?1\.5|2\.0); leave it out, or give a number from -1 to 1"):
            call(np.tile([0.5, 4.0, 3.0] if call.__name__ == "<lambda>" else [0.5, 1.5, -1.5], 20))
    assert compare([3.0, -1.0], weights=[3.0, 1.0]).n_differing == 2


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: mean_interval([0.1, 0.2], 2), r"level must be in \(0, 1\]"),
        (lambda: holm([0.01, np.nan]), "a value is nan"),
        (lambda: friedman([[1, np.nan, 2], [1, 2, 3]]), "a value is nan"),
        (lambda: friedman([[1, 2], [2, 1]]), "n_solvers must be at least 3"),
        (lambda: friedman([[1, 2, 3]]), "n_blocks must be at least 2"),
        (lambda: smallest_within_error([[0.1, np.nan]], [1, 2]), "a value is nan"),
        (lambda: level_of_each([[0.1, np.nan], [0.2, 0.3]]), "a value is nan"),
        (lambda: hypervolume([[np.nan, 0.5]], (4, 1)), "a value is nan"),
        (lambda: joint_front([[[np.nan, 0.5]]]), "a value is nan"),
        (lambda: igd_plus([[np.nan, 0.5]], [[1, 0.5]], (1, 1)), "a value is nan"),
        (lambda: igd_plus([], [[1, 0.5]], (1, 1)), "pass a table of numbers"),
        (lambda: attainment_surfaces([[[np.nan, 0.5]]]), "a value is nan"),
        (lambda: attainment_surfaces([]), "there are no fronts"),
        (lambda: attainment_surfaces([[[1, 0.5]]], (2.0,)), r"shares must be in \(0, 1\]"),
    ],
)
def test_a_table_or_front_that_is_no_such_thing_is_refused(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()

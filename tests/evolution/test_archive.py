import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pymoo.core.duplicate import DefaultDuplicateElimination
from pymoo.core.population import Population

from moerank.evolution import Archive, DigestDuplicates, row_digests


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


@pytest.mark.parametrize(
    ("X", "F", "message"),
    [
        (np.zeros((2, 3)), np.zeros((1, 2)), "2 individuals came with F of shape"),
        (np.zeros((1, 3)), np.zeros((1, 3)), "one row of 2 objectives each"),
        (np.zeros((2, 3)), np.array([[0, 1], [0, np.nan]]), "individual 1 are .*finite penalty"),
    ],
)
def test_what_cannot_be_compared_is_refused(X, F, message):
    archive = Archive()
    archive.add(np.zeros((1, 3)), np.zeros((1, 2)))
    with pytest.raises(ValueError, match=message):
        archive.add(X, F)


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
        assert list(ours.do(new, parents, to_itself=False)) == list(theirs.do(new, parents, to_itself=False))
    assert 0 < removed < 240
    assert len(ours.do(Population.empty())) == 0

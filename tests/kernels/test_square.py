"""The product with the transpose against exact rational arithmetic, and against a restatement to the bit."""

from fractions import Fraction

import numpy as np
import pytest

from moerank.kernels.square import sheet, square


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 8), (7, 513), (9, 1030)])
def test_entries_are_the_products_of_rows(shape):
    R = np.random.default_rng(sum(shape)).normal(size=shape)
    found = square(R)
    np.testing.assert_array_equal(found, found.T)
    exact = [[float(sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))) for b in R] for a in R]
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-14 * np.abs(R).max() ** 2 * shape[1])


def test_integers_are_exact_and_zeros_at_the_end_change_nothing():
    R = np.random.default_rng(0).integers(-9, 10, (11, 700)).astype(float)
    np.testing.assert_array_equal(square(R), R @ R.T)
    R = np.random.default_rng(1).normal(size=(6, 90))
    np.testing.assert_array_equal(square(np.pad(R, ((0, 3), (0, 20))))[:6, :6], square(R))


def test_a_sum_is_rounded_once_in_lanes():
    # 1 + 2^-30 squared needs 61 bits: rounding product and sum one after the other would lose what is left here.
    x = 1.0 + 2.0**-30
    R = np.array([[x] + [0.0] * 7 + [1.0], [x] + [0.0] * 7 + [-(x * x)]])
    assert square(R)[0, 1] == 0.0  # x·x rounded, less itself: the second product is exact, and so is the difference
    R = np.array([[1.0] + [0.0] * 7 + [x], [-(x * x)] + [0.0] * 7 + [x]])
    assert square(R)[0, 1] == 2.0**-60  # the error of x·x, which a fused operation keeps


@pytest.mark.parametrize("shape", [(1, 1), (4, 8), (5, 9), (136, 2050)])
def test_a_sheet_is_squared_as_it_is_and_lies_in_whole_lines(shape):
    R = np.random.default_rng(0).normal(size=shape)
    rows = sheet(*shape)
    assert rows.ctypes.data % 64 == 0 and rows.shape[1] % 8 == 0
    rows[: shape[0], : shape[1]] = R
    found = square(rows)
    np.testing.assert_array_equal(found[: shape[0], : shape[0]], square(R))
    assert not found[shape[0] :].any() and not rows[shape[0] :].any() and not rows[:, shape[1] :].any()

"""Numbers of single precision next to a number of double precision, against all that lie around it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moerank.exports.deployable import largest_value, single_above, single_at_most

FINITE = st.floats(allow_nan=False, allow_infinity=False)
LARGEST = float(np.finfo(np.float32).max)


@given(FINITE)
def test_single_precision_is_parted_where_double_precision_is(value):
    below, above = single_at_most(value), single_above(value)
    assert np.float32(below) == below and np.float32(above) == above
    assert abs(below) <= LARGEST and abs(above) <= LARGEST
    if abs(value) < LARGEST:
        assert below <= value < above
        assert np.nextafter(np.float32(below), np.float32(np.inf)) == above
    else:
        assert below == np.copysign(LARGEST, value)


@given(st.lists(FINITE, min_size=1, max_size=4))
def test_the_largest_value_is_found_of_any_size(values):
    bounds = np.array(values)
    np.testing.assert_array_equal(largest_value(len(values), lambda x: x <= bounds, np.float64), bounds)
    singles = np.array([single_at_most(value) for value in values])
    np.testing.assert_array_equal(largest_value(len(values), lambda x: x <= bounds, np.float32), singles)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_nothing_fulfils_gives_the_smallest_value(dtype):
    assert largest_value(2, lambda x: x < -np.inf, dtype).tolist() == [-float(np.finfo(dtype).max)] * 2
    assert largest_value(1, lambda x: x < np.inf, dtype).tolist() == [float(np.finfo(dtype).max)]
    assert largest_value(0, lambda x: x < 0, dtype).tolist() == []


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_scaled_values_are_parted_where_raw_ones_are(threshold, offset, scale):
    raw = largest_value(1, lambda x: (x - offset) / scale <= threshold, np.float64)[0]
    assert (raw - offset) / scale <= threshold < (np.nextafter(raw, np.inf) - offset) / scale

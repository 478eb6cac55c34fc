import numpy as np
import pytest

from moerank.training.listed import LanePairs, lane_groups

WIDTH = {np.float32: 16, np.float64: 8}


@pytest.mark.parametrize("precision", WIDTH)
@pytest.mark.parametrize("n_individuals", [0, 1, 7, 8, 16, 17, 37])
def test_every_individual_is_in_one_group_and_only_the_last_is_smaller(precision, n_individuals):
    groups = list(lane_groups(n_individuals, precision))
    members = [row for group in groups for row in range(n_individuals)[group.rows]]
    assert members == list(range(n_individuals))
    assert all(group.n_lanes == WIDTH[precision] for group in groups)
    assert all(len(group) == WIDTH[precision] for group in groups[:-1])


def test_a_group_is_filled_up_to_one_row_per_lane():
    whole, rest = lane_groups(11, np.float64)
    values = np.arange(1.0, 23.0).reshape(11, 2)
    np.testing.assert_array_equal(whole.fill_up(values), values[:8])
    np.testing.assert_array_equal(rest.fill_up(values), np.vstack([values[8:], np.zeros((5, 2))]))
    np.testing.assert_array_equal(rest.fill_up(values[:, 0], empty=1.0), [17, 19, 21, 1, 1, 1, 1, 1])
    assert rest.fill_up(values > 3.0).dtype == bool
    assert rest.fill_up(values > 3.0).sum() == 6
    rest.fill_up(values)[:] = -1.0
    assert values.min() == 1.0


@pytest.mark.parametrize("precision", WIDTH)
def test_pairs_are_packed_with_their_numbers_and_empty_lanes_keep_none(precision):
    n_lanes = WIDTH[precision]
    masks = np.random.default_rng(0).random((n_lanes + 3, 50)) < 0.4
    pairs = LanePairs(50, precision, masks)
    for group in lane_groups(len(masks), precision):
        words, n_kept = pairs.pack(group)
        expected = np.zeros((n_lanes, 50), bool)
        expected[: len(group)] = masks[group.rows]
        bits = (words[:, None] >> np.arange(n_lanes)) & 1 == 1
        np.testing.assert_array_equal(bits, expected.T)
        np.testing.assert_array_equal(n_kept, expected.sum(axis=1))
        assert words.dtype.itemsize * 8 == n_lanes


def test_without_masks_individuals_keep_all_pairs_and_empty_lanes_are_idle():
    *_, last = lane_groups(10, np.float64)
    words, n_kept = LanePairs(6, np.float64).pack(last)
    assert words.tolist() == [255] * 6
    assert n_kept.tolist() == [6, 6, 0, 0, 0, 0, 0, 0]

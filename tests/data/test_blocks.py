"""Blocks of queries, and of the features of rows, against plain slices."""

import numpy as np
import pytest

from moerank.data.blocks import blocks, column_block


@pytest.mark.parametrize("rows", [1, 7, 40, 1000])
def test_blocks_hold_every_query_once(rows):
    offsets = np.append(0, np.cumsum(np.random.default_rng(0).integers(1, 20, 30)))
    found = list(blocks(offsets, rows))
    assert [query for begin, end in found for query in range(begin, end)] == list(range(30))
    assert all(offsets[end] - offsets[begin] <= rows or end == begin + 1 for begin, end in found)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(9, 4), (9, 1), (1, 4)])
def test_a_block_has_the_values_of_the_rows_whichever_way_they_lie(order, shape):
    X = np.array(np.random.default_rng(0).random(shape), order=order)
    for begin, end in ((0, 1), (0, shape[0]), (shape[0] // 2, shape[0])):
        flat, stride, first = column_block(X, begin, end)
        assert not flat.flags.writeable
        found = [[flat[f * stride + first + i] for f in range(shape[1])] for i in range(end - begin)]
        np.testing.assert_array_equal(found, X[begin:end])
    assert X.flags.writeable

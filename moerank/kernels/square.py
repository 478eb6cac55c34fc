"""The product of a wide matrix with its transpose, in an order of summation that no library or processor decides.

A linear algebra library takes the product apart as suits the processor, and so its last bits differ from one type to
another. Here each entry is summed in eight lanes, column after column, with fused multiplications and additions, and
the lanes are added in their order. Four rows by four are kept in registers: as fast as the library, or nearly so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import fused, lanes, load, load_at, store

__all__ = ["in_order", "sheet", "square"]

Matrix = NDArray[np.float64]

SIDE = 4
"""Rows and columns of a tile of the result."""

CHUNK = 512
"""Columns that are multiplied at a time: eight rows of them stay in the first level of the cache."""

LANES = lanes(np.float64)

LINE = 64
"""Bytes of a line of the cache: a vector that lies in two of them takes twice as long to load."""


def sheet(n_rows: int, n_columns: int) -> Matrix:
    """Return a matrix whose first `n_rows` rows and `n_columns` columns are to be filled, and then squared in place.

    There may be further rows and columns at the end, which are zeros and are to stay so.
    """
    height, width = -(-n_rows // SIDE) * SIDE, -(-n_columns // LANES) * LANES
    rows = _aligned(height * width).reshape(height, width)
    rows[n_rows:] = 0.0
    rows[:, n_columns:] = 0.0
    return rows


def _aligned(n: int) -> NDArray[np.float64]:
    """Return n numbers, of which every eighth begins a line of the cache."""
    numbers = np.empty(n + LINE // 8)
    begin = -numbers.ctypes.data % LINE // 8
    return numbers[begin : begin + n]


def square(rows: Matrix) -> Matrix:
    """Return R Rᵀ (n_rows, n_rows), symmetric to the bit, for R (n_rows, n_columns); O(n_rows² · n_columns / 2).

    Rows and columns of zeros at the end change no bit of the others. A `sheet` is taken as it is; any other matrix may
    have to be copied to one.

    Examples
    --------
    >>> square(np.array([[1.0, 2.0], [0.0, 3.0]])).tolist()
    [[5.0, 6.0], [6.0, 9.0]]
    """
    n_rows, n_columns = rows.shape
    padded = rows
    if n_rows % SIDE or n_columns % LANES:
        padded = sheet(n_rows, n_columns)
        padded[:n_rows, :n_columns] = rows
    height, width = padded.shape
    n_tiles = height // SIDE
    sums = _aligned(n_tiles * (n_tiles + 1) // 2 * SIDE * SIDE * LANES).reshape(-1, LANES)
    sums[:] = 0.0
    _add_products(padded.reshape(-1), height, width, sums)
    result = np.empty((height, height))
    _collect(sums, result)
    return result[:n_rows, :n_rows]


@kernel
def _add_products(flat: Matrix, height: int, width: int, sums: Matrix) -> None:
    """Add the products of each two rows to their lanes, tile after tile of the lower triangle."""
    for begin in range(0, width, CHUNK):
        end = min(begin + CHUNK, width)
        tile = 0
        for i in range(0, height, SIDE):
            for j in range(0, i + 1, SIDE):
                s = tile * SIDE * SIDE
                c00, c01, c02, c03 = load(sums, s), load(sums, s + 1), load(sums, s + 2), load(sums, s + 3)
                c10, c11, c12, c13 = load(sums, s + 4), load(sums, s + 5), load(sums, s + 6), load(sums, s + 7)
                c20, c21, c22, c23 = load(sums, s + 8), load(sums, s + 9), load(sums, s + 10), load(sums, s + 11)
                c30, c31, c32, c33 = load(sums, s + 12), load(sums, s + 13), load(sums, s + 14), load(sums, s + 15)
                p, q = i * width, j * width
                for k in range(begin, end, LANES):
                    b0, b1 = load_at(flat, q + k), load_at(flat, q + width + k)
                    b2, b3 = load_at(flat, q + 2 * width + k), load_at(flat, q + 3 * width + k)
                    a = load_at(flat, p + k)
                    c00, c01, c02, c03 = fused(a, b0, c00), fused(a, b1, c01), fused(a, b2, c02), fused(a, b3, c03)
                    a = load_at(flat, p + width + k)
                    c10, c11, c12, c13 = fused(a, b0, c10), fused(a, b1, c11), fused(a, b2, c12), fused(a, b3, c13)
                    a = load_at(flat, p + 2 * width + k)
                    c20, c21, c22, c23 = fused(a, b0, c20), fused(a, b1, c21), fused(a, b2, c22), fused(a, b3, c23)
                    a = load_at(flat, p + 3 * width + k)
                    c30, c31, c32, c33 = fused(a, b0, c30), fused(a, b1, c31), fused(a, b2, c32), fused(a, b3, c33)
                store(sums, s, c00)
                store(sums, s + 1, c01)
                store(sums, s + 2, c02)
                store(sums, s + 3, c03)
                store(sums, s + 4, c10)
                store(sums, s + 5, c11)
                store(sums, s + 6, c12)
                store(sums, s + 7, c13)
                store(sums, s + 8, c20)
                store(sums, s + 9, c21)
                store(sums, s + 10, c22)
                store(sums, s + 11, c23)
                store(sums, s + 12, c30)
                store(sums, s + 13, c31)
                store(sums, s + 14, c32)
                store(sums, s + 15, c33)
                tile += 1


@kernel
def _collect(sums: Matrix, result: Matrix) -> None:
    """Add up the lanes of each entry, and write it to both of its places."""
    tile = 0
    for i in range(0, len(result), SIDE):
        for j in range(0, i + 1, SIDE):
            for entry in range(SIDE * SIDE):
                total = 0.0
                for lane in range(LANES):
                    total += sums[tile * SIDE * SIDE + entry, lane]
                row, column = i + entry // SIDE, j + entry % SIDE
                if row >= column:
                    result[row, column] = total
                    result[column, row] = total
            tile += 1


@kernel
def in_order(rows: Matrix, factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return R f (n_rows,) for R (n_rows, n_columns), each sum taken in order of column."""
    result = np.zeros(len(rows))
    for i in range(len(rows)):
        total = 0.0
        for k in range(len(factors)):
            total += rows[i, k] * factors[k]
        result[i] = total
    return result

"""Documents by query and label: all that sums over preference pairs have to know of the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["centred_stack", "number_runs"]

Floats = NDArray[np.floating[Any]]


@kernel
def number_runs(
    y: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Give a number to each run, the documents of one label in one query: by query, then by label, the least first.

    Returns
    -------
    run : ndarray of int32, shape (n_documents,)
        The run of each document.
    size : ndarray of int64, shape (n_runs,)
    first : ndarray of int64, shape (n_queries + 1,)
        Query q has the runs ``first[q]`` to ``first[q + 1]``. O(n_documents log n_documents).
    """
    run = np.empty(len(y), np.int32)
    size = np.zeros(len(y), np.int64)
    first = np.zeros(len(offsets), np.int64)
    n_runs = 0
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        labels = np.sort(y[begin:end])
        distinct = 0
        for k in range(len(labels)):
            if k == 0 or labels[k] > labels[k - 1]:
                labels[distinct] = labels[k]
                distinct += 1
        for i in range(begin, end):
            low = np.searchsorted(labels[:distinct], y[i])
            run[i] = n_runs + low
            size[n_runs + low] += 1
        n_runs += distinct
        first[q + 1] = n_runs
    return run, size[:n_runs].copy(), first


@kernel
def centred_stack(
    rows: Floats,
    offsets: NDArray[np.int64],
    run: NDArray[np.int64],
    root_degree: NDArray[np.float64],
    stack: NDArray[np.float64],
) -> None:
    """Centre documents in their queries, and stack what the sum over their preference pairs is the square of.

    Parameters
    ----------
    rows : ndarray, shape (n_features, n_documents)
        The features of a block of whole queries.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Where the block's queries begin, from 0.
    run : ndarray of int64, shape (n_documents,)
        The run of each document, from 0.
    root_degree : ndarray, shape (n_documents,)
        √ of the number of pairs of each document.
    stack : ndarray of float64, shape (n_features, n_documents + n_runs)
        Receives √degree · x, and then the sum of x over each run, x centred in its query and in double precision.
        Where a feature is constant in a query it is exactly 0.
    """
    n_documents = len(run)
    for f in range(len(rows)):
        for k in range(n_documents, stack.shape[1]):
            stack[f, k] = 0.0
        for q in range(len(offsets) - 1):
            begin, end = offsets[q], offsets[q + 1]
            total = 0.0
            constant = True
            for i in range(begin, end):
                total += rows[f, i]
                constant = constant and rows[f, i] == rows[f, begin]
            mean = np.float64(rows[f, begin]) if constant else total / (end - begin)
            for i in range(begin, end):
                x = rows[f, i] - mean
                stack[f, n_documents + run[i]] += x
                stack[f, i] = x * root_degree[i]

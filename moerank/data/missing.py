"""Missing values: what they become before anything is learnt, by one rule for all features."""

from __future__ import annotations

from difflib import get_close_matches
from math import isfinite
from numbers import Real
from typing import Literal, TypeAlias, get_args

import numpy as np

from moerank.arrays import Array, Floats, Integers
from moerank.data.blocks import ROWS, blocks

QueryRule: TypeAlias = Literal["query-min", "query-mean", "query-worst"]
MissingRule: TypeAlias = float | QueryRule
"""A number, or a rule that looks at what the same query knows of the feature."""


def check_missing_rule(rule: object) -> None:
    """Raise a ValueError for what is neither a finite number nor the name of a rule, with the nearest of them."""
    if isinstance(rule, Real) and not isinstance(rule, bool | np.bool_):
        if not isfinite(rule):
            raise ValueError(f"missing is {rule}; missing values can only become a finite number")
        return
    known = get_args(QueryRule)
    if not isinstance(rule, str) or rule not in known:
        nearest = get_close_matches(rule, known, n=1) if isinstance(rule, str) else []
        advice = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"missing must be a number, 'query-min', 'query-mean' or 'query-worst', not {rule!r}{advice}")


def fill_missing(X: Floats, offsets: Integers, rule: MissingRule) -> tuple[Floats, Integers]:
    """Replace every NaN of X by a rule, and count them; X is copied if anything is missing.

    A value becomes the number of the rule; the smallest value, or the mean, that the query knows of the feature; or a
    value below that smallest one, by the gap between the two smallest distinct values of the feature in the query, or
    by 1 where there is only one. A query that knows no value of a feature gets 0 in all its documents, so that the
    feature orders nothing there. What is below the smallest value stays below it after rounding, and finite. Returns
    the table and the counts (n_features,). O(n_documents · n_features).

    Examples
    --------
    >>> X = np.array([[0.5], [np.nan], [0.75], [np.nan]])
    >>> fill_missing(X, np.array([0, 3, 4]), "query-worst")[0].ravel().tolist()
    [0.5, 0.25, 0.75, 0.0]
    """
    filled = X.copy(order="K") if np.isnan(X.min(initial=0.0)) else X
    return filled, fill_in_place(filled, offsets, rule)


def fill_in_place(X: Floats, offsets: Integers, rule: MissingRule) -> Integers:
    """Do what `fill_missing` does without a copy, and return the counts; X is written to only where NaN stands."""
    check_missing_rule(rule)
    if not isinstance(rule, str) and not abs(rule) <= float(np.finfo(X.dtype).max):
        raise ValueError(f"missing is {rule:g}, which is too large for a table in single precision")
    counts = np.zeros(X.shape[1], np.int64)
    for begin, end in blocks(offsets, ROWS):
        block = X[offsets[begin] : offsets[end]]
        unknown = np.isnan(block)
        in_block = unknown.sum(axis=0)
        columns = np.flatnonzero(in_block)
        counts += in_block
        if not len(columns):
            continue
        if isinstance(rule, str):
            starts = offsets[begin:end] - offsets[begin]
            lengths = np.diff(offsets[begin : end + 1])
            known = np.ascontiguousarray(block[:, columns])  # of which means do not depend on the order in memory
            values = np.repeat(_replacements(known, starts, lengths, rule), lengths, axis=0)
            block[:, columns] = np.where(unknown[:, columns], values, block[:, columns])
        else:
            block[unknown] = rule
    return counts


def missing_bits(X: Floats) -> Array:
    """Return where X (n_documents, n_features) is NaN, as the bits of each row."""
    bits = np.empty((len(X), -(-X.shape[1] // 8)), np.uint8)
    for begin in range(0, len(X), ROWS):
        bits[begin : begin + ROWS] = np.packbits(np.isnan(X[begin : begin + ROWS]), axis=1)
    return bits


def _replacements(X: Floats, starts: Integers, lengths: Integers, rule: QueryRule) -> Floats:
    """Return what a missing value becomes in each query, shape (n_queries, n_columns), in the precision of X."""
    least = np.fmin.reduceat(X, starts)
    nothing_known = np.isnan(least)
    least[nothing_known] = 0.0
    if rule == "query-min":
        return least
    with np.errstate(over="ignore"):
        if rule == "query-mean":
            known = lengths[:, None] - np.add.reduceat(np.isnan(X), starts, dtype=np.int64)
            small = np.where(np.isnan(X), 0.0, X.astype(np.float64) * 2.0**-40)  # whose sum is finite
            mean = np.add.reduceat(small, starts) / np.maximum(known, 1) * 2.0**40
            greatest = np.fmax.reduceat(X, starts)
            greatest[nothing_known] = 0.0
            return np.clip(mean, least, greatest).astype(X.dtype)  # equal values have this value for their mean
        second = np.fmin.reduceat(np.where(np.repeat(least, lengths, axis=0) < X, X, np.nan), starts)
        gap = np.where(np.isnan(second), 1.0, second.astype(np.float64) - least)
        worst = np.minimum((least - gap).astype(X.dtype), np.nextafter(least, X.dtype.type(-np.inf)))
    worst = np.maximum(worst, np.finfo(X.dtype).min)
    return np.where(nothing_known, X.dtype.type(0), worst)

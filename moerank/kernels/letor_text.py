"""Strict reader of LETOR lines, which stops at the first line that is not a document.

It reads one form, ``label qid:Q 1:v … n:v # comment``, without the query id if another file has the queries.
`moerank.data.read.letor` describes the error in any other line. An integer of at most 2^53 divided by a power of ten of
at most 10^22 is the quotient of two exact doubles, hence correctly rounded (Clinger, How to read floating point numbers
accurately, 1990). The caller converts all other values.
"""

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Floats, Integers
from moerank.kernels.compiled import kernel

POWERS = np.array([float(f"1e{k}") for k in range(23)])
EXACT = np.uint64(2**53)
DIGITS = 19  # any integer with so many digits fits into 64 bits

QID = np.frombuffer(b"qid:", np.uint8)
LF, CR, TAB, SPACE, HASH, PLUS, MINUS, DOT, COLON = 10, 13, 9, 32, 35, 43, 45, 46, 58


@kernel
def read_lines(
    text: NDArray[np.uint8],
    end: int,
    values: Floats,
    rows: Integers,
    hard: Integers,
    limit: int,
    largest: float,
    with_queries: bool,
    min_feature: int,
) -> tuple[int, int, int, int]:
    """Read whole lines into rows of numbers, up to the end or a line that is not a document.

    Return the index of the next byte, which is the end or the start of the refused line; the number of documents; the
    number of features; and the number of values that the caller has to convert.

    text : (at least end,), lines; the last before `end` is complete, with its line feed after a carriage return
    values : (n_rows, width), float64 or float32
        Zeros, with a row for each line. A value is the correctly rounded double, or that double rounded to single.
        Features beyond the width are checked but not stored: read again with a width of the number of features.
    rows : (n_rows, 4)
        The label; the start of the query id, −1 if the row before has the same id; its end; and the index of the
        comment, −1 if there is none.
    hard : (at least end / 4 + 1, 4)
        Start and end of a value that the caller has to convert, its row and its column.
    limit : the largest number of a feature
    largest : the caller has to convert values beyond it
    with_queries : whether every line has a query id
    min_feature : the smallest number of a feature, 0 or 1

    O(end). The caller has to convert all values except digits, with a sign and a point, that have at most 19 digits
    after leading zeros, 53 bits and 22 decimals.
    """
    at = begin = row = widest = n_hard = before = id_begin = id_end = 0
    while at < end:
        begin, before = at, n_hard
        at = _skip_blanks(text, at)
        if not _is_end(text[at]):
            label, query_begin, query_end, at = _label_and_query(text, at, with_queries)
            feature = min_feature - 1
            while at >= 0 and not _is_end(text[at]):
                following, at = _integer(text, at)
                if text[at] != COLON or not feature < following <= limit:
                    at = -1
                    break
                feature, start = following, at + 1
                value, at = _value(text, start)
                if abs(value) > largest:
                    hard[n_hard, 0] = start
                    hard[n_hard, 1] = at
                    hard[n_hard, 2] = row
                    hard[n_hard, 3] = feature - min_feature
                    n_hard += 1
                elif feature - min_feature < values.shape[1]:
                    values[row, feature - min_feature] = value
                at = _skip_blanks(text, at)
            if at < 0:
                return begin, row, widest, before
            same = row > 0 and _are_same(text, query_begin, query_end, id_begin, id_end)
            id_begin, id_end = query_begin, query_end
            rows[row, 0], rows[row, 1], rows[row, 2] = label, -1 if same else query_begin, query_end
            rows[row, 3] = at if text[at] == HASH else -1
            row += 1
            widest = max(widest, feature - min_feature + 1)
        while text[at] != LF and text[at] != CR:
            at += 1
        at += 1
        if text[at - 1] == CR and text[at] == LF:
            at += 1
    return at, row, widest, n_hard


@kernel
def _label_and_query(
    text: NDArray[np.uint8], at: int, with_queries: bool
) -> tuple[int, int, int, int]:
    """Return label, start and end of the query id, and the next index, −1 if the line is not a document."""
    label, at = _integer(text, at)
    if label >= 0 and text[at] == DOT:
        at += 1
        while text[at] == 48:
            at += 1
    if label < 0 or not _is_gap(text[at]):
        return 0, 0, 0, -1
    begin = at = _skip_blanks(text, at)
    if with_queries:
        for sign in QID:  # the end of a line differs from each
            if text[at] != sign:
                return 0, 0, 0, -1
            at += 1
        begin = at
        at = _skip_token(text, at)
    return label, begin, at, _skip_blanks(text, at)


@kernel
def _integer(text: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Return an integer of one to nine digits, −1 if there is none, and the next index."""
    number, begin = 0, at
    while 48 <= text[at] <= 57:
        number = 10 * number + (text[at] - 48)
        at += 1
    return (number if 1 <= at - begin <= 9 else -1), at


@kernel
def _value(text: NDArray[np.uint8], at: int) -> tuple[float, int]:
    """Return a decimal, ∞ if it is not an exact quotient, and the index of the blank or line end after it."""
    negative = text[at] == MINUS
    at += negative or text[at] == PLUS
    begin, point = at, False
    mantissa = np.uint64(0)
    n_digits = n_decimals = 0
    while 48 <= text[at] <= 57 or (text[at] == DOT and not point):
        if text[at] == DOT:
            point = True
        else:
            mantissa = np.uint64(10) * mantissa + np.uint64(text[at] - 48)
            n_digits += 1 if mantissa > 0 else 0
            n_decimals += 1 if point else 0
        at += 1
    exact = _is_gap(text[at]) and at - begin > point
    if not exact or n_digits > DIGITS or mantissa > EXACT or n_decimals >= len(POWERS):
        return np.inf, _skip_token(text, at)
    value = np.float64(mantissa) / POWERS[n_decimals]
    return (-value if negative else value), at


@kernel
def _skip_blanks(text: NDArray[np.uint8], at: int) -> int:
    while text[at] == SPACE or text[at] == TAB:
        at += 1
    return at


@kernel
def _skip_token(text: NDArray[np.uint8], at: int) -> int:
    while not _is_gap(text[at]):
        at += 1
    return at


@kernel
def _is_end(c: int) -> bool:
    return c in (LF, CR, HASH)


@kernel
def _is_gap(c: int) -> bool:
    return c in (SPACE, TAB, LF, CR, HASH)


@kernel
def _are_same(
    text: NDArray[np.uint8], begin: int, end: int, other_begin: int, other_end: int
) -> bool:
    """Return whether two parts of the text are equal."""
    same = end - begin == other_end - other_begin
    while same and begin < end:
        same = text[begin] == text[other_begin]
        begin, other_begin = begin + 1, other_begin + 1
    return same

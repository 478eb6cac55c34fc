"""Strict reader of LETOR lines, which stops at the first line it does not understand.

It knows one form, ``label qid:Q 1:v … n:v # comment``, without the query id if another file has the queries.
`moerank.data.read.letor` describes the error in any other line. A decimal of at most 2^53 times a power of ten
from 10^-22 to 10^22 is one exact product or quotient of two doubles, hence correctly rounded (Clinger, How to read
floating point numbers accurately, 1990). The places of all other values are left to the caller.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Floats, Integers
from moerank.kernels.compiled import kernel

UNDECIDED = -1.0

POWERS = np.array([float(f"1e{k}") for k in range(23)])
EXACT = 2**53
DIGITS = 19
"""Any number of so many digits fits into 64 bits."""

LF, CR, TAB, SPACE, HASH, PLUS, MINUS, DOT, COLON = 10, 13, 9, 32, 35, 43, 45, 46, 58
DELETE = 127
CASE_BIT = 32
"""The bit that is set in small letters alone."""


@kernel
def count_ends(text: NDArray[np.uint8], end: int) -> int:
    """Return the number of bytes before `end` that end a line, at least the number of lines, as CRLF counts twice."""
    n = 0
    for place in range(end):
        n += (text[place] == LF) | (text[place] == CR)
    return n


@kernel
def read_lines(
    text: NDArray[np.uint8],
    end: int,
    values: Floats,
    labels: Integers,
    limit: int,
    largest: float,
    with_queries: bool,
    with_nulls: bool,
    runs: Integers,
    hard: Integers,
) -> tuple[int, int, int, int, int, int]:
    """Read whole lines into rows of numbers, up to the end or a line that is no document.

    Returns the place of the next byte, which is the end or the begin of the line that is refused; the numbers of
    documents and of lines; the largest feature number; and the numbers of query ids and of values left to the caller.

    text : (at least end + 1,), lines; the last before `end` is complete, with its line feed after a carriage return
    values : (n_rows, width), float64 or float32
        Zeros, with a row for each line. A value is the correctly rounded double, or that double rounded to single; -0
        is read as 0, a missing value as NaN. Features beyond the width are checked and left out: read again with the
        largest feature number for the width.
    labels : (n_rows,)
    limit : the largest feature number that is allowed
    largest : larger values are left to the caller
    with_queries, with_nulls : whether every line has a query id, and whether values may be NULL or NaN in any case
    runs : (n_rows, 4)
        Begin and end of the bytes of a query id, its row and its line (from 0), wherever it is new.
    hard : (at least end / 6 + 1, 5)
        Begin and end of a value left to the caller, its row, its column and its line (from 0).

    O(end). Numbers of over 19 digits after leading zeros, of over 53 bits, with a power of ten beyond 22, or infinite
    are left to the caller.
    """
    at = row = line = widest = n_runs = n_hard = 0
    id_begin = id_end = 0
    width = values.shape[1]
    flat = values.reshape(-1)
    right = True
    while at < end:
        begin = at
        c = text[at]
        while _is_blank(c):
            at += 1
            c = text[at]
        if not _is_end(c):
            hard_before = n_hard
            right = False
            label = 0
            first = at
            while 48 <= c <= 57 and at - first < 10:
                label = 10 * label + (c - 48)
                at += 1
                c = text[at]
            if at == first or at - first > 9:
                break
            if c == DOT:
                at += 1
                while text[at] == 48:
                    at += 1
                c = text[at]
            if not _is_blank(c) and (with_queries or not _is_end(c)):
                break
            while _is_blank(c):
                at += 1
                c = text[at]
            if with_queries:
                # A line end stops each of these comparisons before the end of the text.
                if c != 113 or text[at + 1] != 105 or text[at + 2] != 100 or text[at + 3] != COLON:
                    break
                at += 4
                first = at
                c = text[at]
                while c > SPACE and c != HASH and c != DELETE:
                    at += 1
                    c = text[at]
                if at == first or not (_is_blank(c) or _is_end(c)):
                    break
                same = n_runs > 0 and at - first == id_end - id_begin
                k = 0
                while same and k < at - first:
                    same = text[first + k] == text[id_begin + k]
                    k += 1
                if not same:
                    runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2], runs[n_runs, 3] = first, at, row, line
                id_begin, id_end = first, at
                while _is_blank(c):
                    at += 1
                    c = text[at]
            else:
                same = True
            place = row * width - 1
            feature = 0
            right = True
            while not _is_end(c):
                right = False
                following = 0
                first = at
                while 48 <= c <= 57:
                    following = 10 * following + (c - 48)
                    at += 1
                    c = text[at]
                if c != COLON or at == first or at - first > 9 or following <= feature or following > limit:
                    break
                feature = following
                stored = feature <= width
                at += 1
                first = at
                c = text[at]
                negative = c == MINUS
                if negative or c == PLUS:
                    at += 1
                    c = text[at]
                mantissa = np.uint64(0)
                n_digits = 0
                exponent = 0
                while 48 <= c <= 57:
                    mantissa = np.uint64(10) * mantissa + np.uint64(c - 48)
                    n_digits += 1
                    at += 1
                    c = text[at]
                if c == DOT:
                    at += 1
                    c = text[at]
                    point = at
                    while 48 <= c <= 57:
                        mantissa = np.uint64(10) * mantissa + np.uint64(c - 48)
                        at += 1
                        c = text[at]
                    exponent = point - at
                    n_digits -= exponent
                if n_digits == 0:
                    n_letters = _null_letters(text, first) if with_nulls else 0
                    c = text[first + n_letters]
                    if n_letters == 0 or not (_is_blank(c) or _is_end(c)):
                        break
                    at = first + n_letters
                    if stored:
                        flat[place + feature] = np.nan
                else:
                    if c == 101 or c == 69:
                        at += 1
                        c = text[at]
                        down = c == MINUS
                        if down or c == PLUS:
                            at += 1
                            c = text[at]
                        digit = at
                        power = 0
                        while 48 <= c <= 57:
                            power = min(10 * power + (c - 48), 1_000_000)
                            at += 1
                            c = text[at]
                        if at == digit:
                            break
                        exponent += -power if down else power
                    if not (_is_blank(c) or _is_end(c)):
                        break
                    if n_digits > DIGITS:
                        n_digits -= _leading_zeros(text, first)
                    if n_digits > DIGITS:
                        value = UNDECIDED
                    elif mantissa <= np.uint64(EXACT) and -22 <= exponent <= 22:
                        value = np.float64(mantissa)
                        if exponent < 0:
                            value /= POWERS[-exponent]
                        elif exponent > 0:
                            value *= POWERS[exponent]
                    else:
                        value = UNDECIDED if mantissa > np.uint64(0) else 0.0
                    if 0.0 <= value <= largest:
                        if stored:  # -0 after rounding to single precision becomes 0, too
                            flat[place + feature] = value
                            if negative:
                                flat[place + feature] = 0.0 - flat[place + feature]
                    else:
                        hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = first, at, row
                        hard[n_hard, 3], hard[n_hard, 4] = feature - 1, line
                        n_hard += 1
                right = True
                while _is_blank(c):
                    at += 1
                    c = text[at]
            if not right:
                n_hard = hard_before
                break
            labels[row] = label
            row += 1
            n_runs += not same
            widest = max(widest, feature)
        while c != LF and c != CR:
            at += 1
            c = text[at]
        at += 1
        if c == CR and text[at] == LF:
            at += 1
        line += 1
    return at if right else begin, row, line, widest, n_runs, n_hard


@kernel
def _is_blank(c: int) -> bool:
    return c in (SPACE, TAB)


@kernel
def _is_end(c: int) -> bool:
    return c in (LF, CR, HASH)


@kernel
def _leading_zeros(text: NDArray[np.uint8], at: int) -> int:
    """Return the number of leading zeros of a number, behind its sign."""
    n_zeros = 0
    c = text[at]
    while c == 48 or c == DOT or (n_zeros == 0 and c in (PLUS, MINUS)):
        n_zeros += c == 48
        at += 1
        c = text[at]
    return n_zeros


@kernel
def _null_letters(text: NDArray[np.uint8], at: int) -> int:
    """Return the number of letters of NULL or NaN, in any case, that begin here; 0 for other letters."""
    first = text[at] | CASE_BIT
    if first != 110:
        return 0
    second = text[at + 1] | CASE_BIT
    if second == 97:
        return 3 if text[at + 2] | CASE_BIT == 110 else 0
    if second != 117 or text[at + 2] | CASE_BIT != 108:
        return 0
    return 4 if text[at + 3] | CASE_BIT == 108 else 0

"""Lines of LETOR text as numbers: a strict reader of bytes that stops at the first line it does not understand.

It knows one form, ``label qid:Q 1:v … n:v # comment``, without the query id where these are kept elsewhere.
`moerank.data.read.letor_parser` says in words what is wrong with any other line. A decimal of at most 2^53 times a
power of ten from 10^-22 to 10^22 is one exact product or quotient of two doubles, hence correctly rounded (Clinger, How
to read floating point numbers accurately, 1990); others of up to 19 digits are rounded by `nearest_double`. The caller
decides the rest, by its place.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["UNDECIDED", "nearest_double", "N_STATES", "Pause", "State", "narrow_rows", "read_lines", "widen_rows"]

UNDECIDED = -1.0

LEAST, MOST = -342, 308
"""Powers of ten beyond which every decimal of 19 digits is 0 or infinite."""

LEAST_POWER_OF_TWO = -1074


def _first_bits(q: int) -> int:
    """Return the first 128 bits of 5^q, rounded up for -27 ≤ q < 0, else cut off, as the algorithm's proof asks."""
    power = 5 ** abs(q)
    length = power.bit_length()
    if q >= 0:
        return power << (128 - length) if length <= 128 else power >> (length - 128)
    return 2 ** (length + 127) // power + (q >= -27)


def _halves() -> NDArray[np.uint64]:
    """Return upper and lower 64 bits for every power, shape (MOST - LEAST + 1, 2)."""
    powers = [_first_bits(q) for q in range(LEAST, MOST + 1)]
    return np.array([[power >> 64, power & (2**64 - 1)] for power in powers], np.uint64)


FIVES = _halves()
TWOS = np.ldexp(1.0, np.arange(LEAST_POWER_OF_TWO, 972))

ONE, NINE = np.uint64(1), np.uint64(9)
HALF, WORD, LOWER = np.uint64(32), np.uint64(63), np.uint64(2**32 - 1)
UNSURE = np.uint64(2**9 - 1)
FULL = np.uint64(2**64 - 1)


@kernel
def nearest_double(w: np.uint64, q: int) -> float:
    """Return the double nearest to w · 10^q for w > 0, ties to even; `UNDECIDED` where this would take more bits.

    Notes
    -----
    O(1): one or two products of 64 by 64 bits.
    """
    if q < LEAST or q > MOST:
        return UNDECIDED
    shift = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == np.uint64(0):
            w <<= np.uint64(step)
            shift += step
    high, low = _product(w, FIVES[q - LEAST, 0])
    if high & UNSURE == UNSURE:
        second, _ = _product(w, FIVES[q - LEAST, 1])
        low += second
        if low < second:
            high += ONE
        if low == FULL and not -27 <= q <= 55:
            return UNDECIDED
    upper = high >> WORD
    mantissa = high >> (upper + NINE)
    power = ((217706 * q) >> 16) + 63 + np.int64(upper) - shift  # 217706 / 2^16 is just above log2(10)
    if power < -1022 or power > 1022:
        return UNDECIDED
    exact_half = low <= ONE and -4 <= q <= 23 and mantissa & np.uint64(3) == ONE
    if exact_half and mantissa << (upper + NINE) == high:
        mantissa -= ONE  # half way between two doubles: to the even one, which is below
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    return np.float64(mantissa) * TWOS[power - 52 - LEAST_POWER_OF_TWO]


@kernel
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return upper and lower 64 bits of a product."""
    a_high, a_low, b_high, b_low = a >> HALF, a & LOWER, b >> HALF, b & LOWER
    low = a_low * b_low
    middle = a_high * b_low + (low >> HALF)
    other = a_low * b_high + (middle & LOWER)
    high = a_high * b_high + (middle >> HALF) + (other >> HALF)
    return high, (other << HALF) | (low & LOWER)


class State(IntEnum):
    """What the entries of the state of a reader are."""

    AT = 0  # place of the next byte; after a pause, the begin of a line
    ROW = 1  # documents so far
    LINE = 2  # lines so far
    COLUMNS = 3  # largest feature number so far
    NULLS = 4  # missing values so far
    RUNS = 5  # query ids written by this call
    HARD = 6  # values left to the caller by this call
    WANTED = 7  # after Pause.COLUMNS: how many columns the next line asks for


N_STATES = len(State)


class Pause(IntEnum):
    """Why the reader came back."""

    END = 0  # nothing is left to read
    WORKSPACE = 1  # no room for a query id or a value left to the caller
    ROWS = 2  # no room for a document
    COLUMNS = 3  # a feature number beyond the columns there are
    REFUSED = 4  # a line that is not of the form of a document


AT, ROW, LINE, COLUMNS, NULLS, RUNS, HARD, WANTED = (int(entry) for entry in State)
END, WORKSPACE, NO_ROWS, NO_COLUMNS, REFUSED = (int(entry) for entry in Pause)

POWERS = np.array([float(f"1e{k}") for k in range(23)])
EXACT = 2**53
DIGITS = 19
"""So many digits fit into 64 bits, whatever they are."""

LF, CR, TAB, SPACE, HASH, PLUS, MINUS, DOT, COLON = 10, 13, 9, 32, 35, 43, 45, 46, 58
DELETE = 127
CASE_BIT = 32
"""The bit that is set in small letters alone."""


@kernel
def read_lines(
    text: NDArray[np.uint8],
    end: int,
    state: NDArray[np.int64],
    values: NDArray[np.floating],
    labels: NDArray[np.int32],
    width: int,
    limit: int,
    largest: float,
    with_queries: bool,
    with_nulls: bool,
    runs: NDArray[np.int64],
    hard: NDArray[np.int64],
) -> int:
    """Read whole lines into rows of numbers; return why it came back, a `Pause`.

    Parameters
    ----------
    text : (at least end + 1,)
        Lines; the last before `end` is complete, and what follows it is no line feed after a carriage return.
    end : int
    state : (N_STATES,)
        See `State`; updated. In a pause it stands at the begin of a line of which nothing counts yet.
    values : (n_rows · width,), float64 or float32
        Row by row, 0 from the row of the state on. A value is the correctly rounded double, or that double rounded to
        single; -0 is read as 0, a missing value as NaN.
    labels : (n_rows,)
    width : int
        Columns of a row, 0 or more.
    limit : int
        The largest feature number that is allowed.
    largest : float
        Values beyond it are left to the caller.
    with_queries, with_nulls : bool
        Whether every line has a query id, and whether values may be NULL or NaN in letters of any size.
    runs : (n, 4)
        Begin and end of the bytes of a query id, its row and its line (from 1), wherever it is not that of the line
        before, and in the first document of a call.
    hard : (at least limit, 5)
        Begin and end of a value left to the caller, its row, its column (from 0) and its line.

    Notes
    -----
    O(end). Left to the caller are numbers of over 19 digits from the first that is not 0, those that are 0 or nearly so
    (below 10^-307), and those that are infinite.
    """
    at, row, line = state[AT], state[ROW], state[LINE]
    n_columns, n_nulls = state[COLUMNS], state[NULLS]
    n_runs = n_hard = 0
    id_begin = id_end = 0
    n_rows = len(labels)
    pause = END
    while at < end:
        begin = at
        c = text[at]
        while _is_blank(c):
            at += 1
            c = text[at]
        if not _is_end(c):
            hard_before, nulls_before = n_hard, n_nulls
            pause = REFUSED
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
                    if n_runs == len(runs):
                        pause = WORKSPACE
                        break
                    runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2], runs[n_runs, 3] = first, at, row, line + 1
                id_begin, id_end = first, at
                while _is_blank(c):
                    at += 1
                    c = text[at]
            else:
                same = True
            if row == n_rows:
                pause = NO_ROWS
                break
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
                if feature > width:
                    state[WANTED] = _largest_number(text, at, feature, limit)
                    pause = NO_COLUMNS
                    break
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
                    n_nulls += 1
                    values[place + feature] = np.nan
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
                        value = nearest_double(mantissa, exponent) if mantissa > np.uint64(0) else 0.0
                    if 0.0 <= value <= largest:
                        values[place + feature] = value
                        if negative:  # what is rounded to -0 in single precision becomes 0, too
                            values[place + feature] = 0.0 - values[place + feature]
                    else:
                        if n_hard == len(hard):
                            pause = WORKSPACE
                            break
                        hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = first, at, row
                        hard[n_hard, 3], hard[n_hard, 4] = feature - 1, line + 1
                        n_hard += 1
                right = True
                while _is_blank(c):
                    at += 1
                    c = text[at]
            if not right:
                n_hard, n_nulls = hard_before, nulls_before
                break
            pause = END
            labels[row] = label
            row += 1
            n_runs += not same
            n_columns = max(n_columns, feature)
        while c != LF and c != CR:
            at += 1
            c = text[at]
        at += 1
        if c == CR and text[at] == LF:
            at += 1
        line += 1
    state[AT] = at if pause == END else begin
    state[ROW], state[LINE], state[COLUMNS], state[NULLS] = row, line, n_columns, n_nulls
    state[RUNS], state[HARD] = n_runs, n_hard
    return pause


@kernel
def _is_blank(c: int) -> bool:
    return c in (SPACE, TAB)


@kernel
def _is_end(c: int) -> bool:
    """Whether a byte ends a document: a line end, or the begin of a comment."""
    return c in (LF, CR, HASH)


@kernel
def _largest_number(text: NDArray[np.uint8], at: int, least: int, limit: int) -> int:
    """Return the last number before a colon in the rest of a line, if it is between `least` and `limit`."""
    last = least
    number = 0
    c = text[at]
    while not _is_end(c):
        if 48 <= c <= 57:
            number = min(10 * number + (c - 48), limit + 1)
        elif c == COLON:
            if least < number <= limit:
                last = max(last, number)
            number = 0
        else:
            number = 0
        at += 1
        c = text[at]
    return last


@kernel
def _leading_zeros(text: NDArray[np.uint8], at: int) -> int:
    """Return how many zeros a number begins with, behind its sign."""
    n_zeros = 0
    c = text[at]
    while c == 48 or c == DOT or (n_zeros == 0 and c in (PLUS, MINUS)):
        n_zeros += c == 48
        at += 1
        c = text[at]
    return n_zeros


@kernel
def _null_letters(text: NDArray[np.uint8], at: int) -> int:
    """Return how many letters of NULL or NaN, whatever their size, begin here; 0 for others."""
    first = text[at] | CASE_BIT
    if first != 110:
        return 0
    second = text[at + 1] | CASE_BIT
    if second == 97:
        return 3 if text[at + 2] | CASE_BIT == 110 else 0
    if second != 117 or text[at + 2] | CASE_BIT != 108:
        return 0
    return 4 if text[at + 3] | CASE_BIT == 108 else 0


@kernel
def widen_rows(values: NDArray[np.floating], n_rows: int, width: int, wider: int) -> None:
    """Move rows of `width` values apart in place, to rows of `wider` with zeros at their ends.

    Parameters
    ----------
    values : (at least n_rows · wider,)
    n_rows, width, wider : int
    """
    for row in range(n_rows - 1, -1, -1):
        for column in range(width - 1, -1, -1):
            values[row * wider + column] = values[row * width + column]
        values[row * wider + width : (row + 1) * wider] = 0.0


@kernel
def narrow_rows(values: NDArray[np.floating], n_rows: int, width: int, narrower: int) -> None:
    """Move the first `narrower` of `width` values of each row together in place."""
    for row in range(n_rows):
        for column in range(narrower):
            values[row * narrower + column] = values[row * width + column]

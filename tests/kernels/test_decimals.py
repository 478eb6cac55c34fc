import random

import numpy as np
import pytest

from moerank.kernels.letor_text import FIVES, UNDECIDED, nearest_double


def drawn(kind, rng):
    """A number of up to 64 bits and a power of ten."""
    if kind == "any":
        return rng.randrange(1, 10 ** rng.randrange(1, 20)), rng.randrange(-350, 315)
    if kind == "written by Python":
        text = repr(rng.random() * 10.0 ** rng.randrange(-30, 30))
        mantissa, _, power = text.partition("e")
        whole, _, fraction = mantissa.partition(".")
        return int(whole + fraction), int(power or 0) - len(fraction)
    halves = 2 * rng.randrange(2**52, 2**53) + 1  # of the distance of two doubles
    q = rng.randrange(-4, 5)
    exact = halves * 5**-q if q < 0 else halves // 5**q * 5**q
    return exact + rng.choice([0, 0, 0, -1, 1]), q


@pytest.mark.parametrize("kind", ["any", "written by Python", "half way"])
def test_a_decimal_becomes_the_double_that_python_reads(kind):
    rng = random.Random(kind)
    n_decided = 0
    for _ in range(20_000):
        w, q = drawn(kind, rng)
        if not 0 < w < 2**64:
            continue
        value = nearest_double(np.uint64(w), q)
        if value != UNDECIDED:
            n_decided += 1
            assert value == float(f"{w}e{q}"), (w, q)
    assert n_decided > (10_000 if kind == "any" else 5_000)


def test_halves_of_the_distance_of_two_doubles_go_to_the_even_one():
    for w, even in ((2**53 + 1, 2**53), (2**53 + 3, 2**53 + 4), (2**54 + 2, 2**54), (2**54 + 6, 2**54 + 8)):
        assert nearest_double(np.uint64(w), 0) == even


def test_what_is_no_normal_double_is_left_to_the_caller():
    for w, q in ((1, -308), (22250738585072011, -324), (1, 309), (2**64 - 1, 308), (1, -400), (1, 400)):
        assert nearest_double(np.uint64(w), q) == UNDECIDED
    for w, q in ((17976931348623157, 291), (1, 307), (1, -300)):
        assert nearest_double(np.uint64(w), q) in (float(f"{w}e{q}"), UNDECIDED)


def test_the_powers_of_five_are_those_of_the_published_proof():
    for q, (high, low) in enumerate(FIVES.tolist(), start=-342):
        bits = high << 64 | low
        assert 2**127 <= bits < 2**128
        length = (5 ** abs(q)).bit_length()
        if q >= 0:
            assert bits == (5**q << 128 >> length)
        else:
            rest = 2 ** (127 + length) - bits * 5**-q
            assert -(5**-q) <= rest < 0 if q >= -27 else 0 <= rest < 5**-q

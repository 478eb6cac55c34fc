import reprlib
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from pydantic import BaseModel, ValidationError, field_validator

from moerank.checks import (
    check_at_least,
    check_choice,
    check_not_negative,
    check_positive,
    check_room,
    check_share,
    check_switch,
    first_mistake,
    unknown,
)


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (check_positive, [1, 1e-300, 2.5, np.float32(0.5), np.int64(3)]),
        (check_not_negative, [0, 0.0, -0.0, 1e300]),
        (check_share, [1, 1e-300, np.float32(0.5)]),
        (lambda **given: check_share(zero=True, one=False, **given), [0, 1 - 1e-16]),
        (lambda **given: check_at_least(1, 3, or_none=True, **given), [1, 3, np.int8(2), None]),
        (lambda **given: check_choice(("a", "b"), **given), ["a", "b"]),
        (check_switch, [True, False, np.True_]),
    ],
)
def test_what_is_in_range_passes(check, good):
    check(**{f"x{number}": value for number, value in enumerate(good)})


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (check_positive, 0, "x must be positive, not 0"),
        (check_positive, nan, "x must be positive, not nan"),
        (check_positive, inf, "x must be finite, not inf"),
        (check_positive, 10**400, "x must be finite, not 100000000000000000...0000000000000000000"),
        (check_positive, -(10**400), "x must be finite, not -10000000000000000...0000000000000000000"),
        (check_positive, Fraction(1, 10**400), f"x must be positive, not {reprlib.repr(Fraction(1, 10**400))}"),
        (check_not_negative, -1e-300, "x must not be negative, not -1e-300"),
        (lambda **given: check_not_negative(or_none=True, **given), -1, "x must not be negative, or None, not -1"),
        (check_share, 0, "x must be in (0, 1], not 0"),
        (check_share, nan, "x must be in (0, 1], not nan"),
        (lambda **given: check_share(zero=True, **given), -0.1, "x must be in [0, 1], not -0.1"),
        (lambda **given: check_share(zero=True, one=False, **given), 1, "x must be in [0, 1), not 1"),
        (lambda **given: check_at_least(2, **given), 1, "x must be at least 2, not 1"),
        (lambda **given: check_at_least(2, **given), 2.0, "x must be an integer, not 2.0"),
        (lambda **given: check_at_least(1, 3, **given), 10**6, "x must be at most 3, not 1,000,000"),
        (lambda **given: check_at_least(2, or_none=True, **given), 1, "x must be at least 2, or None, not 1"),
        (lambda **given: check_choice(("abc", "xyz"), **given), "abd", "did you mean 'abc'?"),
        (lambda **given: check_choice(("abc", "xyz"), **given), 7, "x must be one of 'abc', 'xyz', not 7"),
        (check_switch, "no", "x must be True or False, not 'no'"),
        (check_switch, 1, "x must be True or False, not 1"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(check, value, message):
    with pytest.raises(ValueError) as caught:
        check(x=value)
    assert str(caught.value).startswith("x must be") or str(caught.value).startswith("x must not be")
    assert str(caught.value).endswith(message)


def test_numbers_come_back_as_floats():
    for check in (check_positive, check_not_negative, check_share):
        numbers = check(a=Fraction(1, 3), b=1, c=np.float16(0.5), d=np.longdouble(0.25))
        assert numbers == {"a": 1 / 3, "b": 1.0, "c": 0.5, "d": 0.25}
        assert {type(number) for number in numbers.values()} == {float}


@pytest.mark.parametrize("value", ["1", None, True, np.True_, [1.0], 1j])
def test_what_is_no_number_is_refused_by_name(value):
    for check in (check_positive, check_not_negative, check_share):
        with pytest.raises(ValueError, match=r"^alpha must be a number, not "):
            check(C=1.0, alpha=value)
    with pytest.raises(ValueError, match=r"^k must be an integer, not "):
        check_at_least(1, n=1, k=value)


def test_unknown_names_come_with_the_nearest_or_with_all():
    assert unknown("solver", "rankrsl", ["rankrls", "gas"]) == "unknown solver 'rankrsl'; did you mean 'rankrls'?"
    assert unknown("backend", "svm", ["rankrls", "ranksvm-primal"]).endswith("did you mean 'ranksvm-primal'?")
    assert unknown("solver", "xyz", ["rankrls", "gas"]) == "unknown solver 'xyz'; choose one of rankrls, gas"


def test_room_is_compared_to_the_limit(monkeypatch):
    for variable, limit in (("", 16), ("0.5", 0.5), ("32", 32)):
        monkeypatch.setenv("MOERANK_MEMORY", variable)
        check_room("a table", int(limit * 2**30))
        with pytest.raises(ValueError, match=rf"a table would take {limit} GiB, and the limit is {limit} GiB; ask for"):
            check_room("a table", int(limit * 2**30) + 1)


def test_what_is_shown_of_a_value_has_an_end():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for check, value in ((check_switch, deep), (check_positive, deep), (check_switch, "no" * 1000)):
        with pytest.raises(ValueError) as error:
            check(x=value)
        assert len(str(error.value)) < 200


class Table(BaseModel):
    rows: list[int]

    @field_validator("rows")
    @classmethod
    def _not_empty(cls, rows):
        if not rows:
            raise ValueError("a table has rows")
        return rows


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"rows": [1, 2, "x", "y"]}', "rows.2: Input should be a valid integer, unable to parse string as an integer"),
        ('{"rows": []}', "rows: a table has rows"),
        ("{}", "rows: Field required"),
        ("{", "Invalid JSON: EOF while parsing an object at line 1 column 1"),
    ],
)
def test_the_first_mistake_is_named(text, sentence):
    with pytest.raises(ValidationError) as refused:
        Table.model_validate_json(text)
    assert first_mistake(refused.value) == sentence

"""Checks of parameters: what each refuses, what it just accepts, and that fractions are rounded against us."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit import errors
from tacit.exact import rounding as skellam
from tacit.exact.checks import (
    flag,
    integer_array,
    members,
    non_negative,
    order_above_one,
    positive,
    probability,
    real_array,
    require,
    text,
    unmasked,
    whole,
)
from tacit.exact.enclosures import Matrix
from tacit.exact.rounding import Interval, exact_parameter

LONG = np.array([10**400], dtype=object)
REFUSED: dict[str, Callable[[], Any]] = {
    "a flag as a number": lambda: positive("x", True),
    "text as a number": lambda: positive("x", "1"),
    "no number": lambda: non_negative("x", math.nan),
    "below 0": lambda: non_negative("x", -(2.0**-1074)),
    "without end": lambda: non_negative("x", math.inf),
    "0 where it must be above": lambda: positive("x", 0),
    "positive without end": lambda: positive("x", math.inf),
    "a probability above 1": lambda: probability("x", 1 + 2.0**-52),
    "a probability below 0": lambda: probability("x", -(2.0**-1074)),
    "a probability of 1": lambda: probability("x", 1, below_one=True),
    "a fraction whose float is 1": lambda: probability("x", 1 - Fraction(1, 10**30), below_one=True),
    "a fraction above 1 whose float is 1": lambda: probability("x", 1 + Fraction(1, 10**30)),
    "an order of 1": lambda: order_above_one(1),
    "a half as a whole number": lambda: whole("x", 1.5),
    "a flag as a whole number": lambda: whole("x", True),
    "a whole number below the least": lambda: whole("x", 0),
    "a whole number beyond all": lambda: whole("x", (1 << 1023) + 1),
    "a whole number far below 0": lambda: whole("x", -(1 << 1023) - 1, least=None),
    "text as a list": lambda: members("x", "ab"),
    "a masked list": lambda: members("x", np.ma.masked_array([1.0], mask=[True])),
    "a number as a flag": lambda: flag("x", 1),
    "a number as text": lambda: text("x", 3),
    "empty text": lambda: text("x", "", empty=False),
    "a condition that fails": lambda: require(False, parameter="x", value=1, must="hold"),
    "a masked array": lambda: unmasked(np.ma.masked_array([1.0], mask=[True])),
    "a list of masked arrays": lambda: unmasked([np.ma.masked_array([1.0], mask=[True])]),
    "rows of different lengths": lambda: unmasked([[1], [1, 2]]),
    "text as numbers": lambda: real_array(["a"]),
    "flags as numbers": lambda: real_array(np.array([True])),
    "fractions as floats": lambda: real_array(np.array([Fraction(1, 3)], dtype=object)),
    "numbers beyond floats": lambda: real_array(LONG),
    "floats as integers": lambda: integer_array([1.0]),
    "flags as integers": lambda: integer_array([True]),
    "flags among integers": lambda: integer_array(np.array([1, True], dtype=object)),
    "a matrix without entries": lambda: Matrix("m", [[]]),
    "a matrix of different rows": lambda: Matrix("m", [[1], [1, 2]]),
    "a number that is not above 0": lambda: exact_parameter("x", 0),
    "a fraction that is not above 0": lambda: exact_parameter("x", Fraction(-1, 3)),
    "a float that is not above 0": lambda: exact_parameter("x", -0.5),
    "a number beyond ordinary size": lambda: exact_parameter("x", Fraction(2) ** 1025),
    "a number below ordinary size": lambda: exact_parameter("x", Fraction(1, 2**1025)),
    "an interval with its ends exchanged": lambda: Interval(low=1.0, high=0.5),
    "an interval of no numbers": lambda: Interval(low=math.nan, high=0.5),
    "a Skellam law of too many terms": lambda: skellam.skellam_masses(Fraction(10**14), 64, 64),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_reached(name: str) -> None:
    with pytest.raises(errors.TacitError):
        REFUSED[name]()


def test_what_lies_just_inside_is_accepted() -> None:
    assert non_negative("x", -0.0) == 0
    assert math.copysign(1, non_negative("x", -0.0)) == 1
    assert non_negative("x", math.inf, finite=False) == math.inf
    assert probability("x", 1) == 1
    assert probability("x", math.nextafter(1, 0), below_one=True) < 1
    assert order_above_one(math.inf) == math.inf
    assert whole("x", 1 << 1023) == 1 << 1023
    assert whole("x", np.int8(3)) == 3
    assert flag("x", np.bool_(True)) is True
    assert exact_parameter("x", Fraction(-1, 3), positive=False) == Fraction(-1, 3)
    assert exact_parameter("x", Fraction(2) ** 1023) == Fraction(2) ** 1023
    assert integer_array(np.array([(1 << 64) - 1], dtype=np.uint64)).dtype == object
    assert integer_array(np.array([(1 << 63) - 1], dtype=np.uint64)).dtype == np.int64
    assert Interval(low=0.5, high=0.5).width == 0


@pytest.mark.parametrize(
    "exact", [Fraction(1, 3), Fraction(1, 10), Fraction(10**20 + 1, 10**21), Fraction(2, 7)]
)
def test_fractions_become_floats_that_are_not_below_them(exact: Fraction) -> None:
    for check in (positive, non_negative, probability):
        number = check("x", exact)
        assert Fraction(number) >= exact
        assert Fraction(math.nextafter(number, 0)) < exact
    assert Fraction(positive("x", (1 << 60) + 1)) >= (1 << 60) + 1

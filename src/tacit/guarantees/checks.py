"""Numbers that are valid from birth: each check returns a plain float or raises a typed error."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Rational, Real

from tacit.errors import InvalidParameter

__all__ = ["non_negative", "order_above_one", "positive", "probability", "rate", "whole"]

_HINTS = {
    "epsilon": "epsilon is a privacy loss: 0 means no loss, 1 is a common budget",
    "delta": "delta is a probability: a guarantee that fails for one person in n needs delta well below 1/n",
}


def _real(parameter: str, value: object, must: str) -> float:
    """A float that is not below the exact value (rationals are rounded up, against us)."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint="give a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isnan(number):
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=_HINTS.get(parameter, ""))
    if isinstance(value, Rational) and math.isfinite(number) and Fraction(number) < Fraction(value):
        number = math.nextafter(number, math.inf)
    return number


def non_negative(parameter: str, value: object, *, finite: bool = True) -> float:
    """A number in [0, inf), or [0, inf] where infinity means 'no bound'."""
    must = "be a finite number of at least 0" if finite else "be a number of at least 0"
    number = _real(parameter, value, must)
    if number < 0 or (finite and math.isinf(number)):
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=_HINTS.get(parameter, ""))
    return number + 0.0  # -0.0 becomes 0.0


def positive(parameter: str, value: object) -> float:
    """A number in (0, inf)."""
    must = "be a finite number above 0"
    number = _real(parameter, value, must)
    if not 0 < number < math.inf:
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=_HINTS.get(parameter, ""))
    return number


def probability(parameter: str, value: object, *, below_one: bool = False) -> float:
    """A number in [0, 1], or in [0, 1)."""
    must = "lie in [0, 1)" if below_one else "lie in [0, 1]"
    number = _real(parameter, value, must)
    if not 0 <= number <= 1 or (below_one and number == 1):
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=_HINTS.get(parameter, ""))
    return number + 0.0


def rate(parameter: str, value: object) -> float:
    """A sampling rate in [0, 1]."""
    return probability(parameter, value)


def order_above_one(value: object) -> float:
    """The order of a Rényi divergence, in (1, inf]."""
    number = _real("order", value, "be above 1")
    if not number > 1:
        raise InvalidParameter(
            parameter="order", value=value, must="be above 1", hint="order infinity is pure epsilon"
        )
    return number


def whole(parameter: str, value: object, *, least: int = 1) -> int:
    """An integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidParameter(parameter=parameter, value=value, must=f"be an integer of at least {least}")
    return value

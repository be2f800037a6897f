"""Parameters that are valid from birth: each check returns a plain value, or raises a typed error.

Nothing is guessed from another kind: text is no number, 1.9 is no whole number, "no" is no flag. What NumPy's
scalars hold is taken over into Python's own numbers at once, since theirs wrap around.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

from tacit.errors import InvalidParameter

__all__ = [
    "flag",
    "members",
    "non_negative",
    "order_above_one",
    "positive",
    "probability",
    "rate",
    "settle",
    "text",
    "whole",
]

MOST_BITS = 1024
_HINTS = {
    "epsilon": "epsilon is a privacy loss: 0 means no loss, 1 is a common budget",
    "delta": "delta is a probability: a guarantee that fails for one person in n needs delta well below 1/n",
}


def _real(parameter: str, value: object, must: str) -> float:
    """A float that is not below the exact value (rationals are rounded up, against us)."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint="give a number")
    if isinstance(value, Integral):
        value = int(value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isnan(number):
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=_HINTS.get(parameter, ""))
    if not isinstance(value, float) and math.isfinite(number) and Fraction(number) < _exact(value):
        number = math.nextafter(number, math.inf)
    return number


def _exact(value: Any) -> Fraction:
    """The exact value of a finite number; floats of other lengths than Python's say their ratio too."""
    return Fraction(value) if isinstance(value, Rational) else Fraction(*value.as_integer_ratio())


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
    """An integer of at least `least`, as Python's own kind."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InvalidParameter(parameter=parameter, value=value, must=f"be an integer of at least {least}")
    if int(value).bit_length() > MOST_BITS:
        raise InvalidParameter(parameter=parameter, value=value, must=f"have at most {MOST_BITS} bits")
    return int(value)


def members(parameter: str, values: Any) -> tuple[Any, ...]:
    """The members of a list, a tuple or an array; text and what has no members are refused."""
    masked = hasattr(values, "mask")
    if masked or not (isinstance(values, list | tuple) or bool(getattr(values, "ndim", False))):
        raise InvalidParameter(
            parameter=parameter,
            value=type(values).__name__,
            must="be a list, a tuple or an array without a mask",
        )
    return tuple(values)


def flag(parameter: str, value: object) -> bool:
    """True or False; nothing else is taken for one, since every text but the empty one counts as true."""
    kind = type(value)
    if kind is not bool and not (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")):
        raise InvalidParameter(
            parameter=parameter, value=value, must="be True or False", hint="a text or a number is not one"
        )
    return bool(value)


def text(parameter: str, value: object, *, empty: bool = True) -> str:
    """Text, as Python's own kind."""
    if not isinstance(value, str) or not (value or empty):
        must = "be text" if empty else "be text that is not empty"
        raise InvalidParameter(parameter=parameter, value=value, must=must)
    return str(value)


def settle(instance: object, **values: object) -> None:
    """Puts the checked values into the fields of a frozen object: what was checked is what is computed with."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)

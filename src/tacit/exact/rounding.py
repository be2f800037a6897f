"""Directed rounding: exact numbers inside, one rounding against ourselves at the edge.

`up(x)` is the smallest float >= x and `down(x)` the largest float <= x, for exact rationals, integers,
floats, and for both ends of a ball. Positive values below the smallest float round up to 5e-324, never to 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from tacit.errors import InvalidParameter
from tacit.exact.checks import MOST, is_number, plain, refuse_if
from tacit.exact.data_classes import dataclass

# Parameters as exact rationals: what the caller typed, to the last digit.

Exact: TypeAlias = int | float | Fraction

# Parameters that a float can hold, and whose digits Python prints.
LEAST, MOST_BITS = Fraction(1, 1 << 1022), 8192
SHORT = 1000


def exact_parameter(name: str, value: object, *, positive: bool = True, any_size: bool = False) -> Fraction:
    """The exact rational that the caller typed; finite, and positive where asked.

    Declared values must be of ordinary size. `any_size` is for values that follow from data: there no size is refused.
    """
    if type(value) is Fraction or type(value) is int:
        # Short ones are of ordinary size, and need no comparison of fractions.
        above, below = value.numerator, value.denominator
        if (above > 0 or not positive) and above.bit_length() <= SHORT and below.bit_length() <= SHORT:
            return value if type(value) is Fraction else Fraction(value)
    must = "be a finite number above 0" if positive else "be a finite number"
    refuse_if(not is_number(value), name, value, must, "give an int, float or Fraction")
    number = plain(value)
    if isinstance(number, float) and not math.isfinite(number):
        raise InvalidParameter(parameter=name, value=value, must=must)
    refuse_if(positive and number <= 0, name, value, must)
    exact = Fraction(number)
    long = max(exact.numerator.bit_length(), exact.denominator.bit_length()) > MOST_BITS
    if not any_size and (long or (exact and not LEAST <= abs(exact) <= MOST)):
        raise InvalidParameter(
            parameter=name, value=value, must="be of ordinary size: between 2^-1022 and 2^1023, if not 0",
            hint="rescale the statistic",
        )  # fmt: skip
    return exact


def exact_value(name: str, value: object) -> Any:
    """The given number, if `exact_parameter` accepts it: a field keeps the typed number."""
    exact_parameter(name, value)
    return plain(value)


_LARGEST = 1.7976931348623157e308


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A certified enclosure: the true value is at least `low` and at most `high`."""

    low: float
    high: float

    def __post_init__(self) -> None:
        refuse_if(not self.low <= self.high, "low", self.low, f"be at most high = {self.high!r}")

    @property
    def width(self) -> float:
        """high - low (0 if both are the same infinity)."""
        return 0.0 if self.low == self.high else self.high - self.low

    def __neg__(self) -> Interval:
        return Interval(low=-self.high, high=-self.low)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def hull(self, other: Interval) -> Interval:
        """The smallest interval with both inside."""
        return Interval(low=min(self.low, other.low), high=max(self.high, other.high))

    def maximum(self, other: Interval) -> Interval:
        """The enclosure of the larger of two enclosed values."""
        return Interval(low=max(self.low, other.low), high=max(self.high, other.high))


def _dyadic_up(mantissa: int, exponent: int) -> float:
    """Smallest float >= mantissa * 2**exponent."""
    if mantissa == 0:
        return 0.0
    # A float has 53 digits, and none below 2^-1074: the others are cut, upwards.
    cut = max(mantissa.bit_length() - 53, -1074 - exponent, 0)
    kept = -(-mantissa >> cut)
    try:
        return math.ldexp(kept, exponent + cut) if kept else -0.0
    except OverflowError:
        return math.inf if mantissa > 0 else -_LARGEST


def _fraction_up(exact: Fraction) -> float:
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -_LARGEST
    if math.isinf(nearest):
        return nearest if nearest > 0 else -_LARGEST
    top, bottom = nearest.as_integer_ratio()
    enough = top * exact.denominator >= exact.numerator * bottom
    return nearest if enough else math.nextafter(nearest, math.inf)


def up(x: Any) -> float:
    """Smallest float that is >= every point of x (a ball, a Fraction, an int or a float)."""
    if isinstance(x, float):
        return x
    if isinstance(x, int):
        return _fraction_up(Fraction(x))
    if isinstance(x, Fraction):
        return _fraction_up(x)
    if x.is_nan() or not x.is_finite():
        return math.inf
    mantissa, exponent = x.upper().mid().man_exp()
    high = _dyadic_up(int(mantissa), int(exponent))
    # `upper` is itself rounded: step on if the ball still reaches beyond the float.
    return high if math.isinf(high) or bool(x <= high) else math.nextafter(high, math.inf)


def down(x: Any) -> float:
    """Largest float that is <= every point of x."""
    return -up(-x)


_WIDE = Context(prec=60)
_DECIMAL = Decimal("1e-12")


def digits_up(value: Exact, digits: int = 3) -> str:
    """A non-negative number with this many significant digits, rounded up: a printed bound is a bound.

    A decimal that became the next larger float prints as itself: the text lies below it by 1e-12 of it at most.
    """
    return _digits(value, digits, ROUND_CEILING, 1 - _DECIMAL)


def digits_down(value: Exact, digits: int = 3) -> str:
    """The same, rounded down, so that nobody can ask for more than the printed remainder."""
    return _digits(value, digits, ROUND_FLOOR, 1 + _DECIMAL)


def _digits(value: Exact, digits: int, rounding: str, slack: Decimal) -> str:
    if not value or (isinstance(value, float) and not math.isfinite(value)):
        return f"{float(value):g}"
    top, bottom = Fraction(value).as_integer_ratio()
    exact = _WIDE.multiply(_WIDE.divide(Decimal(top), Decimal(bottom)), slack)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    shown = exact.quantize(step, rounding=rounding, context=_WIDE)
    # By way of a float a number below the smallest one would be 0.
    return f"{float(shown):.{digits}g}" if LEAST <= Fraction(shown) <= MOST else f"{shown:.{digits}g}"


def product(a: float, b: float) -> Interval:
    """The adjacent floats around a b, or a b itself if it is a float."""
    near = a * b
    if math.isinf(near):
        return Interval(low=min(near, _LARGEST), high=max(near, -_LARGEST))
    (a, over_a), (b, over_b), (top, bottom) = (x.as_integer_ratio() for x in (a, b, near))
    rest = a * b * bottom - top * over_a * over_b
    return Interval(
        low=near if rest >= 0 else math.nextafter(near, -math.inf),
        high=near if rest <= 0 else math.nextafter(near, math.inf),
    )


def sum_up(values: Iterable[float | int | Fraction]) -> float:
    """The exact rational sum, rounded up once; infinite terms give infinity."""
    total = Fraction(0)
    for value in values:
        if isinstance(value, float) and math.isinf(value):
            return value
        total += Fraction(value)
    return up(total)

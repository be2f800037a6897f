"""Parameters as exact rationals: what the caller typed, to the last digit."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

from tacit.errors import InvalidParameter
from tacit.exact.checks import MOST, is_number, plain

__all__ = ["Exact", "exact_parameter"]

Exact: TypeAlias = int | float | Fraction

# Parameters that a float can hold, and whose digits Python prints.
LEAST, MOST_BITS = Fraction(1, 1 << 1022), 8192
SHORT = 1000


def exact_parameter(name: str, value: object, *, positive: bool = True, any_size: bool = False) -> Fraction:
    """The exact rational that the caller typed; finite, and positive where asked.

    What is declared must be of ordinary size. `any_size` is for what follows from data: there no size is refused.
    """
    if type(value) is Fraction or type(value) is int:
        # Short ones are of ordinary size, and need no comparison of fractions.
        above, below = value.numerator, value.denominator
        if (above > 0 or not positive) and above.bit_length() <= SHORT and below.bit_length() <= SHORT:
            return value if type(value) is Fraction else Fraction(value)
    must = "be a finite number above 0" if positive else "be a finite number"
    if not is_number(value):
        raise InvalidParameter(parameter=name, value=value, must=must, hint="give an int, float or Fraction")
    number = plain(value)
    if isinstance(number, float) and not math.isfinite(number):
        raise InvalidParameter(parameter=name, value=value, must=must)
    if positive and number <= 0:
        raise InvalidParameter(parameter=name, value=value, must=must)
    exact = Fraction(number)
    long = max(exact.numerator.bit_length(), exact.denominator.bit_length()) > MOST_BITS
    if not any_size and (long or (exact and not LEAST <= abs(exact) <= MOST)):
        raise InvalidParameter(
            parameter=name, value=value, must="be of ordinary size: between 2^-1022 and 2^1023, if not 0",
            hint="rescale the statistic",
        )  # fmt: skip
    return exact

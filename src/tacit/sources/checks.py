"""Checks of what is declared: each returns a plain value or raises a typed error."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction
from typing import Any

from tacit.errors import InvalidParameter

__all__ = ["bounds_pair", "day", "finite", "grid_spacing_of", "inside", "refuse", "whole"]

DEFAULT_LEVELS = 20


def refuse(parameter: str, value: object, must: str, hint: str) -> None:
    """Says what a declaration must be."""
    raise InvalidParameter(parameter=parameter, value=value, must=must, hint=hint)


def finite(name: str, value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise InvalidParameter(parameter=name, value=value, must="be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidParameter(
            parameter=name, value=value, must="be finite", hint="declare the range that matters"
        )
    return number


def whole(name: str, value: object) -> None:
    """A whole number, or an error."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidParameter(parameter=name, value=value, must="be a whole number")


def bounds_pair(low: Any, high: Any, *, integers: bool = False) -> tuple[float | None, float | None]:
    """Both bounds, low below high, or neither."""
    if low is None and high is None:
        return None, None
    for name, value in (("low", low), ("high", high)):
        if value is None:
            refuse(name, value, "be given together with the other bound", "declare number(low, high)")
        if integers:
            whole(name, value)
    a, b = finite("low", low), finite("high", high)
    if not a < b:
        refuse("bounds", (low, high), "have low below high", "are they reversed?")
    return a, b


def inside(name: str, value: Any, low: Any, high: Any) -> Any:
    """A value between the bounds."""
    if isinstance(value, int | float):
        finite(name, value)
    if not low <= value <= high:
        refuse(name, value, "lie between low and high", "a missing value counts as this one")
    return value


def day(name: str, value: object) -> datetime.date:
    """A date, or ISO text of one."""
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(str(value))
    except ValueError:
        raise InvalidParameter(
            parameter=name, value=value, must="be a date", hint='for example "2020-01-31"'
        ) from None


def grid_spacing_of(given: Fraction | None, low: float, high: float) -> Fraction:
    """A power of two; by default the largest one with at least 2^20 steps between the bounds."""
    span = Fraction(high) - Fraction(low)
    if given is None:
        target = span / (1 << DEFAULT_LEVELS)
        exponent = target.numerator.bit_length() - target.denominator.bit_length()
        power = Fraction(2) ** exponent
        given = power if power <= target else power / 2
    if type(given) is not Fraction:
        refuse("spacing", type(given).__name__, "be a Fraction", "or declare number(low, high, spacing=0.5)")
    numerator, denominator = given.numerator, given.denominator
    if given <= 0 or numerator & (numerator - 1) or denominator & (denominator - 1):
        refuse("spacing", str(given), "be a power of two", "for example 1, 0.5 or 2**-10")
    if not Fraction(1, 1 << 900) <= given <= 1 << 900:
        refuse("bounds", (low, high), "be of ordinary size", "rescale the column")
    return given

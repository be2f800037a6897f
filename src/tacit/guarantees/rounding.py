"""Directed rounding: exact inside, rounded once at the edge, against ourselves.

`upper(f)` evaluates a formula in ball arithmetic (python-flint) with growing precision until the float
just above its value is known, so that the result is the *smallest* float that is not below the exact
value. Monotone formulas therefore stay monotone after rounding, and epsilons of 1e-12 and of 1e3 are
as right as those around 1. A float that comes in is taken as the exact binary number that it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from tacit.errors import NotCertified

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Interval", "Number", "ball", "down", "lower", "sum_up", "up", "upper"]

Number: TypeAlias = "int | float | Fraction"

_PRECISIONS = (64, 128, 256, 512, 1024, 2048)


@dataclass(frozen=True, slots=True)
class Interval:
    """A certified enclosure: the exact value lies in [low, high]."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise NotCertified(
                what="an interval", reason=f"its ends are out of order: {self.low}, {self.high}"
            )

    @property
    def width(self) -> float:
        """How far apart the two ends are."""
        return self.high - self.low if self.high > self.low else 0.0

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def ball(value: Number | arb) -> arb:
    """The exact number as a ball (a float is the dyadic rational that it stands for)."""
    from flint import arb, fmpq

    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value)


def _exact(point: arb) -> Fraction | float:
    """The exact rational value of a ball of radius zero; infinities as floats."""
    if not point.is_finite():
        return float(point)
    mantissa, exponent = point.man_exp()
    mantissa, exponent = int(mantissa), int(exponent)
    if exponent > 2000 or (mantissa and exponent + mantissa.bit_length() < -2000):
        # Beyond the floats: keep only which side of them it lies on.
        tiny = Fraction(1, 2**1100)
        return math.copysign(math.inf, mantissa) if exponent > 2000 else (tiny if mantissa > 0 else -tiny)
    return Fraction(mantissa * 2**exponent) if exponent >= 0 else Fraction(mantissa, 2**-exponent)


def up(value: Number | arb) -> float:
    """The smallest float not below the value (of a ball: not below its upper end)."""
    if isinstance(value, float):
        return value
    exact: Fraction | float = Fraction(value) if isinstance(value, int | Fraction) else _exact(value.upper())
    if isinstance(exact, float):
        return exact
    try:
        near = exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.nextafter(math.inf, 0)
    return math.nextafter(near, math.inf) if Fraction(near) < exact else near


def down(value: Number | arb) -> float:
    """The largest float not above the value (of a ball: not above its lower end)."""
    return -up(-value)


def upper(formula: Callable[[], arb]) -> float:
    """The smallest float not below the formula's exact value, or a safe float above it."""
    return _settle(formula, up, lambda b: up(b.lower()))


def lower(formula: Callable[[], arb]) -> float:
    """The largest float not above the formula's exact value, or a safe float below it."""
    return _settle(formula, down, lambda b: down(b.upper()))


def _settle(formula: Callable[[], arb], safe: Callable[[arb], float], other: Callable[[arb], float]) -> float:
    """Raise the precision until both ends of the ball round to one float; else return the safe end."""
    from flint import ctx

    best = math.nan
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            value = formula()
            if not value.is_finite():
                continue
            best = safe(value)
            if best == other(value):
                return best
    if math.isnan(best):
        raise NotCertified(what="a formula", reason="ball arithmetic gave no finite enclosure")
    return best


def sum_up(values: Iterable[Number]) -> float:
    """The exact sum, rounded up once; infinity if any term is infinite."""
    terms = list(values)
    if any(isinstance(v, float) and math.isinf(v) for v in terms):
        return math.inf
    return up(sum((Fraction(v) for v in terms), Fraction(0)))

"""Closed formulas in ball arithmetic, rounded once and against ourselves.

`upper(f)` evaluates a formula (python-flint) with growing precision until the float just above its value is
known, so that the result is the *smallest* float that is not below the exact value. Monotone formulas
therefore stay monotone after rounding, and epsilons of 1e-12 and of 1e3 are as right as those around 1.
A float that comes in is taken as the exact binary number that it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from tacit.errors import NotCertified
from tacit.guarantees.rounding import down, up

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Number", "ball", "lower", "upper"]

Number: TypeAlias = "int | float | Fraction"

_PRECISIONS = (64, 128, 256, 512, 1024, 2048)


def ball(value: Number) -> arb:
    """The exact number as a ball (a float is the dyadic rational that it stands for)."""
    import flint

    if not isinstance(value, float) and isinstance(value, Fraction):
        return flint.arb(flint.fmpq(value.numerator, value.denominator))
    return flint.arb(value)


def upper(formula: Callable[[], arb]) -> float:
    """The smallest float not below the formula's exact value, or a safe float above it."""
    return _settle(formula, up, lambda b: up(b.lower()))


def lower(formula: Callable[[], arb]) -> float:
    """The largest float not above the formula's exact value, or a safe float below it."""
    return _settle(formula, down, lambda b: down(b.upper()))


def _settle(formula: Callable[[], arb], safe: Callable[[arb], float], other: Callable[[arb], float]) -> float:
    """Raise the precision until both ends of the ball round to one float; else return the safe end."""
    import flint

    best = math.nan
    for precision in _PRECISIONS:
        with flint.ctx.workprec(precision):
            value = formula()
            if not value.is_finite():
                continue
            best = safe(value)
            if best == other(value):
                return best
    if math.isnan(best):
        raise NotCertified(what="a formula", reason="ball arithmetic gave no finite enclosure")
    return best

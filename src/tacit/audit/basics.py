"""What all of these files speak of: curves, exact numbers, and what is not known here."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Curve", "Unconfirmed", "exact"]

Curve: TypeAlias = "Callable[[arb], arb]"
"""x -> sup_S P(S) - e^x Q(S)."""


class Unconfirmed(Exception):
    """This program has no formula for what is stated."""


def exact(value: int | float | str | Fraction) -> arb:
    """A ball around a number that is given exactly."""
    from flint import arb, fmpq

    given = Fraction(value)
    return arb(fmpq(given.numerator, given.denominator))

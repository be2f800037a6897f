"""From a real number that is known as a ball to the grid."""

from __future__ import annotations

from fractions import Fraction

import flint

from tacit.errors import NotCertified
from tacit.exact.balls import Ball, ball, precision

__all__ = ["rounded"]


def rounded(value: Ball, step: Fraction, bits: int = 512) -> int:
    """floor(value / step + 1/2), where the ball leaves no doubt."""
    with precision(bits):
        floor = (value / ball(step) + flint.arb("0.5")).floor().unique_fmpz()
    if floor is None:
        raise NotCertified(what="the rounding of a path", reason=f"it is still open at {bits} bits")
    return int(floor)

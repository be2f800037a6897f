"""The least parameter that meets a target, where the answer is checked at the point that is returned."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tacit.errors import NotCertified

__all__ = ["greatest", "least"]

RELATIVE = 1e-5
DOUBLINGS = 200


def least(meets: Callable[[Fraction], bool], start: Fraction, guess: float | None = None) -> Fraction:
    """A parameter that meets a target, within one part in 10^5 of one that does not.

    Parameters are floats taken exactly. The condition need not be monotone for the answer to be valid: it was
    evaluated at the parameter that is returned. A good `guess` saves most of the evaluations, a bad one costs some.
    """
    if guess is not None and math.isfinite(guess) and guess > 0:
        near = _around(meets, guess)
        if near is not None:
            return near
    high = float(start)
    for _ in range(DOUBLINGS):
        if meets(Fraction(high)):
            break
        high *= 2.0
    else:
        raise NotCertified(what="a calibration", reason="no parameter in reach meets the target")
    low = high / 2.0
    for _ in range(DOUBLINGS):
        if not meets(Fraction(low)):
            break
        high, low = low, low / 2.0
    return _between(meets, low, high)


def _around(meets: Callable[[Fraction], bool], guess: float) -> Fraction | None:
    """The answer, if it lies within a thousandth of the guess: in steps that grow from where it is expected."""
    step, high, low = RELATIVE / 2, None, None
    while step < 1e-3 and (high is None or low is None):
        if high is None and meets(Fraction(guess * (1 + step))):
            high = guess * (1 + step)
        if low is None and not meets(Fraction(guess * (1 - step))):
            low = guess * (1 - step)
        step *= 8
    return None if high is None or low is None else _between(meets, low, high)


def _between(meets: Callable[[Fraction], bool], low: float, high: float) -> Fraction:
    while high - low > RELATIVE * high:
        middle = (low + high) / 2.0
        if meets(Fraction(middle)):
            high = middle
        else:
            low = middle
    return Fraction(high)


def greatest(meets: Callable[[Fraction], bool], limit: Fraction) -> Fraction:
    """The greatest parameter in (0, limit] that meets a target, within one part in 10^5; checked."""
    if meets(limit):
        return limit
    return 1 / least(lambda inverse: meets(1 / inverse), 1 / limit)

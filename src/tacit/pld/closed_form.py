"""One pair: its curve in ball arithmetic, inverted to adjacent floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

from tacit.exact.rounding import Interval
from tacit.pld.pairs.base import Pair

__all__ = ["ClosedForm"]


class ClosedForm:
    """The curve of one pair."""

    approximates: ClassVar[bool] = False

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    def delta(self, epsilon: float, tolerance: float) -> Interval:
        """Enclosure of H_epsilon."""
        return self.pair.hockey_stick(epsilon)

    def epsilon(self, delta: float, tolerance: float, known: float = 0.0) -> Interval:
        """The adjacent floats between which the curve crosses delta."""
        return _invert(self.pair, delta)


@lru_cache(maxsize=4096)
def _invert(pair: Pair, delta: float) -> Interval:
    """The adjacent floats between which the closed-form curve crosses delta."""
    if pair.measured:
        high = _crossed(lambda e: pair.hockey_stick(e).high, delta, pair.starts_near(delta))
        below = (high * (1 - 10.0**-k) for k in range(8, 0, -1)) if pair.exact and math.isfinite(high) else ()
        low = next((e for e in below if pair.hockey_stick(e).low > delta), 0.0)
        return Interval(low=low, high=high)

    def search(over: Callable[[float], bool]) -> tuple[float, float]:
        """(a, b) next to each other with over(a) and not over(b); (0, 0) if over(0) is false."""
        if not over(0.0):
            return 0.0, 0.0
        low, high = 0.0, 1.0
        while over(high):
            low, high = high, high * 2
            if math.isinf(high):
                return low, high
        while True:
            middle = low + (high - low) / 2 if low else high / 2
            if not low < middle < high or (low and high - low <= 4e-16 * high):
                return low, high
            if over(middle):
                low = middle
            else:
                high = middle

    top = search(lambda e: pair.hockey_stick(e).high > delta)[1]
    bottom = search(lambda e: pair.hockey_stick(e).low > delta)[0] if pair.exact else 0.0
    return Interval(low=min(bottom, top), high=top)


def _crossed(upper: Callable[[float], float], delta: float, near: float | None = None) -> float:
    """A point where a curve that is dear to evaluate is at most delta, within 1e-9 of the last where it is not.

    `near` is where to look first, within a thousandth. False position on ln(upper / delta), which is nearly a parabola,
    with Illinois halving of the end that stays.
    """

    def height(epsilon: float) -> float:
        """Above 0 if and only if the curve is above delta: logarithms that agree do not decide."""
        value = upper(epsilon)
        if value > delta:
            return max(math.log(value) - math.log(delta), 1e-300)
        return min(math.log(value) - math.log(delta), 0.0) if value > 0 else -math.inf

    low, high = (0.0, 1.0) if near is None else (near * 0.999, near * 1.001)
    above = height(low)
    if above <= 0 < low:
        low, high, above = 0.0, low, height(0.0)
    if above <= 0:
        return low
    while (under := height(high)) > 0:
        low, above, high = high, under, high * 2
        if math.isinf(high):
            return high
    stayed = 0
    while high - low > 1e-9 * high:
        share = above / (above - under) if math.isfinite(under) and abs(stayed) < 4 else 0.5
        width = high - low
        # Almost half the wanted width away from both ends, so that the other end follows a guess that is right.
        middle = min(max(low + share * width, low + 4e-10 * high), high - 4e-10 * high)
        found = height(middle)
        if found > 0:
            low, above = middle, found
            stayed = max(stayed, 0) + 1
            under = under / 2 if stayed > 1 else under
        else:
            high, under = middle, found
            stayed = min(stayed, 0) - 1
            above = above / 2 if stayed < -1 else above
    return high

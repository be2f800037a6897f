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

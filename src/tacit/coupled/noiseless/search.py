"""The smallest safe threshold, and the smallest epsilon of a threshold: near it with floats, then certified with balls.

Floats only say where to look. A threshold is returned if the certified delta at it is at most the one asked for and
the certified delta one below is above it, so that it is the smallest; an epsilon if the certified delta at it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from tacit.coupled.noiseless.thresholds import Binomial, Poisson, delta_of_cell, population_delta
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.balls import Ball, ball, precision
from tacit.exact.rounding import Interval, down, up

__all__ = ["MOST_THRESHOLD", "cell_delta", "sampled_delta", "smallest_epsilon", "smallest_threshold"]

MOST_THRESHOLD = 10**7
_BITS = 128
_MOST_EPSILON = 100.0
_STEPS = 1e-11

Delta = Callable[[int, float], Interval]


def cell_delta(sampling: Poisson | Binomial) -> Delta:
    """(threshold, epsilon) -> the exact delta against the histogram without the row, between two floats."""
    return _enclosed(lambda k, factor: delta_of_cell(sampling, k, factor))


def sampled_delta(sampling: Binomial) -> Delta:
    """(threshold, epsilon) -> the exact delta of "sample, then truncate" as differential privacy."""
    return _enclosed(lambda k, factor: population_delta(sampling, k, factor))


def _enclosed(formula: Callable[[int, Ball], Ball]) -> Delta:
    @lru_cache(maxsize=256)
    def delta(threshold: int, epsilon: float) -> Interval:
        # e^epsilon times the threshold is to be known to less than one.
        with precision(_BITS + 2 * threshold.bit_length() + math.ceil(3 * epsilon)):
            value = formula(threshold, ball(Fraction(epsilon)).exp())
            if not value.is_finite():
                raise NotCertified(what="delta of a threshold", reason="its ball is not finite")
            return Interval(low=max(down(value), 0.0), high=min(up(value), 1.0))

    return delta


def smallest_threshold(delta_at: Delta, *, epsilon: float, delta: float) -> int:
    """The smallest k with delta_k(epsilon) <= delta: delta_k falls in k."""
    low, high = 1, max(2, _near(epsilon, delta))
    while high > MOST_THRESHOLD or delta_at(high, epsilon).high > delta:
        if high >= MOST_THRESHOLD:
            raise InvalidParameter(
                parameter="epsilon",
                value=epsilon,
                must=f"be larger, or delta be: the threshold would be above {MOST_THRESHOLD}",
            )
        low, high = high, min(high * 2, MOST_THRESHOLD)
    # Regula falsi on ln delta, which is nearly linear in k: a few evaluations where halving takes thirty.
    while high - low > 1:
        middle = _between(delta_at, low, high, epsilon, delta)
        if delta_at(middle, epsilon).high <= delta:
            high = middle
        else:
            low = middle
    return high


def _near(epsilon: float, delta: float) -> int:
    """Where to start: normal noise of variance k around two counts that differ by one. Nothing rests on it."""

    def failing(k: float) -> float:
        near, far = (0.5 / math.sqrt(k) - epsilon * math.sqrt(k), 0.5 / math.sqrt(k) + epsilon * math.sqrt(k))
        return 0.5 * (math.erfc(-near / math.sqrt(2)) - math.exp(epsilon) * math.erfc(far / math.sqrt(2)))

    k = 2.0
    while k <= MOST_THRESHOLD and epsilon < 30 and failing(k) > delta:
        k *= 1.25
    return round(k)


def _between(delta_at: Delta, low: int, high: int, epsilon: float, delta: float) -> int:
    """Where a straight line through both ends of ln delta meets it, kept off the ends."""
    y0, y1 = (math.log(max(delta_at(k, epsilon).high, 5e-324)) for k in (low, high))
    share = (y0 - math.log(delta)) / (y0 - y1) if y0 > y1 else 0.5
    share = min(max(share, 0.02), 0.98)
    return min(max(low + round(share * (high - low)), low + 1), high - 1)


def smallest_epsilon(
    delta_at: Callable[[float], Interval], *, delta: float, steps: float = _STEPS
) -> float | None:
    """The smallest epsilon, but for a part `steps`, with delta(epsilon) <= delta; None if 100 is not enough."""
    if delta_at(0.0).high <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high).high > delta:
        if high >= _MOST_EPSILON:
            return None
        low, high = high, min(2 * high, _MOST_EPSILON)
    while high - low > steps * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle).high <= delta else (middle, high)
    return high

"""How far a shift of a sum can be told: the smallest epsilon for a delta, from above, over all values of one row.

The real world is S + x, the ideal one S + U with U drawn by the simulator: S is the sum of the other rows, x the
protected row. With low <= p <= high,

    H_E(S + x || S + U)  <=  sum over s of max(0, high(s - x) - E low_U(s)) + outside,

a convex, falling function of E = e^epsilon that is solved by Newton's method from the left and then checked once more
on the safe side. If the law of S is log-concave the worst x are the ends of the support (theorem `shifted-sums`);
otherwise all are looked at, many at a time: the hull of a run of shifts bounds each of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.coupled.noiseless.lattice import SumLaw
from tacit.errors import InvalidParameter
from tacit.exact.arrays import UNIT, Floats

__all__ = ["Found", "Shifted", "excess", "factor_for", "log_up", "worst"]

Offsets = Mapping[int, float]
"""Where a simulator puts the protected row: steps above the smallest value, with exact (dyadic) probabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The smallest factor e^epsilon (infinite if none is enough) and the delta that every factor leaves."""

    factor: float
    floor: float

    @property
    def epsilon(self) -> float:
        """ln factor, rounded up."""
        return log_up(self.factor)

    def or_worse(self, other: Found) -> Found:
        """The larger of both, in both respects."""
        return Found(factor=max(self.factor, other.factor), floor=max(self.floor, other.floor))


def log_up(factor: float) -> float:
    """A float that is not below ln(factor), for factor >= 1."""
    if factor <= 1.0:
        return 0.0
    if math.isinf(factor):
        return math.inf
    near = factor - 1.0
    value = math.log1p(near) if near < 0.5 else math.log(factor)
    return value * (1 + 8 * UNIT) + 8 * UNIT * min(near, 1.0)


def _sum_up(values: Floats) -> float:
    """A float that is not below the sum of numbers of at least 0."""
    return float(np.sum(values)) * (1 + UNIT * (len(values) + 8)) + 5e-324


def excess(above: Floats, below: Floats, factor: float) -> float:
    """A float that is not below the sum of max(0, above - factor below)."""
    gap = above - (factor * (1 - 4 * UNIT)) * below
    return _sum_up(np.maximum(gap, 0.0)) * (1 + 4 * UNIT)


def factor_for(above: Floats, below: Floats, delta: float, start: float = 1.0) -> Found:
    """The smallest factor of at least `start` whose excess is at most delta; with what no factor takes away."""
    floor = _sum_up(above[below <= 0.0])
    if excess(above, below, start) <= delta:
        return Found(factor=start, floor=floor)
    if floor > delta:
        return Found(factor=math.inf, floor=floor)
    factor = start
    for _ in range(200):
        # A point that is not above at this factor is not above at any larger one.
        inside = above > (factor * (1 - 8 * UNIT)) * below
        above, below = above[inside], below[inside]
        a, b = float(np.sum(above)), float(np.sum(below))
        if b <= 0.0:
            break
        following = (a - delta) / b
        if not following > factor * (1 + 1e-13):
            break
        factor = following
    for _ in range(400):
        if excess(above, below, factor) <= delta:
            return Found(factor=factor, floor=floor)
        factor += (factor - 1.0) * 1e-9 + 1e-13
    return Found(factor=math.inf, floor=floor)


class Shifted:
    """The worlds S + x for x from `first` to `last`, and S + U, on common points; S is one law, or one of several.

    Where S is one of several, with weights, the divergence is at most the weighted sum of theirs (joint convexity);
    the weights are upper ends. `certain` is the probability of what hides nothing at all, and `slack` how far each
    world may be from the law that was written down.
    """

    def __init__(
        self,
        laws: Sequence[tuple[float, SumLaw]],
        first: int,
        last: int,
        simulator: Offsets,
        *,
        certain: float = 0.0,
        slack: float = 0.0,
    ) -> None:
        if not simulator or sum(simulator.values()) != 1.0 or any(w <= 0 for w in simulator.values()):
            raise InvalidParameter(
                parameter="simulator", value="another law", must="be a law of where the row is put"
            )
        self.laws = laws
        self.lowest = min(first, *simulator)
        self.extra = max(last, *simulator) - self.lowest
        self.certain = certain
        self.rest = slack + sum(weight * law.outside for weight, law in laws) * (1 + 1e-9)
        self.ideal = [
            sum((w * self._at(u, upper=side) for u, w in simulator.items()), np.zeros(1))
            for side in (False, True)
        ]
        self.ideal[0] = self.ideal[0] * (1 - 4 * UNIT * len(simulator))
        self.ideal[1] = self.ideal[1] * (1 + 4 * UNIT * len(simulator))

    def _at(self, x: int, *, upper: bool) -> Floats:
        """One end of the law of S + x, times the weight, law after law."""
        rows = []
        for weight, law in self.laws:
            row = law.at(law.start + self.lowest - x, len(law.low) + self.extra, upper=upper)
            rows.append(row if weight == 1.0 else row * weight)
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    def _hull(self, first: int, last: int) -> tuple[Floats, Floats]:
        """The smallest low and the largest high of S + x over x from first to last."""
        low, high = self._at(first, upper=False), self._at(first, upper=True)
        if last == first:
            return low, high
        from scipy.ndimage import maximum_filter1d, minimum_filter1d

        n = last - first + 1
        # A window that ends at each point: shifts move the law to the right.
        origin = (n - 1) // 2 if n % 2 else n // 2 - 1
        lows, highs, at = [], [], 0
        for _, law in self.laws:
            place = slice(at, at + len(law.low) + self.extra)
            lows.append(minimum_filter1d(low[place], n, mode="constant", cval=0.0, origin=origin))
            highs.append(maximum_filter1d(high[place], n, mode="constant", cval=0.0, origin=origin))
            at = place.stop
        return np.concatenate(lows), np.concatenate(highs)

    def found(self, first: int, last: int, delta: float, start: float = 1.0) -> Found:
        """The factor that is enough for all shifts from first to last, in both directions, if one is."""
        low, high = self._hull(first, last)
        answer = Found(factor=start, floor=0.0)
        for above, below in ((high, self.ideal[0]), (self.ideal[1], low)):
            answer = answer.or_worse(self._solved(above, below, delta, start))
        return answer

    def _solved(self, above: Floats, below: Floats, delta: float, start: float) -> Found:
        """Both worlds are off by `rest` at most: the divergence changes by rest (1 + e^epsilon)."""
        spare = self.certain + self.rest * 4.0
        found = factor_for(above, below, delta - spare, start)
        # e^epsilon above 3 is rare: then what is spared grows with it.
        while math.isfinite(found.factor) and self.certain + self.rest * (1 + found.factor) > spare:
            spare = self.certain + self.rest * (2 + 2 * found.factor)
            found = factor_for(above, below, delta - spare, start)
        return Found(factor=found.factor, floor=found.floor + spare)


def worst(shifted: Shifted, places: Sequence[int], delta: float, *, log_concave: bool) -> Found:
    """The factor that is enough for every place of the protected row; the ends come first, mostly the answer."""
    first, last = places[0], places[-1]
    found = shifted.found(first, first, delta)
    found = found.or_worse(
        shifted.found(last, last, delta, found.factor if math.isfinite(found.factor) else 1.0)
    )
    if log_concave or math.isinf(found.factor):
        return found
    allowed = set(places)
    runs = [(first + 1, last - 1)] if last - first > 1 else []
    while runs:
        a, b = runs.pop()
        if not any(x in allowed for x in range(a, b + 1)):
            continue
        here = shifted.found(a, b, delta, found.factor)
        if here.factor <= found.factor:
            continue
        if a == b:
            found = found.or_worse(here)
            if math.isinf(found.factor):
                return found
            continue
        middle = (a + b) // 2
        runs += [(a, middle), (middle + 1, b)]
    return found

"""One gridded composition, read from above and from below.

From below: with Z the true and Z~ = Z M the gridded likelihood ratio, M has mean 1 given Z and is a product of
two-point factors a step apart, so E(zM - T)_+ exceeds (z - T)_+ by a bump around T, which chords of the (convex)
true curve bound: `docs/theory/grid-from-below.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.exact.rounding import Interval
from tacit.pld.fourier import Composed

__all__ = ["CertifiedCurve", "chord", "inverted", "read"]


@dataclass(frozen=True, slots=True, eq=False)
class CertifiedCurve:
    """A composition around one target, with the error accounts that both curves need."""

    composed: Composed
    slack: float
    infinite_high: float
    infinite_low: float
    log_gain: float
    unresolved: float
    spread: float
    """s: the standard deviation that bounds the gridding factor M."""
    deviation: float
    """Square root of the bound on the variance of M."""
    exact: bool

    def _between(self, epsilon: float, end: int) -> float:
        step = self.composed.step
        node = math.floor(epsilon / step)
        share = min(max(math.expm1(epsilon - node * step) / math.expm1(step), 0.0), 1.0)
        left = self.composed.finite_part(node)[end]
        right = self.composed.finite_part(node + 1)[end]
        mixed = left + share * (right - left)
        # Rounding of the interpolation itself, against whichever side is being certified.
        return mixed * (1 + 1e-14) if end == 1 else mixed * (1 - 1e-14)

    def finite_above(self, epsilon: float) -> float:
        """Upper bound on the finite part of the true curve."""
        cut = max(0.0, self.infinite_high - self.infinite_low)
        return min(1.0, self._between(epsilon - self.slack, 1) + cut)

    def above(self, epsilon: float) -> float:
        """Upper bound on the true curve at e^epsilon."""
        return min(1.0, (self._between(epsilon - self.slack, 1) + self.infinite_high) * (1 + 1e-15))

    def below(self, epsilon: float, reach: float) -> float:
        """Lower bound on the true curve at e^epsilon, with chords of `reach` standard deviations."""
        if not self.exact:
            return 0.0
        floor = max(self.infinite_low, -math.expm1(min(epsilon, 0.0)) * (1 - 1e-15), 0.0) + 0.0
        s, c = self.spread, reach
        if s <= 0 or c / s <= 2 or self.log_gain > 0.5:
            return floor
        node = math.floor((epsilon + self.log_gain) / self.composed.step)
        roundoff = self.composed.weigh(self.unresolved, node)
        seen = (self._between(epsilon + self.log_gain, 0) - roundoff) * math.exp(-self.log_gain)
        if seen <= 0:
            return floor
        # All in units of T = e^epsilon: t0 = e^(-cs), t1 = e^(cs) and so on.
        left, right = -math.expm1(-c * s), math.expm1(c * s)
        a0, a1 = self.deviation / 2 / left, self.deviation / 2 / right
        if a0 + a1 >= 0.9:
            return floor
        far = max(c, math.sqrt(2 * (math.log(1e9) - math.log(seen))))
        bump_left, bump_right = _chernoff_call(c, s), _chernoff_put(c, s)
        t00, t000 = math.exp(-far * s), math.exp(-(far + 1) * s)
        rest = bump_left * self.finite_above(epsilon - (far + 1) * s) / (t00 - t000)
        above_left = self.finite_above(epsilon - c * s)
        rest += bump_right * above_left / left
        rest += math.exp(far * s) * _chernoff_call(far, s)
        value = seen - a0 * above_left - a1 * self.finite_above(epsilon + c * s) - rest * (1 + 1e-12)
        return max(floor, value / (1 - a0 - a1) * (1 - 1e-13) + self.infinite_low)


def _chernoff_call(c: float, s: float) -> float:
    """Bound on E(uM - 1)_+ for u = e^(-cs), as E M^r <= e^(r(r-1)s^2/2): (x-1)_+ <= x^r (r-1)^(r-1)/r^r."""
    r = max(0.5 + c / s, 1.0 + 1e-9)
    shape = (r - 1) * math.log(r - 1) - r * math.log(r)
    return math.exp(-r * c * s + r * (r - 1) * s * s / 2 + shape) * (1 + 1e-9)


def _chernoff_put(c: float, s: float) -> float:
    """Bound on E(1 - uM)_+ for u = e^(cs): (1-x)_+ <= x^(-r) r^r/(r+1)^(r+1)."""
    r = max(c / s - 0.5, 1e-9)
    shape = r * math.log(r) - (r + 1) * math.log(r + 1)
    return math.exp(-r * c * s + r * (r + 1) * s * s / 2 + shape) * (1 + 1e-9)


def chord(solved: CertifiedCurve, bottom: int, top: int, delta: float) -> float:
    """Where the chord between two nodes crosses delta: the curve is convex in e^epsilon, hence below it."""
    step = solved.composed.step
    left, right = solved.above(bottom * step), solved.above(top * step)
    if not left > delta >= right:
        return top * step
    share = (left - delta) / (left - right)
    value = bottom * step + math.log1p(share * math.expm1(step))
    return min(value * (1 + 4e-16) + 1e-300 + 1e-15 * abs(value), top * step)


def _reach(solved: CertifiedCurve, epsilon: float) -> float:
    return max((3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0), key=lambda c: solved.below(epsilon, c))


def read(solved: CertifiedCurve, epsilon: float) -> Interval:
    """Enclosure of delta at epsilon."""
    high = solved.above(epsilon)
    low = solved.below(epsilon, _reach(solved, epsilon)) if solved.exact else 0.0
    return Interval(low=min(low, high), high=high)


def inverted(solved: CertifiedCurve, delta: float, guess: float) -> Interval:
    """Enclosure of epsilon at delta, looked for around the guess."""
    composed = solved.composed
    step = composed.step
    bottom, top = composed.base, composed.base + composed.size
    if solved.above(top * step) > delta:
        high = math.inf
    else:
        if solved.above((bottom + 1) * step) <= delta:
            bottom = min(bottom, 0) - 1
        # The guess is good: look around it first, four times as far each time.
        near, jump = math.floor(guess / step), 8
        while top - bottom > 1:
            guided = bottom < near < top and jump < top - bottom
            middle = near if guided else (bottom + top) // 2
            if solved.above(middle * step) <= delta:
                top, near = middle, middle - jump
            else:
                bottom, near = middle, middle + jump
            jump *= 4
        high = chord(solved, bottom, top, delta)
    if high <= 0:
        return Interval(low=0.0, high=0.0)
    if not solved.exact:
        return Interval(low=0.0, high=high)
    if solved.infinite_low > delta:
        return Interval(low=math.inf, high=math.inf)
    start = min(high, guess) if math.isinf(high) else high
    reach = _reach(solved, start - solved.spread)
    width = solved.spread * 0.01 + 1e-15
    while solved.below(start - width, reach) <= delta:
        width *= 2
        if start - width < min(0.0, composed.base * step):
            return Interval(low=0.0, high=high)
    good, bad = start - width, start
    for _ in range(30):
        centre = (good + bad) / 2
        if solved.below(centre, reach) > delta:
            good = centre
        else:
            bad = centre
    return Interval(low=max(0.0, min(good, high)), high=high)

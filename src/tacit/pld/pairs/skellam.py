"""The Skellam pair: the noise that several holders add, from its own probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.errors import NotCertified
from tacit.exact.arrays import UNIT
from tacit.exact.balls import ball, positive_ball, precision, working_precision
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, up
from tacit.exact.skellam import MOST_TERMS, skellam_masses, skellam_reach
from tacit.pld.distributions import AtomicPLD, PrivacyLossDistribution
from tacit.pld.pairs.base import UNBOUNDED, Pair, check_order

__all__ = ["SkellamPair"]

FLOAT_BITS = 1000
"""Masses beyond this are below the float range, and are counted at infinity."""
FAR = 8192
"""Sums for the Rényi divergence of a large order are at most about this long; beyond, it is left at infinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkellamPair(Pair):
    """Skellam noise, Pr[X = x] = e^-v I_x(v), and the same moved by an integer sensitivity s.

    The law is log-concave, so the loss L(x) = ln Pr[x] / Pr[x - s] falls with x, and H = F(m) - e^e F(m - s) with m
    the largest integer whose loss exceeds e. A larger s has a larger curve, since F(m - s) only falls.
    """

    noise_variance: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        ok = 0 < self.noise_variance < math.inf
        require(ok, parameter="noise_variance", value=self.noise_variance, must="be positive and finite")
        ok = isinstance(self.sensitivity, int) and self.sensitivity >= 1
        require(ok, parameter="sensitivity", value=self.sensitivity, must="be a positive integer")

    @property
    def variance(self) -> Fraction:
        """The variance, exactly."""
        return Fraction(self.noise_variance)

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    def _table(self, tail_bits: int) -> tuple[list[Any], list[Any]]:
        return skellam_masses(self.variance, working_precision(), tail_bits)

    def curve(self, t: Any) -> Any:
        # Far out the curve is as small as the tail at the threshold: the table grows with the precision.
        masses, tails = self._table(2 * working_precision())
        s, size = self.sensitivity, len(masses)

        def mass(x: int) -> Any:
            return masses[abs(x)] if abs(x) < size else ball(0).union(tails[-1])

        def below(m: int) -> Any:
            """Pr[X <= m]."""
            if m < 0:
                return tails[-m] if -m < len(tails) else ball(0).union(tails[-1])
            return 1 - (tails[m + 1] if m + 1 < len(tails) else ball(0).union(tails[-1]))

        low, high = -size, size + s
        while high - low > 1:
            middle = (low + high) // 2
            inside = mass(middle).mid() > t.mid() * mass(middle - s).mid()
            low, high = (middle, high) if inside else (low, middle)
        best = positive_ball(1 - t)
        for m in (low - 1, low, low + 1):
            best = best.max(below(m) - t * below(m - s))
        if -size + s + 1 < low < size - 1:
            return best
        # Next to the ends of the table the threshold is not seen; what either tail holds bounds what it could add.
        return best.union(best + tails[max(size - s - 2, 0)])

    def pld(self) -> PrivacyLossDistribution:
        s, reach = self.sensitivity, skellam_reach(self.variance, FLOAT_BITS)
        if reach + s > MOST_TERMS:
            raise NotCertified(
                what="the privacy loss of Skellam noise",
                reason=f"its variance of {self.noise_variance:g} needs more than a million atoms",
                hint="use a coarser grid",
            )
        half = [float(m.mid()) for m in skellam_masses(self.variance, 96, FLOAT_BITS)[0]]
        reach = len(half) - 1
        law = np.array([0.0] * s + half[:0:-1] + half + [0.0] * s)
        # Losses ascend as x falls: P at x, Q at x - s.
        p, q = law[s:][::-1], law[: law.size - s][::-1]
        keep = (p > 1e-290) & (q > 1e-290)
        losses = np.log(p[keep] / q[keep])
        rest, reverse = 1.001 * float(p[~keep].sum()) + 1e-280, 1.001 * float(q[~keep].sum()) + 1e-280
        return AtomicPLD.single(
            losses=np.maximum.accumulate(losses),
            p=p[keep],
            q=q[keep],
            infinite=Interval(low=0.0, high=min(1.0, rest)),
            reverse_infinite=Interval(low=0.0, high=min(1.0, reverse)),
            error=16 * UNIT,
            slack=16 * UNIT * (1 + float(np.max(np.abs(losses), initial=0.0))),
        )

    def renyi(self, order: float) -> float:
        """ln(sum P^a Q^(1-a)) / (a-1), summed; the terms that are left out are below a geometric series.

        With r_k = I_{k+1}/I_k the recurrence gives 1/r_k = 2(k+1)/v + r_{k+1}, so r_k <= v/(2(k+1)) and
        r_k/r_{k+s} <= c = (k+s+1)/(k+1) + v^2/(4(k+1)(k+s+2)); towards large losses a term is at most r_k c^(a-1)
        of the one before, and towards small ones P <= Q.
        """
        check_order(order)
        v, s = self.variance, self.sensitivity
        wide = 8 * float(v)
        start = max(wide, 8 * s * order) + 64
        # Orders far above what this variance is used at are left out: sampling asks for thousands of them.
        if order == math.inf or not start <= MOST_TERMS / 8 or 8 * s * order > max(wide, FAR):
            return math.inf
        bits = 64
        while skellam_reach(v, bits) < start + s + 8:
            bits *= 2
        logs, off, tails = _logarithms(v, bits)
        size = logs.size - s - 1
        x = np.arange(-size, size)
        p, q = logs[np.abs(x)], logs[np.abs(x - s)]
        terms = p + (order - 1) * (p - q)
        most = float(terms.max())
        # Every logarithm is off by `off` at most, and a float by half a unit in its last place at each of five steps.
        widest = float(np.abs(logs).max())
        off = (2 * order + 1) * off + 16 * UNIT * (order + 1) * (widest + 1) + (x.size + 32) * UNIT
        inside = most + math.log(float(np.exp(terms - most).sum())) + off
        with precision(64):
            c = ball(Fraction(size + s + 1, size + 1) + v * v / (4 * (size + 1) * (size + s + 2)))
            fall = ball(v / (2 * (size + 1))) * ((ball(order) - 1) * c.log()).exp()
            if not fall < 1:
                return math.inf
            last = (ball(float(terms[0])) + ball(off)).exp() * fall / (1 - fall)
            whole = ((ball(0).union(last) + tails[size]) / ball(inside).exp()).log1p() + ball(inside)
            return max(up((whole / (ball(order) - 1)).upper()), 0.0)


@lru_cache(maxsize=16)
def _logarithms(v: Fraction, bits: int) -> tuple[Any, float, list[Any]]:
    """ln Pr[X = k] as floats, how far they may be off, and the balls of Pr[X >= k]."""
    with precision(64):
        masses, tails = skellam_masses(v, 128, bits)
        logs = [mass.log() for mass in masses]
        middles = np.array([float(one.mid()) for one in logs])
        off = up(max(float(one.rad()) for one in logs)) + UNIT * (float(np.abs(middles).max()) + 1)
    return middles, 1.001 * off, tails

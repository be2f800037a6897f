"""Mixtures of Gaussians against one Gaussian: what several partly overlapping contributions look like."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.exact.arrays import UNIT, Floats
from tacit.exact.balls import ball, bracket, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval
from tacit.pld.distributions import (
    PrivacyLossDistribution,
    TailPLD,
    Tails,
)
from tacit.pld.normal import float_normal_cdf, normal_cdf
from tacit.pld.pairs.base import UNBOUNDED, Pair
from tacit.pld.roots import rising_root

__all__ = ["MixturePair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixturePair(Pair):
    """A mixture of Gaussians against one: sum_i weight_i N(shift_i, 1) against N(0, 1), shifts >= 0.

    The likelihood ratio rises with the output, so that the best test is a threshold x on it.
    """

    shifts: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        ok = len(self.shifts) == len(self.weights) > 0
        require(ok, parameter="weights", value=self.weights, must="match the shifts, at least one")
        require(
            all(0 <= s < math.inf for s in self.shifts) and max(self.shifts) > 0,
            parameter="shifts",
            value=self.shifts,
            must="be finite, non-negative and not all zero",
        )
        total = abs(sum((Fraction(w) for w in self.weights), Fraction(0)) - 1)
        require(
            all(w >= 0 for w in self.weights) and total <= Fraction(1, 10**12),
            parameter="weights",
            value=self.weights,
            must="be non-negative and sum to 1",
        )
        positive = any(w > 0 and s > 0 for w, s in zip(self.weights, self.shifts, strict=True))
        require(positive, parameter="weights", value=self.weights, must="put mass on a positive shift")

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    @property
    def smallest_loss(self) -> Interval:
        still = [w for w, s in zip(self._weights(), self.shifts, strict=True) if s == 0]
        if not still:
            return Interval(low=-math.inf, high=-math.inf)
        return bracket(lambda: ball(sum(still, Fraction(0))).log(), what="a loss")

    def _weights(self) -> list[Fraction]:
        exact = [Fraction(w) for w in self.weights]
        total = sum(exact)
        return [w / total for w in exact]

    def _loss(self, x: Any) -> Any:
        ratio = ball(0)
        for w, s in zip(self._weights(), self.shifts, strict=True):
            ratio += ball(w) * (ball(s) * x - ball(s) ** 2 / 2).exp()
        return ratio

    def curve(self, t: Any) -> Any:
        """sup over thresholds x of P(X > x) - t Q(X > x): any x bounds below, the root above too."""
        still = sum((w for w, s in zip(self._weights(), self.shifts, strict=True) if s == 0), Fraction(0))
        if not bool(t > ball(still)):
            return 1 - t if bool(t <= ball(still)) else positive_ball(1 - t)
        ends = rising_root(self._loss, t)
        if ends is None:
            return positive_ball(1 - t)
        low, high = ends
        # The gain is flat at the root: over [low, high] it varies by at most (the ratio's change) Q(X in it).
        middle = ((low + high) / 2).mid()
        value = -t * normal_cdf(-middle)
        for w, s in zip(self._weights(), self.shifts, strict=True):
            value += ball(w) * normal_cdf(ball(s) - middle)
        excess = (self._loss(high) - self._loss(low)) * (normal_cdf(high) - normal_cdf(low))
        return positive_ball(value.union(value + positive_ball(excess)))

    def pld(self) -> PrivacyLossDistribution:
        shifts, weights = np.array(self.shifts), np.array([float(w) for w in self._weights()])

        def loss_at(x: Floats) -> Floats:
            terms = shifts[:, None] * x - shifts[:, None] ** 2 / 2
            peak = np.max(terms, axis=0, keepdims=True)
            with np.errstate(divide="ignore"):
                total = np.sum(weights[:, None] * np.exp(terms - peak), axis=0, keepdims=True)
                return np.asarray(peak + np.log(total))

        def tails(losses: Floats) -> Tails:
            low = np.full_like(losses, -(2.0**12))
            high = np.full_like(losses, 2.0**12)
            for _ in range(80):
                middle = (low + high) / 2
                up_here = loss_at(middle) < losses
                low, high = np.where(up_here, middle, low), np.where(up_here, high, middle)
            x = (low + high) / 2
            reached = np.abs(loss_at(x) - losses)
            inside = np.abs(x) < 2.0**11
            reach = float(np.max(np.abs(x[inside]), initial=0.0))
            spread = np.full_like(x, 1.0 + reach)
            slack = float(np.max(reached[inside], initial=0.0)) + 64 * UNIT * (
                1 + reach * float(shifts.max())
            )
            q = [float_normal_cdf(-x, spread), float_normal_cdf(x, spread)]
            above = [float_normal_cdf(s - x, spread) for s in shifts]
            below = [float_normal_cdf(x - s, spread) for s in shifts]
            values = np.array(
                [
                    sum(w * a[0] for w, a in zip(weights, above, strict=True)),
                    sum(w * b[0] for w, b in zip(weights, below, strict=True)),
                    q[0][0],
                    q[1][0],
                ]
            )
            errors = np.array(
                [
                    sum(w * a[1] for w, a in zip(weights, above, strict=True)),
                    sum(w * b[1] for w, b in zip(weights, below, strict=True)),
                    q[0][1],
                    q[1][1],
                ]
            )
            return Tails(values=values, errors=errors + 8 * UNIT * values, slack=slack)

        still = float(weights[shifts == 0].sum())
        return TailPLD(tails=tails, bounds=(math.log(still) if still > 0 else -np.inf, np.inf))

    def renyi(self, order: float) -> float:
        from tacit.pld.renyi import mixture_renyi

        return mixture_renyi(self, order)

    def reverse_renyi(self, order: float) -> float:
        from tacit.pld.renyi import mixture_renyi

        return mixture_renyi(self, order, reverse=True)

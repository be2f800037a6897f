"""Poisson-sampled Gaussian noise when a record is exchanged: one mixture of normals against its mirror image."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from tacit.exact.arrays import UNIT, Floats, column
from tacit.exact.balls import ball, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, up
from tacit.pld.distributions import (
    PrivacyLossDistribution,
    TailPLD,
    Tails,
)
from tacit.pld.normal import float_normal_cdf, normal_cdf
from tacit.pld.pairs.base import MOST_RATE, UNBOUNDED, Pair, check_order
from tacit.pld.quadrature_rules import (
    QuadratureRange,
    Rule,
    replaced_rule,
)
from tacit.pld.roots import rising_root

__all__ = ["SampledReplacementPair"]

_FARTHEST = 2.0**12


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledReplacementPair(Pair):
    """(1-q) N(0,1) + q N(mu,1) against (1-q) N(0,1) + q N(-mu,1).

    A record that moves a sum by mu noise deviations in one direction is exchanged for one that moves it as
    far in the other, and takes part with probability q. The likelihood ratio rises with the output, because
    the first mixture over the standard density rises and the second falls, so that thresholds are best tests.
    Reflection of the outputs exchanges the two: the pair is its own swap. No other two directions are told apart better
    (theorem `poisson-gaussian-replace-one`).
    """

    mu: float
    rate: float

    def __post_init__(self) -> None:
        require(0 < self.mu < math.inf, parameter="mu", value=self.mu, must="be positive and finite")
        require(0 < self.rate <= 1, parameter="rate", value=self.rate, must="lie in (0, 1]")

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    def _ratio(self, x: Any) -> Any:
        q, mu = ball(self.rate), ball(self.mu)
        top = 1 - q + q * (mu * x - mu**2 / 2).exp()
        return top / (1 - q + q * (-mu * x - mu**2 / 2).exp())

    def _gain(self, x: Any, t: Any) -> Any:
        """P(X > x) - t Q(X > x)."""
        q, mu = ball(self.rate), ball(self.mu)
        still = (1 - q) * normal_cdf(-x)
        return still + q * normal_cdf(mu - x) - t * (still + q * normal_cdf(-mu - x))

    def curve(self, t: Any) -> Any:
        ends = rising_root(self._ratio, t)
        if ends is None:
            return positive_ball(1 - t).union(ball(1))
        low, high = ends
        # The gain is flat at the root: over [low, high] it varies by at most (the ratio's change) Q(X in it).
        value = self._gain(((low + high) / 2).mid(), t)
        excess = (self._ratio(high) - self._ratio(low)) * (high - low)
        return positive_ball(value.union(value + positive_ball(excess)))

    def pld(self) -> PrivacyLossDistribution:
        mu, q = self.mu, self.rate

        def half(x: Floats, sign: float) -> Floats:
            exponent = sign * mu * x - mu**2 / 2
            with np.errstate(divide="ignore"):
                return np.asarray(np.logaddexp(np.log1p(-q), np.log(q) + exponent))

        def loss_at(x: Floats) -> Floats:
            return half(x, 1.0) - half(x, -1.0)

        def tails(losses: Floats) -> Tails:
            low, high = np.full_like(losses, -_FARTHEST), np.full_like(losses, _FARTHEST)
            for _ in range(80):
                middle = (low + high) / 2
                rising = loss_at(middle) < losses
                low, high = np.where(rising, middle, low), np.where(rising, high, middle)
            x = (low + high) / 2
            inside = np.abs(x) < _FARTHEST / 2
            reach = float(np.max(np.abs(x[inside]), initial=0.0))
            missed = float(np.max(np.abs(loss_at(x) - losses)[inside], initial=0.0))
            spread = np.full_like(x, 1.0 + reach)
            rows = []
            for shift in (mu, -mu):
                for side in (-1.0, 1.0):
                    still, moved = (
                        float_normal_cdf(side * x, spread),
                        float_normal_cdf(side * (x - shift), spread),
                    )
                    rows.append([(1 - q) * still[k] + q * moved[k] for k in (0, 1)])
            values, errors = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
            slack = missed + 64 * UNIT * (1 + reach * mu + mu**2)
            return Tails(values=values, errors=errors + 8 * UNIT * values, slack=slack)

        return TailPLD(tails=tails)

    def renyi(self, order: float) -> float:
        """At most that of the record surely taking part, order (2 mu)^2 / 2: divergences are quasi-convex."""
        check_order(order)
        if order == math.inf:
            return math.inf
        return up(Fraction(order) * 2 * Fraction(self.mu) ** 2)

    has_density = True

    def rule_key(self, *, sampled: bool) -> Hashable:
        # A mixture of a ratio of mixtures turns by twice the angle, and may vanish in the strip.
        return None if sampled or self.rate > MOST_RATE else 0

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        mu = column([p.mu for p in pairs])
        rule = replaced_rule(mu, column([p.rate for p in pairs]), reach)
        if rule is None:
            return None
        # Two mixtures against each other: no node is worse than the furthest.
        return replace(rule, cancelled=float(np.max(np.abs(rule.ratio))) + 2 * float(np.max(mu)) ** 2)

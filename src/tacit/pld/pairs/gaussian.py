"""The Gaussian pair (Gaussian DP, GDP): N(mu, 1) against N(0, 1)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from tacit.exact.arrays import UNIT, Column, Floats, column
from tacit.exact.balls import ball, bracket, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, up
from tacit.pld.distributions import (
    Cells,
    PrivacyLossDistribution,
    TailPLD,
    Tails,
)
from tacit.pld.normal import float_normal_cdf, normal_cdf, normal_cells
from tacit.pld.pairs.base import UNBOUNDED, Pair, check_order
from tacit.pld.quadrature_rules import (
    QuadratureRange,
    Rule,
    normal_rule,
    soften,
)
from tacit.pld.variation import log_variation
from tacit.pld.without_replacement_rules import WithoutReplacementRule, normal_half

__all__ = ["GaussianPair", "gaussian_pld"]


def gaussian_pld(mu: Column) -> TailPLD:
    """The loss of N(mu, 1) against N(0, 1): N(mu^2/2, mu^2) under P and N(-mu^2/2, mu^2) under Q."""
    widest = float(np.max(mu))

    def tails(losses: Floats) -> Tails:
        shift = losses / mu
        spread = np.where(np.isfinite(shift), np.abs(shift), 0.0) + mu / 2
        rows = [mu / 2 - shift, shift - mu / 2, -mu / 2 - shift, shift + mu / 2]
        got = [float_normal_cdf(z, spread) for z in rows]
        finite = losses[np.isfinite(losses)]
        slack = 8 * UNIT * (float(np.max(np.abs(finite), initial=0.0)) + widest**2)
        return Tails(values=np.array([g[0] for g in got]), errors=np.array([g[1] for g in got]), slack=slack)

    def cells(edges: Floats) -> Cells:
        return normal_cells(edges / mu, mu / 2, lambda at: law.tail_cells(edges[:, at]))

    law = TailPLD(tails=tails, closed_cells=cells)
    return law


@dataclass(frozen=True, slots=True, init=False)
class GaussianPair(Pair):
    """N(mu, 1) against N(0, 1), mu = l2 sensitivity / noise_std, kept as the exact rational mu^2.

    h(e^e) = Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu) (Balle, Wang 2018). Several Gaussian releases are one
    whose mu^2 is the sum of theirs: `GaussianPair(squared=...)`.
    """

    squared: Fraction
    near: float = field(repr=False, compare=False)
    """mu to two units in the last place."""

    def __init__(self, *, mu: float | None = None, squared: Fraction | None = None) -> None:
        if mu is not None:
            require(0 < mu < math.inf, parameter="mu", value=mu, must="be positive and finite")
            squared = Fraction(mu) ** 2
        top, bottom = (0, 1) if squared is None else squared.as_integer_ratio()
        require(top > 0, parameter="mu", value=squared, must="be positive and finite")
        object.__setattr__(self, "squared", squared)
        # Division of integers rounds to nearest; the square root halves its error and adds its own.
        moderate = abs(top.bit_length() - bottom.bit_length()) < 600
        object.__setattr__(self, "near", math.sqrt(top / bottom) if moderate else self.mu)

    def __hash__(self) -> int:
        return hash(self.near)

    @property
    def mu(self) -> float:
        """mu, rounded up where it is no float."""
        near = math.sqrt(self.squared) if self.squared < Fraction(10) ** 300 else math.inf
        if math.isfinite(near) and Fraction(near) ** 2 == self.squared:
            return near
        return bracket(lambda: ball(self.squared).sqrt(), what="mu").high

    @property
    def sort_key(self) -> tuple[Any, ...]:
        # Floats are compared first: fractions are slow, and settle ties only.
        return (type(self).__name__, self.near, self.squared)

    def ball(self) -> Any:
        """The ball of mu."""
        return ball(self.squared).sqrt()

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    def curve(self, t: Any) -> Any:
        mu, epsilon = self.ball(), t.log()
        return positive_ball(normal_cdf(mu / 2 - epsilon / mu) - t * normal_cdf(-mu / 2 - epsilon / mu))

    def pld(self) -> PrivacyLossDistribution:
        return gaussian_pld(float(self.ball().mid()))

    def renyi(self, order: float) -> float:
        """order mu^2 / 2."""
        check_order(order)
        if order == math.inf:
            return math.inf
        return up(Fraction(order) * self.squared / 2)

    has_density = True

    @property
    def gaussian_squared(self) -> Fraction | None:
        return self.squared

    def sampled_fractional_renyi(self, rate: float, order: float) -> float | None:
        from tacit.pld.renyi import mixture_integral

        # With hardly any noise the integrand is too steep to integrate; convexity in the order serves instead.
        if self.mu > 40:
            return None
        q = Fraction(rate)
        return mixture_integral(lambda: [ball(0), self.ball()], (1 - q, q), order, False)

    def batch_key(self) -> tuple[Any, ...] | None:
        return ("GaussianPair",)

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        return gaussian_pld(column([p.mu for p in pairs]))

    def rule_key(self, *, sampled: bool) -> Hashable:
        return 0

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        mu = column([p.near for p in pairs])
        rule = normal_rule(mu, rates, reach)
        if rule is None:
            return None

        def variation(tilt: float) -> tuple[Floats, Floats]:
            return log_variation(mu, rates, 1 - tilt if reach.swapped else tilt + 2), np.zeros(len(mu))

        squares = column([float(p.squared) for p in pairs]) * (1 + 1e-9)
        return replace(soften(rule, mu), cancelled=squares, variation=variation)

    @classmethod
    def without_replacement_rule(
        cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange
    ) -> WithoutReplacementRule | None:
        mu = column([p.near for p in pairs])
        half = normal_half(mu, rates, reach)
        if half is None:
            return None

        def variation(tilt: float) -> Floats:
            """Of both halves, which begin at the loss 0."""
            both = [log_variation(mu, rates, power, mu / 2) for power in (tilt + 2, 1 - tilt)]
            return np.asarray(np.logaddexp(*both))

        return replace(half, variation=variation)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return "GaussianPair", (self.mu,)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return GaussianPair(mu=next(values))

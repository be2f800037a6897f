"""The bounded-range pair of the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tacit.exact.arrays import UNIT, Column, Floats, column
from tacit.exact.balls import ball, bracket, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval
from tacit.pld.distributions import (
    PrivacyLossDistribution,
    TailPLD,
    Tails,
)
from tacit.pld.pairs.base import Pair, check_order
from tacit.pld.quadrature_rules import (
    LARGEST_EPSILON,
    QuadratureRange,
    Rule,
    bounded_rule,
)
from tacit.pld.without_replacement_rules import WithoutReplacementRule, bounded_half

__all__ = ["ExponentialPair", "exponential_pld"]


def exponential_pld(top: Column) -> TailPLD:
    """P(L > l) = (1 - e^((l - epsilon)/2))/(1 - e^-epsilon), Q(L > l) = P(L <= -l)."""
    widest = float(np.max(top))

    def tails(losses: Floats) -> Tails:
        inside = np.clip(losses, -top, top)
        norm = -np.expm1(-top)
        p_above = -np.expm1((inside - top) / 2) / norm
        p_below = np.exp(-top) * np.expm1((inside + top) / 2) / norm
        q_above = np.exp(-top) * np.expm1((top - inside) / 2) / norm
        q_below = -np.expm1(-(inside + top) / 2) / norm
        values = np.array([p_above, p_below, q_above, q_below])
        return Tails(values=values, errors=values * (16 + 8 * widest) * UNIT + UNIT * 1e-16)

    return TailPLD(tails=tails, bounds=(-widest, widest))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialPair(Pair):
    """The least pair above every epsilon-bounded-range mechanism, the exponential mechanism among them:
    h(t) = (1 - sqrt(t e^-epsilon))^2 / (1 - e^-epsilon) for e^-epsilon <= t <= e^epsilon."""

    epsilon: float
    # The curve is the supremum over the class, which no one mechanism reaches at every t at once:
    # products of it are upper bounds only.
    exact_in_products = False

    def __post_init__(self) -> None:
        require(
            0 < self.epsilon < math.inf,
            parameter="epsilon",
            value=self.epsilon,
            must="be positive and finite",
        )

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    def curve(self, t: Any) -> Any:
        e = ball(self.epsilon)
        bottom = (-e).exp()
        root = positive_ball(-((t.log() - e) / 2).expm1())
        middle = root**2 / -(-e).expm1()
        if bool(t > bottom):
            return middle
        # Below e^-epsilon every output is more likely under Q; at the seam both forms agree.
        return 1 - t if bool(t < bottom) else middle.union(1 - t)

    def pld(self) -> PrivacyLossDistribution:
        return exponential_pld(self.epsilon)

    def renyi(self, order: float) -> float:
        """ln(E_Q Z^a)/(a-1) with the tail Q(Z > t) = (sqrt(e^-epsilon/t) - e^-epsilon)/(1 - e^-epsilon)."""
        check_order(order)
        if order == math.inf:
            return self.epsilon

        def value() -> Any:
            a, e = ball(order), ball(self.epsilon)
            half = ((a - ball(1) / 2) * e).exp() - (-(a - ball(1) / 2) * e).exp()
            whole = (a * e).exp() - (-a * e).exp()
            tail = (a / (a - ball(1) / 2) * (-e / 2).exp() * half - (-e).exp() * whole) / -(-e).expm1()
            return ((-a * e).exp() + tail).log() / (a - 1)

        return min(bracket(value, what="a Rényi divergence").high, self.epsilon)

    has_density = True

    def batch_key(self) -> tuple[Any, ...] | None:
        return ("ExponentialPair",)

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        return exponential_pld(column([p.epsilon for p in pairs]))

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.epsilon > LARGEST_EPSILON else 0

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        return bounded_rule(column([p.epsilon for p in pairs]), False, reach)

    @classmethod
    def without_replacement_rule(
        cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange
    ) -> WithoutReplacementRule | None:
        return bounded_half(column([p.epsilon for p in pairs]), False, rates, reach)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return "ExponentialPair", (self.epsilon,)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return ExponentialPair(epsilon=next(values))

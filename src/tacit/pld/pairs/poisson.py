"""Poisson sampling of a pair, exactly: each record takes part with probability `rate`, independently."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from tacit.exact.arrays import column
from tacit.exact.balls import ball, bracket, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, product
from tacit.pld.distributions import (
    PrivacyLossDistribution,
)
from tacit.pld.pairs.base import NOTHING, UNBOUNDED, Layers, Pair, batch_pld, check_order

__all__ = ["PoissonSampledPair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSampledPair(Pair):
    """((1 - rate) Q + rate P, Q) for a pair (P, Q): the record removed; its `swapped()` is the record added.

    h(t) = rate h0((t - 1 + rate)/rate) for t > 1 - rate, else 1 - t. If (P, Q) dominates a mechanism's
    removals, this dominates those of the sampled mechanism (Zhu, Dong, Wang 2022, Theorem 11).
    """

    pair: Pair
    rate: float

    def __post_init__(self) -> None:
        require(
            0 < self.rate <= 1,
            parameter="rate",
            value=self.rate,
            must="lie in (0, 1]",
            hint="a rate of 0 reads no record: leave the event out",
        )

    @property
    def sort_key(self) -> tuple[Any, ...]:
        return ("PoissonSampledPair", self.pair.sort_key, self.rate)

    @property
    def symmetric(self) -> bool:
        return self.rate == 1 and self.pair.symmetric

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.pair.exact

    @property
    def measured(self) -> bool:  # type: ignore[override]
        return self.pair.measured

    @property
    def exact_in_products(self) -> bool:  # type: ignore[override]
        return self.pair.exact_in_products

    def swapped(self) -> Pair:
        return self if self.symmetric else Pair.swapped(self)

    def curve(self, t: Any) -> Any:
        rate = ball(self.rate)
        inner = (t - 1 + rate) / rate
        if bool(inner <= 0):
            return 1 - t
        if not bool(inner > 0):
            # The kink itself: h lies between 1 - t and 1 - t + (its slope's change) times the radius.
            return (1 - t).union(1 - t + 2 * rate * positive_ball(inner))
        return rate * self.pair.curve(inner)

    def pld(self) -> PrivacyLossDistribution:
        return self.pair.pld().sampled(self.rate) if self.rate < 1 else self.pair.pld()

    def _map(self, loss: Interval) -> Interval:
        def image(value: float) -> Interval:
            if value == math.inf:
                return UNBOUNDED
            if value == -math.inf:
                if self.rate == 1:
                    return Interval(low=-math.inf, high=-math.inf)
                if self.rate < 0.5:
                    near = math.log1p(-self.rate)
                    return Interval(low=near - abs(near) * 2.0**-48, high=near + abs(near) * 2.0**-48)
                exact = 1 - Fraction(self.rate)
                return bracket(lambda: ball(exact).log(), what="a loss")
            grown = self.rate * math.expm1(value) if value < 700 else math.inf
            if -0.5 < grown < math.inf:
                # expm1, the product and log1p are right to a few units, and none of them amplifies those here
                # (log1p nowhere above 0).
                near = math.log1p(grown)
                return Interval(low=near - abs(near) * 2.0**-48, high=near + abs(near) * 2.0**-48)
            rate = ball(self.rate)
            return bracket(lambda: (rate * ball(value).expm1()).log1p(), what="a loss")

        low = image(loss.low)
        return low if loss.low == loss.high else Interval(low=low.low, high=image(loss.high).high)

    @property
    def largest_loss(self) -> Interval:
        return self._map(self.pair.largest_loss)

    @property
    def smallest_loss(self) -> Interval:
        if self.pair.reverse_infinite_mass.high > 0:
            return self._map(Interval(low=-math.inf, high=-math.inf))
        return self._map(self.pair.smallest_loss)

    @property
    def top_mass(self) -> float:
        return self.rate * self.pair.top_mass * (1 - 2.0**-52)

    @property
    def infinite_mass(self) -> Interval:
        inner = self.pair.infinite_mass
        if inner.high == 0:
            return inner
        return Interval(low=product(self.rate, inner.low).low, high=product(self.rate, inner.high).high)

    @property
    def reverse_infinite_mass(self) -> Interval:
        return self.pair.reverse_infinite_mass if self.rate == 1 else NOTHING

    def renyi(self, order: float) -> float:
        from tacit.pld.renyi import sampled_renyi

        return sampled_renyi(self.pair, self.rate, order)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        return self.pair.has_density

    def reduced(self) -> Pair:
        return self.pair.reduced() if self.rate == 1 else self

    def reverse_renyi(self, order: float) -> float:
        """D(Q||mix) <= D(mix||Q) where P and Q are mirror images (Mironov, Talwar, Zhang 2019, Theorem 5)."""
        from tacit.pld.renyi import sampled_renyi

        check_order(order)
        if self.pair.symmetric:
            return sampled_renyi(self.pair, self.rate, order)
        inner = self.pair.swapped().renyi(order)
        if order == math.inf or math.isinf(inner):
            return inner

        def value() -> Any:
            # x^(1-a) is convex: E_mix (Q/mix)^a <= 1 - q + q e^((a-1) D_a(Q||P)).
            a = ball(order)
            return (ball(self.rate) * ((a - 1) * ball(inner)).expm1()).log1p() / (a - 1)

        return bracket(value, what="a Rényi divergence").high

    def batch_key(self) -> tuple[Any, ...] | None:
        inner = self.pair.batch_key()
        return None if inner is None else ("PoissonSampledPair", inner)

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        return batch_pld([p.pair for p in pairs]).sampled(column([p.rate for p in pairs]))

    def layers(self) -> Layers:
        base, rate, swapped = self.pair.layers()
        # Layers inside are not taken apart: only a base pair has a rule.
        plain = rate is None and not swapped
        return Layers(base=base if plain else self.pair, rate=self.rate, swapped=False)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        inner = self.pair.family()
        return None if inner is None else (("PoissonSampledPair", inner[0]), (self.rate, *inner[1]))

    def with_parameters(self, values: Iterator[float]) -> Pair:
        rate = next(values)
        return PoissonSampledPair(pair=self.pair.with_parameters(values), rate=rate)

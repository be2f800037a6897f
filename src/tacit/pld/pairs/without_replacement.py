"""Sampling without replacement (replace-one)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from tacit.exact.arrays import Floats, column
from tacit.exact.balls import ball, bracket
from tacit.exact.checks import require
from tacit.exact.rounding import Interval
from tacit.pld.distributions import (
    PrivacyLossDistribution,
    unsampled_loss,
)
from tacit.pld.pairs.base import MOST_RATE, NOTHING, UNBOUNDED, Pair, batch_pld
from tacit.pld.pairs.measured import WorstPair, product_key
from tacit.pld.product import Product, families, rebuilt
from tacit.pld.quadrature import Quadrature
from tacit.pld.quadrature_rules import (
    QuadratureRange,
)
from tacit.pld.without_replacement_quadrature import without_replacement_quadrature

__all__ = ["WithoutReplacementPair"]


def _in_both_orders(products: tuple[Product, ...]) -> Pair | None:
    if len(products) != 2 or (one := products[0].single) is None or (other := products[1].single) is None:
        return None
    return one if one.meets_both_orders and type(other) is type(one) and other == one.swapped() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutReplacementPair(WorstPair):
    """A uniform part of fixed size, replace-one: q delta(ln(1 + (e^e - 1)/q)) (Balle et al. 2018)."""

    products: tuple[Product, ...]
    rate: float
    single: Pair | None = field(init=False, repr=False, compare=False)
    """The one pair that is sampled, where it is its own swap; else None."""
    either: Pair | None = field(init=False, repr=False, compare=False)
    """The table that is sampled, where it is met in both orders; else None."""

    def __post_init__(self) -> None:
        self._check()
        require(0 < self.rate <= 1, parameter="rate", value=self.rate, must="lie in (0, 1]")
        pair, count = self.products[0].pairs[0]
        alone = len(self.products) == len(self.products[0].pairs) == count == 1 and pair.symmetric
        object.__setattr__(self, "single", pair if alone else None)
        object.__setattr__(self, "either", _in_both_orders(self.products))

    def __hash__(self) -> int:
        return hash((self.rate, self.single or self.products))

    @property
    def sort_key(self) -> tuple[Any, ...]:
        # What is sampled first, so that near pairs stand together.
        return (type(self).__name__, *(product_key(p) for p in self.products), self.rate)

    @property
    def infinite_mass(self) -> Interval:
        if self.single is not None and self.single.infinite_mass.high == 0:
            return NOTHING
        return super(WithoutReplacementPair, self).infinite_mass

    @property
    def largest_loss(self) -> Interval:
        if self.single is None:
            return super(WithoutReplacementPair, self).largest_loss
        top = self.single.largest_loss.high
        return Interval(low=0.0, high=self._image(top)) if math.isfinite(top) else UNBOUNDED

    def _image(self, top: float) -> float:
        if top < 1 and (grown := self.rate * math.expm1(top)) < 0.5:
            # expm1, the product and log1p are right to a few units, and none of them amplifies those here.
            return math.log1p(grown) * (1 + 2.0**-48)
        return bracket(lambda: (ball(self.rate) * ball(top).expm1()).log1p(), what="a loss").high

    def _inner(self, epsilon: Floats) -> Floats:
        return np.maximum(unsampled_loss(epsilon, self.rate) * (1 - 3e-15), 0.0)

    def _shift_delta(self, epsilon: float, delta: float) -> float:
        return min(1.0, self.rate * delta * (1 + 1e-15))

    def pld(self) -> PrivacyLossDistribution:
        """The sampled law above 0 and its mirror image below; the larger of several through their curves."""
        inner = self.single.pld() if self.single is not None else None
        if inner is not None and inner.known_from_below and self.rate < 1:
            return inner.sampled(self.rate).mirrored()
        return WorstPair.pld(self)

    def renyi(self, order: float) -> float:
        """Never above that of the whole; integer orders by the published expansion (replace-one)."""
        from tacit.pld.renyi import without_replacement_renyi

        return without_replacement_renyi(self.products, self.rate, order)

    def renyi_at_least(self, order: float) -> float:
        from tacit.pld.renyi import without_replacement_at_least

        return without_replacement_at_least(self.products, self.rate, order)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        sampled = self.single or self.either
        return sampled is not None and sampled.has_density

    def batch_key(self) -> tuple[Any, ...] | None:
        inner = None if self.single is None or self.rate == 1 else self.single.batch_key()
        return None if inner is None else ("WithoutReplacementPair", inner)

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        inner = batch_pld([p.single for p in pairs if p.single is not None])
        return inner.sampled(column([p.rate for p in pairs])).mirrored()

    def quadrature_key(self) -> tuple[Hashable, ...] | None:
        sampled = self.single or self.either
        if sampled is None or self.rate > MOST_RATE or sampled.layers().base is not sampled:
            return None
        key = sampled.rule_key(sampled=True)
        return None if key is None else (type(sampled).__name__, key, self.single is None)

    @classmethod
    def quadrature(cls, members: Sequence[tuple[Pair, int]], reach: QuadratureRange) -> Quadrature | None:
        return without_replacement_quadrature(
            [(pair, count) for pair, count in members if isinstance(pair, cls)], reach
        )

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        inner = families(self.products)
        return (
            None
            if inner is None
            else (
                ("WithoutReplacementPair", inner[0]),
                (
                    self.rate,
                    *inner[1],
                ),
            )
        )

    def with_parameters(self, values: Iterator[float]) -> Pair:
        rate = next(values)
        return WithoutReplacementPair(products=tuple(rebuilt(p, values) for p in self.products), rate=rate)

"""A product read as one pair."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from tacit.exact.rounding import Interval
from tacit.pld.distributions import (
    PrivacyLossDistribution,
)
from tacit.pld.pairs.base import Pair
from tacit.pld.pairs.measured import MeasuredPair, product_key
from tacit.pld.product import Product, families, rebuilt

__all__ = ["ProductPair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPair(MeasuredPair):
    """A product read as one pair; on a grid, the law of its gridded upper pair."""

    product: Product
    exact_in_products = False

    @property
    def sort_key(self) -> tuple[Any, ...]:
        return (type(self).__name__, *(product_key(self.product)))

    @property
    def symmetric(self) -> bool:
        return self.product.symmetric

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.product.exact

    def swapped(self) -> Pair:
        return self if self.symmetric else ProductPair(product=self.product.swapped())

    @property
    def largest_loss(self) -> Interval:
        return self.product.largest_loss()

    @property
    def smallest_loss(self) -> Interval:
        top = self.product.swapped().largest_loss()
        return Interval(low=-top.high, high=-top.low)

    @property
    def infinite_mass(self) -> Interval:
        return self.product.infinite_mass()

    @property
    def reverse_infinite_mass(self) -> Interval:
        return self.product.swapped().infinite_mass()

    def bound_at(self, epsilon: float) -> Interval:
        return self.product.delta(epsilon)

    def pld(self) -> PrivacyLossDistribution:
        from tacit.pld.engine import Engine

        return Engine(list(self.product.pairs)).pld()

    def renyi(self, order: float) -> float:
        return self.product.renyi(order)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        inner = families((self.product,))
        return None if inner is None else (("ProductPair", inner[0]), inner[1])

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return ProductPair(product=rebuilt(self.product, values))

"""The worst of several products at each epsilon."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from tacit.exact.arrays import Floats
from tacit.pld.pairs.base import Pair, check_order
from tacit.pld.pairs.measured import WorstPair, worst_renyi
from tacit.pld.product import Product, families, rebuilt

__all__ = ["MaximumPair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaximumPair(WorstPair):
    """The larger of several curves at each epsilon: convex again, and above each of them."""

    products: tuple[Product, ...]

    def __post_init__(self) -> None:
        self._check()

    def _image(self, top: float) -> float:
        return top

    def _inner(self, epsilon: Floats) -> Floats:
        return epsilon

    def _shift_delta(self, epsilon: float, delta: float) -> float:
        return delta

    def starts_near(self, delta: float) -> float | None:
        found = max(p.epsilon(delta).high for p in self.products)
        return found if 0 < found < math.inf else None

    def renyi(self, order: float) -> float:
        check_order(order)
        return worst_renyi(self.products, order)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        inner = families(self.products)
        return None if inner is None else (("MaximumPair", inner[0]), (*inner[1],))

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return MaximumPair(products=tuple(rebuilt(p, values) for p in self.products))

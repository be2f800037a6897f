"""Group privacy of a product."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from tacit.exact.checks import require
from tacit.exact.rounding import up
from tacit.pld.arrays import FloatArray
from tacit.pld.pairs.base import Pair, check_order
from tacit.pld.pairs.measured import WorstPair, worst_renyi
from tacit.pld.product import Product, families, rebuilt

__all__ = ["GroupPair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPair(WorstPair):
    """`size` units at once: delta(e/k) (e^e - 1)/(e^(e/k) - 1), the hybrid argument at every epsilon."""

    products: tuple[Product, ...]
    size: int

    def __post_init__(self) -> None:
        self._check()
        require(self.size >= 1, parameter="size", value=self.size, must="be a positive integer")

    def _image(self, top: float) -> float:
        return top * self.size * (1 + 1e-15)

    def _inner(self, epsilon: FloatArray) -> FloatArray:
        return epsilon / self.size * (1 - 4e-16)

    def _shift_delta(self, epsilon: float, delta: float) -> float:
        if delta == 0 or self.size == 1:
            return delta
        if epsilon == 0:
            return min(1.0, self.size * delta * (1 + 1e-15))
        if epsilon > 700:
            return 1.0
        return min(1.0, delta * math.expm1(epsilon) / math.expm1(epsilon / self.size) * (1 + 1e-13))

    def renyi(self, order: float) -> float:
        """`size` times the largest loss, or by doubling (`group-renyi`) from order a = 2^c max(order, 2) of the
        members: D_a prod_{j<=c} (2 + 1/(2(a/2^j - 1))), 2^c >= size."""
        check_order(order)
        pure = worst_renyi(self.products, math.inf) * self.size * (1 + 1e-15)
        if order == math.inf or self.size == 1:
            return pure if order == math.inf else worst_renyi(self.products, order)
        doublings = (self.size - 1).bit_length()
        start = max(Fraction(order), Fraction(2)) * 2**doublings
        inner = worst_renyi(self.products, up(start))
        if math.isinf(inner):
            return pure
        grown = Fraction(inner)
        for j in range(1, doublings + 1):
            grown *= 2 + 1 / (2 * (start / 2**j - 1))
        return min(pure, up(grown))

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        inner = families(self.products)
        return None if inner is None else ((("GroupPair", self.size), inner[0]), (*inner[1],))

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return GroupPair(products=tuple(rebuilt(p, values) for p in self.products), size=self.size)

"""A mechanism that sees the exchanged unit with probability `rate` only, and may tell whether it did."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from tacit.exact.arrays import Floats
from tacit.exact.balls import ball, bracket
from tacit.exact.checks import require
from tacit.pld.pairs.base import Pair, check_order
from tacit.pld.pairs.measured import WorstPair, worst_renyi
from tacit.pld.product import Product, families, rebuilt

__all__ = ["ThinnedPair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinnedPair(WorstPair):
    """rate * delta(e) for e >= 0: with probability 1 - rate both neighbours give one and the same output.

    Poisson sampling under replace-one (theorem `poisson-replace-one`): reached by mechanisms that print the size of
    their sample.
    """

    products: tuple[Product, ...]
    rate: float

    def __post_init__(self) -> None:
        self._check()
        require(0 < self.rate <= 1, parameter="rate", value=self.rate, must="lie in (0, 1]")

    def _image(self, top: float) -> float:
        return top

    def _inner(self, epsilon: Floats) -> Floats:
        return epsilon

    def _shift_delta(self, epsilon: float, delta: float) -> float:
        return min(1.0, self.rate * delta * (1 + 1e-15))

    def renyi(self, order: float) -> float:
        """ln(1 - q + q e^((a-1) D_a)) / (a-1), the divergence of the mixture of both cases."""
        check_order(order)
        whole = worst_renyi(self.products, order)
        if order == math.inf or math.isinf(whole):
            return whole

        def value() -> Any:
            grown = (ball(order) - 1) * ball(whole)
            # q (e^x - 1) + 1 = e^x (q + (1-q) e^-x), which cannot overflow
            rest = ball(self.rate) + (1 - ball(self.rate)) * (-grown).exp()
            return (grown + rest.log()) / (ball(order) - 1)

        return min(whole, max(0.0, bracket(value, what="a Rényi divergence").high))

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        inner = families(self.products)
        return None if inner is None else (("ThinnedPair", inner[0]), (self.rate, *inner[1]))

    def with_parameters(self, values: Iterator[float]) -> Pair:
        rate = next(values)
        return ThinnedPair(products=tuple(rebuilt(p, values) for p in self.products), rate=rate)

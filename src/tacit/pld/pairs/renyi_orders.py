"""The upper curve of Rényi DP at finitely many orders."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tacit.exact.arrays import UNIT, Floats
from tacit.exact.checks import require
from tacit.exact.rounding import Interval
from tacit.pld.distributions import (
    CurvePLD,
    PrivacyLossDistribution,
)
from tacit.pld.pairs.approximate import ApproximatePair
from tacit.pld.pairs.base import UNBOUNDED, Pair, check_order
from tacit.pld.pairs.upper_curve import UpperCurvePair

__all__ = ["RenyiPair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiPair(UpperCurvePair):
    """Rényi bounds at finitely many orders (infinity means pure epsilon), valid in both directions."""

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]

    def __post_init__(self) -> None:
        ok = len(self.orders) == len(self.epsilons) > 0
        require(ok, parameter="epsilons", value=len(self.epsilons), must="match the orders, at least one")
        for order in self.orders:
            require(order > 1, parameter="order", value=order, must="be greater than 1")
        rising = all(a < b for a, b in pairwise(self.orders))
        require(rising, parameter="orders", value=self.orders, must="rise strictly")
        for value in self.epsilons:
            require(value >= 0, parameter="epsilons", value=value, must="be non-negative numbers")

    def _finite(self) -> list[tuple[float, float]]:
        both = zip(self.orders, self.epsilons, strict=True)
        return [(a, e) for a, e in both if math.isfinite(a) and math.isfinite(e)]

    def _pure(self) -> ApproximatePair | None:
        if math.isinf(self.orders[-1]) and math.isfinite(self.epsilons[-1]):
            return ApproximatePair(epsilon=self.epsilons[-1], delta=0.0)
        return None

    @property
    def largest_loss(self) -> Interval:
        pure = self._pure()
        return pure.largest_loss if pure is not None else UNBOUNDED

    def order_for(self, epsilon: float) -> tuple[float, float]:
        def exponent(row: tuple[float, float]) -> float:
            a, d = row
            return (a - 1) * (d - epsilon) + a * math.log1p(-1 / a) - math.log(a - 1)

        return min(self._finite(), key=exponent, default=(2.0, math.inf))

    def curve(self, t: Any) -> Any:
        bound, pure = UpperCurvePair.curve(self, t), self._pure()
        return bound if pure is None else bound.min(pure.curve(t))

    def pld(self) -> PrivacyLossDistribution:
        rows, pure = self._finite(), self._pure()
        a = np.array([r[0] for r in rows] or [2.0])[:, None]
        d = np.array([r[1] for r in rows] or [700.0])[:, None]
        known = bool(rows)

        def upper(epsilons: Floats) -> Floats:
            exponent = (a - 1) * (d - epsilons[None, :]) + a * np.log1p(-1 / a) - np.log(a - 1)
            size = (a - 1) * (d + epsilons[None, :]) + a + np.abs(np.log(a - 1))
            values = np.exp(np.minimum(exponent, 0.0)) * (1 + 16 * UNIT * size) + 1e-300
            best = (
                np.min(np.where(np.isfinite(values), values, 1.0), axis=0)
                if known
                else np.ones_like(epsilons)
            )
            if pure is not None:
                best = np.minimum(best, pure.hockey_stick_grid(epsilons)[1])
            return np.asarray(np.minimum(best, 1.0))

        return CurvePLD.two_sided(upper)

    def renyi(self, order: float) -> float:
        """The least bound that is known at this order or above it (divergences rise with the order)."""
        check_order(order)
        known = [e for o, e in zip(self.orders, self.epsilons, strict=True) if o >= order]
        return min(known, default=math.inf)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return ("RenyiPair", self.orders), self.epsilons

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return RenyiPair(orders=self.orders, epsilons=tuple(next(values) for _ in self.orders))

"""The upper curve of rho-zCDP (concentrated DP)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.exact.arrays import UNIT, Floats
from tacit.exact.balls import ball, bracket
from tacit.exact.checks import require
from tacit.pld.distributions import (
    CurvePLD,
    PrivacyLossDistribution,
)
from tacit.pld.pairs.base import Pair, check_order
from tacit.pld.pairs.upper_curve import UpperCurvePair

__all__ = ["ConcentratedPair"]

_KNOTS = np.geomspace(1e-12, 1e9, 512)


@lru_cache(maxsize=512)
def _orders(rho: float) -> Floats:
    """ln(a - 1) at the knots, by bisection."""
    low, high = np.full_like(_KNOTS, -60.0), np.maximum(60.0, np.log(1 + _KNOTS / rho))
    for _ in range(40):
        middle = (low + high) / 2
        x = np.exp(middle)
        rising = (2 * x + 1) * rho - _KNOTS - np.log1p(1 / x) < 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.asarray((low + high) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcentratedPair(UpperCurvePair):
    """rho-zCDP: delta(e) = min over a > 1 of exp((a-1)(a rho - e)) (1 - 1/a)^a / (a-1).

    Source: Canonne, Kamath, Steinke 2020.
    """

    rho: float

    def __post_init__(self) -> None:
        require(0 < self.rho < math.inf, parameter="rho", value=self.rho, must="be positive and finite")

    def order_for(self, epsilon: float) -> tuple[float, float]:
        order = 1.0 + max(float(self._excess(np.array([max(epsilon, 0.0)]))[0]), 1e-12)
        return order, order * self.rho

    def ball_at(self, order: float, divergence: float) -> Any:
        return ball(order) * ball(self.rho)

    def _excess(self, epsilons: Floats) -> Floats:
        """a - 1 near the root of (2a - 1) rho - e + ln(1 - 1/a), by Newton's steps in its logarithm.

        Any order is valid: where the steps have not met the root the bound is larger, not wrong.
        """
        y = np.interp(np.log(np.maximum(epsilons, _KNOTS[0])), np.log(_KNOTS), _orders(self.rho))
        for _ in range(3):
            x = np.exp(y)
            gap = (2 * x + 1) * self.rho - epsilons - np.log1p(1 / x)
            y = y - np.clip(gap / (2 * x * self.rho + 1 / (1 + x)), -1.0, 1.0)
        return np.asarray(np.exp(y))

    def pld(self) -> PrivacyLossDistribution:
        def upper(epsilons: Floats) -> Floats:
            x = self._excess(epsilons)
            a = 1 + x
            exponent = x * (a * self.rho - epsilons) - a * np.log1p(1 / x) - np.log(x)
            size = x * (a * self.rho + epsilons) + 2 + np.abs(np.log(x))
            return np.minimum(np.exp(np.minimum(exponent, 0.0)) * (1 + 32 * UNIT * size) + 1e-300, 1.0)

        return CurvePLD.two_sided(upper)

    def renyi(self, order: float) -> float:
        check_order(order)
        if order == math.inf:
            return math.inf
        return bracket(lambda: ball(order) * ball(self.rho), what="a Rényi divergence").high

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return "ConcentratedPair", (self.rho,)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return ConcentratedPair(rho=next(values))

"""Pairs known only through an upper curve: concentrated (rho) and Rényi guarantees."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from tacit.exact.balls import ball, bracket, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval
from tacit.pld.continuous import check_order
from tacit.pld.discrete import ApproximatePair
from tacit.pld.distributions import UNIT, Column, PrivacyLossDistribution, unsampled_loss
from tacit.pld.pair import UNBOUNDED, FloatArray, Pair

__all__ = ["ConcentratedPair", "CurvePLD", "RenyiPair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePLD(PrivacyLossDistribution):
    """Upper values of h(e^l) at all real l, vectorised and rounded up."""

    values: Callable[[FloatArray], FloatArray]
    reverse: Callable[[FloatArray], FloatArray] | None = None
    """The same for the swapped pair, where it is known better than through 1 - t + t h(1/t)."""

    @staticmethod
    def two_sided(upper: Callable[[FloatArray], FloatArray]) -> CurvePLD:
        """From delta(epsilon >= 0) that holds in both directions: 1 - t + t h(1/t) below t = 1."""

        def values(losses: FloatArray) -> FloatArray:
            bound = np.minimum(upper(np.abs(losses)), 1.0)
            below = -np.expm1(np.minimum(losses, 0.0)) + np.exp(np.minimum(losses, 0.0)) * bound
            return np.asarray(np.minimum(np.where(losses >= 0, bound, below) * (1 + 8 * UNIT), 1.0))

        return CurvePLD(values=values, reverse=values)

    def swapped(self) -> CurvePLD:
        inner = self.values

        def values(losses: FloatArray) -> FloatArray:
            t = np.exp(np.minimum(losses, 700.0))
            # Beyond e^700 the identity has no digits left: the value at that point bounds it.
            found = 1 - t + t * inner(-np.minimum(losses, 700.0)) + 16 * UNIT * t
            return np.asarray(np.clip(found, 0.0, 1.0))

        return CurvePLD(values=values if self.reverse is None else self.reverse, reverse=inner)

    def sampled(self, rate: Column) -> CurvePLD:
        inner, back = self.values, self.reverse

        def values(losses: FloatArray) -> FloatArray:
            base = unsampled_loss(losses, rate)
            inside = np.isfinite(base)
            # The argument is rounded; h is 1-Lipschitz in t, so a few units of t cover it.
            found = rate * inner(np.where(inside, base, 0.0)) + 32 * UNIT * np.exp(np.minimum(losses, 0.0))
            found = np.where(losses > 0, rate * inner(np.where(inside, base * (1 - 32 * UNIT), 0.0)), found)
            outside = -np.expm1(np.minimum(losses, 0.0)) + 8 * UNIT
            return np.asarray(np.minimum(np.where(inside, found, outside), 1.0))

        def reverse(losses: FloatArray) -> FloatArray:
            """(1 - (1-q) t) h'(q t/(1 - (1-q) t)), h' the curve of the swapped pair that is sampled; 0 from
            t = 1/(1-q) on. The value rises with the rest 1 - (1-q) t at equal t, which is rounded up."""
            assert back is not None
            moved = (1 - rate) * np.expm1(np.minimum(losses, 40.0))
            rest = rate - moved + 8 * UNIT * (rate + np.abs(moved))
            inside = (rest > 0) & (losses < 40.0)
            safe = np.where(inside, rest, 1.0)
            base = losses + np.log(rate) - np.log(safe)
            base = base - 32 * UNIT * (1 + np.abs(losses) + np.abs(np.log(rate)) + np.abs(np.log(safe)))
            found = safe * back(np.where(inside, base, 0.0)) * (1 + 8 * UNIT)
            return np.asarray(np.where(inside, np.minimum(found, 1.0), 0.0))

        return CurvePLD(values=values, reverse=None if back is None else reverse)

    def extent(self, right: float, left: float) -> tuple[float, float]:
        scales = np.exp2(np.arange(-60.0, 24.0, 0.125))

        def reach(values: FloatArray, tail: float) -> float:
            over = np.flatnonzero(values <= max(tail, 1e-290))
            return float(scales[over[0]]) if len(over) else float(scales[-1])

        above = self.values(scales)
        # P(L < -l) <= e^-l H_l(Q||P); where that is not known, about as small as the curve on this side.
        below = above if self.reverse is None else self.reverse(scales) * np.exp(-np.minimum(scales, 700.0))
        return max(-reach(below, left), -700.0), reach(above, right)


class _Curve(Pair):
    """Upper bounds in both directions: the pair is its own swap."""

    __slots__ = ()
    exact = False
    exact_in_products = False

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    def order_for(self, epsilon: float) -> tuple[float, float]:
        """A good order for this epsilon, and an upper bound on the divergence at it."""
        raise NotImplementedError

    def curve(self, t: Any) -> Any:
        if bool(t < 1):
            return (1 - t + t * self._from_order(1 / t)).min(ball(1))
        return self._from_order(t).min(ball(1))

    def _from_order(self, t: Any) -> Any:
        epsilon = t.log()
        order, divergence = self.order_for(float(epsilon.mid()))
        if math.isinf(divergence):
            return ball(1)
        a = ball(order)
        bound = ((a - 1) * (self.ball_at(order, divergence) - epsilon) + a * (-1 / a).log1p()).exp() / (a - 1)
        return positive_ball(bound)

    def ball_at(self, order: float, divergence: float) -> Any:
        """The divergence bound at an order, as a ball."""
        return ball(divergence)


_KNOTS = np.geomspace(1e-12, 1e9, 512)


@lru_cache(maxsize=512)
def _orders(rho: float) -> FloatArray:
    """ln(a - 1) at the knots, by bisection."""
    low, high = np.full_like(_KNOTS, -60.0), np.maximum(60.0, np.log(1 + _KNOTS / rho))
    for _ in range(40):
        middle = (low + high) / 2
        x = np.exp(middle)
        rising = (2 * x + 1) * rho - _KNOTS - np.log1p(1 / x) < 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.asarray((low + high) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcentratedPair(_Curve):
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

    def _excess(self, epsilons: FloatArray) -> FloatArray:
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
        def upper(epsilons: FloatArray) -> FloatArray:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiPair(_Curve):
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
        bound, pure = _Curve.curve(self, t), self._pure()
        return bound if pure is None else bound.min(pure.curve(t))

    def pld(self) -> PrivacyLossDistribution:
        rows, pure = self._finite(), self._pure()
        a = np.array([r[0] for r in rows] or [2.0])[:, None]
        d = np.array([r[1] for r in rows] or [700.0])[:, None]
        known = bool(rows)

        def upper(epsilons: FloatArray) -> FloatArray:
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

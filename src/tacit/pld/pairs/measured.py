"""Pairs made of products: curves that are measured, and the worst of several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.balls import ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, down, up
from tacit.pld.distributions import (
    CurvePLD,
    PrivacyLossDistribution,
)
from tacit.pld.grid import pld_curve
from tacit.pld.pairs.base import Pair
from tacit.pld.product import Product

__all__ = ["MeasuredPair", "WorstPair", "product_key", "worst_renyi"]


def _log_ends(t: Any) -> tuple[float, float]:
    log = t.log()
    return down(log), up(log)


def _as_ball(value: Interval) -> Any:
    return ball(value.low).union(ball(value.high))


class MeasuredPair(Pair):
    """A curve that is measured through `bound_at` rather than written down as a ball."""

    __slots__ = ()
    measured = True

    def bound_at(self, epsilon: float) -> Interval:
        """Enclosure of H_epsilon at any real epsilon."""
        raise NotImplementedError

    def hockey_stick(self, epsilon: float) -> Interval:
        require(not math.isnan(epsilon), parameter="epsilon", value=epsilon, must="be a number")
        if epsilon == -math.inf:
            return Interval(low=1.0, high=1.0)
        found = self.bound_at(epsilon)
        return found if self.exact else Interval(low=0.0, high=found.high)

    def curve(self, t: Any) -> Any:
        low, high = _log_ends(t)
        return _as_ball(Interval(low=self.bound_at(high).low, high=self.bound_at(low).high))


def product_key(product: Product) -> tuple[Any, ...]:
    """A total order on products."""
    return tuple((pair.sort_key, count) for pair, count in product.pairs)


class WorstPair(MeasuredPair):
    """A curve from the larger of several products at each epsilon >= 0, valid in both directions."""

    __slots__ = ()
    products: tuple[Product, ...]
    exact = False
    exact_in_products = False

    @property
    def sort_key(self) -> tuple[Any, ...]:
        rest = tuple(getattr(self, name) for name in ("size", "rate") if hasattr(self, name))
        return (type(self).__name__, rest, *(product_key(p) for p in self.products))

    def _check(self) -> None:
        require(len(self.products) > 0, parameter="products", value=0, must="have at least one member")

    @property
    def infinite_mass(self) -> Interval:
        return Interval(
            low=0.0, high=self._shift_delta(math.inf, max(p.infinite_mass().high for p in self.products))
        )

    @property
    def largest_loss(self) -> Interval:
        top = max(p.largest_loss().high for p in self.products)
        return Interval(low=0.0, high=self._image(top)) if math.isfinite(top) else Interval(low=top, high=top)

    def _image(self, top: float) -> float:
        """Upper bound on the largest loss from that of the members."""
        raise NotImplementedError

    def _inner(self, epsilon: Floats) -> Floats:
        """The members' epsilon from which the value at this epsilon >= 0 follows, rounded down."""
        raise NotImplementedError

    def _shift_delta(self, epsilon: float, delta: float) -> float:
        """The value at epsilon >= 0 from the members' delta, rounded up."""
        raise NotImplementedError

    def bound_at(self, epsilon: float) -> Interval:
        if epsilon < 0:
            mirrored = self.bound_at(-epsilon).high
            t = math.exp(epsilon)
            return Interval(low=0.0, high=min(1.0, (-math.expm1(epsilon) + t * mirrored) * (1 + 1e-15)))
        inner = float(self._inner(np.array([epsilon]))[0])
        delta = max(p.delta(inner).high for p in self.products)
        return Interval(low=0.0, high=min(1.0, self._shift_delta(epsilon, delta)))

    def pld(self) -> PrivacyLossDistribution:
        laws = [p.as_pair().pld() for p in self.products]

        def upper(epsilons: Floats) -> Floats:
            inner = self._inner(epsilons)
            best = np.max([pld_curve(law, inner)[1] for law in laws], axis=0)
            return np.array(
                [self._shift_delta(float(e), float(d)) for e, d in zip(epsilons, best, strict=True)]
            )

        return CurvePLD.two_sided(upper)


def worst_renyi(products: Sequence[Product], order: float) -> float:
    """The largest of their bounds."""
    return max(p.renyi(order) for p in products)

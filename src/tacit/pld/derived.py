"""Pairs made of products: the product itself, the worst of several, groups, sampling without replacement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.exact.balls import ball, bracket
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, down, up
from tacit.pld.continuous import check_order
from tacit.pld.curves import CurvePLD
from tacit.pld.distributions import AtomicPLD, PrivacyLossDistribution, TailPLD, unsampled_loss
from tacit.pld.grid import pld_curve
from tacit.pld.pair import FloatArray, Pair
from tacit.pld.product import Product
from tacit.pld.tabulated import FinitePair

__all__ = ["GroupPair", "MaximumPair", "ProductPair", "WithoutReplacementPair"]


_NOTHING = Interval(low=0.0, high=0.0)
_UNBOUNDED = Interval(low=math.inf, high=math.inf)


def _log_ends(t: Any) -> tuple[float, float]:
    log = t.log()
    return down(log), up(log)


def _as_ball(value: Interval) -> Any:
    return ball(value.low).union(ball(value.high))


class _Measured(Pair):
    """A curve that is measured through `bound_at` rather than written down as a ball."""

    __slots__ = ()

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPair(_Measured):
    """A product read as one pair; on a grid, the law of its gridded upper pair."""

    product: Product
    exact_in_products = False

    @property
    def sort_key(self) -> tuple[Any, ...]:
        return (type(self).__name__, *(_key(self.product)))

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


def _key(product: Product) -> tuple[Any, ...]:
    return tuple((pair.sort_key, count) for pair, count in product.pairs)


class _Worst(_Measured):
    """A curve from the larger of several products at each epsilon >= 0, valid in both directions."""

    __slots__ = ()
    products: tuple[Product, ...]
    exact = False
    exact_in_products = False

    @property
    def sort_key(self) -> tuple[Any, ...]:
        rest = tuple(getattr(self, name) for name in ("size", "rate") if hasattr(self, name))
        return (type(self).__name__, rest, *(_key(p) for p in self.products))

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

    def _inner(self, epsilon: FloatArray) -> FloatArray:
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

        def upper(epsilons: FloatArray) -> FloatArray:
            inner = self._inner(epsilons)
            best = np.max([pld_curve(law, inner)[1] for law in laws], axis=0)
            return np.array(
                [self._shift_delta(float(e), float(d)) for e, d in zip(epsilons, best, strict=True)]
            )

        return CurvePLD.two_sided(upper)


def _worst_renyi(products: Sequence[Product], order: float) -> float:
    return max(p.renyi(order) for p in products)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaximumPair(_Worst):
    """The larger of several curves at each epsilon: convex again, and above each of them."""

    products: tuple[Product, ...]

    def __post_init__(self) -> None:
        self._check()

    def _image(self, top: float) -> float:
        return top

    def _inner(self, epsilon: FloatArray) -> FloatArray:
        return epsilon

    def _shift_delta(self, epsilon: float, delta: float) -> float:
        return delta

    def renyi(self, order: float) -> float:
        check_order(order)
        return _worst_renyi(self.products, order)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPair(_Worst):
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
        """Pure only: at finite orders group privacy of a profile has no closed form here."""
        check_order(order)
        worst = _worst_renyi(self.products, math.inf)
        return min(worst * self.size * (1 + 1e-15), math.inf)


def _in_both_orders(products: tuple[Product, ...]) -> FinitePair | None:
    if len(products) != 2 or any(len(p.pairs) > 1 or p.pairs[0][1] > 1 for p in products):
        return None
    one, other = (p.pairs[0][0] for p in products)
    if not isinstance(one, FinitePair) or not isinstance(other, FinitePair):
        return None
    return one if one.p == other.q[::-1] and one.q == other.p[::-1] else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutReplacementPair(_Worst):
    """A uniform part of fixed size, replace-one: q delta(ln(1 + (e^e - 1)/q)) (Balle et al. 2018)."""

    products: tuple[Product, ...]
    rate: float
    single: Pair | None = field(init=False, repr=False, compare=False)
    """The one pair that is sampled, where it is its own swap; else None."""
    either: FinitePair | None = field(init=False, repr=False, compare=False)
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
        return (type(self).__name__, *(_key(p) for p in self.products), self.rate)

    @property
    def infinite_mass(self) -> Interval:
        if self.single is not None and self.single.infinite_mass.high == 0:
            return _NOTHING
        return super(WithoutReplacementPair, self).infinite_mass

    @property
    def largest_loss(self) -> Interval:
        if self.single is None:
            return super(WithoutReplacementPair, self).largest_loss
        top = self.single.largest_loss.high
        return Interval(low=0.0, high=self._image(top)) if math.isfinite(top) else _UNBOUNDED

    def _image(self, top: float) -> float:
        if top < 1 and (grown := self.rate * math.expm1(top)) < 0.5:
            # expm1, the product and log1p are right to a few units, and none of them amplifies those here.
            return math.log1p(grown) * (1 + 2.0**-48)
        return bracket(lambda: (ball(self.rate) * ball(top).expm1()).log1p(), what="a loss").high

    def _inner(self, epsilon: FloatArray) -> FloatArray:
        return np.maximum(unsampled_loss(epsilon, self.rate) * (1 - 3e-15), 0.0)

    def _shift_delta(self, epsilon: float, delta: float) -> float:
        return min(1.0, self.rate * delta * (1 + 1e-15))

    def pld(self) -> PrivacyLossDistribution:
        """The sampled law above 0 and its mirror image below; the larger of several through their curves."""
        inner = self.single.pld() if self.single is not None else None
        if isinstance(inner, AtomicPLD | TailPLD) and self.rate < 1:
            return inner.sampled(self.rate).mirrored()
        return _Worst.pld(self)

    def renyi(self, order: float) -> float:
        """Never above that of the whole; integer orders by the published expansion (replace-one)."""
        from tacit.pld.renyi import without_replacement_renyi

        return without_replacement_renyi(self.products, self.rate, order)

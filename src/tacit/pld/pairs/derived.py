"""A product read as one pair."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Self

import numpy as np

from tacit.exact.arrays import UNIT, Floats
from tacit.exact.checks import require
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval, ball, bisected_arrays, bracket, down, up
from tacit.pld.distributions import CurvePLD, PrivacyLossDistribution, pld_curve
from tacit.pld.pairs.base import UNBOUNDED, Pair, UpperCurvePair, check_order
from tacit.pld.pairs.responses import ListedPair
from tacit.pld.product import Product, families, rebuilt
from tacit.pld.quadrature import LARGEST_EPSILON, AtomRows

# Pairs made of products: curves that are measured, and the worst of several.


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


# The worst pair of (epsilon, delta), and of pure epsilon.


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximatePair(ListedPair):
    """The pair that dominates every (epsilon, delta) mechanism (Kairouz, Oh, Viswanath 2015): delta at
    infinity, the rest randomised response with epsilon. delta = 0 is pure epsilon."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        require(
            0 <= self.epsilon < math.inf, parameter="epsilon", value=self.epsilon, must="be finite and >= 0"
        )
        require(0 <= self.delta <= 1, parameter="delta", value=self.delta, must="lie in [0, 1]")

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def infinite_mass(self) -> Interval:
        return Interval(low=self.delta, high=self.delta)

    @property
    def atom_count(self) -> int:
        return 2

    def atoms(self) -> list[tuple[Any, Any]]:
        e, rest = ball(self.epsilon), 1 - ball(self.delta)
        norm = e.exp() + 1
        return [(-e, rest / norm), (e, rest * e.exp() / norm)]

    @property
    def approximate_point(self) -> tuple[float, float] | None:
        return self.epsilon, self.delta

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        rows = np.array([(p.epsilon, p.delta) for p in pairs])
        e, lost = rows[:, :1], rows[:, 1:]
        losses = np.concatenate([-e, e], axis=1)
        return losses, (1 - lost) / (1 + np.exp(-losses)), lost, lost

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.epsilon > LARGEST_EPSILON else 0

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return "ApproximatePair", (self.epsilon, self.delta)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return ApproximatePair(epsilon=next(values), delta=next(values))


# The upper curve of rho-zCDP (concentrated DP).

_KNOTS = np.geomspace(1e-12, 1e9, 512)


@lru_cache(maxsize=512)
def _orders(rho: float) -> Floats:
    """ln(a - 1) at the knots, by bisection."""

    def falls(log: Floats) -> Any:
        x = np.exp(log)
        return ~((2 * x + 1) * rho - _KNOTS - np.log1p(1 / x) < 0)

    most = np.maximum(60.0, np.log(1 + _KNOTS / rho))
    low, high = bisected_arrays(falls, np.full_like(_KNOTS, -60.0), most, halvings=40)
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

        Any order is valid: if the steps have not met the root, the bound is larger and not wrong.
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


# The upper curve of Rényi DP at finitely many orders.


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


# The worst of several products at each epsilon.


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


# Group privacy of a product: the hybrid argument, with the best split of epsilon over the steps.

_POINTS = 128
"""This many grid points on each side of 0 for one step."""
_MOST_POINTS = 1024
"""Longer walks have fewer points a step."""
_CHOICES = 512
"""The number of epsilons with a chosen split; other epsilons take the split of the next one."""
_ROUNDED = 1 + 1e-12
"""Above the rounding of an exponential of at most 700, a product and a sum."""
_FURTHEST = 700.0
"""Beyond this epsilon its split serves for all larger ones, since curves fall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupWalk:
    """All steps but the first: from s `spacing` on, `rest[s + middle]` is the remainder after the best known
    split of them.

    `first` is the curve of one step on the grid, with which a split is chosen; the chosen one is then bounded anew.
    """

    spacing: float
    first: Floats
    rest: Floats

    def choose(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """For each epsilon the first step's share, rounded down, and the others' part, rounded up."""
        epsilons = np.asarray(epsilons, dtype=np.float64)
        few = epsilons
        if len(epsilons) > _CHOICES:
            few = np.linspace(np.min(epsilons), np.max(epsilons), _CHOICES)
        middle = len(self.rest) // 2
        shares = self.spacing * np.arange(-middle, middle + 1)
        grid = self.spacing * np.arange(-(len(self.first) // 2), len(self.first) // 2 + 1)
        own = few[:, None] - shares
        tried = np.interp(own, grid, self.first, left=1.0) + _times(_exponential(own), self.rest)
        best = np.argmin(tried, axis=1)
        if len(epsilons) > _CHOICES:
            # Every split is a bound: the one of a near epsilon will do.
            best = best[np.minimum(np.searchsorted(few, epsilons), _CHOICES - 1)]
        own = epsilons - shares[best]
        added = _times(_exponential(own), self.rest[best])
        return own - 1e-15 * (np.abs(epsilons) + np.abs(shares[best])), added


def _exponential(values: Floats) -> Floats:
    """e^value from above; infinite where floats end."""
    found = np.exp(np.minimum(values, _FURTHEST)) * _ROUNDED
    return np.asarray(np.where(values > _FURTHEST, np.inf, np.maximum(found, 1e-300)))


def _times(weights: Floats, deltas: Floats) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        product = weights * deltas * _ROUNDED
    return np.asarray(np.where(np.isnan(product), np.inf, product))


def _joined(one: Floats, other: Floats, spacing: float) -> Floats:
    """For each grid point the smallest delta(a) + e^a delta'(b) over grid points a + b equal to it."""
    ahead, behind = len(one) // 2, len(other) // 2
    found = np.full(len(one) + len(other) - 1, np.inf)
    for j, weight in enumerate(_exponential(spacing * np.arange(-ahead, ahead + 1, dtype=np.float64))):
        part = found[j : j + 2 * behind + 1]
        np.minimum(part, (one[j] + _times(weight, other)) * _ROUNDED, out=part)
    return np.asarray(np.minimum(found, 1.0))


def _both_signs(epsilons: Floats, delta: Floats) -> Floats:
    """The curve at epsilons of either sign from `delta` at their sizes: 1 - e^-e + e^-e delta(e) below 0."""
    below = np.minimum(epsilons, 0.0)
    mirrored = (-np.expm1(below) + np.exp(below) * delta) * _ROUNDED
    return np.asarray(np.minimum(np.where(epsilons < 0, mirrored, delta), 1.0))


@lru_cache(maxsize=64)
def _walk(products: tuple[Product, ...], size: int) -> _GroupWalk | None:
    """The best splits of steps 2 to `size` on a grid, from certified values of the curve; None without a grid."""
    if not 2 <= size <= _MOST_POINTS // 4:
        return None
    laws = [p.as_pair().pld() for p in products]

    def upper(epsilons: Floats) -> Floats:
        return np.asarray(np.max([pld_curve(law, epsilons)[1] for law in laws], axis=0))

    ladder = np.exp2(np.arange(-24.0, 7.01, 0.25))
    heights = upper(ladder)
    ends = ladder[heights <= heights[-1] * 1.01 + 1e-30]
    top = min(
        float(ends[0]) if len(ends) else float(ladder[-1]), max(p.largest_loss().high for p in products)
    )
    if not 1e-9 < top < math.inf:
        return None
    half = min(_POINTS, _MOST_POINTS // size)
    spacing = top / half
    grid = spacing * np.arange(-half, half + 1, dtype=np.float64)
    # Each value is taken a little below its grid point: curves fall.
    first = _both_signs(grid, upper(np.abs(grid) * (1 - 1e-15)))
    rest, power, left = None, first, size - 1
    while left:
        if left % 2:
            rest = power if rest is None else _joined(power, rest, spacing)
        left //= 2
        if left:
            power = _joined(power, power, spacing)
    assert rest is not None
    return _GroupWalk(spacing=spacing, first=first, rest=rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPair(WorstPair):
    """`size` units at once: the sum of e^(e_1 + ... + e_(i-1)) delta(e_i), e_1 + ... + e_k = e (`group-privacy`).

    Every split of epsilon is a bound. The result is the smaller of two: the even split, delta(e/k) (e^e -
    1)/(e^(e/k) - 1), and the best split on a grid.
    """

    products: tuple[Product, ...]
    size: int

    def __post_init__(self) -> None:
        self._check()
        require(self.size >= 1, parameter="size", value=self.size, must="be a positive integer")

    def _image(self, top: float) -> float:
        return top * self.size * (1 + 1e-15)

    def _inner(self, epsilon: Floats) -> Floats:
        return epsilon / self.size * (1 - 4e-16)

    def _shift_delta(self, epsilon: float, delta: float) -> float:
        if delta == 0 or self.size == 1:
            return delta
        if epsilon == 0:
            return min(1.0, self.size * delta * (1 + 1e-15))
        if epsilon > 700:
            return 1.0
        return min(1.0, delta * math.expm1(epsilon) / math.expm1(epsilon / self.size) * (1 + 1e-13))

    def bound_at(self, epsilon: float) -> Interval:
        even = super().bound_at(epsilon)
        if epsilon < 0 or even.high == 0 or (walk := _walk(self.products, self.size)) is None:
            return even
        own, added = walk.choose(np.array([min(epsilon, _FURTHEST)]))
        if added[0] >= even.high:
            return even
        delta = np.array([max(p.delta(abs(float(own[0]))).high for p in self.products)])
        split = (float(_both_signs(own, delta)[0]) + float(added[0])) * _ROUNDED
        return Interval(low=0.0, high=min(even.high, split))

    def pld(self) -> PrivacyLossDistribution:
        walk = _walk(self.products, self.size)
        if walk is None:
            return super().pld()
        laws = [p.as_pair().pld() for p in self.products]

        def member(epsilons: Floats) -> Floats:
            return np.asarray(np.max([pld_curve(law, epsilons)[1] for law in laws], axis=0))

        def upper(epsilons: Floats) -> Floats:
            best = member(self._inner(epsilons))
            even = [self._shift_delta(float(e), float(d)) for e, d in zip(epsilons, best, strict=True)]
            own, added = walk.choose(np.minimum(epsilons, _FURTHEST))
            return np.minimum(even, (_both_signs(own, member(np.abs(own))) + added) * _ROUNDED)

        return CurvePLD.two_sided(upper)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPair(MeasuredPair):
    """A product read as one pair; on a grid, the distribution of its gridded upper pair."""

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
        from tacit.pld.engine import CompositionEngine

        return CompositionEngine(list(self.product.pairs)).pld()

    def renyi(self, order: float) -> float:
        return self.product.renyi(order)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        inner = families((self.product,))
        return None if inner is None else (("ProductPair", inner[0]), inner[1])

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return ProductPair(product=rebuilt(self.product, values))

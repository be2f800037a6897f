"""Group privacy of a product: the hybrid argument, with the best split of epsilon over the steps."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, up
from tacit.pld.distributions import CurvePLD, PrivacyLossDistribution
from tacit.pld.grid import pld_curve
from tacit.pld.pairs.base import Pair, check_order
from tacit.pld.pairs.measured import WorstPair, worst_renyi
from tacit.pld.product import Product, families, rebuilt

__all__ = ["GroupPair"]


_POINTS = 128
"""So many grid points on each side of 0 for one step."""
_MOST_POINTS = 1024
"""Longer walks have fewer points a step."""
_CHOICES = 512
"""For so many values of epsilon a split is chosen; others take that of the next."""
_ROUNDED = 1 + 1e-12
"""Above the rounding of an exponential of at most 700, a product and a sum."""
_FURTHEST = 700.0
"""Beyond this epsilon the split at it stands for all: curves fall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """All steps but the first: from s `spacing` on, `rest[s + middle]` is what the best split found of them leaves.

    `first` is the curve of one step on the grid, with which a split is chosen; the chosen one is then bounded anew.
    """

    spacing: float
    first: Floats
    rest: Floats

    def choose(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """For each epsilon the first step's share, rounded down, and what the others add, rounded up."""
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
    """The best of delta(a) + e^a delta'(b) over grid points with a + b = each grid point."""
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
def _walk(products: tuple[Product, ...], size: int) -> _Walk | None:
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
    return _Walk(spacing=spacing, first=first, rest=rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPair(WorstPair):
    """`size` units at once: the sum of e^(e_1 + ... + e_(i-1)) delta(e_i), e_1 + ... + e_k = e (`group-privacy`).

    Every split of epsilon is a bound. The smaller of two is taken: the even one, delta(e/k) (e^e - 1)/(e^(e/k) - 1),
    and the best on a grid.
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
        even = super(GroupPair, self).bound_at(epsilon)
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
            return super(GroupPair, self).pld()
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

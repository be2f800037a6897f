"""Curves for the algebra of guarantees (`tacit.guarantees.bounds.profile`), computed by products of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

from tacit.exact.checks import instance
from tacit.guarantees.bounds.profile import Composer, Curve, Directions
from tacit.pld.pairs.base import Pair
from tacit.pld.pairs.derived import ApproximatePair, ConcentratedPair, GroupPair, MaximumPair, RenyiPair
from tacit.pld.pairs.gaussian import GaussianPair
from tacit.pld.pairs.laplace import LaplacePair
from tacit.pld.pairs.responses import FinitePair
from tacit.pld.pairs.sampled import PoissonSampledPair, ThinnedPair, WithoutReplacementPair
from tacit.pld.product import Product


def _products(curves: Directions) -> tuple[Product, ...]:
    return cast("tuple[Product, ...]", curves)


def _single(curves: Directions) -> Pair | None:
    """The pair itself, if the curves belong to one pair in one direction."""
    return _products(curves)[0].single if len(curves) == 1 else None


class PairComposer(Composer):
    """Curves as products of pairs; numbers are computed when they are asked for."""

    def is_curve(self, value: object) -> bool:
        return isinstance(value, Product)

    def of_pair(self, pair: Any) -> Directions:
        forward = Product.of(instance("pair", pair, Pair, must="be a pair of distributions"))
        return (forward,) if pair.symmetric else (forward, Product.of(pair.swapped()))

    def approximate(self, *, epsilon: float, delta: float) -> Directions:
        return self.of_pair(ApproximatePair(epsilon=epsilon, delta=delta))

    def gaussian(self, *, mu: float) -> Directions:
        return self.of_pair(GaussianPair(mu=mu))

    def laplace(self, *, epsilon: float) -> Directions:
        return self.of_pair(LaplacePair(epsilon=epsilon))

    def concentrated(self, *, rho: float) -> Directions:
        return self.of_pair(ConcentratedPair(rho=rho))

    def renyi(self, *, orders: tuple[float, ...], epsilons: tuple[float, ...]) -> Directions:
        return self.of_pair(RenyiPair(orders=orders, epsilons=epsilons))

    def tabulated(self, *, p: Sequence[Any], q: Sequence[Any]) -> Directions:
        return self.of_pair(FinitePair(p=p, q=q))

    def product(self, members: Sequence[tuple[Curve, int]]) -> Curve:
        return Product.union(cast("Sequence[tuple[Product, int]]", members))

    def worst(self, curves: Directions) -> Directions:
        return self.of_pair(MaximumPair(products=_products(curves)))

    def grouped(self, curves: Directions, size: int) -> Directions:
        return self.of_pair(GroupPair(products=_products(curves), size=size))

    def poisson_sampled(self, curves: Directions, rate: float) -> Directions:
        removal, addition = _products(curves)[0].as_pair(), _products(curves)[-1].as_pair()
        forward = PoissonSampledPair(pair=removal, rate=rate)
        backward = PoissonSampledPair(pair=addition.swapped(), rate=rate).swapped()
        return Product.of(forward), Product.of(backward)

    def sampled_without_replacement(self, curves: Directions, rate: float) -> Directions:
        return self.of_pair(WithoutReplacementPair(products=_products(curves), rate=rate))

    def thinned(self, curves: Directions, rate: float) -> Directions:
        return self.of_pair(ThinnedPair(products=_products(curves), rate=rate))

    def gaussian_squared(self, curves: Directions) -> Fraction | None:
        pair = _single(curves)
        return None if pair is None else pair.gaussian_squared

    def approximate_point(self, curves: Directions) -> tuple[float, float] | None:
        pair = _single(curves)
        return None if pair is None else pair.approximate_point

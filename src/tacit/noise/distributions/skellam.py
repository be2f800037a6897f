"""Poisson and Skellam noise: closed under sums, exact for every mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.balls import Ball, ball, precision, working_precision
from tacit.exact.checks import settle
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.skellam import skellam_masses
from tacit.noise.distributions.base import DiscreteDistribution
from tacit.noise.distributions.binomial import Shape, sampler_of, unzigzag, zigzag
from tacit.noise.distributions.blocks import BlockSampler
from tacit.noise.distributions.series import between_zero_and
from tacit.noise.lazy_inversion import CHUNK, Inverter, joined
from tacit.noise.source import Source

__all__ = ["Poisson", "Skellam"]

ENDLESS = 1 << 256
MOST_MEAN = 1 << 96


@dataclass(frozen=True, slots=True)
class _PoissonShape(Shape):
    """A Poisson law around its mode, as a binomial one without an upper end; `p` is the mean."""

    def log_ratio(self, k: int, to: int) -> Ball:
        if k == to:
            return flint.arb(0)
        with precision(working_precision() + 2 * max(k, to, 1).bit_length() + 32):
            return flint.arb(to + 1).lgamma() - flint.arb(k + 1).lgamma() + (k - to) * ball(self.p).log()

    def neighbours(self) -> tuple[list[Ball], Ball]:
        """Weights Pr[k]/Pr[m] around the mode by exact ratios mean/(k+1); the rest by a geometric series."""
        mean, cut = ball(self.p), flint.arb(2) ** -(working_precision() + 8)
        right, k, weight = [flint.arb(1)], self.mode, flint.arb(1)
        while True:
            ratio = mean / (k + 1)
            weight, k = weight * ratio, k + 1
            if weight < cut and ratio < 1:
                rest = between_zero_and(weight / (1 - ratio))
                break
            right.append(weight)
        left, weight = [], flint.arb(1)
        for k in range(self.mode, 0, -1):
            ratio = k / mean
            weight = weight * ratio
            if weight < cut and ratio < 1:
                rest = rest + between_zero_and(weight / (1 - ratio))
                break
            left.append(weight)
        return zigzag(right, left), rest


@lru_cache(maxsize=64)
def _poisson_sampler(mean: Fraction) -> tuple[_PoissonShape, Inverter | BlockSampler]:
    shape = _PoissonShape(ENDLESS, mean, int(mean))
    return shape, sampler_of(shape, int(mean) + 1, wide=mean >= 1 << 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson(DiscreteDistribution):
    """Pr[X = k] = e^-m m^k / k!, m = mean_count; exact for every mean."""

    mean_count: Exact
    _mean: Fraction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        mean = exact_parameter("mean_count", self.mean_count)
        if mean > MOST_MEAN:
            raise InvalidParameter(
                parameter="mean_count",
                value=self.mean_count,
                must="be at most 2^96",
                hint="use a coarser grid",
            )
        settle(self, mean_count=self.mean_count, _mean=mean)

    def _draw(self, count: int, source: Source) -> AnyArray:
        shape, sampler = _poisson_sampler(self._mean)
        if isinstance(sampler, BlockSampler):
            return sampler.draw(count, source)
        parts = []
        for start in range(0, count, CHUNK):
            index = sampler.invert(source.words(min(CHUNK, count - start)), source)
            parts.append(unzigzag(index, shape.mode, 0))
        return joined(parts)

    def probability_ball(self, k: int) -> Ball:
        if k < 0:
            return flint.arb(0)
        with precision(working_precision() + 2 * max(k, int(self._mean)).bit_length() + 32):
            return (k * ball(self._mean).log() - ball(self._mean) - flint.arb(k + 1).lgamma()).exp()

    def survival_ball(self, k: int) -> Ball:
        """The regularised lower incomplete gamma function P(k, m)."""
        if k <= 0:
            return flint.arb(1)
        return ball(self._mean).gamma_lower(flint.arb(k), regularized=1)

    def mean_ball(self) -> Ball:
        return ball(self._mean)

    def variance_ball(self) -> Ball:
        return ball(self._mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skellam(DiscreteDistribution):
    """The difference of two Poisson counts of mean v/2 each, v = noise_variance: Pr[X = k] = e^-v I_k(v); exact.

    Guarantee: independent draws of variances v_1..v_n add up to a draw of variance v_1 + ... + v_n.
    Source: Skellam 1946; as noise of several holders Agarwal, Kairouz, Liu 2021.
    """

    noise_variance: Exact

    def __post_init__(self) -> None:
        exact_parameter("noise_variance", self.noise_variance)
        settle(self, noise_variance=self.noise_variance)
        _ = self._side

    @property
    def parameter(self) -> Fraction:
        """The variance, exactly."""
        return exact_parameter("noise_variance", self.noise_variance)

    @property
    def _side(self) -> Poisson:
        return Poisson(mean_count=self.parameter / 2)

    def _draw(self, count: int, source: Source) -> AnyArray:
        side = self._side
        first = side._draw(count, source)
        return np.asarray(first - side._draw(count, source))

    def probability_ball(self, k: int) -> Ball:
        return ball(self.parameter).bessel_i(flint.arb(abs(k)), scaled=True)

    def survival_ball(self, k: int) -> Ball:
        if k <= 0:
            return flint.arb(1) - self.survival_ball(1 - k)
        _, tails = skellam_masses(self.parameter, working_precision(), working_precision())
        return tails[k] if k < len(tails) else between_zero_and(tails[-1])

    def tail_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= 0 else 2 * self.survival_ball(k)

    def mean_ball(self) -> Ball:
        return flint.arb(0)

    def variance_ball(self) -> Ball:
        return ball(self.parameter)

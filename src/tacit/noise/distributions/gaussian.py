"""The discrete Gaussian, exact at every scale."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import AnyArray, Words
from tacit.exact.checks import check_fields
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, ball, exact_parameter, exact_value, working_precision
from tacit.noise.distributions.base import (
    CHUNK,
    BlockSampler,
    DiscreteDistribution,
    Inverter,
    Series,
    between_zero_and,
    exact_exponential_coin,
    gaussian_terms,
    joined,
    quick_table,
)
from tacit.noise.source import Source

__all__ = ["DiscreteGaussian"]

DIRECT_STD = 48


def _fold(bits: int) -> Callable[..., tuple[AnyArray, npt.NDArray[np.bool_]]]:
    """value = ±(h 2^bits + place), minus zero being illegal so that zero is not counted twice."""

    def combine(block: AnyArray, place: AnyArray, word: Words) -> tuple[AnyArray, npt.NDArray[np.bool_]]:
        magnitude = block * (1 << bits) + place
        sign = (word & np.uint64(1)).view(np.int64)
        legal = (magnitude != 0) | (sign == 0)
        return (magnitude ^ -sign) + sign, legal.astype(np.bool_)

    return combine


@lru_cache(maxsize=64)
def _direct(variance: Fraction) -> Inverter:
    """|X| for a small scale, by one table."""
    return Inverter(Series(gaussian_terms(lambda: ball(1 / (2 * variance)), double=True)), bits=63)


@lru_cache(maxsize=64)
def _blocks(variance: Fraction) -> BlockSampler:
    """|X| for a large scale: blocks of 2^b with noise_std / 2^b between 24 and 48."""
    bits = 0
    while variance > (DIRECT_STD << bits) ** 2:
        bits += 1
    coefficient = Fraction(1 << (2 * bits), 1) / (2 * variance)
    series = Series(gaussian_terms(lambda: ball(coefficient), double=False))
    return BlockSampler(
        blocks=Inverter(series, bits=63),
        width_bits=bits,
        quick=quick_table([coefficient * (2 * h + 1) for h in range(8 * DIRECT_STD)]),
        exact=exact_exponential_coin(coefficient, bits, quadratic=True),
        combine=_fold(bits),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(DiscreteDistribution):
    """Pr[X = k] proportional to exp(-k^2 / (2 noise_std^2)) over all integers; exact for every scale.

    Guarantee: on integer queries of L2 sensitivity D it is D^2/(2 noise_std^2)-zCDP; its (epsilon, delta)
    profile is *not* that of the continuous Gaussian and must be summed.
    Source: Canonne, Kamath, Steinke 2020.
    """

    noise_std: Exact

    def __post_init__(self) -> None:
        check_fields(self, noise_std=exact_value)

    @property
    def parameter(self) -> Fraction:
        """noise_std^2, exactly; the variance is a little smaller."""
        return exact_parameter("noise_std", self.noise_std) ** 2

    def _draw(self, count: int, source: Source) -> AnyArray:
        if self.parameter > DIRECT_STD**2:
            return _blocks(self.parameter).draw(count, source)
        table = _direct(self.parameter)
        parts = []
        for start in range(0, count, CHUNK):
            words = source.words(min(CHUNK, count - start))
            magnitude = table.invert(words >> np.uint64(1), source)
            sign = (words & np.uint64(1)).view(np.int64)
            parts.append((magnitude ^ -sign) + sign)
        return joined(parts)

    def probability_ball(self, k: int) -> Ball:
        return (-ball(Fraction(k * k) / (2 * self.parameter))).exp() / normaliser(self.parameter)

    def survival_ball(self, k: int) -> Ball:
        if k <= 0:
            return flint.arb(1) - self.survival_ball(1 - k)
        if self.parameter > DIRECT_STD**2:
            return tail_sum(self.parameter, k) / normaliser(self.parameter)
        return _direct(self.parameter).distribution.survival(k) / 2

    def tail_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= 0 else 2 * self.survival_ball(k)

    def mean_ball(self) -> Ball:
        return flint.arb(0)

    def variance_ball(self) -> Ball:
        """sigma^3 Z'/Z with Z = sum exp(-k^2/2 sigma^2), from the shorter of its two series."""
        v = self.parameter
        if v < 1:
            return 2 * _square_sum(v) / normaliser(v)
        theta, slope = _dual(v)
        return ball(v) * (1 + slope / theta)


def normaliser(variance: Fraction) -> Ball:
    """Z = sum over all integers of exp(-k^2 / (2 v)), directly or by Poisson summation."""
    if variance < 1:
        weights, rest = gaussian_terms(lambda: ball(1 / (2 * variance)), double=True)()
        return sum(weights, rest)
    theta, _ = _dual(variance)
    return (2 * flint.arb.pi() * ball(variance)).sqrt() * theta


def _square_sum(variance: Fraction) -> Ball:
    """sum over k >= 1 of k^2 exp(-k^2 / (2 v)) for v < 1; each ratio beyond K is at most half."""
    total, k = flint.arb(0), 0
    cut = flint.arb(2) ** -(working_precision() + 8)
    while True:
        k += 1
        term = k * k * (-ball(Fraction(k * k) / (2 * variance))).exp()
        if k >= 3 and term < cut * (total + cut):
            return total + between_zero_and(2 * term)
        total = total + term


def _dual(variance: Fraction) -> tuple[Ball, Ball]:
    """theta = 1 + 2 sum exp(-2 pi^2 v j^2), and sigma times its derivative in sigma, for v >= 1."""
    a = 2 * flint.arb.pi() ** 2 * ball(variance)
    theta, slope, j = flint.arb(1), flint.arb(0), 0
    cut = flint.arb(2) ** -(working_precision() + 8)
    while True:
        j += 1
        term = 2 * (-a * (j * j)).exp()
        change = 2 * a * (j * j) * term
        if change < cut:
            # Later terms fall by more than half each: 2 pi^2 v (2j+1) > 59.
            return theta + between_zero_and(2 * term), slope - between_zero_and(2 * change)
        theta, slope = theta + term, slope - change


def tail_sum(variance: Fraction, k: int) -> Ball:
    """sum over j >= k of exp(-j^2 / (2 v)) for v > 1, by Euler-Maclaurin with its remainder.

    With f(x) = exp(-x^2/2v) and x = k/sigma: f^(n)(k) = (-1)^n sigma^-n He_n(x) f(k). The remainder after
    p terms is at most 2 zeta(2p) / (2 pi)^(2p) times the integral of |f^(2p)|, and Cramer's inequality
    |He_n(x)| <= 1.0865 sqrt(n!) exp(x^2/4) bounds that by 1.0865 sqrt((2p)!) sigma^(1-2p) 2 sqrt(pi).
    """
    sigma = ball(variance).sqrt()
    x = flint.arb(k) / sigma
    density = (-x * x / 2).exp()
    total = sigma * (flint.arb.pi() / 2).sqrt() * (x / flint.arb(2).sqrt()).erfc() + density / 2
    cut = flint.arb(2) ** -(working_precision() + 8)
    previous, hermite, p = flint.arb(1), x, 1
    while True:
        # f^(2p-1)(k) = -sigma^(1-2p) He_{2p-1}(x) f(k), entering as -B_{2p}/(2p)! f^(2p-1).
        bernoulli = flint.arb.bernoulli(2 * p) / flint.arb.fac_ui(2 * p)
        total = total + bernoulli * hermite * density / sigma ** (2 * p - 1)
        rest = (
            flint.arb("1.0865") * flint.arb.fac_ui(2 * p).sqrt() * 2 * flint.arb.pi().sqrt()
            * flint.arb(4) / (2 * flint.arb.pi() * sigma) ** (2 * p) * sigma
        )  # fmt: skip
        if rest < cut or p > 400:
            return total + flint.arb(0, rest.upper())
        even = x * hermite - (2 * p - 1) * previous
        previous, hermite = even, x * even - 2 * p * hermite
        p += 1

"""Geometric and discrete Laplace noise at any size of scale, digit by digit.

With q = exp(-1/s) and G geometric, Pr[G = k] = (1 - q) q^k, write G = L + m H with 0 <= L < m. Then
q^(L + mH) = q^L (q^m)^H, so L and H are independent: L is a truncated geometric, H a geometric of scale
s/m. Each digit is one short table, at any scale and in bounded memory. The discrete Laplace law has
Pr[Z < 0] = q/(1+q), and G = Z given Z >= 0, G = -1 - Z given Z < 0 is geometric: one coin and one G.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import flint

from tacit.noise.balls import Ball, Exact, ball_of, exact_parameter
from tacit.noise.exact import CHUNK, Integers, Inverter, bernoulli, joined
from tacit.noise.laws.base import DiscreteLaw
from tacit.noise.source import Source

__all__ = ["DiscreteLaplace", "Geometric", "geometric_digits", "truncated_digit"]

TOP_SCALE = 32
DIGIT_BITS = 10


def _power(rate: Fraction, k: int) -> Ball:
    """q^k = exp(-k rate)."""
    return (-ball_of(rate * k)).exp()


@dataclass(frozen=True, slots=True)
class _Digit:
    """L in 0..m-1 with Pr[L >= j] = (q^j - q^m) / (1 - q^m); m = 0 stands for no upper end."""

    rate: Fraction
    m: int

    def survival(self, k: int) -> Ball:
        if self.m == 0:
            return _power(self.rate, k)
        if k >= self.m:
            return flint.arb(0)
        # expm1 keeps full accuracy where q^m is close to 1.
        top = _power(self.rate, k) * (-ball_of(self.rate * (self.m - k))).expm1()
        return top / (-ball_of(self.rate * self.m)).expm1()

    def survivals(self) -> Iterator[Ball]:
        k = 0
        while self.m == 0 or k < self.m - 1:
            k += 1
            yield self.survival(k)


def truncated_digit(rate: Fraction, m: int) -> _Digit:
    """The law of G mod m, G geometric with q = exp(-rate)."""
    return _Digit(rate, m)


@dataclass(frozen=True, slots=True)
class Digits:
    """The digits of a geometric, lowest first; the last has no upper end."""

    inverters: tuple[Inverter, ...]
    weights: tuple[int, ...]

    def draw(self, count: int, source: Source) -> Integers:
        wide = self.weights[-1] > 1 << 50
        parts = []
        for start in range(0, count, CHUNK):
            n = min(CHUNK, count - start)
            words = source.words(n * len(self.inverters)).reshape(len(self.inverters), n)
            total: Integers | None = None
            for inverter, weight, row in zip(self.inverters, self.weights, words, strict=True):
                digit = inverter.invert(row, source)
                digit = digit.astype(object) if wide else digit
                total = digit * weight if total is None else total + digit * weight
            assert total is not None
            parts.append(total)
        return joined(parts)


@lru_cache(maxsize=256)
def geometric_digits(rate: Fraction) -> Digits:
    """The sampler of the geometric law with q = exp(-rate)."""
    scale_bits = max(0, (rate.denominator // rate.numerator // TOP_SCALE).bit_length())
    groups = -(-scale_bits // DIGIT_BITS)
    widths = [(scale_bits + i) // groups for i in range(groups)] if groups else []
    inverters, weights, weight = [], [], 1
    for width in widths:
        inverters.append(Inverter(_Digit(rate * weight, 1 << width)))
        weights.append(weight)
        weight <<= width
    inverters.append(Inverter(_Digit(rate * weight, 0)))
    weights.append(weight)
    return Digits(tuple(inverters), tuple(weights))


@lru_cache(maxsize=256)
def _side(rate: Fraction) -> Inverter:
    """The coin that says Z < 0: q/(1+q) = 1/(1 + exp(rate))."""
    return bernoulli(lambda: 1 / (1 + ball_of(rate).exp()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometric(DiscreteLaw):
    """Pr[X = k] = (1 - q) q^k for k >= 0, q = exp(-1/noise_scale); exact for every scale."""

    noise_scale: Exact

    def __post_init__(self) -> None:
        exact_parameter("noise_scale", self.noise_scale)

    @property
    def rate(self) -> Fraction:
        """1 / noise_scale, exactly."""
        return 1 / exact_parameter("noise_scale", self.noise_scale)

    def _draw(self, count: int, source: Source) -> Integers:
        return geometric_digits(self.rate).draw(count, source)

    def probability_ball(self, k: int) -> Ball:
        return flint.arb(0) if k < 0 else _power(self.rate, k) * -_expm1(-self.rate)

    def survival_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= 0 else _power(self.rate, k)

    @property
    def mean(self) -> float:
        return float((1 / ball_of(self.rate).expm1()).mid())

    def variance_ball(self) -> Ball:
        return _power(self.rate, 1) / _expm1(-self.rate) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(DiscreteLaw):
    """Pr[X = k] = (1-q)/(1+q) q^|k| over all integers, q = exp(-1/noise_scale); exact for every scale.

    Guarantee: adding it to an integer query of sensitivity D is (D / noise_scale)-DP, exactly.
    Source: Ghosh, Roughgarden, Sundararajan 2012 (two-sided geometric).
    """

    noise_scale: Exact

    def __post_init__(self) -> None:
        exact_parameter("noise_scale", self.noise_scale)

    @property
    def rate(self) -> Fraction:
        """1 / noise_scale, exactly."""
        return 1 / exact_parameter("noise_scale", self.noise_scale)

    def _draw(self, count: int, source: Source) -> Integers:
        digits, side = geometric_digits(self.rate), _side(self.rate)
        parts = []
        for start in range(0, count, CHUNK):
            n = min(CHUNK, count - start)
            magnitude = digits.draw(n, source)
            # G ^ -1 = -1 - G: the reflection without a branch.
            parts.append(magnitude ^ -side.invert(source.words(n), source))
        return joined(parts)

    def probability_ball(self, k: int) -> Ball:
        return _power(self.rate, abs(k)) * (ball_of(self.rate) / 2).tanh()

    def survival_ball(self, k: int) -> Ball:
        upper = _power(self.rate, max(k, 1 - k)) / (1 + _power(self.rate, 1))
        return upper if k >= 1 else flint.arb(1) - upper

    def tail_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= 0 else 2 * self.survival_ball(k)

    @property
    def mean(self) -> float:
        return 0.0

    def variance_ball(self) -> Ball:
        return 2 * _power(self.rate, 1) / _expm1(-self.rate) ** 2


def _expm1(value: Fraction) -> Ball:
    return ball_of(value).expm1()

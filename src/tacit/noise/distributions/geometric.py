"""Geometric and discrete Laplace noise at any size of scale, digit by digit.

With q = exp(-1/s) and G geometric, Pr[G = k] = (1 - q) q^k, write G = L + m H with 0 <= L < m. Then
q^(L + mH) = q^L (q^m)^H, so L and H are independent: L is a truncated geometric, H a geometric of scale
s/m. Each digit is one short table, at any scale and in bounded memory. The discrete Laplace distribution has
Pr[Z < 0] = q/(1+q), and G = Z given Z >= 0, G = -1 - Z given Z < 0 is geometric: one coin and one G.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field
from fractions import Fraction
from functools import lru_cache, partial

import flint
import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import check_fields, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, ball, exact_parameter, exact_value, precision
from tacit.noise.distributions.base import (
    CHUNK,
    BlockSampler,
    DiscreteDistribution,
    Inverter,
    bernoulli,
    exact_exponential_coin,
    joined,
    quick_table,
)
from tacit.noise.distributions.finite import uniform_draws
from tacit.noise.source import Source

__all__ = ["DiscreteLaplace", "DiscreteStaircase", "OneSidedGeometric"]

# Up to the first scale one table serves; above it the top digit is brought down to the second.
DIRECT_SCALE = 32
TOP_SCALE = 8
DIGIT_BITS = 9
MOST_DIGIT_BITS = 56


def _power(rate: Fraction, k: int) -> Ball:
    """q^k = exp(-k rate)."""
    exponent = -rate * k
    return flint.arb(flint.fmpq(exponent.numerator, exponent.denominator)).exp()


@dataclass(frozen=True, slots=True)
class _Digit:
    """L in 0..m-1 with Pr[L >= j] = (q^j - q^m) / (1 - q^m); m = 0 means no upper end."""

    rate: Fraction
    m: int

    def survival(self, k: int) -> Ball:
        if self.m == 0:
            return _power(self.rate, k)
        if k >= self.m:
            return flint.arb(0)
        # expm1 keeps full accuracy where q^m is close to 1.
        top = _power(self.rate, k) * (-ball(self.rate * (self.m - k))).expm1()
        return top / (-ball(self.rate * self.m)).expm1()

    def survivals(self) -> Iterator[Ball]:
        """q^k by repeated products; truncated, 1 - D_k / D_m with D_k = 1 - q^k a sum of positive terms."""
        q, gap = _power(self.rate, 1), -_expm1(-self.rate)
        power = q
        if self.m == 0:
            while True:
                yield power
                power = power * q
        whole, part = -_expm1(-self.rate * self.m), gap
        inverse = 1 / whole
        for _ in range(1, self.m):
            yield 1 - part * inverse
            part = part + power * gap
            power = power * q


def truncated_digit(rate: Fraction, m: int) -> _Digit:
    """The distribution of G mod m, G geometric with q = exp(-rate)."""
    return _Digit(rate, m)


@dataclass(frozen=True, slots=True)
class Digits:
    """The digits of a geometric, lowest first; the last has no upper end."""

    inverters: tuple[Inverter, ...]
    weights: tuple[int, ...]

    def draw(self, count: int, source: Source) -> AnyArray:
        """Draw the digits and put them together."""
        wide = self.weights[-1] > 1 << 50
        parts = []
        for start in range(0, count, CHUNK):
            n = min(CHUNK, count - start)
            words = source.words(n * len(self.inverters)).reshape(len(self.inverters), n)
            total: AnyArray | None = None
            for inverter, weight, row in zip(self.inverters, self.weights, words, strict=True):
                digit = inverter.invert(row, source)
                # Only a draw that is never seen (below 2^-300) can make a narrow sum wide.
                wide = wide or int(digit.max()) * weight >= 1 << 61
                digit = digit.astype(object) if wide else digit
                total = digit * weight if total is None else total + digit * weight
            assert total is not None
            parts.append(total)
        return joined(parts)


@lru_cache(maxsize=256)
def geometric_digits(rate: Fraction) -> Digits | BlockSampler:
    """The sampler of the geometric distribution with q = exp(-rate)."""
    scale = rate.denominator // rate.numerator
    scale_bits = 0 if scale < DIRECT_SCALE else (scale // TOP_SCALE).bit_length()
    if scale_bits > MOST_DIGIT_BITS:
        return _blocks(rate, scale_bits)
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


def _blocks(rate: Fraction, bits: int) -> BlockSampler:
    """For scales beyond 2^60: H geometric as before, L uniform and kept with chance q^L."""
    step = rate * (1 << bits)
    return BlockSampler(
        blocks=Inverter(_Digit(step, 0), bits=63),
        width_bits=bits,
        # The keeping chance is at least exp(-step) in every block.
        quick=quick_table([step] * (64 * TOP_SCALE)),
        exact=exact_exponential_coin(step, bits, quadratic=False),
        combine=lambda block, place, word: (block * (1 << bits) + place, np.full(word.shape, True)),
        wide=True,
    )


@lru_cache(maxsize=256)
def _side(rate: Fraction) -> Inverter:
    """The coin that says Z < 0: q/(1+q)."""

    def chance() -> Ball:
        q = _power(rate, 1)
        return q / (1 + q)

    return bernoulli(chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfScale(DiscreteDistribution):
    """A distribution with q = exp(-1/noise_scale)."""

    noise_scale: Exact

    def __post_init__(self) -> None:
        check_fields(self, noise_scale=exact_value)

    @property
    def rate(self) -> Fraction:
        """1 / noise_scale, exactly."""
        return 1 / exact_parameter("noise_scale", self.noise_scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSidedGeometric(_OfScale):
    """Pr[X = k] = (1 - q) q^k for k >= 0, q = exp(-1/noise_scale); exact for every scale."""

    def _draw(self, count: int, source: Source) -> AnyArray:
        return geometric_digits(self.rate).draw(count, source)

    def probability_ball(self, k: int) -> Ball:
        return flint.arb(0) if k < 0 else _power(self.rate, k) * -_expm1(-self.rate)

    def survival_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= 0 else _power(self.rate, k)

    def mean_ball(self) -> Ball:
        return 1 / _expm1(self.rate)

    def variance_ball(self) -> Ball:
        return _power(self.rate, 1) / _expm1(-self.rate) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(_OfScale):
    """Pr[X = k] = (1-q)/(1+q) q^|k| over all integers, q = exp(-1/noise_scale); exact for every scale.

    Guarantee: adding it to an integer query of sensitivity D is (D / noise_scale)-DP, exactly.
    Source: Ghosh, Roughgarden, Sundararajan 2012 (two-sided geometric).
    """

    def _draw(self, count: int, source: Source) -> AnyArray:
        digits, side = geometric_digits(self.rate), _side(self.rate)
        parts = []
        for start in range(0, count, CHUNK):
            n = min(CHUNK, count - start)
            magnitude = digits.draw(n, source)
            # G ^ -1 = -1 - G: the reflection without a branch.
            parts.append(magnitude ^ -side.invert(source.words(n), source))
        return joined(parts)

    def probability_ball(self, k: int) -> Ball:
        return _power(self.rate, abs(k)) * (ball(self.rate) / 2).tanh()

    def survival_ball(self, k: int) -> Ball:
        upper = _power(self.rate, max(k, 1 - k)) / (1 + _power(self.rate, 1))
        return upper if k >= 1 else flint.arb(1) - upper

    def tail_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= 0 else 2 * self.survival_ball(k)

    def mean_ball(self) -> Ball:
        return flint.arb(0)

    def variance_ball(self) -> Ball:
        return 2 * _power(self.rate, 1) / _expm1(-self.rate) ** 2


def _expm1(value: Fraction) -> Ball:
    return ball(value).expm1()


# The staircase distribution on a grid.


@lru_cache(maxsize=256)
def _low_coin(epsilon: Fraction, plateau: int, rest: int) -> Inverter:
    """The coin for the lower part of a step: chance b(D-r) / (r + b(D-r)), b = exp(-epsilon)."""
    return bernoulli(lambda: rest / (rest + plateau * ball(epsilon).exp()))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteStaircase(DiscreteDistribution):
    """Pr[X = i] proportional to b^j for j D <= |i| < j D + r, b^(j+1) for j D + r <= |i| < (j+1) D.

    D = sensitivity (in grid steps), b = exp(-epsilon), r = plateau in 1..D. Guarantee: moving an integer
    query by at most D changes |i| by at most D, hence the level by at most one: epsilon-DP for every r.
    `gamma` = r/D may be given; by default r is the one of the two grid neighbours of D/(1 + e^(epsilon/2))
    with the smaller E|X|. Source: Geng, Viswanath 2014.
    """

    epsilon: Exact
    sensitivity: int
    gamma: Exact | None = None
    plateau: int = field(init=False)
    """r: the number of a step's D points on its upper level."""

    def __post_init__(self) -> None:
        check_fields(self, epsilon=exact_value, sensitivity=partial(whole, least=1))
        if self.gamma is not None and not 0 < exact_parameter("gamma", self.gamma) <= 1:
            raise InvalidParameter(parameter="gamma", value=self.gamma, must="lie in (0, 1]")
        set_fields(self, gamma=self.gamma)
        object.__setattr__(self, "plateau", self._chosen())

    def _chosen(self) -> int:
        d = self.sensitivity
        if self.gamma is not None:
            return min(d, max(1, round(exact_parameter("gamma", self.gamma) * d)))
        best = Fraction(1.0 / (1.0 + math.exp(min(float(self.rate), 1400.0) / 2))) * d
        low = min(d, max(1, math.floor(best)))
        with precision(256):
            return min((low, min(d, low + 1)), key=lambda r: float(self._moment(1, r).mid()))

    @property
    def rate(self) -> Fraction:
        """epsilon, exactly."""
        return exact_parameter("epsilon", self.epsilon)

    def _draw(self, count: int, source: Source) -> AnyArray:
        parts: list[AnyArray] = []
        missing = count
        while missing > 0:
            kept = self._attempt(min(CHUNK, 2 * missing + 8), source)[:missing]
            parts.append(kept)
            missing -= kept.size
        return joined(parts)

    def _attempt(self, n: int, source: Source) -> AnyArray:
        """Step, place in the step and sign are independent; minus zero is drawn again."""
        d, r = self.sensitivity, self.plateau
        step = geometric_digits(self.rate).draw(n, source)
        place = uniform_draws(r, n, source)
        if d > r:
            low = _low_coin(self.rate, r, d - r).invert(source.words(n), source) == 1
            place = np.where(low, uniform_draws(d - r, n, source) + r, place)
        if d > 1 << 40 or int(step.max()) * d > 1 << 61:
            step, place = step.astype(object), place.astype(object)
        magnitude = step * d + place
        sign = (source.words(n) & np.uint64(1)).view(np.int64)
        legal = ((magnitude != 0) | (sign == 0)).astype(np.bool_)
        signed: AnyArray = np.asarray((magnitude ^ -sign) + sign)
        return np.compress(legal, signed)

    def _b(self) -> Ball:
        return (-ball(self.rate)).exp()

    def _step_mass(self, r: int) -> Ball:
        return r + self._b() * (self.sensitivity - r)

    def _total(self, r: int) -> Ball:
        return 2 * self._step_mass(r) / (1 - self._b()) - 1

    def probability_ball(self, k: int) -> Ball:
        r = self.plateau
        step, place = divmod(abs(k), self.sensitivity)
        return (-ball(self.rate * (step + (place >= r)))).exp() / self._total(r)

    def survival_ball(self, k: int) -> Ball:
        if k <= 0:
            return 1 - self.survival_ball(1 - k)
        r, b = self.plateau, self._b()
        step, place = divmod(k, self.sensitivity)
        here = max(r - place, 0) + b * (self.sensitivity - max(place, r))
        later = b * self._step_mass(r) / (1 - b)
        return (-ball(self.rate * step)).exp() * (here + later) / self._total(r)

    def tail_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= 0 else 2 * self.survival_ball(k)

    def mean_ball(self) -> Ball:
        return flint.arb(0)

    @property
    def mean_absolute(self) -> float:
        """E|X|, to the nearest float or the one beside it."""
        with precision(256):
            return float(self._moment(1, self.plateau).mid())

    def variance_ball(self) -> Ball:
        return self._moment(2, self.plateau)

    def _moment(self, power: int, r: int) -> Ball:
        """E|X|^power, power 1 or 2: sum over steps j of b^j sum over places p of w_p (jD + p)^power."""
        d, b = self.sensitivity, self._b()
        upper = [Fraction(r), Fraction(r * (r - 1), 2), Fraction((r - 1) * r * (2 * r - 1), 6)]
        whole = [Fraction(d), Fraction(d * (d - 1), 2), Fraction((d - 1) * d * (2 * d - 1), 6)]
        w = [ball(u) + b * ball(t - u) for u, t in zip(upper, whole, strict=True)]
        s0, s1, s2 = 1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3
        if power == 1:
            return 2 * (d * w[0] * s1 + w[1] * s0) / self._total(r)
        return 2 * (d * d * w[0] * s2 + 2 * d * w[1] * s1 + w[2] * s0) / self._total(r)

"""Pólya noise: negative binomials of any shape, and their differences, of which discrete Laplace noise is a sum.

With q = exp(-1/noise_scale) the distribution Pr[X = k] = (r)_k / k! (1-q)^r q^k has the generating function
((1-q)/(1-qz))^r, so that shapes add up: the sum of n independent draws of shape r/n has shape r, exactly. A
difference of two draws of shape 1 is the discrete Laplace distribution, and n shares of shape 1/n add up to it.

Draws of shape at most 1 are exact rejections from a step envelope over blocks that widen with k: single numbers
below 16, then eight blocks an octave, up to an eighth of the scale. ln Pr is convex in k (the ratios
q (k+r)/(k+1) rise), so a chord bounds it from above in a block and the next chord, prolonged, from below: floats
decide all but a few draws in a thousand, balls the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import flint
import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import AnyArray, Words
from tacit.exact.checks import refuse_if, set_fields
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, ball, exact_parameter, precision, working_precision
from tacit.noise.distributions.base import (
    CHUNK,
    DiscreteDistribution,
    Inverter,
    Series,
    Uniform,
    between_zero_and,
    exp_minus,
    joined,
)
from tacit.noise.source import Source

__all__ = ["NegativeBinomial", "PolyaDifference"]

OCTAVE = 8
MOST_SCALE = 1 << 48
MARGIN = 2.0**-40
"""Far above the errors of the floats that decide a draw: logs within 2^-46, exp_minus within 2^-48."""
TABLED = 32
MOST_SHAPE = 4096


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The blocks, and the weights Gamma(k+r)/Gamma(k+1) q^k of their first numbers; 0 < r <= 1."""

    shape: Fraction
    rate: Fraction

    @property
    def widest(self) -> int:
        """The bits of the widest blocks: at most an eighth of the scale."""
        scale = self.rate.denominator // (self.rate.numerator * OCTAVE)
        return max(scale.bit_length() - 1, 0)

    def bits(self, index: int) -> int:
        return min(max(index // OCTAVE - 1, 0), self.widest)

    def start(self, index: int) -> int:
        bits = self.bits(index)
        return (index - OCTAVE * bits) << bits

    def log_weight(self, k: int) -> Ball:
        """ln Gamma(k+r) - ln Gamma(k+1) - k rate, with extra bits for the cancellation."""
        with precision(working_precision() + 2 * k.bit_length() + 16):
            return ball(k + self.shape).lgamma() - flint.arb(k + 1).lgamma() - ball(self.rate * k)

    def terms(self) -> tuple[list[Ball], Ball]:
        """The envelope's mass of each block; after the widest block, each is at most q^width times the one before."""
        cut = flint.arb(2) ** -(working_precision() + 8)
        capped = OCTAVE * (self.widest + 1)
        fall = (-ball(self.rate * (1 << self.widest))).exp()
        weights: list[Ball] = []
        while True:
            index = len(weights)
            weight = self.log_weight(self.start(index)).exp() * (1 << self.bits(index))
            weights.append(weight)
            if index >= capped and weight < cut:
                return weights, between_zero_and(weight * fall / (1 - fall))


class _Sampler:
    """Draws of shape at most 1: a block by lazy inversion, a place in it, and an exact coin."""

    __slots__ = ("_blocks", "_chords", "_inverter", "_next")

    def __init__(self, blocks: _Blocks) -> None:
        self._blocks = blocks
        self._inverter = Inverter(Series(blocks.terms))
        count = OCTAVE * (blocks.widest + 1) + OCTAVE * TABLED
        logs = []
        with precision(128):
            for index in range(count + 2):
                logs.append(blocks.log_weight(blocks.start(index)))
            fallen = [float((a - b).mid()) for a, b in pairwise(logs)]
        widths = [float(1 << blocks.bits(i)) for i in range(count + 1)]
        # -ln of the ratio over the block, and over as many numbers of the next one.
        self._chords = np.array([*fallen[:count], 1.0])
        self._next = np.array([*(fallen[i + 1] * widths[i] / widths[i + 1] for i in range(count)), 0.0])

    def draw(self, count: int, source: Source) -> AnyArray:
        parts: list[AnyArray] = []
        missing = count
        while missing > 0:
            kept = self._attempt(min(CHUNK, missing + missing // 8 + 4), source)[:missing]
            parts.append(kept)
            missing -= kept.size
        return joined(parts)

    def _attempt(self, n: int, source: Source) -> AnyArray:
        index = self._inverter.invert(source.words(n), source)
        if self._blocks.widest == 0:
            return index
        place, choice = source.words(n), source.words(n)
        if index.dtype == object or int(index.max()) >= 1 << 13:
            return self._one_by_one(index, place, choice, source)
        bits = np.clip(index // OCTAVE - 1, 0, self._blocks.widest)
        inside = (place & ((np.uint64(1) << bits.astype(np.uint64)) - np.uint64(1))).astype(np.int64)
        at = np.minimum(index, self._chords.size - 1)
        y = inside / np.left_shift(np.int64(1), bits)
        fallen, after = self._chords[at], self._next[at]
        high = exp_minus(fallen * y) + MARGIN
        low = exp_minus(np.maximum(fallen - after * (1.0 - y), fallen * y)) - MARGIN
        uniform = (choice >> np.uint64(11)).astype(np.float64) * 2.0**-53
        single = (bits == 0) | (inside == 0)
        keep: npt.NDArray[np.bool_] = single | (uniform < low)
        value = np.left_shift(index - OCTAVE * bits, bits) + inside
        unknown = (~keep & (uniform <= high)) | (~single & (index >= self._chords.size - 1))
        for i in np.flatnonzero(unknown):
            keep[i] = self._exactly(int(value[i]), int(inside[i]), int(choice[i]), source)
        return np.asarray(value[keep])

    def _exactly(self, value: int, inside: int, word: int, source: Source) -> bool:
        """Keep with chance Pr[value] / Pr[start of its block]."""
        uniform = Uniform(value=word, bits=64, source=source)
        return uniform.below(
            lambda: (self._blocks.log_weight(value) - self._blocks.log_weight(value - inside)).exp()
        )

    def _one_by_one(self, index: AnyArray, place: Words, choice: Words, source: Source) -> AnyArray:
        """Blocks so far out that int64 would wrap around. They practically never occur, and are exact too."""
        kept = []
        for i, p, c in zip(index.tolist(), place.tolist(), choice.tolist(), strict=True):
            inside = p & ((1 << self._blocks.bits(i)) - 1)
            value = self._blocks.start(i) + inside
            if inside == 0 or self._exactly(value, inside, c, source):
                kept.append(value)
        return np.array(kept, dtype=object)


@lru_cache(maxsize=64)
def _sampler(shape: Fraction, rate: Fraction) -> _Sampler:
    return _Sampler(_Blocks(shape, rate))


def _checked(shape: Exact, noise_scale: Exact) -> None:
    size, scale = exact_parameter("shape", shape), exact_parameter("noise_scale", noise_scale)
    refuse_if(size > MOST_SHAPE, "shape", shape, f"be at most {MOST_SHAPE}")
    refuse_if(scale > MOST_SCALE, "noise_scale", noise_scale, "be at most 2^48 steps", "use a coarser grid")


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeBinomial(DiscreteDistribution):
    """Pr[X = k] = (r)_k / k! (1 - q)^r q^k for k >= 0, q = exp(-1/noise_scale), r = shape; exact.

    Guarantee: independent draws of shapes r_1..r_n at one scale add up to a draw of shape r_1 + ... + r_n.
    """

    shape: Exact
    noise_scale: Exact

    def __post_init__(self) -> None:
        _checked(self.shape, self.noise_scale)
        set_fields(self, shape=self.shape, noise_scale=self.noise_scale)

    @property
    def rate(self) -> Fraction:
        """1 / noise_scale, exactly."""
        return 1 / exact_parameter("noise_scale", self.noise_scale)

    @property
    def size(self) -> Fraction:
        """The shape, exactly."""
        return exact_parameter("shape", self.shape)

    def _draw(self, count: int, source: Source) -> AnyArray:
        pieces = math.ceil(self.size)
        sampler = _sampler(self.size / pieces, self.rate)
        total = sampler.draw(count, source)
        for _ in range(pieces - 1):
            total = total + sampler.draw(count, source)
        return total

    def probability_ball(self, k: int) -> Ball:
        if k < 0:
            return flint.arb(0)
        r, rate = ball(self.size), ball(self.rate)
        with precision(working_precision() + 2 * k.bit_length() + 16):
            log = (r + k).lgamma() - r.lgamma() - flint.arb(k + 1).lgamma() + r * (-(-rate).expm1()).log()
            return (log - rate * k).exp()

    def survival_ball(self, k: int) -> Ball:
        """The regularised incomplete beta function I_q(k, r)."""
        if k <= 0:
            return flint.arb(1)
        return (-ball(self.rate)).exp().beta_lower(flint.arb(k), ball(self.size), regularized=True)

    def mean_ball(self) -> Ball:
        return ball(self.size) / ball(self.rate).expm1()

    def variance_ball(self) -> Ball:
        return ball(self.size) * (-ball(self.rate)).exp() / (-ball(self.rate)).expm1() ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PolyaDifference(DiscreteDistribution):
    """X - Y for independent negative binomials of one shape and scale: a share of discrete Laplace noise; exact.

    Guarantee: draws of shapes that add up to 1 add up to DiscreteLaplace(noise_scale).
    Source: Ács, Castelluccia 2011 (gamma shares); Goryczka, Xiong 2017 (Pólya shares).
    """

    shape: Exact
    noise_scale: Exact

    def __post_init__(self) -> None:
        _checked(self.shape, self.noise_scale)
        set_fields(self, shape=self.shape, noise_scale=self.noise_scale)

    @property
    def side(self) -> NegativeBinomial:
        """The distribution of either of the two."""
        return NegativeBinomial(shape=self.shape, noise_scale=self.noise_scale)

    def _draw(self, count: int, source: Source) -> AnyArray:
        side = self.side
        first = side._draw(count, source)
        return np.asarray(first - side._draw(count, source))

    def probability_ball(self, k: int) -> Ball:
        """sum_j Pr[j + k] Pr[j] = Pr[k] (1-q)^r 2F1(r, r+k; k+1; q^2)."""
        k = abs(k)
        r, rate = ball(self.side.size), ball(self.side.rate)
        tail = (-2 * rate).exp().hypgeom_2f1(r, r + k, flint.arb(k + 1))
        return self.side.probability_ball(k) * (r * (-(-rate).expm1()).log()).exp() * tail

    def survival_ball(self, k: int) -> Ball:
        if k <= 0:
            return flint.arb(1) - self.survival_ball(1 - k)
        terms = _tails(self.side.size, self.side.rate, working_precision())
        return terms(k)

    def tail_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= 0 else 2 * self.survival_ball(k)

    def mean_ball(self) -> Ball:
        return flint.arb(0)

    def variance_ball(self) -> Ball:
        return 2 * self.side.variance_ball()


@lru_cache(maxsize=16)
def _tails(shape: Fraction, rate: Fraction, bits: int) -> Callable[[int], Ball]:
    """Pr[X - Y >= k] = sum_j Pr[Y = j] Pr[X >= j + k], as one product of polynomials with ball coefficients."""
    law = NegativeBinomial(shape=shape, noise_scale=1 / rate)
    q, masses, mass, j = (-ball(rate)).exp(), [], law.probability_ball(0), 0
    cut = flint.arb(2) ** -(bits + 8)
    while not (mass < cut and j > shape):
        masses.append(mass)
        mass = mass * q * ball((shape + j) / (j + 1))
        j += 1
    # Beyond J > r the ratios q (j+r)/(j+1) are at most q (J+r)/(J+1), or q where r <= 1.
    most = q * ball(max((shape + j) / (j + 1), Fraction(1)))
    rest = between_zero_and(mass / (1 - most)) if most < 1 else between_zero_and(flint.arb(1))
    suffix, suffixes = rest, [rest]
    for mass in reversed(masses):
        suffix = suffix + mass
        suffixes.append(suffix)
    suffixes.reverse()
    # coefficient of z^(k + J - 1): sum over j of Pr[Y = j] Pr[X >= j + k].
    product = (flint.arb_poly(suffixes) * flint.arb_poly(masses[::-1])).coeffs()
    size = len(masses)

    def tail(k: int) -> Ball:
        at = k + size - 1
        inside = product[at] if at < len(product) else flint.arb(0)
        return inside + 2 * rest

    return tail

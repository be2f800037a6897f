"""The binomial distribution, exact for any number of trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray, Words
from tacit.exact.checks import check_fields, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import (
    Ball,
    CertifiedReal,
    Exact,
    ball,
    exact_parameter,
    exact_value,
    precision,
    scaled_floor,
    skellam_masses,
    working_precision,
)
from tacit.noise.distributions.base import (
    CHUNK,
    BlockSampler,
    DiscreteDistribution,
    Inverter,
    Series,
    Uniform,
    between_zero_and,
    exp_minus,
    joined,
)
from tacit.noise.distributions.finite import probability_parameter
from tacit.noise.source import Source

__all__ = ["Binomial", "Poisson", "Skellam"]

DIRECT_STD = 48
BLOCK_STD = 24
FLOAT_MARGIN = 2.0**-36
"""Far above the errors of the floats that decide a draw: logs and places within 2^-44, exp_minus within 2^-48."""
_Combined = tuple[AnyArray, npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Shape:
    """The distribution around its mode m: index 2i is m + i, index 2i + 1 is m - 1 - i, in steps of a stride."""

    n: int
    p: Fraction | CertifiedReal
    mode: int

    def place(self, index: int, stride: int) -> int:
        """The number at an index."""
        half, left = divmod(index, 2)
        return self.mode - 1 - half * stride if left else self.mode + half * stride

    def log_ratio(self, k: int, to: int) -> Ball:
        """ln Pr[k] - ln Pr[to], with extra bits for the cancellation."""
        if k == to:
            return flint.arb(0)
        with precision(working_precision() + 2 * self.n.bit_length() + 32):
            p, n = ball(self.p), self.n
            return (
                flint.arb(to + 1).lgamma() + flint.arb(n - to + 1).lgamma()
                - flint.arb(k + 1).lgamma() - flint.arb(n - k + 1).lgamma()
                + (k - to) * (p / (1 - p)).log()
            )  # fmt: skip

    def neighbours(self) -> tuple[list[Ball], Ball]:
        """Weights Pr[k]/Pr[m] around the mode by exact ratios; the rest by a geometric series."""
        p, n, m = ball(self.p), self.n, self.mode
        odds = p / (1 - p)
        cut = flint.arb(2) ** -(working_precision() + 8)
        right, k, weight, rest = [flint.arb(1)], m, flint.arb(1), flint.arb(0)
        while k < n:
            ratio = odds * (n - k) / (k + 1)
            weight, k = weight * ratio, k + 1
            if weight < cut and ratio < 1:
                rest = rest + between_zero_and(weight / (1 - ratio))
                break
            right.append(weight)
        left, k, weight = [], m, flint.arb(1)
        while k > 0:
            ratio = k / (odds * (n - k + 1))
            weight, k = weight * ratio, k - 1
            if weight < cut and ratio < 1:
                rest = rest + between_zero_and(weight / (1 - ratio))
                break
            left.append(weight)
        return zigzag(right, left), rest

    def blocks(self, stride: int) -> tuple[list[Ball], Ball]:
        """The same at every stride-th place of each side: a log-concave sequence, so ratios only fall."""
        cut = flint.arb(2) ** -(working_precision() + 8)
        sides, rest = [], flint.arb(0)
        for left in (0, 1):
            weights: list[Ball] = []
            while 0 <= (k := self.place(2 * len(weights) + left, stride)) <= self.n:
                weights.append(self.log_ratio(k, self.mode).exp())
                if weights[-1] < cut and len(weights) > 1:
                    ratio = weights[-1] / weights[-2]
                    if ratio < 1:
                        rest = rest + between_zero_and(weights[-1] * ratio / (1 - ratio))
                        break
            sides.append(weights)
        return zigzag(*sides), rest


def zigzag(right: list[Ball], left: list[Ball]) -> list[Ball]:
    """Both sides in turn, the shorter one filled up with zeros."""
    zero = flint.arb(0)
    size = max(len(right), len(left))
    right = right + [zero] * (size - len(right))
    left = left + [zero] * (size - len(left))
    return [w for pair in zip(right, left, strict=True) for w in pair]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binomial(DiscreteDistribution):
    """Pr[X = k] = C(n, k) p^k (1-p)^(n-k), n = trials of any length, p exact or certified.

    Small spread: lazy inversion outwards from the mode. Large spread: exact rejection from blocks.
    """

    trials: int
    probability_of_one: Exact | CertifiedReal
    _shape: Shape | None = field(init=False, repr=False, compare=False)
    _sampler: Inverter | BlockSampler | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        n = whole("trials", self.trials, least=0)
        set_fields(self, trials=n, probability_of_one=self.probability_of_one)
        p = probability_parameter("probability_of_one", self.probability_of_one)
        shape = None if n == 0 or p in (0, 1) else Shape(n, p, _mode(n, p))
        object.__setattr__(self, "_shape", shape)
        object.__setattr__(self, "_sampler", None if shape is None else sampler_of(shape, self._spread(p)))

    def _spread(self, p: Fraction | CertifiedReal) -> int:
        """The variance, to within one."""
        with precision(128 + self.trials.bit_length()):
            q = ball(p)
            return scaled_floor(self.trials * q * (1 - q), 0)[1]

    def _draw(self, count: int, source: Source) -> AnyArray:
        shape, sampler = self._shape, self._sampler
        if shape is None or sampler is None:
            p = probability_parameter("probability_of_one", self.probability_of_one)
            sure = self.trials if p == 1 else 0
            return np.full(count, sure, dtype=np.int64 if sure < 1 << 63 else object)
        if isinstance(sampler, BlockSampler):
            return sampler.draw(count, source)
        parts = []
        for start in range(0, count, CHUNK):
            index = sampler.invert(source.words(min(CHUNK, count - start)), source)
            parts.append(unzigzag(index, shape.mode, self.trials))
        return joined(parts)

    def _p(self) -> Ball:
        return ball(probability_parameter("probability_of_one", self.probability_of_one))

    def probability_ball(self, k: int) -> Ball:
        if not 0 <= k <= self.trials:
            return flint.arb(0)
        p, n = self._p(), self.trials
        if self._shape is None:
            return flint.arb(int(k == (n if p == 1 else 0)))
        with precision(working_precision() + 2 * n.bit_length() + 32):
            log = flint.arb(n + 1).lgamma() - flint.arb(k + 1).lgamma() - flint.arb(n - k + 1).lgamma()
            return (log + k * p.log() + (n - k) * (1 - p).log()).exp()

    def survival_ball(self, k: int) -> Ball:
        if k <= 0:
            return flint.arb(1)
        if k > self.trials:
            return flint.arb(0)
        if self._shape is None:
            return flint.arb(int(self._p() == 1))
        if isinstance(self._sampler, BlockSampler):
            return self._p().beta_lower(flint.arb(k), flint.arb(self.trials - k + 1), regularized=True)
        weights, rest = self._shape.neighbours()
        tail = sum((w for i, w in enumerate(weights) if self._shape.place(i, 1) >= k), flint.arb(0))
        return (tail + between_zero_and(rest)) / sum(weights, rest)

    def mean_ball(self) -> Ball:
        return self.trials * self._p()

    def variance_ball(self) -> Ball:
        return self.trials * self._p() * (1 - self._p())


def _mode(n: int, p: Fraction | CertifiedReal) -> int:
    """floor((n+1)p), or the integer below it if (n+1)p may be an integer: then that is a mode too."""
    if isinstance(p, Fraction):
        return min(n, int((n + 1) * p))
    for bits in (128, 512, 2048):
        with precision(bits + n.bit_length()):
            q = ball(p)
            if not (q > 0 and q < 1):
                continue
            low, high = scaled_floor((n + 1) * q, 0)
            if high == low or (high - low == 1 and bits == 2048):
                return min(n, max(0, low))
    raise NotCertified(what="the mode of a binomial", reason="the probability is not certainly inside (0, 1)")


def unzigzag(index: AnyArray, mode: int, n: int) -> AnyArray:
    """The numbers at these places around the mode."""
    if n >= 1 << 62:
        index = index.astype(object)
    half, left = index >> 1, index & 1
    # left: m - 1 - i, which is m + ~i.
    return mode + (half ^ -left)


def sampler_of(shape: Shape, variance: int, *, wide: bool | None = None) -> Inverter | BlockSampler:
    """The exact sampler of a distribution around its mode; `wide` says whether values may pass 60 bits."""
    if variance <= DIRECT_STD**2:
        return Inverter(Series(shape.neighbours))
    bits = 0
    while variance > (BLOCK_STD << bits) ** 2:
        bits += 1
    return BlockSampler(
        blocks=Inverter(Series(lambda: shape.blocks(1 << bits)), bits=63),
        width_bits=bits,
        quick=_quick(shape, 1 << bits),
        exact=_exact_coin(shape, 1 << bits),
        combine=_combine(shape, 1 << bits),
        wide=shape.n >= 1 << 60 if wide is None else wide,
    )


def _quick(shape: Shape, stride: int) -> Words:
    """floor(2^64 Pr[far end] / Pr[near end]) for each block: probabilities only fall inside a block."""
    found = []
    with precision(128):
        for index in range(16 * BLOCK_STD):
            near = shape.place(index, stride)
            far = near - (stride - 1) if index & 1 else near + (stride - 1)
            inside = min(near, far) >= 0 and max(near, far) <= shape.n
            found.append(scaled_floor(shape.log_ratio(far, near).exp(), 64)[0] if inside else 0)
    return np.array([*(min(f, (1 << 64) - 1) for f in found), 0], dtype=np.uint64)


def _falls(shape: Shape, stride: int) -> npt.NDArray[np.float64]:
    """-ln of Pr over each block of the quick table; NaN if a block or the next one is incomplete."""
    found: list[float] = []
    with precision(128):
        for index in range(16 * BLOCK_STD + 2):
            near, far = shape.place(index, stride), shape.place(index + 2, stride)
            inside = min(near, far) >= 0 and max(near, far) <= shape.n
            found.append(float(-shape.log_ratio(far, near).mid()) if inside else math.nan)
    return np.array(found)


def _exact_coin(shape: Shape, stride: int) -> Callable[..., npt.NDArray[np.bool_]]:
    """ln Pr is concave, so it lies between the chord of a block and the next chord prolonged; else by balls."""
    falls = _falls(shape, stride)

    def exactly(b: int, offset: int, word: int, source: Source) -> bool:
        near = shape.place(b, stride)
        k = near - offset if b & 1 else near + offset
        if not 0 <= k <= shape.n:
            return False
        uniform = Uniform(value=word, bits=64, source=source)
        return uniform.below(lambda: shape.log_ratio(k, near).exp())

    def decide(block: AnyArray, place: AnyArray, choice: Words, source: Source) -> npt.NDArray[np.bool_]:
        near = np.array([min(int(b), falls.size - 3) for b in block], dtype=np.int64)
        fall, after = falls[near], falls[near + 2]
        y = place.astype(np.float64) / float(stride)
        uniform = (choice >> np.uint64(11)).astype(np.float64) * 2.0**-53
        with np.errstate(invalid="ignore"):
            quick = (near < falls.size - 3) & (fall <= 0.5) & np.isfinite(after)
            low = exp_minus(np.where(quick, fall * y, 0.0)) - FLOAT_MARGIN
            high = exp_minus(np.where(quick, np.maximum(fall - after * (1.0 - y), 0.0), 0.0)) + FLOAT_MARGIN
        keep: npt.NDArray[np.bool_] = quick & (uniform < low)
        for i in np.flatnonzero(~quick | ((uniform >= low) & (uniform <= high))):
            keep[i] = exactly(int(block[i]), int(place[i]), int(choice[i]), source)
        return keep

    return decide


def _combine(shape: Shape, stride: int) -> Callable[..., _Combined]:
    def combine(block: AnyArray, place: AnyArray, word: Words) -> _Combined:
        away = (block >> 1) * stride + place
        values = shape.mode + (away ^ -(block & 1))
        return values, ((values >= 0) & (values <= shape.n)).astype(np.bool_)

    return combine


# Poisson and Skellam noise: closed under sums, exact for every mean.

UNBOUNDED = 1 << 256
MOST_MEAN = 1 << 96


@dataclass(frozen=True, slots=True)
class _PoissonShape(Shape):
    """A Poisson distribution around its mode, as a binomial one without an upper end; `p` is the mean."""

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
    shape = _PoissonShape(UNBOUNDED, mean, int(mean))
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
        set_fields(self, mean_count=self.mean_count, _mean=mean)

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
        check_fields(self, noise_variance=exact_value)
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

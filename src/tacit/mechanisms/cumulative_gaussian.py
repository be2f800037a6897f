"""Cumulative counts with correlated Gaussian noise: the square root of the summation matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.balls import ball, upper
from tacit.exact.checks import flag, settle, whole
from tacit.exact.integers import add_exact
from tacit.exact.rationals import Exact, exact_parameter
from tacit.guarantees import GaussianDP
from tacit.mechanisms.base import epsilon_parameter, shown
from tacit.mechanisms.cumulative import Cumulated, Cumulative, checked_bins
from tacit.mechanisms.rounded_gaussian import RoundedGaussian
from tacit.mechanisms.sensitivity import L2
from tacit.noise import GaussianVector
from tacit.noise.source import Source, default_source

__all__ = ["CumulativeGaussian"]


LEAST_BITS = 12
MOST_BITS = 40
NOISE_BITS = 16
# A hair more noise, so that what is rounded up on the way to a bound stays within the target.
SPARE = 1 + Fraction(1, 1 << 40)


@dataclass(frozen=True, slots=True)
class _Strategy:
    """Integer coefficients R of the strategy, the float series B with B R = 1/(1 - x), and their sums."""

    coefficients: npt.NDArray[np.int64]
    square: int
    inverse: Floats
    residual: float
    norms: Floats
    cross: Floats
    lengths: Floats


def _series_inverse(series: Floats) -> Floats:
    """1 / series by Newton's iteration, to its length."""
    out, n = np.array([1 / series[0]]), 1
    while n < len(series):
        n = min(2 * n, len(series))
        size = 4 * n
        f = np.fft.rfft(out, size)
        out = np.fft.irfft(f * (2 - np.fft.rfft(series[:n], size) * f), size)[:n]
    return out


@lru_cache(maxsize=16)
def _strategy(bins: int, bits: int) -> _Strategy:
    """R_k = round(2^bits C(2k, k) / 4^k): the power series (1 - x)^(-1/2), whose square sums up."""
    ratios = np.concatenate([[1.0], 1 - 0.5 / np.arange(1, bins)]) if bins > 1 else np.ones(1)
    coefficients = np.rint(np.cumprod(ratios) * (1 << bits)).astype(np.int64)
    exact = coefficients.astype(np.float64)
    inverse = np.cumsum(_series_inverse(exact))
    size = 1 << (2 * bins - 1).bit_length()
    back = np.fft.irfft(np.fft.rfft(inverse, size) * np.fft.rfft(exact, size), size)[:bins]
    # What float arithmetic leaves of B R - 1/(1 - x); a histogram of n rows is off by at most n times that.
    residual = float(np.abs(back - 1).max()) + 1e-12
    cross = np.fft.irfft(np.fft.rfft(inverse, size) * np.conj(np.fft.rfft(inverse, size)), size)[:bins]
    return _Strategy(
        coefficients=coefficients,
        square=sum(int(c) ** 2 for c in coefficients),
        inverse=inverse,
        residual=residual,
        norms=np.concatenate([[0.0], np.cumsum(inverse**2)]),
        cross=np.concatenate([[0.0], _aligned(inverse, cross)]),
        lengths=np.concatenate([[0.0], np.cumsum(np.abs(inverse))]),
    )  # fmt: skip


def _aligned(inverse: Floats, cross: Floats) -> Floats:
    """<B_t, B_K> for t = 1..K: the noise that entered t and K alike, lag K - t."""
    return cross[::-1].copy() if len(inverse) > 1 else inverse**2


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeGaussian(Cumulative):
    """y = R h + N(0, noise_std^2) rounded, then F = B y: R the square root of the summation matrix, in integers.

    Guarantee: GaussianDP(mu = |R| sqrt(l2_squared) / noise_std), |R| its longest column, exactly: R has no negative
    entry, so a move p - q has |R(p - q)|^2 <= |Rp|^2 + |Rq|^2 <= |R|^2 (|p|_1^2 + |q|_1^2) <= |R|^2 l2_squared.
    Assumptions: counts of rows over public bins, and l2_squared bounds |p|_1^2 + |q|_1^2 for the rows p that come
    and q that go (m^2 for a unit of m rows, 2 m^2 if it is replaced). F is post-processing of y.
    The standard deviation grows like ln(K) / pi: 3.7 at K = 4096 and mu = 1, where a tree has 6.
    Theorem `cumulative-gaussian`. Source: Fichtenberger, Henzinger, Upadhyay 2023.
    """

    bins: int
    l2_squared: Exact
    noise_std: Exact
    bits: int
    total_is_public: bool = False

    def __post_init__(self) -> None:
        settle(self, bins=checked_bins(self.bins))
        settle(self, total_is_public=flag("total_is_public", self.total_is_public))
        exact_parameter("l2_squared", self.l2_squared)
        settle(self, l2_squared=self.l2_squared)
        exact_parameter("noise_std", self.noise_std)
        settle(self, noise_std=self.noise_std)
        settle(self, bits=whole("bits", self.bits, least=LEAST_BITS))
        if self.bits > MOST_BITS:
            raise InvalidParameter(parameter="bits", value=self.bits, must=f"be at most {MOST_BITS}")

    @classmethod
    def for_rho(
        cls, *, bins: int, l2_squared: Exact, rho: Exact, total_is_public: bool = False
    ) -> CumulativeGaussian:
        """The least noise with this rho = mu^2 / 2."""
        target, move = epsilon_parameter(rho, "rho"), exact_parameter("l2_squared", l2_squared)
        bits = _bits(target, move)
        square = _strategy(checked_bins(bins), bits).square * move / (2 * target) * SPARE
        noise_std = Fraction(upper(lambda: ball(square).sqrt()))
        return cls(
            bins=bins, l2_squared=l2_squared, noise_std=noise_std, bits=bits, total_is_public=total_is_public
        )

    @classmethod
    def for_target(
        cls, *, bins: int, l2_squared: Exact, epsilon: Exact, delta: Exact, total_is_public: bool = False
    ) -> CumulativeGaussian:
        """The least noise (to one part in 10^5) whose curve has delta(epsilon) <= delta; certified."""
        move = exact_parameter("l2_squared", l2_squared)
        unit = RoundedGaussian.for_target(epsilon=epsilon, delta=delta, sensitivity=L2(1), dimension=1)
        mu = Fraction(unit.bound.mu)
        bits = _bits(mu**2 / 2, move)
        square = _strategy(checked_bins(bins), bits).square * move / mu**2 * SPARE
        noise_std = Fraction(upper(lambda: ball(square).sqrt()))
        return cls(
            bins=bins, l2_squared=l2_squared, noise_std=noise_std, bits=bits, total_is_public=total_is_public
        )

    @property
    def _inner(self) -> RoundedGaussian:
        """The same noise on one number with the same sensitivity: bound and event are shared."""
        square = _strategy(self.bins, self.bits).square * exact_parameter("l2_squared", self.l2_squared)
        return RoundedGaussian(sensitivity=L2.root(square), noise_std=self.noise_std, dimension=1)

    @property
    def bound(self) -> GaussianDP:
        return self._inner.bound

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("cumulative-gaussian", "rounded-gaussian")

    @property
    def exact_rho(self) -> Fraction:
        return Fraction(self.bound.mu) ** 2 / 2

    @property
    def event(self) -> Event:
        """Gaussian noise of this mu."""
        return self._inner.event

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Gaussian, rounded, under the square root of the summation matrix",
            "noise_std": shown(exact_parameter("noise_std", self.noise_std)),
            "coefficient_bits": self.bits,
            "spacing": "1",
            "exact": True,
        }

    def release(self, counts: npt.ArrayLike, *, source: Source | None = None) -> Cumulated:
        source = source if source is not None else default_source()
        array, plan = self._histogram(counts), _strategy(self.bins, self.bits)
        law = GaussianVector(coordinates=1, noise_std=self.noise_std)
        noise = law.sample(spacing=1, size=max(array.size, 1), source=source).values
        noise = noise.reshape(-1)[: array.size].reshape(array.shape)
        # The integers y are the release; all that follows is made of them (and of a public total).
        y = add_exact(_product(plan, array, self.bins, self.bits), noise).astype(np.float64)
        size = 1 << (2 * self.bins - 1).bit_length()
        flat = np.fft.irfft(np.fft.rfft(y, size, axis=-1) * np.fft.rfft(plan.inverse, size), size, axis=-1)
        below = np.concatenate([np.zeros((*array.shape[:-1], 1)), flat[..., : self.bins]], axis=-1)
        if self.total_is_public:
            total = array.astype(np.float64).sum(axis=-1)
            below = below - self._theta(None) * (below[..., -1] - total)[..., None]
        return Cumulated(below=below, mechanism=self, publishable=source.publishable)

    def _theta(self, share: Fraction | None) -> Floats:
        plan = _strategy(self.bins, self.bits)
        if self.total_is_public:
            return np.asarray(plan.cross / plan.norms[-1])
        return np.full(self.bins + 1, float(share or 0))

    def _weights(self, share: Fraction | None) -> tuple[Floats, Floats]:
        """|w| in L2 and a bound of it in L1, for w = B_t - theta B_K."""
        plan, theta = _strategy(self.bins, self.bits), self._theta(share)
        square = plan.norms - 2 * theta * plan.cross + theta**2 * plan.norms[-1]
        slack = 1e-13 * plan.norms[-1]
        return np.sqrt(np.maximum(square, 0) + slack), plan.lengths + theta * plan.lengths[-1]

    def half_widths(
        self, tail: float, *, share: Fraction | None = None, near: Floats | None = None
    ) -> Floats:
        """The normal quantile of |w| noise_std, and half a step of rounding in every coordinate."""
        euclid, absolute = self._weights(share)
        out = -NormalDist().inv_cdf(tail) * (1 + 1e-12) * float(self.noise_std) * euclid + absolute / 2
        out[0] = 0.0
        return np.asarray(out)

    @property
    def residual(self) -> float:
        """What float arithmetic can leave, a row: F is off by at most this times the number of rows."""
        return _strategy(self.bins, self.bits).residual

    def noise_stds(self, *, share: Fraction | None = None) -> Floats:
        out = self._weights(share)[0] * float(self.noise_std)
        out[0] = 0.0
        return np.asarray(out)


def _bits(rho: Fraction, move: Fraction) -> int:
    """Coefficients fine enough for noise of at least 2^16 steps: then rounding is invisible."""
    return max(LEAST_BITS, NOISE_BITS + math.ceil(math.log2(max(float(2 * rho / move), 1e-30)) / 2))


def _product(plan: _Strategy, array: AnyArray, bins: int, bits: int) -> AnyArray:
    """R h, exactly: by Fourier transforms of digits so small that float errors stay below a quarter.

    A transform of size 2^m is off by less than 6 m u in the Euclidean norm, u = 2^-53, so three of them leave every
    entry of the product within 20 m u |R| |h|, which is 1/8 or less for digits below `limit`.
    Source: Higham 2002, section 24.1.
    """
    transforms = 20 * (2 * bins - 1).bit_length()
    limit = 2.0**53 / (8 * transforms * math.sqrt(plan.square) * math.sqrt(bins))
    digits = max(1, math.floor(math.log2(limit)))
    if array.size and array.dtype != object and int(array.min()) >= 0 and int(array.max()) < 1 << digits:
        return _convolved(plan, array.astype(np.float64), bins).astype(np.int64)
    sign, rest = np.where(array < 0, -1, 1).astype(object), np.abs(array.astype(object))
    out, shift = np.zeros(array.shape, dtype=object), 0
    positive, negative = rest * (sign > 0), rest * (sign < 0)
    while np.any(positive != 0) or np.any(negative != 0):
        for part, factor in ((positive, 1), (negative, -1)):
            digit = (part % (1 << digits)).astype(np.float64)
            out = out + _convolved(plan, digit, bins).astype(np.int64).astype(object) * (factor << shift)
        positive, negative, shift = positive >> digits, negative >> digits, shift + digits
    return out


def _convolved(plan: _Strategy, values: Floats, bins: int) -> Floats:
    size = 1 << (2 * bins - 1).bit_length()
    spectrum = np.fft.rfft(values, size, axis=-1) * np.fft.rfft(plan.coefficients.astype(np.float64), size)
    return np.asarray(np.rint(np.fft.irfft(spectrum, size, axis=-1)[..., :bins]))

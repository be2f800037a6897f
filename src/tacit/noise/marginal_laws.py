"""Laws of one coordinate: closed forms where there are any, integrals with a stated error elsewhere.

X of K-norm noise is r u_i, r ~ Gamma(d + 1) and u uniform in K, a Gamma mixture of the body's projection:
  l1 ball     Laplace: Gamma(1) - Gamma(1)
  ball        Gamma((d+1)/2) - Gamma((d+1)/2), characteristic function (1 + t^2)^(-(d+1)/2)
  box         b/(b-a) [Q(d+1, x/b) - x/(b d) Q(d, x/b)] for x > 0
  simplex     sum_k e_k v_k over its corners: weighted exponentials (theorem `body-marginals`)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.exact.arrays import Floats
from tacit.noise.marginal_sums import Inverted, inverted
from tacit.noise.marginals import Marginal

__all__ = [
    "Ball",
    "Beta",
    "BoxNoise",
    "GammaDifference",
    "GammaNumber",
    "Interval",
    "Normal",
    "PowerTail",
    "RangeNoise",
    "Student",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal(Marginal):
    """Standard normal."""

    def _survival(self, z: Floats) -> Floats:
        from scipy.special import ndtr

        return np.asarray(ndtr(-z))

    @property
    def _variance(self) -> float:
        return 1.0

    @property
    def _fine(self) -> float:
        # What Sheppard's formula leaves out is e^(-2 pi^2 std^2) of it.
        return 2.0

    def difference(self) -> Marginal:
        return self.scaled(math.sqrt(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(Marginal):
    """Uniform between low and high."""

    low: float
    high: float

    def _survival(self, z: Floats) -> Floats:
        return (self.high - z) / (self.high - self.low)

    def _cumulative(self, z: Floats) -> Floats:
        return (z - self.low) / (self.high - self.low)

    @property
    def _mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def _variance(self) -> float:
        return (self.high - self.low) ** 2 / 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerTail(Marginal):
    """A coordinate of the unit l1 ball: Pr[|Z| > s] = (1 - s)^d."""

    dimension: int

    def _survival(self, z: Floats) -> Floats:
        half = np.clip(1 - np.abs(z), 0.0, 1.0) ** self.dimension / 2
        return np.asarray(np.where(z >= 0, half, 1 - half))

    @property
    def _variance(self) -> float:
        return 2 / ((self.dimension + 1) * (self.dimension + 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ball(Marginal):
    """A coordinate of the unit ball in d dimensions: Z^2 ~ Beta(1/2, (d+1)/2); of the sphere in d + 2 as well."""

    dimension: int

    def _survival(self, z: Floats) -> Floats:
        from scipy.special import betainc

        if self.dimension < 0:
            return np.where(z < -1, 1.0, np.where(z < 1, 0.5, 0.0))
        # The upper tail by the other incomplete function: nothing cancels near the edge.
        half = betainc((self.dimension + 1) / 2, 0.5, np.clip(1 - z * z, 0.0, 1.0)) / 2
        return np.asarray(np.where(z >= 0, half, 1 - half))

    @property
    def _variance(self) -> float:
        return 1 / (self.dimension + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaNumber(Marginal):
    """Gamma(shape)."""

    shape: float

    def _survival(self, z: Floats) -> Floats:
        from scipy.special import gammaincc

        return np.asarray(gammaincc(self.shape, np.maximum(z, 0.0)))

    def _cumulative(self, z: Floats) -> Floats:
        from scipy.special import gammainc

        return np.asarray(gammainc(self.shape, np.maximum(z, 0.0)))

    @property
    def _mean(self) -> float:
        return self.shape

    @property
    def _variance(self) -> float:
        return self.shape

    def difference(self) -> Marginal:
        return GammaDifference(scale=self.scale, shape=self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beta(Marginal):
    """Beta(a, b)."""

    a: float
    b: float

    def _survival(self, z: Floats) -> Floats:
        from scipy.special import betainc

        return np.asarray(betainc(self.b, self.a, np.clip(1 - z, 0.0, 1.0)))

    def _cumulative(self, z: Floats) -> Floats:
        from scipy.special import betainc

        return np.asarray(betainc(self.a, self.b, np.clip(z, 0.0, 1.0)))

    @property
    def _mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def _variance(self) -> float:
        return self.a * self.b / ((self.a + self.b) ** 2 * (self.a + self.b + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Student(Marginal):
    """Student's law; its variance is infinite up to two degrees of freedom."""

    degrees: int

    def _survival(self, z: Floats) -> Floats:
        from scipy.special import stdtr

        return np.asarray(stdtr(self.degrees, -z))

    @property
    def _variance(self) -> float:
        return self.degrees / (self.degrees - 2) if self.degrees > 2 else math.inf


@lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    """Points and weights on (0, inf): y = e^(pi/2 sinh s), the trapezium rule in s."""
    s = np.linspace(-6.0, 3.2, 501)
    y = np.exp(math.pi / 2 * np.sinh(s))
    return y, y * math.pi / 2 * np.cosh(s) * (s[1] - s[0])


WIDE = 100
"""Shapes from which a difference of two gammas is read off its characteristic function: K_n overflows beyond."""


@lru_cache(maxsize=16)
def _wide(shape: float) -> Inverted:
    return inverted(lambda t: np.exp(-shape * np.log1p(t * t)), 2 * shape, 1.0, shape, scale=1.0, sides=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaDifference(Marginal):
    """G - G', both Gamma(shape): Laplace's law for 1. Density |z|^n K_n(|z|) / (sqrt(pi) 2^n Gamma(shape)), n =
    shape - 1/2; the tail of any other shape is integrated."""

    shape: float

    @property
    def error(self) -> float:
        return 1e-10

    def _survival(self, z: Floats) -> Floats:
        size = np.abs(z)
        if self.shape > WIDE:
            return _wide(self.shape)._survival(z)
        if self.shape == 1:
            half = np.exp(-size) / 2
        else:
            from scipy.special import kve

            y, weights = _nodes()
            at = np.maximum(size[..., None] + y, 1e-300)
            n = self.shape - 0.5
            log = n * np.log(at / 2) - at - math.lgamma(self.shape) - math.log(math.pi) / 2
            with np.errstate(over="ignore", invalid="ignore"):
                density = np.exp(log + np.log(kve(n, at)))
            # K_n overflows where the density has its value at 0, and there is none for n <= 0.
            middle = 0.0
            if n > 0:
                middle = math.exp(math.lgamma(n) - math.lgamma(self.shape)) / (2 * math.sqrt(math.pi))
            density = np.where(np.isfinite(density), density, middle)
            half = np.minimum((density * weights).sum(axis=-1), 0.5)
        return np.where(z >= 0, half, 1 - half)

    @property
    def _variance(self) -> float:
        return 2 * self.shape

    def difference(self) -> Marginal:
        return GammaDifference(scale=self.scale, shape=2 * self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxNoise(Marginal):
    """r u, r ~ Gamma(d + 1) and u uniform between low < 0 < high: a coordinate of K-norm noise of a box."""

    low: float
    high: float
    dimension: int

    def _beyond(self, z: Floats, reach: float) -> Floats:
        from scipy.special import gammaincc

        d, t = self.dimension, np.maximum(z, 0.0) / reach
        return np.asarray((gammaincc(d + 1, t) - t / d * gammaincc(d, t)) * reach / (self.high - self.low))

    def _survival(self, z: Floats) -> Floats:
        return np.where(z >= 0, self._beyond(z, self.high), 1 - self._beyond(-z, -self.low))

    def _cumulative(self, z: Floats) -> Floats:
        return np.where(z >= 0, 1 - self._beyond(z, self.high), self._beyond(-z, -self.low))

    @property
    def _mean(self) -> float:
        return (self.dimension + 1) * (self.low + self.high) / 2

    @property
    def _variance(self) -> float:
        square = (self.low**2 + self.low * self.high + self.high**2) / 3
        return (self.dimension + 1) * (self.dimension + 2) * square - self._mean**2

    def difference(self) -> Marginal:
        """By Fourier inversion of |E (1 - i t u)^-(d+1)|^2."""
        d, low, high = self.dimension, self.low, self.high

        def squared(t: Floats) -> Floats:
            ends = (1 - 1j * t * high) ** -d - (1 - 1j * t * low) ** -d
            return np.asarray(np.abs(ends / (t * d * (high - low))) ** 2)

        return inverted(squared, 2 * self._variance, max(high, -low), d, scale=self.scale, sides=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeNoise(Marginal):
    """T (U - U'), T ~ Gamma(d + 2): a count under noise of the range norm."""

    dimension: int

    def _survival(self, z: Floats) -> Floats:
        from scipy.special import gammaincc

        d, t = self.dimension, np.abs(z)
        tail = (
            gammaincc(d + 2, t)
            - 2 * t / (d + 1) * gammaincc(d + 1, t)
            + t * t / (d * (d + 1)) * gammaincc(d, t)
        )
        return np.asarray(np.where(z >= 0, tail / 2, 1 - tail / 2))

    @property
    def _variance(self) -> float:
        return (self.dimension + 2) * (self.dimension + 3) / 6

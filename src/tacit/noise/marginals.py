"""The distribution of one coordinate of continuous noise: probabilities, quantiles, intervals, in floats.

For reading and for error bars only; no privacy claim uses them.
`error` bounds the absolute error of a probability: rounding
for closed forms, and the cut-off part of a computed integral.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
import numpy.typing as npt

from tacit.errors import NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.checks import refuse_if
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, bisected, exact_parameter

__all__ = ["Marginal", "RoundedMarginal"]

ROUNDING = 1e-12


def level_of(name: str, value: object) -> float:
    """A probability strictly between 0 and 1."""
    level = exact_parameter(name, value, positive=False, any_size=True)
    refuse_if(not 0 < level < 1, name, value, "lie strictly between 0 and 1")
    return float(level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginal(ABC):
    """scale * Z for a number Z of a known distribution."""

    scale: float = 1.0

    @abstractmethod
    def _survival(self, z: Floats) -> Floats:
        """Pr[Z > z]."""

    def _cumulative(self, z: Floats) -> Floats:
        """Pr[Z <= z]; for symmetric distributions from the other tail."""
        return self._survival(-z)

    @property
    def _mean(self) -> float:
        return 0.0

    @property
    @abstractmethod
    def _variance(self) -> float:
        """Var Z."""

    @property
    def error(self) -> float:
        """The largest error of a probability."""
        return ROUNDING

    @property
    def _fine(self) -> float:
        """The number of standard deviations in steps from which rounding adds 1/12 to the variance, to 10^-9 of
        it (Sheppard).
        """
        return 256.0

    # --- for readers ---------------------------------------------------------------------------------------
    @property
    def mean(self) -> float:
        """The expectation."""
        return self.scale * self._mean

    @property
    def variance(self) -> float:
        """The variance."""
        return self.scale**2 * self._variance

    @property
    def std(self) -> float:
        """The standard deviation."""
        return self.scale * math.sqrt(self._variance)

    def survival(self, x: npt.ArrayLike) -> Floats:
        """Pr[X > x]."""
        return np.clip(self._survival(np.asarray(x, dtype=np.float64) / self.scale), 0.0, 1.0)

    def cumulative(self, x: npt.ArrayLike) -> Floats:
        """Pr[X <= x]."""
        return np.clip(self._cumulative(np.asarray(x, dtype=np.float64) / self.scale), 0.0, 1.0)

    def quantile(self, p: Exact) -> float:
        """The least x with Pr[X <= x] >= p, to 10^-12 of its size; from the nearer tail."""
        level = level_of("p", p)
        miss = float(1 - exact_parameter("p", p, positive=False, any_size=True))

        def reached(x: float) -> bool:
            if level <= 0.5:
                return bool(self.cumulative(x) >= level)
            return bool(self.survival(x) <= miss)

        return _first(reached, self.scale)

    def interval(self, confidence: Exact = 0.95) -> tuple[float, float]:
        """The point that leaves half of the miss on either side."""
        level_of("confidence", confidence)
        half = (1 - exact_parameter("confidence", confidence)) / 2
        return self.quantile(half), self.quantile(1 - half)

    def scaled(self, factor: float) -> Self:
        """The distribution of factor * X, factor > 0."""
        return replace(self, scale=self.scale * factor)

    def difference(self) -> Marginal:
        """The distribution of X - X', X' independent of X with the same distribution."""
        raise NoLaw(
            operation=f"the law of a difference of two {type(self).__name__} numbers",
            reason="no formula for it is stated here", hint="estimate it from draws, which are no data",
        )  # fmt: skip

    def rounded(self, spacing: Exact) -> RoundedMarginal:
        """The distribution of the release: X rounded to the grid, in steps."""
        return RoundedMarginal(marginal=self, step=exact_parameter("spacing", spacing))


def _first(reached: Callable[[float], bool], start: float) -> float:
    """The least number from which a monotone condition holds, by bisection."""
    if reached(0.0):
        low, high = -start, 0.0
        while reached(low):
            low, high = 2 * low, low
            if low < -1e300:
                return low
    else:
        low, high = 0.0, start
        while not reached(high):
            low, high = high, 2 * high
    return bisected(reached, low, high, relative=1e-12, absolute=1e-12 * (1e-12 * start))[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedMarginal:
    """floor(X / step + 1/2): the draw, in whole steps. The questions are those of a `DiscreteDistribution`."""

    marginal: Marginal
    step: Fraction

    def survival(self, k: npt.ArrayLike) -> Floats:
        """Pr[K >= k]."""
        return self.marginal.survival((np.asarray(k, dtype=np.float64) - 0.5) * float(self.step))

    def cumulative(self, k: npt.ArrayLike) -> Floats:
        """Pr[K <= k]."""
        return self.marginal.cumulative((np.asarray(k, dtype=np.float64) + 0.5) * float(self.step))

    def probability(self, k: npt.ArrayLike) -> Floats:
        """Pr[K = k]."""
        at = np.asarray(k, dtype=np.float64)
        upper = self.survival(at) - self.survival(at + 1)
        return np.where(at > 0, upper, self.cumulative(at) - self.cumulative(at - 1))

    def quantile(self, p: Exact) -> int:
        """The least k with Pr[K <= k] >= p."""
        return math.ceil(self.marginal.quantile(p) / float(self.step) - 0.5)

    def interval(self, confidence: Exact = 0.95) -> tuple[int, int]:
        """The point that leaves at most half of the miss on either side."""
        low, high = self.marginal.interval(confidence)
        return math.floor(low / float(self.step) + 0.5), math.ceil(high / float(self.step) - 0.5)

    @property
    def mean(self) -> float:
        """The expectation, in steps."""
        return _moments(self)[0]

    @property
    def variance(self) -> float:
        """The variance, in squared steps."""
        return _moments(self)[1]

    @property
    def std(self) -> float:
        """The standard deviation, in steps."""
        return math.sqrt(max(self.variance, 0.0))


@lru_cache(maxsize=256)
def _moments(law: RoundedMarginal) -> tuple[float, float]:
    """Mean and variance in steps: sums of tails on coarse grids; on fine grids the variance of X and 1/12."""
    one, step = law.marginal, float(law.step)
    center, spread = one.mean / step, one.std / step
    if not spread < one._fine:
        return center, spread**2 + 1 / 12
    far = math.ceil(max(-one.quantile(1e-15), one.quantile(1 - 2.0**-50)) / step) + 2
    k = np.arange(1, far + 1, dtype=np.float64)
    above, below = law.survival(k), law.cumulative(-k)
    mean = float((above - below).sum())
    return mean, float(((2 * k - 1) * (above + below)).sum()) - mean**2


# Distributions of one coordinate that are sums of exponentials, or known by their characteristic function.

Loads = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialSums(Marginal):
    """sum_k a_k e_k with standard exponentials e_k, the loads a chosen among some with given weights.

    The part above 0 is the time that a chain stays in its states, of mean a_k each, after the negative part has run:
    alpha prod (I + b_k A)^-1 e^(-A z) 1, A of the states that remain. No term is negative except on the
    diagonal, so nothing cancels however near two loads are.
    """

    loads: Loads
    weights: tuple[float, ...] = (1.0,)

    def _survival(self, z: Floats) -> Floats:
        return _tails(self.loads, self.weights, z)

    def _cumulative(self, z: Floats) -> Floats:
        return _tails(tuple(tuple(-a for a in one) for one in self.loads), self.weights, -z)

    @property
    def _mean(self) -> float:
        return float(sum(w * sum(one) for w, one in zip(self.weights, self.loads, strict=True)))

    @property
    def _variance(self) -> float:
        square = sum(
            w * (sum(a * a for a in one) + sum(one) ** 2)
            for w, one in zip(self.weights, self.loads, strict=True)
        )
        return float(square) - self._mean**2

    def difference(self) -> Marginal:
        both = [
            (v * w, (*one, *(-a for a in other)))
            for v, one in zip(self.weights, self.loads, strict=True)
            for w, other in zip(self.weights, self.loads, strict=True)
        ]
        return ExponentialSums(
            scale=self.scale, loads=tuple(loads for _, loads in both), weights=tuple(w for w, _ in both)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Corners(Marginal):
    """sum_k e_k v_k / sum_k e_k: the projection of a uniform point of a simplex with these corners.

    It is above z if sum_k (v_k - z) e_k is above 0.
    """

    values: tuple[float, ...]

    def _survival(self, z: Floats) -> Floats:
        each = [
            float(_tails((tuple(v - x for v in self.values),), (1.0,), np.zeros(1))[0])
            for x in np.atleast_1d(z).ravel()
        ]
        return np.array(each).reshape(np.shape(z))

    def _cumulative(self, z: Floats) -> Floats:
        return Corners(values=tuple(-v for v in self.values))._survival(-z)

    @property
    def _mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def _variance(self) -> float:
        n = len(self.values)
        return sum((v - self._mean) ** 2 for v in self.values) / (n * (n + 1))


def _tails(loads: Loads, weights: tuple[float, ...], z: Floats) -> Floats:
    """Pr[sum > z] where z >= 0, and 1 - Pr[sum <= z] elsewhere."""
    from scipy.linalg import expm

    flat = np.atleast_1d(z)
    out = np.zeros(flat.shape)
    for weight, one in zip(weights, loads, strict=True):
        for mirror in (False, True):
            here = flat < 0 if mirror else flat >= 0
            chain, start = _chain(tuple(-a for a in one) if mirror else one)
            tail = np.zeros(int(here.sum()))
            if chain is not None and tail.size:
                tail = (start @ expm(-chain * np.abs(flat[here])[:, None, None])).sum(axis=-1)
            out[here] += weight * ((1 - tail) if mirror else tail)
    return out.reshape(np.shape(z))


@lru_cache(maxsize=1024)
def _chain(loads: tuple[float, ...]) -> tuple[npt.NDArray[np.float64] | None, Floats]:
    """The states of the positive loads, and the distribution over them once the negative part is over."""
    above, below = [a for a in loads if a > 0], [-a for a in loads if a < 0]
    n = len(above)
    if not n:
        return None, np.empty(0)
    rates = 1 / np.array(above)
    leave = np.diag(rates) - np.diag(rates[:-1], 1)
    start: Floats = np.zeros(n)
    start[0] = 1.0
    for b in below:
        start = np.asarray(np.linalg.solve((np.eye(n) + b * leave).T, start), dtype=np.float64)
    return leave, start


@dataclass(frozen=True, slots=True, kw_only=True)
class Inverted(Marginal):
    """A symmetric distribution by its characteristic function phi at t_j = (j + 1/2) pi / far.

    Pr[Z > z] = 1/2 - sum_j sin(t_j z) phi(t_j) / (pi (j + 1/2)), with an error of at most Pr[|Z| > far] and the
    terms beyond the last point (Davies 1973).
    """

    values: tuple[float, ...] = field(repr=False)
    far: float
    spread: float
    cut: float

    @property
    def error(self) -> float:
        return self.cut

    def _survival(self, z: Floats) -> Floats:
        place = np.arange(len(self.values)) + 0.5
        waves = np.sin(np.abs(z)[..., None] * (place * (math.pi / self.far)))
        half = 0.5 - (waves * (np.array(self.values) / (math.pi * place))).sum(axis=-1)
        half = np.where(np.abs(z) < self.far, np.clip(half, 0.0, 0.5), 0.0)
        return np.where(z >= 0, half, 1 - half)

    @property
    def _variance(self) -> float:
        return self.spread


MOST_POINTS = 1 << 14
ENOUGH = 1e-13


def inverted(
    characteristic: Callable[[Floats], Floats],
    variance: float,
    reach: float,
    d: float,
    *,
    scale: float,
    sides: int,
) -> Inverted:
    """A symmetric distribution with |Z| at most `reach` times the gauges of `sides` K-norm noises, each Gamma(d).

    The characteristic function is taken until it is below 10^-13 or at 2^14 points. Its last size and decrease
    bound the rest.
    """
    from scipy.special import gammainccinv

    far = reach * float(gammainccinv(sides * d, ENOUGH))
    values: list[float] = []
    while len(values) < MOST_POINTS:
        place: Floats = np.arange(len(values), len(values) + 128, dtype=np.float64) + 0.5
        values.extend(float(v) for v in characteristic(np.asarray(place * (math.pi / far), dtype=np.float64)))
        if max(abs(v) for v in values[-64:]) < ENOUGH:
            break
    return Inverted(
        scale=scale, values=tuple(values), far=far, spread=variance,
        cut=1e-11 + max(abs(v) for v in values[-64:]),
    )  # fmt: skip


# Distributions of one coordinate: closed forms where there are any, integrals with a stated error elsewhere.
#
# X of K-norm noise is r u_i, r ~ Gamma(d + 1) and u uniform in K, a Gamma mixture of the body's projection:
#   l1 ball     Laplace: Gamma(1) - Gamma(1)
#   ball        Gamma((d+1)/2) - Gamma((d+1)/2), characteristic function (1 + t^2)^(-(d+1)/2)
#   box         b/(b-a) [Q(d+1, x/b) - x/(b d) Q(d, x/b)] for x > 0
#   simplex     sum_k e_k v_k over its corners: weighted exponentials (theorem `body-marginals`)


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
class MarginalInterval(Marginal):
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
    """Student's distribution; its variance is infinite up to two degrees of freedom."""

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
"""From this shape on a difference of two gammas is read from its characteristic function, since K_n overflows
beyond."""


@lru_cache(maxsize=16)
def _wide(shape: float) -> Inverted:
    return inverted(lambda t: np.exp(-shape * np.log1p(t * t)), 2 * shape, 1.0, shape, scale=1.0, sides=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaDifference(Marginal):
    """G - G', both Gamma(shape): Laplace's distribution for shape 1.
    Density |z|^n K_n(|z|) / (sqrt(pi) 2^n Gamma(shape)), n =
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

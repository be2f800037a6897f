"""The law of one coordinate of continuous noise: probabilities, quantiles, intervals, in floats.

For reading and for error bars; no privacy rests on them. `error` bounds what a probability may be off by, in absolute
terms: rounding for closed forms, and what is cut off where an integral is computed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.rationals import Exact, exact_parameter

__all__ = ["Marginal", "RoundedMarginal"]

ROUNDING = 1e-12


def level_of(name: str, value: object) -> float:
    """A probability strictly between 0 and 1."""
    level = exact_parameter(name, value, positive=False, any_size=True)
    if not 0 < level < 1:
        raise InvalidParameter(parameter=name, value=value, must="lie strictly between 0 and 1")
    return float(level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginal(ABC):
    """scale * Z for a number Z of a known law."""

    scale: float = 1.0

    @abstractmethod
    def _survival(self, z: Floats) -> Floats:
        """Pr[Z > z]."""

    def _cumulative(self, z: Floats) -> Floats:
        """Pr[Z <= z]; symmetric laws have it from the other tail."""
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
        """How far a probability may be from the truth."""
        return ROUNDING

    @property
    def _fine(self) -> float:
        """Standard deviations in steps from which rounding adds 1/12 to the variance, to 10^-9 of it (Sheppard)."""
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
        """What leaves half of the miss on either side."""
        level_of("confidence", confidence)
        half = (1 - exact_parameter("confidence", confidence)) / 2
        return self.quantile(half), self.quantile(1 - half)

    def scaled(self, factor: float) -> Self:
        """The law of factor * X, factor > 0."""
        return replace(self, scale=self.scale * factor)

    def difference(self) -> Marginal:
        """The law of X - X', X' independent of X with the same law."""
        raise NoLaw(
            operation=f"the law of a difference of two {type(self).__name__} numbers",
            reason="no formula for it is stated here", hint="estimate it from draws, which are no data",
        )  # fmt: skip

    def rounded(self, spacing: Exact) -> RoundedMarginal:
        """The law of what is released: X rounded to the grid, in steps."""
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
    while high - low > 1e-12 * max(abs(low), abs(high), 1e-12 * start):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedMarginal:
    """floor(X / step + 1/2): what is drawn, in whole steps. The questions are those of a `DiscreteDistribution`."""

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
        """What leaves at most half of the miss on either side."""
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
    """Mean and variance in steps: sums of tails on coarse grids; on fine ones X's own, and 1/12."""
    one, step = law.marginal, float(law.step)
    center, spread = one.mean / step, one.std / step
    if not spread < one._fine:
        return center, spread**2 + 1 / 12
    far = math.ceil(max(-one.quantile(1e-15), one.quantile(1 - 2.0**-50)) / step) + 2
    k = np.arange(1, far + 1, dtype=np.float64)
    above, below = law.survival(k), law.cumulative(-k)
    mean = float((above - below).sum())
    return mean, float(((2 * k - 1) * (above + below)).sum()) - mean**2

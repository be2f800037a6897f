"""What no mechanism can go below where privacy is (epsilon, delta), Gaussian or zero-concentrated.

For a count on 0..n and a promise under which counts that are t apart keep 1 - TV >= overlap(t), the worst expected
absolute error is at least

    s sum_k (1 - (2k-1)/(floor(n/s)+1)) overlap(s (2k-1)),   k = 1, 2, ..., 2k - 1 <= floor(n/s),

for every whole step s (theorem `count-trade-off`). For pure epsilon and a long range the sum is 1/sinh(epsilon), and
for mu-Gaussian DP about the error of Gaussian noise, sqrt(2/pi)/mu: both are attained.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

__all__ = [
    "ApproximateOverlap",
    "ConcentratedOverlap",
    "GaussianOverlap",
    "Overlap",
    "count_trade_off",
    "least_count",
]

SAFE = 1 - 1e-9
TERMS = 4096
NEGLIGIBLE = 1e-9


class Overlap(ABC):
    """How much the laws of answers to counts that are so far apart must have in common: 1 - TV, from below."""

    @abstractmethod
    def at(self, distance: int) -> float:
        """For an odd distance."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """A distance beyond which next to nothing is in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateOverlap(Overlap):
    """(epsilon, delta): at 2k - 1 twice q^(k-1) (a + c) - c, q = e^-epsilon, a = (1 - delta)/(1 + e^epsilon),
    c = delta/(e^epsilon - 1), where that is above 0."""

    epsilon: float
    delta: float = 0.0

    def at(self, distance: int) -> float:
        steps = (distance + 1) // 2 - 1
        a = (1 - self.delta) / (1 + math.exp(self.epsilon))
        c = self.delta / math.expm1(self.epsilon)
        # The difference may cancel: what rounding can add is taken off before.
        return max(0.0, 2 * (math.exp(-self.epsilon * steps) * (a + c) * (1 - 1e-12) - c))

    @property
    def reach(self) -> float:
        return 2 * (1 + min(-math.log(NEGLIGIBLE), math.log1p(1 / max(self.delta, 1e-300))) / self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianOverlap(Overlap):
    """mu-Gaussian DP: 2 Phi(-t mu/2)."""

    mu: float

    def at(self, distance: int) -> float:
        return math.erfc(distance * self.mu / 2 / math.sqrt(2)) * (1 - 1e-12)

    @property
    def reach(self) -> float:
        return 13 / self.mu


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcentratedOverlap(Overlap):
    """rho-zCDP: 1 - sqrt(1 - e^(-rho t^2)), since the divergence of order 1 is at most rho t^2."""

    rho: float

    def at(self, distance: int) -> float:
        near = math.exp(-self.rho * distance * distance)
        # 1 - sqrt(1 - x) = x/(1 + sqrt(1 - x)), without cancelling.
        return near / (1 + math.sqrt(1 - near)) * (1 - 1e-12)

    @property
    def reach(self) -> float:
        return math.sqrt(-math.log(NEGLIGIBLE) / self.rho)


def count_trade_off(overlap: Overlap, n: int | None) -> float:
    """The lower bound of a count on 0..n; without an n, of ranges of every length. Theorem `count-trade-off`."""
    total, moment, step = _sums(overlap, n)
    if n is None:
        return SAFE * step * total
    return SAFE * max(0.0, step * (total - moment / (n // step + 1)))


def least_count(overlap: Overlap, share: float) -> tuple[float, int]:
    """This share of the bound without an n, and an n from which on a count has it."""
    total, moment, step = _sums(overlap, None)
    if not total:
        return 0.0, 1
    units = max(moment / ((1 - share) * total), overlap.reach / step + 2)
    return SAFE * share * step * total, step * math.ceil(units)


def _sums(overlap: Overlap, n: int | None) -> tuple[float, float, int]:
    """Sum of the overlaps at the odd multiples of a step, the same weighted by the multiples, and the step."""
    longest = overlap.reach if n is None else min(float(n), overlap.reach)
    step = max(1, math.ceil(longest / TERMS) | 1)  # odd: then its odd multiples are odd
    last = math.floor(longest / step) if n is None else min(n // step, math.ceil(longest / step))
    odd = range(1, last + 1, 2)
    values = [overlap.at(step * k) for k in odd] or ([overlap.at(1)] if n is None else [])
    ends = list(odd) or [1]
    return (
        math.fsum(values),
        math.fsum(k * v for k, v in zip(ends, values, strict=False)) * (1 + 1e-12),
        step,
    )

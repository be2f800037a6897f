"""The error of one cell under noise and a threshold, in closed form for Laplace noise; for planning and choosing.

With T(m) = Pr[Z >= m] and M(m) = E[Z; Z >= m] the rule "keep x if x > t" has, at a true count c,
r_t(c) = E[|Z|; Z > t - c] + c Pr[Z <= t - c]. These are floats: they choose and inform, and no guarantee rests on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace

__all__ = ["Tails", "tails", "threshold_risk", "worst_cell"]

FINE_STD = 2000.0
SAFETY = 1 + 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """Tail probabilities and tail means of symmetric integer noise, in floats."""

    noise: Laplace | Gaussian
    scale: float
    table: tuple[Floats, Floats, Floats] | None = None

    @property
    def rate(self) -> float:
        """1 / noise_scale, for Laplace noise."""
        return 1.0 / self.scale

    def probability(self, k: Any) -> Floats:
        """Pr[Z = k]."""
        size = np.abs(np.asarray(k, dtype=np.float64))
        if isinstance(self.noise, Laplace):
            return np.asarray(np.exp(-size * self.rate) * math.tanh(self.rate / 2))
        return np.asarray(self._far(0, size) - self._far(0, size + 1))

    def _far(self, which: int, m: Floats) -> Floats:
        """Pr[Z >= m] or E[Z; Z >= m] for m >= 1 (or m = 0 for the first), Gaussian noise."""
        if self.table is not None:
            column = self.table[which]
            return np.asarray(column[np.minimum(m, column.size - 1).astype(np.int64)])
        from scipy.special import erfc

        z = (m - 0.5) / self.scale
        if which == 0:
            return np.asarray(0.5 * erfc(z / math.sqrt(2)))
        return np.asarray(self.scale / math.sqrt(2 * math.pi) * np.exp(-z * z / 2))

    def upper(self, m: Any) -> Floats:
        """Pr[Z >= m]."""
        at = np.asarray(m, dtype=np.float64)
        away = np.maximum(at, 1 - at)
        if isinstance(self.noise, Laplace):
            tail = np.exp(-away * self.rate) / (1 + math.exp(-self.rate))
        else:
            tail = self._far(0, away)
        return np.asarray(np.where(at >= 1, tail, 1 - tail))

    def mean_above(self, m: Any) -> Floats:
        """E[Z; Z >= m], the same for m and 1 - m as E Z = 0."""
        at = np.asarray(m, dtype=np.float64)
        away = np.maximum(at, 1 - at)
        if isinstance(self.noise, Laplace):
            tail = np.exp(-away * self.rate) / (1 + math.exp(-self.rate))
            return np.asarray(tail * (away + 1 / math.expm1(self.rate)))
        return self._far(1, away)

    def size_above(self, m: Any) -> Floats:
        """E[|Z|; Z >= m]."""
        at = np.asarray(m, dtype=np.float64)
        above = self.mean_above(at)
        return np.asarray(np.where(at >= 1, above, 2 * self.mean_above(1.0) - above))

    def risk(self, threshold: Any, count: Any) -> Floats:
        """r_t(c); for c < 0 the same expression, which continues it (the estimate of the risk needs that)."""
        c = np.asarray(count, dtype=np.float64)
        m = np.asarray(threshold, dtype=np.float64) + 1 - c
        return np.asarray(self.size_above(m) + c * (1 - self.upper(m)))


def tails(noise: Laplace | Gaussian) -> Tails:
    """The tails of a mechanism's noise."""
    if isinstance(noise, Laplace):
        return Tails(noise, float(noise.noise_scale))
    std = float(noise.noise_std)
    if std > FINE_STD:
        return Tails(noise, std)
    k = np.arange(0.0, math.ceil(39 * std) + 8)
    weight = np.exp(-k * k / (2 * std * std))
    total = 2 * weight.sum() - 1

    def above(terms: Floats) -> Floats:
        return np.asarray(np.cumsum(terms[::-1])[::-1] / total)

    zero = np.zeros(1)
    table = (np.append(above(weight), zero), np.append(above(k * weight), zero), zero)
    return Tails(noise, std, table)


def threshold_risk(noise: Laplace | Gaussian, threshold: int, counts: npt.ArrayLike) -> Floats:
    """r_t(c) for each true count; where a negative threshold lets negative values through, they count as they are."""
    return tails(noise).risk(threshold, counts)


def worst_cell(noise: Laplace | Gaussian, threshold: int) -> float:
    """The largest r_t(c) over c >= 0, raised by a part in 10^9 for the floats.

    Beyond t + 45 noise scales r_t is E|Z| to the last digit; between, c is scanned at every integer, or in steps of
    a thousandth of the scale with what r_t can rise in one step (|r_t'| <= 1 + t/scale) added.
    """
    law = tails(noise)
    top = max(threshold, 0) + math.ceil(45 * law.scale) + 2
    step = max(1, math.floor(law.scale / 1000))
    grid = np.arange(0, top + step, step)
    worst = float(law.risk(threshold, grid).max())
    slack = 0.0 if step == 1 else step * (1 + max(threshold, 0) / law.scale)
    return (worst + slack) * SAFETY

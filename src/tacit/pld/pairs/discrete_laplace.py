"""The discrete Laplace (geometric) pair."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from tacit.exact.arrays import UNIT, column
from tacit.exact.balls import ball, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, down, up
from tacit.pld.distributions import (
    AtomicPLD,
)
from tacit.pld.pairs.listed import ListedPair
from tacit.pld.quadrature_rules import (
    LARGEST_EPSILON,
    MOST_ATOMS,
    AtomRows,
)

__all__ = ["DiscreteLaplacePair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplacePair(ListedPair):
    """Integer noise with mass proportional to e^(-rate |x|), shifted by an integer sensitivity."""

    rate: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require(0 < self.rate < math.inf, parameter="rate", value=self.rate, must="be positive and finite")
        ok = isinstance(self.sensitivity, int) and self.sensitivity >= 1
        require(ok, parameter="sensitivity", value=self.sensitivity, must="be a positive integer")
        require(
            self.sensitivity <= 10**6,
            parameter="sensitivity",
            value=self.sensitivity,
            must="be at most a million",
            hint="for a finer grid the continuous Laplace pair with epsilon + 2 ln cosh(rate/2) dominates",
        )

    @property
    def largest_loss(self) -> Interval:
        if self.sensitivity == 1:
            return Interval(low=self.rate, high=self.rate)
        exact = Fraction(self.rate) * self.sensitivity
        return Interval(low=down(exact), high=up(exact))

    @property
    def top_mass(self) -> float:
        return 1 / (1 + math.exp(-self.rate)) * (1 - 4 * UNIT)

    @property
    def atom_count(self) -> int:
        return self.sensitivity + 1

    def atoms(self) -> list[tuple[Any, Any]]:
        a, s = ball(self.rate), self.sensitivity
        norm = 1 + (-a).exp()
        inner = [(a * (s - 2 * x), -(-a).expm1() / norm * (-a * x).exp()) for x in range(s - 1, 0, -1)]
        return [(-a * s, (-a * s).exp() / norm), *inner, (a * s, 1 / norm)]

    def pld(self) -> AtomicPLD:
        a, s = self.rate, self.sensitivity
        x = np.arange(s, -1, -1, dtype=np.float64)
        norm = 1 + math.exp(-a)
        p = -math.expm1(-a) / norm * np.exp(-a * x)
        p[0], p[-1] = math.exp(-a * s) / norm, 1 / norm
        losses = a * (s - 2 * x)
        nothing = Interval(low=0.0, high=0.0)
        return AtomicPLD.single(
            losses=losses,
            p=p,
            q=p[::-1].copy(),
            infinite=nothing,
            reverse_infinite=nothing,
            error=(16 + 4 * a * s) * UNIT,
            slack=4 * UNIT * a * s,
        )

    def curve(self, t: Any) -> Any:
        """max over thresholds m of F(m) - t F(m - s): the best is next to x* = (s - ln t / a)/2."""
        a, s = ball(self.rate), self.sensitivity
        norm = 1 + (-a).exp()
        best = positive_ball(1 - t)
        log = t.log()
        middle = float(((s - log / a) / 2).mid())
        near = min(max(math.floor(middle), 0), s)
        for m in range(max(0, near - 2), min(s, near + 3)):
            # F(m) - t F(m - s) = 1 - e^(-a(m+1))/norm - t e^(a(m-s))/norm for 0 <= m < s
            gain = 1 - ((-a * (m + 1)).exp() + (log + a * (m - s)).exp()) / norm
            best = best.max(gain)
        return best

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        first = pairs[0]
        zero = np.zeros((len(pairs), 1))
        a = column([p.rate for p in pairs])
        s = first.sensitivity
        x = np.arange(s, -1, -1, dtype=np.float64)[None, :]
        p = -np.expm1(-a) * np.exp(-a * x)
        p[:, :1], p[:, -1:] = np.exp(-a * s), 1.0
        return a * (s - 2 * x), p / (1 + np.exp(-a)), zero, zero

    def rule_key(self, *, sampled: bool) -> Hashable:
        far = self.atom_count > MOST_ATOMS or self.rate * self.sensitivity > LARGEST_EPSILON
        return None if far else self.atom_count

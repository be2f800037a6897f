"""The discrete Gaussian pair, from its own summed probabilities (never the continuous profile)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np

from tacit.errors import NotCertified
from tacit.exact.arrays import UNIT, Floats, column
from tacit.exact.balls import ball, bracket, positive_ball, working_precision
from tacit.exact.checks import require
from tacit.exact.rounding import Interval
from tacit.pld.distributions import (
    AtomicPLD,
    PrivacyLossDistribution,
)
from tacit.pld.pairs.base import UNBOUNDED, Pair, check_order
from tacit.pld.quadrature_rules import (
    QuadratureRange,
    Rule,
    integer_rule,
)
from tacit.pld.without_replacement_rules import WithoutReplacementRule, integer_half

__all__ = ["DiscreteGaussianPair"]

_MOST_TERMS = 4_000_000


_BALL_TERMS = 40_000


@lru_cache(maxsize=64)
def _weights(noise_std: float, bits: int) -> tuple[list[Any], Any]:
    """Balls of e^(-x^2/2 noise_std^2) for x = 0..R, and of their two-sided sum with its tail."""
    rate = -1 / (2 * ball(noise_std) ** 2)
    reach = math.ceil(noise_std * math.sqrt(2 * math.log(2) * (bits + 40))) + 2
    weights = [(rate * (x * x)).exp() for x in range(reach + 1)]
    edge = (rate * (reach + 1) ** 2).exp()
    # Beyond the edge the terms fall at least geometrically with the ratio of the next two.
    ratio = (rate * (2 * reach + 3)).exp()
    tail = edge / (1 - ratio)
    total = weights[0] + 2 * sum(weights[1:], ball(0))
    return weights, total + (ball(0)).union(2 * tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianPair(Pair):
    """Integer noise with mass proportional to e^(-x^2/(2 noise_std^2)), shifted by an integer sensitivity.

    L(x) = (s^2 - 2 s x)/(2 noise_std^2) falls with x, so H = F(m) - e^e F(m - s) with m the largest integer
    below s/2 - noise_std^2 e/s (Canonne, Kamath, Steinke 2020).
    """

    noise_std: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require(
            0 < self.noise_std < math.inf,
            parameter="noise_std",
            value=self.noise_std,
            must="be positive, finite",
        )
        ok = isinstance(self.sensitivity, int) and self.sensitivity >= 1
        require(ok, parameter="sensitivity", value=self.sensitivity, must="be a positive integer")

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    @property
    def has_closed_form(self) -> bool:
        return self.noise_std <= _BALL_TERMS / 40

    def _terms(self) -> int:
        return math.ceil(2 * 40 * self.noise_std + self.sensitivity + 10)

    def curve(self, t: Any) -> Any:
        if not self.has_closed_form:
            raise NotCertified(
                what="the profile of a discrete Gaussian",
                reason=f"its noise_std of {self.noise_std:g} needs too many terms in ball arithmetic",
                hint="use a coarser grid, or the concentrated bound rho = sensitivity^2/(2 noise_std^2)",
            )
        s, variance = self.sensitivity, ball(self.noise_std) ** 2
        middle = float((ball(s) / 2 - variance * t.log() / s).mid())
        # Far out the threshold moves by more than a term's bits can show: more of them are summed there.
        bits = working_precision() + min(
            int(middle * middle / (2 * self.noise_std**2) / math.log(2)) + 64, 1 << 14
        )
        weights, total = _weights(self.noise_std, bits)
        if abs(middle) > len(weights) + s + 2:
            return self._far(t, middle, weights, total)
        best = positive_ball(1 - t)
        near = math.ceil(middle) - 1
        lower, shifted = self._cdf(near - 2, weights), self._cdf(near - 2 - s, weights)
        for m in range(near - 1, near + 3):
            lower += self._weight(m, weights)
            shifted += self._weight(m - s, weights)
            best = best.max((lower - t * shifted) / total)
        return best

    @staticmethod
    def _weight(x: int, weights: list[Any]) -> Any:
        return weights[abs(x)] if abs(x) < len(weights) else ball(0).union(weights[-1])

    def _cdf(self, m: int, weights: list[Any]) -> Any:
        """Sum of the weights at x <= m, with the two-sided tail inside the ball."""
        reach = len(weights) - 1
        rate = -1 / (2 * ball(self.noise_std) ** 2)
        tail = (rate * (reach + 1) ** 2).exp() / (1 - (rate * (2 * reach + 3)).exp())
        tail = ball(0).union(tail)
        if m < -reach:
            return tail
        out = tail
        for x in range(-reach, min(m, reach) + 1):
            out += weights[abs(x)]
        return out + tail if m > reach else out

    def _far(self, t: Any, middle: float, weights: list[Any], total: Any) -> Any:
        """Beyond all summed terms: P below m is at most its first term over (1 - ratio)."""
        if middle > 0:
            return positive_ball(1 - t)
        rate = -1 / (2 * ball(self.noise_std) ** 2)
        m = -int(-middle) + 1
        bound = (rate * (m * m)).exp() / (1 - (rate * (2 * abs(m) + 1)).exp()) / total
        return ball(0).union(bound)

    def pld(self) -> PrivacyLossDistribution:
        s, std = self.sensitivity, self.noise_std
        if self._terms() > _MOST_TERMS:
            raise NotCertified(
                what="the privacy loss of a discrete Gaussian",
                reason=f"its noise_std of {std:g} needs more than {_MOST_TERMS} atoms",
                hint="use a coarser grid, or the concentrated bound rho = sensitivity^2/(2 noise_std^2)",
            )
        reach = math.ceil(38 * std) + s + 2
        x = np.arange(reach, -reach - 1, -1, dtype=np.float64)
        exponents = -(x**2) / (2 * std**2)
        weights = np.exp(exponents)
        total = math.fsum(weights.tolist())
        shifted = np.exp(-((x - s) ** 2) / (2 * std**2))
        p, q = weights / total, shifted / total
        # Masses of less than the float range are dropped as atoms and counted at infinity.
        keep = (p > 1e-290) & (q > 1e-290)
        losses = (s * s - 2 * s * x) / (2 * std**2)
        relative = (32 + 8 * 700.0) * UNIT
        rest, reverse = 1.001 * float(p[~keep].sum()) + 1e-280, 1.001 * float(q[~keep].sum()) + 1e-280
        return AtomicPLD.single(
            losses=losses[keep],
            p=p[keep],
            q=q[keep],
            infinite=Interval(low=0.0, high=min(1.0, rest)),
            reverse_infinite=Interval(low=0.0, high=min(1.0, reverse)),
            error=relative,
            slack=8 * UNIT * float(np.max(np.abs(losses[keep]), initial=0.0)),
        )

    def renyi(self, order: float) -> float:
        """order s^2 / (2 noise_std^2), as for the continuous Gaussian (Canonne, Kamath, Steinke 2020)."""
        check_order(order)
        if order == math.inf:
            return math.inf
        s = self.sensitivity
        return bracket(lambda: ball(order) * s * s / (2 * ball(self.noise_std) ** 2), what="a Rényi").high

    def rule_key(self, *, sampled: bool) -> Hashable:
        # Far-spread integer noise sums like its integral; otherwise its integers are the nodes.
        narrow = self.noise_std < 3 * self.sensitivity and self.sensitivity > 8
        return None if self.noise_std < 0.3 or narrow else self.sensitivity

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        std, shift = column([float(p.noise_std) for p in pairs]), float(pairs[0].sensitivity)
        rule = integer_rule(std, shift, rates, reach)
        if rule is None:
            return None
        lattice = (std[:, 0], shift) if float(np.min(std)) >= 1 else None
        return replace(rule, cancelled=(shift / std) ** 2, integers=lattice)

    @classmethod
    def without_replacement_rule(
        cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange
    ) -> WithoutReplacementRule | None:
        return integer_half(column([float(p.noise_std) for p in pairs]), pairs[0].sensitivity, rates, reach)

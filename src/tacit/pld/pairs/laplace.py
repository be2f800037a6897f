"""The Laplace pair."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tacit.exact.arrays import UNIT, Column, Floats, column
from tacit.exact.balls import ball, bracket, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval
from tacit.pld.distributions import (
    Cells,
    PrivacyLossDistribution,
    TailPLD,
    Tails,
)
from tacit.pld.pairs.base import Pair, check_order
from tacit.pld.quadrature_rules import (
    LARGEST_EPSILON,
    QuadratureRange,
    Rule,
    bounded_rule,
)
from tacit.pld.without_replacement_rules import WithoutReplacementRule, bounded_half

__all__ = ["LaplacePair", "laplace_pld"]


def laplace_pld(top: Column) -> TailPLD:
    """Atoms at both ends of [-epsilon, epsilon]; between them the P-density e^((l - epsilon)/2)/4."""
    widest = float(np.max(top))

    def tails(losses: Floats) -> Tails:
        inside = np.clip(losses, -top, top)
        p_below = np.where(losses < -top, 0.0, np.where(losses >= top, 1.0, np.exp((inside - top) / 2) / 2))
        q_above = np.where(losses >= top, 0.0, np.where(losses < -top, 1.0, np.exp((-inside - top) / 2) / 2))
        values = np.array([1 - p_below, p_below, q_above, 1 - q_above])
        return Tails(values=values, errors=values * (8 + 4 * widest) * UNIT)

    def cells(edges: Floats) -> Cells:
        ends = np.clip(edges, -top, top)
        left, right = ends[:, :-1], ends[:, 1:]
        grown = np.expm1((right - left) / 2) / 2
        p = np.exp((left - top) / 2) * grown
        q = np.exp((-right - top) / 2) * grown
        at_top = (edges[:, :-1] < top) & (edges[:, 1:] >= top)
        at_bottom = (edges[:, :-1] < -top) & (edges[:, 1:] >= -top)
        p = p + 0.5 * at_top + 0.5 * np.exp(-top) * at_bottom
        q = q + 0.5 * np.exp(-top) * at_top + 0.5 * at_bottom
        relative = (16 + 8 * widest) * UNIT
        return Cells(p=p, q=q, p_error=relative * p, q_error=relative * q)

    return TailPLD(tails=tails, bounds=(-widest, widest), closed_cells=cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplacePair(Pair):
    """Laplace noise, epsilon = l1 sensitivity / noise_scale: h(t) = max(0, 1 - t, 1 - sqrt(t e^-epsilon))."""

    epsilon: float

    def __post_init__(self) -> None:
        require(
            0 < self.epsilon < math.inf,
            parameter="epsilon",
            value=self.epsilon,
            must="be positive and finite",
        )

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def top_mass(self) -> float:
        return 0.5

    def curve(self, t: Any) -> Any:
        middle = -((t.log() - ball(self.epsilon)) / 2).expm1()
        return positive_ball(middle.max(1 - t))

    def pld(self) -> PrivacyLossDistribution:
        return laplace_pld(self.epsilon)

    def renyi(self, order: float) -> float:
        """ln[a/(2a-1) e^((a-1)e) + (a-1)/(2a-1) e^(-ae)] / (a-1) (Mironov 2017, Table II)."""
        check_order(order)
        if order == math.inf:
            return self.epsilon

        def value() -> Any:
            a, e = ball(order), ball(self.epsilon)
            inner = (a * ((a - 1) * e).expm1() + (a - 1) * (-a * e).expm1()) / (2 * a - 1)
            return inner.log1p() / (a - 1)

        return min(bracket(value, what="a Rényi divergence").high, self.epsilon)

    has_density = True

    def batch_key(self) -> tuple[Any, ...] | None:
        return ("LaplacePair",)

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        return laplace_pld(column([p.epsilon for p in pairs]))

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.epsilon > LARGEST_EPSILON else 0

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        return bounded_rule(column([p.epsilon for p in pairs]), True, reach)

    @classmethod
    def without_replacement_rule(
        cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange
    ) -> WithoutReplacementRule | None:
        return bounded_half(column([p.epsilon for p in pairs]), True, rates, reach)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return "LaplacePair", (self.epsilon,)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return LaplacePair(epsilon=next(values))

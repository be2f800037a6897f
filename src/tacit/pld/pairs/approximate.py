"""The worst pair of (epsilon, delta), and of pure epsilon."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tacit.exact.balls import ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval
from tacit.pld.pairs.base import Pair
from tacit.pld.pairs.listed import ListedPair
from tacit.pld.quadrature_rules import (
    LARGEST_EPSILON,
    AtomRows,
)

__all__ = ["ApproximatePair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximatePair(ListedPair):
    """The pair that dominates every (epsilon, delta) mechanism (Kairouz, Oh, Viswanath 2015): delta at
    infinity, the rest randomised response with epsilon. delta = 0 is pure epsilon."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        require(
            0 <= self.epsilon < math.inf, parameter="epsilon", value=self.epsilon, must="be finite and >= 0"
        )
        require(0 <= self.delta <= 1, parameter="delta", value=self.delta, must="lie in [0, 1]")

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def infinite_mass(self) -> Interval:
        return Interval(low=self.delta, high=self.delta)

    @property
    def atom_count(self) -> int:
        return 2

    def atoms(self) -> list[tuple[Any, Any]]:
        e, rest = ball(self.epsilon), 1 - ball(self.delta)
        norm = e.exp() + 1
        return [(-e, rest / norm), (e, rest * e.exp() / norm)]

    @property
    def approximate_point(self) -> tuple[float, float] | None:
        return self.epsilon, self.delta

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        rows = np.array([(p.epsilon, p.delta) for p in pairs])
        e, lost = rows[:, :1], rows[:, 1:]
        losses = np.concatenate([-e, e], axis=1)
        return losses, (1 - lost) / (1 + np.exp(-losses)), lost, lost

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.epsilon > LARGEST_EPSILON else 0

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return "ApproximatePair", (self.epsilon, self.delta)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return ApproximatePair(epsilon=next(values), delta=next(values))

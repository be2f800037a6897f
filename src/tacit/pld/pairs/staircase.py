"""The staircase pair."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tacit.exact.balls import ball, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval
from tacit.pld.pairs.listed import ListedPair
from tacit.pld.quadrature_rules import (
    LARGEST_EPSILON,
    AtomRows,
)

__all__ = ["StaircasePair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaircasePair(ListedPair):
    """Staircase noise (Geng, Viswanath 2016) with steps of width gamma: losses -epsilon, 0, epsilon.

    Every shift up to the sensitivity gives losses in {-epsilon, 0, epsilon}, and such pairs are ordered by
    P(loss = epsilon) = TV/(1 - e^-epsilon); the noise is symmetric and unimodal, so the full shift is worst.
    TV = integral of the density over half a sensitivity on each side of 0.
    """

    epsilon: float
    gamma: float

    def __post_init__(self) -> None:
        require(
            0 < self.epsilon < math.inf,
            parameter="epsilon",
            value=self.epsilon,
            must="be positive and finite",
        )
        require(0 <= self.gamma <= 1, parameter="gamma", value=self.gamma, must="lie in [0, 1]")

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def atom_count(self) -> int:
        return 3

    def atoms(self) -> list[tuple[Any, Any]]:
        e, g = ball(self.epsilon), ball(self.gamma)
        decay = (-e).exp()
        height = 1 / (2 * (g + decay * (1 - g)))
        inside = ball(1) if self.gamma >= 0.5 else 2 * (g + (ball(1) / 2 - g) * decay)
        top = height * inside
        out = [(-e, top * decay), (e, top)]
        middle = 1 - top - top * decay
        out.insert(1, (ball(0), positive_ball(middle)))
        return out

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        zero = np.zeros((len(pairs), 1))
        rows = np.array([(p.epsilon, p.gamma) for p in pairs])
        e, g = rows[:, :1], rows[:, 1:]
        decay = np.exp(-e)
        inside = np.where(g >= 0.5, 1.0, 2 * (g + (0.5 - g) * decay))
        top = inside / (2 * (g + decay * (1 - g)))
        middle = np.maximum(1 - top - top * decay, 0.0)
        return (
            np.concatenate([-e, zero, e], axis=1),
            np.concatenate([top * decay, middle, top], axis=1),
            zero,
            zero,
        )

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.epsilon > LARGEST_EPSILON else 0

"""The pair of local mechanisms whose categories are supported by equally many outcomes, two of them by equally many."""

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

__all__ = ["BalancedResponsePair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedResponsePair(ListedPair):
    """Each category is supported by `supporting` of `outcomes`, two categories together by `shared` of them.

    An outcome that supports the truth has odds e^epsilon against one that does not. With s, m and K for these numbers
    and Z = s e^epsilon + K - s, the loss is +epsilon with P-mass (s - m) e^epsilon / Z, -epsilon with (s - m) / Z, else
    0. Only the ratios of the three numbers matter.
    """

    epsilon: float
    outcomes: int
    supporting: int
    shared: int

    def __post_init__(self) -> None:
        require(
            0 <= self.epsilon < math.inf, parameter="epsilon", value=self.epsilon, must="be finite and >= 0"
        )
        ok = 0 <= self.shared < self.supporting and 2 * self.supporting - self.shared <= self.outcomes
        require(
            ok, parameter="shared", value=self.shared,
            must="be below supporting, and 2 supporting - shared at most outcomes",
        )  # fmt: skip

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def _idle(self) -> bool:
        """Whether some outcome tells two categories not apart."""
        return self.shared > 0 or 2 * self.supporting < self.outcomes

    @property
    def atom_count(self) -> int:
        return 3 if self._idle else 2

    def atoms(self) -> list[tuple[Any, Any]]:
        e = ball(self.epsilon)
        own = self.supporting - self.shared
        norm = self.supporting * e.exp() + (self.outcomes - self.supporting)
        out = [(-e, own / norm), (e, own * e.exp() / norm)]
        if self._idle:
            rest = self.shared * e.exp() + (self.outcomes - 2 * self.supporting + self.shared)
            out.insert(1, (ball(0), rest / norm))
        return out

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        zero = np.zeros((len(pairs), 1))
        # Ratios of integers, each rounded once: the numbers themselves may be longer than floats.
        numbers = [(p.outcomes, p.supporting, p.shared) for p in pairs]
        own, shared, idle, out = np.array(
            [((s - m) / n, m / n, (n - 2 * s + m) / n, (n - s) / n) for n, s, m in numbers]
        ).T[:, :, None]
        e = np.array([[p.epsilon] for p in pairs])
        grown = np.exp(e)
        norm = (own + shared) * grown + out
        top = own * grown / norm
        if not pairs[0]._idle:
            return np.concatenate([-e, e], axis=1), np.concatenate([own / norm, top], axis=1), zero, zero
        losses = np.concatenate([-e, zero, e], axis=1)
        return losses, np.concatenate([own / norm, (shared * grown + idle) / norm, top], axis=1), zero, zero

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.epsilon > LARGEST_EPSILON else self.atom_count

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return ("BalancedResponsePair", self.outcomes, self.supporting, self.shared), (self.epsilon,)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return BalancedResponsePair(
            epsilon=next(values), outcomes=self.outcomes, supporting=self.supporting, shared=self.shared
        )

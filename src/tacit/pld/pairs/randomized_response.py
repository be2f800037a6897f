"""The pair of k-ary randomised response."""

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

__all__ = ["RandomizedResponsePair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponsePair(ListedPair):
    """k-ary randomised response: truth with e^epsilon/(e^epsilon + k - 1), each other answer with 1/(...)."""

    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        require(
            0 <= self.epsilon < math.inf, parameter="epsilon", value=self.epsilon, must="be finite and >= 0"
        )
        require(self.categories >= 2, parameter="categories", value=self.categories, must="be at least 2")

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def atom_count(self) -> int:
        return 2 if self.categories == 2 else 3

    def atoms(self) -> list[tuple[Any, Any]]:
        e = ball(self.epsilon)
        norm = e.exp() + (self.categories - 1)
        out = [(-e, 1 / norm), (e, e.exp() / norm)]
        if self.categories > 2:
            out.insert(1, (ball(0), (self.categories - 2) / norm))
        return out

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        first = pairs[0]
        zero = np.zeros((len(pairs), 1))
        rows = np.array([(p.epsilon, p.categories) for p in pairs])
        e, k = rows[:, :1], rows[:, 1:]
        losses = np.concatenate([-e, zero, e] if first.categories > 2 else [-e, e], axis=1)
        ways = np.concatenate(
            [zero + 1, k - 2, zero + 1] if first.categories > 2 else [zero + 1, zero + 1], axis=1
        )
        return losses, ways * np.exp(np.maximum(losses, 0.0)) / (np.exp(e) + k - 1), zero, zero

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.epsilon > LARGEST_EPSILON else self.atom_count

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return ("RandomizedResponsePair", self.categories), (self.epsilon,)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return RandomizedResponsePair(epsilon=next(values), categories=self.categories)

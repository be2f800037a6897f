"""Rough bounds of a number that has none declared: a private release, from which bounds may be declared.

The counts over public power-of-two ranges get Laplace noise; from the first to the last range that noise alone would
hardly fill, that is the answer. Post-processing (theorem `rough-bounds`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator.intervals import Estimate
from tacit.curator.prices import Price
from tacit.curator.treatments import Noisy, Treatment, pure_within, treat
from tacit.errors import InvalidParameter
from tacit.mechanisms import L1, Laplace
from tacit.mechanisms.rough_bounds import rough_bounds
from tacit.statistics.base import Question

__all__ = ["Rough", "treat_bounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rough(Treatment):
    """Laplace noise on the counts; the answer is two numbers, low and high."""

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return (*self.blocks[0].theorems, "rough-bounds")

    def read(
        self, question: Question, noisy: Noisy, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """low and high; no numbers where no range stands out of the noise."""
        labels: Any = question.axes[0].labels
        edges = [labels[0][0], *(high for _, high in labels)]
        block = self.blocks[0]
        law = Laplace.for_epsilon(epsilon=block.level, sensitivity=L1(block.l1))
        found = rough_bounds(noisy.parts["count"], edges=edges, noise_law=law, confidence=confidence)
        ends = np.array([np.nan if v is None else v for v in (found.low, found.high)])
        return Estimate(value=ends, low=ends, high=ends)

    @property
    def covers(self) -> str:
        """Bounds are a choice, not an estimate."""
        return "nothing: bounds have no intervals, low and high repeat the value"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """Bounds are powers of two, and have no error bar."""
        said = "the outer ranges hold rows and are not made by noise, with the stated confidence"
        return None, None, said


def treat_bounds(question: Question, price: Price) -> Rough:
    """Laplace noise, by the pure epsilon that any price has room for."""
    epsilon = pure_within(price)
    if epsilon is None:
        raise InvalidParameter(
            parameter="within", value=float(price.within or 0), must="be asked of counts and sums",
            hint="bounds are powers of two and have no error bar: pay them in epsilon",
        )  # fmt: skip
    pure = Price(epsilon=epsilon)
    inner = treat(question, pure)
    return Rough(blocks=inner.blocks, price=pure, reason="Laplace noise: bounds are read from pure noise")

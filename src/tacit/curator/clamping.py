"""Clamping bounds of a number that has none declared: a private release, from which bounds may be declared.

The counts over public power-of-two ranges get Laplace noise; from the first to the last range that noise alone would
hardly fill, that is the answer. Post-processing (theorem `clamping-bounds`).
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
from tacit.mechanisms.clamping_bounds import bounds_from_counts
from tacit.statistics.base import Question

__all__ = ["ClampingTreatment", "treat_clamping_bounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClampingTreatment(Treatment):
    """Laplace noise on the counts; the answer is two numbers, low and high."""

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return (*self.noise[0].mechanism.theorems, "clamping-bounds")

    def read(
        self, question: Question, noisy: Noisy, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """low and high; no numbers where no range stands out of the noise."""
        labels: Any = question.axes[0].labels
        edges = [labels[0][0], *(high for _, high in labels)]
        noise: Any = self.noise[0].mechanism
        found = bounds_from_counts(noisy.parts["count"], edges=edges, noise=noise, confidence=confidence)
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


def treat_clamping_bounds(question: Question, price: Price) -> ClampingTreatment:
    """Laplace noise, by the pure epsilon that any price has room for."""
    epsilon = pure_within(price)
    if epsilon is None:
        raise InvalidParameter(
            parameter="within", value=float(price.within or 0), must="be asked of counts and sums",
            hint="bounds are powers of two and have no error bar: pay them in epsilon",
        )  # fmt: skip
    pure = Price(epsilon=epsilon)
    inner = treat(question, pure)
    return ClampingTreatment(
        noise=inner.noise, price=pure, reason="Laplace noise: bounds are read from pure noise"
    )

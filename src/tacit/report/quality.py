"""Which released cells are too noisy to use: one declared rule, from the interval alone.

The rule reads the release and never the data, so it costs nothing and can be checked by the reader.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.report.numbers import percent, three

__all__ = ["ABSENT", "CARE", "NOISY", "QualityFlag", "QualityRule"]

Reals = npt.NDArray[np.float64]
CARE = "care"
NOISY = "noisy"
ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityFlag:
    """A mark on cells, with what it means: id in rows, label for people."""

    id: str
    label: str
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRule:
    """half-width / |value| above `care`: use with care; above `noisy`: too noisy to use.

    With `of`, the half-width is compared with that number instead (the range of a column, say, where zero has
    no meaning, as for quantiles of ages).
    """

    care: float = 0.25
    noisy: float = 0.5
    of: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.care <= self.noisy < math.inf:
            raise InvalidParameter(
                parameter="care", value=(self.care, self.noisy), must="be positive and at most `noisy`"
            )
        if self.of is not None and not 0 < self.of < math.inf:
            raise InvalidParameter(parameter="of", value=self.of, must="be positive and finite")

    def flag(self, value: float | None, low: float | None, high: float | None) -> str:
        """The id of the flag of a cell, "" for none."""
        if value is None:
            return ABSENT
        if low is None or high is None:
            return ""
        half = (high - low) / 2
        base = abs(value) if self.of is None else self.of
        if half > self.noisy * base:
            return NOISY
        return CARE if half > self.care * base else ""

    def counts(self, value: Reals, low: Reals, high: Reals) -> dict[str, int]:
        """How many cells carry each flag, of arrays; no number at all is no value, and an end that is none is noise."""
        there = np.isfinite(value)
        with np.errstate(invalid="ignore"):
            half = (high - low) / 2
            base = np.abs(value) if self.of is None else self.of
            noisy = there & (np.isnan(low) | np.isnan(high) | (half > self.noisy * base))
            care = there & ~noisy & (half > self.care * base)
        return {ABSENT: int((~there).sum()), CARE: int(care.sum()), NOISY: int(noisy.sum())}

    @property
    def flags(self) -> tuple[QualityFlag, ...]:
        """The flags that this rule gives, with their explanations."""
        base = "its value" if self.of is None else three(self.of)
        return (
            QualityFlag(
                id=CARE,
                label="use with care",
                explanation=f"the interval's half-width is more than {percent(self.care)} of {base}, "
                "so only its size can be read, not its digits",
            ),
            QualityFlag(
                id=NOISY,
                label="too noisy to use",
                explanation=f"the interval's half-width is more than {percent(self.noisy)} of {base}, "
                "so the noise says more than the data; group more coarsely or pay more to learn it",
            ),
            QualityFlag(
                id=ABSENT,
                label="no value",
                explanation="the noisy parts give no number here, as a mean of a group that may be empty",
            ),
        )

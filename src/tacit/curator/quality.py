"""Which released cells can be used: one rule, one list of words, for pages, files and terminals.

With h the distance from a released value to the farther end of its interval, before the interval was cut at 0 or at
a declared bound:

    good                h at most 25% of the value
    use with care       h above 25% of the value
    too noisy to use    h above 50% of the value, or no end is known
    no value            the noisy parts give no number

The rule reads what was released and nothing else, so it costs nothing and every reader can check it. Days have no zero:
a day is judged against a year. A released function may well cross zero: its points are judged against the largest of
its shown values. A 0 that has noise is therefore never good, and neither is a count that was raised to 0: its interval
may be cut to [0, 0], its noise is not. Only a 0 that no unit can move is good.

Releases of the first rule were judged by the interval as it is shown, and say nothing about it; their certificates bind
the words that it gave. They keep them: `RULE` stands with every answer that is recorded now (`data.quality_rule`). With
it came that the ends of intervals of days are rounded outwards; those of the first rule were rounded to the nearest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.curator.functions.treatment import FunctionTreatment
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.sources.schema import Date

if TYPE_CHECKING:
    from tacit.curator.release import Release

__all__ = [
    "ABSENT",
    "CARE",
    "GOOD",
    "NOISY",
    "RULE",
    "WORDS",
    "QualityFlag",
    "QualityRule",
    "flags_of",
    "rule_of",
]

GOOD, CARE, NOISY, ABSENT = "", "care", "noisy", "absent"
WORDS = {GOOD: "good", CARE: "use with care", NOISY: "too noisy to use", ABSENT: "no value"}
"""What people read, everywhere the same, by the id of a flag."""
RULE = 2
"""The rule of today: an interval is judged before it is cut. 1 is that of records that name none."""
YEAR = 365.25
_ORDER = (GOOD, CARE, NOISY, ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityFlag:
    """A mark on cells, with what it means: id in rows, label for people."""

    id: str
    label: str
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRule:
    """h / |value| above `care`: use with care; above `noisy`: too noisy to use.

    With `of`, h is compared with that number instead, where zero has no meaning; `named` says what it is. Without
    `before_cut` it is the first rule, for releases that were made by it.
    """

    care: float = 0.25
    noisy: float = 0.5
    of: float | None = None
    named: str = "the value"
    before_cut: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.care <= self.noisy < math.inf:
            raise InvalidParameter(
                parameter="care", value=(self.care, self.noisy), must="be positive and at most `noisy`"
            )
        if self.of is not None and not 0 < self.of < math.inf:
            raise InvalidParameter(parameter="of", value=self.of, must="be positive and finite")

    def flag(self, value: float | None, low: float | None, high: float | None) -> str:
        """The id of the flag of a cell, "" for none; a value that has no interval is not judged."""
        if value is None:
            return ABSENT
        if low is None or high is None:
            return GOOD
        return self.judged(np.array([value]), np.array([max(high - value, value - low)]))[0]

    def codes(self, value: Floats, farthest: Floats) -> npt.NDArray[np.int8]:
        """0 to 3 for good, care, noisy and absent: no number is no value, an end that is none is noise."""
        there = np.isfinite(value)
        with np.errstate(invalid="ignore", over="ignore"):
            size = np.abs(value) if self.of is None else self.of
            noisy = ~(farthest <= self.noisy * size)
            care = ~(farthest <= self.care * size)
        return np.where(there, np.where(noisy, 2, np.where(care, 1, 0)), 3).astype(np.int8)

    def judged(self, value: Floats, farthest: Floats) -> list[str]:
        """The id of the flag of every cell, by its value and how far its interval goes from it."""
        return [_ORDER[code] for code in self.codes(value, farthest).tolist()]

    @property
    def sentence(self) -> str:
        """The whole rule in a sentence."""
        cut = ", before it is cut at 0 or at a declared bound" if self.before_cut else ""
        return (
            f"With h the distance from a value to the farther end of its interval{cut}: {WORDS[CARE]} where h is above "
            f"{self.care:.0%} of {self.named}, {WORDS[NOISY]} where it is above {self.noisy:.0%}, "
            f"otherwise {WORDS[GOOD]}"
        )

    @property
    def flags(self) -> tuple[QualityFlag, ...]:
        """The flags that this rule gives, with their explanations."""
        reaches = "the interval reaches further from the value than"
        return (
            QualityFlag(
                id=CARE, label=WORDS[CARE],
                explanation=f"{reaches} {self.care:.0%} of {self.named}: read its size, not its digits",
            ),
            QualityFlag(
                id=NOISY, label=WORDS[NOISY],
                explanation=f"{reaches} {self.noisy:.0%} of {self.named}: the noise says more than the data; "
                "group more coarsely or pay more to learn it",
            ),
            QualityFlag(
                id=ABSENT, label=WORDS[ABSENT],
                explanation="the noisy parts give no number here, as a mean of a group that may be empty",
            ),
        )  # fmt: skip


def rule_of(release: Release) -> QualityRule:
    """The rule for a release: against the value, but for days and for functions."""
    statistic: Any = release.planned.ask.statistic
    treatment = release.planned.treatment
    now = release.data.get("quality_rule", 1) >= RULE
    if isinstance(treatment, FunctionTreatment) and treatment.fit.scale is not None:
        values = np.abs(np.ravel(release.estimate.value))
        largest = float(np.max(values, initial=0.0, where=np.isfinite(values)))
        if largest > 0:
            return QualityRule(of=largest, named="the largest value", before_cut=now)
        return QualityRule(before_cut=now)
    if statistic.in_column_units and isinstance(release.planned.question.schema[statistic.column], Date):
        return QualityRule(of=YEAR, named="a year", before_cut=now)
    return QualityRule(before_cut=now)


def flags_of(release: Release) -> list[str]:
    """The id of the flag of every cell of a release, by the rule that it was made by."""
    if release.words is not None:
        named = {word: flag for flag, word in WORDS.items()}
        return [named[word] for word in release.words]
    rule, found = rule_of(release), release.estimate
    shown = found if rule.before_cut else replace(found, reach=None)
    return rule.judged(np.ravel(found.value).astype(np.float64), np.ravel(shown.farthest).astype(np.float64))

"""How far a release will err, before a row is read: from the law of the noise, and a guess at the rows where needed.

The error of a count or a sum is the noise itself. The error of a mean, a share, a ratio or a variance is about the
noise over the number of rows, which is not known in advance: with `rows`, a public guess, it is shown for a cell
with so many rows and values in the middle of the declared range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator.treatments import Noisy, Treatment
from tacit.statistics.base import Question
from tacit.statistics.forms import Average, Form, Linear, Quotient, Root, Share, Spread

__all__ = ["Expected", "expected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The expected absolute error of a cell, what it stays within at the confidence, and what this is about.

    `mean` is None where it is not known in closed form; both are None where they depend on the data.
    """

    mean: float | None
    within: float | None
    confidence: float
    about: str
    floor: float | None = None
    floor_reason: str = ""

    @property
    def floor_record(self) -> dict[str, Any]:
        """The error that no mechanism could beat, and how near this one is."""
        ratio = None if self.floor is None or self.mean is None else self.mean / self.floor
        return {"lower_bound": self.floor, "ratio": ratio, "reason": self.floor_reason}

    @property
    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "expected_absolute_error": self.mean,
            "within": self.within,
            "confidence": self.confidence,
            "about": self.about,
        }


def expected(question: Question, treatment: Treatment, *, confidence: Fraction, rows: int | None) -> Expected:
    """The error of one cell."""
    level = float(confidence)
    own = treatment.own_error(question, confidence, rows)
    if own is not None:
        mean, within, about = own
        return Expected(mean=mean, within=within, confidence=level, about=about)
    if not treatment.blocks:
        return Expected(mean=0.0, within=0.0, confidence=level, about="each cell: it is exact")
    errors = treatment.part_errors(question, confidence)
    if question.form is None or isinstance(question.form, Linear):
        name = next(iter(errors)) if question.form is None else question.form.part
        mean, within = errors[name]
        return Expected(mean=mean, within=within, confidence=level, about="each cell")
    if rows is None:
        said = "depends on the number of rows of a cell: give rows= for a guess"
        return Expected(mean=None, within=None, confidence=level, about=said)
    parts = _typical(question, question.form, rows)
    found = treatment.read(question, Noisy(parts=parts), confidence)
    half = float(np.max(found.high - found.low)) / 2
    if not math.isfinite(half):
        said = f"at {rows:,} rows the noise hides the divisor: there would be no interval"
        return Expected(mean=None, within=None, confidence=level, about=said)
    about = f"a cell with {rows:,} rows whose values lie in the middle of their range"
    return Expected(mean=None, within=half, confidence=level, about=about)


def _typical(question: Question, form: Form, rows: int) -> dict[str, Any]:
    """Parts of one cell with so many rows, values in the middle; no data in it."""
    spacing = {p.name: p.spacing for p in question.parts}
    match form:
        case Root():
            return _typical(question, form.of, rows)
        case Share():
            half = Fraction(form.width) / spacing[form.above] * rows / 2
            return {form.above: np.array([int(half)]), form.below: np.array([int(half)])}
        case Average():
            half = Fraction(form.width) / spacing[form.part] * rows / 2
            return {form.part: np.array([int(half)]), form.rows: np.array([rows])}
        case Spread():
            third = Fraction(form.width) ** 2 / spacing[form.names[0]] * rows / 3
            return {name: np.array([float(third)]) for name in form.names}
        case Quotient():
            statistic: Any = question.statistic
            columns = (statistic.numerator, statistic.denominator)
            found = {}
            for name, column in zip((form.numerator, form.denominator), columns, strict=True):
                measured = question.schema.measured(column)
                found[name] = np.array([(measured.lowest + measured.highest) * rows // 2])
            return found
    raise NotImplementedError(type(form).__name__)

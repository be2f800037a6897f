"""The expected error of a release, before a row is read: from the noise and, if needed, a guess at the number of rows.

The error of a count or a sum is the noise itself. The error of a mean, a share, a ratio or a variance is roughly the
noise divided by the number of rows, which is unknown in advance. With `rows`, a public guess, the preview shows
it for a cell with that many rows and values in the middle of the declared range, or around a guessed value. The
error of a quantile is an error of ranks; with `rows` and a guessed spread the preview shows it in values.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator.assignments import Assignment, NoisyParts
from tacit.curator.guesses import Guess
from tacit.curator.intervals import noise_by_part
from tacit.errors import NoLaw
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Approximate, Concentrated, GaussianDP, Neighbours, Rows
from tacit.mechanisms.spreads import normal_quantile
from tacit.risk import decompose
from tacit.risk.releases import release_price
from tacit.statistics.base import Question, base_unit, row_limit
from tacit.statistics.forms import Average, Form, Linear, Quotient, Root, Share, Spread
from tacit.statistics.population import PopulationForm, RatioOfSums


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The expected absolute error of a cell, its bound at the confidence, and the quantity that it is about.

    `mean` is None without a closed form; both are None if they depend on the data.
    """

    mean: float | None
    within: float | None
    confidence: float
    about: str
    floor: float | None = None
    floor_reason: str = ""
    sampling: float | None = None
    ranks: bool = False
    """Whether the error is one of ranks, in rows, and not of values."""
    plain: Expected | None = None
    """Under another condition: the error of differential privacy at the same price."""

    def beside(self, plain: Expected) -> Expected:
        """The same, with the error of differential privacy at the same price."""
        about = f"{self.about}; plain DP errs within {_shown(plain.within)} in every cell"
        return replace(self, plain=plain, about=about)

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
            **({} if self.sampling is None else {"sampling_within": self.sampling}),
            **({} if self.plain is None else {"differential_privacy": self.plain.record}),
        }


NO_GUESS = Guess()


def expected(
    question: Question,
    assignment: Assignment,
    *,
    confidence: Fraction,
    rows: int | None,
    sampling: bool = False,
    guess: Guess | None = None,
) -> Expected:
    """The error of one cell, and beside it a lower bound for every mechanism.

    If rows are declared draws from a population, also the sampling error alone, in the worst case of a value in
    its range (theorem `risk-decomposition`: the two errors add up).
    """
    found = _expected(question, assignment, confidence=confidence, rows=rows, guess=guess or NO_GUESS)
    found = _with_floor(found, question, assignment, rows)
    form = question.form
    if isinstance(form, RatioOfSums) and (form.total or not math.isfinite(form.most - form.least)):
        return found
    if not sampling or rows is None or not isinstance(form, Share | Average | RatioOfSums):
        return found
    worst = form.width / 2 / math.sqrt(rows)
    parts = decompose(privacy=found.within or 0.0, sampling=normal_quantile(float(confidence)) * worst)
    verdict = (
        "privacy adds less than sampling does" if parts.benign else "privacy adds more than sampling does"
    )
    about = f"{found.about}; sampling alone: within {parts.sampling:.3g}; {verdict}"
    return replace(found, sampling=parts.sampling, about=about)


NO_BOUND = "no lower bound is known for this statistic"


def _with_floor(found: Expected, question: Question, assignment: Assignment, rows: int | None) -> Expected:
    """The largest valid lower bound of the worst expected error, from public numbers alone (tacit.risk).

    A mean or a proportion over a public number of rows has that of its sum, divided by the number.
    """
    problem = question.statistic.problem
    unit, size = base_unit(question.unit)
    average = question.form if isinstance(question.form, Average) and rows is not None else None
    if average is not None:
        problem = "mean"
    reason = ""
    if problem is None or found.mean is None or not question.known_keys or question.cells is None:
        reason = NO_BOUND
    elif not found.mean:
        reason = "it is exact"
    elif assignment.gamma:
        reason = "the bounds are for differential privacy; random differential privacy may go below them"
    elif (promise := _promise(assignment)) is None:
        reason = "no lower bound is known for a promise of this kind"
    elif size > 1:
        reason = "no lower bound is known for groups of units"
    if reason:
        return replace(found, floor_reason=reason)
    assert problem is not None
    statistic: Any = question.statistic
    people = getattr(statistic, "of", "rows") == "people"
    about: dict[str, Any] = {
        "cells": sum(p.cells or 0 for p in question.parts),
        "at_most": 1 if people else row_limit(unit),
    }
    if average is not None:
        about |= {"n": rows, "cells": 1, "low": average.low, "high": average.low + average.width}
    elif problem == "margins":
        about["attributes"] = len(question.parts)
    elif problem == "sum":
        column = question.schema.measured(statistic.column)
        about |= {
            "low": float(column.lowest * column.spacing),
            "high": float(column.highest * column.spacing),
        }
    elif about["cells"] > 1:
        problem = "histogram"
    assert promise is not None
    price = release_price(
        problem,
        error=float(found.mean or 0),
        **promise,
        neighbours=unit.neighbours,
        **about,
    )
    from_n = "" if price.least_n is None else f"the lower bound holds from {price.least_n:,} units on"
    if average is not None:
        from_n = f"the lower bound is that of the sum, divided by {rows:,} rows"
    return replace(found, floor=price.lower_bound, floor_reason=price.reason or from_n)


def _promise(assignment: Assignment) -> dict[str, Any] | None:
    """The bound that a rival must promise as well: the assignment's own. A larger number makes a smaller floor."""
    pure = assignment.pure()
    if pure is not None:
        return {"epsilon": pure or 1}
    bound = assignment.bound
    if isinstance(bound, Approximate) and bound.epsilon > 0:
        return {"epsilon": Fraction(bound.epsilon), "delta": Fraction(bound.delta)}
    if isinstance(bound, GaussianDP) and bound.mu > 0:
        return {"mu": Fraction(bound.mu)}
    return {"rho": Fraction(bound.rho)} if isinstance(bound, Concentrated) and bound.rho > 0 else None


def _shown(value: float | None) -> str:
    return "an unknown error" if value is None else f"{value:.3g}"


def _expected(
    question: Question, assignment: Assignment, *, confidence: Fraction, rows: int | None, guess: Guess
) -> Expected:
    level = float(confidence)
    own = assignment.own_error(question, confidence, rows)
    if own is not None:
        mean, within, about = own
        if question.statistic.fits == "ranks" and within is not None:
            return _of_ranks(question, within, level, about, rows, guess)
        return Expected(mean=mean, within=within, confidence=level, about=about)
    if not assignment.noise:
        return Expected(mean=0.0, within=0.0, confidence=level, about="each cell: it is exact")
    if question.statistic.layout == "listed":
        by_part = noise_by_part(assignment.noise)
        mean, within, about = question.statistic.expects(question, by_part, level, rows)
        return Expected(mean=mean, within=within, confidence=level, about=about)
    if question.form is None or isinstance(question.form, Linear):
        return _of_cells(question, assignment, confidence)
    if rows is None:
        said = "depends on the number of rows of a cell: give rows= for a guess"
        return Expected(mean=None, within=None, confidence=level, about=said)
    if isinstance(question.form, PopulationForm):
        form = question.form.noise_only()
        if form is None:
            said = "depends on how much primary sampling units differ"
            return Expected(mean=None, within=None, confidence=level, about=said)
        question = replace(question, form=form)
    assert question.form is not None
    parts = _typical(question, question.form, rows, guess)
    # Given random data, the error of cells that have noise.
    reading = Assignment.read if assignment.gamma else type(assignment).read
    found = reading(assignment, question, NoisyParts(parts=parts), confidence)
    # Near a bound the interval is cut there, and its farther end counts.
    half = float(np.max(np.maximum(found.high - found.value, found.value - found.low)))
    if not math.isfinite(half):
        said = f"at {rows:,} rows the noise hides the divisor: there would be no interval"
        return Expected(mean=None, within=None, confidence=level, about=said)
    about = f"a cell with {rows:,} rows {_lying(question.form, guess)}"
    if isinstance(question.form, Average):
        # The number of rows is public and has no noise: the error is that of the sum, divided by it.
        mean = assignment.mean_errors()[question.form.part] * float(question.form.spacing) / rows
        return Expected(mean=mean, within=half, confidence=level, about=f"{rows:,} rows, a public number")
    if hidden_rows(question):
        about = f"{about}; {PUBLIC_ROWS}"
    return Expected(mean=None, within=half, confidence=level, about=about)


PUBLIC_ROWS = (
    "declare missing= for the column (missing=False for a flag), and the number of rows needs no noise: the error is "
    "then smaller"
)


def hidden_rows(question: Question) -> bool:
    """Whether the number of rows has noise only because values may be missing. Then declaring `missing` removes it."""
    unit, _ = base_unit(question.unit)
    return (
        isinstance(question.form, Share)
        and isinstance(unit, Rows)
        and unit.neighbours is Neighbours.REPLACE_ONE
        and question.cells == 1
        and not question.axes
        and getattr(question.statistic, "where", None) is None
    )


def _lying(form: Form, guess: Guess) -> str:
    if isinstance(form, Share | Average) and guess.value is not None:
        return f"whose mean is about {guess.value:g}: a declared guess"
    if isinstance(form, Share):
        return f"whose values lie in the middle of their range; {ASK_GUESS}"
    return "whose values lie in the middle of their range"


ASK_GUESS = "if they do not, guess = { value = ... } gives a better number"


def _of_ranks(
    question: Question, within: float, level: float, about: str, rows: int | None, guess: Guess
) -> Expected:
    """The error of a quantile, in values if both rows and spread are guessed; the largest over the requested shares."""
    statistic: Any = question.statistic
    if rows is None or guess.spread is None:
        return Expected(mean=None, within=within, confidence=level, about=about, ranks=True)
    each = [guess.in_values(within, share=float(q), rows=rows) or 0.0 for q in statistic.at]
    said = (
        f"a quantile of {rows:,} values that lie about as a normal distribution with standard deviation "
        f"{guess.spread:g}: a declared guess; its rank: ± {within:.3g} rows"
    )
    return Expected(mean=None, within=max(each), confidence=level, about=said)


def _of_cells(question: Question, assignment: Assignment, confidence: Fraction) -> Expected:
    """The noise itself: means over the cells of a table, and over the tables."""
    spacing = 1.0 if question.form is None else float(question.parts[0].spacing)
    halves = list(assignment.half_widths(confidence).values())
    alike = len({float(x) for h in halves for x in (h.min(), h.max())}) == 1
    largest = max(float(h.max()) for h in halves) * spacing
    return Expected(
        mean=assignment.mean_error * spacing,
        within=float(np.mean([h.mean() for h in halves])) * spacing,
        confidence=float(confidence),
        about="each cell" if alike else f"a cell, on average; the largest ± {largest:.3g}",
    )


def _typical(question: Question, form: Form, rows: int, guess: Guess) -> dict[str, Any]:
    """Parts of one cell with this many rows, values in the middle or at a guess; uses no data."""
    spacing = {p.name: p.spacing for p in question.parts}
    match form:
        case PopulationForm():
            return form.typical_of(rows)
        case Root():
            return _typical(question, form.of, rows, guess)
        case Share():
            # Post-stratified weights of a cell add up to its members, however many rows stand for them.
            members = question.details.get("a_cell", Fraction(form.width) * rows)
            whole, at = members / spacing[form.above], _placed(form, guess)
            return {form.above: np.array([int(whole * at)]), form.below: np.array([int(whole * (1 - at))])}
        case Average():
            whole = Fraction(form.width) / spacing[form.part] * rows
            return {form.part: np.array([int(whole * _placed(form, guess))]), form.rows: np.array([rows])}
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
    raise NoLaw(operation=f"the error of a {type(form).__name__}", reason="no typical parts are known for it")


def _placed(form: Share | Average, guess: Guess) -> Fraction:
    """The place of the mean in its range: the middle, or the guess."""
    if guess.value is None or not form.width:
        return Fraction(1, 2)
    at = (Fraction(guess.value) - Fraction(form.low)) / Fraction(form.width)
    return min(max(at, Fraction(0)), Fraction(1))

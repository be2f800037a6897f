"""Exact sums, means and counts through the curator, under declared assumptions about the rows (Groce 2014, ch. 6).

`given={"unknown_rows": 900, "rows": "uniform(0, 1)"}` publishes the answer without noise. The claim is that
between two values of a row (`epsilon_pair`), which also holds against a simulator (theorem
`simulator-to-pair`). It is under `Priors`, and nothing else may be published about the same rows: a ledger
takes one such charge, and no other. Theorems `shifted-sums`, `undisclosed-rows` and `count-corners` bound the
uncertainty from the other rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.accounting.events import ApproximateEvent, Event
from tacit.coupled.noiseless import ExactAnswer, exact_count, exact_mean, exact_sum
from tacit.coupled.noiseless.answer import PAIR_IS
from tacit.coupled.noiseless.histograms import FixedSize, truncated_histogram
from tacit.coupled.noiseless.sums import ALONE
from tacit.curator.assignments import Assignment, NoisyParts
from tacit.curator.charging import Price
from tacit.curator.intervals import Estimate
from tacit.curator.request import ExactGiven, Given, SampledGiven
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, digits_up, lower, up
from tacit.guarantees import Approximate, Bound, Neighbours, Priors, Rows
from tacit.noise.source import Source, default_source
from tacit.sources.axes import CountRows
from tacit.sources.query import Aggregation, Cells
from tacit.statistics.base import Question
from tacit.statistics.counts import Count
from tacit.statistics.forms import Average, Linear
from tacit.statistics.moments import Mean, Sum

ALL_ROWS = Aggregation(aggregates=(CountRows(),))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactAssignment(Assignment):
    """No noise: the uncertainty comes from the other rows, under the stated assumptions."""

    answer: ExactAnswer
    given: ExactGiven

    drawn: ClassVar[str] = ""

    @property
    def epsilon(self) -> float:
        """Between two values of a row."""
        assert self.answer.epsilon_pair is not None
        return self.answer.epsilon_pair

    @property
    def condition(self) -> Priors:
        """The priors under which the bound holds."""
        return Priors(family=self.answer.family, unknown_rows=self.answer.unknown_rows)

    @property
    def declared(self) -> tuple[str, ...]:
        """What is believed."""
        unknown = (
            f"an adversary knows nothing of at least {self.answer.unknown_rows} rows but how they are drawn"
        )
        return (self.answer.assumptions[0], unknown, ALONE)

    @property
    def sentence(self) -> str:
        """The sentence that must be in the largest type."""
        return (
            f"This is private provided that {'; and '.join(self.declared)}. If that is wrong, nothing is promised: the "
            "numbers are exact, and this is not differential privacy."
        )

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return (self.answer.theorem, "lattice-sums", "simulator-to-pair")

    @property
    def events(self) -> tuple[Event, ...]:
        """One event with this bound, whose record states the assumption."""
        return (ApproximateEvent(epsilon=self.epsilon, delta=self.answer.delta),)

    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """What is charged."""
        return Fraction(self.epsilon), self.delta

    @property
    def bound(self) -> Bound:
        """(epsilon, delta), under the condition."""
        return Approximate(epsilon=self.epsilon, delta=up(self.delta))

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """The true numbers, if the table has at least the stated number of unknown rows; the number of rows is
        public.
        """
        rows = int(np.ravel(cells[-1].values[CountRows()])[0])
        if rows < self.answer.unknown_rows:
            raise InvalidParameter(
                parameter="unknown_rows", value=self.answer.unknown_rows, must="be at most the number of rows",
                hint="the table has fewer rows: the assumption is false, and nothing is published",
            )  # fmt: skip
        integers = question.integers(cells)
        return NoisyParts(parts={p.name: np.asarray(integers[p.name]) for p in question.parts})

    def to_dict(self) -> dict[str, Any]:
        """No mechanism: the assumption in its place."""
        kept = ("epsilon", "epsilon_pair", "delta", "theorem", "simulator", "unknown_rows")
        record = self.answer.to_dict()
        return {
            "noise": [],
            "chosen": self.reason,
            "numerical_delta": 0.0,
            "exact": {**{k: record[k] for k in kept}, "sentence": self.sentence, **self.given.to_dict()},
        }

    @property
    def covers(self) -> str:
        """The contents of the intervals, with their confidence."""
        return "the statistic of the declared data, exactly: there is no noise"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """Zero: an exact answer has no error."""
        return 0.0, 0.0, "it is exact"

    @property
    def log_error(self) -> float:
        """Nothing is divided by it."""
        return 0.0


def asks_exactly(given: Given | None) -> bool:
    """Is an exact answer asked for?"""
    return isinstance(given, ExactGiven)


def assign_exactly(question: Question, price: Price, given: ExactGiven) -> tuple[Question, Assignment]:
    """The exact answer, if its (epsilon, delta) is within the price; otherwise a refusal that names the needed
    price.
    """
    if isinstance(given, SampledGiven):
        return assign_truncated(question, price, given)
    unit = question.unit
    if not isinstance(unit, Rows) or unit.neighbours is not Neighbours.REPLACE_ONE:
        raise NoLaw(
            operation=f"an exact answer for {unit}",
            reason="the theorems are about one row among a public number of independent rows",
            hint='protect rows(neighbours="replace-one")',
        )
    if price.kind != "approximate":
        raise InvalidParameter(
            parameter="price", value=price.kind, must="be an epsilon with a delta",
            hint="an exact answer is never private with delta = 0",
        )  # fmt: skip
    assert price.epsilon is not None and price.delta is not None  # noqa: PT018
    answer = _answer(question, given, price.delta)
    if answer.epsilon_pair is None:
        raise NoLaw(
            operation=f"an exact {answer.statistic} with delta = {float(price.delta):g}",
            reason=f"{PAIR_IS}, this bound reaches the delta with no epsilon, given so many unknown rows",
            hint="allow a larger delta, assume more unknown rows, or leave given= out for noise",
        )
    if Fraction(answer.epsilon_pair) > price.epsilon:
        raise NoLaw(
            operation=f"an exact {answer.statistic} for epsilon = {float(price.epsilon):g}, delta = "
            f"{float(price.delta):g}",
            reason=f"given so many unknown rows it needs epsilon = {digits_up(answer.epsilon_pair, 4)} at this delta",
            hint="pay that, assume more unknown rows, or leave given= out for noise",
        )
    if ALL_ROWS not in question.requests:
        from dataclasses import replace

        question = replace(question, requests=(*question.requests, ALL_ROWS))
    return question, ExactAssignment(
        noise=(), price=price, delta=Fraction(price.delta), answer=answer, given=given,
        reason=f"exact, given the rows: epsilon = {digits_up(answer.epsilon_pair)} {PAIR_IS}",
    )  # fmt: skip


def _answer(question: Question, given: ExactGiven, delta: Fraction) -> ExactAnswer:
    """The (epsilon, delta) of this statistic's exact value: one sum, mean or count over all rows."""
    statistic = question.statistic
    at = float(delta)
    # Rounded down: the claim is for no larger delta than was paid for.
    at = at if Fraction(at) <= delta else math.nextafter(at, 0.0)
    alone = question.cells == 1 and not question.axes
    if isinstance(statistic, Count) and alone and statistic.where is not None:
        if given.probability is None or statistic.of != "rows":
            raise InvalidParameter(
                parameter="probability", value=None, must="be in given, for a count of rows that pass a test",
                hint="given = { unknown_rows = 900, probability = [0.1, 0.9] }",
            )  # fmt: skip
        return exact_count(given.probability, n=given.unknown_rows, delta=at)
    whole = isinstance(statistic, Sum) and isinstance(question.form, Linear) and statistic.where is None
    average = isinstance(statistic, Mean) and isinstance(question.form, Average)
    if not alone or not isinstance(statistic, Sum | Mean) or not (whole or average):
        raise NoLaw(
            operation=f"an exact {statistic.kind} of this form",
            reason="there is a theorem for one sum or mean over all rows of a column where nothing is missing, and for "
            "one count of rows that pass a test",
            hint="leave out by= and where=, declare missing= for the column; or leave given= out for noise",
        )
    column = question.schema.measured(statistic.column)
    if column.fill is None:
        raise InvalidParameter(
            parameter="missing", value=None, must=f"be declared for {statistic.column}",
            hint="a missing value must count as a value of the grid: number(0, 1, missing=0)",
        )  # fmt: skip
    if given.rows_law is None:
        raise InvalidParameter(
            parameter="rows", value=None, must="name the law of a row in given",
            hint='given = { unknown_rows = 900, rows = "uniform(0, 1)" }',
        )  # fmt: skip
    made = (exact_sum if whole else exact_mean)(
        given.law(column.spacing),
        n=given.unknown_rows,
        delta=at,
        assume=given.assume,
        rectangle_over=given.rectangle,
    )
    given.matches(column.spacing, column.lowest * column.spacing, column.highest * column.spacing)
    return made


# Truncated histograms through the curator: exact counts of a random sample from a threshold on, 0 below.
#
# `given={"sampling": "binomial", "rate": 0.1}` says that the rows are a random sample of which nobody knows who is in
# it (`known_rows` of a cell excepted). The threshold is the smallest that is safe for the price, worst over all means
# of a cell (theorem `truncated-histogram`). The claim is against the same table without the row: rows that are added
# or taken away. It is under `Priors`, and nothing else may be published about the same rows.
#
# `given={"sampling": "fixed", "n": 60000}` is for a public number of rows: a few are discarded at random first
# (theorem `truncated-histogram-fixed-size`), and the claim is between two values of a row.


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedAssignment(ExactAssignment):
    """No noise: counts from the threshold on, and 0 for all others."""

    @property
    def epsilon(self) -> float:
        """Against the same table without the row."""
        return self.answer.epsilon

    @property
    def threshold(self) -> int:
        """The smallest count that is shown."""
        assert self.answer.threshold is not None
        return self.answer.threshold

    @property
    def declared(self) -> tuple[str, ...]:
        """What is believed."""
        return self.answer.assumptions

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return (self.answer.theorem,)

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """The true counts, with 0 for counts below the threshold."""
        integers = question.integers(cells)
        hidden = {p.name: np.asarray(integers[p.name]) for p in question.parts}
        return NoisyParts(parts={n: np.where(v >= self.threshold, v, 0) for n, v in hidden.items()})

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """A 0 stands for every count below the threshold; the others are exact."""
        value = np.asarray(ExactAssignment.read(self, question, noisy, confidence).value)
        return Estimate(value=value, low=value, high=np.where(value > 0, value, self.threshold - 1.0))

    def to_dict(self) -> dict[str, Any]:
        """The threshold beside the assumption."""
        told = ExactAssignment.to_dict(self)
        return {**told, "exact": {**told["exact"], "threshold": self.threshold}}

    @property
    def covers(self) -> str:
        """The contents of the intervals, with their confidence."""
        return (
            f"the count of the declared data: counts of at least {self.threshold} are exact, and 0 stands for any "
            "smaller one"
        )

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """At most the threshold less one, in a cell that is hidden."""
        return None, float(self.threshold - 1), "counts below the threshold are published as 0"


def assign_truncated(question: Question, price: Price, given: SampledGiven) -> tuple[Question, Assignment]:
    """The truncated counts of fixed cells, with the smallest threshold for this price."""
    unit, fixed = question.unit, given.sampling == "fixed"
    relation = Neighbours.REPLACE_ONE if fixed else Neighbours.ADD_OR_REMOVE
    if not isinstance(unit, Rows) or unit.neighbours is not relation:
        raise NoLaw(
            operation=f"a truncated histogram for {unit}",
            reason="the theorem is about one row "
            + ("among a public number of them" if fixed else "that is in the sample or not"),
            hint=f'protect rows(neighbours="{relation.value}")'
            + (" for a sample of fixed size" if fixed else ', or say sampling = "fixed" with n'),
        )
    if price.kind != "approximate":
        raise InvalidParameter(
            parameter="price", value=price.kind, must="be an epsilon with a delta",
            hint="a truncated histogram is never private with delta = 0",
        )  # fmt: skip
    statistic = question.statistic
    if not isinstance(statistic, Count) or not isinstance(question.form, Linear) or statistic.of != "rows":
        raise NoLaw(
            operation=f"a truncated {statistic.kind}",
            reason="there is a theorem for counts of rows in cells that were fixed in advance",
            hint="ask for count(by=...), or leave given= out for noise",
        )
    assert price.epsilon is not None
    assert price.delta is not None
    if fixed:
        return _discarding(question, price, given)
    answer = truncated_histogram(
        sampling=given.sampling,
        rate=given.rate,
        known_rows=given.known_rows,
        epsilon=_below(price.epsilon),
        delta=_below(price.delta),
    )
    return question, TruncatedAssignment(
        noise=(), price=price, delta=Fraction(price.delta), answer=answer, given=given,
        reason=f"exact from {answer.threshold} on, given the sample; smaller counts are 0",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardingAssignment(TruncatedAssignment):
    """Discards a few rows at random. Counts from the threshold on are exact for the remaining rows, and all others
    become 0.

    The theorem bounds a release with a row against the same release without it, by (epsilon, delta). The
    charge compares two values of a row: (2 epsilon, (1 + e^epsilon) delta) (theorem `simulator-to-pair`).
    """

    size: FixedSize

    drawn: ClassVar[str] = "choice of the rows that are discarded"

    @property
    def epsilon(self) -> float:
        """Between two values of a row."""
        return 2 * self.answer.epsilon

    @property
    def events(self) -> tuple[Event, ...]:
        """One event with this bound, whose record states the assumption."""
        return (ApproximateEvent(epsilon=self.epsilon, delta=up(self.delta)),)

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return (self.answer.theorem, "truncated-histogram", "simulator-to-pair")

    @property
    def sentence(self) -> str:
        """The sentence that must be in the largest type."""
        return (
            f"This is private provided that {'; and '.join(self.declared)}. If that is wrong, nothing is promised: no "
            "noise is added to the counts of the rows that were kept, and this is not differential privacy."
        )

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """The counts after discarding, those below the threshold as 0; the number of rows is public."""
        rows = int(np.ravel(cells[-1].values[CountRows()])[0])
        if rows != self.size.rows:
            raise InvalidParameter(
                parameter="n", value=self.size.rows, must="be the number of rows of the table",
                hint="the number of rows is public; nothing is published",
            )  # fmt: skip
        integers = question.integers(cells)
        (part,) = question.parts
        counts = np.asarray(integers[part.name], dtype=np.int64)
        kept = self.size.kept(counts, source if source is not None else default_source())
        return NoisyParts(parts={part.name: np.where(kept >= self.threshold, kept, 0)})

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """The true count lies between the kept number and that plus the largest possible number of discarded rows."""
        told = TruncatedAssignment.read(self, question, noisy, confidence)
        return Estimate(value=told.value, low=told.low, high=np.asarray(told.high) + self.size.discards)

    def to_dict(self) -> dict[str, Any]:
        """The number of rows that may be discarded, and the claim between two values."""
        told = TruncatedAssignment.to_dict(self)
        more = {"epsilon_pair": self.epsilon, "delta_pair": up(self.delta), "discards": self.size.discards}
        return {**told, "exact": {**told["exact"], **more, "size_epsilon": self.size.size_epsilon}}

    @property
    def covers(self) -> str:
        """The contents of the intervals, with their confidence."""
        return (
            f"the count of the declared data: up to {self.size.discards} rows were discarded at random, counts of at "
            f"least {self.threshold} are those of the rows that were kept, and 0 stands for any smaller one"
        )

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """A hidden cell is wrong by at most the threshold less one; discarded rows add to it."""
        most = float(self.threshold - 1 + self.size.discards)
        return None, most, "a few rows are discarded, and counts below the threshold are published as 0"


def _discarding(question: Question, price: Price, given: SampledGiven) -> tuple[Question, Assignment]:
    """A sample of fixed size: half of the price's epsilon against the same without the row."""
    assert price.epsilon is not None
    assert price.delta is not None
    half, paid = _below(price.epsilon / 2), Fraction(price.delta)
    answer = truncated_histogram(
        sampling="fixed",
        n=given.n,
        size_epsilon=given.size_epsilon,
        epsilon=half,
        delta=lower(lambda: ball(paid) / (1 + ball(Fraction(half)).exp())),
    )
    size = FixedSize(
        rows=answer.rows or 0,
        discards=int(answer.details["discards"]),
        size_epsilon=float(answer.details["size_epsilon"]),
    )
    if ALL_ROWS not in question.requests:
        question = replace(question, requests=(*question.requests, ALL_ROWS))
    return question, DiscardingAssignment(
        noise=(), price=price, delta=paid, answer=answer, given=given, size=size,
        reason=f"up to {size.discards} rows discarded, then exact from {answer.threshold} on; smaller counts are 0",
    )  # fmt: skip


def _below(value: Fraction) -> float:
    """A float of at most this value, since a release never uses more than its price."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, 0.0)

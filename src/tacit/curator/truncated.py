"""Truncated histograms through the curator: exact counts of a random sample from a threshold on, 0 below.

`given={"sampling": "binomial", "rate": 0.1}` says that the rows are a random sample of which nobody knows who is in it
(`known_rows` of a cell excepted). The threshold is the smallest that is safe for the price, worst over all means of a
cell (theorem `truncated-histogram`). The claim is against the same table without the row: rows that are added or taken
away. It is under `Priors`, and nothing else may be published about the same rows.

`given={"sampling": "fixed", "n": 60000}` is for a public number of rows: a few are discarded at random first (theorem
`truncated-histogram-fixed-size`), and the claim is between two values of a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.accounting.events import ApproximateEvent, Event
from tacit.coupled.noiseless.discarding import FixedSize
from tacit.coupled.noiseless.histograms import truncated_histogram
from tacit.curator.exact_answers import ALL_ROWS, ExactTreatment
from tacit.curator.given import SampledGiven
from tacit.curator.intervals import Estimate
from tacit.curator.prices import Price
from tacit.curator.treatments import Noisy, Treatment
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.balls import ball, lower
from tacit.exact.rounding import up
from tacit.guarantees import Neighbours, Rows
from tacit.noise.source import Source, default_source
from tacit.sources.aggregates import CountRows
from tacit.sources.query import Cells
from tacit.statistics.base import Question
from tacit.statistics.counts import Count
from tacit.statistics.forms import Linear

__all__ = ["DiscardingTreatment", "TruncatedTreatment", "treat_truncated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedTreatment(ExactTreatment):
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

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> Noisy:
        """The true counts, those below the threshold as 0."""
        integers = question.integers(cells)
        hidden = {p.name: np.asarray(integers[p.name]) for p in question.parts}
        return Noisy(parts={n: np.where(v >= self.threshold, v, 0) for n, v in hidden.items()})

    def read(
        self, question: Question, noisy: Noisy, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """A 0 stands for every count below the threshold; the others are exact."""
        value = np.asarray(ExactTreatment.read(self, question, noisy, confidence).value)
        return Estimate(value=value, low=value, high=np.where(value > 0, value, self.threshold - 1.0))

    def describe(self) -> dict[str, Any]:
        """The threshold beside the assumption."""
        told = ExactTreatment.describe(self)
        return {**told, "exact": {**told["exact"], "threshold": self.threshold}}

    @property
    def covers(self) -> str:
        """What the intervals hold, with their confidence."""
        return (
            f"the count of the declared data: counts of at least {self.threshold} are exact, and 0 stands for any "
            "smaller one"
        )

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """At most the threshold less one, in a cell that is hidden."""
        return None, float(self.threshold - 1), "counts below the threshold are published as 0"


def treat_truncated(question: Question, price: Price, given: SampledGiven) -> tuple[Question, Treatment]:
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
    return question, TruncatedTreatment(
        noise=(), price=price, delta=Fraction(price.delta), answer=answer, given=given,
        reason=f"exact from {answer.threshold} on, given the sample; smaller counts are 0",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardingTreatment(TruncatedTreatment):
    """A few rows are discarded at random; of the others, counts from the threshold on, and 0 for all others.

    The theorem compares with the same without the row, at (epsilon, delta); between two values of a row, which is what
    is charged, that is (2 epsilon, (1 + e^epsilon) delta) (theorem `simulator-to-pair`).
    """

    size: FixedSize

    drawn: ClassVar[str] = "choice of the rows that are discarded"

    @property
    def epsilon(self) -> float:
        """Between two values of a row."""
        return 2 * self.answer.epsilon

    @property
    def events(self) -> tuple[Event, ...]:
        """One event with this bound; its record says given what."""
        return (ApproximateEvent(epsilon=self.epsilon, delta=up(self.delta)),)

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return (self.answer.theorem, "truncated-histogram", "simulator-to-pair")

    @property
    def sentence(self) -> str:
        """What must stand in the largest type."""
        return (
            f"This is private provided that {'; and '.join(self.declared)}. If that is wrong, nothing is promised: no "
            "noise is added to the counts of the rows that were kept, and this is not differential privacy."
        )

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> Noisy:
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
        return Noisy(parts={part.name: np.where(kept >= self.threshold, kept, 0)})

    def read(
        self, question: Question, noisy: Noisy, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """The true count is what was kept, and up to all that may have been discarded more."""
        told = TruncatedTreatment.read(self, question, noisy, confidence)
        return Estimate(value=told.value, low=told.low, high=np.asarray(told.high) + self.size.discards)

    def describe(self) -> dict[str, Any]:
        """How many rows may be discarded, and what is claimed between two values."""
        told = TruncatedTreatment.describe(self)
        more = {"epsilon_pair": self.epsilon, "delta_pair": up(self.delta), "discards": self.size.discards}
        return {**told, "exact": {**told["exact"], **more, "size_epsilon": self.size.size_epsilon}}

    @property
    def covers(self) -> str:
        """What the intervals hold, with their confidence."""
        return (
            f"the count of the declared data: up to {self.size.discards} rows were discarded at random, counts of at "
            f"least {self.threshold} are those of the rows that were kept, and 0 stands for any smaller one"
        )

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """At most the threshold less one in a cell that is hidden, and all that may have been discarded."""
        most = float(self.threshold - 1 + self.size.discards)
        return None, most, "a few rows are discarded, and counts below the threshold are published as 0"


def _discarding(question: Question, price: Price, given: SampledGiven) -> tuple[Question, Treatment]:
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
    return question, DiscardingTreatment(
        noise=(), price=price, delta=paid, answer=answer, given=given, size=size,
        reason=f"up to {size.discards} rows discarded, then exact from {answer.threshold} on; smaller counts are 0",
    )  # fmt: skip


def _below(value: Fraction) -> float:
    """A float that is not above it: no more is used than was paid for."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, 0.0)

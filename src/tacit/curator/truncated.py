"""Truncated histograms through the curator: exact counts of a random sample from a threshold on, 0 below.

`given={"sampling": "binomial", "rate": 0.1}` says that the rows are a random sample of which nobody knows who is in it
(`known_rows` of a cell excepted). The threshold is the smallest that is safe for the price, worst over all means of a
cell (theorem `truncated-histogram`). The claim is against the same table without the row: rows that are added or taken
away. It is under `Priors`, and nothing else may be published about the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.coupled.noiseless.histograms import truncated_histogram
from tacit.curator.exact_answers import ExactTreatment
from tacit.curator.given import SampledGiven
from tacit.curator.intervals import Estimate
from tacit.curator.prices import Price
from tacit.curator.treatments import Noisy, Treatment
from tacit.errors import InvalidParameter, NoLaw
from tacit.guarantees import Neighbours, Rows
from tacit.noise.source import Source
from tacit.sources.query import Cells
from tacit.statistics.base import Question
from tacit.statistics.counts import Count
from tacit.statistics.forms import Linear

__all__ = ["TruncatedTreatment", "treat_truncated"]


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
    unit = question.unit
    if not isinstance(unit, Rows) or unit.neighbours is not Neighbours.ADD_OR_REMOVE:
        raise NoLaw(
            operation=f"a truncated histogram for {unit}",
            reason="the theorem is about one row that is in the sample or not",
            hint='protect rows(neighbours="add-or-remove")',
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


def _below(value: Fraction) -> float:
    """A float that is not above it: no more is used than was paid for."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, 0.0)

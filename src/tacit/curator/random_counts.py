"""Counts under random differential privacy: small cells are exact, the others get noise.

For all but a share gamma of the data, a replaced row lies in cells that have noise before and after. Only the noise
then distinguishes the two tables, so its bound, of any kind, holds there (theorems `random-histogram`,
`random-proportion`). The release states which cells are exact. That depends on the data, and gamma accounts for it.
Noise is drawn for every cell, used or not.

The number of rows n decides how small a cell must be. Under replace-one n is public, and the table's own n is used.
Under add-or-remove n is protected, and a declared least number replaces it. A table with fewer rows than declared
gets noise in every cell. Under add-or-remove this begins two rows lower, since a neighbour of a table with exactly
the declared number has one row less. Noise in such a cell reveals that a declaration was false.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator.accuracy import assign_accuracy
from tacit.curator.assignments import Assignment, NoisyParts, assign, cells_of, groups_of, law_of
from tacit.curator.charging import Price
from tacit.curator.intervals import Estimate
from tacit.curator.request import Given
from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Bound, Condition, Neighbours
from tacit.guarantees.conditions import (
    FIXED_BEFORE,
    FIXED_MECHANISMS,
    INDEPENDENT_DRAWS,
    LEAST_ROWS,
    told_gamma,
)
from tacit.noise.source import Source
from tacit.random_data import RandomHistogram, RandomProportion
from tacit.sources.axes import CountRows
from tacit.sources.query import Aggregation, Cells
from tacit.statistics.base import Question, replaced
from tacit.statistics.consistency import nearest_histogram
from tacit.statistics.forms import Average, Linear, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class OnRandomData(Assignment):
    """Independent noise on the large cells; small cells are published exactly."""

    given: Given
    cells: int
    neighbours: Neighbours

    @property
    def counts(self) -> tuple[str, ...]:
        """The parts that get noise: together a histogram of `cells` cells."""
        return self.noise[0].parts

    @property
    def theorem(self) -> str:
        """The rule that decides which cells are exact."""
        return "random-proportion" if self.cells == 1 else "random-histogram"

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return (*super().theorems, self.theorem)

    @property
    def condition(self) -> Condition:
        """Random data with their gamma; `Always` for a gamma of 0."""
        return self.given.condition

    @property
    def gamma(self) -> Fraction:
        """The share of the data on which the bound may fail."""
        return self.given.gamma

    @property
    def declared(self) -> tuple[str, ...]:
        """Assumptions of the bound that no test can check."""
        least = () if self.neighbours is Neighbours.REPLACE_ONE else (LEAST_ROWS,)
        before = (FIXED_BEFORE,) if self.given.fixed_before else ()
        return (INDEPENDENT_DRAWS, FIXED_MECHANISMS, *least, *before)

    # --- which cells are exact ------------------------------------------------------------------------
    def exact_below(self, rows: int) -> int:
        """Cells with fewer rows than this are exact, in a table with this total; 0 if no cell is. For several cells."""
        if rows < 2:
            return 0
        return RandomHistogram(
            rows=rows, cells=self.cells, epsilon=1, gamma=self.given.gamma,
            small_cells=bool(self.given.small_cells), neighbours=self.neighbours,
        ).exact_below  # fmt: skip

    def _one(self, rows: int) -> RandomProportion:
        return RandomProportion(rows=rows, epsilon=1, gamma=self.given.gamma, neighbours=self.neighbours)

    def may_be_exact(self, rows: int) -> bool:
        """Can any cell of a table of this many rows be exact?"""
        if self.cells == 1:
            return rows >= 2 and self._one(rows).largest_exact() is not None
        return self.exact_below(rows) > 0

    def _rows(self, total: int) -> int | None:
        """The decisive number of rows: the public one, or else the declared one; None if the table has fewer
        rows than declared.
        """
        least = self.given.rows
        public = self.neighbours is Neighbours.REPLACE_ONE
        # Of two neighbours one may have a row less than declared: both must be treated alike.
        if least is not None and total < (least if public else least - 1):
            return None
        return total if public else least

    def _exact(self, true: AnyArray, rows: int | None) -> Any:
        """The cells that are published exactly."""
        if rows is None or rows < 2:
            return np.zeros(np.shape(true), dtype=np.bool_)
        if self.cells > 1:
            return np.asarray(true < self.exact_below(rows), dtype=np.bool_)
        one = self._one(rows)
        exact = np.asarray([one.is_exact(int(c)) for c in np.ravel(true)]).reshape(np.shape(true))
        return exact if self.given.small_cells else exact & np.asarray(true == 0)

    # --- running --------------------------------------------------------------------------------------
    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """Noise for every cell; small cells get their exact numbers instead."""
        integers = question.integers(cells)
        noisy = self.noise[0].release(integers, source=source)
        rows = self._rows(_total(question, cells, integers))
        exact = {name: self._exact(np.asarray(integers[name]), rows) for name in self.counts}
        out = {name: np.where(exact[name], integers[name], noisy[name]) for name in self.counts}
        # Under add-or-remove the number of rows is a secret, and the declared one is what decides.
        return NoisyParts(
            parts={
                **{p.name: np.asarray(integers[p.name]) for p in question.parts if p.name not in out},
                **out,
                **{f"{name}: {EXACT}": _packed(exact[name]) for name in self.counts},
                COUNTED: np.array([rows or 0], dtype=np.int64),
            }
        )

    def exact_cells(self, noisy: NoisyParts) -> dict[str, Any]:
        """The exactly published cells of each part, which are part of the release."""
        return {n: _unpacked(noisy.parts[f"{n}: {EXACT}"], np.shape(noisy.parts[n])) for n in self.counts}

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """Values with intervals of the noise; an exact value has an interval of width 0.
        A noisy cell is not a small one."""
        found = super().read(question, noisy, confidence, coordinates=coordinates)
        exact, low, high, far = self.exact_cells(noisy), found.low, found.high, found.farthest
        if isinstance(question.form, Share):
            # One of the two has noise: a share grows with the one and falls with the other.
            half = self.half_widths(confidence, coordinates=coordinates)
            reach = {n: np.where(exact[n], 0.0, half[n]) for n in self.counts}
            below, above = (
                {n: np.maximum(np.asarray(noisy.parts[n]) + side * reach[n], 0.0) for n in self.counts}
                for side in (-1, 1)
            )
            ends, one = question.form.enclose(below, above), np.logical_xor(*exact.values())
            low, high = np.where(one, ends[0], low), np.where(one, ends[1], high)
            # Counts below 0 were cut: the share moves by no less than the noise over the rows.
            rows = np.maximum(sum(np.maximum(np.asarray(noisy.parts[n]), 0.0) for n in self.counts), 1.0)
            moved = question.form.width * np.maximum(*reach.values()) / rows
            far = np.where(one, moved, far)
        elif self.cells > 1:
            least = float(self.released_facts(noisy)["exact_below"])
            low = np.minimum(np.maximum(low, least), found.value)
        alone = _all(exact).reshape(np.shape(found.value))
        return Estimate(
            value=found.value,
            low=np.where(alone, found.value, low),
            high=np.where(alone, found.value, high),
            reach=np.where(alone, 0.0, far),
        )

    def finish(self, question: Question, noisy: NoisyParts, estimate: Estimate) -> Estimate:
        """Whole non-negative numbers: exact cells stay, and if n is public, all add up to it."""
        value = np.asarray(estimate.value, dtype=np.float64)
        free = ~_all(self.exact_cells(noisy)).reshape(value.shape)
        total = None
        if self.neighbours is Neighbours.REPLACE_ONE and complete(question) and bool(free.any()):
            rows = int(self.released_facts(noisy)["rows"])
            total = rows - int(value[~free].sum()) if rows else None
        out = value.copy()
        out[free] = nearest_histogram(value[free], total=total).astype(np.float64)
        low, high = np.maximum(estimate.low, 0.0), np.maximum(estimate.high, 0.0)
        return Estimate(
            value=out, low=np.minimum(low, out), high=np.maximum(high, out), reach=estimate.farthest
        )

    def may_show(self, count: int, rows: int) -> bool:
        """Whether a cell with this count may be published exactly, in a table of this many rows."""
        return bool(self._exact(np.array([count]), rows)[0])

    def may_tell(self, *, rows: int, exact: int) -> bool:
        """Whether these numbers are possible for a release: the deciding rows, and the number of exact cells."""
        if type(rows) is not int or type(exact) is not int or rows < 0 or not 0 <= exact <= self.cells:
            return False
        least, public = self.given.rows, self.neighbours is Neighbours.REPLACE_ONE
        declared = not rows or least is None or (rows >= least if public else rows == least)
        return declared and (not exact or self.may_be_exact(rows))

    def as_told(self, noisy: NoisyParts, exact: AnyArray, *, rows: int) -> NoisyParts:
        """Counts of one part with their notes: which cells are exact, and the rows that decided."""
        (name,) = self.counts
        told = {f"{name}: {EXACT}": _packed(exact), COUNTED: np.array([rows], dtype=np.int64)}
        return NoisyParts(parts={**noisy.parts, **told}, keys=noisy.keys)

    # --- saying ---------------------------------------------------------------------------------------
    def released_facts(self, noisy: NoisyParts) -> dict[str, Any]:
        """A release's record of itself: the number of rows that decided, and the exact cells. All of it is released."""
        rows = int(np.asarray(noisy.parts[COUNTED])[0])
        return self.released_facts_of(
            rows=rows, exact=sum(int(mask.sum()) for mask in self.exact_cells(noisy).values())
        )

    def released_facts_of(self, *, rows: int, exact: int) -> dict[str, Any]:
        """The same, from the number of rows that decided and the number of exact cells."""
        below = self.exact_below(rows) if rows >= 2 and self.cells > 1 else None
        said = {"gamma": str(self.given.gamma), "rows": rows, "exact_cells": exact, "cells": self.cells}
        return {**said, "exact_below": below or 0, "sentence": self._sentence(rows, below, exact)}

    def _sentence(self, rows: int, below: int | None, exact: int) -> str:
        if not rows and self.given.rows is not None:
            return (
                f"There are fewer rows than the {self.given.rows:,} that were declared: every cell has noise."
            )
        if self.cells == 1:
            how = "is exact" if exact else "has noise"
            return f"The count {how}."
        if not below:
            return f"No cell may be exact: {self.why_not(rows)}; every cell has noise."
        small = _small(below)
        return f"{small[0].upper()}{small[1:]} are exact, the others have noise."

    def why_not(self, rows: int) -> str:
        """The reason for noise in every cell, in numbers."""
        twice = "2k" if self.neighbours is Neighbours.REPLACE_ONE else "k"
        need = self.cells * (2 if twice == "2k" else 1)
        room = float(self.given.gamma * rows)
        return f"{twice} = {need:,} is more than gamma n = {room:,.6g}"

    def to_dict(self) -> dict[str, Any]:
        """The mechanism for a certificate."""
        said = super().to_dict()
        return {**said, "random_data": {**self.given.to_dict(), "cells": self.cells, "rule": self.theorem}}

    @property
    def covers(self) -> str:
        """The contents of the intervals, with their confidence."""
        return "the statistic of the declared data, each cell by itself; cells without noise are exact"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """The error of a cell with noise; cells without noise have none."""
        n = self.given.rows
        if isinstance(question.form, Share):
            return None
        if isinstance(question.form, Average):
            scale = n or rows
            if scale is None:
                return None, None, "depends on the number of rows: give rows in given"
            return (
                self.mean_error / scale,
                self._half(confidence) / scale,
                f"{self._who()}, of {scale:,} rows",
            )
        return self.mean_error, self._half(confidence), self._who()

    def _half(self, confidence: Fraction) -> float:
        return float(self.half_widths(confidence)[self.counts[0]].max())

    def _who(self) -> str:
        n = self.given.rows
        if self.cells == 1:
            if not self.given.small_cells:
                return "the count, where it is not 0: that is exact"
            most = None if n is None else self._one(n).largest_exact()
            return "the count, where it is not exact" + ("" if most is None else f" (up to {most:,} it is)")
        if n is None:
            return "each cell with noise; which are exact follows from the number of rows, which is public: give rows"
        return f"each cell with noise; {_small(self.exact_below(n))} are exact"


EXACT, COUNTED = "which are exact", "rows that decide"
"""Parts of an answer beside the counts: the exact cells, and the public or declared number of rows."""


ALL_ROWS = Aggregation(aggregates=(CountRows(),))


def fits(question: Question) -> bool:
    """Whether a mechanism exists: known cells, at most one for each row, with noise on each."""
    if not question.statistic.one_cell_a_row or not question.known_keys or len(groups_of(question)) != 1:
        return False
    # A count of all rows is large, or public: there is no small cell.
    return not isinstance(question.form, Linear) or question.cells != 1 or not complete(question)


def complete(question: Question) -> bool:
    """Is this a table of counts with every row in some cell, for any key?"""
    alike = question.statistic.where is None and all(a.always for a in question.axes)
    return alike and isinstance(question.form, Linear)


def assign_on_random_data(
    question: Question, price: Price, given: Given, plain: Assignment, *, budget: Bound | None = None
) -> tuple[Question, Assignment]:
    """Exact small cells if allowed; otherwise the plain assignment, which spends no gamma."""
    if not replaced(question.unit) and given.rows is None:
        raise InvalidParameter(
            parameter="rows", value=None, must="be in given, where rows are added or removed",
            hint="the number of rows is protected then, so declare a least number: rows = 8000",
        )  # fmt: skip
    if given.small_cells is None:
        given = replace(given, small_cells=not isinstance(question.form, Linear) or question.cells == 1)
    if price.kind == "accuracy":
        base = assign_accuracy(question, price, budget=budget, others=lambda p: {})
    else:
        base = assign(question, price)
    (applied,) = base.noise
    made = OnRandomData(
        noise=base.noise, price=base.price, delta=base.delta, candidates=base.candidates, given=given,
        cells=cells_of(question, applied.parts), neighbours=question.unit.neighbours, reason="",
    )  # fmt: skip
    if given.rows is not None and not made.may_be_exact(given.rows):
        said = f"{plain.reason}; nothing may be exact given random data, as {made.why_not(given.rows)}: every cell has "
        return question, replace(
            plain, reason=f"{said}noise, it is differentially private, and gamma = 0 is spent"
        )
    law, small = law_of(base), "small cells" if given.small_cells else "empty cells"
    said = f"given random data (random DP, gamma = {told_gamma(given.gamma)})"
    reason = f"{law}, and {small} exact, {said}"
    if not complete(question) and not isinstance(question.form, Average):
        question = replace(question, requests=(*question.requests, ALL_ROWS))
    return question, replace(made, reason=reason)


def _total(question: Question, cells: Sequence[Cells], integers: dict[str, AnyArray]) -> int:
    """The number of rows of the table. PRIVATE under add-or-remove: only compared with what is declared."""
    if isinstance(question.form, Average):
        return int(np.ravel(integers[question.form.rows])[0])
    if complete(question):
        return int(np.sum(integers["count"]))
    return int(np.ravel(cells[-1].values[CountRows()])[0])


def _packed(mask: Any) -> AnyArray:
    """Sixty-four flags in an integer: a record is hashed and written for every release."""
    packed = np.packbits(np.ravel(mask), bitorder="little")
    words = np.zeros(-(-packed.size // 8) * 8, dtype=np.uint8)
    words[: packed.size] = packed
    return words.view("<i8").astype(np.int64)


def _unpacked(words: Any, shape: tuple[int, ...]) -> Any:
    """The flags again."""
    flags = np.unpackbits(np.asarray(words, dtype="<i8").view(np.uint8), bitorder="little")
    return flags[: math.prod(shape)].astype(np.bool_).reshape(shape)


def _all(exact: Mapping[str, Any]) -> Any:
    """Where every part is exact."""
    return np.logical_and.reduce(list(exact.values()))


def _small(below: int) -> str:
    return "empty cells" if below == 1 else f"cells with fewer than {below:,} rows"

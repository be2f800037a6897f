"""Sums and ratios of sums of clamped, rounded values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.guarantees import Unit
from tacit.sources.aggregates import CountRows, Steps
from tacit.sources.expressions import Expression
from tacit.sources.query import Cells
from tacit.sources.schema import Date, Measured, Schema
from tacit.statistics.base import By, Part, Question, Statistic, by_columns, filter_of, integer_map
from tacit.statistics.forms import Linear, Quotient
from tacit.statistics.sensitivity import boxes

__all__ = ["Ratio", "Sum", "ratio", "sum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(Statistic):
    """The sum of a column's declared values, in each cell.

    A row adds its value, a whole number of steps v in [a, b], to at most one cell. With M = max(|a|, |b|) and m rows
    for each unit. Add-or-remove: m M in L1, L2 and Linf. Replace-one with two cells or more: L1 = 2 m M,
    L2^2 = m^2 max(2 M^2, (b - a)^2), Linf = m max(M, b - a); with one cell m max(M, b - a) in every norm, or
    m (b - a) where every row counts.
    """

    kind: ClassVar[str] = "sum"
    noise_alone: ClassVar[bool] = True
    problem: ClassVar[str | None] = "sum"

    column: str

    def on(self, schema: Schema, unit: Unit) -> Question:
        column = summed(schema, self.column)
        frame = self._frame(schema, unit, (self.column,))
        sensitivity = boxes([(column.lowest, column.highest)], unit, cells=frame.cells, absent=frame.absent)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes,
            requests=frame.request(*_needed(self, column)),
            parts=(Part(name="sum", spacing=column.spacing, axes=frame.axes),),
            sensitivity=sensitivity, sensitivities={"sum": sensitivity},
            form=Linear(part="sum", spacing=column.spacing),
            support=frame.support, support_sensitivity=frame.sensitivity,
        )  # fmt: skip

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        return {"sum": _sum_of(cells[0], self.column, (), self.where, question.schema)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio(Statistic):
    """The sum of one column over the sum of another, over rows that have both.

    A row adds (v, w) in [a, b] x [c, d] to one cell: corners of a box, see `sensitivity.boxes`. The two sums may be
    released as one vector (`sensitivity`) or each by itself (`sensitivities`).
    """

    kind: ClassVar[str] = "ratio"

    numerator: str
    denominator: str

    def __post_init__(self) -> None:
        self._check_words()
        if self.numerator == self.denominator:
            raise InvalidParameter(parameter="denominator", value=self.denominator, must="be another column")

    def on(self, schema: Schema, unit: Unit) -> Question:
        top, bottom = summed(schema, self.numerator), summed(schema, self.denominator)
        names = (self.numerator, self.denominator)
        frame = self._frame(schema, unit, names)
        ranges = [(c.lowest, c.highest) for c in (top, bottom)]
        single = [boxes([r], unit, cells=frame.cells, absent=frame.absent) for r in ranges]
        wanted = [Steps(column=c, where=self.where, present=_others(names, c)) for c in names]
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes,
            requests=frame.request(CountRows(where=self.where, present=names), *wanted),
            parts=(
                Part(name="numerator", spacing=top.spacing, axes=frame.axes),
                Part(name="denominator", spacing=bottom.spacing, axes=frame.axes),
            ),
            sensitivity=boxes(ranges, unit, cells=frame.cells, absent=frame.absent),
            sensitivities={"numerator": single[0], "denominator": single[1]},
            form=Quotient(
                numerator="numerator", denominator="denominator", scale=float(top.spacing / bottom.spacing)
            ),
            support=frame.support, support_sensitivity=frame.sensitivity,
        )  # fmt: skip

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        names = (self.numerator, self.denominator)
        out = {}
        for part, column in zip(("numerator", "denominator"), names, strict=True):
            steps = cells[0].values[Steps(column=column, where=self.where, present=_others(names, column))]
            n = cells[0].values[CountRows(where=self.where, present=names)]
            out[part] = integer_map(n, question.schema.measured(column).lowest, steps)
        return out


def sum(column: str, *, by: By = None, where: str | Expression | None = None) -> Sum:
    """The sum of a number, in each group."""
    return Sum(column=column, by=by_columns(by), where=filter_of(where))


def ratio(numerator: str, denominator: str, *, by: By = None, where: str | Expression | None = None) -> Ratio:
    """The sum of one number over the sum of another, in each group: cost for each visit, say."""
    return Ratio(numerator=numerator, denominator=denominator, by=by_columns(by), where=filter_of(where))


def summed(schema: Schema, name: str) -> Measured:
    """A column that can be added up."""
    column = schema.measured(name)
    if isinstance(column, Date):
        from tacit.errors import WrongType

        raise WrongType(
            column=name, found=column.kind, wanted="a number", hint="dates have means and quantiles, no sums"
        )
    return column


def _others(names: tuple[str, ...], column: str) -> tuple[str, ...]:
    return tuple(n for n in names if n != column)


def _needed(statistic: Sum, column: Measured) -> tuple[CountRows | Steps, ...]:
    steps = Steps(column=statistic.column, where=statistic.where)
    if column.lowest == 0:
        return (steps,)
    return CountRows(where=statistic.where, present=(statistic.column,)), steps


def _sum_of(
    cells: Cells, column: str, others: tuple[str, ...], where: Expression | None, schema: Schema
) -> AnyArray:
    steps = cells.values[Steps(column=column, where=where, present=others)]
    lowest = schema.measured(column).lowest
    if lowest == 0:
        return steps
    return integer_map(cells.values[CountRows(where=where, present=(column, *others))], lowest, steps)

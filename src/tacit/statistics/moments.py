"""Means, proportions, variances: shares of what each row adds, so that no row adds more than another.

A row with value x in [low, high], u = x - low and w = width, all in steps, adds to the mean's parts

    above += u,   below += w - u             (sum: w for every row)

and to the variance's parts the Bernstein polynomials of degree two

    squares_below += (w - u)^2,   products += 2 u (w - u),   squares_above += u^2        (sum: w^2 for every row).

Each row spreads the same total over the parts, so the sensitivity is that of a histogram (see `sensitivity.simplex`),
and the statistic is a function of shares: mean = low + w above / (above + below). Against a centred noisy sum
divided by a noisy count, with the price split evenly, Laplace noise of the same price has half the variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.guarantees import Unit
from tacit.sources.aggregates import CountRows, Squares, Steps
from tacit.sources.expressions import And, Expression, Not
from tacit.sources.parsing import parse
from tacit.sources.query import Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    By,
    Frame,
    Part,
    Question,
    Statistic,
    by_columns,
    filter_of,
    integer_map,
    is_people,
)
from tacit.statistics.forms import Average, Form, Root, Share, Spread
from tacit.statistics.sensitivity import GlobalSensitivity, boxes, replaced, simplex

__all__ = ["Mean", "Proportion", "Variance", "mean", "proportion", "standard_deviation", "variance"]

SQUARES = 1 << 31


def public_rows(frame: Frame, unit: Unit) -> bool:
    """Is the number of rows that count public? One cell, every row in it, rows only replaced."""
    return frame.cells == 1 and not frame.absent and replaced(unit) and not is_people(unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(Statistic):
    """The mean of a column's declared values over the rows that have one, in each cell.

    Parts `above` and `below`; each row adds w = width in all. A unit of m rows: add-or-remove m w in L1, L2, Linf;
    replace-one 2 m w, sqrt(2) m w, m w. Where the number of rows is public (rows replaced, one cell, no filter,
    nothing missing) only `above` gets noise, and it moves by w in every norm.
    """

    kind: ClassVar[str] = "mean"
    in_column_units: ClassVar[bool] = True

    column: str

    def on(self, schema: Schema, unit: Unit) -> Question:
        column = schema.measured(self.column)
        frame = self._frame(schema, unit, (self.column,))
        low, width = float(column.lowest * column.spacing), float(column.width * column.spacing)
        form: Form = Share(low=low, width=width)
        joint, single = simplex(column.width, unit), _alone(column.width, unit, frame)
        parts, sensitivities = (
            _parts(("above", "below"), column.spacing, frame),
            {"above": single, "below": single},
        )
        if public_rows(frame, unit):
            joint, fixed = single, single.times(0)
            parts = (
                *_parts(("above",), column.spacing, frame),
                Part(name="rows", axes=frame.axes, exact=True),
            )
            sensitivities = {"above": joint, "rows": fixed}
            form = Average(part="above", rows="rows", low=low, width=width, spacing=column.spacing)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes,
            requests=frame.request(
                CountRows(where=self.where, present=(self.column,)), Steps(column=self.column, where=self.where)
            ),
            parts=parts, sensitivity=joint, sensitivities=sensitivities, form=form,
            support=frame.support, support_sensitivity=frame.sensitivity,
        )  # fmt: skip

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        rows = cells[0].values[CountRows(where=self.where, present=(self.column,))]
        above = cells[0].values[Steps(column=self.column, where=self.where)]
        if question.parts[-1].name == "rows":
            return {"above": above, "rows": rows}
        width = question.schema.measured(self.column).width
        return {"above": above, "below": integer_map(rows, width, integer_map(above, -1))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion(Statistic):
    """The share of rows for which a test is true, among those for which it is true or false, in each cell.

    Parts `yes` and `no`: a row adds 1 to one of them, a histogram. A unit of m rows: add-or-remove m in L1, L2, Linf;
    replace-one 2m, sqrt(2) m, m. With a public number of rows only `yes` gets noise, and moves by 1.
    """

    kind: ClassVar[str] = "proportion"
    filters: ClassVar[tuple[str, ...]] = ("where", "of")
    yes_or_no: ClassVar[bool] = True
    one_cell_a_row: ClassVar[bool] = True

    of: Expression

    def on(self, schema: Schema, unit: Unit) -> Question:
        self.of.check(schema)
        frame = self._frame(schema, unit, ())
        if not self.of.never_unknown(schema):
            frame = Frame(
                axes=frame.axes,
                absent=True,
                cells=frame.cells,
                support=frame.support,
                sensitivity=frame.sensitivity,
            )
        single = _alone(1, unit, frame)
        joint = simplex(1, unit)
        form: Form = Share(low=0.0, width=1.0, above="yes", below="no")
        parts, sensitivities = _parts(("yes", "no"), Fraction(1), frame), {"yes": single, "no": single}
        if public_rows(frame, unit):
            joint = single
            parts = (*_parts(("yes",), Fraction(1), frame), Part(name="rows", axes=frame.axes, exact=True))
            sensitivities = {"yes": joint, "rows": joint.times(0)}
            form = Average(part="yes", rows="rows", low=0.0, width=1.0, spacing=Fraction(1))
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes, requests=frame.request(*self._both()),
            parts=parts, sensitivity=joint, sensitivities=sensitivities, form=form,
            support=frame.support, support_sensitivity=frame.sensitivity,
        )  # fmt: skip

    def _both(self) -> tuple[CountRows, CountRows]:
        tests = [self.of, Not(inner=self.of)]
        if self.where is not None:
            tests = [And(parts=(self.where, t)) for t in tests]
        return CountRows(where=tests[0]), CountRows(where=tests[1])

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        yes, no = (cells[0].values[a] for a in self._both())
        if question.parts[-1].name == "rows":
            return {"yes": yes, "rows": integer_map(yes, 1, no)}
        return {"yes": yes, "no": no}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance(Statistic):
    """The variance (divisor n) of a column's declared values, or its root, in each cell.

    Three parts; each row adds w^2 in all, w = width. A unit of m rows: add-or-remove m w^2 in L1, L2, Linf;
    replace-one 2 m w^2, sqrt(2) m w^2, m w^2.
    """

    kind: ClassVar[str] = "variance"

    column: str
    root: bool = False

    def on(self, schema: Schema, unit: Unit) -> Question:
        column = schema.measured(self.column)
        frame = self._frame(schema, unit, (self.column,))
        if column.width >= SQUARES:
            raise InvalidParameter(
                parameter="spacing", value=str(column.spacing), must="leave fewer than 2^31 steps between the bounds",
                hint=f"declare a coarser grid for {self.column!r}",
            )  # fmt: skip
        spread = Spread(width=float(column.width * column.spacing))
        total, single = column.width**2, _alone(column.width**2, unit, frame)
        middle = _alone(_top_product(column.width), unit, frame)
        names = spread.names
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes,
            requests=frame.request(
                CountRows(where=self.where, present=(self.column,)),
                Steps(column=self.column, where=self.where), Squares(column=self.column, where=self.where),
            ),
            parts=_parts(names, column.spacing**2, frame), sensitivity=simplex(total, unit),
            sensitivities={names[0]: single, names[1]: middle, names[2]: single},
            form=Root(of=spread) if self.root else spread,
            support=frame.support, support_sensitivity=frame.sensitivity,
        )  # fmt: skip

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        width = question.schema.measured(self.column).width
        n, u, squares = (
            np.asarray(cells[0].values[a]).astype(object)
            for a in (
                CountRows(where=self.where, present=(self.column,)),
                Steps(column=self.column, where=self.where),
                Squares(column=self.column, where=self.where),
            )
        )
        # A single cell is a bare integer here: its type must not follow from its size.
        parts = {
            "squares_below": n * width**2 - 2 * width * u + squares,
            "products": 2 * (width * u - squares),
            "squares_above": squares,
        }
        return {name: np.asarray(values, dtype=object) for name, values in parts.items()}


def mean(column: str, *, by: By = None, where: str | Expression | None = None) -> Mean:
    """The mean of a number, in each group."""
    return Mean(column=column, by=by_columns(by), where=filter_of(where))


def proportion(of: str | Expression, *, by: By = None, where: str | Expression | None = None) -> Proportion:
    """The share of rows that pass a test: a flag by its name, or any filter, in each group."""
    return Proportion(of=parse(of), by=by_columns(by), where=filter_of(where))


def variance(column: str, *, by: By = None, where: str | Expression | None = None) -> Variance:
    """The variance of a number (divisor n), in each group."""
    return Variance(column=column, by=by_columns(by), where=filter_of(where))


def standard_deviation(column: str, *, by: By = None, where: str | Expression | None = None) -> Variance:
    """The standard deviation of a number (divisor n), in each group."""
    return Variance(column=column, root=True, by=by_columns(by), where=filter_of(where))


def _parts(names: Sequence[str], spacing: Fraction, frame: Frame) -> tuple[Part, ...]:
    return tuple(Part(name=n, spacing=spacing, axes=frame.axes) for n in names)


def _top_product(width: int) -> int:
    """max 2 u (w - u) over whole numbers u."""
    return 2 * (width // 2) * (width - width // 2)


def _alone(top: int, unit: Unit, frame: Frame) -> GlobalSensitivity:
    """One part by itself: a row adds between 0 and `top` to one cell."""
    return boxes([(0, top)], unit, cells=frame.cells, absent=frame.absent)

"""Means, proportions, variances: shares of the contributions of the rows, in which no row adds more than another.

A row with value x in [low, high], u = x - low and w = width, all in steps, adds to the mean's parts

    above += u,   below += w - u             (sum: w for every row)

and to the variance's parts the Bernstein polynomials of degree two

    squares_below += (w - u)^2,   products += 2 u (w - u),   squares_above += u^2        (sum: w^2 for every row).

Each row spreads the same total over the parts, so the sensitivity is that of a histogram (see `sensitivity.simplex`),
and the statistic is a function of shares: mean = low + w above / (above + below). Against a centred noisy sum
divided by a noisy count, with the price split evenly, Laplace noise of the same price has half the variance.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter, WrongType
from tacit.exact.arrays import AnyArray
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.sources.axes import CountRows, Listed, Squares, Steps
from tacit.sources.columns import Date, Measured
from tacit.sources.expressions import And, Expression, Not, parse
from tacit.sources.query import Cells, RowsWanted, TrainingRows
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    By,
    Frame,
    GlobalSensitivity,
    Part,
    Question,
    Statistic,
    boxes,
    by_columns,
    filter_of,
    integer_map,
    public_rows,
    simplex,
)
from tacit.statistics.clipping import UnclippedMean, beyond_of
from tacit.statistics.forms import Average, Form, Linear, Quotient, Root, Share, Spread
from tacit.statistics.weighted import (
    WeightedMean,
    WeightedProportion,
    WeightedRatio,
    WeightedTotal,
    surveyed_by,
)

SQUARES = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(Statistic):
    """The mean of a column's declared values over the rows that have one, in each cell.

    Parts `above` and `below`; each row adds w = width in all. A unit of m rows: add-or-remove m w in L1, L2, Linf;
    replace-one 2 m w, sqrt(2) m w, m w. If the number of rows is public (rows replaced, one cell, no filter,
    nothing missing) only `above` gets noise, and moves by w in every norm.
    """

    kind: ClassVar[str] = "mean"
    in_column_units: ClassVar[bool] = True

    column: str

    def on(self, schema: Schema, unit: Unit) -> Question:
        column = schema.measured(self.column)
        frame = self._frame(schema, unit, (self.column,))
        low, width = float(column.lowest * column.spacing), float(column.width * column.spacing)
        form: Form = Share(low=low, width=width)
        joint, single = simplex(column.width, unit, frame.axes), _alone(column.width, unit, frame)
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

    def drawn(self, schema: Schema, unit: Unit) -> Question:
        return WeightedMean(column=self.column, by=self.by, where=self.where).drawn(schema, unit)

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        rows = cells[0].values[CountRows(where=self.where, present=(self.column,))]
        above = cells[0].values[Steps(column=self.column, where=self.where)]
        if question.parts[-1].name == "rows":
            return {"above": above, "rows": rows}
        width = question.schema.measured(self.column).width
        return {"above": above, "below": integer_map(rows, width, integer_map(above, -1))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion(Statistic):
    """The share of rows for which a test is true, among rows with a known result, in each cell.

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
        joint = simplex(1, unit, frame.axes)
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

    def drawn(self, schema: Schema, unit: Unit) -> Question:
        return WeightedProportion(of=self.of, by=self.by, where=self.where).drawn(schema, unit)

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
            parts=_parts(names, column.spacing**2, frame), sensitivity=simplex(total, unit, frame.axes),
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


def mean(
    column: str,
    by: By = None,
    *,
    where: str | Expression | None = None,
    survey_weight: str | None = None,
    design: Mapping[str, Any] | None = None,
    standard: Mapping[str, Any] | None = None,
    beyond: Mapping[str, Any] | None = None,
) -> Mean | UnclippedMean | WeightedMean:
    """The mean of a number, in each group; with survey weights, and by a design that names primary sampling units.

    `beyond={"pareto": 2}` pays for the number of values above the bound, and makes the interval one for the mean before
    they were clamped (`tacit.statistics.clipping`).
    """
    about: dict[str, Any] = {"column": column, "by": by_columns(by), "where": filter_of(where)}
    if beyond is not None:
        if survey_weight is not None or design is not None or standard is not None:
            raise InvalidParameter(parameter="beyond", value="with weights", must="be asked without weights")
        return UnclippedMean(**about, beyond=beyond_of(beyond))
    surveyed = surveyed_by(survey_weight, design, standard)
    return WeightedMean(**about, **surveyed) if surveyed else Mean(**about)


def proportion(
    of: str | Expression,
    by: By = None,
    *,
    where: str | Expression | None = None,
    survey_weight: str | None = None,
    design: Mapping[str, Any] | None = None,
    standard: Mapping[str, Any] | None = None,
) -> Proportion | WeightedProportion:
    """The share of rows that pass a test: a flag by its name, or any filter, in each group."""
    about: dict[str, Any] = {"of": parse(of), "by": by_columns(by), "where": filter_of(where)}
    surveyed = surveyed_by(survey_weight, design, standard)
    return WeightedProportion(**about, **surveyed) if surveyed else Proportion(**about)


def variance(column: str, by: By = None, *, where: str | Expression | None = None) -> Variance:
    """The variance of a number (divisor n), in each group."""
    return Variance(column=column, by=by_columns(by), where=filter_of(where))


def standard_deviation(column: str, by: By = None, *, where: str | Expression | None = None) -> Variance:
    """The standard deviation of a number (divisor n), in each group."""
    return Variance(column=column, root=True, by=by_columns(by), where=filter_of(where))


def _parts(names: Sequence[str], spacing: Fraction, frame: Frame) -> tuple[Part, ...]:
    return tuple(Part(name=n, spacing=spacing, axes=frame.axes) for n in names)


def _top_product(width: int) -> int:
    """max 2 u (w - u) over whole numbers u."""
    return 2 * (width // 2) * (width - width // 2)


def _alone(top: int, unit: Unit, frame: Frame) -> GlobalSensitivity:
    """One part by itself: a row adds between 0 and `top` to one cell."""
    return boxes([(0, top)], unit, cells=frame.cells, absent=frame.absent, axes=frame.axes)


# Sums and ratios of sums of clamped, rounded values.


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
        sensitivity = boxes(
            [(column.lowest, column.highest)], unit, cells=frame.cells, absent=frame.absent, axes=frame.axes
        )
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

    def drawn(self, schema: Schema, unit: Unit) -> Question:
        words: dict[str, Any] = {"numerator": self.numerator, "denominator": self.denominator}
        return WeightedRatio(by=self.by, where=self.where, **words).drawn(schema, unit)

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        names = (self.numerator, self.denominator)
        out = {}
        for part, column in zip(("numerator", "denominator"), names, strict=True):
            steps = cells[0].values[Steps(column=column, where=self.where, present=_others(names, column))]
            n = cells[0].values[CountRows(where=self.where, present=names)]
            out[part] = integer_map(n, question.schema.measured(column).lowest, steps)
        return out


def sum(
    column: str,
    by: By = None,
    *,
    where: str | Expression | None = None,
    survey_weight: str | None = None,
    design: Mapping[str, Any] | None = None,
    standard: Mapping[str, Any] | None = None,
) -> Sum | WeightedTotal:
    """The sum of a number, in each group; with survey weights that of the population."""
    about: dict[str, Any] = {"column": column, "by": by_columns(by), "where": filter_of(where)}
    surveyed = surveyed_by(survey_weight, design, standard, total=True)
    return WeightedTotal(**about, **surveyed) if surveyed else Sum(**about)


def ratio(
    numerator: str,
    denominator: str,
    by: By = None,
    *,
    where: str | Expression | None = None,
    survey_weight: str | None = None,
    design: Mapping[str, Any] | None = None,
) -> Ratio | WeightedRatio:
    """The sum of one number over the sum of another, in each group: cost for each visit, say."""
    about: dict[str, Any] = {
        "numerator": numerator, "denominator": denominator, "by": by_columns(by), "where": filter_of(where),
    }  # fmt: skip
    surveyed = surveyed_by(survey_weight, design)
    return WeightedRatio(**about, **surveyed) if surveyed else Ratio(**about)


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


# Moments for least squares: sums over rows of products of scaled columns, from which coefficients follow.
#
# A measured column is scaled by its declared bounds to [-1, 1] and rounded to 2^-10. With z_0 = 1, the columns z_1,
# ..., z_d and the outcome z_{d+1}, a row adds z_i z_j for i <= j: d + 2 numbers and the products of two of them. In
# steps of 2^-20 these are integers between -2^20 and 2^20, and squares are not negative.

LEVELS = 1 << 10
CONSTANT = "1"
BLOCK = 1 << 20
MOST_COLUMNS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionMoments(Statistic):
    """Sums of products of two of: one, the scaled columns, the scaled outcome, over the rows that have them all.

    A row adds integers in [-L^2, L^2], squares in [0, L^2], L^2 = 2^20, to p (p + 1) / 2 numbers, p = columns + 2:
    corners of a box, see `sensitivity.boxes`. `tacit.least_squares` makes coefficients of them.
    """

    kind: ClassVar[str] = "regression_moments"

    columns: tuple[str, ...]
    outcome: str

    def __post_init__(self) -> None:
        self._check_words()
        if self.by:
            raise InvalidParameter(
                parameter="by", value=list(map(str, self.by)), must="be left out: moments are of all rows",
                hint="ask with where= for each group",
            )  # fmt: skip
        if not self.columns:
            raise EmptyComposition(what="the list of columns", hint='regression_moments(["age"], "income")')
        names = (*self.columns, self.outcome)
        if any(not isinstance(n, str) for n in names) or len(set(names)) < len(names):
            raise InvalidParameter(
                parameter="columns", value=list(map(str, names)), must="be names of different columns"
            )
        if len(self.columns) > MOST_COLUMNS:
            raise InvalidParameter(
                parameter="columns", value=len(self.columns), must=f"be at most {MOST_COLUMNS}"
            )

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Places in (one, columns, outcome) of the factors of each product, in order."""
        return list(itertools.combinations_with_replacement(range(len(self.columns) + 2), 2))

    def on(self, schema: Schema, unit: Unit) -> Question:
        names = (*self.columns, self.outcome)
        for name in names:
            column = schema.measured(name)
            if isinstance(column, Date) or column.width == 0:
                raise WrongType(column=name, found=column.kind, wanted="a number with two different bounds")
        frame = self._frame(schema, unit, names)
        top = LEVELS**2
        ranges = [(top if j == 0 else 0, top) if i == j else (-top, top) for i, j in self.pairs]
        sensitivity = boxes(ranges, unit, cells=1, absent=frame.absent)
        words = (CONSTANT, *names)
        axis = Listed(
            column="moment", values=tuple(f"{words[i]} * {words[j]}" for i, j in self.pairs), complete=True
        )
        wanted = RowsWanted(axes=(), columns=names, where=self.where)
        spacing = Fraction(1, top)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=(axis,), requests=(wanted,),
            parts=(Part(name="moments", spacing=spacing, axes=(axis,)),),
            sensitivity=sensitivity, sensitivities={"moments": sensitivity},
            form=Linear(part="moments", spacing=spacing),
        )  # fmt: skip

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        (rows,) = cells
        assert isinstance(rows, TrainingRows)
        names = (*self.columns, self.outcome)
        widths = [question.schema.measured(n).width for n in names]
        total = np.zeros((len(names) + 1, len(names) + 1), dtype=np.int64)
        try:
            count = rows.rows[names[0]].size
            for start in range(0, count, BLOCK):
                part = slice(start, start + BLOCK)
                scaled = np.stack(
                    [
                        np.rint((rows.rows[n][part] * (2.0 / w) - 1.0) * LEVELS)
                        for n, w in zip(names, widths, strict=True)
                    ],
                    axis=1,
                )
                here = np.clip(scaled[~np.isnan(scaled).any(axis=1)], -LEVELS, LEVELS)
                block = np.concatenate([np.full((here.shape[0], 1), float(LEVELS)), here], axis=1)
                # 2^20 rows of products up to 2^20: exact in doubles, in whatever order they are added.
                total += (block.T @ block).astype(np.int64)
        finally:
            rows.clear()
        i, j = map(list, zip(*self.pairs, strict=True))
        return {"moments": total[i, j]}


def regression_moments(
    columns: Any, outcome: str, *, where: str | Expression | None = None
) -> RegressionMoments:
    """The moments of a least-squares regression of an outcome on columns: `regression_moments(["age"], "income")`.

    `tacit.least_squares(release)` makes coefficients with intervals of them.
    """
    return RegressionMoments(columns=by_columns(columns), outcome=outcome, where=filter_of(where))  # type: ignore[arg-type]


# Many questions, one pass: the true integers of each, from as few queries as their groupings allow.

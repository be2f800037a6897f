"""Post-stratified means and shares by group. The read weighs every row exactly by N / n of its stratum.

The weights of a stratum change with each of its rows, so that a row moves the sums by twice its own weight. The sums
are exact fractions until each is rounded once, at the end. So rounding moves each number by at most one step.
Theorem `post-stratified-sums`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import positive, set_fields, text
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.sources.axes import Axis, CountRows, Factor, OpenAxis, Products, cell_count
from tacit.sources.expressions import And, Expression, Not, parse
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    By,
    GlobalSensitivity,
    Part,
    Question,
    Statistic,
    base_unit,
    by_columns,
    filter_of,
    replaced,
    row_limit,
)
from tacit.statistics.forms import Share
from tacit.statistics.rates import Standard, checked_standard, standard_axis, standard_of
from tacit.statistics.weighted import FINE, levels_of, value_column

STEPS = 1 << 30
"""The number of steps that make up the largest weight times the largest value."""
BELOW, ABOVE = "below", "above"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostStratified(Statistic):
    """sum (N_h / n_h) x / sum (N_h / n_h) in each cell, over the strata h of a column with public numbers N_h.

    A row moves both sums together by 2 wh in L1, sqrt(2) wh in L2 and wh in Linf (twice, if replaced), wh the
    largest weight, and each number by one step for its rounding.
    """

    kind: ClassVar[str] = "post_stratified"
    filters: ClassVar[tuple[str, ...]] = ("where", "of")

    column: str = ""
    of: Expression | None = None
    standard: Standard = None
    largest_weight: float = 1.0

    def __post_init__(self) -> None:
        self._check_filters()
        set_fields(
            self, column=text("column", self.column), standard=checked_standard(self.standard),
            largest_weight=float(positive("largest_weight", self.largest_weight)),
        )  # fmt: skip
        if (self.of is None) == (not self.column):
            raise InvalidParameter(
                parameter="column", value=self.column, must="be given, or `of`, and not both"
            )
        if self.standard is None:
            raise InvalidParameter(
                parameter="standard", value=None, must="give the number of members of each stratum",
                hint='standard={"age": {"young": 51_000, "old": 34_000}}',
            )  # fmt: skip

    def _check_filters(self) -> None:
        set_fields(self, by=by_columns(self.by))
        for where in (self.where, self.of):
            if where is not None and not isinstance(where, Expression):
                raise InvalidParameter(parameter="where", value=type(where).__name__, must="be a filter")

    def on(self, schema: Schema, unit: Unit) -> Question:
        if self.of is not None:
            self.of.check(schema)
        frame = self._frame(schema, unit, (self.column,) if self.column else ())
        if any(isinstance(a, OpenAxis) for a in frame.axes):
            raise InvalidParameter(
                parameter="by", value="unknown keys", must="be columns whose keys are declared"
            )
        assert self.standard is not None
        stratum, members = standard_axis(self.standard, self.by, schema)
        levels = levels_of(value_column(schema, self.column).width, FINE) if self.column else 1
        cell_count((*frame.axes, stratum))
        numbers = 2 * (cell_count(frame.axes) or 1)
        moved = sensitivity(numbers, unit)
        low, width, step = 0.0, 1.0, Fraction(self.largest_weight) / STEPS
        if self.column:
            column = schema.measured(self.column)
            low, width = (float(x * column.spacing) for x in (column.lowest, column.width))
        details = {
            "stratum": stratum, "members": tuple(Fraction(m) for m in members), "levels": levels,
            "a_cell": sum(map(Fraction, members), Fraction(0)) * 2 / numbers,
            "declared": ("the numbers of members of the strata are public",),
        }  # fmt: skip
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes,
            requests=self._requests(frame.axes, stratum, levels),
            parts=tuple(Part(name=n, spacing=step, axes=frame.axes) for n in (BELOW, ABOVE)),
            sensitivity=moved, sensitivities=dict.fromkeys((BELOW, ABOVE), moved),
            form=Share(low=low, width=width, above=ABOVE, below=BELOW), details=details,
        )  # fmt: skip

    def _requests(self, axes: tuple[Axis, ...], stratum: Axis, levels: int) -> tuple[Aggregation, ...]:
        wanted = self._sums(levels)
        return (
            Aggregation(axes=(*axes, stratum), aggregates=wanted, groups=axes),
            Aggregation(axes=(stratum,), aggregates=(CountRows(),), groups=()),
        )

    def _sums(self, levels: int) -> tuple[Products, Products]:
        """For the rows with a value, their number and the sum of their levels; or the numbers of no and yes."""
        if self.of is None:
            factor = Factor(column=self.column, power=1, levels=levels)
            rows, sums = (
                Products(factors=f, where=self.where, present=(self.column,)) for f in ((), (factor,))
            )
            return rows, sums
        tests: tuple[Expression, ...] = (Not(inner=self.of), self.of)
        no, yes = (
            Products(factors=(), where=t if self.where is None else And(parts=(self.where, t))) for t in tests
        )
        return no, yes

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        """sum of min(N / n, wh) / wh over the strata times the sums there, in steps, rounded down once a number."""
        details = question.details
        first, second = (np.asarray(cells[0].values[a]).astype(object) for a in self._sums(details["levels"]))
        above = second
        below = details["levels"] * first - second if self.of is None else first
        # All rows of a stratum, whatever they have; never fewer than those that are summed up.
        (counted,) = cells[1].values.values()
        rows = np.asarray(counted).astype(object).reshape(-1)
        strata = rows.size
        summed = ((below + above).reshape(-1, strata)).sum(axis=0)
        largest, factors = Fraction(self.largest_weight), []
        for members, n, total in zip(details["members"], rows, summed, strict=True):
            n = max(int(n), -(-int(total) // details["levels"]), 1)
            factors.append(min(members / n / largest, Fraction(1)) * STEPS / details["levels"])
        shape = tuple(a.size or 0 for a in question.axes)

        def rounded(values: AnyArray) -> AnyArray:
            lines = values.reshape(-1, strata)
            exact = (
                sum((f * int(v) for f, v in zip(factors, line, strict=True)), Fraction(0)) for line in lines
            )
            made = list(map(math.floor, exact))
            return np.array(made, dtype=object).reshape(shape)

        return {BELOW: rounded(below), ABOVE: rounded(above)}


def sensitivity(numbers: int, unit: Unit) -> GlobalSensitivity:
    """The sensitivity of this many separately rounded numbers: `moves` rows in turn, and one step for each number."""
    moves = row_limit(unit) * base_unit(unit)[1] * (2 if replaced(unit) else 1)
    whole = moves * STEPS
    # Roots are taken upwards: sqrt(2) whole for the rows, and sqrt(numbers) for the rounding.
    length = math.isqrt(2 * whole**2) + 1 + math.isqrt(numbers) + 1
    return GlobalSensitivity(
        l1=Fraction(2 * whole + numbers), l2_squared=Fraction(length**2), linf=Fraction(whole + 1)
    )


def post_stratified(
    column: str | None = None,
    by: By = None,
    *,
    of: str | Expression | None = None,
    standard: Mapping[str, Any],
    largest_weight: float,
    where: str | Expression | None = None,
) -> PostStratified:
    """Means (or shares, with `of`) with post-stratified weights.

    The weight of a stratum is its public number of members divided by its number of rows in this table.

    `standard={"age": {"young": 51_000, "old": 34_000}}` gives the public numbers. The read computes
    weights from all rows of the stratum and cuts them at `largest_weight`. Intervals count the noise alone.
    """
    return PostStratified(
        column="" if column is None else text("column", column, empty=False), by=by_columns(by),
        of=None if of is None else parse(of), standard=standard_of(standard), largest_weight=largest_weight,
        where=filter_of(where),
    )  # fmt: skip

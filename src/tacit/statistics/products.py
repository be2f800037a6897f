"""Moments for least squares: sums over rows of products of scaled columns, from which coefficients follow.

A measured column is scaled by its declared bounds to [-1, 1] and rounded to 2^-10. With z_0 = 1, the columns
z_1, ..., z_d and the outcome z_{d+1}, a row adds z_i z_j for i <= j: d + 2 numbers and the products of two of them. In
steps of 2^-20 these are integers between -2^20 and 2^20, and squares are not negative.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter, WrongType
from tacit.exact.arrays import AnyArray
from tacit.guarantees import Unit
from tacit.sources.axes import Listed
from tacit.sources.expressions import Expression
from tacit.sources.query import Cells
from tacit.sources.schema import Date, Schema
from tacit.sources.training import RowsWanted, TrainingRows
from tacit.statistics.base import Part, Question, Statistic, by_columns, filter_of
from tacit.statistics.forms import Linear
from tacit.statistics.sensitivity import boxes

__all__ = ["LEVELS", "RegressionMoments", "regression_moments"]

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

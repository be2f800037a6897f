"""Counts: of rows, of people, over bins, over several columns, and the margins of a table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, overload

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import members, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.mechanisms.fitted_tables import MOST_FITTED
from tacit.sources.axes import Axis, Binned, CountPeople, CountRows, Magnitudes, axis_of, bins
from tacit.sources.columns import Integer, Number
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    MOST_CELLS,
    By,
    CountTables,
    Frame,
    Part,
    Question,
    Statistic,
    axis_sums,
    base_unit,
    boxes,
    by_columns,
    column_of,
    determined,
    filter_of,
    never_absent,
    people_only,
    replaced,
    row_limit,
    spanning_sums,
    stacked,
    subsets,
)
from tacit.statistics.forms import Linear, Parts
from tacit.statistics.weighted import WeightedCount, surveyed_by

MOST_WITH_TOTAL = 64
"""Above this number of cells, a known number of rows says almost nothing about a single cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Statistic):
    """The number of rows, or people, in each cell.

    Rows: a row adds 1 to at most one cell. Add-or-remove: m in L1, L2 and Linf for a unit of m rows (all of them in
    one cell). Replace-one: 2m, sqrt(2) m, m with two cells or more; m, m, m with one cell where a row may count
    nowhere; 0 with one cell where it may not: then the number of rows is public.
    People: a person adds 1 to each of at most t = min(rows, groups, cells) cells. Add-or-remove: t, sqrt(t), 1.
    Replace-one: s, sqrt(s), 1 with s = min(2t, cells).

    `over` names the columns of `by` over which rows are spread without being groups: the bins of a histogram, the
    columns of a contingency table. The limit `groups` does not apply to a person's rows in them, and counts of
    rows do not depend on it. The m rows of a unit move the vector by u, a sum of at most m unit vectors, so
    that |u|_1 <= m, |u|_2 <= m and |u|_inf <= m by the triangle inequality, in any number of cells.
    """

    kind: ClassVar[str] = "count"
    rows_are_drawn_from: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    agrees: ClassVar[bool] = True
    noise_alone: ClassVar[bool] = True
    one_cell_a_row: ClassVar[bool] = True
    problem: ClassVar[str | None] = "count"

    of: Literal["rows", "people"] = "rows"
    over: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_words()
        if not isinstance(self.of, str) or self.of not in ("rows", "people"):
            raise UnknownName(what="thing to count", name=str(self.of), known=("rows", "people"))
        named = list(map(column_of, self.by))
        set_fields(self, over=members("over", self.over))
        for column in self.over:
            if column not in named:
                raise UnknownName(what="column of the count", name=str(column), known=named)

    def on(self, schema: Schema, unit: Unit) -> Question:
        frame = self._frame(schema, unit, ())
        groups = tuple(a for a in frame.axes if a.column not in self.over)
        if self.of == "people":
            people_only(unit)
            sensitivity = subsets(unit, cells=frame.cells)
        else:
            sensitivity = boxes([(1, 1)], unit, cells=frame.cells, absent=frame.absent, axes=frame.axes)
        return Question(
            statistic=self,
            schema=schema,
            unit=unit,
            axes=frame.axes,
            requests=frame.request(self._aggregate(), groups=groups),
            parts=(Part(name="count", axes=frame.axes, exact=sensitivity.none),),
            sensitivity=sensitivity,
            sensitivities={"count": sensitivity},
            form=Linear(part="count"),
            support=frame.support,
            support_sensitivity=frame.sensitivity,
            tables=self._tables(frame, unit),
        )

    def _tables(self, frame: Frame, unit: Unit) -> CountTables | None:
        """A person adds 1 to some cells. A row adds 1 to one cell, so that the cells add up to the number of
        rows.
        """
        if frame.support is not None:
            return None
        size = base_unit(unit)[1]
        if self.of == "people":
            return CountTables(times=size, replaced=replaced(unit), complete=False)
        fixed = never_absent(unit, frame.axes, self.where is not None)
        cells = frame.cells or 0
        found = determined(unit, frame.axes)
        return CountTables(
            times=row_limit(unit) * size, replaced=replaced(unit), complete=True, fixed=fixed,
            each=None if found is None else found[0] * size,
            spans={"count": np.arange(cells)} if fixed and cells <= MOST_WITH_TOTAL else None,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """As in other statistics, with `over` if it is set."""
        said = super().to_dict()
        return said if self.over else {k: v for k, v in said.items() if k != "over"}

    def _aggregate(self) -> CountRows | CountPeople:
        return (CountPeople if self.of == "people" else CountRows)(where=self.where)

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        return {"count": cells[0].values[self._aggregate()]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins(Statistic):
    """All tables of `order` of the named columns: each row is counted once in each of k tables.

    The tables are one vector. A unit of m rows: add-or-remove m k, m sqrt(k), m in L1, L2, Linf; replace-one
    2 m k, m sqrt(2 k), m, attained by rows that differ in every column. Noise in L2 therefore grows like sqrt(k).
    A limit on groups does not apply to the columns: all m rows of a person count, whatever their cells.
    """

    kind: ClassVar[str] = "margins"
    rows_are_drawn_from: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    agrees: ClassVar[bool] = True
    noise_alone: ClassVar[bool] = True
    problem: ClassVar[str | None] = "margins"
    layout: ClassVar[Literal["cells", "ends", "levels", "listed", "shares", "tables"]] = "tables"

    columns: tuple[str | Binned, ...]
    order: int = 1

    def __post_init__(self) -> None:
        self._check_words()
        if not self.columns:
            raise EmptyComposition(what="the list of columns", hint="name at least one")
        set_fields(self, order=whole("order", self.order))
        if not 1 <= self.order <= len(self.columns):
            raise InvalidParameter(
                parameter="order", value=self.order, must=f"lie between 1 and {len(self.columns)}",
                hint="1 counts each column, 2 each pair of columns",
            )  # fmt: skip

    def on(self, schema: Schema, unit: Unit) -> Question:
        if self.by:
            raise InvalidParameter(
                parameter="by", value=self.by, must="be empty for margins", hint="name it as a column"
            )
        self._frame(schema, unit, ())
        axes = [axis_of(c, schema) for c in self.columns]
        for axis in axes:
            if axis.size is None or axis.size < 2:
                raise InvalidParameter(
                    parameter="columns", value=axis.column, must="have at least two known keys",
                    hint="declare category([...])",
                )  # fmt: skip
        subsets_of = list(itertools.combinations(axes, self.order))
        parts = [Part(name=" x ".join(a.column for a in group), axes=group) for group in subsets_of]
        _limit(subsets_of)
        rows = CountRows(where=self.where)
        tables = self._tables(axes, parts, unit)
        # One table of all columns, where it is small: the others are sums of it, read in one pass.
        read = [tuple(axes)] if tables.sums is not None else subsets_of
        requests = [Aggregation(axes=tuple(group), aggregates=(rows,), groups=()) for group in read]
        sensitivity, one = stacked(len(parts), unit), stacked(1, unit)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=(), requests=tuple(requests), parts=tuple(parts),
            sensitivity=sensitivity, sensitivities={p.name: one for p in parts}, form=None, tables=tables,
        )  # fmt: skip

    def _tables(self, axes: Sequence[Axis], parts: Sequence[Part], unit: Unit) -> CountTables:
        """A row adds 1 to each table in whose columns it has keys; if it always has them, all tables are sums
        of one.
        """
        complete, filtered = all(a.always for a in axes), self.where is not None
        cells = math.prod(a.size or 0 for a in axes)
        sums = sensitivity = None
        added = max(cells // math.prod(a.size or 1 for a in p.axes) for p in parts)
        # Noise of one cell, added up so often, against noise for a row in so many tables.
        if complete and self.order < len(axes) and cells <= MOST_CELLS and added <= (2 * len(parts)) ** 2:
            sums = {p.name: axis_sums(axes, p.axes) for p in parts}
            sensitivity = boxes([(1, 1)], unit, cells=cells, absent=filtered)
        spans = None
        if complete and sum(p.cells or 0 for p in parts) <= MOST_FITTED:
            spans = spanning_sums(axes, {p.name: p.axes for p in parts}, self.order)
        return CountTables(
            times=row_limit(unit) * base_unit(unit)[1], replaced=replaced(unit), complete=complete,
            fixed=never_absent(unit, axes, filtered), sensitivity=sensitivity, sums=sums, spans=spans,
        )  # fmt: skip

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        rows = CountRows(where=self.where)
        if question.tables is not None and question.tables.sums is not None:
            (whole,) = cells
            columns = [a.column for a in question.requests[0].axes]
            found = {}
            for part in question.parts:
                kept = {a.column for a in part.axes}
                gone = tuple(i for i, c in enumerate(columns) if c not in kept)
                found[part.name] = np.asarray(whole.values[rows].sum(axis=gone))
            return found
        return {p.name: c.values[rows] for p, c in zip(question.parts, cells, strict=True)}

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        """All tables, one after the other, as one vector of counts."""
        return np.concatenate([np.asarray(noisy[p.name]).astype(np.float64).ravel() for p in question.parts])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClampingBounds(Statistic):
    """The number of values in each signed power-of-two range, for clamping bounds of a number without declared ones.

    A histogram over 161 public ranges, which are no groups; a row is counted in at most one. Sensitivity as for Count.
    """

    kind: ClassVar[str] = "clamping_bounds"
    fits: ClassVar[Literal["noise", "ranks", "clamping bounds", "thresholds"]] = "clamping bounds"
    layout: ClassVar[Literal["cells", "ends", "levels", "listed", "shares", "tables"]] = "ends"

    column: str

    def on(self, schema: Schema, unit: Unit) -> Question:
        self._frame(schema, unit, ())
        if not isinstance(schema[self.column], Number | Integer):
            schema.measured(self.column)
            raise InvalidParameter(
                parameter="column", value=self.column, must="be a number", hint="declare number()"
            )
        axis = Magnitudes(column=self.column)
        sensitivity = boxes([(1, 1)], unit, cells=axis.size, absent=True)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=(axis,),
            requests=(Aggregation(axes=(axis,), aggregates=(CountRows(where=self.where),), groups=()),),
            parts=(Part(name="count", axes=(axis,)),), sensitivity=sensitivity, sensitivities={"count": sensitivity},
            form=Linear(part="count"),
        )  # fmt: skip

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        return {"count": cells[0].values[CountRows(where=self.where)]}


@overload
def count(
    by: By = None, *, where: str | Expression | None = None, of: Literal["rows", "people"] = "rows"
) -> Count: ...


@overload
def count(
    by: By = None,
    *,
    where: str | Expression | None = None,
    survey_weight: str,
    design: Mapping[str, Any] | None = None,
) -> WeightedCount: ...


def count(
    by: By = None,
    *,
    where: str | Expression | None = None,
    of: Literal["rows", "people"] = "rows",
    survey_weight: str | None = None,
    design: Mapping[str, Any] | None = None,
) -> Count | WeightedCount:
    """The number of rows (or, with of="people", of different people) in each group.

    With survey weights: the number of members of the population that the rows represent.
    """
    surveyed = surveyed_by(survey_weight, design, total=True)
    if not surveyed:
        return Count(by=by_columns(by), where=filter_of(where), of=of)
    if of != "rows":
        raise InvalidParameter(parameter="of", value=of, must="be left out with survey weights")
    return WeightedCount(by=by_columns(by), where=filter_of(where), **surveyed)


def histogram(
    column: str,
    bins: int | Iterable[Any] | None = None,
    *,
    by: By = None,
    where: str | Expression | None = None,
) -> Count:
    """The number of rows in each bin of a number or date, or on each key of a category.

    The keys of `by` are groups and the bins are not, so that people(..., groups=g) takes no rows from bins.
    """
    entry: str | Binned = column if bins is None else _bins(column, bins)
    return Count(by=by_columns((*by_columns(by), entry)), where=filter_of(where), over=(column_of(entry),))


def contingency(columns: Sequence[str | Binned], *, where: str | Expression | None = None) -> Count:
    """The number of rows for each combination of keys; its margins are sums of it, at no further price."""
    entries = by_columns(columns)
    if not entries:
        raise EmptyComposition(what="the list of columns", hint="name at least one")
    return Count(by=entries, where=filter_of(where), over=tuple(map(column_of, entries)))


def margins(
    columns: Sequence[str | Binned], *, order: int = 1, where: str | Expression | None = None
) -> Margins:
    """All one-way (order=1), two-way (order=2), ... tables of these columns, released together."""
    return Margins(columns=by_columns(columns), order=order, where=filter_of(where))


def clamping_bounds(column: str, *, where: str | Expression | None = None) -> ClampingBounds:
    """Clamping bounds of a number: counts that show a range with most of the values."""
    return ClampingBounds(column=column, where=filter_of(where))


_bins = bins


def _limit(groups: Sequence[Sequence[Any]]) -> None:
    from tacit.errors import TooManyCells
    from tacit.sources.axes import MAX_CELLS

    cells = sum(math.prod(a.size for a in group) for group in groups)
    if cells > MAX_CELLS:
        raise TooManyCells(cells=cells, limit=MAX_CELLS)

"""A statistic (the query), and its question: the query for a declared table and unit.

A statistic is a frozen object that knows no data. `statistic.on(schema, unit)` checks it against the schema and gives
the question: the integers for the engine to add up, the vectors of integers that get noise, the largest move by one
unit, and the way from these to the statistic. Only `read_cells`, at the end, asks the engine, for many questions in one
pass.
"""

from __future__ import annotations

import itertools
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields
from fractions import Fraction
from itertools import chain
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, UnitMismatch
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import flag, members, set_fields, text
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Coupled, GroupOf, Neighbours, People, Rows, Unit
from tacit.mechanisms import RoundedGaussian
from tacit.mechanisms.base import CellNoise, PartNoise
from tacit.mechanisms.spreads import laplace_factor, normal_factor
from tacit.sources.axes import (
    MOST_ROWS_BITS,
    NARROW_BITS,
    Aggregate,
    Axis,
    Binned,
    CountPeople,
    CountRows,
    Cut,
    Listed,
    OpenAxis,
    axes_of,
    cell_count,
)
from tacit.sources.expressions import Expression, parse
from tacit.sources.margins import MarginsWanted, read_margins
from tacit.sources.query import Aggregation, Cells, RowsWanted, read_rows, run
from tacit.sources.schema import Schema
from tacit.sources.tables import Table
from tacit.statistics.forms import Form, Parts

# How far one unit can move a vector of integers, exactly, in three norms.
#
# A statistic's integers are sums over rows, row by row: f(D) = sum of c(row). A unit with at most m rows adds a
# point u of m * conv(C), C the set of contributions c(row) together with 0 where a row may count nowhere (a person
# may always have fewer rows). Between neighbours f moves by u (add-or-remove) or by u - u' (replace-one). Norms and
# their squares are convex, so the largest move is between extreme points: that is how each formula is proved, and
# why it is attained. All numbers are in steps of the statistic's grid. See docs/theory/contribution-polytopes.md.


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalSensitivity:
    """sup over neighbours of |f(D) - f(D')| in L1, of its squared L2 norm, and in Linf; exact."""

    l1: Fraction
    l2_squared: Fraction
    linf: Fraction

    @property
    def none(self) -> bool:
        """Can no unit move it? Then it is public under this relation and needs no noise."""
        return self.l1 == 0

    def times(self, factor: int) -> GlobalSensitivity:
        """For `factor` units at once: norms grow by the factor, which is attained as the units may be alike."""
        return GlobalSensitivity(
            l1=self.l1 * factor, l2_squared=self.l2_squared * factor**2, linf=self.linf * factor
        )


def _sensitivity(l1: int | Fraction, l2_squared: int | Fraction, linf: int | Fraction) -> GlobalSensitivity:
    return GlobalSensitivity(l1=Fraction(l1), l2_squared=Fraction(l2_squared), linf=Fraction(linf))


def base_unit(unit: Unit) -> tuple[Unit, int]:
    """The row or person of which a unit consists, and their number."""
    base, size = (unit.of, unit.size) if isinstance(unit, GroupOf) else (unit, 1)
    if isinstance(base, Coupled) or not isinstance(base, Rows | People):
        raise UnitMismatch(
            left=str(unit), right="rows or people", hint="a table protects rows() or people(...)"
        )
    return base, size


def row_limit(unit: Unit) -> int:
    """The number of used rows of one unit."""
    base, _ = base_unit(unit)
    return base.at_most if isinstance(base, People) else 1


def group_limit(unit: Unit, cells: int | None) -> int:
    """The number of cells in which one unit can be counted."""
    base, _ = base_unit(unit)
    limits = [row_limit(unit)]
    if isinstance(base, People) and base.groups is not None:
        limits.append(base.groups)
    if cells is not None:
        limits.append(cells)
    return min(limits)


def replaced(unit: Unit) -> bool:
    """Are neighbours made by replacing?"""
    return base_unit(unit)[0].neighbours is Neighbours.REPLACE_ONE


def determined(unit: Unit, axes: Sequence[Axis]) -> tuple[int, int] | None:
    """(largest number of rows of a person in one group, number of groups), if the keys determine the column of
    `at_most_each`.
    """
    base, _ = base_unit(unit)
    if not isinstance(base, People) or base.each is None or base.each[1] >= base.at_most:
        return None
    for axis in axes:
        every = isinstance(axis, Listed) or (isinstance(axis, Cut) and axis.count == axis.values.width + 1)
        if axis.column == base.each[0] and every and axis.size is not None:
            return base.each[1], axis.size
    return None


def panel(at_most: int, each: int, groups: int) -> tuple[int, int]:
    """(L1, squared L2) of the row counts of one person: at most `each` in a group, and `at_most` in all.

    Convex in the counts, so largest at an extreme point of {0 <= v <= each, sum v <= at_most}: full groups and one
    remainder (theorem `panels`).
    """
    whole, rest = divmod(min(at_most, groups * each), each)
    return whole * each + rest, whole * each**2 + rest**2


def _of_panel(largest: int, unit: Unit, found: tuple[int, int], *, one_key: bool) -> GlobalSensitivity:
    """Rows that add between 0 and `largest` to one coordinate of the cell that they lie in, for people of a panel.

    The two versions of a replaced person differ most if their rows lie in different cells. If every group is
    one cell and one coordinate (`one_key`) they must then lie in different groups, and share them.
    """
    at_most, (each, groups) = row_limit(unit), found
    l1, squared = panel(at_most, each, groups)
    if replaced(unit):
        l1, squared = 2 * l1, 2 * squared
        if one_key:
            split = [(panel(at_most, each, a), panel(at_most, each, groups - a)) for a in range(groups + 1)]
            l1, squared = (max(x[i] + y[i] for x, y in split) for i in range(2))
    moved = _sensitivity(l1 * largest, squared * largest**2, min(each, at_most) * largest)
    return moved.times(base_unit(unit)[1])


def boxes(
    intervals: Sequence[tuple[int, int]],
    unit: Unit,
    *,
    cells: int | None,
    absent: bool,
    axes: Sequence[Axis] = (),
) -> GlobalSensitivity:
    """Rows that add (v_1, ..., v_r), v_i anywhere in [a_i, b_i], to the cell they lie in.

    With M_i = max(|a_i|, |b_i|) and D_i = b_i - a_i, and m rows for each unit, the extreme contributions are m times
    the corners of the box, in one cell, and 0 where that is possible. Add-or-remove: L1 = m sum M_i,
    L2^2 = m^2 sum M_i^2, Linf = m max M_i. Replace-one: two corners in one cell (D), one corner against nothing
    (M, if `absent`: a person always may have no row), or two corners in two cells (2 sum M_i, 2 sum M_i^2, max M_i).
    A panel person moves one non-negative number by less, if the keys of `axes` determine the group of the row
    (`panels`).
    """
    m, found = row_limit(unit), determined(unit, axes)
    if found is not None and len(intervals) == 1 and intervals[0][0] >= 0:
        return _of_panel(intervals[0][1], unit, found, one_key=cells == found[1])
    large = [max(abs(a), abs(b)) for a, b in intervals]
    moves = [(sum(large), sum(x * x for x in large), max(large))]
    if replaced(unit):
        wide = [b - a for a, b in intervals]
        one_cell = (sum(wide), sum(x * x for x in wide), max(wide))
        alone = moves if absent or m > 1 or isinstance(base_unit(unit)[0], People) else []
        two_cells = [(2 * moves[0][0], 2 * moves[0][1], moves[0][2])] if cells is None or cells > 1 else []
        moves = [one_cell, *alone, *two_cells]
    best = _sensitivity(*(max(x[i] for x in moves) for i in range(3)))
    return best.times(m * base_unit(unit)[1])


def simplex(total: int, unit: Unit, axes: Sequence[Axis] = ()) -> GlobalSensitivity:
    """Rows that add a vector of whole numbers >= 0 with sum T, all of it in one coordinate for at least two rows.

    The extreme contributions of a unit with m rows are m T e_i (and 0). Add-or-remove: m T in every norm.
    Replace-one: m T (e_i - e_j): L1 = 2 m T, L2^2 = 2 m^2 T^2, Linf = m T, in one cell or in two. People of a panel:
    theorem `panels`.
    """
    found = determined(unit, axes)
    if found is not None:
        return _of_panel(total, unit, found, one_key=False)
    twice = 2 if replaced(unit) else 1
    return _sensitivity(twice * total, twice * total**2, total).times(row_limit(unit) * base_unit(unit)[1])


def subsets(unit: Unit, *, cells: int | None) -> GlobalSensitivity:
    """A unit that adds 1 to each of at most t cells: the number of people in each cell.

    Add-or-remove: L1 = L2^2 = t. Replace-one: the symmetric difference of two sets of at most t cells,
    min(2 t, cells). Linf = 1. Here t = min(rows of a person, groups of a person, cells).
    """
    t = group_limit(unit, cells)
    if replaced(unit):
        t = 2 * t if cells is None else min(2 * t, cells)
    return _sensitivity(t, t, 1).times(base_unit(unit)[1])


def stacked(tables: int, unit: Unit) -> GlobalSensitivity:
    """Rows that add 1 to one cell of each of several tables (all of them with at least two keys a column).

    The sum of the single tables' moves is attained by rows that differ in every column: L1 = m k (twice that for
    replace-one), L2^2 = m^2 k (twice), Linf = m.
    """
    twice = 2 if replaced(unit) else 1
    return _sensitivity(twice * tables, twice * tables, 1).times(row_limit(unit) * base_unit(unit)[1])


# What a question says of itself where it counts: how a unit moves its tables, and of which cells they are sums.
#
# Facts for anybody who chooses the noise, from declarations alone. A row is counted at most once in each table, so that
# it moves all counts together by a vector of zeros and ones; a unit brings or takes `times` such vectors at most.

MOST_CELLS = 1 << 16
"""Tables with more cells get no noise on their cells to sum up other tables: that would be more noise than noise on
the other tables.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountTables:
    """Tables of counts that one unit moves by sums of `times` vectors of zeros and ones (differences, if replaced).

    `complete`: every counted row is counted once in every table, so that all tables have one sum.
    `fixed`: no unit can move that sum. `sensitivity` and `sums` belong to the finest cells, if the tables are
    sums of one table of them: the sensitivity of the cells, and for each part the place of each cell (-1:
    nowhere).
    """

    times: int
    replaced: bool
    complete: bool
    fixed: bool = False
    sensitivity: GlobalSensitivity | None = None
    sums: Mapping[str, npt.NDArray[np.int64]] | None = None
    spans: Mapping[str, npt.NDArray[np.int64]] | None = None
    """As `sums`, of as few cells as span all that the tables can be, where those of `sums` are more or unknown."""
    ranges: npt.NDArray[np.int64] | None = None
    """For range queries, the first and the last cell of each, in the order of the cells."""
    each: int | None = None
    """The largest change by a unit of each count, if it is less than `times`: people of a panel."""

    @property
    def times_each(self) -> int:
        """The number of vectors of zeros and ones that sum to a unit's counts, if a vector may have several ones a
        table.
        """
        return self.times if self.each is None else min(self.each, self.times)


def never_absent(unit: Unit, axes: Sequence[Axis], filtered: bool) -> bool:
    """Can no unit move the number of counted rows? Rows are replaced, never left out, and each has all its keys."""
    base, _ = base_unit(unit)
    return isinstance(base, Rows) and replaced(unit) and not filtered and all(a.always for a in axes)


def spanning_sums(
    axes: Sequence[Axis], tables: Mapping[str, Sequence[Axis]], order: int
) -> dict[str, npt.NDArray[np.int64]]:
    """For each cell that differs from the first one in at most `order` columns, its place in each table.

    The tables have `order` columns each, and those of any cell are linear combinations of the tables of these
    cells: the indicator of a cell is a product over its columns, and a table of `order` columns sees a sum of
    products in which the other columns are at their first key.
    """
    sizes = [a.size or 0 for a in axes]
    keys = [
        [dict(zip(chosen, which, strict=True)).get(i, 0) for i in range(len(axes))]
        for count in range(order + 1)
        for chosen in itertools.combinations(range(len(axes)), count)
        for which in itertools.product(*(range(1, sizes[i]) for i in chosen))
    ]
    place = {a.column: k for a, k in zip(axes, np.array(keys, dtype=np.int64).T, strict=True)}
    return {
        name: np.ravel_multi_index(tuple(place[a.column] for a in of), tuple(a.size or 0 for a in of)).astype(np.int64)
        for name, of in tables.items()
    }  # fmt: skip


def axis_sums(axes: Sequence[Axis], of: Sequence[Axis]) -> npt.NDArray[np.int64]:
    """The cell of the smaller table that counts each cell of the table of all axes; both in C order."""
    shape = tuple(a.size or 0 for a in axes)
    keys = np.indices(shape).reshape(len(shape), -1)
    place = {a.column: k for a, k in zip(axes, keys, strict=True)}
    if not of:
        return np.zeros(keys.shape[1], dtype=np.int64)
    dims = tuple(a.size or 0 for a in of)
    return np.asarray(np.ravel_multi_index(tuple(place[a.column] for a in of), dims), dtype=np.int64)


By = str | Binned | Sequence[str | Binned] | None


def by_columns(by: By) -> tuple[str | Binned, ...]:
    """`by=` as a tuple of different columns."""
    if not isinstance(by, str | Binned | Sequence | None):
        raise InvalidParameter(parameter="by", value=by, must="name columns", hint='by="state" or by=[...]')
    entries = () if by is None else (by,) if isinstance(by, str | Binned) else tuple(by)
    for entry in entries:
        if not isinstance(entry, str | Binned):
            raise InvalidParameter(parameter="by", value=type(entry).__name__, must="name columns")
    names = list(map(column_of, entries))
    if len(set(map(str, names))) != len(names):
        raise InvalidParameter(parameter="by", value=names, must="name different columns")
    return entries


def column_of(entry: str | Binned) -> str:
    """The column that an entry of `by=` names."""
    return entry.column if isinstance(entry, Binned) else entry


def filter_of(where: str | Expression | None) -> Expression | None:
    """`where=` as a tree."""
    return None if where is None else parse(where)


def is_people(unit: Unit) -> bool:
    """Is the unit a person (or several)?"""
    return isinstance(unit.of if isinstance(unit, GroupOf) else unit, People)


def integer_map(values: Any, factor: int = 1, plus: Any = None) -> AnyArray:
    """factor * values + plus without overflow: Python's integers where a table within the public limit may need them.

    The width follows from the factor and the given widths, hence from declared bounds and never from rows.
    """
    arrays = [np.asarray(values)] + ([np.asarray(plus)] if plus is not None else [])
    wide = abs(factor).bit_length() + MOST_ROWS_BITS > NARROW_BITS
    if wide or any(a.dtype == object for a in arrays):
        arrays = [a.astype(object) for a in arrays]
    out = arrays[0] * factor
    return np.asarray(out + arrays[1] if len(arrays) > 1 else out, dtype=arrays[0].dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One vector of integers for release with noise: its name, its cells, and the value of a step.

    `exact` marks a part that no unit can move under the declared relation; it is public and gets no noise.
    """

    name: str
    spacing: Fraction = Fraction(1)
    axes: tuple[Axis, ...] = ()
    exact: bool = False

    @property
    def cells(self) -> int | None:
        """The number of released numbers; None if the keys are unknown."""
        return cell_count(self.axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A statistic on a declared table: the sums to compute, the largest move by a unit, and the result made of them."""

    statistic: Statistic
    schema: Schema
    unit: Unit
    axes: tuple[Axis, ...]
    requests: tuple[Aggregation, ...]
    parts: tuple[Part, ...]
    sensitivity: GlobalSensitivity
    sensitivities: Mapping[str, GlobalSensitivity]
    form: Form | None
    support: Aggregate | None = None
    support_sensitivity: GlobalSensitivity | None = None
    tables: CountTables | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cells(self) -> int | None:
        """The number of cells; None if the keys are unknown."""
        return cell_count(self.axes)

    @property
    def numbers(self) -> int | None:
        """The number of cells of the answer for a reader; None if the keys are unknown."""
        match self.statistic.layout:
            case "ends":
                return 2
            case "shares":
                return None if self.cells is None else self.cells * len(getattr(self.statistic, "at", (0,)))
            case "tables" | "levels":
                return sum(p.cells or 0 for p in self.parts)
            case "listed":
                return self.statistic.lines(self)
        return self.cells

    @property
    def coordinates(self) -> int | None:
        """The number of noisy numbers: the cells of all parts that are not exact; None for unknown keys.

        A statement about all numbers at once uses this count, not the product of the axes: margins and hierarchies
        have several tables.
        """
        counts = [p.cells for p in self.parts if not p.exact]
        return None if any(c is None for c in counts) else sum(c for c in counts if c is not None)

    @property
    def known_keys(self) -> bool:
        """Are all keys known in advance?"""
        return self.support is None

    @property
    def limited(self) -> tuple[str, ...]:
        """The key columns over which people(..., groups=g) limits groups. Empty without a limit."""
        base, _ = base_unit(self.unit)
        if not isinstance(base, People) or base.groups is None or base.groups >= base.at_most:
            return ()
        return tuple(dict.fromkeys(a.column for r in self.requests for a in r.limited))

    def integers(self, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        """The true parts, exactly, from the engine's aggregates. PRIVATE: to be given to a mechanism only."""
        return self.statistic.integers(self, cells)

    def histogram(self, cells: Sequence[Cells]) -> AnyArray:
        """The true finest cells of which the parts are sums. PRIVATE: to be given to a mechanism only."""
        return self.statistic.histogram(self, cells)

    def assemble(self, noisy: Parts) -> Floats:
        """The statistic from noisy parts (post-processing)."""
        return self.statistic.assemble(self, noisy)

    def enclose(self, low: Parts, high: Parts) -> tuple[Floats, Floats]:
        """The range of the statistic while every part lies between low and high."""
        if self.form is None:
            raise InvalidParameter(
                parameter="statistic", value=self.statistic.kind, must="be a function of its parts with a known range",
                hint="the error of a selected quantile is an error of rank, which the mechanism states",
            )  # fmt: skip
        return self.form.enclose(low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic(ABC):
    """Something that can be asked, grouped by columns and restricted by a filter."""

    kind: ClassVar[str] = "statistic"
    """Its name in files and texts; the fields below describe its behaviour, and no code asks for the name."""
    filters: ClassVar[tuple[str, ...]] = ("where",)
    """Its fields that are filters."""
    rows_are_drawn_from: ClassVar[bool] = False
    """Are its tables counts, from which synthetic rows can be drawn?"""
    whole: ClassVar[bool] = False
    """Are its values whole numbers, of rows or of people?"""
    agrees: ClassVar[bool] = False
    """Whether its tables can be made whole, non-negative and consistent with each other."""
    noise_alone: ClassVar[bool] = False
    """Whether its error is that of its noise, for any data. Then an accuracy can be paid for."""
    yes_or_no: ClassVar[bool] = False
    """Does each row say yes or no?"""
    one_cell_a_row: ClassVar[bool] = False
    """Does a row add 1 to at most one of all its cells? Then small ones may be exact, given random data."""
    coarse_first: ClassVar[bool] = False
    """Do its first values stand for the most rows? A page without room for all shows them."""
    in_column_units: ClassVar[bool] = False
    """Whether its values are values of its column, so that those of a date column are dates."""
    problem: ClassVar[str | None] = None
    """The problem that lower bounds are known for (`tacit.risk`)."""
    fits: ClassVar[
        Literal[
            "noise",
            "ranks",
            "clamping bounds",
            "thresholds",
            "function",
            "synthesis",
            "test",
            "totals",
            "tree",
        ]
    ] = "noise"
    """The kind of mechanism that fits it."""
    layout: ClassVar[Literal["cells", "ends", "levels", "listed", "shares", "tables"]] = "cells"
    """The layout of its values: one for each cell of its axes, or other; `listed` has its own keys and answers."""
    covers: ClassVar[str] = ""
    """The quantity that its intervals cover, if that is not the statistic of the table."""
    declares: ClassVar[tuple[str, ...]] = ()
    """The declarations behind its intervals."""

    by: tuple[str | Binned, ...] = ()
    where: Expression | None = None

    def __post_init__(self) -> None:
        self._check_words()

    def _check_words(self) -> None:
        """Checks the types: columns are text, groups are columns, filters are trees, flags are flags. A statistic may
        add checks.
        """
        for name in ("by", "columns"):
            if hasattr(self, name):
                set_fields(self, **{name: by_columns(members(name, getattr(self, name)))})
        for name in ("column", "numerator", "denominator"):
            if hasattr(self, name):
                set_fields(self, **{name: text(name, getattr(self, name), empty=False)})
        if hasattr(self, "root"):
            set_fields(self, root=flag("root", self.root))
        for where in (getattr(self, name) for name in self.filters):
            if where is not None and not isinstance(where, Expression):
                raise InvalidParameter(parameter="where", value=type(where).__name__, must="be a filter")

    @abstractmethod
    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question for a declared table; every error of names, types and bounds appears here."""

    @abstractmethod
    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        """The released parts as exact integer combinations of the aggregates."""

    def drawn(self, schema: Schema, unit: Unit) -> Question:
        """The question if rows are declared draws from a population: its parts measure the sampling error, too."""
        raise InvalidParameter(
            parameter="sampling", value=self.kind,
            must="be declared for a mean, a proportion, a ratio, a rate, a quantile, or with survey_weight",
            hint="other statistics have intervals for the noise only",
        )  # fmt: skip

    def histogram(self, question: Question, cells: Sequence[Cells]) -> AnyArray:
        """The finest cells of which the parts are sums, if the question declares that (`tables.sums`)."""
        (only,) = cells
        (aggregate,) = question.requests[0].aggregates
        return np.ravel(only.values[aggregate])

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        """The statistic from noisy parts."""
        assert question.form is not None
        return question.form.value(noisy)

    def listed(self, question: Question) -> dict[str, list[Any]]:
        """The keys of every value, column by column, if the layout is `listed`."""
        raise NotImplementedError

    def lines(self, question: Question) -> int:
        """The number of values, if the layout is `listed`."""
        return len(next(iter(self.listed(question).values())))

    def answers(
        self, question: Question, noise: Mapping[str, PartNoise], noisy: Parts, level: float
    ) -> tuple[Floats, ...]:
        """Value, low and high of every value, if the layout is `listed`; `noise` is the mechanism of each part.

        A fourth column has the ends before they were cut.
        """
        raise NotImplementedError

    def half_widths(self, question: Question, noise: Mapping[str, PartNoise], level: float) -> Floats | None:
        """The half-width of every interval before it is cut, if the noise alone determines it; None elsewhere."""
        return None

    def measured(self, question: Question, noisy: Parts) -> AnyArray | None:
        """The noisy measurement of every value, if the release shows it beside the value; None otherwise."""
        return None

    def expects(
        self, question: Question, noise: Mapping[str, PartNoise], level: float, rows: int | None
    ) -> tuple[float | None, float | None, str]:
        """E |error|, its quantile and the quantity they concern, before a row is read, if the layout is `listed`."""
        raise NotImplementedError

    def aggregates(self, schema: Schema, unit: Unit) -> tuple[Aggregation, ...]:
        """What the engine adds up."""
        return self.on(schema, unit).requests

    def sensitivity(self, unit: Unit, schema: Schema) -> GlobalSensitivity:
        """The sensitivity of the released integers, all parts together, in grid steps."""
        return self.on(schema, unit).sensitivity

    def to_dict(self) -> dict[str, Any]:
        """The statistic as plain values, for plans and certificates."""
        out: dict[str, Any] = {"kind": self.kind}
        for name in (f.name for f in fields(self)):
            value = getattr(self, name)
            if name == "by":
                out["by"] = [
                    b if isinstance(b, str) else {"column": b.column, "edges": _plain(b.edges)}
                    for b in self.by
                ]
            elif isinstance(value, Expression):
                out[name] = str(value)
            else:
                out[name] = _plain(value)
        return out

    def describe(self) -> dict[str, Any]:
        """The old name of `to_dict`."""
        _warn_of_describe(type(self))
        kinds = map(vars, type(self).__mro__)
        # Methods named `describe` that stand for `to_dict` are left out: they ask for what comes above them.
        own = next(k["to_dict"] for k in kinds if "to_dict" in k and k["to_dict"] is not k.get("describe"))
        return cast("dict[str, Any]", own(self))

    def __init_subclass__(cls) -> None:
        """A statistic of one's own that defines the old name keeps its values, and so its digests."""
        if "describe" in vars(cls) and "to_dict" not in vars(cls):
            _warn_of_describe(cls)
            cls.to_dict = cls.describe  # type: ignore[method-assign]

    def _frame(self, schema: Schema, unit: Unit, columns: tuple[str, ...]) -> Frame:
        """The common base of statistics: axes, filter, and whether a row may count nowhere."""
        if self.where is not None:
            self.where.check(schema)
        base, _ = base_unit(unit)
        if isinstance(base, People) and base.each is not None:
            _ = schema[base.each[0]]  # an error that says which columns are declared
        axes = axes_of(self.by, schema)
        absent = (
            self.where is not None
            or any(schema[c].may_be_missing for c in columns)
            or not all(a.always for a in axes)
        )
        support, sensitivity = None, None
        if any(isinstance(a, OpenAxis) for a in axes):
            people = is_people(unit)
            support = (CountPeople if people else CountRows)(where=self.where)
            sensitivity = subsets(unit, cells=None)
        return Frame(
            axes=axes, absent=absent, cells=cell_count(axes), support=support, sensitivity=sensitivity
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Axes and filter of a statistic, checked."""

    axes: tuple[Axis, ...]
    absent: bool
    cells: int | None
    support: Aggregate | None
    sensitivity: GlobalSensitivity | None

    def request(
        self, *aggregates: Aggregate, groups: tuple[Axis, ...] | None = None
    ) -> tuple[Aggregation, ...]:
        """One request, with the support of unknown keys if there are any."""
        wanted = (*aggregates, *([self.support] if self.support else []))
        return (Aggregation(axes=self.axes, aggregates=tuple(dict.fromkeys(wanted)), groups=groups),)


def public_rows(frame: Frame, unit: Unit) -> bool:
    """Whether the number of counted rows is public. One cell, which counts every row, with rows only replaced."""
    return frame.cells == 1 and not frame.absent and replaced(unit) and not is_people(unit)


def people_only(unit: Unit) -> None:
    """A count of people needs to know who a person is."""
    if not is_people(unit):
        raise UnitMismatch(
            left="a count of people",
            right=str(unit),
            hint='protect=people("person_id", ...) says who a person is',
        )


def sum_within(noise: PartNoise | None, count: int, level: float) -> float:
    """The bound on the noise of a sum of cells: by its own distribution for one, by four moments for several."""
    if noise is None or not isinstance(noise, CellNoise):
        return 0.0
    if count == 1:
        return float(noise.half_widths(1, Fraction(level))[0])
    factor = (
        normal_factor(1 - level) if isinstance(noise, RoundedGaussian) else laplace_factor(count, 1 - level)
    )
    return factor * math.sqrt(count * noise.variance)


PLAIN = frozenset({str, int, float, bool, type(None)})


def _warn_of_describe(kind: type) -> None:
    name = kind.__name__
    warnings.warn(
        f"{name}.describe is now {name}.to_dict(); the next version has only the new name",
        DeprecationWarning,
        stacklevel=3,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        kinds = set(map(type, value))
        if kinds <= PLAIN:
            return list(value)
        if kinds <= {tuple, list} and PLAIN.issuperset(map(type, chain.from_iterable(value))):
            return list(map(list, value))  # pairs of a hierarchy, a hundred thousand of them
        return [_plain(v) for v in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def read_cells(
    table: Table, questions: Sequence[Question], *, key: bytes | None = None
) -> list[tuple[Cells, ...]]:
    """The engine's aggregates for each question, or the rows for a question that is a function of them.

    PRIVATE: to be given to a mechanism only.
    """
    requests = [r for q in questions for r in q.requests if not isinstance(r, RowsWanted)]
    wanted = [r for q in questions for r in q.requests if isinstance(r, RowsWanted)]

    def rows_of(one: RowsWanted) -> Cells:
        if isinstance(one, MarginsWanted):
            return read_margins(table, one, key=key)
        return read_rows(table, [one], key=key)[0]

    def both() -> tuple[Iterator[Cells], Iterator[Cells]]:
        return iter(run(table, requests, key=key)), iter([rows_of(r) for r in wanted])

    cells, rows = table.together(both)
    return [tuple(next(rows if isinstance(r, RowsWanted) else cells) for r in q.requests) for q in questions]


def read(
    table: Table, questions: Sequence[Question], *, key: bytes | None = None
) -> list[dict[str, AnyArray]]:
    """The true parts of each question. PRIVATE: to be given to a mechanism only."""
    answered = read_cells(table, questions, key=key)
    return [q.integers(cells) for q, cells in zip(questions, answered, strict=True)]

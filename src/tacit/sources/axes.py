"""Axes of a release: the public set of keys along one column, and the key of each row.

A row has at most one key on an axis (none if its value is missing or outside the keys), and the key depends on that
row alone. The sensitivity of a grouped statistic rests on this.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any, ClassVar

from tacit.errors import EmptyComposition, InvalidParameter, MissingBounds, TooManyCells, WrongType
from tacit.exact.checks import members, set_fields, text, whole
from tacit.exact.data_classes import dataclass
from tacit.sources.columns import Category, Flag, Integer, Measured, Number
from tacit.sources.expressions import Expression
from tacit.sources.schema import Schema

MAX_CELLS = 8_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The keys along one column."""

    column: str

    @property
    def size(self) -> int | None:
        """The number of keys; None if they are undeclared."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[Any, ...]:
        """The keys, for people, in order."""
        raise NotImplementedError

    @property
    def always(self) -> bool:
        """Has every row a key?"""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(Axis):
    """The declared values of a category."""

    values: tuple[str, ...] | tuple[int, ...]
    complete: bool = False

    def __hash__(self) -> int:
        """From the ends alone: a list of a million keys is looked up many times."""
        return hash((self.column, len(self.values), self.values[0], self.values[-1], self.complete))

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def labels(self) -> tuple[Any, ...]:
        return self.values

    @property
    def always(self) -> bool:
        return self.complete


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAxis(Axis):
    """Keys without a declared list, which must be selected privately."""

    @property
    def size(self) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Axis):
    """`count` nearly equal ranges of steps: key floor((s - lowest) * count / levels) for a value of s steps.

    count = levels gives each value its own key (integers, flags, days). Exact in doubles, since
    levels * count < 2^52.
    """

    values: Measured
    count: int

    def __post_init__(self) -> None:
        if self.count < 1 or self.count > self.levels:
            raise InvalidParameter(
                parameter="bins", value=self.count, must=f"lie between 1 and {self.levels:,}",
                hint="a bin is at least one step of the grid wide",
            )  # fmt: skip
        if self.count != self.levels and self.count * self.levels >= 1 << 52:
            raise InvalidParameter(
                parameter="bins", value=self.count, must="be fewer on a grid this fine",
                hint="declare a coarser spacing",
            )  # fmt: skip

    @property
    def levels(self) -> int:
        """The number of values that the column can take."""
        return self.values.width + 1

    @property
    def size(self) -> int:
        return self.count

    def first_steps(self) -> range | list[int]:
        """The lowest step of each key, followed by the first step after the last bin."""
        lowest, levels, count = self.values.lowest, self.levels, self.count
        if count == levels:
            return range(lowest, lowest + count + 1)
        return [lowest - (-key * levels // count) for key in range(count + 1)]

    @property
    def labels(self) -> tuple[Any, ...]:
        if self.count == self.levels:
            return tuple(self.values.label(step) for step in self.first_steps()[:-1])
        firsts = self.first_steps()
        # A number's bin ends where the next one starts; of integers and days the last one is named.
        back = 0 if isinstance(self.values, Number) else 1
        highest = self.values.highest
        lasts = [min(f - back, highest) for f in firsts[1:]]
        return tuple(
            (self.values.label(a), self.values.label(b)) for a, b in zip(firsts, lasts, strict=False)
        )

    @property
    def always(self) -> bool:
        return not self.values.may_be_missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins(Axis):
    """Ranges between given edges: [e0, e1), [e1, e2), ..., the last one with its upper edge.

    A value is rounded to the grid first. An edge is kept as the first step at or above it.
    """

    values: Measured
    edges: tuple[Any, ...]
    steps: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.edges) - 1

    @property
    def labels(self) -> tuple[Any, ...]:
        return tuple(zip(self.edges, self.edges[1:], strict=False))

    @property
    def always(self) -> bool:
        covers = self.steps[0] <= self.values.lowest and self.steps[-1] > self.values.highest
        return covers and not self.values.may_be_missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitudes(Axis):
    """Signed powers of two, for clamping bounds of a number: ..., [-2, -1), (-least, least), [1, 2), [2, 4), ...

    Key 0 is the middle, key k > 0 holds [2^(lowest_power + k - 1), 2^(lowest_power + k)), -k its mirror image.
    """

    lowest_power: int = -20
    highest_power: int = 60

    @property
    def half(self) -> int:
        """The number of keys on each side of the middle."""
        return self.highest_power - self.lowest_power

    @property
    def size(self) -> int:
        return 2 * self.half + 1

    @property
    def labels(self) -> tuple[Any, ...]:
        up = [(2.0**p, 2.0 ** (p + 1)) for p in range(self.lowest_power, self.highest_power)]
        down = [(-b, -a) for a, b in reversed(up)]
        return (*down, (-(2.0**self.lowest_power), 2.0**self.lowest_power), *up)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binned:
    """A column and the bins to group it by, as the caller wrote them."""

    column: str
    edges: int | tuple[Any, ...]

    def __post_init__(self) -> None:
        count = isinstance(self.edges, Integral | bool)
        set_fields(
            self,
            column=text("column", self.column, empty=False),
            edges=whole("edges", self.edges) if count else members("edges", self.edges),
        )


def bins(column: str, edges: int | Iterable[Any]) -> Binned:
    """Group by ranges of a number or date: a count of equal bins, or the edges, in order."""
    if isinstance(edges, bool) or (not isinstance(edges, int) and isinstance(edges, str)):
        raise InvalidParameter(parameter="edges", value=edges, must="be a number of bins or a list of edges")
    listed = isinstance(edges, Iterable) and not isinstance(edges, bytes) and not hasattr(edges, "mask")
    return Binned(column=column, edges=tuple(edges) if listed and getattr(edges, "ndim", 1) else edges)  # type: ignore[arg-type]


def axis_of(by: str | Binned, schema: Schema) -> Axis:
    """The axis of one entry of `by=`."""
    if isinstance(by, Binned):
        return _binned(by, schema.measured(by.column))
    if not isinstance(by, str):
        raise InvalidParameter(parameter="by", value=by, must="name columns", hint='by="state" or by=[...]')
    column = schema[by]
    if isinstance(column, Category):
        if column.values is None:
            return OpenAxis(column=by)
        return Listed(column=by, values=column.values, complete=not column.may_be_missing)
    if isinstance(column, Flag | Integer):
        if not column.bounded:
            raise MissingBounds(column=by)
        return Cut(column=by, values=column, count=column.width + 1)
    raise WrongType(
        column=by, found=column.kind, wanted="a column with keys",
        hint=f'group it in ranges: by=tacit.bins("{by}", [...])',
    )  # fmt: skip


def _binned(by: Binned, column: Measured) -> Axis:
    if isinstance(by.edges, int):
        return Cut(column=by.column, values=column, count=by.edges)
    if len(by.edges) < 2:
        raise EmptyComposition(what="the list of bins", hint="give at least two edges")
    exact = [column.steps_of(e) for e in by.edges]
    steps = [math.ceil(e) for e in exact]
    if any(b <= a for a, b in itertools.pairwise(steps)):
        raise InvalidParameter(
            parameter="edges", value=by.edges[:6], must="increase by at least a step of the grid",
            hint=f"the grid's spacing is {column.spacing}",
        )  # fmt: skip
    last = exact[-1] + 1 if exact[-1].denominator == 1 else Fraction(steps[-1])
    return Bins(column=by.column, values=column, edges=by.edges, steps=(*steps[:-1], int(last)))


def axes_of(by: Sequence[str | Binned], schema: Schema) -> tuple[Axis, ...]:
    """The axes of `by=`; an error for axes with too many cells."""
    axes = tuple(axis_of(b, schema) for b in by)
    cell_count(axes)
    return axes


def cell_count(axes: Sequence[Axis]) -> int | None:
    """The number of cells of the axes; None if some keys are undeclared."""
    sizes = [a.size for a in axes]
    if any(s is None for s in sizes):
        return None
    cells = math.prod(s for s in sizes if s is not None)
    if cells > MAX_CELLS:
        raise TooManyCells(cells=cells, limit=MAX_CELLS)
    return cells


# What the engine adds up: integers, one for each cell. Everything that is released is made of these.
#
# Two statistics that need the same aggregate share it, and aggregates over the same rows are computed in one pass.
# Sums over rows are additive: the integer of a cell is the sum of those of the finer cells it is made of. A count of
# people is not, since one person may stand in several of the finer cells.

MOST_ROWS_BITS = 40
"""A table has fewer than 2^40 rows: a public limit, from which the width of integers follows."""
NARROW_BITS = 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A sum over the rows that pass `where` and have a value in each of the `present` columns.

    `additive`: may it be added up over a finer grouping?
    """

    additive: ClassVar[bool] = False

    where: Expression | None = None
    present: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRows(Aggregate):
    """How many rows."""

    additive: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPeople(Aggregate):
    """How many different people. Never added up: somebody in two cells is one person in their union."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountAbove(Aggregate):
    """The number of rows whose stored value lies above the column's upper bound and is clamped to it."""

    additive: ClassVar[bool] = True

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Aggregate):
    """Sum of value - lowest, in steps of the column's grid: whole numbers from 0 to width."""

    additive: ClassVar[bool] = True

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Squares(Aggregate):
    """Sum of (value - lowest)^2, in squared steps."""

    additive: ClassVar[bool] = True

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A declared value on a coarse public scale: 0..levels stand for 0..highest, or for lowest..highest.

    A value of s steps (above 0, or above the lowest) of at most `top` is level s if levels = top, and otherwise
    the level nearest to s levels / top, the higher of two: a function of its own row.
    """

    column: str
    power: int
    levels: int
    from_zero: bool = False

    def top(self, schema: Schema) -> int:
        """The largest value, in steps."""
        column = schema.measured(self.column)
        return column.highest if self.from_zero else column.width


@dataclass(frozen=True, slots=True, kw_only=True)
class Products(Aggregate):
    """Sum of a product of powers of levels: with no factors, of ones."""

    additive: ClassVar[bool] = True

    factors: tuple[Factor, ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        """What is multiplied."""
        return frozenset(f.column for f in self.factors)

    @property
    def bits(self) -> int:
        """The bits of the largest contribution of one row."""
        return int(math.prod(f.levels**f.power for f in self.factors)).bit_length()


def is_wide(aggregate: Aggregate, schema: Schema) -> bool:
    """Could the integers need more than 64 bits? The declared bounds alone decide it, so that no row decides on
    a type.
    """
    if isinstance(aggregate, Products):
        return aggregate.bits + MOST_ROWS_BITS > NARROW_BITS
    if not isinstance(aggregate, Steps | Squares):
        return False
    width = schema.measured(aggregate.column).width
    most = width if isinstance(aggregate, Steps) else width**2
    return most.bit_length() + MOST_ROWS_BITS > NARROW_BITS

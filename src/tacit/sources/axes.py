"""Axes of a release: the public set of keys along one column, the key of each row, and the cells that keys span.

A row has at most one key on an axis (none if its value is missing or outside the keys), and the key depends on that
row alone. The sensitivity of a grouped statistic rests on this. The second half turns the keys of an engine into
places on the axes, and the occupied cells of several axes into one mixed-radix key each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, MissingBounds, TooManyCells, WrongType
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import members, set_fields, text, whole
from tacit.exact.data_classes import dataclass
from tacit.mechanisms.sparse_keys import combine_codes, domain_size, key_integers, pack_keys
from tacit.sources.columns import Category, Flag, Integer, Measured, Number
from tacit.sources.expressions import Expression
from tacit.sources.schema import Schema

if TYPE_CHECKING:
    from tacit.sources.compiling import Reader

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


# Occupied cells only: one group-by over declared columns, which returns a mixed-radix key for each cell.
#
# With axes of sizes s_1, ..., s_d the cell (k_1, ..., k_d) has the key (...(k_1 s_2 + k_2) s_3 + ...) s_d + k_d, an
# integer below the product of the sizes. The engine computes the key of as many neighbouring columns as fit in 62 bits.
# If there are more, or a list is too long for a CASE, several such numbers are returned and combined here, for
# occupied cells alone.


# Keys that an engine gave, as places on the declared axes; and its integers, exactly.
#
# No cast here can fail: keys are text, compared as they are, or integers of at most 64 bits with a sign.

Lists = dict[Listed, Any]
"""Declared lists as Arrow arrays, made once for a table; they are public, and stay when rows are let go."""


def positions(
    axis: Axis, column: Any, *, coded: bool, lists: Lists
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The place of each key on the axis, and whether it has one.

    Arrow makes a table of the whole list for every call: a long list is asked for many keys at once.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    size = axis.size or 0
    if isinstance(axis, Listed) and not coded:
        declared = words_of(axis, lists)
        column = pc.index_in(column.cast(declared.type), value_set=declared)
    good = np.asarray(column.is_valid())
    here = np.asarray(pc.fill_null(column.cast(pa.int64()), 0))
    inside = (here >= 0) & (here < size)
    return np.where(inside, here, 0), good & inside


def words_of(axis: Listed, lists: Lists) -> Any:
    """The declared list as an Arrow array, of text or of integers."""
    import pyarrow as pa

    if axis not in lists:
        kind: Any = pa.string() if isinstance(axis.values[0], str) else pa.int64()
        lists[axis] = pa.array(axis.values, type=kind)
    return lists[axis]


def integers(column: Any, *, wide: bool) -> AnyArray:
    """The engine's integers: Python's where the declared bounds may need them (`wide`), else of 64 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.fill_null(column, 0) if column.null_count else column
    if not wide:
        return np.asarray(column.cast(pa.int64()))
    out = np.empty(len(column), dtype=object)
    out[:] = [int(v) for v in column.to_pylist()]
    return out


def texts(column: Any) -> Any:
    """Unknown keys as Arrow text; null for a missing one, or for bytes that are no text.
    However long: 64-bit offsets."""
    import pyarrow as pa

    raw = column.cast(pa.large_binary())
    raw = raw.combine_chunks() if isinstance(raw, pa.ChunkedArray) else raw
    try:
        return raw.cast(pa.large_string())  # looks at every byte
    except pa.ArrowInvalid:
        return pa.array([_text(value) for value in raw.to_pylist()], type=pa.large_string())


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


LIMB_BITS = 62
MOST_BRANCHES = 128
TABLED = 1 << 16


def domain_of(axes: Sequence[Axis]) -> int:
    """The number of cells that the axes span: at most 2^200, all of them declared."""
    for axis in axes:
        if isinstance(axis, OpenAxis):
            raise MissingBounds(
                column=axis.column, hint="the keys of a sparse histogram are declared: category([...])"
            )
    return domain_size(math.prod(a.size or 1 for a in axes), "the product of the columns' keys")


def _in_engine(axis: Axis, reader: Reader) -> bool:
    listed = isinstance(axis, Listed) and axis.column not in reader.coded
    return not listed or (axis.size or 0) <= MOST_BRANCHES


def key_packs(axes: Sequence[Axis], reader: Reader) -> list[tuple[Axis, ...]]:
    """Neighbouring axes whose joint key the engine computes; a long list of words forms a group of its own."""
    packs: list[tuple[Axis, ...]] = []
    for axis in axes:
        joined = (*packs[-1], axis) if packs else (axis,)
        fits = math.prod(a.size or 1 for a in joined) < 1 << LIMB_BITS
        if packs and fits and all(_in_engine(a, reader) for a in joined):
            packs[-1] = joined
        else:
            packs.append((axis,))
    return packs


def _code(axis: Axis, reader: Reader) -> Any:
    """The row's place on the axis as a 64-bit integer; null if it has none."""
    import ibis

    key = reader.key(axis)
    if not isinstance(axis, Listed) or axis.column in reader.coded:
        return key.cast("int64")
    branches = [(key == v, i) for i, v in enumerate(axis.values)]
    return ibis.cases(*branches, else_=ibis.null("int64")).cast("int64")


def pack_key(pack: tuple[Axis, ...], reader: Reader) -> Any:
    """The joint key of a pack's axes, or the values of a long list as they are."""
    if not _in_engine(pack[0], reader):
        return reader.key(pack[0])
    key = _code(pack[0], reader)
    for axis in pack[1:]:
        key = key * (axis.size or 1) + _code(axis, reader)
    return key


class Occupied:
    """Gathers the engine's batches into occupied cells: keys and their integers, sorted, each key once."""

    def __init__(
        self,
        axes: Sequence[Axis],
        packs: Sequence[tuple[Axis, ...]],
        columns: Mapping[Aggregate, str],
        reader: Reader,
        lists: Lists,
    ) -> None:
        self.lists = lists
        self.domain = domain_of(axes)
        self.packs = list(packs)
        self.columns = dict(columns)
        self.reader = reader
        self.waiting: list[Any] = []
        self.rows = 0
        self.enough = max((pack[0].size or 0 for pack in packs if not _in_engine(pack[0], reader)), default=0)
        self.keys: list[AnyArray] = []
        self.values: dict[Aggregate, list[AnyArray]] = {a: [] for a in columns}

    def add(self, batch: Any) -> None:
        """Adds one batch. A long list is searched once for as many keys as its length, a public number."""
        self.waiting.append(batch)
        self.rows += batch.num_rows
        if self.rows >= self.enough:
            self._add_up()

    def _add_up(self) -> None:
        """Rows without a key are left out."""
        import pyarrow as pa

        if not self.waiting:
            return
        table = pa.Table.from_batches(self.waiting)
        self.waiting, self.rows = [], 0
        valid = np.ones(table.num_rows, dtype=bool)
        codes: list[tuple[AnyArray, int]] = []
        for i, pack in enumerate(self.packs):
            column, size = table.column(f"k{i}"), math.prod(a.size or 1 for a in pack)
            if _in_engine(pack[0], self.reader):
                here, good = _numbers(column, size)
            else:
                here, good = positions(pack[0], column, coded=False, lists=self.lists)
            valid &= good
            codes.append((here, size))
        self.keys.append(combine_codes([(c[valid], size) for c, size in codes], self.domain))
        for aggregate, name in self.columns.items():
            self.values[aggregate].append(integers(table.column(name), wide=False)[valid])

    def cells(self, wanted: Sequence[Aggregate]) -> tuple[AnyArray, dict[Aggregate, AnyArray]]:
        """The cells occupied for one request: equal keys are one cell. A cell is omitted if none of the
        requested aggregates counts anything in it, even if another request found rows there.
        """
        self._add_up()
        keys = np.concatenate(self.keys) if self.keys else pack_keys([], self.domain)
        values = {
            a: np.concatenate(self.values[a]) if self.values[a] else np.empty(0, dtype=np.int64)
            for a in wanted
        }
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if keys.size else order[:0]
        summed = {a: np.add.reduceat(v[order], starts) if keys.size else v for a, v in values.items()}
        there = np.zeros(starts.size, dtype=bool)
        for v in summed.values():
            there |= np.asarray(v != 0, dtype=bool)
        return pack_keys(keys[starts][there], self.domain), {a: v[there] for a, v in summed.items()}


def _numbers(column: Any, size: int) -> tuple[AnyArray, npt.NDArray[np.bool_]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    good = np.asarray(column.is_valid())
    here = np.asarray(pc.fill_null(column.cast(pa.int64()), 0))
    inside = (here >= 0) & (here < size)
    return np.where(inside, here, 0), good & inside


def encode(codes: Sequence[npt.ArrayLike], axes: Sequence[Axis]) -> AnyArray:
    """The keys of cells given by their place on each axis."""
    pairs = [(np.asarray(c), axis.size or 1) for c, axis in zip(codes, axes, strict=True)]
    return combine_codes(pairs, domain_of(axes))


def codes_of(keys: AnyArray, axes: Sequence[Axis]) -> list[AnyArray]:
    """The place on each axis of each key: mixed-radix digits, first axis first."""
    return list(_digits(keys, axes))[::-1]


def _digits(keys: AnyArray, axes: Sequence[Axis]) -> Iterator[AnyArray]:
    rest = key_integers(keys)
    for axis in reversed(axes):
        size: Any = axis.size or 1
        size = size if rest.dtype == object else np.uint64(size)
        yield np.asarray(rest % size).astype(np.int64)
        rest = np.asarray(rest // size)


def labels_of(keys: AnyArray, axes: Sequence[Axis]) -> dict[str, AnyArray]:
    """The meaning of the keys, column by column, in the words of the declaration."""
    return {
        axis.column: labels_at(axis, codes) for axis, codes in zip(axes, codes_of(keys, axes), strict=True)
    }


def labels_at(axis: Axis, codes: AnyArray) -> AnyArray:
    """The meaning of places on an axis. Only these are made, since all keys of a wide axis would fill the memory."""
    out = np.empty(codes.size, dtype=object)
    if isinstance(axis, Cut) and axis.count == axis.levels and axis.levels > TABLED:
        out[:] = [axis.values.label(axis.values.lowest + int(k)) for k in codes]
        return out
    table = axis.labels
    out[:] = [table[int(k)] for k in codes]
    return out

"""Aggregates of many questions in as few passes over the rows as possible, as exact integers.

Questions over the same rows share one query. Repeated aggregates are computed once, and groupings with a small
common refinement are computed as that refinement and added up (integers, so exactly). Only additive aggregates
are added up; a count of people needs a grouping by its own cells. Reading together gives the same numbers as
reading alone, and the rows never decide which questions are put together.

The result has one row for each cell. Undeclared keys are dropped batch by batch, before they take memory.
Types come from the declaration: a key is text or a 64-bit integer, in any storage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import UnitMismatch
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.data_classes import dataclass
from tacit.sources import error_boundary
from tacit.sources.axes import (
    Aggregate,
    Axis,
    CountPeople,
    CountRows,
    Listed,
    Lists,
    Occupied,
    OpenAxis,
    cell_count,
    domain_of,
    integers,
    is_wide,
    key_packs,
    labels_at,
    pack_key,
    positions,
    texts,
    words_of,
)
from tacit.sources.bounding import bounded_relation, reader_of
from tacit.sources.columns import Category
from tacit.sources.compiling import Reader
from tacit.sources.engines import ORDER
from tacit.sources.error_boundary import polled, tell
from tacit.sources.expressions import And, Expression
from tacit.sources.tables import Table

REFINEMENT = 20_000
"""Groupings are merged while their refinement has at most this many cells, a public number."""

LOOKED_AT = 64
"""The number of passes, a public one, that a request searches for one that answers it too; so the sorting of requests
stays linear.
"""

LONG = 1 << 14
"""From this public number of declared words on, the engine looks words up, if it does that well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """Aggregates, each for every cell of the axes; `sparse`: only for the occupied cells.

    `groups` are the axes whose cells are a person's groups, limited by people(..., groups=g): those of `by=`.
    None stands for all axes.
    """

    axes: tuple[Axis, ...] = ()
    aggregates: tuple[Aggregate, ...]
    sparse: bool = False
    groups: tuple[Axis, ...] | None = None

    @property
    def known(self) -> bool:
        """Does one array hold all cells, known in advance?"""
        return not self.sparse and not any(isinstance(a, OpenAxis) for a in self.axes)

    @property
    def limited(self) -> tuple[Axis, ...]:
        """The axes for a limit on groups: `groups`, or all of them if the proof needs the limit.

        Sums over rows move by at most m contributions of one row, wherever a person's m rows lie. All of them
        in one cell is the worst case, which no limit on groups excludes
        (docs/theory/contribution-polytopes.md). There the limit promises something about `by=` keys only, and
        other cells need no limit. For counts of people, unknown keys and newly occupied cells, a person counts
        in at most min(m, g) cells only if the limit holds over all axes. Occupied cells of rows alone are
        treated so unless `groups` are given; with `groups` the occupied cells are not published.
        """
        unknown = any(isinstance(a, OpenAxis) for a in self.axes)
        needed = unknown or any(isinstance(a, CountPeople) for a in self.aggregates)
        return self.axes if needed or self.groups is None else self.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Exact integers for each cell. PRIVATE: they have no noise yet.

    For known keys an array has one axis for each axis of the request (none: a single number). For unknown keys
    it has one entry for each occurring combination of keys, and `keys` lists these, column by column, in an
    order that depends on the keys alone: that of their text, or of the engine's hash of it (numbers sort
    faster). For a sparse request there is one key a cell, a mixed-radix number (see `occupied`), and `keys`
    contains that one array.
    """

    request: Aggregation
    values: dict[Aggregate, AnyArray]
    keys: tuple[npt.NDArray[Any], ...] | None = None

    def clear(self) -> None:
        """Drops the integers, even if this object is still held."""
        self.values.clear()


def run(table: Table, requests: Sequence[Aggregation], *, key: bytes | None = None) -> list[Cells]:
    """The cells of each request."""
    for request in requests:
        (domain_of if request.sparse else cell_count)(request.axes)
        if any(isinstance(a, CountPeople) for a in request.aggregates) and table.person is None:
            raise UnitMismatch(
                left="a count of people",
                right=str(table.unit),
                hint="protect=people(...) says who a person is",
            )
    return table.read(partial(_cells, table, requests, key))


def _cells(table: Table, requests: Sequence[Aggregation], key: bytes | None) -> list[Cells]:
    out: dict[int, Cells] = {}
    passes = _passes(table, requests, key)
    for done, (relation, group) in enumerate(passes):
        tell("passes over the rows", done, len(passes))
        for index, cells in zip(group, _one_pass(table, relation, [requests[i] for i in group]), strict=True):
            out[index] = cells
    return [out[i] for i in range(len(requests))]


def _passes(table: Table, requests: Sequence[Aggregation], key: bytes | None) -> list[tuple[Any, list[int]]]:
    """The requests that one query answers. Decided by the requests alone, never by data."""
    passes: list[_Pass] = []
    alike: dict[Any, _Pass] = {}
    numbers: dict[Axis, int] = {}
    relations = [bounded_relation(table, r.limited, key=key) for r in requests]
    # Finer groupings first, so that those which they contain find them; and sums before counts, which join any pass
    # that has their keys, and would keep passes apart that one sum brings together.
    counts = [all(a == CountRows(where=a.where) for a in r.aggregates) for r in requests]
    for index in sorted(range(len(requests)), key=lambda i: (-len(requests[i].axes), counts[i])):
        request, relation = requests[index], relations[index]
        axes = {numbers.setdefault(a, len(numbers)): a.size or 1 for a in request.axes}
        same = (id(relation), request.axes, request.sparse)
        near = alike.get(same)
        for one in [near, *passes[-LOOKED_AT:]] if near is not None else passes[-LOOKED_AT:]:
            if one.relation is relation and one.answers(request, axes, thrifty=table.dialect.batchwise):
                break
        else:
            one = _Pass(relation)
            passes.append(one)
        one.add(index, request, axes)
        alike.setdefault(same, one)
    return [(one.relation, sorted(one.members)) for one in passes]


class _Pass:
    """Requests that one query answers, and the facts that decide whether another may join."""

    def __init__(self, relation: Any) -> None:
        self.relation = relation
        self.members: list[int] = []
        self.known = True
        self.kinds: set[tuple[tuple[Axis, ...], bool]] = set()
        self.sizes: dict[int, int] = {}
        self.additive: dict[frozenset[int], bool] = {}
        self.aggregates: set[Aggregate] = set()

    def add(self, index: int, request: Aggregation, axes: dict[int, int]) -> None:
        """Adds a request. `axes` maps the number of each of its axes to the size of the axis."""
        self.members.append(index)
        self.known &= request.known
        self.kinds.add((request.axes, request.sparse))
        self.sizes |= axes
        cells = frozenset(axes)
        self.additive[cells] = self.additive.get(cells, True) and all(a.additive for a in request.aggregates)
        self.aggregates |= set(request.aggregates)

    def answers(self, request: Aggregation, axes: dict[int, int], *, thrifty: bool) -> bool:
        """Whether one grouping, by all the axes, may answer this request too, and each as if it were alone.

        Requests for the same cells always. Otherwise the cells of some are sums of finer ones: a request for people,
        unknown keys or occupied cells must ask for the finest grouping itself; if no request does, the finest grouping
        must be small.

        For a `thrifty` engine, one pass must be less work than two: a grouping finer than the pass saves
        nothing if it is shared for counting alone. A grouping by two keys takes longer than two groupings by
        one each, and a sum longer than both.
        """
        if self.kinds == {(request.axes, request.sparse)}:
            return True
        if not self.known or not request.known:
            return False
        sizes = self.sizes | axes
        finest = frozenset(sizes)
        alone = axes.keys() == finest
        if not alone and not all(a.additive for a in request.aggregates):
            return False
        if any(cells != finest and not sums for cells, sums in self.additive.items()):
            return False
        if alone or finest in self.additive:
            return True
        if math.prod(sizes.values()) > REFINEMENT:
            return False
        # A grouping that is made anyhow costs one column more; a finer one must save an aggregate.
        made_anyhow = finest == frozenset(self.sizes)
        shares = any(a in self.aggregates and a != CountRows() for a in request.aggregates)
        return made_anyhow or not thrifty or shares


PREPARED = 64
"""The number of compiled queries that a table keeps: the same question again needs no compilation."""


def _one_pass(table: Table, relation: Any, requests: list[Aggregation]) -> list[Cells]:
    place = (id(relation), tuple(requests))
    kept = table.prepared.get(place)
    if kept is not None and kept[0] is relation:
        _, start, names, columns, coded = kept
        collector = partial(_Collector, names=names, columns=columns, coded=coded, table=table)
        return _collected(table, start, list(map(collector, requests)))
    whole, axes = relation, list(dict.fromkeys(a for r in requests for a in r.axes))
    wanted = list(dict.fromkeys(a for r in requests for a in r.aggregates))
    relation, asked = _behind_filter(table, relation, wanted)
    reader = reader_of(table, relation, kept_of=whole)
    measures = dict(zip((f"v{i}" for i in range(len(asked))), map(reader.aggregate, asked), strict=True))
    if requests[0].sparse:
        columns = {a: f"v{i}" for i, a in enumerate(wanted)}
        return _occupied(table, relation, requests, measures, columns, reader)
    names = {axis: f"k{i}" for i, axis in enumerate(axes)}
    shared = all(set(r.axes) == set(axes) for r in requests)
    late = table.dialect.batchwise or shared
    keys = {names[a]: reader.key(a, declared=not late) for a in axes}
    if not axes:
        query = relation.aggregate(**measures)
    elif late and not table.dialect.batchwise:
        lists = {names[a]: a.values for a in axes if isinstance(a, Listed)}
        query = table.dialect.only_listed(relation, keys, measures, lists)
    else:
        query = relation.group_by(**keys).aggregate(**measures)
    if axes and all(isinstance(a, OpenAxis) for a in axes):
        query = table.dialect.in_order(query, list(names.values()))
    query, placed = _placed(table, query, {a: n for a, n in names.items() if a.column not in reader.coded})
    coded = reader.coded | placed
    columns = {a: f"v{i}" for i, a in enumerate(wanted)}
    start = table.dialect.batches(query)
    if len(table.prepared) >= PREPARED:
        table.prepared.clear()
    table.prepared[place] = (whole, start, names, columns, coded)
    collector = partial(_Collector, names=names, columns=columns, coded=coded, table=table)
    return _collected(table, start, list(map(collector, requests)))


def _behind_filter(
    table: Table, relation: Any, wanted: Sequence[Aggregate]
) -> tuple[Any, Sequence[Aggregate]]:
    """The rows that satisfy the common condition of all these aggregates, and the aggregates without it.

    A row counts if its filter is true, and a filter of several parts is true if each part is. So a row for which
    a common part is not true counts nowhere, and the query does not group it. The rows are bounded already,
    because a filter before that would let a person's other rows decide about the counted ones.
    """
    each = [_parts(a.where) for a in wanted]
    common = [part for part in dict.fromkeys(each[0]) if all(part in parts for parts in each)]
    if not common:
        return relation, wanted
    reader = reader_of(table, relation)
    relation = relation.filter(*(reader.test(part) for part in common))
    out = []
    for aggregate, parts in zip(wanted, each, strict=True):
        left = tuple(part for part in parts if part not in common)
        out.append(replace(aggregate, where=And(parts=left) if len(left) > 1 else left[0] if left else None))
    return relation, out


def _parts(where: Expression | None) -> tuple[Expression, ...]:
    """The parts of a condition. A row passes if all of them hold."""
    return where.parts if isinstance(where, And) else () if where is None else (where,)


def _placed(table: Table, query: Any, names: dict[Axis, str]) -> tuple[Any, frozenset[str]]:
    """The grouped query with each word of a long list replaced by its place, and the columns of those lists.

    Every group stays, with no place for words outside the list: a coarser question may count them. Words are
    compared by their bytes, after the grouping: the list is joined to the groups, not to the rows.
    """
    placed = set()
    for axis, name in names.items():
        if not isinstance(axis, Listed) or axis.size < LONG or not isinstance(axis.values[0], str):
            continue
        declared = _shown(table, axis)
        if declared is None:
            continue
        same = query[name] == table.dialect.bytewise(declared.word)
        others = [c for c in query.columns if c != name]
        query = query.left_join(declared, same).select(*others, **{name: declared.place})
        placed.add(axis.column)
    return query, frozenset(placed)


def _shown(table: Table, axis: Listed) -> Any:
    """The declared list as a table of the engine, made once; None if the engine needs none."""
    if axis not in table.shown:
        given = table.dialect.listed(words_of(axis, table.lists), table.relation)
        table.shown[axis] = given and given[0]
        if given is not None:
            table.on_close(given[1])
    return table.shown[axis]


def _collected(table: Table, start: Callable[[], Iterator[Any]], results: list[_Collector]) -> list[Cells]:
    # `Table.read` is around it, and with it the error boundary.
    with polled(table.progress, "percent of a pass"):
        for batch in start():
            for result in results:
                result.add(batch)
        return list(map(_Collector.cells, results))


def _occupied(
    table: Table,
    relation: Any,
    requests: list[Aggregation],
    measures: dict[str, Any],
    columns: dict[Aggregate, str],
    reader: Reader,
) -> list[Cells]:
    """Answers requests for the occupied cells of the same axes by one group-by. Keys are numbers."""
    axes = requests[0].axes
    packs = key_packs(axes, reader)
    keys = {f"k{i}": pack_key(pack, reader) for i, pack in enumerate(packs)}
    gathered = Occupied(axes, packs, columns, reader, table.lists)
    start = table.dialect.batches(relation.group_by(**keys).aggregate(**measures))

    def gather() -> list[Cells]:
        for batch in start():
            gathered.add(batch)
        return [
            Cells(request=r, values=v, keys=(k,)) for r in requests for k, v in [gathered.cells(r.aggregates)]
        ]

    return error_boundary.rows(gather, source=table.source)


def _rising(table: Any, order: AnyArray) -> bool:
    """Whether the engine sorted these rows by a number that no two of them share."""
    if ORDER not in table.column_names:
        return False
    numbers = np.asarray(table.column(ORDER))[order]
    return bool((numbers[1:] > numbers[:-1]).all())


class _Collector:
    """Adds up batches of engine rows into the cells of one request."""

    def __init__(
        self,
        request: Aggregation,
        names: dict[Axis, str],
        columns: dict[Aggregate, str],
        coded: frozenset[str],
        table: Table,
    ) -> None:
        self.coded = coded
        self.request = request
        self.lists: Lists = table.lists
        self.wide = {a: is_wide(a, table.schema) for a in request.aggregates}
        self.names = names
        self.columns = columns
        self.shape = tuple(a.size or 0 for a in request.axes)
        self.size = math.prod(self.shape) if request.known else 0
        self.sums: dict[Aggregate, AnyArray] = {
            a: np.zeros(self.size, dtype=object if self.wide[a] else np.int64) for a in request.aggregates
        }
        self.waiting: list[Any] = []
        self.rows = 0
        listed = [a for a in request.axes if isinstance(a, Listed) and a.column not in coded]
        # A list is looked through once for as many keys as it is long: a public number.
        self.enough = max((a.size for a in listed), default=0) if request.known else math.inf

    def add(self, batch: Any) -> None:
        self.waiting.append(batch)
        self.rows += batch.num_rows
        if self.rows >= self.enough:
            self._add_up()

    def _add_up(self) -> None:
        import pyarrow as pa

        if not self.waiting:
            return
        table = pa.Table.from_batches(self.waiting)
        index = np.zeros(table.num_rows, dtype=np.int64)
        valid = np.ones(table.num_rows, dtype=bool)
        for axis in self.request.axes:
            coded = axis.column in self.coded
            here, good = positions(axis, table.column(self.names[axis]), coded=coded, lists=self.lists)
            index = index * (axis.size or 0) + here
            valid &= good
        for aggregate in self.request.aggregates:
            values = integers(table.column(self.columns[aggregate]), wide=self.wide[aggregate])
            np.add.at(self.sums[aggregate], index[valid], values[valid])
        self.waiting, self.rows = [], 0

    def cells(self) -> Cells:
        if self.request.known:
            self._add_up()
            values = {a: s.reshape(self.shape) for a, s in self.sums.items()}
            return Cells(request=self.request, values=values)
        return self._open_cells()

    def _open_cells(self) -> Cells:
        """Keys in an order that depends on the keys alone, without keys for which no row passes the filter.

        The engine's own order may reveal the order of the rows. So the keys are sorted by a number for each
        key; if two keys share a number, or have none, they are sorted by their text.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        axes, aggregates = self.request.axes, self.request.aggregates
        if not self.waiting:
            none = {a: np.zeros(0, dtype=object if self.wide[a] else np.int64) for a in aggregates}
            return Cells(
                request=self.request, values=none, keys=tuple(np.zeros(0, dtype=object) for _ in axes)
            )
        table = pa.Table.from_batches(self.waiting)
        values = {a: integers(table.column(self.columns[a]), wide=self.wide[a]) for a in aggregates}
        kept = np.zeros(table.num_rows, dtype=bool)
        for v in values.values():
            kept |= np.asarray(v != 0, dtype=bool)
        columns: list[Any] = []
        for axis in axes:
            if isinstance(axis, OpenAxis):
                columns.append(texts(table.column(self.names[axis])))
                kept &= np.asarray(columns[-1].is_valid())
            else:
                coded = axis.column in self.coded
                here, good = positions(axis, table.column(self.names[axis]), coded=coded, lists=self.lists)
                columns.append(pa.array(here))
                kept &= good
        order = np.flatnonzero(kept)
        columns = [c.take(order) for c in columns] if len(order) < len(kept) else columns
        if not _rising(table, order):
            named = {str(i): c for i, c in enumerate(columns)}
            moved = pc.sort_indices(pa.table(named), sort_keys=[(name, "ascending") for name in named])
            columns, order = [c.take(moved) for c in columns], order[np.asarray(moved)]
        keys = [
            c.to_numpy(zero_copy_only=False) if isinstance(a, OpenAxis) else labels_at(a, np.asarray(c))
            for a, c in zip(axes, columns, strict=True)
        ]
        return Cells(request=self.request, values={a: v[order] for a, v in values.items()}, keys=tuple(keys))


# Rows for training, brought into the custodian's process: the one exception to "rows stay in the engine".
#
# A function (a density, a classifier, a regression function) is no sum that an engine adds up. Its rows are read
# through the door like all others: declared, clamped, rounded to their grids, and bounded, so that a person has at
# most the declared number of them. A value is a whole number of steps, or missing; a row that does not pass the
# filter is missing as a whole. What a row becomes depends on that row alone, and nothing here says how many there
# are.


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsWanted(Aggregation):
    """Columns of the rows that pass a filter; `columns` are measured, `categories` have declared values.

    There are no aggregates and no cells, so nothing is added up.
    """

    columns: tuple[str, ...]
    categories: tuple[str, ...] = ()
    where: Expression | None = None
    aggregates: tuple[Aggregate, ...] = ()

    @property
    def limited(self) -> tuple[Axis, ...]:
        """A limit on groups concerns groups, and a function has none."""
        return ()

    @property
    def names(self) -> frozenset[str]:
        """All columns that the query reads."""
        more = self.where.columns() if self.where is not None else frozenset()
        return frozenset({*self.columns, *self.categories}) | more


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows(Cells):
    """Values by column, one entry a row, NaN where missing. PRIVATE: without noise; `clear` drops them.

    A measured value is its number of steps above the lowest declared value. A category is its place in the
    declared list.
    """

    values: dict[Aggregate, Any] = field(default_factory=dict)
    rows: dict[str, Floats] = field(repr=False)

    def clear(self) -> None:
        """Drops the rows, even if this object is still held."""
        self.rows.clear()


def read_rows(
    table: Table, requests: Sequence[RowsWanted], *, key: bytes | None = None
) -> list[TrainingRows]:
    """The rows of each request."""
    return [table.read(lambda r=request: _rows(table, r, key)) for request in requests]  # type: ignore[misc]


def _rows(table: Table, request: RowsWanted, key: bytes | None) -> TrainingRows:
    relation = bounded_relation(table, (), key=key)
    reader = reader_of(table, relation)
    measured = {name: f"v{i}" for i, name in enumerate(request.columns)}
    listed = {name: f"c{i}" for i, name in enumerate(request.categories)}
    wanted: dict[str, Any] = {measured[n]: reader.offset(n) for n in request.columns}
    wanted |= {listed[n]: reader.clean(n) for n in request.categories}
    if request.where is not None:
        wanted["w"] = reader.test(request.where)
    start = table.dialect.batches(relation.select(**wanted))

    def gather() -> TrainingRows:
        import pyarrow as pa

        batches = list(start())
        if not batches:
            none = {n: np.zeros(0) for n in (*request.columns, *request.categories)}
            return TrainingRows(request=request, rows=none)
        found = pa.Table.from_batches(batches)
        passes = np.ones(found.num_rows, dtype=bool)
        if request.where is not None:
            passes = np.asarray(found.column("w").fill_null(False).to_numpy(), dtype=bool)
        values = {n: _steps(found.column(c), passes) for n, c in measured.items()}
        for name, column in listed.items():
            declared = table.schema[name]
            assert isinstance(declared, Category)
            assert declared.values is not None
            axis = Listed(column=name, values=declared.values)
            here, good = positions(axis, found.column(column), coded=name in reader.coded, lists=table.lists)
            values[name] = np.where(good & passes, here.astype(np.float64), np.nan)
        return TrainingRows(request=request, rows=values)

    return error_boundary.rows(gather, source=table.source)


def _steps(column: Any, passes: npt.NDArray[np.bool_]) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    good = np.asarray(column.is_valid()) & passes
    steps = np.asarray(pc.fill_null(column.cast(pa.int64()), 0)).astype(np.float64)
    return np.where(good, steps, np.nan)

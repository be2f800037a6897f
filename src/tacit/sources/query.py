"""Aggregates of many questions in as few passes over the rows as possible, as exact integers.

Questions over the same rows share one query: aggregates that occur twice are computed once, and groupings whose
common refinement is small are computed as that refinement and added up (integers, so exactly). What comes back
is one row for each cell; keys that were not declared are dropped batch by batch, before they take memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import UnitMismatch
from tacit.sources import door
from tacit.sources.aggregates import Aggregate, People
from tacit.sources.axes import Axis, Listed, Open, cell_count
from tacit.sources.bounding import bounded_relation, reader_of
from tacit.sources.occupied import Occupied, domain_of, key_limbs, limb_key
from tacit.sources.tables import Table

__all__ = ["Cells", "Request", "run"]

REFINEMENT = 20_000
"""Groupings are merged while their refinement has at most this many cells, a public number."""

Integers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Aggregates, each for every cell that the axes span; `sparse`: only for the cells that are occupied.

    `groups` are the axes whose cells are a person's groups, of which people(..., groups=g) allows g: those of `by=`.
    None stands for all axes.
    """

    axes: tuple[Axis, ...] = ()
    aggregates: tuple[Aggregate, ...]
    sparse: bool = False
    groups: tuple[Axis, ...] | None = None

    @property
    def known(self) -> bool:
        """Does one array hold all cells, known in advance?"""
        return not self.sparse and not any(isinstance(a, Open) for a in self.axes)

    @property
    def limited(self) -> tuple[Axis, ...]:
        """The axes by which a limit on groups is applied: `groups`, and all of them where a proof needs the limit.

        Sums over rows move by at most m contributions of one row, wherever a person's m rows lie: all of them in one
        cell is the worst case, which no limit on groups excludes (docs/theory/contribution-polytopes.md). There the
        limit is a promise about `by=` keys, and cells that are no such keys need none. A person who is counted once
        in each cell, or who brings unknown keys or newly occupied cells to light, is counted in min(m, g) cells only
        because the limit is kept over all axes.
        """
        needed = not self.known or any(isinstance(a, People) for a in self.aggregates)
        return self.axes if needed or self.groups is None else self.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Exact integers for each cell. PRIVATE: they have no noise yet.

    For known keys an array has one axis for each axis of the request (none: a single number). For unknown keys
    it has one entry for each combination of keys that occurs, and `keys` lists these, column by column. For a
    sparse request there is one key a cell, a mixed-radix number (see `occupied`), and `keys` holds that one array.
    """

    request: Request
    values: dict[Aggregate, Integers]
    keys: tuple[npt.NDArray[Any], ...] | None = None


def run(table: Table, requests: Sequence[Request], *, key: bytes | None = None) -> list[Cells]:
    """The cells of each request."""
    for request in requests:
        (domain_of if request.sparse else cell_count)(request.axes)
        if any(isinstance(a, People) for a in request.aggregates) and table.person is None:
            raise UnitMismatch(
                left="a count of people",
                right=str(table.unit),
                hint="protect=people(...) says who a person is",
            )
    return table.read(lambda: _cells(table, requests, key))


def _cells(table: Table, requests: Sequence[Request], key: bytes | None) -> list[Cells]:
    out: dict[int, Cells] = {}
    for relation, group in _passes(table, requests, key):
        for index, cells in zip(group, _one_pass(table, relation, [requests[i] for i in group]), strict=True):
            out[index] = cells
    return [out[i] for i in range(len(requests))]


def _passes(table: Table, requests: Sequence[Request], key: bytes | None) -> list[tuple[Any, list[int]]]:
    """Which requests are answered by one query. Decided by the requests alone, never by data."""
    groups: list[tuple[Any, bool, list[int]]] = []
    for index, request in enumerate(requests):
        relation = bounded_relation(table, request.limited, key=key)
        fixed = not request.known or any(isinstance(a, People) for a in request.aggregates)
        for held, held_fixed, members in groups:
            first = requests[members[0]]
            same = request.axes == first.axes and request.sparse == first.sparse
            if held is not relation or ((fixed or held_fixed) and not same):
                continue
            axes = {a for i in (*members, index) for a in requests[i].axes}
            if same or math.prod(a.size or 1 for a in axes) <= REFINEMENT:
                members.append(index)
                break
        else:
            groups.append((relation, fixed, [index]))
            continue
    return [(relation, members) for relation, _, members in groups]


PREPARED = 64
"""How many compiled queries a table keeps: the same question again pays for no compilation."""


def _one_pass(table: Table, relation: Any, requests: list[Request]) -> list[Cells]:
    place = (id(relation), tuple(requests))
    kept = table.prepared.get(place)
    if kept is not None and kept[0] is relation:
        _, start, names, columns, coded = kept
        return _collected(table, start, [_Collector(r, names, columns, coded) for r in requests])
    reader = reader_of(table, relation)
    axes = list(dict.fromkeys(a for r in requests for a in r.axes))
    wanted = list(dict.fromkeys(a for r in requests for a in r.aggregates))
    measures = {f"v{i}": reader.aggregate(a) for i, a in enumerate(wanted)}
    if requests[0].sparse:
        return _occupied(table, relation, requests, measures, {a: f"v{i}" for i, a in enumerate(wanted)})
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
    columns = {a: f"v{i}" for i, a in enumerate(wanted)}
    start = table.dialect.batches(query)
    if len(table.prepared) >= PREPARED:
        table.prepared.clear()
    table.prepared[place] = (relation, start, names, columns, reader.coded)
    return _collected(table, start, [_Collector(r, names, columns, reader.coded) for r in requests])


def _collected(table: Table, start: Callable[[], Iterator[Any]], results: list[_Collector]) -> list[Cells]:
    for batch in _read(table, start):
        for result in results:
            result.add(batch)
    return [r.cells() for r in results]


def _read(table: Table, start: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    return door.batches(start, source=table.source)


def _occupied(
    table: Table,
    relation: Any,
    requests: list[Request],
    measures: dict[str, Any],
    columns: dict[Aggregate, str],
) -> list[Cells]:
    """Requests for the occupied cells of the same axes: one group-by, keys as numbers."""
    reader, axes = reader_of(table, relation), requests[0].axes
    limbs = key_limbs(axes, reader)
    keys = {f"k{i}": limb_key(limb, reader) for i, limb in enumerate(limbs)}
    gathered = Occupied(axes, limbs, columns, reader)
    for batch in _read(table, table.dialect.batches(relation.group_by(**keys).aggregate(**measures))):
        gathered.add(batch)
    found, values = gathered.cells()
    return [Cells(request=r, values={a: values[a] for a in r.aggregates}, keys=(found,)) for r in requests]


class _Collector:
    """Adds up batches of engine rows into the cells of one request."""

    def __init__(
        self, request: Request, names: dict[Axis, str], columns: dict[Aggregate, str], coded: frozenset[str]
    ) -> None:
        self.coded = coded
        self.request = request
        self.names = names
        self.columns = columns
        self.shape = tuple(a.size or 0 for a in request.axes)
        self.size = math.prod(self.shape) if request.known else 0
        self.sums: dict[Aggregate, Integers] = {
            a: np.zeros(self.size, dtype=np.int64) for a in request.aggregates
        }
        self.open: list[Any] = []

    def add(self, batch: Any) -> None:
        if not self.request.known:
            self.open.append(batch)
            return
        index = np.zeros(batch.num_rows, dtype=np.int64)
        valid = np.ones(batch.num_rows, dtype=bool)
        for axis in self.request.axes:
            here, good = _positions(axis, batch.column(self.names[axis]), coded=axis.column in self.coded)
            index = index * (axis.size or 0) + here
            valid &= good
        for aggregate in self.request.aggregates:
            values = _integers(batch.column(self.columns[aggregate]))
            self.sums[aggregate] = _added(self.sums[aggregate], index[valid], values[valid])

    def cells(self) -> Cells:
        if self.request.known:
            values = {a: s.reshape(self.shape) for a, s in self.sums.items()}
            return Cells(request=self.request, values=values)
        return self._open_cells()

    def _open_cells(self) -> Cells:
        import pyarrow as pa

        table = pa.Table.from_batches(self.open) if self.open else None
        if table is None:
            empty = {a: np.zeros(0, dtype=np.int64) for a in self.request.aggregates}
            return Cells(
                request=self.request, values=empty, keys=tuple(np.zeros(0, object) for _ in self.request.axes)
            )
        valid = np.ones(table.num_rows, dtype=bool)
        keys = []
        for axis in self.request.axes:
            column = table.column(self.names[axis]).combine_chunks()
            if isinstance(axis, Open):
                keys.append(np.asarray(column.to_numpy(zero_copy_only=False), dtype=object))
                valid &= np.asarray(column.is_valid())
            else:
                here, good = _positions(axis, column, coded=axis.column in self.coded)
                labels = np.empty(len(axis.labels), dtype=object)
                labels[:] = list(axis.labels)
                keys.append(labels[here])
                valid &= good
        values = {
            a: _integers(table.column(self.columns[a]).combine_chunks())[valid]
            for a in self.request.aggregates
        }
        return Cells(request=self.request, values=values, keys=tuple(k[valid] for k in keys))


def _positions(
    axis: Axis, column: Any, *, coded: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Where on the axis each key lies, and whether it lies on it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(axis, Listed) and not coded:
        words = isinstance(axis.values[0], str)
        target = pa.string() if words else pa.float64()
        labels = pa.array([v if words else float(v) for v in axis.values], type=target)
        column = pc.index_in(column.cast(target), value_set=labels)
    good = np.asarray(column.is_valid())
    here = np.asarray(pc.fill_null(column.cast(pa.int64()), 0))
    size = axis.size or 0
    inside = (here >= 0) & (here < size)
    return np.where(inside, here, 0), good & inside


def _integers(column: Any) -> Integers:
    """Engine integers of any width, as int64 where they fit and as Python integers otherwise."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.fill_null(column, 0) if column.null_count else column
    try:
        return np.asarray(column.cast(pa.int64()))
    except pa.ArrowInvalid:
        out = np.empty(len(column), dtype=object)
        out[:] = [int(v) for v in column.to_pylist()]
        return out


def _added(total: Integers, index: npt.NDArray[np.int64], values: Integers) -> Integers:
    """total[index] += values, in wider integers where 64 bits might not hold the result."""
    if not len(values):
        return total
    if values.dtype != object and total.dtype != object:
        top = int(
            np.abs(total, where=total != np.iinfo(np.int64).min, out=np.zeros_like(total)).max(initial=0)
        )
        most = max(abs(int(values.max())), abs(int(values.min())))
        if top + most * len(values) < 1 << 62:
            np.add.at(total, index, values)
            return total
    total = total.astype(object)
    np.add.at(total, index, values.astype(object))
    return total

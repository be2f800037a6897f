"""Every margin of a list of columns, as exact integers: the number of rows in each cell of each set of columns.

A row without a key on an axis (its value is missing, or not declared) lies in a last cell of that axis, so that each
row is counted exactly once in every margin. An engine in this process returns the keys of its rows, which are
counted here, batch by batch. A distributed engine counts, and returns only counts. Both give the same integers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import AnyArray, Integers
from tacit.exact.data_classes import dataclass
from tacit.sources import error_boundary
from tacit.sources.axes import Aggregate, CountRows, positions
from tacit.sources.bounding import bounded_relation, reader_of
from tacit.sources.query import Aggregation, Cells, RowsWanted, run
from tacit.sources.tables import Table

Margin = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginsWanted(RowsWanted):
    """The margins of these axes, each a rising tuple of their places; rows that fail the filter count nowhere."""

    columns: tuple[str, ...] = ()
    margins: tuple[Margin, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each axis, including the cell for rows without a key."""
        return tuple((a.size or 0) + (0 if a.always else 1) for a in self.axes)

    @property
    def names(self) -> frozenset[str]:
        """All columns that are looked at."""
        more = self.where.columns() if self.where is not None else frozenset()
        return frozenset(a.column for a in self.axes) | more


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginCells(Cells):
    """Flattened counts by margin, the last column running fastest. PRIVATE: they have no noise yet."""

    values: dict[Aggregate, AnyArray] = field(default_factory=dict)
    margins: dict[Margin, Integers] = field(repr=False)

    def clear(self) -> None:
        """Drops the counts, even if this object is still held."""
        self.margins.clear()


def read_margins(table: Table, request: MarginsWanted, *, key: bytes | None = None) -> MarginCells:
    """The counts of each margin."""
    if not table.dialect.batchwise:
        return MarginCells(request=request, margins=_by_engine(table, request, key))
    return MarginCells(request=request, margins=table.read(lambda: _here(table, request, key)))


def _here(table: Table, request: MarginsWanted, key: bytes | None) -> dict[Margin, Integers]:
    """Counted in this process, from the keys of the rows."""
    relation = bounded_relation(table, (), key=key)
    reader = reader_of(table, relation)
    wanted: dict[str, Any] = {f"k{i}": reader.key(a) for i, a in enumerate(request.axes)}
    if request.where is not None:
        wanted["w"] = reader.test(request.where)
    start = table.dialect.batches(relation.select(**wanted))

    def gather() -> dict[Margin, Integers]:
        held = [_codes(batch, request, reader.coded, table) for batch in start()]
        sizes = request.sizes
        if not held:
            return {m: np.zeros(math.prod(sizes[i] for i in m), dtype=np.int64) for m in request.margins}
        columns = [np.concatenate([h[i] for h in held]) for i in range(len(sizes))]
        held.clear()
        return counts_of(columns, sizes, request.margins)

    return error_boundary.rows(gather, source=table.source)


def _codes(
    batch: Any, request: MarginsWanted, coded: frozenset[str], table: Table
) -> list[npt.NDArray[np.int32]]:
    """The place on each axis of each row that passes the filter; the last place if it has no key."""
    import pyarrow as pa

    found = pa.Table.from_batches([batch])
    passes = slice(None)
    if request.where is not None:
        passes = np.flatnonzero(np.asarray(found.column("w").fill_null(False).to_numpy(), dtype=bool))  # type: ignore[assignment]
    out = []
    for i, axis in enumerate(request.axes):
        here, good = positions(axis, found.column(f"k{i}"), coded=axis.column in coded, lists=table.lists)
        # An axis on which every row has a key has no last place: positions() puts what it cannot read at 0.
        absent = 0 if axis.always else axis.size or 0
        out.append(np.where(good, here, absent).astype(np.int32)[passes])
    return out


def counts_of(
    columns: Sequence[npt.NDArray[Any]], sizes: Sequence[int], margins: Sequence[Margin]
) -> dict[Margin, Integers]:
    """Counts of codes by margin, flattened; a prefix that several margins share is multiplied out once."""
    found: dict[Margin, Integers] = {}
    prefix: tuple[Margin, AnyArray] | None = None
    rows = len(columns[0]) if columns else 0
    for margin in sorted(margins):
        *first, last = margin or (0,)
        if prefix is None or prefix[0] != tuple(first):
            held = np.zeros(rows, dtype=np.int64)
            for i in first:
                held = held * sizes[i] + columns[i]
            prefix = (tuple(first), held)
        index = prefix[1] * sizes[last] + columns[last] if margin else prefix[1]
        found[margin] = np.bincount(index, minlength=math.prod(sizes[i] for i in margin)).astype(np.int64)
    return found


def _by_engine(table: Table, request: MarginsWanted, key: bytes | None) -> dict[Margin, Integers]:
    """Counted by the engine over declared keys; cells without a key are the rest of the smaller margins."""
    needed = {s for m in request.margins for k in range(len(m) + 1) for s in itertools.combinations(m, k)}
    ordered = sorted(needed, key=lambda m: (len(m), m))
    count = CountRows(where=request.where)
    asked = [
        Aggregation(axes=tuple(request.axes[i] for i in m), aggregates=(count,), groups=()) for m in ordered
    ]
    known = {
        m: np.asarray(c.values[count], dtype=np.int64)
        for m, c in zip(ordered, run(table, asked, key=key), strict=True)
    }
    always = [a.always for a in request.axes]
    return {m: np.ravel(_with_absent(m, known, always)) for m in request.margins}


def _with_absent(margin: Margin, known: Mapping[Margin, Integers], always: Sequence[bool]) -> Integers:
    """The table with a last cell on each axis: rows with some keys, less the rows with one more key.

    A margin of fewer columns counts rows with any keys of the other columns; subtracting its refinements, axis by
    axis, leaves the rows without a key there.
    """

    def extended(have: Margin, left: Margin) -> Integers:
        """Axes in `have` with keys only, then those in `left` with their last cell."""
        if not left:
            return known[tuple(sorted(have))]
        column, rest = left[0], left[1:]
        with_key = extended((*have, column), rest)
        if always[column]:
            return with_key
        axis = tuple(sorted((*have, *left))).index(column)
        without = extended(have, rest)
        return np.concatenate([with_key, np.expand_dims(without - with_key.sum(axis=axis), axis)], axis=axis)

    return extended((), margin)

"""Rows for training, brought into the custodian's process: the one exception to "rows stay in the engine".

A function (a density, a classifier, a regression function) is no sum that an engine adds up. Its rows are read through
the door like all others: declared, clamped, rounded to their grids, and bounded, so that a person has at most the
declared number of them. A value is a whole number of steps, or missing; a row that does not pass the filter is missing
as a whole. What a row becomes depends on that row alone, and nothing here says how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats
from tacit.sources import door
from tacit.sources.aggregates import Aggregate
from tacit.sources.axes import Axis, Listed
from tacit.sources.bounding import bounded_relation, reader_of
from tacit.sources.expressions import Expression
from tacit.sources.places import positions
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Category
from tacit.sources.tables import Table

__all__ = ["RowsWanted", "TrainingRows", "read_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsWanted(Aggregation):
    """Columns of the rows that pass a filter; `columns` are measured, `categories` have declared values.

    Nothing is added up: there are no aggregates, and no cells.
    """

    columns: tuple[str, ...]
    categories: tuple[str, ...] = ()
    where: Expression | None = None
    aggregates: tuple[Aggregate, ...] = ()

    @property
    def limited(self) -> tuple[Axis, ...]:
        """A limit on groups is about groups, of which a function has none."""
        return ()

    @property
    def names(self) -> frozenset[str]:
        """All columns that are looked at."""
        more = self.where.columns() if self.where is not None else frozenset()
        return frozenset({*self.columns, *self.categories}) | more


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows(Cells):
    """Values by column, one entry a row, NaN where missing. PRIVATE: they have no noise, and are let go by `clear`.

    Measured columns are in steps above the lowest, from 0 to the width; categories are places in their lists.
    """

    values: dict[Aggregate, Any] = field(default_factory=dict)
    rows: dict[str, Floats] = field(repr=False)

    def clear(self) -> None:
        """Lets go of the rows, wherever this object is still held."""
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

    return door.rows(gather, source=table.source)


def _steps(column: Any, passes: npt.NDArray[np.bool_]) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    good = np.asarray(column.is_valid()) & passes
    steps = np.asarray(pc.fill_null(column.cast(pa.int64()), 0)).astype(np.float64)
    return np.where(good, steps, np.nan)

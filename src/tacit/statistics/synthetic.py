"""Synthetic rows from released tables: any number of them, with the schema's types.

Post-processing: rows are drawn from released numbers, so they cost nothing and reveal no more.
They are as good as the tables. Columns that are never in one table are independent, values inside a bin are
uniform on the column's grid, and noise stays noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, TooManyCells, UnknownColumn
from tacit.exact.arrays import Integers
from tacit.exact.data_classes import dataclass
from tacit.noise import uniform_integer
from tacit.noise.source import Source, default_source
from tacit.sources.axes import Axis, Bins, Cut, Listed, OpenAxis, codes_of
from tacit.sources.columns import Category, Date, Flag, Integer, Number
from tacit.sources.schema import Schema
from tacit.statistics.base import Question
from tacit.statistics.families import NoisyTable, components, consistent_margins, fit_table, junction_order
from tacit.statistics.hierarchy import Hierarchy

_GRAIN = 1 << 52
DataFrame = Any
"""A pandas DataFrame; pandas is imported where it is used."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountTable:
    """A released table: its axes, and counts for every cell, or for the listed cells of a sparse one.

    `keys` has one row for each listed cell and one column for each axis: places on the axis, or for undeclared
    keys the words themselves; or it is a list of places in the flattened table (C order).
    """

    axes: tuple[Axis, ...]
    counts: npt.NDArray[Any]
    keys: Any = None
    variance: float = 1.0

    def __post_init__(self) -> None:
        axes, counts = tuple(self.axes), np.asarray(self.counts)
        if not axes:
            raise EmptyComposition(what="the list of axes", hint="a single total holds no columns to draw")
        if counts.dtype.kind not in "iuf" or not bool(np.isfinite(counts.astype(np.float64)).all()):
            raise InvalidParameter(
                parameter="counts", value=f"array of {counts.dtype}", must="hold finite numbers"
            )
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "counts", counts)
        if self.keys is not None:
            object.__setattr__(self, "keys", _places(self.keys, axes, counts.size))
        elif counts.shape != tuple(a.size for a in axes):
            raise InvalidParameter(
                parameter="counts", value=counts.shape, must=f"have the shape {tuple(a.size for a in axes)}",
                hint="or give the keys of a sparse table",
            )  # fmt: skip

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(a.column for a in self.axes)


def tables_of(
    question: Question,
    values: Mapping[str, npt.ArrayLike],
    *,
    keys: Sequence[Sequence[Any]] | None = None,
    variances: Mapping[str, float] | None = None,
) -> list[CountTable]:
    """The released parts of a count, of margins, of a hierarchy or of a sparse histogram, as tables to draw from.

    `values` are the released (or valid) counts of each part; of a hierarchy its leaves are used. `keys` are the
    labels of the cells, one list for each axis, if they were not declared or only some cells were released.
    """
    statistic = question.statistic
    if isinstance(statistic, Hierarchy):
        held: dict[Any, float] = {}
        for part, nodes in zip(question.parts, question.details["levels"], strict=True):
            held |= dict(zip(nodes, np.asarray(values[part.name]).ravel().tolist(), strict=True))
        for node in (n for n in question.details["leaves"] if n not in held):
            raise InvalidParameter(parameter="values", value=node, must="have a count for every leaf")
        counts = np.array([held[n] for n in question.details["leaves"]])
        return [CountTable(axes=question.axes, counts=counts.reshape([a.size or 0 for a in question.axes]))]
    if not statistic.rows_are_drawn_from:
        raise InvalidParameter(
            parameter="question", value=statistic.kind, must="be a count, margins, a hierarchy or a sparse histogram",
            hint="rows are drawn from counts",
        )  # fmt: skip
    out = []
    for part in (p for p in question.parts if p.axes):
        places = None
        if keys is not None:
            columns = [_from_labels(a, k) for a, k in zip(part.axes, keys, strict=True)]
            places = np.empty((len(columns[0]), len(columns)), dtype=object)
            for i, column in enumerate(columns):
                places[:, i] = column
        spread = 1.0 if variances is None else float(variances.get(part.name, 1.0))
        out.append(
            CountTable(axes=part.axes, counts=np.asarray(values[part.name]), keys=places, variance=spread)
        )
    return out


def _from_labels(axis: Axis, labels: Sequence[Any]) -> list[Any]:
    if isinstance(axis, OpenAxis):
        return list(labels)
    if isinstance(axis, Cut) and axis.count == axis.levels:
        # One key for each value: no table of labels, however many there are.
        return [int(axis.values.steps_of(label)) - axis.values.lowest for label in labels]
    place = {label: i for i, label in enumerate(axis.labels)}
    try:
        return [place[label if not isinstance(label, list) else tuple(label)] for label in labels]
    except KeyError:
        raise InvalidParameter(
            parameter="keys", value=axis.column, must="be labels of the axis", hint="as they were released"
        ) from None


def synthetic_rows(
    tables: CountTable | Sequence[CountTable],
    *,
    schema: Schema,
    rows: int,
    source: Source | None = None,
) -> DataFrame:
    """Rows drawn from one released table, or from the distribution of largest entropy with several released margins.

    One table: cells in proportion to their counts, negative ones cut off. Several: tables that share no column are
    independent; those that form a junction tree are drawn table by table; others are fitted on all their columns
    (up to 4 million cells). Randomness comes from the noise room; a seeded source is for tests.
    """
    given = [tables] if isinstance(tables, CountTable) else list(tables)
    if not given:
        raise EmptyComposition(what="the list of tables")
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
        raise InvalidParameter(parameter="rows", value=rows, must="be a whole number of at least 0")
    source = source if source is not None else default_source()
    axes: dict[str, Axis] = {}
    for table in given:
        for axis in table.axes:
            if axis.column not in schema:
                raise UnknownColumn(column=axis.column, known=schema)
            if axes.setdefault(axis.column, axis) != axis:
                raise InvalidParameter(
                    parameter="tables", value=axis.column, must="have the same keys in every table"
                )
    drawn = _draw(given, rows, source)
    return _frame({c: (axes[c], drawn[c]) for c in schema if c in axes}, schema, rows, source)


def _draw(tables: list[CountTable], rows: int, source: Source) -> dict[str, Any]:
    """The place (or word) of each row, column by column."""
    if len(tables) == 1:
        return _from_one(tables[0], rows, source)
    if any(t.keys is not None for t in tables):
        raise InvalidParameter(
            parameter="tables", value="a sparse table among several", must="be one, if it is sparse",
            hint="draw from it alone, or give its dense margins",
        )  # fmt: skip
    noisy = [NoisyTable(columns=t.columns, values=t.counts, variance=t.variance) for t in tables]
    fitted = consistent_margins(noisy)
    out: dict[str, Any] = {}
    for group in components([t.columns for t in tables]):
        order = junction_order(group)
        if order is None:
            fit = fit_table([n for n in noisy if n.columns in group])
            cells = _cells(fit.values.ravel(), rows, source)
            places = np.unravel_index(cells, fit.values.shape)
            out |= dict(zip(fit.columns, places, strict=True))
            continue
        for columns, shared in order:
            values = next(x for n, x in zip(noisy, fitted, strict=True) if n.columns == columns)
            _extend(out, columns, shared, np.maximum(values, 0.0), rows, source)
    return out


def _from_one(table: CountTable, rows: int, source: Source) -> dict[str, Any]:
    cells = _cells(table.counts.ravel(), rows, source)
    if table.keys is not None:
        return {c: keys[cells] for c, keys in zip(table.columns, table.keys, strict=True)}
    places = np.unravel_index(cells, table.counts.shape)
    return dict(zip(table.columns, places, strict=True))


def _cells(weights: npt.NDArray[Any], rows: int, source: Source) -> Integers:
    """Cells in proportion to their weights: exactly for whole ones, to 2^-52 for real ones."""
    positive = np.maximum(weights, 0)
    total = float(positive.sum()) if positive.size else 0.0
    if total <= 0:
        raise EmptyComposition(what="a released table", hint="none of its counts is above 0")
    if positive.dtype.kind == "f":
        positive = np.rint(positive * (_GRAIN / total)).astype(np.int64)
    ends = np.cumsum(positive.astype(np.int64))
    drawn = uniform_integer(int(ends[-1]), size=(rows,), source=source)
    return np.searchsorted(ends, drawn, side="right").astype(np.int64)


def _extend(
    out: dict[str, Any],
    columns: tuple[str, ...],
    shared: tuple[str, ...],
    values: Any,
    rows: int,
    source: Source,
) -> None:
    """Draws the new columns of a table, given those that it shares with the earlier ones."""
    new = [c for c in columns if c not in shared]
    moved = values.transpose([columns.index(c) for c in (*shared, *new)])
    sizes = moved.shape[len(shared) :]
    table = moved.reshape(-1, math.prod(sizes))
    given = np.zeros(rows, dtype=np.int64)
    for c in shared:
        given = given * moved.shape[shared.index(c)] + out[c]
    # A shared key that this table has never seen takes the table's distribution without it.
    empty = table.sum(axis=1) <= 0
    if bool(empty.any()):
        overall = table.sum(axis=0)
        table = np.where(empty[:, None], overall if overall.any() else 1.0, table)
    ends = np.cumsum(table, axis=1)
    ends /= ends[:, -1:]
    uniform = source.words(rows) >> np.uint64(11)
    # Row s of the table lies in (s, s + 1]: one search for all rows.
    flat = (ends + np.arange(len(ends))[:, None]).ravel()
    found = np.searchsorted(flat, given + uniform.astype(np.float64) * 2.0**-53, side="right")
    cells = np.clip(found - given * table.shape[1], 0, table.shape[1] - 1)
    for c, place in zip(new, np.unravel_index(cells, sizes), strict=True):
        out[c] = place.astype(np.int64)


def _frame(drawn: dict[str, tuple[Axis, Any]], schema: Schema, rows: int, source: Source) -> DataFrame:
    import pyarrow as pa

    columns = {name: arrow_column(axis, places, schema, source) for name, (axis, places) in drawn.items()}
    return pa.table(columns).to_pandas(date_as_object=False)


def arrow_column(axis: Axis, places: Any, schema: Schema, source: Source) -> Any:
    """An Arrow column of the declared type."""
    import pyarrow as pa

    column = schema[axis.column]
    if isinstance(axis, OpenAxis):
        return pa.array([str(v) for v in places], type=pa.string())
    if isinstance(axis, Listed):
        words = isinstance(column, Category) and column.of_words
        keys = pa.array(list(axis.values), type=pa.string() if words else pa.int64())
        codes = pa.array(places, type=pa.int32())
        return pa.DictionaryArray.from_arrays(codes, keys) if words else keys.take(codes)
    steps = _steps(axis, places, source)
    match column:
        case Number():
            return pa.array(steps.astype(np.float64) * float(column.spacing), type=pa.float64())
        case Integer():
            return pa.array(steps, type=pa.int64())
        case Flag():
            return pa.array(steps.astype(bool), type=pa.bool_())
        case Date():
            return pa.array(steps.astype(np.int32), type=pa.date32())
    raise _no_values(axis)


def _steps(axis: Axis, places: Integers, source: Source) -> Integers:
    """A uniform step of the grid inside each row's bin."""
    if isinstance(axis, Cut):
        ends = [axis.values.lowest - (-(places + k) * axis.levels // axis.count) for k in (0, 1)]
        if axis.count == axis.levels:
            ends = [axis.values.lowest + places, axis.values.lowest + places + 1]
    elif isinstance(axis, Bins):
        steps = np.array(axis.steps, dtype=np.int64)
        ends = [steps[places], steps[places + 1]]
    else:
        raise _no_values(axis)
    low = np.clip(ends[0], axis.values.lowest, axis.values.highest)
    high = np.clip(ends[1] - 1, low, axis.values.highest)
    width = high - low + 1
    if bool((width == 1).all()):
        return np.asarray(low)
    # A 52-bit fraction of the bin's width; no privacy rests on its last bits.
    words = source.words(places.size) >> np.uint64(12)
    inside = np.floor(words.astype(np.float64) * 2.0**-52 * width).astype(np.int64)
    return np.asarray(low + np.minimum(inside, width - 1))


def _no_values(axis: Axis) -> InvalidParameter:
    return InvalidParameter(
        parameter="axes", value=axis.column, must="have keys that stand for values",
        hint="group the column by its categories or by bins",
    )  # fmt: skip


def _places(keys: Any, axes: tuple[Axis, ...], cells: int) -> list[Any]:
    """One array for each axis; checks places against the axes."""
    out: list[Any]
    array = np.asarray(keys)
    if array.ndim == 1 and array.dtype.kind in "uV" and all(a.size is not None for a in axes):
        # The keys of a sparse histogram, as its mechanism gives them.
        out = [np.asarray(c).astype(np.int64) for c in codes_of(array, axes)]
    elif array.ndim == 1 and not (len(axes) == 1 and isinstance(axes[0], OpenAxis)):
        sizes = [a.size for a in axes]
        if any(s is None for s in sizes):
            raise InvalidParameter(parameter="keys", value=array.shape, must="have one column for each axis")
        rest = [int(v) for v in array.ravel()]
        if rest and not 0 <= min(rest) <= max(rest) < math.prod(s for s in sizes if s is not None):
            raise TooManyCells(
                cells=max(rest) + 1, limit=math.prod(s or 1 for s in sizes), hint="a key is outside"
            )
        split: list[list[int]] = []
        for size in reversed(sizes):
            split.append([v % (size or 1) for v in rest])
            rest = [v // (size or 1) for v in rest]
        out = [np.array(s, dtype=np.int64) for s in reversed(split)]
    else:
        shaped = array.reshape(-1, 1) if array.ndim == 1 else array
        if shaped.ndim != 2 or shaped.shape[1] != len(axes):
            raise InvalidParameter(parameter="keys", value=array.shape, must="have one column for each axis")
        out = [
            shaped[:, i] if isinstance(a, OpenAxis) else shaped[:, i].astype(np.int64)
            for i, a in enumerate(axes)
        ]
    if any(len(o) != cells for o in out):
        raise InvalidParameter(parameter="keys", value=len(out[0]), must=f"be one for each of {cells} counts")
    for axis, places in zip(axes, out, strict=True):
        if (
            not isinstance(axis, OpenAxis)
            and places.size
            and not 0 <= places.min() <= places.max() < (axis.size or 0)
        ):
            raise InvalidParameter(parameter="keys", value=axis.column, must="lie on the axis")
    return out

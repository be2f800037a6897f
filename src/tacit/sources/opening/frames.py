"""Frames of this process: pandas, Polars and Arrow, copied at the first question into columns that nobody else holds.

The type of a column is decided by its declared type in the frame. A pandas column of objects, and Polars'
Object, are text. A value with a text becomes that text, and any other value becomes missing without affecting
its neighbours.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.sources import error_boundary, spark
from tacit.sources.engines import ROWS, started
from tacit.sources.facts import MARK, Facts, Opened, Wish, bears_the_mark

# Arrow columns made fit for an engine, by rules that no value can break.
#
# Which type a column gets is decided by its type alone. A value that the type cannot hold (bytes that are not UTF-8,
# a moment out of range, a decimal with too many digits, a place outside of a dictionary) becomes missing, alone.

PIECE = 1 << 16
PER_SECOND = {"s": 1_000_000, "ms": 1_000}
DAY = 86_400_000


def plain_type(kind: Any) -> Any:
    """The type in which an engine gets values of this one."""
    import pyarrow as pa

    is_ = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if is_.is_dictionary(kind) or is_.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if is_.is_null(kind):
        # A column without any value has no type; as text it can be declared as anything.
        return pa.string()
    if is_.is_large_string(kind) or is_.is_string_view(kind):
        return pa.large_string()
    if is_.is_binary_view(kind):
        return pa.large_binary()
    if is_.is_float16(kind):
        return pa.float32()
    if is_.is_timestamp(kind) and kind.unit in PER_SECOND:
        return pa.timestamp("us", kind.tz)
    if is_.is_date64(kind):
        return pa.date32()
    if is_.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else pa.float64()
    return kind


def plain_table(table: Any) -> Any:
    """All columns of an Arrow table."""
    import pyarrow as pa

    return pa.table({name: plain_column(table.column(name)) for name in table.column_names})


def plain_column(column: Any) -> Any:
    """A column, whole or in chunks, in its plain type."""
    import pyarrow as pa

    target = plain_type(column.type)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    pieces = [_fit(chunk.slice(at, PIECE), target) for chunk in chunks for at in range(0, len(chunk), PIECE)]
    return pa.chunked_array(pieces, type=target)


def _fit(array: Any, target: Any) -> Any:
    import pyarrow as pa

    array.validate()
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _fit(array.storage, target)
    if pa.types.is_run_end_encoded(kind):
        import pyarrow.compute as pc

        return _fit(pc.run_end_decode(array), target)
    if pa.types.is_dictionary(kind):
        return _looked_up(array, target)
    try:
        made = _converted(array, target)
        made.validate(full=True)
        return made
    except (pa.ArrowInvalid, OverflowError):
        pass
    return _one_by_one(array, target)


def _looked_up(array: Any, target: Any) -> Any:
    """The values of a dictionary of any type; an index outside of it gives a missing value."""
    import numpy as np
    import pyarrow as pa

    values = _fit(array.dictionary, target)
    good = np.asarray(array.indices.is_valid())
    at = np.asarray(array.indices.fill_null(0)).astype(np.uint64)
    good &= at < len(values)
    return values.take(pa.array(np.where(good, at, 0).astype(np.int64), mask=~good))


def _converted(array: Any, target: Any) -> Any:
    import pyarrow as pa

    kind = array.type
    if kind == target:
        return array
    if pa.types.is_timestamp(kind):
        factor = PER_SECOND[kind.unit]
        return _scaled(array, lambda v: v * factor, ((1 << 63) - 1) // factor, pa.int64()).cast(target)
    if pa.types.is_date64(kind):
        return _scaled(array, lambda v: v // DAY, ((1 << 31) - 2) * DAY, pa.int32()).cast(target)
    return array.cast(target)


def _scaled(array: Any, scale: Callable[[Any], Any], most: int, target: Any) -> Any:
    """The whole numbers of timestamps in another unit; missing if they do not fit."""
    import numpy as np
    import pyarrow as pa

    numbers = np.asarray(array.view(pa.int64()).fill_null(0))
    good = np.asarray(array.is_valid()) & (numbers <= most) & (numbers >= -most)
    made = scale(np.where(good, numbers, 0)).astype(target.to_pandas_dtype())
    return pa.array(made, type=target, mask=~good)


def _one_by_one(array: Any, target: Any) -> Any:
    """The slow way, for the few pieces in which something does not fit."""
    import pyarrow as pa

    text = pa.types.is_string(target) or pa.types.is_large_string(target)
    if text:
        views = pa.types.is_string_view(array.type)
        raw = array.cast(pa.binary_view() if views else pa.large_binary() if _large(array) else pa.binary())
        return pa.array([None if v is None else _text(v) for v in raw.to_pylist()], type=target)
    return pa.array([_value(array, i, target) for i in range(len(array))], type=target)


def _large(array: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_large_string(array.type))


def _text(value: bytes) -> str | None:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _value(array: Any, place: int, target: Any) -> Any:
    import pyarrow as pa

    try:
        made = pa.array([array[place].as_py()], type=target)
        made.validate(full=True)
        return made[0].as_py()
    except Exception:
        return None


PROBLEM = "has a column of a type that cannot be read"
HINT = "give every declared column a type of numbers, text, dates or truth values"
COMPUTED = "the Polars query fails for no row"


def open_frame(data: Any, kind: str, wish: Wish) -> Opened:
    """The frame as a table, which is filled at the first question."""
    source = f"the {kind} table"
    names, empty, columns, conditions = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}[kind](data)
    wish.check(names, source)

    def schema() -> Any:
        import pyarrow as pa

        return pa.schema([(n, plain_type(empty(n))) for n in wish.columns])

    def types() -> tuple[tuple[str, str], ...]:
        return tuple((field.name, str(field.type)) for field in schema())

    kept = error_boundary.metadata(schema, source=source, problem=PROBLEM, hint=HINT)
    # A frame may get other values, in other types, until it is copied.
    made_up = MARK in names or (kind == "pyarrow" and bears_the_mark(data.schema.metadata))
    facts = Facts(state=tuple((f.name, str(f.type)) for f in kept), made_up=made_up)

    def rows() -> Any:
        return _copied(columns(wish.columns), kept)

    def shown(show: Callable[[], Any]) -> Any:
        return error_boundary.metadata(show, source=source, problem=PROBLEM, hint=HINT)

    if wish.spark:
        place = spark.Place(spark.local_session(wish.memory))
        return Opened(
            relation=shown(lambda: place.fill([], kept)),
            source=source,
            close=place.close,
            load=lambda: place.fill(rows().to_batches(), kept),
            conditions=conditions,
            facts=facts,
            now=types,
        )
    duck = started(wish.memory, source)
    try:
        relation = shown(lambda: duck.offer(kept.empty_table(), ROWS))
    except BaseException:
        duck.close()
        raise
    return Opened(
        relation=relation,
        source=source,
        close=duck.close,
        load=lambda: duck.offer(rows(), ROWS),
        conditions=conditions,
        facts=facts,
        now=types,
    )


Parts = tuple[list[str], Callable[[str], Any], Callable[[Iterable[str]], dict[str, Any]], tuple[str, ...]]


def _copied(columns: dict[str, Any], schema: Any) -> Any:
    """A separate Arrow table in memory, so that later changes of the frame have no effect."""
    import pyarrow as pa

    table = pa.table({name: plain_column(column) for name, column in columns.items()}).cast(schema)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(stream.getvalue()).read_all()


def _refuse(data: Any) -> InvalidParameter:
    return InvalidParameter(
        parameter="data", value=type(data).__name__,
        must="be a path, a DataFrame, an Arrow table, a Spark table or an Ibis table",
        hint='for example "survey.parquet"',
    )  # fmt: skip


def _arrow(data: Any) -> Parts:
    import pyarrow as pa

    if not isinstance(data, pa.Table | pa.RecordBatch):
        raise _refuse(data)
    return (
        data.schema.names,
        lambda name: data.schema.field(name).type,
        lambda names: {n: data.column(n) for n in names},
        (),
    )


def _polars(data: Any) -> Parts:
    import polars as pl
    import pyarrow as pa

    if not isinstance(data, pl.DataFrame | pl.LazyFrame):
        raise _refuse(data)
    lazy = isinstance(data, pl.LazyFrame)
    schema = error_boundary.metadata(
        data.collect_schema, source="the polars table", problem=PROBLEM, hint=HINT
    )

    def empty(name: str) -> Any:
        if schema[name] == pl.Object:
            return pa.string()
        return pl.DataFrame(schema={name: schema[name]}).to_arrow().schema.field(name).type

    def columns(names: Iterable[str]) -> dict[str, Any]:
        frame: Any = data.select(list(names))
        frame = frame.collect() if lazy else frame
        return {
            n: _texts(frame[n].to_list()) if schema[n] == pl.Object else frame.select(n).to_arrow().column(n)
            for n in names
        }

    return list(schema), empty, columns, (COMPUTED,) if lazy else ()


def _pandas(data: Any) -> Parts:
    import pandas as pd

    if not isinstance(data, pd.DataFrame):
        raise _refuse(data)

    def columns(names: Iterable[str]) -> dict[str, Any]:
        return {name: _series(data[name]) for name in names}

    names = [n for n in data.columns if isinstance(n, str)]
    return names, lambda name: _series(data[name].iloc[:0]).type, columns, ()


def _series(series: Any) -> Any:
    """A pandas column; its type depends on its dtype alone."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(series, pd.DataFrame):
        raise TypeError("two columns of one name")
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        values = plain_column(_series(series.cat.categories.to_series()))
        codes = np.asarray(series.cat.codes)
        return values.take(pa.array(np.where(codes < 0, 0, codes).astype(np.int64), mask=codes < 0))
    if isinstance(dtype, pd.SparseDtype):
        return _series(series.sparse.to_dense())
    if dtype.kind == "O" and not isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return _texts(series.tolist())
    if isinstance(dtype, pd.StringDtype):
        try:
            return pa.array(series, from_pandas=True)
        except (UnicodeEncodeError, pa.ArrowInvalid):
            return _texts(series.tolist())
    return pa.array(series, from_pandas=True)


def _texts(values: list[Any]) -> Any:
    """Objects as text: all at once if all are text, otherwise one by one, with the same outcome."""
    import pyarrow as pa

    if all(type(v) is str or v is None for v in values):
        try:
            return pa.array(values, type=pa.large_string())
        except (UnicodeEncodeError, pa.ArrowInvalid):
            pass
    return pa.array([text_of_object(v) for v in values], type=pa.large_string())


def text_of_object(value: Any, *, key: bool = False) -> str | None:
    """The text of one object; None if it has none. No behaviour of an object can stop it.

    key: as in columns of numbers, a whole number is its own key, and any other number has no key.
    """
    try:
        if key and isinstance(value, float | decimal.Decimal):
            return str(int(value)) if value == int(value) and -(2**53) < value < 2**53 else None
        return _plain_text(value)
    except Exception:
        return None


def _plain_text(value: Any) -> str | None:
    if isinstance(value, str):
        return value.encode("utf-8").decode("utf-8")
    if value is None or value != value:
        return None
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")
    if hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, float):
        # A person's 3 and 3.0 are one person.
        return (
            str(int(value))
            if math.isfinite(value) and value == int(value) and abs(value) < 2**53
            else repr(value)
        )
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    return None

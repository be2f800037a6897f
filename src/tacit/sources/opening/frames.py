"""Frames of this process: pandas, Polars and Arrow, copied at the first question into columns that nobody else holds.

The type of a column is decided by its declared type in the frame. A pandas column of objects, and Polars' Object, are
text: each value that has a text is that text, and any other value is missing, alone.
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
from tacit.sources import door, spark
from tacit.sources.facts import Facts
from tacit.sources.made_up import bears_the_mark
from tacit.sources.opening import Opened, Wish
from tacit.sources.opening.careful import careful, plain_type
from tacit.sources.opening.duck import ROWS, started
from tacit.sources.twins import MARK

__all__ = ["open_frame", "text_of_object"]

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

    kept = door.metadata(schema, source=source, problem=PROBLEM, hint=HINT)
    # A frame may get other values, in other types, until it is copied.
    made_up = MARK in names or (kind == "pyarrow" and bears_the_mark(data.schema.metadata))
    facts = Facts(state=tuple((f.name, str(f.type)) for f in kept), made_up=made_up)

    def rows() -> Any:
        return _copied(columns(wish.columns), kept)

    def shown(show: Callable[[], Any]) -> Any:
        return door.metadata(show, source=source, problem=PROBLEM, hint=HINT)

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
    """An Arrow table in memory of its own: what becomes of the frame afterwards is nobody's business here."""
    import pyarrow as pa

    table = pa.table({name: careful(column) for name, column in columns.items()}).cast(schema)
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
    schema = door.metadata(data.collect_schema, source="the polars table", problem=PROBLEM, hint=HINT)

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
        values = careful(_series(series.cat.categories.to_series()))
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
    """Objects as text: at once where all of them are text, one by one otherwise, with the same outcome."""
    import pyarrow as pa

    if all(type(v) is str or v is None for v in values):
        try:
            return pa.array(values, type=pa.large_string())
        except (UnicodeEncodeError, pa.ArrowInvalid):
            pass
    return pa.array([text_of_object(v) for v in values], type=pa.large_string())


def text_of_object(value: Any, *, key: bool = False) -> str | None:
    """The text of one object; None where it has none. Nothing that an object does can stop it.

    key: as in columns of numbers, a whole number is its key, and another one has none.
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

"""Parquet files, read in place by the engine, and by way of Arrow if a row stops its reader.

Before the charge, tacit checks the footers: each must exist, and every part named in it must lie within the file.
Files of a pattern may store a column in different types: one missing value makes floats of whole numbers in
pandas, and no row may decide whether a table can be read. Then Arrow reads from the start, in a type for the
values of all files, text if need be. DuckDB's reader fails at bytes that are not UTF-8 and at timestamps out of
its range. Then Arrow reads the same rows, and such values become missing.

All other values must be equal in both readers, or one row would change the values of others. If the types of the two
readers do not guarantee that (as with decimals of more than 38 digits), Arrow reads from the start.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.errors import BadData
from tacit.sources import error_boundary, spark
from tacit.sources.columns import Category
from tacit.sources.engines import INCOMING, ROWS, Duck, literal, name_of, started, text_of
from tacit.sources.facts import MARK, Facts, Opened, Wish, bears_the_mark
from tacit.sources.opening.files import Files
from tacit.sources.opening.frames import plain_table, plain_type, text_of_object

PROBLEM = "is not a readable Parquet file"
HINT = "is it another kind of file, or was it cut off? write it again as Parquet"
TAIL = 8
BATCH = 1 << 16
INFINITE = (1 << 63) - 1
DIGITS = 38
"""The largest number of digits of a decimal; DuckDB reads longer ones wrongly, as doubles."""
MOMENTS = "us"
"""The unit of moments of 96 bits in the engines; nanoseconds would wrap around outside of 1678 to 2262."""
SAME = {("UUID", "BLOB")}
"""Pairs of a DuckDB type and an Arrow type that differ and are cast exactly."""


def open_parquet(asked: Files, wish: Wish) -> Opened:
    """The files as one table."""
    states = asked.states()
    paths = tuple(state.path for state in states)
    schema, alike, made_up = error_boundary.metadata(
        lambda: _checked(asked, paths, wish), source=asked.path, problem=PROBLEM, hint=HINT
    )
    opened = (_in_spark if wish.spark else _in_duckdb)(asked, paths, wish, schema, alike)
    return replace(
        opened, facts=Facts(state=states, protected=paths, made_up=made_up), now=asked.states, in_place=True
    )


def _checked(asked: Files, paths: tuple[Path, ...], wish: Wish) -> tuple[Any, bool, bool]:
    """The schema of the wanted columns; whether every file has it; and whether all files are made up.
    From the footers."""
    import pyarrow as pa

    stored = [name for name in wish.columns if name not in asked.partitions]
    found: list[Any] = []
    made_up = True
    for path in paths:
        asked.values(path)
        schema = _footer(path, stored, asked.path)
        made_up &= MARK in schema.names or bears_the_mark(schema.metadata)
        if clash := [n for n in asked.partitions if n.casefold() in {s.casefold() for s in schema.names}]:
            raise BadData(
                source=asked.path, problem=f"has the column {clash[0]!r} in its files and in their path",
                hint="leave it out of partitions",
            )  # fmt: skip
        wish.check(schema.names, asked.path, but=asked.partitions)
        found.append([schema.field(name).type for name in stored])
    kinds = [_common(set(types)) for types in zip(*found, strict=True)]
    more = [pa.field(n, pa.string()) for n in wish.columns if n in asked.partitions]
    alike = all(types == found[0] for types in found)
    return pa.schema([*map(pa.field, stored, kinds), *more]), alike, made_up


def _common(kinds: set[Any]) -> Any:
    """A type for the values of columns of all these types: a whole number, or else their text."""
    import pyarrow as pa

    some = {kind for kind in kinds if not pa.types.is_null(kind)}
    if len(kinds) == 1 or len(some) == 1:
        return (some or kinds).pop()
    whole = all(pa.types.is_integer(kind) and not pa.types.is_uint64(kind) for kind in some)
    return pa.int64() if whole else pa.large_string()


def _footer(path: Path, stored: list[str], source: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, coerce_int96_timestamp_unit=MOMENTS) as file:
        metadata, schema = file.metadata, file.schema_arrow
    leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    # The words of an enumeration are text to the engines, and bytes to Arrow.
    words = {leaf.path for leaf in leaves if leaf.converted_type == "ENUM"}
    for i, field in enumerate(schema):
        if pa.types.is_binary(field.type) and field.name in words:
            schema = schema.set(i, pa.field(field.name, pa.string()))
    end = path.stat().st_size - TAIL - metadata.serialized_size
    parts = {i for i, leaf in enumerate(leaves) if leaf.path in stored or leaf.path.split(".")[0] in stored}
    for group in (metadata.row_group(i) for i in range(metadata.num_row_groups)):
        for part in (group.column(i) for i in parts):
            first = part.dictionary_page_offset if part.has_dictionary_page else None
            start = min(part.data_page_offset, first or part.data_page_offset)
            if start < 0 or part.total_compressed_size < 0 or start + part.total_compressed_size > end:
                raise BadData(source=source, problem=PROBLEM, hint=HINT)
    return schema


def _in_duckdb(asked: Files, paths: tuple[Path, ...], wish: Wish, schema: Any, alike: bool) -> Opened:
    duck = started(wish.memory, asked.path)

    def one(some: list[Path], said: dict[str, str | None]) -> str:
        listed = ", ".join(name_of(n) for n in wish.columns if n not in said)
        told = [
            f"{'NULL' if v is None else text_of(v)}::VARCHAR AS {name_of(n)}"
            for n, v in said.items()
            if n in wish.columns
        ]
        where = ", ".join(text_of(literal(str(p))) for p in some)
        columns = ", ".join(filter(None, [listed, *told]))
        return f"SELECT {columns} FROM read_parquet([{where}], hive_partitioning=false, union_by_name=false)"

    def query() -> str:
        if not asked.partitions:
            return one(list(paths), {})
        listed = ", ".join(map(name_of, wish.columns))
        return (
            f"SELECT {listed} FROM ("
            + " UNION ALL BY NAME ".join(one([p], asked.values(p)) for p in paths)
            + ")"
        )

    def brought() -> None:
        duck.fill_from(_batches(asked, paths, wish, schema), _plain(schema))

    def shown() -> tuple[bool, Any]:
        empty = _plain(schema).empty_table()
        if not alike:
            return False, duck.copy(empty)
        relation = duck.view(query())
        if same := _same_in_duckdb(duck, schema, empty):
            return same, relation
        duck.drop()
        return same, duck.copy(empty)

    return _opened(asked, shown, close=duck.close, brought=brought)


def _opened(
    asked: Files,
    shown: Callable[[], tuple[bool, Any]],
    *,
    close: Callable[[], Any],
    brought: Callable[[], None],
) -> Opened:
    """The table as the engine reads it, with our own reader as a fallback; by our reader alone if the types differ."""
    try:
        same, relation = error_boundary.metadata(shown, source=asked.path, problem=PROBLEM, hint=HINT)
    except BaseException:
        close()
        raise
    load, rescue = (None, brought) if same else (brought, None)
    return Opened(relation=relation, source=asked.path, close=close, load=load, rescue=rescue)


def _same_in_duckdb(duck: Duck, schema: Any, empty: Any) -> bool:
    """Whether every value has the same type in both readers, or a type that holds the same values."""
    import pyarrow as pa

    direct = duck.types(ROWS)
    duck.offer(empty)
    by_arrow = duck.types(INCOMING)
    long = [f for f in schema if pa.types.is_decimal(f.type) and f.type.precision > DIGITS]
    void = {f.name for f in schema if pa.types.is_null(f.type)}
    pairs = {n: (t, by_arrow[n]) for n, t in direct.items() if n not in void}
    return not long and all(a == b or (a, b) in SAME for a, b in pairs.values())


def _in_spark(asked: Files, paths: tuple[Path, ...], wish: Wish, schema: Any, alike: bool) -> Opened:
    session = spark.local_session(wish.memory)
    place = spark.Place(session)
    said = [(str(p), asked.values(p)) for p in paths]

    def read() -> Any:
        # What stood in a file that has changed since is not to be remembered.
        spark.forget(session, [p for p, _ in said])
        return place.show(spark.read_parquet(session, said, wish.columns))

    def brought() -> None:
        place.fill(_batches(asked, paths, wish, schema), _plain(schema))

    def shown() -> tuple[bool, Any]:
        if not alike:
            return False, place.fill([], _plain(schema))
        place.fill([], _plain(schema))
        by_arrow = dict(session.table(place.view).dtypes)
        relation = read()
        same = by_arrow == dict(session.table(place.view).dtypes)
        return same, relation if same else place.fill([], _plain(schema))

    return _opened(asked, shown, close=place.close, brought=brought)


def _plain(schema: Any) -> Any:
    import pyarrow as pa

    return pa.schema([(f.name, plain_type(_stored_type(f.type))) for f in schema])


def _stored_type(kind: Any) -> Any:
    """DuckDB's type of a column of a Parquet file for which Arrow has recorded a type of its own."""
    import pyarrow as pa

    if pa.types.is_duration(kind):
        return pa.int64()
    return pa.timestamp("us", kind.tz) if _zoned_nanoseconds(kind) else kind


def _zoned_nanoseconds(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns" and kind.tz is not None)


def _as_stored(table: Any) -> Any:
    """The columns with exactly the values that DuckDB reads, since a row of invalid text must not change
    another row.
    """
    import pyarrow as pa

    made = {name: [_same_value(chunk) for chunk in table.column(name).chunks] for name in table.column_names}
    types = {name: _stored_type(table.column(name).type) for name in table.column_names}
    return pa.table({name: pa.chunked_array(chunks, types[name]) for name, chunks in made.items()})


def _same_value(array: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    if pa.types.is_duration(array.type):
        return array.view(pa.int64())
    if not _zoned_nanoseconds(array.type):
        return array
    numbers = np.asarray(array.view(pa.int64()).fill_null(0))
    # The two ends stand for moments without end, in every unit; what is left of a microsecond is cut off.
    made = np.where(np.abs(numbers) == INFINITE, numbers, (numbers - np.fmod(numbers, 1000)) // 1000)
    mask = ~np.asarray(array.is_valid())
    return pa.array(made, pa.int64(), mask=mask).view(_stored_type(array.type))


def _batches(asked: Files, paths: tuple[Path, ...], wish: Wish, schema: Any) -> Iterator[Any]:
    """All rows, with Arrow, a piece at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stored = [name for name in wish.columns if name not in asked.partitions]
    keys = {name for name, column in wish.schema.items() if isinstance(column, Category)}
    for path in paths:
        said = asked.values(path)
        with pq.ParquetFile(path, coerce_int96_timestamp_unit=MOMENTS) as file:
            for batch in file.iter_batches(batch_size=BATCH, columns=stored):
                given = {n: _viewed(batch.column(n), schema.field(n).type, key=n in keys) for n in stored}
                table = plain_table(_as_stored(pa.table(given)))
                for name, value in said.items():
                    if name in wish.columns:
                        table = table.append_column(name, pa.array([value] * len(table), pa.string()))
                yield from table.select(schema.names).cast(_plain(schema)).to_batches()


def _viewed(column: Any, kind: Any, *, key: bool) -> Any:
    """Bytes that the file declares as strings become text, and so do values that other files store as text; other
    columns are unchanged.
    """
    import pyarrow as pa

    if pa.types.is_binary(column.type) and pa.types.is_string(kind):
        return column.view(kind)
    if not pa.types.is_large_string(kind) or column.type == kind:
        return column
    # Of several files that store it in different types.
    plain = plain_type(column.type)
    if pa.types.is_string(plain) or pa.types.is_large_string(plain):
        return column
    return pa.array([_text(value, key=key) for value in column], kind)


def _text(value: Any, *, key: bool) -> str | None:
    """The text of an Arrow value, the same for equal values of any type; None if it has none."""
    try:
        found = value.as_py()
    except Exception:
        return None
    if isinstance(found, datetime.datetime) and found.tzinfo is not None:
        found = found.astimezone(datetime.UTC)
    return text_of_object(found, key=key)

"""Rows that come in batches, brought into the engine at the first question.

Text (of a CSV file, a sheet, a database without types) is given its declared types by DuckDB; batches that have types
(of a statistics file) are taken as they are.

The rules for text are the same on both engines because there is one that reads it: Spark is handed what DuckDB made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tacit.sources import door, spark
from tacit.sources.compiling import Reader
from tacit.sources.opening import Opened, Wish
from tacit.sources.opening.duck import INCOMING, ROWS, started
from tacit.sources.watching import counted

__all__ = ["open_texts", "open_typed"]


def open_texts(
    batches: Callable[[], Iterator[Any]], wish: Wish, *, source: str, conditions: tuple[str, ...] = ()
) -> Opened:
    """A table that is filled at the first question with batches of text, one column for each that is wanted."""
    duck = started(wish.memory, source)

    def text_schema() -> Any:
        import pyarrow as pa

        return pa.schema([(n, pa.large_string()) for n in wish.columns])

    def prepare() -> tuple[str, Any]:
        raw = duck.offer(text_schema().empty_table())
        reader = Reader(raw, wish.schema)
        chosen = {n: reader.stored(n) if n in wish.schema else raw[n] for n in wish.columns}
        query = str(duck.backend.compile(raw.select(**chosen)))
        duck.fill(query)
        return query, duck.backend.table(ROWS)

    def load(query: str) -> None:
        import pyarrow as pa

        duck.offer(pa.RecordBatchReader.from_batches(text_schema(), counted(batches())))
        duck.fill(query)
        duck.backend.con.unregister(INCOMING)

    try:
        query, relation = door.metadata(
            prepare, source=source, problem="cannot be read as text", hint="check its columns"
        )
        if not wish.spark:
            return Opened(
                relation=relation,
                source=source,
                close=duck.close,
                load=lambda: load(query),
                conditions=conditions,
            )
        place, empty = spark.Place(spark.local_session(wish.memory)), relation.to_pyarrow().schema
        shown = door.metadata(
            lambda: place.fill([], empty),
            source=source,
            problem="cannot be shown to Spark",
            hint="check its columns",
        )
    except BaseException:
        duck.close()
        raise

    def handed() -> None:
        load(query)
        place.fill(relation.to_pyarrow_batches(), empty)
        duck.close()

    def close() -> None:
        duck.close()
        place.close()

    return Opened(relation=shown, source=source, close=close, load=handed, conditions=conditions)


def open_typed(batches: Callable[[], Iterator[Any]], schema: Any, wish: Wish, *, source: str) -> Opened:
    """A table that is filled at the first question with Arrow batches of this schema."""
    if wish.spark:
        place = spark.Place(spark.local_session(wish.memory))
        shown = door.metadata(
            lambda: place.fill([], schema),
            source=source,
            problem="cannot be shown to Spark",
            hint="check its columns",
        )
        return Opened(
            relation=shown,
            source=source,
            close=place.close,
            load=lambda: _none(place.fill(batches(), schema)),
        )
    duck = started(wish.memory, source)

    def load() -> None:
        import pyarrow as pa

        duck.offer(pa.RecordBatchReader.from_batches(schema, batches()))
        duck.fill(f"SELECT * FROM {INCOMING}")
        duck.backend.con.unregister(INCOMING)

    try:
        relation = door.metadata(
            lambda: duck.copy(schema.empty_table()),
            source=source,
            problem="cannot be read",
            hint="check its columns",
        )
    except BaseException:
        duck.close()
        raise
    return Opened(relation=relation, source=source, close=duck.close, load=load)


def _none(_: Any) -> None:
    """Nothing."""

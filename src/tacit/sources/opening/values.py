"""Rows that come in batches, brought into the engine at the first question.

DuckDB gives declared types to text (of a CSV file, a sheet, a database without types); batches with types (of a
statistics file) stay unchanged.

The rules for text are the same on both engines because one reader applies them: Spark gets the rows that DuckDB
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tacit.sources import error_boundary, spark
from tacit.sources.columns import Category, Column, Date, Flag, Integer, Number
from tacit.sources.compiling import Reader
from tacit.sources.engines import INCOMING, ROWS, started
from tacit.sources.error_boundary import counted
from tacit.sources.facts import Opened, Wish
from tacit.sources.opening.files import Files
from tacit.sources.schema import Schema

# What is written in a text file, in the one way in which engines read it: 1.5 and 2024-01-31.
#
# A comma in a number, a day that stands first, a word for no value are declared, for all columns of the file alike.
# Each text is looked at by itself, and one that is not written as declared is missing, or stays what the engines read
# as missing. Nothing is guessed.

Rewrite = Callable[[Any], Any]
WRITTEN = r"^[ \t]*([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})"
YEAR_FIRST = {"day-first": r"\3-\2-\1", "month-first": r"\3-\1-\2"}


def rewriter(asked: Files, schema: Schema) -> Rewrite:
    """A call that turns a batch of text columns into what the engines read."""
    declared = dict(schema.items())

    def rewrite(batch: Any) -> Any:
        import pyarrow as pa

        made = {name: _column(asked, declared.get(name), batch.column(name)) for name in batch.schema.names}
        return pa.record_batch(made, schema=batch.schema)

    plain = not asked.missing and asked.decimal != "," and asked.dates not in YEAR_FIRST
    return (lambda batch: batch) if plain else rewrite


def _column(asked: Files, declared: Column | None, texts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if asked.missing:
        words = pa.array(asked.missing, texts.type)
        trimmed = pc.ascii_trim(texts, characters=" \t\r\n\v\f")
        texts = pc.if_else(pc.is_in(trimmed, value_set=words), pa.scalar(None, texts.type), texts)
    if asked.decimal == "," and _is_number(declared):
        # A point is no part of a number that is written with a comma.
        pointed = pc.match_substring(texts, pattern=".")
        with_point = pc.replace_substring(texts, pattern=",", replacement=".")
        texts = pc.if_else(pointed, pa.scalar(None, texts.type), with_point)
    if asked.dates in YEAR_FIRST and isinstance(declared, Date):
        order = YEAR_FIRST[asked.dates]
        texts = pc.replace_substring_regex(texts, pattern=WRITTEN, replacement=order)
    return texts


def _is_number(declared: Column | None) -> bool:
    if isinstance(declared, Category):
        return not declared.of_words
    return isinstance(declared, Number | Integer | Flag)


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
        with duck.coming(counted(batches()), text_schema()):
            duck.fill(query)

    try:
        query, relation = error_boundary.metadata(
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
        shown = error_boundary.metadata(
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
        shown = error_boundary.metadata(
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
        with duck.coming(batches(), schema):
            duck.fill(f"SELECT * FROM {INCOMING}")

    try:
        relation = error_boundary.metadata(
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

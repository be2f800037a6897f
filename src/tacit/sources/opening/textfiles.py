"""CSV and TSV files: text, line by line, until the declared types are given to it, after the charge.

Nothing is guessed from the lines: neither marks nor types. The header alone is read when the file is opened.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.errors import BadData, UnknownColumn
from tacit.sources import door, spark
from tacit.sources.compiling import Reader
from tacit.sources.opening import Opened, Wish
from tacit.sources.opening.duck import INCOMING, ROWS, started
from tacit.sources.opening.files import Files
from tacit.sources.opening.lines import header, records

__all__ = ["MULTILINE", "open_text"]

MULTILINE = "no quote is left open in the file, whose fields may hold line breaks: one would hide the records behind it"


def open_text(asked: Files, wish: Wish) -> Opened:
    """The files as one table, which is filled at the first question."""
    paths = asked.found()
    mark = "\t" if paths[0].name.lower().endswith((".tsv", ".tsv.gz")) else ","
    names = _names(asked, paths, mark, wish)
    duck = started(wish.memory, asked.path)
    conditions = (MULTILINE,) if asked.multiline else ()

    def typed() -> str:
        import pyarrow as pa

        raw = duck.offer(pa.schema([(n, pa.large_string()) for n in wish.columns]).empty_table())
        reader = Reader(raw, wish.schema)
        chosen = {n: reader.stored(n) if n in wish.schema else raw[n] for n in wish.columns}
        return str(duck.backend.compile(raw.select(**chosen)))

    def prepare() -> tuple[str, Any]:
        query = typed()
        duck.fill(query)
        return query, duck.backend.table(ROWS)

    def load(query: str) -> None:
        import pyarrow as pa

        kept = pa.schema([(n, pa.large_string()) for n in wish.columns])
        duck.offer(
            pa.RecordBatchReader.from_batches(kept, _batches(paths, names, wish, mark, asked.multiline))
        )
        duck.fill(query)
        duck.backend.con.unregister(INCOMING)

    try:
        query, relation = door.metadata(
            prepare, source=asked.path, problem="cannot be read as text", hint="check its columns"
        )
        if not wish.spark:
            return Opened(
                relation=relation,
                source=asked.path,
                close=duck.close,
                load=lambda: load(query),
                conditions=conditions,
            )
        # The rules for CSV are the same on both engines because there is one that reads it.
        place, empty = spark.Place(spark.local_session(wish.memory)), relation.to_pyarrow().schema
        shown = door.metadata(
            lambda: place.fill([], empty),
            source=asked.path,
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

    return Opened(relation=shown, source=asked.path, close=close, load=handed, conditions=conditions)


def _names(asked: Files, paths: tuple[Path, ...], mark: str, wish: Wish) -> list[str]:
    problem = "is not a readable CSV file: it has no header"
    hint = "the first line names the columns, each once, in UTF-8, and lines end in a line feed"
    found: list[str] | None = None
    for path in paths:
        here: list[str] = door.metadata(
            functools.partial(header, str(path), mark), source=asked.path, problem=problem, hint=hint
        )
        if found is not None and here != found:
            raise BadData(
                source=asked.path,
                problem="is several files whose headers differ",
                hint="write the same columns to all",
            )
        found = here
    assert found is not None
    for name in wish.columns:
        if name not in found:
            # What was found is not shown: without a header it is somebody's row.
            raise UnknownColumn(
                column=name, known=(), where=asked.path, hint="the first line must name the columns"
            )
    wish.check(found, asked.path)
    return found


def _batches(
    paths: tuple[Path, ...], names: list[str], wish: Wish, mark: str, multiline: bool
) -> Iterator[Any]:
    for path in paths:
        yield from records(str(path), names, wish.columns, mark=mark, multiline=multiline)

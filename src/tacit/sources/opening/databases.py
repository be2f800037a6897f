"""A table or view of a database file of DuckDB or SQLite. tacit never writes to the file.

The name must equal one in the file's catalogue. DuckDB reads its own files in place, with the types of their
columns. SQLite does not enforce the types of its columns: each value arrives as it is stored, and is text
until it gets the declared type, as in a sheet. Python's own module reads SQLite files. tacit loads no
extension of an engine and fetches nothing from the network.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.errors import BadData, UnknownName
from tacit.sources import error_boundary, spark
from tacit.sources.engines import ROWS, Duck, name_of, started, text_of
from tacit.sources.facts import MARK, Facts, Opened, Wish
from tacit.sources.opening.files import Files
from tacit.sources.opening.frames import text_of_object
from tacit.sources.opening.values import open_texts, rewriter

VIEW = "the view or query behind the table gives a value or null for every row, and fails for none"
BASE = "__tacit_base"
PIECE = 20_000
HINT = "is it another kind of file, or is somebody writing to it?"


def open_database(asked: Files, wish: Wish) -> Opened:
    """The table or view."""
    states = asked.states()
    path = _only(asked)
    opened, names = (_duckdb if asked.kind == "DuckDB" else _sqlite)(asked, path, wish)
    # DuckDB holds the file that it has attached: who writes another one in its place changes nothing here.
    return replace(
        opened, facts=Facts(state=states, protected=(path,), made_up=MARK in names), now=asked.states
    )


def names_of(asked: Files) -> list[str]:
    """All columns of the table or view."""
    path = _only(asked)
    if asked.kind == "SQLite":
        return _columns_in_sqlite(asked, path)
    duck = started("1GB", asked.path)
    try:
        place = _attached(asked, path, duck)
        return error_boundary.metadata(
            lambda: list(duck.types(f"(SELECT * FROM {place})")),
            source=asked.path,
            problem=_problem(asked),
            hint=HINT,
        )
    finally:
        duck.close()


def _only(asked: Files) -> Path:
    if asked.view is None:
        raise BadData(
            source=asked.path,
            problem="is a database, and none of its tables or views was named",
            hint='view = "..."',
        )
    paths = asked.found()
    if len(paths) != 1:
        raise BadData(source=asked.path, problem="is several databases", hint="give one")
    return paths[0]


def _problem(asked: Files) -> str:
    return f"is not a readable {asked.kind} database, or its view cannot be read"


def _attached(asked: Files, path: Path, duck: Duck) -> str:
    """The place of the view, in a connection of our own. The file is opened for reading only."""

    base = f"{BASE}_{secrets.token_hex(6)}"

    def found() -> list[tuple[str, str]]:
        duck.run(f"ATTACH {text_of(str(path))} AS {base} (READ_ONLY)")
        names = (
            "SELECT schema_name, {0}_name FROM duckdb_{0}s() WHERE database_name = '"
            + base
            + "' AND NOT internal"
        )
        return [
            (str(s), str(n)) for kind in ("table", "view") for s, n in duck.run(names.format(kind)).fetchall()
        ]

    listed = error_boundary.metadata(found, source=asked.path, problem=_problem(asked), hint=HINT)
    places = [place for place in listed if place[1] == asked.view]
    if not places:
        raise UnknownName(what="table or view", name=str(asked.view), known=tuple(n for _, n in listed))
    if len(places) > 1:
        raise BadData(
            source=asked.path, problem=f"has {asked.view!r} in several schemas", hint="rename one of them"
        )
    return ".".join(map(name_of, (base, *places[0])))


def _duckdb(asked: Files, path: Path, wish: Wish) -> tuple[Opened, list[str]]:
    duck = started(wish.memory, asked.path)
    try:
        place = _attached(asked, path, duck)
        names: list[str] = []

        def shown() -> Any:
            names.extend(duck.types(f"(SELECT * FROM {place})"))
            wish.check(names, asked.path)
            return duck.view(f"SELECT {', '.join(map(name_of, wish.columns))} FROM {place}")

        relation = error_boundary.metadata(shown, source=asked.path, problem=_problem(asked), hint=HINT)
        if not wish.spark:
            opened = Opened(
                relation=relation, source=asked.path, close=duck.close, owned=False, conditions=(VIEW,)
            )
            return opened, names
        spot = spark.Place(spark.local_session(wish.memory))
        empty = relation.limit(0).to_pyarrow().schema
        told = "cannot be shown to Spark"
        seen = error_boundary.metadata(
            lambda: spot.fill([], empty), source=asked.path, problem=told, hint="check its columns"
        )
    except BaseException:
        duck.close()
        raise

    def handed() -> None:
        spot.fill(duck.backend.table(ROWS).to_pyarrow_batches(), empty)
        duck.close()

    def close() -> None:
        duck.close()
        spot.close()

    opened = Opened(relation=seen, source=asked.path, close=close, load=handed, conditions=(VIEW,))
    return opened, names


@contextlib.contextmanager
def _connected(path: Path) -> Iterator[Any]:
    import sqlite3

    # A URI, so that the file is opened for reading alone; what has a meaning in one is written as its code.
    plain = str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(f"file:{plain}?mode=ro", uri=True)
    try:
        # Text is decoded here, value by value: one that is no text would stop the reader.
        connection.text_factory = bytes
        yield connection
    finally:
        connection.close()


def _columns_in_sqlite(asked: Files, path: Path) -> list[str]:
    def found() -> list[str]:
        with _connected(path) as connection:
            rows = connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
            ).fetchall()
            names = [bytes(n).decode() for (n,) in rows]
            if asked.view not in names:
                raise UnknownName(what="table or view", name=str(asked.view), known=tuple(names))
            told = connection.execute(f"SELECT * FROM {name_of(str(asked.view))} LIMIT 0").description
            return [str(column[0]) for column in told]

    return error_boundary.metadata(found, source=asked.path, problem=_problem(asked), hint=HINT)


def _sqlite(asked: Files, path: Path, wish: Wish) -> tuple[Opened, list[str]]:
    names = _columns_in_sqlite(asked, path)
    wish.check(names, asked.path)
    rewrite = rewriter(asked, wish.schema)
    query = f"SELECT {', '.join(map(name_of, wish.columns))} FROM {name_of(str(asked.view))}"

    def batches() -> Iterator[Any]:
        with _connected(path) as connection:
            rows = connection.execute(query)
            while piece := rows.fetchmany(PIECE):
                yield rewrite(_batch(piece, wish.columns))

    return open_texts(batches, wish, source=asked.path, conditions=(VIEW,)), names


def _batch(rows: list[Any], columns: tuple[str, ...]) -> Any:
    import pyarrow as pa

    texts = zip(*rows, strict=True)
    return pa.record_batch(
        {n: pa.array([_text(v) for v in c], pa.large_string()) for n, c in zip(columns, texts, strict=True)}
    )


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode("utf-8") or None
        return None
    return text_of_object(value)

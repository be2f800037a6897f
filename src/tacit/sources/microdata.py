"""A table unchanged, for its custodian: every column, nothing declared, nothing protected.

Numbers computed here are exact and have no guarantee. It serves rooms that measure or treat a table before anything is
published (`tacit.anonymity`), never a release under differential privacy. Rows stay in the engine; answers come back
as Arrow, inside the error boundary.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tacit.errors import BadData, ReadFailed, UnknownName, WrongType
from tacit.sources import error_boundary
from tacit.sources.compiling import bytewise, check_columns
from tacit.sources.engines import DuckDB, engine_of, memory_in_mib, text_of_query
from tacit.sources.facts import Opened, Wish
from tacit.sources.opening.files import Files
from tacit.sources.opening.joining import names_of
from tacit.sources.schema import Schema
from tacit.sources.tables import ENGINES, MEMORY, opened_data

T = TypeVar("T")


class _Undeclared(Schema):
    """The schema of a table without declarations: text stays text."""

    __slots__ = ()

    def __init__(self) -> None:
        self._columns = {}
        self._derived = {}
        self._text = ""


class Microdata:
    """A table in an engine, all of its columns: `relation` is an Ibis table, `ask` gives Arrow."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self.source = opened.source
        self.dialect = engine_of(opened.relation)
        self.engine = self.dialect.name
        self.dialect.prepare(opened.relation)
        # Our own sessions have no collation; a table of the user's may have one, which would make two texts one.
        self.relation = opened.relation if opened.owned else bytewise(opened.relation, self.dialect)
        self.columns: tuple[str, ...] = tuple(self.relation.columns)
        backend = opened.relation.get_backend()
        self._lock = vars(backend).setdefault("_tacit_lock", threading.RLock())
        self._text: str | None = None
        self._loaded = opened.load is None
        self._rescued = False
        self._stack = contextlib.ExitStack()
        if opened.close:
            self._stack.callback(opened.close)
        self._finalize = weakref.finalize(self, _close, self._stack)

    def type_of(self, column: str) -> Any:
        """The Ibis type of a column."""
        return self.relation[column].type()

    def number(self, column: str) -> Any:
        """The column as a number: a number unchanged, a text by its value; null if it is none."""
        value = self.relation[column]
        kind = value.type()
        if kind.is_string():
            return self.dialect.real(value)
        if kind.is_temporal():
            return self.dialect.days(value.cast("date")).cast("float64")
        return value.cast("float64")

    def ask(self, query: Any) -> Any:
        """The result of an Ibis query over `relation`, as an Arrow table."""

        def run() -> Any:
            import pyarrow as pa

            batches = list(self.dialect.batches(query)())
            return pa.Table.from_batches(batches) if batches else query.schema().to_pyarrow().empty_table()

        return self.read(run)

    def one(self, query: Any) -> dict[str, Any]:
        """The only row of a query."""
        row: dict[str, Any] = self.ask(query).to_pylist()[0]
        return row

    def keep(self, query: Any) -> Any:
        """A query whose rows are computed once and held by the engine until the table is closed."""
        kept, drop = self.read(lambda: self.dialect.hold(query))
        if drop is not None:
            self._stack.callback(drop)
        return kept

    def keep_statement(self, write: Callable[[str], str]) -> str | None:
        """`keep` for a statement that contains the text of `relation`; returns the name of the table.

        None if the engine does not take DuckDB's SQL; then the question must be asked through Ibis.
        """
        dialect = self.dialect
        if not isinstance(dialect, DuckDB):
            return None
        backend = self.relation.get_backend()

        def run() -> tuple[str, Callable[[], None]]:
            backend._run_pre_execute_hooks(self.relation)
            if self._text is None:
                self._text = text_of_query(backend, self.relation)
            return dialect.hold_text(backend, write(self._text))

        name, drop = self.read(run)
        self._stack.callback(drop)
        return name

    def held(self, name: str) -> Any:
        """The table that `keep_statement` named, as an Ibis table."""
        return self.read(lambda: self.relation.get_backend().table(name))

    def state(self, text: str) -> tuple[Any, ...]:
        """The only row that a statement about tables from `keep_statement` gives."""
        row: tuple[Any, ...] = self.read(lambda: self.relation.get_backend().con.execute(text).fetchone())
        return row

    def show(self, table: Any) -> Any:
        """An Arrow table (a hierarchy, a list of values) as a table of the same engine."""
        shown, drop = self.read(lambda: self.dialect.show(table, self._opened.relation))
        if drop is not None:
            self._stack.callback(drop)
        return shown

    def rows(self, columns: Sequence[str] | None = None) -> Any:
        """The rows as an Arrow table in this process, where treatments change them value by value."""
        import pyarrow as pa

        found = self.ask(self.relation.select(*(columns or self.columns)))
        for field in found.schema:
            if pa.types.is_nested(field.type):
                raise WrongType(
                    column=field.name, found=f"stored as {field.type}", wanted="a plain value",
                    hint="make columns of its parts first, or leave it out",
                )  # fmt: skip
        return found

    def read(self, action: Callable[[], T]) -> T:
        """The result of an action that asks the engine, inside the error boundary; tried again if a reader failed."""
        with self._lock:
            if not self._loaded and self._opened.load is not None:
                error_boundary.rows(self._opened.load, source=self.source)
                self._loaded = True
            with contextlib.suppress(ReadFailed):
                return error_boundary.rows(action, source=self.source)
            if self._opened.rescue is None or self._rescued:
                raise ReadFailed(source=self.source)
            error_boundary.rows(self._opened.rescue, source=self.source)
            self._rescued = True
            return error_boundary.rows(action, source=self.source)

    def close(self) -> None:
        """Drops what the engine holds."""
        with self._lock:
            self._finalize()

    def __enter__(self) -> Microdata:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_microdata(data: Any, *, engine: str | None = None, memory: str = MEMORY) -> Microdata:
    """The table behind a path, a frame or an Ibis expression, with all its columns. Reads no row."""
    if isinstance(data, Microdata):
        return data
    if engine is not None and (not isinstance(engine, str) or engine not in ENGINES):
        raise UnknownName(what="engine", name=str(engine), known=ENGINES)
    memory_in_mib(memory)
    names = _names(data)
    if not names:
        raise BadData(source="the table", problem="has no columns", hint="give it a header")
    wish = Wish(columns=names, memory=memory, spark=engine == "spark", schema=_Undeclared())
    opened = opened_data(data, wish, engine)

    def made() -> Microdata:
        check_columns(list(names), opened.relation.columns, source=opened.source)
        return Microdata(opened)

    try:
        return error_boundary.metadata(
            made, source=opened.source, problem="cannot be read", hint="check its columns"
        )
    except BaseException:
        if opened.close:
            opened.close()
        raise


def _names(data: Any) -> tuple[str, ...]:
    """All columns of a table that have a name, from headers, footers and types."""
    return tuple(name for name in _listed(data) if name)


def _listed(data: Any) -> tuple[str, ...]:
    if isinstance(data, str | os.PathLike) and not isinstance(data, Files):
        data = Files(path=os.fspath(data))
    if isinstance(data, Files):
        return tuple(dict.fromkeys([*names_of(data), *data.partitions]))
    kind = type(data).__module__.partition(".")[0]
    if kind == "polars" and hasattr(data, "collect_schema"):
        return tuple(
            error_boundary.metadata(data.collect_schema, source="the polars table", problem="cannot be read")
        )
    if kind == "pyarrow" and hasattr(data, "schema"):
        return tuple(data.schema.names)
    return tuple(n for n in getattr(data, "columns", ()) if isinstance(n, str))


def _close(stack: contextlib.ExitStack) -> None:
    with contextlib.suppress(Exception):
        stack.close()

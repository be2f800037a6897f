"""A table as declared: what may be asked of it, for whom it is protected, and how its rows are read.

Opening looks at names and types, from footers, headers and schemas, and at no row. Rows stay in the engine: DuckDB in
this process, with a limit on memory and a private folder for what does not fit, or Spark where its session is. Only
declared columns, and the person's, are read; one thread reads at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from tacit.errors import InvalidParameter, ReadFailed, UnknownName
from tacit.guarantees import GroupOf, People, Unit
from tacit.sources import digests, door, spark
from tacit.sources.engines import engine_of
from tacit.sources.opening import Opened, Wish
from tacit.sources.opening.databases import VIEW, open_database
from tacit.sources.opening.files import Files
from tacit.sources.opening.frames import open_frame
from tacit.sources.opening.joining import Joined, open_joined
from tacit.sources.opening.parquet import open_parquet
from tacit.sources.opening.statfiles import open_statistics
from tacit.sources.opening.textfiles import open_text
from tacit.sources.opening.workbooks import open_workbook
from tacit.sources.places import Lists
from tacit.sources.schema import Schema
from tacit.sources.selection import selected

__all__ = ["Table", "open_table"]

MEMORY = "1GB"
ENGINES = ("duckdb", "spark")
WAYS = {
    "Parquet": open_parquet, "Stata": open_statistics, "SPSS": open_statistics, "SAS": open_statistics,
    "Excel": open_workbook, "DuckDB": open_database, "SQLite": open_database,
}  # fmt: skip
ENGINES_WITH_WINDOWS = ("duckdb", "pyspark")
T = TypeVar("T")
Stamp = tuple[tuple[int, ...], ...]


def people_of(unit: Unit) -> People | None:
    """The person whom a unit protects, alone or with others; None where rows are protected."""
    base = unit.of if isinstance(unit, GroupOf) else unit
    return base if isinstance(base, People) else None


class Table:
    """A table in an engine, as declared.

    `conditions` are what must be believed of the data, for certificates. `bounded` and `prepared` keep rows and queries
    for later questions, only as long as nobody else can have changed what they were made from; `lists` and `shown`
    hold declared lists, in this process and in the engine.
    """

    def __init__(self, opened: Opened, *, schema: Schema, unit: Unit, portable: bool = False) -> None:
        relation = opened.relation
        self.schema = schema
        self.unit = unit
        self.source = opened.source
        self.conditions = opened.conditions
        self.dialect = engine_of(relation)
        self.engine: str = self.dialect.name
        self.portable = portable or self.engine != "duckdb"
        whose = people_of(unit)
        self.person = whose.column if whose else None
        self.columns = tuple(dict.fromkeys([*schema, *([self.person] if self.person else [])]))
        stored = tuple(name for name in self.columns if name not in schema.derived)
        self._opened = opened
        self._lock = _lock_of(relation)
        self._loaded = opened.load is None
        self._rescued = False
        self._seen = self.stamp()
        self._digests: dict[bytes, str] = {}
        self._stamped: dict[bytes, Stamp] = {}
        self._declared = ""
        self.bounded: dict[Any, Any] = {}
        self.prepared: dict[Any, Any] = {}
        self.lists: Lists = {}
        self.shown: dict[Any, Any] = {}
        self.relation = selected(
            relation, stored, schema=schema, person=self.person, engine=self.dialect, source=self.source
        )
        if self.person is not None and self.engine not in ENGINES_WITH_WINDOWS:
            door.metadata(
                self._windows,
                source=self.source,
                problem=f"lives in {self.engine}, which cannot put a person's rows in order",
                hint="give people a table in DuckDB or Spark, or a file",
            )
        self._stack = contextlib.ExitStack()
        self._passing = contextlib.ExitStack()
        if opened.close:
            self._stack.callback(opened.close)
        self._finalize = weakref.finalize(self, _close, self._stack, self._passing)

    def _windows(self) -> None:
        """Whether people can be bounded is known from the engine, before anything is paid: it must say windows."""
        import ibis

        rank = ibis.row_number().over(group_by=self.person, order_by=self.person)
        self.relation.get_backend().compile(self.relation.mutate(__tacit_rank=rank))

    def stamp(self) -> Stamp:
        """What tells one state of the files that are read in place from another."""
        found = [path.stat() for path in self._opened.files if path.exists()]
        return tuple((s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_dev) for s in found)

    def read(self, action: Callable[[], T]) -> T:
        """What an action that asks the engine gives: through the door, one thread at a time.

        Where the engine's own reader of a file stumbled over a row, the rows are brought in once more, in a slower way
        in which such a value is missing, and the action is run again.
        """
        with self._lock:
            try:
                self.ready()
                with contextlib.suppress(ReadFailed):
                    return door.rows(action, source=self.source)
                if self._opened.rescue is None or self._rescued:
                    raise ReadFailed(source=self.source)
                self._forget()
                door.rows(self._opened.rescue, source=self.source)
                self._rescued = True
                return door.rows(action, source=self.source)
            finally:
                if not self._opened.owned:
                    self._forget()

    def ready(self) -> None:
        """The rows are there, and as the files are now."""
        if not self._loaded and self._opened.load is not None:
            door.rows(self._opened.load, source=self.source)
            self._loaded = True
        if self._opened.refresh is not None and (now := self.stamp()) != self._seen:
            self._forget()
            door.rows(self._opened.refresh, source=self.source)
            self._seen, self._rescued = now, False

    def _forget(self) -> None:
        """Lets go of what was made from rows that may no longer be what they were."""
        self.bounded.clear()
        self.prepared.clear()
        self.shown.clear()
        with contextlib.suppress(ReadFailed):
            door.rows(self._passing.close, source=self.source)

    def digest(self, key: bytes) -> str:
        """A keyed digest of the data under this schema; see `tacit.sources.digests` for what it covers."""
        check_key(key)
        return self.read(lambda: self._digest(key))

    def _digest(self, key: bytes) -> str:
        stamp, files = self.stamp(), self._opened.files
        # A large file is not read again while its stamp stays: that is most of what its digest knows.
        large = bool(stamp) and all(size > digests.WHOLE for size, *_ in stamp)
        kept = large if files else self._opened.owned
        if key in self._digests and kept and stamp == self._stamped.get(key):
            return self._digests[key]
        self._stamped[key] = stamp
        if not self._declared:
            self._declared = json.dumps(self.schema.describe(), sort_keys=True, default=str)
        if files:
            self._digests[key] = digests.of_files(files, key, self._declared)
        else:
            self._digests[key] = digests.of_table(
                self.relation, self.columns, key, self._declared, engine=self.dialect
            )
        return self._digests[key]

    def progress(self) -> float:
        """How much of its query the engine has done, in percent; below 0 where it does not say."""
        known = getattr(getattr(self.relation.get_backend(), "con", None), "query_progress", None)
        return float(known()) if known is not None else -1.0

    def on_close(self, action: Any) -> None:
        """Runs when what was kept is let go, the last one first: at the latest when the table is closed."""
        self._passing.callback(action)

    def close(self) -> None:
        """Drops what was kept in the engine and on disk."""
        with self._lock:
            self.bounded.clear()
            self.prepared.clear()
            self.shown.clear()
            self._finalize()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_table(
    data: Any,
    *,
    schema: Schema | dict[str, Any],
    unit: Unit,
    memory: str = MEMORY,
    engine: str | None = None,
    portable: bool = False,
) -> Table:
    """The table behind a path, a frame or an Ibis expression. Reads no row.

    A path is the name of one file; `tacit.files` says more. engine: where a path or a frame of this process is read,
    "duckdb" (the default) or "spark", a local session. Spark's and Ibis' own tables stay where they are. memory: the
    limit of DuckDB, which spills to disk, or of the local Spark. portable: of each person the same rows are kept in
    DuckDB as in Spark, by a slower hash.
    """
    schema = schema if isinstance(schema, Schema) else Schema(schema)
    if engine is not None and (not isinstance(engine, str) or engine not in ENGINES):
        raise UnknownName(what="engine", name=str(engine), known=ENGINES)
    whose = people_of(unit)
    if whose is not None and whose.column in schema.derived:
        raise InvalidParameter(
            parameter="protect",
            value=whose.column,
            must="name a column that the table has, not a derived one",
        )
    columns = tuple(dict.fromkeys([*schema.stored, *([whose.column] if whose else [])]))
    spark.memory_in_mib(memory)  # a size, or an error that says so
    wish = Wish(columns=columns, memory=memory, spark=engine == "spark", schema=schema)
    opened = opened_data(data, wish, engine, person=whose.column if whose else None)
    try:
        return door.metadata(
            lambda: Table(opened, schema=schema, unit=unit, portable=portable),
            source=opened.source, problem="cannot be read", hint="check its columns and that its engine is connected",
        )  # fmt: skip
    except BaseException:
        if opened.close:
            opened.close()
        raise


def opened_data(data: Any, wish: Wish, engine: str | None, person: str | None = None) -> Opened:
    """The table behind whatever was handed over; no row is read, but those of a joined table that is public."""
    if isinstance(data, Joined):

        def opener(one: Any, wanted: Wish, where: str | None) -> Opened:
            return opened_data(one, wanted, where, person)

        return open_joined(data, wish, engine, person=person, opener=opener)
    if isinstance(data, str | os.PathLike) and not isinstance(data, Files):
        data = Files(path=os.fspath(data))
    if isinstance(data, Files):
        return WAYS.get(data.kind, open_text)(data, wish)
    kind = type(data).__module__.partition(".")[0]
    if kind in ("ibis", "pyspark"):
        return _open_there(data, kind, engine)
    if kind in ("pandas", "polars", "pyarrow"):
        return open_frame(data, kind, wish)
    raise InvalidParameter(
        parameter="data", value=type(data).__name__,
        must="be a path, a DataFrame, an Arrow table, a Spark table or an Ibis table",
        hint='for example "survey.parquet"',
    )  # fmt: skip


def _open_there(data: Any, kind: str, engine: str | None) -> Opened:
    """A table that has its engine already. Others can change it, and it may be a view that fails for a row."""
    name = "the Ibis table" if kind == "ibis" else "the Spark table"

    def known() -> tuple[Any, Any, str]:
        relation, close = (data, None) if kind == "ibis" else spark.as_table(data)
        return relation, close, engine_of(relation).name

    relation, close, own = door.metadata(
        known, source=name, problem="cannot be read", hint="check that its engine is connected"
    )
    if engine is not None and own != {"spark": "pyspark"}.get(engine, engine):
        raise InvalidParameter(
            parameter="engine", value=engine, must=f"be that of the table, which lives in {own}",
            hint="leave it out, or give a path or a frame",
        )  # fmt: skip
    return Opened(relation=relation, source=name, close=close, owned=False, conditions=(VIEW,))


def _lock_of(relation: Any) -> Any:
    """One lock for each connection: engines do not let two threads use one at a time."""
    backend = door.metadata(relation.get_backend, source="the table", problem="has no engine")
    return vars(backend).setdefault("_tacit_lock", threading.RLock())


def _close(*stacks: contextlib.ExitStack) -> None:
    for stack in reversed(stacks):
        with contextlib.suppress(Exception):
            stack.close()


def check_key(key: bytes) -> None:
    """A key is at least 16 secret bytes."""
    if not isinstance(key, bytes) or len(key) < 16:
        raise InvalidParameter(
            parameter="key", value=f"{type(key).__name__} of length {len(key) if hasattr(key, '__len__') else '?'}",
            must="be at least 16 secret bytes", hint="secrets.token_bytes(32), kept with the ledger",
        )  # fmt: skip


_check_key = check_key

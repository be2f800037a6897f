"""A declared table: its columns, its protected unit, and the reading of its rows.

Opening looks at names and types, from footers, headers and schemas, and at no row. Rows stay in the engine:
DuckDB in this process, with a limit on memory and a private folder for spilled rows, or Spark in its own
session. The engine reads only declared columns and the person's column, in one thread at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import BadData, InvalidParameter, ReadFailed, UnknownName
from tacit.guarantees import GroupOf, Neighbours, People, Rows, Unit
from tacit.sources import error_boundary, spark
from tacit.sources.axes import Lists
from tacit.sources.compiling import selected
from tacit.sources.engines import Engine, engine_of, memory_in_mib
from tacit.sources.facts import MARK, Facts, Opened, Wish, settled
from tacit.sources.opening.databases import VIEW, open_database
from tacit.sources.opening.files import Files, Joined
from tacit.sources.opening.frames import open_frame
from tacit.sources.opening.joining import open_joined
from tacit.sources.opening.parquet import open_parquet
from tacit.sources.opening.statfiles import open_statistics, open_workbook
from tacit.sources.opening.textfiles import open_text
from tacit.sources.schema import Schema

if TYPE_CHECKING:
    from tacit.sources.kept import KeptRows

# A digest that changes when the data change, so that a repeated question can be answered from the record.
#
# The digest is keyed with the curator's secret: an unkeyed one would let anybody test a guess of a whole small
# table. It belongs to the ledger and is never published. Privacy does not rest on it: an unchanged digest gives
# an answer that was already paid for, a changed one asks for a new payment.
#
# - Files up to 64 MiB: all bytes.
# - Larger files: the size, the time of the last change, the first MiB, the last MiB (in a Parquet file the footer,
#   with the place, size and statistics of every column chunk) and 64 blocks of 64 KiB in between.
# - While a table is open, files are read again only if their state has changed, or if they are so young that a change
#   may not show in it.
# - Frames and engine tables: the number of rows and two order-free sums over a hash of each row, in the engine.

WHOLE = 64 << 20
EDGE = 1 << 20
BLOCK = 64 << 10
BLOCKS = 64


def keyed(key: bytes, purpose: str) -> Any:
    """A keyed hash for one purpose, so that no two uses of the key meet."""
    return hashlib.blake2b(key=hashlib.sha256(key).digest(), person=purpose.encode()[:16], digest_size=32)


def hash_words(key: bytes, purpose: str, count: int) -> list[int]:
    """Whole numbers below 2^62 derived from the key, to be mixed into hashes in the engine."""
    out = []
    for i in range(count):
        state = keyed(key, purpose)
        state.update(i.to_bytes(4, "big"))
        out.append(int.from_bytes(state.digest()[:8], "big") >> 2)
    return out


def of_files(paths: Iterable[Path], key: bytes, declared: str) -> str:
    """The digest of files, in their given order."""
    state = keyed(key, "tacit files")
    state.update(declared.encode())
    for path in paths:
        stat = path.stat()
        state.update(stat.st_size.to_bytes(8, "big"))
        with path.open("rb") as file:
            if stat.st_size <= WHOLE:
                while chunk := file.read(1 << 20):
                    state.update(chunk)
                continue
            state.update(stat.st_mtime_ns.to_bytes(12, "big", signed=True))
            state.update(file.read(EDGE))
            stride = (stat.st_size - 2 * EDGE) // BLOCKS
            for i in range(BLOCKS):
                file.seek(EDGE + i * stride)
                state.update(file.read(BLOCK))
            file.seek(-EDGE, 2)
            state.update(file.read(EDGE))
    return str(state.hexdigest())


def of_table(table: Any, columns: Sequence[str], key: bytes, declared: str, *, engine: Engine) -> str:
    """The digest of an engine table, in one pass in the engine; the order of rows does not matter."""
    first, second = hash_words(key, "tacit rows", 2)
    columns = sorted(columns)
    hashed = table.select(
        a=engine.row_hash(table, columns, first) % (1 << 31),
        b=engine.row_hash(table, list(reversed(columns)), second) % (1 << 31),
    )
    totals = hashed.aggregate(n=hashed.count(), a=hashed.a.sum(), b=hashed.b.sum())
    row = next(r for batch in engine.batches(totals)() for r in batch.to_pylist())
    state = keyed(key, "tacit table")
    state.update(declared.encode())
    state.update(repr((row["n"], int(row["a"] or 0), int(row["b"] or 0))).encode())
    return str(state.hexdigest())


MEMORY = "1GB"
ENGINES = ("duckdb", "spark")
WAYS = {
    "Parquet": open_parquet, "Stata": open_statistics, "SPSS": open_statistics, "SAS": open_statistics,
    "Excel": open_workbook, "DuckDB": open_database, "SQLite": open_database,
}  # fmt: skip
ENGINES_WITH_WINDOWS = ("duckdb", "pyspark")
T = TypeVar("T")
TRIES = 3
"""The number of tries to read rows that somebody changes meanwhile."""


def _rows_replaced(unit: Unit) -> bool:
    base = unit.of if isinstance(unit, GroupOf) else unit
    return isinstance(base, Rows) and base.neighbours is Neighbours.REPLACE_ONE


def people_of(unit: Unit) -> People | None:
    """The person whom a unit protects, alone or with others; None for a unit of rows."""
    base = unit.of if isinstance(unit, GroupOf) else unit
    return base if isinstance(base, People) else None


class Table:
    """A table in an engine, as declared.

    `facts` are established for the state of the data that is read; `conditions` are assumptions about the data, for
    certificates. `taken_at` is the time of the state, in nanoseconds, `keep` the place of bounded rows for
    others, if a custodian asked for that, and `kept_in` the file that they were read from. `bounded` and
    `prepared` keep rows and queries for later questions, only as long as nobody else can have changed their
    sources. `lists` and `shown` are declared lists, in this process and in the engine.
    """

    def __init__(
        self,
        opened: Opened,
        *,
        schema: Schema,
        unit: Unit,
        portable: bool = False,
        again: Callable[[], Opened] | None = None,
    ) -> None:
        self.schema = schema
        self.unit = unit
        self.source = opened.source
        self.dialect = engine_of(opened.relation)
        self.engine: str = self.dialect.name
        self.portable = portable or self.engine != "duckdb"
        whose = people_of(unit)
        self.person = whose.column if whose else None
        self.columns = tuple(dict.fromkeys([*schema, *([self.person] if self.person else [])]))
        if whose is not None and whose.each is not None:
            _ = schema[whose.each[0]]  # an error that says which columns are declared
        self._again = again
        self._lock = _lock_of(opened.relation)
        self._reading = False
        self._digests: dict[bytes, str] = {}
        self._stamped: dict[bytes, tuple[Any, ...]] = {}
        self._digested: dict[bytes, int] = {}
        self._declared = ""
        self.keep: KeptRows | None = None
        self.kept_in: Path | None = None
        self.bounded: dict[Any, Any] = {}
        self.prepared: dict[Any, Any] = {}
        self.lists: Lists = {}
        self.shown: dict[Any, Any] = {}
        self._stack = contextlib.ExitStack()
        self._passing = contextlib.ExitStack()
        self._take(opened)
        if self.person is not None and self.engine not in ENGINES_WITH_WINDOWS:
            error_boundary.metadata(
                self._windows,
                source=self.source,
                problem=f"lives in {self.engine}, which cannot put a person's rows in order",
                hint="give people a table in DuckDB or Spark, or a file",
            )
        self._finalize = weakref.finalize(self, _close, self._stack, self._passing)

    def _take(self, opened: Opened) -> None:
        """Switches to the opened data; each opening checks all of them."""
        replaced = _rows_replaced(self.unit)
        if replaced and not opened.facts.counted:
            raise BadData(
                source=opened.source,
                problem="does not say how many rows it has, and rows that are replaced need a public number of them",
                hint='protect rows(neighbours="add-or-remove"), or save it as Parquet or CSV',
            )
        stored = tuple(name for name in self.columns if name not in self.schema.derived)
        self.relation = selected(
            opened.relation, stored, schema=self.schema, person=self.person, engine=self.dialect, source=self.source
        )  # fmt: skip
        self.facts: Facts = opened.facts
        self.taken_at = time.time_ns()
        counted = (opened.facts.counted_if,) if replaced and opened.facts.counted_if else ()
        self.conditions = (*opened.conditions, *counted)
        self._opened = opened
        self._loaded = opened.load is None
        self._rescued = False
        if opened.close:
            self._stack.callback(opened.close)

    def _windows(self) -> None:
        """The engine shows before any payment whether people can be bounded: it must have windows."""
        import ibis

        rank = ibis.row_number().over(group_by=self.person, order_by=self.person)
        self.relation.get_backend().compile(self.relation.mutate(__tacit_rank=rank))

    def stamp(self) -> tuple[Any, ...]:
        """The identity of a state of the data, about which the facts hold."""
        return self.facts.state

    def read(self, action: Callable[[], T]) -> T:
        """The result of an action that queries the engine: inside the error boundary, one thread at a time, on one
        state of the data.

        If the engine's own reader failed at a row, a slower reader loads the rows again, with such values missing, and
        the action runs again.
        """
        with self._lock:
            if self._reading:
                return self._answered(action)
            return self.together(partial(self._answered, action))

    def together(self, action: Callable[[], T]) -> T:
        """The result of an action that reads several times, always from one state of the data whose facts hold.

        If the data change meanwhile, the result is dropped and the action runs again.
        """
        with self._lock:
            if self._reading:
                return action()
            for _ in range(TRIES):
                self.ready()
                self._reading = True
                try:
                    with self._snapshot():
                        given = action()
                except ReadFailed:
                    if not self._changed():
                        raise
                    continue
                finally:
                    self._reading = False
                    if not self._opened.owned:
                        self._forget()
                if not self._changed():
                    return given
            raise ReadFailed(source=self.source)

    def _answered(self, action: Callable[[], T]) -> T:
        with contextlib.suppress(ReadFailed):
            return error_boundary.rows(action, source=self.source)
        if self.kept_in is not None:
            # A damaged copy must not stop the table: it goes, perhaps the engine with it, and rows are bounded anew.
            with contextlib.suppress(OSError):
                self.kept_in.unlink(missing_ok=True)
            self.keep = self.kept_in = None
            error_boundary.rows(self._open_again, source=self.source)
            with contextlib.suppress(ReadFailed):
                return error_boundary.rows(action, source=self.source)
        if self._opened.rescue is None or self._rescued:
            raise ReadFailed(source=self.source)
        self._forget()
        error_boundary.rows(self._opened.rescue, source=self.source)
        self._rescued = True
        return error_boundary.rows(action, source=self.source)

    def ready(self) -> None:
        """Makes sure that the rows are loaded, in a state whose facts hold."""
        with self._lock:
            if self._reading:
                return
            for _ in range(TRIES):
                if self._changed():
                    error_boundary.rows(self._open_again, source=self.source)
                if self._loaded:
                    return
                with contextlib.suppress(ReadFailed):
                    assert self._opened.load is not None
                    error_boundary.rows(self._opened.load, source=self.source)
                    # A copy that was made of a file while somebody wrote it is no copy.
                    self._loaded = not self._changed()
                    continue
                if not self._changed():
                    break
            raise ReadFailed(source=self.source)

    def renew(self) -> None:
        """Opens the data anew if they have changed. This happens before a charge, so that errors can be
        reported in full.
        """
        with self._lock:
            if self._again is None or (self._loaded and not self._opened.in_place):
                return
            with contextlib.suppress(ReadFailed):
                if not self._changed():
                    return
            error_boundary.metadata(self._open_again, source=self.source, problem="cannot be read any more")

    def _changed(self) -> bool:
        """Whether the data have changed since their facts were established. Not asked of a copy."""
        opened = self._opened
        if opened.now is None or (self._loaded and not opened.in_place):
            return False
        return error_boundary.rows(opened.now, source=self.source) != opened.facts.state

    def _open_again(self) -> None:
        if self._again is None:
            raise ReadFailed(source=self.source)
        self._forget()
        opened = self._again()
        try:
            old = self._stack.pop_all()
            self._take(opened)
        except BaseException:
            self._stack.push(old.pop_all())
            if opened.close:
                opened.close()
            raise
        old.close()

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Reads tables that others can change in one transaction, if DuckDB holds them."""
        if self._opened.owned or self.engine != "duckdb":
            yield
            return
        connection = self.relation.get_backend().con
        begun = False
        with contextlib.suppress(Exception):
            connection.begin()  # an error inside of a transaction of the owner's, which is one as well
            begun = True
        try:
            yield
        finally:
            with contextlib.suppress(Exception):
                if begun:
                    # Nothing of the owner's was written. A commit that fails takes its transaction back.
                    connection.commit()

    def _forget(self) -> None:
        """Drops everything made from rows that may have changed."""
        self.bounded.clear()
        self.prepared.clear()
        self.shown.clear()
        with contextlib.suppress(ReadFailed):
            error_boundary.rows(self._passing.close, source=self.source)

    def digest(self, key: bytes) -> str:
        """A keyed digest of the data under this schema; see `tacit.sources.tables` for what it covers."""
        check_key(key)
        return self.read(lambda: self._digest(key))

    def _digest(self, key: bytes) -> str:
        stamp, files = self.stamp(), self.facts.files if self._opened.in_place else ()
        # A file is not read again while its state stays, if every change since the last time would show in that. Of a
        # large file the state is most of what its digest knows.
        large = all(file.size > WHOLE for file in files)
        kept = large or settled(files, self._digested.get(key, 0)) if files else self._opened.owned
        if key in self._digests and kept and stamp == self._stamped.get(key):
            return self._digests[key]
        self._stamped[key], self._digested[key] = stamp, time.time_ns()
        if not self._declared:
            self._declared = json.dumps(self.schema.to_dict(), sort_keys=True, default=str)
        if files:
            self._digests[key] = of_files([file.path for file in files], key, self._declared)
        else:
            self._digests[key] = of_table(
                self.relation, self.columns, key, self._declared, engine=self.dialect
            )
        return self._digests[key]

    def progress(self) -> float:
        """The finished share of the engine's query, in percent; below 0 if unknown."""
        known = getattr(getattr(self.relation.get_backend(), "con", None), "query_progress", None)
        return float(known()) if known is not None else -1.0

    def on_close(self, action: Any) -> None:
        """Registers a call for the release of kept data: the last one registered runs first, at the latest when the
        table is closed.
        """
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

    A path is the name of one file; `tacit.files` has more options. engine: the reader of a path or a frame of
    this process, "duckdb" (the default) or "spark", a local session. Spark's and Ibis' own tables stay in their
    engine. memory: the limit of DuckDB, which spills to disk, or of the local Spark. portable: DuckDB keeps the
    same rows of each person as Spark, by a slower hash.
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
    memory_in_mib(memory)  # a size, or an error that says so
    wish = Wish(columns=columns, memory=memory, spark=engine == "spark", schema=schema)

    def again() -> Opened:
        return opened_data(data, wish, engine, person=whose.column if whose else None)

    opened = again()
    try:
        return error_boundary.metadata(
            lambda: Table(opened, schema=schema, unit=unit, portable=portable, again=again),
            source=opened.source, problem="cannot be read", hint="check its columns and that its engine is connected",
        )  # fmt: skip
    except BaseException:
        if opened.close:
            opened.close()
        raise


def opened_data(data: Any, wish: Wish, engine: str | None, person: str | None = None) -> Opened:
    """The opened table for any given data; reads no row, except of a public joined table."""
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

    def known() -> tuple[Any, Any, str, tuple[Any, ...]]:
        if kind == "ibis":
            relation, types = _bound(data)
            return relation, None, engine_of(relation).name, types
        relation, close = spark.as_table(data)
        return relation, close, engine_of(relation).name, ()

    relation, close, own, types = error_boundary.metadata(
        known, source=name, problem="cannot be read", hint="check that its engine is connected"
    )
    if engine is not None and own != {"spark": "pyspark"}.get(engine, engine):
        raise InvalidParameter(
            parameter="engine", value=engine, must=f"be that of the table, which lives in {own}",
            hint="leave it out, or give a path or a frame",
        )  # fmt: skip
    facts = Facts(state=types, made_up=MARK in relation.columns)
    return Opened(
        relation=relation, source=name, close=close, owned=False, in_place=True, conditions=(VIEW,), facts=facts,
        now=(lambda: _bound(data)[1]) if types else None,
    )  # fmt: skip


def _bound(data: Any) -> tuple[Any, tuple[Any, ...]]:
    """An Ibis table over the present tables and views behind it, with their names and types.

    An expression remembers the types that they had when it was written. The view may have been replaced since then.
    """
    import ibis.expr.operations as ops

    backend, changed, types = data.get_backend(), {}, []

    def schema_of(node: Any) -> Any:
        if isinstance(node, ops.SQLQueryResult):
            return backend.sql(node.query).schema()
        place = tuple(part for part in (node.namespace.catalog, node.namespace.database) if part)
        return backend.table(node.name, database=place or None).schema()

    for number, node in enumerate(dict.fromkeys(data.op().find((ops.DatabaseTable, ops.SQLQueryResult)))):
        # What an engine cannot look up by its name, or not any more, is seen when it is read.
        with contextlib.suppress(Exception):
            now = schema_of(node)
            types.append((number, str(now)))
            if now != node.schema:
                changed[node] = node.copy(schema=now)
    return (data.op().replace(changed).to_expr() if changed else data), tuple(types)


def _lock_of(relation: Any) -> Any:
    """One lock for each connection: engines do not let two threads use one at a time."""
    backend = error_boundary.metadata(relation.get_backend, source="the table", problem="has no engine")
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

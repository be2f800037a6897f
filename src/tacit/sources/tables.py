"""Opening a table: Parquet, CSV, pandas, Polars, Arrow, Spark or any Ibis table, each as a table of an engine.

Rows stay in the engine. DuckDB runs in the process, with a limit on memory and a private folder for what does
not fit; Spark where its session is, or in a local one that is started here. A CSV is read once,
as text, when it is opened, so that a broken line is found before anything is spent; its columns get the declared
types by casts that cannot fail. Only declared columns (and the person's) are read.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import gzip
import json
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tacit.errors import BadData, InvalidParameter, TacitError, UnknownColumn, UnknownName
from tacit.guarantees import GroupOf, People, Unit
from tacit.sources import digests, spark
from tacit.sources.compiling import Reader, check_types
from tacit.sources.engines import engine_of
from tacit.sources.schema import Schema

__all__ = ["Table", "open_table"]

PARQUET = (".parquet", ".pq", ".parq")
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
MEMORY = "1GB"
ENGINES = ("duckdb", "spark")
NO_PARQUET = (
    "is not a readable Parquet file",
    "is it another kind of file, or was it cut off? write it again as Parquet",
)
T = TypeVar("T")


def people_of(unit: Unit) -> People | None:
    """The person whom a unit protects, alone or with others; None where rows are protected."""
    base = unit.of if isinstance(unit, GroupOf) else unit
    return base if isinstance(base, People) else None


class Table:
    """A table in an engine, as declared: what may be asked of it, and for whom it is protected."""

    def __init__(
        self,
        relation: Any,
        *,
        schema: Schema,
        unit: Unit,
        source: str,
        files: tuple[Path, ...] = (),
        close: Any = None,
        refresh: Callable[[], None] | None = None,
        portable: bool = False,
    ) -> None:
        self.schema = schema
        self.unit = unit
        self.source = source
        self.dialect = engine_of(relation)
        self.engine: str = self.dialect.name
        self.portable = portable or self.engine != "duckdb"
        whose = people_of(unit)
        self.person = whose.column if whose else None
        self.columns = tuple(dict.fromkeys([*schema, *([self.person] if self.person else [])]))
        self._files = files
        self._refresh = refresh
        self._seen = self.stamp()
        self._digests: dict[bytes, str] = {}
        self._stamped: dict[bytes, tuple[tuple[int, int], ...]] = {}
        self.bounded: dict[Any, Any] = {}
        self.prepared: dict[Any, Any] = {}
        for name in self.columns:
            if name not in relation.columns:
                raise UnknownColumn(column=name, known=relation.columns, where=source)
        self.relation = relation.select(*self.columns)
        check_types(self.relation, schema)
        self._stack = contextlib.ExitStack()
        if close:
            self._stack.callback(close)
        self._finalize = weakref.finalize(self, _close, self._stack)

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """Size and time of the files that are read in place."""
        found = [path.stat() for path in self._files if path.exists()]
        return tuple((s.st_size, s.st_mtime_ns) for s in found)

    def refresh(self) -> None:
        """Tells an engine that remembers files that they have changed, if they have."""
        if self._refresh is not None and (now := self.stamp()) != self._seen:
            _quiet(self._refresh, self.source, "has changed and cannot be read again", "open it anew")
            self._seen = now

    def digest(self, key: bytes) -> str:
        """A keyed digest of the data under this schema; see `tacit.sources.digests` for what it covers."""
        _check_key(key)
        stamp = self.stamp()
        # A large file is not read again while its size and time stay: that is most of what its digest knows.
        large = bool(stamp) and all(size > digests.WHOLE for size, _ in stamp)
        known = key in self._digests and (not self._files or (large and stamp == self._stamped.get(key)))
        if not known:
            self._stamped[key] = stamp
            declared = json.dumps(self.schema.describe(), sort_keys=True, default=str)
            if self._files:
                self._digests[key] = digests.of_files(self._files, key, declared)
            else:
                self._digests[key] = digests.of_table(
                    self.relation, self.columns, key, declared, engine=self.dialect
                )
        return self._digests[key]

    def on_close(self, action: Any) -> None:
        """Runs when the table is closed, the last one first."""
        self._stack.callback(action)

    def close(self) -> None:
        """Drops what was kept in the engine and on disk."""
        self.bounded.clear()
        self.prepared.clear()
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
    """The table behind a path, a frame or an Ibis expression.

    engine: where a path or a frame of this process is read, "duckdb" (the default) or "spark", a local session.
    Spark's and Ibis' own tables stay where they are. memory: the limit of DuckDB, which spills to disk, or of the
    local Spark. portable: of each person the same rows are kept in DuckDB as in Spark, by a slower hash.
    """
    schema = schema if isinstance(schema, Schema) else Schema(schema)
    if engine is not None and engine not in ENGINES:
        raise UnknownName(what="engine", name=str(engine), known=ENGINES)
    how = _How(schema=schema, unit=unit, memory=memory, spark=engine == "spark", portable=portable)
    if isinstance(data, str | os.PathLike):
        return _open_path(os.fspath(data), how)
    kind = type(data).__module__.partition(".")[0]
    if kind in ("ibis", "pyspark"):
        return _open_there(data, kind, how, engine)
    if kind in ("pandas", "polars", "pyarrow"):
        return _open_frame(data, kind, how)
    raise InvalidParameter(
        parameter="data", value=type(data).__name__,
        must="be a path, a DataFrame, an Arrow table, a Spark table or an Ibis table",
        hint='for example "survey.parquet"',
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """What holds for every way to open a table."""

    schema: Schema
    unit: Unit
    memory: str
    spark: bool
    portable: bool

    @property
    def wanted(self) -> list[str]:
        """The columns that are read."""
        whose = people_of(self.unit)
        return list(dict.fromkeys([*self.schema, *([whose.column] if whose else [])]))

    def check(self, names: Iterable[str], source: str) -> None:
        """The wanted columns are there."""
        names = list(names)
        for name in self.wanted:
            if name not in names:
                raise UnknownColumn(column=name, known=map(str, names), where=source)

    def table(self, relation: Any, source: str, **rest: Any) -> Table:
        return Table(
            relation, schema=self.schema, unit=self.unit, source=source, portable=self.portable, **rest
        )


def _open_there(data: Any, kind: str, how: _How, engine: str | None) -> Table:
    """A table that has its engine already."""
    name = "the Ibis table" if kind == "ibis" else "the Spark table"
    problem, hint = "cannot be read", "check that its engine is connected"
    relation, close = (
        (data, None) if kind == "ibis" else _quiet(lambda: spark.as_table(data), name, problem, hint)
    )
    own = _quiet(lambda: engine_of(relation).name, name, problem, hint)
    if engine is not None and own != {"spark": "pyspark"}.get(engine, engine):
        raise InvalidParameter(
            parameter="engine", value=engine, must=f"be that of the table, which lives in {own}",
            hint="leave it out, or give a path or a frame",
        )  # fmt: skip
    return _quiet(lambda: how.table(relation, name, close=close), name, problem, hint)


def _close(stack: contextlib.ExitStack) -> None:
    with contextlib.suppress(Exception):
        stack.close()


def _connect(memory: str) -> tuple[Any, Any]:
    import ibis

    folder = tempfile.TemporaryDirectory(prefix="tacit-", ignore_cleanup_errors=True)
    connection = ibis.duckdb.connect(
        ":memory:",
        memory_limit=memory,
        temp_directory=folder.name,
        preserve_insertion_order=False,
        autoinstall_known_extensions=False,
    )

    def close() -> None:
        with contextlib.suppress(Exception):
            connection.disconnect()
        folder.cleanup()

    return connection, close


def _open_path(text: str, how: _How) -> Table:
    paths = sorted(glob.glob(text)) if glob.has_magic(text) and not Path(text).exists() else [text]
    files = tuple(Path(p) for p in paths)
    if not files or not all(p.is_file() for p in files):
        raise BadData(source=text, problem="is not there", hint="give the path of a Parquet or CSV file")
    lower = paths[0].lower()
    if not lower.endswith((*PARQUET, *TEXT)):
        raise BadData(source=text, problem="has no known ending", hint="name it .parquet or .csv")
    for path in files:
        if not os.access(path, os.R_OK):
            raise BadData(source=text, problem="cannot be opened", hint="check its permissions")
    if how.spark and lower.endswith(PARQUET):
        return _parquet_in_spark(paths, files, text, how)
    connection, close = _connect(how.memory)
    try:
        if lower.endswith(PARQUET):
            relation = _quiet(lambda: connection.read_parquet(paths), text, *NO_PARQUET)
        else:
            relation = _read_csv(connection, paths, text, how)
            files = ()  # what was loaded is what is asked, whatever becomes of the file
        if not how.spark:
            return how.table(relation, text, files=files, close=close)
        # The rules for CSV are the same on both engines because there is one that reads it.
        table = _handed_to_spark(lambda p: relation.to_parquet(p), text, how)
        close()
        return table
    except BaseException:
        close()
        raise


def _parquet_in_spark(paths: list[str], files: tuple[Path, ...], source: str, how: _How) -> Table:
    session = spark.local_session(how.memory)
    relation, close, refresh = _quiet(lambda: spark.read_parquet(session, paths), source, *NO_PARQUET)
    try:
        return how.table(relation, source, files=files, close=close, refresh=refresh)
    except BaseException:
        close()
        raise


def _handed_to_spark(write: Callable[[str], Any], source: str, how: _How) -> Table:
    """Rows of this process, by way of a Parquet file in a private folder that goes when the table is closed."""
    session = spark.local_session(how.memory)
    folder = tempfile.TemporaryDirectory(prefix="tacit-", ignore_cleanup_errors=True)
    path = str(Path(folder.name) / "rows.parquet")
    try:
        _quiet(lambda: write(path), source, "could not be written for Spark", "check the free space on disk")
        relation, drop, _ = _quiet(lambda: spark.read_parquet(session, [path]), source, *NO_PARQUET)

        def close() -> None:
            with contextlib.suppress(Exception):
                drop()
            folder.cleanup()

        return how.table(relation, source, close=close)
    except BaseException:
        folder.cleanup()
        raise


def _read_csv(connection: Any, paths: list[str], text: str, how: _How) -> Any:
    """All cells as text, once; then the declared types, by casts that give null where they fail."""
    hint = "every line must have as many fields as the header, in UTF-8, quotes closed; mend the file and try again"
    problem = "is not a readable CSV file: its lines do not all have the same fields"
    mark = "\t" if ".tsv" in paths[0].lower() else ","
    names = _quiet(
        lambda: _header(paths[0], mark), text, "is not a readable CSV file: it has no header", hint
    )
    # Nothing is guessed from the lines: neither marks nor types.
    options: dict[str, Any] = {
        "auto_detect": False, "columns": dict.fromkeys(names, "VARCHAR"), "delim": mark, "quote": '"', "escape": '"',
        "header": True, "strict_mode": True, "null_padding": False, "ignore_errors": False,
    }  # fmt: skip

    def load() -> Any:
        raw = connection.read_csv(paths, **options)
        how.check(raw.columns, text)
        reader = Reader(raw, how.schema)
        typed = {n: reader.stored(n) if n in how.schema else raw[n] for n in how.wanted}
        # The whole file is parsed here, so that no broken line can stop a release halfway.
        return connection.create_table("__tacit_csv", raw.select(**typed), temp=True)

    return _quiet(load, text, problem, hint)


def _header(path: str, mark: str) -> list[str]:
    """The column names: the first line of the file."""
    opened: Any = gzip.open if path.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file, delimiter=mark))
    if not names or len(set(names)) != len(names) or not all(names):
        raise ValueError
    return names


def _open_frame(data: Any, kind: str, how: _How) -> Table:
    import pyarrow

    source = f"the {kind} table"
    if hasattr(data, "collect") and kind == "polars":
        data = _quiet(data.collect, source, "could not be computed", "collect it first")
    how.check(list(data.column_names if kind == "pyarrow" else data.columns), source)
    wanted = how.wanted

    def to_arrow() -> Any:
        part = data.select(wanted) if kind in ("polars", "pyarrow") else data[wanted]
        if kind == "pandas":
            part = pyarrow.Table.from_pandas(part, preserve_index=False)
        elif kind == "polars":
            part = part.to_arrow()
        # A column without any value has no type; as text it can be declared as anything.
        text, null = pyarrow.string(), pyarrow.null()
        return part.cast(pyarrow.schema([(f.name, text if f.type == null else f.type) for f in part.schema]))

    hint = "give every column one type"
    arrow = _quiet(to_arrow, source, "has a column of mixed or unknown types", hint)
    if how.spark:
        return _handed_to_spark(lambda path: _write_parquet(arrow, path), source, how)
    connection, close = _connect(how.memory)
    try:

        def register() -> Any:
            connection.con.register("__tacit_frame", arrow)
            return connection.table("__tacit_frame")

        relation = _quiet(register, source, "cannot be read", hint)
        return how.table(relation, source, close=close)
    except BaseException:
        close()
        raise


def _write_parquet(arrow: Any, path: str) -> None:
    import pyarrow.parquet

    # Spark's times are of microseconds.
    pyarrow.parquet.write_table(arrow, path, coerce_timestamps="us", allow_truncated_timestamps=True)


def _quiet(action: Callable[[], T], source: str, problem: str, hint: str) -> T:
    """Engines quote the offending line or value in their errors: none of that text is passed on."""
    try:
        return action()
    except TacitError:
        raise
    except Exception:
        # Raised below, outside the handler: not even the traceback's context keeps the engine's words.
        pass
    raise BadData(source=source, problem=problem, hint=hint)


def _check_key(key: bytes) -> None:
    if not isinstance(key, bytes) or len(key) < 16:
        raise InvalidParameter(
            parameter="key", value=f"{type(key).__name__} of length {len(key) if hasattr(key, '__len__') else '?'}",
            must="be at least 16 secret bytes", hint="secrets.token_bytes(32), kept with the ledger",
        )  # fmt: skip

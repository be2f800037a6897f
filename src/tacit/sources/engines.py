"""Differences between engines, in one place; the private folders in which they work; and a DuckDB of our own.

Each engine is a class, and nothing else asks for an engine's name. `Engine` holds the portable forms, for any engine
that Ibis speaks to. `DuckDB` and `Spark` replace the parts that the engine does better by itself, or that Ibis cannot
express. All of them give the same integers for the same rows.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import os
import re
import secrets
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter
from tacit.sources import error_boundary
from tacit.sources.error_boundary import counted

# The text of a query for DuckDB.


def text_of_query(backend: Any, query: Any) -> str:
    """Rewrites the SQL of Ibis for DuckDB's parser, for which a NUL ends the text wherever it stands.

    A NUL stands inside of a declared word alone, between quotes.
    """
    return str(backend.compile(query)).replace("\0", "' || chr(0) || '")


BATCH = 1 << 17
GROUP = "__tacit_group"
ORDER = "__tacit_order"
LIMB = 27
"""Bits of a part of a sum: 2^36 rows, 70 thousand million, fit in 64 bits."""
NARROW_DECIMAL = 15
"""Digits that a double holds exactly: a decimal with this many is the quotient of two exact doubles, rounded once."""
REAL = "^[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]{1,4})?$"
WHOLE = "^[+-]?[0-9]{1,18}$"
INFINITE = {"": float("inf"), "+": float("inf"), "-": float("-inf")}
PLAIN = "^[+-]?[0-9]+(?:[.][0-9]*)?(?:[eE][+][0-9]{1,3})?$"
"""A person's number in text: the forms that programs write for a whole number stored as a double, not every word with
an e.
"""
POINT = "^[+-]?[0-9]+[.]0$"
DAY = "^[0-9]{4}(?:-[0-9]{1,2}-[0-9]{1,2}|/[0-9]{1,2}/[0-9]{1,2})"
CLOCK = "(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::(?:[0-5][0-9]|60)(?:[.][0-9]{1,9})?)?"
ZONE = " ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
MOMENT = f"{DAY}(?:[ T]{CLOCK}(?:{ZONE})?)?$"
"""The grammar of numbers and days in text, the same in every engine: any other text is missing. White space of
ASCII around a value is passed over. A moment stands for its written day, in every zone."""


class Engine:
    """The portable forms. Casts cut, sums of 64 bits may wrap around, and queries give all rows at once."""

    name = "ibis"
    batchwise = True
    """Whether results come in batches, so that keys outside the declared list can be dropped on arrival."""

    def row_hash(self, table: Any, columns: Sequence[str], seed: int) -> Any:
        """An integer that depends on a row's values in these columns and on the seed, for digests."""
        import ibis

        text = [table[c].cast("string").fill_null("\x00") for c in columns]
        return ibis.literal("\x1f").join([ibis.literal(str(seed)), *text]).hash()

    def keyed_hash(self, text: Any) -> Any:
        """A hash of a text that begins with a secret; the order of rows and groups in bounding."""
        return text.hash()

    def bytewise(self, text: Any) -> Any:
        """The text, compared by its bytes: no collation of a column or of a session makes two texts one."""
        return text

    def sound(self, text: Any) -> Any:
        """The text; null if its bytes are no UTF-8 and the engine's functions would stop at them."""
        return text

    def trimmed(self, text: Any) -> Any:
        """The text without white space of ASCII around it."""
        return self.sound(text).strip()

    def matched(self, text: Any, pattern: str) -> Any:
        """The part of the text that a pattern matches."""
        return text.re_extract(pattern, 0)

    def real(self, text: Any) -> Any:
        """The number in a text; null for any other text."""
        import ibis

        text = self.trimmed(text)
        small = text.lower()
        infinite = [
            (small.isin([f"{sign}inf", f"{sign}infinity"]), value) for sign, value in INFINITE.items()
        ]
        # Engines take an end of line for the end of a text: what is matched must be all of it.
        number = self.matched(text, REAL) == text
        return ibis.cases(
            *infinite, (number & (text != ""), text.try_cast("float64")), else_=ibis.null("float64")
        )

    def plain(self, text: Any) -> Any:
        """The finite number in a whole text, in plain digits; null for any other text."""
        import ibis

        is_number = (self.matched(text, PLAIN) == text) & (text != "")
        x = ibis.ifelse(is_number, text.try_cast("float64"), ibis.null("float64"))
        return ibis.ifelse(x.abs() < float("inf"), x, ibis.null("float64"))

    def without_point(self, text: Any) -> Any:
        """The text, with "7" for "7.0", as programs write a whole number that became a double."""
        import ibis

        digits = self.matched(text, POINT) == text
        return ibis.ifelse(
            text.endswith(".0"), ibis.ifelse(digits, text.substr(0, text.length() - 2), text), text
        )

    def whole(self, text: Any) -> Any:
        """The whole number in a text, exactly; null for any other text, or a longer number."""
        import ibis

        trimmed = self.trimmed(text)
        plain = (self.matched(trimmed, WHOLE) == trimmed) & (trimmed != "")
        return ibis.ifelse(plain, trimmed.try_cast("int64"), self.rounded_whole(self.real(text)))

    def rounded_whole(self, x: Any) -> Any:
        """A double with a whole value below 2^53, as an integer; null for any other."""
        import ibis

        most = float(1 << 53)
        inside = ibis.ifelse((x > -most) & (x < most), x, ibis.null("float64"))
        integer = inside.cast("int64")
        return ibis.ifelse(integer.cast("float64") == inside, integer, ibis.null("int64"))

    def day(self, text: Any) -> Any:
        """The day in a text; null for any other text."""
        import ibis

        text = self.trimmed(text)
        day = self.matched(text, DAY).replace("/", "-").try_cast("date")
        return ibis.ifelse((self.matched(text, MOMENT) == text) & (text != ""), day, ibis.null("date"))

    def day_of(self, moment: Any) -> Any:
        """The day of a moment: in UTC if it has a zone; null if it is out of range."""
        return moment.try_cast("date")

    def days(self, day: Any) -> Any:
        """Days since 1970-01-01."""
        return day.epoch_days()

    def double(self, x: Any) -> Any:
        """The double nearest to a number."""
        return x.cast("float64")

    def hexadecimal(self, raw: Any) -> Any:
        """Bytes as text: two digits for each."""
        return _call("hex", "string", raw)

    def nearest(self, x: Any, dtype: str) -> Any:
        """The nearest integer of a double that fits the type."""
        return (x + 0.5).floor().cast(dtype)

    def prepare(self, relation: Any) -> None:
        """Settings that the engine needs before a query. Nothing is read."""

    def total(self, x: Any, *, where: Any, bits: int) -> Any:
        """The exact sum of integers from 0 to below 2^bits."""
        return x.cast("decimal(38, 0)").sum(where=where).cast("decimal(38, 0)")

    def only_listed(
        self,
        relation: Any,
        keys: dict[str, Any],
        measures: dict[str, Any],
        lists: Mapping[str, Sequence[Any]],
    ) -> Any:
        """The grouped query, without groups whose keys are outside the lists."""
        raise NotImplementedError

    def listed(self, words: Any, beside: Any) -> tuple[Any, Callable[[], None]] | None:
        """A declared list (Arrow text) as a table `(word, place)`, which the engine joins faster than Arrow
        looks words up; and a call that releases it. None if the engine does this no better.
        """
        return None

    def in_order(self, query: Any, keys: list[str]) -> Any:
        """The result sorted by these texts alone, if the engine does that well: by a column `ORDER`."""
        return query

    def batches(self, query: Any) -> Callable[[], Iterator[Any]]:
        """A call that runs the query and gives its result in Arrow batches."""
        return lambda: iter(query.to_pyarrow_batches())

    def keep(self, relation: Any) -> tuple[Any, Callable[[], None] | None]:
        """The rows, computed once and kept by the engine, and a call that releases them, if one is needed."""
        return relation.cache(), None

    def hold(self, relation: Any) -> tuple[Any, Callable[[], None] | None]:
        """The same for a table that its connection drops, even if somebody still refers to it."""
        return self.keep(relation)

    def show(self, table: Any, beside: Any) -> tuple[Any, Callable[[], None] | None]:
        """An Arrow table in the engine of another table; a null stays a null of its type."""
        import ibis

        return ibis.memtable(table), None


MACROS = {
    "__tacit_bytewise": 'CAST(x AS VARCHAR) COLLATE "binary"',
    "__tacit_sound": 'TRY(decode(encode(CAST(x AS VARCHAR)))) COLLATE "binary"',
    "__tacit_day": "TRY(CAST(TRY(CAST(x AS TIMESTAMP)) AS DATE))",
    "__tacit_utc": "TRY(CAST(make_timestamp(epoch_us(x)) AS DATE))",
}
"""Features of DuckDB that Ibis lacks: collations, and TRY, which is total where TRY_CAST is not."""


class DuckDB(Engine):
    """DuckDB, inside this process.
    Its casts round to the nearest integer, ties to even, and its sums have 128 bits."""

    name = "duckdb"

    def bytewise(self, text: Any) -> Any:
        return _call("__tacit_bytewise", "string", text)

    def sound(self, text: Any) -> Any:
        return _call("__tacit_sound", "string", text)

    def matched(self, text: Any, pattern: str) -> Any:
        import ibis

        return _call("regexp_extract", "string", text, ibis.literal(pattern))

    def double(self, x: Any) -> Any:
        # Its cast of a decimal of more digits rounds twice and may miss the nearest double; that of a text does not.
        dtype = x.type()
        wide = dtype.is_decimal() and (dtype.precision is None or dtype.precision > NARROW_DECIMAL)
        return (x.cast("string") if wide else x).cast("float64")

    def day_of(self, moment: Any) -> Any:
        return _call("__tacit_utc" if moment.type().timezone else "__tacit_day", "date", moment)

    def prepare(self, relation: Any) -> None:
        backend = relation.get_backend()
        for name, body in MACROS.items():
            backend.con.execute(f"CREATE OR REPLACE TEMP MACRO {name}(x) AS {body}")

    def row_hash(self, table: Any, columns: Sequence[str], seed: int) -> Any:
        # Ibis writes hash() with a detour through bit strings that costs more than the hash itself.
        return _call("hash", "uint64", _word(seed), *(table[c] for c in columns))

    def keyed_hash(self, text: Any) -> Any:
        return _sha256(text)

    def nearest(self, x: Any, dtype: str) -> Any:
        return x.cast(dtype)

    def total(self, x: Any, *, where: Any, bits: int) -> Any:
        return x.sum(where=where).cast("decimal(38, 0)")

    def listed(self, words: Any, beside: Any) -> tuple[Any, Callable[[], None]] | None:
        import numpy as np
        import pyarrow as pa

        backend, name = beside.get_backend(), f"__tacit_{secrets.token_hex(8)}"
        backend.con.register(name, pa.table({"word": words, "place": np.arange(len(words))}))
        return backend.table(name), lambda: backend.con.unregister(name)

    def in_order(self, query: Any, keys: list[str]) -> Any:
        # Sorted by text it takes three times as long, and bytes that are no UTF-8 come back cut off at the first.
        query = query.mutate(**{ORDER: _call("hash", "uint64", *(query[key] for key in keys))})
        return query.order_by(ORDER)

    def batches(self, query: Any) -> Callable[[], Iterator[Any]]:
        backend = query.get_backend()
        text = text_of_query(backend, query)
        registered = False

        def start() -> Iterator[Any]:
            nonlocal registered
            # As Ibis does, but through DuckDB's lasting name for it; a relation would be bound twice.
            if not hasattr(backend.con, "to_arrow_reader"):
                return iter(query.to_pyarrow_batches())
            if not registered:
                # Tables in memory are registered once: they stay for as long as this function holds the query.
                backend._run_pre_execute_hooks(query)
                registered = True
            return iter(backend.con.execute(text).to_arrow_reader(BATCH))

        return start

    def hold(self, relation: Any) -> tuple[Any, Callable[[], None] | None]:
        backend = relation.get_backend()
        backend._run_pre_execute_hooks(relation)
        name, drop = self.hold_text(backend, text_of_query(backend, relation))
        return backend.table(name), drop

    def hold_text(self, backend: Any, text: str) -> tuple[str, Callable[[], None]]:
        """The name of a table with a statement's result, and a call that drops it."""
        name = f"__tacit_{secrets.token_hex(8)}"
        backend.con.execute(f"CREATE TEMP TABLE {name} AS {text}")
        return name, lambda: backend.con.execute(f"DROP TABLE IF EXISTS {name}")


class Spark(Engine):
    """PySpark. Results come back whole, so that keys outside the declared list are dropped in the engine."""

    name = "pyspark"
    batchwise = False

    def row_hash(self, table: Any, columns: Sequence[str], seed: int) -> Any:
        # xxhash64 passes over nulls, so that it must be told where they are.
        nulls = [table[c].isnull() for c in columns]
        return _call("xxhash64", "int64", _word(seed), *(table[c] for c in columns), *nulls)

    def keyed_hash(self, text: Any) -> Any:
        return _sha256(text)

    def bytewise(self, text: Any) -> Any:
        # By way of its bytes, which have no collation.
        return text.cast("binary").cast("string")

    def trimmed(self, text: Any) -> Any:
        # A range of characters: Ibis writes two of them as \v and \f, which Spark reads as the letters v and f.
        return text.re_replace("^[ \t-\r]+|[ \t-\r]+$", "")

    def matched(self, text: Any, pattern: str) -> Any:
        import ibis

        return _call("regexp_extract", "string", text, ibis.literal(pattern), ibis.literal(0, type="int32"))

    def day_of(self, moment: Any) -> Any:
        import ibis

        # Ibis does not know which moments have a zone. Seconds are exact in doubles, and so is their floor.
        seconds = _call("unix_seconds", "int64", _call("timestamp", "timestamp('UTC')", moment))
        days = _call("floor", "int64", seconds.cast("float64") / 86_400.0).cast("int32")
        zoned = _call("typeof", "string", moment) == "timestamp"
        return ibis.ifelse(zoned, _call("date_from_unix_date", "date", days), moment.try_cast("date"))

    def days(self, day: Any) -> Any:
        return _call("unix_date", "int32", day)

    def nearest(self, x: Any, dtype: str) -> Any:
        # Rounds ties to even, as DuckDB's casts do; round() would not.
        return _call("rint", "float64", x).cast(dtype)

    def total(self, x: Any, *, where: Any, bits: int) -> Any:
        # Sums of decimals leave compiled code; sums of parts of 27 bits stay in it and cannot overflow.
        x, parts = x.cast("int64"), range(0, max(bits, 1), LIMB)
        if len(parts) == 1:
            return x.sum(where=where)
        out = None
        for at in parts:
            last = at == parts[-1]
            part = x >> at if at else x
            part = part if last else part & ((1 << LIMB) - 1)
            # 38 digits hold any sum of 63-bit numbers over 2^63 rows.
            term = part.sum(where=where).cast("decimal(20, 0)").cast("decimal(38, 0)")
            power = 1 << at
            term = term if power == 1 else term * power
            out = term if out is None else out + term
        return out

    def only_listed(
        self,
        relation: Any,
        keys: dict[str, Any],
        measures: dict[str, Any],
        lists: Mapping[str, Sequence[Any]],
    ) -> Any:
        query = relation.group_by(**keys).aggregate(**measures, **{GROUP: relation.count()})
        for name, values in lists.items():
            # Mixed with the size of the group, the test cannot be moved in front of the grouping, to every row.
            query = query.filter(query[name].isin(values).cast("int64") * query[GROUP] > 0)
        return query.drop(GROUP)

    def batches(self, query: Any) -> Callable[[], Iterator[Any]]:
        def start() -> Iterator[Any]:
            backend = query.get_backend()
            backend._run_pre_execute_hooks(query)
            frame = backend.raw_sql(backend.compile(query))
            with warnings.catch_warnings():
                # PySpark leaves the socket of a result to the garbage collector.
                warnings.simplefilter("ignore", ResourceWarning)
                # By way of pandas, as Ibis does it, integers with nulls would become doubles.
                return iter(frame.toArrow().to_batches())

        return start

    def keep(self, relation: Any) -> tuple[Any, Callable[[], None] | None]:
        backend = relation.get_backend()
        backend._run_pre_execute_hooks(relation)
        name = f"__tacit_{secrets.token_hex(8)}"
        frame = backend.raw_sql(backend.compile(relation)).persist()
        frame.createOrReplaceTempView(name)

        def drop() -> None:
            backend._session.catalog.dropTempView(name)
            frame.unpersist()

        return backend.table(name), drop

    def show(self, table: Any, beside: Any) -> tuple[Any, Callable[[], None] | None]:
        # Ibis hands tables in memory over by way of pandas, where a whole number that is missing becomes NaN.
        session = beside.get_backend()._session
        name = f"__tacit_{secrets.token_hex(8)}"
        session.createDataFrame(table).createOrReplaceTempView(name)
        return beside.get_backend().table(name), lambda: session.catalog.dropTempView(name)


ENGINES = {e.name: e for e in (DuckDB(), Spark())}


def engine_of(relation: Any) -> Engine:
    """The engine that holds an Ibis table."""
    name: str = relation.get_backend().name
    if name in ENGINES:
        return ENGINES[name]
    other = Engine()
    other.name = name
    return other


def _sha256(text: Any) -> Any:
    """48 bits, as text that sorts the same everywhere."""
    return text.hexdigest("sha256").substr(0, 12)


def _word(value: int) -> Any:
    import ibis

    return ibis.literal(value, type="int64")


def _call(name: str, result: str, *values: Any) -> Any:
    """The engine's own function, by its name."""
    import ibis
    import ibis.expr.datatypes as dt

    def function(*_: Any) -> None: ...

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(f"a{i}", kind) for i in range(len(values))]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    signature = (tuple(v.type() for v in values), dt.dtype(result))
    return ibis.udf.scalar.builtin(function, name=name, signature=signature)(*values)


LEAST_MIB = 1024


def memory_in_mib(memory: str) -> int:
    """A limit such as "1GB" or "512MiB", in MiB, and at least what Spark needs to start."""
    units = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}
    pattern = r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([kmgt])i?b?\s*"
    found = re.fullmatch(pattern, memory.lower()) if isinstance(memory, str) else None
    if found is None or float(found[1]) == 0:
        raise InvalidParameter(parameter="memory", value=memory, must='be a size such as "4GB"')
    return max(LEAST_MIB, int(float(found[1]) * units[found[2]]))


# Private folders for data that do not fit in memory; the folders do not outlive the process.
#
# Engines spill rows to disk. A folder is removed when its table is closed and when the process ends. A killed process
# can remove nothing. So a small shell, started with the first folder, waits for the end of a pipe that only this
# process holds open, and then removes the folders. If no shell can be started, or if it is killed as well, the next
# process finds the folder without a locked file and removes it.


PREFIX = "tacit-scratch-"
LOCK = "held"
SHELL = "/bin/sh"
WAIT = 'trap "" TERM INT HUP QUIT; read -r _; rm -rf -- "$1"'
_guard = threading.Lock()
_roots: dict[int, _Root] = {}


class _Root:
    """The folder of one process, with the lock and the shell that guard it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        # Under another name until it is held: who sweeps takes a lock that nobody holds for that of the dead.
        self.lock = _locked(self.path / f"{LOCK}-not-yet")
        (self.path / f"{LOCK}-not-yet").rename(self.path / LOCK)
        self.janitor = _janitor(self.path)
        atexit.register(self.close)

    def close(self) -> None:
        if os.getpid() != self.owner:
            return
        _roots.pop(self.owner, None)
        shutil.rmtree(self.path, ignore_errors=True)
        if self.janitor is not None:
            with contextlib.suppress(Exception):
                self.janitor.stdin.close()
                self.janitor.wait(10)
        if self.lock is not None:
            with contextlib.suppress(OSError):
                os.close(self.lock)


def new_folder() -> Path:
    """A new empty folder that only this user can enter."""
    with _guard:
        root = _roots.get(os.getpid())
        if root is None or not root.path.is_dir():
            sweep()
            root = _roots[os.getpid()] = _Root()
        return Path(tempfile.mkdtemp(dir=root.path))


def remove_folder(folder: Path) -> None:
    """Removes a folder with all its contents."""
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Removes the files of this user's processes that have ended."""
    with contextlib.suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                found = folder.lstat()
                mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
                if not mine or folder.is_symlink() or not (folder / LOCK).is_file():
                    continue
                lock = _locked(folder / LOCK)
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)


def _locked(path: Path) -> int | None:
    """The open file with its lock, which the system releases when the process dies; None if another process holds the
    lock.
    """
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _janitor(folder: Path) -> Any:
    if not os.access(SHELL, os.X_OK):
        return None
    import subprocess

    with contextlib.suppress(OSError):
        return subprocess.Popen(
            [SHELL, "-c", WAIT, "tacit", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    return None


# A DuckDB of our own: in this process, with a limit on memory, a private folder, and one name for the rows.

ROWS = "__tacit_rows"
"""The table or view that answers questions."""


INCOMING = "__tacit_incoming"


def literal(path: str) -> str:
    """A path in which no character has a meaning: DuckDB takes *, ? and [ as patterns."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)


def name_of(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text_of(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


_confined: list[str] | None = None


def confine(folders: Iterable[Path]) -> None:
    """Limits DuckDB, in this process, to these folders, and locks its settings.

    A server does that before it opens a table, so that no query reaches another file.
    """
    global _confined
    _confined = [str(folder.resolve()) for folder in folders]


def started(memory: str, source: str) -> Duck:
    """A new connection."""
    return error_boundary.metadata(
        lambda: Duck(memory), source=source, problem="cannot be opened: DuckDB does not start",
        hint='memory is a size such as "4GB", and the temporary folder must be there to write to',
    )  # fmt: skip


class Interrupted:
    """Batches that a thread of the engine asks for, until they are stopped.

    Arrow reads ahead in a thread of its own, even after the query failed. On a full disk it would go on, and
    the program could not end.
    """

    def __init__(self, batches: Iterable[Any]) -> None:
        self._inner, self._one, self._over = iter(batches), threading.Lock(), False

    def __iter__(self) -> Interrupted:
        return self

    def __next__(self) -> Any:
        with self._one:
            if self._over:
                raise StopIteration
            return next(self._inner)

    def stop(self) -> None:
        """Stops, and waits for the batch in progress."""
        self._over = True
        with self._one:
            close = getattr(self._inner, "close", None)
            if close is not None:
                close()


class Duck:
    """One connection. All work on rows happens here inside the error boundary."""

    def __init__(self, memory: str) -> None:
        import ibis

        self.folder = new_folder()
        self.backend: Any = ibis.duckdb.connect(
            ":memory:",
            memory_limit=memory,
            temp_directory=str(self.folder),
            preserve_insertion_order=False,
            autoinstall_known_extensions=False,
            # What stood in a file that has changed since is not to be remembered.
            enable_external_file_cache=False,
        )
        self.run = self.backend.con.execute
        # How far a query is can be asked for (`Table.progress`); DuckDB's own bar would go to standard output.
        self.run("SET enable_progress_bar = true")
        self.run("SET enable_progress_bar_print = false")
        if _confined is not None:
            allowed = ", ".join(text_of(f"{folder}/") for folder in (*_confined, str(self.folder)))
            self.run(f"SET allowed_directories = [{allowed}]")
            self.run("SET enable_external_access = false")
            self.run("SET lock_configuration = true")
        self.kind = ""
        """The object with the name of the rows: a view, a table, or none so far."""

    def close(self) -> None:
        """Ends the connection and removes its folder."""
        with contextlib.suppress(Exception):
            self.backend.disconnect()
        remove_folder(self.folder)

    def offer(self, rows: Any, name: str = INCOMING) -> Any:
        """Offers Arrow rows (a table, or batches that are read once) under a name; a later offer replaces it."""
        self.backend.con.register(name, rows)
        return self.backend.table(name)

    def view(self, query: str) -> Any:
        """The rows are the result of a query, each time it is run."""
        self.drop()
        self.run(f"CREATE TEMP VIEW {ROWS} AS {query}")
        self.kind = "VIEW"
        return self.backend.table(ROWS)

    def fill(self, query: str) -> None:
        """Stores the result of one query as the rows: all of them, or none if it fails."""
        made = f"{ROWS}_made"
        self.run(f"CREATE OR REPLACE TEMP TABLE {made} AS {query}")
        self.drop()
        self.run(f"ALTER TABLE {made} RENAME TO {ROWS}")
        self.kind = "TABLE"

    def fill_from(self, batches: Iterable[Any], schema: Any) -> None:
        """Stores these Arrow batches as the rows, in the earlier types."""
        types = self.types(ROWS)
        listed = ", ".join(f"TRY_CAST({name_of(n)} AS {t}) AS {name_of(n)}" for n, t in types.items())
        with self.coming(counted(batches), schema):
            self.fill(f"SELECT {listed} FROM {INCOMING}")

    @contextlib.contextmanager
    def coming(self, batches: Iterable[Any], schema: Any) -> Iterator[None]:
        """Arrow batches under the name of incoming rows, for a query that reads them once."""
        import pyarrow as pa

        given = Interrupted(batches)
        self.offer(pa.RecordBatchReader.from_batches(schema, given))
        try:
            yield
        finally:
            given.stop()
            self.backend.con.unregister(INCOMING)

    def copy(self, table: Any) -> Any:
        """The rows are those of an Arrow table."""
        self.offer(table)
        self.fill(f"SELECT * FROM {INCOMING}")
        return self.backend.table(ROWS)

    def types(self, name: str) -> dict[str, str]:
        """The columns of a table or view, and what DuckDB calls their types."""
        return {str(r[0]): str(r[1]) for r in self.run(f"DESCRIBE {name}").fetchall()}

    def drop(self) -> None:
        """Forgets the rows."""
        if self.kind:
            self.run(f"DROP {self.kind} {ROWS}")
        self.kind = ""

"""The storage of a ledger: its tables, in one SQLite file or in one schema of a PostgreSQL database.

    tacit_ledger    one row: the header, the secret, and the head (how many entries, digest, MAC, state)
    tacit_entries   the chain: sequence, digest, content; rows are inserted and never changed
    tacit_answers   the answers, beside the chain so that reading it stays cheap; the chain has their digests
    tacit_index     where to look: the entry that closed a reservation, the entry with the answer to a question;
                    each row keyed
    tacit_data      a keyed mark of the data that each answer was made from; never exported
    tacit_sealed    encrypted parts, made when the first one is kept

Statements are texts with named values that SQLite and PostgreSQL read alike. A file goes through the standard library's
`sqlite3`; only a server's ledger loads SQLAlchemy, which takes longer to import than most commands run.

A writer has the lock from before the first read of a transaction to its end: `BEGIN IMMEDIATE` on SQLite, in
the order of arrival; a lock on the header's row on PostgreSQL. A transaction that has ended is on the disk:
rollback journal with synchronous=EXTRA on SQLite, synchronous_commit=on on PostgreSQL
(docs/decisions/0008-ledger-storage.md).
"""

from __future__ import annotations

import atexit
import io
import os
import re
import sqlite3
import struct
import sys
import tempfile
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from tacit.errors import InvalidParameter, LedgerCorrupt, LedgerError, LedgerLocked
from tacit.exact.checks import positive
from tacit.exact.data_classes import dataclass

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Engine
    from sqlalchemy.engine import Connection as DatabaseConnection


NOTHING: Mapping[str, Any] = {}
_MOST_VALUES = 500
"""The largest number of values in one list of a statement; longer lists are divided, because databases limit
their number."""


class FileConnection:
    """SQLite's own connection to a ledger's file."""

    __slots__ = ("driver",)

    def __init__(self, driver: sqlite3.Connection) -> None:
        self.driver = driver

    def rows(self, statement: str, values: Mapping[str, Any] = NOTHING) -> list[Any]:
        """All rows that a statement finds."""
        return self.driver.execute(statement, values).fetchall()

    def first(self, statement: str, values: Mapping[str, Any] = NOTHING) -> Any:
        """The first row that a statement finds, or None."""
        return self.driver.execute(statement, values).fetchone()

    def change(self, statement: str, values: Mapping[str, Any] = NOTHING) -> None:
        """Insert, update, create or set."""
        self.driver.execute(statement, values)

    def has(self, table: Table) -> bool:
        """Whether the file has this table."""
        found = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"
        return self.first(found, {"name": table.name}) is not None

    def create(self, table: Table) -> None:
        """Creates this table unless it exists."""
        for statement in table.made("BLOB"):
            self.change(statement)


class ServerConnection:
    """A connection to a PostgreSQL server, through SQLAlchemy."""

    __slots__ = ("connection",)

    def __init__(self, connection: DatabaseConnection) -> None:
        self.connection = connection

    def rows(self, statement: str, values: Mapping[str, Any] = NOTHING) -> list[Any]:
        """All rows that a statement finds."""
        return list(map(tuple, self.connection.execute(_text(statement), dict(values))))

    def first(self, statement: str, values: Mapping[str, Any] = NOTHING) -> Any:
        """The first row that a statement finds, or None."""
        return self.connection.execute(_text(statement), dict(values)).first()

    def change(self, statement: str, values: Mapping[str, Any] = NOTHING) -> None:
        """Insert, update, create or set."""
        self.connection.execute(_text(statement), dict(values))

    def has(self, table: Table) -> bool:
        """Whether the schema has this table."""
        import sqlalchemy

        return bool(sqlalchemy.inspect(self.connection).has_table(table.name))

    def create(self, table: Table) -> None:
        """Creates this table unless it exists."""
        for statement in table.made("BYTEA"):
            self.change(statement)


Connection = FileConnection | ServerConnection


@lru_cache(maxsize=256)
def _text(statement: str) -> Any:
    import sqlalchemy

    return sqlalchemy.text(statement)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A table: its columns with their types, its key, its constraints and its indices."""

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    check: str = ""
    looked_up: str = ""

    def made(self, binary: str) -> list[str]:
        """Statements that make it, with this type for bytes."""
        lines = [f"{c} {binary if t == 'BYTES' else t} NOT NULL" for c, t in self.columns.items()]
        lines.append(f"PRIMARY KEY ({', '.join(self.key)})")
        if self.check:
            lines.append(f"CHECK ({self.check})")
        body = ", \n\t".join(lines)
        out = [f"CREATE TABLE IF NOT EXISTS {self.name} (\n\t{body}\n)"]
        if self.looked_up:
            place = f"{self.name} ({self.looked_up})"
            out.append(f"CREATE INDEX IF NOT EXISTS ix_{self.name}_{self.looked_up} ON {place}")
        return out

    @property
    def insertion(self) -> str:
        """The statement that inserts a whole row."""
        names = ", ".join(self.columns)
        return f"INSERT INTO {self.name} ({names}) VALUES ({', '.join(f':{c}' for c in self.columns)})"

    def selection(self, *columns: str, where: str = "", order: str = "") -> str:
        """The statement that selects these columns, or all of them."""
        text = f"SELECT {', '.join(columns or self.columns)} FROM {self.name}"
        return text + (f" WHERE {where}" if where else "") + (f" ORDER BY {order}" if order else "")

    def update(self, columns: Sequence[str]) -> str:
        """The statement that changes these columns of every row."""
        return f"UPDATE {self.name} SET {', '.join(f'{c} = :{c}' for c in columns)}"

    def all(self, connection: Connection) -> list[dict[str, Any]]:
        """Every row, as a mapping."""
        return [dict(zip(self.columns, row, strict=True)) for row in connection.rows(self.selection())]

    def where(self, connection: Connection, column: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        """The rows that have one of these values in a column."""
        out = []
        for start in range(0, len(values), _MOST_VALUES):
            piece = {f"v{i}": value for i, value in enumerate(values[start : start + _MOST_VALUES])}
            text = self.selection(where=f"{column} IN ({', '.join(f':{name}' for name in piece)})")
            out += [dict(zip(self.columns, row, strict=True)) for row in connection.rows(text, piece)]
        return out

    def count(self, connection: Connection) -> int:
        """The number of rows."""
        return int(connection.first(f"SELECT count(*) FROM {self.name}")[0])


HEADER = Table(
    name="tacit_ledger",
    columns={
        "id": "INTEGER",
        "format": "INTEGER",
        "header": "TEXT",
        "secret": "BYTES",
        "sequence": "BIGINT",
        "digest": "TEXT",
        "mac": "TEXT",
        "state": "TEXT",
    },
    key=("id",),
    check="id = 1",
)
ENTRIES = Table(
    name="tacit_entries",
    columns={"sequence": "BIGINT", "digest": "TEXT", "content": "TEXT"},
    key=("sequence",),
)
ANSWERS = Table(name="tacit_answers", columns={"sequence": "BIGINT", "body": "BYTES"}, key=("sequence",))
INDEX = Table(
    name="tacit_index",
    columns={"name": "TEXT", "sequence": "BIGINT", "digest": "TEXT", "mac": "TEXT"},
    key=("name",),
)
DATA = Table(
    name="tacit_data",
    columns={"sequence": "BIGINT", "version": "TEXT", "mark": "TEXT", "said": "TEXT"},
    key=("sequence",),
    looked_up="version",
)
SEALED = Table(
    name="tacit_sealed",
    columns={"name": "TEXT", "part": "BIGINT", "body": "BYTES"},
    key=("name", "part"),
)
TABLES = (HEADER, ENTRIES, ANSWERS, INDEX, DATA)
"""The tables that every ledger has."""


SETTINGS = (
    "synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF", "cell_size_check = ON", "journal_mode = PERSIST",
)  # fmt: skip
"""All that ended is on the disk. The journal stays beside the file with a blanked head. This is as safe as
deleting it after every transaction, and needs half the waiting for the disk, since no folder is written."""


def milliseconds(wait: float) -> int:
    """A waiting time as databases take it: in 32 bits, since a longer one would mean not waiting at all."""
    return int(min(max(1.0, 1000 * wait), 2**31 - 1))


def open_file(path: str, wait: float) -> sqlite3.Connection:
    """SQLite's own connection to an existing file; an ended transaction is on the disk."""
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode=rw",
        uri=True,
        timeout=milliseconds(wait) / 1000,
        isolation_level=None,
        check_same_thread=False,
    )
    for setting in SETTINGS:
        connection.execute(f"PRAGMA {setting}")
    return connection


def failures(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """Errors that a database may raise; SQLAlchemy's only where something has loaded it."""
    loaded = sys.modules.get("sqlalchemy.exc")
    return (sqlite3.Error, *more) if loaded is None else (sqlite3.Error, loaded.SQLAlchemyError, *more)


# Connections to ledgers' files that wait for the next transaction: opening one takes longer than most charges.
#
# A connection is handed out again only while the file at its place is the very one, as the last transaction on it
# left it: the same file by its number, of the same length and with the same times. A file that was put in its place,
# copied over it or written by somebody else is opened anew. Whoever uses a connection has taken it from here, so that
# no two have one, and a child of this process finds none: it must not speak on, nor close, what its parent opened.

MOST = 16
"""The number of connections kept in a process; the least recently used ones are closed."""

Stamp = tuple[int, ...]


def stamp_of(path: Path) -> Stamp | None:
    """The identity of this file and its present content; None without a file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class _Kept:
    """The connections of this process, by their store.

    There is no lock, which Ctrl-C could leave locked: each step on the dictionary is one operation of the
    interpreter.
    """

    def __init__(self) -> None:
        self._of: OrderedDict[int, tuple[Path, FileConnection, Stamp]] = OrderedDict()
        self._parents: list[object] = []

    def take(self, store: int, path: Path) -> FileConnection | None:
        """The connection of this store, which now belongs to the caller; None if the file has changed."""
        found = self._of.pop(store, None)
        if found is None:
            return None
        _, connection, stamp = found
        if stamp == stamp_of(path):
            return connection
        _close(connection)
        return None

    def put(self, store: int, path: Path, connection: FileConnection, before: Stamp | None) -> None:
        """Keeps an idle connection, to the file that was there `before` it was opened or taken.

        The system gives the inode number of an open file to no other file, so the same number still means the same
        file.
        """
        stamp = stamp_of(path)
        if stamp is None or before is None or stamp[:2] != before[:2]:
            _close(connection)
            return
        over = [self._of.pop(store, None)]
        self._of[store] = path, connection, stamp
        with suppress(KeyError):  # another thread has taken the last one
            while len(self._of) > MOST:
                over.append(self._of.popitem(last=False)[1])
        for gone in over:
            if gone is not None:
                _close(gone[1], whole=gone[2] == stamp_of(gone[0]))

    def drop(self, store: int) -> None:
        """Close this store's connections of this process."""
        found = self._of.pop(store, None)
        if found is not None:
            _close(found[1], whole=found[2] == stamp_of(found[0]))

    def drop_all(self) -> None:
        """Close all: the process ends."""
        for store in list(self._of):
            self.drop(store)

    def in_child(self) -> None:
        """Connections of the parent process stay open and unused, so that nothing closes them."""
        self._parents.append(self._of)
        self._of = OrderedDict()


def _close(connection: FileConnection, *, whole: bool = False) -> None:
    """Gives the connection back. If the file is unchanged (`whole`), its journal is removed too, and only one file
    remains.
    """
    with suppress(sqlite3.Error):
        if whole:
            connection.driver.execute("PRAGMA journal_mode = DELETE")
    with suppress(sqlite3.Error):
        connection.driver.close()


kept = _Kept()
atexit.register(kept.drop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=kept.in_child)


# Who writes next: a queue in the order of arrival, in a small file beside a ledger's file.
#
# SQLite lets waiters try again after random naps, so that one of them may wait for ever. Here each takes a number:
#
#     byte 0          held while a number is taken
#     bytes 1 to 8    the last number
#     byte 64 + n     held by anybody who has number n, from before the waiting to the end of the writing
#
# It is somebody's turn when no smaller number is held. Locks belong to an open file and end with it, so that whoever
# dies is not waited for. The queue only decides who comes first: that one writes at a time is SQLite's own doing,
# and where there are no such locks (they are Linux's) SQLite's naps are all there is.

try:
    import fcntl
except ImportError:  # pragma: no cover - not a Unix
    fcntl = None  # type: ignore[assignment]


_SET = getattr(fcntl, "F_OFD_SETLK", None)
_FIRST = 64
_LONGEST_NAP = 0.004
_OPEN: weakref.WeakSet[io.FileIO] = weakref.WeakSet()


class Late(Exception):
    """The turn did not come in time."""


@contextmanager
def queued(path: Path, *, until: float) -> Iterator[None]:
    """Waits for the turn to write to the ledger at `path`, at most until this moment of the monotonic clock."""
    file = _opened(path)
    if file is None:
        yield
        return
    _OPEN.add(file)
    # Ctrl-C comes anywhere, here too: a second attempt at closing does no harm, and a file that nobody has is closed.
    try:
        handle = file.fileno()
        number = _number(handle, until)
        _wait(partial(_lock, handle, _FIRST, number, shared=True), until)
        yield
    finally:
        try:
            file.close()
        finally:
            file.close()


def _opened(path: Path) -> io.FileIO | None:
    if _SET is None:
        return None
    # A ledger that cannot be written has no queue: the database says what is wrong with it.
    with suppress(OSError):
        if path.exists():
            return io.FileIO(f"{path}-queue", "r+", opener=_create)
    return None


def _create(name: str, _: int) -> int:
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _number(handle: int, until: float) -> int:
    _wait(partial(_lock, handle, 0, 1), until)
    try:
        number = int.from_bytes(os.pread(handle, 8, 1), "big") + 1
        _lock(handle, _FIRST + number, 1)
        with suppress(OSError):  # a full disk: then two may hold one number, and neither waits for the other
            os.pwrite(handle, number.to_bytes(8, "big"), 1)
        return number
    finally:
        _lock(handle, 0, 1, free=True)


def _wait(attempt: Callable[[], bool], until: float) -> None:
    nap = 0.0002
    while not attempt():
        if time.monotonic() >= until:
            raise Late
        time.sleep(nap)
        nap = min(2 * nap, _LONGEST_NAP)


def _lock(handle: int, start: int, length: int, *, shared: bool = False, free: bool = False) -> bool:
    """Lock bytes of the file for this opening of it, without waiting."""
    kind = fcntl.F_UNLCK if free else fcntl.F_RDLCK if shared else fcntl.F_WRLCK
    try:
        # struct flock: type, whence, start, length, process (none: the lock is the open file's)
        fcntl.fcntl(handle, int(_SET or 0), struct.pack("@hhqqi4x", kind, os.SEEK_SET, start, length, 0))
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system without locks has no queue either
        return True
    return True


def _not_ours() -> None:
    """A child process shares its parent's open files, and would keep its parent's number locked."""
    for file in list(_OPEN):
        with suppress(OSError):
            file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_not_ours)


# What a database says when it fails, in one sentence of ours each: no values, no passwords, no tracebacks.

IN_DOUBT = "the charge may have been recorded, and then it stays: see `tacit ledger show`"

_LOCKED = (LedgerLocked, "is in use by another process", "try again, or wait longer with wait_seconds")
_READ_ONLY = (LedgerError, "is read-only", "nothing can be charged here; make it writable first")
_FULL = (LedgerError, "cannot grow: the disk is full", "make room; nothing was charged")
_ABSENT = (LedgerError, "cannot be opened", "check that it exists and that you may read it")
_NO_LEDGER = (LedgerError, "is not a ledger", "give the file or the URL that a ledger was created with")
_DAMAGED = (
    LedgerCorrupt,
    "is damaged",
    "restore it from a backup; what was charged since then stays charged",
)
_IO = (LedgerError, "could not be read or written", "check the disk")
_LOST = (LedgerError, "cannot be reached", "check that the server runs and lets you in")

_SQLITE = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_CANTOPEN: _ABSENT,
    sqlite3.SQLITE_PERM: _ABSENT,
    sqlite3.SQLITE_NOTADB: _NO_LEDGER,
    sqlite3.SQLITE_ERROR: _NO_LEDGER,  # no such table, no such column
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_CONSTRAINT: _DAMAGED,  # the next sequence number is taken already
    sqlite3.SQLITE_IOERR: _IO,
}
_AGAIN = ("40001", "40P01")  # could not serialise; deadlock
_POSTGRES = {
    "55P03": _LOCKED,
    "57014": _LOCKED,
    "40001": _LOCKED,
    "40P01": _LOCKED,
    "25006": _READ_ONLY,
    "42501": (
        LedgerError,
        "cannot be used: the server does not allow it",
        "ask for the right to write to it",
    ),
    "53100": _FULL,
    "42P01": _NO_LEDGER,
    "42703": _NO_LEDGER,
    "23505": _DAMAGED,
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
}


def as_ledger_error(problem: BaseException, name: str, *, committing: bool = False) -> LedgerError:
    """The error of ours for one of the driver's; the driver's own text is not repeated."""
    if isinstance(problem, Late):
        return LedgerLocked(ledger=name, reason=_LOCKED[1], hint=_LOCKED[2])
    loaded = sys.modules.get("sqlalchemy.exc")
    if (
        loaded is not None
        and isinstance(problem, loaded.SQLAlchemyError)
        and not isinstance(problem, loaded.DBAPIError)
    ):
        return LedgerError(ledger=name, reason=_LOST[1], hint=_LOST[2])
    original = getattr(problem, "orig", None) or problem
    kind: type[LedgerError]
    if isinstance(original, sqlite3.Error):
        code = _code(original)
        kind, reason, hint = _SQLITE.get(code, _IO)
        settled = code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY)
    else:
        state = getattr(original, "sqlstate", None)
        kind, reason, hint = _POSTGRES.get(state or "", _LOST)
        settled = state is not None
    in_doubt = committing and not settled
    told = kind(ledger=name, reason=reason, hint=IN_DOUBT if in_doubt else hint)
    if in_doubt:
        told.mark_charged()
    return told


def busy(problem: BaseException) -> bool:
    """Does SQLite say that somebody else is reading or writing?"""
    original = getattr(problem, "orig", None) or problem
    return isinstance(original, sqlite3.Error) and _code(original) == sqlite3.SQLITE_BUSY


def passing(problem: BaseException) -> bool:
    """Does the database report that a transaction had no effect, and may be tried again?"""
    original = getattr(problem, "orig", None) or problem
    return busy(problem) or getattr(original, "sqlstate", None) in _AGAIN


def _code(problem: sqlite3.Error) -> int:
    return getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


# Where a ledger lies, in words that may be shown: a URL without the name and the password in it.

# Everything between the scheme and the last @ is somebody's; what follows a question mark may be.
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?:.*@)?(?P<rest>[^?\n]*)(?:\?.*)?", re.DOTALL)


def without_credentials(place: str) -> str:
    """A path unchanged; of a URL the scheme, the host and the database, without user, password and options."""
    return _URL.sub(lambda url: url["scheme"] + url["rest"], place)


T = TypeVar("T")

APPLICATION_ID = 0x74616374  # "tact" in the header of the SQLite file
_CREATION_LOCK = 0x7461636974  # of PostgreSQL's advisory locks


class Store:
    """Transactions on one ledger, with tables and locks, but without the meaning of entries."""

    def __init__(self, where: str | os.PathLike[str], *, wait_seconds: float = 30.0) -> None:
        found = _place(where)
        self.path: Path | None = found if isinstance(found, Path) else None
        self._url: URL | None = None if isinstance(found, Path) else found
        self.wait_seconds = positive("wait_seconds", wait_seconds)
        self.name = str(self.path) if self._url is None else place_name(self._url)
        self._wait = self.wait_seconds
        self._owner, self._lock = os.getpid(), threading.RLock()
        self._engine: Any = None if self._url is None else self._new_engine(self._url)

    @property
    def place(self) -> str:
        """The path, or the URL without user, password and options."""
        if self._url is None:
            return str(self.path)
        return without_credentials(self._url.render_as_string(hide_password=True).replace("+psycopg", "", 1))

    @property
    def is_file(self) -> bool:
        """SQLite, and not a server."""
        return self.path is not None

    # --- creation ------------------------------------------------------------------------------------
    def create(self, row: dict[str, Any]) -> None:
        """Make the tables with this header row, whole or not at all; refuse to touch an existing ledger."""
        if self.path is None:
            self.write(lambda connection: self._build(connection, row), fresh=True)
            return
        try:
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}-", suffix=".new")
        except OSError as problem:
            raise _cannot_create(self.name, problem) from None
        os.close(handle)
        partial = Path(name)
        try:
            draft = Store(partial, wait_seconds=self.wait_seconds)
            draft.name = self.name
            draft.write(lambda connection: self._build(connection, row), fresh=True)
            _publish(partial, self.path)
        except OSError as problem:
            raise _cannot_create(self.name, problem) from None
        finally:
            for leftover in (partial, Path(f"{partial}-journal"), Path(f"{partial}-queue")):
                with suppress(OSError):
                    leftover.unlink(missing_ok=True)

    def _build(self, connection: Connection, row: dict[str, Any]) -> None:
        if self.is_file:
            connection.change(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.change(f"PRAGMA user_version = {row['format']}")
        elif connection.has(HEADER):
            raise _exists(self.name)
        for table in TABLES:
            connection.create(table)
        connection.change(HEADER.insertion, {"id": 1, **row})

    def exists(self) -> bool:
        """Whether anything exists at this place. A file of any kind, or the header's table."""
        if self.path is not None:
            return os.path.exists(self.path)
        return self.read(lambda connection: connection.has(HEADER))

    def alone(self) -> AbstractContextManager[Any]:
        """Whether this process has no other thread in a transaction here."""
        return self._lock

    # --- transactions --------------------------------------------------------------------------------
    def read(self, work: Callable[[Connection], T]) -> T:
        """Runs this in a transaction that sees one state of the ledger and writes nothing."""
        return self._translated(self.reading, work, self.wait_seconds)

    def write(
        self, work: Callable[[Connection], T], *, fresh: bool = False, patience: float | None = None
    ) -> T:
        """Runs this in a transaction without any other writer, and returns when it is durable.

        It repeats the work until `patience` has passed if the database says that it did not commit, so `work`
        may affect the database only.
        """
        wait = self.wait_seconds if patience is None else max(patience, self.wait_seconds)
        return self._translated(partial(self.writing, fresh=fresh, wait=wait), work, wait)

    def _translated(
        self,
        transaction: Callable[[], AbstractContextManager[Connection]],
        work: Callable[[Connection], T],
        wait: float,
    ) -> T:
        """Does the work in a transaction. Turns errors of the database into ours. They are raised outside of any
        handler, so that no context remains.
        """
        until = time.monotonic() + wait
        while True:
            try:
                with transaction() as connection:
                    return work(connection)
            except failures(Late) as problem:
                ending = bool(getattr(problem, "tacit_committing", False))
                error = as_ledger_error(problem, self.name, committing=ending)
                again = passing(problem)
            if not again or time.monotonic() >= until:
                raise error
            time.sleep(0.001)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the ledger and writes nothing."""
        with self._connected(write=False, wait=self.wait_seconds) as connection:
            if isinstance(connection, FileConnection):
                connection.driver.execute("BEGIN")
            else:
                connection.connection.begin()
                connection.change("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    @contextmanager
    def writing(self, *, fresh: bool = False, wait: float | None = None) -> Iterator[Connection]:
        """An exclusive transaction; durable when this block has ended without an error."""
        wait = self.wait_seconds if wait is None else wait
        with self._connected(write=True, wait=wait) as connection:
            # Now, and not with the first statement: the lock comes before any reading.
            if isinstance(connection, FileConnection):
                connection.driver.execute("BEGIN IMMEDIATE")
            else:
                connection.connection.begin()
                # Whatever the role's default is: stricter levels fail where one here waits for its turn.
                connection.change("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                connection.change(f"SET LOCAL lock_timeout = {milliseconds(wait)}")
                connection.change("SET LOCAL synchronous_commit = on")
                if fresh:
                    connection.change(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})")
                else:
                    connection.change(f"{HEADER.selection('id')} FOR UPDATE")
            yield connection
            self._commit(connection, wait)

    def _commit(self, connection: Connection, wait: float) -> None:
        """On SQLite, readers delay the end of a transaction, which stays whole."""
        until = time.monotonic() + wait
        try:
            if isinstance(connection, ServerConnection):
                connection.connection.commit()
                return
            while True:
                try:
                    connection.driver.commit()
                    return
                except sqlite3.OperationalError as problem:
                    if not busy(problem) or time.monotonic() >= until:
                        raise
                time.sleep(0.001)
        except failures() as problem:
            problem.tacit_committing = True  # type: ignore[attr-defined]
            raise

    @contextmanager
    def _connected(self, *, write: bool, wait: float) -> Iterator[Connection]:
        self._after_fork()
        # The lock by a statement of its own: between two lines of Python's Ctrl-C would leave it held.
        with self._lock, ExitStack() as stack:
            if write and self.path is not None:
                stack.enter_context(queued(self.path, until=time.monotonic() + wait))
            self._wait = wait
            if self.path is None:
                yield ServerConnection(stack.enter_context(self._engine.connect()))
            else:
                yield stack.enter_context(self._on_file(self.path))

    @contextmanager
    def _on_file(self, path: Path) -> Iterator[FileConnection]:
        """The kept connection, or a new one; kept again after success."""
        before = stamp_of(path)
        connection = kept.take(id(self), path) or FileConnection(self._open_file())
        try:
            connection.driver.execute(f"PRAGMA busy_timeout = {milliseconds(self._wait)}")
            yield connection
            connection.driver.rollback()  # what was only read ends here, and lets writers go on
        except BaseException:
            connection.driver.close()
            raise
        kept.put(id(self), path, connection, before)

    def check_format(self, connection: Connection) -> None:
        """Refuse an SQLite file that is somebody else's."""
        if not self.is_file:
            return
        found = connection.first("PRAGMA application_id")
        if found is None or found[0] != APPLICATION_ID:
            raise LedgerError(
                ledger=self.name, reason="is not a ledger",
                hint="give the file or the URL that a ledger was created with",
            )  # fmt: skip

    def damage(self, connection: Connection) -> str:
        """The database's own list of faults in its file; empty for a sound one."""
        if not self.is_file:
            return ""
        try:
            result = connection.first("PRAGMA integrity_check(1)")
        except sqlite3.Error:
            result = None
        return "" if result == ("ok",) else "the database file is damaged"

    # --- engines -------------------------------------------------------------------------------------
    def _new_engine(self, url: URL) -> Engine:
        from sqlalchemy import create_engine
        from sqlalchemy.pool import QueuePool

        try:
            return create_engine(url, poolclass=QueuePool, pool_size=1, max_overflow=1, pool_pre_ping=True)
        except ModuleNotFoundError:
            raise LedgerError(
                ledger=self.name,
                reason="needs the PostgreSQL driver",
                hint="install tacit with the extra `postgres`",
            ) from None

    def _open_file(self) -> sqlite3.Connection:
        with suppress(OSError):  # not ours, or a name too long: SQLite will say that it cannot open it
            if self.path is not None and not self.path.exists():
                raise LedgerError(
                    ledger=self.name, reason="does not exist", hint="check its name, or create it"
                )
        return open_file(str(self.path), self._wait)

    def close(self) -> None:
        """Give connections back. The next transaction opens them anew."""
        if self.is_file:
            kept.drop(id(self))
        elif self._owner == os.getpid():
            self._engine.dispose()

    def __del__(self) -> None:
        if hasattr(self, "_engine"):
            self.close()

    def _after_fork(self) -> None:
        if self._owner != os.getpid():
            # A child must not speak on its parent's connection, nor wait for a thread that it does not have.
            if not self.is_file:
                self._engine.dispose(close=False)
            self._owner, self._lock = os.getpid(), threading.RLock()


def _publish(partial: Path, path: Path) -> None:
    """Give a finished file its name, unless something has that name already."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise _exists(str(path)) from None
    except OSError:
        # No hard links here: claim the name first, then move onto the claim.
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise _exists(str(path)) from None
        partial.replace(path)
    with suppress(OSError):  # folders cannot be opened everywhere
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _place(where: str | os.PathLike[str]) -> Path | URL:
    """A path for SQLite, or a URL for PostgreSQL."""
    text = os.fspath(where) if isinstance(where, str | os.PathLike) else where
    if not isinstance(text, str) or not text or "\0" in text or text == ":memory:":
        raise InvalidParameter(
            parameter="ledger",
            value="a text" if isinstance(text, str) else type(text).__name__,
            must="be a file's path or a URL",
            hint="a ledger outlives a process",
        )
    if "://" not in text:
        return Path(text).expanduser().absolute()
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise InvalidParameter(
            parameter="ledger", value="a URL", must="be written like postgresql://user@host/database"
        ) from None
    kind = url.get_backend_name()
    if kind == "sqlite" and url.database and url.database != ":memory:":
        return Path(url.database).absolute()
    if kind in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    raise InvalidParameter(
        parameter="ledger", value=kind, must="be a path, or a URL of postgresql or sqlite with a file"
    )


def is_there(where: str | os.PathLike[str], *, wait_seconds: float) -> bool:
    """Whether anything exists at this place. A file is looked for without a database's help."""
    place = _place(where)
    positive("wait_seconds", wait_seconds)
    if isinstance(place, Path):
        return os.path.exists(place)
    return Store(where, wait_seconds=wait_seconds).exists()


def place_name(url: URL) -> str:
    """A database in sentences: its host and its name, without user or password."""
    host = url.host or "local socket"
    return f"postgresql {host}/{url.database or ''}"


def _exists(name: str) -> LedgerError:
    return LedgerError(ledger=name, reason="exists already", hint="open it, or give the new one another name")


def _cannot_create(name: str, problem: OSError) -> LedgerError:
    reason = (problem.strerror or "it cannot be written there").lower()
    return LedgerError(ledger=name, reason=f"cannot be created: {reason}", hint="choose another place")

"""Where a ledger lies: one SQLite file, or one schema of a PostgreSQL database, through SQLAlchemy Core.

    tacit_ledger    one row: the header, the secret, and the head (how many entries, digest, MAC, state)
    tacit_entries   the chain: sequence, digest, content; rows are inserted and never changed
    tacit_answers   the answers, beside the chain so that reading it stays cheap; the chain has their digests
    tacit_index     where to look: which entry closed a reservation, which has the answer to a question; each row keyed
    tacit_data      a keyed mark of the data that each answer was made from; never exported

Writers take turns from before the first read of a transaction to its end: `BEGIN IMMEDIATE` on SQLite, in the order
of arrival (`queue.py`); a lock on the header's row on PostgreSQL. A transaction that has ended is on the disk:
rollback journal with synchronous=EXTRA on SQLite, synchronous_commit=on on PostgreSQL
(docs/decisions/0008-ledger-storage.md).
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.pool import QueuePool

from tacit.errors import InvalidParameter, LedgerError
from tacit.exact.checks import positive
from tacit.ledger.kept import kept, stamp_of
from tacit.ledger.opening import driver, files_engine, milliseconds, open_file, opened
from tacit.ledger.places import without_credentials
from tacit.ledger.queue import Late, queued
from tacit.ledger.told import as_ledger_error, busy, passing

__all__ = ["ANSWERS", "DATA", "ENTRIES", "HEADER", "INDEX", "Store", "is_there"]

T = TypeVar("T")

APPLICATION_ID = 0x74616374  # "tact" in the header of the SQLite file
_CREATION_LOCK = 0x7461636974  # of PostgreSQL's advisory locks

_METADATA = sa.MetaData()
HEADER = sa.Table(
    "tacit_ledger",
    _METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("format", sa.Integer, nullable=False),
    sa.Column("header", sa.Text, nullable=False),
    sa.Column("secret", sa.LargeBinary, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("mac", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.CheckConstraint("id = 1"),
)
ENTRIES = sa.Table(
    "tacit_entries",
    _METADATA,
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
)
ANSWERS = sa.Table(
    "tacit_answers",
    _METADATA,
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
NEW_ANSWER = sa.insert(ANSWERS)
INDEX = sa.Table(
    "tacit_index",
    _METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("mac", sa.Text, nullable=False),
)
DATA = sa.Table(
    "tacit_data",
    _METADATA,
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Text, nullable=False, index=True),
    sa.Column("mark", sa.Text, nullable=False),
    sa.Column("said", sa.Text, nullable=False),
)


class Store:
    """Transactions on one ledger; knows tables and locks, and nothing of what the entries mean."""

    def __init__(self, where: str | os.PathLike[str], *, wait_seconds: float = 30.0) -> None:
        self.path, self._url = _place(where)
        self.wait_seconds = positive("wait_seconds", wait_seconds)
        self.name = str(self.path) if self.path else _shown(self._url)
        self._wait = self.wait_seconds
        self._owner, self._lock = os.getpid(), threading.RLock()
        self._engine = self._new_engine()

    @property
    def place(self) -> str:
        """The path, or the URL without user, password and options."""
        whole = self._url.render_as_string(hide_password=True).replace("+psycopg", "", 1)
        return str(self.path) if self.path else without_credentials(whole)

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
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.exec_driver_sql(f"PRAGMA user_version = {row['format']}")
        elif sa.inspect(connection).has_table(HEADER.name):
            raise _exists(self.name)
        _METADATA.create_all(connection)
        connection.execute(sa.insert(HEADER).values(id=1, **row))

    def exists(self) -> bool:
        """Is there anything at this place? A file of any kind, or the header's table."""
        if self.path is not None:
            return os.path.exists(self.path)
        return self.read(lambda connection: bool(sa.inspect(connection).has_table(HEADER.name)))

    def alone(self) -> AbstractContextManager[Any]:
        """No other thread of this process is in a transaction here."""
        return self._lock

    # --- transactions --------------------------------------------------------------------------------
    def read(self, work: Callable[[Connection], T]) -> T:
        """Do this in a transaction that sees one state of the ledger and writes nothing."""
        return self._told(lambda: self._once(self.reading, work), self.wait_seconds)

    def write(
        self, work: Callable[[Connection], T], *, fresh: bool = False, patience: float | None = None
    ) -> T:
        """Do this in a transaction that nobody else writes in, and return when it is durable.

        It is done again where the database says that it came to nothing, until `patience` has passed; so that
        `work` may have no effect but on the database.
        """
        wait = self.wait_seconds if patience is None else max(patience, self.wait_seconds)
        return self._told(lambda: self._once(lambda: self.writing(fresh=fresh, wait=wait), work), wait)

    def _once(self, transaction: Callable[[], Any], work: Callable[[Connection], T]) -> T:
        with transaction() as connection:
            return work(connection)

    def _told(self, attempt: Callable[[], T], wait: float) -> T:
        """Errors of the database become ours; they are raised outside of any handler, so that nothing of it clings."""
        until = time.monotonic() + wait
        while True:
            try:
                return attempt()
            except (exc.SQLAlchemyError, sqlite3.Error, Late) as problem:
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
            if self.is_file:
                driver(connection).execute("BEGIN")
            else:
                connection.begin()
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    @contextmanager
    def writing(self, *, fresh: bool = False, wait: float | None = None) -> Iterator[Connection]:
        """A transaction that nobody else writes in; durable when this block has ended without an error."""
        wait = self.wait_seconds if wait is None else wait
        with self._connected(write=True, wait=wait) as connection:
            # Now, and not with the first statement: the lock comes before any reading.
            if self.is_file:
                driver(connection).execute("BEGIN IMMEDIATE")
            else:
                connection.begin()
                # Whatever the role's default is: stricter levels fail where one here waits for its turn.
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds(wait)}")
                connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
                if fresh:
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})")
                else:
                    connection.execute(sa.select(HEADER.c.id).with_for_update())
            yield connection
            self._commit(connection, wait)

    def _commit(self, connection: Connection, wait: float) -> None:
        """Readers hold the end of a transaction up on SQLite; it stays whole, and is ended when they have gone."""
        until = time.monotonic() + wait
        try:
            while self.is_file:
                try:
                    driver(connection).commit()
                    break
                except sqlite3.OperationalError as problem:
                    if not busy(problem) or time.monotonic() >= until:
                        raise
                time.sleep(0.001)
            connection.commit()
        except (exc.SQLAlchemyError, sqlite3.Error) as problem:
            problem.tacit_committing = True  # type: ignore[union-attr]
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
                connection = stack.enter_context(self._engine.connect())
            else:
                connection = stack.enter_context(self._on_file(self.path))
            yield connection

    @contextmanager
    def _on_file(self, path: Path) -> Iterator[Connection]:
        """The connection that was kept, or a new one; kept again where all went well."""
        before = stamp_of(path)
        connection = kept.take(id(self), path) or opened(self._engine, self._open_file)
        try:
            driver(connection).execute(f"PRAGMA busy_timeout = {milliseconds(self._wait)}")
            yield connection
            driver(connection).rollback()  # what was only read ends here, and lets writers go on
            connection.rollback()
        except BaseException:
            connection.close()
            raise
        kept.put(id(self), path, connection, before)

    def check_format(self, connection: Connection) -> None:
        """Refuse an SQLite file that is somebody else's."""
        if not self.is_file:
            return
        found = connection.exec_driver_sql("PRAGMA application_id").scalar()
        if found != APPLICATION_ID:
            raise LedgerError(
                ledger=self.name, reason="is not a ledger",
                hint="give the file or the URL that a ledger was created with",
            )  # fmt: skip

    def damage(self, connection: Connection) -> str:
        """What the database itself finds wrong with its file; empty if nothing."""
        if not self.is_file:
            return ""
        try:
            result = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
        except (exc.DBAPIError, sqlite3.Error):
            result = "unreadable"
        return "" if result == "ok" else "the database file is damaged"

    # --- engines -------------------------------------------------------------------------------------
    def _new_engine(self) -> Engine:
        if self.path is not None:
            return files_engine()
        try:
            return sa.create_engine(
                self._url, poolclass=QueuePool, pool_size=1, max_overflow=1, pool_pre_ping=True
            )
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


def _place(where: str | os.PathLike[str]) -> tuple[Path | None, URL]:
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
        return Path(text).expanduser().absolute(), URL.create("sqlite")
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        raise InvalidParameter(
            parameter="ledger", value="a URL", must="be written like postgresql://user@host/database"
        ) from None
    kind = url.get_backend_name()
    if kind == "sqlite" and url.database and url.database != ":memory:":
        return Path(url.database).absolute(), url
    if kind in ("postgresql", "postgres"):
        return None, url.set(drivername="postgresql+psycopg")
    raise InvalidParameter(
        parameter="ledger", value=kind, must="be a path, or a URL of postgresql or sqlite with a file"
    )


def is_there(where: str | os.PathLike[str], *, wait_seconds: float) -> bool:
    """Is there anything at this place? A file is looked for without a database's help."""
    path, _ = _place(where)
    positive("wait_seconds", wait_seconds)
    return Store(where, wait_seconds=wait_seconds).exists() if path is None else os.path.exists(path)


def _shown(url: URL) -> str:
    host = url.host or "local socket"
    return f"postgresql {host}/{url.database or ''}"


def _exists(name: str) -> LedgerError:
    return LedgerError(ledger=name, reason="exists already", hint="open it, or give the new one another name")


def _cannot_create(name: str, problem: OSError) -> LedgerError:
    reason = (problem.strerror or "it cannot be written there").lower()
    return LedgerError(ledger=name, reason=f"cannot be created: {reason}", hint="choose another place")

"""One database engine for all ledgers that are files: its statements are compiled once, and it holds no connection."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from functools import cache
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import NullPool

__all__ = ["driver", "files_engine", "milliseconds", "open_file", "opened"]

_thread = threading.local()

SETTINGS = (
    "synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF", "cell_size_check = ON", "journal_mode = PERSIST",
)  # fmt: skip
"""All that ended is on the disk. The journal stays beside the file, its head blanked: as safe as one that is deleted
after every transaction, and half the waiting for the disk, since no folder is written."""


def milliseconds(wait: float) -> int:
    """A wait as databases take it: in 32 bits, beyond which one would not wait at all."""
    return int(min(max(1.0, 1000 * wait), 2**31 - 1))


def open_file(path: str, wait: float) -> sqlite3.Connection:
    """SQLite's own connection to a file that is there; what it ends is on the disk."""
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


def opened(engine: Engine, open_file: Callable[[], sqlite3.Connection]) -> Connection:
    """A connection to the file that this opens."""
    _thread.open_file = open_file
    try:
        return engine.connect()
    finally:
        _thread.open_file = None


def driver(connection: Connection) -> sqlite3.Connection:
    """SQLite's own connection: transactions on files begin and end there, since SQLAlchemy's way takes longer."""
    return connection.connection.driver_connection  # type: ignore[return-value]


@cache
def files_engine() -> Engine:
    """The engine; what it opens is told by the thread that asks."""
    return sa.create_engine("sqlite+pysqlite://", creator=lambda: _thread.open_file(), poolclass=NullPool)

"""One database engine for all ledgers that are files: its statements are compiled once, and it holds no connection."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from functools import cache

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import NullPool

__all__ = ["files_engine", "opened"]

_thread = threading.local()


def opened(engine: Engine, open_file: Callable[[], sqlite3.Connection]) -> Connection:
    """A connection to the file that this opens: each anew, so that a file that was put in its place is noticed."""
    _thread.open_file = open_file
    try:
        return engine.connect()
    finally:
        _thread.open_file = None


@cache
def files_engine() -> Engine:
    """The engine; what it opens is told by the thread that asks."""
    engine = sa.create_engine("sqlite+pysqlite://", creator=lambda: _thread.open_file(), poolclass=NullPool)
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    write = connection.get_execution_options().get("tacit_write", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

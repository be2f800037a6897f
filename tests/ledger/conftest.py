"""Each test of the ledger's behaviour runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ledgers import new_schema, postgres_server, quick_folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where a ledger may be created."""
    if request.param == "sqlite":
        with quick_folder() as folder:
            yield str(Path(folder) / "survey.ledger")
    else:
        yield new_schema(request.getfixturevalue("postgres"))

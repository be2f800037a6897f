"""Each test of the ledger's behaviour runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.ledgers import new_schema, postgres_server, quick_folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request: pytest.FixtureRequest) -> Iterator[Callable[[], str]]:
    """Places where ledgers may be created, one a call."""
    if request.param == "sqlite":
        with quick_folder() as folder:
            names = (str(Path(folder) / f"{number}.ledger") for number in itertools.count())
            yield lambda: next(names)
    else:
        server = request.getfixturevalue("postgres")
        yield lambda: new_schema(server)


@pytest.fixture
def place(new_place: Callable[[], str]) -> str:
    """Where a ledger may be created."""
    return new_place()

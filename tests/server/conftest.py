"""One server for the tests of this room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.servers import Served, small_server
from tacit.sources import engines


@pytest.fixture(scope="session")
def desk_server() -> Iterator[Served]:
    with small_server() as found:
        yield found


@pytest.fixture(autouse=True)
def _confined_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of a server is confined to its folders for good; this one has tests of other rooms to run."""
    monkeypatch.setattr(engines, "_confined", None)

"""One server for the tests of this room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.servers import Served, small_server


@pytest.fixture(scope="session")
def desk_server() -> Iterator[Served]:
    with small_server() as found:
        yield found

"""Commands read small tables, from one engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import engine


@pytest.fixture(autouse=True)
def one_engine() -> Iterator[None]:
    """These tests are about what is said of a table, not about reading it."""
    with engine.shared():
        yield
